# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A log as it may be stored: without environments, and with `***` for what looks like a credential. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers.excerpts import masked
from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers.streams import Text, lines, unmark

# nccl-tests with -J writes all variables of its process
_BLOCK = re.compile(r'("env(?:ironment)?"\s*:\s*)([\[{])(?=\s*(?:"|$))')
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"?')
_CLOSING = {"[": "]", "{": "}"}
# nothing that anybody reads; and slow to search for credentials
_LONG = 2000
_BLOB = re.compile(rf"[\w.+/-]{{{_LONG},}}")


def stored(text: Text) -> Iterator[str]:
    """The lines to store. What launchers set in front of them stays. Raises InvalidDocument for what is no text."""
    inside: dict[str, str] = {}  # who wrote it: what ends the environment it is in
    for line in lines(text):
        if len(line) >= _LONG:
            line = _BLOB.sub(_shortened, line)
        if not inside and '"env' not in line:
            yield masked(line)
            continue
        label, rest = unmark(line)
        mark = line[: len(line) - len(rest)]
        kept = ""
        if label in inside:
            end = _end(rest, inside[label])
            if end is None:
                continue
            del inside[label]
            rest = rest[end:]
        while match := _BLOCK.search(rest):
            kept += rest[: match.end()]
            rest = rest[match.end() :]
            closing = _CLOSING[match[2]]
            end = _end(rest, closing)
            if end is None:
                inside[label], rest = closing, ""
                break
            rest = rest[end:]
        yield mark + masked(kept + rest)


def _end(text: str, closing: str) -> int | None:
    """Where the closing bracket is that is in no string; None where it is in a later line."""
    position = 0
    while position < len(text):
        if text[position] == closing:
            return position
        match = _STRING.match(text, position)
        position = match.end() if match else position + 1
    return None


def _shortened(match: re.Match) -> str:
    return f"{match[0][:200]}… ({len(match[0])} characters)"
