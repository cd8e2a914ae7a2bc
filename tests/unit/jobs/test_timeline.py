"""Time lines: each part has its time or none, clocks that disagree are said, and nothing unknown is zero."""

import json

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.jobs import recovery_account, timeline
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.jobs import recoveries as make


def incident(**more):
    (only,) = recovery_account.account(make.given(**more))["incidents"]
    return only


def mark(found, name):
    return next(each for each in found["marks"] if each["mark"] == name)


class TestParts:
    def test_a_restart_after_a_hardware_fault(self):
        found = incident()
        assert [each["at"][14:19] for each in found["marks"]] == [
            "29:58", "30:05", "30:08", "30:10", "30:12", "30:40", "31:50",
        ]  # fmt: skip
        assert found["parts"] == {"detect": 7, "decide": 3, "gate": 2, "restart": 2, "run": 28, "step": 70}
        assert (found["toRunning"], found["toFirstStep"], found["unsplit"]) == (42, 112, 0)
        assert (found["status"], found["lostSteps"], found["resumeStep"]) == ("recovered", 10, 90)
        assert found["clocks"] == [] and found["excluded"] == ["gpu-02"]

    def test_a_gate_that_stood_before_the_decision_took_no_time(self):
        found = incident(gates=[{"node": "gpu-02", "since": make.at("30:06")}])
        assert found["parts"] | {"gate": 0, "restart": 4} == found["parts"] and found["unsplit"] == 0

    def test_no_gate_is_needed_where_no_node_is_blamed(self):
        first = make.failed()
        found = incident(decisions=[make.decision(first, "retry", gate=())], gates=[])
        assert mark(found, "gated") | {"needed": False, "at": None} == mark(found, "gated")
        assert (found["parts"]["gate"], found["parts"]["restart"]) == (0, 4)

    def test_a_gate_that_nobody_recorded_is_not_known(self):
        found = incident(gates=[{"node": "gpu-99", "since": make.at("30:10")}])
        assert mark(found, "gated")["why"] == "no gate on gpu-02 is known"
        assert found["parts"]["gate"] is found["parts"]["restart"] is None
        assert (found["toRunning"], found["unsplit"]) == (42, 4)

    def test_a_gate_from_before_the_attempt_is_another_story(self):
        assert mark(incident(gates=[{"node": "gpu-02", "since": "2026-03-01T00:00:00Z"}]), "gated")["at"] is None

    def test_all_nodes_have_to_be_gated(self):
        first, gates = make.failed(), [("gpu-02", "30:09"), ("gpu-03", "30:11"), ("gpu-03", "30:30")]
        found = incident(
            decisions=[make.decision(first, gate=("gpu-02", "gpu-03"))],
            gates=[{"node": node, "since": make.at(since)} for node, since in gates],
        )
        assert mark(found, "gated")["at"] == make.at("30:11")

    def test_gates_as_node_gate_info_tells_them(self):
        gate = {"owner": "quarantine", "reason": "Xid 79", "since": make.at("30:10")}
        found = incident(gates=[{"name": "gpu-02", "open": False, "gates": [gate]}, {"name": "gpu-03", "gates": []}])
        assert mark(found, "gated")["at"] == make.at("30:10")
        assert found["tracks"][0]["what"] == "quarantine: Xid 79"

    def test_without_an_act_the_next_attempt_tells_when_it_was_asked_for(self):
        found = incident(actions=[])
        assert (mark(found, "requested")["at"], mark(found, "requested")["source"]) == (
            make.at("30:40"), "the next attempt was created",
        )  # fmt: skip

    def test_a_gang_runs_when_its_last_rank_does(self):
        ranks = [{"index": 0, "startedAt": make.at("30:41")}, {"index": 1, "startedAt": make.at("30:55")}]
        found = incident(attempts=[make.failed(), make.again(ranks=ranks)])
        assert mark(found, "running")["at"] == make.at("30:55")
        half = incident(attempts=[make.failed(), make.again(ranks=ranks[:1], state="pending", progress=None)])
        assert mark(half, "running")["at"] is None and half["status"] == "waiting" and half["toRunning"] is None

    def test_a_first_step_that_is_only_reckoned_is_marked(self):
        found = incident(attempts=[make.failed(), make.again(progress=make.steps(91, 120, None, "36:40"))])
        assert mark(found, "firstStep")["at"] == make.at("31:50") and mark(found, "firstStep")["estimated"]

    def test_a_hang_began_with_its_last_step(self):
        hung = make.failed(state="hung", end=None, firstFailure=None, hardware={})
        hung["progress"] |= {"limitSeconds": 100, "hung": True}
        found = incident(attempts=[hung, make.again()], decisions=[], actions=[], gates=[])
        assert (mark(found, "fault")["at"], mark(found, "fault")["estimated"]) == (make.at("29:50"), True)
        assert mark(found, "detected")["at"] == make.at("31:30")

    def test_evidence_after_which_the_job_went_on_is_not_its_fault(self):
        early = {"gpu-02": [{"source": "event", "at": make.at("10:00"), "what": "xid-79", "fatal": True}]}
        assert mark(incident(attempts=[make.failed(hardware=early), make.again()]), "fault")["at"] == make.at("30:00")

    def test_nothing_known_is_nothing_said(self):
        bare = make.attempt(end=None, state="lost", start=None)
        found = incident(attempts=[bare], decisions=[], actions=[], gates=[], drains=[], repairs=[])
        assert [each["at"] for each in found["marks"]] == [None] * 7
        assert all(each["why"] for each in found["marks"])
        assert set(found["parts"].values()) == {None}
        assert found["toRunning"] is found["unsplit"] is found["lostSteps"] is None
        assert found["status"] == "undecided"

    def test_what_was_first_seen_by_job_recovery_counts_before_the_scheduler(self):
        found = incident(attempts=[make.failed(detectedAt=make.at("30:01")), make.again()])
        assert found["parts"]["detect"] == 3 and mark(found, "detected")["source"] == "job recovery saw it"


