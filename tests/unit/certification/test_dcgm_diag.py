# ruff: noqa: E501  (outputs as the tools print them)
"""DCGM diagnostics as JSON: what a node's owner must be told, and what not."""

from __future__ import annotations

import json

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers import dcgm_diag
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument

from tests.unit.certification.dcgm_outputs import entity, new_json, old_json, warning


def codes(result: dict) -> list[str]:
    return [finding["code"] for finding in result["findings"]]


def only(result: dict) -> dict:
    assert len(result["findings"]) == 1, result["findings"]
    return result["findings"][0]


def everyone(status: str = "Pass", *warnings: dict) -> list[dict]:
    return [entity(gpu, status, *warnings) for gpu in range(8)]


def test_all_passed_states_nothing():
    result = dcgm_diag.parse(
        new_json({"software": ("Pass", everyone()), "memory": ("Pass", everyone())}), expected_gpus=8
    )
    assert result["findings"] == [] and result["complete"] and result["toolVersion"] == "4.4.1"
    run = result["runs"][0]
    assert (run["generation"], run["gpus"], run["driver"]) == (4, list(range(8)), "570.86.15")
    assert [(test["name"], test["status"]) for test in run["tests"]] == [("software", "pass"), ("memory", "pass")]
    assert run["devices"][7] == {"entity": "GPU 7", "deviceId": "2330", "serial": "165307"}


@pytest.mark.parametrize(
    ("text", "generation", "names"),
    [
        (old_json({"Blacklist": [{"status": "Pass"}], "GPU Memory": [{"gpu_id": "0", "status": "Pass"}]}, None), 2, ["denylist", "memory"]),
        (old_json({"Denylist": [{"gpu_ids": "0,1", "status": "PASS"}], "Pulse Test": [{"gpu_ids": 0, "status": "PASS"}]}), 3, ["denylist", "pulse_test"]),
        (new_json({"software": ("Pass", [entity(0)]), "a_test_to_come": ("Pass", [entity(0)])}), 4, ["software", "a_test_to_come"]),
    ],
)  # fmt: skip
def test_every_generation_gives_the_same_names(text, generation, names):
    run = dcgm_diag.parse(text)["runs"][0]
    assert run["generation"] == generation
    assert [test["name"] for test in run["tests"]] == names
    assert {test["status"] for test in run["tests"]} == {"pass"}


@pytest.mark.parametrize("word", ["Skip", "SKIP", "Not Run", "Warn", "Fail", "FAIL", "Passed maybe", "", "OK"])
def test_only_pass_is_a_pass(word):
    result = dcgm_diag.parse(new_json({"memory": (word, [entity(0, word)])}))
    assert result["runs"][0]["tests"][0]["status"] != "pass"
    assert result["findings"]


def test_a_skipped_test_is_one_finding_and_an_error_where_it_was_required():
    text = old_json({"diagnostic": [{"gpu_ids": str(gpu), "status": "SKIP", "warnings": [
        warning(f"GPU {gpu}: Unable to find hardware diagnostic, skipping this test.", 48, 3, 1)
    ]} for gpu in range(4)]})  # fmt: skip
    finding = only(dcgm_diag.parse(text))
    assert (finding["code"], finding["severity"], finding["category"]) == ("test-skipped", "warning", "configuration")
    assert finding["entity"] == "GPU 0, GPU 1, GPU 2, GPU 3"
    assert only(dcgm_diag.parse(text, expected_tests=["Diagnostic"]))["severity"] == "error"
    assert dcgm_diag.parse(text)["runs"][0]["gpus"] == []


