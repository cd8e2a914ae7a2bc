"""The breaker's memory, against a client that behaves like an API server with two writers."""

from __future__ import annotations

import copy
import datetime
import json

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.gates import ledger
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import (
    Conflict,
    FleetError,
    InvalidDocument,
    NotFound,
)

NOW = datetime.datetime(2026, 11, 29, 18, 0, tzinfo=datetime.UTC)
SPACE, NAME, HOUR = "goodput-system", "goodput-quarantine", 3600


class Server:
    """One namespace with at most one ConfigMap. `before_write` runs once, just before the next write."""

    def __init__(self, text: str | None = None, spaces: tuple[str, ...] = (SPACE,)):
        self.spaces = set(spaces)
        self.object = None
        self.writes = 0
        self.before_write = None
        if text is not None:
            self._store({"metadata": {"name": NAME, "labels": {"team": "ours"}}, "data": {"ledger": text, "note": "x"}})

    def _store(self, body: dict) -> None:
        version = int((self.object or {"metadata": {}})["metadata"].get("resourceVersion", 0)) + 1
        self.object = copy.deepcopy(body)
        self.object["metadata"]["resourceVersion"] = str(version)

    def _hook(self) -> None:
        hook, self.before_write = self.before_write, None
        if hook:
            hook()

    def find(self, path: str) -> dict | None:
        assert path == f"/api/v1/namespaces/{SPACE}/configmaps/{NAME}"
        return copy.deepcopy(self.object)

    def post(self, path: str, body: dict, **_query) -> dict:
        self._hook()
        if path == "/api/v1/namespaces":
            self.spaces.add(body["metadata"]["name"])
            return body
        if SPACE not in self.spaces:
            raise NotFound("no such namespace")
        if self.object:
            raise Conflict("is there already")
        self.writes += 1
        self._store(body)
        return self.object

    def put(self, path: str, body: dict, **_query) -> dict:
        self._hook()
        if self.object["metadata"]["resourceVersion"] != body["metadata"]["resourceVersion"]:
            raise Conflict("has been modified")
        self.writes += 1
        self._store(body)
        return self.object


