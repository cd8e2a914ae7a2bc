# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a pass over the ValidationRequests did, as data and in lines."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle.validation import Plan, others

_LISTS = ("gated", "opened", "passed", "failing", "waiting", "gone", "orphans")
_TOLD = ("made", "requests", "certifications", "unwritten", "unreadable")


@dataclass
class Report:
    """Over one pass or several in a row; what waits or has failed is what the last of them says."""

    made: list[str] = field(default_factory=list)
    gated: list[str] = field(default_factory=list)
    opened: list[str] = field(default_factory=list)
    passed: list[str] = field(default_factory=list)
    failing: list[dict] = field(default_factory=list)
    waiting: list[dict] = field(default_factory=list)
    gone: list[dict] = field(default_factory=list)
    orphans: list[dict] = field(default_factory=list)
    certifications: list[dict] = field(default_factory=list)
    requests: list[dict] = field(default_factory=list)
    unwritten: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    changed: bool = False
    goes_on: bool = False
    _lines: list[str] = field(default_factory=list)
    _told: list[str] = field(default_factory=list)

    def take(self, plan: Plan, docs: Mapping[str, dict], planned: bool) -> None:
        """What a pass found; where it is only planned, also what it would do."""
        self.failing, self.waiting, self.gone, self.orphans = plan.failed, plan.waiting, plan.gone, plan.orphans
        self._told, self.certifications, self.goes_on = plan.lines, plan.certifications, plan.goes_on
        for item in plan.done:
            self._add("opened" if item["open"] else "passed", item["node"], "proven")
        if not planned:
            return
        self.made = [document["metadata"]["name"] for document in plan.create]
        for want in plan.holds:
            self._add("gated", want["node"], f"would be gated: {want['reason']}")
        for want in plan.releases:
            self._add("opened", want["node"], "would be released")
        self.changed = bool(plan.create or plan.holds or plan.releases or plan.statuses)
        self.requests_of(docs.values(), ())

    def held(self, results: Iterable[Mapping]) -> None:
        """Of the gates that were held, as gates report them."""
        for result in results:
            if result["status"] == "refused":  # another node by now, which the next look sees
                self._lines.append(f"{result['node']}: not gated: {result['reason']}")
            elif result["status"] == "failed":
                self.not_written(f"gate of {result['node']}: {result['reason']}")
            elif result["status"] == "held":
                self._add("gated", result["node"], "gated")

    def released(self, wants: Iterable[Mapping], results: Iterable[Mapping]) -> None:
        """Of the gates that were to be released, in the same order."""
        for want, result in zip(wants, results, strict=True):
            if result["status"] == "failed":
                self.not_written(f"gate of {result['node']}: {result['reason']}")
            elif result["status"] == "refused":
                self._lines.append(f"{want['node']}: not opened: {result['reason']}")
            elif result["open"]:
                self._add("opened", want["node"], "passed and opened")
            else:
                self._add("passed", want["node"], f"passed, and stays closed for {', '.join(others(result))}")
            self.changed = self.changed or result["changed"]

    def requests_of(self, docs: Iterable[Mapping], only: Collection[str]) -> None:
        """Those that are open, or were worked on by name."""
        self.requests = [
            {"name": doc["metadata"]["name"], "phase": phase, "counts": dict(status.get("counts") or {})}
            for doc in docs
            for status in (doc.get("status") or {},)
            for phase in (status.get("phase") or "Pending",)
            if doc["metadata"]["name"] in only or (not only and phase in ("Pending", "Running"))
        ]

    def not_written(self, what: str) -> None:
        """Tried again within a pass, it is told once."""
        if what not in self.unwritten:
            self.unwritten.append(what)

    def _add(self, what: str, node: str, line: str) -> None:
        if node not in getattr(self, what):
            getattr(self, what).append(node)
        self._lines.append(f"{node}: {line}")

    def as_result(self, mode: str, check_mode: bool) -> dict:
        """The module's answer."""
        counts = {name: len(getattr(self, name)) for name in (*_LISTS, "certifications")}
        parts = [f"{counts[name]} {name}" for name in _LISTS if counts[name]]
        number = counts["certifications"]
        text = f"{'check' if check_mode else mode}: {', '.join(parts) or 'nothing to be proven'}"
        if number:
            text += f"; {number} certification{'' if number == 1 else 's'} to be run"
        if self.unwritten:
            text += f"; not written: {'; '.join(self.unwritten[:5])}"
        lists = {name: getattr(self, name) for name in (*_LISTS, *_TOLD)}
        lines = [*self._lines, *self._told, *(f"not written: {each}" for each in self.unwritten)]
        return {
            **lists,
            "msg": text,
            "changed": self.changed or bool(self.made or self.gated or self.opened or self.passed),
            "goes_on": self.goes_on,
            "lines": lines,
            "counts": counts,
        }
