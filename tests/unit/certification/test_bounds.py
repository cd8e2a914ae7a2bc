"""Bounds: what is refused when they are read, and what holds when a run is held against them."""

from __future__ import annotations

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.certification import bounds
from ansible_collections.goodput.fleet.plugins.module_utils.certification.bounds import judge
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument

METRICS = {
    "busBandwidthGBps": {"unit": "GB/s", "direction": "higher"},
    "busBandwidthPlateauGBps": {"unit": "GB/s", "direction": "higher"},
    "smallestSizeTimeUs": {"unit": "us", "direction": "lower"},
    "wrongValues": {"unit": "values", "direction": "lower"},
    "renamed": {"unit": "s", "direction": "lower", "field": "avgStepTimeSec"},
}


def resolved(*given: dict, tool: str = "nccl", metrics: dict | None = None) -> dict:
    return {
        "category": "all-reduce",
        "bounds": [{"source": "bounds", **entry} for entry in given],
        "metrics": METRICS if metrics is None else metrics,
        "parser": {"tool": tool},
    }


def bound(expression: str, metric: str = "busBandwidthGBps", **more) -> dict:
    return {"metric": metric, "expression": expression, **more}


def runs(value: float | None = None, metric: str = "busBandwidthGBps", sizes: dict | None = None) -> list[dict]:
    measured = {} if value is None else {metric: {"value": value, "unit": "GB/s"}}
    return [{"metrics": measured, "sizes": [{"size": size, "busbw": bw} for size, bw in (sizes or {}).items()]}]


def judged(value: float | None, *given: dict, **context) -> dict:
    return judge(bounds.load(resolved(*given)), runs(value), context)


@pytest.mark.parametrize(
    ("expression", "good", "bad", "comparator", "limit"),
    [
        ("value >= 300", 300, 299.9, ">=", 300),
        ("value > 300.5", 301, 300.5, ">", 300.5),
        ("300 <= value", 300, 299, ">=", 300),
        ("value <= 3e2", 300, 301, "<=", 300),
        ("value == 0", 0, 1, "==", 0),
        ("(value >= 2 * 150)", 300, 299, ">=", 300),
        ("value >= 100 && value < 500", 100, 500, "<", 500),
        ("(value >= 100 && (value < 500))", 499, 3, ">=", 100),
        ("value >= 300 || value == 0", 0, 1, None, None),
        ("value >= 300 ? true : value == 7", 7, 8, None, None),
        ("!(value < 300)", 300, 299, None, None),
        ("int(value) % 2 == 0", 4, 5, None, None),
        ("value in [1, 2]", 2, 3, None, None),
    ],
)
def test_values_comparators_and_bounds(expression, good, bad, comparator, limit):
    assert judged(good, bound(expression))["violations"] == []
    (violation,) = judged(bad, bound(expression, source="acceptance 2026"))["violations"]
    assert (violation["value"], violation["comparator"], violation["bound"]) == (bad, comparator, limit)
    assert violation["source"] == "acceptance 2026" and violation["unit"] == "GB/s"
    assert "acceptance 2026" in violation["text"] and f"{bad:g} GB/s" in violation["text"]


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("value >=", "line 1, column 9: ends too early"),
        ("value >= 300 &&\n  valu < 7", "line 2, column 3: there is no variable 'valu' (did you mean 'value'?"),
        ("value >= 3 && value + x > 2", "line 1, column 23: there is no variable 'x'"),
        ("value >= 'fast'", "line 1, column 7: >= does not work on (double, string)"),
        ("value >= 300; true", "line 1, column 13: syntax error"),
        ("value", "gives double, not true or false"),
        ("value >= fleet.mean", "fleet has no field 'mean' (did you mean 'median'?"),
        ("1 == 1", "does not look at value"),
        ("'value' == 'x'", "does not look at value"),
        ("value >= 300 || true", "holds for every value"),
        ("value > 5 && value < 3", "holds for no value"),
    ],
)
def test_expressions_that_are_refused_with_their_place(expression, words):
    with pytest.raises(InvalidDocument) as caught:
        bounds.load(resolved(bound(expression)))
    (problem,) = caught.value.problems
    assert words in problem.message and problem.path == "categories.all-reduce.bounds[0]"


