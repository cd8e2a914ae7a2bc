"""Many nodes in one call: order, conflicts, lost answers, and a server that fails for everybody."""

from __future__ import annotations

import copy
import threading

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.gates import kubernetes
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import (
    Conflict,
    Denied,
    InvalidDocument,
    NotFound,
    Unavailable,
)

from tests.unit.gates.nodes import annotation, apply, gate, node


class Server:
    """Nodes behind the three calls that the actuator makes. `before[name]` is a list of things that happen first."""

    def __init__(self, *names: str):
        self.nodes = {name: node(name) for name in names}
        self.before: dict[str, list] = {}
        self.patches: list[str] = []
        self.lock = threading.Lock()

    def list(self, _path, **_query):
        return [copy.deepcopy(each) for each in self.nodes.values()]

    def get(self, path):
        name = path.rpartition("/")[2]
        if name not in self.nodes:
            raise NotFound("cannot get it: it is not there", code="object-missing")
        return copy.deepcopy(self.nodes[name])

    def patch(self, path, body, **_options):
        name = path.rpartition("/")[2]
        with self.lock:
            self.patches.append(name)
            happening = self.before.get(name)
            if happening:
                happening.pop(0)(body)
            return self.write(name, body)

    def write(self, name, body):
        if body["metadata"]["resourceVersion"] != self.nodes[name]["metadata"]["resourceVersion"]:
            raise Conflict("the object has been modified")
        self.nodes[name] = apply(self.nodes[name], body)
        return copy.deepcopy({"metadata": self.nodes[name]["metadata"]})

    def somebody_labels(self, name):
        changed = copy.deepcopy(self.nodes[name])
        changed["metadata"]["resourceVersion"] = str(int(changed["metadata"]["resourceVersion"]) + 1)
        self.nodes[name] = changed


def raises(error):
    def act(_body):
        raise error

    return act


def test_two_owners_of_one_node_are_written_one_after_the_other():
    server = Server("a", "b")
    wants = [{"node": name, **gate(owner)} for owner in ("quarantine", "manual") for name in ("a", "b")]
    results = kubernetes.hold_many(server, wants)
    assert [(each["node"], each["owner"]) for each in results] == [(each["node"], each["owner"]) for each in wants]
    assert [each["gates"] for each in results] == [["quarantine"]] * 2 + [["manual", "quarantine"]] * 2
    assert sorted(server.patches) == ["a", "a", "b", "b"]  # the second needs no reading


def test_what_the_caller_has_read_is_used_and_read_again_when_it_is_old():
    server = Server("a")
    read = kubernetes.read_nodes(server)
    server.somebody_labels("a")
    results = kubernetes.hold_many(server, [{"node": "a", **gate()}], nodes=read)
    assert results[0]["status"] == "held" and server.patches == ["a", "a"]


def test_an_answer_that_was_lost_is_told_apart_from_somebody_elses_gate():
    lost = Conflict("the object has been modified")
    lost.attempts = 2  # the client had sent it before
    server = Server("a", "b")

    def written_and_lost(body):
        server.write("a", body)
        raise lost

    def another_run_was_quicker(body):
        server.write("b", body)

    server.before = {"a": [written_and_lost], "b": [another_run_was_quicker]}
    results = kubernetes.hold_many(server, [{"node": name, **gate()} for name in ("a", "b")])
    assert [(each["status"], each["changed"]) for each in results] == [("held", True), ("unchanged", False)]


def test_conflicts_without_end_fail_that_node_alone():
    server = Server("a", "b")
    server.before["a"] = [lambda _body: server.somebody_labels("a")] * 100
    results = kubernetes.hold_many(server, [{"node": name, **gate()} for name in ("a", "b", "c")])
    assert [each.get("code", each["status"]) for each in results] == ["conflict", "held", "not-found"]
    assert server.patches.count("a") == kubernetes.CONFLICTS + 1
    assert "metadata" in server.nodes["a"] and "annotations" not in server.nodes["a"]["metadata"]


def test_a_server_that_fails_for_node_after_node_is_given_up():
    names = [f"n{index:03d}" for index in range(100)]
    server = Server(*names)
    server.before = {name: [raises(Unavailable("answered 500"))] for name in names}
    results = kubernetes.hold_many(server, [{"node": name, **gate()} for name in names], workers=2)
    assert {each["code"] for each in results} == {"unavailable"} and len(server.patches) < 10
    # what is denied is denied for a node, and says nothing about the server
    server.before = {name: [raises(Denied("forbidden"))] for name in names}
    results = kubernetes.hold_many(server, [{"node": name, **gate()} for name in names], workers=2)
    assert {each["code"] for each in results} == {"denied"}


def test_nothing_is_written_when_one_gate_is_not_valid():
    server = Server("a", "b")
    with pytest.raises(InvalidDocument) as caught:
        kubernetes.hold_many(server, [{"node": "a", **gate()}, {"node": "", **gate("Not Good")}])
    assert [each.path for each in caught.value.problems] == ["gates[1].owner", "gates[1].node"]
    with pytest.raises(InvalidDocument, match="is not the name of an owner"):
        kubernetes.release_many(server, [{"node": "a"}, {"node": "b"}])
    assert server.patches == []


def test_check_mode_asks_and_writes_nothing():
    server = Server("a")
    results = kubernetes.hold_many(server, [{"node": "a", **gate(cordon=True)}], check_mode=True)
    assert (results[0]["status"], results[0]["gates"], server.patches) == ("held", ["quarantine"], [])
    assert results[0]["diff"]["after"]["unschedulable"] is True


def test_since_is_now_and_stays():
    server = Server("a")
    want = {"node": "a", "owner": "quarantine", "reason": "r"}
    kubernetes.hold_many(server, [want])
    since = annotation(server.nodes["a"], "quarantine")["since"]
    assert since.startswith("20") and since.endswith("Z")
    server.nodes["a"]["metadata"]["annotations"]["gate.goodput.fleet/quarantine"] = server.nodes["a"]["metadata"][
        "annotations"
    ]["gate.goodput.fleet/quarantine"].replace(since, "2020-01-01T00:00:00Z")
    assert kubernetes.hold_many(server, [want])[0]["status"] == "unchanged"
    kubernetes.hold_many(server, [{**want, "reason": "another"}])
    assert annotation(server.nodes["a"], "quarantine")["since"] == "2020-01-01T00:00:00Z"
