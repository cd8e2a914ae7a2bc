# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a change of the lock changes, and whether nodes have to be certified again for it. Pure.

    changes = diff(lock of the main branch, lock of the pull request)

Locks that differ in more than the layer a constraint or check comes from give at least one change; one cause gives
one. Secrets leave as `(redacted)`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase

from ansible_collections.goodput.fleet.plugins.module_utils.drift import images, redact
from ansible_collections.goodput.fleet.plugins.module_utils.drift.values import MISSING, differences, equal, join
from ansible_collections.goodput.fleet.plugins.module_utils.drift.verdict import CERTIFIED_FACTS

# components whose software a certification vouches for: what drives GPUs and NICs, and what gives them to pods
HARDWARE = (
    "*gpu-operator*",
    "*network-operator*",
    "*dra-driver*",
    "*device-plugin*",
    "*gpu-driver*",
    "*efa*",
    "*rdma*",
    "*sriov*",
    "*nccl*",
    "*tcpx*",
    "*mofed*",
    "*doca*",
    "*gdrcopy*",
    "*multus*",
    "*nodewright*",
    "*skyhook*",
)
# what moves no software on a node
_ASIDE = ("tier", "dependsOn", "health", "crds", "valuesDigest", "valuesPath")
_RELEASE = ("namespace", "release")
_SPECIAL = ("name", "chart", "values", "valuesDigest", "manifests", "images", "rendered", "nodeFacts")


def diff(
    old: Mapping | None, new: Mapping, hardware: Iterable[str] = HARDWARE, harmless: Iterable[str] = ()
) -> list[dict]:
    """[{component, path, before, after, change, kind, recertify, why}], components in the order of the new lock.

    old, new: checked RecipeLocks; without `old` everything is added. hardware: names (globs) of components whose
    changes call for a new certification, besides those that fix a fact of nodes. harmless: `COMPONENT/PATH` (globs)
    of changes that call for none, such as `gpu-operator/values.dcgmExporter.*`.
    change: differs, missing (only before) or added (only after). kind: added, removed, version, value, nodeFact,
    manifest, image, rendered, release, order, constraint, check, criteria, catalog, or other. component is "" for
    what belongs to the whole recipe; `why` says why nodes have to be certified again, or is "".
    """
    before, after = (old or {}).get("spec") or {}, new["spec"]
    had, have = _components(before), _components(after)
    hardware, harmless = tuple(hardware), tuple(harmless)
    found: list[dict] = []
    for name in [*have, *sorted(had.keys() - have.keys())]:
        one, other = had.get(name), have.get(name)
        about = _about(name, one, other, hardware)
        rows = list(_component(name, one, other))
        for row in rows:
            spared = any(fnmatchcase(f"{name}/{row['path']}", pattern) for pattern in harmless)
            row["why"] = "" if spared else _why(row, about)
        found += rows
    found += _whole(before, after)
    return [{"why": "", **row, "recertify": bool(row.get("why"))} for row in found]


def _components(spec: Mapping) -> dict[str, dict]:
    named = {component["name"]: component for component in spec.get("components") or ()}
    return {name: named[name] for name in spec.get("order") or ()}


def _about(name: str, old: Mapping | None, new: Mapping | None, hardware: tuple[str, ...]) -> str:
    """Why changes of a component matter to a certification; "" where they do not."""
    facts = {fact for one in (old, new) for fact in (one or {}).get("nodeFacts") or ()} & set(CERTIFIED_FACTS)
    if facts:
        return f"{name} sets the {' and the '.join(sorted(facts))} of GPU nodes"
    if any(fnmatchcase(name, pattern) for pattern in hardware):
        return f"{name} is part of what a certification vouches for"
    return ""


def _why(row: dict, about: str) -> str:
    if row["kind"] == "nodeFact":
        fact = row.pop("fact")
        return f"the {fact} of GPU nodes changes" if fact in CERTIFIED_FACTS else ""
    return "" if row["kind"] == "other" else about


def _row(component: str, kind: str, change: str, path: str, before: object, after: object) -> dict:
    return {
        "component": component,
        "path": path,
        "before": _bare(before),
        "after": _bare(after),
        "change": change,
        "kind": kind,
    }


