# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A history of measurements: lines of JSON into series, and series into windows of time. Pure but for reading files.

A line is {node, at, entity?, workload?, bootId?, uid?, machineId?} with either {metric, value} or {values: {metric:
value}}: `at` is a time with its zone, `entity` a GPU's UUID, a NIC's port, or "" for the whole node. null is not told.
What was measured under different workloads (a job's model, a test's options) is never compared.

A window is `hours` long and counted from 1970, so that every pass cuts the same ones. A gauge's value is the median of
what was measured in it. A counter's is its increase per hour of the time that was seen; an interval in which it
began anew (a boot, a reset, a decrease), or that is longer than `gap`, tells nothing.
"""

from __future__ import annotations

import json
import math
import os
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime

from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle.metrics import Metric
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import NotFound, Problem, nearest

_NUMBERS = (int, float)
SHOWN = 20  # problems that are kept; the others are counted
SKEW = 300.0  # seconds that another machine's clock may be ahead
_FORM = '{"node": "gpu-0007", "at": "2026-11-29T12:00:00Z", "entity": "GPU-…", "values": {"gpu_temperature": 61}}'
About = tuple[str, str, str]  # node, entity, workload


class Series:
    """Times (seconds since 1970), values, and numbers of boots, as they came."""

    __slots__ = ("boots", "sorted", "times", "values")

    def __init__(self) -> None:
        self.times, self.values, self.boots, self.sorted = array("d"), array("d"), array("i"), True

    def order(self) -> None:
        """By time; of what was recorded twice for one time, the last."""
        if not self.sorted:
            rows = sorted({row[0]: row for row in zip(self.times, self.values, self.boots, strict=True)}.values())
            self.times = array("d", (row[0] for row in rows))
            self.values = array("d", (row[1] for row in rows))
            self.boots = array("i", (row[2] for row in rows))
            self.sorted = True


class History:
    """series: {(node, entity, workload): {metric: Series}}.

    nodes: {name: {uid?, machineId?, created?}} of the cluster as it is (created in seconds since 1970). What belongs to
    an earlier machine of that name is left out: another uid, else another machine id, or none and older than the node.
    None: names are trusted.
    """

    def __init__(
        self, metrics: Mapping[str, Metric], now: float, keep: float, nodes: Mapping[str, Mapping] | None = None
    ) -> None:
        """now: seconds since 1970; keep: seconds, how far back."""
        self.metrics, self.now, self.since, self.nodes = dict(metrics), now, now - keep, nodes
        self.series: dict[About, dict[str, Series]] = {}
        self.problems: list[Problem] = []
        self.counts: Counter = Counter()  # lines, samples, unreadable, old, strangers, otherMachine
        self.unknown: Counter = Counter()  # metrics that no table knows
        self._boots: dict[str, int] = {"": 0}
        self._times: dict[str, float | None] = {}

    def read(self, paths: Iterable[str]) -> None:
        """Files, and in directories all *.jsonl. Raises NotFound for what cannot be read; bad lines are problems."""
        decode = json.JSONDecoder(parse_constant=_refuse).decode
        for path in files(paths):
            try:
                with open(path, encoding="utf-8", errors="replace") as lines:
                    for number, line in enumerate(lines, 1):
                        if line.strip():
                            try:
                                self.add(decode(line), path, number)
                            except (ValueError, RecursionError) as error:
                                self._bad(f"is no line of JSON: {error}", path, number)
            except OSError as error:
                raise NotFound(f"cannot be read: {os.strerror(error.errno or 0)}", file=path) from error

    def add(self, line: object, source: str, number: int | None = None) -> None:
        """One line. What is wrong with it becomes a problem, and what is right in it counts."""
        self.counts["lines"] += 1
        if not isinstance(line, dict) or not isinstance(line.get("node"), str) or not line["node"]:
            return self._bad("tells no node", source, number)
        node, entity, boot = line["node"], line.get("entity") or "", line.get("bootId") or ""
        workload = line.get("workload") or ""
        if not (isinstance(entity, str) and isinstance(boot, str) and isinstance(workload, str)):
            return self._bad("entity, workload and bootId are texts", source, number)
        time = self._time(line.get("at"))
        if time is None:
            return self._bad(f"{line.get('at')!r} is no time with a zone", source, number)
        if time > self.now + SKEW:
            return self._bad(f"{line['at']} is in the future: look at that machine's clock", source, number)
        values = line["values"] if "values" in line else {line.get("metric"): line.get("value")}
        if not isinstance(values, dict):
            return self._bad("values are no map", source, number)
        if time < self.since:
            self.counts["old"] += 1
        elif self._same_machine(node, line, time):
            self._keep((node, entity, workload), values, time, boot, source, number)
        return None

    def _keep(self, about: About, values: Mapping, time: float, boot: str, source: str, number: int | None) -> None:
        mine = self.series.setdefault(about, {})
        boot_number = self._boots.setdefault(boot, len(self._boots))
        kept = 0
        for metric, value in values.items():
            series = mine.get(metric)
            if series is None or type(value) not in _NUMBERS or not 0 <= value < math.inf:
                wrong = self._wrong(metric, value)
                if wrong:
                    self._bad(wrong, source, number)
                if wrong is not None:
                    continue
                if series is None:
                    series = mine[metric] = Series()
            times = series.times  # here rather than in a method, for there are tens of millions of them
            if times and time <= times[-1]:
                series.sorted = False
            times.append(time)
            series.values.append(value)
            series.boots.append(boot_number)
            kept += 1
        self.counts["samples"] += kept

    def _wrong(self, metric: object, value: object) -> str | None:
        """None where it counts, "" where it is to be left out without a word."""
        if value is None:
            return ""
        if metric not in self.metrics:
            self.unknown[str(metric)] += 1
            return ""
        if type(value) not in _NUMBERS or not math.isfinite(value):
            return f"{metric}: {value!r} is no number"
        if value < 0 and self.metrics[metric].kind != "gauge":
            return f"{metric}: a counter is never {value!r}"
        return None

    def _same_machine(self, node: str, line: Mapping, time: float) -> bool:
        if self.nodes is None:
            return True
        if node not in self.nodes:
            self.counts["strangers"] += 1
            return False
        known = self.nodes[node]
        name = next((name for name in ("uid", "machineId") if line.get(name)), "")
        same = line[name] == known.get(name) if name else time >= known.get("created", 0.0)
        self.counts["otherMachine"] += not same
        return same

    def _time(self, text: object) -> float | None:
        if not isinstance(text, str):
            return None
        if text not in self._times:
            self._times[text] = seconds(text)
        return self._times[text]

    def _bad(self, what: str, source: str, number: int | None) -> None:
        self.counts["unreadable"] += 1
        if len(self.problems) < SHOWN:
            self.problems.append(Problem("unreadable-sample", what[:300], source, number, hint=f"such as {_FORM}"))

    def unknown_words(self) -> list[str]:
        return [
            f"{name}: no known metric, {count} values left out ({nearest(name, self.metrics)})"
            for name, count in sorted(self.unknown.items())[:SHOWN]
        ]


def seconds(text: str) -> float | None:
    """Since 1970; None for what is no time, or has no zone."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at.timestamp() if at.tzinfo else None


