# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`nvidia-smi -q` without `-x`, all of it or a section, as the XML that it stands for.

    Fabric
        State                             : Completed
        Status                            : Insufficient Resources

The names differ from those of the XML, so only what health needs is taken over.
"""

from __future__ import annotations

import re
from xml.etree.ElementTree import Element, SubElement

LINK = "pci/pci_gpu_link_info"
REASON = "clocks_event_reasons/clocks_event_reason"
HEALTH = "fabric/health"

# sections and fields, in lower case, to the path of the element
PATHS = {
    "product name": "product_name",
    "serial number": "serial",
    "gpu uuid": "uuid",
    "mig mode/current": "mig_mode/current_mig",
    "gpu reset status/reset required": "gpu_reset_status/reset_required",
    "gpu reset status/drain and reset recommended": "gpu_reset_status/drain_and_reset_recommended",
    "gpu recovery action": "gpu_recovery_action",
    "pci/bus id": "pci/pci_bus_id",
    "pci/gpu link info/pcie generation/max": f"{LINK}/pcie_gen/max_link_gen",
    "pci/gpu link info/pcie generation/current": f"{LINK}/pcie_gen/current_link_gen",
    "pci/gpu link info/link width/max": f"{LINK}/link_widths/max_link_width",
    "pci/gpu link info/link width/current": f"{LINK}/link_widths/current_link_width",
    "performance state": "performance_state",
    "clocks event reasons/idle": f"{REASON}_gpu_idle",
    "clocks event reasons/sw power cap": f"{REASON}_sw_power_cap",
    "clocks event reasons/hw slowdown": f"{REASON}_hw_slowdown",
    "clocks event reasons/hw slowdown/hw thermal slowdown": f"{REASON}_hw_thermal_slowdown",
    "clocks event reasons/hw slowdown/hw power brake slowdown": f"{REASON}_hw_power_brake_slowdown",
    "clocks event reasons/sw thermal slowdown": f"{REASON}_sw_thermal_slowdown",
    "ecc errors/aggregate/sram threshold exceeded": "ecc_errors/aggregate/sram_threshold_exceeded",
    "ecc errors/channel repair pending": "ecc_errors/channel_repair_pending",
    "ecc errors/tpc repair pending": "ecc_errors/tpc_repair_pending",
    "retired pages/single bit ecc": "retired_pages/multiple_single_bit_retirement/retired_count",
    "retired pages/double bit ecc": "retired_pages/double_bit_retirement/retired_count",
    "retired pages/pending page blacklist": "retired_pages/pending_blacklist",
    "remapped rows/uncorrectable error": "remapped_rows/remapped_row_unc",
    "remapped rows/pending": "remapped_rows/remapped_row_pending",
    "remapped rows/remapping failure occurred": "remapped_rows/remapped_row_failure",
    "temperature/gpu current temp": "temperature/gpu_temp",
    "temperature/gpu slowdown temp": "temperature/gpu_temp_slow_threshold",
    "temperature/gpu shutdown temp": "temperature/gpu_temp_max_threshold",
    "temperature/gpu t.limit temp": "temperature/gpu_temp_tlimit",
    "temperature/gpu slowdown t.limit temp": "temperature/gpu_temp_slow_tlimit_threshold",
    "temperature/gpu shutdown t.limit temp": "temperature/gpu_temp_max_tlimit_threshold",
    "fabric/state": "fabric/state",
    "fabric/status": "fabric/status",
    "fabric/health/bandwidth": f"{HEALTH}/bandwidth",
    "fabric/health/route recovery in progress": f"{HEALTH}/route_recovery_in_progress",
    "fabric/health/summary": f"{HEALTH}/summary",
    "fabric/health/route unhealthy": f"{HEALTH}/route_unhealthy",
    "fabric/health/access timeout recovery": f"{HEALTH}/access_timeout_recovery",
    "fabric/health/incorrect configuration": f"{HEALTH}/incorrect_configuration",
}
for _counter in ("volatile", "aggregate"):
    for _name, _element in (
        ("sram uncorrectable", "sram_uncorrectable"),
        ("sram uncorrectable parity", "sram_uncorrectable_parity"),
        ("sram uncorrectable sec-ded", "sram_uncorrectable_secded"),
        ("dram uncorrectable", "dram_uncorrectable"),
        ("double bit/total", "double_bit/total"),
        ("double bit/device memory", "double_bit/device_memory"),
    ):
        PATHS[f"ecc errors/{_counter}/{_name}"] = f"ecc_errors/{_counter}/{_element}"
# drivers before 535
PATHS |= {path.replace("event", "throttle"): element for path, element in PATHS.items() if path.startswith("clocks")}
SECTIONS = {path.partition("/")[0] for path in PATHS if "/" in path}
HEADS = {"driver version": "driver_version", "attached gpus": "attached_gpus"}

_GPU = re.compile(r"GPU ((?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f])", re.IGNORECASE)
_FIELD = re.compile(r"( *)(\S[^:]{0,60}?) *(?:: ?(.*))?")


def looks(line: str) -> bool:
    """Whether a line begins this form: its title, or one of the sections of a GPU alone."""
    return "NVSMI LOG" in line or line.strip().lower() in SECTIONS or bool(_GPU.fullmatch(line.strip()))


def read(lines: list[str]) -> Element:
    """An <nvidia_smi_log>; with form="section" where no GPU is named. What it does not know it leaves out."""
    root, gpu = Element("nvidia_smi_log"), None
    above: list[tuple[int, str]] = []  # the sections that a line is in, with their indents
    for line in lines:
        head, field = _GPU.fullmatch(line.strip()), _FIELD.fullmatch(line.expandtabs(4))
        if head:
            gpu, above = SubElement(root, "gpu", id=head[1]), []
            continue
        if not field:
            continue
        indent, name, value = len(field[1]), field[2].lower(), field[3]
        above = [section for section in above if section[0] < indent]
        path = "/".join([section for _indent, section in above] + [name])
        if path in HEADS and value is not None:
            SubElement(root, HEADS[path]).text = value.strip()
        elif path in PATHS and value is not None:
            gpu = gpu if gpu is not None else SubElement(root, "gpu")
            _place(gpu, PATHS[path]).text = value.strip()
        above.append((indent, name))
    if root.find("gpu[@id]") is None:
        root.set("form", "section")
    return root


def _place(element: Element, path: str) -> Element:
    for name in path.split("/"):
        child = element.find(name)
        element = child if child is not None else SubElement(element, name)
    return element
