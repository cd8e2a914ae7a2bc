# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Zstandard, by what the host has: Python 3.14's own, or the C library that nearly every Linux system brings."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints.finding import Damaged

MOST = 256 << 20  # bytes
_UNKNOWN = (1 << 64) - 1
_BROKEN = (1 << 64) - 2


def decompressor() -> Callable[[bytes], bytes] | None:
    """A function that gives the data of one frame or raises `Damaged`; none when the host has no Zstandard."""
    try:
        library = ctypes.CDLL("libzstd.so.1")
        size = library.ZSTD_getFrameContentSize
        size.argtypes, size.restype = (ctypes.c_char_p, ctypes.c_size_t), ctypes.c_ulonglong
        run = library.ZSTD_decompress
        run.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t)
        run.restype = ctypes.c_size_t
        failed = library.ZSTD_isError
        failed.argtypes, failed.restype = (ctypes.c_size_t,), ctypes.c_uint
    except (OSError, AttributeError):
        return _of_python()

    def decompress(data: bytes) -> bytes:
        length = size(data, len(data))
        if length == _BROKEN or MOST < length < _UNKNOWN:
            raise Damaged("has a broken block")
        room = ctypes.create_string_buffer(min(max(length, 1), 4096 * len(data) + 4096, MOST))
        done = run(room, len(room), data, len(data))
        if failed(done):
            raise Damaged("has a broken block")
        return room.raw[:done]

    return decompress


def _of_python() -> Callable[[bytes], bytes] | None:
    try:
        from compression import zstd
    except ImportError:
        return None

    def decompress(data: bytes) -> bytes:
        try:
            return zstd.ZstdDecompressor().decompress(data, max_length=MOST)
        except zstd.ZstdError:
            raise Damaged("has a broken block") from None

    return decompress
