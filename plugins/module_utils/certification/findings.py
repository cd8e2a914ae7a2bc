# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a parser's finding, or the end of a pod, means for the nodes of a test. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# outcomes; from the worst to the best, the verdict on a node is the worst of its tests
FAIL, HANG, ERROR, BLOCKED = "fail", "hang", "error", "blocked"
NOT_MEASURED, NOT_RUN, SKIPPED, NOT_APPLICABLE = "not_measured", "not_run", "skipped", "not_applicable"
UNBOUNDED, PASS = "pass_unbounded", "pass"
ORDER = (FAIL, HANG, ERROR, BLOCKED, NOT_MEASURED, NOT_RUN, SKIPPED, NOT_APPLICABLE, UNBOUNDED, PASS)

HARDWARE, CONFIGURATION, TOOL, INFRASTRUCTURE, UNKNOWN = (
    "hardware",
    "configuration",
    "tool",
    "infrastructure",
    "unknown",
)
# the test was of a group, and nothing tells which of its nodes it was
GROUP = "group"

FABRIC = "fabric-manager-down"
CRASH = frozenset({"killed-by-signal", "process-failed", "mpi-abort", "crash"})
# what follows from something else, if anything else is told
_CONSEQUENCES = frozenset(
    {"no-run", "no-result", "run-incomplete", "output-incomplete", "output-truncated", "exit-status"}
)
# the test's answer is no, whoever is to blame
_FAILS = frozenset(
    [
        "wrong-values",
        "tool-minimum-missed",
        "gpu-faulty",
        "gpu-died",
        "compute-errors",
        "zero-bandwidth",
        "no-traffic",
        "nan-loss",
        "nan-iterations",
        "wrong-transport",
        "tcp-fallback",
    ]
)
# no answer, but one that tells of nodes or of what is between them
_NETWORK = frozenset(
    [
        "network-error",
        "network-port-event",
        "connection-closed",
        "connection-failed",
        "completion-error",
        "completion-status",
        "peer-lost",
    ]
)
_FAILS_UNLESS_EXPLAINED = frozenset({"test-failed", "warning-on-pass"})
_HANGS = frozenset({"collective-timeout", "collective-aborted", "nccl-timeout", "lagging-rank", "launch-timeout"})
_SKIPPED = frozenset({"test-skipped", "test-not-run", "test-waived"})
_NOT_MEASURED = frozenset({"test-missing", "gpu-not-tested", "no-measurement", "too-few-steps"})
# told by whoever noticed, which need not be the one it happened to
_NOTICED = frozenset({"unhandled-system-error", "nccl-internal-error", "unhandled-cuda-error", "test-failed"})

IMAGE_REASONS = frozenset(
    [
        "ErrImagePull",
        "ImagePullBackOff",
        "ErrImageNeverPull",
        "InvalidImageName",
        "ImageInspectError",
        "RegistryUnavailable",
    ]
)
_POD_REASONS = {
    "OOMKilled": (CONFIGURATION, "was killed for lack of memory"),
    "Evicted": (INFRASTRUCTURE, "was evicted"),
    "Preempted": (INFRASTRUCTURE, "was preempted"),
    "Preempting": (INFRASTRUCTURE, "was preempted"),
    "PreemptionByScheduler": (INFRASTRUCTURE, "was preempted"),
    "EvictionByEvictionAPI": (INFRASTRUCTURE, "was evicted"),
    "TerminationByKubelet": (INFRASTRUCTURE, "was ended by its node"),
    "DeletionByPodGC": (INFRASTRUCTURE, "is on a node that went away"),
    "DisruptionTarget": (INFRASTRUCTURE, "was ended by the cluster"),
    "NodeLost": (INFRASTRUCTURE, "is on a node that was lost"),
    "NodeShutdown": (INFRASTRUCTURE, "ended with a shutdown of its node"),
    "NodeAffinity": (INFRASTRUCTURE, "was refused by its node"),
    "UnexpectedAdmissionError": (INFRASTRUCTURE, "was refused by its node"),
    "DeletionByTaintManager": (INFRASTRUCTURE, "was deleted for a taint of its node"),
    "TaintManagerEviction": (INFRASTRUCTURE, "was deleted for a taint of its node"),
    "CreateContainerConfigError": (CONFIGURATION, "could not be made"),
    "CreateContainerError": (INFRASTRUCTURE, "could not be made"),
    "RunContainerError": (INFRASTRUCTURE, "could not be started"),
    "ContainerCannotRun": (TOOL, "could not be started"),
    "StartError": (TOOL, "could not be started"),
}


@dataclass(frozen=True)
class Cause:
    """Why a test is no pass. `node` is "" where it is about all nodes of the run."""

    outcome: str
    code: str
    text: str
    attribution: str
    node: str = ""


def weight(cause: Cause) -> tuple:
    """Sorts causes from what is worst, and of that what explains most, to what only follows from it."""
    follows = 2 if cause.code in _CONSEQUENCES else int(cause.code in CRASH)
    return ORDER.index(cause.outcome), cause.attribution != HARDWARE, follows, cause.attribution == UNKNOWN


def cause_of(finding: Mapping, node: str, alone: bool, apart: bool = False) -> Cause | None:
    """What a finding says of the run, or of `node` if its host is one; None for what is no more than a warning.

    `alone`: the run has one node. `apart`: its nodes were tested each by itself, so that a host is to blame itself.
    """
    code, category, scope = finding["code"], finding.get("category", UNKNOWN), finding.get("scope", "run")
    if finding.get("severity") != "error":
        return None
    outcome, text = _outcome(code, category, scope), finding["message"]
    if not alone and not node and finding.get("host"):
        text += f" (host {finding['host']})"
    if outcome in (FAIL, HANG):
        its_own = category == HARDWARE or scope == "gpu"
    else:
        its_own = scope in ("node", "gpu", "service") and code not in _NOTICED
    if alone or not (its_own or apart):
        node = ""
    nobody = outcome in (FAIL, HANG) and not node and not alone
    return Cause(outcome, code, text, GROUP if nobody else category, node)


def _outcome(code: str, category: str, scope: str) -> str:
    if code == FABRIC:
        return ERROR
    if category == HARDWARE or code in _FAILS or code in _NETWORK:
        return FAIL
    if code in _HANGS:
        return HANG
    if code in _SKIPPED:
        return SKIPPED
    if code in _NOT_MEASURED:
        return NOT_MEASURED
    if category == UNKNOWN and (code in _FAILS_UNLESS_EXPLAINED or scope in ("gpu", "pair")):
        return FAIL
    return ERROR


def cause_of_pod(pod: Mapping) -> Cause | None:
    """What Kubernetes says of a pod that did not end by itself."""
    reason, name = str(pod.get("reason") or ""), pod.get("name") or "a pod"
    where = f" on {pod['node']}" if pod.get("node") else ""
    said = f": {pod['message']}" if pod.get("message") else ""
    if reason in IMAGE_REASONS:
        text = f"the image of {name}{where} cannot be pulled ({reason}){said}"
        return Cause(ERROR, "image-pull", text, INFRASTRUCTURE)
    category, what = _POD_REASONS.get(reason, ("", ""))
    if not category and reason.startswith("OutOf"):
        category, what = INFRASTRUCTURE, "was refused by its node"
    if not category:
        return None
    return Cause(ERROR, "pod-ended", f"{name}{where} {what} ({reason}){said}", category)
