# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is left to do of a Helm bundle's plan on a cluster, and why. Pure.

Decided from what is true now (Helm's list and a DriftReport of the same moment), never from what an earlier run did:
a run that was cut off is simply run again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

UNFINISHED = ("pending-install", "pending-upgrade", "pending-rollback", "uninstalling")
# Findings that installing the release again mends. The others are about nodes.
MENDABLE = ("releases/", "workloads/", "crds/")
READ_FROM = ("releases", "workloads", "crds")
HARMLESS = ("container-added", "release-pending")


def left_to_do(steps: list[dict], releases: list[dict], report: dict, unhealthy: Iterable[str] = ()) -> list[dict]:
    """Each step of plan.json with `action` and `why` (a list of texts).

    action  none     it is there as the recipe has it
            wait     so it is, but its component is not healthy (yet): what depends on it must wait
            install, upgrade
            recover  an earlier operation did not end; Helm refuses another one until that is cleared

    `releases` is `helm list --all-namespaces --output json`. A local chart's step needs `chart` and `version` filled
    in from its Chart.yaml.
    """
    installed = {(release["namespace"], release["name"]): release for release in releases}
    reasons = _reasons(report["spec"])
    steps = [{**step, **_decide(step, installed.get((step["namespace"], step["release"])), reasons)} for step in steps]
    for step in steps:
        if step["action"] == "none" and step["gate"] and step["component"] in unhealthy:
            step.update(action="wait", why=[f"{step['component']} is not healthy"])
    return steps


def _reasons(spec: dict) -> Callable[[str], list[str]]:
    """component -> what the report found wrong with it, or could not tell."""
    texts: dict[str, list[str]] = {}
    for finding in spec["findings"]:
        if finding["path"].startswith(MENDABLE) and finding["code"] not in HARMLESS:
            texts.setdefault(finding.get("component") or "", []).append(finding["message"])
    blind = []
    for name, part in spec["parts"].items():
        if part["status"] != "ok":
            text = f"whether it is as the recipe has it is not known: {part.get('reason', name)}"
            if name.startswith("components/"):
                texts.setdefault(name.partition("/")[2], []).append(text)
            elif name in READ_FROM:
                blind.append(text)
    return lambda component: list(dict.fromkeys(texts.get(component, []) + blind))


def _decide(step: dict, release: dict | None, reasons: Callable[[str], list[str]]) -> dict:
    if release is None:
        return {"action": "install", "why": ["it is not installed"]}
    if release["status"] in UNFINISHED:
        return {"action": "recover", "why": [f"it is {release['status']}: an earlier operation did not end"]}
    why = []
    if release["status"] != "deployed":
        why.append(f"its last operation left it {release['status']}")
    if release["chart"] != f"{step['chart']}-{step['version']}":
        why.append(f"{release['chart']} is installed, the recipe has {step['chart']}-{step['version']}")
    elif not step["path"]:  # a component's own chart mends what is found wrong with it
        why += reasons(step["component"])
    return {"action": "upgrade" if why else "none", "why": why}
