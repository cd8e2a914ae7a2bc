"""Events, nodes and policies of the tests, as short as they can be."""

from __future__ import annotations

import datetime
import itertools

from ansible_collections.goodput.fleet.plugins.module_utils.quarantine import policy as policies
from ansible_collections.goodput.fleet.plugins.module_utils.quarantine.decide import decide

NOW = datetime.datetime(2026, 11, 29, 18, 0, tzinfo=datetime.UTC)
CLIQUE = "nvidia.com/gpu.clique"
_NUMBERS = itertools.count()


def at(minutes: float = 0) -> str:
    """A time that many minutes before now."""
    return (NOW - datetime.timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def event(node: str = "n0", code: str | None = "79", minutes: float = 5, **spec) -> dict:
    """A fatal Xid of GPU 0, unless told otherwise. `name` in `spec` is the document's."""
    name = spec.pop("name", None) or f"event-{next(_NUMBERS):08}"
    pci = spec.pop("pci", "0000:01:00")
    base = {
        "nodeName": node,
        "agent": "kernel-log",
        "componentClass": "GPU",
        "checkName": "SysLogsXIDError",
        "isFatal": True,
        "isHealthy": False,
        "errorCode": [code] if code else [],
        "codeSpace": "xid",
        "entitiesImpacted": [{"entityType": "PCI", "entityValue": pci}] if pci else [],
        "recommendedAction": "RESTART_BM",
        "message": f"Xid {code}",
        "receivedTimestamp": at(minutes),
    }
    metadata = {"name": name}
    return {
        "apiVersion": "goodput.fleet/v1alpha1",
        "kind": "HealthEvent",
        "metadata": metadata,
        "spec": {**base, **spec},
    }


def node(name: str = "n0", domain: str | None = None, **facts) -> dict:
    labels = {CLIQUE: domain} if domain else {}
    return {
        "name": name,
        "annotations": {},
        "taints": [],
        "unschedulable": False,
        "ready": "True",
        "bootId": "boot-1",
        "providerId": "",
        "conditions": {},
        "gates": [],
        "external": [],
        "resourceVersion": "1",
        **facts,
        "labels": {**labels, **facts.get("labels", {})},
    }


def nodes(count: int, domain: str | None = None) -> list[dict]:
    return [node(f"n{number}", domain) for number in range(count)]


def rule(name: str = "fatal", expression: str = "event.isFatal", **more) -> dict:
    return {"name": name, "expression": expression, **more}


def document(*rules: dict, **spec) -> dict:
    return {
        "apiVersion": "goodput.fleet/v1alpha1",
        "kind": "QuarantinePolicy",
        "metadata": {"name": "test"},
        "spec": {"mode": "enforce", "rules": list(rules) or [rule()], **spec},
    }


def policy(*rules: dict, **spec) -> policies.Policy:
    return policies.load(document(*rules, **spec))


def open_wide(**breaker) -> dict:
    """A breaker that does not stand in the way."""
    return {"fleet": {"percent": 100}, "domain": {"percent": 100}, **breaker}


def run(events: list[dict], inventory: list[dict] | None = None, ledger=(), now=NOW, policy_=None, **spec) -> dict:
    """The decision, by default of a rule that is true for all that is fatal and a breaker that never opens."""
    made = policy_ or policy(**{"breaker": open_wide(), **spec})
    return decide(made, events, inventory if inventory is not None else nodes(4), ledger, now)


def gated(decision: dict) -> list[str]:
    return sorted(gate["node"] for gate in decision["gates"])
