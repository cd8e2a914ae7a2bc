# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ValidationRequests and RepairRequests as documents: read strictly, compared, kept within bounds. Pure but for files.

request = load("requests/new-node-1a2b3c4d.yaml", "ValidationRequest")   # or a YAML text, or an object of the cluster
"""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.records import digest, quickcheck, yamltree
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, Problem
from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas import repairrequest, validationrequest

SCHEMAS = {"ValidationRequest": validationrequest.SCHEMA, "RepairRequest": repairrequest.SCHEMA}
PLURALS = {kind: f"{kind.lower()}s" for kind in SCHEMAS}
LIMIT = 1_200_000  # bytes of JSON; etcd takes 1.5 MiB with what the API server adds
STATUS_OF_NODE = 500  # bytes, but for name and uid, and why
WHY, MESSAGE = 200, 1024
# what an API server adds to an object
MANAGED = (
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "managedFields",
    "ownerReferences",
    "finalizers",
    "selfLink",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)


def load(source: object, kind: str) -> dict:
    """The document of a path, a YAML text (several lines, or in braces), a map, or a Document; its status as it is.

    Raises NotFound, or InvalidDocument with every problem.
    """
    document = _document(source, kind)
    problems = faults(document, kind)
    if problems:
        raise InvalidDocument(problems)
    return document.data


def _document(source: object, kind: str) -> yamltree.Document:
    if isinstance(source, yamltree.Document):
        return source
    if isinstance(source, Mapping):
        return yamltree.Document(dict(source), {}, f"{kind} (inline)")
    if isinstance(source, os.PathLike) or (isinstance(source, str) and not _is_text(source)):
        return yamltree.load_file(str(source))
    if isinstance(source, str):
        return yamltree.load_text(source, f"{kind} (inline)")
    raise InvalidDocument(f"a {kind} is a path or a map, not a {type(source).__name__}")


def _is_text(source: str) -> bool:
    return "\n" in source or source.lstrip().startswith("{")


def faults(document: yamltree.Document, kind: str) -> list[Problem]:
    """Every breach of the kind's schema; where there is none, of the rules between its fields."""
    bare = copy.copy(document)
    bare.data = plain(document.data)
    problems = quickcheck.validate(bare, kind, SCHEMAS[kind]) or _storable(bare)
    if not problems and kind == "ValidationRequest":
        problems = _rules(bare) or _room(bare)
    return sorted(problems, key=lambda problem: (problem.line or 0, problem.path))


def plain(data: object) -> object:
    """The document without what an API server manages."""
    if not isinstance(data, Mapping) or not isinstance(data.get("metadata"), Mapping):
        return data
    return {**data, "metadata": {key: value for key, value in data["metadata"].items() if key not in MANAGED}}


def _storable(document: yamltree.Document) -> list[Problem]:
    """Data given as such may hold what no file does."""
    try:
        digest.canonical(document.data)
    except (ValueError, TypeError) as error:
        return [document.problem((), "bad-value", f"holds what cannot be stored: {error}", "texts and finite numbers")]
    return []


def _rules(document: yamltree.Document) -> list[Problem]:
    spec, status = document.data["spec"], document.data.get("status") or {}
    problems = _twice(document, spec["nodes"], "name", ("spec", "nodes"))
    problems += _twice(document, spec["nodes"], "uid", ("spec", "nodes"))
    problems += _twice(document, status.get("nodes") or [], "name", ("status", "nodes"))
    seen: dict[bytes, int] = {}
    for index, test in enumerate(spec["tests"]):
        path = ("spec", "tests", index)
        problems += _one_kind(document, test, path)
        content = digest.canonical(even({key: value for key, value in test.items() if key != "name"}))
        if (first := seen.setdefault(content, index)) != index:
            problems.append(document.problem(path, "duplicate-test", f"asks for the same as tests[{first}]"))
    return problems + _twice(document, spec["tests"], "name", ("spec", "tests"))


def _room(document: yamltree.Document) -> list[Problem]:
    """A request has to leave room for its status: without one it would never be carried out."""
    nodes = document.data["spec"]["nodes"]
    status = sum(STATUS_OF_NODE + len(node["name"]) + len(node.get("uid", "")) for node in nodes)
    if size(document.data) + status <= LIMIT:
        return []
    wanted = size({**document.data, "status": {}}) + status
    if wanted <= LIMIT:
        return []
    what = f"with its status needs {wanted} bytes, more than the {LIMIT} that can be stored"
    return [document.problem(("spec",), "too-large", what, "fewer nodes, or shorter tests, in one request")]


