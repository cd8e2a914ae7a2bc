# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ValidationRequests: made for nodes and tests, told apart by what they ask for, and merged where it is the same. Pure.

request = make("repaired", [{"name": "gpu-1", "uid": "8f0c", "bootId": "b2"}], tests, cause="reboot after Xid 79")
request, covered = uncovered(request, open_requests)      # covered: {"gpu-2": "new-node-1a2b3c4d"}
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle import documents
from ansible_collections.goodput.fleet.plugins.module_utils.records import digest, schema
from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas.validationrequest import (
    MAX_CAUSE,
    MAX_NODES,
)

KIND = "ValidationRequest"
OPEN = ("Pending", "Running")
RETRIES = 1
NODE = ("name", "uid", "bootId")


def load(raw: object) -> dict:
    """The request of a path, a YAML text, or a map. Raises NotFound, or InvalidDocument with every problem."""
    return documents.load(raw, KIND)


def digest_of(spec: Mapping) -> str:
    """`vr-` and 16 hexadecimal digits: the same for two specs that ask for the same. The order of nodes is nothing."""
    nodes = sorted(spec["nodes"], key=lambda node: node["name"])
    return f"vr-{_hex({**spec, 'nodes': nodes})}"


def tests_key(spec: Mapping) -> str:
    """16 hexadecimal digits: the same for requests whose nodes have to pass the same tests."""
    return _hex({"tests": spec["tests"], "options": spec.get("options") or {}})


def _hex(data: Mapping) -> str:
    return digest.sha256(documents.even(data)).removeprefix("sha256:")[:16]


def make(
    reason: str,
    nodes: Iterable[Mapping],
    tests: Iterable[Mapping],
    options: Mapping | None = None,
    cause: str = "",
    retries: int = RETRIES,
    namespace: str = "",
) -> dict:
    """A request named after what it asks for. Of each node name, uid and bootId are used; a long cause is cut.

    What is asked for twice for the same boot has the same name, unless the cause differs. Raises InvalidDocument.
    """
    spec: dict = {"reason": reason}
    if cause:
        spec["cause"] = cause[:MAX_CAUSE]
    entries = [_entry(node) if isinstance(node, Mapping) else node for node in nodes]
    spec |= {"nodes": entries, "tests": copy.deepcopy(list(tests))}
    if options:
        spec["options"] = copy.deepcopy(options)
    spec["retries"] = retries
    load(_document("request", spec, namespace))  # first of all: only what is good has a digest
    spec["nodes"].sort(key=lambda node: node["name"])
    return _document(_name(spec), spec, namespace)


def _entry(node: Mapping) -> dict:
    return {key: node[key] for key in NODE if node.get(key)}


def make_all(reason: str, nodes: Iterable[Mapping], tests: Iterable[Mapping], **options) -> list[dict]:
    """As `make`, as several requests where one cannot hold all the nodes."""
    found, tests = sorted(nodes, key=lambda node: node["name"]), list(tests)
    starts = range(0, max(len(found), 1), MAX_NODES)
    return [make(reason, found[start : start + MAX_NODES], tests, **options) for start in starts]


def is_open(doc: Mapping) -> bool:
    """Whether there is still something to be done for it."""
    return ((doc.get("status") or {}).get("phase") or OPEN[0]) in OPEN


def uncovered(doc: Mapping, open_docs: Iterable[Mapping]) -> tuple[dict | None, dict[str, str]]:
    """(the request for the nodes that no open one covers, or None; {node: name of the request that covers it}).

    An open request covers a node of the same name, uid and boot that has to pass the same tests and whose tests have
    not begun: those that have prove nothing about what happened to the node since.
    """
    key = tests_key(doc["spec"])
    waiting: dict[tuple, str] = {}
    for other in open_docs:
        if is_open(other) and tests_key(other["spec"]) == key:
            begun = _begun(other)
            for node in other["spec"]["nodes"]:
                if node["name"] not in begun:
                    waiting.setdefault(_identity(node), other["metadata"]["name"])
    nodes = doc["spec"]["nodes"]
    covered = {node["name"]: waiting[_identity(node)] for node in nodes if _identity(node) in waiting}
    if not covered:
        return dict(doc), {}
    rest = [node for node in nodes if node["name"] not in covered]
    if not rest:
        return None, covered
    spec = doc["spec"] | {"nodes": rest}
    return _document(_name(spec), spec, doc["metadata"].get("namespace", "")), covered


def needed(
    doc: Mapping, docs: Iterable[Mapping], again: bool = False, bases: Mapping[str, Mapping] | None = None
) -> tuple[dict | None, dict[str, str]]:
    """As `uncovered`, and a request that is there already covers all its nodes, unless it is over and asked for again,
    or is over and was about what a node is no longer.

    docs: all requests that there are. bases: {node: what it is now}. Asked for again, the cause carries a number, which
    makes it another request.
    """
    docs = list(docs)
    digests = {digest_of(other["spec"]): other for other in docs}
    rest, covered = dict(doc), {}
    if digest_of(doc["spec"]) not in digests:
        rest, covered = uncovered(doc, docs)
    number, cause = 1, doc["spec"].get("cause", "")
    while rest and (there := digests.get(digest_of(rest["spec"]))):
        if is_open(there) or not (again or _is_past(there, bases or {})):
            names = [node["name"] for node in rest["spec"]["nodes"]]
            return None, covered | dict.fromkeys(names, there["metadata"]["name"])
        number += 1
        suffix = f" ({number})"
        spec = {**rest["spec"], "cause": (cause[: MAX_CAUSE - len(suffix)] + suffix).strip()}
        rest = _document(_name(spec), spec, doc["metadata"].get("namespace", ""))
    return rest, covered


def asking(docs: Iterable[Mapping], nodes: Iterable[str]) -> dict[str, set[tuple]]:
    """{node: of each request that names it, its name, what it asks for, and whether it is open}."""
    found: dict[str, set[tuple]] = {name: set() for name in nodes}
    for doc in docs:
        named = [node["name"] for node in doc["spec"]["nodes"] if node["name"] in found]
        about = (doc["metadata"]["name"], digest_of(doc["spec"]), is_open(doc)) if named else ()
        for name in named:
            found[name].add(about)
    return found


def _is_past(doc: Mapping, bases: Mapping[str, Mapping]) -> bool:
    """Whether a node that it certified has been changed since, as a driver can be within one boot."""
    entries = (doc.get("status") or {}).get("nodes") or ()
    return any(each.get("basis") and bases.get(each["name"], each["basis"]) != each["basis"] for each in entries)


def _identity(node: Mapping) -> tuple:
    return tuple(node.get(key) or "" for key in NODE)


def _begun(doc: Mapping) -> set[str]:
    nodes = (doc.get("status") or {}).get("nodes") or []
    return {node["name"] for node in nodes if node["phase"] != OPEN[0]}


def _name(spec: Mapping) -> str:
    return f"{spec['reason']}-{digest_of(spec)[3:11]}"


def _document(name: str, spec: Mapping, namespace: str) -> dict:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": schema.API_VERSION, "kind": KIND, "metadata": metadata, "spec": dict(spec)}
