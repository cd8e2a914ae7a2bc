"""A drain over time: rounds, retries, what changes meanwhile. On a cluster in memory, with a clock of its own."""

from __future__ import annotations

import json

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.failures import Refused
from ansible_collections.goodput.fleet.plugins.module_utils.gates import drain_policy
from ansible_collections.goodput.fleet.plugins.module_utils.gates.drain import Drain, counts, describe, diff
from ansible_collections.goodput.fleet.plugins.module_utils.gates.drain_request import Request
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import Denied, Unavailable

from tests.unit.gates.drain_things import NOW, Cluster, budget, forbidden_by_budget, node, pod, stamp, with_status

EVICT = {"namespaces": ["apps"], "action": "evict"}
WEB = {"app": "web"}


def drain(cluster, *policies, nodes=("gpu-0",), **options):
    request = Request(list(nodes), drain_policy.load(list(policies) or [EVICT]), **options)
    return Drain(cluster, cluster, request, clock=cluster.clock, sleep=cluster.sleep)


def run(cluster, *policies, **options):
    """The result of the only node."""
    return drain(cluster, *policies, **options).run()[0][0]


def test_it_evicts_and_waits_until_they_are_gone():
    cluster = Cluster(pod("a"), pod("b"), pod("d", owner=("DaemonSet", "d")), ends=20)
    (result,), waited = drain(cluster).run()
    assert (result["status"], result["evicted"], result["remaining"]) == ("drained", ["apps/a", "apps/b"], [])
    assert list(cluster.pods) == ["apps/d"]
    assert 20 <= waited < 30
    assert diff([result]) == {"before": {"gpu-0": ["apps/a", "apps/b"]}, "after": {"gpu-0": []}}


def test_a_second_run_changes_nothing():
    cluster = Cluster(pod("a"))
    assert run(cluster)["changed"]
    asked = len(cluster.asked)
    result = run(cluster)
    assert (result["status"], result["changed"], result["evicted"]) == ("drained", False, [])
    assert len(cluster.asked) == asked


def test_a_preview_writes_nothing():
    cluster = Cluster(pod("a"), pod("b", labels=WEB), pod("c", "jobs"), budgets=[budget()])
    (result,) = drain(cluster).preview()
    assert (result["status"], result["changed"], result["evicted"]) == ("blocked", True, ["apps/a"])
    assert [entry["pod"] for entry in result["remaining"]] == ["apps/a", "apps/b", "jobs/c"]
    assert cluster.asked == []


def test_a_budget_is_asked_again_and_keeps_no_other_from_going():
    cluster = Cluster(pod("a", labels=WEB), pod("b"), budgets=[budget()])
    cluster.at = [(NOW + 60, lambda: cluster.budgets[0]["status"].update(disruptionsAllowed=1))]
    (result,), waited = drain(cluster, timeout=300).run()
    assert result["status"] == "drained" and 60 <= waited < 100
    assert [key for _how, key, _options in cluster.asked if key == "apps/b"] == ["apps/b"]
    assert 3 <= sum(key == "apps/a" for _how, key, _options in cluster.asked) <= 10


def test_the_blocking_budget_is_named_at_the_end():
    cluster = Cluster(pod("a", labels=WEB), budgets=[budget()])
    (result,), waited = drain(cluster, timeout=30).run()
    assert result["status"] == "blocked" and not result["changed"] and waited == pytest.approx(30)
    assert result["remaining"][0]["pdb"] == ["web"]
    assert "PodDisruptionBudget web forbids it" in result["remaining"][0]["why"]
    assert "gpu-0: blocked: apps/a (PodDisruptionBudget web" in describe([result])


def test_several_budgets_are_named_and_not_a_failure_of_the_server():
    cluster = Cluster(pod("a", labels=WEB), budgets=[budget("one", allowed=1), budget("two", allowed=1)])
    result = run(cluster, timeout=20)
    assert result["status"] == "blocked"
    assert "more than one PodDisruptionBudget selects it (one, two)" in result["remaining"][0]["why"]


def test_force_comes_after_the_eviction_was_refused():
    cluster = Cluster(pod("a", labels=WEB), budgets=[budget()])
    result = run(cluster, {**EVICT, "force": True, "force_after": "60s"}, timeout=300)
    assert (result["status"], result["evicted"], result["forced"]) == ("drained", [], ["apps/a"])
    hows = [how for how, _key, _options in cluster.asked]
    assert hows[0] == "evict" and hows[-1] == "delete" and hows.count("delete") == 1
    assert "gracePeriodSeconds" not in cluster.asked[-1][2]
    assert cluster.now >= NOW + 60


