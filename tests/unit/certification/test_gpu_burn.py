# ruff: noqa: E501  (outputs as the tools print them)
"""gpu_burn: what it counted, not what it says at the end."""

from __future__ import annotations

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers import gpu_burn
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument

START = "Run length not specified in the command line. Using compare file: compare.ptx\nBurning for 60 seconds.\n"


def names(count: int) -> str:
    return "".join(f"GPU {gpu}: NVIDIA H100 80GB HBM3 (UUID: GPU-0000000{gpu}-aaaa)\n" for gpu in range(count))


def progress(
    percent: float, done: list[int], rates: list[int], errors: list[str], temperatures: list[str] | None = None
) -> str:
    work = " - ".join(f"{count} ({rate} Gflop/s)" for count, rate in zip(done, rates, strict=True))
    # a note is glued to the dash that follows
    wrong = (
        "".join(f"{error}- " if ")" in error else f"{error} - " for error in errors).removesuffix("- ").rstrip() + " "
    )
    temps = " - ".join(temperatures or ["60 C"] * len(done))
    return f"\r{percent:.1f}%  proc'd: {work}   errors: {wrong}  temps: {temps} "


def verdicts(*words: str) -> str:
    listed = "".join(f"\tGPU {gpu}: {word}\n" for gpu, word in enumerate(words))
    return (
        f"\nKilling processes with SIGTERM (soft kill)\nUninitted cublas\ndone\n\nTested {len(words)} GPUs:\n{listed}"
    )


def burn(count: int = 2, errors: list[str] | None = None, words: list[str] | None = None) -> str:
    wrong = errors or ["0"] * count
    return (
        names(count) + START
        + progress(10.0, [1000] * count, [9000] * count, ["0"] * count)
        + progress(60.0, [5000] * count, [14000 + gpu for gpu in range(count)], wrong)
        + "\n\tSummary at:   Thu Mar 10 19:21:17 UTC 2022\n\n"
        + progress(100.0, [9000] * count, [14000 + gpu for gpu in range(count)], wrong, ["71 C", "--"] + ["60 C"] * (count - 2))
        + verdicts(*(words or ["OK"] * count))
    )  # fmt: skip


def codes(result: dict) -> list[str]:
    return [finding["code"] for finding in result["findings"]]


def test_a_good_burn():
    result = gpu_burn.parse(burn(8), expected_gpus=8)
    assert result["findings"] == [] and result["complete"] and not result["unparsed"]
    run = result["runs"][0]
    assert run["seconds"] == 60 and run["percent"] == 100.0 and len(run["gpus"]) == 8
    assert run["gpus"][0]["gflops"] == 14000 and run["gpus"][0]["uuid"] == "GPU-00000000-aaaa"
    assert run["metrics"]["gflopsPerGpu.min"] == {"value": 14000, "unit": "Gflop/s"}
    assert run["metrics"]["temperature.max"]["value"] == 71 and run["gpus"][1]["temperature"] == 60
    assert run["metrics"]["errors.sum"]["value"] == 0


def test_sixteen_faulty_gpus_with_an_overflown_counter():
    errors = ["0", "-524288000  (WARNING!)", "-524288000  (WARNING!)"] + ["0"] * 13
    result = gpu_burn.parse(burn(16, errors, ["FAULTY"] * 16), expected_gpus=16)
    assert codes(result) == ["gpu-faulty"] * 16 and result["complete"]
    assert [finding["entity"] for finding in result["findings"]] == [f"GPU {gpu}" for gpu in range(16)]
    assert "overflowed" in result["findings"][1]["message"] and "overflowed" not in result["findings"][3]["message"]
    assert "errors.sum" not in result["runs"][0]["metrics"]
    assert {finding["category"] for finding in result["findings"]} == {"hardware"}


def test_errors_count_although_the_verdict_is_ok():
    result = gpu_burn.parse(burn(2, ["0", "7  (WARNING!)"]))
    assert [(finding["code"], finding["entity"]) for finding in result["findings"]] == [("compute-errors", "GPU 1")]
    assert "7 errors" in result["findings"][0]["message"] and "OK" in result["findings"][0]["message"]


def test_errors_of_several_summaries_add_up():
    text = names(1) + START + "".join(
        progress(percent, [1000 * index], [9000], [error])
        for index, (percent, error) in enumerate([(5, "0"), (10, "3"), (20, "5"), (30, "0"), (40, "2"), (99, "2")], 1)
    ) + verdicts("FAULTY")  # fmt: skip
    result = gpu_burn.parse(text)
    assert result["runs"][0]["gpus"][0]["errors"] == 7 and codes(result) == ["gpu-faulty"]


@pytest.mark.parametrize("count", [1, 8])
def test_no_work_although_ok(count):
    text = names(count) + START + "Freed memory for dev 0\n" + verdicts(*["OK"] * count)
    result = gpu_burn.parse(text, expected_gpus=count)
    assert codes(result) == ["no-work"] and result["findings"][0]["severity"] == "error"
    assert result["runs"][0]["metrics"] == {}
    idle = names(count) + START + progress(100.0, [0] * count, [0] * count, ["0"] * count) + verdicts(*["OK"] * count)
    assert codes(gpu_burn.parse(idle)) == ["no-work"]


