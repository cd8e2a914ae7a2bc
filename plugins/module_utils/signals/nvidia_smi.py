# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`nvidia-smi -q -x`, or `nvidia-smi -q`, to HealthEvents.

    result = nvidia_smi.parse(text, tables.load_catalog(layers), node="gpu-7", expected_gpus=8, received="2026-…Z")
    result["events"]          what is wrong with each GPU; one healthy event when nothing is; one with state unknown
                              when the driver cannot be asked or the output cannot be read
    result["gpus"]            the GPUs with their readings and their state
    result["driver_version"]

The output may hold what nvidia-smi printed beside or instead of the XML: GPUs that are lost, a driver that is not
there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree.ElementTree import Element

from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument
from ansible_collections.goodput.fleet.plugins.module_utils.signals import (
    event,
    gpu_judgement,
    nvidia_smi_text,
    xmltree,
)
from ansible_collections.goodput.fleet.plugins.module_utils.signals.gpu_readings import Gpu
from ansible_collections.goodput.fleet.plugins.module_utils.signals.nvidia_smi_gpu import fault_of, read_gpu
from ansible_collections.goodput.fleet.plugins.module_utils.signals.observer import Observer, decoded, expected
from ansible_collections.goodput.fleet.plugins.module_utils.signals.tables import Tables

AGENT = "nvidia-smi"
LINE_LIMIT = 1024

_OPENS = re.compile(r"<\?xml\b|<!DOCTYPE\s+nvidia_smi_log\b|<nvidia_smi_log\b")
_CLOSES = "</nvidia_smi_log>"
_HANDLE = re.compile(r"device handle for (?:the )?gpu\s*(?P<place>[0-9a-f:.]*)\s*:?\s*(?P<why>.*)", re.IGNORECASE)
_INFOROM = re.compile(r"\binforom is corrupted\b(?: at gpu (?P<place>[0-9a-f:.]+))?", re.IGNORECASE)
_NONE = re.compile(r"\bno devices (?:were )?found\b", re.IGNORECASE)
_BLIND = re.compile(
    r"\bhas failed\b|\bfailed to initialize\b|\bcouldn't communicate\b|\bnot found\b|\bno such file\b|\btimed? ?-?out\b"
    r"|\bmismatch\b|\bpermission\b|\berror\b|\bkilled\b|\bunable\b|\bcannot\b|\bdenied\b",
    re.IGNORECASE,
)


def parse(
    given: object,
    tables: Tables,
    *,
    node: str = "",
    boot_id: str | None = None,
    received: str | None = None,
    source_name: str = "nvidia-smi",
    expected_gpus: int | None = None,
) -> dict:
    """{events, unparsed, unparsedTotal, lines, gpus, driver_version}. Raises InvalidDocument for options that cannot
    be, never for what nvidia-smi printed."""
    observer = Observer(AGENT, node=node, boot_id=boot_id, received=received, source=source_name)
    wanted = expected(expected_gpus)
    text = decoded(given)
    reading = _Reading()
    around = _documents(text, reading, observer, tables)
    if reading.count is None and not observer.unparsed.total:
        around = _text_form(around, reading, tables, text.endswith("\n"))
    _sentences(around, reading)
    states = _tell(reading, observer, tables, wanted)
    return {
        **observer.result(text.count("\n") + bool(text and not text.endswith("\n"))),
        "gpus": [{**gpu.facts(), "state": state} for gpu, state in zip(reading.gpus, states, strict=True)],
        "driver_version": reading.driver,
    }


class _Reading:
    def __init__(self) -> None:
        self.gpus: list[Gpu] = []
        self.driver = ""
        self.count: int | None = None  # as the driver tells it
        self.blind: list[tuple[int, str]] = []

    def take(self, root: Element, tables: Tables) -> None:
        """What an <nvidia_smi_log> says."""
        self.driver = event.clean((root.findtext("driver_version") or "").strip(), 64)
        gpus = [read_gpu(element, tables) for element in root.findall("gpu")]
        attached = (root.findtext("attached_gpus") or "").strip()
        told = int(attached) if attached.isascii() and attached.isdecimal() and len(attached) < 5 else 0
        if told or root.get("form") != "section":
            # of a query for one GPU only that one is there, and all are counted
            self.count = max(told, len(gpus), self.count or 0)
        if told == len(gpus):
            for number, gpu in enumerate(gpus):
                gpu.index = number
        self.gpus += gpus

    def at(self, place: str) -> Gpu:
        """The GPU at a PCI address; a new one where the XML has none there."""
        pci = event.pci(place.rstrip(":.")) or ""
        found = next((gpu for gpu in self.gpus if pci and gpu.pci == pci), None)
        if found is None:
            found = Gpu(pci=pci)
            self.gpus.append(found)
        return found


def _documents(text: str, reading: _Reading, observer: Observer, tables: Tables) -> list[tuple[int, str]]:
    """Reads the XML documents; gives the lines around them."""
    around, at = [], 0
    while opens := _OPENS.search(text, at):
        first = text.count("\n", 0, opens.start()) + 1
        around += _lines(text, at, opens.start())
        closes = text.find(_CLOSES, opens.end())
        at = len(text) if closes < 0 else closes + len(_CLOSES)
        try:
            root = xmltree.read(text[opens.start() : at])
        except InvalidDocument as error:
            (problem,) = error.problems
            observer.unparsed.add(first + (problem.line or 1) - 1, text[opens.start() : at], problem.message)
            continue
        reading.take(root, tables)
    return [*around, *_lines(text, at, len(text))]


def _text_form(lines: list[tuple[int, str]], reading: _Reading, tables: Tables, whole: bool) -> list[tuple[int, str]]:
    """Reads the output of `nvidia-smi -q` without -x; gives the lines before it."""
    first = next((at for at, (_number, line) in enumerate(lines) if nvidia_smi_text.looks(line)), None)
    if first is None:
        return lines
    told = lines[first:] if whole else lines[first:-1]  # a value may be cut, and mean another
    reading.take(nvidia_smi_text.read([line for _number, line in told]), tables)
    return lines[:first]


def _lines(text: str, start: int, end: int) -> Iterator[tuple[int, str]]:
    first = text.count("\n", 0, start) + 1
    for number, line in enumerate(text[start:end].split("\n"), start=first):
        if line.strip():
            yield number, line[:LINE_LIMIT].rstrip()


def _sentences(lines: list[tuple[int, str]], reading: _Reading) -> None:
    for number, line in lines:
        line = line.strip()
        handle, inforom = _HANDLE.search(line), _INFOROM.search(line)
        if handle:
            gpu = reading.at(handle["place"])
            gpu.fault, gpu.fault_text = fault_of(handle["why"]) or "GPU_UNREADABLE", handle["why"].strip() or line
        elif inforom:
            reading.at(inforom["place"] or "").inforom_corrupted = True
        elif _NONE.search(line):
            reading.count = reading.count or 0
        elif _BLIND.search(line):
            reading.blind.append((number, line))
    if reading.count is not None:
        reading.count = max(reading.count, len(reading.gpus))


def _tell(reading: _Reading, observer: Observer, tables: Tables, wanted: int | None) -> list[str]:
    states = gpu_judgement.tell(observer, tables, reading.gpus, count=reading.count, expected_gpus=wanted)
    place = dict(zip(("line", "text"), reading.blind[0], strict=True)) if reading.blind else {}
    gpu_judgement.conclude(
        observer,
        count=reading.count if reading.count is not None else len(reading.gpus) or None,
        expected_gpus=wanted,
        who="nvidia-smi",
        blind=[text for _line, text in reading.blind],
        **place,
    )
    return states
