"""Events kept a day a file: each once, none lost to a killed run."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import FleetError, NotFound
from ansible_collections.goodput.fleet.plugins.module_utils.signals import eventlog

NOW = datetime(2026, 3, 6, 23, 59, tzinfo=UTC)


def event(name: str) -> dict:
    return {"metadata": {"name": name}, "spec": {"message": f"Zeile {name} ü"}}


def kept(folder) -> list[str]:
    return [json.loads(line)["metadata"]["name"] for path in sorted(folder.iterdir()) for line in path.open()]


def test_an_event_is_kept_once_even_over_midnight(tmp_path):
    assert eventlog.append(str(tmp_path / "new"), [event("a"), event("b"), event("a")], NOW) == 2
    assert eventlog.append(str(tmp_path / "new"), [event("b"), event("c")], NOW) == 1
    assert eventlog.append(str(tmp_path / "new"), [event("c"), event("d")], NOW + timedelta(minutes=2)) == 1
    assert kept(tmp_path / "new") == ["a", "b", "c", "d"]
    assert sorted(os.listdir(tmp_path / "new")) == ["events-2026-03-06.jsonl", "events-2026-03-07.jsonl"]


def test_a_line_that_was_cut_costs_no_other(tmp_path):
    path = tmp_path / "events-2026-03-06.jsonl"
    path.write_text(json.dumps(event("a")) + "\n" + json.dumps(event("b"))[:20])
    assert eventlog.append(str(tmp_path), [event("a"), event("b")], NOW) == 1
    lines = path.read_text().splitlines()
    assert json.loads(lines[0]) == event("a") and json.loads(lines[2]) == event("b") and len(lines) == 3


def test_nested_nonsense_costs_nothing(tmp_path):
    path = tmp_path / "events-2026-03-06.jsonl"
    path.write_text("[" * 100_000 + "\n" + json.dumps(event("a")) + "\n")
    assert eventlog.append(str(tmp_path), [event("a"), event("b")], NOW) == 1


def test_several_writers_at_once(tmp_path):
    batches = [[event(f"{batch}-{number}") for number in range(20)] + [event("same")] for batch in range(8)]
    with ThreadPoolExecutor(8) as pool:
        counts = list(pool.map(lambda batch: eventlog.append(str(tmp_path), batch, NOW), batches))
    assert sum(counts) == 161 and len(kept(tmp_path)) == len(set(kept(tmp_path))) == 161


def test_where_nothing_can_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FleetError, match="events cannot be kept"):
        eventlog.append(str(tmp_path / "file"), [event("a")], NOW)
    with pytest.raises(FleetError, match="record cannot be written"):
        eventlog.replace(str(tmp_path / "gone/quarantine.json"), "x")


def test_a_record_is_replaced_whole(tmp_path):
    for text in ("first, and longer\n", "second\n"):
        eventlog.replace(str(tmp_path / "quarantine.json"), text)
    assert (tmp_path / "quarantine.json").read_text() == "second\n"
    assert os.listdir(tmp_path) == ["quarantine.json"]


@pytest.mark.parametrize("path", ["gone", ".", "a\0b"])
def test_what_is_no_file_is_named(tmp_path, path):
    with pytest.raises(NotFound, match=r"cannot be read|is not a file"):
        eventlog.read(str(tmp_path / path))
