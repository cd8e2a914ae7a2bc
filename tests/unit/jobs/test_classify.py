# ruff: noqa: E501
"""What a job failed of, and whom that points at."""

from __future__ import annotations

import gzip
import random

import pytest

from tests.unit.jobs.joblogs import (
    CLOSED,
    DESYNC,
    TIMED_OUT,
    read,
    started,
    steps,
    torchrun_end,
    traceback,
    watchdog,
)

ECC = "RuntimeError: CUDA error: uncorrectable ECC error encountered"
USER = "ValueError: Sample 4711 in shard 3 has length 0"


def short(answer: dict) -> tuple:
    return answer["id"], answer["class"], answer["blame"]["kind"], answer["blame"]["ranks"]


def test_a_programs_mistake_goes_back_to_the_user_with_file_line_and_step():
    log = [*started(), *steps(1, 5), *traceback(1, USER, line=77), *traceback(0, CLOSED), *torchrun_end(1, 1)]
    answer = read(log)
    assert short(answer) == ("J163", "user-code", "none", [])
    assert (answer["action"], answer["firstFailing"], answer["exitCode"]) == ("fail to user", 1, 1)
    assert answer["exception"] == {
        "type": "ValueError",
        "message": "Sample 4711 in shard 3 has length 0",
        "file": "/workspace/train.py",
        "line": 77,
        "step": 5,
    }
    assert answer["lines"][0]["text"] == USER
    assert log[answer["lines"][0]["number"] - 1] == f"[rank1]: {USER}"
    assert (answer["waiting"], answer["cascade"]) == ([0], False)
    assert answer["progress"]["lastStep"] == 5
    assert answer["progress"]["stepSeconds"] == 0.25


def test_the_survivors_traceback_comes_first_and_is_still_not_the_cause():
    answer = read([*started(), *steps(1, 5), *traceback(0, CLOSED), *traceback(1, USER), *torchrun_end(0, 1)])
    assert (answer["id"], answer["firstFailing"], answer["waiting"]) == ("J163", 1, [0])


def test_an_exception_nobody_described_is_the_programs():
    answer = read(
        [*started(), *traceback(1, "mylib.errors.BadShard: shard 3"), *traceback(0, CLOSED), *torchrun_end(1, 1)]
    )
    assert (answer["id"], answer["class"], answer["firstFailing"]) == ("J163", "user-code", 1)
    assert (answer["exception"]["type"], answer["confidence"]) == ("mylib.errors.BadShard", 0.6)


def test_the_rest_of_a_message_may_be_described():
    head = traceback(1, "RuntimeError: Error(s) in loading state_dict for Linear:")
    rest = ["[rank1]: \tsize mismatch for weight: copying a param with shape torch.Size([5, 4]) from checkpoint"]
    answer = read([*started(), *head, *rest, *traceback(0, CLOSED)])
    assert (answer["id"], answer["firstFailing"]) == ("J085", 1)


def test_a_killed_rank_is_named_although_the_other_one_complains_first():
    log = [
        *started(),
        *steps(1, 5),
        *traceback(0, CLOSED),
        *torchrun_end(1, -9, "Signal 9 (SIGKILL) received by PID 71"),
    ]
    answer = read(log)
    assert short(answer) == ("J065", "transient-software", "emitter", [1])
    assert (answer["exitCode"], answer["firstFailing"], answer["waiting"]) == (-9, 1, [0])
    assert answer["blame"]["hosts"] == ["worker-a"]


def test_a_killed_rank_is_named_before_the_network_errors_of_those_that_talked_to_it():
    lost = "worker-b:88:99 [0] NCCL WARN NET/IB : Got completion from peer 192.0.2.7<54862> with status=12 opcode=0 len=0 vendor err 129 (Recv)"
    answer = read([*started(), *steps(1, 5), lost, *torchrun_end(1, -9)])
    assert short(answer) == ("J065", "transient-software", "emitter", [1])


def test_oom_kill_confirms_a_sigkill():
    oom = "Memory cgroup out of memory: Killed process 71 (python3) total-vm:98311212kB"
    answer = read([*started(), *steps(1, 5), *traceback(0, CLOSED), oom, *torchrun_end(1, -9)])
    assert (answer["id"], answer["class"]) == ("S030", "user-code")


