# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Step lines of NeMo 2, Megatron-LM, Megatron-Bridge, Megatron-DeepSpeed and nanotron.

    parse(log, warmup_steps=10, min_steps=50, silence_seconds=300) -> see `outcome`

A run is the steps that one process printed, by the launcher's label: {test: "training", framework, label, steps,
firstStep, lastStep, totalSteps, warmupDropped, restarts, repeated, rows: [{step, line, stepTimeSec, loss, …}] (at most
1,000, spread evenly), gaps: [{line, seconds}], metrics: {avgStepTimeSec, stepTimeSec.median, .p95, .max,
avgTFLOPsPerGPU, tflopsPerGpu.median, .p10, tokensPerSec.*, tokensPerSecPerGpu.*, peakMemoryBytes, loss.first, .last,
goodputRatio, maxSilenceSec, …}}. What the log does not print is absent. Steps of the warm-up count in `steps` and
`rows` and in no metric.

The log may be an open file or any iterable of lines: it is never whole in memory, and the result does not grow with it.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers import (
    streams,
    training_faults,
    training_fields,
    training_layout,
)
from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers.outcome import (
    INFRASTRUCTURE,
    TOOL,
    UNKNOWN,
    Outcome,
    metric,
    whole,
)
from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers.training_blocks import blocks
from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers.training_fields import (
    COUNT,
    STEP_TIME,
    TFLOPS,
)
from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers.training_layout import Layout
from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers.training_stream import Stream

STREAM_LIMIT = 4096
PREFIX = 1000  # characters before a step
PARTS = 200  # fields of a step
GAPS = 20  # the longest silences that are kept

_STAMP = re.compile(
    r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)(?:[.,]\d{1,9})?\s?(Z|[+-]\d\d:?\d\d)?|(\d\d/\d\d/\d{4} \d\d:\d\d:\d\d)"
)
_AT_START = re.compile(
    r"(?:\[\d{1,9},\d{1,9}\]<\w{1,10}>:\s{0,2}|\[[^\]\d][^\]]{0,60}\][:>]?\s{0,4}|\s{0,6}[^\s:\[]{1,100}:\s{1,4}){0,2}"
    r"\s{0,6}\[?(?:NeMo\s\w\s)?(?=\d\d(?:\d\d-|/\d\d/))"
)
_NO_STEP = re.compile(r"valid|test|eval|checkpoint|\bat\s*$|\(after\s*\d*\s*$", re.IGNORECASE)
# what is left of a time in a prefix
_TIMED = re.compile(r"\[?\0(?:[.,]\d+)?\s?(?:Z|UTC|[+-]\d\d:?\d\d)?\s?\]?:?(?:\s*std(?:out|err)\s[FP]\s)?")
_WORDS = re.compile(r"\[?(?:Training\s+)?epoch\s+\d+,?|\[NeMo \w[^\]]*\]|\[INFO[^\]]*\]:?|INFO:?", re.IGNORECASE)
_BRIDGE = re.compile(
    r"Step Time\s*:\s*([\d.eE+-]+)\s*(ms|s)\b(?:.*?([\d.eE+-]+|nan)\s*MODEL_TFLOP/s/GPU)?", re.IGNORECASE
)
_SECONDS = {f"{second:02d}": second for second in range(61)}
_BAR_MARK = "step_timing in s="
_BAR = re.compile(r"\b(\d{1,9})/(\d{1,9}) \[([^\]]{1,2000})\]")
_MEMORY = re.compile(
    r"\bmax allocated:\s*([\d.]+)(?P<mega>)|MaxMemAllocated=([\d.]+)\s*GB|Peak allocated:?\s*([\d.]+)\s*MiB"
)
_FRAMEWORKS = (
    ("train_step_timing", "nemo2"),
    ("elapsed_time_per_iteration_ms", "nanotron"),
    ("TFLOPs:", "megatron-deepspeed"),
    ("elapsed time per iteration", "megatron-lm"),
)


def parse(
    log: streams.Text, *, warmup_steps: object = 0, min_steps: object = None, silence_seconds: object = 300
) -> dict:
    """All steps of a log. Raises InvalidDocument for parameters that cannot be, and for what is no log.

    `warmup_steps` are left out of the metrics, by the steps' numbers, also after each restart; with fewer measured
    steps than `min_steps`, or a pause between lines with times of at least `silence_seconds`, there is a finding.
    """
    parser = Parser(
        whole(warmup_steps, "warmup_steps") or 0,
        whole(min_steps, "min_steps"),
        whole(silence_seconds, "silence_seconds", 1),
    )
    for block in blocks(log):
        parser.feed(block)
    return parser.close()