def test_all_faults_at_once_and_the_nearest_metric():
    given = [
        {"metric": "busBandwithGBps", "expression": "value >= 1", "source": "thresholds"},
        bound("value >="),
        bound("value >= 1", "wrongValues", size="1G"),
    ]
    with pytest.raises(InvalidDocument) as caught:
        bounds.load(resolved(*given))
    first, second, third = caught.value.problems
    assert first.code == "unknown-metric" and "did you mean 'busBandwidthGBps'?" in first.hint
    assert first.path == "categories.all-reduce.thresholds.busBandwithGBps"
    assert second.path == "categories.all-reduce.bounds[0]"
    assert third.code == "bad-size" and "valid: busBandwidthGBps" in third.hint


def test_parsers_that_name_metrics_after_their_output():
    loaded = bounds.load(resolved(bound("value >= 20", "pcie.bandwidth.min"), tool="dcgm_diag", metrics={}))
    assert judge(loaded, runs(25, "pcie.bandwidth.min"))["violations"] == []
    with pytest.raises(InvalidDocument, match=r"does not measure 'pcie'.*such as pcie\.gpu_to_host_bandwidth\.min"):
        bounds.load(resolved(bound("value >= 20", "pcie"), tool="dcgm_diag", metrics={}))
    with pytest.raises(InvalidDocument, match="no parser"):
        bounds.load(resolved(bound("value >= 20"), tool="none", metrics={}))


@pytest.mark.parametrize(
    ("metric", "expression", "warned"),
    [
        ("busBandwidthGBps", "value <= 300", True),
        ("busBandwidthGBps", "value >= 300", False),
        ("busBandwidthGBps", "value >= 300 && value <= 900", False),
        ("smallestSizeTimeUs", "value >= 30", True),
        ("smallestSizeTimeUs", "value <= 30", False),
        ("wrongValues", "value == 0", False),
    ],
)
def test_a_bound_in_the_wrong_direction_is_warned_of(metric, expression, warned):
    assert bool(bounds.load(resolved(bound(expression, metric))).warnings) is warned


def test_all_violations_are_told():
    given = [
        bound("value >= 300"),
        bound("value >= 200", "busBandwidthPlateauGBps"),
        bound("value >= 100 && value > 60"),
    ]
    measured = [{"metrics": {"busBandwidthGBps": {"value": 50}, "busBandwidthPlateauGBps": {"value": 40}}}]
    found = judge(bounds.load(resolved(*given)), measured)["violations"]
    assert [(item["metric"], item["bound"]) for item in found] == [
        ("busBandwidthGBps", 300),
        ("busBandwidthPlateauGBps", 200),
        ("busBandwidthGBps", 100),
        ("busBandwidthGBps", 60),
    ]


@pytest.mark.parametrize("value", [None, float("nan"), float("inf"), True, "300"])
def test_what_is_no_number_was_not_measured(value):
    found = judged(value, bound("value >= 300"))
    assert found["violations"] == [] and found["boundsUsed"][0]["holds"] is None
    assert "was not measured" in found["notMeasured"][0]["text"]


def test_the_worst_of_several_runs_decides():
    found = judge(bounds.load(resolved(bound("value >= 300"))), runs(400) + runs(200) + runs(None))
    assert [item["value"] for item in found["violations"]] == [200]


def test_the_name_a_parser_has_for_a_metric():
    found = judge(bounds.load(resolved(bound("value <= 2", "renamed"))), runs(3, "avgStepTimeSec"))
    assert found["violations"][0]["metric"] == "renamed"


@pytest.mark.parametrize(
    ("size", "sizes", "outcome"),
    [
        ("1G", {1 << 30: 310, 1 << 20: 10}, "holds"),
        ("1M", {1 << 30: 310, 1 << 20: 10}, "violation"),
        ("1G", {(1 << 30) + 4096: 310}, "holds"),  # rounded to what the ranks share
        ("2G", {1 << 30: 310}, "missing"),
        ("1G", {}, "missing"),
    ],
)
def test_one_message_size(size, sizes, outcome):
    found = judge(bounds.load(resolved(bound("value >= 300", size=size))), runs(310, sizes=sizes))
    assert bool(found["violations"]) is (outcome == "violation")
    assert bool(found["notMeasured"]) is (outcome == "missing")
    if outcome != "holds":
        told = (found["violations"] or found["notMeasured"])[0]
        assert told["size"] == bounds.bytes_of(size) and f"at {size}" in told["text"]


def test_sizes_of_a_point_to_point_test():
    metrics = {"bandwidthAverageGbps": {"unit": "Gb/s", "direction": "higher"}}
    given = bound("value >= 380", "bandwidthAverageGbps", size="8M")
    loaded = bounds.load(resolved(given, tool="perftest", metrics=metrics))
    measured = [{"metrics": {}, "rows": [{"size": 8 << 20, "average": 370.0}]}]
    assert judge(loaded, measured)["violations"][0]["value"] == 370