def _bare(value: object) -> object:
    """Without the digests that redaction puts in a secret's place: nobody can compare them with a list of guesses."""
    if isinstance(value, dict):
        return {key: _bare(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_bare(item) for item in value]
    if value is MISSING:
        return None
    return "(redacted)" if redact.is_redacted(value) else value


def _component(name: str, old: Mapping | None, new: Mapping | None) -> Iterator[dict]:
    if old is None or new is None:
        change, there = ("added", new) if old is None else ("missing", old)
        sides = (None, _version(there)) if old is None else (_version(there), None)
        yield _row(name, "added" if old is None else "removed", change, "", *sides)
        return
    # one place for both sides, so that a secret which stays the same is no difference
    one, other = (redact.redact(dict(side), name) for side in (old, new))
    for item in differences(one.get("chart", MISSING), other.get("chart", MISSING), "chart"):
        yield _row(name, "version", *item)
    for key in _RELEASE:
        for item in differences(one[key], other[key], key):
            yield _row(name, "release", *item)
    facts = list(_facts(name, one, other))
    yield from facts
    told = {row["path"] for row in facts}
    for item in differences(one["values"], other["values"]):
        path = f"values.{item.path}" if item.path[:1] != "[" else f"values{item.path}"
        if path not in told:
            yield _row(name, "value", item.kind, path, item.expected, item.found)
    yield from _manifests(name, old, new)
    moved = list(_images(name, one, other))
    yield from moved
    yield from _rendered(name, one, other, {(str(row["before"]), str(row["after"])) for row in moved})
    rest = sorted((one.keys() | other.keys()) - {*_SPECIAL, *_RELEASE})
    for key in rest:
        for item in differences(one.get(key, MISSING), other.get(key, MISSING), key):
            yield _row(name, "other", *item)


def _version(component: Mapping) -> str:
    chart = component.get("chart")
    if chart:
        return f"{redact.redact(chart['name'], '')} {chart['version']}"
    return f"{len(component.get('manifests') or ())} manifests"


def _facts(name: str, old: Mapping, new: Mapping) -> Iterator[dict]:
    """A fact of nodes and the value that sets it are one change."""
    before, after = old.get("nodeFacts") or {}, new.get("nodeFacts") or {}
    for fact in sorted(before.keys() | after.keys()):
        one, other = before.get(fact, {}), after.get(fact, {})
        values = [side.get("value", MISSING) for side in (one, other)]
        paths = [side.get("valuesPath") for side in (one, other)]
        for item in differences(*values):
            path = f"values.{paths[1] or paths[0]}"
            yield {**_row(name, "nodeFact", item.kind, path, item.expected, item.found), "fact": fact}
        if equal(*values) and paths[0] != paths[1]:
            yield _row(name, "other", "differs", f"nodeFacts.{fact}.valuesPath", *paths)


def _manifests(name: str, old: Mapping, new: Mapping) -> Iterator[dict]:
    """Told by lines, not by their text: a manifest may hold a secret anywhere."""
    before, after = ({item["name"]: item for item in side.get("manifests") or ()} for side in (old, new))
    for each in sorted(before.keys() | after.keys()):
        one, other = before.get(each), after.get(each)
        path = join("manifests", each)
        if one is None or other is None:
            size = f"{len((one or other)['content'].splitlines())} lines"
            change, sides = ("added", (None, size)) if one is None else ("missing", (size, None))
            yield _row(name, "manifest", change, path, *sides)
        elif one["content"] != other["content"]:
            lines = [side["content"].splitlines() for side in (one, other)]
            marks = [line[0] for line in difflib.unified_diff(*lines, n=0, lineterm="")][2:]
            sides = f"{marks.count('-')} lines less", f"{marks.count('+')} lines more"
            yield _row(name, "manifest", "differs", path, *sides)
        if one and other and one["phase"] != other["phase"]:
            yield _row(name, "manifest", "differs", f"{path}.phase", one["phase"], other["phase"])
    orders = [[each for each in side if each in before and each in after] for side in (before, after)]
    if orders[0] != orders[1]:
        yield _row(name, "manifest", "differs", "manifests", *(", ".join(order) for order in orders))


def _images(name: str, old: Mapping, new: Mapping) -> Iterator[dict]:
    """By repository, so that a new tag is one change."""
    sides = []
    for component in (old, new):
        tags: dict[str, list[str]] = {}
        for reference in component.get("images") or ():
            tags.setdefault(images.parse(reference).name, []).append(reference)
        sides.append({key: ", ".join(sorted(each)) for key, each in tags.items()})
    for key in sorted(sides[0].keys() | sides[1].keys()):
        for item in differences(sides[0].get(key, MISSING), sides[1].get(key, MISSING), "images"):
            yield _row(name, "image", *item)


def _rendered(name: str, old: Mapping, new: Mapping, told: set[tuple[str, str]]) -> Iterator[dict]:
    """What the chart makes of it. An image that `images` tells already is not told for each workload again."""
    for item in differences(*(_even(side.get("rendered")) for side in (old, new)), "rendered"):
        if (str(item.expected), str(item.found)) not in told:
            yield _row(name, "rendered", item.kind, item.path, item.expected, item.found)


def _even(rendered: Mapping | None) -> dict:
    if not rendered:
        return {}
    return {
        "workloads": {
            f"{one['kind']} {one['namespace']}/{one['name']}": one["images"] for one in rendered["workloads"]
        },
        "crds": {one["name"]: one["digest"] for one in rendered["crds"]},
    }


def _whole(before: Mapping, after: Mapping) -> Iterator[dict]:
    """What belongs to no component."""
    for kind, key in (("constraint", "constraints"), ("check", "checks")):
        sides = [
            {one["name"]: {k: v for k, v in one.items() if k not in ("name", "from")} for one in spec.get(key) or ()}
            for spec in (before, after)
        ]
        for item in differences(*sides, key):
            yield _row("", kind, *item)
    orders = [list(spec.get("order") or ()) for spec in (before, after)]
    common = set(orders[0]) & set(orders[1])
    kept = [", ".join(name for name in order if name in common) for order in orders]
    if kept[0] != kept[1]:
        yield _row("", "order", "differs", "order", *kept)
    if not before:
        return
    for item in differences(before.get("criteria"), after.get("criteria"), "criteria"):
        yield _row("", "criteria", *item)
    for key in ("catalog", "overlays"):
        sides = [spec.get(key) for spec in (before, after)]
        if not equal(*sides):
            yield _row("", "catalog", "differs", key, *(_catalog(side) for side in sides))


def _catalog(value: object) -> str:
    if isinstance(value, Mapping):
        return f"{value['version']} ({value['digest'][:19]})"
    return ", ".join(item["name"] for item in value or ())
