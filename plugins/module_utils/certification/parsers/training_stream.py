# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps that one process of a training run reports."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers import streams
from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers.outcome import metric
from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers.training_fields import (
    COUNT,
    GLOBAL_STEP,
    LOSS,
    MEMORY,
    NANS,
    RESERVED,
    SAMPLES,
    SKIPPED,
    STEP_TIME,
    TFLOPS,
    TOKENS,
    TOKENS_PER_GPU,
)
from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers.training_series import Series, Thinned

ROWS = 1000  # steps kept one by one, spread evenly over the run
LATE = 3  # steps by which ranks that write to one log may be apart

_COLUMNS = (
    ("stepTimeSec", STEP_TIME),
    ("loss", LOSS),
    ("tflopsPerGpu", TFLOPS),
    ("tokensPerSec", TOKENS),
    ("tokensPerSecPerGpu", TOKENS_PER_GPU),
)
_SERIES = (
    (TFLOPS, "tflopsPerGpu", "TFLOP/s", "avgTFLOPsPerGPU"),
    (TOKENS, "tokensPerSec", "tokens/s", ""),
    (TOKENS_PER_GPU, "tokensPerSecPerGpu", "tokens/s", ""),
    (SAMPLES, "samplesPerSec", "samples/s", ""),
)


