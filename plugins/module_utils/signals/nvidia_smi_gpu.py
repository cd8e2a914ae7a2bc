# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One <gpu> element of `nvidia-smi -q -x`, of all schema generations, as readings."""

from __future__ import annotations

import re
from xml.etree.ElementTree import Element

from ansible_collections.goodput.fleet.plugins.module_utils.signals import event
from ansible_collections.goodput.fleet.plugins.module_utils.signals.gpu_readings import CLOCK_REASONS, Gpu
from ansible_collections.goodput.fleet.plugins.module_utils.signals.tables import Tables

_ABSENT = re.compile(
    r"\[?\s*(?:N/A|Not Supported|None|Insufficient Permissions?|-|"
    r"Requested functionality has been deprecated|Not Available|Not Applicable)\s*\]?",
    re.IGNORECASE,
)
_FAULTS = (
    ("GPU_LOST", re.compile(r"\bis lost\b|\bfallen off the bus\b", re.IGNORECASE)),
    ("RESET_REQUIRED", re.compile(r"\brequires? (?:a )?reset\b|\breset required\b", re.IGNORECASE)),
    ("INSUFFICIENT_POWER", re.compile(r"\binsufficient(?:ly)? power", re.IGNORECASE)),
)
_FAILED = re.compile(r"\bERR!|\bunknown error\b|^\[?error\b", re.IGNORECASE)
_NUMBER = re.compile(r"(-?\d{1,18})(?:\.\d+)?\s*(?:[A-Za-z%/]+)?")

# fields of the table nvml by what <fabric><health> calls them, and the word that is bad
_FABRIC = (
    ("bandwidth", "degraded", "FABRIC_BANDWIDTH_DEGRADED"),
    ("route_recovery_in_progress", "true", "FABRIC_ROUTE_RECOVERY"),
    ("route_unhealthy", "true", "FABRIC_ROUTE_UNHEALTHY"),
    ("access_timeout_recovery", "true", "FABRIC_ACCESS_TIMEOUT"),
)


def fault_of(text: str) -> str:
    """The code of a fault of the whole GPU that an error text tells; "" where it tells none."""
    return next((code for code, pattern in _FAULTS if pattern.search(text)), "")


def read_gpu(element: Element, tables: Tables) -> Gpu:
    reader = _Reader(element)
    gpu = reader.gpu
    gpu.pci = event.pci(element.get("id") or reader.text("pci/pci_bus_id")) or ""
    gpu.uuid, gpu.serial, gpu.name = reader.text("uuid"), reader.text("serial"), reader.text("product_name")
    gpu.mig = reader.flag("mig_mode/current_mig", "enabled", "disabled")
    state = reader.text("performance_state", "gpu_power_readings/power_state", "power_readings/power_state")
    gpu.performance_state = int(state[1:]) if re.fullmatch(r"[Pp]\d{1,2}", state) else None
    _recovery(reader, tables)
    _memory(reader)
    gpu.clock_reasons = _clock_reasons(element)
    link = "pci/pci_gpu_link_info/"
    gpu.pcie_width = reader.number(f"{link}link_widths/current_link_width")
    gpu.pcie_width_max = reader.number(f"{link}link_widths/max_link_width")
    gpu.pcie_generation = reader.number(f"{link}pcie_gen/current_link_gen")
    gpu.pcie_generation_max = reader.number(f"{link}pcie_gen/max_link_gen")
    _temperature(reader)
    _fabric(reader)
    return gpu


class _Reader:
    """Looks elements up by path; errors that stand where a value should are kept with the GPU."""

    def __init__(self, element: Element):
        self.element = element
        self.gpu = Gpu()
        for leaf in element.iter():
            value = (leaf.text or "").strip()
            if not value or len(leaf):
                continue
            fault = fault_of(value)
            if fault and leaf.tag not in ("process_name", "product_name", "gpu_recovery_action"):
                self.gpu.fault, self.gpu.fault_text = fault, f"{leaf.tag}: {value}"
            elif _FAILED.search(value) and leaf.tag != "process_name":
                self.gpu.failed[leaf.tag] = event.clean(value, 80)

    def text(self, *paths: str) -> str:
        """The first of these that has a value; "" where it is absent."""
        for path in paths:
            value = (self.element.findtext(path) or "").strip()
            if value and not _ABSENT.fullmatch(value) and not _FAILED.search(value):
                return event.clean(value, 200)
        return ""

    def number(self, *paths: str) -> int | None:
        match = _NUMBER.fullmatch(self.text(*paths))
        return int(match[1]) if match else None

    def flag(self, path: str, yes: str = "yes", no: str = "no") -> bool | None:
        return {yes: True, no: False}.get(self.text(path).lower())

    def total(self, *paths: str) -> int | None:
        """The sum of those that are told."""
        known = [number for number in map(self.number, paths) if number is not None]
        return sum(known) if known else None

    def sum_of(self, path: str) -> int | None:
        """Over all elements of one path."""
        known = [_NUMBER.fullmatch((leaf.text or "").strip()) for leaf in self.element.iterfind(path)]
        numbers = [int(match[1]) for match in known if match]
        return sum(numbers) if numbers else None


