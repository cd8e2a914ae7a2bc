# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel logs to HealthEvents: Xid, SXid, GPUs that fell off the bus, network drivers, acknowledged GPU resets.

    tables = tables.load([(text, name), ...])                  # xid, nvlink5, sxid of the catalogue
    result = kernel.parse(log, tables, Context(node="gpu-7", boot_id="…", received="2026-03-06T09:34:56Z"))
    result["events"]     HealthEvent documents, in the order of the log
    result["unparsed"]   [{line, text, reason}]: looks like a signal and cannot be read; at most 1,000 of unparsedTotal
    result["ignored"]    {reason: lines}: not written by the kernel, or read already
    result["lines"]      lines of the log

A log is text, bytes, pieces of bytes cut anywhere, a file opened for bytes, or a list of lines as text. Its form is
found line by line; see kernel_prefix. A log that spans boots is told apart at `Linux version` and at journalctl's
`-- Boot` lines: what stands before the last boot gets the boot id `before:ID`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import BinaryIO, Union

from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument
from ansible_collections.goodput.fleet.plugins.module_utils.signals import (
    event,
    kernel_journal,
    kernel_messages,
    kernel_prefix,
    sxid,
    timestamps,
)
from ansible_collections.goodput.fleet.plugins.module_utils.signals.kernel_bursts import WINDOW, Burst, Bursts, Sighting
from ansible_collections.goodput.fleet.plugins.module_utils.signals.kernel_prefix import KERNEL, OTHER
from ansible_collections.goodput.fleet.plugins.module_utils.signals.kernel_scan import PIECE, Scanner
from ansible_collections.goodput.fleet.plugins.module_utils.signals.kernel_signal import Signal, Unreadable
from ansible_collections.goodput.fleet.plugins.module_utils.signals.tables import Tables

AGENT = "kernel-log"
BODY_LIMIT = 2048  # characters of a message; the driver prints less than half of it
TEXT_LIMIT = 1024  # characters of a line that are kept
TOGETHER = 8  # lines between the parts of one message
REMEMBERED = 4096  # distinct messages, and kmsg sequence numbers times 64

_SEPARATOR = re.compile(r"\s*-- (?:Boot ([0-9a-f]{32}) --|Reboot --)", re.IGNORECASE)
_QUOTED = re.compile(r"NVRM:\s*Xid\s*\(|nvidia-nvswitch\d*\s*:\s*SXid\s*\(", re.IGNORECASE)
_COLOUR = re.compile(r"\x1b\[[\d;]*[mK]")
_ESCAPED = re.compile(r"\\x([0-9a-f]{2})")

Log = Union[str, bytes, BinaryIO, Iterable[bytes], Iterable[str]]  # noqa: UP007


@dataclass(slots=True)
class Context:
    """What the log does not say itself.

    Without `node` each line's own host is the node. `received` is when the log was read, `boot_time` when the node's
    current boot began; `utc_offset` is where the log's wall clock stands (`+02:00`), for times without a zone.
    `pci_to_uuid` serves where the log does not tell a GPU's UUID; `driver_version` where it does not tell the driver's.
    """

    node: str = ""
    boot_id: str | None = None
    received: str | None = None
    boot_time: str | None = None
    utc_offset: str = "+00:00"
    pci_to_uuid: Mapping[str, str] = field(default_factory=dict)
    driver_version: str | None = None
    source: str = "kernel log"
    agent: str = AGENT
    window: int = WINDOW


def parse(log: Log, tables: Tables, context: Context | None = None) -> dict:
    """All of a log at once. Raises InvalidDocument for a context that cannot be; never for what a log holds."""
    parser = Parser(tables, context)
    for piece in _pieces(log):
        parser.feed(piece)
    return parser.close()


def _pieces(log: Log) -> Iterator[bytes]:
    if isinstance(log, str):
        yield _bytes(log)
    elif isinstance(log, (bytes, bytearray, memoryview)):
        yield bytes(log)
    elif hasattr(log, "read"):
        while piece := log.read(PIECE):
            yield piece if isinstance(piece, bytes) else _bytes(piece)
    else:
        for item in log:
            # a text is a line, bytes are a piece of the stream
            yield bytes(item) if isinstance(item, (bytes, bytearray)) else _bytes(str(item).rstrip("\r\n") + "\n")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


