"""Goodput: every moment counts once, what is not known is never productive, and sums never exceed what elapsed."""

import itertools

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.jobs import chains, goodput
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.jobs import recoveries as make


def account(*attempts, **more):
    (chain,) = chains.chains(attempts)
    until = more.pop("until", None)
    return goodput.of_job(chain, until=None if until is None else chains.millis(make.at(until)), **more)


def known(job):
    return {kind: seconds for kind, seconds in job["seconds"].items() if seconds}


class TestClasses:
    def test_a_restart_from_a_checkpoint(self):
        job = account(make.failed(), make.again(), until="37:00")
        # steps of 10 s: 1 to 100 until 29:50, 91 to 120 until 36:40
        assert known(job) == {
            "programStartup": 790 + 60, "productive": 900 + 300, "wastedProgress": 100,
            "infrastructureRecovery": 50, "unknown": 20,
        }  # fmt: skip
        assert job["elapsedSeconds"] == 37 * 60 and job["gpus"] == 16
        assert (job["lostSteps"], job["disruptions"], job["lastStep"]) == (10, 1, 120)
        assert job["goodput"] == pytest.approx(1200 / 2220) and job["goodputAtMost"] == pytest.approx(1220 / 2220)

    def test_what_only_marks_tell_is_not_known_without_them(self):
        job = account(make.failed(), make.again())
        assert {kind for kind, seconds in job["seconds"].items() if seconds is None} == set(goodput.MARKED)

    @pytest.mark.parametrize("kind", [*goodput.MARKED, "programStartup"])
    def test_a_mark_takes_its_time_from_what_was_there(self, kind):
        first = make.failed()
        phase = {"attempt": first["key"], "class": kind, "from": make.at("02:00"), "to": make.at("05:00")}
        job = account(first, phases={first["key"]: [phase]})
        startup = 790 if kind == "programStartup" else 790 - 180
        assert job["seconds"]["programStartup"] == startup and job["seconds"][kind] == (
            startup if startup == 790 else 180
        )
        assert job["elapsedSeconds"] == 30 * 60 + 5

    def test_a_checkpoint_saved_among_steps_is_not_productive(self):
        first = make.failed(state="succeeded")
        phase = {"class": "checkpointSave", "from": make.at("20:00"), "to": make.at("21:30")}
        job = account(first, phases={first["key"]: [phase]})
        assert (job["seconds"]["productive"], job["seconds"]["checkpointSave"]) == (910, 90) and not job["disruptions"]

    def test_excluded_time_counts_in_neither(self):
        first = make.failed(state="succeeded")
        phase = {"class": "excluded", "from": make.at("00:00"), "to": make.at("13:10")}
        job = account(first, phases={first["key"]: [phase]})
        assert job["elapsedSeconds"] == 1015 and job["goodput"] == pytest.approx(1000 / 1015)
        assert known(job) == {"excluded": 790, "productive": 1000, "other": 15}

    def test_phases_that_overlap_count_once_and_it_is_said(self):
        first = make.failed()
        phases = [
            {"class": "deviceInit", "from": make.at("01:00"), "to": make.at("03:00")},
            {"class": "dataLoading", "from": make.at("02:00"), "to": make.at("04:00")},
        ]
        job = account(first, phases={first["key"]: phases})
        assert job["seconds"]["deviceInit"] + job["seconds"]["dataLoading"] == 180
        assert "phases overlap by 60 s; that time counts once" in job["notes"]

    def test_phases_outside_of_their_attempt_are_not_counted(self):
        first = make.failed()
        phase = {"class": "custom", "from": make.at("29:00"), "to": make.at("35:00")}
        job = account(first, phases={first["key"]: [phase]})
        assert job["seconds"]["custom"] == 65 and any("outside of it" in note for note in job["notes"])

    def test_without_steps_nothing_is_productive_and_nothing_is_called_lost_time(self):
        job = account(make.failed(progress=None), make.again(progress=None), until="37:00")
        assert job["goodput"] == 0 and job["lostSteps"] is None
        assert job["seconds"]["unknown"] == 1805 + 380 and job["seconds"]["infrastructureRecovery"] == 35
        assert job["goodputAtMost"] == pytest.approx((1805 + 380) / 2220)

    def test_a_job_that_waits_for_its_next_attempt_is_down_until_now(self):
        first = make.failed()
        job = account(first, until="50:00", waiting=[first["key"]], resume={first["key"]: 90})
        assert job["seconds"]["infrastructureRecovery"] == 20 * 60 + 10 and job["lostSteps"] == 10

    def test_from_scratch_everything_is_lost(self):
        job = account(make.failed(), make.again(progress=make.steps(1, 20, "33:00", "36:10")), until="37:00")
        assert (job["lostSteps"], job["seconds"]["wastedProgress"], job["seconds"]["productive"]) == (100, 1000, 200)

    def test_a_later_attempt_that_goes_further_back_loses_more(self):
        third = make.again(number=3, start="40:00", progress=make.steps(51, 60, "42:00", "43:30"))
        second = make.again(state="failed", end="38:00")
        job = account(make.failed(), second, third, until="44:00")
        assert job["lostSteps"] == 50 + 30

    def test_nothing_lost_is_zero_and_not_known_is_none(self):
        assert account(make.failed(), make.again(progress=make.steps(101, 120, "33:00", "36:10")))["lostSteps"] == 0
        assert account(make.failed(), make.again(progress=None))["lostSteps"] is None

    @pytest.mark.parametrize(
        "changed, said",
        [
            ({"endedAt": make.at("31:00")}, "still ran for 20 s after the next one began"),
            ({"startedAt": make.at("45:00")}, "begins after the next one; clocks disagree"),
            ({"endedAt": "2026-03-05T00:00:00Z"}, "ends before it begins"),
            ({"progress": make.steps(1, 100, "35:00", "29:50")}, "its first step is after its last"),
            ({"progress": make.steps(1, 100, "13:20", "30:30")}, "its last step is 25 s after its end"),
            ({"startedAt": ""}, "when it began is not known"),
            ({"progress": make.steps(1, 100, None, "29:50")}, "reckoned from the last one"),
        ],
    )
    def test_what_contradicts_itself_is_said(self, changed, said):
        job = account(make.failed(**changed), make.again(), until="37:00")
        assert any(said in note for note in job["notes"])
        assert sum(known(job).values()) == pytest.approx(job["elapsedSeconds"])


