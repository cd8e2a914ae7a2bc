# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines of nccl-tests, NCCL, its launchers and PyTorch that say what went wrong, anywhere in a line.

Each gives {code, message, severity, scope, host, entity, category}. Who reports a lost peer is not the one that was
lost, so such findings name the peer where the line does.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers.outcome import (
    CONFIGURATION,
    FABRIC_MESSAGE,
    HARDWARE,
    INFRASTRUCTURE,
    TOOL,
    UNKNOWN,
    fabric_manager_down,
)

_NAME = r"[A-Za-z0-9][\w.-]{0,250}"
# "node-a: Test NCCL failure common.cu:392 'unhandled cuda error / '"
_TEST = re.compile(
    rf"(?:(?P<host>{_NAME}): )?(?:Test )?(?P<kind>CUDA|Cuda|HIP|NCCL|RCCL) failure:? (?P<at>[\w.-]{{1,80}}:\d{{1,6}})"
    r"(?: '?(?P<said>[^']{0,400}))?"
)
_TRACE = re.compile(rf"\.\. (?P<host>{_NAME}) pid ?(?P<pid>\d{{0,10}}): Test failure (?P<at>[\w.-]{{1,80}}:\d{{1,6}})")

_BARE_TRACE = re.compile(r"(?P<host>[\w.-]{1,100}) pid ?:? ?Test failure (?P<at>[\w.-]{1,80}:\d{1,6})")


class Fault(NamedTuple):
    """`scope` and `category` as in `outcome`."""

    code: str
    message: str
    severity: str = "error"
    scope: str = "run"
    category: str = UNKNOWN
    host: str | None = None
    entity: str | None = None


class _Rule(NamedTuple):
    needle: str  # in lower case; what the line must hold before the pattern is tried
    pattern: re.Pattern[str]
    fault: Fault


def _rule(needle: str, pattern: str, code: str, message: str, scope="run", category=UNKNOWN, severity="error") -> _Rule:
    compiled = re.compile(pattern.replace("HOST", rf"(?P<host>{_NAME})"), re.IGNORECASE)
    return _Rule(needle.lower(), compiled, Fault(code, message, severity, scope, category))


# what CUDA and NCCL answered: (words in the answer, code, scope, category, message)
_ANSWERS = (
    (
        "out of memory",
        "out-of-gpu-memory",
        "node",
        UNKNOWN,
        "A GPU had no memory left: another process holds it, or the sizes are too big",
    ),
    ("uncorrectable ecc", "gpu-ecc-error", "gpu", HARDWARE, "A GPU met a memory error that cannot be corrected"),
    ("nvlink error", "gpu-nvlink-error", "gpu", HARDWARE, "A GPU met an error on NVLink that cannot be corrected"),
    ("fallen off", "gpu-lost", "gpu", HARDWARE, "A GPU is lost"),
    ("gpu is lost", "gpu-lost", "gpu", HARDWARE, "A GPU is lost"),
    ("hardware stack error", "gpu-fault", "gpu", HARDWARE, "A GPU met a hardware error"),
    ("no cuda-capable device", "no-gpu", "node", INFRASTRUCTURE, "CUDA sees no GPU on this node"),
    ("no hip-capable device", "no-gpu", "node", INFRASTRUCTURE, "HIP sees no GPU on this node"),
    (
        "driver version is insufficient",
        "driver-too-old",
        "node",
        CONFIGURATION,
        "The GPU driver is too old for the test's CUDA",
    ),
    (
        "unsupported display driver",
        "driver-mismatch",
        "node",
        CONFIGURATION,
        "The driver's parts and CUDA do not fit together",
    ),
    ("busy or unavailable", "gpu-busy", "node", CONFIGURATION, "A GPU is held by another process"),
    ("invalid device ordinal", "invalid-gpu-count", "run", CONFIGURATION, "More GPUs were asked for than there are"),
    ("no kernel image", "wrong-architecture", "run", TOOL, "The test was built for other GPUs than these"),
    ("device function", "wrong-architecture", "run", TOOL, "The test was built for other GPUs than these"),
    ("illegal memory access", "illegal-memory-access", "gpu", UNKNOWN, "A GPU stopped at an illegal memory access"),
    (
        "unspecified launch failure",
        "launch-failure",
        "gpu",
        UNKNOWN,
        "A GPU stopped with an unspecified launch failure",
    ),
    ("launch timed out", "launch-timeout", "gpu", UNKNOWN, "A kernel on a GPU did not end in time"),
    (
        "remote process exited",
        "remote-process-exited",
        "run",
        INFRASTRUCTURE,
        "A remote process exited, or the network broke; the node that reports it is not the one that left",
    ),
    ("unhandled cuda error", "unhandled-cuda-error", "node", UNKNOWN, "NCCL met a CUDA error it does not handle"),
    (
        "unhandled system error",
        "unhandled-system-error",
        "node",
        INFRASTRUCTURE,
        "NCCL met a system error: network, shared memory or another process",
    ),
    ("internal error", "nccl-internal-error", "node", UNKNOWN, "NCCL met an internal error"),
    (
        "invalid usage",
        "nccl-invalid-usage",
        "run",
        CONFIGURATION,
        "NCCL was used in a way it refuses, such as two ranks on one GPU",
    ),
    ("invalid argument", "invalid-argument", "run", CONFIGURATION, "An argument was refused"),
    ("timeout", "nccl-timeout", "run", UNKNOWN, "A collective did not end in time"),
)

