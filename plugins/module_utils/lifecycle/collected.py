# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What tools say on a node, as lines of a history. Pure.

    nvidia-smi -q -x                    counters of each GPU; temperature and clock only where it works hard, since an
                                        idle GPU's say nothing about another day's
    nvidia-smi nvlink -e, nvlink -s     errors of the links, and how many are up
    /sys/class/infiniband               errors, flaps and rate of the NICs' ports, as `grep -H` prints them

What a tool does not tell ("N/A", "[Not Supported]", a field that is missing) is left out; it is never 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from xml.etree.ElementTree import Element

BUSY = 80.0  # percent of utilisation, and of the power limit, from which a GPU works hard
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_GPU = re.compile(r"GPU \d+:.*\(UUID: (GPU-[0-9A-Fa-f-]+)\)")
_LINK = re.compile(r"Link (\d+): (?:(?P<name>[^:]+): (?P<count>\d+)$|(?P<state><?inactive>?|[\d.]+ GB/s)$)")
_PORT = re.compile(r"/sys/class/infiniband/([^/]+)/ports/(\d+)/(?:counters/)?([a-z_]+):\s*(\S.*)")
_LINK_ERRORS = (
    "crc",
    "recovery error",
    "recovery failed",
    "malformed packet",
    "local link integrity",
    "buffer overrun",
    "effective error",
)
NIC_ERRORS = ("symbol_error", "port_rcv_errors", "local_link_integrity_errors", "excessive_buffer_overrun_errors")


def lines(node: str, boot_id: str, at: str, found: Iterable[Mapping[str, Mapping[str, float]]]) -> list[dict]:
    """One line for each entity of which something is known; found: {entity: {metric: value}} of the readers below."""
    merged: dict[str, dict[str, float]] = {}
    for each in found:
        for entity, values in each.items():
            merged.setdefault(entity, {}).update(values)
    about = {"node": node, "bootId": boot_id, "at": at}
    return [{**about, "entity": entity, "values": values} for entity, values in sorted(merged.items()) if values]


def of_gpus(root: Element) -> dict[str, dict[str, float]]:
    """Of the XML that `nvidia-smi -q -x` writes, by UUID."""
    return {uuid: _gpu(gpu) for gpu in root.iter("gpu") if (uuid := (gpu.findtext("uuid") or "").strip())}


def _gpu(gpu: Element) -> dict[str, float]:
    volatile = "ecc_errors/volatile/"
    told = {
        "ecc_correctable": _sum(
            gpu, (f"{volatile}sram_correctable", f"{volatile}dram_correctable"), (f"{volatile}single_bit/total",)
        ),
        "remapped_rows_correctable": _number(gpu, "remapped_rows/remapped_row_corr"),
        "remapped_rows_uncorrectable": _number(gpu, "remapped_rows/remapped_row_unc"),
        "row_remap_pending": _yes(gpu, "remapped_rows/remapped_row_pending"),
        "pcie_replays": _number(gpu, "pci/replay_counter"),
        "pcie_width": _number(gpu, "pci/pci_gpu_link_info/link_widths/current_link_width"),
        "throttled_seconds": _throttled(gpu),
        **_under_load(gpu),
    }
    return {metric: value for metric, value in told.items() if value is not None}


def _under_load(gpu: Element) -> dict[str, float | None]:
    busy = _number(gpu, "utilization/gpu_util")
    if busy is None or busy < BUSY:
        return {}
    power = next(
        (each for name in ("gpu_power_readings", "power_readings") if (each := gpu.find(name)) is not None), None
    )
    told: dict[str, float | None] = {}
    if power is not None:
        draw = next(
            (x for name in ("power_draw", "average_power_draw", "instant_power_draw") if (x := _number(power, name))),
            None,
        )
        limit = next((x for name in ("current_power_limit", "power_limit") if (x := _number(power, name))), None)
        if draw is not None and limit is not None and draw * 100 >= limit * BUSY:
            told["gpu_temperature"] = _number(gpu, "temperature/gpu_temp")
            told["memory_temperature"] = _number(gpu, "temperature/memory_temp")
    # a clock that the power limit holds down is the job's, not the GPU's
    if _capped(gpu) is False:
        told["sm_clock"] = _number(gpu, "clocks/sm_clock")
    return told


def _capped(gpu: Element) -> bool | None:
    for kind in ("clocks_event_reason", "clocks_throttle_reason"):
        text = gpu.findtext(f"{kind}s/{kind}_sw_power_cap")
        if text:
            return text.strip() == "Active"
    return None