@pytest.mark.parametrize(
    ("identity", "category", "severity", "kind"),
    [
        (29, 8, 5, "configuration"),  # persistence mode is off on a healthy part
        (55, 11, 2, "configuration"),  # ECC is switched off
        (44, 16, 4, "tool"),  # internal error
        (50, 1, 4, "hardware"),  # stress level too low
        (81, 5, 2, "hardware"),  # uncontained error
        (80, 10, 6, "hardware"),  # row remapping failed
        (95, 7, 2, "hardware"),  # the field diagnostic failed the part
        (91, 7, 4, "tool"),  # the field diagnostic did not start
        (None, None, None, "unknown"),
    ],
)
def test_category_and_severity_decide_whose_fault_it_is(identity, category, severity, kind):
    bad = {"warning": "Something is not as it should be", "error_id": identity, "error_category": category}
    bad["error_severity"] = severity
    result = dcgm_diag.parse(new_json({"targeted_power": ("Fail", [entity(0), entity(1, "Fail", bad)])}))
    finding = only(result)
    assert (finding["code"], finding["scope"], finding["entity"]) == ("test-failed", "gpu", "GPU 1")
    assert finding["category"] == kind


def test_a_test_that_fails_while_its_gpus_pass_is_the_tools_fault():
    finding = only(dcgm_diag.parse(new_json({"pcie": ("Fail", everyone())})))
    assert (finding["code"], finding["scope"], finding["category"]) == ("test-error", "run", "tool")
    assert finding["entity"] is None


def test_a_warning_counts_although_the_gpu_passed():
    lost = warning("GPU 3 Cannot allocate memory on the host", 73, 8, 4)
    finding = only(dcgm_diag.parse(new_json({"memory": ("Pass", [entity(2), entity(3, "Pass", lost)])})))
    assert (finding["code"], finding["severity"], finding["entity"]) == ("warning-on-pass", "error", "GPU 3")
    slow = warning("GPU 3 took longer than usual", 1, 7, 1)
    finding = only(dcgm_diag.parse(new_json({"memory": ("Pass", [entity(2), entity(3, "Pass", slow)])})))
    assert (finding["code"], finding["severity"]) == ("warning-on-pass", "warning")
    isolate = warning("GPU 3 has row remapping failures", 80, 10, 2)
    result = dcgm_diag.parse(new_json({"memory": ("Pass", [entity(3, "Pass", isolate)])}))
    assert only(result)["severity"] == "error"


@pytest.mark.parametrize(
    "bad",
    [
        warning("GPU {} Error using CUDA API cuInit: 'system not yet initialized'", 51, 6, 1),
        warning("The fabric manager is not initialized", 108, 6, 1),
        warning("Fabric Manager did not finish training", 112, 6, 5),
    ],
)
def test_a_missing_fabric_manager_is_one_fault_of_a_service(bad):
    results = [entity(gpu, "Fail", {**bad, "warning": bad["warning"].format(gpu)}) for gpu in range(8)]
    also = [entity(gpu, "Fail", warning("Cannot create a CUDA context", 66, 6, 4)) for gpu in range(8)]
    text = new_json({"memory": ("Fail", results), "diagnostic": ("Fail", also), "pcie": ("Skip", everyone("Skip"))})
    result = dcgm_diag.parse(text)
    errors = [finding for finding in result["findings"] if finding["severity"] == "error"]
    assert [(error["code"], error["scope"], error["entity"]) for error in errors] == [
        ("fabric-manager-down", "service", "nvidia-fabricmanager")
    ]
    assert errors[0]["category"] == "infrastructure" and "nvidia-fabricmanager" in errors[0]["message"]
    # a fault of its own on one GPU is still told
    results[5] = entity(5, "Fail", warning("GPU 5 Faulty memory detected", 52, 10, 2))
    assert ("test-failed", "GPU 5") in [
        (finding["code"], finding["entity"]) for finding in dcgm_diag.parse(new_json({"memory": ("Fail", results)}))["findings"]
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("expected", "found", "code", "entity_"),
    [
        (8, range(8), None, None),
        (8, range(7), "gpu-missing", "GPU 7"),
        (8, [0, 1, 2, 4, 5, 6, 7], "gpu-missing", "GPU 3"),
        ([4, 5], [4, 5], None, None),
        ([4, 5], [4], "gpu-missing", "GPU 5"),
        ([4, 5], [4, 5, 6], "gpu-unexpected", None),
        (None, [], None, None),
        (8, [], "gpu-count-unknown", None),
    ],
)
def test_which_gpus_ran(expected, found, code, entity_):
    results = [entity(gpu) for gpu in found] or [{"status": "Pass"}]
    result = dcgm_diag.parse(new_json({"memory": ("Pass", results)}, gpus=0), expected_gpus=expected)
    assert codes(result) == ([code] if code else [])
    if code:
        assert only(result)["entity"] == entity_


