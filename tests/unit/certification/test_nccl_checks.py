"""What decides without a threshold: values, ranks, hosts, transports, and why a run did not start."""

from __future__ import annotations

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers.nccl import parse
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import FleetError

from tests.unit.certification import nccl_output as out
from tests.unit.certification.nccl_output import codes


def find(result: dict, code: str) -> dict:
    return next(finding for finding in result["findings"] if finding["code"] == code)


# values


@pytest.mark.parametrize(
    ("test", "row", "expected"),
    [
        ("all_reduce", {"wrong": 1}, 1),
        ("all_reduce", {"wrongInPlace": "1.2e+06"}, 1.2e6),
        ("alltoall", {"wrong": 7}, 7),
        ("alltoall", {"wrongInPlace": 7}, 0),  # cannot work in place: what is left there means nothing
        ("alltoall", {"wrongInPlace": "N/A"}, 0),
    ],
)
def test_wrong_values_count_in_the_directions_that_are_checked(test, row, expected):
    rows = [{"size": size} for size in out.SIZES]
    rows[2].update(row)
    result = parse("\n".join(out.run(test=test, rows=rows)))
    assert result["runs"][0]["metrics"]["wrongValues"]["value"] == expected
    assert codes(result, "error") == (["wrong-values"] if expected else [])
    if expected:
        assert str(out.SIZES[2]) in find(result, "wrong-values")["message"]


def test_tolerances_of_old_tables_are_no_counts():
    rows = [{"size": size, "wrong": "5e-07", "wrongInPlace": "3e+02"} for size in out.SIZES]
    assert codes(parse("\n".join(out.run("2.10", rows=rows)))) == []
    result = parse("\n".join(out.run("2.10", rows=rows, wrong=4)))
    assert codes(result, "error") == ["wrong-values"]
    assert result["runs"][0]["metrics"]["wrongValues"]["value"] == 4


def test_the_footer_of_a_failed_run():
    result = parse("\n".join([*out.run(wrong=2), " .. node-a pid 1000: Test failure common.cu:1127"]))
    assert (result["complete"], codes(result, "error")) == (True, ["wrong-values"])


def test_the_tools_own_bound():
    result = parse("\n".join([*out.run(word="FAILED"), " .. node-a pid 1000: Test failure common.cu:1126"]))
    assert codes(result, "error") == ["tool-minimum-missed"]
    assert codes(parse("\n".join(out.run(word="OK")))) == []


def test_unchecked_values_are_said():
    rows = [{"size": size, "wrong": "N/A", "wrongInPlace": "N/A"} for size in out.SIZES]
    result = parse("\n".join(out.run(rows=rows, check=0)))
    assert codes(result) == ["values-not-checked"]
    assert "wrongValues" not in result["runs"][0]["metrics"]


# ranks and hosts


@pytest.mark.parametrize(
    ("expected", "code"),
    [
        ({"expected_ranks": 16, "expected_hosts": 2}, []),
        ({"expected_ranks": 32}, ["ranks-missing", "rank-count-contradicted"]),
        ({"expected_ranks": 8}, ["ranks-too-many", "rank-count-contradicted"]),
        ({"expected_hosts": 3}, ["hosts-missing"]),
        ({"expected_hosts": 1}, ["hosts-too-many"]),
        ({"expected_hosts": ["node-a.example.org", "NODE-B"]}, []),
        ({"expected_hosts": ["node-a", "node-c"]}, ["host-missing", "host-unexpected"]),
        ({"expected_test": "all_reduce_perf"}, []),
        ({"expected_test": "all-gather"}, ["wrong-test"]),
    ],
)
def test_what_was_launched(expected, code):
    result = parse("\n".join(out.run()), **expected)
    assert [c for c in codes(result) if c != "rank-count-contradicted" or c in code] == code


def test_a_missing_host_is_named():
    finding = find(parse("\n".join(out.run()), expected_hosts=["node-a", "node-c"]), "host-missing")
    assert (finding["host"], finding["scope"], finding["severity"]) == ("node-c", "node", "error")