def test_no_work_on_one_gpu():
    text = names(2) + START + progress(50, [900, 0], [9000, 0], ["0", "0"]) + verdicts("OK", "OK")
    result = gpu_burn.parse(text)
    assert [(finding["code"], finding["entity"]) for finding in result["findings"]] == [("no-work", "GPU 1")]


def test_died():
    text = names(2) + START + progress(20, [900, 800], [9000, 9000], ["0", "0"])
    text += progress(50, [1900, -1], [9000, 0], ["0", "0  (DIED!)"])
    result = gpu_burn.parse(text + verdicts("OK", "FAULTY"))
    assert [(finding["code"], finding["entity"]) for finding in result["findings"]] == [("gpu-died", "GPU 1")]
    ended = gpu_burn.parse(text + "\n\nNo clients are alive!  Aborting\n")
    assert set(codes(ended)) == {"gpu-died", "output-truncated", "tool-error"} and not ended["complete"]


@pytest.mark.parametrize("keep", ["Tested 2 GPUs:\n", "Tested 2 GPUs:\n\tGPU 0: OK\n", "Killing processes"])
def test_without_all_verdicts_it_did_not_end(keep):
    text = burn(2)
    result = gpu_burn.parse(text[: text.index(keep) + len(keep)])
    assert not result["complete"] and codes(result) == ["output-truncated"]


@pytest.mark.parametrize(
    ("line", "category", "scope"),
    [
        ("Couldn't init a GPU test: Error in load module (gpu_burn-drv.cpp:239): system error", "unknown", "node"),
        ("Failure during compute: Error in SGEMM (gpu_burn-drv.cpp:182): CUBLAS_STATUS_NOT_SUPPORTED", "tool", "node"),
        ("No CUDA devices", "configuration", "node"),
        ("./gpu_burn: error while loading shared libraries: libcublas.so.11", "tool", "node"),
    ],
)
def test_errors_are_kept_and_sorted(line, category, scope):
    result = gpu_burn.parse(names(1) + START + line + "\n" + verdicts("FAULTY"))
    found = {finding["code"]: finding for finding in result["findings"]}
    assert (found["tool-error"]["category"], found["tool-error"]["scope"]) == (category, scope)
    # an error of the library is no proof against the part
    assert found["gpu-faulty"]["category"] == "unknown" and line[:40] in found["gpu-faulty"]["message"]


def test_missing_fabric_manager():
    text = (
        names(8)
        + START
        + "Couldn't init a GPU test: Error in Init (gpu_burn-drv.cpp:99): system not yet initialized\n" * 8
    )
    result = gpu_burn.parse(text)
    assert codes(result).count("fabric-manager-down") == 1
    assert not [finding for finding in result["findings"] if finding["scope"] == "gpu"]


def test_which_gpus():
    assert codes(gpu_burn.parse(burn(7), expected_gpus=8)) == ["gpu-missing"]
    assert "GPU 7" in gpu_burn.parse(burn(7), expected_gpus=8)["findings"][0]["entity"]
    # nvidia-smi lists eight, one is burned
    one = names(8) + START + progress(100, [900], [9000], ["0"]) + verdicts("OK")
    assert codes(gpu_burn.parse(one)) == [] and codes(gpu_burn.parse(one, expected_gpus=8)) == ["gpu-missing"]


def test_marks_of_launchers_and_two_nodes():
    plain = burn(2, words=["OK", "FAULTY"])
    for mark in ("[1,0]<stdout>:", "  0: ", "node-a: ", "[pod/burn-x/main] ", "2026-03-06T09:34:56.123Z "):
        marked = "".join(f"{mark}{line}\n" for line in plain.split("\n"))
        result = gpu_burn.parse(marked, expected_gpus=2)
        assert [(finding["code"], finding["entity"]) for finding in result["findings"]] == [("gpu-faulty", "GPU 1")], (
            mark
        )
    mixed = "".join(
        f"node-a: {one}\nnode-b: {two}\n" for one, two in zip(burn(2).split("\n"), plain.split("\n"), strict=True)
    )
    result = gpu_burn.parse(mixed, expected_gpus=2)
    assert [finding["host"] for finding in result["findings"]] == ["node-b"] and len(result["runs"]) == 2


def test_two_burns_in_one_output():
    result = gpu_burn.parse(burn(2) + burn(2, words=["FAULTY", "OK"]))
    assert len(result["runs"]) == 2 and codes(result) == ["gpu-faulty"]


@pytest.mark.parametrize("text", ["", "hello", "\r\r\r"])
def test_no_result_is_said(text):
    assert codes(gpu_burn.parse(text)) == ["no-result"]


def test_expectations_that_cannot_be():
    with pytest.raises(InvalidDocument, match="expected_gpus"):
        gpu_burn.parse("", expected_gpus="eight")
