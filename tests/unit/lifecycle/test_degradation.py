"""What must be called degraded, what must not, and what is not known."""

from __future__ import annotations

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle import degradation, metrics
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument

from tests.unit.lifecycle import degrading as made
from tests.unit.lifecycle.degrading import DAY, HOUR, NOW, blamed, decide, name, since

SICK = name(3)

GAUGES = [
    # metric, usual, noise, what is added since three days, machines differ for good by
    ("gpu_temperature", 62, 1.2, 12, 0),
    ("gpu_temperature", 62, 1.2, 12, 4),
    ("sm_clock", 1980, 8, -220, 0),
    ("pcie_width", 16, 0, -8, 0),
    ("nvlinks_up", 18, 0, -1, 0),
    ("step_time", 4.2, 0.03, 0.5, 0.02),
    ("bandwidth", 480, 3, -60, 2),
    ("nic_rate", 400, 0, -200, 0),
]


@pytest.mark.parametrize(("metric", "usual", "noise", "change", "apart"), GAUGES)
def test_a_step_is_found_on_the_node_that_makes_it(metric, usual, noise, change, apart):
    found = made.gauges(metric, 16, usual, noise, {SICK: since(3, change)}, apart=apart)
    decision = decide(found, 16)
    assert blamed(decision) == [SICK] and not decision["shifts"]
    one = decision["findings"][0]
    assert one["metric"] == metric and one["unit"] == metrics.KNOWN[metric].unit
    assert one["score"]["own"] >= 4
    # told to the window: three days ago, and twelve windows since
    assert one["since"] == "2026-11-26T00:00:00Z" and one["windows"] == 12
    assert metrics.KNOWN[metric].words in one["evidence"]


@pytest.mark.parametrize(("metric", "usual", "noise", "change", "apart"), GAUGES)
def test_a_change_to_the_better_is_no_degradation(metric, usual, noise, change, apart):
    assert not decide(made.gauges(metric, 16, usual, noise, {SICK: since(3, -change)}, apart=apart), 16)["findings"]


@pytest.mark.parametrize(
    ("metric", "usual", "more"),
    [("ecc_correctable", 0.05, 8), ("nvlink_errors", 0.02, 6), ("nvlink_replays", 0.5, 30), ("pcie_replays", 0.1, 30)],
)
def test_a_counter_that_counts_faster_is_found(metric, usual, more):
    decision = decide(made.counters(metric, 12, usual, {SICK: since(2, more)}), 12)
    assert blamed(decision) == [SICK]
    assert decision["findings"][0]["value"] == pytest.approx(more, rel=0.6)


def test_a_slow_decline_is_found_with_its_slope():
    def slow(age):
        return 14 * max(0.0, 1 - age / 14)

    decision = decide(made.gauges("gpu_temperature", 12, 60, 1, {SICK: slow}, days=28), 12)
    assert blamed(decision) == [SICK]
    assert 0.2 < decision["findings"][0]["perDay"] < 1.5


@pytest.mark.parametrize("value", [0, 1, 16, 480.5])
def test_what_never_changes_is_never_degraded(value):
    for metric in ("nvlinks_up", "pcie_width", "bandwidth", "gpu_temperature"):
        assert not decide(made.gauges(metric, 8, value, 0), 8)["findings"]


def test_a_single_outlier_and_two_in_a_row_are_not_enough():
    found = made.gauges("gpu_temperature", 12, 60, 1)
    for at in made.times(0.5, HOUR, NOW - DAY):
        made.add(found, SICK, "gpu_temperature", 95, at + 60)
        made.add(found, SICK, "gpu_temperature", 95, at + 120)
    assert not decide(found, 12)["findings"]


def test_a_change_too_small_to_matter_is_none_however_sure_it_is():
    # 40 spreads, but a tenth of a degree
    assert not decide(made.gauges("gpu_temperature", 12, 60, 0.02, {SICK: since(3, 0.9)}), 12)["findings"]
    assert not decide(made.gauges("step_time", 12, 4.0, 0.001, {SICK: since(3, 0.1)}), 12)["findings"]


