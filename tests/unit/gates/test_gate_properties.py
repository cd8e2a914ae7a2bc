"""Any sequence of owners, people and tools: foreign things never change, nothing of ours is lost or left behind.

The reference below knows what each of them wants and nothing of annotations, patches or managedFields.
"""

from __future__ import annotations

import copy

from ansible_collections.goodput.fleet.plugins.module_utils.gates import gate as gates
from ansible_collections.goodput.fleet.plugins.module_utils.gates import model
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.unit.gates.nodes import FATAL, apply, node, set_unschedulable

OWNERS = ("quarantine", "validation", "manual")
WARN = {**FATAL, "value": "warn"}
OURS = (None, FATAL, WARN, {"key": "acme.io/x", "value": "", "effect": "NoExecute"})
THEIRS = (
    {"key": "team.io/reserved", "value": "a", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"},
    {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"},
    {"key": "acme.io/soft", "effect": "PreferNoSchedule"},
)
LABELS = ("a", "b")


class Node(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.raw = node()
        self.foreign: list[dict] = []  # in the order in which they came
        self.labels: dict[str, str] = {}
        self.wants: dict[str, dict] = {}  # owner -> {cordon, taint} as last held
        self.cordon: str | None = None  # who set it: "us" or a person
        self.lifted: set[str] = set()  # owners whose cordon a person lifted

    def _write(self, change: model.Change) -> None:
        self.raw = apply(self.raw, change.patch)
        assert model._view(self.raw) == change.after

    @rule(owner=st.sampled_from(OWNERS), taint=st.sampled_from(OURS), cordon=st.booleans(), reclose=st.booleans())
    def hold(self, owner, taint, cordon, reclose):
        asked = {"owner": owner, "reason": "r", "taint": taint, "cordon": cordon, "since": f"t{len(self.wants)}"}
        self._write(model.hold(self.raw, asked, reclose))
        again = model.hold(self.raw, asked, reclose)
        assert (again.status, again.patch) == ("unchanged", None)
        kept = (self.wants.get(owner) or {}).get("taint") or gates.default_taint(owner, "r")
        self.wants[owner] = {"cordon": cordon, "taint": taint or kept}
        if not cordon:
            self.lifted.discard(owner)
        elif self.cordon is None and (reclose or owner not in self.lifted):
            self.cordon = "us"
            self.lifted.clear()
        self._lift_if_unwanted()

    @rule(owner=st.sampled_from(OWNERS))
    def release(self, owner):
        change = model.release(self.raw, owner)
        assert change.status == ("released" if owner in self.wants else "unchanged")
        self._write(change)
        self.wants.pop(owner, None)
        self.lifted.discard(owner)
        self._lift_if_unwanted()

    def _lift_if_unwanted(self):
        if self.cordon == "us" and not any(each["cordon"] for each in self.wants.values()):
            self.cordon = None

    @rule()
    def a_person_cordons(self):
        set_unschedulable(self.raw, True, "kubectl-cordon")
        self.cordon = self.cordon or "person"

    @rule()
    def a_person_uncordons(self):
        set_unschedulable(self.raw, False, "kubectl-uncordon")
        if self.cordon == "us":
            self.lifted = {owner for owner, each in self.wants.items() if each["cordon"]}
        self.cordon = None

    @rule(taint=st.sampled_from(THEIRS))
    def somebody_taints(self, taint):
        if taint not in self.foreign:
            self.raw["spec"].setdefault("taints", []).append(copy.deepcopy(taint))
            self.foreign.append(taint)
            self._touched()

    @rule(taint=st.sampled_from(THEIRS))
    def somebody_takes_a_taint_off(self, taint):
        if taint in self.foreign:
            self.raw["spec"]["taints"].remove(taint)
            self.foreign.remove(taint)
            self._touched()

    @rule(name=st.sampled_from(LABELS), value=st.sampled_from(("x", "y")))
    def somebody_labels(self, name, value):
        self.raw["metadata"]["labels"][name] = self.labels[name] = value
        self._touched()

    def _touched(self):
        self.raw["metadata"]["resourceVersion"] = str(int(self.raw["metadata"]["resourceVersion"]) + 1)

    @invariant()
    def what_is_theirs_is_as_they_left_it(self):
        theirs = [each for each in self.raw["spec"].get("taints", []) if each["key"] in {one["key"] for one in THEIRS}]
        assert theirs == self.foreign
        assert self.raw["metadata"]["labels"] == self.labels

    @invariant()
    def what_is_ours_is_what_the_gates_want(self):
        ours = [each for each in self.raw["spec"].get("taints", []) if each not in self.foreign]
        wanted = {gates.identity(each["taint"]) for each in self.wants.values()}
        assert {gates.identity(each) for each in ours} == wanted and len(ours) == len(wanted)
        values = {gates.triple(each["taint"]) for each in self.wants.values()}
        assert {gates.triple(each) for each in ours} <= values

    @invariant()
    def the_cordon_is_there_exactly_while_somebody_wants_it(self):
        assert bool(self.raw["spec"].get("unschedulable")) == (self.cordon is not None)
        keys = [each["key"] for each in model.state(self.raw)["external"]]
        assert ("spec.unschedulable" in keys) == (self.cordon == "person")

    @invariant()
    def it_is_open_only_when_nothing_holds_it(self):
        seen = model.state(self.raw)
        assert [each["owner"] for each in seen["gates"]] == sorted(self.wants)
        closing = [each for each in self.foreign if each["effect"] != "PreferNoSchedule"]
        assert seen["open"] == (not self.wants and self.cordon != "person" and not closing)


Node.TestCase.settings = settings(max_examples=100, stateful_step_count=25, deadline=None)
TestGatesOfOneNode = Node.TestCase


KEYS = st.sampled_from((FATAL, WARN))
STEPS = st.one_of(
    st.tuples(st.just("hold"), st.sampled_from(OWNERS), st.sampled_from(OURS)),
    st.tuples(st.just("release"), st.sampled_from(OWNERS), st.none()),
    st.tuples(st.just("add"), KEYS, st.none()),
    st.tuples(st.just("take off"), KEYS, st.none()),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(STEPS, max_size=20))
def test_taints_of_one_key_by_us_and_by_others(steps):
    """Others set and take off the very taints that gates want. In the end exactly theirs are left."""
    raw, theirs = node(), None  # one key and effect: there can be one
    for number, (what, which, taint) in enumerate(steps):
        there = next((each for each in raw["spec"].get("taints", []) if each["key"] == FATAL["key"]), None)
        claimed = [gates.triple(each["taint"]) for each in model.state(raw)["gates"] if each["taintOurs"]]
        if what == "hold":
            raw = apply(
                raw, model.hold(raw, {"owner": which, "reason": "r", "taint": taint, "since": f"t{number}"}).patch
            )
        elif what == "release":
            raw = apply(raw, model.release(raw, which).patch)
        elif what == "add" and there is None and gates.triple(which) not in claimed:
            # what a gate has claimed, and somebody took off and put in again, nobody can tell apart
            theirs = {**which, "timeAdded": f"2026-01-01T00:00:{number:02d}Z"}
            raw["spec"].setdefault("taints", []).append(dict(theirs))
        elif what == "take off" and there is not None:
            raw["spec"]["taints"].remove(there)
            theirs = None
        if theirs is not None:
            assert theirs in raw["spec"]["taints"]
    for owner in OWNERS:
        raw = apply(raw, model.release(raw, owner).patch)
    assert raw["spec"].get("taints", []) == ([theirs] if theirs else [])
    assert model.state(raw)["open"] is (theirs is None)
