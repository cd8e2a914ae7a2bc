"""Histories as files really are: doubled, torn, out of order, of machines that were replaced."""

from __future__ import annotations

import json

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle import metrics
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle.series import seconds, windows
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, NotFound

from tests.unit.lifecycle import degrading as made
from tests.unit.lifecycle.degrading import DAY, HOUR, NOW

COUNTER, GAUGE, TOTAL = "ecc_correctable", "gpu_temperature", "remapped_rows_correctable"


def cut(history, metric: str) -> list[float]:
    """Values of the windows of the one series, in order."""
    (mine,) = history.series.values()
    series = mine[metric]
    return list(windows(series, history.metrics[metric], NOW).values())


def rows(metric: str, *points: tuple) -> made.History:
    """points: (hours before NOW, value[, boot])."""
    found = made.history()
    for hours, value, *boot in points:
        made.add(found, "n", metric, value, NOW - hours * HOUR, boot=boot[0] if boot else "b1")
    return found


@pytest.mark.parametrize(
    ("points", "rates"),
    [
        ([(5, 0), (4, 6), (3, 12)], [6]),
        ([(5, 100), (4, 100), (3, 100)], [0]),
        ([(5, 10), (4, 2), (3, 4)], [2]),  # began anew: 10 -> 2 tells nothing
        ([(5, 10), (4, 90, "b2"), (3, 92, "b2")], [2]),  # a boot: what counted meanwhile is of the boot
        ([(3, 12), (5, 0), (4, 6)], [6]),  # out of order
        ([(5, 0), (5, 0), (4, 6), (4, 6), (3, 12)], [6]),  # doubled
        ([(5, 0), (4, 3), (4, 6), (3, 12)], [6]),  # two of one time: the later line
        ([(5, 7)], []),
        ([(40, 0), (3, 400)], []),  # nobody knows when
        ([(20, 0), (2, 36)], [2]),  # a gap that can be borne
    ],
)
def test_a_counter_is_its_increase_per_hour_that_was_seen(points, rates):
    assert cut(rows(COUNTER, *points), COUNTER) == pytest.approx(rates)


def test_a_total_survives_a_boot_but_not_another_board():
    found = rows(TOTAL, (5, 3), (4, 4, "b2"), (3, 0, "b2"), (2, 1, "b2"))
    assert cut(found, TOTAL) == pytest.approx([2 / 2])  # two rows in two hours; the hour of the exchange tells nothing


def test_a_gauge_is_the_median_and_the_window_that_is_not_over_waits():
    found = rows(GAUGE, (9, 50), (8, 90), (7, 52), (2, 60), (1, 61))
    made.add(found, "n", GAUGE, 99, NOW)
    assert cut(found, GAUGE) == [52, 60.5]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{torn", "no line of JSON"),
        ("[1, 2]", "tells no node"),
        ('{"at": "2026-11-28T00:00:00Z", "values": {}}', "tells no node"),
        ('{"node": "n", "at": "yesterday", "values": {}}', "no time"),
        ('{"node": "n", "at": "2026-11-28T00:00:00", "values": {}}', "no time with a zone"),
        ('{"node": "n", "at": 1764400000, "values": {}}', "no time"),
        ('{"node": "n", "at": "2027-11-28T00:00:00Z", "values": {}}', "in the future"),
        ('{"node": "n", "at": "2026-11-28T00:00:00Z", "values": [1]}', "no map"),
        ('{"node": "n", "at": "2026-11-28T00:00:00Z", "values": {"gpu_temperature": NaN}}', "no number"),
        ('{"node": "n", "at": "2026-11-28T00:00:00Z", "values": {"gpu_temperature": -Infinity}}', "no number"),
        ('{"node": "n", "at": "2026-11-28T00:00:00Z", "values": {"gpu_temperature": 1e999}}', "no number"),
        ('{"node": "n", "at": "2026-11-28T00:00:00Z", "values": {"gpu_temperature": true}}', "no number"),
        ('{"node": "n", "at": "2026-11-28T00:00:00Z", "values": {"gpu_temperature": "61"}}', "no number"),
        ('{"node": "n", "at": "2026-11-28T00:00:00Z", "metric": "ecc_correctable", "value": -1}', "never"),
        ('{"node": "n", "entity": 3, "at": "2026-11-28T00:00:00Z", "values": {}}', "texts"),
    ],
)
def test_a_bad_line_is_told_with_its_place_and_costs_no_other(tmp_path, line, words):
    good = '{"node": "n", "at": "2026-11-28T00:00:00Z", "metric": "gpu_temperature", "value": 61}'
    (tmp_path / "a.jsonl").write_text(f"{good}\n\n{line}\n")
    found = made.history()
    found.read([str(tmp_path)])
    (problem,) = found.problems
    assert words in problem.message and problem.line == 3 and problem.file == str(tmp_path / "a.jsonl")
    assert found.counts["samples"] == 1


