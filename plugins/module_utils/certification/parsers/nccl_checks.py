# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run of a collective shows without any threshold: wrong values, ranks that are missing, a slow transport."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers import nccl_info
from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers.nccl_run import PLATEAU, Run
from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers.nccl_table import (
    IN_PLACE,
    OUT_OF_PLACE,
)
from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers.outcome import (
    CONFIGURATION,
    INFRASTRUCTURE,
    TOOL,
    UNKNOWN,
    Outcome,
    whole,
)
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument


@dataclass
class Expected:
    """What was launched; None and empty ask for nothing. `hosts` is a number of hosts or their names."""

    ranks: int | None = None
    hosts: int | None = None
    host_names: list[str] = field(default_factory=list)
    transports: list[str] = field(default_factory=list)
    test: str = ""
    plateau: int = PLATEAU


def expected(ranks=None, hosts=None, transport=None, test=None, plateau_bytes=None) -> Expected:
    """Raises InvalidDocument for what is no number, name or list of names."""
    result = Expected(ranks=whole(ranks, "expected_ranks", 1))
    if isinstance(hosts, (list, tuple, set)):
        result.host_names = _names(hosts, "expected_hosts")
        result.hosts = len(result.host_names) or None
    else:
        result.hosts = whole(hosts, "expected_hosts", 1)
    if transport:
        names = _names([transport] if isinstance(transport, str) else transport, "expected_transport")
        result.transports = [nccl_info.transport(name) for name in names]
    if test is not None and not isinstance(test, str):
        raise InvalidDocument(f"expected_test={test!r} is no name", path="expected_test", hint="such as all_reduce")
    result.test = program_test(test or "")
    least = whole(plateau_bytes, "plateau_bytes")
    result.plateau = PLATEAU if least is None else least
    return result


def _names(values: Iterable, where: str) -> list[str]:
    names = list(values) if isinstance(values, (list, tuple, set)) else [values]
    if not all(isinstance(name, str) and name for name in names):
        raise InvalidDocument(f"{where} is no list of names: {values!r}", path=where)
    return list(dict.fromkeys(names))


def program_test(name: str) -> str:
    """all_reduce for all_reduce_perf, /opt/nccl-tests/all_reduce_perf_mpi and all-reduce."""
    name = name.strip().rpartition("/")[2].replace("-", "_").lower()
    for ending in ("_perf_mpi", "_perf"):
        name = name.removesuffix(ending)
    name = name.removeprefix("nccl_").removeprefix("rccl_")
    return {"allreduce": "all_reduce", "allgather": "all_gather", "reducescatter": "reduce_scatter"}.get(name, name)


def check(run: Run, wanted: Expected, outcome: Outcome, where: str) -> None:
    """Adds what the run shows to `outcome`; `where` names the run in its messages, such as "the all_reduce run"."""
    run.test = run.test or wanted.test
    _ending(run, where, outcome)
    _joined(run, wanted, where, outcome)
    _values(run, where, outcome)
    _hosts(run, wanted, where, outcome)
    _transport(run, wanted, where, outcome)
    if wanted.test and run.test and run.test != wanted.test:
        outcome.find(
            "wrong-test",
            f"{wanted.test} was to run, this is {run.test}",
            scope="run",
            line=run.line,
            category=CONFIGURATION,
        )


def _ending(run: Run, where: str, outcome: Outcome) -> None:
    asked = run.asked_sizes()
    if run.mixed > 1:
        return
    if not run.complete:
        if run.rows:
            done = f"broke off after {len(run.rows)} rows, the last of {run.rows[-1]['size']} bytes"
            done += f"; {asked} sizes were asked for" if asked else ""
        else:
            done = "ended before its first size was measured"
        outcome.find("run-incomplete", f"{_upper(where)} {done}", scope="run", line=run.last_line or run.line)
        return
    if not run.rows:
        outcome.find("no-rows", f"{_upper(where)} has a footer and no rows", scope="run", line=run.line, category=TOOL)
    elif asked and len(run.rows) < asked:
        outcome.find(
            "rows-missing",
            f"{_upper(where)} has {len(run.rows)} rows of {asked} sizes that were asked for",
            scope="run",
            line=run.line,
            category=TOOL,
        )
    elif _mean_differs(run):
        outcome.find(
            "average-contradicts-rows",
            f"{_upper(where)} prints an average of {run.average['value']:g} GB/s that its rows do not have: "
            "rows are missing or belong to another run",
            severity="error" if asked else "warning",
            scope="run",
            line=run.line,
            category=TOOL,
        )
    if run.started and not run.concluded and run.source == "table":
        outcome.find(
            "no-conclusion",
            f"{_upper(where)} is measured to the end and does not say that it concluded: it may hang when it ends",
            severity="warning",
            scope="run",
            line=run.last_line,
        )


