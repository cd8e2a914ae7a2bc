# ruff: noqa: E501  (outputs as the tools print them)
"""What holds for every output of the node's tests and of training, also for those nobody has seen yet."""

from __future__ import annotations

import json
import time

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers import (
    dcgm_diag,
    gpu_burn,
    nvbandwidth,
    training,
)
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.unit.certification import test_gpu_burn as burns
from tests.unit.certification import test_nvbandwidth as copies
from tests.unit.certification.dcgm_outputs import entity, new_json, old_json, row, section, table, warning
from tests.unit.certification.training_logs import megatron, nanotron, nemo, stamp

BAD = warning("Faulty memory detected on GPU 3", 52, 10, 2)
OUTPUTS = {
    "dcgm": [
        new_json({"memory": ("Fail", [entity(2), entity(3, "Fail", BAD)]), "pcie": ("Pass", [entity(2), entity(3)])}),
        old_json({"GPU Memory": [{"gpu_ids": "0,1", "status": "FAIL", "warnings": [BAD]}]}),
        table(section("Hardware"), row("GPU Memory", "Pass - GPUs: 1, 2"), row("", "Fail - GPU: 3"), row("Warning", "x" * 99)),
        table(section("Hardware"), row("memory", "Fail"), row("", "GPU3: Fail"), row("Warning: GPU3", "y" * 99), version="4.4.1"),
        "Error: Unable to complete diagnostic for entities 0. Return: (-30) : DCGM GPU Diagnostic returned an error\n",
    ],
    "nvbandwidth": [
        copies.head() + copies.matrix(copies.PEER, copies.peers((1, 2), value="0.00")) + "Waived:\n" + copies.END,
        copies.document(copies.case(cells=[["55.1", "N/A"], ["12.5", "54.9"]], sum=122.5), copies.case("x", "Waived")),
    ],
    "burn": [burns.burn(4, ["0", "-5  (WARNING!)", "3  (WARNING!)", "0"], ["OK", "FAULTY", "FAULTY", "OK"])],
    "training": [
        "".join(f"[{stamp(step * 400)}] {megatron(step, 9)}\n" for step in range(1, 10)),
        "".join(f"0: {nemo(step, 9, loss='nan')}\n1: {nemo(step, 9)}\n" for step in range(10)),
        "".join(f"03/06/2026 09:00:0{step} {nanotron(step, 9)}\n" for step in range(1, 10)),
        "x/0 Step Time : 9.09s GPU utilization: 663.5MODEL_TFLOP/s/GPU\niteration 3/ 9 | consumed samples: 3 | \nlm loss: 2.0 |\n",
    ],
}  # fmt: skip
PARSERS = {
    "dcgm": dcgm_diag.parse,
    "nvbandwidth": nvbandwidth.parse,
    "burn": gpu_burn.parse,
    "training": training.parse,
}
CASES = [(name, index) for name, outputs in OUTPUTS.items() for index in range(len(outputs))]
LINES = [line.encode() for outputs in OUTPUTS.values() for output in outputs for line in output.split("\n")]
PARTS = [
    b"\xff\x00",
    b"\r",
    b"\x1b[31m",
    b"9" * 5000,
    b"{",
    b"[" * 3000,
    b'"',
    b"|",
    b"N/A",
    b"-nan",
    b"1e999",
    b" : ",
    b"\\u",
]
PARTS += [
    b"iteration 1/2 | lm loss: 1e999 |",
    b"iteration 99999999999999999999/2 |",
    b"2026-99-99 99:99:99 ",
    b"inf",
    b"- -1",
]


def check(result: dict) -> None:
    """The shape of every result, and that it can be stored."""
    json.dumps(result, allow_nan=False).encode()
    for finding in result["findings"]:
        assert finding["severity"] in ("error", "warning", "info")
        assert finding["scope"] in ("node", "gpu", "pair", "service", "run")
        assert finding["category"] in ("hardware", "configuration", "tool", "infrastructure", "unknown")
        assert finding["message"] and len(finding["message"]) <= 2000 and len(finding["text"]) <= 1000
        assert finding["line"] is None or 1 <= finding["line"] <= result["lines"]
    assert result["findingsTotal"] >= len(result["findings"]) and result["unparsedTotal"] >= len(result["unparsed"])
    assert len(result["unparsed"]) <= 200
    for run in result["runs"]:
        assert {"test", "metrics", "ranks", "hosts", "transports"} <= set(run)
        assert all(isinstance(metric["value"], (int, float)) and "unit" in metric for metric in run["metrics"].values())
    if result["complete"]:
        assert result["runs"]
    if not result["runs"]:
        assert not result["complete"] and any(finding["severity"] == "error" for finding in result["findings"])


