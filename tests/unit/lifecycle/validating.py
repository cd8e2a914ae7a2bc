"""A fleet of raw nodes that passes are made over, as the module makes them, without a cluster."""

from __future__ import annotations

import copy
import json
from datetime import UTC, datetime, timedelta

from ansible_collections.goodput.fleet.plugins.module_utils.gates import hosts, model
from ansible_collections.goodput.fleet.plugins.module_utils.gates.fleet import is_gpu_node
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle import (
    batches,
    newcomers,
    nodefacts,
    requests,
    validation,
)

TESTS = [{"domain": "diagnostics", "variant": "dcgm-level1"}]
OTHER_TESTS = [{"domain": "diagnostics", "variant": "dcgm-level2"}]
BEGIN = datetime(2026, 3, 6, 9, 0, tzinfo=UTC)
OLD, LATER = "2026-01-01T00:00:00Z", "2026-03-06T09:00:00Z"
GATE = "gate.goodput.fleet/validation"


class Killed(Exception):
    """The process dies, right before or right after one of its writes."""


def raw(name: str, uid: str = "", created: str = OLD, driver: str = "580.105.08", gpus: int = 8, **spec) -> dict:
    return {
        "metadata": {
            "name": name,
            "uid": uid or f"uid-{name}",
            "creationTimestamp": created,
            "resourceVersion": "1",
            "annotations": {},
            "labels": {"nvidia.com/cuda.driver-version.full": driver, "goodput.fleet/rack": f"rack-{name[-1]}"},
        },
        "spec": spec,
        "status": {
            "nodeInfo": {"bootID": f"boot-1-{name}", "kernelVersion": "6.8"},
            "capacity": {"nvidia.com/gpu": str(gpus)} if gpus else {},
            "allocatable": {"nvidia.com/gpu": str(gpus)} if gpus else {},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


class Fleet:
    """`bad`: nodes that fail; `evidence`: {batch: proof}; `killed_at`: number of the write that is the last."""

    def __init__(self, *nodes: dict, **policy):
        self.nodes = {node["metadata"]["name"]: copy.deepcopy(node) for node in nodes}
        self.requests: dict[str, dict] = {}
        self.evidence: dict[str, dict] = {}
        self.bad: dict[str, str] = {}
        self.now = BEGIN
        self.adopted = newcomers.adoption(self.nodes.values())
        self.policy = {"settle": 0, "batch_seconds": 0, "max_out": validation.Bound(100, True)} | policy
        self.policy.setdefault("max_out_domain", validation.Bound(100, True))
        self.writes, self.killed_at, self.opened_on = 0, 0, {}
        self.certified: list[str] = []

    def facts(self) -> nodefacts.Fleet:
        return nodefacts.Fleet(
            self.nodes, lambda node: nodefacts.facts(node, hosts.host(node)["facts"], is_gpu_node(node))
        )

    def request(self, reason: str = "changed", *names: str, tests: list = TESTS, retries: int = 0) -> dict:
        facts = self.facts()
        named = [{key: facts[name][key] for key in ("name", "uid", "bootId")} for name in names]
        document = requests.make(reason, named, tests, retries=retries)
        self.requests[document["metadata"]["name"]] = document
        return document

    def decide(self, **policy) -> validation.Plan:
        options = validation.Policy(tests=TESTS, **{**self.policy, **policy})
        documents = copy.deepcopy(list(self.requests.values()))
        return validation.decide(self.facts(), documents, self.evidence, options, self.adopted, self.now)

    def once(self, **policy) -> validation.Plan:
        """A pass as node_validation makes it."""
        self.now += timedelta(seconds=1)
        for _look in range(3):
            plan = self.decide(**policy)
            if not (plan.create or plan.holds):
                break
            for document in plan.create:
                self._write(lambda document=document: self.requests.setdefault(document["metadata"]["name"], document))
            for want in plan.holds:
                self._write(lambda want=want: self._hold(want))
        for name, status in plan.statuses.items():
            self._write(lambda name=name, status=status: self._status(name, status))
        results = []
        for want in plan.releases:
            self._write(lambda want=want: results.append(self._release(want)))
        for name, status in plan.conclude(results).items():
            self._write(lambda name=name, status=status: self._status(name, status))
        return plan

    def run(self, rounds: int = 10, **policy) -> validation.Plan:
        """Passes and certifications until nothing goes on."""
        for _round in range(rounds):
            plan = self.once(**policy)
            if not plan.goes_on:
                return plan
            for document in plan.certifications:
                self.certify(document)
        raise AssertionError("it does not come to an end")

    def certify(self, document: dict) -> None:
        name = document["metadata"]["name"]
        if name in self.evidence:
            raise AssertionError(f"{name} is certified twice")
        self.certified.append(name)
        rows = []
        for node in document["spec"]["target"]["nodeNames"]:
            verdict = self.bad.get(node, "pass") if node in self.nodes else "unknown"
            rows.append({"node": node, "verdict": verdict, "mayOpenGate": verdict == "pass", "reasons": [verdict]})
        about = {"certification": document}
        results = {"nodes": rows, "finished": self.now.isoformat()}
        self.evidence[name] = batches.proof(about, results, f"sha256:{name}")

    def hold(self, owner: str, *names: str, **gate: str) -> None:
        for name in names:
            self._hold({"node": name, "owner": owner, "reason": "sick", **gate})

    def release(self, owner: str, *names: str) -> None:
        for name in names:
            self.nodes[name] = model.applied(self.nodes[name], model.release(self.nodes[name], owner).patch)

    def reboot(self, name: str) -> None:
        info = self.nodes[name]["status"]["nodeInfo"]
        info["bootID"] = f"boot-{int(info['bootID'].split('-')[1]) + 1}-{name}"

    def set_driver(self, name: str, version: str) -> None:
        self.nodes[name]["metadata"]["labels"]["nvidia.com/cuda.driver-version.full"] = version

    def gate(self, name: str) -> dict | None:
        return nodefacts.gate(self.facts()[name], "validation")

    def open(self) -> list[str]:
        return sorted(name for name, node in self.facts().items() if node["open"])

    def phases(self, request: dict | str) -> dict[str, str]:
        name = request if isinstance(request, str) else request["metadata"]["name"]
        return {each["name"]: each["phase"] for each in self.requests[name]["status"]["nodes"]}

    def phase(self, request: dict) -> str:
        return self.requests[request["metadata"]["name"]]["status"]["phase"]

    def why(self, request: dict, node: str) -> str:
        entries = self.requests[request["metadata"]["name"]]["status"]["nodes"]
        return next(each["why"] for each in entries if each["name"] == node)

    def state(self) -> dict:
        """All that is written, without times."""
        requests_ = {
            name: {key: value for key, value in document.get("status", {}).items() if not key.endswith("At")}
            for name, document in self.requests.items()
        }
        annotations = {}
        for name, node in self.nodes.items():
            texts = {key: json.loads(text) for key, text in node["metadata"]["annotations"].items()}
            annotations[name] = {key: {**text, "since": "", "at": ""} for key, text in texts.items()}
        return {"requests": requests_, "nodes": annotations}

    def _write(self, act) -> None:
        """One number for right before it, one for right after."""
        for before in (True, False):
            self.writes += 1
            if self.writes == self.killed_at:
                raise Killed
            if before:
                act()

    def _hold(self, want: dict) -> None:
        gate = {**want, "since": self.now.strftime("%Y-%m-%dT%H:%M:%SZ")}
        change = model.hold(self.nodes[want["node"]], gate)
        if change.patch:
            self.nodes[want["node"]] = model.applied(self.nodes[want["node"]], change.patch)

    def _release(self, want: dict) -> dict:
        node = self.nodes[want["node"]]
        change = model.release(node, want["owner"], want)
        if change.patch:
            change.patch["metadata"]["annotations"].update(want["annotations"])
            node = self.nodes[want["node"]] = model.applied(node, change.patch)
            self.opened_on[want["node"]] = nodefacts.basis(self.facts()[want["node"]])
        seen = model.state(node)
        return {
            "status": change.status,
            "reason": change.reason,
            "open": seen["open"],
            "gates": [each["owner"] for each in seen["gates"]],
            "external": seen["external"],
        }

    def _status(self, name: str, status: dict) -> None:
        self.requests[name] = {**self.requests[name], "status": copy.deepcopy(status)}
