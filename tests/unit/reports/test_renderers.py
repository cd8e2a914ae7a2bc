"""Markdown, JUnit, SARIF, HTML and JSON: their forms, and that no value breaks out of its place."""

import json
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument
from ansible_collections.goodput.fleet.plugins.module_utils.reports import files, html, junit, markdown, sarif
from ansible_collections.goodput.fleet.plugins.module_utils.reports.model import sections
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tests.unit.reports import documents as make

NASTY = [
    "a|b", "a\\|b", "\\", "`", "``x`", "<script>alert(1)</script>", "</code></td>", "&amp; & &#124;", "a\nb",
    "\r\n- item", "*bold* _em_ __x__ ~~del~~", "[link](javascript:alert(1))", "![x](http://x/y.png)", "<!-- x -->",
    "https://evil.example/?a=b", "www.evil.example", "@team please", "{{ 7*7 }}", "{% raw %}", "# head", "- x", "1. x",
    "---", "===", "]]>", "\u202eabc", "\x00\x07\x1b[31m", "\ufffe", "🦊", "$a$", ":smile:", "mailto:a@b.c",
    "trailing\\", "", " ", "\ud800", '"quoted\'',
]  # fmt: skip
nasty = (
    st.sampled_from(NASTY)
    | st.text(max_size=40)
    | st.lists(st.sampled_from(NASTY), min_size=1, max_size=3).map("".join)
)


def everything(value: str) -> dict:
    """Documents with the value in every field that a cluster or a person fills."""
    item = make.finding(
        component=value, path=value, expected=value, found=value, nodes=[value] * 7, message=value, hint=value
    )
    note = make.finding(severity="info", expected=None, found=None, message=value)
    parts = {value: {"status": "unknown", "reason": value}, "nodes": {"status": "ok"}}
    lists = {"recertify": [value], "ignored": [{"rule": value, "count": 2}]}
    drift = make.drift([item, note], parts, **lists)
    drift["metadata"]["name"] = value
    told = make.reason(object=value, message=value, next=value, nodes=[value], code=value)
    steps = [{"name": value, "status": "failed", "message": value, "hint": value}]
    return {
        "drift": drift,
        "health": {
            "name": value,
            **{key: got for key, got in make.health(**{"x": [told], value: []}).items() if key != "name"},
        },
        "install": {"name": value, "facts": {value: value}, "steps": steps},
    }


def squeezed(value: str) -> str:
    """As a reader sees it on one line."""
    return " ".join(re.sub(r"[\x00-\x20\x7f-\xa0\u2028\u2029\ufeff\ud800-\udfff]+", " ", value).split())


