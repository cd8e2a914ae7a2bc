# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What holding or releasing a gate changes on a node. Pure: raw Node in, one merge patch out.

The patch carries the annotation, the taints and spec.unschedulable together, with the resourceVersion that the
decision was made on, so that a crash leaves nothing half done and a concurrent change is never overwritten.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ansible_collections.goodput.fleet.plugins.module_utils.gates import external as others
from ansible_collections.goodput.fleet.plugins.module_utils.gates import gate as gates_
from ansible_collections.goodput.fleet.plugins.module_utils.gates.facts import boot_id, missing


@dataclass
class Change:
    """`status`: held, released, unchanged or refused. `patch` is None when nothing is to be written. `before` and
    `after` are what of the node is ours to write: {annotations (gates only), taints, unschedulable}."""

    status: str
    reason: str = ""
    patch: dict | None = None
    before: dict = field(default_factory=dict)
    after: dict = field(default_factory=dict)


def state(node: Mapping, pool_taints: Iterable[str] = ()) -> dict:
    """{open, gates, external}. A gate is as gate.py describes it, and `missing` lists what of it somebody took off
    the node ("taint", "cordon"). `open`: no gate, and nobody else holds the node."""
    gates = _read(node)
    entries = others.external(node, gates, pool_taints)
    shown = []
    for each in gates:
        public = {key: value for key, value in each.items() if key not in ("raw", "problem")}
        public["missing"] = missing(node, each)
        if each["problem"]:
            public["problem"] = each["problem"]
        shown.append(public)
    return {"open": not gates and not any(each["holds"] for each in entries), "gates": shown, "external": entries}


def hold(node: Mapping, gate: Mapping, reclose: bool = False) -> Change:
    """Close the node in the name of gate["owner"], or bring that owner's gate up to date. gate["uid"] may say which
    node of that name is meant.

    What `gate` leaves out ("" or None) stays as it was; `since` is the first hold's. A taint of ours that somebody
    took off is put back. A cordon of ours that somebody lifted stays lifted unless `reclose`.
    """
    owner, boot = gate["owner"], boot_id(node)
    if gate.get("uid") and gate["uid"] != (node.get("metadata") or {}).get("uid"):
        return _refused(node, "another node has this name now")
    if gate.get("bootId") and boot and gate["bootId"] != boot:
        return _refused(node, f"the node has booted since: boot {gate['bootId']} is over, it runs {boot}")
    gates = _read(node)
    old = next((each for each in gates if each["owner"] == owner), None)
    wanted = _wanted(node, gate, old, gates)
    notes = []
    if old and not old["readable"]:
        notes.append(f"{old['problem']}; written anew")
    cordon = others.is_cordoned(node)
    if wanted["cordon"] and not cordon:
        if old and old["cordonOurs"] and not reclose:
            notes.append("somebody lifted the cordon, which is respected (reclose puts it back)")
        else:
            cordon = wanted["cordonOurs"] = True
    rest = [_sharing(each, wanted) for each in gates if each["owner"] != owner]
    if cordon and not wanted["cordon"] and old and old["cordon"]:
        cordon = not _may_uncordon(node, gates, rest, notes)
    taints = _next_taints(_taints(node), gates, [*rest, wanted], repair=wanted)
    if not any(gates_.triple(each) == gates_.triple(wanted["taint"]) for each in taints):
        notes.append(f"taint {gates_.taint_text(wanted['taint'])} is not set: {_blocker(taints, wanted)} is there")
    sharing = [each for each in rest if each not in gates]
    written = {gates_.annotation(each["owner"]): gates_.dump(each) for each in [*sharing, wanted]}
    change = _change(node, written, taints, cordon)
    if change.patch is not None:
        change.status = "held"
        if old and old["readable"] and not notes and "taint" in missing(node, old):
            notes.append("somebody took the taint off; it is back")
    change.reason = "; ".join(notes)
    return change


