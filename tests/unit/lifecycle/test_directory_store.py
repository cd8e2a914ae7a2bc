"""Requests in a directory: what is listed, what two writers do to each other, and what a killed one leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle import requests
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle.store import DirectoryStore
from ansible_collections.goodput.fleet.plugins.module_utils.records import durable
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import (
    Conflict,
    InvalidDocument,
    Unavailable,
)

KIND = "ValidationRequest"
TESTS = [{"domain": "communication", "variant": "nccl-loopback-nvswitch"}]


def made(number: int = 1, **options) -> dict:
    return requests.make("repaired", [{"name": f"gpu-{number}", "uid": f"u{number}", "bootId": "b"}], TESTS, **options)


def repair(name: str = "gpu-1-xid-79") -> dict:
    spec = {"node": {"name": "gpu-1", "uid": "u1"}, "fault": {"code": "xid-79", "action": "RESTART_BM"}}
    return {"apiVersion": "goodput.fleet/v1alpha1", "kind": "RepairRequest", "metadata": {"name": name}, "spec": spec}


@pytest.fixture
def store(tmp_path) -> DirectoryStore:
    return DirectoryStore(tmp_path / "records")


@pytest.fixture
def folder(store):
    path = os.path.join(store.path, "validationrequests")
    os.makedirs(path)
    return path


def bare(doc: dict) -> dict:
    return {**doc, "metadata": {key: value for key, value in doc["metadata"].items() if key != "resourceVersion"}}


def test_what_was_created_is_listed_by_kind(store):
    assert store.list(KIND) == ([], [])
    docs = sorted((made(1), made(2)), key=lambda doc: doc["metadata"]["name"])
    assert [store.create(doc) for doc in docs] == [True, True]
    assert store.create(repair())
    found, problems = store.list(KIND)
    assert [bare(doc) for doc in found] == docs and problems == []
    assert [bare(doc) for doc in store.list("RepairRequest")[0]] == [repair()]
    assert store.get(KIND, docs[0]["metadata"]["name"]) == found[0]
    assert store.get(KIND, "nothing") is None
    path = os.path.join(store.path, "validationrequests", f"{docs[0]['metadata']['name']}.yaml")
    assert yaml.safe_load(Path(path).read_text()) == docs[0]


def test_creating_it_again_changes_nothing_and_another_spec_is_a_conflict(store):
    doc = made()
    assert store.create(doc)
    written = store.write_status(store.list(KIND)[0][0], {"phase": "Running"})
    assert store.create(doc) is False
    assert store.list(KIND)[0] == [written]
    other = {**doc, "spec": {**doc["spec"], "retries": 3}}
    with pytest.raises(Conflict, match="asks for something else"):
        store.create(other)


def test_a_status_is_replaced_and_an_equal_one_is_no_write(store):
    store.create(made())
    [doc] = store.list(KIND)[0]
    running = store.write_status(doc, {"phase": "Running", "message": "m"})
    assert running["status"] == {"phase": "Running", "message": "m"}
    path = os.path.join(store.path, "validationrequests", f"{doc['metadata']['name']}.yaml")
    before = os.stat(path)
    assert store.write_status(running, {"message": "m", "phase": "Running"}) == running
    assert os.stat(path).st_ino == before.st_ino
    done = store.write_status(running, {"phase": "Failed"})
    assert done["status"] == {"phase": "Failed"} and store.list(KIND)[0] == [done]
    assert "resourceVersion" not in yaml.safe_load(Path(path).read_text())["metadata"]


def test_what_changed_since_it_was_read_is_not_overwritten(store):
    store.create(made())
    [doc] = store.list(KIND)[0]
    store.write_status(doc, {"phase": "Running"})
    with pytest.raises(Conflict, match="changed since it was read"):
        store.write_status(doc, {"phase": "Failed"})
    [now] = store.list(KIND)[0]
    path = os.path.join(store.path, "validationrequests", f"{doc['metadata']['name']}.yaml")
    with open(path, "a") as stream:
        stream.write("# a person was here\n")
    with pytest.raises(Conflict, match="changed since it was read"):
        store.write_status(now, {"phase": "Failed"})
    [now] = store.list(KIND)[0]
    os.unlink(path)
    with pytest.raises(Conflict, match="was deleted meanwhile"):
        store.write_status(now, {"phase": "Failed"})
    assert store.list(KIND) == ([], [])


def test_a_file_with_a_byte_order_mark_and_what_an_export_carries_can_be_written(store, folder):
    doc = made()
    name = doc["metadata"]["name"]
    exported = {**doc, "metadata": {**doc["metadata"], "uid": "u", "resourceVersion": "12", "managedFields": [{}]}}
    with open(f"{folder}/{name}.yaml", "w", encoding="utf-8-sig") as stream:
        yaml.safe_dump(exported, stream)
    [read] = store.list(KIND)[0]
    assert store.write_status(read, {"phase": "Running"})["status"] == {"phase": "Running"}
    assert yaml.safe_load(Path(folder, f"{name}.yaml").read_text())["metadata"] == {"name": name}


def test_a_bad_document_is_named_and_keeps_no_other_from_being_read(store, folder):
    good = made()
    store.create(good)
    text = yaml.safe_dump(made(2))
    contents = {
        "broken.yaml": "a: [",
        "empty.yaml": "",
        "copy.yaml": text,
        "other.yml": text,
        "kind.yaml": yaml.safe_dump(repair("kind")),
        "nodes.yaml": yaml.safe_dump({**made(3), "metadata": {"name": "nodes"}}).replace("name: gpu-3", "name: GPU 3"),
        "status.yaml": yaml.safe_dump({**made(4), "metadata": {"name": "status"}, "status": {"phase": "Perfect"}}),
        "binary.yaml": "\udcff\udcfe",
        "large.yaml": "# " + "x" * 6_000_000,
        ".hidden.yaml": "a: [",
        "README.md": "not a request",
    }
    for name, content in contents.items():
        with open(f"{folder}/{name}", "w", errors="surrogateescape") as stream:
            stream.write(content)
    os.mkdir(f"{folder}/folder.yaml")
    os.symlink("nowhere", f"{folder}/link.yaml")
    docs, problems = store.list(KIND)
    assert [bare(doc) for doc in docs] == [good]
    told = {os.path.basename(problem.file): str(problem) for problem in problems}
    assert set(told) == {*contents, "folder.yaml", "link.yaml"} - {".hidden.yaml", "README.md"}
    assert "which is not the file's name" in told["copy.yaml"]
    assert "name it other.yaml" in told["other.yml"]
    assert "status.phase: 'Perfect' is not allowed" in told["status.yaml"]
    assert "larger than" in told["large.yaml"]


def test_a_request_that_is_none_is_not_stored(store):
    doc = made()
    for bad in (
        {**doc, "spec": {**doc["spec"], "nodes": []}},
        {**doc, "metadata": {"name": "../outside"}},
        {**doc, "status": {"phase": "Perfect"}},
    ):
        with pytest.raises(InvalidDocument):
            store.create(bad)
        assert store.list(KIND) == ([], [])
    store.create(doc)
    with pytest.raises(InvalidDocument, match=r"status\.phase"):
        store.write_status(store.list(KIND)[0][0], {"phase": "Perfect"})
    assert [bare(each) for each in store.list(KIND)[0]] == [doc]


def test_a_status_that_somebody_wrote_into_a_new_request_proves_nothing(store):
    store.create({**made(), "status": {"phase": "Succeeded"}})
    assert [bare(each) for each in store.list(KIND)[0]] == [made()]


def test_check_mode_writes_nothing_and_knows_what_is_there(store):
    assert store.create(made(), check_mode=True) is True and not os.path.exists(store.path)
    store.create(made())
    assert store.create(made(), check_mode=True) is False
    with pytest.raises(Conflict, match="asks for something else"):
        store.create({**made(), "spec": {**made()["spec"], "retries": 3}}, check_mode=True)


def test_a_place_that_is_no_directory_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    store = DirectoryStore(tmp_path / "file")
    with pytest.raises(Unavailable, match="Not a directory"):
        store.list(KIND)
    with pytest.raises(Unavailable, match="cannot keep the requests"):
        store.create(made())


WRITER = """
import sys
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle.store import DirectoryStore
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import Conflict
store, me, conflicts = DirectoryStore(sys.argv[1]), sys.argv[2], 0
for turn in range(int(sys.argv[3])):
    while True:
        [doc] = store.list("ValidationRequest")[0]
        count = doc.get("status", {}).get("counts", {}).get("Pending", 0)
        try:
            store.write_status(doc, {"phase": "Running", "counts": {"Pending": count + 1}, "message": me})
            break
        except Conflict as error:
            assert "changed since" in str(error), error
            conflicts += 1
