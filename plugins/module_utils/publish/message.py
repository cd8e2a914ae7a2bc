# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a commit says, and what a review branch is called. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import Problem

_LINE = re.compile(r"[^\x00-\x1f\x7f\u0085\u2028\u2029]*")


def problems(recipe: str, cluster: str, digests: Mapping, message: str) -> list[Problem]:
    """What would break the message's form: a value over several lines could forge a trailer."""
    found = [
        Problem("bad-value", f"{name} must be a single line of text", path=name)
        for name, value in (("recipe", recipe), ("cluster", cluster))
        if not _LINE.fullmatch(value)
    ]
    for name, value in digests.items():
        if not re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?", str(name)):
            found.append(
                Problem(
                    "bad-name",
                    f"{name!r} cannot name a digest",
                    path="digests",
                    hint="letters, digits and dashes, such as lock",
                )
            )
        if not isinstance(value, str) or not value or not _LINE.fullmatch(value):
            found.append(Problem("bad-value", "must be a single line of text", path=f"digests.{name}"))
    if re.search(r"[\x00-\x08\x0b-\x1f\x7f]", message):
        found.append(Problem("bad-value", "has control characters", path="commit_message"))
    return found


def compose(
    path: str, recipe: str, cluster: str, digests: Mapping[str, str], counts: Mapping[str, int], message: str = ""
) -> str:
    """The commit message: subject, body, trailers. `message` replaces subject and body, the trailers stay."""
    if not message.strip():
        what = recipe or "bundle"
        message = f"Publish {what} to {cluster or path}\n\n{summary(counts)} under {path}."
    trailers = {"Recipe": recipe, "Cluster": cluster, "Path": path}
    trailers |= {f"{name[:1].upper()}{name[1:]}-Digest": digests[name] for name in sorted(digests)}
    lines = [f"{name}: {value}" for name, value in trailers.items() if value]
    return message.strip() + "\n\n" + "\n".join(lines) + "\n"


def summary(counts: Mapping[str, int]) -> str:
    """Counts {added, modified, removed} as "3 files added, 1 modified"."""
    told = [f"{counts[word]} {word}" for word in ("added", "modified", "removed") if counts.get(word)]
    if not told:
        return "no file changed"
    number, _space, word = told[0].partition(" ")
    return ", ".join([f"{number} {'file' if number == '1' else 'files'} {word}", *told[1:]])


def review_branch(cluster: str, tree: str) -> str:
    """goodput/CLUSTER-TREE: the same content for the same cluster always gets the same branch.

    `tree` is git's digest of the published directory. What git does not allow in a branch name becomes a dash.
    """
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", cluster)
    name = re.sub(r"\.{2,}", ".", name).strip("-.") or "cluster"
    return f"goodput/{name}-{tree[:12]}"
