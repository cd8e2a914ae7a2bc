"""What simulated GPU tests print, read by the collection's own parsers: healthy, and with each fault."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers import (
    dcgm_diag,
    gpu_burn,
    nccl,
    nvbandwidth,
    training,
)

from tests.simfleet import gpuwork
from tests.simfleet.gpuwork import work
from tests.unit.launchers.a_run import a_run

NODES = ["gpu-0000", "gpu-0001", "gpu-0002", "gpu-0003"]
BAD = "gpu-0002"
PARSERS = {"nccl": nccl, "dcgm_diag": dcgm_diag, "gpu_burn": gpu_burn, "nvbandwidth": nvbandwidth, "training": training}
NODE_TESTS = {"gpu-burn": "diagnostics", "nvbandwidth": "diagnostics", "dcgm-level3": "diagnostics"}
COLLECTIVES = ["nccl-all-reduce", "nccl-all-gather", "nccl-alltoall", "nccl-reduce-scatter", "nccl-sendrecv"]


def hosts_of(run: dict) -> list[str]:
    return [f"gp-{run['id']}-{index}" for index in range(len(run["nodes"]))]


def play(run: dict, faults: dict | None = None, pairs=(), me: int = 0) -> work.Act:
    fleet = work.Fleet({node: gpuwork.read_fault(node, given) for node, given in (faults or {}).items()}, list(pairs))
    count = run["expected"]["gpusPerNode"]
    return work.act(work.work_of(run["command"], run["env"], run["id"], run["nodes"], hosts_of(run), me, count, fleet))


def read(run: dict, act: work.Act) -> dict:
    return PARSERS[run["parser"]["tool"]].parse("\n".join(act.lines) + "\n", **run["arguments"])


def errors(result: dict) -> set[str]:
    return {finding["code"] for finding in result["findings"] if finding["severity"] == "error"}


def group(variant: str = "nccl-all-reduce", **more) -> dict:
    return a_run(variant, names=NODES, **more)


def plateau(run: dict, act: work.Act) -> float:
    return read(run, act)["runs"][0]["metrics"]["busBandwidthPlateauGBps"]["value"]


@pytest.mark.parametrize("variant", COLLECTIVES)
def test_healthy_collective(variant):
    run = group(variant, nics=8, nicResourceName="rdma/ib", transport="IB")
    act = play(run)
    result = read(run, act)
    assert act.code == 0 and not act.hang
    assert result["complete"] and not errors(result) and not result["unparsed"]
    (only,) = result["runs"]
    assert len(only["ranks"]) == 32 and sorted(only["hosts"]) == hosts_of(run)
    assert 340 < only["metrics"]["busBandwidthPlateauGBps"]["value"] < 380
    assert only["metrics"]["wrongValues"]["value"] == 0


@pytest.mark.parametrize("fault", ["slow-nic", "slow-gpu", "tcp-fallback"])
def test_slow_nodes_show_in_the_bandwidth(fault):
    run = group()
    slow = play(run, {BAD: fault})
    assert slow.code == 0 and plateau(run, slow) < 0.75 * plateau(run, play(run))
    assert plateau(run, play(run, {"gpu-0099": fault})) == plateau(run, play(run))


def test_bad_link_shows_only_with_both_ends():
    run = group()
    assert plateau(run, play(run, pairs=[NODES[:2]])) < 0.5 * plateau(run, play(run))
    assert plateau(run, play(run, pairs=[["gpu-0000", "gpu-0099"]])) == plateau(run, play(run))


def test_slow_network_does_not_show_inside_a_node():
    inside = a_run("nccl-loopback-nvswitch", 1)
    assert plateau(inside, play(inside, {NODES[0]: "slow-nic"})) == plateau(inside, play(inside)) > 400
    through = a_run("nccl-loopback", 1)
    assert plateau(through, play(through, {NODES[0]: "slow-nic"})) < 0.5 * plateau(through, play(through))


def test_sockets_are_told_by_the_transport():
    run = group(transport="IB")
    assert {"wrong-transport", "tcp-fallback"} & errors(read(run, play(run, {BAD: "tcp-fallback"})))
    assert not errors(read(run, play(run)))


@pytest.mark.parametrize(
    ("fault", "code", "found"),
    [
        ("wrong-values", 1, "wrong-values"),
        ("crash", 139, "killed-by-signal"),
        ("missing-gpu", 1, "invalid-gpu-count"),
        ("no-sshd", 255, "ssh-failed"),
    ],
)
def test_failed_collective(fault, code, found):
    run = group()
    act = play(run, {BAD: fault})
    result = read(run, act)
    assert act.code == code and not act.hang and found in errors(result)
    if fault in ("crash", "no-sshd"):
        assert {f["host"] for f in result["findings"] if f["code"] == found} == {hosts_of(run)[2]}


def test_collective_that_hangs():
    run = group()
    act = play(run, {BAD: "hang"})
    assert act.hang and not read(run, act)["complete"]


def test_the_other_pods_of_a_collective_wait():
    run = group()
    assert all(play(run, me=index).hang for index in (1, 2, 3))
    refusing = play(run, {BAD: "no-sshd"}, me=2)
    assert refusing.code == 127 and "no-sshd" in errors(read(run, refusing))


@pytest.mark.parametrize(("variant", "domain"), NODE_TESTS.items())
def test_healthy_node(variant, domain):
    run = a_run(variant, 1, domain)
    act = play(run)
    result = read(run, act)
    assert act.code == 0 and result["complete"] and not errors(result), result["findings"]
    assert not result["unparsed"]


@pytest.mark.parametrize(("variant", "domain"), NODE_TESTS.items())
@pytest.mark.parametrize("fault", ["missing-gpu", "hang", "crash", "wrong-values"])
def test_sick_node(variant, domain, fault):
    run = a_run(variant, 1, domain)
    act = play(run, {NODES[0]: fault})
    result = read(run, act)
    if fault == "hang":
        assert act.hang and not result["complete"]
    elif fault == "wrong-values" and variant == "nvbandwidth":
        assert not errors(result)  # it computes nothing
    else:
        assert errors(result)


def test_slow_gpu_in_node_tests():
    burn, band, diag = (a_run(variant, 1, domain) for variant, domain in NODE_TESTS.items())
    bad = {NODES[0]: "slow-gpu"}

    def value(run: dict, faults: dict, metric: str) -> float:
        return read(run, play(run, faults))["runs"][0]["metrics"][metric]["value"]

    assert value(burn, bad, "gflopsPerGpu.min") < 0.6 * value(burn, {}, "gflopsPerGpu.min")
    name = "host_to_device_memcpy_ce.min"
    assert value(band, bad, name) < 0.6 * value(band, {}, name)
    assert errors(read(diag, play(diag, bad)))
    first = a_run("dcgm-level1", 1, "diagnostics")
    assert not errors(read(first, play(first, bad)))  # it looks at no load


def test_training():
    run = a_run("nemotron5-8b", 2, "training", maxSteps=40)
    last = 1
    result = read(run, play(run, me=last))
    (only,) = result["runs"]
    healthy = only["metrics"]["stepTimeSec.median"]["value"]
    assert only["steps"] == 40 and not errors(result) and result["complete"]
    assert 2.3 < healthy < 2.5
    for fault, factor in (("slow-gpu", 1.6), ("slow-nic", 1.5), ("tcp-fallback", 8)):
        slow = read(run, play(run, {NODES[0]: fault}, me=last))["runs"][0]["metrics"]["stepTimeSec.median"]["value"]
        assert slow == pytest.approx(healthy * factor, rel=0.02)
    assert not read(run, play(run, me=0))["runs"]  # its first rank prints no steps


def test_training_that_fails():
    run = a_run("nemotron5-8b", 2, "training", maxSteps=40)
    wrong = read(run, play(run, {NODES[0]: "wrong-values"}, me=1))
    assert any("nan" in code or "loss" in code for code in errors(wrong)), wrong["findings"]
    hung = play(run, {NODES[0]: "hang"}, me=1)
    assert hung.hang and read(run, hung)["runs"][0]["steps"] == 3
    for fault in ("crash", "missing-gpu"):
        died, other = (play(run, {NODES[0]: fault}, me=me) for me in (0, 1))
        assert died.code == 1 and errors(read(run, died)) and other.hang


def test_a_fault_that_comes_and_goes():
    fleet = work.Fleet({BAD: gpuwork.read_fault(BAD, {"fault": "crash", "chance": 0.3})})
    shown = [bool(fleet.faults_in(f"{number:012x}", NODES)) for number in range(400)]
    assert 80 < sum(shown) < 160
    assert shown == [bool(fleet.faults_in(f"{number:012x}", NODES)) for number in range(400)]


def test_programs_that_are_not_known():
    run = {**a_run("gpu-burn", 1, "diagnostics"), "command": ["echo", "hello"]}
    assert play(run).lines == ["ran echo hello"]
    assert play(run, {NODES[0]: "crash"}).code == 139 and play(run, {NODES[0]: "hang"}).hang


def test_unknown_faults_are_refused():
    with pytest.raises(ValueError, match="gpu-1: 'slow'; known faults: slow-nic"):
        gpuwork.read_fault("gpu-1", "slow")
    with pytest.raises(ValueError, match="known faults"):
        gpuwork.read_fault("gpu-1", {"fault": "hang", "rate": 1})


def test_the_pods_program_needs_no_packages():
    """It starts once for every pod."""
    program = Path(gpuwork.__file__).with_name("pod.py")
    code = f"import sys; sys.argv = ['x']; exec(compile(open({str(program)!r}).read(), {str(program)!r}, 'exec'), " + (
        f"{{'__name__': 'pod', '__file__': {str(program)!r}}}); print('yaml' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
