"""gpu_health_info: real pynvml and ctypes over a library with NVML's C interface."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import fields
from pathlib import Path

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.records import quickcheck
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import FleetError
from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas import healthevent
from ansible_collections.goodput.fleet.plugins.module_utils.signals import gpu_tables, nvml
from ansible_collections.goodput.fleet.plugins.module_utils.signals.gpu_readings import Gpu
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.integration import modules
from tests.standin.nvml import library as standin
from tests.unit.signals.shipped import BOOT, CATALOG, RECEIVED, TABLES, entities

ROOT = Path(__file__).parents[3]
GOOD = quickcheck.compile_schema(healthevent.SCHEMA)
# what the module gets of the tables
PACKED = gpu_tables.unpack(json.loads(json.dumps(gpu_tables.pack(TABLES))))


@pytest.fixture(scope="session")
def library() -> str:
    return str(standin.built())


@pytest.fixture
def ask(library, tmp_path, monkeypatch):
    def asked(*facts: str, timeout: float = 20, **options) -> dict:
        monkeypatch.setenv("NVML_STANDIN", standin.facts(tmp_path, *facts))
        given = {"node": "gpu-7", "boot_id": BOOT, "received": RECEIVED, **options}
        result = nvml.parse(nvml.observe(library, timeout), PACKED, **given)
        assert all(GOOD(event) for event in result["events"])
        return result

    return asked


def specs(result: dict) -> list[dict]:
    return [event["spec"] for event in result["events"]]


def one(result: dict) -> dict:
    (spec,) = specs(result)
    return spec


def test_healthy_gpus(ask):
    result = ask(expected_gpus=8)
    assert (one(result)["state"], result["state"], result["not_seen"]) == ("healthy", "healthy", [])
    assert result["driver_version"] == "580.105.08"
    assert [gpu["index"] for gpu in result["gpus"]] == list(range(8))
    gpu = result["gpus"][3]
    assert (gpu["uuid"], gpu["pci"]) == ("GPU-00000003-5d6e-7f80-91a2-b3c4d5e6f708", "0000:13:00")
    assert (gpu["serial"], gpu["name"], gpu["state"]) == ("1650000000003", "NVIDIA H200", "healthy")
    assert (gpu["nvlinks_up"], gpu["fabric_state"]) == (list(range(18)), "completed")
    assert (gpu["temperature"], gpu["pcie_width"], gpu["recovery_action"]) == (41, 16, 0)


@pytest.mark.parametrize(
    "fact, code, fatal, action",
    [
        ("ecc_volatile 2", "ECC_VOLATILE_UNCORRECTED", True, "COMPONENT_RESET"),
        ("ecc_aggregate 2", "ECC_AGGREGATE_UNCORRECTED", False, "NONE"),
        ("sram_threshold 1", "SRAM_THRESHOLD_EXCEEDED", True, "CONTACT_SUPPORT"),
        ("retired_pending 1", "RETIRED_PAGES_PENDING", False, "NONE"),
        ("retired_dbe 63", "RETIRED_PAGES_LIMIT", True, "CONTACT_SUPPORT"),
        ("remap_pending 1", "ROW_REMAP_PENDING", False, "NONE"),
        ("repair_channel 1", "REPAIR_PENDING", False, "NONE"),
        ("remap_failure 1", "ROW_REMAP_FAILURE", True, "COMPONENT_RESET"),
        ("remapped 512", "ROW_REMAP_LIMIT", False, "CONTACT_SUPPORT"),
        ("recovery 1", "GPU_RECOVERY_ACTION", True, "COMPONENT_RESET"),
        ("recovery 2", "GPU_RECOVERY_ACTION", True, "RESTART_BM"),
        ("recovery 3", "GPU_RECOVERY_ACTION", False, "DRAIN_P2P"),
        ("recovery 4", "GPU_RECOVERY_ACTION", True, "DRAIN_RESET"),
        ("recovery 5", "GPU_RECOVERY_ACTION", False, "RECOVER_IMEX_DOMAIN"),
        ("recovery 6", "GPU_RECOVERY_ACTION", True, "BUS_RESET"),
        ("recovery 7", "GPU_RECOVERY_ACTION", True, "RESTART_BM"),
        ("recovery 8", "RECOVERY_ACTION_UNKNOWN", False, "CONTACT_SUPPORT"),
        ("clock_reasons 0x48", "HW_THERMAL_SLOWDOWN", False, "CONTACT_SUPPORT"),
        ("clock_reasons 0x88", "HW_POWER_BRAKE", False, "CONTACT_SUPPORT"),
        ("clock_reasons 0x8", "HW_SLOWDOWN", False, "CONTACT_SUPPORT"),
        ("clock_reasons 0x20", "SW_THERMAL_SLOWDOWN", False, "NONE"),
        ("temperature 88", "TEMPERATURE_SLOWDOWN", False, "CONTACT_SUPPORT"),
        ("margin -1", "TEMPERATURE_SLOWDOWN", False, "CONTACT_SUPPORT"),
        ("temperature 92", "TEMPERATURE_SHUTDOWN", True, "CONTACT_SUPPORT"),
        ("pcie_width 8", "PCIE_WIDTH_LOW", False, "CONTACT_SUPPORT"),
        ("pcie_generation 3", "PCIE_GENERATION_LOW", False, "CONTACT_SUPPORT"),
        ("link 4 0", "NVLINK_DOWN", True, "RESTART_VM"),
        ("fabric_status 23", "FABRIC_FAILED", True, "RESTART_VM"),
        ("fabric_state 2", "FABRIC_NOT_READY", False, "CONTACT_SUPPORT"),
        ("fabric_health 0x9a", "FABRIC_ROUTE_UNHEALTHY", True, "RESTART_VM"),
        ("fabric_health 0xa9", "FABRIC_BANDWIDTH_DEGRADED", False, "CONTACT_SUPPORT"),
        ("fabric_health 0x4aa", "FABRIC_MISCONFIGURED", False, "CONTACT_SUPPORT"),
        ("nvmlDeviceGetTemperature error 14", "INFOROM_CORRUPTED", False, "CONTACT_SUPPORT"),
    ],
)
def test_what_a_reading_means(ask, fact, code, fatal, action):
    result = ask(f"3 {fact}", expected_gpus=8)
    spec = one(result)
    assert (spec["errorCode"], spec["codeSpace"], spec["agent"]) == ([code], "nvml", "nvml")
    assert (spec["isFatal"], spec["recommendedAction"], spec["state"]) == (fatal, action, "sick")
    assert (entities(spec)["GPU"], entities(spec)["PCI"]) == ("3", "0000:13:00")
    past = code in ("ECC_AGGREGATE_UNCORRECTED", "SW_THERMAL_SLOWDOWN")
    assert result["state"] == result["gpus"][3]["state"] == ("healthy" if past else "sick")
    assert result["gpus"][2]["state"] == "healthy"


@pytest.mark.parametrize(
    "facts",
    [
        ["* recovery na", "* ecc_volatile na", "* sram_threshold na", "* retired_pending na", "* remapped na"],
        ["* clock_reasons na", "* pcie_width na", "* temperature_slowdown na", "* margin na", "* serial na"],
        ["* links na", "* fabric_state na", "* mig na"],
        # links that no GPU has up, outside of a fabric, are not built in
        ["* fabric_state 0", *[f"* link {link} 0" for link in range(6)]],
        ["* fabric_state 0", "* links 0"],
        # NVML calls links down in MIG mode; an idle GPU slows its PCIe down
        ["3 mig 1", "3 link 4 0"],
        ["3 clock_reasons 1", "3 pcie_generation 1"],
        ["3 pstate 8", "3 pcie_generation 1"],
        # what counters read that are not there
        ["3 ecc_volatile 18446744073709551615"],
    ],
)
def test_what_is_no_fault(ask, facts):
    result = ask(*facts, expected_gpus=8)
    assert (one(result)["state"], result["state"]) == ("healthy", "healthy")


def test_links_that_should_be_up(ask):
    facts = ["* fabric_state 0", *[f"* link {link} 0" for link in range(6)]]
    assert len(specs(ask(*facts, expected_nvlinks=18))) == 8
    spec = one(ask(*facts, "2 link 9 0"))
    links = [entity["entityValue"] for entity in spec["entitiesImpacted"] if entity["entityType"] == "NVLINK"]
    assert (entities(spec)["GPU"], spec["errorCode"]) == ("2", ["NVLINK_DOWN"])
    assert links == ["0", "1", "2", "3", "4", "5", "9"]


# GPUs that cannot be read


@pytest.mark.parametrize(
    "fact, code, state",
    [
        ("nvmlDeviceGetHandleByIndex_v2 error 15", "GPU_LOST", "sick"),
        ("nvmlDeviceGetHandleByIndex_v2 error 8", "INSUFFICIENT_POWER", "sick"),
        ("nvmlDeviceGetHandleByIndex_v2 error 999", "GPU_UNREADABLE", "unknown"),
        ("nvmlDeviceGetHandleByIndex_v2 error 4", "GPU_UNREADABLE", "unknown"),
        ("nvmlDeviceGetTemperature error 15", "GPU_LOST", "sick"),
        ("nvmlDeviceGetTotalEccErrors error 16", "RESET_REQUIRED", "sick"),
        ("nvmlDeviceGetTemperature error 999", "READING_FAILED", "unknown"),
    ],
)
def test_a_gpu_that_cannot_be_read_leaves_the_others_be(ask, fact, code, state):
    result = ask(f"5 {fact}", "6 remap_failure 1", expected_gpus=8)
    broken, other = specs(result)
    assert (broken["errorCode"], broken["state"], entities(broken)["GPU"]) == ([code], state, "5")
    assert other["errorCode"] == ["ROW_REMAP_FAILURE"]
    assert broken["isFatal"] == (state == "sick")
    assert result["gpus"][5]["state"] == state and len(result["gpus"]) == 8
    assert [gpu["index"] for gpu in result["not_seen"]] == ([5] if "Handle" in fact else [])


def test_a_function_that_the_gpus_do_not_have_says_nothing(ask):
    result = ask(
        "* nvmlDeviceGetFieldValues error 13", "* nvmlDeviceGetRemappedRows error 3", "* nvmlDeviceGetMigMode error 4"
    )
    assert result["state"] == "healthy"
    assert "recovery_action" not in result["gpus"][0] and "row_remap_failure" not in result["gpus"][0]


@pytest.mark.parametrize("way, words", [("hang", "did not return within 0.3 seconds"), ("crash", "ended the process")])
def test_a_call_that_does_not_come_back_costs_its_gpu_only(ask, way, words):
    start = time.monotonic()
    result = ask(f"2 nvmlDeviceGetRemappedRows {way}", f"6 nvmlDeviceGetName {way}", "7 remap_failure 1", timeout=0.3)
    assert time.monotonic() - start < 10
    assert [spec["errorCode"] for spec in specs(result)] == [
        ["GPU_UNREADABLE"],
        ["GPU_UNREADABLE"],
        ["ROW_REMAP_FAILURE"],
    ]
    assert [gpu["index"] for gpu in result["not_seen"]] == [2, 6]
    assert all(words in gpu["why"] for gpu in result["not_seen"])
    assert result["not_seen"][0]["why"].startswith("nvmlDeviceGetRemappedRows")
    assert [gpu["state"] for gpu in result["gpus"]] == [
        "healthy", "healthy", "unknown", "healthy", "healthy", "healthy", "unknown", "sick",
    ]  # fmt: skip


# drivers that do not answer


@pytest.mark.parametrize(
    "fact, words",
    [
        ("init 9", "Driver Not Loaded"),
        ("init 18", "Mismatch"),
        ("init 999", "Unknown Error"),
        ("nvmlInitWithFlags hang", "nvmlInit did not return within 0.3 seconds"),
        ("nvmlInitWithFlags crash", "nvmlInit ended the process"),
        ("nvmlDeviceGetCount_v2 error 999", "Unknown Error"),
    ],
)
def test_a_driver_that_does_not_answer_calls_no_gpu_sick(ask, fact, words):
    result = ask(fact, timeout=0.3, expected_gpus=8)
    spec = one(result)
    assert (spec["state"], spec["isFatal"], spec["errorCode"]) == ("unknown", False, ["NVML_UNREACHABLE"])
    assert words.lower() in spec["message"].lower()
    assert (result["state"], result["gpus"]) == ("unknown", [])


def test_a_driver_that_says_that_its_gpu_is_lost(ask):
    spec = one(ask("init 15"))
    assert (spec["errorCode"], spec["state"], spec["isFatal"]) == (["GPU_LOST"], "sick", True)


def test_a_library_that_is_not_there_or_none(tmp_path):
    wrong = tmp_path / "libnvidia-ml.so.1"
    wrong.write_text("no library")
    for path in (str(tmp_path / "none"), str(wrong)):
        result = nvml.parse(nvml.observe(path, 20), PACKED, node="n")
        assert (result["state"], one(result)["state"]) == ("unknown", "unknown")
        assert path in one(result)["message"]


def test_counts(ask):
    assert specs(ask("count 7", expected_gpus=8))[0]["errorCode"] == ["GPU_COUNT_LOW"]
    none = ask("count 0", expected_gpus=8)
    assert (one(none)["isFatal"], none["state"]) == (True, "sick")
    assert ask("count 0")["state"] == "unknown"
    assert ask("count 0", expected_gpus=0)["state"] == "healthy"
    assert ask("count 8", expected_gpus=4)["state"] == "healthy"  # told, as a warning


# whatever is read

NUMBERS = st.one_of(st.none(), st.integers(-(2**63), 2**64))
TEXTS = st.text(max_size=12)
FLAGS = st.one_of(st.none(), st.booleans())
LINKS = st.one_of(st.none(), st.lists(st.integers(0, 17), max_size=18, unique=True))
KINDS = {"int | None": NUMBERS, "str": TEXTS, "bool | None": FLAGS, "list[int] | None": LINKS}
FIELDS = {item.name: KINDS[item.type] for item in fields(Gpu) if item.type in KINDS}


@settings(deadline=None)  # machines under load
@given(st.lists(st.builds(Gpu, **FIELDS, failed=st.dictionaries(TEXTS, TEXTS, max_size=2)), max_size=4), NUMBERS)
def test_any_readings_give_events_that_are_valid(gpus, count):
    result = nvml.parse(nvml.Seen(gpus=gpus, count=count), PACKED, node="n", expected_gpus=8)
    assert result["events"] and all(GOOD(event) for event in result["events"])
    assert len(result["gpus"]) == len(gpus) and result["state"] in ("sick", "healthy", "unknown")
    assert all(not event["spec"]["isFatal"] for event in result["events"] if event["spec"]["state"] == "unknown")
    json.dumps(result)


# the module


def test_the_module(library, tmp_path, monkeypatch):
    monkeypatch.setenv("NVML_STANDIN", standin.facts(tmp_path, "3 recovery 2"))
    result = modules.run(
        "gpu_health_info",
        {"library": library, "node": "gpu-7", "expected_gpus": 8, "catalog": [str(CATALOG)]},
        check=True,
    )
    spec = one(result)
    assert (result["failed"], result["changed"], result["state"]) == (False, False, "sick")
    assert spec["bootId"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert (spec["nodeName"], spec["metadata"]["recoveryTo"], spec["recommendedAction"]) == (
        "gpu-7",
        "0x2",
        "RESTART_BM",
    )


@pytest.mark.parametrize(
    "options, words",
    [
        ({"timeout": 0}, "timeout is 0"),
        ({"expected_gpus": -1}, "expected_gpus is -1"),
        ({"received": "today"}, "received is 'today'"),
        ({"catalog": ["/nowhere"]}, "no signal tables"),
        ({"tables": {"nvml": {}}}, "tables cannot be used"),
    ],
)
def test_bad_options_of_the_module_are_one_clear_error(library, options, words):
    result = modules.run("gpu_health_info", {"library": library, "catalog": [str(CATALOG)], **options})
    assert result["failed"] and words in result["msg"]


def test_in_a_play_the_catalogue_comes_along(library, tmp_path):
    (tmp_path / "site" / "signals").mkdir(parents=True)
    (tmp_path / "site" / "signals" / "ours.yaml").write_text(
        "apiVersion: goodput.fleet/v1alpha1\nkind: SignalTable\nmetadata: {name: ours}\nspec:\n  codeSpace: nvml\n"
        "  entries:\n    - {code: ROW_REMAP_FAILURE, title: x, class: memory, action: REPLACE_VM, fatal: true}\n"
    )
    play = [{
        "hosts": "gpu-0042",
        "gather_facts": False,
        "connection": "local",
        "environment": {"NVML_STANDIN": standin.facts(tmp_path, "3 remap_failure 1")},
        "vars": {"ansible_python_interpreter": sys.executable},
        "tasks": [
            {"goodput.fleet.gpu_health_info": {"library": library, "catalog": ["shipped", str(tmp_path / "site")]},
             "register": "gpus"},
            {"ansible.builtin.copy": {"content": "{{ gpus | to_json }}", "dest": str(tmp_path / "result")}},
        ],
    }]  # fmt: skip
    (tmp_path / "play.yml").write_text(json.dumps(play))
    command = [sys.executable, "-m", "ansible", "playbook", "-i", "gpu-0042,", str(tmp_path / "play.yml")]
    paths = {"ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".build/collections"), "ANSIBLE_HOME": str(tmp_path)}
    run = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **paths}, timeout=120)
    assert run.returncode == 0, run.stdout + run.stderr
    result = json.loads((tmp_path / "result").read_text())
    spec = one(result)
    assert (spec["nodeName"], spec["recommendedAction"], result["state"]) == ("gpu-0042", "REPLACE_VM", "sick")
    assert spec["receivedTimestamp"].endswith("Z")


def test_tables_that_are_none_are_one_clear_error():
    for parcel in (None, [], {}, {"nvml": {}}, {"nvml": {"entries": [{"code": "x"}]}, "xid": 1, "dcgm": 1}):
        with pytest.raises(FleetError, match="tables cannot be used"):
            gpu_tables.unpack(parcel)


def test_the_compiler_for_machines_without_one(tmp_path, monkeypatch):
    monkeypatch.setattr(standin, "CACHE", tmp_path)
    monkeypatch.setattr(standin.shutil, "which", lambda name: None)
    monkeypatch.setattr(standin, "zig", lambda: (["cc"], dict(os.environ)))
    monkeypatch.delenv("CC", raising=False)
    assert standin.built().exists()
