"""Pages of job recovery: every incident is there, nothing of what logs say becomes markup, and pages stay small."""

import json
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.jobs import recovery_account
from ansible_collections.goodput.fleet.plugins.module_utils.reports import files, html, recovery, recovery_plots
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.jobs import recoveries as make

ALL = ["html", "json", "junit", "markdown", "sarif"]
SVG = re.compile(r"<svg .*?</svg>", re.DOTALL)
KNOWN = {
    "html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "h3", "p", "span", "nav", "a", "section",
    "header", "ul", "li", "b", "dl", "dt", "dd", "code", "figure", "figcaption", "div", "table", "thead", "tbody", "tr",
    "th", "td", "details", "summary", "svg", "rect", "circle", "line", "text",
}  # fmt: skip


class Tags(HTMLParser):
    """The page's elements, and whether they are nested as they should be."""

    def __init__(self, page):
        super().__init__()
        self.open, self.found, self.names = [], [], set()
        self.feed(page)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.found.append(tag)
        self.names |= {name for name, _value in attrs}
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.found.append(tag)
        self.names |= {name for name, _value in attrs}

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def rendered(account, formats=ALL):
    return {name: text.decode() for name, text in files.render("fleet", formats, recovery=account).items()}


def account(**more):
    return recovery_account.account(make.given(**more))


class TestPages:
    def test_all_formats(self):
        made = rendered(account())
        assert sorted(made) == ["recovery.json", "report.html", "report.junit.xml", "report.md", "report.sarif"]
        assert json.loads(made["recovery.json"]) == json.loads(json.dumps(account()))
        assert "| 🟢 recovered | `ml/llm` | `attempt 1` |" in made["report.md"]
        assert "Badput: wasted progress from disruption: `4.5 %`" in made["report.md"]
        assert rendered(account()) == made

    def test_the_page_has_a_time_line_for_people_who_see_it_and_for_those_who_do_not(self):
        page = rendered(account())["report.html"]
        share, line = map(ElementTree.fromstring, SVG.findall(page))
        assert share.get("role") == line.get("role") == "img"
        assert (
            line.get("aria-label")
            == line.findtext("title")
            == (
                "ml/llm, attempt 1: detect 7 s, decide 3 s, gate 2 s, restart 2 s, until it runs 28 s, "
                "until its first step 1 min 10 s"
            )
        )
        told = [element.text for element in line.findall("text")]
        assert {"fault", "detected", "decided", "gated", "running", "first step", "drain gpu-02"} <= set(told)
        assert "wasted progress from disruption 4.5 %" in share.get("aria-label")
        caption = "ml/llm, attempt 1: recovered, running after 42 s, while its old nodes were still worked on"
        assert f"<figcaption>{caption}</figcaption>" in page

    def test_the_page_loads_nothing_and_is_well_formed(self):
        page = rendered(account())["report.html"]
        tags = Tags(page)
        assert set(tags.found) <= KNOWN and not {"src", "onload", "onclick"} & tags.names
        assert "://" not in page and "prefers-color-scheme: dark" in page

    def test_marks_that_are_not_known_are_named(self):
        page = rendered(account(gates=[]))["report.html"]
        assert "Not known: gated (no gate on gpu-02 is known)" in page

    def test_every_class_of_marks_and_shares_has_a_colour(self):
        page = rendered(account())["report.html"]
        style, body = page.split("</style>")
        for kind in ("productive", "wastedProgress", "infrastructureRecovery", "programStartup", "unknown"):
            assert f".{kind} {{" in style and f'"share {kind}"' in body

    def test_without_an_incident_all_is_well(self):
        made = rendered(recovery_account.account({"name": "prod-1", "attempts": []}))
        assert "no job failed" in made["report.md"] and "Goodput: `not known`" in made["report.md"]
        assert ElementTree.fromstring(made["report.junit.xml"]).get("errors") == "0"

    @pytest.mark.parametrize(
        "action, mode, kind", [("giveBack", "act", "skipped"), ("escalate", "act", "failure"), ("hold", "act", "error")]
    )
    def test_junit_tells_who_has_to_do_something(self, action, mode, kind):
        first = make.failed()
        made = rendered(account(attempts=[first], decisions=[make.decision(first, action, mode=mode)], actions=[]))
        (case,) = ElementTree.fromstring(made["report.junit.xml"]).iter("testcase")
        assert [child.tag for child in case] == [kind]

    def test_every_status_has_words(self):
        incident = account()["incidents"][0]
        for status in recovery.STATUS:
            one = account() | {"incidents": [incident | {"status": status}]}
            assert recovery.section(one).rows[0].severity == recovery.STATUS[status][1]


