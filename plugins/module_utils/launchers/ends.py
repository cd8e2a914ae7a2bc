# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Both ends of a long text: what a tool runs on is said at the begin, how it went at the end."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

HEAD = 4 << 20


def both_ends(pieces: Iterable[bytes], limit: int) -> tuple[bytes, int, int]:
    """(text of about `limit` bytes at most, bytes in all, bytes left out), with a line that says what is left out."""
    head_limit = min(HEAD, limit // 2)
    tail_limit = limit - head_limit
    head, tail = bytearray(), deque()
    kept = total = 0
    for piece in pieces:
        total += len(piece)
        if len(head) < head_limit:
            room = head_limit - len(head)
            head += piece[:room]
            piece = piece[room:]
        if piece:
            tail.append(piece)
            kept += len(piece)
        while tail and kept - len(tail[0]) >= tail_limit:
            kept -= len(tail.popleft())
    begin, end = bytes(head), b"".join(tail)[-tail_limit:]
    if total == len(begin) + len(end):
        return begin + end, total, 0
    # whole lines at both sides of the gap
    begin = begin[: begin.rfind(b"\n") + 1] or begin + b"\n"
    end = end[end.find(b"\n") + 1 :]
    left_out = total - len(begin) - len(end)
    return begin + b"[... %d bytes are left out here ...]\n" % left_out + end, total, left_out