def _mean_differs(run: Run) -> bool:
    value = (run.average or {}).get("value")
    cells = [row[side]["busbw"] for row in run.rows for side in (OUT_OF_PLACE, IN_PLACE) if side in row]
    cells = [cell for cell in cells if cell is not None]
    if value is None or not cells:
        return False
    return abs(sum(cells) / len(cells) - value) > 0.02 * value + 0.02


def _joined(run: Run, wanted: Expected, where: str, outcome: Outcome) -> None:
    if run.twice or (run.transports.sizes == {1} and len(run.processes) > 1):
        outcome.find(
            "ranks-not-joined",
            f"{len(run.processes)} processes are each rank 0 of their own run: the test was built without MPI, or "
            "its MPI is not the launcher's. Nothing was tested between them",
            scope="run",
            line=run.line,
            category=TOOL,
        )
    elif run.mixed > 1:
        outcome.find(
            "runs-interleaved",
            f"The lines of {run.mixed} runs are mixed and cannot be told apart: none of them counts as measured",
            scope="run",
            line=run.line,
            category=TOOL,
        )
    elif run.single:
        outcome.find(
            "single-rank",
            f"{_upper(where)} has one rank: no data went anywhere, and its bandwidth is none",
            severity="info" if wanted.ranks == 1 else "warning",
            scope="run",
            line=run.line,
            category=CONFIGURATION,
        )
    count = run.rank_count
    if wanted.ranks is None:
        return
    if count is None:
        outcome.find(
            "ranks-unknown",
            f"{_upper(where)} does not tell its ranks; {wanted.ranks} were launched",
            scope="run",
            line=run.line,
            category=TOOL,
        )
    elif count != wanted.ranks:
        outcome.find(
            "ranks-missing" if count < wanted.ranks else "ranks-too-many",
            f"{_upper(where)} has {count} ranks, {wanted.ranks} were launched{_per_host(run)}",
            scope="run",
            line=run.line,
            category=CONFIGURATION,
        )
    ratio = run.ratio_ranks(wanted.ranks) if run.measured else None
    if ratio is not None:
        outcome.find(
            "rank-count-contradicted",
            f"{_upper(where)} has a busbw of {ratio:.3f} times its algbw, which {wanted.ranks} ranks do not give",
            scope="run",
            line=run.line,
            category=TOOL,
        )


def _per_host(run: Run) -> str:
    counts: dict[str, int] = {}
    for rank in run.ranks:
        counts[rank["host"]] = counts.get(rank["host"], 0) + 1
    if len(counts) < 2 or len(set(counts.values())) == 1:
        return ""
    fewest = sorted(counts.items(), key=lambda item: (item[1], item[0]))[:5]
    return "; fewest: " + ", ".join(f"{host} {count}" for host, count in fewest)


def _values(run: Run, where: str, outcome: Outcome) -> None:
    wrong = run.wrong()
    if wrong:
        sizes = sorted({entry["size"] for entry in wrong})
        shown = ", ".join(map(str, sizes[:8])) + (f" and {len(sizes) - 8} more" if len(sizes) > 8 else "")
        total = sum(entry["wrong"] for entry in wrong)
        outcome.find(
            "wrong-values",
            f"{_upper(where)} delivered {total:g} wrong values, at sizes {shown}: a GPU, a link, or a fault of the "
            "software. Repeat to see whether it is always so",
            scope="run",
            line=next((row["line"] for row in run.rows if row["size"] == sizes[0]), run.line),
            category=UNKNOWN,
        )
    elif run.bounds and not run.bounds["ok"]:
        outcome.find(
            "wrong-values",
            f"{_upper(where)} counts {run.bounds['count']} values out of bounds",
            scope="run",
            line=run.last_line,
        )
    if run.average and run.average["ok"] is False:
        outcome.find(
            "tool-minimum-missed",
            f"The test itself says FAILED: an average of {run.average['value'] or 0:g} GB/s is under 0.9 times its "
            "NCCL_TESTS_MIN_BW",
            scope="run",
            line=run.last_line,
        )
    if run.rows and not run.checked:
        outcome.find(
            "values-not-checked",
            f"{_upper(where)} did not check the values it got (-c 0, or N/A)",
            severity="info",
            scope="run",
            line=run.line,
            category=CONFIGURATION,
        )


