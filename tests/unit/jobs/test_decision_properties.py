# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What holds of decisions whatever is put in."""

from __future__ import annotations

import copy
import json
import random

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.jobs import budgets, memory

from tests.unit.jobs.attempts import (
    PAIR,
    TIMEOUT,
    advice,
    ago,
    attempt,
    bug,
    decided,
    entry,
    fleet,
    nodes,
    one,
    remembered,
    signature,
    xid,
)

CLASSES = ("hardware", "network", "transient-software", "user-code", "storage", "preemption", "unknown")
ACTIONS = ("retry in place", "restart elsewhere", "requeue", "fail to user", "hold / fail to user", "none (observe)")
KINDS = ("none", "emitter", "peer", "pair", "named-node", "named-rank", "store-host", "clique", "compute")
RESTARTS = ("retry", "restart")


def anything(rng: random.Random, name: str) -> dict:
    """An attempt of any sort."""
    on = tuple(sorted(rng.sample(range(24), rng.randint(1, 6))))
    number = rng.randint(1, 4)
    given = attempt(
        name,
        on=on,
        number=number,
        ended=rng.choice([0, 5, 60, 3000]),
        state=rng.choice(["failed"] * 5 + ["hung", "lost", "running", "succeeded", "suspended"]),
        reason=rng.choice(["BackoffLimitExceeded", "PodFailurePolicy", "NodeLost", "Preempted", "DeadlineExceeded"]),
        job={"mode": rng.choice(["act", "act", "advise", "off"]), "maxRetries": rng.choice([None, None, 0, 2])},
        progress=rng.choice([None, {"advanced": True, "lastStep": 9}, {"advanced": False}, {"advanced": None}]),
        checkpoint=rng.choice(
            [
                None,
                {"step": 5, "path": "/c/5", "complete": True, "torn": []},
                {"step": None, "path": "", "complete": False, "torn": [{"path": "/c/9", "why": "empty"}]},
            ]
        ),
    )
    for rank in given["ranks"]:
        rank["phase"] = rng.choice(["Failed", "Failed", "Running"])
        rank["disruption"] = rng.choice(["", "", "", "EvictionByEvictionAPI", "TerminationByKubelet"])
        rank["reason"] = rng.choice(["Error", "Error", "OOMKilled"])
    if rng.random() < 0.8:
        given["signature"] = rng.choice(
            [
                signature(
                    rng.choice(CLASSES),
                    f"J{rng.randint(1, 4):03}",
                    rng.choice(ACTIONS),
                    confidence=rng.random(),
                    cascade=rng.random() < 0.2,
                    waiting=rng.sample(range(6), 2),
                    blame={
                        "kind": rng.choice(KINDS),
                        "ranks": rng.sample(range(8), rng.randint(0, 3)),
                        "hosts": rng.sample(given["nodes"], rng.randint(0, len(on))),
                    },
                ),
                bug(step=rng.choice([None, 7])),
            ]
        )
    for node in rng.sample([*given["nodes"], "gpu-99"], rng.randint(0, 2)):
        given["hardware"][node] = [xid(fatal=rng.random() < 0.5, before=rng.random() < 0.3)]
    return given


def anything_known(rng: random.Random) -> dict:
    known = nodes(free=rng.choice([0, 8, 8]))
    for facts in known.values():
        facts["open"] = rng.random() < 0.9
        facts["ready"] = rng.choice(["True"] * 30 + ["Unknown"])
        facts["freeGpus"] = rng.choice([facts["freeGpus"], facts["freeGpus"], None])
    return fleet(known, storage=rng.choice([None, None, True, False]))


def anything_past(rng: random.Random) -> list[dict]:
    return [
        entry(
            f"job-{rng.randint(0, 9)}",
            number=rng.randint(1, 3),
            at=rng.choice([20, 300, 4000, 90000]),
            action=rng.choice(["retry", "restart", "requeue", "hold", "none"]),
            blamed=rng.sample(["gpu-0", "gpu-5"], rng.randint(0, 2)),
            advanced=rng.choice([None, True, False]),
            checkpointStep=rng.choice([None, 4]),
            outcome=rng.choice(["done", "refused", ""]),
        )
        for _ in range(rng.randint(0, 30))
    ]


