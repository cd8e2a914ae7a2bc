# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""JSON, lines of JSON and YAML as plain data; one broken document does not cost the others."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ansible_collections.goodput.fleet.plugins.module_utils.records import yamltree
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument
from ansible_collections.goodput.fleet.plugins.module_utils.signals import event

LOOK = 50  # lines that are looked at to tell JSON lines from YAML
TRIES = 100  # broken documents after which none is sought over several lines any more

_DECODER = json.JSONDecoder()
_START = re.compile(r"^---(?:[ \t].*)?$", re.MULTILINE)
_LIST = re.compile(r"(?:---[ \t]*\n|[ \t]*(?:#[^\n]*)?\n)*- ")
_ITEM = re.compile(r"^- ", re.MULTILINE)
_ANCHOR = re.compile(r"(?:^|[\s\[{,:-])[&*][A-Za-z0-9_]")


@dataclass(slots=True)
class Part:
    """One document. `line` is where it begins, None where there is no text; `text` is its first line."""

    data: object
    line: int | None = None
    text: str = ""
    document: yamltree.Document | None = None

    def line_of(self, path: tuple) -> int | None:
        """The line of a field, as near as the text tells."""
        if self.document is None or self.line is None:
            return self.line
        return self.document.line(path) + self.line - 1


def plain(value: object, what: str) -> str | None:
    """The text of text, bytes or a list of lines, None of data. Raises InvalidDocument for what is neither."""
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("utf-8", "replace")
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (list, tuple)) and value and all(isinstance(line, str) for line in value):
        return "\n".join(value)
    if isinstance(value, (Mapping, list, tuple)):
        return None
    raise InvalidDocument(f"takes {what}, not {type(value).__name__}")


def count(text: str) -> int:
    """Lines of a text."""
    return text.count("\n") + bool(text and not text.endswith("\n"))


def read(text: str, unparsed: event.Unparsed, source: str = "") -> list[Part]:
    """The documents of a text. What is none goes to `unparsed`."""
    text = text.removeprefix("\ufeff")
    begins = text.lstrip()[:1]
    if begins in ("{", "["):
        whole = _whole(text)
        if whole is not None:
            return [whole]
    if begins in ("{", "[") or _json_lines(text):
        attempt = event.Unparsed()
        parts = list(_stream(text, attempt))
        if parts or begins not in ("{", "["):
            _hand_on(attempt, unparsed)
            return parts
        other = event.Unparsed()  # YAML's braces need no quotes
        parts = list(_yaml(text, other, source))
        _hand_on(attempt if other.total else other, unparsed)
        return parts if not other.total else []
    return list(_yaml(text, unparsed, source))


def _hand_on(found: event.Unparsed, unparsed: event.Unparsed) -> None:
    for item in found.items:
        unparsed.add(item["line"], item["text"], item["reason"])
    unparsed.total += found.total - len(found.items)


def _whole(text: str) -> Part | None:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    start = len(text) - len(text.lstrip())
    return Part(data, text.count("\n", 0, start) + 1, _line(text, start))


def _json_lines(text: str) -> bool:
    lines = text[: LOOK * 4096].split("\n", LOOK)[:LOOK]
    return any(line.startswith('{"') and line.rstrip().endswith("}") for line in lines)


def _stream(text: str, unparsed: event.Unparsed) -> Iterator[Part]:
    """JSON documents one after the other, each on a line or over several."""
    at, number, tries = 0, 0, 0
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        line, number = text[at:end], number + 1
        start, at = at, end + 1
        if not line.strip():
            continue
        try:
            yield Part(json.loads(line), number, line[: event.SOURCE_LIMIT])
            continue
        except RecursionError:
            unparsed.add(number, line, "nested too deep")
            continue
        except ValueError as error:
            reason = str(error)
        if line.lstrip()[0] not in "{[":
            unparsed.add(number, line, "no JSON")
            continue
        if tries < TRIES:
            start += len(line) - len(line.lstrip())
            try:
                data, stop = _DECODER.raw_decode(text, start)
            except RecursionError:
                reason = "nested too deep"
            except ValueError as error:
                if _cut(error, text):
                    unparsed.add(number, line, "cut off: the text ends in the middle of a document")
                    return
                tries += 1
            else:
                yield Part(data, number, line[: event.SOURCE_LIMIT])
                stop = text.find("\n", stop)
                at = len(text) if stop < 0 else stop + 1
                number += text.count("\n", start, at) - 1
                continue
        unparsed.add(number, line, f"malformed JSON: {reason}")


def _cut(error: ValueError, text: str) -> bool:
    position = getattr(error, "pos", None)
    if position is None:
        return False
    return position >= len(text.rstrip()) or str(error).startswith("Unterminated string")


def _yaml(text: str, unparsed: event.Unparsed, source: str) -> Iterator[Part]:
    """The documents of a stream; of a list its items, each by itself, which costs less and loses less."""
    starts = [match.start() for match in _START.finditer(text)]
    if not starts or text[: starts[0]].strip():
        starts.insert(0, 0)
    if not _ANCHOR.search(text):
        items = [match.start() for match in _ITEM.finditer(text)]
        heads = {start for start in starts if not _LIST.match(text, start)}
        if items and not heads:
            starts = sorted({*starts, *items})
    number, before = 1, 0
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        number += text.count("\n", before, start)
        before = start
        piece = text[start:end]
        if not piece.strip("- \t\r\n."):
            continue
        try:
            found = yamltree.load_all_text(piece, source)
        except InvalidDocument as error:
            problem = error.problems[0]
            line = number + (problem.line or 1) - 1
            unparsed.add(line, _nth(piece, problem.line or 1), problem.message)
            continue
        except (RecursionError, ValueError, OverflowError) as error:
            unparsed.add(number, _line(text, start), f"cannot be read: {type(error).__name__}")
            continue
        for document in found:
            yield Part(document.data, number, _line(text, start), document)


def _line(text: str, at: int) -> str:
    end = text.find("\n", at)
    return text[at : len(text) if end < 0 else end][: event.SOURCE_LIMIT]


def _nth(text: str, number: int) -> str:
    lines = text.split("\n", number)
    return lines[min(number, len(lines)) - 1]
