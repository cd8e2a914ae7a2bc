# ruff: noqa: E501
"""The table of failure signatures: every row fits its own line, whatever stands before it, and is quick about it."""

from __future__ import annotations

import re
import time

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.jobs import literals, signatures
from ansible_collections.goodput.fleet.plugins.module_utils.records import yamltree
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, NotFound

from tests.unit.jobs.joblogs import CATALOG, read, table

ENTRIES = [
    entry
    for path in sorted((CATALOG / "signatures").glob("*.yaml"))
    for entry in yamltree.load_file(str(path)).data["spec"].get("signatures", [])
]
PREFIXES = ("", "[rank3]: ", "3: ", "[1,3]<stdout>:", "2026-03-06T09:34:56.123456Z ", "(Worker pid=9) [rank3]:")
HEAD = "apiVersion: goodput.fleet/v1alpha1\nkind: FailureSignatures\nmetadata: {name: x, description: y}\nspec:\n  signatures:\n"
ROW = "    - {id: %s, component: site, match: '%s', class: user-code, action: fail to user, blame: none, cascade: never%s}\n"


def test_the_165_known_rows_are_there():
    ids = [entry["id"] for entry in ENTRIES]
    assert [f"J{number:03d}" for number in range(1, 166)] == sorted(name for name in ids if name.startswith("J"))
    assert len(ids) == len(set(ids)) > 200
    assert all(entry["source"] for entry in ENTRIES if entry["id"].startswith("J"))


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["id"])
def test_every_row_decides_for_its_own_line(entry):
    for prefix in PREFIXES:
        answer = read(prefix + entry["example"])
        if answer["id"].startswith("exit"):
            # a line that only gives the code
            assert entry["cascade"] != "never" and f"{answer['exitCode']}" in entry["example"]
            continue
        assert (answer["id"], answer["class"], answer["action"]) == (entry["id"], entry["class"], entry["action"]), (
            prefix
        )
        assert answer["lines"][0]["number"] == 1
        if entry["cascade"] != "never":
            assert answer["cascade"]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["id"])
def test_a_line_that_only_follows_blames_nobody_by_itself(entry):
    if entry["cascade"] == "always" and not entry.get("died"):
        assert read("[rank3]: " + entry["example"])["blame"]["ranks"] == []


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["id"])
def test_no_pattern_takes_long_on_odd_lines(entry):
    search = re.compile(entry["match"]).search
    texts = entry.get("literals") or literals.needed(entry["match"])
    odd = [text * 100 for text in texts] + [
        f"{text} {filler * 1500}" for text in texts for filler in ("a.", "0 ", "/x", "1,", "(", "]")
    ]
    began = time.process_time()
    for line in odd:
        search(line[:8192])
    assert time.process_time() - began < 1.0


@pytest.mark.parametrize(
    "pattern, expected",
    [
        ("plain text", ["plain text"]),
        (r"Got async event : port", ["Got async event : port"]),
        (r"failed \(exitcode: -9\) rank: \d+", ["failed (exitcode: -9) rank: "]),
        (r"(?:abc|def) later text", [" later text"]),
        (r"first|second one", ["first", "second one"]),
        (r"Error[^:]{2,3}: [a]text", ["Error"]),
        (r"colou?r of it", ["r of it"]),
        (r"\w+\d+", []),
        (r"long enough|\d+", []),
        (r"ab123", []),
    ],
)
def test_texts_that_every_match_has(pattern, expected):
    assert literals.needed(pattern) == expected


def test_a_sites_layer_adds_narrower_signatures_and_replaces_ours(tmp_path):
    folder = tmp_path / "signatures"
    folder.mkdir()
    own = ROW % ("X1", "CUDA error: uncorrectable ECC error on the test rig", "") + ROW % (
        "J043",
        "uncorrectable ECC error",
        "",
    )
    (folder / "site.yaml").write_text(HEAD + own)
    both = signatures.load_catalog([str(CATALOG), str(tmp_path)])
    assert both.match("CUDA error: uncorrectable ECC error on the test rig").signature.id == "X1"
    found = both.match("CUDA error: uncorrectable ECC error encountered").signature
    assert (found.id, found.cls) == ("J043", "user-code")
    assert table().match("CUDA error: uncorrectable ECC error encountered").signature.cls == "hardware"


@pytest.mark.parametrize(
    "rows, words",
    [
        (ROW % ("X1", "(unclosed text", ""), "no regular expression"),
        (ROW % ("X1", "(a+)+ text", ""), "repeats what is repeated"),
        (ROW % ("X1", r"\d+ \w+", ""), "give `literals`"),
        (ROW % ("X1", "some text", ", example: other"), "does not fit its example"),
        (ROW % ("X1", "some text", "") * 2, "stands here twice"),
        (ROW % ("X1", "some text", ", colour: red"), "unknown key 'colour'"),
        (ROW % ("x1", "some text", ""), "'x1' is malformed"),
    ],
)
def test_a_bad_table_is_said_with_its_line(rows, words):
    with pytest.raises(InvalidDocument, match=r"site\.yaml:[67]") as caught:
        signatures.load([(HEAD + rows, "site.yaml")])
    assert words in str(caught.value)


def test_a_catalogue_without_signatures(tmp_path):
    with pytest.raises(NotFound, match="no failure signatures"):
        signatures.load_catalog([str(tmp_path)])
