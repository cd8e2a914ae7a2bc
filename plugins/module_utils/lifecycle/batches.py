# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes that are certified together, and what a certification of them proves. Pure.

A certification is named after what it proves: the tests, and of each node what it is and runs, which attempt it is,
and for which requests. So the one of an older boot or another driver has another name, and so has one from before what
a later request is about; a killed run that is taken up again has the same. `members` are {node: member}.

A proof is what sealed evidence says, {batch, tests, members, digest, finished, nodes: {name: {passed, verdict,
why}}}, or {problem: why the evidence is not to be relied on}.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle import requests
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle.nodefacts import VALIDATION
from ansible_collections.goodput.fleet.plugins.module_utils.records import digest
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument

MEMBERS = "goodput.fleet/validates"  # annotation of a certification: what its name is made of
FAILING = ("fail", "hang")  # verdicts on a node; others only say that nothing is known


def mark(basis: Mapping) -> str:
    """A node's basis in 16 digits."""
    return digest.sha256(basis).removeprefix("sha256:")[:16]


def member(basis: Mapping, attempt: int, askers: Iterable[str]) -> list:
    """What of a node goes into the name. askers: of each request that names it, which one it is and when it began."""
    return [mark(basis), attempt, sorted(askers)]


def name_of(tests_key: str, members: Mapping[str, list]) -> str:
    content = {"tests": tests_key, "members": {name: list(member) for name, member in members.items()}}
    return "vr-" + digest.sha256(content).removeprefix("sha256:")[:16]


def certification(spec: Mapping, members: Mapping[str, list]) -> dict:
    """The Certification of a batch. spec: of a ValidationRequest, of which tests and options count."""
    key = requests.tests_key(spec)
    about = json.dumps({"tests": key, "members": dict(sorted(members.items()))}, separators=(",", ":"))
    document = {
        "apiVersion": "goodput.fleet/v1alpha1",
        "kind": "Certification",
        "metadata": {"name": name_of(key, members), "annotations": {MEMBERS: about}},
        "spec": {
            "target": {"nodeNames": sorted(members)},
            "categories": spec["tests"],
            "tolerateGates": [VALIDATION],
        },
    }
    if spec.get("options"):
        document["spec"]["options"] = spec["options"]
    return document


def proof(about: Mapping, results: Mapping, evidence_digest: str) -> dict:
    """What evidence proves. about: its certification.json; results: its results.json; both sealed and verified.

    Raises InvalidDocument where the certification is not named after what it says it proves, or holds no results.
    """
    try:
        name = about["certification"]["metadata"]["name"]
        told = json.loads(about["certification"]["metadata"]["annotations"][MEMBERS])
        key, members = told["tests"], {node: _member(*each) for node, each in told["members"].items()}
        sound = name_of(key, members) == name
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        sound = False
    if not sound:
        raise InvalidDocument("the certification is not named after what it proves", path="metadata.name")
    try:
        nodes = {
            node["node"]: {
                "passed": node.get("mayOpenGate") is True,
                "verdict": str(node.get("verdict") or "unknown"),
                "why": "; ".join(map(str, node.get("reasons") or ())),
            }
            for node in results["nodes"]
        }
    except (KeyError, TypeError, AttributeError):
        raise InvalidDocument("holds no results of nodes", path="nodes") from None
    return {
        "batch": name,
        "tests": key,
        "members": members,
        "digest": evidence_digest,
        "finished": str(results.get("finished") or ""),
        "nodes": nodes,
    }


def _member(basis_mark: str, attempt: int, askers: list) -> list:
    """Raises TypeError for what is no member."""
    return [basis_mark, attempt, [*askers]]