class TestClocks:
    def test_a_second_of_disorder_is_how_times_are_cut(self):
        found = incident(decisions=[make.decision(make.failed(), decided="30:04")])
        assert found["clocks"] == [] and found["parts"]["decide"] == 0 and found["unsplit"] == 0

    def test_two_clocks_that_disagree_are_named_and_tell_no_time(self):
        found = incident(decisions=[make.decision(make.failed(), decided="29:00")])
        assert found["clocks"] == [
            "decided (the decision) is 65 s before detected (the scheduler's record of its end); their clocks disagree"
        ]
        assert found["parts"] == {"detect": None, "decide": None, "gate": None, "restart": None, "run": 28, "step": 70}
        assert (found["toFirstStep"], found["unsplit"]) == (112, 14)

    def test_a_restart_that_did_not_wait_for_the_gate_is_said(self):
        found = incident(gates=[{"node": "gpu-02", "since": make.at("30:30")}])
        assert "the restart did not wait for the gate" in found["clocks"][0]
        assert found["parts"]["gate"] is None


class TestTracks:
    def test_the_job_runs_while_its_old_node_is_worked_on(self):
        found = incident()
        assert [track["kind"] for track in found["tracks"]] == ["gate", "drain", "repair"] and found["parallel"] is True

    @pytest.mark.parametrize(
        "drains, repairs, parallel",
        [
            ([{"node": "gpu-02", "startedAt": make.at("30:15"), "finishedAt": make.at("30:20")}], [], False),
            ([{"node": "gpu-02", "startedAt": make.at("30:15")}], [], True),
            ([], [], None),
            ([{"node": "gpu-77", "startedAt": make.at("30:15")}], [], None),
        ],
    )
    def test_what_is_parallel(self, drains, repairs, parallel):
        assert incident(drains=drains, repairs=repairs)["parallel"] is parallel

    def test_work_of_other_incidents_is_another_story(self):
        drains = [
            {"node": "gpu-02", "startedAt": begin, "finishedAt": end}
            for begin, end in [
                ("2026-03-05T00:00:00Z", "2026-03-05T01:00:00Z"),
                (make.at("30:15"), make.at("30:20")),
                ("2026-03-09T00:00:00Z", None),
            ]
        ]
        found = incident(drains=drains, repairs=[], gates=[])
        assert [track["since"] for track in found["tracks"]] == [make.at("30:15")] and found["parallel"] is False


class TestStatus:
    @pytest.mark.parametrize(
        "action, mode, done, status",
        [
            ("giveBack", "act", None, "givenBack"),
            ("escalate", "act", None, "escalated"),
            ("hold", "act", "done", "waiting"),
            ("restart", "act", "failed", "notDone"),
            ("restart", "act", "refused", "notDone"),
            ("restart", "advise", "planned", "advised"),
            ("restart", "act", None, "waiting"),
            ("none", "act", None, "ignored"),
        ],
    )
    def test_without_a_next_attempt(self, action, mode, done, status):
        first = make.failed()
        acts = [{"attempt": first["key"], "status": done}] if done else []
        found = incident(attempts=[first], decisions=[make.decision(first, action, mode=mode)], actions=acts)
        assert found["status"] == status

    def test_a_job_that_was_given_back_misses_no_restart(self):
        first = make.failed()
        found = incident(attempts=[first], decisions=[make.decision(first, "giveBack", gate=())], actions=[])
        assert [each["mark"] for each in found["marks"] if each["needed"]] == ["fault", "detected", "decided"]
        assert found["parts"]["restart"] is None

    def test_a_next_attempt_that_fails_at_once_is_an_incident_of_its_own(self):
        second = make.again(state="failed", end="30:50", progress=None)
        found = recovery_account.account(make.given(attempts=[make.failed(), second]))["incidents"]
        assert [each["status"] for each in found] == ["failedAgain", "undecided"]

    def test_a_decision_of_which_the_attempt_is_not_given_is_still_told(self):
        found = recovery_account.account({"decisions": [make.decision(make.failed())]})
        assert found["incidents"][0]["attempt"] == "ml/llm/llm-1/1" and found["incidents"][0]["state"] == "unknown"
        assert found["notes"] == ["1 decisions are about attempts that are not given: ml/llm/llm-1/1"]

    def test_jobs_that_run_are_no_incident(self):
        found = recovery_account.account({"attempts": [make.again(number=1)]})
        assert found["incidents"] == [] and found["mttr"]["toRunning"] is None and len(found["jobs"]) == 1


