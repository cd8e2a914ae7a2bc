# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""QuarantinePolicy: loaded, checked and compiled.

policy = load("gitops/catalog/policies/default.yaml")     # or data, or text
policy.mode, policy.digest, [rule.name for rule in policy.rules]
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass

from ansible_collections.goodput.fleet.plugins.module_utils.quarantine import moments, scope
from ansible_collections.goodput.fleet.plugins.module_utils.records import digest, schema, taints, yamltree
from ansible_collections.goodput.fleet.plugins.module_utils.records.cel import CelError, Expression
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, Problem, nearest
from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas.quarantinepolicy import MODES

KIND = "QuarantinePolicy"
OWNER = "quarantine"
GATE_KEY = "gate.goodput.fleet"
# nodes that share NVLink, and where no label tells that, a rack or the switch above it
DOMAIN_LABELS = (
    "nvidia.com/gpu.clique",
    "network.topology.nvidia.com/accelerator",
    "goodput.fleet/rack",
    "topology.kubernetes.io/rack",
    "cloud.google.com/gce-topology-subblock",
    "topology.k8s.aws/network-node-layer-3",
    "oci.oraclecloud.com/rdma.local_block_id",
)
MAX_AGE, WINDOW, NEAR = "1h", "1h", "2m"
FLEET = {"max": 20, "percent": 5}
DOMAIN = {"max": 2, "percent": 50}


@dataclass(frozen=True, slots=True)
class Bound:
    """Nodes at most: `maximum`, and `percent` of the inventory but always one. None: no bound of that kind."""

    maximum: int | None
    percent: float | None

    def of(self, nodes: int) -> int:
        """The bound for that many nodes."""
        share = nodes if self.percent is None else max(1, int(nodes * self.percent / 100 + 1e-9))
        return share if self.maximum is None else min(self.maximum, share)


@dataclass(frozen=True, slots=True)
class Breaker:
    """`window` in seconds; of `labels` the first that a node has names its domain."""

    window: int
    fleet: Bound
    domain: Bound
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rule:
    name: str
    digest: str
    mode: str
    priority: int
    expression: Expression
    classes: frozenset[str]
    owner: str
    reason: str
    taint: dict
    cordon: bool
    reclose: bool


@dataclass(frozen=True, slots=True)
class Policy:
    """`rules` are in the order in which they are asked: highest priority first. Ages and windows are seconds."""

    name: str
    digest: str
    mode: str
    rules: tuple[Rule, ...]
    breaker: Breaker
    max_age: int
    near: int
    labels: tuple[str, ...]

    def capped(self, mode: str) -> Policy:
        """The same, with no rule above that mode."""
        return dataclasses.replace(self, mode=lower(self.mode, mode))

    def enforced(self) -> Policy:
        """The same as if every rule were enforced, for a back-test."""
        rules = tuple(dataclasses.replace(rule, mode="enforce") for rule in self.rules)
        return dataclasses.replace(self, mode="enforce", rules=rules)


def lower(one: str, other: str) -> str:
    """The lower of two modes."""
    return min(one, other, key=MODES.index)


def load(source: object, name: str = "policy (inline)") -> Policy:
    """From a path, a YAML text (of more than one line), data, or a Document.

    Raises NotFound, or InvalidDocument with every problem: file, line, and the place within an expression.
    """
    document = _document(source, name)
    schema.check(document, KIND)
    spec = document.data["spec"]
    problems = _names(document, spec) + _bounds(document, spec)
    rules = []
    for index, rule in enumerate(spec["rules"]):
        try:
            rules.append(_rule(rule))
        except CelError as error:
            problems.append(_place(document, index, rule["expression"], error))
    if problems:
        raise InvalidDocument(sorted(problems, key=lambda problem: (problem.line or 0, problem.path)))
    breaker = spec.get("breaker", {})
    domain = breaker.get("domain", {})
    labels = _labels(domain.get("label"), DOMAIN_LABELS)
    near = spec.get("correlation", {})
    return Policy(
        name=document.data["metadata"]["name"],
        digest=digest.sha256(spec),
        mode=spec.get("mode", MODES[0]),
        rules=tuple(sorted(rules, key=lambda rule: (-rule.priority, rule.name))),
        breaker=Breaker(
            moments.seconds(breaker.get("window", WINDOW)),
            _bound(breaker.get("fleet"), FLEET),
            _bound({key: value for key, value in domain.items() if key != "label"}, DOMAIN),
            labels,
        ),
        max_age=moments.seconds(spec.get("maxAge", MAX_AGE)),
        near=moments.seconds(near.get("window", NEAR)),
        labels=_labels(near.get("domain", {}).get("label"), labels),
    )