def test_requests_carry_uid_and_version():
    cluster = Cluster(pod("a"))
    meta = cluster.pods["apps/a"]["metadata"]
    run(cluster)
    assert cluster.asked[0][2] == {"preconditions": {"uid": meta["uid"], "resourceVersion": "1"}}


def test_a_new_pod_of_the_same_name_elsewhere_is_not_evicted():
    """As a StatefulSet makes one between our look and our request."""
    cluster = Cluster(pod("db-0", owner=("StatefulSet", "db")))
    replacement = pod("db-0", owner=("StatefulSet", "db"), node="gpu-1")
    cluster.answers["apps/db-0"] = [lambda: cluster.pods.update({"apps/db-0": replacement})]
    result = run(cluster)
    assert (result["status"], result["changed"]) == ("drained", False)
    assert "deletionTimestamp" not in cluster.pods["apps/db-0"]["metadata"]


def test_a_pod_that_changed_is_looked_at_again():
    cluster = Cluster(pod("a"))

    def finish():
        item = cluster.pods["apps/a"]
        item["metadata"]["resourceVersion"], item["status"]["phase"] = "7", "Succeeded"

    cluster.answers["apps/a"] = [finish]
    result = run(cluster)
    assert (result["status"], result["changed"], len(cluster.asked)) == ("drained", False, 1)


def test_a_pod_that_is_gone_already_is_fine():
    cluster = Cluster(pod("a"))
    cluster.answers["apps/a"] = [lambda: cluster.pods.pop("apps/a")]
    result = run(cluster)
    assert (result["status"], result["changed"]) == ("drained", False)


def test_an_overloaded_server_is_asked_when_it_says():
    cluster = Cluster(pod("a"))
    cluster.answers["apps/a"] = [with_status(Unavailable("answered 429"), 429, retry_after=17.0)]
    result = run(cluster)
    assert result["status"] == "drained" and len(cluster.asked) == 2
    assert NOW + 17 <= cluster.now < NOW + 25


@pytest.mark.parametrize("status", [500, 503])
def test_a_server_that_fails_is_asked_again_and_never_a_reason_for_force(status):
    cluster = Cluster(pod("a"))
    cluster.answers["apps/a"] = [with_status(Unavailable(f"answered {status}"), status) for _ in range(3)]
    result = run(cluster, {**EVICT, "force": True, "force_after": "1s"})
    assert (result["status"], result["evicted"], result["forced"]) == ("drained", ["apps/a"], [])


def test_an_answer_that_was_lost_is_found_out():
    """The eviction was carried out; only nobody told us."""
    cluster = Cluster(pod("a"), ends=10)

    def done():
        meta = cluster.pods["apps/a"]["metadata"]
        meta.update(deletionTimestamp=stamp(NOW + 30), resourceVersion="2")
        cluster._going[meta["uid"]] = NOW + 10
        raise Unavailable("no answer in time", code="timeout")

    cluster.answers["apps/a"] = [done]
    result = run(cluster)
    assert (result["status"], result["evicted"], len(cluster.asked)) == ("drained", ["apps/a"], 1)


def test_lack_of_rights_in_one_namespace_fails_that_pod_only():
    cluster = Cluster(pod("a"), pod("b", "other"))
    cluster.answers["other/b"] = [
        with_status(Denied("forbidden: cannot create b", hint="user x needs that right"), 403)
    ]
    (result,), waited = drain(cluster, {"namespaces": ["*"], "action": "evict"}).run()
    assert (result["status"], result["evicted"]) == ("failed", ["apps/a"])
    assert result["remaining"][0]["pod"] == "other/b" and result["remaining"][0]["state"] == "failed"
    assert waited < 10  # nothing that waiting would cure


@pytest.mark.parametrize(
    "error",
    [
        with_status(Refused("cannot create pods/eviction a: not on Fridays"), 422),
        with_status(Denied("forbidden: cannot create pods/eviction a", hint="not on Fridays"), 403),
    ],
)
def test_an_admission_rule_blocks_is_quoted_and_asked_again(error):
    cluster = Cluster(pod("a"))
    cluster.answers["apps/a"] = [error, error]
    early = run(cluster, wait=False)
    assert early["remaining"][0]["why"] == "the API server refuses it: not on Fridays"
    assert early["status"] == "blocked" and run(cluster)["status"] == "drained"


