# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Output of perftest: ib_write_bw, ib_read_bw, ib_send_bw, ib_atomic_bw, and ib_*_lat, of one end or of both.

     #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]
     8388608    20000            24056.74            24056.72              0.003007

Tables are read by their header. MB is 2^20 bytes there and Gb is 10^9 bits, so both become Gb/s. In duration mode the
peak is printed as 0.00 and was not measured.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers import (
    launched,
    perftest_faults,
    streams,
)
from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers.excerpts import excerpt
from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers.outcome import (
    CONFIGURATION,
    TOOL,
    Outcome,
    metric,
    number,
)
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument

_TITLE = re.compile(
    r"^\s*(?P<verb>RDMA_Write(?:_with_imm|_IMM)?|RDMA_Read|Send|Atomic(?: [A-Z_]+)?|Raw Ethernet Send|Write|Read)\s"
    r"(?P<more>(?:[\w-]+ ){0,4})(?P<kind>BW|Latency|Lat) Test\s*\Z",
    re.IGNORECASE,
)
_RULE = re.compile(r"\s*-{20,}\s*\Z")
_COLUMN = re.compile(r"#\w+|[A-Za-z\d][^#\[\]]*\[[^\]]*\]|tps average")
_PAIR = re.compile(r"(?:^|\s{2,}|\t)\s*(?P<key>[A-Za-z][\w .*+/-]*?)\s*:\s+(?P<value>\S+(?: \S+)*?)(?=\s{2,}|\t|\Z)")
_ADDRESS = re.compile(
    r"^\s*(?P<side>local|remote) address: LID (?P<lid>0x[0-9a-fA-F]+|\d+)(?: QPN (?P<qpn>0x[0-9a-fA-F]+))?"
)
_GID = re.compile(r"^\s*GID: (?P<gid>[0-9a-fA-F:.]{2,64})\s*\Z")
_CELL = re.compile(r"[+-]?(?:\d{1,25}(?:\.\d{0,25})?(?:[eE][+-]?\d{1,4})?|nan|inf)\Z", re.IGNORECASE)
_FACTS = {
    "Device": "device",
    "Transport type": "transport",
    "Connection type": "connection",
    "Link type": "link",
    "Number of qps": "queuePairs",
    "Mtu": "mtu",
    "GID index": "gidIndex",
    "TX depth": "txDepth",
    "Dual-port": "dualPort",
    "rdma_cm QPs": "rdmaCm",
    "CUDA device": "cuda",
}
_COLUMNS = {
    "#bytes": "size",
    "#iterations": "iterations",
    "BW peak": "peak",
    "BW average": "average",
    "MsgRate": "messageRate",
    "t_min": "min",
    "t_max": "max",
    "t_typical": "typical",
    "t_avg": "average",
    "t_stdev": "stdev",
    "99% percentile": "p99",
    "99.9% percentile": "p999",
    "tps average": "transactionsPerSecond",
    "CPU_Util": "cpuPercent",
}
# what a column's unit is in Gb/s, in microseconds, in millions a second
_BANDWIDTH = {
    "MB": 2**20 * 8 / 1e9,
    "MiB": 2**20 * 8 / 1e9,
    "Gb": 1.0,
    "Gbit": 1.0,
    "GB": 2**30 * 8 / 1e9,
    "KB": 2**10 * 8 / 1e9,
}


@dataclass
class _Run:
    line: int
    title: str = ""
    test: str = ""
    kind: str = ""  # bandwidth or latency
    bidirectional: bool = False
    role: str = ""
    facts: dict = field(default_factory=dict)
    local: dict = field(default_factory=dict)
    remote: dict = field(default_factory=dict)
    columns: list[tuple[str, str]] | None = None
    rows: list[dict] = field(default_factory=list)
    closed: bool = False

    @property
    def loopback(self) -> bool | None:
        """Both ends are the same port; None where the output does not tell."""
        for name in ("gid", "lid"):
            ends = [end.get(name) for end in (self.local, self.remote)]
            if all(ends):
                return ends[0] == ends[1]
        return None

    @property
    def complete(self) -> bool:
        # the server of a one-sided latency test prints no rows
        silent = self.role == "server" and self.kind == "latency" and bool(self.remote)
        return self.closed and (bool(self.rows) or silent)


def parse(text: streams.Text, *, expected_device: object = None, expected_link: object = None) -> dict:
    """The runs, and what is wrong with them, as `outcome` describes.

    A run: {test, role, bidirectional, loopback, device, rows: [{size, iterations, peak, average (Gb/s), messageRate
    (millions a second)}] or, for latency, [{size, iterations, min, max, typical, average, p99, p999 (us)}], metrics}.
    `expected_device` is the adapter (mlx5_0), `expected_link` IB or Ethernet. Raises InvalidDocument.
    """
    for name, value in (("expected_device", expected_device), ("expected_link", expected_link)):
        if value is not None and not isinstance(value, str):
            raise InvalidDocument(f"{name}={value!r} is no name", path=name, hint="such as mlx5_0, or IB")
    reader = _Reader()
    reader.read(text)
    return reader.finish(expected_device or "", expected_link or "")