def test_in_a_hang_the_rank_that_waited_is_not_believed_to_be_the_cause():
    # torchrun names the rank that gave up waiting
    answer = read([*started(), *steps(1, 5), *traceback(0, TIMED_OUT), *torchrun_end(0, 1)])
    assert short(answer) == ("J078", "transient-software", "named-rank", [1])
    assert (answer["waiting"], answer["missing"], answer["cascade"]) == ([0], [1], True)
    assert answer["confidence"] <= 0.5


def test_a_segmentation_fault():
    log = [*started(), *steps(1, 5), *torchrun_end(1, -11, "Signal 11 (SIGSEGV) received by PID 71")]
    assert short(read(log)) == ("J066", "transient-software", "emitter", [1])


def test_an_exit_code_decides_where_no_line_does():
    answer = read([*started(), *steps(1, 5), *traceback(0, CLOSED), *torchrun_end(1, 3)])
    assert short(answer) == ("exit3", "user-code", "none", [])
    assert (answer["firstFailing"], answer["exitCode"]) == (1, 3)
    assert read([*started(), *traceback(0, CLOSED), *torchrun_end(1, 16)])["class"] == "hardware"


@pytest.mark.parametrize(
    "code, cls",
    [
        (137, "transient-software"),
        (139, "transient-software"),
        (17, "user-code"),
        (201, "hardware"),
        (75, "transient-software"),
        (2, "user-code"),
        (0, "unknown"),
    ],
)
def test_exit_codes_of_the_scheduler(code, cls):
    answer = read(
        (0, "nothing here"), (1, "nor here"), exits=[{"rank": 1, "exitCode": code, "at": "2026-03-06T09:00:00Z"}]
    )
    assert answer["class"] == cls
    assert answer["exitCode"] == (code or None)


def test_waiting_is_no_guilt_and_the_desync_report_names_who_is():
    log = [*started(4), *steps(1, 9), *DESYNC, *(line for rank in range(3) for line in watchdog(rank, 183))]
    answer = read(log)
    assert short(answer) == ("J007", "transient-software", "named-rank", [3])
    assert (answer["waiting"], answer["firstFailing"], answer["confidence"]) == ([0, 1, 2], 3, 0.85)
    assert any("didn't join" in line["text"] for line in answer["lines"])


def test_an_exception_of_the_rank_that_the_report_names_is_the_cause():
    log = [*started(4), *DESYNC, *traceback(3, USER), *(line for rank in range(3) for line in watchdog(rank, 183))]
    answer = read(log)
    assert (answer["id"], answer["firstFailing"]) == ("J163", 3)


def test_ranks_that_never_joined():
    text = "\t - To our best knowledge, ranks [5] are the lagging ranks that caused this timeout. They never joined any collectives"
    assert short(read([*started(8), text, *watchdog(0), *watchdog(1)])) == (
        "N003",
        "transient-software",
        "named-rank",
        [5],
    )


def test_the_lowest_sequence_is_behind():
    log = [
        line
        for rank in range(8)
        for line in watchdog(rank, 1580 - (rank == 6), 1579 - (rank == 6), 1582 - 3 * (rank == 6))
    ]
    answer = read(log)
    assert short(answer) == ("J001", "transient-software", "named-rank", [6])
    assert answer["waiting"] == [0, 1, 2, 3, 4, 5, 7]


def test_ranks_that_came_equally_far_point_at_nobody():
    log = [line for rank in (0, 3, 4) for line in watchdog(rank, 1580, 1579, 1582)]
    answer = read(log)
    assert short(answer) == ("J001", "transient-software", "none", [])
    assert (answer["waiting"], answer["cascade"]) == ([0, 3, 4], True)


def test_the_rank_missing_from_511_reports():
    sources = [(rank, steps(1, 3) + (watchdog(rank) if rank != 77 else [])) for rank in range(512)]
    answer = read(*sources)
    assert short(answer) == ("J001", "transient-software", "named-rank", [77])
    assert answer["blame"]["pods"] == ["train-77"]
    assert (answer["missing"], len(answer["waiting"])) == ([77], 511)


def test_the_number_of_ranks_counts_where_a_log_holds_several():
    sources = [(rank, watchdog(rank) if rank != 2 else ["hello"]) for rank in range(4)]
    assert read(*sources, world=32)["blame"]["ranks"] == [2]
    together = [line for rank in range(7) for line in watchdog(rank)]
    assert read(together, world=8)["blame"]["ranks"] == [7]
    assert read(together)["blame"]["ranks"] == []


