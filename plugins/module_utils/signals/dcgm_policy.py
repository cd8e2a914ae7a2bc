# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Violations that DCGM's policy listener (`dcgmi policy --reg`) printed, to HealthEvents.

Timestamp: Wed Jan 28 00:34:23 2026
A PCIe replay event has violated policy manager values.
PCIe replay count: 99999

Timestamp: Wed Jan 28 00:35:01 2026
XID error 79 detected.

Settings (`dcgmi policy --get`, as table or JSON) hold no violation and give nothing. Violations as JSON objects with
Condition, Timestamp and Data, as DCGM's Go bindings have them, are read too, one or a list, or one a line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument
from ansible_collections.goodput.fleet.plugins.module_utils.signals import event, timestamps
from ansible_collections.goodput.fleet.plugins.module_utils.signals.dcgm_health import AGENT, BLIND, CONNECTION
from ansible_collections.goodput.fleet.plugins.module_utils.signals.observer import Observer, decoded, uuids
from ansible_collections.goodput.fleet.plugins.module_utils.signals.tables import Tables

CHECK = "GpuPolicyViolation"
LINE_LIMIT = 1024  # characters; DCGM prints a tenth of it

# what is violated, in the words of DCGM and of its Go bindings: code, pattern
CONDITIONS = (
    ("DCGM_FR_VOLATILE_DBE_DETECTED", r"double-bit ECC error"),
    ("DCGM_FR_PCI_REPLAY_RATE", r"PCIe?\b.{0,10}\b(?:replay|error)"),
    ("DCGM_FR_RETIRED_PAGES_LIMIT", r"retired pages"),
    ("DCGM_FR_TEMP_VIOLATION", r"thermal limit"),
    ("DCGM_FR_CLOCKS_EVENT_POWER", r"power limit"),
    ("DCGM_FR_NVLINK_ERROR_THRESHOLD", r"NVLink (?:Counter|Error)"),
)
_CONDITIONS = [(code, re.compile(pattern, re.IGNORECASE)) for code, pattern in CONDITIONS]
_TIME = re.compile(r"Timestamp\s*:\s*(.*)", re.IGNORECASE)
_CTIME = re.compile(r"\w{3}\s+(\w{3,12})\s+(\d{1,2})\s+(\d\d:\d\d:\d\d)\s+(\d{4})")
_VIOLATION = re.compile(r"(.{1,200}?)\s+has violated policy manager values", re.IGNORECASE)
_XID = re.compile(r"XID error\s+(\d{1,6})\s+detected", re.IGNORECASE)
_XID_CUT = re.compile(r"XID error\b", re.IGNORECASE)
_GPU = re.compile(r"\bGPU(?:\s+ID)?\s*[:#]?\s*(\d{1,4})\b", re.IGNORECASE)
_DETAIL = re.compile(r"((?:PCIe|DBE|SBE|NVLink)\b[\w ]{0,40}|Temperature|Power)\s*:\s*(\S.{0,80})", re.IGNORECASE)
_ERROR = re.compile(r"^Error\b|disconnected|timed? ?out|refused|unreachable|host ?engine", re.IGNORECASE)
_ERRNUM = ("errnum", "xid", "value")


def parse(
    given: object,
    tables: Tables,
    *,
    node: str = "",
    boot_id: str | None = None,
    received: str | None = None,
    source_name: str = "dcgmi policy",
    utc_offset: str = "+00:00",
    index_to_uuid: Mapping | None = None,
) -> dict:
    """{events, unparsed, unparsedTotal, lines} of what the listener printed so far, as text, bytes, lines, or data.

    Its times are local to the node: `utc_offset` says where its clock stands. A listener that lost DCGM gives an event
    with state unknown. Raises InvalidDocument for options that cannot be, never for what DCGM printed.
    """
    observer = Observer(AGENT, node=node, boot_id=boot_id, received=received, source=source_name)
    east = timestamps.offset(str(utc_offset))
    if east is None:
        raise InvalidDocument(f"utc_offset is {utc_offset!r}", path="utc_offset", hint="such as +02:00, -0700 or Z")
    listener = _Listener(observer, tables, east, uuids(index_to_uuid or {}))
    if isinstance(given, Mapping) or (isinstance(given, (list, tuple)) and given and isinstance(given[0], Mapping)):
        listener.data(given, None)
        return observer.result(0)
    lines = decoded(given).split("\n")
    listener.read(lines)
    return observer.result(len(lines) - (lines[-1] == ""))


class _Violation:
    __slots__ = ("details", "gpu", "line", "text", "time")

    def __init__(self, line: int | None, text: str, time: str | None, gpu: str | None):
        self.line, self.text, self.time, self.gpu = line, text, time, gpu
        self.details: dict[str, str] = {}