class _Reader:
    def __init__(self) -> None:
        self.outcome = Outcome("perftest")
        self.runs: list[_Run] = []
        self.by_source: dict[str, list[_Run]] = {}
        self.waiting: set[str] = set()
        self.side: dict[str, str] = {}

    def read(self, text: streams.Text) -> None:
        own = re.compile(r"\s*(?:#bytes|-{20}|\d+\s+\d+\s|(?:local|remote) address:|GID:|\w+ ?\w* *:)")
        lines = list(launched.read(text, own))
        self.outcome.lines = lines[-1].number if lines else 0
        following: dict[str, str] = {}
        after: list[str] = []
        for line in reversed(lines):
            after.append(following.get(line.source, ""))
            if line.text.strip() and not _RULE.match(line.text):
                following[line.source] = line.text
            elif _RULE.match(line.text):
                following[line.source] = "-"
        for line, then in zip(lines, reversed(after), strict=True):
            if len(line.text) <= 2000:
                self._line(line, then)

    def _line(self, line: launched.Line, then: str) -> None:
        text = line.text
        runs = self.by_source.setdefault(line.source, [])
        run = runs[-1] if runs else None
        if not text.strip():
            return
        if _RULE.match(text):
            self._rule(runs, then)
            return
        title = _TITLE.match(text)
        if title:
            self._begin(line, runs, title)
            return
        if "Waiting for client" in text:
            self.waiting.add(line.source)
            return
        if "#bytes" in text and "[" in text:
            columns = _columns(text)
            if columns:
                if run is None or run.columns:
                    run = self._begin(line, runs, None)
                run.columns = columns
                run.kind = run.kind or ("latency" if any(unit == "usec" for _name, unit in columns) else "bandwidth")
                return
        if self._fault(line):
            return
        address = _ADDRESS.match(text)
        if address and run:
            self.side[line.source] = address["side"]
            end = run.local if address["side"] == "local" else run.remote
            if int(address["lid"], 16):
                end["lid"] = f"0x{int(address['lid'], 16):04x}"
            return
        gid = _GID.match(text)
        if gid and run:
            end = run.local if self.side.get(line.source) == "local" else run.remote
            end.setdefault("gid", gid["gid"].lower())
            return
        if run and run.columns and self._row(line, run):
            return
        if run and not run.columns:
            for pair in _PAIR.finditer(text):
                name = _FACTS.get(pair["key"])
                if name:
                    run.facts[name] = pair["value"][:80]

    def _begin(self, line: launched.Line, runs: list[_Run], title: re.Match | None) -> _Run:
        run = _Run(line.number)
        if title:
            run.title = " ".join(title[0].split())
            run.kind = "bandwidth" if title["kind"].upper() == "BW" else "latency"
            run.bidirectional = "bidirectional" in title["more"].lower()
            verb = title["verb"].lower().removeprefix("rdma_").split()[0].split("_")[0]
            run.test = f"ib_{verb}_{'bw' if run.kind == 'bandwidth' else 'lat'}" if verb != "raw" else "raw_ethernet"
        if line.source in self.waiting:
            run.role = "server"
            self.waiting.discard(line.source)
        elif title:
            run.role = "client"
        runs.append(run)
        self.runs.append(run)
        return run

    def _rule(self, runs: list[_Run], then: str) -> None:
        """A rule ends a table unless a title, an address or a header follows."""
        if _TITLE.match(then) or _ADDRESS.match(then) or "#bytes" in then:
            return
        for run in runs:
            if not run.closed and (run.rows or (run.remote and run.role == "server")):
                run.closed = True
                return

    def _row(self, line: launched.Line, run: _Run) -> bool:
        words = line.text.split()
        if not words[0].isdigit():
            return False
        if not all(_CELL.match(word) for word in words) or len(words) != len(run.columns):
            self.outcome.unread(line.number, excerpt(line.text), "does not fit the table's header")
            return True
        row: dict = {"line": line.number}
        for (name, unit), word in zip(run.columns, words, strict=True):
            value = number(word)
            if value is None:
                continue
            if name in ("size", "iterations"):
                row[name] = int(value)
            elif run.kind == "bandwidth" and name in ("peak", "average"):
                if unit in _BANDWIDTH and (value or name == "average"):
                    row[name] = round(value * _BANDWIDTH[unit], 4)
            else:
                row[name] = value
        run.rows.append(row)
        return True

    def _fault(self, line: launched.Line) -> bool:
        text = line.text
        if "Conflicting CPU frequency" in text:
            self.outcome.find(
                "cpu-frequency",
                "The processor's frequency is not at its maximum, which makes latencies inexact",
                severity="info",
                line=line.number,
                text=excerpt(text),
                category=CONFIGURATION,
            )
            return True
        fault = perftest_faults.of_line(text)
        if fault:
            self.outcome.find(
                fault.code,
                fault.message,
                scope=fault.scope,
                host=streams.host_of(line.source),
                entity=fault.entity,
                line=line.number,
                text=excerpt(text),
                category=fault.category,
            )
        return fault is not None

    def finish(self, device: str, link: str) -> dict:
        outcome = self.outcome
        for run in self.runs:
            self._check(run, device, link)
        if not self.runs:
            outcome.find("no-run", "The output holds no run of perftest", scope="run", category=TOOL)
        outcome.runs = [_as_dict(run) for run in self.runs]
        outcome.complete = bool(self.runs) and all(run.complete for run in self.runs)
        outcome.findings.sort(key=lambda finding: (finding["line"] is None, finding["line"] or 0))
        return outcome.result()

    def _check(self, run: _Run, device: str, link: str) -> None:
        name = run.test or "the run"
        if not run.complete:
            done = f"after {len(run.rows)} rows" if run.rows else "before anything was measured"
            self.outcome.find("run-incomplete", f"{name} ended {done}", scope="run", line=run.line)
        if run.loopback:
            self.outcome.find(
                "loopback",
                f"{name} went from a port to itself: no cable and no switch was tested",
                severity="info",
                scope="run",
                entity=run.facts.get("device"),
                line=run.line,
                category=CONFIGURATION,
            )
        if any(row.get("average") == 0 for row in run.rows) and run.kind == "bandwidth":
            self.outcome.find("no-traffic", f"{name} measured 0 Gb/s at a size", scope="pair", line=run.line)
        for wanted, key, what in ((device, "device", "adapter"), (link, "link", "link")):
            found = run.facts.get(key)
            if not wanted or (found or "").lower() == wanted.lower():
                continue
            self.outcome.find(
                f"wrong-{what}" if found else f"{what}-unknown",
                f"{name} used {found} instead of {wanted}" if found else f"{name} does not tell its {what}",
                scope="run",
                line=run.line,
                category=CONFIGURATION if found else TOOL,
            )