class Stream:
    """`take` each step in the order of the log."""

    def __init__(self, label: str, warmup: int):
        self.label = label
        self.framework = ""
        self.steps = self.dropped = self.restarts = self.repeated = 0
        self.first: int | None = None
        self.last: int | None = None
        self.total: int | None = None
        self.reached = False  # the last step of the plan was printed
        self.line: int | None = None
        self.last_line: int | None = None
        self.bad_losses = 0
        self.bad_line: int | None = None
        self.skipped = self.nans = 0
        self.nan_line: int | None = None
        self.restart_lines: list[tuple[int, int, int]] = []  # (line, from, to)
        self.losses: list[float] = []  # first and last
        self.memory = self.reserved = 0.0
        self.times = Series()
        self.series = {kind: Series() for kind, _name, _unit, _alias in _SERIES}
        self.thinned = Thinned(ROWS)
        self._warmup = warmup
        self._base: int | None = None  # the step before the first, where it is known
        self._offset = 0  # of an epoch that counts anew
        self._highest: int | None = None
        self._productive = 0.0
        self._began: float | None = None
        self._ended: float | None = None

    def take(self, line: int, step: int | None, total: int | None, values: list, time: float | None) -> None:
        """`values` by field of training_fields; `step` None where the log does not number its steps."""
        last = self.last
        if values[GLOBAL_STEP] is not None:
            number = int(values[GLOBAL_STEP])
        elif step is None:
            number = 0 if last is None else last + 1
        else:
            number = step + self._offset
            if (
                last is not None
                and self.total
                and last - self._offset >= self.total
                and (number <= last - min(LATE + 1, self.total))
            ):
                self._offset = last + 1  # the next epoch
                number = step + self._offset
        weight = 1
        warm = False
        if last is None:
            self.first, self.line, warm = number, line, self._warmup > 0
        else:
            weight = number - last
            if -LATE <= weight <= 0:
                self.repeated += 1
                return
            if weight < 0:
                self._restart(line, last, number)
                weight, warm = 1, self._warmup > 0
            elif self._base is None:
                self._base = last - weight  # the log's interval tells what its first line stands for
                warm = weight < self._warmup
            elif self._warmup:
                warm = last - self._base < self._warmup
        self.last, self.last_line = number, line
        if total is not None:
            self.total = total
            self.reached = step is not None and step >= total
        self.steps += 1
        self._clock(number, weight, values[STEP_TIME], time)
        self._health(line, values)
        if warm:
            self.dropped += 1
        else:
            duration = values[STEP_TIME]
            if duration is not None and isfinite(duration) and duration > 0:
                self.times.add(duration)
            for kind, series in self.series.items():
                value = values[kind]
                if value is not None and isfinite(value):
                    series.add(value)
        thinned = self.thinned
        if thinned.count % thinned.stride == 0:
            thinned.add((number, line, time, warm, *[values[kind] for _name, kind in _COLUMNS]))
        thinned.count += 1

    def take_all(
        self,
        lines: Sequence[int],
        steps: list[int],
        totals: Sequence[str],
        columns: dict[int, list],
        times: Sequence[float | None],
    ) -> None:
        """Many steps at once: as one after the other, but quicker where nothing is out of the ordinary."""
        sums = self._sums(steps, totals, columns)
        if sums is None:
            for index, line in enumerate(lines):
                values: list = [None] * COUNT
                for kind, column in columns.items():
                    values[kind] = column[index]
                self.take(line, steps[index], int(totals[index]), values, times[index])
            return
        first = (self.last or 0) + 1
        self.steps += len(lines)
        self.last = self._highest = first + len(lines) - 1
        self.last_line = lines[-1]
        self.reached = self.total is not None and steps[-1] >= self.total
        self.times.add_all(columns[STEP_TIME], sums[STEP_TIME])
        self._productive += sums[STEP_TIME]
        for kind, series in self.series.items():
            if kind in columns:
                series.add_all(columns[kind], sums[kind])
        if LOSS in columns:
            self.losses[1] = columns[LOSS][-1]
        if MEMORY in columns:
            self.memory = max(self.memory, *columns[MEMORY])
        if RESERVED in columns:
            self.reserved = max(self.reserved, *columns[RESERVED])
        if times[-1] is not None:
            self._ended = times[-1]
        thinned = self.thinned
        for index in range(-thinned.count % thinned.stride, len(lines), thinned.stride):
            kept = [columns[kind][index] if kind in columns else None for _name, kind in _COLUMNS]
            thinned.rows.append((first + index, lines[index], times[index], False, *kept))
        thinned.count += len(lines)
        thinned.shrink()

    def _sums(self, steps: list[int], totals: Sequence[str], columns: dict[int, list]) -> dict[int, float] | None:
        """The columns' sums, if all steps follow one another, after the warm-up, with sound numbers."""
        count, last = len(steps), self.last
        if last is None or self._base is None or self._highest != last or STEP_TIME not in columns:
            return None
        if (LOSS in columns and len(self.losses) < 2) or (self._warmup and last - self._base < self._warmup):
            return None
        if len(set(totals)) > 1 or int(totals[0]) != self.total or steps != list(range(steps[0], steps[0] + count)):
            return None
        sums = {}
        for kind, column in columns.items():
            try:
                sums[kind] = sum(column)
            except TypeError:  # a value that cannot be read
                return None
            if not isfinite(sums[kind]) or (kind in (SKIPPED, NANS) and sums[kind]):
                return None
        if min(columns[STEP_TIME]) <= 0 or any(sums.get(kind, 0) >= 1e15 for kind in (MEMORY, RESERVED)):
            return None
        numbers = columns.get(GLOBAL_STEP)
        if numbers is None:
            return sums if steps[0] + self._offset == last + 1 else None
        return sums if numbers == list(map(float, range(last + 1, last + 1 + count))) else None

    def _restart(self, line: int, last: int, number: int) -> None:
        self.restarts += 1
        if len(self.restart_lines) < 100:
            self.restart_lines.append((line, last, number))
        self._base = number - 1

    def _clock(self, number: int, weight: int, duration: float | None, time: float | None) -> None:
        """Time in steps that were not lost again; the first line only starts the clock."""
        if self._highest is None:
            self._highest = number
        elif number > self._highest:
            if duration is not None and isfinite(duration):
                self._productive += duration * min(weight, number - self._highest)
            self._highest = number
        if time is not None:
            if self._began is None and self.steps == 1:
                self._began = time
            self._ended = time

    def _health(self, line: int, values: list) -> None:
        loss = values[LOSS]
        if loss is not None:
            if isfinite(loss):
                if len(self.losses) < 2:
                    self.losses.append(loss)
                else:
                    self.losses[1] = loss
            else:
                self.bad_losses += 1
                self.bad_line = self.bad_line or line
        if values[SKIPPED]:
            self.skipped += int(values[SKIPPED]) if isfinite(values[SKIPPED]) else 0
        if values[NANS]:
            self.nans += int(values[NANS]) if isfinite(values[NANS]) else 1
            self.nan_line = self.nan_line or line
        if values[MEMORY] is not None and self.memory < values[MEMORY] < 1e15:
            self.memory = values[MEMORY]
        if values[RESERVED] is not None and self.reserved < values[RESERVED] < 1e15:
            self.reserved = values[RESERVED]

    def run(self) -> dict:
        return {
            "test": "training",
            "framework": self.framework or None,
            "label": self.label or None,
            "steps": self.steps,
            "firstStep": self.first,
            "lastStep": self.last,
            "totalSteps": self.total,
            "warmupDropped": self.dropped,
            "restarts": self.restarts,
            "repeated": self.repeated,
            "line": self.line,
            "rows": [_row(row) for row in self.thinned.rows],
            "metrics": self._metrics(),
            "ranks": [self.label] if self.label else [],
            "hosts": [host] if (host := streams.host_of(self.label)) else [],
            "transports": [],
        }

    def _metrics(self) -> dict:
        metrics = {"steps": metric(len(self.times), "")}
        if self.times:
            metrics["avgStepTimeSec"] = metric(self.times.mean, "s")
            metrics["stepTimeSec.median"] = metric(self.times.quantile(0.5), "s")
            metrics["stepTimeSec.p95"] = metric(self.times.quantile(0.95), "s")
            metrics["stepTimeSec.max"] = metric(self.times.highest, "s")
        for kind, name, unit, alias in _SERIES:
            series = self.series[kind]
            if series:
                if alias:
                    metrics[alias] = metric(series.mean, unit)
                metrics[f"{name}.median"] = metric(series.quantile(0.5), unit)
                metrics[f"{name}.p10"] = metric(series.quantile(0.1), unit)
        if self.losses:
            metrics["loss.first"], metrics["loss.last"] = metric(self.losses[0], ""), metric(self.losses[-1], "")
        if self.memory:
            metrics["peakMemoryBytes"] = metric(self.memory, "B")
        if self.reserved:
            metrics["peakReservedBytes"] = metric(self.reserved, "B")
        if self._began is not None and self._ended is not None and self._ended > self._began and self.times:
            share = self._productive / (self._ended - self._began)
            # clocks to the second make a short run look better than whole
            metrics["goodputRatio"] = metric(min(1.0, share), "")
        return metrics


def _row(row: tuple) -> dict:
    number, line, time, warm, *values = row
    entry: dict = {"step": number, "line": line}
    if time is not None:
        entry["time"] = time
    if warm:
        entry["warmup"] = True
    for (name, _kind), value in zip(_COLUMNS, values, strict=True):
        if value is not None and isfinite(value):
            entry[name] = value
    return entry