class Parser:
    """The same for a log that comes in pieces: `feed` blocks of whole lines, then `close`."""

    def __init__(self, warmup: int = 0, min_steps: int | None = None, silence: int | None = 300):
        self._outcome = Outcome("training")
        self._warmup, self._min_steps, self._silence = warmup, min_steps, silence or float("inf")
        self._streams: dict[str, Stream] = {}
        self._lines = 0
        self._layout: Layout | None = None  # of the last step line
        self._rows: dict[str, list[tuple]] = {}  # label: step lines that lie like that one, still as text
        self._origins: dict[str, str | None] = {}
        self._open: tuple | None = None  # a step line that may go on in the next line
        self._ahead: dict[str, tuple[int, float, float | None]] = {}  # Megatron-Bridge's line before a step
        self._numbers: list[int] = []  # lines of the block that are no steps
        self._texts: list[str] = []
        self._framework = ""
        self._ends = ("", "")  # what the last two blocks held beside steps
        self._places: tuple[int, ...] = ()  # where times stand in lines, the last found first
        self._years = ("", "")
        self._minute = ""
        self._minute_began = 0.0
        self._latest: float | None = None  # over all processes, whose clocks differ
        self._gaps: list[tuple[float, int]] = []
        self._memory = 0.0

    def feed(self, block: str) -> None:
        rare = "Step Time" in block or "llocated" in block or _BAR_MARK in block
        returns = "\r" in block
        lines = block.split("\n")
        if not lines[-1]:
            lines.pop()
        number = self._lines
        for line in lines:
            number += 1
            if returns and "\r" in line:
                for piece in line.split("\r"):
                    self._line(number, piece, rare)
            else:
                self._line(number, line, rare)
        self._lines = number
        self._flush()
        self._others()

    def _others(self) -> None:
        """Looks through the lines that are no steps."""
        numbers, lines = self._numbers, self._texts
        self._numbers, self._texts = [], []
        text = "\n".join(lines)
        self._ends = (self._ends[1], text)
        for index, fault in training_faults.search(text):
            self._fault(numbers[index], lines[index], fault)

    def _line(self, number: int, line: str, rare: bool) -> None:
        if self._open is not None and self._continues(self._open, line):
            return
        moment = None
        for at in self._places:
            if line[at : at + 16] == self._minute:
                seconds = _SECONDS.get(line[at + 17 : at + 19])
                if seconds is not None:
                    moment = self._minute_began + seconds
                    if moment > self._latest:
                        if moment - self._latest >= self._silence:
                            self._gap(moment - self._latest, number)
                        self._latest = moment
                break
        else:
            at, start = -1, line[:120]
            # most lines without a time are told by the year that is missing
            if not self._places or self._years[0] in start or self._years[1] in start:
                moment, at = self._clock(number, line)
        place = line.find("iteration")
        if place >= 0:
            layout = self._layout
            match = layout.match(line, place) if layout is not None and not self._ahead else None
            if match:
                if moment is None or at > place:
                    prefix = line[:place]
                else:
                    # without the time, which differs from line to line, a label is known already
                    prefix = line[:at] + "\0" + line[at + 19 : place].lstrip(".,0123456789")
                origin = self._origins.get(prefix, prefix)
                if origin is prefix:
                    origin = self._origin(prefix)
                if origin is not None:
                    if origin in self._rows:
                        self._rows[origin].append((number, moment, match.groups()))
                    else:
                        self._rows[origin] = [(number, moment, match.groups())]
                    return
            elif self._step(number, line, place, moment, at):
                return
        self._numbers.append(number)
        self._texts.append(line)
        if rare:
            self._rare(number, line)

    def _rare(self, number: int, line: str) -> None:
        if "Step Time" in line and (found := _BRIDGE.search(line)):
            self._bridge(number, line, found)
        elif _BAR_MARK in line and (found := _BAR.search(line)):
            self._bar(number, found)
        elif "llocated" in line and (found := _MEMORY.search(line)):
            self._peak(found)

    # step lines

    def _flush(self) -> None:
        """Hands over the step lines that were only matched."""
        layout = self._layout
        if layout is None or not self._rows:
            return
        for origin, rows in self._rows.items():
            numbers, moments, groups = zip(*rows, strict=True)
            steps, totals, *texts = zip(*groups, strict=True)
            columns = layout.columns(texts)
            self._stream(origin).take_all(numbers, list(map(int, steps)), totals, columns, moments)
        self._rows = {}

    def _step(self, number: int, line: str, place: int, moment: float | None, at: int) -> bool:
        """Whether the line reports a step, which lies otherwise than the last one."""
        head = None
        fields = line.find("|", place)
        while head is None and place >= 0 and (fields < 0 or place < fields):
            head = training_layout.head(line, place)  # the word may also be part of a pod's name
            if head is None:
                place = line.find("iteration", place + 9)
        if head is None or place > PREFIX or not 0 < line.count("|", place) <= PARTS:
            return False
        step, total, _end = head
        prefix = line[:place]
        if moment is not None and at <= place:
            prefix = line[:at] + "\0" + line[at + 19 : place].lstrip(".,0123456789")
        origin = self._origin(prefix)
        if origin is None:
            return False
        self._flush()
        parts = line[place:].split("|")
        layout = Layout(parts)
        self._layout = layout if layout.timed and not self._ahead else None
        self._name(line)
        values: list = [None] * COUNT
        training_layout.merge(values, parts[1:])
        stream = self._stream(origin)
        if values[STEP_TIME] is None and not parts[-1].strip():
            self._open = (stream, number, step, total, values, moment)
        else:
            self._take(stream, number, step, total, values, moment)
        return True

    def _name(self, line: str) -> None:
        if not self._framework or self._framework == "megatron-lm":
            self._framework = next((name for text, name in _FRAMEWORKS if text in line), self._framework)

    def _origin(self, prefix: str) -> str | None:
        """The label of the process that wrote a step line, None where the line is none of training."""
        if prefix in self._origins:
            return self._origins[prefix]
        if len(self._origins) > 10_000:
            self._origins.clear()
        label: str | None = None
        if not _NO_STEP.search(prefix):
            rest = _WORDS.sub(" ", _TIMED.sub(" ", _STAMP.sub("\0", prefix)))
            label, left = streams.unmark(re.sub(r"\s+", " ", rest).strip() + " ")
            if not label:
                label = left.strip(" []:,.|")[:100]
        self._origins[prefix] = label
        return label

    def _stream(self, label: str) -> Stream:
        if label not in self._streams and len(self._streams) >= STREAM_LIMIT:
            label = "(others)"
        return self._streams.setdefault(label, Stream(label, self._warmup))

    def _continues(self, opened: tuple, line: str) -> bool:
        """A step line that was wrapped: its other fields follow on lines of their own."""
        stream, number, step, total, values, moment = opened
        place = line.find("iteration")
        parts = line.split("|")
        own = place >= 0 and training_layout.head(line, place)
        if len(parts) > 1 and not own and training_layout.merge(values, parts):
            self._name(line)
            return True
        self._open = None
        self._take(stream, number, step, total, values, moment)
        return False

    def _take(self, stream: Stream, number: int, step: int, total: int, values: list, moment: float | None) -> None:
        if self._ahead and (ahead := self._ahead.pop(stream.label, None)):
            if values[STEP_TIME] is None:
                values[STEP_TIME] = ahead[1]
            if values[TFLOPS] is None:
                values[TFLOPS] = ahead[2]
        stream.take(number, step, total, values, moment)

    def _bridge(self, number: int, line: str, match: re.Match[str]) -> None:
        duration = training_fields.value(match[1], STEP_TIME)
        if duration is None:
            self._outcome.unread(number, line, "looks like a step and cannot be read")
            return
        self._flush()
        self._framework = "megatron-bridge"
        label = self._origin(line[: match.start()]) or ""
        self._unnumbered(label)
        tflops = training_fields.value(match[3], TFLOPS) if match[3] else None
        self._ahead[label] = (number, duration * (1e-3 if match[2].lower() == "ms" else 1.0), tflops)

    def _bar(self, number: int, match: re.Match[str]) -> None:
        """The progress bar of PyTorch Lightning, as older NeMo writes it."""
        values: list = [None] * COUNT
        training_layout.merge(values, [part.replace("=", ":", 1) for part in match[3].split(",") if "=" in part])
        self._flush()
        self._framework = self._framework or "nemo"
        self._stream("").take(number, int(match[1]), int(match[2]), values, None)

    def _unnumbered(self, label: str) -> None:
        """A step of which the log has only Megatron-Bridge's line."""
        ahead = self._ahead.pop(label, None)
        if ahead:
            values: list = [None] * COUNT
            values[STEP_TIME], values[TFLOPS] = ahead[1], ahead[2]
            self._stream(label).take(ahead[0], None, None, values, None)

    # the rest

    def _clock(self, number: int, line: str) -> tuple[float | None, int]:
        """The time of a line, to the second, and where it stands; notes a silence before it."""
        match = next((found for at in self._places if (found := _STAMP.match(line, at))), None)
        if match is None:
            begin = _AT_START.match(line)
            match = _STAMP.match(line, begin.end()) if begin else None
        moment = _moment(match) if match else None
        if match is None or moment is None:
            return None, -1
        if self._latest is not None and moment - self._latest >= self._silence:
            self._gap(moment - self._latest, number)
        if self._latest is None or moment > self._latest:
            self._latest = moment
        at = match.start()
        if at not in self._places:
            self._places = (at, *self._places[:3])
        self._minute = line[at : at + 16]
        self._minute_began = moment - int(line[at + 17 : at + 19])
        year = int(match[1][:4] if match[1] else match[3][6:10])
        self._years = (str(year), str(year + 1))
        return moment, at

    def _gap(self, seconds: float, number: int) -> None:
        self._gaps.append((seconds, number))
        if len(self._gaps) > 2 * GAPS:
            self._gaps = sorted(self._gaps, reverse=True)[:GAPS]

    def _peak(self, match: re.Match[str]) -> None:
        number = float(match[1] or match[3] or match[4]) if (match[1] or match[3] or match[4]).count(".") < 2 else 0.0
        self._memory = max(self._memory, number * (1024.0**3 if match[3] else 1024.0**2))

    def _fault(self, number: int, line: str, fault: tuple[str, str, str, str]) -> None:
        _text, code, category, message = fault
        label, rest = streams.unmark(line)
        host = streams.host_of(label)
        if code == "fabric-manager-down":
            self._outcome.fabric(host, number, line)
            return
        what = re.sub(r"\s+", " ", rest).strip()[:300]
        self._outcome.find(
            code, f"{message}: {what}", scope="run", host=host, entity=label or None, line=number, text=line,
            category=category,
        )  # fmt: skip

    def close(self) -> dict:
        self._flush()
        if self._open is not None:
            opened, self._open = self._open, None
            self._take(*opened)
        for label in list(self._ahead):
            self._unnumbered(label)
        outcome = self._outcome
        outcome.lines = self._lines
        found = list(self._streams.values())
        gaps = sorted(self._gaps, reverse=True)[:GAPS]
        for stream in found:
            stream.framework = self._framework
            stream.memory = max(stream.memory, self._memory)
            run = stream.run()
            run["gaps"] = [{"line": line, "seconds": seconds} for seconds, line in sorted(gaps, key=lambda gap: gap[1])]
            if gaps:
                run["metrics"]["maxSilenceSec"] = metric(gaps[0][0], "s")
            outcome.runs.append(run)
            self._judge(stream)
        for seconds, line in gaps:
            message = f"No line for {seconds:.0f} s before line {line}"
            outcome.find("silence", message, severity="warning", scope="run", line=line, category=UNKNOWN)
        if not found:
            outcome.find("no-result", "The log has no step", scope="run", category=TOOL)
        done = any(mark in text for text in self._ends for mark in training_faults.FINISHED)
        outcome.complete = bool(found) and (done or all(stream.reached for stream in found))
        if found and not outcome.complete:
            last = max(found, key=lambda stream: stream.last_line or 0)
            of = f" of {last.total}" if last.total is not None else ""
            outcome.find(
                "unfinished", f"The log ends after step {last.last}{of}", severity="warning", scope="run",
                line=last.last_line, category=INFRASTRUCTURE,
            )  # fmt: skip
        return outcome.result()

    def _judge(self, stream: Stream) -> None:
        outcome = self._outcome
        common = {"scope": "run", "host": streams.host_of(stream.label), "entity": stream.label or None}
        if stream.bad_losses:
            message = f"The loss of {stream.bad_losses} steps is not a finite number"
            outcome.find("nan-loss", message, line=stream.bad_line, category=UNKNOWN, **common)
        if stream.nans:
            message = f"{stream.nans} iterations had results that are not numbers"
            outcome.find("nan-iterations", message, line=stream.nan_line, category=UNKNOWN, **common)
        if stream.skipped:
            outcome.find(
                "skipped-iterations", f"{stream.skipped} iterations were skipped", severity="warning", line=stream.line,
                category=UNKNOWN, **common,
            )  # fmt: skip
        for line, before, after in stream.restart_lines:
            outcome.find(
                "restart", f"The run went back from step {before} to {after}", severity="warning", line=line,
                category=UNKNOWN, **common,
            )  # fmt: skip
        measured = len(stream.times)
        if not measured:
            outcome.find(
                "no-measurement", f"No step time among {stream.steps} steps ({stream.dropped} of the warm-up)",
                line=stream.last_line, category=TOOL, **common,
            )  # fmt: skip
        elif self._min_steps and measured < self._min_steps:
            message = f"{measured} steps were measured, {self._min_steps} are needed"
            if stream.dropped:
                message += f" ({stream.dropped} of the warm-up left out)"
            outcome.find("too-few-steps", message, line=stream.last_line, category=INFRASTRUCTURE, **common)


def _moment(match: re.Match[str]) -> float | None:
    """Seconds of the epoch; a time without a zone counts as UTC."""
    try:
        if match[3]:
            day = match[3]
            moment = datetime.fromisoformat(f"{day[6:10]}-{day[0:2]}-{day[3:5]}T{day[11:]}")
            return moment.replace(tzinfo=UTC).timestamp()
        return datetime.fromisoformat(match[1] + (match[2] or "+00:00").replace("Z", "+00:00")).timestamp()
    except (ValueError, OverflowError):
        return None
