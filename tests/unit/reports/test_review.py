# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of a pull request: what it says, and that nothing in it can leave its cell."""

from __future__ import annotations

import html
import re

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.reports import review
from hypothesis import given
from hypothesis import strategies as st

CHANGE = {
    "component": "gpu-operator",
    "path": "values.driver.version",
    "before": "580.65.06",
    "after": "580.105.08",
    "change": "differs",
    "kind": "nodeFact",
    "recertify": True,
    "why": "the driver of GPU nodes changes",
}
BOUND = {
    "certification": "driver",
    "category": "nccl",
    "path": "thresholds.busBandwidthGBps",
    "before": "value >= 300",
    "after": None,
    "effect": "loosened",
}


def page(**given_) -> str:
    made = {
        "name": "eks-h100",
        "exit_code": 0,
        "lock_changes": [],
        "bound_changes": [],
        "drift": None,
        "drift_why": "No cluster was looked at.",
        "affects": False,
        "affected": [],
        "affected_why": "",
        "plans": [],
        "uncovered": [],
        "cost": None,
        "unknown": [],
    }
    return review.page({**made, **given_})


def cells(text: str, first: str) -> list[str]:
    """The cells of the table row that begins with `first`, as a reader's program splits it."""
    (row,) = [line for line in text.splitlines() if line.startswith(f"| {first}")]
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]]


@pytest.mark.parametrize(
    ("drift", "unknown", "code"),
    [
        (None, [], 0),
        ("in_sync", [], 0),
        ("drifted", [], 3),
        ("drifted", ["nodes"], 3),
        ("unknown", [], 4),
        ("in_sync", ["nodes"], 4),
        (None, ["the cluster cannot be looked at"], 4),
    ],
)
def test_exit_codes(drift, unknown, code):
    assert review.exit_code(drift, unknown) == code


def test_a_change_and_what_it_calls_for():
    affected = [{"node": f"gpu-{number}", "why": [CHANGE["why"]]} for number in range(2)]
    plans = [{"certification": "driver", "lines": ["3 jobs on 2 nodes"], "jobs": 3, "nodeHours": 1.5, "minutes": 30}]
    text = page(
        lock_changes=[CHANGE],
        affects=True,
        affected=affected,
        plans=plans,
        cost={"jobs": 3, "nodeHours": 1.5, "minutes": 30},
        uncovered=["gpu-1"],
    )
    assert cells(text, "`gpu-operator`")[1:] == [
        "`values.driver.version`",
        "`580.65.06`",
        "`580.105.08`",
        "the driver of GPU nodes changes",
    ]
    assert "2 nodes; 3 jobs, at most 1.5 node-hours and 30 minutes from begin to end" in text
    assert "- the driver of GPU nodes changes: `gpu-0`, `gpu-1`" in text
    assert "Tested by none of these: `gpu-1`" in text


def test_a_loosened_bound_stands_on_top_and_in_its_row():
    text = page(bound_changes=[BOUND])
    assert "🟠 **1 bound or test loosened**" in text.partition("## Recipe")[0]
    assert cells(text, "`driver`")[3:] == ["`value >= 300`", "–", "🟠 loosened"]


def test_a_check_of_the_recipe_that_is_loosened():
    check = {
        **CHANGE,
        "component": "",
        "kind": "check",
        "path": "checks.nccl.expression",
        "why": "",
        "effect": "loosened",
    }
    text = page(lock_changes=[check])
    assert "1 bound or test loosened" in text and cells(text, "the recipe")[4] == "🟠 loosened"


def test_nothing_and_null_are_told_apart():
    text = page(lock_changes=[{**CHANGE, "before": None, "after": None, "change": "added"}])
    assert cells(text, "`gpu-operator`")[2:4] == ["–", "`null`"]


def test_nodes_without_tests_have_a_cost_that_is_not_known():
    text = page(affected=[{"node": "gpu-1", "why": ["it has drifted"]}])
    assert "1 node, at a cost that is not known" in text and "no Certification was given" in text


def test_nodes_that_are_not_known():
    text = page(affects=True, affected=None, affected_why="The GPU nodes cannot be listed.")
    assert "## To certify again: unknown" in text and "The GPU nodes cannot be listed." in text


@given(st.text(alphabet="|`<>\\\n\r\u2028&*_[](){}@#:/~$!a ", max_size=40))
def test_no_value_leaves_its_cell(value):
    text = page(
        lock_changes=[{**CHANGE, "after": value, "path": f"values.{value}", "before": {value: [value]}}],
        bound_changes=[{**BOUND, "before": f"x{value}", "category": f"c{value}"}],
        unknown=[f"a {value}"],
    )
    assert len(cells(text, "`gpu-operator`")) == 5
    assert len(cells(text, "`driver`")) == 6
    assert "<script" not in page(lock_changes=[{**CHANGE, "after": "|<script>"}])


def test_a_long_value_is_cut():
    row = cells(page(lock_changes=[{**CHANGE, "after": "x" * 5000}]), "`gpu-operator`")
    assert len(html.unescape(row[3])) < 200 and row[3].endswith("…`")
