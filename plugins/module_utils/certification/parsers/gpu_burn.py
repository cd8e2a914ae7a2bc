# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""gpu_burn: its progress line, which is written over and over, and the list of verdicts at the end.

    parse(text, expected_gpus=8) -> see `outcome`

A run is one process: {test: "gpu-burn", seconds, percent, precision, gpus: [{gpu, name, uuid, verdict: OK|FAULTY|None,
died, iterations, gflops, errors, errorsOverflow, temperature}], metrics: {gflopsPerGpu.min, .mean, iterations.min,
errors.sum, temperature.max}}. Temperatures are the highest seen; gflops is the median of the rounds after the first.

Neither the exit status nor a final OK says that a GPU worked: a GPU without one finished round is the finding
`no-work`. The error counter starts anew with every summary and can overflow to below zero; both count.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers import streams
from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers.outcome import (
    CONFIGURATION,
    HARDWARE,
    INFRASTRUCTURE,
    TOOL,
    UNKNOWN,
    Outcome,
    check_gpus,
    fabric_manager_down,
    gpu_expectation,
    median,
    metric,
)

_PROGRESS = re.compile(r"(\d{1,3}(?:\.\d{1,9})?)%\s{1,9}proc'd:")
_DONE = re.compile(r"(-?\d+)\s+\((-?\d+(?:\.\d+)?|-?nan|-?inf)\s+Gflop/s\)")
_ERRORS = re.compile(r"(-?\d+)\s*(?:\((WARNING|DIED)!\))?")
_TEMPERATURE = re.compile(r"(-?\d+)\s*C\b|(--)")
_DEVICE = re.compile(r"\s*GPU (\d{1,4}):\s+(.+?)\s+\(UUID:\s*(\S+?)\)")
_VERDICT = re.compile(r"\s*GPU (\d{1,4}):\s+(OK|FAULTY)\s*$")
_TESTED = re.compile(r"\s*Tested (\d+) GPUs?:")
_SECONDS = re.compile(r"Burning for (\d+) seconds")
_PRECISION = re.compile(r"Initialized device \d+ .*using (FLOATS|DOUBLES)(, using Tensor Cores)?")
_FAULT = re.compile(
    r"Couldn't init|Error in|Failure during|No clients are alive|Couldn't find|No CUDA devices|CUBLAS|CUDA error"
    r"|cudaError|error while loading|command not found|Segmentation fault|Aborted|out of memory|not yet initialized",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"(?:GPU|device|dev)\s+(\d{1,4})\b", re.IGNORECASE)
_KNOWN = re.compile(
    r"\s*$|\s*Summary at|Killing processes|Freed memory|Uninitted|Initialized device|Results are|Burning|done\b"
    r"|.*[Uu]sing compare file|Run length|.*Temperature|\s*Using (?:all|device)|GPU Burn"
)


@dataclass(slots=True)
class Gpu:
    name: str | None = None
    uuid: str | None = None
    verdict: str | None = None
    died: bool = False
    iterations: int = 0
    gflops: list[float] = field(default_factory=list)
    errors: int = 0  # over all summaries
    overflow: bool = False
    temperature: int | None = None
    last: int = 0  # the counter as last printed
    line: int | None = None


@dataclass(slots=True)
class Burn:
    host: str | None
    gpus: dict[int, Gpu] = field(default_factory=dict)
    tested: int | None = None
    seconds: int | None = None
    percent: float | None = None
    precision: str | None = None
    progress: int = 0
    line: int | None = None
    verdicts: int | None = None  # the line of the final list
    faults: list[tuple[int, str]] = field(default_factory=list)

    def gpu(self, number: int) -> Gpu:
        return self.gpus.setdefault(number, Gpu())


def parse(text: streams.Text, *, expected_gpus: object = None) -> dict:
    """All burns in an output. Raises InvalidDocument for expectations that cannot be, never for the output."""
    gpu_expectation(expected_gpus)
    outcome = Outcome("gpu-burn")
    by_label, outcome.lines = streams.split(text)
    burns = []
    for label, stream in by_label.items():
        burns.extend(_read(outcome, streams.host_of(label), stream))
    seen = [burn for burn in burns if burn.gpus or burn.progress or burn.verdicts]
    for burn in seen:
        outcome.runs.append(_run(burn))
        _judge(outcome, burn, expected_gpus)
    for burn in burns:
        _faults(outcome, burn)
    outcome.complete = bool(seen) and all(
        burn.verdicts and burn.tested == sum(gpu.verdict is not None for gpu in burn.gpus.values()) for burn in seen
    )
    if not seen and not outcome.findings:
        outcome.find("no-result", "The output holds no result of gpu_burn", scope="run", category=TOOL)
    return outcome.result()


