# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""DCGM's messages: which error they tell. dcgmi prints no codes, only texts, and joins those of one watch by commas.

    Messages(tables.of("dcgm")).split("GPU 0's NvLink link 3 is currently down Check …, GPU 0's NvLink link 4 is …")
    # [("DCGM_FR_NVLINK_DOWN", "GPU 0's NvLink link 3 is …"), ("DCGM_FR_NVLINK_DOWN", "GPU 0's NvLink link 4 is …")]

What the messages are is in the table (`messages`); the longest that fits holds.
"""

from __future__ import annotations

import functools
import re

from ansible_collections.goodput.fleet.plugins.module_utils.signals.tables import Table

LIMIT = 16384  # characters of one watch; DCGM keeps at most 4 messages of 512 for it

_VARIES = r"\S{1,80}(?: \S{1,80}){0,4}?"
_NAME = re.compile(r"\bDCGM_FR_[A-Z0-9_]{1,80}\b")
_WORD = re.compile(r"(,?) (\S+)")


class Messages:
    def __init__(self, table: Table):
        listed = [(code, message) for code, (entry,) in table.entries.items() for message in entry.get("messages", ())]
        self._patterns = _compile(tuple(listed))

    def split(self, text: str) -> list[tuple[str | None, str]]:
        """(code, message) of each message in a watch's text; the code is None where no message is known."""
        text = " ".join(text[:LIMIT].split())
        code, end = self._known(text, 0, text.partition(" ")[0], True)
        named = _NAME.search(text)
        starts = [(0, code or (named[0] if named else None))]
        for word in _WORD.finditer(text):
            if word.start() < end:
                continue  # words of the message that was found
            # dcgmi's own wrapping loses a comma now and then
            code, after = self._known(text, word.start(2), word[2], bool(word[1]))
            if code:
                starts.append((word.start(2), code))
                end = after
        ends = [start for start, _code in starts[1:]] + [len(text)]
        return [(code, text[start:end].strip(" ,")) for (start, code), end in zip(starts, ends, strict=True)]

    def _known(self, text: str, at: int, word: str, apart: bool) -> tuple[str | None, int]:
        """The code of the message that begins at `at`, and where its fixed words end.

        `apart`: a comma or the text's own begin is before it.
        """
        candidates = self._patterns.get(word.lower(), []) + (self._patterns.get("*", []) if apart else [])
        matches = [(weight, code, pattern.match(text, at)) for weight, pattern, code in candidates]
        fitting = [(weight, code, match.end()) for weight, code, match in matches if match]
        return max(fitting)[1:] if fitting else (None, at)


@functools.lru_cache(maxsize=8)
def _compile(listed: tuple[tuple[str, str], ...]) -> dict[str, list[tuple[int, re.Pattern, str]]]:
    """By the first word: how many characters are fixed, the pattern, the code. "*" where the first word varies."""
    patterns: dict[str, list[tuple[int, re.Pattern, str]]] = {}
    for code, message in listed:
        message = " ".join(message.split())
        first = message.partition(" ")[0].lower()
        pattern = re.compile(_VARIES.join(map(re.escape, message.split("*"))), re.IGNORECASE)
        patterns.setdefault("*" if "*" in first else first, []).append((len(message.replace("*", "")), pattern, code))
    return patterns
