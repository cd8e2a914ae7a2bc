# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Are a component's CRDs there and Established?"""

from __future__ import annotations

from ansible_collections.goodput.fleet.plugins.module_utils.health.reasons import unhealthy, unreadable


def names(component: dict) -> list[str]:
    """CRDs the component must bring: declared, or found in its rendered chart."""
    rendered = (component.get("rendered") or {}).get("crds") or []
    return sorted({*(component.get("crds") or []), *(crd["name"] for crd in rendered)})


def faults(component: dict, answer: dict) -> list[dict]:
    """Reasons why they do not all serve. `answer` is {items} | {error} of all CRDs."""
    wanted = names(component)
    if wanted and answer.get("error"):
        return [unreadable("CustomResourceDefinitions", answer["error"])]
    present = {item["metadata"]["name"]: item for item in answer.get("items") or []}
    return [reason for name in wanted for reason in _one(name, present.get(name), component["name"])]


def _one(name: str, crd: dict | None, component: str) -> list[dict]:
    obj, look = f"CustomResourceDefinition/{name}", f"kubectl get crd {name} -o yaml"
    if crd is None:
        return [unhealthy("crd-absent", obj, "is not in the cluster", f"install {component}")]
    if crd["metadata"].get("deletionTimestamp"):
        return [unhealthy("terminating", obj, "is being deleted", look)]
    conditions = {item.get("type"): item for item in (crd.get("status") or {}).get("conditions") or []}
    established, accepted = conditions.get("Established") or {}, conditions.get("NamesAccepted") or {}
    if established.get("status") == "True":
        return []
    why = (accepted if accepted.get("status") == "False" else established).get("message")
    why = why or "the API server has not said so yet"
    return [unhealthy("crd-not-established", obj, f"is not Established: {why}", look)]