class TestChains:
    def test_a_new_submission_under_the_same_name_is_another_job(self):
        other = make.attempt(job={"uid": "other"}, previous="") | {"key": "ml/llm/other/1"}
        assert [len(chain) for chain in chains.chains([make.failed(), make.again(), other])] == [2, 1]

    def test_restarts_inside_of_one_object_are_one_chain(self):
        inside = make.again(job={"uid": "llm-1"}, previous="")
        assert [len(chain) for chain in chains.chains([inside, make.failed()])] == [2]
        assert [one["number"] for one in chains.chains([inside, make.failed()])[0]] == [1, 2]

    def test_the_first_attempt_may_be_missing(self):
        assert [len(chain) for chain in chains.chains([make.again(), make.again(number=3)])] == [2]

    def test_a_circle_ends(self):
        ring = [make.attempt(number=1, previous="llm-2"), make.attempt(number=2, previous="llm-1")]
        assert [len(chain) for chain in chains.chains(ring)] == [2]

    def test_the_later_of_two_records_of_one_attempt_counts(self):
        ((only,),) = chains.chains([make.failed(state="running"), make.failed()])
        assert only["state"] == "failed"


class TestTogether:
    def test_a_second_counts_as_often_as_it_has_gpus(self):
        small = make.attempt(name="b", state="succeeded", progress=make.steps(1, 1, "30:05", "30:05"))
        small["job"]["shape"] = {"pods": 1, "gpusPerPod": 1}
        jobs = [account(make.failed(state="succeeded")), account(small)]
        whole = goodput.of_all(jobs)
        assert whole["gpuSeconds"] == 1805 * 17 and whole["goodput"] == pytest.approx((1000 * 16 + 10) / (1805 * 17))
        assert sum(share or 0 for share in whole["shares"].values()) == pytest.approx(1)

    def test_jobs_without_gpus_are_named_not_counted(self):
        job = make.failed()
        job["job"]["shape"] = {}
        assert goodput.of_all([account(job)]) == {
            "jobs": 0, "gpuSeconds": 0, "goodput": None, "goodputAtMost": None, "left": ["ml/llm"],
            "shares": dict.fromkeys(goodput.CLASSES[1:]),
        }  # fmt: skip