def _document(source: object, name: str) -> yamltree.Document:
    if isinstance(source, yamltree.Document):
        return source
    if isinstance(source, Mapping):
        return yamltree.Document(source, {}, name)
    if isinstance(source, os.PathLike) or (isinstance(source, str) and "\n" not in source):
        return yamltree.load_file(str(source))
    if isinstance(source, str):
        return yamltree.load_text(source, name)
    raise InvalidDocument(f"a policy is a path or a map, not a {type(source).__name__}", path="policy")


def _names(document: yamltree.Document, spec: dict) -> list[Problem]:
    problems, first = [], {}
    for index, rule in enumerate(spec["rules"]):
        path = ("spec", "rules", index, "name")
        before = first.setdefault(rule["name"], path)
        if before != path:
            line = document.line(before)
            message = f"there are two rules {rule['name']!r}"
            problems.append(document.problem(path, "duplicate-rule", message, f"first on line {line}" if line else ""))
    return problems


def _bounds(document: yamltree.Document, spec: dict) -> list[Problem]:
    """A gate that does nothing, or that no node takes, would be counted and hold nobody back."""
    problems = []
    for index, rule in enumerate(spec["rules"]):
        gate = rule.get("gate", {})
        if gate.get("taint"):
            for wrong in taints.problems(gate["taint"]):
                path = ("spec", "rules", index, "gate", *wrong.path.split("."))
                problems.append(document.problem(path, "bad-taint", wrong.message, wrong.hint))
    return problems


def _place(document: yamltree.Document, index: int, text: str, error: CelError) -> Problem:
    path = ("spec", "rules", index, "expression")
    place = f"line {error.line}, column {error.column}" if "\n" in text.strip() else f"column {error.column}"
    name = document.data["spec"]["rules"][index]["name"]
    return document.problem(path, "bad-expression", f"rule {name}: {place}: {error.message}", error.hint)


def _rule(rule: dict) -> Rule:
    gate = rule.get("gate", {})
    owner = gate.get("owner", OWNER)
    taint = gate.get("taint", {"key": f"{GATE_KEY}/{owner}", "value": rule["name"], "effect": "NoSchedule"})
    return Rule(
        name=rule["name"],
        digest=digest.sha256(rule),
        mode=rule.get("mode", MODES[-1]),
        priority=rule.get("priority", 0),
        expression=scope.environment().compile(rule["expression"]),
        classes=frozenset(rule.get("classes", ())),
        owner=owner,
        reason=gate.get("reason", ""),
        taint={"value": "", **taint},
        cordon=gate.get("cordon", False),
        reclose=gate.get("reclose", False),
    )


def _bound(given: dict | None, default: dict) -> Bound:
    given = given or default
    return Bound(given.get("max"), given.get("percent"))


def _labels(given: str | list | None, default: tuple[str, ...]) -> tuple[str, ...]:
    return default if given is None else (given,) if isinstance(given, str) else tuple(given)


def rule(policy: Policy, name: str) -> Rule:
    """The rule of that name. Raises InvalidDocument."""
    for one in policy.rules:
        if one.name == name:
            return one
    names = [one.name for one in policy.rules]
    raise InvalidDocument(f"the policy {policy.name} has no rule {name!r}", path="rule", hint=nearest(name, names))


def describe(policy: Policy) -> dict:
    """The policy as data: {name, digest, mode, rules, breaker}."""
    rules = [
        {
            "name": one.name,
            "mode": lower(policy.mode, one.mode),
            "priority": one.priority,
            "expression": one.expression.text,
            "classes": sorted(one.classes),
            "owner": one.owner,
            "reason": one.reason,
            "taint": one.taint,
            "cordon": one.cordon,
            "reclose": one.reclose,
            "digest": one.digest,
        }
        for one in policy.rules
    ]
    breaker = policy.breaker
    bounds = {
        name: {"max": bound.maximum, "percent": bound.percent}
        for name, bound in (("fleet", breaker.fleet), ("domain", breaker.domain))
    }
    return {
        "name": policy.name,
        "digest": policy.digest,
        "mode": policy.mode,
        "rules": rules,
        "breaker": {"window": breaker.window, **bounds, "labels": list(breaker.labels)},
    }