def test_a_host_with_fewer_gpus_is_named():
    lines = [line for line in out.run() if "Rank 15" not in line]
    assert "node-b 7, node-a 8" in find(parse("\n".join(lines), expected_ranks=16), "ranks-missing")["message"]


@pytest.mark.parametrize("keep", ["rows", "last rank"])
def test_ranks_that_are_not_told_prove_nothing(keep):
    lines = [line for line in out.run() if "Rank" not in line and "nThread" not in line]
    if keep == "last rank":
        lines.insert(3, out.rank_lines(["node-a", "node-b"])[-1])
    result = parse("\n".join(lines), expected_ranks=16, expected_hosts=2)
    assert codes(result, "error") == (["ranks-unknown", "hosts-unknown"] if keep == "rows" else ["hosts-unknown"])


def test_a_rank_list_that_was_cut():
    """Each process prints 2,048 characters of ranks at most."""
    lines = []
    for line in out.run():
        if "nThread" in line:
            line = line.replace("nGpus 1", "nGpus 8")
        if "Rank" in line:
            rank, host = int(line.split()[2]), line.split()[8]
            line = line.replace(line.split()[6], "1000" if host == "node-a" else "2000")
            if rank % 8 == 6:
                line = line[:60] + "..."
            if rank % 8 == 7:
                continue
        lines.append(line)
    result = parse("\n".join(lines), expected_ranks=16, expected_hosts=2)
    assert codes(result) == []
    assert (result["runs"][0]["rankCount"], len(result["runs"][0]["ranks"])) == (16, 12)


def test_one_rank_has_no_bus_bandwidth():
    lines = out.run(hosts=["node-a"], gpus=1)
    result = parse("\n".join(lines))
    assert codes(result) == ["single-rank"]
    assert set(result["runs"][0]["metrics"]) == {"wrongValues"}
    bare = [line for line in lines if "Rank" not in line and "nThread" not in line]
    assert codes(parse("\n".join(bare))) == ["single-rank"]


def alone(host: str, pid: int) -> list[str]:
    lines = out.run(hosts=[host], gpus=1)
    return [line.replace("Pid   1000", f"Pid {pid:6d}") for line in lines]


def interleave(*outputs: list[str]) -> list[str]:
    return [line for together in zip(*outputs, strict=True) for line in together]


@pytest.mark.parametrize(
    "text",
    [
        interleave(alone("node-a", 11), alone("node-b", 22)),
        interleave(alone("node-a", 11), alone("node-a", 12), alone("node-b", 22), alone("node-b", 23)),
        alone("node-a", 11) + alone("node-b", 22),
        [*(f"[1,0]<stdout>:{t}" for t in alone("node-a", 11)), *(f"[1,1]<stdout>:{t}" for t in alone("node-b", 22))],
        interleave(
            [f"[1,0]<stdout>:{t}" for t in alone("node-a", 11)], [f"[1,1]<stdout>:{t}" for t in alone("node-b", 22)]
        ),
    ],
    ids=["two mixed", "four mixed", "one after the other", "tagged", "tagged and mixed"],
)
@pytest.mark.parametrize("expected", [None, 2])
def test_a_test_that_was_built_without_mpi(text, expected):
    result = parse("\n".join(text), expected_ranks=expected)
    assert "ranks-not-joined" in codes(result, "error")
    assert all("busBandwidthGBps" not in run["metrics"] for run in result["runs"])
    if expected:
        assert "ranks-missing" in codes(result, "error")


@pytest.mark.parametrize("form", ["mixed", "one after the other", "tagged"])
def test_nodes_that_each_ran_the_test_alone(form):
    """With eight GPUs in a process every node measures NVLink, and the numbers look fine."""
    first, second = out.run(hosts=["node-a"]), out.run(hosts=["node-b"])
    second = [line.replace("Pid   100", "Pid   200") for line in second]
    if form == "tagged":
        first, second = [f"[1,0]<stdout>:{t}" for t in first], [f"[1,1]<stdout>:{t}" for t in second]
    lines = first + second if form == "one after the other" else interleave(first, second)
    result = parse("\n".join(lines), expected_ranks=16)
    assert {"ranks-not-joined", "ranks-missing"} <= set(codes(result, "error"))