HOSTILE = st.sampled_from(
    [
        "<script>alert(1)</script>", "</svg><img src=x onerror=alert(1)>", '" onload="x', "</style>", "| a | b |",
        "[x](http://evil.example)", "`code`", "&amp;<b>", "\x00\x1b[31m", "\ud800", "]]>", "{{ 7*7 }}", "a\nb\r\n# c",
    ]
) | st.text(max_size=20)  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(*[HOSTILE] * 6)
def test_nothing_that_is_given_becomes_markup(name, node, what, reason, text, detail):
    name, node = name or "x", node or "x"
    first = make.failed(
        name=name, reason=reason, signature={"id": what, "class": what, "lines": [{"text": text}]},
        hardware={node: [{"source": what, "at": make.at("29:58"), "what": what, "fatal": True}]},
    )  # fmt: skip
    hostile = recovery_account.account(
        make.given(
            name=name, attempts=[first, make.again(name=name)],
            decisions=[make.decision(first, gate=(node,), reasons=[text, detail], rule=what)],
            actions=[{"attempt": first["key"], "status": "failed", "detail": detail}],
            gates=[{"node": node, "owner": what, "reason": reason, "since": make.at("30:10")}],
            drains=[{"node": node, "status": what, "startedAt": make.at("30:15")}], repairs=[],
        )
    )  # fmt: skip
    made = rendered(hostile)
    tags = Tags(made["report.html"])
    assert set(tags.found) <= KNOWN and not [name for name in tags.names if name.startswith("on") or name == "src"]
    assert tags.found.count("svg") == 2
    for svg in SVG.findall(made["report.html"]):
        ElementTree.fromstring(svg)
    ElementTree.fromstring(made["report.junit.xml"])
    rows = [line for line in made["report.md"].splitlines() if line.startswith("|")]
    assert len(rows) == 3 and len({line.count("|") for line in rows}) == 1
    # between backquotes a sign is only a sign
    outside = re.sub(r"`[^`\n]*`", "", made["report.md"])
    assert not re.search(r"<(?!code>|/code>)", outside)


def test_thousands_of_incidents_make_a_page_that_still_opens():
    attempts, decisions = [], []
    for number in range(3000):
        first = make.failed(name=f"job-{number:04}")
        attempts += [first, make.again(name=f"job-{number:04}")]
        decisions.append(make.decision(first))
    made = rendered(account(attempts=attempts, decisions=decisions, actions=[]))
    assert len(json.loads(made["recovery.json"])["incidents"]) == 3000
    assert len(made["report.html"]) < 3_000_000 and len(made["report.md"]) < 300_000
    assert made["report.html"].count("<svg") == html.PLOTS
    assert "… and 1000 more, in the JSON report." in made["report.html"]


class TestWords:
    @pytest.mark.parametrize(
        "seconds, told",
        [
            (None, None), (0, "0 s"), (0.35, "0.35 s"), (42.4, "42 s"), (59.9, "59 s"), (60, "1 min"),
            (185, "3 min 5 s"), (7800, "2 h 10 min"), (86400 + 7200, "1 d 2 h"), (9.96, "10 s"),
        ],
    )  # fmt: skip
    def test_times(self, seconds, told):
        assert recovery.spell(seconds) == told

    @pytest.mark.parametrize(
        "share, told", [(0, "0.0 %"), (0.0001, "<0.1 %"), (0.9999, "99.9 %"), (1, "100.0 %"), (0.5405, "54.0 %")]
    )
    def test_shares(self, share, told):
        assert recovery.percent(share) == told

    def test_one_known_moment_is_no_time_line(self):
        incident = account()["incidents"][0]
        bare = incident | {"marks": [mark | {"at": None} for mark in incident["marks"][1:]] + incident["marks"][:1]}
        assert recovery_plots.timeline(bare) == ""

    def test_moments_at_the_same_time_can_be_drawn(self):
        incident = account()["incidents"][0]
        same = incident | {"marks": [mark | {"at": make.at("30:00")} for mark in incident["marks"]]}
        assert len(ElementTree.fromstring(recovery_plots.timeline(same)).findall("circle")) == 7
