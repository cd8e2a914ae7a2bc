# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Strict validation of the documents: unknown keys are refused, with the line and the nearest valid name."""

from __future__ import annotations

import functools
import platform
import sys

from ansible_collections.goodput.fleet.plugins.module_utils.records import yamltree
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import (
    FleetError,
    InvalidDocument,
    Problem,
    nearest,
)

API_VERSION = "goodput.fleet/v1alpha1"
KINDS = (
    "Overlay",
    "Registry",
    "RecipeLock",
    "Snapshot",
    "DriftReport",
    "HealthEvent",
    "SignalTable",
    "QuarantinePolicy",
    "Certification",
    "WorkloadRun",
    "CertificationTest",
    "ValidationRequest",
    "RepairRequest",
    "FailureSignatures",
    "RecoveryPolicy",
    "RecoveryDecision",
)


def load(path: str, kind: str) -> yamltree.Document:
    """The document of that kind in a file. Raises NotFound, or InvalidDocument with every problem."""
    document = yamltree.load_file(path)
    check(document, kind)
    return document


def check(document: yamltree.Document, kind: str) -> None:
    """Raises InvalidDocument with every problem."""
    problems = validate(document, kind)
    if problems:
        raise InvalidDocument(problems)


def validate(document: yamltree.Document, kind: str) -> list[Problem]:
    """Every breach of the kind's schema, in the order of the file."""
    data = document.data
    if not isinstance(data, dict):
        return [
            document.problem(
                (),
                "wrong-type",
                f"is a {_type(data)}, not a {kind} document",
                f"start with apiVersion: {API_VERSION} and kind: {kind}",
            )
        ]
    found = data.get("kind")
    if found != kind:
        what = f"is of kind {found!r}, a {kind} belongs here" if found else f"has no kind, a {kind} belongs here"
        return [document.problem(("kind",), "wrong-kind", what, f"kind: {kind}")]
    if data.get("apiVersion") != API_VERSION:
        return [
            document.problem(
                ("apiVersion",),
                "wrong-version",
                f"apiVersion {data.get('apiVersion')!r} is not known",
                f"apiVersion: {API_VERSION}",
            )
        ]
    problems = [problem for error in _validator(kind).iter_errors(data) for problem in _explain(document, error)]
    return sorted(set(problems), key=lambda problem: (problem.line or 0, problem.path, problem.message))


@functools.cache
def _validator(kind: str):
    # by name, so that a module sent to another host takes the schemas along
    from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas import (
        certification,
        certificationtest,
        driftreport,
        failuresignatures,
        healthevent,
        overlay,
        quarantinepolicy,
        recipelock,
        recoverydecision,
        recoverypolicy,
        registry,
        repairrequest,
        signaltable,
        snapshot,
        validationrequest,
        workloadrun,
    )

    try:
        import jsonschema
    except ImportError as error:
        raise FleetError(
            f"the Python library jsonschema is missing on {platform.node()} ({sys.executable})",
            code="missing-library",
            hint="pip install jsonschema",
        ) from error
    schemas = (
        certification,
        certificationtest,
        driftreport,
        failuresignatures,
        healthevent,
        overlay,
        quarantinepolicy,
        recipelock,
        recoverydecision,
        recoverypolicy,
        registry,
        repairrequest,
        signaltable,
        snapshot,
        validationrequest,
        workloadrun,
    )
    found = {module.__name__.rpartition(".")[2]: module.SCHEMA for module in schemas}
    return jsonschema.Draft202012Validator(found[kind.lower()])


def _explain(document: yamltree.Document, error) -> list[Problem]:
    """jsonschema's error in words of the document."""
    path = tuple(error.absolute_path)
    rule, limit, value = error.validator, error.validator_value, error.instance
    if rule == "additionalProperties" and limit is False:
        known = error.schema.get("properties", {})
        return [
            document.problem((*path, key), "unknown-key", f"unknown key {key!r}", nearest(key, known))
            for key in value
            if key not in known
        ]
    if rule == "required":
        return [
            document.problem(
                (*path, key),
                "missing-key",
                f"{key!r} is missing",
                _describe(error.schema.get("properties", {}).get(key)),
            )
            for key in limit
            if key not in value
        ]
    if rule == "enum":
        return [document.problem(path, "bad-value", f"{_show(value)} is not allowed", nearest(value, limit))]
    if rule == "type":
        wanted = " or ".join(_WORDS.get(word, word) for word in ([limit] if isinstance(limit, str) else limit))
        message = f"{_show(value)} is {_article(_type(value))}, not {_article(wanted)}"
        return [document.problem(path, "wrong-type", message, _quote_hint(value, wanted))]
    if rule == "propertyNames":
        return [document.problem((*path, value), "bad-name", f"the key {_show(value)} is malformed", _describe(limit))]
    if rule in ("pattern", "format"):
        return [document.problem(path, "bad-value", f"{_show(value)} is malformed", _describe(error.schema))]
    if rule in ("oneOf", "anyOf") and error.context:
        return [
            document.problem(
                path, "bad-value", f"{_show(value)} fits none of the allowed forms", _describe(error.schema)
            )
        ]
    if rule in ("minimum", "maximum"):
        than = "smaller" if rule == "minimum" else "larger"
        return [document.problem(path, "bad-value", f"{_show(value)} is {than} than {limit}", _describe(error.schema))]
    if rule in ("minItems", "minProperties", "minLength"):
        return [document.problem(path, "empty", "must not be empty", _describe(error.schema))]
    return [document.problem(path, "bad-value", error.message, _describe(error.schema))]


def _describe(schema) -> str:
    return schema.get("description", "") if isinstance(schema, dict) else ""


def _show(value) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _type(value) -> str:
    names = {
        dict: "map",
        list: "list",
        str: "string",
        bool: "boolean",
        int: "integer",
        float: "number",
        type(None): "null",
    }
    return names.get(type(value), type(value).__name__)


# what JSON calls otherwise than YAML
_WORDS = {"object": "map", "array": "list"}


def _article(word: str) -> str:
    return f"an {word}" if word[0] in "aeiou" else f"a {word}"


def _quote_hint(value, wanted: str) -> str:
    return "put it in quotes" if wanted == "string" and isinstance(value, (int, float, bool)) else ""