def _hosts(run: Run, wanted: Expected, where: str, outcome: Outcome) -> None:
    if wanted.hosts is None:
        return
    if not run.hosts_known and not run.twice:
        outcome.find(
            "hosts-unknown",
            f"{_upper(where)} does not tell all its hosts; {wanted.hosts} were launched",
            scope="run",
            line=run.line,
            category=TOOL,
        )
        return
    found = {_short(host) for host in run.hosts}
    for name in wanted.host_names:
        if _short(name) not in found:
            outcome.find(
                "host-missing",
                f"{name} was to take part in {where} and did not",
                scope="node",
                host=name,
                line=run.line,
                category=INFRASTRUCTURE,
            )
    named = {_short(name) for name in wanted.host_names}
    extra = [host for host in run.hosts if wanted.host_names and _short(host) not in named]
    if extra:
        outcome.find(
            "host-unexpected",
            f"{', '.join(extra[:8])} took part in {where} and were not launched there",
            scope="run",
            line=run.line,
            category=CONFIGURATION,
        )
    if not wanted.host_names and len(found) != wanted.hosts:
        outcome.find(
            "hosts-missing" if len(found) < wanted.hosts else "hosts-too-many",
            f"{_upper(where)} ran on {len(found)} hosts ({', '.join(run.hosts[:8])}), {wanted.hosts} were launched",
            scope="run",
            line=run.line,
            category=CONFIGURATION,
        )


def _short(host: str) -> str:
    return host.partition(".")[0].lower()


def _transport(run: Run, wanted: Expected, where: str, outcome: Outcome) -> None:
    found = run.transports.kinds
    networks = {kind for kind in found | set(run.transports.networks) if kind.startswith("NET/")}
    many = len(run.hosts) > 1 or (run.transports.nodes or 0) > 1
    tcp = "NET/Socket" in found and (many or any(e["kind"] == "NET/Socket" for e in run.transports.as_list()))
    tcp = tcp or (many and any(name.startswith(("tcp", "sockets", "net")) for name in run.transports.providers))
    if wanted.transports:
        if not found:
            outcome.find(
                "transport-unknown",
                f"{_upper(where)} does not tell what it used; {', '.join(wanted.transports)} was expected. "
                "NCCL_DEBUG=INFO makes NCCL say it",
                scope="run",
                line=run.line,
                category=CONFIGURATION,
            )
        for name in wanted.transports:
            used = networks if name.startswith("NET/") else found
            others = used - set(wanted.transports)
            if found and name not in found | networks:
                instead = ", ".join(sorted(used or found))
                outcome.find(
                    "wrong-transport",
                    f"{_upper(where)} used {instead} instead of {name}",
                    scope="run",
                    line=run.line,
                    category=CONFIGURATION,
                )
            elif name.startswith("NET/") and others:
                hosts = sorted({host for kind in others for host in run.transports.networks.get(kind, [])})
                outcome.find(
                    "wrong-transport",
                    f"{_upper(where)} used {', '.join(sorted(others))} beside {name}"
                    + (f" on {', '.join(hosts[:8])}" if hosts else ""),
                    scope="run",
                    line=run.line,
                    category=CONFIGURATION,
                )
    if tcp and "NET/Socket" not in wanted.transports:
        outcome.find(
            "tcp-fallback",
            f"{_upper(where)} sent its data through TCP sockets, not RDMA: no adapter or no plugin was found",
            severity="warning" if not wanted.transports else "error",
            scope="run",
            line=run.line,
            category=CONFIGURATION,
        )
    _adapters(run, outcome)
    for entry in run.transports.as_list():
        if entry["kind"] in ("NET/IB", "NET/OFI") and entry["connections"] and not entry["gdr"]:
            outcome.find(
                "no-gpu-direct",
                f"{_upper(where)} sent its data over {entry['kind']} without GPU Direct RDMA",
                severity="warning",
                scope="run",
                line=run.line,
                category=CONFIGURATION,
            )


def _adapters(run: Run, outcome: Outcome) -> None:
    """A host that uses fewer adapters than the others."""
    counts = {host: len(names) for host, names in run.transports.adapters.items() if host}
    most = max(counts.values(), default=0)
    for host, count in sorted(counts.items()):
        if count < most:
            outcome.find(
                "adapters-missing",
                f"{host} uses {count} network adapters, others use {most}",
                severity="warning",
                scope="node",
                host=host,
                line=run.line,
                category=UNKNOWN,
            )


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]
