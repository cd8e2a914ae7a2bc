# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Component health: what a lock's components should be against the objects that are there. Pure.

`components` are a lock's spec.components (name, namespace, release, crds, health, rendered). `objects` is what
observe.py noted, each answer being {"items": [...]}, {"error": {"code", "message"}} or {"absent": true}:

  namespaces  {namespace: {"object": {...} | None} | {"error": ...}}
  lists       {namespace: {kind: answer}}     kinds: observe.KINDS; of ReplicaSets the metadata is enough
  crds        answer
  checks      {checks.key(component, check): answer}

An answer that is not there is unknown, never a pass.
"""

from __future__ import annotations

from collections import Counter

from ansible_collections.goodput.fleet.plugins.module_utils.health import checks, crds
from ansible_collections.goodput.fleet.plugins.module_utils.health.reasons import HEALTHY, UNHEALTHY, UNKNOWN, verdict
from ansible_collections.goodput.fleet.plugins.module_utils.health.share import NOT_READ, Share

EVERYBODYS = ("default", "kube-public", "kube-system")  # namespaces that no component has for itself


def evaluate(components: list[dict], objects: dict, names: list[str] | None = None) -> list[dict]:
    """Per component {name, namespace, status, reasons}; everything violated at once.

    `names` narrows the answer, not what is known: who shares a namespace is judged on all components.
    Raises InvalidDocument when a check's expression does not parse.
    """
    compiled = checks.compile_all(components)
    tenants = Counter(component["namespace"] for component in components)
    results = []
    for component in components:
        if names is None or component["name"] in names:
            namespace = component["namespace"]
            exclusive = tenants[namespace] == 1 and namespace not in EVERYBODYS
            reasons = _reasons(component, objects, exclusive, compiled)
            results.append(
                {"name": component["name"], "namespace": namespace, "status": verdict(reasons), "reasons": reasons}
            )
    return results


def _reasons(component: dict, objects: dict, exclusive: bool, compiled: dict) -> list[dict]:
    wanted = (component.get("health") or {}).get("checks") or []
    reasons = crds.faults(component, objects.get("crds", NOT_READ))
    reasons += Share(component, objects, exclusive).faults(proven_otherwise=bool(wanted or crds.names(component)))
    for check in wanted:
        answer = objects.get("checks", {}).get(checks.key(component, check), NOT_READ)
        reasons += checks.faults(component, check, answer, compiled[check["expression"]])
    return reasons


def counts(results: list[dict]) -> dict:
    """How many components are in each state."""
    tally = Counter(result["status"] for result in results)
    return {"total": len(results), **{state: tally[state] for state in (HEALTHY, UNHEALTHY, UNKNOWN)}}


def describe(results: list[dict]) -> str:
    """All that is wrong, a line per reason; empty when everything is healthy."""
    bad = [result for result in results if result["status"] != HEALTHY]
    if not bad:
        return ""
    lines = [f"{len(bad)} of {len(results)} components are not healthy:"]
    for result in bad:
        for reason in result["reasons"]:
            mark = "" if reason["verdict"] == UNHEALTHY else " [unknown]"
            step = f" -> {reason['next']}" if reason["next"] else ""
            lines.append(f"{result['name']}{mark}: {reason['object']} {reason['message']}{step}")
    return "\n".join(lines)
