# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The form of what an account of job recovery is made from. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.jobs.chains import millis, whole
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.goodput import PHASES
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import Problem, nearest

LISTS = ("decisions", "attempts", "actions", "gates", "drains", "repairs", "phases")
STATES = ("pending", "running", "failed", "succeeded", "suspended", "lost", "hung")


def spec_of(decision: Mapping) -> Mapping:
    """The spec of a RecoveryDecision, which may be given without its envelope."""
    return decision.get("spec", decision)


def check(given: object) -> list[Problem]:
    """Everything that is wrong with the form of what is given."""
    where = "recovery"
    if not isinstance(given, Mapping):
        return [Problem("bad-type", "must be a dictionary", path=where, hint="decisions and attempts, at least")]
    problems = [
        Problem("unknown-key", f"{key!r} is not known", path=where, hint=nearest(str(key), ["name", "until", *LISTS]))
        for key in given
        if key not in ("name", "until", *LISTS)
    ]
    for key in LISTS:
        items = given.get(key)
        if items is not None and not isinstance(items, (list, tuple)):
            problems.append(Problem("bad-type", "must be a list", path=f"{where}.{key}"))
            continue
        for index, item in enumerate(items or ()):
            place = f"{where}.{key}[{index}]"
            if not isinstance(item, Mapping):
                problems.append(Problem("bad-type", "must be a dictionary", path=place))
            else:
                problems += _CHECKS[key](item, place)
    if not problems and given.get("attempts") is None and given.get("decisions") is None:
        hint = "an empty list of attempts says that none failed"
        problems.append(Problem("empty", "neither attempts nor decisions are given", path=where, hint=hint))
    if given.get("until") is not None:
        problems += _times(given, where, "until")
    return problems


def _check_attempt(item: Mapping, place: str) -> list[Problem]:
    job = item.get("job")
    problems = _texts(item, place, "key", "state")
    if isinstance(item.get("state"), str) and item["state"] not in STATES:
        hint = nearest(item["state"], STATES)
        problems.append(Problem("bad-value", f"{item['state']!r} is no state", path=f"{place}.state", hint=hint))
    if not whole(item.get("number")):
        problems.append(Problem("bad-type", "must be a whole number", path=f"{place}.number", hint="1 for the first"))
    if isinstance(job, Mapping):
        problems += _texts(job, f"{place}.job", "namespace", "name", "uid") + _dicts(job, f"{place}.job", "shape")
    else:
        problems.append(Problem("missing-key", "must be a dictionary", path=f"{place}.job", hint="name, uid …"))
    problems += _dicts(item, place, "progress", "firstFailure", "signature", "checkpoint", "hardware")
    problems += _listed(item, place, "ranks")
    if isinstance(item.get("signature"), Mapping):
        problems += _listed(item["signature"], f"{place}.signature", "lines")
    if isinstance(item.get("hardware"), Mapping):
        for node in item["hardware"]:
            problems += _listed(item["hardware"], f"{place}.hardware", node)
    problems += _times(item, place, "startedAt", "endedAt", "detectedAt")
    for key, names in (("progress", ("firstStepAt", "lastStepAt")), ("firstFailure", ("at",)), ("job", ("created",))):
        if isinstance(item.get(key), Mapping):
            problems += _times(item[key], f"{place}.{key}", *names)
    return problems


def _check_decision(item: Mapping, place: str) -> list[Problem]:
    spec = spec_of(item)
    if not isinstance(spec, Mapping):
        return [Problem("bad-type", "must be a dictionary", path=f"{place}.spec", hint="give the whole document")]
    place = f"{place}.spec" if "spec" in item else place
    problems = _texts(spec, place, "attempt", "action") + _dicts(spec, place, "resume", "job")
    if isinstance(spec.get("job"), Mapping):
        problems += _texts(spec["job"], f"{place}.job", "namespace", "name", "uid")
    if not isinstance(spec.get("reasons") or [], (list, tuple)):
        problems.append(Problem("bad-type", "must be a list", path=f"{place}.reasons"))
    problems += _times(spec, place, "decidedAt")
    for key in ("exclude", "hardware"):
        found = _listed(spec, place, key)
        problems += found
        for index, one in enumerate([] if found else spec.get(key) or ()):
            problems += _texts(one, f"{place}.{key}[{index}]", "node")
    return problems


def _check_action(item: Mapping, place: str) -> list[Problem]:
    key = "key" if "key" in item and "attempt" not in item else "attempt"
    return _texts(item, place, key) + _times(item, place, "at")


def _check_gate(item: Mapping, place: str) -> list[Problem]:
    if "gates" not in item:
        return _texts(item, place, "node") + _times(item, place, "since", "until")
    problems = _texts(item, place, "name") + _listed(item, place, "gates")
    return problems + [
        problem
        for index, gate in enumerate([] if problems else item["gates"] or ())
        for problem in _times(gate, f"{place}.gates[{index}]", "since")
    ]


def _check_drain(item: Mapping, place: str) -> list[Problem]:
    return _texts(item, place, "node") + _times(item, place, "startedAt", "finishedAt")


def _check_repair(item: Mapping, place: str) -> list[Problem]:
    spec = item.get("spec")
    node = spec.get("node") if isinstance(spec, Mapping) else None
    if not isinstance(node, Mapping) or not isinstance(node.get("name"), str):
        return [Problem("missing-key", "must be text", path=f"{place}.spec.node.name", hint="give the whole document")]
    problems = _dicts(item, place, "status") + _dicts(spec, f"{place}.spec", "fault")
    if isinstance(item.get("status"), Mapping):
        problems += _times(item["status"], f"{place}.status", "startedAt", "finishedAt")
    return problems


def _check_phase(item: Mapping, place: str) -> list[Problem]:
    problems = _texts(item, place, "attempt", "class", "from", "to") + _times(item, place, "from", "to")
    if isinstance(item.get("class"), str) and item["class"] not in PHASES:
        hint = nearest(item["class"], PHASES)
        problems.append(Problem("bad-value", f"{item['class']!r} is no class", path=f"{place}.class", hint=hint))
    return problems


_CHECKS = {
    "attempts": _check_attempt,
    "decisions": _check_decision,
    "actions": _check_action,
    "gates": _check_gate,
    "drains": _check_drain,
    "repairs": _check_repair,
    "phases": _check_phase,
}


def _texts(item: Mapping, place: str, *keys: str) -> list[Problem]:
    return [
        Problem("missing-key", "must be text", path=f"{place}.{key}")
        for key in keys
        if not isinstance(item.get(key), str) or not item[key]
    ]


def _times(item: Mapping, place: str, *keys: str) -> list[Problem]:
    return [
        Problem(
            "bad-time", f"{str(item[key])[:60]!r} is not a time", path=f"{place}.{key}", hint="as 2026-03-06T09:34:56Z"
        )
        for key in keys
        if item.get(key) not in (None, "") and millis(item[key]) is None
    ]


def _dicts(item: Mapping, place: str, *keys: str) -> list[Problem]:
    return [
        Problem("bad-type", "must be a dictionary or null", path=f"{place}.{key}")
        for key in keys
        if item.get(key) is not None and not isinstance(item[key], Mapping)
    ]


def _listed(item: Mapping, place: str, key: str) -> list[Problem]:
    items = item.get(key)
    if items is None or (isinstance(items, (list, tuple)) and all(isinstance(one, Mapping) for one in items)):
        return []
    return [Problem("bad-type", "must be a list of dictionaries", path=f"{place}.{key}")]