class Parser:
    """The same for a log that comes in pieces: `feed` each, then `close`."""

    def __init__(self, tables: Tables, context: Context | None = None):
        self._tables = tables
        self._context = context = context or Context()
        self._received = _time(context.received, "received")
        self._boot_time = _time(context.boot_time, "boot_time")
        self._offset = _offset(context.utc_offset)
        self._driver = _major(context.driver_version)
        self._uuids = _uuids(context.pci_to_uuid)
        self._scanner = Scanner()
        self._bursts = Bursts(context.window)
        self._unparsed = event.Unparsed()
        self._ignored: dict[str, int] = {}
        self._messages: dict[tuple[str, int | None], kernel_messages.Message] = {}
        self._seen: dict[tuple, None] = {}
        self._boots = 0  # boots told apart for all nodes
        self._node_boots: dict[str, int] = {}
        self._named_boot: str | None = None
        self._drivers: dict[str, int] = {}
        self._told: dict[tuple, dict[str, str]] = {}  # (node, boot): {pci: uuid}
        self._announced: dict[tuple, tuple[str, Sighting]] = {}
        self._heads: dict[tuple, Burst] = {}

    def feed(self, piece: bytes) -> None:
        for number, line in self._scanner.feed(piece):
            self._line(number, line)

    def close(self) -> dict:
        for number, line in self._scanner.finish():
            self._line(number, line)
        return {
            # a message of several lines counts from its first
            "events": [self._event(burst) for burst in sorted(self._bursts.all, key=lambda burst: burst.first.line)],
            "unparsed": self._unparsed.items,
            "unparsedTotal": self._unparsed.total,
            "ignored": self._ignored,
            "lines": self._scanner.lines,
        }

    # one line

    def _line(self, number: int, line: bytes) -> None:
        text = line.decode("utf-8", "replace")
        if "\x1b" in text:
            text = _COLOUR.sub("", text)
        start = text.lstrip("\x00\x1e\ufeff \t").removeprefix("data: ")
        if start.startswith("{"):
            self._record(number, text, start)
            return
        separator = _SEPARATOR.match(text)
        if separator:
            self._boots += 1
            self._named_boot = kernel_journal.boot_id(separator[1]) if separator[1] else None
            return
        mark = kernel_messages.MARK.search(text)
        if not mark:
            return
        body = text[mark.start() : mark.start() + BODY_LIMIT]
        message = self._message(body, self._driver)
        if message is None:
            return
        prefix = kernel_prefix.read(text[: mark.start()])
        if not self._ours(number, text, message, prefix.origin, prefix.writer, True):
            return
        node = self._context.node or prefix.host
        boot = self._boot(node)
        if prefix.sequence is not None:
            if self._again((node, boot, prefix.sequence, body)):
                return
            body = _ESCAPED.sub(lambda code: chr(int(code[1], 16)), body)
        message = self._message(body, self._drivers.get(node, self._driver))
        mono = timestamps.kernel(prefix.mono) if prefix.mono else None
        wall = self._wall(prefix.wall)
        time = ("mono", mono) if mono is not None else ("wall", wall) if wall is not None else None
        if wall is None and mono is not None and self._boot_time is not None:
            wall = self._boot_time + mono
        elif self._boot_time is not None and _certain(prefix.wall) and wall is not None and boot[0] == "epoch":
            # a minute for clocks that are set late in the boot
            boot = boot if wall >= self._boot_time - 60 * timestamps.SECOND else ("epoch", -1)
        seen = Sighting(node, boot, number, text[:TEXT_LIMIT], time, wall, prefix.mono, prefix.sequence, prefix.user)
        self._take(message, seen)

    def _record(self, number: int, text: str, start: str) -> None:
        record = kernel_journal.read(start)
        if record is None:
            if _QUOTED.search(text):
                self._unparsed.add(number, text, "looks like a signal, in JSON that is no journal record")
            return
        mark = kernel_messages.MARK.search(record.message)
        if not mark:
            return
        body = record.message[mark.start() : mark.start() + BODY_LIMIT]
        message = self._message(body, self._driver)
        if message is None:
            return
        prefix = kernel_prefix.read(record.message[: mark.start()])
        origin, writer = (record.origin, record.writer) if record.origin == OTHER else (prefix.origin, prefix.writer)
        if not self._ours(number, record.message, message, origin, writer, record.root):
            return
        node = self._context.node or record.host or prefix.host
        boot = ("id", record.boot) if record.boot else self._boot(node)
        message = self._message(body, self._drivers.get(node, self._driver))
        time = ("wall", record.wall) if record.wall is not None else None
        time = ("mono", record.mono) if record.mono is not None else time
        mono = f"{record.mono // 1_000_000}.{record.mono % 1_000_000:06d}" if record.mono is not None else None
        self._take(message, Sighting(node, boot, number, record.message[:TEXT_LIMIT], time, record.wall, mono))

    def _message(self, body: str, driver: int | None) -> kernel_messages.Message:
        """Storms print the same message again and again."""
        key = (body, driver)
        if key not in self._messages:
            if len(self._messages) >= REMEMBERED:
                self._messages.clear()
            self._messages[key] = kernel_messages.read(body, self._tables, driver)
        return self._messages[key]

    def _ours(
        self, number: int, text: str, message: kernel_messages.Message, origin: str, writer: str, trusted: bool
    ) -> bool:
        """Whether the kernel wrote it, or, of a GPU reset, the job that does these."""
        if origin == KERNEL:
            return True
        if isinstance(message, kernel_messages.Reset) and writer == kernel_messages.RESET_WRITER and trusted:
            return True
        if origin == OTHER:
            self._ignored["not from the kernel"] = self._ignored.get("not from the kernel", 0) + 1
        elif isinstance(message, (Signal, sxid.Line, Unreadable, kernel_messages.Fallen, kernel_messages.Reset)):
            self._unparsed.add(number, text, "the line has a form that is not known, so nothing says who wrote it")
        return False

    def _boot(self, node: str) -> tuple:
        if self._named_boot:
            return ("id", self._named_boot)
        return ("epoch", self._boots + self._node_boots.get(node, 0))

    def _again(self, key: tuple) -> bool:
        """A record of /dev/kmsg that was read before."""
        if key in self._seen:
            self._ignored["read before"] = self._ignored.get("read before", 0) + 1
            return True
        if len(self._seen) >= REMEMBERED * 64:
            self._seen.pop(next(iter(self._seen)))
        self._seen[key] = None
        return False

    def _wall(self, wall: tuple | None) -> int | None:
        if wall is None:
            return None
        if wall[0] == "iso":
            return timestamps.iso(wall[1], self._offset)
        if wall[0] == "unix":
            return timestamps.kernel(wall[1])
        return timestamps.written(*wall[1:], self._received, self._offset)

    # what a message does

    def _take(self, message: kernel_messages.Message, seen: Sighting) -> None:
        where = (seen.node, seen.boot)
        if isinstance(message, Signal):
            self._bursts.add(message, seen)
        elif isinstance(message, sxid.Line):
            self._switch(message, seen)
        elif isinstance(message, Unreadable):
            self._unparsed.add(seen.line, seen.text, message.reason)
        elif isinstance(message, kernel_messages.Uuid):
            self._told.setdefault(where, {})[message.pci] = message.uuid
        elif isinstance(message, kernel_messages.Announced):
            self._announced[where] = (message.pci, seen)
        elif isinstance(message, kernel_messages.Fallen):
            self._fallen(message, seen)
        elif isinstance(message, kernel_messages.Reset):
            self._bursts.add(kernel_messages.reset(message), seen)
        elif isinstance(message, kernel_messages.Driver):
            self._drivers[seen.node] = message.major
        elif isinstance(message, kernel_messages.NewBoot) and seen.boot[0] == "epoch" and not seen.user:
            self._node_boots[seen.node] = self._node_boots.get(seen.node, 0) + 1

    def _switch(self, line: sxid.Line, seen: Sighting) -> None:
        group = (seen.node, seen.boot, line.group)
        head = self._heads.get(group)
        if line.head or head is None or not self._bursts.near(head.last, seen):
            head = self._bursts.add(line.signal, seen)
            if line.head:
                self._heads[group] = head
        for key, value in line.details.items():
            head.details.setdefault(key, value)

    def _fallen(self, message: kernel_messages.Fallen, seen: Sighting) -> None:
        if message.pci is None:
            pci, first = self._announced.pop((seen.node, seen.boot), (None, seen))
            if pci and seen.line - first.line <= TOGETHER:
                first.text = f"{first.text} {seen.text}"
                message, seen = kernel_messages.Fallen(pci), first
        if message.pci is None and message.index is None:
            self._unparsed.add(seen.line, seen.text, "a GPU fell off the bus, and the log does not say which")
            return
        self._bursts.add(kernel_messages.fallen(message, self._tables), seen)

    # one event

    def _event(self, burst: Burst) -> dict:
        signal, first, last, context = burst.signal, burst.first, burst.last, self._context
        metadata = {**signal.metadata, **burst.details, "count": str(burst.count)}
        if burst.count > 1:
            metadata["lastLine"] = str(last.line)
            if last.wall is not None:
                metadata["lastTimestamp"] = timestamps.utc(last.wall) or ""
        if first.mono:
            metadata["kernelTime"] = first.mono
            if burst.count > 1 and last.mono:
                metadata["lastKernelTime"] = last.mono
        if first.user:
            metadata["writtenBy"] = "a process, through /dev/kmsg"
        position = [first.mono, first.wall, first.sequence]
        return event.make(
            node=first.node,
            agent=context.agent,
            check=signal.check,
            component=signal.component,
            codes=(signal.code,) if signal.code else (),
            space=signal.space,
            entities=self._entities(signal, (first.node, first.boot)),
            action=signal.action,
            fatal=signal.fatal,
            healthy=signal.healthy,
            state=signal.state,
            severity=signal.severity,
            message=signal.message,
            generated=timestamps.utc(first.wall),
            received=timestamps.utc(self._received),
            boot_id=self._boot_id(first),
            source={"name": context.source, "line": first.line, "text": first.text},
            metadata=metadata,
            # a line's number changes from one reading to the next where the log is a window
            position=position if any(part is not None for part in position) else first.line,
        )

    def _entities(self, signal: Signal, where: tuple) -> list[tuple[str, str]]:
        entities = list(signal.entities)
        if signal.component != "GPU":
            return entities
        known = {**self._uuids, **self._told.get(where, {})}
        for index, (kind, value) in enumerate(signal.entities):
            if kind == "PCI" and value in known:
                entities.insert(index + 1, ("GPU_UUID", known[value]))
            elif kind == "GPU_UUID":
                entities += [("PCI", pci) for pci, uuid in known.items() if uuid.lower() == value.lower()]
        return entities

    def _boot_id(self, first: Sighting) -> str | None:
        kind, boot = first.boot
        if kind == "id":
            return boot
        current = self._context.boot_id
        if current is None or boot == self._boots + self._node_boots.get(first.node, 0):
            return current
        return f"before:{current}"


