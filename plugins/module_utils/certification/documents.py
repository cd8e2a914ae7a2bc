# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Certifications and WorkloadRuns as users write them, made even for the plan. Pure but for reading a file.

found = load("certification.yaml")        # or a YAML text, or an object of the cluster
found["certification"]["spec"]["categories"][0]["options"]    # the document's options and the category's, merged
found["notUnderstood"]                    # [{path, value, why}] of a manifest of NVIDIA's readiness engine
"""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.certification import (
    durations,
    expected_output,
    foreign,
    storable,
)
from ansible_collections.goodput.fleet.plugins.module_utils.records import schema, yamltree
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, Problem
from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas import testing

KINDS = ("Certification", "WorkloadRun")
TIMEOUTS = ("timeoutPerJob", "startTimeout", "silenceTimeout")
WORKLOAD_ONLY = ("image", "exec", "mpi", "torch", "numNodes", "sharedMemory", "parser")
FORMS = ("exec", "mpi", "torch")
# what an API server adds to an object; of all that only the uid matters here
_MANAGED = (
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


def load(source: object, name: str = "certification (inline)") -> dict:
    """{certification, notUnderstood} from a path, a YAML text (several lines, or in braces), data, or a Document.

    certification: {apiVersion, kind: Certification, metadata, spec: {target, options, tolerateGates, limits,
    categories: [{name, options (merged), own: [names of the options it sets itself], domain, variant | workload}]}}.
    A WorkloadRun becomes a certification of one category. Raises NotFound, or InvalidDocument with every problem.
    """
    document = _document(source, name)
    data = document.data if isinstance(document.data, Mapping) else {}
    understood: list[dict] = []
    if foreign.is_foreign(data):
        document, understood = foreign.convert(document)
        data = document.data
    uid = _uid(data)
    document = _without_managed(document)
    kind = data.get("kind") if data.get("kind") in KINDS else "Certification"
    schema.check(document, kind)
    problems = storable.faults(document) or _rules(document, kind)
    if problems:
        raise InvalidDocument(sorted(problems, key=lambda problem: (problem.line or 0, problem.path)))
    return {"certification": _even(document.data, kind, uid), "notUnderstood": understood}


def _document(source: object, name: str) -> yamltree.Document:
    if isinstance(source, yamltree.Document):
        return source
    if isinstance(source, Mapping):
        return yamltree.Document(dict(source), {}, name)
    if isinstance(source, os.PathLike) or (isinstance(source, str) and not _is_text(source)):
        return yamltree.load_file(str(source))
    if isinstance(source, str):
        return yamltree.load_text(source, name)
    raise InvalidDocument(f"a certification is a path or a map, not a {type(source).__name__}", path="certification")


def _is_text(source: str) -> bool:
    """A document rather than the path of one; a template may give JSON in one line."""
    return "\n" in source or source.lstrip().startswith("{")


def _uid(data: Mapping) -> str:
    metadata = data.get("metadata")
    uid = metadata.get("uid") if isinstance(metadata, Mapping) else None
    return uid if isinstance(uid, str) else ""


def _without_managed(document: yamltree.Document) -> yamltree.Document:
    data = document.data
    if not isinstance(data, Mapping) or not isinstance(data.get("metadata"), Mapping):
        return document
    metadata = {key: value for key, value in data["metadata"].items() if key not in _MANAGED}
    cleaned = copy.copy(document)
    cleaned.data = {**data, "metadata": metadata}
    return cleaned


def _even(data: Mapping, kind: str, uid: str) -> dict:
    spec = copy.deepcopy(dict(data["spec"]))
    if kind == "WorkloadRun":
        run = {key: spec.pop(key) for key in list(spec) if key in testing.WORKLOAD}
        spec["categories"] = [{"name": _label(data["metadata"]["name"]), "workload": run}]
    options = spec.get("options", {})
    names = _names(spec["categories"])
    categories = [_category(category, name, options) for category, name in zip(spec["categories"], names, strict=True)]
    return {
        "apiVersion": schema.API_VERSION,
        "kind": "Certification",
        "metadata": {**copy.deepcopy(dict(data["metadata"])), **({"uid": uid} if uid else {})},
        "spec": {
            "target": spec["target"],
            "categories": categories,
            "options": options,
            "tolerateGates": list(dict.fromkeys(spec.get("tolerateGates", []))),
            "limits": spec.get("limits", {}),
        },
    }


def _label(name: str) -> str:
    return name.replace(".", "-")


def _names(categories: list[dict]) -> list[str]:
    """Those that are given, and for the others the variant, numbered where several have it."""
    taken = {category["name"] for category in categories if "name" in category}
    names = []
    for category in categories:
        name = category.get("name")
        if name is None:
            base = category.get("variant", "workload")[:59]
            choices = [base, *(f"{base}-{number}" for number in range(2, len(categories) + 2))]
            name = next(choice for choice in choices if choice not in taken)
            taken.add(name)
        names.append(name)
    return names


def _category(category: dict, name: str, defaults: dict) -> dict:
    own = category.get("options", {})
    if "workload" not in category:
        even = {"name": name, "domain": category["domain"], "variant": category["variant"]}
        return {**even, "options": merge(defaults, own), "own": sorted(own)}
    given = category["workload"]
    running = {key: value for key, value in given.items() if key not in WORKLOAD_ONLY}
    # an image for the tests of the catalogue is none for the site's own container
    options = merge(merge({key: value for key, value in defaults.items() if key != "image"}, running), own)
    workload = {key: given[key] for key in WORKLOAD_ONLY if key in given}
    return {"name": name, "workload": workload, "options": options, "own": sorted({*own, *running})}


def merge(defaults: Mapping, own: Mapping) -> dict:
    """Options field by field: maps and lists are replaced as a whole, but for the labels of a workload's objects."""
    merged = {**defaults, **own}
    labels = [options["workloadMetadata"].get("labels", {}) for options in (defaults, own) if _has_labels(options)]
    if len(labels) == 2:
        merged["workloadMetadata"] = {"labels": {**labels[0], **labels[1]}}
    return merged