def test_null_is_not_told_and_an_unknown_metric_is_named():
    found = made.history()
    line = {"node": "n", "at": "2026-11-28T00:00:00+01:00", "values": {GAUGE: None, "gpu_temprature": 60}}
    found.add(line, "given")
    assert not found.counts["samples"] and not found.problems
    assert "did you mean 'gpu_temperature'" in found.unknown_words()[0]


def test_files_and_directories_are_read_and_what_is_missing_is_said(tmp_path):
    (tmp_path / "history").mkdir()
    for number in range(3):
        line = {"node": "n", "at": f"2026-11-28T0{number}:00:00Z", "values": {GAUGE: 60 + number}}
        (tmp_path / "history" / f"{number}.jsonl").write_text(json.dumps(line) + "\n")
    (tmp_path / "history" / "notes.txt").write_text("not a history")
    found = made.history()
    found.read([str(tmp_path / "history")])
    assert found.counts["samples"] == 3 and not found.problems
    with pytest.raises(NotFound) as raised:
        found.read([str(tmp_path / "nowhere")])
    assert str(tmp_path / "nowhere") in str(raised.value)


def test_an_earlier_machine_of_the_name_is_another_one():
    nodes = {"n": {"uid": "new", "machineId": "m2", "created": NOW - 2 * DAY}}
    found = made.history(nodes=nodes)
    for uid, days in (("old", 1), ("new", 1), (None, 3), (None, 1), ("new", 3)):
        line = {"node": "n", "at": made.utc(NOW - days * DAY), "values": {GAUGE: 60}}
        found.add({**line, "uid": uid} if uid else line, "made")
    for machine in ("m1", "m2"):
        line = {"node": "n", "at": made.utc(NOW - 3 * DAY), "machineId": machine, "values": {GAUGE: 60}}
        found.add(line, "made")
    made.add(found, "gone", GAUGE, 60, NOW - DAY)
    assert found.counts["samples"] == 4 and found.counts["otherMachine"] == 3 and found.counts["strangers"] == 1


def test_what_is_older_than_is_kept_is_left_out():
    found = made.history(keep=7 * DAY)
    made.add(found, "n", GAUGE, 60, NOW - 8 * DAY)
    assert not found.series and found.counts["old"] == 1


@pytest.mark.parametrize("text", ["2026-11-29T00:00:00Z", "2026-11-29T01:00:00+01:00", "2026-11-29 00:00:00.000+00:00"])
def test_times_with_a_zone(text):
    assert seconds(text) == NOW


def test_a_site_changes_metrics_and_adds_its_own():
    table = metrics.table(
        {
            "gpu_temperature": {"effect": 10},
            "nic_rate": None,
            "fan_speed": {"kind": "gauge", "worse": "up", "unit": "rpm", "floor": 100, "effect": 1500},
        }
    )
    assert table["gpu_temperature"].effect == 10 and table["gpu_temperature"].floor == 1
    assert "nic_rate" not in table and table["fan_speed"].words == "fan_speed"
    assert "nic_rate" in metrics.table()


@pytest.mark.parametrize(
    ("changes", "path", "words"),
    [
        ({"gpu_temperature": {"efect": 3}}, "metrics.gpu_temperature.efect", "did you mean 'effect'"),
        ({"gpu_temperature": 3}, "metrics.gpu_temperature", "a map"),
        ({"gpu_temperature": {"worse": "higher"}}, "metrics.gpu_temperature.worse", "one of up, down"),
        ({"gpu_temperature": {"effect": "6"}}, "metrics.gpu_temperature.effect", "a number"),
        ({"gpu_temperature": {"effect": float("nan")}}, "metrics.gpu_temperature.effect", "a number"),
        ({"gpu_temperature": {"confirm": 1.5}}, "metrics.gpu_temperature.confirm", "a whole number"),
        ({"gpu_temperature": {"confirm": True}}, "metrics.gpu_temperature.confirm", "a whole number"),
        ({"gpu_temperature": {"hours": 0}}, "metrics.gpu_temperature.hours", "from 0.25"),
        ({"gpu_temperature": {"floor": 0}}, "metrics.gpu_temperature.floor", "spread"),
        ({"fan": {"kind": "gauge", "worse": "up", "unit": "rpm"}}, "metrics.fan", "floor and effect"),
        ({"fan": {"kind": "gauge"}}, "metrics.fan.worse", "says all of it"),
    ],
)
def test_a_bad_metric_is_refused_with_its_place(changes, path, words):
    with pytest.raises(InvalidDocument) as raised:
        metrics.table(changes)
    assert raised.value.problems[0].path == path and words in str(raised.value)
