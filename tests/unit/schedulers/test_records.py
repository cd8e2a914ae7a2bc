"""Intents and the journal, against a client that keeps ConfigMaps as an API server does."""

from __future__ import annotations

import copy
import json
from datetime import UTC, datetime, timedelta

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import (
    Conflict,
    FleetError,
    InvalidDocument,
    NotFound,
)
from ansible_collections.goodput.fleet.plugins.module_utils.schedulers import intents, journal
from ansible_collections.goodput.fleet.plugins.module_utils.schedulers.replacement import Replacement

NOW = datetime(2026, 3, 6, 9, tzinfo=UTC)


class Server:
    """ConfigMaps by path; `before_write` runs once, before the next write."""

    def __init__(self):
        self.objects: dict[str, dict] = {}
        self.version = 0
        self.before_write = None

    def find(self, path, **_options):
        return copy.deepcopy(self.objects.get(path))

    def post(self, path, body, **_query):
        self._meddle()
        where = f"{path}/{body['metadata']['name']}"
        if where in self.objects:
            raise Conflict("it is there")
        return self._store(where, body)

    def put(self, path, body, **_query):
        self._meddle()
        if path not in self.objects:
            raise NotFound("it is not there")
        if body["metadata"].get("resourceVersion") != self.objects[path]["metadata"]["resourceVersion"]:
            raise Conflict("it changed")
        return self._store(path, body)

    def _meddle(self):
        meddle, self.before_write = self.before_write, None
        if meddle:
            meddle()

    def _store(self, where, body):
        self.version += 1
        stored = copy.deepcopy(body)
        stored["metadata"]["resourceVersion"] = str(self.version)
        self.objects[where] = stored
        return copy.deepcopy(stored)


def intent(**more) -> dict:
    job = {"apiVersion": "batch/v1", "kind": "Job", "namespace": "ml", "name": "t", "uid": "u"}
    texts = {"action": "restart", "path": "recreate", "selector": "a=b", "expires": "", "detail": ""}
    times = {"at": intents.moment(), "renewed": intents.moment()}
    about = {"key": "ml/t/u/1", "job": job, "number": 1, "generation": 1, "manifest": {"kind": "Job"}}
    name = {"name": intents.name_of("ml/t/u/1"), "namespace": "ml", "holder": intents.me(), "state": "begun"}
    return {**texts, **times, **about, **name, "excluded": [], "preferred": [], "successor": None, **more}


def test_of_two_that_make_an_intent_one_does():
    server = Server()
    assert intents.create(server, intent())["state"] == "begun"
    assert intents.create(server, intent(holder="other/1/x")) is None
    assert intents.find(server, "ml", intents.name_of("ml/t/u/1"))["holder"] == intents.me()


def test_who_wrote_later_notices():
    server = Server()
    mine = intents.create(server, intent())
    theirs = intents.update(server, mine, holder="other/1/x")
    with pytest.raises(Conflict):
        intents.update(server, mine, state="creating")
    closed = intents.update(server, theirs, state="done")
    assert closed["manifest"] is None  # it may hold what is not for everybody, and is of no use any more
    (stored,) = server.objects.values()
    assert stored["metadata"]["labels"][intents.LABEL] == "closed"


@pytest.mark.parametrize(
    ("holder", "age", "held"),
    [
        ("another-host/7/x", 10, True),
        ("another-host/7/x", 100, False),
        (f"{intents.me().split('/')[0]}/999999999/b.1", 0, False),  # that process is dead
        (intents.me(), 0, False),
        ("garbage", 10, True),
    ],
    ids=["elsewhere", "elsewhere-silent", "dead", "mine", "odd"],  # process ids are others in each worker
)
def test_an_intent_is_held_by_a_run_that_may_be_alive(holder, age, held):
    renewed = intents.moment(NOW - timedelta(seconds=age))
    assert intents.held_by_another(intent(holder=holder, renewed=renewed), 60, NOW) is held