SCOPED = (bound("value >= 600", scope="domain"), bound("value >= 40", scope="cross"))


@pytest.mark.parametrize(
    ("scope", "value", "failing"), [("domain", 50, [600]), ("cross", 50, []), ("cross", 30, [40]), ("domain", 650, [])]
)
def test_inside_a_domain_and_across(scope, value, failing):
    found = judged(value, *SCOPED, scope=scope)
    assert [item["bound"] for item in found["violations"]] == failing and not found["unbounded"]


def test_a_scope_or_accelerator_that_is_not_known_lets_nothing_pass():
    found = judged(650, *SCOPED)
    assert len(found["notMeasured"]) == 2 and "domains of these nodes are not known" in found["notMeasured"][0]["text"]
    found = judged(650, bound("value >= 300", accelerator="h100"))
    assert "what these nodes have is not known" in found["notMeasured"][0]["text"]


def test_a_table_per_accelerator():
    table = [bound("value >= 300", accelerator="h100"), bound("value >= 600", accelerator="gb200")]
    assert [item["bound"] for item in judged(200, *table, accelerator="H100")["violations"]] == [300]
    assert judged(400, *table, accelerator="h100")["violations"] == []
    found = judged(400, *table, accelerator="b300")
    assert found["unbounded"] and found["uncovered"] == ["busBandwidthGBps"]


def test_no_bound_is_unbounded():
    assert judged(400)["unbounded"] and not judged(400, bound("value > 1"))["unbounded"]


FLEET = "value >= fleet.median - 3 * fleet.mad"


@pytest.mark.parametrize(
    ("value", "peers", "outcome"),
    [
        (394, [400, 402, 398, 401, 399], "violation"),
        (397, [400, 402, 398, 401, 399], "holds"),
        (100, [400, 402, 398, 401], "missing"),
        (100, [400, 402, 398, 401, None], "missing"),
        (100, [], "missing"),
        (394, [400, 402, 398, 401, 399, 40, 9999], "holds"),
    ],
)
def test_nodes_of_the_same_kind(value, peers, outcome):
    found = judged(value, bound(FLEET), fleet=[runs(peer) for peer in peers])
    assert bool(found["violations"]) is (outcome == "violation")
    assert bool(found["notMeasured"]) is (outcome == "missing")
    if outcome == "missing":
        assert "5 are needed" in found["notMeasured"][0]["text"]
    if outcome == "violation":
        (violation,) = found["violations"]
        assert violation["fleet"] == {"median": 400, "mad": 1, "count": 5} and violation["bound"] == 397
        assert "5 peers, median 400, MAD 1" in violation["text"]


def test_who_is_a_peer():
    def planned(*nodes: str, **more) -> dict:
        return {"nodes": list(nodes), "test": "t", "spec": "s", "accelerator": "h100", "product": "p", **more}

    def read(value: float, **more) -> dict:
        return {"complete": True, "runs": runs(value), **more}

    others = [
        (planned("a"), read(1)),  # its own
        (planned("b"), read(2)),
        (planned("b", repeat=2), read(3)),  # once more the same node
        (planned("c"), read(4, complete=False)),
        (planned("d"), None),
        (planned("e", accelerator="l40s"), read(5)),
        (planned("f", spec="another"), read(6)),
        (planned("a", "g"), read(7)),
        (planned("h"), read(8)),
    ]
    found = bounds.peers(planned("a"), others)
    assert [[one["metrics"]["busBandwidthGBps"]["value"] for one in peer] for peer in found] == [[2, 3], [8]]
    # of several repeats the worst counts
    loaded = bounds.load(resolved(bound("value >= fleet.median", minPeers=2)))
    assert judge(loaded, runs(1), {"fleet": found})["violations"][0]["fleet"] == {"median": 5, "mad": 3, "count": 2}


def test_fewer_peers_where_that_is_asked_for():
    found = judged(100, bound(FLEET, minPeers=2), fleet=[runs(400), runs(402)])
    assert found["violations"][0]["bound"] == 398


def test_what_cannot_be_decided_is_not_measured():
    found = judged(1e300, bound("int(value) >= 3"))
    assert found["violations"] == [] and "cannot be compared" in found["notMeasured"][0]["text"]


def test_the_report_has_every_bound_with_its_value():
    (used,) = judged(400, bound("value >= 100 && value < 500", source="site acceptance"))["boundsUsed"]
    assert used["value"] == 400 and used["holds"] is True and used["source"] == "site acceptance"
    assert used["limits"] == [{"comparator": ">=", "bound": 100}, {"comparator": "<", "bound": 500}]
