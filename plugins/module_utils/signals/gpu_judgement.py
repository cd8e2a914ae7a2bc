# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with the GPUs of a node, by what NVML or nvidia-smi show of them.

findings = judge(gpu, links_expected=18)     # of one GPU; codes of the table nvml
tell(observer, tables, gpus, expected_gpus)  # of all, as events; gives the node's state
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ansible_collections.goodput.fleet.plugins.module_utils.signals.gpu_readings import Gpu
from ansible_collections.goodput.fleet.plugins.module_utils.signals.observer import Observer
from ansible_collections.goodput.fleet.plugins.module_utils.signals.tables import Meaning, Tables, severity

CHECK = "GpuHealthWatch"  # of all watches together
BLIND = "GpuNvmlConnectivityFailure"
COUNT = "GpuCount"
RECOVERY = "GPU_RECOVERY_ACTION"  # its meaning is that of the action, in the table xid

PAGES_LIMIT = 63  # DCGM's bounds
ROWS_LIMIT = 512


@dataclass(slots=True)
class Finding:
    code: str
    text: str
    links: tuple[int, ...] = ()


def judge(gpu: Gpu, links_expected: int | None = None) -> list[Finding]:
    """Everything that is wrong with one GPU. `links_expected`: how many NVLinks should be up."""
    if gpu.fault:
        return [Finding(gpu.fault, gpu.fault_text)]
    return [
        *_recovery(gpu),
        *_memory(gpu),
        *_clocks(gpu),
        *_temperature(gpu),
        *_pcie(gpu),
        *_links(gpu, links_expected),
        *_fabric(gpu),
        *_failed(gpu),
    ]


def _recovery(gpu: Gpu) -> Iterator[Finding]:
    if gpu.recovery_action:
        yield Finding(RECOVERY, gpu.recovery_words)
    elif gpu.recovery_action is None and gpu.recovery_words:
        yield Finding("RECOVERY_ACTION_UNKNOWN", gpu.recovery_words)
    elif gpu.reset_required:
        yield Finding("RESET_REQUIRED", "")
    elif gpu.drain_and_reset:
        yield Finding("DRAIN_AND_RESET", "")


def _memory(gpu: Gpu) -> Iterator[Finding]:
    now, ever = gpu.ecc_volatile_uncorrected or 0, gpu.ecc_aggregate_uncorrected or 0
    if now > 0:
        yield Finding("ECC_VOLATILE_UNCORRECTED", f"{now}")
    elif ever > 0:
        yield Finding("ECC_AGGREGATE_UNCORRECTED", f"{ever}")
    if gpu.inforom_corrupted:
        yield Finding("INFOROM_CORRUPTED", "")
    if gpu.repair_pending:
        yield Finding("REPAIR_PENDING", "")
    if gpu.sram_threshold_exceeded:
        yield Finding("SRAM_THRESHOLD_EXCEEDED", "")
    if gpu.retired_pages_pending:
        yield Finding("RETIRED_PAGES_PENDING", "")
    if (gpu.retired_pages or 0) >= PAGES_LIMIT:
        yield Finding("RETIRED_PAGES_LIMIT", f"{gpu.retired_pages} pages")
    if gpu.row_remap_pending:
        yield Finding("ROW_REMAP_PENDING", "")
    if gpu.row_remap_failure:
        yield Finding("ROW_REMAP_FAILURE", "")
    if (gpu.remapped_rows_uncorrected or 0) >= ROWS_LIMIT:
        yield Finding("ROW_REMAP_LIMIT", f"{gpu.remapped_rows_uncorrected} rows")


def _clocks(gpu: Gpu) -> Iterator[Finding]:
    reasons = gpu.clock_reasons or []
    heat, brake = "hw_thermal_slowdown" in reasons, "hw_power_brake_slowdown" in reasons
    if heat:
        yield Finding("HW_THERMAL_SLOWDOWN", "")
    if brake:
        yield Finding("HW_POWER_BRAKE", "")
    if "hw_slowdown" in reasons and not heat and not brake:  # it stands for either, too
        yield Finding("HW_SLOWDOWN", "")
    if "sw_thermal_slowdown" in reasons:
        yield Finding("SW_THERMAL_SLOWDOWN", "")


def _temperature(gpu: Gpu) -> Iterator[Finding]:
    """Older GPUs tell limits, newer ones how far they are from one."""
    hot, margin = gpu.temperature, gpu.margin
    degrees = f"{hot} C" if hot is not None else f"{margin} C to the limit"
    if _reached(hot, gpu.temperature_shutdown) or _reached(gpu.margin_shutdown, margin):
        yield Finding("TEMPERATURE_SHUTDOWN", degrees)
    elif _reached(hot, gpu.temperature_slowdown) or _reached(gpu.margin_slowdown, margin):
        yield Finding("TEMPERATURE_SLOWDOWN", degrees)


def _reached(value: int | None, limit: int | None) -> bool:
    return value is not None and limit is not None and value >= limit


def _pcie(gpu: Gpu) -> Iterator[Finding]:
    width, widest = gpu.pcie_width, gpu.pcie_width_max
    if width is not None and widest is not None and width < widest:
        yield Finding("PCIE_WIDTH_LOW", f"{width} of {widest} lanes")
    slow, fast = gpu.pcie_generation, gpu.pcie_generation_max
    # an idle GPU slows its link down by itself
    if slow is not None and fast is not None and slow < fast and _works(gpu):
        yield Finding("PCIE_GENERATION_LOW", f"generation {slow} of {fast}")


def _works(gpu: Gpu) -> bool:
    return gpu.performance_state == 0 and gpu.clock_reasons is not None and "gpu_idle" not in gpu.clock_reasons