def test_two_runs_whose_lines_are_mixed_measure_nothing():
    first, second = out.run(hosts=["node-a", "node-b"]), out.run(hosts=["node-c", "node-d"])
    result = parse("\n".join(interleave(first, second)))
    assert not result["complete"]
    assert {"runs-interleaved", "ranks-not-joined"} & set(codes(result, "error"))
    assert [run["metrics"] for run in result["runs"]] == [{}]


def test_two_mixed_runs_that_their_launchers_tell_apart():
    fast, slow = out.run(), out.run(hosts=["node-c", "node-d"], rows=[{"size": s, "busbw": 9.0} for s in out.SIZES])
    text = interleave([f"[pod/a/main] {t}" for t in fast], [f"[pod/b/main] {t}" for t in slow])
    result = parse("\n".join(text), expected_ranks=16)
    assert (result["complete"], codes(result, "error")) == (True, ["rank-count-contradicted"])  # 9 GB/s is made up
    assert [round(run["metrics"]["busBandwidthGBps"]["value"]) for run in result["runs"]] == [397, 9]


# transports


def log(host: str, text: str, pid: int = 1000, level: str = "INFO") -> str:
    return f"{host}:{pid}:{pid + 9} [0] NCCL {level} {text}"


def channels(via: str, pairs=((7, 8), (15, 0))) -> list[str]:
    return [
        log("node-a", f"Channel {channel:02d}/0 : {a}[{a % 8}] -> {b}[{b % 8}] [send] via {via}")
        for channel in range(4)
        for a, b in pairs
    ]


def with_log(*lines: str) -> str:
    output = out.run()
    position = next(i for i, line in enumerate(output) if "out-of-place" in line)
    return "\n".join([*output[:position], *lines, *output[position:]])


IB = [
    log("node-a", "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eth0:192.0.2.10<0>"),
    log("node-b", "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eth0:192.0.2.11<0>"),
    log("node-a", "Using network IB"),
    log("node-b", "Using network IB"),
    log("node-a", "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read"),
    *channels("NET/IB/0/GDRDMA"),
    log("node-a", "NCCL version 2.28.7+cuda13.0"),
]


def test_the_ways_data_took():
    result = parse(with_log(*IB), expected_transport=["IB", "P2P"])
    run = result["runs"][0]
    assert codes(result) == []
    assert [(t["kind"], t["channels"], t["pairs"]) for t in run["transports"]] == [("NET/IB", 4, 2), ("P2P", 1, 1)]
    assert run["transports"][0]["gdr"] == run["transports"][0]["connections"] == 8
    assert run["networks"] == {"NET/IB": ["node-a", "node-b"]}
    assert run["adapters"]["node-b"] == ["mlx5_0:1/IB", "mlx5_1:1/RoCE"]
    assert run["ncclVersion"] == "2.28.7+cuda13.0"


@pytest.mark.parametrize(
    ("lines", "expected", "found"),
    [
        ([log("node-a", "Using network Socket"), *channels("NET/Socket/0")], None, ["tcp-fallback"]),
        ([log("node-a", "Using network Socket")], "IB", ["wrong-transport", "tcp-fallback"]),
        ([*channels("NET/Socket/0")], "roce", ["wrong-transport", "tcp-fallback"]),
        ([*IB, *channels("NET/Socket/0")], "IB", ["wrong-transport", "tcp-fallback"]),
        ([*channels("NET/Socket/0")], "tcp", []),
        ([*channels("NET/AWS Libfabric/0/GDRDMA")], "EFA", []),
        ([*channels("NET/Libfabric/3/GDRDMA/Shared")], "NET/OFI", []),
        ([*channels("NET/IBext_v8/0(1)/GDRDMA")], "IB", []),
        ([*channels("NET/gIB/0/GDRDMA")], "gIB", []),
        ([*channels("NET/FasTrak/0/GDRDMA")], "FasTrak", []),
        (
            [log("node-a", "NET/OFI Selected provider is tcp, fabric is 10.0.0.0/8"), *channels("NET/OFI/0/GDRDMA")],
            "EFA",
            ["tcp-fallback"],
        ),
        ([*channels("NET/IB/0")], "IB", ["no-gpu-direct"]),
        ([], "IB", ["transport-unknown"]),
        ([log("node-a", "Connected NVLS tree")], "NVLS", []),
        ([*channels("P2P/MNNVL")], "MNNVL", []),
        ([*channels("direct shared memory")], "SHM", []),
        ([*channels("P2P/IPC")], "NVLS", ["wrong-transport"]),
        ([IB[0], IB[1].replace(" [1]mlx5_1:1/RoCE", ""), *IB[2:]], "IB", ["adapters-missing"]),
    ],
)
def test_the_transport_that_was_expected(lines, expected, found):
    assert codes(parse(with_log(*lines), expected_transport=expected)) == found