def test_summary_of_many():
    incidents = [
        {"toRunning": value, "parts": dict.fromkeys(timeline.PARTS) | {"detect": value}}
        for value in [*range(1, 101), None]
    ]
    found = timeline.summary(incidents)
    assert (found["count"], found["running"], found["toRunning"]) == (
        101,
        100,
        {"median": 50.5, "p95": 95, "most": 100},
    )
    assert found["parts"]["detect"] == 50.5 and found["parts"]["run"] is None


@pytest.mark.parametrize(
    "changed, path",
    [
        ({"attempts": {}}, "recovery.attempts"),
        ({"attempts": [7]}, "recovery.attempts[0]"),
        ({"attempts": [make.failed(state="crashed")]}, "recovery.attempts[0].state"),
        ({"attempts": [make.failed() | {"number": "1"}]}, "recovery.attempts[0].number"),
        ({"attempts": [make.failed() | {"job": None}]}, "recovery.attempts[0].job"),
        ({"attempts": [make.failed() | {"endedAt": "yesterday"}]}, "recovery.attempts[0].endedAt"),
        ({"attempts": [make.failed(progress=[])]}, "recovery.attempts[0].progress"),
        ({"attempts": [make.failed(hardware={"a": "x"})]}, "recovery.attempts[0].hardware.a"),
        ({"decisions": [{"spec": None}]}, "recovery.decisions[0].spec"),
        ({"decisions": [make.decision(make.failed(), exclude=["x"])]}, "recovery.decisions[0].spec.exclude"),
        ({"decisions": [make.decision(make.failed(), reasons="x")]}, "recovery.decisions[0].spec.reasons"),
        ({"gates": [{"since": make.at("00:00")}]}, "recovery.gates[0].node"),
        ({"gates": [{"name": "a", "gates": 7}]}, "recovery.gates[0].gates"),
        ({"repairs": [{"spec": {}}]}, "recovery.repairs[0].spec.node.name"),
        ({"phases": [{"attempt": "a", "class": "naps", "from": "x", "to": "y"}]}, "recovery.phases[0].class"),
        ({"until": 7}, "recovery.until"),
        ({"attemts": []}, "recovery"),
        ({"attempts": None, "decisions": None}, "recovery"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(changed, path):
    with pytest.raises(InvalidDocument) as caught:
        recovery_account.account(make.given(**changed))
    assert path in [problem.path for problem in caught.value.problems]


def test_secrets_of_logs_stay_out():
    line = {"rank": 1, "text": "export WANDB_API_KEY=0123456789abcdef password: hunter2"}
    first = make.failed(signature={"class": "user-code", "lines": [line]}, reason="token=sk-0123456789abcdef0123")
    told = json.dumps(recovery_account.account(make.given(attempts=[first, make.again()])))
    assert "hunter2" not in told and "0123456789abcdef" not in told


CLOCKS = st.integers(0, 3599).map(lambda second: f"{second // 60:02}:{second % 60:02}")
MAYBE = st.one_of(st.none(), CLOCKS)


@settings(max_examples=150, deadline=None)
@given(MAYBE, MAYBE, MAYBE, MAYBE, MAYBE, MAYBE, MAYBE, st.booleans())
def test_parts_are_never_negative_and_never_more_than_the_whole(fault, end, decided, gated, asked, start, step, gate):
    first = make.failed(start=None, hardware={}, progress=None, end=end, firstFailure={"at": fault and make.at(fault)})
    second = make.again(start=start, progress=make.steps(91, 120, step, "59:59") if step else None)
    found = incident(
        attempts=[first, second],
        decisions=[make.decision(first, decided=decided, gate=("gpu-02",) if gate else ())],
        actions=[{"attempt": first["key"], "status": "done", "at": asked and make.at(asked)}],
        gates=[{"node": "gpu-02", "since": gated and make.at(gated)}],
    )
    split = [value for value in found["parts"].values() if value is not None]
    assert all(value >= 0 for value in split)
    whole = found["toFirstStep"] if found["toFirstStep"] is not None else found["toRunning"]
    if whole is not None:
        parts = split if found["toFirstStep"] is not None else split[: 6 if found["parts"]["step"] is None else -1]
        assert sum(parts) + found["unsplit"] == pytest.approx(whole)
    for name in ("toRunning", "toFirstStep"):
        assert found[name] is None or found[name] >= 0