@pytest.mark.parametrize("text", [None, "", "{", "[]", "null", '{"job": 1}', "{}"])
def test_an_intent_that_cannot_be_read_is_told(text):
    server = Server()
    intents.create(server, intent())
    (stored,) = server.objects.values()
    stored["data"] = {} if text is None else {intents.KEY: text}
    with pytest.raises(InvalidDocument, match="no intent that can be read"):
        intents.find(server, "ml", intents.name_of("ml/t/u/1"))


def test_a_manifest_that_a_config_map_cannot_hold_is_refused():
    with pytest.raises(InvalidDocument, match="bigger than a ConfigMap holds"):
        intents.create(Server(), intent(manifest={"x": "y" * intents.LIMIT}))


def entry(number: int, at: datetime = NOW, **more) -> dict:
    return {"key": f"ml/t/u/{number}", "at": intents.moment(at), "outcome": "", **more}


def test_an_outcome_is_added_by_key_and_old_entries_go():
    server = Server()
    journal.record(server, [entry(1, NOW - timedelta(days=31)), entry(2)], NOW)
    journal.record(server, [{"key": "ml/t/u/2", "outcome": "running"}], NOW + timedelta(hours=1))
    assert journal.read(server).entries == [entry(2, outcome="running")]
    version = server.version
    journal.record(server, [{"key": "ml/t/u/2", "outcome": "running"}], NOW)
    assert server.version == version  # nothing changed, nothing is written


def test_admission_is_asked_again_on_what_another_run_wrote():
    server = Server()

    def one(entries, wanted):
        return (wanted, []) if not entries else ([], wanted)

    server.before_write = lambda: journal.record(server, [entry(1)], NOW)
    found = journal.record(server, [entry(2)], NOW, admit=one)
    assert (found.admitted, [each["key"] for each in found.blocked]) == ([], ["ml/t/u/2"])
    assert journal.read(server).entries == [entry(1)]


def test_the_oldest_make_room_and_what_budgets_count_does_not(monkeypatch):
    monkeypatch.setattr(journal, "LIMIT", 1200)
    server = Server()
    old = [entry(number, NOW - timedelta(days=20 - number % 19), why="x" * 100) for number in range(10)]
    journal.record(server, old, NOW)
    journal.record(server, [entry(99)], NOW)
    kept = journal.read(server).entries
    assert kept[-1]["key"] == "ml/t/u/99" and 1 < len(kept) < 11
    assert kept == sorted(kept, key=lambda each: each["at"])
    with pytest.raises(FleetError, match="one day"):
        journal.record(server, [entry(number, why="x" * 100) for number in range(100, 120)], NOW)


def test_a_thousand_jobs_that_are_held_are_no_reason_to_do_nothing(monkeypatch):
    monkeypatch.setattr(journal, "LIMIT", 3000)
    server = Server()
    held = [entry(number, action="hold", mode="act", why="x" * 50) for number in range(100, 150)]
    restarted = [entry(number, NOW - timedelta(hours=number), action="retry", mode="act") for number in range(9)]
    journal.record(server, [*held, *restarted], NOW)
    kept = {each["key"]: each["action"] for each in journal.read(server).entries}
    assert list(kept.values()).count("retry") == 9 and 0 < list(kept.values()).count("hold") < 50


def test_entries_are_bounded():
    server = Server()
    names = [f"n{number}" for number in range(journal.ITEMS)]
    journal.record(server, [entry(1, why="x" * 10_000, nodes=names), entry(2, nodes=[*names, "one more"])], NOW)
    kept, other = journal.read(server).entries
    assert len(kept["why"]) == journal.TEXT and kept["nodes"] == names
    assert other["nodes"] == []  # a part would make those of the part suspects


def test_a_day_of_large_jobs_is_counted_even_where_their_nodes_find_no_room():
    server = Server()
    names = [f"gpu-node-{number:04d}.cluster.example" for number in range(journal.ITEMS)]
    many = [entry(number, NOW - timedelta(minutes=99 - number), nodes=names) for number in range(100)]
    journal.record(server, many, NOW)
    kept = journal.read(server).entries
    assert len(kept) == 100 and kept[-1]["nodes"] == names and kept[0]["nodes"] == []