def _recovery(reader: _Reader, tables: Tables) -> None:
    gpu, words = reader.gpu, (reader.element.findtext("gpu_recovery_action") or "").strip()
    gpu.reset_required = reader.flag("gpu_reset_status/reset_required")
    gpu.drain_and_reset = reader.flag("gpu_reset_status/drain_and_reset_recommended")
    if words.lower() == "none":
        gpu.recovery_action = 0
    elif words and not _ABSENT.fullmatch(words) and not _FAILED.search(words):
        known = tables.of("xid").recovery
        gpu.recovery_words = event.clean(words, 80)
        gpu.recovery_action = next((code for code, row in known.items() if words.lower() in row["words"]), None)


def _memory(reader: _Reader) -> None:
    """Three generations: one and two bits until driver 440, then SRAM and DRAM, then SRAM by parity and SEC-DED."""
    gpu = reader.gpu

    def uncorrected(counter: str) -> int | None:
        place = f"ecc_errors/{counter}/"
        newer = ("sram_uncorrectable", "sram_uncorrectable_parity", "sram_uncorrectable_secded", "dram_uncorrectable")
        found = reader.total(*(place + name for name in newer))
        if found is not None:
            return found
        whole = reader.number(f"{place}double_bit/total")
        if whole is not None:
            return whole
        parts = [child.tag for child in reader.element.iterfind(f"{place}double_bit/*")]
        return reader.total(*(f"{place}double_bit/{part}" for part in parts))

    gpu.ecc_volatile_uncorrected, gpu.ecc_aggregate_uncorrected = uncorrected("volatile"), uncorrected("aggregate")
    slices = reader.sum_of("mig_devices/mig_device/ecc_error_count/volatile_count/sram_uncorrectable")
    if slices is not None:  # errors in MIG devices need not show in the GPU's own counter
        gpu.ecc_volatile_uncorrected = max(slices, gpu.ecc_volatile_uncorrected or 0)
    gpu.sram_threshold_exceeded = reader.flag("ecc_errors/aggregate/sram_threshold_exceeded")
    gpu.retired_pages = reader.total(
        "retired_pages/multiple_single_bit_retirement/retired_count",
        "retired_pages/double_bit_retirement/retired_count",
    )
    pending = [reader.flag(f"retired_pages/{name}") for name in ("pending_retirement", "pending_blacklist")]
    gpu.retired_pages_pending = True if True in pending else False if False in pending else None
    repairs = [reader.flag(f"ecc_errors/{name}_repair_pending") for name in ("channel", "tpc")]
    gpu.repair_pending = True if True in repairs else False if False in repairs else None
    gpu.remapped_rows_uncorrected = reader.number("remapped_rows/remapped_row_unc")
    gpu.row_remap_pending = reader.flag("remapped_rows/remapped_row_pending")
    gpu.row_remap_failure = reader.flag("remapped_rows/remapped_row_failure")


def _clock_reasons(element: Element) -> list[str] | None:
    """They were called throttle reasons until driver 535."""
    told = None
    for prefix in ("clocks_event_reason", "clocks_throttle_reason"):
        for reason in CLOCK_REASONS:
            value = (element.findtext(f"{prefix}s/{prefix}_{reason}") or "").strip().lower()
            if value in ("active", "not active"):
                told = (told or []) + ([reason] if value == "active" else [])
    return told


def _temperature(reader: _Reader) -> None:
    gpu, place = reader.gpu, "temperature/"
    gpu.temperature = reader.number(f"{place}gpu_temp")
    gpu.temperature_slowdown = reader.number(f"{place}gpu_temp_slow_threshold")
    gpu.temperature_shutdown = reader.number(f"{place}gpu_temp_max_threshold")
    gpu.margin = reader.number(f"{place}gpu_temp_tlimit")
    gpu.margin_slowdown = reader.number(f"{place}gpu_temp_slow_tlimit_threshold")
    gpu.margin_shutdown = reader.number(f"{place}gpu_temp_max_tlimit_threshold")


def _fabric(reader: _Reader) -> None:
    gpu = reader.gpu
    state = reader.text("fabric/state").lower()
    gpu.fabric_state = state if state in ("not started", "in progress", "completed") else ""
    gpu.fabric_status = reader.text("fabric/status").lower()
    for name, bad, code in _FABRIC:
        if reader.text(f"fabric/health/{name}").lower() == bad:
            gpu.fabric_troubles.append(code)
    if not gpu.fabric_troubles and reader.text("fabric/health/summary").lower() in ("unhealthy", "limited capacity"):
        gpu.fabric_troubles.append("FABRIC_UNHEALTHY")
    wrong = reader.text("fabric/health/incorrect_configuration").lower()
    if wrong and wrong not in ("none", "false"):
        gpu.fabric_troubles.append("FABRIC_MISCONFIGURED")