def test_the_hardware_error_of_one_rank_before_511_time_outs():
    sources = [
        (rank, steps(1, 3) + (traceback(None, ECC) if rank == 77 else []) + watchdog(rank)) for rank in range(512)
    ]
    answer = read(*sources)
    assert short(answer) == ("J043", "hardware", "emitter", [77])
    assert (answer["blame"]["pods"], answer["firstFailing"]) == (["train-77"], 77)
    assert 77 not in answer["waiting"]


def test_pods_of_several_ranks():
    def pod(first: int, *more: str, silent: int = -1) -> list[str]:
        ranks = range(first, first + 4)
        said = [line for rank in ranks if rank != silent for line in watchdog(rank)]
        return [*(f"[rank{rank}]: hello" for rank in ranks), *more, *said]

    answer = read((0, pod(0)), (1, pod(4, silent=6)))
    assert short(answer) == ("J001", "transient-software", "named-rank", [6])
    assert answer["blame"]["pods"] == ["train-1"]
    # without a label it may be any of the pod's ranks, and is none of those of the pod with that number
    answer = read((0, pod(0)), (1, pod(4, *traceback(None, ECC))))
    assert (answer["id"], answer["blame"]["ranks"], answer["blame"]["pods"]) == ("J043", [], ["train-1"])
    assert (answer["firstFailing"], answer["lines"][0]["pod"]) == (None, "train-1")
    ends = [
        {"rank": 1, "exitCode": 139, "at": "2026-03-06T09:00:00Z"},
        {"rank": 0, "exitCode": 134, "at": "2026-03-06T09:00:01Z"},
    ]
    answer = read((0, pod(0)), (1, [f"[rank{rank}]: hello" for rank in range(4, 8)]), exits=ends)
    assert (answer["id"], answer["blame"]["ranks"], answer["blame"]["pods"]) == ("exit139", [], ["train-1"])


def test_what_a_program_calls_itself_counts_before_the_number_of_its_pod():
    logs = {rank: [f"[rank{rank}]: hello", *traceback(None, CLOSED)] for rank in (0, 1, 3)}
    logs[2] = ["[rank2]: hello", *steps(1, 2)]
    answer = read(*[(8 * rank, logs[rank]) for rank in range(4)], world=32, exits=[{"rank": 16, "exitCode": 139}])
    assert (answer["id"], answer["blame"]["ranks"], answer["blame"]["pods"]) == ("exit139", [2], ["train-16"])
    assert (answer["waiting"], answer["missing"]) == ([0, 1, 3], [2])


def test_numbers_before_colons_are_no_ranks_where_ranks_are_named():
    answer = read([*started(2), "7: a list of things", "8: goes on", *watchdog(0), *watchdog(1)])
    assert (answer["blame"]["kind"], answer["missing"]) == ("none", [])
    labelled = [f"{rank}: {line}" for rank in range(4) for line in ["hello", *([CLOSED] if rank != 2 else [])]]
    assert read(labelled)["missing"] == [2]


def test_what_every_rank_prints_points_at_no_node():
    oom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 55.88 GiB. GPU 0 has a total capacity of 79.1 GiB"
    everywhere = read(*[(rank, traceback(None, oom)) for rank in range(8)])
    one = read(*[(rank, traceback(None, oom) if rank == 3 else traceback(None, CLOSED)) for rank in range(8)])
    assert short(everywhere) == ("J052", "user-code", "none", [])
    assert short(one) == ("J052", "user-code", "emitter", [3])


def test_lines_of_a_pair_do_not_name_who_prints_them_alone():
    lost = "gpu-51:73076:73185 [4] transport/net_ib.cc:1238 NCCL WARN NET/IB : Got completion from peer gpu-48<37948> with error 12, opcode 2, len 1, vendor err 129"
    answer = read([lost])
    assert answer["blame"] == {"kind": "pair", "ranks": [], "hosts": ["gpu-48", "gpu-51"], "pods": [], "devices": []}
    port = "gpu-48:34050:34121 [0] transport/net_ib.cc:93 NCCL WARN NET/IB : Got async event : port error"
    answer = read([*steps(1, 3), port, port, lost])
    assert (answer["id"], answer["blame"]["kind"], answer["blame"]["hosts"]) == ("J017", "emitter", ["gpu-48"])


