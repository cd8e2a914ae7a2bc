# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What PodDisruptionBudgets say of an eviction, before it is asked for. Pure; the API server has the last word."""

from __future__ import annotations

from ansible_collections.goodput.fleet.plugins.module_utils.gates import labels
from ansible_collections.goodput.fleet.plugins.module_utils.gates.drain_pods import Pod


class Budgets:
    """The budgets of the namespaces concerned. allows() takes from them, so that one plan does not spend one twice."""

    def __init__(self, raw: list[dict]):
        self._of: dict[str, list[dict]] = {}
        self._left: dict[tuple[str, str], int] = {}
        for item in raw:
            namespace, name = item["metadata"].get("namespace") or "", item["metadata"]["name"]
            self._of.setdefault(namespace, []).append(item)
            self._left[namespace, name] = (item.get("status") or {}).get("disruptionsAllowed") or 0

    def names(self, pod: Pod) -> list[str]:
        """Names of the budgets that select the pod."""
        return sorted(item["metadata"]["name"] for item in self._selecting(pod))

    def _selecting(self, pod: Pod) -> list[dict]:
        return [
            item
            for item in self._of.get(pod.namespace, [])
            if labels.matches((item.get("spec") or {}).get("selector"), pod.labels)
        ]

    def forbids(self, pod: Pod) -> str:
        """Why the pod cannot be evicted now, or "" after its eviction has been booked."""
        found = self._selecting(pod)
        if not found or pod.phase == "Pending" or pod.finished:
            return ""
        if len(found) > 1:
            return several(self.names(pod))
        budget = found[0]
        name, status = budget["metadata"]["name"], budget.get("status") or {}
        healthy, wanted = status.get("currentHealthy") or 0, status.get("desiredHealthy") or 0
        if not pod.ready:
            if (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
                return ""
            if healthy >= wanted > 0:
                return ""
        if self._left[pod.namespace, name] > 0:
            self._left[pod.namespace, name] -= 1
            return ""
        return f"PodDisruptionBudget {name} allows no disruption ({healthy} healthy, {wanted} needed)"


def several(names: list[str]) -> str:
    listed = ", ".join(names)
    return f"more than one PodDisruptionBudget selects it ({listed}), which the eviction API refuses; leave one"
