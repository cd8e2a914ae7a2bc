"""What a certification runs: no node is forgotten, none is in two groups by accident, every refusal has a reason."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.certification import (
    catalogue,
    documents,
    plan,
    planned_text,
    timetable,
)
from ansible_collections.goodput.fleet.plugins.module_utils.certification import nodes as nodes_
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, NotFound
from hypothesis import given, settings
from hypothesis import strategies as st

TESTS = catalogue.load_tests([str(Path(__file__).parents[3] / "gitops" / "catalog")])
H100, L40S, GB200 = "NVIDIA-H100-80GB-HBM3", "NVIDIA-L40S", "NVIDIA-GB200"
ALL_REDUCE = {"domain": "communication", "variant": "nccl-all-reduce"}
SENDRECV = {"domain": "communication", "variant": "nccl-sendrecv"}
DCGM = {"domain": "diagnostics", "variant": "dcgm-level2"}
TRAIN = {"domain": "training", "variant": "nemotron5-8b"}
LARGE = {"domain": "training", "variant": "nemotron5-56b"}


def node(
    number: int, gpus: int = 8, whole: int | None = None, product: str = H100, rack: str | None = "", **more
) -> dict:
    """`gpus` are allocatable, `whole` is the capacity; `rack` None: no label."""
    labels = {
        "nvidia.com/gpu.present": "true",
        "node.kubernetes.io/instance-type": f"machine-{product}",
        **more.pop("labels", {}),
    }
    if product:
        labels["nvidia.com/gpu.product"] = product
    if rack is not None:
        labels["goodput.fleet/rack"] = rack or f"rack-{number // 4}"
    resources = {"nvidia.com/gpu": gpus, **more.pop("resources", {})}
    return {
        "name": f"gpu-{number:03}",
        "labels": labels,
        "ready": "True",
        "allocatable": resources,
        "capacity": {**resources, "nvidia.com/gpu": gpus if whole is None else whole},
        **more,
    }


def fleet(count: int, **fields) -> list[dict]:
    return [node(number, **fields) for number in range(count)]


def names(*numbers: int) -> list[str]:
    return [f"gpu-{number:03}" for number in numbers]


def certification(*categories: dict, target: dict | None = None, **spec) -> dict:
    given_ = {
        "apiVersion": "goodput.fleet/v1alpha1",
        "kind": "Certification",
        "metadata": {"name": "delivery"},
        "spec": {
            "target": target or {"nodeSelector": {"nvidia.com/gpu.present": "true"}},
            "categories": list(categories),
            **spec,
        },
    }
    return documents.load(given_)["certification"]


def make(nodes: list[dict], *categories: dict, options: dict | None = None, **spec) -> dict:
    found = plan.plan(certification(*categories, **spec), TESTS, nodes, options)
    covered(found, len(categories))
    return found


def covered(found: dict, categories: int) -> None:
    """Every node that is asked for has one row per category; rows and runs agree."""
    rows = {(row["node"], row["category"]): row for row in found["rows"]}
    assert len(rows) == len(found["rows"]) == len(found["nodes"]) * categories
    by_id = {run["id"]: run for run in found["runs"]}
    assert len(by_id) == len(found["runs"]) == found["jobs"]
    for row in found["rows"]:
        assert all(row["node"] in by_id[one]["nodes"] for one in row["runs"])
        assert bool(row["runs"]) != bool(row.get("why")), row
    for run in found["runs"]:
        assert len(set(run["nodes"])) == len(run["nodes"])
        for name in run["nodes"]:
            assert any(run["id"] in rows[name, category]["runs"] for category in run["categories"])


def groups(found: dict) -> list[list[str]]:
    return [run["nodes"] for run in found["runs"]]


def why(found: dict) -> dict[str, str]:
    return {row["node"]: f"{row['outcome']}: {row['why']}" for row in found["blocked"]}


# ---------------------------------------------------------------- which nodes


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ({"nodeSelector": {"pool": "a"}}, [0, 1]),
        ({"nodeSelector": {"pool": "a"}, "nodeNames": names(1, 2)}, [1, 2]),  # 2 does not fit, but has a row
        ({"matchExpressions": [{"key": "pool", "operator": "In", "values": ["b"]}]}, [2]),
        ({"matchExpressions": [{"key": "pool", "operator": "NotIn", "values": ["a"]}]}, [2, 3]),
        ({"matchExpressions": [{"key": "pool", "operator": "DoesNotExist"}]}, [3]),
        (
            {
                "matchExpressions": [
                    {"key": "pool", "operator": "Exists"},
                    {"key": "pool", "operator": "NotIn", "values": ["a"]},
                ]
            },
            [2],
        ),
        ({"taintSelectors": [{"key": "hold"}]}, [1, 3]),
        ({"taintSelectors": [{"key": "hold", "value": "x"}, {"key": "new", "effect": "NoExecute"}]}, [3]),
        ({"nodeSelector": {"pool": "a"}, "taintSelectors": [{"key": "hold"}]}, [1]),
    ],
)
def test_a_target_s_parts_must_all_fit(target, expected):
    hold, new = (
        {"key": key, "value": "x", "effect": effect} for key, effect in (("hold", "NoSchedule"), ("new", "NoExecute"))
    )
    nodes = [
        node(0, labels={"pool": "a"}),
        node(1, labels={"pool": "a"}, taints=[hold]),
        node(2, labels={"pool": "b"}),
        node(3, taints=[hold, new]),
    ]
    assert make(nodes, DCGM, target=target)["nodes"] == names(*expected)


def test_nodes_that_are_named_have_a_row_even_where_they_do_not_exist_or_fit():
    found = make(
        fleet(2),
        DCGM,
        target={"nodeNames": ["gpu-000", "gpu-0001", "gpu-001"], "nodeSelector": {"goodput.fleet/rack": "rack-0"}},
    )
    assert why(found) == {"gpu-0001": "blocked: there is no such node"}
    assert [problem["severity"] for problem in found["problems"]] == ["warning"]
    found = make(fleet(8), DCGM, target={"nodeNames": names(0, 7), "nodeSelector": {"goodput.fleet/rack": "rack-0"}})
    assert why(found) == {"gpu-007": "blocked: does not fit the rest of the target: nodeSelector"}


def test_a_target_that_no_node_fits_says_what_each_part_leaves():
    target = {"nodeSelector": {"goodput.fleet/rack": "rack-0"}, "taintSelectors": [{"key": "hold"}]}
    found = make(fleet(8), DCGM, target=target)
    [problem] = found["problems"]
    assert problem["severity"] == "error"
    assert "of 8 nodes nodeSelector fits 4; taintSelectors fits 0" in problem["message"]
    assert found["runs"] == []


GATE = {"key": "gate.goodput.fleet/quarantine", "value": "xid-79", "effect": "NoSchedule"}
ODD = {"key": "example.com/hold", "value": "", "effect": "NoExecute"}


@pytest.mark.parametrize(
    ("fields", "spec", "reason"),
    [
        ({}, {}, None),
        ({"ready": "False"}, {}, "the node is not ready"),
        ({"ready": "Unknown"}, {}, "does not tell that it is ready"),
        ({"unschedulable": True}, {}, "the node is cordoned"),
        ({"unschedulable": True}, {"options_": {"includeCordoned": True}}, None),
        ({"unschedulable": True}, {"target": {"taintSelectors": [{"key": "node.kubernetes.io/unschedulable"}]}}, None),
        ({"gates": ["quarantine"], "taints": [GATE]}, {}, "gate of quarantine: not in tolerateGates"),
        ({"gates": ["quarantine"], "taints": [GATE]}, {"tolerateGates": ["quarantine"]}, None),
        ({"gates": ["quarantine", "lifecycle"]}, {"tolerateGates": ["quarantine"]}, "gate of lifecycle"),
        # a gate's own cordon is behind the gate, somebody else's is not
        ({"gates": ["quarantine"], "unschedulable": True, "external": []}, {"tolerateGates": ["quarantine"]}, None),
        (
            {"gates": ["quarantine"], "unschedulable": True, "external": [{"kind": "cordon", "holds": True}]},
            {"tolerateGates": ["quarantine"]},
            "the node is cordoned",
        ),
        # a gate may have a taint of the site's own
        ({"gates": [{"owner": "quarantine", "taint": ODD}], "taints": [ODD]}, {"tolerateGates": ["quarantine"]}, None),
        ({"taints": [ODD]}, {"tolerateGates": ["quarantine"]}, "taint example.com/hold:NoExecute"),
        ({"taints": [GATE]}, {}, "taint gate.goodput.fleet/quarantine=xid-79:NoSchedule"),
        ({"taints": [{**ODD, "effect": "PreferNoSchedule"}]}, {}, None),
        ({"taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]}, {}, None),
        (
            {"taints": [{"key": "pool", "value": "x", "effect": "NoSchedule"}]},
            {"options_": {"poolTaints": ["po*"]}},
            None,
        ),
        ({"gpus": 7, "whole": 8}, {}, "7 of 8 GPUs"),
        ({"gpus": 7, "whole": 7}, {}, "7 of 8 GPUs"),  # others of the same machine have 8
        ({"gpus": 7, "whole": 7, "labels": {"node.kubernetes.io/instance-type": "other"}}, {}, None),
        (
            {"gpus": 7, "labels": {"nvidia.com/gpu.count": "8", "node.kubernetes.io/instance-type": "other"}},
            {},
            "7 of 8 GPUs",
        ),
        ({"gpus": 0, "whole": 8}, {}, "0 of 8 GPUs"),
        ({"gpus": 0, "product": ""}, {}, "the node has no nvidia.com/gpu"),
        ({"gpus": 0, "product": "x", "resources": {"nvidia.com/mig-1g.10gb": 7}}, {}, "MIG is on"),
    ],
)
def test_why_a_node_is_not_tested(fields, spec, reason):
    spec = dict(spec)
    options = spec.pop("options_", None)
    found = make([*fleet(3), node(3, **fields)], DCGM, options=options, **spec)
    told = why(found).get("gpu-003")
    if reason is None:
        assert told is None
        assert ["gpu-003"] in groups(found)
    else:
        assert reason in told
        assert ["gpu-003"] not in groups(found)


def test_pods_tolerate_the_taints_of_their_nodes_and_no_other():
    nodes = [
        node(0, gates=["quarantine"], taints=[GATE], unschedulable=True, external=[]),
        node(1, taints=[{"key": "nvidia.com/gpu", "value": "", "effect": "NoSchedule"}]),
    ]
    found = make(nodes, DCGM, tolerateGates=["quarantine"])
    assert [run["tolerations"] for run in found["runs"]] == [
        [
            {"key": GATE["key"], "operator": "Equal", "value": "xid-79", "effect": "NoSchedule"},
            {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"},
        ],
        [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
    ]


def test_raw_nodes_are_read_as_the_cluster_gives_them():
    raw = {
        "metadata": {
            "name": "gpu-000",
            "labels": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.present": "true"},
            "annotations": {"gate.goodput.fleet/quarantine": "{}"},
        },
        "spec": {"taints": [GATE]},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "capacity": {"nvidia.com/gpu": "8", "memory": "2Ti", "cpu": "128"},
            "allocatable": {"nvidia.com/gpu": "7", "memory": "2Ti", "cpu": "127500m"},
        },
    }
    assert why(make([raw], DCGM)) == {"gpu-000": "blocked: gate of quarantine: not in tolerateGates"}
    assert why(make([raw], DCGM, tolerateGates=["quarantine"])) == {"gpu-000": "blocked: 7 of 8 GPUs"}


@pytest.mark.parametrize(
    ("product", "expected"),
    [
        (H100, "h100"),
        ("nvidia-h100-mega-80gb", "h100"),
        (GB200, "gb200"),
        ("NVIDIA-A100-SXM4-80GB", "a100"),
        (L40S, "l40s"),
        ("NVIDIA-L40", "l40"),
        ("NVIDIA-B200", "b200"),
        ("NVIDIA-GH200-480GB", "gh200"),
        ("Tesla-V100-SXM2-16GB", "v100"),
        ("NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", "rtxpro6000"),
        ("Something-Else", "something-else"),
        ("", ""),
    ],
)
def test_the_accelerator_of_a_product(product, expected):
    assert nodes_.accelerator(product) == expected


# ---------------------------------------------------------------- which groups


def test_each_accelerator_is_a_group_of_its_own_and_none_is_dropped():
    nodes = [*fleet(4), *(node(number, product=L40S) for number in range(4, 7)), node(7, product=GB200, gpus=4)]
    found = make(nodes, ALL_REDUCE)
    assert groups(found) == [names(0, 1, 2, 3), names(4, 5, 6)]
    assert [run["accelerator"] for run in found["runs"]] == ["h100", "l40s"]
    assert why(found) == {"gpu-007": "blocked: the test needs 2 nodes in a group, there is 1"}


@pytest.mark.parametrize(
    ("count", "options", "expected"),
    [
        (4, {}, [[0, 1, 2, 3]]),
        (4, {"nodesPerJob": 2}, [[0, 1], [2, 3]]),
        (5, {"nodesPerJob": 2}, [[0, 1], [2, 3], [3, 4]]),  # filled up, so that results compare
        (3, {"nodesPerJob": 8}, [[0, 1, 2]]),
        (4, {"testScale": "intra-node"}, [[0], [1], [2], [3]]),
        (6, {"testScale": "intra-rack"}, [[0, 1, 2, 3], [4, 5]]),
        (7, {"testScale": "intra-rack", "nodesPerJob": 2}, [[0, 1], [2, 3], [4, 5], [5, 6]]),
        (6, {"nodesPerJob": 2, "repeatCount": 2}, [[0, 1], [0, 1], [2, 3], [2, 3], [4, 5], [4, 5]]),
    ],
)
def test_groups(count, options, expected):
    found = make(fleet(count), {**ALL_REDUCE, "options": options})
    assert groups(found) == [names(*group) for group in expected]
    assert why(found) == {}


def test_one_node_needs_no_operator_to_start_its_processes():
    assert make(fleet(2), ALL_REDUCE)["runs"][0]["launcher"] == "mpijob"
    alone = make(
        fleet(2), {**ALL_REDUCE, "options": {"testScale": "intra-node"}}, {**TRAIN, "options": {"nodesPerJob": 1}}
    )
    assert {run["launcher"] for run in alone["runs"]} == {"job"}


def test_whole_groups_stay_within_racks_where_they_can():
    nodes = [node(number, rack=rack) for number, rack in enumerate("aaabbbccc")]
    found = make(nodes, {**ALL_REDUCE, "options": {"nodesPerJob": 2}})
    assert [run["scope"] for run in found["runs"]] == ["domain", "domain", "domain", "cross", "cross"]


def test_a_group_that_is_filled_up_tells_by_whom():
    found = make(fleet(3), SENDRECV)
    assert [(run["nodes"], run["borrowed"]) for run in found["runs"]] == [
        (names(0, 1), []),
        (names(1, 2), names(1)),
    ]


def test_racks_are_nvlink_domains_first():
    nodes = [node(number, labels={"nvidia.com/gpu.clique": f"c.{number % 2}"}) for number in range(4)]
    found = make(nodes, {**ALL_REDUCE, "options": {"testScale": "intra-rack"}})
    assert groups(found) == [names(0, 2), names(1, 3)]


def test_a_node_without_rack_is_no_error_for_the_others():
    found = make(
        [*fleet(4), node(4, rack=None), node(5, rack="alone")], {**ALL_REDUCE, "options": {"testScale": "intra-rack"}}
    )
    assert groups(found) == [names(0, 1, 2, 3)]
    told = why(found)
    assert told["gpu-004"].startswith(
        "blocked: the node tells no rack or NVLink domain: it has none of nvidia.com/gpu.clique"
    )
    assert told["gpu-005"] == "blocked: the test needs 2 nodes in a group, there is 1 (in alone)"


def test_a_search_starts_with_small_groups_of_all_nodes():
    found = make(fleet(16), {**ALL_REDUCE, "options": {"testScale": "diagnose", "repeatCount": 3}})
    assert sorted(name for group in groups(found) for name in group) == names(*range(16))
    assert {len(group) for group in groups(found)} == {4}
    [search] = found["searches"]
    assert search["category"] == "nccl-all-reduce"
    assert search["nodes"][5] == {"name": "gpu-005", "domain": "rack-1"}
    assert search["options"] == {"mode": "communication", "min_size": 2}
    assert "repeatCount has no meaning" in " ".join(found["notes"])


def test_a_search_keeps_to_the_limits_and_to_the_sizes_of_the_test():
    found = make(
        fleet(6, product="NVIDIA-A100-SXM4-80GB", gpus=4),
        {**TRAIN, "options": {"repeats": 3}},
        limits={"maxTests": 50, "maxNodesOut": 4},
    )
    [search] = found["searches"]  # 8 GPUs each: tensor parallelism
    assert search["options"] == {
        "mode": "training",
        "min_size": 2,
        "sizes": [2, 4],
        "max_tests": 50,
        "max_nodes": 4,
        "repeats": 3,
    }
    assert make(fleet(6), {**ALL_REDUCE, "options": {"isolate": False}})["searches"] == []


@pytest.mark.parametrize(
    ("category", "count", "gpus", "limits", "reason"),
    [
        (LARGE, 3, 8, {}, "blocked: the test needs 32 GPUs in a group, 3 nodes have 24"),
        ({**LARGE, "options": {"nodesPerJob": 2}}, 8, 8, {}, "needs 32 GPUs in a group, 2 nodes have 16"),
        (
            {**LARGE, "options": {"variables": {"tensorParallel": 24}, "nodesPerJob": 4}},
            4,
            8,
            {},
            "32 GPUs in a group are no multiple of 24",
        ),
        ({**ALL_REDUCE, "options": {"nodesPerJob": 4}}, 4, 8, {"maxNodesOut": 2}, "more than limits.maxNodesOut 2"),
        (ALL_REDUCE, 4, 8, {"maxNodesOut": 1}, "more than limits.maxNodesOut 1"),
        (
            {**ALL_REDUCE, "options": {"testScale": "diagnose"}},
            1,
            8,
            {},
            "the test needs 2 nodes in a group, there is 1",
        ),
        ({**DCGM, "options": {"gpusPerNode": 16}}, 2, 8, {}, "blocked: 8 of 16 GPUs"),
        (
            {**ALL_REDUCE, "options": {"testScale": "intra-node"}},
            2,
            1,
            {},
            "blocked: the test needs 2 GPUs in a group, one node has 1",
        ),
        (
            {"domain": "communication", "variant": "nccl-loopback"},
            2,
            1,
            {},
            "not_applicable: the test needs 2 GPUs in a node, it has 1",
        ),
        (
            {**ALL_REDUCE, "options": {"nicResourceName": "rdma/ib", "nicsPerNode": 8}},
            2,
            8,
            {},
            "blocked: 0 of 8 rdma/ib",
        ),
    ],
)
def test_why_no_group_can_be_formed(category, count, gpus, limits, reason):
    found = make(fleet(count, gpus=gpus), category, limits=limits)
    assert found["runs"] == []
    assert all(reason in text for text in why(found).values())


@pytest.mark.parametrize(
    ("category", "count", "limits", "size"),
    [
        (LARGE, 9, {}, 9),  # tensor parallelism of 8 divides any number of nodes
        ({**LARGE, "options": {"variables": {"pipelineParallel": 2}}}, 9, {}, 8),
        (ALL_REDUCE, 9, {"maxNodesOut": 4}, 4),
    ],
)
def test_without_a_size_a_group_is_as_large_as_may_be(category, count, limits, size):
    found = make(fleet(count), category, limits=limits)
    assert {len(group) for group in groups(found)} == {size}
    assert why(found) == {}


def test_the_devices_of_a_pod():
    nodes = [node(number, resources={"rdma/ib": 8}) for number in range(3)] + [node(3, resources={"rdma/ib": 7})]
    found = make(nodes, {**ALL_REDUCE, "options": {"nicResourceName": "rdma/ib", "gpusPerNode": 4}})
    [run] = found["runs"]
    assert run["nodes"] == names(0, 1, 2)
    assert run["resources"]["limits"] == run["resources"]["requests"] == {"nvidia.com/gpu": 4, "rdma/ib": 8}
    assert run["expected"] == {"ranks": 12, "hosts": 3, "gpusPerNode": 4, "transport": ""}
    assert why(found) == {"gpu-003": "blocked: 7 of 8 rdma/ib"}


@pytest.mark.parametrize(
    ("resource", "category", "rack", "expected"),
    [
        ("rdma/ib", ALL_REDUCE, "", "IB"),
        ("vpc.amazonaws.com/efa", ALL_REDUCE, "", "EFA"),
        ("rdma/ib", ALL_REDUCE, "one", ""),  # within an NVLink domain it may be NVLink
        ("rdma/ib", {"domain": "communication", "variant": "nccl-loopback"}, "one", "IB"),
        ("rdma/ib", {**ALL_REDUCE, "options": {"transport": "MNNVL"}}, "", "MNNVL"),
    ],
)
def test_the_transport_follows_from_the_devices(resource, category, rack, expected):
    nodes = fleet(5, resources={resource: 8}, rack=rack)
    options = {"nicResourceName": resource, **category.get("options", {})}
    run = make(nodes, {**category, "options": options})["runs"][0]
    assert run["expected"]["transport"] == expected
    assert run["arguments"].get("expected_transport", "") == expected


# ---------------------------------------------------------------- identity


def ids(nodes: list[dict], *categories: dict, **spec) -> list[str]:
    return [run["id"] for run in make(nodes, *categories, **spec)["runs"]]


def test_a_run_is_what_runs_where_and_which_repeat():
    base = ids(fleet(4), ALL_REDUCE)
    assert ids(list(reversed(fleet(4))), ALL_REDUCE) == base
    for same in (
        {"thresholds": {"busBandwidthGBps": "value > 1"}},
        {"queue": {"name": "gpu"}},
        {"maxConcurrent": 3},
        {"isolate": False},
    ):
        assert ids(fleet(4), {**ALL_REDUCE, "options": same}) == base, same
    assert ids(fleet(4), {**ALL_REDUCE, "name": "other"}) == base
    gated = [node(number, gates=["quarantine"], taints=[GATE]) for number in range(4)]
    assert ids(gated, ALL_REDUCE, tolerateGates=["quarantine"]) == base
    for other in (
        {"maxBytes": "1G"},
        {"image": "registry.example.com/x:1"},
        {"env": [{"name": "A", "value": "b"}]},
        {"timeoutPerJob": "2h"},
        {"gpusPerNode": 4},
        {"transport": "IB"},
    ):
        assert ids(fleet(4), {**ALL_REDUCE, "options": other}) != base, other
    assert ids(fleet(3), ALL_REDUCE) != base
    twice = ids(fleet(4), {**ALL_REDUCE, "options": {"repeatCount": 2}})
    assert twice[0] == base[0] != twice[1]


def test_categories_that_differ_in_bounds_look_at_one_run():
    bounded = {**ALL_REDUCE, "options": {"thresholds": {"busBandwidthGBps": "value > 300"}}}
    found = make(fleet(4), ALL_REDUCE, bounded)
    [run] = found["runs"]
    assert run["categories"] == ["nccl-all-reduce", "nccl-all-reduce-2"]
    assert found["nodeHours"] == 4
    bounds = [category["resolved"]["h100"]["bounds"] for category in found["categories"]]
    assert [len(each) for each in bounds] == [0, 1]


def test_a_further_run_of_a_search():
    planner = plan.Planner(certification(ALL_REDUCE, DCGM), TESTS, fleet(8))
    [first] = [run for run in planner.plan()["runs"] if run["category"] == "nccl-all-reduce"]
    further = planner.run("nccl-all-reduce", ["gpu-007", "gpu-001"], repeat=2)
    assert further["nodes"] == names(1, 7)
    assert (further["purpose"], further["repeat"], further["expected"]["ranks"]) == ("isolate", 2, 16)
    assert further["command"][-4:] == ["-n", "5", "-N", "1"]  # short, since a search has many
    assert (further["limits"]["run"], first["limits"]["run"]) == (900, 3600)
    again = planner.run("nccl-all-reduce", first["nodes"], 1, "screen")
    assert again == first
    assert further["id"] == planner.run("nccl-all-reduce", names(1, 7), 2, "confirm")["id"] != first["id"]
    with pytest.raises(InvalidDocument, match="'gpu-009' is no node of this plan"):
        planner.run("nccl-all-reduce", names(9))
    with pytest.raises(InvalidDocument, match=r"no category 'nccl'.*nccl-all-reduce"):
        planner.run("nccl", names(1))


# ---------------------------------------------------------------- cost


@pytest.mark.parametrize(
    ("runs", "concurrent", "most", "minutes"),
    [
        ([], {}, None, 0),
        ([("a", 10, "1"), ("a", 10, "2"), ("a", 10, "3")], {}, None, 10),
        ([("a", 10, "1"), ("a", 10, "2"), ("a", 10, "3")], {"a": 2}, None, 20),
        ([("a", 10, "1"), ("a", 10, "2"), ("a", 10, "3")], {}, 1, 30),
        ([("a", 10, "12"), ("a", 10, "23"), ("a", 10, "31")], {}, None, 30),  # a node is in one run at a time
        # no waves: what is free goes on
        ([("a", 30, "1"), ("a", 10, "2"), ("a", 10, "3"), ("a", 10, "4")], {"a": 2}, None, 30),
        ([("a", 10, "1"), ("b", 10, "1"), ("b", 10, "2")], {"a": 1}, None, 20),
        ([("a", 10, "12"), ("a", 10, "3")], {}, 2, 20),
    ],
)
def test_the_longest_path(runs, concurrent, most, minutes):
    given_ = [
        {"category": category, "limits": {"run": length * 60}, "nodes": list(members)}
        for category, length, members in runs
    ]
    assert timetable.minutes(given_, concurrent, most) == minutes


def test_the_cost_of_a_plan():
    found = make(fleet(4), {**ALL_REDUCE, "options": {"nodesPerJob": 2, "maxConcurrent": 1}}, DCGM)
    assert (found["jobs"], found["nodeHours"]) == (6, 8)
    assert found["longestPathMinutes"] == 120  # the diagnostics fill the nodes that the other test leaves free


def test_more_tests_than_allowed_are_not_run_and_say_so():
    found = make(fleet(4), DCGM, {**ALL_REDUCE, "options": {"nodesPerJob": 2}}, limits={"maxTests": 5})
    assert found["jobs"] == 5
    assert [(row["node"], row["outcome"]) for row in found["blocked"]] == [
        ("gpu-002", "not_run"),
        ("gpu-003", "not_run"),
    ]
    [problem] = found["problems"]
    assert (problem["code"], problem["severity"]) == ("too-many-tests", "warning")
    assert "the plan has 6 runs, limits.maxTests allows 5" in problem["message"]


def test_a_plan_that_may_take_too_long_is_warned_of():
    [problem] = make(fleet(2), ALL_REDUCE, limits={"maxMinutes": 30})["problems"]
    assert "the runs may take 60 minutes, limits.maxMinutes allows 30" in problem["message"]


def test_a_plan_in_words():
    nodes = [*fleet(5), node(5, gpus=7, whole=8)]
    bounded = {**ALL_REDUCE, "options": {"nodesPerJob": 2, "thresholds": {"busBandwidthGBps": "value > 300"}}}
    assert planned_text.describe(make(nodes, bounded, DCGM)) == [
        "8 jobs on 6 nodes: at most 11 node-hours, 3 h from begin to end",
        "on top, where a test fails: the search for the bad node or link of nccl-all-reduce, dcgm-level2; "
        "limits.maxTests bounds it",
        "nccl-all-reduce (communication/nccl-all-reduce): 3 jobs of 2 nodes of 8 GPUs (h100); 1 h each at most",
        "  twice, to fill a group up: gpu-003",
        "  blocked: gpu-005: 7 of 8 GPUs",
        "dcgm-level2 (diagnostics/dcgm-level2): 5 jobs of one node of 8 GPUs (h100); 1 h each at most",
        "  blocked: gpu-005: 7 of 8 GPUs",
    ]


def test_what_a_search_may_add_is_said_with_the_limit_that_holds_it():
    lines = planned_text.describe(make(fleet(4), ALL_REDUCE, limits={"maxTests": 9}))
    assert lines[1].endswith("link of nccl-all-reduce; limits.maxTests 9 holds for all jobs together")
    unsearched = {**ALL_REDUCE, "options": {"isolate": False}}
    assert not any("search" in line for line in planned_text.describe(make(fleet(4), unsearched)))


def test_what_the_plan_cannot_do_is_noted():
    asked = {**ALL_REDUCE, "options": {"nodesPerJob": 64, "minGroupSize": 8}}
    notes = make(fleet(4), asked)["notes"]
    assert "nccl-all-reduce: nodesPerJob is 64, of one kind there are 4" in notes
    assert any("is not searched for: a search needs groups of 8 nodes at least" in note for note in notes)
    assert not make(fleet(4), {**DCGM, "options": {"nodesPerJob": 64, "minGroupSize": 8}})["notes"]


def test_a_search_of_groups_is_no_matter_of_tests_on_single_nodes():
    asked = {"testScale": "diagnose", "repeatCount": 3}
    found = make(fleet(4), {**ALL_REDUCE, "options": asked}, {**DCGM, "options": asked})
    assert [run["category"] for run in found["runs"]].count("dcgm-level2") == 12
    assert not any("dcgm" in note for note in found["notes"])
    assert sum("repeatCount has no meaning" in note for note in found["notes"]) == 1


def test_a_bound_on_a_size_that_is_not_measured_is_told_of():
    bound = {"metric": "busBandwidthGBps", "expression": "value >= 300", "size": "32G"}
    found = make([node(0), node(1)], {**ALL_REDUCE, "options": {"bounds": [bound]}})
    assert any("32G is beyond the largest size 16G" in note for note in found["notes"])
    found = make([node(0), node(1)], {**ALL_REDUCE, "options": {"bounds": [bound], "maxBytes": "32G"}})
    assert not any("beyond" in note for note in found["notes"])


def test_a_quantity_without_end_is_read():
    odd = node(0)
    odd["allocatable"]["example.com/things"] = "9" * 400
    assert make([odd, node(1)], DCGM)["jobs"] == 2


def test_more_repeats_than_can_be_planned_are_refused_at_once():
    with pytest.raises(InvalidDocument, match=r"dcgm-level2 would be 4000000 runs.*repeatCount is 1000000"):
        make(fleet(4), {**DCGM, "options": {"repeatCount": 1_000_000}})


# ---------------------------------------------------------------- faults of the request


@pytest.mark.parametrize(
    ("nodes", "target", "words"),
    [
        (fleet(4), {"nodeNames": ["gpu-0001"]}, "nodeNames fits 0 (gpu-0001: did you mean 'gpu-001'?)"),
        (fleet(4), {"nodeSelector": {"a": "b"}}, "of 4 nodes nodeSelector fits 0 (every part must fit a node)"),
        ([], {"nodeNames": ["gpu-001"]}, "error: the cluster has no nodes"),
        (fleet(4), {"nodeNames": ["gpu-001", "gpu-0002"]}, "gpu-0002: there is no such node (gpu-0002: did you mean"),
    ],
)
def test_nodes_that_are_not_there_are_said_with_the_likeliest_slip(nodes, target, words):
    found = plan.plan(certification(ALL_REDUCE, target=target), TESTS, nodes)
    assert any(words in line for line in planned_text.describe(found))
    assert not found["runs"]


def test_everything_that_is_wrong_with_the_categories_is_said_at_once():
    categories = [
        {"domain": "diagnostics", "variant": "gpu-burn"},
        {"domain": "communication", "variant": "nccl-allreduce"},
    ]
    with pytest.raises(InvalidDocument) as caught:
        make(fleet(2), *categories)
    assert "categories.gpu-burn.options.image" in str(caught.value)
    assert "no test 'communication/nccl-allreduce'" in str(caught.value)
    with pytest.raises(NotFound):
        make(fleet(2), categories[1])


def test_an_option_that_is_not_there():
    with pytest.raises(InvalidDocument, match=r"options\.rackLabels: there is no such option"):
        make(fleet(2), DCGM, options={"rackLabels": ["x"]})


# ---------------------------------------------------------------- for any fleet

NODE = st.builds(
    dict,
    gpus=st.sampled_from([8, 8, 8, 7, 4, 0]),
    product=st.sampled_from([H100, H100, L40S, GB200, ""]),
    rack=st.sampled_from(["a", "a", "b", "c", None]),
    ready=st.sampled_from(["True", "True", "True", "False"]),
    unschedulable=st.sampled_from([False, False, True]),
    gates=st.sampled_from([[], [], ["quarantine"]]),
    taints=st.sampled_from([[], [], [GATE], [ODD]]),
)
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "nodesPerJob": st.integers(1, 6),
        "testScale": st.sampled_from(["intra-node", "intra-rack", "diagnose", "full-scale"]),
        "repeatCount": st.integers(1, 3),
        "maxConcurrent": st.integers(0, 3),
        "minGroupSize": st.integers(1, 4),
        "gpusPerNode": st.sampled_from([4, 8]),
    },
)
LIMITS = st.fixed_dictionaries(
    {}, optional={"maxTests": st.integers(1, 20), "maxNodesOut": st.integers(1, 6), "maxMinutes": st.integers(1, 100)}
)


@settings(max_examples=150, deadline=None)
@given(
    nodes=st.lists(NODE, max_size=14),
    category=st.sampled_from([ALL_REDUCE, SENDRECV, DCGM, TRAIN, LARGE]),
    options=OPTIONS,
    limits=LIMITS,
    gates=st.sampled_from([[], ["quarantine"]]),
)
def test_no_node_is_forgotten_and_no_limit_passed(nodes, category, options, limits, gates):
    members = [node(number, **fields) for number, fields in enumerate(nodes)]
    found = make(members, {**category, "options": options}, limits=limits, tolerateGates=gates)
    assert found["nodes"] == [member["name"] for member in members]
    assert found["jobs"] <= limits.get("maxTests", 1000)
    by_name = {member["name"]: member for member in members}
    for run in found["runs"]:
        assert len(run["nodes"]) <= limits.get("maxNodesOut", 1000)
        kinds = {by_name[name]["labels"].get("nvidia.com/gpu.product") for name in run["nodes"]}
        assert len(kinds) == 1
        assert set(run["borrowed"]) < set(run["nodes"])
        for name in run["nodes"]:
            assert by_name[name]["allocatable"]["nvidia.com/gpu"] >= run["expected"]["gpusPerNode"]
            assert by_name[name]["ready"] == "True"
            assert set(by_name[name]["gates"]) <= set(gates)
    longest = max((run["limits"]["run"] for run in found["runs"]), default=0)
    total = sum(run["limits"]["run"] for run in found["runs"])
    assert longest <= found["longestPathMinutes"] * 60 <= total
    assert planned_text.describe(found)


def test_bounds_are_read_before_anything_runs():
    typo = {**ALL_REDUCE, "options": {"thresholds": {"busBandwithGBps": "value >= 300"}}}
    with pytest.raises(InvalidDocument, match="did you mean 'busBandwidthGBps'"):
        make(fleet(2), typo)
    broken = {**ALL_REDUCE, "options": {"thresholds": {"busBandwidthGBps": "value >="}}}
    with pytest.raises(InvalidDocument, match="line 1, column 9: ends too early"):
        make(fleet(2), broken)
    backwards = {**ALL_REDUCE, "options": {"thresholds": {"busBandwidthGBps": "value <= 300"}}}
    assert any("lets low values pass" in note for note in make(fleet(2), backwards)["notes"])