def _throttled(gpu: Element) -> float | None:
    """Seconds, of the counters that newer drivers have in microseconds."""
    times = [
        value
        for each in gpu.findall("clocks_event_reasons_counters/*")
        if any(word in each.tag for word in ("therm", "brak")) and (value := _amount(each.text)) is not None
    ]
    return sum(times) / 1e6 if times else None


def _sum(gpu: Element, *choices: Iterable[str]) -> float | None:
    for names in choices:
        values = [value for name in names if (value := _number(gpu, name)) is not None]
        if values:
            return sum(values)
    return None


def _number(element: Element, path: str) -> float | None:
    return _amount(element.findtext(path))


def _amount(text: str | None) -> float | None:
    match = _NUMBER.match((text or "").strip())
    return float(match[0]) if match else None


def _yes(element: Element, path: str) -> float | None:
    return {"yes": 1.0, "no": 0.0}.get((element.findtext(path) or "").strip().lower())


def of_links(text: str) -> dict[str, dict[str, float]]:
    """Of `nvidia-smi nvlink -e` and `nvlink -s`, in any order, by UUID of the GPU."""
    found: dict[str, dict[str, float]] = {}
    values: dict[str, float] = {}
    for line in text.splitlines():
        if gpu := _GPU.search(line):
            values = found.setdefault(gpu[1], {})
        elif link := _LINK.search(line.strip()):
            if link["state"]:
                values["nvlinks_up"] = values.get("nvlinks_up", 0.0) + ("inactive" not in link["state"])
            elif metric := _link_metric(link["name"].lower()):
                values[metric] = values.get(metric, 0.0) + float(link["count"])
    return found


def _link_metric(name: str) -> str:
    """Packets are no errors, symbol errors are what error correction is there for, remote errors are another link's,
    and totals are told in parts as well."""
    if "recovery successful" in name:
        return "nvlink_flaps"
    if "replay" in name:
        return "nvlink_replays"
    return "nvlink_errors" if any(word in name for word in _LINK_ERRORS) else ""


def of_ports(text: str) -> dict[str, dict[str, float]]:
    """Of lines `/sys/class/infiniband/mlx5_0/ports/1/counters/link_downed:3`, by `mlx5_0/1`."""
    found: dict[str, dict[str, float]] = {}
    for device, port, name, told in _PORT.findall(text):
        value, values = _amount(told), found.setdefault(f"{device}/{port}", {})
        if value is None:
            continue
        if name == "link_downed":
            values["nic_link_downed"] = value
        elif name == "rate":
            values["nic_rate"] = value
        elif name in NIC_ERRORS:
            values["nic_errors"] = values.get("nic_errors", 0.0) + value
    return found


def of_certification(results: Mapping, about: Mapping, runs: Mapping[str, Mapping], inventory: Mapping) -> list[dict]:
    """What a certification measured of single nodes: [{category, metric, unit, worse, line}].

    results, about, inventory: results.json, certification.json and inventory.json of its evidence; runs: {id: run.json}
    of all that the results name. What several nodes measured together is no node's own, and a metric whose better
    direction the test does not tell is left out. A test with other options is another workload.
    """
    tests = {one.get("name"): one.get("resolved") or {} for one in about.get("categories") or ()}
    found = []
    for row in results.get("rows") or () if results.get("finished") else ():
        mine = [runs.get(run) or {} for run in row["runs"]]
        if not row["metrics"] or not mine or any(run.get("nodes") != [row["node"]] for run in mine):
            continue
        test = tests.get(row["category"], {}).get(mine[0].get("accelerator")) or {}
        known = inventory.get(row["node"]) or {}
        line = {
            "node": row["node"],
            "at": results["finished"],
            "bootId": known.get("bootId") or "",
            "machineId": known.get("machineId") or "",
            "workload": (test.get("digest") or "").removeprefix("sha256:")[:12],
        }
        for name, measured in row["metrics"].items():
            direction = ((test.get("metrics") or {}).get(name) or {}).get("direction")
            if direction in ("higher", "lower"):
                found.append(
                    {
                        "category": row["category"],
                        "metric": name,
                        "unit": measured.get("unit") or "",
                        "worse": "down" if direction == "higher" else "up",
                        "line": {**line, "value": measured.get("value")},
                    }
                )
    return found
