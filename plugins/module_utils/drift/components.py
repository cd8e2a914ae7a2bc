# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One component of the lock against the snapshot: release, values, images, CRDs."""

from __future__ import annotations

from ansible_collections.goodput.fleet.plugins.module_utils.drift import expected as expectations
from ansible_collections.goodput.fleet.plugins.module_utils.drift import images
from ansible_collections.goodput.fleet.plugins.module_utils.drift.codes import finding
from ansible_collections.goodput.fleet.plugins.module_utils.drift.redact import redact
from ansible_collections.goodput.fleet.plugins.module_utils.drift.values import differences
from ansible_collections.goodput.fleet.plugins.module_utils.drift.verdict import Outcome

STATUS_CODES = {
    "failed": "release-failed",
    "out-of-sync": "release-out-of-sync",
    "suspended": "release-suspended",
    "uninstalling": "release-pending",
    "pending": "release-pending",
    "pending-install": "release-pending",
    "pending-upgrade": "release-pending",
    "pending-rollback": "release-pending",
}

TELLERS = {"helm": "Helm", "argocd": "Argo CD", "flux": "Flux"}


class Cluster:
    """A snapshot, indexed for look-ups."""

    def __init__(self, snapshot: dict):
        spec = snapshot["spec"]
        self.parts = spec["parts"]
        self.namespaces = set(spec.get("namespaces") or ())
        self.workload_namespaces = self.namespaces.union(spec.get("workloadNamespaces") or ())
        self.releases = expectations.index_releases(snapshot)
        self.workloads = {(item["kind"], item["namespace"], item["name"]): item for item in spec["workloads"]}
        self.crds = {item["name"]: item for item in spec["crds"]}

    def known(self, part: str) -> bool:
        return self.parts[part]["status"] == "ok"


def compare(lock: dict, cluster: Cluster, outcome: Outcome) -> None:
    """Adds the findings of every component."""
    crds: dict[str, dict[str, dict | None]] = {}
    for component in lock["spec"]["components"]:
        if cluster.namespaces and component["namespace"] not in cluster.namespaces:
            outcome.unknown(_part(component), f"namespace {component['namespace']} was not read")
            continue
        release = _release(component, cluster, outcome) if component.get("chart") else None
        want = expectations.rendered(component, release)
        _workloads(component, want, release, cluster, outcome)
        for name in component.get("crds") or ():
            crds.setdefault(name, {}).setdefault(component["name"], None)
        for item in want.crds:
            crds.setdefault(item["name"], {})[component["name"]] = item
    _crds(crds, cluster, outcome)


def _part(component: dict) -> str:
    return f"components/{component['name']}"


def _release(component: dict, cluster: Cluster, outcome: Outcome) -> dict | None:
    name, namespace = expectations.release_name(component), component["namespace"]
    found = cluster.releases.get((namespace, name), {})
    release = expectations.pick(found)
    path = f"releases/{namespace}/{name}"
    if release is None:
        _absent(component, path, cluster, outcome)
        return None
    for record in found.values():
        _status(component, path, record, outcome)
    chart, who = component["chart"], component["name"]
    if not release["chart"]:
        source = {"argocd": "Argo CD", "flux": "Flux"}.get(release["source"], release["source"])
        outcome.unknown(
            _part(component), f"{source} installs it from a path in Git, so the chart's version is not visible"
        )
    else:
        want, have = chart["name"].rpartition("/")[2], release["chart"].rpartition("/")[2]
        if want != have:
            outcome.add(
                finding(
                    "chart-name",
                    f"{path}/chart",
                    f"{who}: chart {have} is installed where the recipe has {want}",
                    component=who,
                    expected=want,
                    found=have,
                )
            )
        elif chart["version"].lstrip("v") != release["version"].lstrip("v"):
            outcome.add(
                finding(
                    "chart-version",
                    f"{path}/version",
                    f"{who}: chart version {release['version']} is installed where the recipe has {chart['version']}",
                    component=who,
                    expected=chart["version"],
                    found=release["version"],
                )
            )
    _values(component, path, release, outcome)
    return release


def _absent(component: dict, path: str, cluster: Cluster, outcome: Outcome) -> None:
    blind = [part for part in expectations.PART_OF.values() if not cluster.known(part)]
    who = component["name"]
    if blind:
        for part in blind:
            outcome.unknown(part, cluster.parts[part].get("reason", "not read"))
        reasons = "; ".join(cluster.parts[part].get("reason", part) for part in blind)
        outcome.unknown(_part(component), f"no release is visible, and not everything could be read: {reasons}")
        return
    version = f"{component['chart']['name']} {component['chart']['version']}"
    outcome.add(
        finding(
            "release-missing",
            path,
            f"{who}: no release {path.partition('/')[2]} is installed",
            component=who,
            expected=version,
        )
    )


def _status(component: dict, path: str, release: dict, outcome: Outcome) -> None:
    status, who = release["status"], component["name"]
    if status == "deployed":
        return
    code = STATUS_CODES.get(status)
    teller = TELLERS[release["source"]]
    if code is None:
        outcome.unknown(_part(component), f"{teller} says {status!r} of the release")
        return
    outcome.add(
        finding(
            code,
            f"{path}/status",
            f"{who}: {teller} says the release is {status}",
            component=who,
            expected="deployed",
            found=status,
        )
    )