def test_a_named_peer_is_not_who_prints_it():
    text = "gpu-1:5:6 [0] include/socket.h:403 NCCL WARN Connect to gpu-7<56821> failed : Connection refused"
    answer = read([text])
    assert (answer["blame"]["kind"], answer["blame"]["hosts"], answer["firstFailing"]) == ("peer", ["gpu-7"], None)


def test_failures_that_the_job_survived_do_not_decide():
    log = [*started(), *steps(1, 3), *traceback(0, "ImportError: no fast attention"), *steps(4, 40), *watchdog(0)]
    answer = read(log)
    assert answer["id"] == "J001"
    assert {"id": "J163", "rank": 0, "count": 1} in answer["others"]


def test_only_the_last_attempt_counts():
    slurm = "slurmstepd-gpu1: error: *** JOB 1 ON gpu1 CANCELLED AT 2026-03-06T09:00:00 DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***"
    log = ["start restart=0 nodes=gpu[1-2]", *steps(1, 30), slurm, "start restart=1 nodes=gpu[3-4]", *steps(20, 25)]
    answer = read([*log, *traceback(None, USER)])
    assert (answer["id"], answer["attempts"], answer["progress"]["firstStep"]) == ("J163", 2, 20)
    answer = read(log[:32])
    assert (answer["id"], answer["blame"]["hosts"], answer["attempts"]) == ("J118", ["gpu1"], 1)


def test_ranks_and_launchers_that_begin_together_are_one_attempt():
    assert read([*started(4), *started(4), *steps(1, 3)])["attempts"] == 1


def test_a_launchers_own_restarts():
    once = [*steps(1, 5), *traceback(1, USER), *traceback(0, CLOSED), *torchrun_end(1, 1)[:2]]
    answer = read([*started(), *once, *once, *once, *torchrun_end(1, 1)[2:]])
    assert (answer["id"], answer["attempts"], answer["progress"]["lastStep"]) == ("J163", 3, 5)


def test_a_restart_that_came_to_nothing_is_the_failure_before_it():
    gloo = [
        *traceback(None, "RuntimeError: Gloo connectFullMesh failed with [pair.cc:144] no error"),
        *torchrun_end(1, 1)[:2],
    ]
    once = [*steps(1, 5), *traceback(1, USER), *traceback(0, CLOSED), *torchrun_end(1, 1)[:2]]
    answer = read([*started(), *once, *gloo, *gloo, *torchrun_end(1, 1)[2:]])
    assert (answer["id"], answer["attempts"]) == ("J163", 3)


@pytest.mark.parametrize(
    "lines, expected",
    [
        (
            ["srun: error: gpu2: task 1: Segmentation fault (core dumped)", "srun: error: gpu1: task 0: Terminated"],
            ("J122", ["gpu2"]),
        ),
        (
            [
                "srun: error: gpu2: task 1: Killed",
                "slurmstepd-gpu1: error: *** STEP 2.0 ON gpu1 CANCELLED AT 2026-03-06T15:27:48 ***",
                "srun: error: gpu1: task 0: Terminated",
            ],
            ("J123", ["gpu2"]),
        ),
        (
            [
                "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.",
                "slurmstepd-gpu4: error: *** STEP 6.0 ON gpu4 CANCELLED AT 2026-03-06T15:24:27 ***",
                "slurmstepd-gpu4: error: *** JOB 6 ON gpu4 CANCELLED AT 2026-03-06T15:24:27 ***",
                "srun: error: gpu4: task 0: Terminated",
            ],
            ("J159", []),
        ),
        (
            ["slurmstepd-gpu1: error: *** JOB 5 ON gpu1 CANCELLED AT 2026-03-06T15:25:30 DUE TO TIME LIMIT ***"],
            ("J116", []),
        ),
        (["srun: error: Node failure on gpu3", "srun: error: gpu1: task 0: Terminated"], ("J119", ["gpu3"])),
        (
            [
                "ORTE has lost communication with a remote daemon.",
                "HNP daemon   : [[11377,0],0] on node launcher",
                "  Remote daemon: [[11377,0],1] on node worker-0",
            ],
            ("J155", ["worker-0"]),
        ),
        (
            ["mpirun noticed that process rank 3 with PID 771 on node worker-1 exited on signal 9 (Killed)."],
            ("S011", ["worker-1"]),
        ),
    ],
)
def test_what_schedulers_and_launchers_say(lines, expected):
    answer = read(lines)
    assert (answer["id"], answer["blame"]["hosts"]) == expected


