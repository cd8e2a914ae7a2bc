# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nodes of an attempt that its signature blames. Rather nobody than the wrong one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

# "store-host" is where connections end when any process dies, "clique" is no single node
KINDS = ("emitter", "peer", "pair", "named-node", "named-rank", "compute")
REPORTED = ("named-rank", "compute")  # who was waited for: told even where the line itself is a consequence


def nodes(attempt: Mapping, confidence: float) -> list[str]:
    """Nodes of the attempt that its signature blames, sorted. Empty: nobody.

    Never a rank that only waits for others, never who wrote a line that is a consequence, and nobody where half of the
    nodes or more are named: that tells nothing.
    """
    signature = attempt.get("signature") or {}
    blame = signature.get("blame") or {}
    kind = blame.get("kind")
    if kind not in KINDS or (signature.get("confidence") or 0) < confidence:
        return []
    if signature.get("cascade") and kind not in REPORTED:
        return []
    everybody = set(attempt.get("nodes") or ())
    hosts = blame.get("hosts") or ()
    waiting = set(signature.get("waiting") or ()) - set(signature.get("missing") or ())
    ranks = [rank for rank in blame.get("ranks") or () if rank not in waiting]
    # a host that is none of the attempt's: what else is known of whom the line is about is no better
    if hosts:
        found = by_host(attempt, hosts)
    else:
        pods = () if _collected(attempt) else blame.get("pods") or ()
        found = by_pod(attempt, pods) or by_rank(attempt, ranks)
    found &= everybody
    most = 2 if kind == "pair" else max(1, (len(everybody) - 1) // 2)
    return sorted(found) if len(found) <= most else []


def by_pod(attempt: Mapping, names: Iterable[str]) -> set[str]:
    """Nodes of these pods; what a launcher prints is its workers' words."""
    wanted = set(names)
    found = {
        rank.get("node") or ""
        for rank in attempt.get("ranks") or ()
        if rank.get("pod") in wanted and rank.get("role") != "launcher"
    }
    return found - {""}


def by_host(attempt: Mapping, names: Iterable[str]) -> set[str]:
    """Nodes of these host names, which may be names of nodes or of pods, with or without a domain."""
    found = set()
    for name in names:
        short = name.partition(".")[0]
        for rank in attempt.get("ranks") or ():
            node, pod = rank.get("node") or "", rank.get("pod") or ""
            if name in (node, pod) or short in (node.partition(".")[0], pod) or pod.rpartition("-")[0] == short:
                found.add(node)
    return found - {""}


def by_rank(attempt: Mapping, ranks: Iterable[int]) -> set[str]:
    """Nodes of these ranks. A log may count processes or pods; where it cannot be told which, nobody is named."""
    wanted = list(ranks)
    node_of = {rank.get("index"): rank.get("node") or "" for rank in attempt.get("ranks") or ()}
    per_pod = _per_pod(attempt)
    divisor = 1 if per_pod == 1 else _divisor(attempt, wanted, per_pod)
    return {node_of.get(rank // divisor, "") for rank in wanted} - {""} if divisor else set()


def _collected(attempt: Mapping) -> bool:
    """Whether a log holds lines of ranks that do not run in its pod, as mpirun and srun collect them."""
    pairs, per_pod = _pairs(attempt), _per_pod(attempt)
    return bool(pairs) and not any(all(rank // by == index for rank, index in pairs) for by in (1, per_pod))


def _divisor(attempt: Mapping, wanted: list[int], per_pod: int) -> int | None:
    """By what a rank of the log is divided to give the pod's index: processes per pod, or 1."""
    signature = attempt.get("signature") or {}
    pairs = [] if _collected(attempt) else _pairs(attempt)
    told = {*wanted, *(signature.get("waiting") or ()), *(signature.get("missing") or ())}
    seen = told | {rank for rank, _node in _pairs(attempt)}
    indexes = {rank.get("index") for rank in attempt.get("ranks") or ()}
    fits = [
        divisor
        for divisor in (1, per_pod)
        if all(rank // divisor == index for rank, index in pairs) and all(rank // divisor in indexes for rank in seen)
    ]
    if len(fits) == 1:
        return fits[0]
    # both fit: they may still mean the same pod
    return fits[0] if fits and all(rank // per_pod == rank for rank in wanted) else None


def _per_pod(attempt: Mapping) -> int:
    return (attempt["job"].get("shape") or {}).get("gpusPerPod") or 1


def _pairs(attempt: Mapping) -> list[tuple[int, int]]:
    """(rank that a line tells, index of the pod whose log it is in) of the lines that decided."""
    index_of = {rank.get("pod"): rank["index"] for rank in attempt.get("ranks") or () if rank.get("index") is not None}
    return [
        (line["rank"], index_of[line["pod"]])
        for line in (attempt.get("signature") or {}).get("lines") or ()
        if line.get("rank") is not None and line.get("pod") in index_of
    ]
