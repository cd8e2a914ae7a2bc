# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where there is room for a job, which nodes keep killing jobs, and what a run takes from the budget of all."""

from __future__ import annotations

from ansible_collections.goodput.fleet.plugins.module_utils.jobs import budgets, lemons, memory, moments, placement
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.policy import Lemon

from tests.unit.jobs.attempts import (
    NOW,
    TIMEOUT,
    advice,
    ago,
    attempt,
    entry,
    excluded,
    fleet,
    nodes,
    one,
    rules,
    signature,
    xid,
)

DAY = 86400


def scores(*past: dict, known: dict | None = None) -> dict:
    now = moments.of(NOW)
    return lemons.scores(Lemon(), memory.History({"decisions": list(past)}, now).entries, known or {}, now)


def test_a_lemon_needs_two_jobs_and_decays():
    twice = [entry("a", at=DAY, blamed=["gpu-5"]), entry("b", at=2 * DAY, blamed=["gpu-5"])]
    assert scores(*twice)["gpu-5"]["lemon"] is True
    assert scores(*(entry("a", number=n, at=n, blamed=["gpu-5"]) for n in range(1, 6)))["gpu-5"]["lemon"] is False
    week = scores(entry("a", at=7 * DAY, blamed=["gpu-5"]))
    assert week["gpu-5"]["score"] == 0.5
    old = [entry("a", at=20 * DAY, blamed=["gpu-5"]), entry("b", at=20 * DAY, blamed=["gpu-5"])]
    assert scores(*old)["gpu-5"]["lemon"] is False
    assert scores(entry("a", at=31 * DAY, blamed=["gpu-5"])) == {}


def test_a_passed_certification_clears_what_was_before_it():
    twice = [entry("a", at=2 * DAY, blamed=["gpu-5"]), entry("b", at=DAY, blamed=["gpu-5"])]
    assert scores(*twice, known={"gpu-5": {"certifiedAt": ago(3600)}}) == {}
    assert scores(*twice, known={"gpu-5": {"certifiedAt": ago(1.5 * DAY)}})["gpu-5"]["score"] < 1
    cleared = one(
        attempt(hardware={"gpu-1": [xid()]}),
        fleet(nodes(gpu_5={"certifiedAt": ago(3600)})),
        past=twice,
    )
    assert excluded(cleared) == ["gpu-1"]


def test_blame_that_is_shared_weighs_less():
    assert scores(entry("a", at=0, blamed=["gpu-1", "gpu-2"]))["gpu-1"]["score"] == 0.5


def test_a_whole_domain_first_and_the_tightest():
    known = nodes(24)
    for name in ("gpu-8", "gpu-9", "gpu-10"):
        known[name]["freeGpus"] = 0
    found = placement.place(attempt(on=(20, 21, 22, 23)), known)
    assert found.prefer == ["rack-2", "rack-1", "rack-0"], "where it was, then the tightest"
    assert placement.place(attempt(on=(20, 21, 22, 23)), known, shun=["rack-2"]).prefer == [
        "rack-1",
        "rack-0",
        "rack-2",
    ]
    wide = attempt(on=tuple(range(12)))
    assert placement.place(wide, known).prefer == ["rack-0", "rack-2"], "the fewest that hold it"


def test_closed_nodes_are_no_room_and_unknown_health_is():
    known = nodes(5, gpu_0={"open": False}, gpu_1={"verdict": "unknown"}, gpu_2={"ready": "Unknown"})
    found = placement.place(attempt(), known)
    assert (found.fits, found.pods) == (False, 3)
    assert "4 pods with 8 GPUs each are wanted, 3 fit" in found.why


def test_what_is_not_known_is_not_taken_for_full():
    known = nodes(4, gpu_0={"freeGpus": None})
    assert placement.place(attempt(), known).fits is None
    spec = one(attempt(signature=TIMEOUT), fleet(known))
    assert (spec["action"], spec["missing"]) == ("retry", None)


def test_what_its_own_pods_hold_is_free_for_it():
    given = attempt()
    for rank in given["ranks"]:
        rank["phase"] = "Running"
    assert placement.place(given, nodes(4, free=0)).fits is True


def test_a_job_in_a_queue_waits_there():
    queued = attempt(job={"queue": {"kind": "kueue", "name": "team", "managed": True}}, hardware={"gpu-1": [xid()]})
    assert one(queued, fleet(nodes(free=0)))["action"] == "restart"
    assert one(queued, fleet(nodes(4)))["action"] == "hold", "no queue has room that does not exist"


