# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks NVML of this machine, never longer than it may take.

    seen = observe(library=None, timeout=15)
    seen.gpus      Gpu of each index; one that a call hung on, or that took the library down, has a fault
    seen.fault     why nothing could be asked: no driver, no library, a call that did not return; "" else

A call into a broken driver may never return, and then cannot even be killed. So a process of its own makes the calls
and says each one first; one that stays silent is left behind, and another goes on with the GPUs after it.
"""

from __future__ import annotations

import json
import os
import select
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from ansible_collections.goodput.fleet.plugins.module_utils.signals import event, gpu_judgement, nvml_reader
from ansible_collections.goodput.fleet.plugins.module_utils.signals.gpu_readings import Gpu
from ansible_collections.goodput.fleet.plugins.module_utils.signals.observer import Observer, expected
from ansible_collections.goodput.fleet.plugins.module_utils.signals.tables import Tables

AGENT = "nvml"
ATTEMPTS = 16  # processes; each one after the first leaves a GPU behind
GRACE = 1.0  # seconds that a killed process has to end


@dataclass
class Seen:
    gpus: list[Gpu] = field(default_factory=list)
    count: int | None = None
    driver: str = ""
    fault: str = ""
    fault_code: str = ""  # of the table nvml, where the fault is a GPU's and not the driver's


def observe(library: str | None = None, timeout: float = 15) -> Seen:
    """`library`: path of libnvidia-ml.so.1, where the loader does not find it; `timeout`: seconds for each call."""
    seen = Seen()
    for _attempt in range(ATTEMPTS):
        stuck = _once(library, timeout, seen)
        if stuck is None:
            break
        seen.gpus.append(stuck)
    known = {gpu.index for gpu in seen.gpus}
    why = seen.fault or "it was not reached"
    # of a driver that answered at first and then no more
    seen.gpus += [
        Gpu(index=index, fault="GPU_UNREADABLE", fault_text=why)
        for index in range(seen.count or 0)
        if index not in known
    ]
    seen.gpus.sort(key=lambda gpu: gpu.index)
    return seen


def _once(library: str | None, timeout: float, seen: Seen) -> Gpu | None:
    """Runs one process to its end. The GPU it got stuck on, after which another one is worth its while."""
    last: dict = {}
    why = ""
    for message in _listen(library, timeout, {gpu.index for gpu in seen.gpus}):
        if "call" in message:
            last = message
        elif "read" in message:
            seen.gpus.append(Gpu(**message["read"]))
        elif "count" in message:
            seen.count = message["count"]
        elif "driver" in message:
            seen.driver = message["driver"]
        elif "fault" in message:
            seen.fault, seen.fault_code = message["fault"], message["code"]
            return None
        elif "done" in message:
            return None
        else:
            why = message["ended"]
    what = f"{last.get('call', 'the process that asks')} {why}"
    if last.get("gpu") is None:
        seen.fault = what
        return None
    return Gpu(index=last["gpu"], fault="GPU_UNREADABLE", fault_text=what)


def _listen(library: str | None, timeout: float, skip: set[int]) -> Iterator[dict]:
    """What the process says; at last {"ended": why}, where it ends or stays silent too early."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _work(library, skip, reader, writer)
    os.close(writer)
    try:
        yield from _messages(reader, timeout)
    finally:
        os.close(reader)
        _end(child)


def _messages(reader: int, timeout: float) -> Iterator[dict]:
    rest = b""
    while True:
        ready, _write, _error = select.select([reader], [], [], timeout)
        if not ready:
            yield {"ended": f"did not return within {timeout:g} seconds"}
            return
        piece = os.read(reader, 65536)
        if not piece:
            yield {"ended": "ended the process that called it"}
            return
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            yield json.loads(line)


def _end(child: int) -> None:
    """A process that hangs in the driver does not even end when it is killed, and is not waited for."""
    os.kill(child, signal.SIGKILL)
    until = time.monotonic() + GRACE
    while os.waitpid(child, os.WNOHANG) == (0, 0) and time.monotonic() < until:
        time.sleep(0.01)


def _work(library: str | None, skip: set[int], reader: int, writer: int) -> None:
    """The process that asks. It must not hold what the caller's own caller waits on."""
    status = 1
    try:
        os.setsid()
        os.close(reader)
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)

        def say(message: dict) -> None:
            os.write(writer, json.dumps(message).encode() + b"\n")

        nvml_reader.read_all(library, skip, say)
        status = 0
    finally:
        os._exit(status)


# what it means


def parse(
    seen: Seen,
    tables: Tables,
    *,
    node: str = "",
    boot_id: str | None = None,
    received: str | None = None,
    source_name: str = "NVML",
    expected_gpus: int | None = None,
    expected_nvlinks: int | None = None,
) -> dict:
    """{events, gpus, not_seen, driver_version, state} of what was seen. Pure. Raises InvalidDocument for options that
    cannot be."""
    observer = Observer(AGENT, node=node, boot_id=boot_id, received=received, source=source_name)
    wanted = expected(expected_gpus)
    gpus = list(seen.gpus)
    if seen.fault_code:
        gpus.append(Gpu(fault=seen.fault_code, fault_text=seen.fault))
    states = gpu_judgement.tell(
        observer,
        tables,
        gpus,
        count=seen.count,
        expected_gpus=wanted,
        expected_links=expected_nvlinks,
    )
    blind = "" if seen.fault_code else seen.fault
    gpu_judgement.conclude(observer, count=seen.count, expected_gpus=wanted, who="NVML", blind=[blind] if blind else [])
    return {
        "events": observer.events,
        "gpus": [{**gpu.facts(), "state": state} for gpu, state in zip(gpus, states, strict=True)],
        "not_seen": [
            {"index": gpu.index, "why": event.clean(gpu.fault_text, 253)} for gpu in gpus if gpu.fault and not gpu.uuid
        ],
        "driver_version": seen.driver,
        "state": gpu_judgement.worst(observer.events),
    }
