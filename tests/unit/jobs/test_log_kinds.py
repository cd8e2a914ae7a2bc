# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# ruff: noqa: E501
"""Kinds of logs beyond torchrun and NCCL: what they failed of, and that nobody healthy is named."""

from __future__ import annotations

import pytest

from tests.unit.jobs.joblogs import read, traceback

UCX = "[{host}:510{n}:0:510{n}] ib_mlx5_log.c:177  Transport retry count exceeded on mlx5_2:1/IB (synd 0x15 vend 0x81 hw_synd 0/0)"
FABRIC = "libfabric:99:17300::efa:cq:efa_rdm_txe_handle_error():737<warn> err: 15, message: Unresponsive receiver My EFA addr: fi_a My host id: i-0a Peer EFA addr: fi_b Peer host id: i-0b (7)"
PYXIS = [
    "slurmstepd: error: pyxis: container start failed with error code: 1",
    "slurmstepd: error: pyxis: printing enroot log file:",
]


def named(answer: dict) -> tuple:
    return answer["class"], answer["blame"]["kind"], answer["blame"]["ranks"], answer["blame"]["hosts"]


KINDS = {
    "both ends of a libfabric connection": ([FABRIC], ("network", "pair", [], ["i-0a", "i-0b"])),
    "UCX names the end that prints": ([UCX.format(host="n7", n=1)], ("network", "pair", [], ["n7"])),
    "UCX of two hosts: the end they have in common is not named": (
        [UCX.format(host="n7", n=1), UCX.format(host="n8", n=2)],
        ("network", "none", [], []),
    ),
    "adapters that cannot be set up": (
        ["n4:51:62 [3] create_component:459 NCCL WARN NET/OFI Couldn't open AV. RC: -22, ERROR: Invalid argument"],
        ("network", "none", [], []),
    ),
    "a task whose heartbeat is missed": (
        [
            "2026-03-06 09:00:01.1: E coordination_service.cc:954] /job:w/replica:0/task:5 has been set to ERROR: UNAVAILABLE: Task /job:w/replica:0/task:5 heartbeat timeout. This indicates"
        ],
        ("transient-software", "named-rank", [5], []),
    ),
    "tasks that did not come, on the lines after": (
        [
            "DEADLINE_EXCEEDED: Barrier timed out. Id: init::0. Look at the task logs (both timed out and first task).",
            "The first task at the barrier: /job:w/replica:0/task:0. Some timed out task names:",
            "/job:w/replica:0/task:3",
        ],
        ("transient-software", "named-rank", [3], []),
    ),
    "the first at a barrier waited": (
        ["DEADLINE_EXCEEDED: Barrier timed out. Id: init::0. The first task at the barrier: /job:w/replica:0/task:0."],
        ("transient-software", "none", [], []),
    ),
    "a node that Ray lost": (
        [
            "The node with node id: 77 and address: 192.0.2.9 and node name: 192.0.2.9 has been marked dead because the detector has missed too many heartbeats from it."
        ],
        ("hardware", "named-node", [], ["192.0.2.9"]),
    ),
    "the address of a worker that Ray lost": (
        [
            "(raylet) A worker died or was killed. Worker IP address: 192.0.2.8 Worker port: 10 Worker exit type: SYSTEM_ERROR Worker exit detail: Worker unexpectedly exits with a connection error code 2."
        ],
        ("transient-software", "emitter", [], ["192.0.2.8"]),
    ),
    "the host of the store, which a line of another component names": (
        [
            "[E socket.cpp:860] [c10d] The client socket has timed out after 60s while trying to connect to n1:29400",
            "torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection to the C10d store has failed.",
        ],
        ("network", "store-host", [], ["n1"]),
    ),
    "a rank that waits for a peer of another vendor's library": (
        [
            "[rank1]: RuntimeError: OPS function error: HcclAllreduce, error code is 6",
            "[rank1]: Getting socket times out. Reason: Remote Rank did not send the data in time.",
        ],
        ("transient-software", "none", [], []),
    ),
    "memory that is not mapped: a GPU's number is no node": (
        [
            "Memory access fault by GPU node-2 (Agent handle: 0x55) on address 0x7f. Reason: Page not present or supervisor privilege."
        ],
        ("user-code", "emitter", [], []),
    ),
    "the driver, on the line after the runtime's": (
        [
            "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed",
            "nvidia-container-cli: initialization error: nvml error: driver/library version mismatch: unknown",
        ],
        ("hardware", "emitter", [], []),
    ),
    "a mount that the job asks for": (
        [
            *PYXIS,
            "slurmstepd: error: pyxis:     enroot-mount: failed to mount: /data/set at /tmp/e/data: Permission denied",
            "srun: error: n0: task 0: Exited with exit code 1",
        ],
        ("user-code", "none", [], []),
    ),
    "a container that starts on none of the nodes": (
        [
            *PYXIS,
            *PYXIS,
            "srun: error: n0: task 0: Exited with exit code 1",
            "srun: error: n1: task 1: Exited with exit code 1",
        ],
        ("transient-software", "emitter", [], []),
    ),
    "a program told of its preemption": (
        [
            "submitit WARNING (2026-03-06 09:00:01,453) - Caught signal SIGUSR2 on n3: this job is preempted.",
            "srun: error: n3: tasks 2-3: Exited with exit code 1",
        ],
        ("preemption", "none", [], []),
    ),
    "a requeue, whatever its processes return": (
        [
            "slurmstepd: error: *** JOB 7 ON n3 CANCELLED AT 2026-03-06T09:00:02 DUE TO JOB REQUEUE ***",
            "srun: error: n3: tasks 2-3: Exited with exit code 1",
        ],
        ("transient-software", "none", [], []),
    ),
    "what teardown text quotes on its own line": (
        [
            "Some NCCL operations have failed or timed out. what(): NCCL error: remote process exited or there was a network error. Last error: NET/IB : Got completion from peer 192.0.2.7<39138> with error 12, opcode 0, len 0, vendor err 129"
        ],
        ("network", "pair", [], ["192.0.2.7"]),
    ),
    "an error of NCCL's that CUDA describes": (
        ["n2:51:62 [0] include/alloc.h:112 NCCL WARN Cuda failure 700 'an illegal memory access was encountered'"],
        ("user-code", "emitter", [], ["n2"]),
    ),
    "a process of spawn's that was killed": (
        [
            *traceback(
                None, "torch.multiprocessing.spawn.ProcessExitedException: process 3 terminated with signal SIGKILL"
            )
        ],
        ("transient-software", "emitter", [3], []),
    ),
    "what wraps another process's exception is not the cause": (
        [
            *traceback(None, "torch.multiprocessing.spawn.ProcessRaisedException: "),
            "-- Process 1 terminated with the following error:",
            *traceback(
                None,
                "torch.distributed.DistBackendError: NCCL error in: a.cpp:7, remote process exited or there was a network error",
            ),
        ],
        ("network", "none", [], []),
    ),
    "ranks that are ready wait": (
        [
            "One or more tensors were submitted to be reduced, gathered or broadcasted by subset of ranks and are waiting. Stalled ops: loss [ready ranks: 3], grad [ready ranks: 0, 1]"
        ],
        ("transient-software", "none", [], []),
    ),
    "a device that the driver lost": (
        [*traceback(2, "RuntimeError: level_zero backend failed with error: 20 (UR_RESULT_ERROR_DEVICE_LOST)")],
        ("hardware", "emitter", [2], []),
    ),
    "a process that the shell saw killed": (
        ["/job/run.sh: line 28:  8156 Killed                  python3 train.py"],
        ("transient-software", "emitter", [], []),
    ),
    "a full /dev/shm, by the shell": (
        ["/job/run.sh: line 28:    57 Bus error               (core dumped) python3 train.py"],
        ("user-code", "emitter", [], []),
    ),
    "a node that refuses the launch": (
        ["srun: error: Task launch for StepId=7.0 failed on node gpu-4: Communication connection failure"],
        ("transient-software", "named-node", [], ["gpu-4"]),
    ),
    "asked to end": (
        ["*** SIGTERM received by PID 16 (TID 16) on cpu 20 from PID 1; stack trace: ***"],
        ("preemption", "none", [], []),
    ),
    "asked to end since another was killed": (
        [
            "W0306 09:10:00.1 7 torch/distributed/elastic/multiprocessing/api.py:900] Sending process 71 closing signal SIGTERM",
            "[rank: 1] Received SIGTERM: 15",
            "E0306 09:10:00.2 7 torch/distributed/elastic/multiprocessing/api.py:874] failed (exitcode: -9) local_rank: 0 (pid: 70) of binary: python3",
        ],
        ("transient-software", "emitter", [0], []),
    ),
    "one rank given to two processes": (
        ["n4:51:62 [0] bootstrap.cc:131 NCCL WARN Bootstrap Root : rank 1 of 8 ranks has already checked in"],
        ("user-code", "none", [], []),
    ),
    "a link that is down for good, and GPUs that lost their work over it": (
        [
            "kernel: NVRM: Xid (PCI:0000:dc:00): 45, pid=18, name=python3, Ch 00000001 caused by previous Xid 149",
            "kernel: NVRM: Xid (PCI:0000:ed:00): 45, pid=19, name=python3, Ch 0000000c caused by previous Xid 145",
        ],
        ("hardware", "none", [], []),
    ),
    "a link that went on": (
        ["NVRM: Xid (PCI:0018:01:00): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0409a0c2 0x00000008)"],
        ("unknown", "none", [], []),
    ),
    "memory that failed under one program": (
        ["NVRM: Xid (PCI:0000:9b:00): 94, pid=1234, name=python3, Contained ECC error"],
        ("hardware", "emitter", [], []),
    ),
    "channels of programs that ended": (
        [
            "NVRM: Xid (PCI:0000:cb:00): 45, pid=17, name=pt_main_thread, Ch 00000008",
            *traceback(3, "IndexError: list index out of range"),
        ],
        ("user-code", "none", [], []),
    ),
    "what may not be read": (
        [
            "botocore.exceptions.ClientError: An error occurred (AccessDenied) when calling the GetObject operation: Access Denied"
        ],
        ("user-code", "none", [], []),
    ),
    "a service that asks for less": (
        [
            "OSError: When completing multiple part upload: AWS Error SLOW_DOWN during CompleteMultipartUpload operation: Please reduce your request rate."
        ],
        ("storage", "none", [], []),
    ),
    "a GPU's processor that does not answer": (
        ["[   84.300490] NVRM: GPU6 _kgspLogRpcTimeout: **** GSP Timeout ****"],
        ("hardware", "emitter", [], []),
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_kind(kind):
    log, expected = KINDS[kind]
    assert named(read(log)) == expected


def test_an_unreachable_service_that_was_only_warned_of_is_not_the_cause():
    warned = "WARNING: HTTPSConnectionPool(host='hub.example', port=443): Max retries exceeded with url: /a, retrying"
    assert read([warned, *traceback(2, "KeyError: 'text'")])["class"] == "user-code"
    assert read([*traceback(None, warned.removeprefix("WARNING: "))])["class"] == "storage"
    late = "[rank1]:[E626 06:24:44.9 ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=8, OpType=ALLREDUCE) ran for 600020 milliseconds before timing out."
    assert read([warned, late])["id"] == "J001"


def test_a_backend_that_was_only_tried_is_not_the_cause():
    tried = "INFO:jax._src.xla_bridge:Unable to initialize backend 'tpu': INTERNAL: Failed to open libtpu.so"
    assert read([tried])["class"] == "unknown"
    assert read([f"RuntimeError: {tried.partition(':')[2].partition(':')[2]}"])["class"] == "hardware"


def test_several_that_lost_one_name_the_one():
    lost = "{host}:51:62 [3] NCCL WARN NET/IB : Got completion from peer 192.0.2.7<4{n}862> with status=12 opcode=0 len=0 vendor err 129 (Recv)"
    one = read([lost.format(host="n1", n=1)])["blame"]["hosts"]
    assert one == ["192.0.2.7", "n1"]
    assert read([lost.format(host=f"n{n}", n=n) for n in (1, 2, 3)])["blame"]["hosts"] == ["192.0.2.7"]


def test_survivors_that_only_say_that_the_store_is_gone_are_not_missing():
    gone = '[rank{n}]:[W318 10:00:41.9 ProcessGroupNCCL.cpp:1771] [PG ID 0 PG GUID 0 Rank {n}] Failed to check the "should dump" flag on TCPStore, with error: Connection reset by peer'
    closed = "[rank{n}]: RuntimeError: [/gloo/transport/tcp/pair.cc:534] Connection closed by peer [192.0.2.1]:20117"
    for log in ([gone.format(n=0), closed.format(n=1)], [gone.format(n=8), closed.format(n=12)]):
        assert named(read(log))[1:] == ("none", [], [])


def test_ranks_of_which_nothing_is_known_leave_open_who_is_missing():
    waits = "[rank{n}]: RuntimeError: [/gloo/transport/tcp/pair.cc:534] Connection closed by peer [192.0.2.1]:20117"
    label = "[rank{n}]: ready"
    full = [label.format(n=n) for n in range(4)] + [waits.format(n=n) for n in (0, 1, 3)]
    assert read(full)["blame"]["ranks"] == [2]
    part = [label.format(n=n) for n in range(8, 12)] + [waits.format(n=n) for n in (8, 9, 11)]
    assert read(part)["blame"]["ranks"] == []


def test_a_keep_alive_that_failed_is_not_the_cause():
    late = "The node 'n7_187_0' has failed to send a keep-alive heartbeat to the rendezvous 'none' due to an error of type RendezvousConnectionError."
    assert (read(late)["id"], read(late)["cascade"]) == ("S026", True)
