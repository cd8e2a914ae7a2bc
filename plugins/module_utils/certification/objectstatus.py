# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The status of a Certification that is an object of the cluster, as its CRD in gitops/crds has it. Pure."""

from __future__ import annotations

from collections.abc import Mapping

NODES_LIMIT = 2000  # an object holds about 1 MiB; the evidence holds all
WHY_LIMIT = 200
PHASES = {
    "pass": "Succeeded",
    "pass_unbounded": "Succeeded",
    "fail": "Failed",
    "incomplete": "Failed",
}


def path_of(certification: Mapping) -> str | None:
    """Of the status of the object that the document was read from; None for a document that is no object."""
    metadata = certification["metadata"]
    if not metadata.get("uid") or not metadata.get("namespace") or certification.get("kind") != "Certification":
        return None
    group = certification["apiVersion"]
    return f"/apis/{group}/namespaces/{metadata['namespace']}/certifications/{metadata['name']}/status"


def running(begun: str) -> dict:
    """While it runs."""
    condition = {"type": "InProgress", "status": "True", "lastTransitionTime": begun, "reason": "Running"}
    return {"phase": "InProgress", "startedAt": begun, "conditions": [condition]}


def over(results: Mapping, evidence: Mapping, message: str) -> dict:
    """After its end. evidence: {path, digest}."""
    finished, status = results["finished"], results["status"]
    phase = PHASES[status]
    conditions = [
        {"type": "InProgress", "status": "False", "lastTransitionTime": finished, "reason": "Over"},
        {
            "type": phase,
            "status": "True",
            "lastTransitionTime": finished,
            "reason": status.title().replace("_", ""),
            "message": message[:1024],
        },
    ]
    return {
        "phase": phase,
        "message": message[:1024],
        "startedAt": results["started"],
        "finishedAt": finished,
        "counts": results["counts"]["nodes"],
        "nodes": [
            {"name": each["node"], "verdict": each["verdict"], "why": "; ".join(each["reasons"])[:WHY_LIMIT]}
            for each in results["nodes"][:NODES_LIMIT]
        ],
        "evidence": {"location": evidence["path"], "digest": evidence["digest"]},
        "conditions": conditions,
    }
