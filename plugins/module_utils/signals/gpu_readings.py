# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What one GPU shows of itself, whoever asked: NVML on the node, or nvidia-smi. None: not told, or the GPU has no such
thing; it is never taken for zero."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

# clock event reasons that matter, by their bit in NVML and their name in nvidia-smi
CLOCK_REASONS = {
    "gpu_idle": 0x1,
    "sw_power_cap": 0x4,
    "hw_slowdown": 0x8,
    "sw_thermal_slowdown": 0x20,
    "hw_thermal_slowdown": 0x40,
    "hw_power_brake_slowdown": 0x80,
}
FABRIC_STATES = ("not supported", "not started", "in progress", "completed")


@dataclass(slots=True)
class Gpu:
    """Temperatures are in degrees Celsius, margins in degrees below the limit (negative: above it)."""

    index: int | None = None
    uuid: str = ""
    pci: str = ""  # dddd:bb:dd
    serial: str = ""
    name: str = ""
    fault: str = ""  # a code of the table nvml, where the GPU cannot be read as a whole
    fault_text: str = ""
    failed: dict[str, str] = field(default_factory=dict)  # readings that failed: error
    mig: bool | None = None
    inforom_corrupted: bool | None = None
    repair_pending: bool | None = None
    performance_state: int | None = None  # 0 is the fastest
    recovery_action: int | None = None
    recovery_words: str = ""
    reset_required: bool | None = None
    drain_and_reset: bool | None = None
    ecc_volatile_uncorrected: int | None = None
    ecc_aggregate_uncorrected: int | None = None
    sram_threshold_exceeded: bool | None = None
    retired_pages: int | None = None
    retired_pages_pending: bool | None = None
    remapped_rows_uncorrected: int | None = None
    row_remap_pending: bool | None = None
    row_remap_failure: bool | None = None
    clock_reasons: list[str] | None = None  # of CLOCK_REASONS
    pcie_width: int | None = None  # lanes
    pcie_width_max: int | None = None
    pcie_generation: int | None = None
    pcie_generation_max: int | None = None
    temperature: int | None = None
    temperature_slowdown: int | None = None
    temperature_shutdown: int | None = None
    margin: int | None = None
    margin_slowdown: int | None = None
    margin_shutdown: int | None = None
    nvlinks_up: list[int] | None = None
    nvlinks_down: list[int] | None = None
    fabric_state: str = ""  # of FABRIC_STATES
    fabric_status: str = ""  # "success", or the error in words
    fabric_troubles: list[str] = field(default_factory=list)  # codes of the table nvml

    def facts(self) -> dict:
        """What is known, for a result."""
        return {name: value for name, value in asdict(self).items() if value not in (None, "", [], {})}

    def entities(self) -> list[tuple[str, str]]:
        known = [("GPU", self.index), ("PCI", self.pci), ("GPU_UUID", self.uuid)]
        return [(kind, str(value)) for kind, value in known if value not in (None, "")]
