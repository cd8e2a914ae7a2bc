"""The plugin around a list of nodes: options, cache, templates, and five thousand nodes."""

from __future__ import annotations

import time

import pytest
from ansible.errors import AnsibleError, AnsibleParserError
from ansible.inventory.data import InventoryData
from ansible.parsing.dataloader import DataLoader
from ansible_collections.goodput.fleet.plugins.inventory import gpu_nodes
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import Denied

from tests.unit.inventory.fleet import PLUGIN, a_plugin, nodes


@pytest.fixture
def parse(tmp_path, monkeypatch):
    """parse(text, nodes) -> InventoryData; `parse.lists` counts how often the API was asked."""

    def run(text: str, given, cache: bool = True, name: str = "x.gpu_nodes.yml") -> InventoryData:
        path = tmp_path / name
        path.write_text(f"plugin: {PLUGIN}\nhost: https://127.0.0.1:1\n{text}")
        plugin = a_plugin()

        def read(_client, selector):
            run.lists.append(selector)
            if isinstance(given, Exception):
                raise given
            return given

        monkeypatch.setattr(gpu_nodes, "read_nodes", read)
        monkeypatch.setattr(gpu_nodes, "connect", lambda params: run.params.append(params))
        inventory = InventoryData()
        assert plugin.verify_file(str(path))
        plugin.parse(inventory, DataLoader(), str(path), cache)
        inventory.reconcile_inventory()
        return inventory

    run.lists, run.params = [], []
    return run


@pytest.mark.parametrize(
    "name, ours",
    [
        ("gpu_nodes.yml", True),
        ("fleet.gpu_nodes.yaml", True),
        ("fleet.goodput.yml", True),
        ("fleet.goodput.yaml", True),
        ("fleet.yml", False),
        ("gpu_nodes.ini", False),
    ],
)
def test_the_names_of_its_files(name, ours, tmp_path):
    (tmp_path / name).write_text("")
    assert a_plugin().verify_file(str(tmp_path / name)) == ours


def test_nodes_without_gpus_are_left_out_unless_a_selector_names_them(parse):
    given = {**nodes(1), "cpu": {"metadata": {"name": "cpu"}}}
    assert set(parse("", given).hosts) == {"gpu-0000"}
    assert set(parse("selector: pool=any\n", given).hosts) == {"gpu-0000", "cpu"}
    assert parse.lists == [None, "pool=any"]


def test_what_looks_like_a_template_is_none(parse):
    given = nodes(1)
    given["gpu-0000"]["status"]["conditions"].append({"type": "{{ 7 * 7 }}", "status": "{{ 7 * 7 }}"})
    text = "compose: {x: gpu_node.conditions.values() | list | last}\n"
    found = parse(text, given).hosts["gpu-0000"].vars
    assert str(found["x"]) == "{{ 7 * 7 }}"


def test_the_environment_names_the_cluster_where_the_file_does_not(parse, monkeypatch):
    monkeypatch.setenv("K8S_AUTH_API_KEY", "t-1")
    monkeypatch.setenv("K8S_AUTH_VERIFY_SSL", "no")
    parse("", {})
    assert (parse.params[0]["api_key"], parse.params[0]["validate_certs"]) == ("t-1", False)
    monkeypatch.setenv("K8S_AUTH_VERIFY_SSL", "perhaps")
    with pytest.raises(AnsibleParserError, match="validate_certs"):
        parse("", {})


@pytest.mark.parametrize(
    "text, given, words",
    [
        ("selektor: a=b\n", {}, "unknown option 'selektor' (did you mean 'selector'?"),
        ("selector: a=b=c\n", {}, "selector: "),
        ("rack_labels: {a: b}\n", {}, "rack_labels"),
        ("strict: true\ncompose: {x: gpu_node.nothing.here}\n", nodes(1), "nothing"),
        ("", Denied("forbidden: cannot list nodes"), "forbidden: cannot list nodes"),
    ],
)
def test_what_is_wrong_is_one_clear_error(parse, text, given, words):
    with pytest.raises(AnsibleError) as caught:
        parse(text, given)
    assert words in str(caught.value)


def test_five_thousand_nodes_take_a_moment(parse):
    given = nodes(5000)
    start = time.process_time()
    found = parse("", given)
    spent = time.process_time() - start
    assert len(found.groups["gpu_nodes"].hosts) == 5000
    assert len(found.groups["rack_rack_0"].hosts) == 16
    assert spent < 6, spent  # twice what it may take on a quiet machine