def test_a_gpu_without_a_result_in_one_test():
    result = dcgm_diag.parse(new_json({"memory": ("Pass", everyone()), "pcie": ("Pass", everyone()[:7])}))
    finding = only(result)
    assert (finding["code"], finding["entity"]) == ("gpu-not-tested", "GPU 7") and "pcie" in finding["message"]
    result = dcgm_diag.parse(new_json({"memory": ("Pass", everyone()), "pcie": ("Pass", everyone()[:5])}))
    assert only(result)["entity"] == "GPU 5, GPU 6, GPU 7"


def test_expected_tests_by_any_name():
    text = new_json({"memory": ("Pass", everyone())})
    result = dcgm_diag.parse(text, expected_tests=["GPU Memory", "Memory Bandwidth"])
    assert codes(result) == ["test-missing"] and "memory_bandwidth" in result["findings"][0]["message"]


@pytest.mark.parametrize(
    ("status", "severity", "category"),
    [(0, None, None), (205, "error", "hardware"), (226, "error", "tool"), (216, "error", "tool"),
     (217, "error", "infrastructure"), (198, "error", "configuration"), (137, "error", "infrastructure"),
     (127, "error", "tool"), (-51, "error", "hardware"), (None, None, None)],
)  # fmt: skip
def test_exit_status_explains_and_never_passes(status, severity, category):
    passed = dcgm_diag.parse(new_json({"memory": ("Pass", everyone())}), exit_code=status)
    found = [(finding["code"], finding["severity"], finding["category"]) for finding in passed["findings"]]
    assert found == ([("exit-status", severity, category)] if severity else [])
    failed = dcgm_diag.parse(new_json({"memory": ("Fail", [entity(0, "Fail")])}), exit_code=0)
    assert codes(failed) == ["test-failed"]


@pytest.mark.parametrize(
    ("text", "category", "word"),
    [
        ("Error: Unable to complete diagnostic for group 2147483647. Return: (-21): Host engine connection invalid", "infrastructure", "-21"),
        ("Error: Unable to complete diagnostic for entities 0,1. Return: (-30) : DCGM GPU Diagnostic returned an error", "tool", "-30"),
        ("Error: Cannot load plugins. Unable to change to the plugin dir '/usr/libexec/x': 'No such file or directory'", "tool", "plugins"),
        ('{"DCGM Diagnostic": {"runtime_error": "Unable to complete diagnostic. Return: (-39): already running"}}', "infrastructure", "-39"),
        ("bash: dcgmi: command not found", "tool", "command not found"),
        ("Error: system not yet initialized", "infrastructure", "nvidia-fabricmanager"),
    ],
)  # fmt: skip
def test_a_diagnostic_that_did_not_run(text, category, word):
    result = dcgm_diag.parse(text, exit_code=226)
    assert not result["complete"]
    errors = [finding for finding in result["findings"] if finding["severity"] == "error"]
    assert len(errors) == 1 and errors[0]["category"] == category and word in errors[0]["message"]


def test_noise_before_between_and_after():
    first = new_json({"memory": ("Pass", everyone())})
    second = old_json({"PCIe": [{"gpu_ids": "0,1", "status": "FAIL", "warnings": ["PCIe replay rate on GPU 1"]}]})
    text = f"\tWARNING: {{ this }} should }} not happen {{\nnuma() failed\n{first}\nthen: }}\n{second}\nbye {{{{\n"
    result = dcgm_diag.parse(text)
    assert [run["generation"] for run in result["runs"]] == [4, 3] and result["complete"]
    assert [finding["entity"] for finding in result["findings"]] == ["GPU 0", "GPU 1"]
    assert result["unparsedTotal"] == len(result["unparsed"]) == 4


