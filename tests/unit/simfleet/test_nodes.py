"""Node objects from profiles."""

from __future__ import annotations

import pytest

from tests.simfleet import nodes


def make(profile: str, count: int | None = None) -> list[dict]:
    return list(nodes.node_objects(nodes.load_profile(profile), count, kubelet_port=10250))


def labels_of(items: list[dict], label: str) -> list[str | None]:
    return [item["metadata"]["labels"].get(label) for item in items]


def test_every_profile_makes_its_own_number_of_nodes_with_names_and_ids_of_their_own():
    for path in nodes.PROFILES.glob("*.yaml"):
        if path.stem == "accelerators":
            continue
        profile = nodes.load_profile(path.stem)
        items = make(path.stem)
        assert len(items) == profile["nodes"]
        for values in (
            [item["metadata"]["name"] for item in items],
            [item["status"]["nodeInfo"]["bootID"] for item in items],
            [item["status"]["nodeInfo"]["machineID"] for item in items],
            [item["spec"]["providerID"] for item in items],
        ):
            assert len(set(values)) == len(items)


def test_the_same_profile_makes_the_same_nodes():
    first, second = make("mixed")[3], make("mixed")[3]
    assert first["metadata"] == second["metadata"]
    assert first["status"]["nodeInfo"] == second["status"]["nodeInfo"]


def test_a_mixed_fleet_has_every_accelerator_and_nodes_without():
    items = make("mixed", 80)
    products = labels_of(items, "nvidia.com/gpu.product")
    assert len(set(products)) == 8 and products.count(None) == 10
    without = [item for item in items if "nvidia.com/gpu" not in item["status"]["capacity"]]
    assert len(without) == 10 and set(labels_of(without, "nvidia.com/cuda.driver-version.full")) == {None}


def test_racks_fill_up_and_zones_go_round():
    items = make("eks", 64)
    assert labels_of(items, "topology.kubernetes.io/zone")[::16] == ["us-east-1a", "us-east-1b"] * 2
    assert len(set(labels_of(items, "goodput.fleet/rack"))) == 4
    assert items[0]["spec"]["providerID"].startswith("aws:///us-east-1a/i-")
    assert set(labels_of(items, "topology.kubernetes.io/region")) == {"us-east-1"}


def test_a_rack_of_an_nvl72_is_one_nvlink_domain_and_others_have_none():
    items = make("nvl72", 36)
    cliques = labels_of(items, "nvidia.com/gpu.clique")
    assert len(set(cliques[:18])) == len(set(cliques[18:])) == 1 and cliques[0] != cliques[18]
    assert {item["status"]["nodeInfo"]["architecture"] for item in items} == {"arm64"}
    assert labels_of(make("demo"), "nvidia.com/gpu.clique") == [None] * 8


@pytest.mark.parametrize(
    ("driver", "parts"),
    [("580.105.08", ("580", "105", "08")), ("550.54", ("550", "54", ""))],
)
def test_the_driver_is_told_under_new_and_old_names(driver, parts):
    labels = nodes.driver_labels(driver)
    assert labels["nvidia.com/cuda.driver-version.full"] == driver
    assert tuple(labels[f"nvidia.com/cuda.driver.{part}"] for part in ("major", "minor", "rev")) == parts
    new = tuple(labels[f"nvidia.com/cuda.driver-version.{part}"] for part in ("major", "minor", "revision"))
    assert new == parts


@pytest.mark.parametrize(
    ("total", "shares", "numbers"),
    [(8, [1], [8]), (10, [1, 1, 1], [4, 3, 3]), (9, [2, 1], [6, 3]), (1, [1, 1], [1, 0]), (0, [3, 1], [0, 0])],
)
def test_nodes_are_shared_out(total, shares, numbers):
    assert nodes.shared_out(total, shares) == numbers


def test_what_is_not_known_is_named():
    with pytest.raises(nodes.BadProfile, match="no profile 'h1000'; known: demo, eks, mixed, nvl72"):
        nodes.load_profile("h1000")
    with pytest.raises(nodes.BadProfile, match="accelerator 'h101'; known: h100"):
        list(nodes.node_objects({"groups": [{"accelerator": "h101"}]}, 1, 1))
