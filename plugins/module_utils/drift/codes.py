# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every finding that drift can report: its code, what it means, how bad it is, and what to do next.

Codes are stable: pipelines and ignore rules name them. Only `info` findings leave a cluster in sync.
"""

from __future__ import annotations

from typing import NamedTuple


class Code(NamedTuple):
    severity: str  # error | warning | info
    meaning: str
    hint: str


INSTALL = "install the bundle again"
UPDATE = "update the node, then certify it again"
PLANNED = "nothing, if that was planned"

CODES: dict[str, Code] = {
    # releases and what they were told
    "release-missing": Code("error", "no release of the component is installed", INSTALL),
    "release-failed": Code("error", "the last install or upgrade failed", "see helm history, or the deployer's events"),
    "release-pending": Code(
        "warning", "an install or upgrade has not come to an end", "wait; helm rollback if it stays"
    ),
    "release-out-of-sync": Code("warning", "the deployer says the cluster differs from Git", "sync the Application"),
    "release-suspended": Code("warning", "the deployer was told to leave the release alone", "resume it"),
    "chart-name": Code("error", "another chart is installed", INSTALL),
    "chart-version": Code("error", "another version of the chart is installed", f"{INSTALL}, or resolve a new lock"),
    "value-differs": Code("error", "a value was set to something else", f"{INSTALL}, or change it in an overlay"),
    "value-missing": Code("error", "a value of the recipe is not set", INSTALL),
    "value-added": Code("error", "a value is set that the recipe lacks", f"{INSTALL}, or put it into an overlay"),
    # what runs
    "workload-missing": Code("error", "something that the release rendered is gone", INSTALL),
    "image-differs": Code("error", "a container runs another image than its release rendered", INSTALL),
    "image-unverifiable": Code("warning", "an image is known by digest, the recipe names a tag", "pin the digest"),
    "container-missing": Code("error", "a container that the release rendered is gone", INSTALL),
    "container-added": Code("info", "a container was added, as sidecar injectors do", "see that the injector is yours"),
    "crd-missing": Code("error", "a CRD of the component is not there", INSTALL),
    "crd-differs": Code("error", "a CRD is not the component's (Helm never upgrades CRDs)", "apply the chart's CRDs"),
    # nodes
    "node-not-as-locked": Code("error", "a node does not have what the lock fixes for it", UPDATE),
    "constraint-violated": Code(
        "error", "a constraint of the recipe does not hold", "meet it, or resolve another recipe"
    ),
    "node-odd-one-out": Code("warning", "a node differs from the others of its group", UPDATE),
    "node-group-split": Code("warning", "a node group has no majority", f"finish or undo the roll-out; {UPDATE}"),
    "gpus-not-allocatable": Code("error", "a node offers fewer GPUs than it has", "see the device plugin's log"),
    # between snapshots only
    "server-changed": Code("warning", "the API server changed", PLANNED),
    "node-added": Code("warning", "a node was added", "certify it"),
    "node-removed": Code("warning", "a node is gone", PLANNED),
    "node-changed": Code("warning", "a fact of nodes changed", PLANNED),
    "node-state-changed": Code("info", "readiness or schedulability of nodes changed", "kubectl describe node"),
    "release-added": Code("warning", "a release was added", PLANNED),
    "release-changed": Code("warning", "chart, version or status of a release changed", PLANNED),
    "workload-added": Code("warning", "a workload was added", PLANNED),
    "crd-added": Code("warning", "a CRD was added", PLANNED),
    # about the run
    "ignore-rule-unused": Code("info", "an ignore rule matched nothing", "remove it"),
}


def finding(
    code: str,
    path: str,
    message: str,
    *,
    component: str | None = None,
    expected=None,
    found=None,
    nodes: list[str] | None = None,
    severity: str | None = None,
    hint: str | None = None,
) -> dict:
    """One finding. Every key is always there, so that ignore rules can rely on it."""
    return {
        "code": code,
        "severity": severity or CODES[code].severity,
        "component": component,
        "path": path,
        "expected": expected,
        "found": found,
        "nodes": sorted(nodes or []),
        "message": message,
        "hint": hint or CODES[code].hint,
    }
