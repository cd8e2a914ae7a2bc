# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a lock expects of a cluster, component by component."""

from __future__ import annotations

from typing import NamedTuple

from ansible_collections.goodput.fleet.plugins.module_utils.records import manifests

SOURCES = ("helm", "argocd", "flux")  # Helm's record is what happened, the others are what was asked for
PART_OF = {"helm": "releases", "argocd": "argocd", "flux": "flux"}


class Rendered(NamedTuple):
    """What should run. `known` is false where nothing tells what the chart rendered."""

    workloads: list[dict]
    crds: list[dict]
    known: bool


def release_name(component: dict) -> str:
    return component.get("release") or component["name"]


def index_releases(snapshot: dict) -> dict[tuple[str, str], dict[str, dict]]:
    """(namespace, name) -> {source: release}."""
    index: dict[tuple[str, str], dict[str, dict]] = {}
    for release in snapshot["spec"]["releases"]:
        index.setdefault((release["namespace"], release["name"]), {})[release["source"]] = release
    return index


def pick(found: dict[str, dict]) -> dict | None:
    """The record that says most about a release."""
    return next((found[source] for source in SOURCES if source in found), None)


def rendered(component: dict, release: dict | None) -> Rendered:
    """What the release itself rendered, else what the lock recorded; plus the component's own manifests.

    So a change of values is one finding about values, not another for each image that the values moved.
    """
    own = manifests.from_texts(
        [entry.get("content") or "" for entry in component.get("manifests") or ()],
        component["namespace"],
        f"manifests of component {component['name']}",
    )
    recorded = component.get("rendered") or {}
    if release and release.get("rendered"):
        workloads, crds, known = release.get("workloads") or [], release.get("crds") or [], True
        # Helm's record leaves out the CRDs of subcharts
        names = {item["name"] for item in crds}
        crds = crds + [item for item in recorded.get("crds") or () if item["name"] not in names]
    else:
        workloads, crds = recorded.get("workloads") or [], recorded.get("crds") or []
        known = bool(recorded) or not component.get("chart")
    return Rendered(workloads + own["workloads"], crds + own["crds"], known)


class Wanted(NamedTuple):
    """What the comparison will want to see: CRDs by name, and the namespaces of workloads."""

    crds: set[str]
    namespaces: set[str]


def wanted(lock: dict, releases: list[dict]) -> Wanted:
    """Of a lock, once it is known which releases are there."""
    index = index_releases({"spec": {"releases": releases}})
    made = Wanted(set(), set())
    for component in lock["spec"]["components"]:
        release = pick(index.get((component["namespace"], release_name(component)), {}))
        found = rendered(component, release)
        made.crds.update(item["name"] for item in found.crds)
        made.crds.update(component.get("crds") or ())
        made.namespaces.update(item["namespace"] for item in found.workloads)
    return made
