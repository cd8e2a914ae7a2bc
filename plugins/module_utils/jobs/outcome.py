# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A pass of job recovery in words and numbers. Pure.

`decisions`: RecoveryDecision documents; `actions`: results of the actuator, by key of the attempt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

ADVICE = ("gate", "diagnose", "observe")
CAME_OUT = ("running", "succeeded")


def line(decision: Mapping, action: Mapping | None) -> str:
    """As "ml/train attempt 2: restart (row-5): Xid 79 on gpu-0003 -> done, running as attempt 3"."""
    spec = decision["spec"]
    job = f"{spec['job']['namespace']}/{spec['job']['name']} attempt {spec['attempt'].rpartition('/')[2]}"
    text = f"{job}: {spec['action']} ({spec['rule']}): {'; '.join(spec['reasons']) or 'no reason told'}"
    if spec["exclude"]:
        text += f"; without {', '.join(one['node'] for one in spec['exclude'])}"
    if spec["mode"] != "act" and spec["action"] not in ("none", "hold", "giveBack", "escalate"):
        text += " [advice only]"
    if action and action["status"] != "done":
        text += f" -> {action['status']}: {action['detail']}"
    elif action and action.get("outcome"):
        text += f" -> {action['outcome']}"
    return text


def lines(decisions: Iterable[Mapping], actions: Mapping[str, Mapping]) -> list[str]:
    return [line(one, actions.get(one["spec"]["attempt"])) for one in decisions]


def advice(decisions: Iterable[Mapping]) -> dict[str, list[dict]]:
    """{gate: [{node, why, jobs}], diagnose: …, observe: …}: what the hardware side is told, each node once, under what
    is most pressing of what the decisions say of it."""
    told: dict[str, dict] = {}
    for decision in decisions:
        spec = decision["spec"]
        job = f"{spec['job']['namespace']}/{spec['job']['name']}"
        for one in spec["hardware"]:
            if one["advice"] not in ADVICE:
                continue
            known = told.get(one["node"])
            if known is None or ADVICE.index(one["advice"]) < ADVICE.index(known["advice"]):
                told[one["node"]] = {**one, "jobs": [*(known["jobs"] if known else []), job]}
            elif job not in known["jobs"]:
                known["jobs"].append(job)
    return {
        each: [
            {"node": node, "why": one["why"], "jobs": one["jobs"]}
            for node, one in sorted(told.items())
            if one["advice"] == each
        ]
        for each in ADVICE
    }


def counts(decisions: Iterable[Mapping], actions: Iterable[Mapping]) -> dict:
    """{decisions: {action: n}, actions: {status: n}, running: n}."""
    actions = list(actions)
    return {
        "decisions": dict(sorted(Counter(one["spec"]["action"] for one in decisions).items())),
        "actions": dict(sorted(Counter(one["status"] for one in actions).items())),
        "running": sum(one.get("outcome") in CAME_OUT for one in actions),
    }


def message(decisions: list[Mapping], actions: Iterable[Mapping], mode: str, check: bool) -> str:
    """The pass in one line."""
    if not decisions:
        return f"{mode}: no job failed that asks for recovery"
    told = counts(decisions, actions)
    what = ", ".join(f"{number} {action}" for action, number in told["decisions"].items())
    done = ", ".join(f"{number} {status}" for status, number in told["actions"].items())
    verb = "would decide" if check else "decided"
    return f"{mode}: {len(decisions)} failed attempts, {verb} {what}" + (f"; actions: {done}" if done else "")


def failures(decisions: Iterable[Mapping], actions: Iterable[Mapping]) -> list[str]:
    """What of failed, escalated and excluded there was."""
    actions = list(actions)
    found = []
    if any(one["status"] == "failed" for one in actions):
        found.append("failed")
    if any(one["spec"]["escalate"] for one in decisions):
        found.append("escalated")
    if any(one.get("onExcluded") for one in actions):
        found.append("excluded")
    return found