def _has_labels(options: Mapping) -> bool:
    return isinstance(options.get("workloadMetadata"), Mapping)


# ---------------------------------------------------------------- rules between fields


def _rules(document: yamltree.Document, kind: str) -> list[Problem]:
    spec = document.data["spec"]
    problems = _target(document, spec["target"])
    if kind == "WorkloadRun":
        return problems + _workload(document, spec, ("spec",)) + _options(document, spec, ("spec",), {})
    defaults = spec.get("options", {})
    problems += _options(document, defaults, ("spec", "options"), {})
    first: dict[str, int] = {}
    same: list[tuple] = []
    for index, category in enumerate(spec["categories"]):
        path = ("spec", "categories", index)
        problems += _one_kind(document, category, path)
        if "workload" in category:
            problems += _workload(document, category["workload"], (*path, "workload"))
            problems += _options(document, category["workload"], (*path, "workload"), defaults)
        problems += _options(document, category.get("options", {}), (*path, "options"), defaults)
        name = category.get("name")
        if name is not None and first.setdefault(name, index) != index:
            message = f"there are two categories {name!r}"
            problems.append(document.problem((*path, "name"), "duplicate-category", message))
        content = {key: value for key, value in category.items() if key != "name"}
        if content in same:
            message = f"asks for the same as categories[{same.index(content)}]"
            problems.append(document.problem(path, "duplicate-category", message, "repeatCount tests more than once"))
        same.append(content)
    return problems


def _one_kind(document: yamltree.Document, category: Mapping, path: tuple) -> list[Problem]:
    named = [key for key in ("domain", "variant") if key in category]
    hint = "domain and variant of a test in the catalogue, or a workload"
    if "workload" in category:
        if named:
            return [document.problem(path, "bad-category", f"has a workload and a {named[0]}", hint)]
        return []
    if len(named) == 2:
        return []
    missing = "domain" if "domain" not in named else "variant"
    return [document.problem((*path, missing), "missing-key", f"{missing!r} is missing", hint)]


def _target(document: yamltree.Document, target: Mapping) -> list[Problem]:
    problems = []
    for index, expression in enumerate(target.get("matchExpressions", ())):
        path, operator = ("spec", "target", "matchExpressions", index, "values"), expression["operator"]
        if operator in ("In", "NotIn") and not expression.get("values"):
            problems.append(document.problem(path, "missing-key", f"{operator} needs values", "a list of label values"))
        elif operator not in ("In", "NotIn") and expression.get("values"):
            problems.append(document.problem(path, "bad-value", f"{operator} takes no values", "leave them out"))
    return problems


def _options(document: yamltree.Document, options: Mapping, path: tuple, defaults: Mapping) -> list[Problem]:
    problems = []
    for key in TIMEOUTS:
        if key in options and (fault := durations.fault(options[key])):
            problems.append(document.problem((*path, key), "bad-value", fault, "such as 30m"))
    if options.get("nicsPerNode") and not (options.get("nicResourceName") or defaults.get("nicResourceName")):
        hint = "name the extended resource, such as rdma/ib or nvidia.com/mlnxnics"
        message = "nicsPerNode needs nicResourceName"
        problems.append(document.problem((*path, "nicsPerNode"), "missing-key", message, hint))
    resources = options.get("resources", {})
    problems += _devices(document, resources, options.get("nicResourceName"), (*path, "resources"))
    for name, wanted in resources.get("requests", {}).items():
        limit = resources.get("limits", {}).get(name)
        if limit is not None and durations.quantity(wanted) > durations.quantity(limit):
            message = f"the request {wanted} is larger than the limit {limit}"
            problems.append(document.problem((*path, "resources", "requests", name), "bad-value", message))
    return problems


def _devices(document: yamltree.Document, resources: Mapping, nics: str | None, path: tuple) -> list[Problem]:
    """Devices have options of their own, which would silently win."""
    problems = []
    for part, given in resources.items():
        for name in given:
            option = "gpusPerNode" if name.endswith("/gpu") else "nicsPerNode" if name == nics else ""
            if option:
                message = f"{name} is asked for with {option}"
                problems.append(document.problem((*path, part, name), "bad-value", message, "leave it out here"))
    return problems


def _workload(document: yamltree.Document, workload: Mapping, path: tuple) -> list[Problem]:
    problems = []
    forms = [key for key in FORMS if key in workload]
    if len(forms) != 1:
        what = "has none of exec, mpi and torch" if not forms else f"has both {forms[0]} and {forms[1]}"
        problems.append(document.problem(path, "bad-workload", what, "exactly one of exec, mpi and torch"))
    torch = workload.get("torch")
    if torch is not None and ("script" in torch) == ("module" in torch):
        what = "has neither script nor module" if "script" not in torch else "has both script and module"
        problems.append(document.problem((*path, "torch"), "bad-workload", what, "one of the two"))
    if "exec" in workload and not workload["exec"]["command"]:
        problems.append(document.problem((*path, "exec", "command"), "empty", "must not be empty"))
    if "parser" in workload:
        problems += expected_output.faults(document, workload["parser"], (*path, "parser"))
    return problems
