# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is left to do of a Helm bundle's plan on a cluster, and why. Pure.

Decided from what is true now (Helm's list and a DriftReport of the same moment), never from what an earlier run did:
a run that was cut off is simply run again.
"""

from __future__ import annotations

UNFINISHED = ("pending-install", "pending-upgrade", "pending-rollback", "uninstalling")
# Findings that installing the release again mends. The others are about nodes.
MENDABLE = ("releases/", "workloads/", "crds/")
HARMLESS = ("container-added", "release-pending")


def left_to_do(steps: list[dict], releases: list[dict], report: dict) -> list[dict]:
    """Each step of plan.json with `action` and `why` (a list of texts).

    action  none     it is there as the recipe has it
            install, upgrade
            recover  an earlier operation did not end; Helm refuses another one until that is cleared

    `releases` is `helm list --all-namespaces --output json`. A local chart's step needs `chart` and `version` filled
    in from its Chart.yaml.
    """
    installed = {(release["namespace"], release["name"]): release for release in releases}
    spec = report["spec"]
    findings: dict[str, list[str]] = {}
    for finding in spec["findings"]:
        if finding["path"].startswith(MENDABLE) and finding["code"] not in HARMLESS:
            findings.setdefault(finding.get("component", ""), []).append(finding["message"])
    blind = [
        f"whether it is as the recipe has it is not known: {part.get('reason', name)}"
        for name, part in spec["parts"].items()
        if part["status"] != "ok" and _concerns(name)
    ]
    return [
        {**step, **_decide(step, installed.get((step["namespace"], step["release"])), findings, blind)}
        for step in steps
    ]


def _concerns(part: str) -> bool:
    return part in ("releases", "workloads", "crds") or part.startswith("components/")


def _decide(step: dict, release: dict | None, findings: dict[str, list[str]], blind: list[str]) -> dict:
    if release is None:
        return {"action": "install", "why": ["it is not installed"]}
    if release["status"] in UNFINISHED:
        return {"action": "recover", "why": [f"it is {release['status']}: an earlier operation did not end"]}
    why = []
    if release["status"] != "deployed":
        why.append(f"its last operation left it {release['status']}")
    elif release["chart"] != f"{step['chart']}-{step['version']}":
        why.append(f"{release['chart']} is installed, the recipe has {step['chart']}-{step['version']}")
    if step["path"] is None:  # a component's own chart mends what is found wrong with it
        why += [text for text in findings.get(step["component"], []) if text not in why] + blind
    return {"action": "upgrade" if why else "none", "why": why}