def test_what_it_costs_to_leave_one_node_of_a_domain_out():
    """A job as large as its domain cannot use the rest of it."""
    wide = attempt(on=tuple(range(8)), hardware={"gpu-3": [xid()]})
    spec = one(wide)
    assert (spec["action"], excluded(spec)) == ("restart", ["gpu-3"])
    assert spec["prefer"][0] in ("rack-1", "rack-2")
    assert any("7 other nodes of its domain" in why for why in spec["reasons"])
    likely = signature(
        "hardware", "J045", "restart elsewhere", confidence=0.7, blame={"kind": "emitter", "pods": ["train-3-abcde"]}
    )
    suspected = one(attempt(on=tuple(range(8)), signature=likely))
    assert (suspected["action"], suspected["exclude"]) == ("retry", []), "not on a first suspicion"
    assert advice(suspected) == {"gpu-3": "diagnose"}


def test_a_suspect_is_used_again_where_there_is_no_room_without_it():
    likely = signature(
        "hardware", "J045", "restart elsewhere", confidence=0.7, blame={"kind": "emitter", "pods": ["train-3-abcde"]}
    )
    known = {name: {**facts, "domain": ""} for name, facts in nodes(4).items()}
    spec = one(attempt(signature=likely), fleet(known))
    assert (spec["action"], spec["exclude"]) == ("retry", [])


def test_what_was_left_out_stays_out_for_a_while():
    before = entry(at=3600, exclude=["gpu-9"])
    assert excluded(one(attempt(number=2, signature=TIMEOUT), past=[before])) == ["gpu-9"]
    passed = fleet(nodes(gpu_9={"certifiedAt": ago(60)}))
    assert excluded(one(attempt(number=2, signature=TIMEOUT), passed, past=[before])) == []
    assert excluded(one(attempt(number=2, signature=TIMEOUT), past=[{**before, "at": ago(2 * DAY)}])) == []


def test_another_machine_under_the_name_is_not_left_out():
    spec = one(attempt(hardware={"gpu-1": [xid()]}), fleet(nodes(gpu_1={"uid": "new"})))
    assert (spec["exclude"], advice(spec)) == ([], {"gpu-1": "observe"})


def test_gates_stay_within_bounds():
    """One new gate per domain, and 5 percent of the nodes at a time."""
    both = attempt(on=(0, 1, 8, 9), hardware={"gpu-0": [xid()], "gpu-1": [xid()]})
    spec = one(both, fleet(nodes(100)))
    assert sorted(advice(spec).values()) == ["diagnose", "gate"]
    closed = {f"gpu_{n}": {"open": False} for n in range(90, 95)}
    assert advice(one(attempt(hardware={"gpu-1": [xid()]}), fleet(nodes(100, **closed)))) == {"gpu-1": "diagnose"}
    standing = fleet(nodes(100, **closed, gpu_1={"open": False}))
    assert advice(one(attempt(hardware={"gpu-1": [xid()]}), standing)) == {"gpu-1": "gate"}, "it stands already"


def test_of_several_runs_at_once_all_keep_to_one_budget():
    admit = budgets.admission(rules(budgets={"global": {"max": 2, "window": "10m"}}), NOW)
    there = [entry("a", at=60)]
    wanted = [entry("b", at=0), entry("c", at=0), entry("d", at=0, action="hold"), entry("e", at=0, mode="advise")]
    admitted, blocked = admit(there, wanted)
    assert [each["job"] for each in admitted] == ["research/b", "research/d", "research/e"]
    assert [each["job"] for each in blocked] == ["research/c"]
    assert admit([*there, wanted[0]], [wanted[0]])[0] == [wanted[0]], "who was admitted needs no second place"


def test_pods_that_do_not_need_each_other_take_what_there_is():
    shape = {"pods": 4, "gpusPerPod": 8, "gang": False, "elastic": None}
    given = attempt(job={"shape": shape}, hardware={"gpu-1": [xid()]})
    assert one(given, fleet(nodes(4)))["action"] == "restart"
    assert one(given, fleet(nodes(4, free=0)))["action"] == "hold"


def test_a_launcher_wants_no_gpus():
    shape = {"pods": 5, "ranks": 4, "gpusPerPod": 8, "gang": True, "elastic": None}
    assert placement.place(attempt(job={"shape": shape}), nodes(4)).fits is True


def test_pods_that_were_deleted_with_their_job_did_not_go_with_their_node():
    gone = {"gpu-3": [{"source": "gone", "at": "", "what": "there is no such node any more", "fatal": True}]}
    given = attempt(signature=TIMEOUT, hardware=gone, lostNodes=[])
    given["ranks"][3]["phase"] = "Gone"
    known = nodes()
    del known["gpu-3"]
    assert one(given, fleet(known))["rule"] == "row-10"