def _certain(wall: tuple | None) -> bool:
    return wall is not None and (wall[0] == "unix" or (wall[0] == "iso" and timestamps.zoned(wall[1])))


def _uuids(known: object) -> dict[str, str]:
    if not isinstance(known, Mapping):
        raise InvalidDocument(
            "pci_to_uuid is no map", path="pci_to_uuid", hint="PCI ADDRESS: UUID, such as 0000:3b:00: GPU-..."
        )
    wrong = [str(key) for key in known if not event.pci(key)]
    if wrong:
        raise InvalidDocument(f"{', '.join(wrong)}: no PCI address", path="pci_to_uuid", hint="such as 0000:3b:00.0")
    return {event.pci(key): str(uuid) for key, uuid in known.items()}


def _time(text: str | None, name: str) -> int | None:
    if text is None:
        return None
    micros = timestamps.iso(str(text))
    if micros is None:
        raise InvalidDocument(f"{name} is {text!r}, which is no time", path=name, hint="such as 2026-03-06T09:34:56Z")
    return micros


def _offset(text: str) -> int:
    seconds = timestamps.offset(str(text))
    if seconds is None:
        raise InvalidDocument(f"utc_offset is {text!r}", path="utc_offset", hint="such as +02:00, -0700 or Z")
    return seconds


def _major(version: str | None) -> int | None:
    if version in (None, ""):
        return None
    major = str(version).partition(".")[0]
    if not (major.isascii() and major.isdecimal() and len(major) <= 6):
        raise InvalidDocument(
            f"driver_version is {version!r}", path="driver_version", hint="the driver's version, such as 580.105.08"
        )
    return int(major)