def _read(outcome: Outcome, host: str | None, stream: list[tuple[int, str]]) -> list[Burn]:
    """A second start in the same output is a burn of its own."""
    burns = [Burn(host)]
    for number, whole in stream:
        for line in whole.split("\r"):
            burn = burns[-1]
            if burn.verdicts and (_SECONDS.search(line) or _PROGRESS.search(line) or _DEVICE.match(line)):
                burn = Burn(host)
                burns.append(burn)
            if not _line(burn, number, line) and not _KNOWN.match(line):
                outcome.unread(number, line, "not part of gpu_burn's output")
    return burns


def _line(burn: Burn, number: int, line: str) -> bool:
    burn.line = burn.line or number
    if progress := _PROGRESS.search(line):
        _progress(burn, number, float(progress[1]), line[progress.end() :])
    elif verdict := _VERDICT.match(line):
        gpu = burn.gpu(int(verdict[1]))
        gpu.verdict, gpu.line = verdict[2], number
    elif device := _DEVICE.match(line):
        gpu = burn.gpu(int(device[1]))
        gpu.name, gpu.uuid = device[2], device[3]
    elif tested := _TESTED.match(line):
        burn.tested, burn.verdicts = int(tested[1]), number
    elif seconds := _SECONDS.search(line):
        burn.seconds = int(seconds[1])
    elif precision := _PRECISION.search(line):
        burn.precision = precision[1].lower() + (" on tensor cores" if precision[2] else "")
    elif _FAULT.search(line) and not _KNOWN.match(line):
        burn.faults.append((number, line.strip()))
    else:
        return False
    return True


def _progress(burn: Burn, number: int, percent: float, text: str) -> None:
    done_text, _mark, rest = text.partition("errors:")
    errors_text, _mark, rest = rest.partition("temps:")
    temperatures_text = rest.partition("power")[0]
    burn.progress += 1
    burn.percent = max(burn.percent or 0.0, min(100.0, percent))
    for index, (count, gflops) in enumerate(_DONE.findall(done_text)):
        gpu = burn.gpu(index)
        done = int(count)
        if done < 0:  # the process of this GPU is gone
            gpu.died = True
        elif done > gpu.iterations:
            gpu.iterations = done
            if float(gflops) > 0:
                gpu.gflops.append(float(gflops))
    for index, (count, note) in enumerate(_ERRORS.findall(errors_text)):
        gpu = burn.gpu(index)
        now = int(count)
        gpu.died = gpu.died or note == "DIED"
        if now < 0:
            gpu.overflow = True
        elif now != gpu.last:
            gpu.errors += now - gpu.last if now > max(gpu.last, 0) and gpu.last > 0 else now
        if (now or note == "WARNING") and gpu.line is None:
            gpu.line = number
        gpu.last = now
    for index, (degrees, _none) in enumerate(_TEMPERATURE.findall(temperatures_text)):
        if degrees:
            gpu = burn.gpu(index)
            gpu.temperature = max(gpu.temperature or 0, int(degrees))


def _run(burn: Burn) -> dict:
    gpus = [_gpu(number, gpu) for number, gpu in sorted(burn.gpus.items())]
    metrics = {}
    if rates := [gpu["gflops"] for gpu in gpus if "gflops" in gpu]:
        metrics["gflopsPerGpu.min"] = metric(min(rates), "Gflop/s")
        metrics["gflopsPerGpu.mean"] = metric(sum(rates) / len(rates), "Gflop/s")
    if burn.progress:
        metrics["iterations.min"] = metric(min((gpu["iterations"] for gpu in gpus), default=0), "")
        if not any(gpu["errorsOverflow"] for gpu in gpus):
            metrics["errors.sum"] = metric(sum(gpu["errors"] for gpu in gpus), "")
    if temperatures := [gpu["temperature"] for gpu in gpus if "temperature" in gpu]:
        metrics["temperature.max"] = metric(max(temperatures), "C")
    return {
        "test": "gpu-burn",
        "seconds": burn.seconds,
        "percent": burn.percent,
        "precision": burn.precision,
        "line": burn.line,
        "gpus": gpus,
        "metrics": metrics,
        "ranks": [],
        "hosts": [burn.host] if burn.host else [],
        "transports": [],
    }