print(conflicts)
"""


def writer(path: str, name: str, turns: int, code: str = WRITER) -> subprocess.Popen:
    command = [sys.executable, "-c", code, path, name, str(turns)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def test_of_two_writers_none_loses_what_the_other_wrote(store):
    store.create(made())
    processes = [writer(store.path, name, 25) for name in ("a", "b")]
    for process in processes:
        out, errors = process.communicate(timeout=120)
        assert process.returncode == 0, out + errors
    assert store.list(KIND)[0][0]["status"]["counts"] == {"Pending": 50}
    assert durable.unfinished(os.path.join(store.path, "validationrequests")) == []


# dies where a temporary file is written and not in place yet
DIES = (
    """
import os, signal
from ansible_collections.goodput.fleet.plugins.module_utils.records import durable
durable.os.replace = lambda *_args: os.kill(os.getpid(), signal.SIGKILL)
"""
    + WRITER
)


def test_a_writer_that_is_killed_in_the_middle_leaves_what_was_there(store):
    store.create(made())
    before = store.list(KIND)
    process = writer(store.path, "killed", 1, DIES)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    folder = os.path.join(store.path, "validationrequests")
    assert len(durable.unfinished(folder)) == 1
    assert store.list(KIND) == before
    written = store.write_status(before[0][0], {"phase": "Running"})
    assert store.list(KIND)[0] == [written] and durable.unfinished(folder) == []