def entry(node: str, evidence: str = "e", hours: float = 0, **more) -> dict:
    at = (NOW - datetime.timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ")
    base = {"node": node, "domain": "d", "owner": "quarantine", "rule": "r", "ruleDigest": "sha256:1"}
    return {**base, "evidence": evidence, "at": at, **more}


def at_most(count: int):
    def admit(entries, wanted):
        begin = (NOW - datetime.timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
        out, admitted, blocked = {one["node"] for one in entries if one["at"] > begin}, [], []
        for one in wanted:
            if one["node"] in out or len(out) < count:
                out.add(one["node"])
                admitted.append(one)
            else:
                blocked.append({**one, "why": "full"})
        return admitted, blocked

    return admit


def reserve(server: Server, *wanted: dict, most: int = 100, now=NOW) -> ledger.Reserved:
    return ledger.reserve(server, SPACE, NAME, wanted, at_most(most), now, window=HOUR)


def stored(server: Server) -> list[dict]:
    return json.loads(server.object["data"]["ledger"])


def names(entries: list[dict]) -> list[str]:
    return [one["node"] for one in entries]


def test_a_namespace_is_never_made():
    server = Server(spaces=())
    assert ledger.read(server, SPACE, NAME).entries == []
    with pytest.raises(NotFound, match=f"no namespace {SPACE}"):
        reserve(server, entry("a"))


def test_the_first_reservation_makes_the_config_map():
    server = Server()
    assert ledger.read(server, SPACE, NAME).entries == []
    assert names(reserve(server, entry("a"), entry("b")).admitted) == ["a", "b"]
    assert stored(server) == [entry("a"), entry("b")]
    assert ledger.read(server, SPACE, NAME).entries == [entry("a"), entry("b")]


def test_the_same_evidence_uses_its_entry_again_and_writes_nothing():
    server = Server()
    reserve(server, entry("a"))
    again = reserve(server, entry("a"), most=1, now=NOW + datetime.timedelta(minutes=10))
    assert names(again.admitted) == ["a"] and server.writes == 1
    assert stored(server) == [entry("a")]


def test_evidence_that_left_the_window_is_counted_anew():
    server = Server(json.dumps([entry("a", hours=2)]))
    reserve(server, entry("a"))
    assert stored(server) == [entry("a")]


def test_other_content_of_the_config_map_stays():
    server = Server(json.dumps([]))
    reserve(server, entry("a"))
    assert server.object["data"]["note"] == "x" and server.object["metadata"]["labels"] == {"team": "ours"}


def test_after_a_conflict_the_bound_is_asked_again():
    server = Server(json.dumps([entry("a")]))
    server.before_write = lambda: reserve(server, entry("other"), most=2)
    outcome = reserve(server, entry("b"), entry("a"), most=2)
    assert names(outcome.admitted) == ["a"] and names(outcome.blocked) == ["b"]
    assert names(stored(server)) == ["a", "other"]


def test_two_that_begin_at_once():
    server = Server()
    server.before_write = lambda: reserve(server, entry("other"), most=1)
    outcome = reserve(server, entry("mine"), most=1)
    assert outcome.admitted == [] and outcome.blocked[0]["why"] == "full"
    assert names(stored(server)) == ["other"]


def test_a_ledger_that_never_stands_still_ends_in_an_error(monkeypatch):
    monkeypatch.setattr(ledger.time, "sleep", lambda seconds: None)
    server = Server(json.dumps([]))

    def meddle():
        server._store(server.object)
        server.before_write = meddle

    server.before_write = meddle
    with pytest.raises(Conflict, match="changed under every one of 40 attempts"):
        reserve(server, entry("a"))


def test_a_gate_that_was_written_is_noted():
    server = Server()
    reserve(server, entry("a"), entry("b"))
    ledger.confirm(server, SPACE, NAME, [entry("b")], NOW, window=HOUR)
    assert stored(server) == [entry("a"), entry("b", held=True)]
    ledger.confirm(server, SPACE, NAME, [entry("b")], NOW, window=HOUR)
    assert server.writes == 2


@pytest.mark.parametrize(
    ("namespace", "name", "option"),
    [
        ("", NAME, "ledger_namespace"),
        ("a/b", NAME, "ledger_namespace"),
        ("A", NAME, "ledger_namespace"),
        (SPACE, "", "ledger_name"),
        (SPACE, "../x", "ledger_name"),
        (SPACE, "a?b", "ledger_name"),
    ],
)
def test_a_breaker_without_a_memory_is_an_error(namespace, name, option):
    with pytest.raises(InvalidDocument, match=option):
        ledger.read(Server(), namespace, name)


def test_newer_faults_that_a_gate_stands_for_are_noted():
    server = Server()
    reserve(server, entry("a"), entry("b"))
    ledger.confirm(server, SPACE, NAME, [entry("a"), entry("b")], NOW, window=HOUR)
    for last in ("2026-11-29T18:20:00Z", "2026-11-29T18:10:00Z", "2026-11-29T17:00:00Z"):
        ledger.confirm(server, SPACE, NAME, [{**entry("b", "later"), "last": last}], NOW, window=HOUR)
    assert stored(server) == [entry("a", held=True), entry("b", held=True, seen="2026-11-29T18:20:00Z")]
    assert server.writes == 3


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is no JSON"),
        ('[{"node": "a"', "is no JSON"),
        ("[" * 100_000, "is no JSON"),
        ("{}", "is no list of entries"),
        ("null", "is no list of entries"),
        ("[1]", "entry 0 is no map"),
        ('[{"node": "a"}]', "entry 0 has no domain"),
        (json.dumps([entry("a"), {**entry("a"), "at": "yesterday"}]), "entry 1 is dated 'yesterday'"),
        (json.dumps([{**entry("a"), "at": "2026-11-29T18:00:00"}]), "without a zone"),
        (json.dumps([entry("a", seen=5)]), "entry 0 is dated 5, which is no time"),
        (json.dumps([{**entry("a"), "at": 5}]), "entry 0 has no at"),
    ],
)
def test_unreadable_content_stops_gating_and_stays_as_it_is(text, words):
    server = Server(text)
    with pytest.raises(InvalidDocument, match="nothing is gated while its state is unknown") as caught:
        reserve(server, entry("a"))
    assert words in str(caught.value) and f"ConfigMap {SPACE}/{NAME}" in str(caught.value)
    assert server.writes == 0 and server.object["data"]["ledger"] == text


def test_old_entries_go():
    server = Server(json.dumps([entry("old", hours=31 * 24), entry("kept", hours=29 * 24)]))
    reserve(server, entry("a"))
    assert names(stored(server)) == ["kept", "a"]


def test_it_stays_below_the_limit_and_keeps_what_counts():
    old = [entry(f"old-{number}", hours=1000 / (number + 2)) for number in range(500)]
    many = [entry(f"node-{number:05}", evidence="e" * 16, hours=20) for number in range(6000)]
    recent = [entry("recent", hours=0.5)]
    server = Server(json.dumps([*recent, *many, *old]))
    reserve(server, entry("a"))
    assert len(server.object["data"]["ledger"].encode()) <= ledger.LIMIT
    kept = names(stored(server))
    assert {"recent", "a"} <= set(kept) and len(kept) > 4000


def test_a_window_that_cannot_be_stored_is_an_error():
    server = Server(json.dumps([entry(f"node-{number:05}", evidence="e" * 64) for number in range(6000)]))
    with pytest.raises(FleetError, match="more than a ConfigMap holds"):
        reserve(server, entry("a"), most=10_000)
