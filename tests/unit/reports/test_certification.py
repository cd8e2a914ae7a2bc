"""Results of certifications and their reports: nothing but a pass is passed, and what stands out is named."""

import json
from xml.etree import ElementTree

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.certification import charts, results, verdict
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument
from ansible_collections.goodput.fleet.plugins.module_utils.reports import certification, files, html, junit, markdown
from ansible_collections.goodput.fleet.plugins.module_utils.reports.plots import by_node, by_size, size_text
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.reports import certifications as make
from tests.unit.reports import test_renderers as pages

FLEET = {f"gpu-{number:02}": 390.0 + number / 10 for number in range(12)}
SLOW = {**FLEET, "gpu-07": 211.0}
PAIR = {"badPairs": [{"a": "gpu-01", "b": "gpu-02", "failed": 4}], "green": False, "tests": 31, "rounds": 4}


class TestResults:
    def test_all_pass(self):
        document = make.made(FLEET, "value >= 300", started="2026-11-29T20:00:00Z")
        assert document["status"] == "pass"
        assert document["counts"] == {"nodes": {"pass": 12}, "rows": {"pass": 12}, "mayOpenGate": 12}
        assert document["categories"] == [
            {
                "name": "all-reduce", "test": "communication/nccl-all-reduce", "counts": {"pass": 12},
                "bounds": ["busBandwidthGBps: value >= 300"],
            }
        ]  # fmt: skip
        row = document["rows"][0]
        assert (row["node"], row["outcome"], row["metrics"]["busBandwidthGBps"]["value"]) == ("gpu-00", "pass", 390.0)
        assert row["boundsUsed"][0]["holds"] is True and len(row["runs"]) == 1
        assert json.loads(json.dumps(document)) == document

    def test_one_slow_node_fails_the_whole_and_is_named(self):
        document = make.made(SLOW, "value >= 300")
        assert (document["status"], document["counts"]["mayOpenGate"]) == ("fail", 11)
        plot = document["plots"]["nodes"][0]
        assert plot["outliers"] == [{"node": "gpu-07", "value": 211.0, "why": "bound"}]
        assert (plot["limits"], plot["unit"], len(plot["values"])) == ([300.0], "GB/s", 12)
        sizes = document["plots"]["sizes"][0]
        assert [line["name"] for line in sizes["series"] if line["standsOut"]] == ["gpu-07"]
        assert [row["size"] for row in sizes["rows"]] == make.SIZES and sizes["rows"][0]["groups"] == 12

    def test_without_a_bound_nothing_is_passed_but_what_stands_out_is_named(self):
        document = make.made(SLOW)
        assert (document["status"], document["counts"]["mayOpenGate"]) == ("pass_unbounded", 0)
        named = {plot["metric"]: plot["outliers"] for plot in document["plots"]["nodes"]}
        assert named["busBandwidthGBps"] == [{"node": "gpu-07", "value": 211.0, "why": "spread"}]

    def test_a_node_without_a_run_leaves_it_incomplete(self):
        document = make.made(FLEET, "value >= 300", asked=[*FLEET, "gpu-99"])
        assert document["status"] == "incomplete"
        assert document["rows"][-1]["outcome"] == "not_run" and document["rows"][-1]["metrics"] == {}

    @pytest.mark.parametrize(
        "found, status", [(PAIR, "fail"), ({"green": False}, "incomplete"), ({"green": True}, "pass")]
    )
    def test_a_link_fault_or_an_open_search_blocks_a_green_end(self, found, status):
        assert make.made(FLEET, "value >= 300", isolation={"all-reduce": found})["status"] == status

    def test_nothing_is_incomplete(self):
        assert make.made({}, "value >= 300")["status"] == "incomplete"

    def test_the_run_that_decided_gives_the_numbers(self):
        fast, slow = make.run("a", "b"), make.run("a", id="1" * 12)
        bound = make.bounded("value >= 300")
        rows = [
            row
            for one, speed in ((slow, 100.0), (fast, 390.0))
            for row in verdict.outcomes(one, make.parsed(speed), make.observed(one), bound)
        ]
        document = results.build("x", rows, verdict.combine(rows))
        values = {row["node"]: row["metrics"]["busBandwidthGBps"]["value"] for row in document["rows"]}
        assert values == {"a": 100.0, "b": 390.0}
        assert document["rows"][0]["runs"] == [slow["id"], fast["id"]]


