"""The custom resource definitions in gitops/crds, made from the schemas of the documents: python -m tests.tools.crds.

An API server takes structural schemas only: no closed maps (it drops unknown fields, and kubectl refuses them), no
types to choose from, and rules between fields in CEL.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from ansible_collections.goodput.fleet.plugins.module_utils.records import yamltree
from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas import (
    certification,
    repairrequest,
    validationrequest,
    workloadrun,
)

FOLDER = Path(__file__).parents[2] / "gitops" / "crds"
GROUP, VERSION = "goodput.fleet", "v1alpha1"
KEPT = (
    "type",
    "description",
    "enum",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
)
ONE_KIND = {
    "rule": "has(self.workload) ? !has(self.domain) && !has(self.variant) : has(self.domain) && has(self.variant)",
    "message": "a category has domain and variant of a test in the catalogue, or a workload",
}
ONE_FORM = {
    "rule": "[has(self.exec), has(self.mpi), has(self.torch)].filter(x, x).size() == 1",
    "message": "exactly one of exec, mpi and torch",
}
ONE_TORCH = {
    "rule": "has(self.script) != has(self.module)",
    "message": "exactly one of script and module",
}
FROZEN = {"rule": "self == oldSelf", "message": "what was asked for is not changed: make another one"}
SHORT_NAME = {"rule": "self.metadata.name.size() <= 63", "message": "a name has at most 63 characters"}


def definition(
    kind: str, plural: str, spec: dict[str, Any], status: dict[str, Any], columns: list[tuple[str, str, str]]
) -> dict[str, Any]:
    """`spec` is a schema of ours, `status` is as an API server takes it."""
    whole = structural(spec)
    add_rules(kind, whole)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()},
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [
                        {"name": name, "type": kind_, "jsonPath": path} for name, kind_, path in columns
                    ],
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "required": ["spec"],
                            "properties": {
                                "apiVersion": {"type": "string"},
                                "kind": {"type": "string"},
                                "metadata": {"type": "object"},
                                "spec": whole,
                                "status": status,
                            },
                            "x-kubernetes-validations": [SHORT_NAME],
                        }
                    },
                }
            ],
        },
    }


def structural(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema of ours as an API server takes it."""
    found = {key: copy.deepcopy(schema[key]) for key in KEPT if key in schema}
    if "enum" in found:
        found.setdefault("type", "string")
    if isinstance(found.get("type"), list) and "null" in found["type"]:
        found |= {"type": next(name for name in found["type"] if name != "null"), "nullable": True}
    if found.get("type") == "object" and not schema.keys() & {"properties", "additionalProperties"}:
        found["x-kubernetes-preserve-unknown-fields"] = True
    if isinstance(found.get("type"), list):  # quantities and values of variables
        for key in ("type", "minimum"):
            found.pop(key, None)
        found |= {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}
    if "pattern" in schema:
        found["pattern"] = schema["pattern"].removesuffix(r"(?!\n)")  # there `$` is the end of the text anyway
    if schema.get("required"):
        found["required"] = list(schema["required"])
    if "properties" in schema:
        found["properties"] = {name: structural(one) for name, one in schema["properties"].items()}
    if isinstance(schema.get("additionalProperties"), dict):
        found["additionalProperties"] = structural(schema["additionalProperties"])
    if "items" in schema:
        found["items"] = structural(schema["items"])
    return found


def add_rules(kind: str, spec: dict[str, Any]) -> None:
    spec["x-kubernetes-validations"] = [FROZEN]
    if kind == "RepairRequest":
        return
    if kind == "ValidationRequest":  # no node twice
        spec["properties"]["nodes"] |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
    if kind == "WorkloadRun":
        workload = spec
    else:
        category = spec["properties"]["tests" if kind == "ValidationRequest" else "categories"]["items"]
        category["x-kubernetes-validations"] = [ONE_KIND]
        workload = category["properties"]["workload"]
        workload["x-kubernetes-validations"] = []
    workload["x-kubernetes-validations"].append(ONE_FORM)
    workload["properties"]["torch"]["x-kubernetes-validations"] = [ONE_TORCH]


def status_of_run() -> dict[str, Any]:
    """Of a Certification or WorkloadRun; what is measured lies in the evidence."""
    text = {"type": "string"}
    moment = {"type": "string", "format": "date-time"}
    condition = {
        "type": "object",
        "required": ["type", "status"],
        "properties": {
            "type": text,
            "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
            "reason": text,
            "message": text,
            "lastTransitionTime": moment,
            "observedGeneration": {"type": "integer", "format": "int64"},
        },
    }
    node = {
        "type": "object",
        "required": ["name", "verdict"],
        "properties": {"name": text, "verdict": text, "why": text},
    }
    return {
        "type": "object",
        "properties": {
            "phase": text,
            "message": text,
            "observedGeneration": {"type": "integer", "format": "int64"},
            "startedAt": moment,
            "finishedAt": moment,
            "conditions": {
                "type": "array",
                "items": condition,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["type"],
            },
            "counts": {
                "type": "object",
                "description": "nodes by verdict",
                "additionalProperties": {"type": "integer"},
            },
            "nodes": {
                "type": "array",
                "description": "the verdict on each node",
                "items": node,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
            },
            "evidence": {
                "type": "object",
                "properties": {"digest": text, "location": text},
            },
        },
    }


RUN = [
    ("Phase", "string", ".status.phase"),
    ("Passed", "integer", ".status.counts.pass"),
    ("Failed", "integer", ".status.counts.fail"),
    ("Started", "date", ".status.startedAt"),
    ("Age", "date", ".metadata.creationTimestamp"),
]
VALIDATION = [
    ("Phase", "string", ".status.phase"),
    ("Reason", "string", ".spec.reason"),
    ("Opened", "integer", ".status.counts.opened"),
    ("Failed", "integer", ".status.counts.failed"),
    ("Message", "string", ".status.message"),
    ("Age", "date", ".metadata.creationTimestamp"),
]
REPAIR = [
    ("Node", "string", ".spec.node.name"),
    ("Fault", "string", ".spec.fault.code"),
    ("Phase", "string", ".status.phase"),
    ("Rung", "string", ".status.rung"),
    ("Ticket", "string", ".status.ticket.reference"),
    ("Age", "date", ".metadata.creationTimestamp"),
]


def definitions() -> dict[str, dict[str, Any]]:
    """File name -> definition."""
    run, validation, repair = status_of_run(), structural(validationrequest.STATUS), structural(repairrequest.STATUS)
    kinds = (
        ("Certification", certification.SPEC, run, RUN),
        ("RepairRequest", repairrequest.SPEC, repair, REPAIR),
        ("ValidationRequest", validationrequest.SPEC, validation, VALIDATION),
        ("WorkloadRun", workloadrun.SPEC, run, RUN),
    )
    return {
        f"{kind.lower()}s.yaml": definition(kind, f"{kind.lower()}s", spec, status, columns)
        for kind, spec, status, columns in kinds
    }


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, found in definitions().items():
        (FOLDER / name).write_text(yamltree.dump(found), encoding="utf-8")
        print(FOLDER / name)


if __name__ == "__main__":
    main()