def _gpu(number: int, gpu: Gpu) -> dict:
    entry: dict = {
        "gpu": number,
        "name": gpu.name,
        "uuid": gpu.uuid,
        "verdict": gpu.verdict,
        "died": gpu.died,
        "iterations": gpu.iterations,
        "errors": gpu.errors,
        "errorsOverflow": gpu.overflow,
    }
    if gpu.gflops:
        # the first round also waits for the GPU to be set up
        entry["gflops"] = median(gpu.gflops[1:] or gpu.gflops)
    if gpu.temperature is not None:
        entry["temperature"] = gpu.temperature
    return entry


def _judge(outcome: Outcome, burn: Burn, expected_gpus: object) -> None:
    ran = {number for number, gpu in burn.gpus.items() if gpu.verdict or gpu.iterations or gpu.died or burn.progress}
    # nvidia-smi's list is not the list of what was burned
    ran = {number for number in ran if burn.tested is None or number < burn.tested or burn.gpus[number].verdict}
    idle = []
    for number in sorted(ran):
        gpu = burn.gpus[number]
        common = {"scope": "gpu", "host": burn.host, "entity": f"GPU {number}", "line": gpu.line or burn.line}
        _verdict(outcome, burn, number, gpu, common)
        if not gpu.iterations and not gpu.died:
            idle.append(number)
    if idle and len(idle) == len(ran):
        outcome.find(
            "no-work", "gpu_burn did not finish one round of work on any GPU, whatever its verdicts say", scope="run",
            host=burn.host, line=burn.verdicts or burn.line, category=TOOL,
        )  # fmt: skip
    else:
        for number in idle:
            outcome.find(
                "no-work", f"gpu_burn did not finish one round of work on GPU {number}, whatever its verdict says",
                scope="gpu", host=burn.host, entity=f"GPU {number}", line=burn.gpus[number].line or burn.line,
                category=UNKNOWN,
            )  # fmt: skip
    _ending(outcome, burn, ran)
    if burn.verdicts or burn.progress:
        check_gpus(outcome, expected_gpus, ran, burn.tested, burn.host, "gpu_burn")


def _verdict(outcome: Outcome, burn: Burn, number: int, gpu: Gpu, common: dict) -> None:
    """Wrong results, an ended process, or the tool's own word."""
    count = "so many errors that the counter overflowed" if gpu.overflow else f"{gpu.errors} errors"
    wrong = bool(gpu.errors or gpu.overflow)
    text = "; ".join(text for _line, text in burn.faults[:3])
    printed = f"; it printed: {text}" if text else ""
    if gpu.died:
        message = f"The process on GPU {number} ended early{f', after {count}' if wrong else ''}{printed}"
        outcome.find("gpu-died", message, text=text, category=HARDWARE if wrong else UNKNOWN, **common)
    elif gpu.verdict == "FAULTY":
        message = f"gpu_burn calls GPU {number} faulty{f', with {count}' if wrong else ''}{printed}"
        # an error of the library without one wrong value may be a matter of versions
        sure = wrong or (gpu.iterations and not burn.faults)
        outcome.find("gpu-faulty", message, text=text, category=HARDWARE if sure else UNKNOWN, **common)
    elif wrong:
        said = f", although its verdict is {gpu.verdict}" if gpu.verdict else ""
        outcome.find("compute-errors", f"GPU {number} made {count}{said}", category=HARDWARE, **common)


def _ending(outcome: Outcome, burn: Burn, ran: set[int]) -> None:
    verdicts = sum(gpu.verdict is not None for gpu in burn.gpus.values())
    if not burn.verdicts:
        at = f" at {burn.percent:g} %" if burn.percent is not None else ""
        outcome.find(
            "output-truncated", f"gpu_burn ended{at} without its verdicts", scope="run", host=burn.host, line=burn.line,
            category=INFRASTRUCTURE,
        )  # fmt: skip
    elif burn.tested != verdicts:
        outcome.find(
            "output-truncated", f"gpu_burn tested {burn.tested} GPUs and gives {verdicts} verdicts", scope="run",
            host=burn.host, line=burn.verdicts, category=INFRASTRUCTURE,
        )  # fmt: skip


def _faults(outcome: Outcome, burn: Burn) -> None:
    for line, text in burn.faults:
        if fabric_manager_down(text):
            outcome.fabric(burn.host, line, text)
            continue
        named = _NUMBERED.search(text)
        lowered = text.lower()
        kind = UNKNOWN
        if "cublas" in lowered or "couldn't find" in lowered or "loading" in lowered or "not found" in lowered:
            kind = TOOL
        elif "no cuda devices" in lowered or "out of memory" in lowered:
            kind = CONFIGURATION
        outcome.find(
            "tool-error", f"gpu_burn: {text}", scope="gpu" if named else "node", host=burn.host,
            entity=f"GPU {named[1]}" if named else None, line=line, text=text, category=kind,
        )  # fmt: skip