def test_a_pod_that_changes_all_the_time_is_evicted_at_last():
    cluster = Cluster(pod("a"))

    def change():
        meta = cluster.pods["apps/a"]["metadata"]
        meta["resourceVersion"] = f"{meta['resourceVersion']}1"

    cluster.answers["apps/a"] = [change] * 99
    result = run(cluster)
    assert (result["status"], len(cluster.asked)) == ("drained", 4)
    assert set(cluster.asked[-1][2]["preconditions"]) == {"uid"}


# ---- the node ----


def test_an_open_node_is_refused():
    cluster = Cluster(pod("a"), nodes=[node(cordoned=False)])
    result = run(cluster)
    assert (result["status"], result["code"], cluster.asked) == ("failed", "open", [])
    assert "hold it with node_gate first" in result["reason"]
    assert run(cluster, allow_open=True)["status"] == "drained"


def test_a_node_that_somebody_opens_meanwhile_is_left_alone():
    cluster = Cluster(pod("a", labels=WEB), budgets=[budget()])
    cluster.at = [(NOW + 20, lambda: cluster.nodes["gpu-0"]["spec"].update(unschedulable=False))]
    (result,), waited = drain(cluster).run()
    assert (result["status"], result["code"]) == ("failed", "open") and waited < 60
    assert "somebody opened the node" in result["reason"]
    asked = len(cluster.asked)
    cluster.sleep(100)
    assert len(cluster.asked) == asked


def test_a_node_that_does_not_exist_harms_no_other():
    cluster = Cluster(pod("a"))
    results, _ = drain(cluster, nodes=["gpu-9", "gpu-0"]).run()
    assert [(result["node"], result["status"], result["code"]) for result in results] == [
        ("gpu-9", "failed", "not-found"),
        ("gpu-0", "drained", ""),
    ]
    assert counts(results) == {"total": 2, "drained": 1, "draining": 0, "waiting": 0, "blocked": 0, "failed": 1}


def test_a_node_that_is_deleted_meanwhile():
    cluster = Cluster(pod("a", "jobs"), pod("b", labels=WEB), budgets=[budget()])

    def remove():
        del cluster.nodes["gpu-0"]
        cluster.at.append((cluster.now + 20, cluster.pods.clear))  # by the garbage collector

    cluster.at = [(NOW + 20, remove)]
    result = run(cluster)
    assert (result["status"], result["reason"]) == ("drained", "the node was deleted meanwhile")
    assert {key for _how, key, _options in cluster.asked} == {"apps/b"}


def test_a_node_that_is_another_one_by_now():
    cluster = Cluster(pod("a", "jobs"))
    cluster.at = [(NOW + 20, lambda: cluster.nodes["gpu-0"]["metadata"].update(uid="new"))]
    result = run(cluster)
    assert (result["status"], result["code"]) == ("failed", "replaced")


def test_a_node_that_cannot_be_read_for_a_while():
    cluster = Cluster(pod("a", "jobs"))
    cluster.at = [(NOW + 90, cluster.pods.clear)]
    real, fails = cluster.get, [False]

    def get(path):
        fails[0] = NOW + 20 < cluster.now < NOW + 60
        if fails[0]:
            raise Unavailable("away")
        return real(path)

    cluster.get = get
    assert run(cluster)["status"] == "drained"


def test_a_cluster_that_cannot_be_reached_is_one_error_and_one_wait():
    cluster, asked = Cluster(), []

    def get(path):
        asked.append(path)
        raise Unavailable("cannot reach the API server")

    cluster.get = get
    with pytest.raises(Unavailable, match="cannot reach"):
        drain(cluster, nodes=[f"gpu-{number}" for number in range(1000)]).run()
    assert len(asked) == 1


def test_a_right_that_is_lacking_is_each_nodes_own_result():
    cluster = Cluster(pod("a"))

    def get(path):
        raise with_status(Denied("forbidden: cannot get nodes"), 403)

    cluster.get = get
    (result,), waited = drain(cluster).run()
    assert (result["status"], result["reason"], waited) == ("failed", "forbidden: cannot get nodes", 0)


