"""What a report says in all."""

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument
from ansible_collections.goodput.fleet.plugins.module_utils.reports import files
from ansible_collections.goodput.fleet.plugins.module_utils.reports.model import overall, sections, some, text

from tests.unit.reports import documents as make

UNREAD = {"crds": {"status": "unknown", "reason": "forbidden: crds list at cluster scope"}, "nodes": {"status": "ok"}}


@pytest.mark.parametrize(
    ("given", "verdict"),
    [
        ({"drift": make.drift()}, "pass"),
        ({"drift": make.drift([make.finding(severity="info")])}, "pass"),
        ({"drift": make.drift([make.finding(severity="warning")])}, "fail"),
        ({"drift": make.drift(parts=UNREAD)}, "unknown"),
        ({"drift": make.drift([make.finding()], parts=UNREAD)}, "fail"),
        ({"health": make.health(a=[], b=[])}, "pass"),
        ({"health": make.health(a=[], b=[make.reason()])}, "fail"),
        ({"health": make.health(a=[], b=[make.reason(verdict="unknown")])}, "unknown"),
        ({"health": make.health()}, "unknown"),
        ({"health": {"components": [{"name": "a", "status": "sick"}]}}, "unknown"),
        ({"install": make.install()}, "pass"),
        ({"install": make.install(status="planned")}, "pass"),
        ({"install": make.install(steps=[])}, "unknown"),
        ({"install": make.install(steps=[{"name": "a", "status": "failed"}])}, "fail"),
        ({"install": make.install(steps=[{"name": "a", "status": "unknown"}])}, "unknown"),
        ({"drift": make.drift(), "health": make.health(a=[make.reason()])}, "fail"),
        ({"drift": make.drift(parts=UNREAD), "health": make.health(a=[])}, "unknown"),
        ({}, "unknown"),
    ],
)
def test_the_worst_decides_and_what_is_unknown_never_passes(given, verdict):
    assert overall(sections(**given)) == verdict


def test_a_reader_gets_the_message_where_there_is_nothing_to_compare():
    row = sections(drift=make.drift([make.finding(expected=None, found=None, message="the last upgrade failed")]))[
        0
    ].rows[0]
    assert (row.expected, row.found) == (None, "the last upgrade failed")


@pytest.mark.parametrize(
    ("value", "shown"),
    [("a", "a"), (None, None), (False, "false"), (0, "0"), ({"b": 1, "a": "ü"}, '{"a": "ü", "b": 1}'), ("", "")],
)
def test_values_read_as_people_write_them(value, shown):
    assert text(value) == shown


def test_long_values_and_lists_are_cut_and_say_so():
    assert text("x" * 301) == "x" * 300 + "… (301 characters)"
    assert some(["a", "b", "c"], 2) == (["a", "b"], 1)
    assert some([], 2) == ([], 0)


@pytest.mark.parametrize(
    ("given", "paths"),
    [
        ({}, [""]),
        ({"drift": {"kind": "Snapshot"}}, ["kind"]),
        ({"drift": make.drift([{**make.finding(), "colour": "red"}])}, ["spec.findings[0].colour"]),
        ({"health": {"msg": "failed"}}, ["health"]),
        (
            {"health": {"components": [{"name": "a"}, "b"]}},
            ["health.components[0].status"] + ["health.components[1].name", "health.components[1].status"],
        ),
        ({"install": {"steps": [{}]}, "health": {}}, ["install.steps[0].name"]),
        ({"install": {"steps": [{"name": "a"}, {"name": "b", "status": "done"}]}}, ["install.steps[1].status"]),
    ],
)
def test_everything_wrong_with_the_input_is_told_at_once(given, paths):
    with pytest.raises(InvalidDocument) as caught:
        files.render("t", ["json"], **given)
    assert [problem.path for problem in caught.value.problems] == paths


@pytest.mark.parametrize("dest", ["", " ", "a\0b"])
@pytest.mark.parametrize("check_only", [True, False])
def test_a_folder_without_a_name_is_refused_in_check_mode_too(dest, check_only):
    with pytest.raises(InvalidDocument, match="is not the path of a folder"):
        files.write(dest, {"a.md": b"x"}, check_only)


def test_a_report_in_no_format_is_refused():
    with pytest.raises(InvalidDocument, match=r"no format is named .*markdown"):
        files.render("x", [], install=make.install())
