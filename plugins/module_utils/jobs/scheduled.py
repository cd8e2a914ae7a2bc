# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where pods ran that are deleted by now, from the scheduler's events: who hung is deleted with its failed Job, and the
ranks that only waited for it are what is left to be seen. Pure.

Events are v1 Events with reason Scheduled; an API server keeps them for an hour.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.jobs import history, members, moments, ranks, shapes

REASON = "Scheduled"
_POD = re.compile(r"(?P<job>.+)-(?P<index>\d+)-[a-z0-9]{5}")  # of an indexed Job
_SAID = re.compile(r"Successfully assigned (?P<namespace>[^/\s]+)/(?P<pod>\S+) to (?P<node>\S+)")


class Scheduled:
    """The last placement of each index of each Job."""

    def __init__(self, events: Iterable[Mapping] = ()):
        self._of: dict[tuple[str, str], list[dict]] = {}
        for event in events:
            said = _SAID.match(shapes.text(event.get("message"))) if event.get("reason") == REASON else None
            pod = _POD.fullmatch(said["pod"]) if said else None
            at = shapes.text(event.get("eventTime") or event.get("lastTimestamp") or event.get("firstTimestamp"))
            if pod and moments.of(at) is not None:
                told = {"index": int(pod["index"]), "at": moments.of(at), **said.groupdict()}
                told["uid"] = shapes.text(shapes.mapping(event.get("involvedObject")).get("uid"))
                self._of.setdefault((said["namespace"], pod["job"]), []).append(told)

    def ranks(
        self, job: Mapping, below: Iterable[Mapping], layout: members.Layout, missing: Iterable[int]
    ) -> list[dict]:
        """Ranks whose pods are gone, of those that are missing. Only pods that are not older than their Job count."""
        found: dict[int, dict] = {}
        for one in (job, *below) if missing else ():
            meta = shapes.metadata(one)
            made = moments.of(meta.get("creationTimestamp")) or 0.0
            for told in self._of.get((shapes.text(meta.get("namespace")), shapes.text(meta.get("name"))), ()):
                index, role = layout.of_job(one, told["index"])
                newer = index in found and found[index]["at"] >= told["at"]
                if one.get("kind") == "Job" and index in missing and told["at"] >= made and not newer:
                    found[index] = {**told, "index": index, "role": role}
        return [
            {
                **ranks.read({}, told["index"], told["role"]),
                **{part: told[part] for part in ("pod", "uid", "namespace", "node")},
                "startedAt": moments.text(told["at"]),
                "phase": history.GONE,
            }
            for told in found.values()
        ]


def namespaces(attempts: Iterable[Mapping]) -> list[str]:
    """Where events would tell more: of failed attempts with ranks of which nobody knows where they were."""
    found = set()
    for attempt in attempts:
        known = {rank["index"] for rank in attempt["ranks"] if rank["node"]}
        if attempt["state"] == "failed" and set(attempt["missing"]) - known:
            found.add(attempt["job"]["namespace"])
    return sorted(found)