def test_a_line_that_names_the_test_is_given():
    text = "noise\n" + new_json({"memory": ("Pass", everyone()), "pcie": ("Fail", [entity(0, "Fail")])})
    line = dcgm_diag.parse(text)["findings"][0]["line"]
    assert '"pcie"' in text.split("\n")[line - 1]


def test_a_document_that_breaks_off_keeps_what_it_has():
    text = new_json(
        {"memory": ("Fail", [entity(4, "Fail", warning("Faulty memory", 52, 10, 2))]), "pcie": ("Pass", everyone())}
    )
    cut = text[: text.index('"pcie"') + 200]
    result = dcgm_diag.parse(cut, expected_gpus=8)
    assert not result["complete"] and result["runs"][0]["tests"][0]["name"] == "memory"
    assert {"test-failed", "output-truncated"} <= set(codes(result))
    assert "gpu-missing" not in codes(result)


def test_one_bad_gpu_of_several_in_one_result():
    text = old_json({"GPU Memory": [{"gpu_ids": "0,1,2", "status": "FAIL", "warnings": [
        warning("Faulty memory detected on GPU 1", 52, 10, 2)
    ]}]})  # fmt: skip
    results = dcgm_diag.parse(text)["runs"][0]["tests"][0]["results"]
    assert [len(result["warnings"]) for result in results] == [0, 1, 0]


def test_other_entities_than_gpus():
    bad = warning("Detected fatal errors on NvSwitch 2", 15, 12, 2)
    finding = only(
        dcgm_diag.parse(new_json({"nvlink": ("Fail", [entity(0), entity(2, "Fail", bad, group="NvSwitch")])}))
    )
    assert (finding["scope"], finding["entity"], finding["category"]) == ("node", "NvSwitch 2", "hardware")


def test_measurements_and_blanks():
    info = [
        "GPU 0 GPU to Host bandwidth:\t\t52.10 GB/s",
        "GPU 0 temperature average:\t9223372036854775792 C",
        "GPU 0 power average: 140737488355328.0 W",
        "GPU 0 calculated at approximately 19123.4 gigaflops during this test",
        "GPU 0 relative stress level:\t577",
    ]
    run = dcgm_diag.parse(new_json({"pcie": ("Pass", [entity(0, info=info), entity(1, info=["GPU 1 GPU to Host bandwidth: 50.0 GB/s"])])}))["runs"][0]  # fmt: skip
    assert run["metrics"]["pcie.gpu_to_host_bandwidth.min"] == {"value": 50.0, "unit": "GB/s"}
    assert run["metrics"]["pcie.gflops.max"]["value"] == 19123.4
    assert run["metrics"]["pcie.relative_stress_level.min"]["value"] == 577
    assert not [name for name in run["metrics"] if "temperature" in name or "power" in name]


MULTI = {
    "DCGM Diagnostic": "DCGM Multi-Node Diagnostic",
    "metadata": {"num_hosts": 2, "num_entities": 4},
    "hosts": [
        {"host_id": index, "hostname": name, "dcgm_version": "4.6.0", "driver_version": "580.1", "num_entities": 2,
         "entities": [{"entity_group": "GPU", "entity_group_id": 1, "entity_id": gpu} for gpu in range(2)]}
        for index, name in enumerate(("node-a", "node-b"))
    ],
    "test_categories": [{"category": "Multi-Node Tests", "tests": [
        {"name": "mnubergemm", "status": "Fail", "test_summary": {"status": "Fail"}, "results": [
            {"host_id": host, "entity_group": "GPU", "entity_group_id": 1, "entity_id": gpu,
             "status": "Fail" if (host, gpu) == (1, 0) else "Pass",
             **({"warnings": [warning("GFLOPs below the threshold", 110, 2, 4)]} if (host, gpu) == (1, 0) else {})}
            for host in range(2) for gpu in range(2)]}]}],
}  # fmt: skip


