# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kubernetes' word that a node is off: then its pods are ended by force, and what they held is free for others.

    result = mark(client, "gpu-0007", {"source": "bmc", "at": "2026-03-06T09:41:00Z", "off": True})
    results = clear(client, nodes)

It is said only with proof, since a pod whose node still runs would then run twice. A proof is {source, at, off: True},
and may say of which node it is: {uid, bootId}. What was said is taken back when the node is up again and has booted
since; never what somebody else said.

A result is {node, status: held | released | unchanged | refused | failed, changed, reason}, failures with `code`.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

from ansible_collections.goodput.fleet.plugins.module_utils.gates.facts import boot_id, ready
from ansible_collections.goodput.fleet.plugins.module_utils.gates.gate import MANAGER, triple
from ansible_collections.goodput.fleet.plugins.module_utils.gates.model import Change
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import Conflict, FleetError

TAINT = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}
ANNOTATION = "goodput.fleet/out-of-service"
FRESH = timedelta(minutes=15)  # a node that was off before that may have been switched on since
SKEW = timedelta(minutes=1)
CONFLICTS = 10


def mark(client, node: str, proof: Mapping, *, now: datetime | None = None, check_mode: bool = False) -> dict:
    """Say of a node that it is off. Never raises a FleetError."""
    now = now or datetime.now(UTC)
    return _write(client, node, lambda raw: marked(raw, proof, now), None, check_mode)


def clear(client, nodes: Mapping[str, Mapping], *, check_mode: bool = False) -> list[dict]:
    """Take it back where that is due; results of the nodes that we said it of. `nodes`: raw, by name."""
    ours = {name: raw for name, raw in nodes.items() if _note(raw) is not None}
    return [_write(client, name, cleared, raw, check_mode) for name, raw in sorted(ours.items())]


def marked(node: Mapping, proof: Mapping, now: datetime) -> Change:
    """What to write. Pure."""
    taints = _taints(node)
    if any(_is_it(each) for each in taints):
        return Change("unchanged", "it is out of service already")
    why = _no_proof(node, proof, now)
    if why:
        return Change("refused", why)
    note = {"source": str(proof["source"]), "at": str(proof["at"]), "bootId": boot_id(node)}
    return _change(node, "held", json.dumps(note, separators=(",", ":")), [*taints, dict(TAINT)], "off, says its proof")


def cleared(node: Mapping) -> Change:
    """What to write. Pure."""
    note = _note(node)
    if note is None:
        return Change("unchanged", "it is not out of service by our word")
    rest = [each for each in _taints(node) if triple(each) != triple(TAINT)]
    if len(rest) == len(_taints(node)):
        return _change(node, "released", None, rest, "somebody took the taint off")
    if ready(node) != "True":
        return Change("unchanged", "it is not back yet")
    if not boot_id(node) or boot_id(node) == note.get("bootId"):
        # it was never off, or does not tell: what ran there may be running still
        return Change("refused", "it is back, and has not booted since it was said to be off: reboot it")
    return _change(node, "released", None, rest, "it is back, and has booted")


def _no_proof(node: Mapping, proof: Mapping, now: datetime) -> str:
    if proof.get("off") is not True or not proof.get("source"):
        return "there is no proof that it is off"
    for key, told in (("uid", (node.get("metadata") or {}).get("uid")), ("bootId", boot_id(node))):
        if proof.get(key) and proof[key] != told:
            return "the proof is of another node of that name" if key == "uid" else "it has booted since the proof"
    at = _moment(proof.get("at"))
    if at is None:
        return f"the proof is dated {proof.get('at')!r}, which is no time with a zone"
    if at > now + SKEW or at < now - FRESH:
        return f"the proof is of {proof['at']}, which is not now"
    if ready(node) == "True":
        return "it is Ready"
    beat = _moment(_condition(node).get("lastHeartbeatTime"))
    if beat is not None and beat > at:
        return f"its kubelet was heard at {beat:%H:%M:%S}, after the proof"
    return ""


def _write(client, name: str, decide: Callable[[Mapping], Change], node: Mapping | None, check_mode: bool) -> dict:
    path, result = f"/api/v1/nodes/{quote(name, safe='')}", {"node": name, "changed": False}
    for attempt in range(CONFLICTS + 1):
        try:
            node = client.get(path) if node is None else node
            change = decide(node)
            if change.patch is not None and not check_mode:
                client.patch(path, change.patch, metadata_only=True, fieldManager=MANAGER)
        except Conflict as error:
            if attempt == CONFLICTS:
                return {**result, "status": "failed", "code": error.code, "reason": str(error)}
            node = None
            time.sleep(random.uniform(0, 0.02 * 2 ** min(attempt, 5)))
            continue
        except FleetError as error:
            return {**result, "status": "failed", "code": error.code, "reason": str(error)}
        return {**result, "status": change.status, "changed": change.patch is not None, "reason": change.reason}
    raise AssertionError("not reached")


def _change(node: Mapping, status: str, note: str | None, taints: list[dict], reason: str) -> Change:
    version = (node.get("metadata") or {}).get("resourceVersion")
    patch = {
        "metadata": {"resourceVersion": version, "annotations": {ANNOTATION: note}},
        "spec": {"taints": taints or None},
    }
    return Change(status, reason, patch)


def _note(node: Mapping) -> dict | None:
    text = ((node.get("metadata") or {}).get("annotations") or {}).get(ANNOTATION)
    if text is None:
        return None
    try:
        found = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {}


def _taints(node: Mapping) -> list[dict]:
    return list((node.get("spec") or {}).get("taints") or ())


def _is_it(taint: Mapping) -> bool:
    return (taint.get("key"), taint.get("effect")) == (TAINT["key"], TAINT["effect"])


def _condition(node: Mapping) -> Mapping:
    found = (node.get("status") or {}).get("conditions") or ()
    return next((each for each in found if each.get("type") == "Ready"), {})


def _moment(text: object) -> datetime | None:
    try:
        found = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return found if found.tzinfo else None
