# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One gate: what it may say, and how a node's annotation carries it.

A gate is {owner, reason, rule, ruleDigest, evidence, since, bootId, cordon, taint: {key, value, effect}}, and where it
is known what is broken and what mends it {fault, action, entity}: a code such as xid-79, the recommended action of a
HealthEvent, and the GPU (UUID, PCI address or index), "" for the whole node. `cordon`: the gate wants
spec.unschedulable. As read from a node it also has `taintOurs` and `cordonOurs` (whether this
collection set them, for they may have been there before), `readable` and, where it is not, `problem`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.records import taints
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import Problem

DOMAIN = "gate.goodput.fleet"
PREFIX = f"{DOMAIN}/"
MANAGER = "goodput-fleet"  # of the fields we write
TEXTS = ("reason", "rule", "ruleDigest", "evidence", "since", "bootId")
ABOUT = ("fault", "action", "entity")  # of the evidence; a gate without one of them does not carry its name
REASON_LIMIT = 512  # characters; the rest is cut, since reasons are for people
TEXT_LIMIT = 253

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SINCE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")


def annotation(owner: str) -> str:
    return PREFIX + owner


def identity(taint: Mapping) -> tuple[str, str]:
    """What has to be unique on a node."""
    return taint.get("key") or "", taint.get("effect") or ""


def triple(taint: Mapping) -> tuple[str, str, str]:
    return taint.get("key") or "", taint.get("value") or "", taint.get("effect") or ""


def taint_text(taint: Mapping) -> str:
    """As kubectl writes it: key=value:effect."""
    key, value, effect = triple(taint)
    return f"{key}={value}:{effect}" if value else f"{key}:{effect}"


def default_taint(owner: str, reason: str) -> dict:
    value = re.sub(r"[^a-z0-9]+", "-", reason.lower())[:63].strip("-")
    return {"key": annotation(owner), "value": value, "effect": "NoSchedule"}


def clean_reason(reason: str) -> str:
    """One line, bounded."""
    if not reason.isprintable():
        reason = "".join(each if each.isprintable() else " " for each in reason)
    text = " ".join(reason.split())
    return text if len(text) <= REASON_LIMIT else text[: REASON_LIMIT - 1] + "…"


def owner_problem(owner: object, where: str = "owner") -> Problem | None:
    if isinstance(owner, str) and _LABEL.fullmatch(owner):
        return None
    hint = "lower-case letters, digits and '-', at most 63, such as quarantine, validation, maintenance or manual"
    return Problem("gate-owner", f"{owner!r} is not the name of an owner", path=where, hint=hint)


def annotation_problem(owner: object, where: str = "owner") -> Problem | None:
    """Laxer: whatever can be the name of an annotation, as somebody may have written one by hand."""
    return None if isinstance(owner, str) and taints.NAME.fullmatch(owner) else owner_problem(owner, where)


def problems(gate: Mapping, where: str = "") -> list[Problem]:
    """Everything that is wrong with a gate someone wants to hold."""
    at = f"{where}." if where else ""
    wrong = owner_problem(gate.get("owner"), f"{at}owner")
    found = [wrong] if wrong else []
    for name in TEXTS + ABOUT:
        value = gate.get(name)
        if value is None:
            continue
        if not isinstance(value, str):
            found.append(Problem("gate-text", f"is {value!r}, not a text", path=at + name))
        elif name != "reason" and (len(value) > TEXT_LIMIT or not value.isprintable()):
            limit = f"one line of at most {TEXT_LIMIT} characters"
            found.append(
                Problem("gate-text", f"is too long or not one line: {value[:60]!r}", path=at + name, hint=limit)
            )
    if gate.get("since") and not (isinstance(gate["since"], str) and _SINCE.fullmatch(gate["since"])):
        hint = "as in 2026-11-29T20:15:00Z"
        found.append(Problem("gate-since", f"{gate['since']!r} is not a time", path=f"{at}since", hint=hint))
    if gate.get("cordon") not in (None, True, False):
        found.append(Problem("gate-cordon", f"is {gate['cordon']!r}", path=f"{at}cordon", hint="true or false"))
    if gate.get("taint") is not None:
        found += taints.problems(gate["taint"], f"{at}taint")
    return found


def dump(gate: Mapping) -> str:
    """The annotation's text: fixed order, so that equal gates are equal texts."""
    body: dict = {name: gate[name] for name in TEXTS} | {name: gate[name] for name in ABOUT if gate.get(name)}
    body["cordon"], body["cordonOurs"] = gate["cordon"], gate["cordonOurs"]
    body["taint"] = {part: gate["taint"].get(part) or "" for part in ("key", "value", "effect")}
    body["taintOurs"] = gate["taintOurs"]
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))


def read(annotations: Mapping | None) -> list[dict]:
    """The gates that a node's annotations carry, by owner. One that cannot be read is a gate all the same."""
    if not annotations:
        return []
    found = []
    for key in sorted(each for each in annotations if isinstance(each, str) and each.startswith(PREFIX)):
        found.append(_read(key[len(PREFIX) :], annotations[key]))
    return found


def _read(owner: str, text: object) -> dict:
    gate: dict = {"owner": owner, **dict.fromkeys(TEXTS + ABOUT, ""), "cordon": False, "cordonOurs": False}
    gate.update(taint=None, taintOurs=False, readable=True, problem="")
    try:
        body = json.loads(text) if isinstance(text, str) else None
        why = "" if isinstance(body, dict) else "it is not a JSON object"
    except (ValueError, RecursionError):
        body, why = None, "it is not JSON"
    why = why or _wrong(body)
    if why:
        gate.update(readable=False, problem=f"annotation {annotation(owner)} cannot be read: {why}", raw=str(text))
        return gate
    gate.update((name, body.get(name) or "") for name in TEXTS + ABOUT)
    gate.update((name, bool(body.get(name))) for name in ("cordon", "cordonOurs", "taintOurs"))
    taint = body["taint"]
    gate["taint"] = {"key": taint["key"], "value": taint.get("value") or "", "effect": taint["effect"]}
    return gate


def _wrong(body: dict) -> str:
    for name in TEXTS + ABOUT:
        if not isinstance(body.get(name, ""), str):
            return f"{name} is not a text"
    for name in ("cordon", "cordonOurs", "taintOurs"):
        if not isinstance(body.get(name, False), bool):
            return f"{name} is neither true nor false"
    found = taints.problems(body.get("taint"))
    return str(found[0]) if found else ""