def _twice(document: yamltree.Document, items: list[dict], key: str, path: tuple) -> list[Problem]:
    first: dict[str, int] = {}
    problems = []
    for index, item in enumerate(items):
        value = item.get(key)
        if value is not None and first.setdefault(value, index) != index:
            what = f"{value!r} stands here twice"
            hint = f"first in {path[-1]}[{first[value]}]"
            problems.append(document.problem((*path, index, key), f"duplicate-{path[-1].rstrip('s')}", what, hint))
    return problems


def _one_kind(document: yamltree.Document, test: Mapping, path: tuple) -> list[Problem]:
    named = [key for key in ("domain", "variant") if key in test]
    if "workload" in test and named:
        what = f"has a workload and a {named[0]}"
    elif "workload" not in test and len(named) < 2:
        what = f"has no {'domain' if 'domain' not in named else 'variant'}"
    else:
        return []
    return [document.problem(path, "bad-test", what, "domain and variant of a test in the catalogue, or a workload")]


# ---------------------------------------------------------------- comparing


def even(value: object) -> object:
    """The data as an API server gives it back: 2.0 is 2."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {key: even(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [even(inner) for inner in value]
    return value


def same(one: object, other: object) -> bool:
    """Whether two specs or statuses say the same."""
    return digest.canonical(even(one)) == digest.canonical(even(other))


# ---------------------------------------------------------------- bounds


def with_status(doc: Mapping, status: Mapping) -> dict:
    """The document with that status instead of its own, texts cut to what is stored.

    Raises InvalidDocument where the status is none, or the whole is more than an object of the cluster holds.
    """
    kind = doc["kind"]
    written = {**doc, "status": _cut(status)}
    problems = faults(yamltree.Document(written, {}, f"{kind} {doc['metadata']['name']}"), kind)
    if problems:
        raise InvalidDocument(problems)
    for shorter in (_without_good_whys, _without_whys):
        if size(written) <= LIMIT:
            break
        written["status"] = shorter(written["status"])
    check_size(written)
    return written


def check_size(doc: Mapping) -> None:
    """Raises InvalidDocument where the document is more than an object of the cluster holds."""
    if (bytes_ := size(doc)) > LIMIT:
        what = f"{doc['kind']} {doc['metadata']['name']} has {bytes_} bytes, more than the {LIMIT} that can be stored"
        raise InvalidDocument(what, code="too-large", hint="fewer nodes in one request")


def size(doc: Mapping) -> int:
    return len(digest.canonical(plain(doc)))


def _cut(status: Mapping) -> dict:
    """Long texts for people are cut rather than refused."""
    cut = dict(status)
    if isinstance(cut.get("message"), str):
        cut["message"] = cut["message"][:MESSAGE]
    for part, key, limit in (("nodes", "why", WHY), ("attempts", "detail", repairrequest.MAX_DETAIL)):
        if isinstance(cut.get(part), list):
            cut[part] = [_shortened(entry, key, limit) for entry in cut[part]]
    if isinstance(cut.get("conditions"), list):
        cut["conditions"] = [_shortened(entry, "message", MESSAGE) for entry in cut["conditions"]]
    return cut


def _shortened(entry: object, key: str, limit: int) -> object:
    if isinstance(entry, Mapping) and isinstance(entry.get(key), str) and len(entry[key]) > limit:
        return {**entry, key: entry[key][:limit]}
    return entry


def _without_good_whys(status: Mapping) -> dict:
    good = ("Passed", "Opened", "Gone")
    nodes = [_without_why(node) if node["phase"] in good else node for node in status.get("nodes", [])]
    return {**status, "nodes": nodes} if nodes else dict(status)


def _without_whys(status: Mapping) -> dict:
    nodes = [_without_why(node) for node in status.get("nodes", [])]
    return {**status, "nodes": nodes} if nodes else dict(status)


def _without_why(node: Mapping) -> dict:
    return {key: value for key, value in node.items() if key != "why"}
