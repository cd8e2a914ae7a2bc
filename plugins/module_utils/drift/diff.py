# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What changed between two Snapshots. A pure function; every difference is a finding."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ansible_collections.goodput.fleet.plugins.module_utils.drift import images, verdict
from ansible_collections.goodput.fleet.plugins.module_utils.drift.codes import finding
from ansible_collections.goodput.fleet.plugins.module_utils.drift.facts import is_gpu
from ansible_collections.goodput.fleet.plugins.module_utils.drift.ignore import Rules
from ansible_collections.goodput.fleet.plugins.module_utils.drift.values import differences

STATE = ("ready", "unschedulable")


def compare(baseline: dict, snapshot: dict, ignore: Iterable[str] = ()) -> dict:
    """The DriftReport from `baseline` to `snapshot`, both checked documents. A part that either lacks is unknown."""
    rules = Rules(list(ignore))
    outcome = verdict.Outcome()
    before, after = baseline["spec"], snapshot["spec"]
    known = {part for part in after["parts"] if _known(part, before, after, outcome)}
    scopes = [set(spec.get("namespaces") or ()) for spec in (before, after)]
    if scopes[0] != scopes[1]:
        for part in ("releases", "workloads"):
            outcome.unknown(
                part, f"the snapshots cover different namespaces: {_scope(scopes[0])} and {_scope(scopes[1])}"
            )
            known.discard(part)
    if "server" in known:
        _fields("server-changed", "server", "the API server", before["server"], after["server"], outcome)
    if "nodes" in known:
        _nodes(before["nodes"], after["nodes"], outcome)
    # releases of one source come and go with the right to read them
    sources = {
        source for source, part in (("helm", "releases"), ("argocd", "argocd"), ("flux", "flux")) if part in known
    }
    if "releases" in known:
        _releases(
            *([item for item in spec["releases"] if item["source"] in sources] for spec in (before, after)), outcome
        )
    if "workloads" in known:
        _workloads(before["workloads"], after["workloads"], outcome)
    if "crds" in known:
        _crds(before["crds"], after["crds"], outcome)
    return verdict.document(snapshot["metadata"]["name"], outcome, rules)


def _known(part: str, before: dict, after: dict, outcome: verdict.Outcome) -> bool:
    outcome.parts[part] = {"status": "ok"}
    for when, spec in (("the baseline", before), ("the snapshot", after)):
        state = spec["parts"].get(part, {"status": "unknown"})
        if state["status"] != "ok":
            outcome.unknown(part, f"in {when}: {state.get('reason', 'not read')}")
    return outcome.parts[part]["status"] == "ok"


def _scope(namespaces: set[str]) -> str:
    return ", ".join(sorted(namespaces)) or "all"


def _paired(before: list[dict], after: list[dict], key: Callable[[dict], tuple]):
    """(key, old or None, new or None), sorted by key."""
    old, new = {key(item): item for item in before}, {key(item): item for item in after}
    return [(each, old.get(each), new.get(each)) for each in sorted(old.keys() | new.keys())]


def _fields(code: str, path: str, who: str, before: dict, after: dict, outcome: verdict.Outcome, **more) -> None:
    for item in differences(before, after):
        text = f"{who}: {item.path} was {item.expected!r} and is {item.found!r}"
        outcome.add(finding(code, f"{path}/{item.path}", text, expected=item.expected, found=item.found, **more))