def utc(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def files(paths: Iterable[str]) -> Iterator[str]:
    """Those named, and the *.jsonl of directories by name. Raises NotFound."""
    for path in paths:
        if os.path.isdir(path):
            yield from (os.path.join(path, name) for name in sorted(os.listdir(path)) if name.endswith(".jsonl"))
        elif os.path.exists(path):
            yield path
        else:
            raise NotFound("no such file or directory", file=str(path), hint="the history that maintain collects")


def windows(series: Series, metric: Metric, now: float, gap: float = 6.0) -> dict[int, float]:
    """{number of the window: value}, in order of time; the one that is not over yet only where metric.partial.

    gap: windows that an interval of a counter may be long. Window k begins k * metric.hours * 3600 after 1970.
    """
    series.order()
    length = metric.hours * 3600
    last = int(now // length) + metric.partial
    if metric.kind == "gauge":
        return _gauge(series, length, last)
    found: dict[int, list[float]] = {}
    for start, end, increase in increases(series, metric, gap * length):
        window = int(end // length)
        if window < last:
            sums = found.setdefault(window, [0.0, 0.0])
            sums[0] += increase
            sums[1] += end - start
    return {window: increase / passed * 3600 for window, (increase, passed) in found.items()}


def increases(series: Series, metric: Metric, longest: float = math.inf) -> Iterator[tuple[float, float, float]]:
    """(begin, end, increase) of every interval that tells something; `series` in order."""
    survives = metric.kind == "total"
    times, values, boots = series.times, series.values, series.boots
    for index in range(1, len(times)):
        increase = values[index] - values[index - 1]
        if increase >= 0 and (survives or boots[index] == boots[index - 1]):
            start, end = times[index - 1], times[index]
            if end - start <= longest:
                yield start, end, increase


def _gauge(series: Series, length: float, last: int) -> dict[int, float]:
    found: dict[int, float] = {}
    current, held = None, []
    for time, value in zip(series.times, series.values, strict=True):
        window = int(time // length)
        if window != current:
            if held:
                found[current] = median(held)
            if window >= last:
                return found
            current, held = window, []
        held.append(value)
    if held:
        found[current] = median(held)
    return found


def median(values: Iterable[float]) -> float:
    ordered = sorted(values)
    middle, odd = divmod(len(ordered), 2)
    return ordered[middle] if odd else (ordered[middle - 1] + ordered[middle]) / 2


def spread(values: Iterable[float], centre: float) -> float:
    """The median absolute deviation, scaled to what a standard deviation is among normal values."""
    return 1.4826 * median(abs(value - centre) for value in values)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number")