def test_pods_that_come_back_are_bounded():
    cluster = Cluster(pod("web-0"), ends=0.1)
    count = [0]

    def again():
        count[0] += 1
        cluster.pods[f"apps/web-{count[0]}"] = pod(f"web-{count[0]}")
        cluster.at.append((cluster.now + 0.4, again))

    cluster.at = [(NOW + 0.4, again)]
    result = run(cluster, timeout=120)
    assert result["status"] == "blocked" and len(cluster.asked) == 3
    assert "again and again" in result["remaining"][0]["why"]


# ---- time ----


def test_what_is_waited_for():
    cluster = Cluster(pod("job-1", "jobs", owner=("Job", "job")))
    cluster.at = [(NOW + 100, lambda: cluster.pods["jobs/job-1"]["status"].update(phase="Succeeded"))]
    (result,), waited = drain(cluster).run()
    assert (result["status"], result["changed"], cluster.asked) == ("drained", False, [])
    assert 100 <= waited < 110


def test_the_deadline_counts_from_the_gate():
    taint = {"key": "gate.goodput.fleet/maintenance", "value": "x", "effect": "NoSchedule"}
    text = json.dumps({"since": stamp(NOW - 1700), "taint": taint})
    closed = node(cordoned=False, annotations={"gate.goodput.fleet/maintenance": text}, taints=[taint])
    cluster = Cluster(pod("a"), nodes=[closed])
    (result,), waited = drain(cluster, {**EVICT, "after": "30m"}, owner="maintenance").run()
    assert result["status"] == "drained" and 100 <= waited < 110


def test_without_waiting_it_asks_once():
    cluster = Cluster(pod("a"), pod("b", labels=WEB), pod("c", "jobs"), budgets=[budget()], ends=60)
    (result,), waited = drain(cluster, wait=False).run()
    assert (result["status"], result["evicted"], waited) == ("blocked", ["apps/a"], 0)
    states = {entry["pod"]: entry["state"] for entry in result["remaining"]}
    assert states == {"apps/a": "terminating", "apps/b": "blocked", "jobs/c": "waiting"}
    assert len(cluster.asked) == 2


def test_long_rounds_look_at_the_nodes_in_between():
    """Somebody opens the node while hundreds of pods are being evicted one after another."""
    cluster, count = Cluster(*(pod(f"p-{number:03}") for number in range(300))), [0]

    def slow():
        count[0] += 1
        cluster.now += 0.5
        if count[0] == 30:
            cluster.nodes["gpu-0"]["spec"]["unschedulable"] = False

    for key in cluster.pods:
        cluster.answers[key] = [slow]
    (result,), waited = drain(cluster).run()
    assert (result["status"], result["code"]) == ("failed", "open")
    assert 30 <= len(cluster.asked) < 60 and waited < 60
    assert len(result["evicted"]) == len(cluster.asked)


def test_hardly_any_time_is_still_one_round():
    cluster = Cluster(pod("a"))
    (result,), waited = drain(cluster, timeout=0).run()
    assert (result["evicted"], result["status"], waited) == (["apps/a"], "draining", 0)


def test_many_nodes_are_one_list_of_pods():
    nodes = [node(f"gpu-{number}") for number in range(40)]
    cluster = Cluster(*(pod(f"p-{number}", node=f"gpu-{number}") for number in range(40)), nodes=nodes)
    lists, real = [], cluster.list

    def listed(path, **query):
        lists.append((path, query))
        return real(path, **query)

    cluster.list = listed
    results = drain(cluster, nodes=[item["metadata"]["name"] for item in nodes]).preview()
    assert counts(results)["draining"] == 40
    assert [path for path, _query in lists] == [
        "/api/v1/pods",
        "/apis/policy/v1/namespaces/apps/poddisruptionbudgets",
    ]


def test_no_nodes_are_no_work():
    assert drain(Cluster(), nodes=[]).run()[0] == []


def test_budgets_that_may_not_be_read_still_hold():
    cluster = Cluster(pod("a"))
    real = cluster.list

    def listed(path, **query):
        if "poddisruptionbudgets" in path:
            raise Denied("forbidden: cannot list poddisruptionbudgets.policy")
        return real(path, **query)

    cluster.list = listed
    cluster.answers["apps/a"] = [forbidden_by_budget()] * 9
    result = run(cluster, timeout=10)
    assert result["status"] == "blocked"
    assert "whose name is not known" in result["remaining"][0]["why"]
    assert "cannot list poddisruptionbudgets" in result["reason"]