def release(node: Mapping, owner: str, expect: Mapping | None = None) -> Change:
    """Take that owner's gate off. `expect`: uid (the node's), bootId, labels and nodeInfo ({name: value}, what the node
    tells now; an absent label is ""), evidence (the gate's), rule and
    ruleDigest (only a gate that this rule, or version of it, set), force (also a gate that cannot be read, and what
    is left of one whose annotation is gone), annotations ({key: text}, written with it and only then)."""
    expect = expect or {}
    gates = _read(node)
    old = next((each for each in gates if each["owner"] == owner), None)
    if old is None:
        return _release_leftovers(node, owner, gates) if expect.get("force") else _unchanged(node, "no such gate")
    if not old["readable"]:
        if not expect.get("force"):
            return _refused(node, f"{old['problem']}; look at it, then release with force")
    elif any(expect.get(each) and expect[each] != old[each] for each in ("rule", "ruleDigest")):
        by = " ".join(each for each in (old["rule"], old["ruleDigest"]) if each)
        return _unchanged(node, f"another rule set this gate ({by})" if by else "no rule set this gate")
    stale = _stale(node, old, expect)
    if stale:
        return _refused(node, stale)
    rest = [each for each in gates if each["owner"] != owner]
    notes: list[str] = []
    cordon = others.is_cordoned(node)
    if cordon and (old["cordon"] or not old["readable"]):
        cordon = not _may_uncordon(node, gates, rest, notes)
    taints = _next_taints(_taints(node), gates, rest)
    if not old["readable"]:
        taints = [each for each in taints if not _left_over(each, owner, rest)]
    change = _change(node, {**(expect.get("annotations") or {}), gates_.annotation(owner): None}, taints, cordon)
    change.status, change.reason = "released", "; ".join(notes)
    return change


def _read(node: Mapping) -> list[dict]:
    return gates_.read((node.get("metadata") or {}).get("annotations"))


def _taints(node: Mapping) -> list[dict]:
    return list((node.get("spec") or {}).get("taints") or ())


def _wanted(node: Mapping, gate: Mapping, old: dict | None, gates: list[dict]) -> dict:
    """The gate to be, out of what is asked for and what is there."""
    had = old if old and old["readable"] else None
    wanted: dict = {"owner": gate["owner"], "readable": True}
    for name in gates_.TEXTS:
        wanted[name] = gate.get(name) or (had[name] if had else "")
    same = had is not None and wanted["evidence"] == had["evidence"]
    for name in gates_.ABOUT:  # of one piece of evidence: never one's fault with another's action
        wanted[name] = gate.get(name) or (had[name] if had and same else "")
    if gate.get("rule") or gate.get("ruleDigest"):  # the two are one: never one rule with another's digest
        wanted["rule"], wanted["ruleDigest"] = gate.get("rule") or "", gate.get("ruleDigest") or ""
    wanted["reason"] = gates_.clean_reason(wanted["reason"])
    wanted["since"] = (had["since"] if had else "") or wanted["since"]
    wanted["bootId"] = gate.get("bootId") or boot_id(node) or wanted["bootId"]
    taint = gate.get("taint") or (had and had["taint"]) or gates_.default_taint(gate["owner"], wanted["reason"])
    wanted["taint"] = {part: taint.get(part) or "" for part in ("key", "value", "effect")}
    wanted["taintOurs"] = _taint_is_ours(node, wanted, had, gates)
    # sole manager: a cordon of ours whose gate is gone, or cannot be read, is taken over, so that a release can lift it
    adopts = others.is_cordoned(node) and set(others.cordon_managers(node)) == {gates_.MANAGER}
    asked = gate.get("cordon")
    if asked is None:
        asked = had["cordon"] if had else bool(old) and adopts
    wanted["cordon"] = asked
    ours = adopts or others.cordon_is_ours(node, gates)
    wanted["cordonOurs"] = wanted["cordon"] and (bool(had and had["cordonOurs"]) or ours)
    return wanted