def test_a_machine_that_has_always_been_a_little_apart_is_not_degraded():
    decision = decide(made.gauges("gpu_temperature", 12, 60, 1, {SICK: lambda age: 7.0}), 12)
    assert not decision["findings"]


def test_a_machine_that_has_always_been_far_worse_than_its_peers_is_found_by_them():
    decision = decide(made.gauges("bandwidth", 12, 480, 3, {SICK: lambda age: -120}), 12)
    assert blamed(decision) == [SICK]
    score = decision["findings"][0]["score"]
    assert abs(score["own"]) < 2 < 8 < score["peers"]


def test_a_node_without_history_is_judged_by_its_peers():
    found = made.gauges("bandwidth", 12, 480, 3)
    late = made.gauges("bandwidth", 4, 400, 3, days=1.5)
    found.series[SICK, "", ""] = late.series[SICK, "", ""]
    decision = decide(found, 12)
    assert blamed(decision) == [SICK] and decision["findings"][0]["score"]["own"] is None


@pytest.mark.parametrize("nodes", [1, 3, 5])
def test_without_enough_peers_its_own_history_says_it(nodes):
    worst = name(0)
    decision = decide(made.gauges("bandwidth", nodes, 480, 3, {worst: since(3, -60)}), nodes)
    assert blamed(decision) == [worst] and decision["findings"][0]["score"]["peers"] is None


@pytest.mark.parametrize("days", [0.2, 1, 2.9])
def test_too_little_history_and_no_peers_say_nothing(days):
    assert not decide(made.gauges("bandwidth", 2, 480, 3, {name(0): since(1, -200)}, days=days), 2)["findings"]


def test_a_shift_of_the_fleet_is_named_and_nobody_blamed():
    found = made.gauges("gpu_temperature", 24, 60, 1, everyone=since(4, 10))
    decision = decide(found, 24)
    assert not decision["findings"]
    (shift,) = decision["shifts"]
    assert (
        shift["nodes"] == 24
        and shift["change"] == pytest.approx(10, abs=1)
        and shift["since"] == "2026-11-25T00:00:00Z"
    )
    assert "no node is to blame" in shift["evidence"]


def test_who_is_worse_than_the_shift_is_still_found():
    found = made.gauges("gpu_temperature", 24, 60, 1, {SICK: since(4, 15)}, everyone=since(4, 10))
    decision = decide(found, 24)
    assert blamed(decision) == [SICK] and len(decision["shifts"]) == 1


def test_a_shift_of_one_product_is_not_the_other_ones():
    found = made.gauges("gpu_temperature", 24, 60, 1, {name(n): since(4, 10) for n in range(12)})
    places = made.fleet(24)
    for number in range(12):
        places[name(number)]["product"] = "H200"
    decision = degradation.decide(found, places, NOW)
    assert not decision["findings"] and [each["product"] for each in decision["shifts"]] == ["H200"]


def test_what_a_rack_shows_together_points_at_what_it_shares():
    found = made.gauges("gpu_temperature", 40, 60, 1, {name(n): since(3, 12) for n in range(8, 15)})
    decision = decide(found, 40)
    assert blamed(decision) == [name(n) for n in range(8, 15)]
    assert {one["suggestion"] for one in decision["findings"]} == {"watch"}
    assert "7 of 8 nodes of rack-1" in decision["findings"][0]["evidence"]


def test_it_ends_only_after_calm_windows():
    def over(hours):
        return made.gauges("gpu_temperature", 12, 60, 1, {SICK: lambda age: 12.0 if hours / 24 <= age <= 3 else 0.0})

    assert blamed(decide(over(6), 12)) == [SICK]  # one calm window
    assert blamed(decide(over(18), 12)) == [SICK]
    assert not decide(over(24), 12)["findings"]  # four


