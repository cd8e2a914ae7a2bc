"""The shipped tables as a whole: every code known, every code ends in an event, no event without a way out."""

from __future__ import annotations

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.records import yamltree
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, NotFound
from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas.healthevent import ACTIONS, SEVERITIES
from ansible_collections.goodput.fleet.plugins.module_utils.signals import tables

from tests.unit.signals.shipped import CATALOG, TABLES, entities, one

XIDS = [str(code) for code in range(1, 178)]
SXIDS = list(TABLES.of("sxid").entries)
DECODED = [
    (group, row, layout)
    for groups in TABLES.of("nvlink5").entries.values()
    for group in groups
    for row in group["rows"]
    for layout in ("v1", "v2")
]
# what may take a node out, code by code: a change of this list is a change of what happens to nodes
FATAL_XIDS = {
    "COMPONENT_RESET": "46 48 62 64 95 109 110 119 120 136 140 143 155 156 158 171 172",
    "RESTART_BM": "79",
    "RESTART_VM": "151",
    "CONTACT_SUPPORT": "54 74 78 142 159 167 169 173",
}


def test_every_xid_is_known_and_none_twice():
    assert list(TABLES.of("xid").entries) == XIDS


def test_the_fatal_xids_are_exactly_these():
    found: dict[str, list[str]] = {}
    for code in XIDS:
        meaning = TABLES.meaning("xid", code)
        if meaning.fatal:
            found.setdefault(meaning.action, []).append(code)
    assert {action: " ".join(codes) for action, codes in found.items()} == FATAL_XIDS


@pytest.mark.parametrize("code", XIDS)
def test_every_xid_becomes_an_event_with_the_tables_action(code):
    meaning = TABLES.meaning("xid", code)
    spec = one(f"[ 41.5] NVRM: Xid (PCI:0000:3b:00): {code}, pid=7, name=x, something the driver adds")
    assert spec["errorCode"] == [code]
    assert (spec["recommendedAction"], spec["isFatal"]) == (meaning.action, meaning.fatal)
    assert spec["severity"] == meaning.severity
    assert spec["metadata"]["class"] == meaning.cls
    assert spec["message"].startswith(f"Xid {code}, {meaning.title}")
    assert entities(spec) == {"PCI": "0000:3b:00"}


@pytest.mark.parametrize("code", SXIDS)
@pytest.mark.parametrize("word", ["Fatal", "Non-fatal"])
def test_every_sxid_becomes_an_event_and_the_lines_own_word_decides(code, word):
    meaning = TABLES.meaning("sxid", code)
    spec = one(f"[ 41.5] nvidia-nvswitch2: SXid (PCI:0000:e4:00.0): {code}, {word}, Link 30 some error")
    assert spec["isFatal"] == (word == "Fatal")
    assert spec["recommendedAction"] in (
        [meaning.action]
        if meaning.fatal == (word == "Fatal")
        else ["CONTACT_SUPPORT"]
        if meaning.fatal
        else [meaning.action, "CONTACT_SUPPORT"]
    )
    assert not (spec["isFatal"] and spec["recommendedAction"] == "NONE")


@pytest.mark.parametrize("group, row, layout", DECODED)
def test_every_row_of_the_nvlink_table_is_reached(group, row, layout):
    """The word is made from the row's own bits; the driver's version picks the layout."""
    lowest = row.get(layout, group[layout])
    word = int(row.get("cause", "0"), 2) << 20 | int(lowest, 2)
    status = row.get("status", ["0x000000aa"])[-1]
    driver = "570.86.15" if layout == "v1" else "580.105.08"
    for unit in (group["units"][0], "/".join(group["units"]), group["units"][-1].lower()):
        spec = one(
            f"NVRM: Xid (PCI:0013:06:00): {group['code']}, {unit}  Fatal   XC0 i0 Link 07 "
            f"(0x{word:08X} {status} 0x00000000 0x00000000)",
            driver_version=driver,
        )
        assert spec["metadata"]["decoded"] == layout
        assert (spec["recommendedAction"], spec["isFatal"]) == (row["action"], row["fatal"])
        assert spec["metadata"].get("look") == row.get("look")
        assert entities(spec) == {"PCI": "0013:06:00", "NVLINK": "7"}


def test_rows_of_one_unit_do_not_hide_each_other():
    for groups in TABLES.of("nvlink5").entries.values():
        keys = [
            (unit, layout, row.get(layout, group[layout]), row.get("cause"), status)
            for group in groups
            for unit in group["units"][-1:]
            for row in group["rows"]
            for layout in ("v1", "v2")
            for status in row.get("status", [None])
        ]
        assert len(keys) == len(set(keys))


def test_recovery_actions_are_those_of_the_driver_and_nvml():
    found = {code: (row["action"], row["fatal"]) for code, row in TABLES.of("xid").recovery.items()}
    assert found == {
        0: ("NONE", False),
        1: ("COMPONENT_RESET", True),
        2: ("RESTART_BM", True),
        3: ("DRAIN_P2P", False),
        4: ("DRAIN_RESET", True),
        5: ("RECOVER_IMEX_DOMAIN", False),
        6: ("BUS_RESET", True),
        7: ("RESTART_BM", True),
    }


