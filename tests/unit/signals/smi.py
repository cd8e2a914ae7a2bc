"""The output of `nvidia-smi -q -x`, as much of it as health needs, with any field changed."""

from __future__ import annotations

HEAD = '<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">\n'
FIELDS = {
    "product_name": "NVIDIA H200",
    "mig_mode/current_mig": "Disabled",
    "serial": "1650000000007",
    "gpu_reset_status/reset_required": "Requested functionality has been deprecated",
    "gpu_reset_status/drain_and_reset_recommended": "Requested functionality has been deprecated",
    "gpu_recovery_action": "None",
    "pci/pci_gpu_link_info/pcie_gen/max_link_gen": "5",
    "pci/pci_gpu_link_info/pcie_gen/current_link_gen": "5",
    "pci/pci_gpu_link_info/link_widths/max_link_width": "16x",
    "pci/pci_gpu_link_info/link_widths/current_link_width": "16x",
    "performance_state": "P0",
    "clocks_event_reasons/clocks_event_reason_gpu_idle": "Not Active",
    "clocks_event_reasons/clocks_event_reason_sw_power_cap": "Active",
    "clocks_event_reasons/clocks_event_reason_hw_slowdown": "Not Active",
    "clocks_event_reasons/clocks_event_reason_hw_thermal_slowdown": "Not Active",
    "clocks_event_reasons/clocks_event_reason_hw_power_brake_slowdown": "Not Active",
    "clocks_event_reasons/clocks_event_reason_sw_thermal_slowdown": "Not Active",
    "ecc_errors/volatile/sram_correctable": "7",
    "ecc_errors/volatile/sram_uncorrectable_parity": "0",
    "ecc_errors/volatile/sram_uncorrectable_secded": "0",
    "ecc_errors/volatile/dram_correctable": "12",
    "ecc_errors/volatile/dram_uncorrectable": "0",
    "ecc_errors/aggregate/sram_uncorrectable_parity": "0",
    "ecc_errors/aggregate/sram_uncorrectable_secded": "0",
    "ecc_errors/aggregate/dram_uncorrectable": "0",
    "ecc_errors/aggregate/sram_threshold_exceeded": "No",
    "retired_pages/multiple_single_bit_retirement/retired_count": "N/A",
    "retired_pages/double_bit_retirement/retired_count": "N/A",
    "retired_pages/pending_blacklist": "N/A",
    "retired_pages/pending_retirement": "N/A",
    "remapped_rows/remapped_row_corr": "0",
    "remapped_rows/remapped_row_unc": "0",
    "remapped_rows/remapped_row_pending": "No",
    "remapped_rows/remapped_row_failure": "No",
    "temperature/gpu_temp": "61 C",
    "temperature/gpu_temp_tlimit": "26 C",
    "temperature/gpu_temp_max_tlimit_threshold": "-8 C",
    "temperature/gpu_temp_slow_tlimit_threshold": "-2 C",
    "fabric/state": "Completed",
    "fabric/status": "Success",
    "fabric/health/bandwidth": "Full",
    "fabric/health/route_recovery_in_progress": "False",
    "fabric/health/route_unhealthy": "False",
    "fabric/health/access_timeout_recovery": "False",
}


def gpu(number: int = 0, **changes) -> str:
    """One GPU. A change is {path: value}, given as `changes={...}`; None leaves the field out."""
    fields = {**FIELDS, "uuid": f"GPU-{number:08x}-5d6e-7f80-91a2-b3c4d5e6f708", **changes.get("changes", {})}
    tree: dict = {}
    for path, value in fields.items():
        if value is not None:
            place = tree
            *parents, leaf = path.split("/")
            for parent in parents:
                place = place.setdefault(parent, {})
            place[leaf] = value
    return f'\t<gpu id="00000000:{0x10 + number:02X}:00.0">\n{_xml(tree, 2)}\t</gpu>\n'


def log(*gpus: str, attached: int | None = None) -> str:
    count = len(gpus) if attached is None else attached
    head = f"{HEAD}<nvidia_smi_log>\n\t<driver_version>580.105.08</driver_version>\n"
    return f"{head}\t<attached_gpus>{count}</attached_gpus>\n{''.join(gpus)}</nvidia_smi_log>\n"


def one(**changes) -> str:
    return log(gpu(changes=changes.get("changes", {})))


def _xml(tree: dict, depth: int) -> str:
    lines = ""
    for name, value in tree.items():
        inner = f"\n{_xml(value, depth + 1)}{chr(9) * depth}" if isinstance(value, dict) else str(value)
        lines += f"{chr(9) * depth}<{name}>{inner}</{name}>\n"
    return lines