def test_what_is_half_as_bad_goes_on_but_does_not_begin():
    half = made.gauges("gpu_temperature", 12, 60, 1, {SICK: since(3, 4.4)})
    assert not decide(half, 12)["findings"]
    both = made.gauges(
        "gpu_temperature", 12, 60, 1, {SICK: lambda age: 12.0 if 2 < age <= 4 else 4.4 if age <= 2 else 0.0}
    )
    assert blamed(decide(both, 12)) == [SICK]


def test_a_pass_has_no_memory():
    found = made.gauges("gpu_temperature", 12, 60, 1, {SICK: since(3, 12)})
    first = decide(found, 12)
    assert decide(found, 12) == first
    # within the same window, later samples change nothing
    for number in range(12):
        made.add(found, name(number), "gpu_temperature", 99, NOW + 60)
    assert decide(found, 12) == {**first, "counts": {**first["counts"], "samples": found.counts["samples"]}}


@pytest.mark.parametrize(
    ("metric", "steps", "found"),
    [
        ("remapped_rows_correctable", [1, 1, 1], False),
        ("remapped_rows_correctable", [1, 1, 1, 1], True),
        ("remapped_rows_uncorrectable", [1], False),
        ("remapped_rows_uncorrectable", [2], True),
        ("nic_link_downed", [1, 1, 1], False),
        ("nic_link_downed", [5], True),
        ("nvlink_flaps", [2, 2], True),
    ],
)
def test_rare_events_are_counted_over_the_time_that_is_judged(metric, steps, found):
    history = made.history()
    for number in range(8):
        total = 7  # of years ago
        for index, at in enumerate(made.times(14)):
            if name(number) == SICK and index >= 200 and (index - 200) % 24 == 0 and (index - 200) // 24 < len(steps):
                total += steps[(index - 200) // 24]
            made.add(history, name(number), metric, total, at)
    decision = decide(history, 8)
    assert blamed(decision) == ([SICK] if found else [])
    if found:
        assert decision["findings"][0]["value"] == sum(steps)


def test_events_age_out():
    history = made.history()
    for index, at in enumerate(made.times(14)):
        made.add(history, SICK, "nic_link_downed", 9 if index > 24 else 0, at)
    assert not decide(history, 8)["findings"]


def test_flaps_of_everybody_are_a_shift():
    history = made.history()
    for number in range(12):
        for index, at in enumerate(made.times(5)):
            made.add(history, name(number), "nic_link_downed", 6 if index > 60 else 0, at)
    decision = decide(history, 12)
    assert not decision["findings"] and decision["shifts"][0]["metric"] == "nic_link_downed"


def test_a_pending_row_remap_is_found_at_once_and_wants_maintenance():
    history = made.history()
    for number in range(8):
        made.add(history, name(number), "row_remap_pending", float(name(number) == SICK), NOW - HOUR, "GPU-1")
    decision = decide(history, 8)
    (one,) = decision["findings"]
    assert (one["node"], one["entity"], one["suggestion"]) == (SICK, "GPU-1", "maintenance")


def test_who_was_not_measured_lately_is_unknown_and_not_degraded():
    found = made.gauges("gpu_temperature", 12, 60, 1, {SICK: since(9, 12)})
    series = found.series[SICK, "", ""]["gpu_temperature"]
    while series.times[-1] > NOW - 3 * DAY:
        for column in (series.times, series.values, series.boots):
            column.pop()
    decision = decide(found, 13)
    assert not decision["findings"] and [one["node"] for one in decision["stale"]] == [SICK]
    assert [one["node"] for one in decision["unknown"]] == [SICK, name(12)]
    assert "last measured at 2026-11-26T00:00:00Z" in decision["unknown"][0]["why"]
    assert decision["unknown"][1]["why"] == "nothing was measured"


def test_a_gap_does_not_end_it():
    found = made.gauges("gpu_temperature", 12, 60, 1, {SICK: since(5, 12)})
    series = found.series[SICK, "", ""]["gpu_temperature"]
    kept = [row for row in zip(series.times, series.values, strict=True) if not NOW - 3 * DAY < row[0] < NOW - DAY]
    del found.series[SICK, "", ""]["gpu_temperature"]
    for at, value in kept:
        made.add(found, SICK, "gpu_temperature", value, at)
    assert blamed(decide(found, 12)) == [SICK]


def test_a_node_that_is_not_asked_about_is_left_out():
    found = made.gauges("gpu_temperature", 12, 60, 1, {SICK: since(5, 12)})
    assert not degradation.decide(found, {name(0): {}}, NOW)["findings"]


@pytest.mark.parametrize("seed", range(2))
def test_false_alarms_are_rarer_than_one_in_a_thousand_node_weeks(seed):
    """Each seed judges a week of 80 nodes in five metrics, with machines that differ and chance errors."""
    nodes, alarms = 80, 0
    for metric, usual, noise, apart in (
        ("gpu_temperature", 62, 1.5, 3),
        ("step_time", 4.2, 0.04, 0.03),
        ("bandwidth", 480, 5, 4),
    ):
        found = made.gauges(metric, nodes, usual, noise, seed=seed, every=3 * HOUR, apart=apart)
        alarms += len(decide(found, nodes)["findings"])
    for metric, per_hour in (("ecc_correctable", 0.05), ("nvlink_replays", 0.3)):
        alarms += len(decide(made.counters(metric, nodes, per_hour, seed=seed), nodes)["findings"])
    assert alarms == 0


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"enter": 0.5}, "enter"),
        ({"strong": 3}, "strong"),
        ({"recent": 1}, "recent"),
        ({"min_peers": float("nan")}, "min_peers"),
    ],
)
def test_settings_that_would_blame_everybody_are_refused(given, path):
    with pytest.raises(InvalidDocument) as raised:
        degradation.Settings.checked(**given)
    assert raised.value.problems[0].path == path