class TestCharts:
    def rows(self, values, holds=None):
        bounds = [{"metric": "m", "expression": "value > 1", "holds": holds}] if holds is not None else []
        return [
            {"category": "c", "node": node, "metrics": {"m": {"value": value, "unit": "x"}}, "boundsUsed": bounds}
            for node, value in values.items()
        ]

    def test_equal_nodes_have_no_outlier(self):
        assert charts.by_node(self.rows(dict.fromkeys("abcdef", 5.0), True))[0]["outliers"] == []
        assert charts.by_node(self.rows({**dict.fromkeys("abcdef", 5.0), "g": 5.05}))[0]["outliers"] == []

    def test_a_metric_without_a_bound_that_is_alike_everywhere_is_no_plot(self):
        assert charts.by_node(self.rows(dict.fromkeys("abcdef", 0))) == []

    def test_what_is_no_number_is_left_out(self):
        assert charts.by_node(self.rows({"a": None, "b": "1", "c": True, "d": float("nan"), "e": 1.0})) == []

    def test_latency_stands_out_upwards(self):
        runs = [
            (make.run(name), {"runs": [{"rows": [{"size": 1 << n, "typical": value} for n in range(1, 9)]}]})
            for name, value in (("a", 2.0), ("b", 2.1), ("c", 9.0))
        ]
        (plot,) = charts.by_size(runs)
        assert [line["name"] for line in plot["series"] if line["standsOut"]] == ["c"]

    @pytest.mark.parametrize(
        "read", [None, {}, {"runs": [{}]}, {"runs": [{"sizes": [{"size": 8}]}]}, {"runs": [{"sizes": None}]}]
    )
    def test_runs_without_sizes_have_no_plot(self, read):
        assert charts.by_size([(make.run("a"), read)]) == []


def document(**outcomes: str) -> dict:
    """Results with the outcomes of nodes, by hand."""
    rows = [
        {
            "node": node,
            "category": "c",
            "test": "t",
            "outcome": outcome,
            "reasons": [f"why {node}"],
            "attribution": "tool",
        }
        for node, outcome in outcomes.items()
    ]
    nodes = [{"node": node, "verdict": outcome, "mayOpenGate": outcome == "pass"} for node, outcome in outcomes.items()]
    return {"name": "x", "status": "pass", "categories": [{"name": "c"}], "rows": rows, "nodes": nodes}