@pytest.mark.parametrize("seed", range(60))
def test_of_anything(seed):
    rng = random.Random(seed)
    attempts = [anything(rng, f"job-{n}") for n in range(rng.randint(1, 25))]
    known, past = anything_known(rng), anything_past(rng)
    limit = rng.randint(1, 6)
    spec = {"budgets": {"global": {"max": limit, "window": "10m"}}}
    before = copy.deepcopy((attempts, known, past))
    found = decided(attempts, known, past, **spec)
    assert (attempts, known, past) == before, "what is put in stays as it is"
    assert len(found) == len(attempts)

    newest = {each["key"]: each for each in sorted(past, key=lambda each: each["at"])}
    ours = {each["attempt"]: each for each in found}
    recent = sum(
        each["action"] in RESTARTS and each["outcome"] != "refused" and each["at"] > ago(600)
        for each in newest.values()
    )
    fresh = [key for key, each in ours.items() if each["action"] in RESTARTS and key not in newest]
    assert len(fresh) <= max(0, limit - recent), "never more than the budget of all jobs"

    for given in attempts:
        each = ours[given["key"]]
        if given["job"]["mode"] == "off":
            assert (each["action"], each["mode"], each["exclude"], each["hardware"]) == ("none", "advise", [], [])
        if given["job"]["mode"] != "act":
            assert each["mode"] == "advise"
        if each["action"] == "retry":
            assert "gate" not in advice(each).values()
        assert each["resize"] is None, "nobody declared to be elastic"
        assert set(advice(each)) <= set(given["nodes"]), "nothing is said of nodes of others"
        assert each["reasons"] and all(each["reasons"])

    for _ in range(3):
        shuffled = [copy.deepcopy(each) for each in rng.sample(attempts, len(attempts))]
        again = decided(shuffled, known, rng.sample(past, len(past)), **spec)
        assert json.dumps(again) == json.dumps(found), "any order is the same"


def test_a_storage_outage_over_200_jobs_restarts_no_more_than_the_budget():
    lost = signature("storage", "J090", "retry in place")
    failed = [attempt(f"job-{n:03}", on=(n % 200,), signature=lost, ended=200 - n) for n in range(200)]
    found = decided(failed, fleet(nodes(200)))
    actions = [spec["action"] for spec in found]
    assert (actions.count("retry"), actions.count("hold")) == (20, 180)
    assert all(spec["hardware"] == [] for spec in found)
    held = [spec for spec in found if spec["action"] == "hold"]
    assert all(spec["notBefore"] > ago(0) and "job waits" in spec["reasons"][-1] for spec in held)
    assert {spec["job"]["name"] for spec in found if spec["action"] == "retry"} == {f"job-{n:03}" for n in range(20)}

    # the next pass: whoever has a place keeps it, and nobody else gets one
    past = [
        {**entry(spec["job"]["name"]), "key": spec["attempt"], "at": ago(5), "action": spec["action"]} for spec in found
    ]
    again = decided(failed, fleet(nodes(200)), past)
    assert [spec["action"] for spec in again] == actions
    assert {spec["action"] for spec in decided(failed, fleet(nodes(200), storage=False))} == {"hold"}


@pytest.mark.parametrize("advanced", [None, True])
def test_unknown_progress_never_counts_as_none(advanced):
    past = [entry(number=n, at=90000 * 2 - n, advanced=None) for n in range(1, 8)]
    spec = one(attempt(number=8, signature=TIMEOUT, progress={"advanced": advanced}), past=past)
    assert (spec["action"], spec["budget"]["noProgress"]["used"]) == ("retry", 0)