class _Listener:
    def __init__(self, observer: Observer, tables: Tables, east: int, known: dict[str, str]):
        self._observer, self._tables, self._east = observer, tables, east
        self._uuids = known
        self._open: _Violation | None = None
        self._time: str | None = None
        self._gpu: str | None = None
        self._count = 0

    def read(self, lines: list[str]) -> None:
        whole = "\n".join(lines)
        if whole.lstrip()[:1] in ("{", "["):
            try:
                self.data(json.loads(whole), 1)
                return
            except (ValueError, RecursionError):
                pass  # one object a line, or broken
        for number, line in enumerate(lines, start=1):
            self._line(number, line[:LINE_LIMIT].strip())
        self._close()

    def _line(self, number: int, line: str) -> None:
        if line[:1] == "{":
            self._json(number, line)
            return
        time, detail = _TIME.fullmatch(line), _DETAIL.fullmatch(line)
        violation, xid = _VIOLATION.search(line), _XID.search(line)
        if time:
            self._close()
            self._time, self._gpu = self._moment(time[1]), None
        elif violation or xid:
            self._close()
            gpu = _GPU.search(line)
            self._open = _Violation(number, line, self._time, gpu[1] if gpu else self._gpu)
            self._time = self._gpu = None
        elif detail and self._open:
            self._open.details[detail[1].strip()] = detail[2]
        elif gpu := _GPU.fullmatch(line):
            if self._open:
                self._open.gpu = gpu[1]
            else:
                self._gpu = gpu[1]
        elif detail:
            self._observer.unparsed.add(number, line, "a figure without the violation that it belongs to")
        elif _XID_CUT.search(line):
            self._observer.unparsed.add(number, line, "looks like an Xid and has no code that can be read")
        elif _ERROR.search(line) and line[:1] != "|":
            self._close()
            message = f"DCGM's policy listener sees nothing: {line}"
            self._observer.blind(BLIND, message, code=CONNECTION, space="dcgm", line=number, text=line)

    def _close(self) -> None:
        """The violation's figures come after it, so it is told when the next one begins."""
        violation, self._open = self._open, None
        if violation is None:
            return
        self._count += 1
        xid = _XID.search(violation.text)
        code = next((code for code, pattern in _CONDITIONS if pattern.search(violation.text)), None)
        if xid:
            space, meaning = "xid", self._tables.meaning("xid", str(int(xid[1])))
            message = f"Xid {meaning.code}, {meaning.title}, violates a DCGM policy"
        else:
            space, meaning = "dcgm", self._tables.meaning("dcgm", code or "")
            message = violation.text.rstrip(".")
        figures = ", ".join(f"{name} {value}" for name, value in violation.details.items())
        entities = [("GPU", violation.gpu)] if violation.gpu else []
        if violation.gpu in self._uuids:
            entities.append(("GPU_UUID", self._uuids[violation.gpu]))
        # a policy's bounds are the operator's own, so a figure past them need not be a fault of the GPU
        warns = code in ("DCGM_FR_RETIRED_PAGES_LIMIT",)
        self._observer.tell(
            meaning,
            check=CHECK,
            component="GPU",
            space=space,
            code=bool(xid or code),
            message=f"{message}{': ' if figures else ''}{figures}",
            entities=entities,
            fatal=False if warns else None,
            severity="error" if warns else None,
            metadata={_camel(name): value for name, value in violation.details.items()},
            line=violation.line,
            text=violation.text,
            generated=violation.time,
            position=[violation.time, violation.text] if violation.time else [violation.text, self._count],
        )

    def _moment(self, text: str) -> str | None:
        ctime = _CTIME.fullmatch(text.strip())
        if ctime:
            month, day, clock, year = ctime.groups()
            return timestamps.utc(timestamps.written(month, day, clock, year, None, self._east))
        return timestamps.utc(timestamps.iso(text, self._east))

    # JSON

    def _json(self, number: int, line: str) -> None:
        self._close()
        try:
            self.data(json.loads(line), number)
        except (ValueError, RecursionError):
            self._observer.unparsed.add(number, line, "JSON that is malformed or breaks off")

    def data(self, data: object, number: int | None) -> None:
        for item in data if isinstance(data, (list, tuple)) else [data]:
            if isinstance(item, Mapping) and "body" in item and "header" in item:
                continue  # settings
            fields = {str(key).lower(): value for key, value in item.items()} if isinstance(item, Mapping) else {}
            condition = fields.get("condition")
            if not isinstance(condition, str):
                self._observer.unparsed.add(number, _brief(item), "JSON without Condition, so no violation")
                continue
            self._condition(condition, fields, number)

    def _condition(self, condition: str, fields: dict, number: int | None) -> None:
        given = fields.get("data")
        figures = {str(name): value for name, value in given.items()} if isinstance(given, Mapping) else {}
        text = event.clean(condition, 200)
        if _XID_CUT.search(condition):
            errnum = next((value for name, value in figures.items() if name.lower() in _ERRNUM), None)
            if isinstance(errnum, bool) or not str(errnum).isascii() or not str(errnum).isdecimal():
                self._observer.unparsed.add(number, _brief(fields), "an Xid without number")
                return
            text = f"XID error {errnum} detected."
        gpu = fields.get("gpuid", fields.get("gpu"))
        time = self._moment(fields["timestamp"]) if isinstance(fields.get("timestamp"), str) else None
        self._open = _Violation(number, text, time, str(gpu) if isinstance(gpu, (int, str)) else None)
        self._open.details = {name: event.clean(value, 80) for name, value in figures.items() if _plain(value)}
        self._close()


def _camel(name: str) -> str:
    """`PCIe replay count` as `pcieReplayCount`."""
    first, *others = name.split() or [""]
    return (first.lower() if others else first[:1].lower() + first[1:]) + "".join(word.title() for word in others)


def _plain(value: object) -> bool:
    return isinstance(value, (str, int, float)) and not (isinstance(value, int) and abs(value) > 2**64)


def _brief(data: object) -> str:
    try:
        return json.dumps(data, default=str)[:512]
    except (TypeError, ValueError, RecursionError):
        return type(data).__name__