def test_a_single_host_may_have_chosen_sockets():
    lines = out.run(hosts=["node-a"])
    lines.insert(20, log("node-a", "Using network Socket"))
    assert codes(parse("\n".join(lines))) == []


def test_the_log_of_other_ranks_belongs_to_the_run():
    lines = out.run()
    position = next(i for i, line in enumerate(lines) if "out-of-place" in line)
    tagged = [f"[1,0]<stdout>:{line}" for line in lines]
    tagged[position:position] = [f"[1,9]<stdout>:{line}" for line in IB]
    result = parse("\n".join(tagged), expected_transport="IB")
    assert codes(result) == []
    assert len(result["runs"]) == 1


def test_size_of_communicators_where_ranks_are_not_listed():
    done = "ncclCommInitRank comm 0x55 rank 3 nranks 16 cudaDev 3 nvmlDev 3 busId 4d000 commId 0x9 - Init COMPLETE"
    lines = [line for line in with_log(log("node-a", done), log("node-b", done)).split("\n") if "#  Rank" not in line]
    result = parse("\n".join(lines), expected_ranks=16, expected_hosts=["node-a", "node-b"])
    assert codes(result) == []


# what stopped a run

FAULTS = [
    ("h1: Test CUDA failure common.cu:941 'system not yet initialized'", "fabric-manager-down", "service", "h1"),
    ("h1: Test NCCL failure common.cu:392 'unhandled cuda error (run with NCCL_DEBUG=INFO for details) / '",
     "unhandled-cuda-error", "node", "h1"),
    ("h1: Test NCCL failure common.cu:303 'unhandled system error / '", "unhandled-system-error", "node", "h1"),
    ("    h1: Test NCCL failure common.cu:303 'remote process exited or there was a network error / '",
     "remote-process-exited", "run", "h1"),
    ("h1: Test NCCL failure common.cu:303 'internal error - please report this issue'",
     "nccl-internal-error", "node", "h1"),
    ("h1: Test CUDA failure common.cu:303 'uncorrectable ECC error encountered'", "gpu-ecc-error", "gpu", "h1"),
    ("h1: Test CUDA failure common.cu:1030 invalid device ordinal", "invalid-gpu-count", "run", "h1"),
    ("h1: Test CUDA failure common.cu:303 'out of memory'", "out-of-gpu-memory", "node", "h1"),
    ("h1: Test HIP failure common.cu:303 'something new'", "cuda-error", "node", "h1"),
    ("Cuda failure common.cu:891 'invalid device ordinal'", "invalid-gpu-count", "run", None),
    ("Abort(3712399) on node 0 (rank 2 in comm 0): Fatal error in PMPI_Init: Other", "mpi-abort", "run", None),
    ("Invalid number of GPUs: 16 requested but only 8 were found.", "invalid-gpu-count", "run", None),
    ("invalid size specified for 'minbytes'", "invalid-argument", "run", None),
    ("all_reduce_perf: invalid option -- 'Y'", "invalid-argument", "run", None),
    ("There are not enough slots available in the system to satisfy the 16", "mpi-not-enough-slots", "run", None),
    ("Your job has requested more processes than the ppr for", "mpi-ppr-rejected", "run", None),
    ("mpirun was unable to find the specified executable file, and therefore", "mpi-cannot-start", "run", None),
    ("ORTE was unable to reliably start one or more daemons.", "mpi-daemon-failed", "run", None),
    ("mpirun noticed that process rank 3 with PID 0 on node h3 exited on signal 11 (Segmentation fault).",
     "killed-by-signal", "node", "h3"),
    ("ssh: connect to host w-1 port 22: Connection refused", "ssh-failed", "node", "w-1"),
    ("ssh: Could not resolve hostname w-1.svc: Name or service not known", "name-not-resolved", "node", "w-1.svc"),
    ("Permission denied (publickey,password).", "ssh-denied", "run", None),
    ("bash: /usr/sbin/sshd: not found", "no-sshd", "run", None),
    ("srun: error: h2: task 9: Segmentation fault (core dumped)", "killed-by-signal", "node", "h2"),
    ("srun: error: h2: tasks 8-15: Exited with exit code 3", "process-failed", "node", "h2"),
    ("slurmstepd: error: *** STEP 7.0 ON h1 CANCELLED AT 2026-02-05T16:03:52 DUE TO TIME LIMIT ***",
     "time-limit", "run", None),
    ("Floating point exception (core dumped)", "killed-by-signal", "run", None),
    ("./all_reduce_perf: error while loading shared libraries: libnccl.so.2: cannot open shared object file",
     "library-missing", "run", None),
    ("[rank3]:[E] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=2, OpType=ALLREDUCE, "
     "Timeout(ms)=8000) ran for 8097 milliseconds before timing out.", "collective-timeout", "run", None),
    ("     [1, 5] finished collective #2, but didn't join collective #3 (count from 1)", "lagging-rank", "run", None),
    ("h1:5:9 [2] NCCL WARN Cuda failure 802 'system not yet initialized'", "fabric-manager-down", "service", "h1"),
    ("h1:5:9 [2] enqueue.cc:150 NCCL WARN Cuda failure 700 'an illegal memory access was encountered'",
     "illegal-memory-access", "gpu", "h1"),
    ("h1:5:9 [2] transport/net_ib.cc:1296 NCCL WARN NET/IB : Got completion from peer 192.0.2.5<33092> with error 12, "
     "opcode 0, len 0, vendor err 129 (Recv)", "network-error", "pair", "h1"),
    ("h1:5:9 [2] misc/socket.cc:49 NCCL WARN socketProgress: Connection closed by remote peer h2.example.org<36542>",
     "connection-closed", "pair", "h1"),
    ("[2026-09-09 10:46:33] h1:5:9 [1] transport/net_ib/p2p.cc:648 NCCL WARN NET/IB: Got completion from peer "
     "192.0.2.5<40554> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_SEND(0) localGid ::1 hca mlx5_1",
     "network-error", "pair", "h1"),
    ("h1:5:9 [0] int cm_req_handle_error_entry(context_t*, fid_cq*, uint16_t):46 NCCL WARN NET/OFI Request 0x7f "
     "completed with error. RC: 103. Error: 4126 (Unresponsive receiver)", "network-error", "node", "h1"),
    ("[rank1]:[E1003 18:37:01.8 ProcessGroupNCCL.cpp:1664] [PG 0 Rank 1] Exception (either an error or timeout) "
     "detected by watchdog at work: 6463, last enqueued NCCL work: 6463.", "collective-aborted", "run", None),
    ("   - [47] joined but didn't finish collective #41207 (count from 1)", "lagging-rank", "run", None),
    (" - To our best knowledge, ranks [3, 4] are the lagging ranks that caused this timeout.",
     "lagging-rank", "run", None),
]  # fmt: skip


