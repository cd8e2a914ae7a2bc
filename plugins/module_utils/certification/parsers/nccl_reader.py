# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lines of an output of nccl-tests, sorted into runs."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import accumulate

from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers import (
    launched,
    nccl_checks,
    nccl_faults,
    nccl_info,
    nccl_json,
    nccl_table,
    streams,
)
from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers.excerpts import excerpt
from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers.nccl_run import Run
from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers.outcome import (
    Outcome,
)

_OWN = re.compile(r"\s*(?:#(?:\s|\Z)|\d{1,20}\s+\d{1,20}\s+[A-Za-z]|Out of bounds values|Avg bus bandwidth)")
_RANK = re.compile(
    r"#\s+Rank\s+(?P<rank>\d{1,9})(?:\s+Group\s+(?P<group>\d{1,9}))?(?:\s+Pid\s+(?P<pid>\d{1,10}))?\s+on\s+"
    r"(?P<host>\S{1,256})\s+device\s+(?P<device>\d{1,6})\s+\[(?P<bus>[0-9A-Fa-fx:.]{1,32})\]\s*(?P<name>.{0,128})"
)
_SETTINGS = {
    "threads": re.compile(r"\bnThreads? (\d{1,9})\b"),
    "gpusPerThread": re.compile(r"\bnGpus (\d{1,9})\b"),
    "minBytes": re.compile(r"\bminBytes (\d{1,20})\b"),
    "maxBytes": re.compile(r"\bmaxBytes (\d{1,20})\b"),
    "warmupIters": re.compile(r"\bwarmup iters: (\d{1,9})\b"),
    "iters": re.compile(r"(?<!warmup )(?<!agg )\biters: (\d{1,9})\b"),
    "aggIters": re.compile(r"\bagg iters: (\d{1,9})\b"),
    "check": re.compile(r"\b(?:validation|check): (\d{1,9})\b"),
    "graph": re.compile(r"\bgraph: (\d{1,9})\b"),
}
_STEP = re.compile(r"\bstep: (\d{1,20})\s?\((factor|bytes)\)")
_BOUNDS = re.compile(r"Out of bounds values\s*:\s*(\d{1,15})(?:\s+(OK|FAILED))?")
_AVERAGE = re.compile(r"Avg bus bandwidth\s*:\s*([\d.eE+-]{1,30}|-?nan|inf)(?:\s+(OK|FAILED))?")
_VERSION = re.compile(
    r"(?P<tool>[nr]ccl-tests)(?:: Version | version )(?P<version>\S{1,64})(?:.* nccl-library=(?P<code>\d{3,6}))?"
)
_STARTING = re.compile(r"Collective test starting:\s*(\S{1,128})")
_CONCLUDED = re.compile(r"Collective test concluded:?")
_REDUCED = re.compile(r"Reducing maxBytes to (\d{1,20})")
_LAST_ERROR = re.compile(r"#\s*error:\s*(.+)")
_COMMAND = re.compile(
    r"(?<![\w.-])((?:all_reduce|all_gather|alltoallv?|broadcast|gather|hypercube|reduce|reduce_scatter|scatter|sendrecv)"
    r"(?:_bias)?_perf(?:_mpi)?)(?![\w.])"
)
_FILE = re.compile(r"Test \w* ?failure (all_reduce|all_gather|alltoallv?|broadcast|reduce_scatter|reduce|sendrecv)\.")
_EXIT = re.compile(r"Exit code:\s+(\d{1,4})\b")
_PROCESS = re.compile(r"Process name: \[+[^\]]{0,80}\],(\d{1,9})\]")
# comments of the tool that say nothing a caller needs
_KNOWN = re.compile(
    r"#\s*\Z|#\s*(?:NCCL Tests compiled|Using devices|\(B\)|out-of-place|in-place|Errors with asterisks"
    r"|Blocking Enabled|Per-Iteration|Parallel Init|GPU memory usage|Writing JSON|skipping json|<)"
)
_UNSIGNED = re.compile(r"busbw|nThread|rccl-tests|Using devices")  # comments that lost their sign on the way
_LIMIT = 4000  # characters of a line that are looked at
_VERSION_LINE, _STARTED, _CONFIGURED, _DEVICES, _RANKS, _TABLE = range(1, 7)


@dataclass
class Stream:
    """What one process writes, or all of them where nobody tells them apart."""

    runs: list[Run] = field(default_factory=list)
    pending: tuple[launched.Line, list[str]] | None = None  # a row that something was printed into
    above: str = ""

    @property
    def current(self) -> Run | None:
        return self.runs[-1] if self.runs else None