def _nodes(before: list[dict], after: list[dict], outcome: verdict.Outcome) -> None:
    """One change that many nodes share is one finding."""
    come, gone = [], []
    certify: set[str] = set()
    shared: dict[tuple, tuple] = {}
    for (name,), old, new in _paired(before, after, lambda node: (node["name"],)):
        if old is None:
            come.append(name)
            certify.update({name} if is_gpu(new) else ())
        elif new is None:
            gone.append(name)
        elif old != new:
            for item in differences(old, new):
                key = (item.path, repr(item.expected), repr(item.found))
                shared.setdefault(key, (item, [], is_gpu(new)))[1].append(name)
    if come:
        made = finding("node-added", "nodes", f"{_people(come)} appeared", nodes=come)
        outcome.add(made)
        outcome.recertify.extend((made, name) for name in come if name in certify)
    if gone:
        outcome.add(finding("node-removed", "nodes", f"{_people(gone)} disappeared", nodes=gone))
    for _key, (item, names, gpu) in sorted(shared.items()):
        fact = item.path.partition(".")[0].partition("[")[0]
        code = "node-state-changed" if fact in STATE else "node-changed"
        text = f"{item.path} of {_people(names)} was {item.expected!r} and is {item.found!r}"
        made = finding(code, f"nodes/{item.path}", text, expected=item.expected, found=item.found, nodes=names)
        outcome.add(made, recertify=gpu and fact in verdict.CERTIFIED_FACTS)


def _people(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{len(names)} nodes"


def _releases(before: list[dict], after: list[dict], outcome: verdict.Outcome) -> None:
    keys = ("namespace", "name", "source")
    for key, old, new in _paired(before, after, lambda item: tuple(item[part] for part in keys)):
        path, who = f"releases/{key[0]}/{key[1]}", f"release {key[0]}/{key[1]}"
        if old is None or new is None:
            there = old or new
            version = f"{there['chart']} {there['version']}".strip()
            if old is None:
                outcome.add(finding("release-added", path, f"{who} appeared: {version}", found=version))
            else:
                outcome.add(finding("release-missing", path, f"{who} is gone, it was {version}", expected=version))
            continue
        fields = ("chart", "version", "status")
        _fields("release-changed", path, who, {f: old[f] for f in fields}, {f: new[f] for f in fields}, outcome)
        visible = old.get("values") is not None and new.get("values") is not None
        for item in differences(old["values"], new["values"]) if visible else ():
            text = f"{who}: the value {item.path} was {item.expected!r} and is {item.found!r}"
            outcome.add(
                finding(
                    f"value-{item.kind}", f"{path}/values/{item.path}", text, expected=item.expected, found=item.found
                )
            )


def _workloads(before: list[dict], after: list[dict], outcome: verdict.Outcome) -> None:
    keys = ("kind", "namespace", "name")
    for key, old, new in _paired(before, after, lambda item: tuple(item[part] for part in keys)):
        path, who = "workloads/" + "/".join(key), f"{key[0]} {key[1]}/{key[2]}"
        if old is None:
            outcome.add(finding("workload-added", path, f"{who} appeared", found=new["images"]))
            continue
        if new is None:
            outcome.add(finding("workload-missing", path, f"{who} is gone", expected=old["images"]))
            continue
        for item in differences(old["images"], new["images"]):
            code = {"differs": "image-differs", "missing": "container-missing", "added": "container-added"}[item.kind]
            if item.kind == "differs" and images.same(item.expected, item.found):
                continue
            outcome.add(
                finding(
                    code,
                    f"{path}/images/{item.path}",
                    f"{who}: image of {item.path} was {item.expected} and is {item.found}",
                    expected=item.expected,
                    found=item.found,
                )
            )


def _crds(before: list[dict], after: list[dict], outcome: verdict.Outcome) -> None:
    for (name,), old, new in _paired(before, after, lambda item: (item["name"],)):
        if old is None:
            outcome.add(finding("crd-added", f"crds/{name}", f"CRD {name} appeared", found=new["digest"]))
        elif new is None:
            outcome.add(finding("crd-missing", f"crds/{name}", f"CRD {name} is gone", expected=old["digest"]))
        elif old["digest"] != new["digest"]:
            outcome.add(
                finding(
                    "crd-differs", f"crds/{name}", f"CRD {name} changed", expected=old["digest"], found=new["digest"]
                )
            )
