# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan in words. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.certification import durations

SHOWN = 8


def describe(plan: Mapping) -> list[str]:
    """The lines that check mode shows."""
    jobs, nodes = plan["jobs"], len(plan["nodes"])
    hours, path = plan["nodeHours"], durations.text(plan["longestPathMinutes"] * 60)
    lines = [f"{_many(jobs, 'job')} on {_many(nodes, 'node')}: at most {hours:g} node-hours, {path} from begin to end"]
    lines += _beyond(plan)
    for category in plan["categories"]:
        lines += _category(plan, category)
    lines += [_problem(problem) for problem in plan["problems"]]
    return lines + [f"note: {note}" for note in plan["notes"]]


def _beyond(plan: Mapping) -> list[str]:
    """What comes on top of the cost."""
    searched = list(dict.fromkeys(search["category"] for search in plan["searches"])) if plan["jobs"] else []
    if not searched:
        return []
    most = plan["limits"].get("maxTests")
    bound = f"; limits.maxTests {most} holds for all jobs together" if most else "; limits.maxTests bounds it"
    return [f"on top, where a test fails: the search for the bad node or link of {_names(searched)}{bound}"]


def _category(plan: Mapping, category: Mapping) -> list[str]:
    runs = [run for run in plan["runs"] if category["name"] in run["categories"]]
    sizes = Counter((len(run["nodes"]), run["accelerator"], run["expected"]["gpusPerNode"]) for run in runs)
    parts = []
    for (size, accelerator, gpus), count in sorted(sizes.items(), key=lambda entry: (-entry[0][0], entry[0])):
        each = f"{_many(size, 'node')} of {gpus} GPUs" if size > 1 else f"one node of {gpus} GPUs"
        parts.append(f"{_many(count, 'job')} of {each}" + (f" ({accelerator})" if accelerator else ""))
    limit = durations.text(max((run["limits"]["run"] for run in runs), default=0))
    what = "; ".join(parts) + f"; {limit} each at most" if parts else "no job"
    lines = [f"{category['name']} ({category['test']}): {what}"]
    borrowed = sorted({name for run in runs for name in run["borrowed"]})
    if borrowed:
        lines.append(f"  twice, to fill a group up: {_names(borrowed)}")
    reasons: dict[tuple[str, str], list[str]] = {}
    for row in plan["blocked"]:
        if row["category"] == category["name"]:
            reasons.setdefault((row["outcome"], row["why"]), []).append(row["node"])
    lines += [f"  {outcome}: {_names(names)}: {why}" for (outcome, why), names in sorted(reasons.items())]
    return lines


def _problem(problem: Mapping) -> str:
    hint = f" ({problem['hint']})" if problem.get("hint") else ""
    return f"{problem.get('severity', 'error')}: {problem['message']}{hint}"


def _names(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _many(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"