def _taint_is_ours(node: Mapping, wanted: Mapping, had: Mapping | None, gates: list[dict]) -> bool:
    """A taint that is there already is somebody else's, unless a gate says that it is ours or its name does."""
    want = gates_.triple(wanted["taint"])
    if any(each["taintOurs"] and gates_.triple(each["taint"]) == want for each in gates):
        return True
    there = {gates_.identity(each): gates_.triple(each) for each in _taints(node)}
    found = there.get(gates_.identity(wanted["taint"]))
    if found is None:  # a foreign one that has gone since makes room for ours
        return True
    if wanted["taint"]["key"] == gates_.annotation(wanted["owner"]):
        return True
    ours = {gates_.triple(each["taint"]) for each in gates if each["taintOurs"]}
    return found != want and found in ours


def _sharing(gate: dict, wanted: Mapping) -> dict:
    """Another gate, for which what is ours by now was somebody else's when it came."""
    same = gate["readable"] and gates_.triple(gate["taint"]) == gates_.triple(wanted["taint"])
    return {
        **gate,
        "taintOurs": gate["taintOurs"] or (same and wanted["taintOurs"]),
        "cordonOurs": gate["cordonOurs"] or (gate["cordon"] and wanted["cordonOurs"]),
    }


def _next_taints(
    taints: list[dict], before: list[dict], after: list[dict], repair: Mapping | None = None
) -> list[dict]:
    """The list that the node shall have. Foreign taints stay as they are, byte for byte and in place. One of ours
    goes with the last gate that wants it, or gives way to another gate's of the same key and effect. Only the gate
    that is being held (`repair`) puts back what somebody took off."""
    ours = {gates_.triple(each["taint"]) for each in before if each["taintOurs"]}
    if repair and repair["taintOurs"] and repair["taint"]["key"] == gates_.annotation(repair["owner"]):
        ours |= {gates_.triple(each) for each in taints if each.get("key") == repair["taint"]["key"]}
    wants: dict[tuple, list[dict]] = {}
    for each in sorted(after, key=lambda one: one.get("since") or ""):
        if each["taintOurs"]:
            wants.setdefault(gates_.identity(each["taint"]), []).append(each["taint"])
    mentioned = "\n".join(each["raw"] for each in after if not each["readable"])
    result, there = [], set()
    for taint in taints:
        here, wanted = gates_.triple(taint), wants.get(gates_.identity(taint), [])
        if here not in ours or here in map(gates_.triple, wanted):
            result.append(taint)
        elif wanted:
            result.append(_plain(wanted[0]))
        elif taint["key"] in mentioned:  # a gate that cannot be read may want it
            result.append(taint)
        else:
            continue
        there.add(gates_.identity(taint))
    if repair and repair["taintOurs"] and gates_.identity(repair["taint"]) not in there:
        result.append(_plain(repair["taint"]))
    return result


def _plain(taint: Mapping) -> dict:
    """As Kubernetes stores it, without an empty value."""
    return {part: taint[part] for part in ("key", "value", "effect") if taint.get(part)}


def _left_over(taint: Mapping, owner: str, rest: list[dict]) -> bool:
    wanted = {gates_.triple(each["taint"]) for each in rest if each["readable"]}
    return taint.get("key") == gates_.annotation(owner) and gates_.triple(taint) not in wanted


def _blocker(taints: list[dict], wanted: Mapping) -> str:
    same = [each for each in taints if gates_.identity(each) == gates_.identity(wanted["taint"])]
    return gates_.taint_text(same[0]) if same else "another"


def _may_uncordon(node: Mapping, gates: list[dict], rest: list[dict], notes: list[str]) -> bool:
    if not others.cordon_is_ours(node, gates):
        notes.append("the cordon is somebody else's and stays")
        return False
    wanting = [each["owner"] for each in rest if each["cordon"] or not each["readable"]]
    if wanting:
        notes.append(f"the cordon stays for {', '.join(wanting)}")
        return False
    claims = others.claims_cordon(node, gates)
    if claims:
        notes.append(f"the cordon stays, for another tool counts on it ({', '.join(claims)})")
        return False
    return True