class Page(HTMLParser):
    """Elements, attributes and the text of each table cell."""

    VOID = ("meta", "br", "hr", "img", "input", "link")

    def __init__(self, text: str):
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str]] = []
        self.rows: list[list[str]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-1:]}"
        self.open.pop()

    def handle_data(self, data):
        self.words.append(data)
        if self.rows and {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data


def read(markdown_text: str) -> Page:
    return Page(MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(markdown_text))


class TestMarkdown:
    def test_what_people_get_to_read(self):
        found = [make.finding(nodes=[f"gpu-{index}" for index in range(9)])]
        parts = {"crds": {"status": "unknown", "reason": "forbidden: list at cluster scope"}, "nodes": {"status": "ok"}}
        page = markdown.render("Nightly", sections(drift=make.drift(found, parts, recertify=["gpu-0"])))
        assert page.startswith("# Nightly\n\n🔴 **Something is not as it should be**\n\n## Drift of prod-1: drifted\n")
        assert "1 error; 1 of 2 parts could not be determined" in page
        row = next(line for line in page.splitlines() if "value-differs" in line)
        assert row.strip("| ").split(" | ") == [
            "🔴 error",
            "`value-differs`",
            "`gpu-operator`",
            "`releases/gpu-operator/gpu-operator/values/driver.version`",
            "`580.105.08`",
            "`575.57.08`",
            "`gpu-0`, `gpu-1`, `gpu-2`, `gpu-3`, `gpu-4` +4",
            "install the bundle again",
        ]
        assert "| `crds` | forbidden: list at cluster scope | grant get and list on it, then run again |" in page
        assert "Nodes to certify again: `gpu-0`" in page

    def test_in_sync_is_short(self):
        page = markdown.render("t", sections(drift=make.drift()))
        assert "🟢 **All is as it should be**" in page and "|" not in page

    def test_long_tables_are_cut_and_say_so(self):
        page = markdown.render(
            "t", sections(drift=make.drift([make.finding(path=f"p/{index}") for index in range(400)]))
        )
        assert "… and 100 more, in the JSON report." in page
        assert len(page) < 200_000

    @settings(max_examples=120, deadline=None)
    @given(value=nasty)
    def test_a_value_stays_in_its_cell_and_shows_as_it_is(self, value):
        page = read(markdown.render(value, sections(**everything(value))))
        assert page.tags <= {
            "h1",
            "h2",
            "p",
            "strong",
            "ul",
            "li",
            "table",
            "thead",
            "tbody",
            "tr",
            "th",
            "td",
            "code",
            "em",
        } - {"em"}
        assert not [pair for pair in page.attributes if pair[0] != "start"]
        shown = squeezed(value)
        cells = {tuple(len(row) for row in page.rows)}
        assert cells == {(4, 4, 7, 7, 8, 8, 8, 3, 3)}
        drift_row = [cell.strip() for cell in page.rows[5]]
        assert drift_row[2:6] == [shown] * 4 and drift_row[7] == shown
        assert drift_row[6] == ", ".join([shown] * 5) + " +2"
        assert [cell.strip() for cell in page.rows[3]][4] == shown
        assert [cell.strip() for cell in page.rows[8]][:2] == [shown, shown]


class TestJUnit:
    def test_each_thing_is_a_case_and_the_numbers_agree(self):
        parts = {"nodes": {"status": "ok"}, "crds": {"status": "unknown", "reason": "forbidden"}}
        found = [make.finding(), make.finding(severity="warning"), make.finding(severity="info")]
        steps = [{"name": "a", "status": "ok"}, {"name": "b", "status": "planned"}, {"name": "c", "status": "failed"}]
        root = ElementTree.fromstring(
            junit.render(
                "t",
                sections(make.drift(found, parts), make.health(a=[], b=[make.reason()] * 2), make.install(steps=steps)),
            ).encode()
        )
        suites = {
            suite.get("name"): [suite.get(key) for key in ("tests", "failures", "errors", "skipped")] for suite in root
        }
        assert suites == {
            "Install prod-1": ["3", "1", "0", "1"],
            "Component health prod-1": ["3", "2", "0", "0"],
            "Drift prod-1": ["5", "2", "1", "0"],
        }
        assert [root.get(key) for key in ("tests", "failures", "errors", "skipped")] == ["11", "5", "1", "1"]
        error = root.find(".//error")
        assert (error.get("type"), error.get("message")) == ("part", "forbidden")

    @settings(max_examples=120, deadline=None)
    @given(value=nasty)
    def test_the_document_is_well_formed_whatever_the_values(self, value):
        content = junit.render(value, sections(**everything(value))).encode()
        root = ElementTree.fromstring(content)
        kept = junit.clean(value).replace("\r\n", "\n").replace("\r", "\n")
        assert [
            case.tag
            for case in root.iter()
            if case.tag not in ("testsuites", "testsuite", "testcase", "failure", "error", "system-out")
        ] == []
        failure = root.findall("testsuite")[2].find("testcase/failure")
        assert failure.get("message") == junit.clean(value or "error")
        assert kept in failure.text


class TestSarif:
    def log(self, source="", **given):
        return json.loads(sarif.render("t", sections(**given), source))

    def test_results_point_to_rules_and_places(self):
        parts = {"crds": {"status": "unknown", "reason": "forbidden"}}
        found = [
            make.finding(nodes=["n"]),
            make.finding(code="image-differs", severity="warning"),
            make.finding(severity="info", path="z"),
        ]
        log = self.log("clusters/prod 1/recipe.lock.yaml", drift=make.drift(found, parts))
        run = log["runs"][0]
        assert (log["version"], run["tool"]["driver"]["name"]) == ("2.1.0", "goodput.fleet")
        assert [(result["ruleId"], result["level"]) for result in run["results"]] == [
            ("drift/value-differs", "error"),
            ("drift/image-differs", "warning"),
            ("drift/value-differs", "note"),
            ("drift/not-determined", "error"),
        ]
        rules = run["tool"]["driver"]["rules"]
        assert all(rules[result["ruleIndex"]]["id"] == result["ruleId"] for result in run["results"])
        place = run["results"][0]["locations"][0]
        assert place["physicalLocation"]["artifactLocation"]["uri"] == "clusters/prod%201/recipe.lock.yaml"
        assert place["logicalLocations"][0]["fullyQualifiedName"].startswith("prod-1/gpu-operator/releases/")
        assert run["invocations"] == [{"executionSuccessful": True}]

    def test_the_same_fault_keeps_its_fingerprint_when_its_value_changes(self):
        prints = [
            self.log(drift=make.drift([make.finding(found=value)]))["runs"][0]["results"][0]["partialFingerprints"]
            for value in ("1", "2")
        ]
        assert prints[0] == prints[1]

    def test_without_a_source_there_is_no_physical_place(self):
        assert (
            "physicalLocation"
            not in self.log(health=make.health(a=[make.reason()]))["runs"][0]["results"][0]["locations"][0]
        )

    def test_a_run_that_could_not_see_is_no_success(self):
        log = self.log(health=make.health(a=[make.reason(verdict="unknown")]))
        assert log["runs"][0]["invocations"] == [{"executionSuccessful": False}]
        assert log["runs"][0]["results"][0]["level"] == "error"

    @settings(max_examples=60, deadline=None)
    @given(value=nasty)
    def test_it_is_json_whatever_the_values(self, value):
        log = json.loads(sarif.render(value, sections(**everything(value)), value).encode())
        assert log["runs"][0]["results"][-1]["message"]["text"]


class TestHtml:
    TAGS = {
        "html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "h3", "p", "span", "nav", "a", "section",
        "header", "ul", "li", "b", "dl", "dt", "dd", "div", "table", "thead", "tbody", "tr", "th", "td", "code",
        "details", "summary",
    }  # fmt: skip

    def test_the_page_shows_everything_and_loads_nothing(self):
        text = html.render(
            "Nightly", sections(make.drift([make.finding()]), make.health(good=[], bad=[make.reason()]), make.install())
        )
        page = Page(text)
        words = " ".join(page.words)
        for told in (
            "Nightly",
            "Drift of prod-1",
            "drifted",
            "580.105.08",
            "CrashLoopBackOff",
            "good",
            "h100-eks",
            "was there",
            "kubectl -n",
        ):
            assert told in words
        assert not re.search(r"https?://|url\(|@import|<script|<link|<img", text)
        assert {value for name, value in page.attributes if name == "href"} == {"#install", "#health", "#drift"}
        assert "prefers-color-scheme: dark" in text

    def test_many_nodes_are_one_click_away(self):
        page = Page(
            html.render("t", sections(drift=make.drift([make.finding(nodes=[f"n{index}" for index in range(30)])])))
        )
        assert "+24" in page.words and "n29" in page.words and "details" in page.tags

    @settings(max_examples=80, deadline=None)
    @given(value=nasty)
    def test_no_value_becomes_markup(self, value):
        page = Page(html.render(value, sections(**everything(value))))
        assert page.tags <= self.TAGS
        assert not page.open
        plain = {"lang", "charset", "name", "content", "http-equiv", "class", "id", "href", "scope", "aria-label"}
        assert {name for name, _value in page.attributes} <= plain
        assert {got for name, got in page.attributes if name == "href"} == {"#install", "#health", "#drift"}
        kept = value.replace("\r\n", "\n").replace("\r", "\n")
        assert not value or any(kept in word or value in word for word in page.words) or "\0" in value or "\r" in value


class TestFiles:
    GIVEN = {"drift": make.drift([make.finding()]), "health": make.health(a=[]), "install": make.install()}

    def test_names_of_files(self):
        made = files.render("t", ["html", "json", "junit", "markdown", "sarif"], "nightly", **self.GIVEN)
        pages = {"nightly.html", "nightly.junit.xml", "nightly.md", "nightly.sarif"}
        assert set(made) == {"drift.json", "health.json", "install.json"} | pages

    def test_json_is_the_document_itself_and_always_the_same(self):
        turned = dict(reversed(self.GIVEN["drift"].items()))
        one, two = (
            files.render("t", ["json"], drift=document)["drift.json"] for document in (self.GIVEN["drift"], turned)
        )
        assert one == two
        assert json.loads(one) == self.GIVEN["drift"]

    def test_what_differs_in_every_run_is_left_out(self):
        result = {**self.GIVEN["health"], "waited": 12.3, "changed": False, "failed": False}
        assert "waited" not in json.loads(files.render("t", ["json"], health=result)["health.json"])

    def test_only_what_differs_is_written(self, tmp_path):
        made = files.render("t", ["json", "markdown"], **self.GIVEN)
        dest = str(tmp_path / "new" / "place")
        assert files.write(dest, made, check_only=True) == sorted(made)
        assert not (tmp_path / "new").exists()
        assert files.write(dest, made) == sorted(made)
        assert files.write(dest, made) == []
        (tmp_path / "new" / "place" / "report.md").write_text("other")
        assert files.write(dest, made) == ["report.md"]
        assert sorted(path.name for path in (tmp_path / "new" / "place").iterdir()) == sorted(made)

    @pytest.mark.parametrize("stem", ["../out", "a/b", "", ".", ".."])
    def test_files_stay_in_their_directory(self, stem):
        with pytest.raises(InvalidDocument, match="not the name of a file"):
            files.render("t", ["markdown"], stem, **self.GIVEN)

    @settings(max_examples=50, deadline=None)
    @given(value=nasty)
    def test_every_format_can_be_written_whatever_the_values(self, value):
        given_documents = everything(value)
        del given_documents["drift"]  # its schema refuses empty names
        assert len(files.render(value, list(files.FORMATS), **given_documents)) == 4