@pytest.mark.parametrize(("line", "code", "scope", "host"), FAULTS, ids=[f"{f[1]}-{i}" for i, f in enumerate(FAULTS)])
@pytest.mark.parametrize("prefix", ["", "[1,3]<stderr>:", "2026-02-05T16:03:52Z "])
def test_why_it_stopped(line, code, scope, host, prefix):
    result = parse(f"noise\n{prefix}{line}\nmore")
    finding = find(result, code)
    assert (finding["scope"], finding["host"], finding["line"], finding["severity"]) == (scope, host, 2, "error")
    assert not result["complete"]
    assert codes(result, "error") == [code, "no-run"]


def test_one_node_service_is_not_eight_gpus():
    lines = [f"node-a:{pid}:9 [{gpu}] NCCL WARN Cuda failure 802 'system not yet initialized'"
             for gpu, pid in enumerate(range(40, 48))]  # fmt: skip
    lines += ["node-a: Test CUDA failure common.cu:941 'system not yet initialized'"] * 8
    assert codes(parse("\n".join(lines)), "error") == ["fabric-manager-down", "no-run"]


def test_who_the_lost_peer_is():
    finding = find(parse(next(f[0] for f in FAULTS if "Connection closed" in f[0])), "connection-closed")
    assert finding["entity"] == "h2.example.org"