def _stale(node: Mapping, gate: Mapping, expect: Mapping) -> str:
    boot, metadata = boot_id(node), node.get("metadata") or {}
    if expect.get("uid") and expect["uid"] != metadata.get("uid"):
        return "stale: another node has this name now"
    info = (node.get("status") or {}).get("nodeInfo") or {}
    for kind, has in (("labels", metadata.get("labels") or {}), ("nodeInfo", info)):
        for name, value in (expect.get(kind) or {}).items():
            if (has.get(name) or "") != value:
                return f"stale: {name} of the node is {has.get(name) or 'not told'} now, not {value or 'absent'}"
    if expect.get("bootId") and expect["bootId"] != boot:
        if not boot:
            return f"the node tells no boot id, so it cannot be known to still run {expect['bootId']}"
        return f"stale: the node has booted since, it runs boot {boot}, not {expect['bootId']}"
    if gate["readable"] and expect.get("evidence") and expect["evidence"] != gate["evidence"]:
        has = f"on {gate['evidence']}" if gate["evidence"] else "without evidence"
        return f"stale: the gate is held {has}, not on {expect['evidence']}"
    return ""


def _release_leftovers(node: Mapping, owner: str, gates: list[dict]) -> Change:
    """For a gate whose annotation somebody removed: its taint by name, and a cordon that only we have set."""
    taints = [each for each in _taints(node) if not _left_over(each, owner, gates)]
    cordon, notes = others.is_cordoned(node), []
    if cordon and not gates and set(others.cordon_managers(node)) == {gates_.MANAGER}:
        claims = others.claims_cordon(node, gates)
        cordon = bool(claims)
    change = _change(node, {}, taints, cordon)
    if change.patch is None:
        return _unchanged(node, "no such gate")
    notes.append("the gate's annotation was gone; what was left of the gate is removed")
    change.status, change.reason = "released", "; ".join(notes)
    return change


def _view(node: Mapping) -> dict:
    annotations = (node.get("metadata") or {}).get("annotations") or {}
    return {
        "annotations": {key: annotations[key] for key in sorted(annotations) if key.startswith(gates_.PREFIX)},
        "taints": [gates_.taint_text(each) for each in _taints(node)],
        "unschedulable": others.is_cordoned(node),
    }


def _unchanged(node: Mapping, reason: str = "") -> Change:
    view = _view(node)
    return Change("unchanged", reason, None, view, view)


def _refused(node: Mapping, reason: str) -> Change:
    view = _view(node)
    return Change("refused", reason, None, view, view)


def _change(node: Mapping, annotations: Mapping, taints: list[dict], cordon: bool) -> Change:
    """The patch that makes it so, None when it is so."""
    before = _view(node)
    had = (node.get("metadata") or {}).get("annotations") or {}
    differs = {key: value for key, value in annotations.items() if had.get(key) != value}
    spec: dict = {}
    if taints != _taints(node):
        spec["taints"] = taints or None
    if cordon != before["unschedulable"]:
        spec["unschedulable"] = True if cordon else None
    if not differs and not spec:
        return Change("unchanged", "", None, before, before)
    patch: dict = {"metadata": {"resourceVersion": (node.get("metadata") or {}).get("resourceVersion")}}
    if differs:
        patch["metadata"]["annotations"] = differs
    if spec:
        patch["spec"] = spec
    gates = {key: value for key, value in {**before["annotations"], **differs}.items() if value is not None}
    after = {
        "annotations": dict(sorted(gates.items())),
        "taints": [gates_.taint_text(each) for each in taints],
        "unschedulable": cordon,
    }
    return Change("", "", patch, before, after)


def applied(node: Mapping, patch: Mapping) -> dict:
    """The node as it is once the patch is in, for what is reported about it: nothing else is carried along."""
    metadata, spec = dict(node.get("metadata") or {}), dict(node.get("spec") or {})
    annotations = {**(metadata.get("annotations") or {}), **(patch["metadata"].get("annotations") or {})}
    metadata["annotations"] = {key: value for key, value in annotations.items() if value is not None}
    if "unschedulable" in patch.get("spec", {}):
        metadata["managedFields"] = [{"manager": gates_.MANAGER, "fieldsV1": {"f:spec": {"f:unschedulable": {}}}}]
    spec.update(patch.get("spec", {}))
    return {**node, "metadata": metadata, "spec": {key: value for key, value in spec.items() if value is not None}}