@pytest.mark.parametrize("wrong", [{}, {"key": 1}, {"key": ""}, {"key": "a", "at": "today"}, {"key": "a", "at": None}])
def test_an_entry_that_could_not_be_read_back_is_not_written(wrong):
    with pytest.raises(InvalidDocument, match="an entry of the journal"):
        journal.record(Server(), [wrong], NOW)


@pytest.mark.parametrize(
    "text", ["", "{", "{}", "[1]", '[{"key": "a"}]', '[{"key": "a", "at": "2026-03-06T09:00:00"}]']
)
def test_a_journal_that_cannot_be_read_is_never_replaced(text):
    server = Server()
    journal.record(server, [entry(1)], NOW)
    (stored,) = server.objects.values()
    stored["data"][journal.KEY] = text
    for call in (lambda: journal.read(server), lambda: journal.record(server, [entry(2)], NOW)):
        with pytest.raises(InvalidDocument, match="nothing is done while"):
            call()
    assert json.dumps(server.objects).count("u/2") == 0


class Jobs(Server):
    """With jobs, whose pods are gone."""

    def patch(self, path, body, **_query):
        job = self.objects[path]
        notes = {**(job["metadata"].get("annotations") or {}), **body["metadata"].pop("annotations", {})}
        return self._store(path, {**job, "metadata": {**job["metadata"], **body["metadata"], "annotations": notes}})

    def delete(self, path, body):
        if body["preconditions"]["resourceVersion"] != self.objects[path]["metadata"]["resourceVersion"]:
            raise Conflict("it changed")
        del self.objects[path]

    def list(self, path, **_query):
        return []


def job_that(ended: bool, **notes) -> dict:
    conditions = [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}] if ended else []
    metadata = {"name": "t", "namespace": "ml", "uid": "u", "generation": 1, "resourceVersion": "1"}
    return {
        "metadata": {**metadata, "annotations": notes},
        "spec": {"template": {"spec": {"containers": []}}},
        "status": {"conditions": conditions},
    }


@pytest.mark.parametrize(
    ("ended", "minutes", "withdrawn"), [(True, 70, True), (True, 30, False), (False, 6, True), (False, 1, False)]
)
@pytest.mark.parametrize("way", ["recreate", "in-place"])
def test_what_was_decided_long_ago_and_never_begun_is_decided_anew(ended, minutes, withdrawn, way):
    if ended and way == "in-place":
        pytest.skip("only jobs that run are resumed")
    server = Jobs()
    server._store("/apis/batch/v1/namespaces/ml/jobs/t", job_that(ended))
    at = intents.moment(datetime.now(UTC) - timedelta(minutes=minutes))
    made = intents.create(server, intent(at=at, path=way))
    found = Replacement(server, made, wait=0, lease=60, sleep=lambda _seconds: None).run()
    where = intents.path_of("ml", made["name"])
    assert (where not in server.objects) is withdrawn
    if withdrawn:
        assert (found["status"], found["changed"]) == ("waiting", False) and "decided anew" in found["detail"]
        assert not server.find("/apis/batch/v1/namespaces/ml/jobs/t")["metadata"]["annotations"]


@pytest.mark.parametrize("said", ["OFF", "pause", " advise "])
def test_who_says_meanwhile_that_the_job_is_to_be_let_be_is_heard(said):
    server = Jobs()
    server._store("/apis/batch/v1/namespaces/ml/jobs/t", job_that(True, **{"goodput.fleet/recovery": said}))
    made = intents.create(server, intent())
    found = Replacement(server, made, wait=0, lease=60, sleep=lambda _seconds: None).run()
    assert (found["status"], found["changed"]) == ("refused", False)
    assert intents.find(server, "ml", made["name"])["state"] == "abandoned"