def test_progress_resets_what_is_counted_without_it_but_not_the_clock():
    past = [
        entry(number=1, at=5000, advanced=False),
        entry(number=2, at=4000, advanced=False),
        entry(number=3, at=3000, advanced=True),
    ]
    spec = one(attempt(number=4, signature=TIMEOUT, progress={"advanced": False}), past=past[1:])
    assert spec["budget"]["noProgress"]["used"] == 1
    spec = one(attempt(number=4, signature=TIMEOUT, progress={"advanced": True}), past=past)
    assert spec["budget"]["noProgress"]["used"] == 0
    assert (spec["budget"]["job-6h"]["used"], spec["action"]) == (3, "escalate")


def test_a_saved_checkpoint_is_progress():
    saved = {"step": 800, "path": "/c/800", "complete": True, "torn": []}
    past = [entry(number=n, at=90000 - n, advanced=False, checkpointStep=600) for n in (1, 2, 3)]
    given = attempt(number=4, signature=TIMEOUT, checkpoint=saved, progress={"advanced": None})
    assert memory.advanced(given, memory.History({"decisions": past}, memory.moments.of(ago(0))).entries) is True
    assert one(given, past=past, budgets={"job": []})["action"] == "retry"


def test_restarts_that_did_not_happen_and_advice_cost_nothing():
    past = [entry(number=n, at=4000 - n, advanced=False, outcome="refused") for n in (1, 2, 3)]
    past += [entry(number=n, at=4000 - n, advanced=False, mode="advise") for n in (4, 5, 6)]
    assert one(attempt(number=7, signature=TIMEOUT, progress={"advanced": False}), past=past)["action"] == "retry"


def test_the_owner_may_allow_fewer():
    past = [entry(number=1)]
    spec = one(attempt(number=2, signature=TIMEOUT, job={"maxRetries": 1}), past=past)
    assert (spec["action"], spec["budget"]["declared"]) == ("giveBack", {"used": 1, "max": 1})


def test_who_submits_again_starts_anew():
    past = [entry(number=n, at=4000 - n, advanced=False) for n in (1, 2, 3)]
    spec = one(attempt(number=1, signature=TIMEOUT, progress={"advanced": False}, job={"uid": "new"}), past=past)
    assert spec["action"] == "retry"


@pytest.mark.parametrize(("retries", "least", "most"), [(0, 0, 0), (1, 30, 36), (2, 120, 144), (3, 480, 576)])
def test_backoff_with_a_jitter_that_is_the_same_each_time(retries, least, most):
    from ansible_collections.goodput.fleet.plugins.module_utils.jobs.policy import Backoff

    waits = {budgets.delay(Backoff(), f"key-{n}", retries, True) for n in range(50)}
    assert all(least <= wait <= most for wait in waits)
    assert len(waits) > 1 or not retries
    assert budgets.delay(Backoff(), "key", retries, True) == budgets.delay(Backoff(), "key", retries, True)
    assert budgets.delay(Backoff(), "key", 0, False) >= 30, "at once only where that is known to be safe"


def test_places_are_not_given_out_twice_in_one_pass():
    """Room for one gang is no room for two."""
    known = nodes(16, free=0)
    for name in ("gpu-12", "gpu-13", "gpu-14", "gpu-15"):
        known[name]["freeGpus"] = 8
    failed = [
        attempt("one", on=(0, 1, 2, 3), hardware={"gpu-0": [xid()]}),
        attempt("two", on=(8, 9, 10, 11), hardware={"gpu-8": [xid()]}, ended=5),
    ]
    one_, two = decided(failed, fleet(known))
    assert (one_["action"], two["action"]) == ("restart", "hold")
    assert two["rule"] == "row-18"


def test_two_in_a_pair_that_fails_once_is_not_enough_for_a_lemon():
    past = [remembered(attempt(signature=PAIR))]
    assert past[0]["blamed"] == ["gpu-1", "gpu-2"]
    spec = one(attempt("other", on=(8, 9), hardware={"gpu-8": [xid()]}), past=past)
    assert [each["node"] for each in spec["exclude"]] == ["gpu-8"]


def test_what_was_decided_by_another_clock_counts_too():
    ahead = [{**entry(number=1), "at": ago(-30)}]
    assert one(attempt(number=2, signature=TIMEOUT), past=ahead)["budget"]["job-6h"]["used"] == 1
