"""The breaker's ledger on a real API server: writers at once lose nothing and never pass the bound."""

from __future__ import annotations

import concurrent.futures
import datetime
import json
from collections.abc import Iterator

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.connection import connect
from ansible_collections.goodput.fleet.plugins.module_utils.gates import ledger
from ansible_collections.goodput.fleet.plugins.module_utils.quarantine import breaker, moments, policy
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, NotFound

from tests.simfleet import EmbeddedCluster

pytestmark = pytest.mark.cluster

NAME, HOUR = "goodput-quarantine", 3600
NOW = datetime.datetime(2026, 11, 29, 18, 0, tzinfo=datetime.UTC)
NODES = [f"gpu-{number:03}" for number in range(200)]


@pytest.fixture
def clients(cluster: EmbeddedCluster) -> Iterator[list]:
    made = [connect({"kubeconfig": str(cluster.kubeconfig)}) for _each in range(4)]
    yield made
    for client in made:
        client.close()


def admit(most: int, per_domain: int = 1000):
    bounds = policy.Breaker(HOUR, policy.Bound(most, None), policy.Bound(per_domain, None), ())
    domains = {node: f"rack-{number // 20}" for number, node in enumerate(NODES)}
    return breaker.admission(bounds, domains, moments.of(NOW))


def entry(node: str, evidence: str = "e") -> dict:
    base = {"node": node, "domain": "", "owner": "quarantine", "rule": "r", "ruleDigest": "sha256:1"}
    return {**base, "evidence": evidence, "at": "2026-11-29T18:00:00Z"}


def reserve(client, namespace: str, nodes: list[str], most: int, per_domain: int = 1000) -> ledger.Reserved:
    wanted = [entry(node) for node in nodes]
    return ledger.reserve(client, namespace, NAME, wanted, admit(most, per_domain), NOW, window=HOUR)


def nodes_of(entries: list[dict]) -> list[str]:
    return [one["node"] for one in entries]


def test_writers_at_once_lose_nothing(clients, namespace):
    parts = [NODES[number::8] for number in range(8)]

    def write(number: int) -> list[str]:
        found = [reserve(clients[number % 4], namespace, [node], 1000) for node in parts[number]]
        return [node for one in found for node in nodes_of(one.admitted)]

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        admitted = [node for part in pool.map(write, range(8)) for node in part]
    stored = nodes_of(ledger.read(clients[0], namespace, NAME).entries)
    assert sorted(admitted) == sorted(stored) == NODES


def test_writers_at_once_never_pass_the_bound(clients, namespace):
    def write(number: int) -> ledger.Reserved:
        return reserve(clients[number % 4], namespace, NODES[number * 20 : number * 20 + 20], 30, 7)

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        found = list(pool.map(write, range(8)))
    admitted = [node for one in found for node in nodes_of(one.admitted)]
    stored = nodes_of(ledger.read(clients[0], namespace, NAME).entries)
    assert len(admitted) == 30 and sorted(admitted) == sorted(stored)
    racks = [int(node.removeprefix("gpu-")) // 20 for node in stored]
    assert max(racks.count(rack) for rack in set(racks)) <= 7
    blocked = [one for part in found for one in part.blocked]
    assert len(blocked) == 130 and {one["scope"] for one in blocked} == {"fleet", "domain"}


def test_a_killed_run_is_counted_and_done_again_on_its_own_entries(clients, namespace):
    assert nodes_of(reserve(clients[0], namespace, NODES[:3], 3).admitted) == NODES[:3]
    # the run ends here, before it wrote a gate; the next one is another process
    again = reserve(clients[1], namespace, NODES[:4], 3)
    assert nodes_of(again.admitted) == NODES[:3] and nodes_of(again.blocked) == NODES[3:4]
    ledger.confirm(clients[1], namespace, NAME, again.admitted, NOW, window=HOUR)
    assert [one.get("held") for one in ledger.read(clients[0], namespace, NAME).entries] == [True] * 3


def test_a_namespace_that_is_missing_is_an_error(clients, namespace):
    """With a misspelt name the breaker would begin anew."""
    with pytest.raises(NotFound, match=f"no namespace {namespace}-typo"):
        reserve(clients[0], f"{namespace}-typo", NODES[:1], 3)


def test_unreadable_content_stops_the_run_and_stays(cluster, clients, namespace):
    body = {"metadata": {"name": NAME}, "data": {"ledger": '[{"node": '}}
    cluster.api.create(f"/api/v1/namespaces/{namespace}/configmaps", body)
    with pytest.raises(InvalidDocument, match="nothing is gated while its state is unknown"):
        reserve(clients[0], namespace, NODES[:1], 3)
    stored = clients[0].get(f"/api/v1/namespaces/{namespace}/configmaps/{NAME}")
    assert stored["data"] == body["data"]


def test_a_window_of_thousands_fits(clients, namespace):
    many = [f"a-rather-long-name-of-a-node-{number:05}.example.com" for number in range(2000)]
    wanted = [entry(node) for node in many]
    ledger.reserve(clients[0], namespace, NAME, wanted, lambda _held, asked: (asked, []), NOW, window=HOUR)
    stored = clients[0].get(f"/api/v1/namespaces/{namespace}/configmaps/{NAME}")
    assert len(json.loads(stored["data"]["ledger"])) == 2000
