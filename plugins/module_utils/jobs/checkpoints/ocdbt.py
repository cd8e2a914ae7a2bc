# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""TensorStore's OCDBT, the key-value store in which Orbax keeps arrays: which bytes of which data files it needs.

The manifest points to the root of a tree whose leaves hold small values and say where large ones lie. The tree is read,
the values are not. Format: https://google.github.io/tensorstore/kvstore/ocdbt/index.html.
"""

from __future__ import annotations

import os
from typing import BinaryIO

from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints import zstd
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints.finding import Damaged, Unclear
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints.tree import Tree

MANIFEST = "manifest.ocdbt"
_MANIFEST_MAGIC = bytes.fromhex("0cdb3a2a")
_NODE_MAGIC = bytes.fromhex("0cdb20de")
MOST_MANIFEST = 64 << 20
MOST_NODES = 100_000
MOST_DEPTH = 64


class Store:
    """The store in the folder `folder` of a checkpoint. `needed` has its data files and how long they have to be."""

    def __init__(self, tree: Tree, folder: str) -> None:
        self.tree = tree
        self.start = f"{folder}/" if folder else ""
        self.needed: dict[str, int] = {}
        self.missing: list[str] = []
        self.short: list[str] = []
        self.decompress = zstd.decompressor()
        self.handles: dict[str, BinaryIO] = {}

    def check(self) -> bool:
        """Reads the tree. False when this host, or this reader, cannot; then only the manifest was checked.

        Raises `Damaged` for a broken manifest or node, `Unclear` when there is more than is read.
        """
        data = _body(self.tree.read(self.start + MANIFEST, MOST_MANIFEST), _MANIFEST_MAGIC, self.decompress, crc=True)
        if data is None:
            return False
        try:
            root = _root(data)
        except (IndexError, ValueError):
            return False  # another version of the format: the checksum was right
        if root is None:
            return False
        try:
            self._walk(*root)
        finally:
            for handle in self.handles.values():
                handle.close()
        return True

    def _walk(self, path: str, base: str, offset: int, length: int) -> None:
        waiting = [(path, base, offset, length, 0)]
        seen = set()
        while waiting:
            path, base, offset, length, depth = waiting.pop()
            if not self._there(path, offset, length) or (path, offset) in seen:
                continue
            seen.add((path, offset))
            if len(seen) > MOST_NODES or depth > MOST_DEPTH:
                raise Unclear("has a larger tree than is read")
            try:
                height, children = _node(self._node_at(path, offset, length), base)
            except (IndexError, ValueError):
                raise Damaged(f"has a broken node in {path}") from None
            for child, child_base, child_offset, child_length in children:
                if height:
                    waiting.append((child, child_base, child_offset, child_length, depth + 1))
                else:
                    self._there(child, child_offset, child_length)

    def _there(self, path: str, offset: int, length: int) -> bool:
        name = self.start + path
        self.needed[name] = max(self.needed.get(name, 0), offset + length)
        if name not in self.tree.files:
            if name not in self.missing:
                self.missing.append(name)
            return False
        if self.tree.files[name].size < offset + length:
            if name not in self.short:
                self.short.append(name)
            return False
        return True

    def _node_at(self, path: str, offset: int, length: int) -> bytes:
        if length > MOST_MANIFEST:
            raise Unclear("has a larger tree than is read")
        name = self.start + path
        if name not in self.handles:
            if len(self.handles) >= 64:
                self.handles.pop(next(iter(self.handles))).close()
            self.handles[name] = self.tree.open(name)
        data = os.pread(self.handles[name].fileno(), length, offset)
        body = _body(data, _NODE_MAGIC, self.decompress)
        if body is None:
            raise ValueError
        return body


def _body(data: bytes, magic: bytes, decompress, crc: bool = False) -> bytes | None:
    """What lies between head and checksum; none when this host cannot decompress it."""
    if len(data) < 18 or data[:4] != magic:
        raise Damaged("does not begin as it should")
    if int.from_bytes(data[4:12], "little") != len(data):
        raise Damaged(f"has {len(data)} bytes, {int.from_bytes(data[4:12], 'little')} by its head")
    if crc and crc32c(data[:-4]) != int.from_bytes(data[-4:], "little"):
        raise Damaged("has a wrong checksum")
    version, method, body = data[12], data[13], data[14:-4]
    if version or method > 1:
        return None
    if not method:
        return body
    return decompress(body) if decompress else None


def check_head(tree: Tree, name: str, size: int) -> None:
    """A manifest, or a data file that begins with a node: raises `Damaged` when it is shorter than it says."""
    if not size:
        raise Damaged("is empty")
    manifest = name.endswith(MANIFEST)
    with tree.open(name) as file:
        head = file.read(12)
    length = int.from_bytes(head[4:12].ljust(8, b"\xff"), "little")
    magic = _MANIFEST_MAGIC if manifest else _NODE_MAGIC
    if (manifest or head[:4] == magic[: len(head)]) and (head[:4] != magic or length > size):
        raise Damaged(f"breaks off: {size} bytes")


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.pos = 0

    def byte(self) -> int:
        self.pos += 1
        return self.data[self.pos - 1]

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > 63:
                raise ValueError

    def varints(self, count: int) -> list[int]:
        if count > len(self.data):
            raise ValueError
        return [self.varint() for dummy in range(count)]

    def take(self, count: int) -> bytes:
        if self.pos + count > len(self.data):
            raise IndexError
        self.pos += count
        return self.data[self.pos - count : self.pos]

    def files(self, base: str) -> list[tuple[str, str]]:
        """The table of data files: path, and the base that paths in its nodes are relative to."""
        count = self.varint()
        if not count:
            return []
        shared = [0, *self.varints(count - 1)]
        suffixes = self.varints(count)
        bases = self.varints(count)
        found = []
        last = b""
        for prefix, length, width in zip(shared, suffixes, bases, strict=True):
            last = last[:prefix] + self.take(length)
            found.append((base + last.decode("utf-8"), base + last[:width].decode("utf-8")))
        return found


def _root(data: bytes) -> tuple[str, str, int, int] | None:
    """Where the newest version's root node lies: path, base, offset, length. None for an empty store."""
    reader = _Reader(data)
    reader.take(16)
    if reader.varint() != 0:
        return None  # the versions are in numbered files
    reader.varints(2)
    reader.byte()
    if reader.varint() == 1:
        reader.take(4)
    files = reader.files("")
    count = reader.varint()
    if not count:
        return None
    reader.varints(count)
    reader.take(count)
    places, offsets, lengths = reader.varints(count), reader.varints(count), reader.varints(count)
    return *files[places[-1]], offsets[-1], lengths[-1]


def _node(data: bytes, base: str) -> tuple[int, list[tuple[str, str, int, int]]]:
    """A node's height, and where its children (values, in a leaf) lie."""
    reader = _Reader(data)
    height = reader.byte()
    files = reader.files(base)
    count = reader.varint()
    if not count:
        return height, []
    reader.varints(count - 1)
    suffixes = reader.varints(count)
    if height:
        reader.varints(count)
    reader.take(sum(suffixes))
    if height:
        places, offsets, lengths = reader.varints(count), reader.varints(count), reader.varints(count)
    else:
        sizes, kinds = reader.varints(count), reader.varints(count)
        lengths = [size for size, kind in zip(sizes, kinds, strict=True) if kind]
        places, offsets = reader.varints(len(lengths)), reader.varints(len(lengths))
    found = zip(places, offsets, lengths, strict=True)
    return height, [(*files[place], offset, length) for place, offset, length in found]


def _table() -> list[int]:
    table = []
    for value in range(256):
        for _dummy in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_TABLE = _table()


def crc32c(data: bytes) -> int:
    value = 0xFFFFFFFF
    for byte in data:
        value = _TABLE[(value ^ byte) & 0xFF] ^ value >> 8
    return value ^ 0xFFFFFFFF