CLOCKS = st.one_of(st.none(), st.integers(0, 3599).map(lambda second: f"{second // 60:02}:{second % 60:02}"))
STEPS = st.one_of(st.none(), st.integers(-5, 200))


@st.composite
def attempts(draw, number):
    start, end, first, last = (draw(CLOCKS) for _ in range(4))
    progress = {
        "firstStep": draw(STEPS), "lastStep": draw(STEPS), "firstStepAt": first and make.at(first),
        "lastStepAt": last and make.at(last), "stepSeconds": draw(st.sampled_from([None, 0, 0.5, 10, 1e8])),
    }  # fmt: skip
    state = draw(st.sampled_from(["running", "failed", "hung", "lost", "succeeded", "pending", "suspended"]))
    return make.attempt(number, state, start, end, progress=draw(st.sampled_from([None, progress])))


@st.composite
def phases(draw):
    begin, end = draw(CLOCKS), draw(CLOCKS)
    return {
        "class": draw(st.sampled_from(goodput.PHASES)),
        "from": begin and make.at(begin),
        "to": end and make.at(end),
    }


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_whatever_is_given_the_classes_sum_to_what_elapsed(data):
    chain = [data.draw(attempts(number)) for number in range(1, data.draw(st.integers(1, 4)) + 1)]
    keys = [one["key"] for one in chain]
    marks = {key: data.draw(st.lists(phases(), max_size=3)) for key in keys}
    until = data.draw(CLOCKS)
    job = account(*chain, phases=marks, until=until, waiting=keys[-1:], resume={keys[0]: 3})
    seconds = {kind: value or 0 for kind, value in job["seconds"].items()}
    assert all(value >= 0 for value in seconds.values())
    assert sum(seconds.values()) - seconds["excluded"] == pytest.approx(job["elapsedSeconds"], abs=1e-6)
    moments = [chains.millis(make.at(until))] if until else []
    for one in chain:
        moments += [chains.millis(one["startedAt"]), chains.millis(one["endedAt"])]
        moments += [chains.last_step_at(one)]
        moments += [chains.millis(mark[end]) for mark in marks[one["key"]] for end in ("from", "to")]
    span = [moment for moment in moments if moment is not None]
    assert sum(seconds.values()) <= (max(span) - min(span)) / 1000 + 1e-6 if span else not sum(seconds.values())
    if job["goodput"] is not None:
        assert 0 <= job["goodput"] <= job["goodputAtMost"] <= 1
    assert job["lostSteps"] is None or job["lostSteps"] >= 0


def test_thousands_of_attempts_of_one_job_take_no_time():
    chain = []
    for number, minute in zip(range(1, 5001), itertools.cycle(range(60)), strict=False):
        clock = f"{minute:02}:00"
        chain.append(make.attempt(number, "failed", clock, clock, progress=make.steps(number, number, clock, clock)))
    job = account(*chain)
    assert job["attempts"] == 5000 and len(job["notes"]) == goodput.NOTES + 1