@pytest.mark.parametrize(("name", "index"), CASES)
def test_the_outputs_themselves_are_complete(name, index):
    result = PARSERS[name](OUTPUTS[name][index])
    check(result)
    assert result["complete"] == (not OUTPUTS[name][index].startswith(("Error", "x/0")))


@pytest.mark.parametrize(("name", "index"), CASES)
def test_cut_anywhere(name, index):
    text = OUTPUTS[name][index]
    whole = PARSERS[name](text)
    for cut in range(0, len(text), max(1, len(text) // 150)):
        result = PARSERS[name](text[:cut])
        check(result)
        # a cut output is complete only where nothing but the end of its last lines is missing
        if result["complete"] and whole["complete"] and cut < len(text) * 0.7:
            raise AssertionError(f"complete after {cut} of {len(text)} characters: {text[cut - 80 : cut]!r}")


@given(st.binary(max_size=400))
def test_any_bytes(data):
    for parse in PARSERS.values():
        check(parse(data))


@st.composite
def mangled(draw) -> bytes:
    line = bytearray(draw(st.sampled_from(LINES)))
    for _change in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(line)))
        piece = draw(st.one_of(st.binary(max_size=6), st.sampled_from(LINES), st.sampled_from(PARTS)))
        if draw(st.booleans()):
            line[at:at] = piece
        else:
            line[at : at + len(piece)] = piece if draw(st.booleans()) else b""
    return bytes(line)


@settings(max_examples=300, deadline=None)
@given(st.lists(mangled(), max_size=20))
@example([b'{"DCGM Diagnostic":' + b'{"a":' * 3000])
@example([b'{"nvbandwidth": {"testcases": [' + b"[" * 3000])
@example([b'{"DCGM Diagnostic": {"test_categories": [{"tests": [{"name": {}, "results": [{"entity_id": 1e400}]}]}]}}'])
def test_mangled_lines(lines):
    data = b"\n".join(lines)
    for parse in PARSERS.values():
        check(parse(data))


MARKS = [
    "[1,0]<stdout>:",
    "  0: ",
    "node-a: ",
    "[pod/x-0/main] ",
    "2026-03-06T09:34:56.123456789Z ",
    "\x1b[32m",
    "2026-03-06T09:34:56Z stdout F ",
]


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize(("name", "index"), CASES)
def test_a_mark_before_every_line_changes_no_fact(name, index, mark):
    text = OUTPUTS[name][index]
    if text.startswith(("x/0", "0: ")):
        return  # marked already
    lines = text[:-1].split("\n") if text.endswith("\n") else text.split("\n")
    plain = PARSERS[name](text)
    marked = PARSERS[name]("".join(f"{mark}{line}\r\n" for line in lines))
    assert marked["complete"] == plain["complete"]
    facts = [
        (item["code"], item["entity"], item["category"]) for item in plain["findings"] if item["code"] != "silence"
    ]
    found = [
        (item["code"], item["entity"], item["category"]) for item in marked["findings"] if item["code"] != "silence"
    ]
    if name != "training":  # whose findings name the process
        assert found == facts
    values = [
        {key: metric for key, metric in run["metrics"].items() if key not in ("goodputRatio", "maxSilenceSec")}
        for run in plain["runs"]
    ]
    seen = [
        {key: metric for key, metric in run["metrics"].items() if key not in ("goodputRatio", "maxSilenceSec")}
        for run in marked["runs"]
    ]
    assert seen == values


def test_secrets_in_stray_lines_are_not_kept():
    for parse in PARSERS.values():
        result = parse(
            "export NGC_API_KEY=nvapi-123456\nError: token=abcdef0123 CUDA error: NGC_API_KEY=nvapi-123456 Error in\n"
        )
        assert "nvapi-123456" not in json.dumps(result) and "abcdef0123" not in json.dumps(result)


@pytest.mark.parametrize(
    "text",
    [
        '{"DCGM Diagnostic":' * 10_000,
        '{"nvbandwidth":' * 10_000,
        "1.0%  proc'd: " + " " * 200_000,
        "iteration 1/2 |" * 20_000,
        "|" * 200_000,
    ],
)
def test_nonsense_takes_no_more_time_than_its_size(text):
    """Texts over which a careless pattern goes back and forth."""
    began = time.process_time()
    for parse in PARSERS.values():
        check(parse(text))
    assert time.process_time() - began < 10