def _links(gpu: Gpu, expected: int | None) -> Iterator[Finding]:
    """Links that no GPU of the node has up are not built in, such as where a bridge is missing."""
    down = gpu.nvlinks_down
    if not down or gpu.mig:  # NVML calls the links of GPUs in MIG mode down
        return
    up = len(gpu.nvlinks_up or [])
    if gpu.fabric_state not in ("", "not supported") or up < (expected or 0):
        yield Finding("NVLINK_DOWN", f"{len(down)} of {up + len(down)}", tuple(down))


def _fabric(gpu: Gpu) -> Iterator[Finding]:
    if gpu.mig:
        return
    if gpu.fabric_state in ("not started", "in progress"):
        yield Finding("FABRIC_NOT_READY", gpu.fabric_state)
    elif gpu.fabric_state == "completed" and gpu.fabric_status not in ("", "success"):
        yield Finding("FABRIC_FAILED", gpu.fabric_status)
    for code in gpu.fabric_troubles:
        yield Finding(code, "")


def _failed(gpu: Gpu) -> Iterator[Finding]:
    if gpu.failed:
        yield Finding("READING_FAILED", ", ".join(f"{name}: {error}" for name, error in gpu.failed.items()))


# all GPUs of a node


def tell(
    observer: Observer,
    tables: Tables,
    gpus: list[Gpu],
    *,
    count: int | None,
    expected_gpus: int | None,
    expected_links: int | None = None,
) -> list[str]:
    """Events of everything that is wrong; gives the state of each GPU: sick, healthy or unknown.

    `count`: how many GPUs the driver knows of, which may be more than were read; None: not told.
    """
    links = expected_links
    if links is None:
        links = max((len(gpu.nvlinks_up or []) for gpu in gpus), default=0)
    states = [_tell_gpu(observer, tables, gpu, links) for gpu in gpus]
    if count is not None and expected_gpus is not None and count != expected_gpus:
        code = "GPU_COUNT_LOW" if count < expected_gpus else "GPU_COUNT_HIGH"
        message = f"the driver sees {count} GPUs, the node has {expected_gpus}"
        meaning = tables.meaning("nvml", code)
        observer.tell(meaning, check=COUNT, component="GPU", space="nvml", message=message, position=message)
    return states


def _tell_gpu(observer: Observer, tables: Tables, gpu: Gpu, links: int) -> str:
    states = []
    for finding in judge(gpu, links):
        meaning = _meaning(tables, finding, gpu)
        if meaning.state == "healthy":
            continue
        what = f"{_name(gpu)}: {meaning.title}{': ' if finding.text else ''}{finding.text}"
        metadata = {"sameAs": str(meaning.entry.get("sameAs", ""))}
        if finding.code == RECOVERY:
            metadata = {"recoveryTo": f"0x{gpu.recovery_action:x}", "overrides": "true"}
        observer.tell(
            meaning,
            check=_check(tables, meaning),
            component="GPU",
            space="nvml",
            message=what,
            entities=[*gpu.entities(), *(("NVLINK", str(link)) for link in finding.links)],
            metadata={key: value for key, value in metadata.items() if value},
            text=finding.text,
            position=finding.code,
        )
        states.append(_state(observer.events[-1]["spec"]))
    return _worst(states)


def worst(events: list[dict]) -> str:
    """sick, healthy or unknown: what the events say together."""
    return _worst([_state(event["spec"]) for event in events])


def _worst(states: list[str]) -> str:
    return next((state for state in ("sick", "unknown") if state in states), "healthy")


def _state(spec: dict) -> str:
    """An event that asks for nothing, now or later, only tells of the past."""
    asks = spec["recommendedAction"] != "NONE" or "deferredAction" in spec["metadata"]
    return "healthy" if spec["state"] == "sick" and not asks else spec["state"]


def _meaning(tables: Tables, finding: Finding, gpu: Gpu) -> Meaning:
    """Of the recovery action, what the table xid says of it: Xid 154 tells the same."""
    if finding.code != RECOVERY:
        return tables.meaning("nvml", finding.code)
    unknown, row = tables.meaning("nvml", "RECOVERY_ACTION_UNKNOWN"), tables.of("xid").recovery.get(gpu.recovery_action)
    if row is None:
        return unknown
    title, action, fatal = f"the driver asks for: {row['title']}", row["action"], row["fatal"]
    return replace(
        unknown, code=RECOVERY, title=title, action=action, fatal=fatal, severity=severity(row), state=row.get("state")
    )


def _check(tables: Tables, meaning: Meaning) -> str:
    watch = meaning.entry.get("watch", "")
    return next((row["checkName"] for row in tables.of("dcgm").watches if row["name"] == watch), CHECK)


def _name(gpu: Gpu) -> str:
    index = "" if gpu.index is None else f" {gpu.index}"
    return f"GPU{index}{f' at {gpu.pci}' if gpu.pci else ''}"


def conclude(
    observer: Observer, *, count: int | None, expected_gpus: int | None, who: str, blind: list[str], **place
) -> None:
    """What remains to be said when the GPUs' own faults are told: who saw nothing, or that all is well.

    `blind`: why the driver could not be asked. `place`: line and text of that.
    """
    unreachable = {"code": "NVML_UNREACHABLE", "space": "nvml"}
    if blind:
        observer.blind(BLIND, f"{who} cannot ask the driver: {' '.join(blind)}", **unreachable, **place)
    elif observer.events:
        return
    elif observer.unparsed.total or count is None:
        observer.blind(BLIND, f"{who} gave nothing that can be read", **unreachable)
    elif count == 0 and expected_gpus is None:
        message = f"{who} sees no GPU, and how many the node has is not told (expected_gpus)"
        observer.blind(BLIND, message, **unreachable)
    else:
        observer.well(CHECK, f"{who} sees nothing wrong with the node's GPUs: {count}")