def _columns(text: str) -> list[tuple[str, str]] | None:
    """[(name, unit)] of a table's header, unknown ones with the name they have."""
    columns = []
    for word in _COLUMN.findall(text):
        title, _bracket, unit = word.partition("[")
        title = title.strip()
        columns.append((_COLUMNS.get(title, title), unit.rstrip("]").partition("/")[0].strip()))
    known = {name for name, _unit in columns}
    return columns if "size" in known and known & {"average", "typical", "peak"} else None


def _as_dict(run: _Run) -> dict:
    return {
        "test": run.test or None,
        "title": run.title,
        "kind": run.kind,
        "role": run.role or None,
        "bidirectional": run.bidirectional,
        "loopback": run.loopback,
        "line": run.line,
        "complete": run.complete,
        "facts": run.facts,
        "local": run.local,
        "remote": run.remote,
        "units": {"size": "B", "peak": "Gb/s", "average": "Gb/s", "messageRate": "Mpps"}
        if run.kind == "bandwidth"
        else {"size": "B", "min": "us", "max": "us", "typical": "us", "average": "us", "p99": "us", "p999": "us"},
        "rows": run.rows,
        "metrics": _metrics(run),
        "ranks": [],
        "hosts": [],
        "transports": [{"kind": run.facts["link"]}] if "link" in run.facts else [],
    }


def _metrics(run: _Run) -> dict:
    """Best bandwidth over the sizes, latency of the smallest size."""
    if not run.rows:
        return {}
    metrics: dict = {}
    if run.kind == "bandwidth":
        for name, key, unit in (
            ("bandwidthAverageGbps", "average", "Gb/s"),
            ("bandwidthPeakGbps", "peak", "Gb/s"),
            ("messageRateMpps", "messageRate", "Mpps"),
        ):
            values = [row[key] for row in run.rows if key in row]
            if values:
                metrics[name] = metric(max(values), unit)
        return metrics
    smallest = min(run.rows, key=lambda row: row.get("size", 0))
    for name, key in (
        ("latencyTypicalUs", "typical"),
        ("latencyAverageUs", "average"),
        ("latencyMinUs", "min"),
        ("latencyMaxUs", "max"),
        ("latencyP99Us", "p99"),
        ("latencyP999Us", "p999"),
    ):
        if key in smallest:
            metrics[name] = metric(smallest[key], "us")
    return metrics