def _values(component: dict, path: str, release: dict, outcome: Outcome) -> None:
    who = component["name"]
    if release.get("values") is None:
        outcome.unknown(_part(component), "the release's values lie where only the deployer reads them")
        return
    want = redact(component.get("values") or {}, f"{release['namespace']}/{release['name']}")
    words = {
        "differs": "is {found} where the recipe has {expected}",
        "missing": "is not set, the recipe has {expected}",
        "added": "is set to {found}, the recipe does not have it",
    }
    for item in differences(want, release["values"]):
        text = words[item.kind].format(expected=_short(item.expected), found=_short(item.found))
        outcome.add(
            finding(
                f"value-{item.kind}",
                f"{path}/values/{item.path}",
                f"{who}: the value {item.path} {text}",
                component=who,
                expected=item.expected,
                found=item.found,
            )
        )


def _short(value) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _workloads(
    component: dict, want: expectations.Rendered, release: dict | None, cluster: Cluster, outcome: Outcome
) -> None:
    who = component["name"]
    # Argo CD compares what runs with what it rendered itself; nobody does that where Flux's release is all we see
    if not want.known and release is not None and release["source"] != "argocd":
        outcome.unknown(_part(component), "what its release rendered is not visible: Helm's records cannot be read")
    for item in want.workloads:
        path = f"workloads/{item['kind']}/{item['namespace']}/{item['name']}"
        live = cluster.workloads.get((item["kind"], item["namespace"], item["name"]))
        if live is None:
            if cluster.namespaces and item["namespace"] not in cluster.workload_namespaces:
                outcome.unknown(_part(component), f"namespace {item['namespace']} was not read")
            elif cluster.known("workloads"):
                outcome.add(
                    finding(
                        "workload-missing",
                        path,
                        f"{who}: {_called(item)} is not there",
                        component=who,
                        expected=item["images"],
                    )
                )
            continue
        _images(who, path, item, live, outcome)
    if want.workloads and not cluster.known("workloads"):
        outcome.unknown("workloads", cluster.parts["workloads"].get("reason", "not read"))


def _called(item: dict) -> str:
    return f"{item['kind']} {item['namespace']}/{item['name']}"


def _images(who: str, path: str, item: dict, live: dict, outcome: Outcome) -> None:
    want, have = item["images"], live["images"]
    for container, image in want.items():
        place = f"{path}/images/{container}"
        if container not in have:
            outcome.add(
                finding(
                    "container-missing",
                    place,
                    f"{who}: {_called(item)} has no container {container}",
                    component=who,
                    expected=image,
                )
            )
            continue
        verdict = images.same(image, have[container])
        if verdict is False:
            outcome.add(
                finding(
                    "image-differs",
                    place,
                    f"{who}: container {container} of {_called(item)} runs {have[container]} where {image} belongs",
                    component=who,
                    expected=image,
                    found=have[container],
                )
            )
        elif verdict is None:
            outcome.add(
                finding(
                    "image-unverifiable",
                    place,
                    f"{who}: container {container} of {_called(item)} runs {have[container]}; is that {image}?",
                    component=who,
                    expected=image,
                    found=have[container],
                )
            )
    for container in have.keys() - want.keys():
        outcome.add(
            finding(
                "container-added",
                f"{path}/images/{container}",
                f"{who}: {_called(item)} has a container {container} that its release did not render",
                component=who,
                found=have[container],
            )
        )


def _crds(wanted: dict[str, dict[str, dict | None]], cluster: Cluster, outcome: Outcome) -> None:
    """`wanted`: CRD name -> {component: compact CRD, or None where only its presence is known}."""
    if wanted and not cluster.known("crds"):
        outcome.unknown("crds", cluster.parts["crds"].get("reason", "not read"))
    for name, owners in sorted(wanted.items()):
        live, who = cluster.crds.get(name), sorted(owners)[0]
        path = f"crds/{name}"
        if live is None:
            if cluster.known("crds"):
                outcome.add(
                    finding(
                        "crd-missing",
                        path,
                        f"{who}: the CRD {name} is not there",
                        component=who,
                        expected=next((item["digest"] for item in owners.values() if item), None),
                    )
                )
            continue
        known = {owner: item for owner, item in owners.items() if item}
        # two charts may bring one CRD in different releases: either is right
        if known and all(item["digest"] != live["digest"] for item in known.values()):
            who = sorted(known)[0]
            outcome.add(
                finding(
                    "crd-differs",
                    path,
                    f"{who}: the CRD {name} is not its chart's: {_how(known[who], live)}",
                    component=who,
                    expected=known[who]["digest"],
                    found=live["digest"],
                )
            )


def _how(want: dict, live: dict) -> str:
    mine, theirs = want.get("versions") or {}, live.get("versions") or {}
    if not mine or not theirs:
        return "its definition differs"
    notes = [f"version {name} is missing" for name in sorted(mine.keys() - theirs.keys())]
    notes += [f"version {name} was added" for name in sorted(theirs.keys() - mine.keys())]
    notes += [f"version {name} differs" for name in sorted(mine.keys() & theirs.keys()) if mine[name] != theirs[name]]
    return ", ".join(notes) or "names, scope or conversion differ"