def test_another_job_is_no_change_of_its_nodes():
    found = made.history()
    for number in range(12):
        for at in made.times(21):
            job, seconds = ("llm-70b", 4.2) if at < NOW - 3 * DAY else ("llm-405b", 11.0)
            line = {"node": name(number), "at": made.utc(at), "workload": job, "values": {"step_time": seconds}}
            found.add(line, "made")
    assert not (decision := decide(found, 12))["findings"] and not decision["shifts"] and not decision["stale"]


def test_a_node_that_was_slow_in_a_job_and_is_not_in_the_next_is_well():
    found = made.history()
    for number in range(12):
        for at in made.times(9):
            job, usual = ("old", 4.2) if at < NOW - 3 * DAY else ("new", 11.0)
            slow = 1.4 if name(number) == SICK and job == "old" else 0
            line = {"node": name(number), "at": made.utc(at), "workload": job, "values": {"step_time": usual + slow}}
            found.add(line, "made")
    decision = decide(found, 12)
    assert not decision["findings"] and not decision["stale"]


def test_within_one_job_the_slow_node_is_found():
    found = made.history()
    for number in range(12):
        for at in made.times(2):
            seconds = 5.5 if name(number) == SICK else 4.2
            found.add(
                {"node": name(number), "at": made.utc(at), "workload": "llm", "values": {"step_time": seconds}}, "made"
            )
    (one,) = decide(found, 12)["findings"]
    assert (one["node"], one["workload"]) == (SICK, "llm")


def test_what_is_long_past_does_not_break_a_pass():
    found = made.gauges("row_remap_pending", 12, 1, 0)
    found.now = NOW + 30 * DAY
    decision = decide(found, 12)
    assert not decision["findings"] and not decision["shifts"] and len(decision["unknown"]) == 12


def test_one_measurement_a_day_is_enough():
    found = made.gauges("gpu_temperature", 12, 60, 1, {SICK: since(5, 12)}, days=40, every=DAY + 1200)
    decision = decide(found, 12)
    assert blamed(decision) == [SICK] and not decision["unknown"]
    counted = made.history()
    for number in range(12):
        for index, at in enumerate(made.times(40, DAY + 1200)):
            total = index + (200 * max(0, index - 34) if name(number) == SICK else 0)
            made.add(counted, name(number), "ecc_correctable", total, at)
    assert blamed(decide(counted, 12)) == [SICK]