def test_a_launcher_that_was_asked_to_end_is_a_preemption_unless_it_failed_before():
    ended = [
        "W0306 09:37:53.7 700 torch/distributed/elastic/agent/server/api.py:719] Received 15 death signal, shutting down workers"
    ]
    assert read([*steps(1, 3), *ended])["class"] == "preemption"
    assert read([*steps(1, 3), *watchdog(0), *ended])["id"] == "J001"
    assert read([*steps(1, 3), *traceback(1, USER), *ended])["id"] == "J163"


def test_advice_is_not_evidence():
    text = (
        "CUDA kernel errors might be asynchronously reported at some other API call, such as CUDA error: out of memory"
    )
    answer = read([text, "This may be caused by NVML_ERROR_GPU_IS_LOST or No space left on device"])
    assert (answer["id"], answer["class"], answer["confidence"]) == ("", "unknown", 0.0)


@pytest.mark.parametrize(
    "prefix",
    [
        "[rank3]: ",
        "[rank3]:[E306 09:10:00.408271257 ProcessGroupNCCL.cpp:607] ",
        "3: ",
        "[1,3]<stderr>:",
        "2026-03-06T09:34:56.123456Z [1,3]<stdout>:",
        "2026-03-06T09:34:56.123456789Z stderr F [rank3]: ",
        "(RayWorkerWrapper pid=4009) [rank3]:",
        "(RayWorkerWrapper pid=4009, ip=192.0.2.9) [rank3]: ",
        "\x1b[36m(Worker pid=7)\x1b[0m [rank3]: ",
        "[default3]:[rank3]: ",
        "2026-03-06 09:34:56,123 - ERROR - [rank3]: ",
        "[2026-03-06 09:34:56] [rank3]:",
        "worker-1: [rank3]: ",
        "[pod/train-1/main] [rank3]: ",
        "Mar  6 09:34:56 gpu-7 python3[71]: [rank3]: ",
        "12083 [rank 3] ",
    ],
)
@pytest.mark.parametrize("error, expected", [(ECC, "J043"), (USER, "J163"), ("KeyError: 'optimizer'", "J088")])
def test_prefixes(prefix, error, expected):
    answer = read([f"{prefix}{error}"])
    assert (answer["id"], answer["firstFailing"]) == (expected, 3)


def test_a_failure_after_a_progress_bar_that_did_not_end_its_line():
    bar = "  1%|# | 24/1752 [01:08<1:22:56,  2.88s/it]"
    answer = read(["\r".join([bar, bar + watchdog(5)[0]]), bar + "Traceback (most recent call last):", USER])
    assert (answer["id"], answer["waiting"], answer["progress"]["lastStep"]) == ("J163", [5], 24)


def test_the_number_in_a_group_is_not_the_rank():
    text = "[rank4]:[E306 09:10:00.1 ProcessGroupNCCL.cpp:1316] [PG 5 Rank 0] Timeout at NCCL work: 7, last enqueued NCCL work: 7, last completed NCCL work: 6."
    assert read([text])["waiting"] == [4]
    text = "[rank4]:[E306 09:10:00.1 ProcessGroupNCCL.cpp:616] [Rank 0] " + watchdog(0)[0].partition("[Rank 0] ")[2]
    assert read([text])["waiting"] == [4]


def test_who_is_told_that_others_wait_may_be_what_they_wait_for():
    dump = (
        "[rank2]:[E306 09:10:00.1 ProcessGroupNCCL.cpp:1484] [PG ID 0 PG GUID 0(default_pg) Rank 2] Received a dump signal due to "
        "a collective timeout from rank 0 and we will try our best to dump the debug info. Last enqueued NCCL work: 1570, last "
        "completed NCCL work: 1570."
    )
    log = [*started(4), *(line for rank in (0, 1, 3) for line in watchdog(rank, 1580, 1579, 1582)), dump]
    answer = read(log)
    assert short(answer) == ("J001", "transient-software", "named-rank", [2])
    assert answer["waiting"] == [0, 1, 3]


