# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes that a job's next attempt has to keep away from, and places that it should prefer, as node affinity. Pure.

The terms of a required node selector are alternatives, so an exclusion goes into every one of them. A term without any
requirement matches no node and stays as it is. What is added can be taken off again: `remembered` lists it, and is
kept as annotations of the job.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Mapping

HOSTNAME = "kubernetes.io/hostname"
EXCLUDED, PREFERRED = "goodput.fleet/excluded-nodes", "goodput.fleet/preferred-placement"
WEIGHT = 50
WHY = 120  # characters
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def excluding(affinity: Mapping | None, hostnames: Iterable[str]) -> dict | None:
    """The affinity, and never on these hosts. None where nothing is left to say."""
    values = sorted(set(hostnames))
    result = copy.deepcopy(dict(affinity or {}))
    if not values:
        return result or None
    requirement = _requirement(values)
    node = result["nodeAffinity"] = result.get("nodeAffinity") or {}
    required = node[_REQUIRED] = node.get(_REQUIRED) or {}
    terms = required["nodeSelectorTerms"] = required.get("nodeSelectorTerms") or []
    if not terms:
        terms.append({"matchExpressions": [requirement]})
        return result
    for term in terms:
        if term.get("matchExpressions") or term.get("matchFields"):
            term["matchExpressions"] = [*(term.get("matchExpressions") or ()), copy.deepcopy(requirement)]
    return result


def including(affinity: Mapping | None, hostnames: Iterable[str]) -> dict | None:
    """The affinity without what excluding() of the same hosts added."""
    values = sorted(set(hostnames))
    result = copy.deepcopy(dict(affinity or {}))
    node = result.get("nodeAffinity") or {}
    required = node.get(_REQUIRED) or {}
    if not values or not required.get("nodeSelectorTerms"):
        return result or None
    requirement, kept = _requirement(values), []
    for term in required["nodeSelectorTerms"]:
        expressions = list(term.get("matchExpressions") or ())
        if requirement in expressions:  # ours came last; one that the user wrote alike stays
            del expressions[len(expressions) - 1 - expressions[::-1].index(requirement)]
            if not expressions and not term.get("matchFields"):
                continue
            term = {**term, "matchExpressions": expressions}
            if not expressions:
                del term["matchExpressions"]
        kept.append(term)
    required["nodeSelectorTerms"] = kept
    if not kept:
        del node[_REQUIRED]
    return _pruned(result)


def preferring(affinity: Mapping | None, terms: Iterable[Mapping]) -> dict | None:
    """The affinity with these preferences ({weight, preference}) added."""
    result = copy.deepcopy(dict(affinity or {}))
    wanted = [copy.deepcopy(dict(term)) for term in terms]
    if wanted:
        node = result["nodeAffinity"] = result.get("nodeAffinity") or {}
        node[_PREFERRED] = [*(node.get(_PREFERRED) or ()), *wanted]
    return result or None


def not_preferring(affinity: Mapping | None, terms: Iterable[Mapping]) -> dict | None:
    """The affinity without what preferring() of the same terms added."""
    result = copy.deepcopy(dict(affinity or {}))
    node = result.get("nodeAffinity") or {}
    if node.get(_PREFERRED):
        kept = list(node[_PREFERRED])
        for term in terms:
            if term in kept:
                del kept[len(kept) - 1 - kept[::-1].index(dict(term))]
        node[_PREFERRED] = kept
        if not kept:
            del node[_PREFERRED]
    return _pruned(result)


def preference(label: str, values: Iterable[str], weight: int = WEIGHT) -> list[dict]:
    """Terms that prefer nodes whose label has one of the values; none without values."""
    values = sorted(set(values))
    expression = {"key": label, "operator": "In", "values": values}
    return [{"weight": weight, "preference": {"matchExpressions": [expression]}}] if values and label else []


def remembered(job: Mapping) -> tuple[list[dict], list[dict]]:
    """(exclusions, preferences) that the job's annotations say are ours: [{node, hostname, uid, why, until}] and terms.

    An annotation that cannot be read is nothing of ours: then nothing is taken off.
    """
    notes = (job.get("metadata") or {}).get("annotations") or {}
    told = _list(notes.get(EXCLUDED))
    excluded = [each for each in told if isinstance(each.get("hostname"), str) and isinstance(each.get("node"), str)]
    return excluded, _list(notes.get(PREFERRED))


def annotations(excluded: Iterable[Mapping], preferred: Iterable[Mapping]) -> dict[str, str | None]:
    """What remembered() reads; None for an annotation that is to go. All of a job's together may have 256 KiB."""
    lists = {EXCLUDED: [_short(each) for each in excluded], PREFERRED: list(preferred)}
    return {key: json.dumps(value, separators=(",", ":")) if value else None for key, value in lists.items()}


def pinned(template: Mapping, excluded: Mapping[str, str]) -> str:
    """The excluded node ({name: hostname}) that a pod template insists on, "" where it insists on none."""
    spec = template.get("spec") or {}
    wanted = (spec.get("nodeSelector") or {}).get(HOSTNAME)
    for name, hostname in excluded.items():
        if spec.get("nodeName") == name or wanted == hostname:
            return name
    return ""


def _short(entry: Mapping) -> dict:
    return {key: value[:WHY] if key == "why" and isinstance(value, str) else value for key, value in entry.items()}


def _requirement(values: list[str]) -> dict:
    return {"key": HOSTNAME, "operator": "NotIn", "values": list(values)}


def _pruned(affinity: dict) -> dict | None:
    if "nodeAffinity" in affinity and not affinity["nodeAffinity"]:
        del affinity["nodeAffinity"]
    return affinity or None


def _list(text: object) -> list[dict]:
    try:
        found = json.loads(text) if isinstance(text, str) else []
    except (ValueError, RecursionError):
        return []
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