_RULES = (
    # nccl-tests
    _rule(
        "invalid number of gpus",
        r"Invalid number of GPUs: \d+ requested but only \d+ were found",
        "invalid-gpu-count",
        "More GPUs were asked for than there are: processes per node times GPUs per process must fit",
        category=CONFIGURATION,
    ),
    _rule(
        "invalid size specified",
        r"invalid size specified for '(?P<entity>\w{1,40})'",
        "invalid-argument",
        "A size on the command line is no size",
        category=CONFIGURATION,
    ),
    _rule(
        "option",
        r"(?:unrecognized|invalid|ambiguous) option|option requires an argument"
        r"|option '[^']{1,60}' (?:is ambiguous|requires)",
        "invalid-argument",
        "An option on the command line is unknown or incomplete",
        category=CONFIGURATION,
    ),
    _rule(
        "usage: ",
        r"\bUSAGE: (?P<entity>\w{1,60}_perf)",
        "invalid-argument",
        "The test printed how to use it instead of running",
        category=CONFIGURATION,
    ),
    _rule(
        "error while loading shared",
        r"error while loading shared libraries: (?P<entity>[^\s:]{1,100})",
        "library-missing",
        "A library of the test is missing where a process ran",
        category=TOOL,
    ),
    # PyTorch
    _rule(
        "watchdog caught collective",
        r"Watchdog caught collective operation timeout(?:.{0,200}?OpType=(?P<entity>\w{1,40}))?",
        "collective-timeout",
        "A collective did not end in time: a rank hangs, died or was never started",
    ),
    _rule(
        "watchdog",
        r"detected by watchdog at work|watchdog got stuck",
        "collective-aborted",
        "PyTorch gave up a collective that failed or did not end in time",
    ),
    _rule(
        "collective #",
        r"\[(?P<entity>[\d, ]{1,200}(?:\.\.\.)?)\] (?:finished collective|joined but didn't finish)",
        "lagging-rank",
        "Ranks did not come to, or not through, the collective the others wait in",
    ),
    _rule(
        "lagging ranks that caused",
        r"ranks \[(?P<entity>[\d, ]{1,200})\] are the lagging ranks",
        "lagging-rank",
        "Ranks never came to a collective",
    ),
    # Open MPI, PRRTE, MPICH
    _rule(
        "enough slots",
        r"There are not enough slots available in the system",
        "mpi-not-enough-slots",
        "mpirun was given fewer slots than processes: nothing ran",
        category=CONFIGURATION,
    ),
    _rule(
        "the ppr for",
        r"requested more processes than the ppr",
        "mpi-ppr-rejected",
        "mpirun refused the processes per node: nothing ran",
        category=CONFIGURATION,
    ),
    _rule(
        "no allocated resources",
        r"There are no allocated resources",
        "mpi-no-hosts",
        "mpirun has no hosts to run on",
        category=CONFIGURATION,
    ),
    _rule(
        "as root",
        r"has detected an attempt to run as root",
        "mpi-as-root",
        "mpirun refuses to run as root without --allow-run-as-root",
        category=CONFIGURATION,
    ),
    _rule(
        "unable to",
        r"(?:mpirun|mpiexec|prterun) was unable to (?:find|launch|access|start)"
        r"|could not access or execute an executable",
        "mpi-cannot-start",
        "mpirun could not start the test where it was to run",
        category=TOOL,
    ),
    _rule(
        "daemon",
        r"(?:ORTE|PRTE|PRRTE) (?:was unable to reliably start|has lost communication|daemon has unexpectedly failed)"
        r"|daemon has unexpectedly failed",
        "mpi-daemon-failed",
        "mpirun could not start or lost its daemon on a node",
        category=INFRASTRUCTURE,
    ),
    _rule(
        "floating point exception",
        r"(?P<entity>Floating point exception)",
        "killed-by-signal",
        "A process was ended by a signal: nccl-tests divides by zero where the least size exceeds the GPU's memory",
    ),
    _rule(
        "on signal",
        r"process rank (?P<entity>\d{1,9}) with PID \d{1,10} on node HOST exited on signal \d{1,3}",
        "killed-by-signal",
        "A process was ended by a signal",
        scope="node",
    ),
    _rule(
        "exited on signal",
        r"exited on signal (?P<entity>\d{1,3})",
        "killed-by-signal",
        "A process was ended by a signal",
    ),
    _rule(
        "non-zero status",
        r"one or more processes exited with non-zero status|returned\s*a non-zero exit code",
        "process-failed",
        "A process ended with an error, so that the launcher ended the others",
    ),
    _rule(
        "mpi_abort",
        r"MPI_ABORT was invoked on rank (?P<entity>\d{1,9})",
        "mpi-abort",
        "A process gave up and ended all others",
    ),
    _rule(
        "in comm",
        r"Abort\(\d{1,12}\) on node \d{1,9} \(rank (?P<entity>\d{1,9}) in comm",
        "mpi-abort",
        "A process gave up and ended all others",
    ),
    _rule(
        "bad termination",
        r"BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES",
        "process-failed",
        "A process ended with an error, so that the launcher ended the others",
    ),
    # ssh
    _rule(
        "ssh: connect to host",
        r"ssh: connect to host HOST port \d{1,5}: (?P<entity>.{1,60})",
        "ssh-failed",
        "A node could not be reached with ssh: no sshd there yet, or the network",
        scope="node",
        category=INFRASTRUCTURE,
    ),
    _rule(
        "could not resolve hostname",
        r"Could not resolve hostname HOST",
        "name-not-resolved",
        "A node's name could not be resolved",
        scope="node",
        category=INFRASTRUCTURE,
    ),
    _rule(
        "permission denied (",
        r"(?:HOST: )?Permission denied \((?:publickey|password|gssapi|keyboard)",
        "ssh-denied",
        "A node refused the ssh key",
        category=CONFIGURATION,
    ),
    _rule(
        "host key verification",
        r"Host key verification failed",
        "ssh-denied",
        "The ssh host key of a node is not known",
        category=CONFIGURATION,
    ),
    _rule(
        "sshd",
        r"sshd?: (?:command )?not found|exec: \"?(?:/usr/sbin/)?sshd\"?: ",
        "no-sshd",
        "A worker's image has no sshd",
        category=TOOL,
    ),
    # Slurm, kernel, shell
    _rule(
        "srun: error",
        r"srun: error: HOST: tasks? (?P<entity>[\d,\[\]-]{1,100}): "
        r"(?:Segmentation fault|Bus error|Killed|Aborted|Floating point)",
        "killed-by-signal",
        "A process was ended by a signal",
        scope="node",
    ),
    _rule(
        "srun: error",
        r"srun: error: HOST: tasks? (?P<entity>[\d,\[\]-]{1,100}): (?:Exited with exit code|Out Of Memory)",
        "process-failed",
        "A process ended with an error",
        scope="node",
    ),
    _rule(
        "srun: error",
        r"srun: error: (?:Unable to|Node failure|Invalid|Requested|Task launch|Timed out|Job step)",
        "launcher-failed",
        "Slurm could not run the test",
        category=INFRASTRUCTURE,
    ),
    _rule(
        "due to time limit",
        r"CANCELLED AT \S{1,40} DUE TO TIME LIMIT",
        "time-limit",
        "The job was ended at its time limit",
    ),
    _rule(
        "node failure",
        r"CANCELLED AT \S{1,40} DUE TO NODE FAILURE",
        "node-failure",
        "Slurm lost a node of the job",
        category=INFRASTRUCTURE,
    ),
    _rule(
        "oom", r"oom[-_ ]kill|\bOOM Killed\b", "out-of-memory", "A process was ended for lack of memory", scope="node"
    ),
    _rule(
        "core dumped",
        r"(?P<entity>Segmentation fault|Floating point exception|Aborted|Bus error|Illegal instruction)",
        "killed-by-signal",
        "A process was ended by a signal",
    ),
    _rule("caught signal", r"Caught signal (?P<entity>\d{1,3})", "killed-by-signal", "A process was ended by a signal"),
)

