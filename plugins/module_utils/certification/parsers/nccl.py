# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Output of nccl-tests and rccl-tests, with all that launchers, NCCL and other programs write into it.

Several runs in one log, the report of `-J` alone or between the lines, and logs that hold no run at all: what stopped
it is then a finding. See `outcome` for the shape of the result and `nccl_run` for a run's.
"""

from __future__ import annotations

from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers import nccl_checks, streams
from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers.nccl_reader import Reader
from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers.nccl_run import Run
from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers.outcome import TOOL, Outcome


def parse(
    text: streams.Text | dict,
    *,
    expected_ranks: object = None,
    expected_hosts: object = None,
    expected_transport: object = None,
    expected_test: object = None,
    plateau_bytes: object = None,
) -> dict:
    """The runs in the output, and what is wrong with them.

    `expected_ranks` is how many were launched, `expected_hosts` how many hosts or which, `expected_transport` the way
    data must go between hosts or GPUs (IB, EFA, Socket, P2P, NVLS, ...), `expected_test` the collective (all_reduce).
    `plateau_bytes` is the size from which on bandwidth counts for the plateau, 256 MiB without. `text` may also be the
    document of `-J`. Raises InvalidDocument where an expectation or `text` is of no use.
    """
    wanted = nccl_checks.expected(expected_ranks, expected_hosts, expected_transport, expected_test, plateau_bytes)
    reader = Reader()
    if isinstance(text, dict):
        reader.document(text, None, True)
    else:
        reader.read(text)
    return _finish(reader, wanted)


def _finish(reader: Reader, wanted: nccl_checks.Expected) -> dict:
    outcome = reader.outcome
    runs = _merged(reader)
    _settle(outcome, runs, reader.warned)
    for number, run in enumerate(runs, 1):
        name = f"the {run.test} run" if run.test else "the run"
        where = f"{name} ({number} of {len(runs)})" if len(runs) > 1 else name
        nccl_checks.check(run, wanted, outcome, where)
    _apart(outcome, runs, wanted)
    if not runs:
        outcome.find(
            "no-run",
            "The output holds no run of nccl-tests",
            scope="run",
            category=TOOL,
        )
    elif reader.traces and not any(finding["severity"] == "error" for finding in outcome.findings):
        for host, (line, text) in reader.traces.items():
            outcome.find("test-failed", "A process says that the test failed", host=host, line=line, text=text)
    outcome.runs = [run.as_dict(wanted.plateau) for run in runs]
    outcome.complete = bool(runs) and all(run["complete"] for run in outcome.runs)
    outcome.findings.sort(key=lambda finding: (finding["line"] is None, finding["line"] or 0))
    result = outcome.result()
    if reader.failed:
        result["launcher"] = reader.failed
    return result


def _settle(outcome: Outcome, runs: list[Run], warned: set[int]) -> None:
    """What was said before runs that all came to their end was overcome, and what came after them, as a crash when
    the processes exit, or as a warning of NCCL between, did not stop them: it stays as a warning."""
    if not runs or not all(run.complete and run.mixed == 1 for run in runs):
        return
    begin, end = runs[0].line or 0, max(run.last_line or 0 for run in runs)
    for finding in outcome.findings:
        line = finding["line"] or 0
        if finding["severity"] == "error" and (line < begin or line > end or line in warned):
            finding["severity"] = "warning"


def _merged(reader: Reader) -> list[Run]:
    """Runs in the order they began: mixed ones as one, a report together with the table it repeats."""
    runs: list[Run] = []
    for stream in reader.streams.values():
        own: list[Run] = []
        for run in stream.runs:
            if run.empty:
                continue
            # beginnings of processes that write together stand before what they measure together
            while own and (run.twice or run.mixed > 1) and (own[-1].bare or (own[-1].mixed > 1 and run.mixed > 1)):
                run = _joined(own.pop(), run)
            run.mixed = max(run.mixed, 1 + run.foreign_rows)
            own.append(run)
        runs += own
    runs.sort(key=lambda run: run.line or 0)
    for report in reader.documents:
        table = next((run for run in runs if run.source == "table" and _same(run, report)), None)
        if table is None:
            runs.append(report)
        elif report.complete and not table.complete and report.rows:
            report.transports, report.ranks = table.transports, table.ranks or report.ranks
            runs[runs.index(table)] = report
    return runs


def _apart(outcome: Outcome, runs: list[Run], wanted: nccl_checks.Expected) -> None:
    """Processes that each ran the test alone, one after the other or in streams of their own: all of them are rank 0,
    or they have together the ranks that one run was to have."""
    ranks = [rank for run in runs for rank in run.ranks]
    processes = {(rank["host"], rank["pid"]) for rank in ranks}
    settings = [run.config for run in runs if run.config]
    if any(finding["code"] == "ranks-not-joined" for finding in outcome.findings) or len(processes) < 2:
        return
    if any(config != settings[0] for config in settings) or len({run.test for run in runs if run.test}) > 1:
        return
    single = wanted.ranks != 1 and not any(rank["rank"] for rank in ranks)
    parts = [run.rank_count or 0 for run in runs]
    if not single and (wanted.ranks is None or sum(parts) != wanted.ranks or len(parts) < 2):
        return
    outcome.find(
        "ranks-not-joined",
        f"{len(processes)} processes each ran the test alone: it was built without MPI, or its MPI is not the "
        "launcher's. Nothing was tested between them",
        scope="run",
        line=runs[0].line,
        category=TOOL,
    )


def _joined(first: Run, other: Run) -> Run:
    first.ranks += [rank for rank in other.ranks if rank not in first.ranks]
    first.rows += other.rows
    for name in ("config", "header", "bounds", "average", "version", "nccl"):
        setattr(first, name, getattr(first, name) or getattr(other, name))
    first.concluded = first.concluded or other.concluded
    first.mixed = max(first.mixed, other.mixed)
    first.last_line = max(filter(None, (first.last_line, other.last_line)), default=None)
    if first.test and other.test and first.test != other.test:
        first.test = ""
    first.test = first.test or other.test
    return first


def _same(table: Run, report: Run) -> bool:
    """The report belongs to the table: the same process 0 measured the same collective."""
    first, second = ({(r["host"], r["pid"]) for r in run.ranks if r["rank"] == 0} for run in (table, report))
    if table.test and report.test and table.test != report.test:
        return False
    if first and second:
        return first == second
    rows = [[(row["size"], row.get("outOfPlace", {}).get("busbw")) for row in run.rows] for run in (table, report)]
    return (
        bool(rows[0])
        and len(rows[0]) == len(rows[1])
        and all(a[0] == b[0] and abs((a[1] or 0) - (b[1] or 0)) <= 0.5 for a, b in zip(*rows, strict=True))
    )
