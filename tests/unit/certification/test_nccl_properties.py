"""What holds for every output, also for those nobody has seen yet."""

from __future__ import annotations

import json

from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers import nccl, perftest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.unit.certification import nccl_output as out

GENERATION = st.sampled_from(sorted(out.GENERATIONS))
SEEDS = [line.encode() for generation in out.GENERATIONS for line in out.run(generation)]
SEEDS += [
    b"node-a:1:2 [0] NCCL INFO Channel 00/0 : 7[7] -> 8[0] [send] via NET/IB/0/GDRDMA",
    b"node-a:1:2 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eth0:192.0.2.10<0>",
    b"node-a:1:2 [0] NCCL WARN NET/IB : Got completion from peer 192.0.2.5<33092> with error 12, opcode 0",
    b"node-a: Test NCCL failure common.cu:392 'unhandled cuda error / '",
    b" .. node-a pid 1: Test failure common.cu:590",
    b"[1,0]<stdout>:",
    b"0: ",
    b'{"version": 3, "start_time": "x", "env": ["A=B"], "results": [',
    b'{"size": 8, "count": 2, "out_of_place": {"time": 1, "nwrong": 0}}]}',
    b" #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]",
    b" 8388608    20000            24056.74            24056.72              0.003007",
    b"                    RDMA_Write BW Test",
    b" local address: LID 0xd06 QPN 0x095f PSN 0x3c9e82",
    b"-" * 87,
]
PARTS = [b"\xff\x00", b"\r", b"\x1b[31m", b"9" * 5000, b"{", b"[" * 300, b'"', b"#", b"N/A", b"-nan", b"1e999", b" : "]


@st.composite
def mangled(draw) -> bytes:
    line = bytearray(draw(st.sampled_from(SEEDS)))
    for _change in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(line)))
        piece = draw(st.one_of(st.binary(max_size=6), st.sampled_from(SEEDS), st.sampled_from(PARTS)))
        if draw(st.booleans()):
            line[at:at] = piece
        else:
            line[at : at + len(piece)] = piece if draw(st.booleans()) else b""
    return bytes(line)


def check(result: dict) -> None:
    """The shape of every result, and that it can be stored."""
    json.dumps(result, allow_nan=False)
    for finding in result["findings"]:
        assert finding["severity"] in ("error", "warning", "info")
        assert finding["scope"] in ("node", "gpu", "pair", "service", "run")
        assert finding["category"] in ("hardware", "configuration", "tool", "infrastructure", "unknown")
        assert len(finding["text"]) <= 1000
    for run in result["runs"]:
        assert all(metric["value"] is not None for metric in run["metrics"].values())
    if result["complete"]:
        assert result["runs"]


@settings(max_examples=150, deadline=None)
@given(st.lists(mangled(), max_size=40))
@example([b'{"version": 3, "results": [{"size": 1e400}]}'])
@example([b"# size algbw busbw time time", b"1 1 float 1 1"])
def test_no_output_is_an_exception(lines):
    text = b"\n".join(lines)
    check(nccl.parse(text, expected_ranks=16, expected_hosts=2, expected_transport="IB", expected_test="all_reduce"))
    check(perftest.parse(text, expected_device="mlx5_0", expected_link="IB"))


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=400) | st.text(max_size=400))
def test_noise_is_no_run(text):
    for result in (nccl.parse(text), perftest.parse(text)):
        check(result)
        assert not result["complete"]


@settings(max_examples=80, deadline=None)
@given(GENERATION, st.data())
def test_cut_anywhere(generation, data):
    """A cut output is not complete before its footer, and never has a value that the whole one does not have."""
    text = "\n".join(out.run(generation))
    whole = nccl.parse(text)["runs"][0]
    end = data.draw(st.integers(0, len(text)))
    result = nccl.parse(text[:end])
    check(result)
    footer = text.index("# Avg bus bandwidth") + len("# Avg bus bandwidth    : ")
    assert not (end <= footer and result["complete"])
    for run in result["runs"]:
        for row, expected in zip(run["rows"], whole["rows"], strict=False):
            assert (row["size"], row["outOfPlace"]) == (expected["size"], expected["outOfPlace"])
            for name in ("time", "algbw", "busbw"):
                assert row["inPlace"][name] == expected["inPlace"][name]


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_lines_of_others_change_nothing(data):
    """Whatever other programs write between the lines, the rows stay the same."""
    lines = out.run()
    whole = nccl.parse(lines)["runs"][0]
    noise = st.sampled_from(
        [
            "",
            "WARNING: Open MPI accepted a TCP connection from what appears to be another Open MPI process",
            "node-a:1:2 [0] NCCL INFO Channel 00 : 0[0] -> 1[1] via P2P/CUMEM",
            "I0205 16:03:52.1 123 plugin.cc:45] loaded",
            "warn: 1 of 2 things",
            "--------------------------------------------------------------------------",
        ]
    )
    for _line in range(data.draw(st.integers(1, 12))):
        lines.insert(data.draw(st.integers(0, len(lines))), data.draw(noise))
    run = nccl.parse(lines)["runs"][0]
    strip = [{key: value for key, value in row.items() if key != "line"} for row in run["rows"]]
    assert strip == [{key: value for key, value in row.items() if key != "line"} for row in whole["rows"]]
    assert run["metrics"] == whole["metrics"]


def merged(draw, outputs: list[list[str]]) -> list[str]:
    """The outputs as they arrive when processes write at the same time: each in its order, in pieces of any length."""
    left = [list(output) for output in outputs]
    lines: list[str] = []
    while any(left):
        index = draw(st.sampled_from([i for i, rest in enumerate(left) if rest]))
        length = draw(st.integers(1, 40))
        lines += left[index][:length]
        del left[index][:length]
    return lines


@settings(max_examples=150, deadline=None)
@given(st.integers(2, 4), st.data())
def test_processes_that_do_not_know_of_each_other_measure_nothing(count, data):
    outputs = []
    for number in range(count):
        lines = out.run(hosts=[f"node-{number}"], gpus=1)
        outputs.append([line.replace("Pid   1000", f"Pid {4000 + number:6d}") for line in lines])
    result = nccl.parse(merged(data.draw, outputs), expected_ranks=count)
    codes = {finding["code"] for finding in result["findings"] if finding["severity"] == "error"}
    assert codes & {"ranks-not-joined", "runs-interleaved"}
    assert not any("busBandwidthGBps" in run["metrics"] for run in result["runs"])


@settings(max_examples=100, deadline=None)
@given(st.data(), st.booleans())
def test_mixed_runs_are_never_taken_for_one(data, whole):
    """Where nothing is said to be wrong, each run has its own rows and no others."""
    fast = out.run(hosts=["node-a", "node-b"])
    slow = out.run(hosts=["node-c", "node-d"], rows=[{"size": size, "busbw": 9.0} for size in out.SIZES])
    if not whole:
        slow = slow[: data.draw(st.integers(25, len(slow)))]
    result = nccl.parse(merged(data.draw, [fast, slow]))
    if any(finding["severity"] == "error" for finding in result["findings"]):
        return
    for run in result["runs"]:
        assert len({row["outOfPlace"]["busbw"] == 9.0 for row in run["rows"]}) == 1
        assert len(run["rows"]) == len(out.SIZES)