# warnings of NCCL itself
_WARNINGS = (
    _rule(
        "got completion",
        r"Got completion from peer (?P<peer>[^\s<]{1,100})(?:<\d{1,6}>)?.{0,80}?"
        r"(?:error|status)[= ](?P<entity>\w{1,60}(?:\(\d{1,4}\))?)(?:.{0,400} hca (?P<adapter>\S{1,60}))?",
        "network-error",
        "An operation to a peer failed on the network adapter",
        scope="pair",
        category=INFRASTRUCTURE,
    ),
    _rule(
        "got completion",
        r"Got completion with (?:error|status)[= ](?P<entity>\w{1,60}(?:\(\d{1,4}\))?)",
        "network-error",
        "An operation failed on the network adapter",
        scope="node",
        category=INFRASTRUCTURE,
    ),
    _rule(
        "with error",
        r"NET/\w{1,20}:? .{0,60}?(?:completed|CQE) with error(?:.{0,40}?Error: (?P<entity>\d{1,6}))?",
        "network-error",
        "An operation failed on the network adapter",
        scope="node",
        category=INFRASTRUCTURE,
    ),
    _rule(
        "async",
        r"Got async (?:fatal )?event ?: (?P<entity>.{1,60})",
        "network-port-event",
        "A network adapter reported an event",
        scope="node",
        category=INFRASTRUCTURE,
    ),
    _rule(
        "async",
        r"(?P<entity>[\w.:-]{1,60}) Got async (?:fatal )?event",
        "network-port-event",
        "A network adapter reported an event",
        scope="node",
        category=INFRASTRUCTURE,
    ),
    _rule(
        "closed by remote peer",
        r"Connection closed by remote peer (?P<peer>[^\s<]{1,250})",
        "connection-closed",
        "A peer closed its connection: look at that peer first",
        scope="pair",
        category=INFRASTRUCTURE,
    ),
    _rule(
        "connect",
        r"(?:connect(?:ion)? to|socketStartConnect: Connect to) (?P<peer>[^\s<]{1,250})"
        r"(?:<\d{1,6}>)? .{0,40}?(?:failed|refused|timed out)",
        "connection-failed",
        "A peer cannot be reached",
        scope="pair",
        category=INFRASTRUCTURE,
    ),
    _rule(
        "call to ibv_",
        r"Call to (?P<entity>ibv_\w{1,60}) failed",
        "network-setup-failed",
        "The network adapter could not be set up",
        scope="node",
        category=INFRASTRUCTURE,
    ),
    _rule(
        "imex",
        r"\bIMEX\b",
        "imex-unavailable",
        "The service that joins the NVLink domain (nvidia-imex) does not do so on this node",
        scope="service",
        category=INFRASTRUCTURE,
    ),
    _rule(
        "duplicate gpu",
        r"Duplicate GPU detected",
        "duplicate-gpu",
        "Two ranks were put on the same GPU",
        category=CONFIGURATION,
    ),
    _rule(
        "mismatch",
        r"(?P<entity>version mismatch|Mismatched|mismatch between)",
        "version-mismatch",
        "The processes do not run the same software",
        category=CONFIGURATION,
    ),
    _rule(
        "shared memory",
        r"(?:while creating|Error.{0,40}) shared memory|/dev/shm",
        "shared-memory-failed",
        "Shared memory could not be had: /dev/shm is too small",
        scope="node",
        category=CONFIGURATION,
    ),
)