def test_consequences_name_codes_that_are_there():
    for space in ("xid", "sxid"):
        known = TABLES.of(space).entries
        for code in known:
            meaning = TABLES.meaning(space, code)
            assert all(other == "*" or other in known for other in meaning.consequence_of + meaning.clears)
            assert bool(meaning.consequence_of) == bool(meaning.within)
            assert code not in meaning.consequence_of


@pytest.mark.parametrize("space", ["xid", "sxid", "dcgm", "nvml"])
def test_what_takes_a_gpu_out_asks_for_something_and_words_are_those_of_events(space):
    table = TABLES.of(space)
    for code in table.entries:
        meaning = table.meaning(code)
        assert meaning.action in ACTIONS and meaning.severity in SEVERITIES
        assert not (meaning.fatal and meaning.action == "NONE")
        assert meaning.fatal == (meaning.severity == "fatal")
        assert not (meaning.fatal and meaning.cls in ("unused", "monitor", "application", "consequence", "notice"))


def test_dcgm_numbers_have_no_gap_and_a_blind_observer_is_never_fatal():
    entries = [entry for (entry,) in TABLES.of("dcgm").entries.values()]
    assert [entry["number"] for entry in entries if "number" in entry] == list(range(134))
    assert all(entry.get("state") == "unknown" for entry in entries if entry["class"] == "monitor")
    assert not any(entry["fatal"] for entry in entries if entry.get("state") == "unknown")
    assert len(TABLES.of("dcgm").watches) == 13


@pytest.mark.parametrize("space, code", [("xid", "999"), ("sxid", "29017"), ("dcgm", "DCGM_FR_NEXT_YEAR")])
def test_a_code_nobody_described_needs_a_person_and_takes_nothing_out(space, code):
    meaning = TABLES.meaning(space, code)
    assert not meaning.known
    assert (meaning.action, meaning.fatal, meaning.severity) == ("CONTACT_SUPPORT", False, "error")
    assert meaning.metadata()["unknownCode"] == "true"


# what a site may write, and what is refused

SITE = """\
apiVersion: goodput.fleet/v1alpha1
kind: SignalTable
metadata: {name: ours}
spec:
  codeSpace: xid
  entries:
    - {code: "109", name: CTXSW_TIMEOUT, class: application, action: RESTART_APP, fatal: false}
"""
SHIPPED = [(path.read_text(), path.name) for path in sorted((CATALOG / "signals").glob("*.yaml"))]


def test_a_sites_table_changes_the_codes_it_names_and_no_other():
    ours = tables.load([*SHIPPED, (SITE, "site.yaml")])
    assert ours.meaning("xid", "109").action == "RESTART_APP"
    assert ours.meaning("xid", "79") == TABLES.meaning("xid", "79")
    assert ours.of("xid").recovery == TABLES.of("xid").recovery
    assert TABLES.meaning("xid", "109").action == "COMPONENT_RESET"


@pytest.mark.parametrize(
    "old, new, line, words",
    [
        ("action: RESTART_APP", "action: REBOOT", 7, "'REBOOT' is not allowed"),
        ("fatal: false", "fatal: true, action_: x", 7, "unknown key 'action_'"),
        ("action: RESTART_APP, fatal: false", "action: NONE, fatal: true", 7, "asks for nothing"),
        ('code: "109"', "code: 109", 7, "put it in quotes"),
        ("codeSpace: xid", "codeSpace: xids", 5, "did you mean 'xid'"),
        ("  entries:", "  entries: {}\n  x:", 6, "is a map, not a list"),
        ("kind: SignalTable", "kind: Signal", 2, "kind: SignalTable"),
        (SITE, "- 1\n", 1, "is a list"),
        (SITE, SITE + SITE.splitlines()[-1] + "\n", 8, "twice"),
        (SITE, "spec: {a: b: c}\n", 1, "malformed YAML"),
    ],
)
def test_a_broken_table_is_refused_with_its_line(old, new, line, words):
    with pytest.raises(InvalidDocument) as caught:
        tables.load([(SITE.replace(old, new), "site.yaml")])
    assert any(problem.line == line and words in str(problem) for problem in caught.value.problems), caught.value


def test_all_broken_tables_are_named_at_once():
    with pytest.raises(InvalidDocument) as caught:
        tables.load([(SITE.replace("RESTART_APP", "X"), "a.yaml"), (SITE.replace("109", " "), "b.yaml")])
    assert {problem.file for problem in caught.value.problems} == {"a.yaml", "b.yaml"}


def test_a_catalogue_without_tables_is_an_error(tmp_path):
    with pytest.raises(NotFound, match="signal tables"):
        tables.load_catalog([str(tmp_path)])


def test_the_same_texts_are_read_once():
    assert tables.load(SHIPPED) is tables.load(list(SHIPPED))


def test_every_shipped_table_fits_its_schema():
    from ansible_collections.goodput.fleet.plugins.module_utils.records import schema

    for text, name in SHIPPED:
        assert schema.validate(yamltree.load_text(text, name), "SignalTable") == []