class TestReports:
    def case(self, text, node):
        return next(
            case for case in ElementTree.fromstring(text).iter("testcase") if case.get("classname").endswith(node)
        )

    @pytest.mark.parametrize("outcome, tag", [
        ("fail", "failure"), ("hang", "failure"), ("error", "error"), ("blocked", "error"), ("not_measured", "error"),
        ("not_run", "error"), ("skipped", "error"), ("not_applicable", "skipped"), ("pass_unbounded", "skipped"),
        ("pass", None),
    ])  # fmt: skip
    def test_junit_has_a_case_per_node_and_test_and_only_a_pass_passes(self, outcome, tag):
        text = junit.render("t", [certification.section(document(good="pass", odd=outcome))])
        case = self.case(text, ".odd")
        assert case.get("name") == "c"
        kinds = [child.tag for child in case if child.tag != "system-out"]
        assert kinds == ([tag] if tag else [])
        assert len(list(ElementTree.fromstring(text).iter("testcase"))) == 2

    @pytest.mark.parametrize(
        "outcome", [word for word in certification.VERDICTS if word not in ("pass", "not_applicable", "pass_unbounded")]
    )
    def test_a_status_is_never_better_than_its_rows(self, outcome):
        assert certification.section(document(a="pass", b=outcome)).verdict == certification.VERDICTS[outcome]

    def test_verdicts(self):
        assert certification.section(make.made(FLEET, "value >= 300")).verdict == "pass"
        assert certification.section(make.made(SLOW, "value >= 300")).verdict == "fail"
        assert certification.section(make.made(FLEET)).verdict == "unknown"
        assert certification.section(make.made(FLEET, allow_unbounded=True)).verdict == "pass"
        assert certification.section({**document(), "status": "pass"}).verdict == "unknown"
        unrun = {**document(a="pass"), "nodes": [{"node": "a", "verdict": "pass"}, {"node": "b", "verdict": "pass"}]}
        assert certification.section(unrun).verdict == "unknown"

    def test_a_bad_link_is_a_failure_of_its_own(self):
        part = certification.section(make.made(FLEET, "value >= 300", isolation={"all-reduce": PAIR}))
        assert part.verdict == "fail"
        case = self.case(junit.render("t", [part]), ".gpu-01 – gpu-02")
        assert case.get("name") == "all-reduce (bad-link)" and "4 tests failed" in case.find("failure").get("message")

    def test_a_node_that_its_own_row_tells_of_is_not_told_twice(self):
        search = {
            "bad": [{"node": "gpu-07", "scope": "across", "failed": 3}, {"node": "gpu-03", "scope": "any", "failed": 2}]
        }
        part = certification.section(make.made(SLOW, "value >= 300", isolation={"all-reduce": search}))
        assert [(row.component, row.code) for row in part.of("fail")] == [("gpu-07", "fail"), ("gpu-03", "bad-node")]

    def test_every_format_names_the_slow_node_and_why(self):
        given_document = make.made(SLOW, "value >= 300", started="2026-11-29T20:00:00Z")
        formats = ["html", "json", "junit", "markdown", "sarif"]
        texts = {name: text.decode() for name, text in files.render("t", formats, certification=given_document).items()}
        assert set(texts) == {"certification.json", "report.html", "report.junit.xml", "report.md", "report.sarif"}
        assert all("gpu-07" in text and "211" in text for text in texts.values())
        assert json.loads(texts["certification.json"]) == given_document
        assert "12 nodes: 1 fail, 11 pass; 11 may be opened" in texts["report.md"]
        assert "Stand out in all-reduce, busBandwidthGBps: `gpu-07 (211 GB/s)`" in texts["report.md"]
        assert json.loads(texts["report.sarif"])["runs"][0]["results"][0]["ruleId"] == "certification/fail"

    def test_the_page_plots_sizes_and_nodes(self):
        text = html.render("t", [certification.section(make.made(SLOW, "value >= 300"))])
        page = pages.Page(text)
        assert text.count("<svg") == 2 and not page.open
        words = " ".join(page.words)
        assert "all-reduce: bus bandwidth by message size" in words and "gpu-07 211" in words and "bound 300" in words
        assert "16M" in words and "1G" in words

    @settings(max_examples=60, deadline=None)
    @given(value=pages.nasty, number=st.floats() | st.integers() | st.none() | st.sampled_from(pages.NASTY))
    def test_no_value_becomes_markup(self, value, number):
        given_document = make.made(SLOW, "value >= 300", isolation={value: PAIR | {"flaky": [{"node": value}]}})
        text = json.dumps(given_document)
        for old in ("gpu-07", "all-reduce", "GB/s", "gpu-01"):
            text = text.replace(json.dumps(old), json.dumps(value))
        odd = json.loads(text)
        odd["plots"]["nodes"][0]["values"][3] = [value, number]
        odd["plots"]["nodes"][0]["limits"] += [number]
        odd["plots"]["sizes"][0]["rows"][2]["high"] = number
        odd["plots"]["sizes"][0]["series"][0]["points"][0][1] = number
        odd["rows"][0]["metrics"] = {value: {"value": number, "unit": value}, "m": number}
        odd["rows"][1]["reasons"] = [value]
        part = certification.section(odd)
        page = pages.Page(html.render(value, [part]))
        figures = {"figure", "figcaption", "svg", "polygon", "polyline", "circle", "text", "title"}
        assert page.tags <= pages.TestHtml.TAGS | figures and not page.open
        assert not [name for name, _value in page.attributes if name.startswith("on")]
        ElementTree.fromstring(junit.render(value, [part]).encode())
        assert markdown.render(value, [part]).startswith("# ")

    @pytest.mark.parametrize("change, words", [
        ({"rows": None}, "'rows' must be a list"),
        ({"rows": [{}]}, "certification.rows[0].node: 'node' must be text"),
        ({"rows": [{"node": "a", "category": "c", "outcome": "passed"}]}, "'passed' is no outcome (did"),
        ({"nodes": [{"node": "a", "verdict": 1}]}, "certification.nodes[0].verdict"),
        ({"status": "green"}, "'green' is no status"),
        ({"name": None}, "certification.name"),
        ({"plots": []}, None),
        ({"plots": [1]}, "'plots' must be a dictionary"),
    ])  # fmt: skip
    def test_what_is_no_results_document(self, change, words):
        odd = {**document(a="pass"), **change}
        if words is None:
            assert files.render("t", ["markdown"], certification=odd)
            return
        with pytest.raises(InvalidDocument) as caught:
            files.render("t", ["markdown"], certification=odd)
        assert words in str(caught.value)


class TestPlots:
    @pytest.mark.parametrize("plot", [{}, {"rows": 1}, {"rows": [{"size": 8}]}, {"values": [1, [1], ["a", None]]}])
    def test_without_data_there_is_no_plot(self, plot):
        assert by_size(plot) == by_node(plot) == ""

    @pytest.mark.parametrize("values", [[0, 0, 0], [1], [-5, 5], [1e-12, 2e-12], [1e14, 1], [7] * 6000])
    def test_any_values_stay_inside(self, values):
        text = by_node({"values": [[f"n{number}", value] for number, value in enumerate(values)], "median": values[0]})
        for circle in ElementTree.fromstring(text).iter("circle"):
            assert 0 <= float(circle.get("cx")) <= 760 and 0 <= float(circle.get("cy")) <= 300

    def test_sizes_read_as_the_tests_write_them(self):
        assert [size_text(size) for size in (8, 1024, 1 << 20, 3 << 29, 1 << 40)] == ["8", "1K", "1M", "1.5G", "1T"]