def test_local_ranks_of_a_single_log_are_ranks():
    assert read([f"[default3]:{ECC}"])["firstFailing"] == 3


@pytest.mark.parametrize("form", [str, bytes, list, "file", "gzip", "crlf", "split", "pieces", "chunks"])
def test_forms_of_logs(form, tmp_path):
    lines = [*started(), *steps(1, 5), *traceback(1, USER), *traceback(0, CLOSED)]
    text = "\n".join(lines)
    expected = read(text)
    assert expected["id"] == "J163"
    data = text.encode()
    path = tmp_path / "log"
    path.write_bytes(data)
    given = {
        str: text,
        bytes: data,
        list: lines,
        "file": lambda: path.open("rb"),
        "gzip": gzip.compress(data[:500]) + gzip.compress(data[500:]),
        "crlf": text.replace("\n", "\r\n"),
        "split": iter([line + "\n" for line in lines]),
        "pieces": (data[start : start + 333] for start in range(0, len(data), 333)),
        "chunks": [gzip.compress(data)[start : start + 7] for start in range(0, len(gzip.compress(data)), 7)],
    }[form]
    assert read(given) == expected


def test_progress_bars_huge_lines_and_bytes_that_are_no_text():
    bar = "\r".join(f"Epoch 0: 10%|# | {step}/400 [00:05<00:45, 2.00it/s]" for step in range(1, 41))
    log = b"\n".join([bar.encode(), b"x" * 5_000_000, b"\xff\xfe\x00 \x1b[31m", f"[rank1]: {USER}".encode()])
    answer = read(log)
    assert (answer["id"], answer["firstFailing"], answer["lines"][0]["number"]) == ("J163", 1, 4)
    assert (answer["progress"]["lastStep"], answer["progress"]["stepSeconds"]) == (40, 0.5)


def test_damaged_gzip_is_read_as_far_as_it_goes():
    random.seed(1)
    data = gzip.compress(f"{ECC}\n".encode() + bytes(random.randbytes(200_000)))
    assert read(data[:150_000])["id"] == "J043"
    assert read(b"\x1f\x8bjunk")["id"] == ""


def test_times_order_the_failures_of_several_logs():
    def log(second: int, error: str) -> list[str]:
        return [f"2026-03-06T09:34:{second:02d}.5Z {line}" for line in traceback(None, error)]

    answer = read((0, log(20, "KeyError: 'a'")), (1, log(10, "OSError: [Errno 28] No space left on device")))
    assert (answer["id"], answer["firstFailing"]) == ("J093", 1)
    answer = read((0, log(5, "KeyError: 'a'")), (1, log(10, "OSError: [Errno 28] No space left on device")))
    assert (answer["id"], answer["firstFailing"]) == ("J088", 0)
    stamped = [f"2026-03-06T09:34:{number:02d}Z {line}" for number, line in enumerate(steps(1, 9))]
    assert read((0, stamped))["progress"]["lastStepAt"] == "2026-03-06T09:34:08Z"


def test_secrets_do_not_leave_the_log():
    lines = [
        "ValueError: login failed with password=hunter2 and HF_TOKEN=hf_abcdefghijklmnopqrstuv",
        "ValueError: cannot push to https://me:s3cr3tpw@git.example/x with Bearer abcdefghijklmnop123",
        "ValueError: AWS_SECRET_ACCESS_KEY='abc/def' key AKIAABCDEFGHIJKLMNOP",
    ]
    for line in lines:
        answer = read(traceback(1, line))
        kept = str(answer)
        assert answer["id"] == "J163"
        for secret in ("hunter2", "hf_abc", "s3cr3tpw", "abcdefghijklmnop123", "abc/def", "AKIAABC"):
            assert secret not in kept
    assert len(read(["ValueError: " + "x" * 5000])["lines"][0]["text"]) <= 300


@pytest.mark.parametrize(
    "line",
    [
        '  File "train.py", line {}, in main',
        "[rank{}]: RuntimeError: bad",
        "iteration {} / 10 | loss 1.0",
        "world_size={} rank=1",
        "exitcode  : {} (pid: 1)",
    ],
)
def test_a_number_without_end_is_no_traceback(line):
    log = ["Traceback (most recent call last):", line.format("9" * 5000), "ValueError: bad sample"]
    assert read(log)["class"] == "user-code"
