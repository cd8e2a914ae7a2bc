"""Whatever the graph: each deployer gets exactly its edges, and nothing before what it needs."""

from __future__ import annotations

import itertools

import yaml
from ansible_collections.goodput.fleet.plugins.module_utils.bundles import units
from ansible_collections.goodput.fleet.plugins.module_utils.bundles.argocd import _WAVE
from ansible_collections.goodput.fleet.plugins.module_utils.records import lockfile, yamltree
from hypothesis import given, settings

from tests.unit.bundles import locks, outputs


def ends(lock: dict) -> tuple[dict[str, str], dict[str, str]]:
    """(first, last): the names of a component's first and last release, derived from its manifests alone."""
    first, last = {}, {}
    for one in lock["spec"]["components"]:
        name, manifests = one["name"], one.get("manifests") or []
        pre = any(m["phase"] == "pre" for m in manifests)
        if one.get("chart"):
            crds = any("CustomResourceDefinition" in m["content"] for m in manifests)
            post = any(m["phase"] == "post" and m["content"] != locks.CRD for m in manifests)
            first[name] = f"{name}-pre" if pre or crds else name
            last[name] = f"{name}-manifests" if post else name
        else:
            post = any(m["phase"] == "post" and m["content"] != locks.CRD for m in manifests)
            first[name] = f"{name}-pre" if pre and post else name
            last[name] = name
    return first, last


def graph(lock: dict) -> set[tuple[str, str]]:
    """(after, before) of the lock's edges, between the releases that they must connect."""
    first, last = ends(lock)
    return {(first[one["name"]], last[needed]) for one in lock["spec"]["components"] for needed in one["dependsOn"]}


def inner(lock: dict, names: set[str]) -> set[tuple[str, str]]:
    """The chain before -> chart -> after inside each component."""
    chains = [[f"{one['name']}-pre", one["name"], f"{one['name']}-manifests"] for one in lock["spec"]["components"]]
    there = [[name for name in chain if name in names] for chain in chains]
    return {(after, before) for chain in there for before, after in itertools.pairwise(chain)}


@settings(deadline=None, max_examples=40)
@given(locks.any_lock())
def test_flux_depends_on_exactly_the_edges(lock):
    releases = outputs.folder(outputs.bundle(lock, "flux"), "releases")
    edges = {(name, one["name"]) for name, found in releases.items() for one in found["spec"].get("dependsOn", [])}
    assert edges == graph(lock) | inner(lock, set(releases))


@settings(deadline=None, max_examples=40)
@given(locks.any_lock())
def test_helmfile_needs_exactly_the_edges(lock):
    found = outputs.read(outputs.bundle(lock, "helmfile"), "helmfile.yaml")["releases"]
    names = {f"{one['namespace']}/{one['name']}": one["name"] for one in found}
    assert len(names) == len(found), "helmfile refuses two releases of one name in one namespace"
    edges = {(one["name"], names[key]) for one in found for key in one.get("needs", [])}
    assert edges == graph(lock) | inner(lock, set(names.values()))


@settings(deadline=None, max_examples=40)
@given(locks.any_lock())
def test_waves_of_argo_cd_respect_every_edge(lock):
    apps = outputs.folder(outputs.bundle(lock, "argocd"), "apps")
    waves = {name: int(app["metadata"]["annotations"][_WAVE]) for name, app in apps.items()}
    for after, before in graph(lock) | inner(lock, set(apps)):
        assert waves[before] < waves[after], (before, after)


@settings(deadline=None, max_examples=40)
@given(locks.any_lock())
def test_the_plan_of_helm_is_topological_and_gates_each_component_once(lock):
    steps = outputs.steps(outputs.bundle(lock, "helm"))
    place = {step["release"]: number for number, step in enumerate(steps)}
    for after, before in graph(lock) | inner(lock, set(place)):
        assert place[before] < place[after], (before, after)
    _first, last = ends(lock)
    gates = {step["gate"]["component"]: step["release"] for step in steps if step["gate"]}
    assert gates == last
    assert len([step for step in steps if step["gate"]]) == len(gates)


@settings(deadline=None, max_examples=40)
@given(locks.any_lock())
def test_no_manifest_is_lost_and_crds_come_first(lock):
    planned = units.plan(lock)
    everything = "".join(text for unit in planned for text in unit.files.values())
    for one in lock["spec"]["components"]:
        for manifest in one.get("manifests") or []:
            kinds = {line for line in manifest["content"].splitlines() if line.startswith("kind:")}
            assert all(kind in everything for kind in kinds)
    for unit in planned:
        for path, text in unit.files.items():
            assert ("kind: CustomResourceDefinition" in text) == path.startswith("crds/"), path
    for one in lock["spec"]["components"]:
        own = [unit for unit in planned if unit.component == one["name"]]
        crds = [number for number, unit in enumerate(own) if any(path.startswith("crds/") for path in unit.files)]
        widgets = [number for number, unit in enumerate(own) if "kind: Widget" in "".join(unit.files.values())]
        charts = [number for number, unit in enumerate(own) if unit.chart]
        assert not widgets or min(crds) <= min(widgets)
        assert not crds or not charts or max(crds) < min(charts)


@settings(deadline=None, max_examples=40)
@given(locks.any_lock())
def test_rendering_twice_gives_the_same_bytes(lock):
    for deployer in outputs.DEPLOYERS:
        files = outputs.bundle(lock, deployer)
        assert list(files.items()) == list(outputs.bundle(lock, deployer).items())


@settings(deadline=None, max_examples=40)
@given(locks.any_lock())
def test_the_lock_inside_is_valid_and_is_what_was_given_unless_mirrored(lock):
    files = outputs.bundle(lock, "helm")
    assert files["recipe.lock.yaml"].decode() == yamltree.dump(lock)
    files = outputs.bundle(lock, "helm", mirror_charts="https://mirror.internal", mirror_images="mirror.internal/x")
    mirrored = lockfile.load_lock(yaml.safe_load(files["recipe.lock.yaml"]))
    assert mirrored["spec"]["order"] == lock["spec"]["order"]
    assert {step["repository"] for step in outputs.steps(files)} <= {None, "https://mirror.internal"}
