# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads GPUs through pynvml. Runs in a process of its own, since a broken driver can hold a caller for ever; see nvml.

It says each call before it makes it, so that whoever listens knows which one does not come back:

    {"call": "nvmlDeviceGetTemperature", "gpu": 3}
    {"driver": "580.105.08"}  {"count": 8}  {"read": {…a Gpu's fields…}}  {"fault": "…", "code": ""}  {"done": true}
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from ansible_collections.goodput.fleet.plugins.module_utils.signals import event
from ansible_collections.goodput.fleet.plugins.module_utils.signals.gpu_readings import (
    CLOCK_REASONS,
    FABRIC_STATES,
    Gpu,
)

# of NVML: what it returns
LOST, RESET_REQUIRED, INSUFFICIENT_POWER, CORRUPTED_INFOROM = 15, 16, 8, 14
FAULTS = {LOST: "GPU_LOST", RESET_REQUIRED: "RESET_REQUIRED", INSUFFICIENT_POWER: "INSUFFICIENT_POWER"}
# not supported; by this driver; not allowed; no data; in this form
ABSENT = (2, 3, 4, 13, 21, 22, 25, 26)
RECOVERY_FIELD = 230
UNCORRECTED, VOLATILE, AGGREGATE = 1, 0, 1
FIELD_TYPES = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
NONE_64 = 0xFFFFFFFFFFFFFFFF  # what counters read that are not there

# of the fabric's health: shift in the mask, width, the value that is bad
HEALTH = (
    ("FABRIC_BANDWIDTH_DEGRADED", 0, 3, 1),
    ("FABRIC_ROUTE_RECOVERY", 2, 3, 1),
    ("FABRIC_ROUTE_UNHEALTHY", 4, 3, 1),
    ("FABRIC_ACCESS_TIMEOUT", 6, 3, 1),
)
MISCONFIGURED_SHIFT, MISCONFIGURED_WIDTH = 8, 15

Say = Callable[[dict], None]


class Broken(Exception):
    """The GPU as a whole cannot be read any further."""

    def __init__(self, code: str, text: str):
        super().__init__(text)
        self.code, self.text = code, text


def read_all(library: str | None, skip: set[int], say: Say) -> None:
    """Of every GPU whose index is not in `skip`."""
    import ctypes

    import pynvml

    try:
        if library:
            say({"call": "loading the library"})
            pynvml.nvmlLib = ctypes.CDLL(library)
        say({"call": "nvmlInit"})
        pynvml.nvmlInit()
        say({"call": "nvmlDeviceGetCount"})
        count = pynvml.nvmlDeviceGetCount()
        say({"count": count})
        say({"call": "nvmlSystemGetDriverVersion"})
        say({"driver": _text(pynvml.nvmlSystemGetDriverVersion())})
    except pynvml.NVMLError as error:
        say({"fault": _words(error), "code": FAULTS.get(error.value, "")})
        return
    except OSError as error:
        say({"fault": f"{library} cannot be loaded: {error}", "code": ""})
        return
    for index in range(count):
        if index not in skip:
            say({"read": asdict(_Device(pynvml, index, say).read())})
    say({"done": True})


class _Device:
    def __init__(self, pynvml: Any, index: int, say: Say):
        self.nvml, self._say, self.gpu = pynvml, say, Gpu(index=index)
        self._handle = None

    def read(self) -> Gpu:
        gpu = self.gpu
        try:
            self._say({"call": "nvmlDeviceGetHandleByIndex", "gpu": gpu.index})
            self._handle = self.nvml.nvmlDeviceGetHandleByIndex(gpu.index)
        except self.nvml.NVMLError as error:
            gpu.fault, gpu.fault_text = FAULTS.get(error.value, "GPU_UNREADABLE"), _words(error)
            return gpu
        try:
            for part in (_identity, _recovery, _memory, _clocks, _pcie, _temperature, _links, _fabric):
                part(self, gpu)
        except Broken as broken:
            gpu.fault, gpu.fault_text = broken.code, broken.text
        return gpu

    def ask(self, name: str, *arguments: Any, what: str = "") -> Any:
        """What a function of NVML returns; None where the GPU or the driver does not have it, or it fails."""
        self._say({"call": name, "gpu": self.gpu.index})
        try:
            return getattr(self.nvml, name)(self._handle, *arguments)
        except self.nvml.NVMLError as error:
            self.failed(what or name.removeprefix("nvmlDeviceGet"), error)
        except AttributeError:  # an older pynvml
            pass
        except (TypeError, ValueError, ArithmeticError) as error:
            self.gpu.failed[what or name.removeprefix("nvmlDeviceGet")] = event.clean(error, 80)
        return None

    def failed(self, what: str, error: Any) -> None:
        if error.value in FAULTS:
            raise Broken(FAULTS[error.value], f"{what}: {_words(error)}")
        if error.value == CORRUPTED_INFOROM:
            self.gpu.inforom_corrupted = True
        elif error.value not in ABSENT:
            self.gpu.failed[what] = _words(error)


def _identity(device: _Device, gpu: Gpu) -> None:
    # first what tells GPUs apart: it may be all there is
    pci = device.ask("nvmlDeviceGetPciInfo")
    gpu.pci = event.pci(_text(pci.busId)) or "" if pci is not None else ""
    gpu.uuid = _text(device.ask("nvmlDeviceGetUUID"))
    gpu.serial = _text(device.ask("nvmlDeviceGetSerial"))
    gpu.name = _text(device.ask("nvmlDeviceGetName"))
    mode = device.ask("nvmlDeviceGetMigMode")
    gpu.mig = None if mode is None else bool(mode[0])
    state = device.ask("nvmlDeviceGetPerformanceState")
    gpu.performance_state = state if state is not None and 0 <= state < 16 else None


def _recovery(device: _Device, gpu: Gpu) -> None:
    values = device.ask("nvmlDeviceGetFieldValues", [RECOVERY_FIELD], what="GpuRecoveryAction")
    if values is None:
        return
    value = values[0]
    if value.nvmlReturn:
        device.failed("GpuRecoveryAction", device.nvml.NVMLError(value.nvmlReturn))
    elif 0 <= value.valueType < len(FIELD_TYPES):
        gpu.recovery_action = int(getattr(value.value, FIELD_TYPES[value.valueType]))


def _memory(device: _Device, gpu: Gpu) -> None:
    gpu.ecc_volatile_uncorrected = _counter(
        device.ask("nvmlDeviceGetTotalEccErrors", UNCORRECTED, VOLATILE, what="VolatileEccErrors")
    )
    gpu.ecc_aggregate_uncorrected = _counter(
        device.ask("nvmlDeviceGetTotalEccErrors", UNCORRECTED, AGGREGATE, what="AggregateEccErrors")
    )
    status = _struct(device, "c_nvmlEccSramErrorStatus_v1_t", "nvmlDeviceGetSramEccErrorStatus")
    gpu.sram_threshold_exceeded = None if status is None else bool(status.bThresholdExceeded)
    pages = [device.ask("nvmlDeviceGetRetiredPages", cause, what="RetiredPages") for cause in (0, 1)]
    gpu.retired_pages = None if None in pages else sum(map(len, pages))
    pending = device.ask("nvmlDeviceGetRetiredPagesPendingStatus")
    gpu.retired_pages_pending = None if pending is None else bool(pending)
    repairs = device.ask("nvmlDeviceGetRepairStatus")
    gpu.repair_pending = None if repairs is None else any(repairs)
    rows = device.ask("nvmlDeviceGetRemappedRows")
    if rows is not None:
        _corrected, gpu.remapped_rows_uncorrected, pending, failure = rows
        gpu.row_remap_pending, gpu.row_remap_failure = bool(pending), bool(failure)


def _clocks(device: _Device, gpu: Gpu) -> None:
    bits = device.ask("nvmlDeviceGetCurrentClocksEventReasons", what="ClocksEventReasons")
    if bits is None:  # as it was called until driver 535
        bits = device.ask("nvmlDeviceGetCurrentClocksThrottleReasons", what="ClocksEventReasons")
    if bits is not None:
        gpu.failed.pop("ClocksEventReasons", None)
        gpu.clock_reasons = [name for name, bit in CLOCK_REASONS.items() if bits & bit]


def _pcie(device: _Device, gpu: Gpu) -> None:
    gpu.pcie_width = device.ask("nvmlDeviceGetCurrPcieLinkWidth")
    gpu.pcie_width_max = device.ask("nvmlDeviceGetMaxPcieLinkWidth")
    gpu.pcie_generation = device.ask("nvmlDeviceGetCurrPcieLinkGeneration")
    gpu.pcie_generation_max = device.ask("nvmlDeviceGetMaxPcieLinkGeneration")


def _temperature(device: _Device, gpu: Gpu) -> None:
    gpu.temperature = device.ask("nvmlDeviceGetTemperature", 0)
    gpu.temperature_shutdown = device.ask("nvmlDeviceGetTemperatureThreshold", 0, what="TemperatureShutdown")
    gpu.temperature_slowdown = device.ask("nvmlDeviceGetTemperatureThreshold", 1, what="TemperatureSlowdown")
    gpu.margin = device.ask("nvmlDeviceGetMarginTemperature")  # to where clocks go down
    gpu.margin_slowdown = None if gpu.margin is None else 0


def _links(device: _Device, gpu: Gpu) -> None:
    up, down = [], []
    for link in range(getattr(device.nvml, "NVML_NVLINK_MAX_LINKS", 18)):
        state = device.ask("nvmlDeviceGetNvLinkState", link)
        if state is None and not up and not down:
            return
        if state is not None:
            (up if state else down).append(link)
    gpu.nvlinks_up, gpu.nvlinks_down = up, down


def _fabric(device: _Device, gpu: Gpu) -> None:
    info = _struct(device, "c_nvmlGpuFabricInfo_v2_t", "nvmlDeviceGetGpuFabricInfoV")
    if info is None:
        return
    gpu.fabric_state = FABRIC_STATES[info.state] if 0 <= info.state < len(FABRIC_STATES) else ""
    if gpu.fabric_state == "not supported":
        return
    gpu.fabric_status = "success" if info.status == 0 else _words(device.nvml.NVMLError(info.status)).lower()
    gpu.fabric_troubles = [code for code, shift, width, bad in HEALTH if (info.healthMask >> shift) & width == bad]
    if (info.healthMask >> MISCONFIGURED_SHIFT) & MISCONFIGURED_WIDTH > 1:  # 0: not told, 1: none
        gpu.fabric_troubles.append("FABRIC_MISCONFIGURED")


def _struct(device: _Device, kind: str, name: str) -> Any:
    """A structure that NVML fills in; None where it does not."""
    import ctypes

    struct = getattr(device.nvml, kind, None)
    if struct is None:
        return None
    value = struct()
    return value if device.ask(name, ctypes.byref(value)) is not None else None


def _counter(value: int | None) -> int | None:
    return None if value == NONE_64 else value


def _text(value: object) -> str:
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    return "" if value is None else event.clean(value, 200)


def _words(error: object) -> str:
    return event.clean(error, 200)
