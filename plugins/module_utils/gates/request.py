# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the options of node_gate to one want per node, and from the results to what is said about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from ansible_collections.goodput.fleet.plugins.module_utils.gates import gate as gates_
from ansible_collections.goodput.fleet.plugins.module_utils.gates.facts import name_of
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, Problem, nearest

# option of a module or key of an entry of `nodes` -> field of a gate
FIELDS = {
    "owner": "owner",
    "reason": "reason",
    "rule": "rule",
    "rule_digest": "ruleDigest",
    "evidence": "evidence",
    "boot_id": "bootId",
    "taint": "taint",
    "cordon": "cordon",
}
STATUSES = ("held", "released", "unchanged", "refused", "failed")
SHOWN = 5  # nodes that a message names


def common(params: Mapping) -> dict:
    """What the options say for every node."""
    gate = {field: params[option] for option, field in FIELDS.items() if params.get(option) is not None}
    return {**gate, "force": True} if params.get("force") else gate


def for_entries(entries: Iterable, shared: Mapping, state: str) -> list[dict]:
    """One want per entry of `nodes`: a name, or {name, and what is different for that node}. Raises InvalidDocument."""
    problems: list[Problem] = []
    wants: dict[str, dict] = {}
    for index, entry in enumerate(entries):
        where = f"nodes[{index}]"
        want, wrong = _want(entry, shared, where)
        if not wrong and wants.get(want["node"], want) != want:
            wrong = [Problem("gate-node", f"node {want['node']} is there before, with other values", path=where)]
        problems += wrong or [_placed(each, entry, where) for each in _invalid(want, where, state)]
        wants.setdefault(want.get("node", ""), want)
    if problems:
        raise InvalidDocument(list(dict.fromkeys(problems)))
    return list(wants.values())


def for_nodes(nodes: Iterable[Mapping], shared: Mapping, state: str) -> list[dict]:
    """One want for each of the raw nodes; to release, for each that has such a gate."""
    problems = _invalid(shared, "", state)
    if problems:
        raise InvalidDocument([_placed(each, {}, "") for each in problems])
    key = gates_.annotation(shared["owner"])
    return [
        {**shared, "node": name_of(node)}
        for node in nodes
        if state == "held" or key in ((node.get("metadata") or {}).get("annotations") or {}) or shared.get("force")
    ]


def _want(entry: object, shared: Mapping, where: str) -> tuple[dict, list[Problem]]:
    if isinstance(entry, str):
        entry = {"name": entry}
    if not isinstance(entry, Mapping):
        return {}, [Problem("gate-node", f"{entry!r} is neither a name nor a map", path=where)]
    known = ("name", *FIELDS)
    wrong = [
        Problem("unknown-key", "is not known here", path=f"{where}.{key}", hint=nearest(key, known))
        for key in entry
        if key not in known
    ]
    name = entry.get("name")
    if not isinstance(name, str) or not name.strip() or "/" in name:
        hint = "as in 'kubectl get nodes'"
        wrong.append(Problem("gate-node", f"{name!r} is not the name of a node", path=f"{where}.name", hint=hint))
    own = {FIELDS[key]: value for key, value in entry.items() if key in FIELDS and value is not None}
    return {**shared, **own, "node": name}, wrong


def _invalid(want: Mapping, where: str, state: str) -> list[Problem]:
    if state == "held":
        found = gates_.problems(want, where)
        if not gates_.clean_reason(str(want.get("reason") or "")):
            hint = "people read it when they find the node closed"
            found.append(Problem("gate-reason", "a gate needs a reason", path=f"{where}.reason".lstrip("."), hint=hint))
        return found
    # names of annotations rather than of owners: one that somebody wrote by hand can be released, too
    wrong = gates_.annotation_problem(want.get("owner"), f"{where}.owner".lstrip("."))
    return [wrong] if wrong else []


def _placed(problem: Problem, entry: object, where: str) -> Problem:
    """The problem, at the option that it came from when the entry itself says nothing about it, and in the options'
    names."""
    field, dot, rest = problem.path.removeprefix(where).lstrip(".").partition(".")
    option = next((option for option, name in FIELDS.items() if name == field), field)
    own = isinstance(entry, Mapping) and (option in entry or option == "name")
    return replace(problem, path=(f"{where}." if where and own else "") + option + dot + rest)


def counts(results: Iterable[Mapping]) -> dict[str, int]:
    found = Counter(each["status"] for each in results)
    return {status: found.get(status, 0) for status in STATUSES}


def summary(results: list[dict], check_mode: bool) -> str:
    """'2 nodes held, 1 unchanged, 1 failed: gpu-0003 (there is no such node)'."""
    if not results:
        return "no node to work on"
    would = "would be " if check_mode else ""
    parts = []
    for status, number in counts(results).items():
        if number:
            word = f"{would}{status}" if status in ("held", "released") else status
            parts.append(f"{number} {'node ' if number == 1 else 'nodes '}{word}")
    text = ", ".join(parts)
    bad = [each for each in results if each["status"] in ("refused", "failed")]
    if bad:
        shown = "; ".join(f"{each['node']} ({each['reason']})" for each in bad[:SHOWN])
        text += f": {shown}" + (f"; and {len(bad) - SHOWN} more" if len(bad) > SHOWN else "")
    return text


def differences(results: Iterable[Mapping]) -> list[dict]:
    """For `--diff`: the gates, taints and cordon of every node that changes."""
    return [
        {"before_header": each["node"], "after_header": each["node"], **each["diff"]}
        for each in results
        if each.get("diff")
    ]