def of_line(text: str) -> Fault | None:
    """What the line says went wrong, if it does. `Test failure` lines of a call stack are none, see `trace`."""
    if "failure" in text:
        match = _TEST.search(text)
        if match:
            return _answer(match["said"] or "", match["host"], match["kind"])
    lowered = text.lower()
    for rule in _RULES:
        if rule.needle in lowered:
            match = rule.pattern.search(text)
            if match:
                groups = match.groupdict()
                return rule.fault._replace(host=groups.get("host"), entity=_short(groups.get("entity")))
    return None


def trace(text: str) -> tuple[str, str] | None:
    """(host, place) of a line of the call stack that a failing process prints."""
    if "Test failure" not in text:
        return None
    match = _TRACE.search(text) or _BARE_TRACE.search(text)
    return (match["host"], match["at"]) if match else None


def of_warning(host: str | None, device: str | None, message: str) -> Fault:
    """What a line of NCCL's own log at level WARN means."""
    lowered = message.lower()
    if fabric_manager_down(message):
        return _answer(message, host, "CUDA")
    for rule in _WARNINGS:
        if rule.needle in lowered:
            match = rule.pattern.search(message)
            if match:
                groups = match.groupdict()
                entity = " ".join(filter(None, (groups.get("peer"), groups.get("adapter"), groups.get("entity"))))
                return rule.fault._replace(host=host or None, entity=_short(entity))
    failure = re.search(r"(?:Cuda|HIP) failure:?(?: \d{1,5})? ?'(?P<said>[^']{1,200})", message, re.IGNORECASE)
    if failure:
        entity = f"GPU {device}" if device and device.isdigit() else None
        return _answer(failure["said"], host, "CUDA")._replace(entity=entity)
    return Fault("nccl-warning", "NCCL warns", "warning", "node", UNKNOWN, host or None, _short(_template(message)))


def _answer(said: str, host: str | None, kind: str) -> Fault:
    if fabric_manager_down(said):
        return Fault(
            "fabric-manager-down", FABRIC_MESSAGE, "error", "service", INFRASTRUCTURE, host, "nvidia-fabricmanager"
        )
    lowered = said.lower()
    nccl = kind in ("NCCL", "RCCL")
    for words, code, scope, category, message in _ANSWERS:
        if words in lowered and (nccl or not words.startswith(("internal", "invalid usage", "invalid argument"))):
            return Fault(code, message, "error", scope, category, host)
    code = "nccl-error" if nccl else "cuda-error"
    what = f": {said.strip(' /')[:200]}" if said.strip(" /") else ""
    return Fault(code, f"A call of {kind} failed{what}", "error", "node", UNKNOWN, host)


def _template(message: str) -> str:
    """The message without its numbers, so that the same one counts once."""
    return re.sub(r"0x[0-9a-fA-F]+|\d+", "N", message)[:80]


def _short(text: str | None) -> str | None:
    text = (text or "").strip(" .,")
    return text[:120] or None