def test_which_adapter_failed_to_which_peer():
    line = next(fault[0] for fault in FAULTS if "RETRY_EXC" in fault[0])
    assert find(parse(line), "network-error")["entity"] == "192.0.2.5 mlx5_1 IBV_WC_RETRY_EXC_ERR(12)"


def test_the_exit_code_mpirun_tells():
    text = "  Process name: [[32573,1],2]\n  Exit code:    5\n"
    assert parse(text)["launcher"] == {"rank": 2, "exitCode": 5}


def test_a_hang_stops_after_the_header():
    lines = out.run()
    position = next(i for i, line in enumerate(lines) if "(elements)" in line)
    result = parse("\n".join(lines[: position + 1]))
    assert codes(result) == ["run-incomplete"]
    assert "before its first size" in result["findings"][0]["message"]


@pytest.mark.parametrize(
    ("before", "between", "after", "expected"),
    [
        (["ssh: Could not resolve hostname w-1: Name or service not known"], [], [], "name-not-resolved"),
        ([], [], ["mpirun noticed that process rank 3 with PID 7 on node h3 exited on signal 11 (Segmentation fault)."],
         "killed-by-signal"),
        ([], [], ["slurmstepd: error: *** STEP 7.0 ON h1 CANCELLED AT 2026-02-05T16:03:52 DUE TO TIME LIMIT ***"],
         "time-limit"),
        ([], ["h1:5:9 [2] NCCL WARN NET/IB : mlx5_0:1 Got async event : port error"], [], "network-port-event"),
    ],
)  # fmt: skip
def test_a_run_that_came_to_its_end_was_not_stopped(before, between, after, expected):
    lines = out.run()
    text = [*before, *lines[:-8], *between, *lines[-8:], *after]
    result = parse("\n".join(text))
    assert (result["complete"], codes(result, "error"), codes(result, "warning")) == (True, [], [expected])
    broken = parse("\n".join([*before, *lines[:-8], *between, *after]))
    assert expected in codes(broken, "error")


def test_nothing_at_all():
    assert codes(parse("")) == ["no-run"]
    assert not parse("")["complete"]


def test_a_call_stack_alone_is_a_failure():
    result = parse("\n".join([*out.run(), " .. node-b pid 2001: Test failure common.cu:623"]))
    assert codes(result, "error") == ["test-failed"]
    assert find(result, "test-failed")["host"] == "node-b"


# what may be stored


def test_dumped_environments_are_not_stored():
    lines = out.run()
    lines[3:3] = [
        "AWS_SECRET_ACCESS_KEY=hunter2",
        "export API_TOKEN=hunter2",
        "# PASSWORD=hunter2 x",
        "password: hunter2",
    ]
    lines.insert(-4, "  1048576 262144 float DB_PASS=hunter2")
    lines += ["h1:5:9 [2] NCCL WARN plugin said token=hunter2", "h: Test NCCL failure a.cu:1 'x' SECRET=hunter2"]
    assert "hunter2" not in repr(parse("\n".join(lines)))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"expected_ranks": "many"}, "expected_ranks"),
        ({"expected_ranks": 0}, "expected_ranks"),
        ({"expected_hosts": [1]}, "expected_hosts"),
        ({"expected_hosts": -1}, "expected_hosts"),
        ({"expected_transport": 4}, "expected_transport"),
        ({"expected_test": 4}, "expected_test"),
        ({"plateau_bytes": "big"}, "plateau_bytes"),
    ],
)
def test_expectations_of_no_use(arguments, words):
    with pytest.raises(FleetError, match=words):
        parse("", **arguments)


def test_no_text():
    with pytest.raises(FleetError, match="not a text"):
        parse(7)