def test_several_nodes():
    result = dcgm_diag.parse(json.dumps(MULTI), expected_gpus=2)
    run = result["runs"][0]
    assert (run["test"], run["hosts"]) == ("dcgm-mndiag", ["node-a", "node-b"])
    finding = only(result)
    assert (finding["host"], finding["entity"], finding["category"]) == ("node-b", "GPU 0", "hardware")
    short = dcgm_diag.parse(json.dumps(MULTI), expected_gpus=4)["findings"]
    assert [finding["host"] for finding in short if finding["code"] == "gpu-missing"] == ["node-a", "node-b"]


def test_several_nodes_whose_launcher_failed():
    broken = {**MULTI, "test_categories": [{"category": "Multi-Node Tests", "tests": [
        {"name": "mnubergemm", "status": "Fail", "test_summary": {"status": "Fail"}, "results": [],
         "mpi_error": {"warning": "Error: mpirun could not reach node-b", "error_category": "MPI"}}]}]}  # fmt: skip
    result = dcgm_diag.parse(json.dumps(broken))
    assert [(finding["scope"], "mpirun" in finding["message"]) for finding in result["findings"]] == [("node", True)]


def test_two_nodes_in_one_output_by_label():
    good = new_json({"memory": ("Pass", everyone())})
    bad = new_json({"memory": ("Fail", [entity(6, "Fail")])})
    mixed = []
    for left, right in zip(good.split("\n") + [""] * 400, bad.split("\n"), strict=False):
        mixed += [f"node-a: {left}", f"node-b: {right}"]
    mixed += [f"node-a: {line}" for line in good.split("\n")[len(bad.split("\n")) :]]
    result = dcgm_diag.parse("\n".join(mixed))
    assert result["complete"] and [run["hosts"] for run in result["runs"]] == [["node-a"], ["node-b"]]
    assert (only(result)["host"], only(result)["entity"]) == ("node-b", "GPU 6")


def test_counters_of_links():
    text = json.dumps({
        "body": {"Link 0": {"children": {"CRC Data Error": {"value": "12"}, "Replay Error": {"value": "0"}}},
                 "Link 1": {"children": {"CRC Data Error": {"value": "N/A"}}}, "Link 2": None},
        "header": ["NVLINK Error Counts", "GPU 3"],
    })  # fmt: skip
    result = dcgm_diag.parse(text)
    finding = only(result)
    assert (finding["code"], finding["entity"]) == ("nvlink-errors", "GPU 3") and "Link 0" in finding["message"]
    assert result["runs"][0]["metrics"]["nvlink.errors"]["value"] == 12


@pytest.mark.parametrize(
    "text", ["", "hello\nworld", "{}", "[]", "{" * 50, '{"DCGM Diagnostic": null}', '{"DCGM Diagnostic": 3}']
)
def test_no_result_is_said(text):
    result = dcgm_diag.parse(text)
    assert codes(result) == ["no-result"] and not result["complete"]


@pytest.mark.parametrize(
    ("expectations", "word"),
    [
        ({"expected_gpus": "many"}, "expected_gpus"),
        ({"expected_gpus": 0}, "expected_gpus"),
        ({"expected_gpus": True}, "expected_gpus"),
        ({"expected_gpus": [1, "x"]}, "expected_gpus"),
        ({"expected_tests": "memory"}, "expected_tests"),
        ({"exit_code": "bad"}, "exit_code"),
    ],
)
def test_expectations_that_cannot_be(expectations, word):
    with pytest.raises(InvalidDocument, match=word):
        dcgm_diag.parse("", **expectations)


@pytest.mark.parametrize("value", [None, 3, {"a": 1}, [1, 2], ["a", None]])
def test_what_is_no_output(value):
    with pytest.raises(InvalidDocument, match="text"):
        dcgm_diag.parse(value)