class Reader:
    """Reads an output; `streams`, `documents`, `traces` (host: line of a call stack) and `failed` hold what it says."""

    def __init__(self) -> None:
        self.outcome = Outcome("nccl-tests")
        self.streams: dict[str, Stream] = {}
        self.runs: list[Run] = []
        self.documents: list[Run] = []
        self.log: list[tuple[str, str]] = []  # lines of NCCL before any run
        self.command = ""
        self.nccl: str | None = None
        self.traces: dict[str, tuple[int, str]] = {}
        self.failed: dict = {}
        self.warned: set[int] = set()  # lines that are warnings of NCCL

    # reading

    def read(self, text: streams.Text) -> None:
        lines = list(launched.read(text, _OWN))
        self.outcome.lines = lines[-1].number if lines else 0
        for line in self._without_documents(lines):
            self._line(line)
        for stream in self.streams.values():
            self._flush(stream, "the output ends inside a row")

    def _without_documents(self, lines: list[launched.Line]) -> Iterator[launched.Line]:
        """The lines without those of JSON reports, which are read on the way."""
        text = "\n".join(line.text for line in lines)
        starts = list(accumulate((len(line.text) + 1 for line in lines), initial=0))
        index = 0
        found = nccl_json.find(text)
        while found:
            document, start, end, whole = found
            first, last = bisect_right(starts, start) - 1, bisect_right(starts, max(end - 1, start)) - 1
            yield from lines[index:first]
            yield replace(lines[first], text=text[starts[first] : start])
            self.document(document, lines[first].number, whole)
            yield replace(lines[last], text=text[end : starts[last + 1] - 1])
            index = last + 1
            found = nccl_json.find(text, end)
        yield from lines[index:]

    def document(self, document: dict, line: int | None, whole: bool) -> None:
        rows, broken = nccl_json.rows(document)
        bounds, average = nccl_json.footer(document)
        test = nccl_checks.program_test(nccl_json.program(document)) or nccl_json.experiment(document)
        run = Run(line, "", "json", test, None, nccl_json.nccl_version(document), _TABLE, nccl_json.header(document))
        run.ranks, run.rows, run.bounds, run.average = nccl_json.ranks(document), rows, bounds, average
        run.whole = whole
        run.concluded = "end_time" in document
        if broken:
            self.outcome.unread(line or 0, "", f"{broken} rows of the JSON report are broken off or not rows")
        for error in nccl_json.errors(document):
            self._last_error(error, line)
        self.documents.append(run)

    def _line(self, line: launched.Line) -> None:
        text = line.text if len(line.text) <= _LIMIT else line.text[:_LIMIT]
        stream = self.streams.setdefault(line.source, Stream())
        if not text.strip():
            return
        if "CCL " in text:
            told = nccl_info.version(text) if "version" in text else None
            if told:
                self._told_version(*told, stream)
            log = nccl_info.read(text)
            if log:
                self._nccl(line, stream, log)
                self._broken_row(line, stream, text[: log.start()])
                return
        if self._comment(line, stream, text):
            stream.above = text
            return
        stream.above = text
        if "_perf" in text:
            self._command(text, stream)
        if self._fault(line, stream, text):
            self._broken_row(line, stream, text)
            return
        self._row(line, stream, text)

    def _comment(self, line: launched.Line, stream: Stream, text: str) -> bool:
        if "bus bandwidth" in text or "Out of bounds" in text:
            return self._footer(line, stream, text)
        if "#" not in text and not _UNSIGNED.search(text):
            return False
        rank = _RANK.search(text)
        if rank:
            self._rank(line, stream, rank)
            return True
        head = nccl_table.header(text, stream.above) if "busbw" in text else None
        if head:
            self._header(line, stream, head)
            return True
        if "Rank " in text and text.rstrip().endswith("...") and stream.current:
            stream.current.ranks_cut = True
            return True
        version = _VERSION.search(text)
        if version:
            self._version(line, stream, version)
            return True
        starting = _STARTING.search(text)
        if starting:
            run = self._preamble(line, stream, _STARTED)
            run.test, run.started = nccl_checks.program_test(starting[1]), True
            return True
        if "nThread" in text and "nGpus" in text:
            self._settings(self._preamble(line, stream, _CONFIGURED), text)
            return True
        if "Using devices" in text:
            self._preamble(line, stream, _DEVICES)
            return True
        if _CONCLUDED.search(text):
            for run in reversed(stream.runs):
                if run.average and not run.concluded:
                    run.concluded = True
                    break
            return True
        reduced = _REDUCED.search(text)
        if reduced:
            if stream.current:
                stream.current.config["reducedMaxBytes"] = int(reduced[1])
            return True
        error = _LAST_ERROR.search(text)
        if error:
            self._last_error(error[1], line.number)
            return True
        comment = text.strip()
        if _KNOWN.match(comment):
            return True
        if not comment.startswith("# ") or nccl_table.start(text):
            return False
        if not nccl_faults.of_line(text):
            self.outcome.unread(line.number, excerpt(text), "not a comment of nccl-tests that is known")
            return True
        return False

    # the parts of a run

    def _begin(self, line: launched.Line, stream: Stream) -> Run:
        self._flush(stream, "another run begins inside a row")
        run = Run(line.number, line.source, test=nccl_checks.program_test(self.command), nccl=self.nccl)
        for host, message in self.log:
            run.transports.add(host, message)
        self.log = []
        stream.runs.append(run)
        self.runs.append(run)
        return run

    def _preamble(self, line: launched.Line, stream: Stream, stage: int) -> Run:
        run = stream.current
        if run is None or run.stage >= stage or run.average:
            run = self._begin(line, stream)
        run.stage = stage
        return run

    def _version(self, line: launched.Line, stream: Stream, match: re.Match) -> None:
        self.outcome.tool = match["tool"]
        self.outcome.version = self.outcome.version or match["version"]
        if match["tool"] == "rccl-tests":
            if stream.current:
                stream.current.version = match["version"]
            return
        run = self._preamble(line, stream, _VERSION_LINE)
        run.version = match["version"]
        if match["code"]:
            run.nccl = nccl_info.version_of_code(int(match["code"]))

    def _settings(self, run: Run, text: str) -> None:
        for name, pattern in _SETTINGS.items():
            match = pattern.search(text)
            if match:
                run.config[name] = int(match[1])
        if "check" in run.config:
            run.config["check"] = bool(run.config["check"])
        step = _STEP.search(text)
        if step:
            run.config["step"] = {"value": int(step[1]), "unit": step[2]}

    def _rank(self, line: launched.Line, stream: Stream, match: re.Match) -> None:
        run = stream.current
        if run is None or run.average:
            run = self._begin(line, stream)
        run.stage = max(run.stage, _RANKS)
        rank = {
            "rank": int(match["rank"]),
            "group": int(match["group"] or 0),
            "pid": int(match["pid"]) if match["pid"] else None,
            "host": match["host"],
            "device": int(match["device"]),
            "busId": match["bus"],
            "name": match["name"].strip(),
        }
        if rank["name"].endswith("..."):
            run.ranks_cut = True
        if rank not in run.ranks:
            run.ranks.append(rank)

    def _header(self, line: launched.Line, stream: Stream, head: nccl_table.Header) -> None:
        run = stream.current
        if run is None or run.average:
            run = self._begin(line, stream)
        elif run.header:
            earlier = next((r for r in reversed(stream.runs) if not r.header and not r.average and not r.empty), None)
            if earlier:
                self._mix(stream, earlier)
                run = earlier
            elif run.rows:
                run = self._begin(line, stream)
            else:
                run.mixed += 1
        run.header, run.stage, run.last_line = head, _TABLE, line.number

    def _footer(self, line: launched.Line, stream: Stream, text: str) -> bool:
        bounds, average = _BOUNDS.search(text), _AVERAGE.search(text)
        if not bounds and not average:
            return False
        self._flush(stream, "the table ends inside a row")
        name = "bounds" if bounds else "average"
        run = stream.current
        if run is None:
            run = self._begin(line, stream)
        elif getattr(run, name) is not None or run.empty:
            earlier = next((r for r in reversed(stream.runs) if not r.empty and getattr(r, name) is None), None)
            if earlier is None:
                # more footers than beginnings: several processes wrote one table each
                run.mixed += bool(average)
                return True
            if earlier is not run:
                self._mix(stream, earlier)
                run = earlier
        run.last_line = line.number
        if bounds:
            run.bounds = {"count": int(bounds[1]), "ok": int(bounds[1]) == 0 and bounds[2] != "FAILED"}
        else:
            run.average = {"value": nccl_table.value(average[1]), "ok": {"OK": True, "FAILED": False}.get(average[2])}
        return True

    @staticmethod
    def _mix(stream: Stream, first: Run) -> None:
        """The runs from `first` on wrote at the same time: nothing tells whose a row is."""
        together = stream.runs[stream.runs.index(first) :]
        for run in together:
            run.mixed = max(run.mixed, len(together))

    # rows

    def _row(self, line: launched.Line, stream: Stream, text: str) -> None:
        run = stream.current
        if run is None or run.header is None:
            start = nccl_table.start(text) if text.lstrip()[:1].isdigit() else None
            if start and len(nccl_table.leading(text[start.start() :])) > 6:
                self.outcome.unread(line.number, excerpt(text), "a row without a header")
                earlier = next((r for r in reversed(stream.runs) if r.header and not r.average), None)
                if earlier:
                    # a run goes on while another begins
                    self._mix(stream, earlier)
            return
        start = nccl_table.start(text)
        if start:
            self._flush(stream, "another row begins inside a row")
            words = text[start.start() :].split()
            row = nccl_table.row(run.header, words, line.number)
            if row:
                self._keep(stream, run, row)
            else:
                stream.pending = (line, nccl_table.leading(text[start.start() :]))
            return
        words = nccl_table.numbers(text)
        if stream.pending and words:
            first, begun = stream.pending
            begun = begun + words
            row = nccl_table.row(run.header, begun, first.number)
            stream.pending = None if row else (first, begun)
            if row:
                self._keep(stream, run, row)
        elif not run.average and (words or text.strip(" .") == ""):
            self.outcome.unread(line.number, excerpt(text), "no row of the table")

    @staticmethod
    def _keep(stream: Stream, run: Run, row: dict) -> None:
        if run.average:
            # a row behind the footer is another run's, whose beginning came before
            run = next((r for r in reversed(stream.runs) if r.header and not r.average), run)
            run.mixed = max(run.mixed, 2)
        run.rows.append(row)
        run.last_line = row["line"]

    def _broken_row(self, line: launched.Line, stream: Stream, text: str) -> None:
        start = nccl_table.start(text)
        if not start or stream.current is None or stream.current.header is None:
            return
        self._flush(stream, "another row begins inside a row")
        words = nccl_table.leading(text[start.start() :])
        row = nccl_table.row(stream.current.header, words, line.number)
        if row:
            self._keep(stream, stream.current, row)
        else:
            stream.pending = (line, words)

    def _flush(self, stream: Stream, reason: str) -> None:
        if stream.pending:
            line, _words = stream.pending
            self.outcome.unread(line.number, excerpt(line.text), reason)
            stream.pending = None

    # what else is said

    def _nccl(self, line: launched.Line, stream: Stream, log: re.Match) -> None:
        host, message = log["host"] or "", log["message"]
        run = self._running(stream)
        if run:
            run.transports.add(host, message)
        elif len(self.log) < 100_000:
            self.log.append((host, message))
        if log["level"] in ("WARN", "ERROR"):
            self.warned.add(line.number)
            self._find(nccl_faults.of_warning(host or None, log["device"], message), line)

    def _running(self, stream: Stream) -> Run | None:
        if stream.current and not stream.current.average:
            return stream.current
        return next((run for run in reversed(self.runs) if not run.average), None)

    def _told_version(self, kind: str, version: str, stream: Stream) -> None:
        if kind == "RCCL":
            self.outcome.tool = "rccl-tests"
        run = self._running(stream)
        if run:
            run.nccl = run.nccl or version
        else:
            self.nccl = version

    def _command(self, text: str, stream: Stream) -> None:
        match = _COMMAND.search(text)
        if match:
            self.command = match[1]
            run = stream.current
            if run and not run.test and not run.average and not run.rows:
                run.test = nccl_checks.program_test(match[1])

    def _fault(self, line: launched.Line, stream: Stream, text: str) -> bool:
        trace = nccl_faults.trace(text)
        if trace:
            self.traces.setdefault(trace[0], (line.number, text))
        named = _FILE.search(text) if "failure" in text else None
        if named and stream.current and not stream.current.test:
            stream.current.test = named[1]
        for name, words, pattern in (("exitCode", "Exit code", _EXIT), ("rank", "Process name", _PROCESS)):
            match = pattern.search(text) if words in text else None
            if match:
                self.failed.setdefault(name, int(match[1]))
        fault = nccl_faults.of_line(text)
        if fault:
            host = fault.host or streams.host_of(line.source)
            self._find(fault._replace(host=host), line)
        return bool(fault or trace)

    def _find(self, fault: nccl_faults.Fault, line: launched.Line) -> None:
        self.outcome.find(
            fault.code,
            fault.message,
            severity=fault.severity,
            scope=fault.scope,
            host=fault.host,
            entity=fault.entity,
            line=line.number,
            text=excerpt(line.text),
            category=fault.category,
        )

    def _last_error(self, error: str, line: int | None) -> None:
        self.outcome.find(
            "nccl-last-error",
            "The last error NCCL remembers at the end of the run",
            severity="warning",
            scope="run",
            entity=None,
            line=line,
            text=excerpt(error),
        )
