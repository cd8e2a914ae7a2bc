# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A lock as the list of Helm releases that a deployer installs, in order.

A component with a chart is one release. Its manifests become local charts of their own, one before the chart
and one after it, because a manifest that no release owns is never upgraded or pruned. A component that has only
manifests is such a local chart itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from ansible_collections.goodput.fleet.plugins.module_utils.bundles import localchart
from ansible_collections.goodput.fleet.plugins.module_utils.records import yamltree
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, Problem

PRE, MAIN, POST = 0, 1, 2
MAX_RELEASE = 53  # Helm's limit


@dataclass(frozen=True)
class Unit:
    """One Helm release. Its main one has the component's name; `needs` names units that are ready before."""

    name: str
    component: str
    release: str
    namespace: str
    tier: int
    phase: int
    needs: tuple[str, ...]
    chart: dict | None  # name, repository (without a slash at its end), version; None for a local chart
    values: dict
    values_text: str  # the values as YAML; empty where there are none
    files: dict[str, str]  # the local chart's files
    brings_crds: bool
    last: bool  # the component is complete after it

    @property
    def wave(self) -> int:
        """Later than every unit it needs, also over components."""
        return self.tier * 10 + self.phase

    @property
    def oci(self) -> bool:
        return bool(self.chart) and self.chart["repository"].startswith("oci://")

    @property
    def folder(self) -> str:
        """The unit's name where its files tell a chart of manifests from values."""
        return self.name if self.chart or self.phase != MAIN else f"{self.name}-manifests"


def plan(lock: dict) -> list[Unit]:
    """The units of a lock that `load_lock` returned, each after all it needs. Raises InvalidDocument."""
    components = {component["name"]: component for component in lock["spec"]["components"]}
    units: list[Unit] = []
    ends: dict[str, str] = {}  # component -> its last unit
    for name in lock["spec"]["order"]:
        before = tuple(ends[needed] for needed in components[name]["dependsOn"])
        for unit in _units(components[name], before):
            units.append(unit)
            ends[name] = unit.name
    _check(units)
    return units


def _units(component: dict, before: tuple[str, ...]) -> list[Unit]:
    name, chart = component["name"], component.get("chart")
    if chart:
        chart = {**chart, "repository": chart["repository"].rstrip("/")}
    pre, post = localchart.split(component.get("manifests") or (), has_chart=bool(chart))
    parts = [(PRE, "pre", None, pre)] if pre else []
    parts.append((MAIN, "", chart, {} if chart else post))
    if chart and post:
        parts.append((POST, "manifests", None, post))
    elif not chart and not post:  # everything comes before: then that is the main part
        parts = [(MAIN, "", None, pre)]
    rendered = (component.get("rendered") or {}).get("crds")
    units = []
    for phase, suffix, own_chart, files in parts:
        unit_name = f"{name}-{suffix}" if suffix else name
        release = f"{component['release']}-{suffix}" if suffix else component["release"]
        values = component["values"] if own_chart else {}
        units.append(
            Unit(
                name=unit_name,
                component=name,
                release=release,
                namespace=component["namespace"],
                tier=component["tier"],
                phase=phase,
                needs=(units[-1].name,) if units else before,
                chart=own_chart,
                values=values,
                values_text=yamltree.dump(values) if values else "",
                files=files if own_chart else localchart.chart(unit_name, files),
                brings_crds=localchart.has_crds(files) or bool(own_chart and (component.get("crds") or rendered)),
                last=suffix == parts[-1][1],
            )
        )
    return units


def _check(units: list[Unit]) -> None:
    problems, names, releases = [], {}, {}
    for unit in units:
        if names.setdefault(unit.name, unit.component) != unit.component:
            problems.append(
                Problem(
                    "name-clash",
                    f"the name {unit.name} is needed by {unit.component} and for manifests of {names[unit.name]}",
                    path="spec.components",
                    hint="rename the component",
                )
            )
        key = f"{unit.namespace}/{unit.release}"
        if releases.setdefault(key, unit.name) != unit.name:
            problems.append(
                Problem(
                    "name-clash",
                    f"{releases[key]} and {unit.name} are both the Helm release {key}",
                    path="spec.components",
                    hint="set another release name for one of them",
                )
            )
        if len(unit.release) > MAX_RELEASE:
            problems.append(
                Problem(
                    "name-too-long",
                    f"the Helm release {unit.release} of {unit.component} is longer than {MAX_RELEASE} characters",
                    path="spec.components",
                    hint="set a shorter release name",
                )
            )
    if problems:
        raise InvalidDocument(problems)
