# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""RecoveryPolicy: what the shipped one says, what is refused, and who is opted in."""

from __future__ import annotations

import json

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.jobs import policy
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, NotFound

from tests.unit.jobs.attempts import TIMEOUT, attempt, decided, fleet, rules

SHIPPED = "gitops/catalog/recovery/default.yaml"
HEAD = "apiVersion: goodput.fleet/v1alpha1\nkind: RecoveryPolicy\nmetadata: {name: x}\n"


def test_the_shipped_policy_gives_advice_to_everybody_and_acts_on_nobody():
    shipped = policy.load(SHIPPED)
    assert (shipped.mode, shipped.mode_of("anything", None)[0]) == ("observe", "advise")
    assert shipped.hang.act is False
    numbers = policy.describe(shipped)
    assert numbers["budgets"]["no_progress"] == 3
    assert numbers["budgets"]["global"] == {"max": 20, "window": 600}
    assert numbers["backoff"]["delays"] == [0, 30, 120, 480]
    assert json.loads(json.dumps(numbers)) == numbers


def test_what_is_stated_goes_before_the_defaults():
    given = rules(
        budgets={"noProgress": 1, "classes": {"network": 9}, "job": [{"max": 2, "window": "1h30m"}]},
        backoff={"delays": ["0s", "1m"], "jitterPercent": 0},
        blastRadius={"gatesPercent": 2.5},
        lemon={"halfLife": "1d"},
    )
    assert given.budgets.no_progress == 1
    assert (given.budgets.classes["network"], given.budgets.classes["storage"]) == (9, 3)
    assert given.budgets.job == (policy.Within(2, 5400),)
    assert (given.backoff.delays, given.blast.gates_percent, given.lemon.half_life) == ((0, 60), 2.5, 86400)
    assert given.budgets.everybody == policy.Budgets().everybody


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        (HEAD + "spec: {mode: enforced}\n", 4, "enforce"),
        (HEAD + "spec:\n  mode: observe\n  budget: {}\n", 6, "budgets"),
        (HEAD + "spec:\n  mode: observe\n  undeclared: act\n", 6, "advise"),
        (HEAD + "spec:\n  mode: observe\n  budgets:\n    global: {max: 3}\n", 7, "'window' is missing"),
        (HEAD + "spec:\n  mode: observe\n  hang: {least: 3h, most: 1h}\n", 6, "longer than most"),
        (HEAD + "spec:\n  mode: observe\n  backoff: {delays: [5 minutes]}\n", 6, "malformed"),
    ],
)
def test_a_bad_policy_is_one_clear_error(text, line, said):
    with pytest.raises(InvalidDocument) as caught:
        policy.load(text, "bad.yaml")
    assert f"bad.yaml:{line}:" in str(caught.value)
    assert said in str(caught.value)
    assert len(caught.value.problems) == 1


def test_no_such_file_and_no_policy_at_all():
    with pytest.raises(NotFound):
        policy.load("no/such.yaml")
    with pytest.raises(InvalidDocument):
        policy.load(7)


def test_who_is_opted_in():
    given = rules(undeclared="off", namespaces=[{"names": ["research-*"], "mode": "act"}])
    assert given.mode_of("research-nlp", None)[0] == "act"
    assert given.mode_of("research-nlp", "off")[0] == "off"
    assert given.mode_of("web", None)[0] == "off"
    assert given.mode_of("web", "advise")[0] == "advise"
    with pytest.raises(InvalidDocument):
        given.mode_of("web", "yes")


def test_off_is_a_word_although_yaml_has_its_own_idea():
    text = HEAD + "spec:\n  mode: enforce\n  undeclared: off\n  namespaces: [{names: [web], mode: off}]\n"
    given = policy.load(text)
    assert (given.mode_of("other", None)[0], given.mode_of("web", None)[0]) == ("off", "off")


def test_a_policy_that_watches_lets_nobody_act():
    (spec,) = decided(attempt(signature=TIMEOUT), fleet(), mode="dry_run")
    assert (spec["action"], spec["mode"]) == ("retry", "advise")
    assert rules().capped("observe").mode == "observe"
    assert rules(mode="observe").capped("enforce").mode == "observe"
