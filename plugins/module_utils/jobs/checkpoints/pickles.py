# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads pickles as data: nothing is imported, called or built, whatever a pickle asks for.

Python's own unpickler, even one that hands out stand-ins for classes, can be made to fill the memory by a few bytes.
This one keeps texts, numbers and containers; every object is an `Inert`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints.finding import Damaged


class Inert:
    """An object that a pickle names: its class's name, and the state it was given (full reading only)."""

    __slots__ = ("name", "state")

    def __init__(self, name: str) -> None:
        self.name = name
        self.state: object = None


class _Class:
    __slots__ = ("any", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.any = Inert(name)


OPAQUE = Inert("")
_U16 = struct.Struct("<H").unpack_from
_U32 = struct.Struct("<I").unpack_from
_I32 = struct.Struct("<i").unpack_from
_U64 = struct.Struct("<Q").unpack_from
_F64 = struct.Struct(">d").unpack_from
# Opcodes with a counted text or bytes behind them: how the count is read, its length, and whether it is text.
_COUNTED = {
    0x8C: (None, 1, True),
    0x58: (_U32, 4, True),
    0x8D: (_U64, 8, True),
    0x55: (None, 1, False),
    0x54: (_U32, 4, False),
    0x43: (None, 1, False),
    0x42: (_U32, 4, False),
    0x8E: (_U64, 8, False),
    0x96: (_U64, 8, False),
}
_ORDERED = ("collections.OrderedDict", "collections.defaultdict")


def read(
    data: bytes,
    built: Callable[[str, dict], None] | None = None,
    named: Callable[[str], None] | None = None,
    start: int = 0,
) -> tuple[object, int]:
    """The pickle's value and where it ends.

    With `built` the objects are not kept: it is called with the class's name and the state of each, and only texts and
    class names are remembered, so that a pickle of a million entries needs little memory. `named` is called with the
    name of each class when it is first seen, and may raise. Dictionaries keep the items whose keys are texts.
    Raises `Damaged` when the pickle breaks off or is none.
    """
    try:
        return _run(data, built, named, start)
    except (IndexError, struct.error):
        raise Damaged("breaks off or is no pickle") from None
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
        raise Damaged("is no pickle") from None


def _run(data, built, named, pos):
    # One long function: a call per opcode would triple the time, and large saves have tens of millions of opcodes.
    end = len(data)
    lean = built is not None
    stack: list = []
    push = stack.append
    pop = stack.pop
    memo: dict[int, object] = {}
    memoized = 0
    classes: dict[str, _Class] = {}
    marks: list[int] = []

    def glob(name):
        if name not in classes:
            if named:
                named(name)
            classes[name] = _Class(name)
        return classes[name]

    def since_mark():
        at = marks.pop()
        items = stack[at:]
        del stack[at:]
        return items

    while True:
        op = data[pos]
        pos += 1
        if op == 0x94:  # MEMOIZE
            top = stack[-1]
            if not lean or isinstance(top, (str, _Class)):
                memo[memoized] = top
            memoized += 1
        elif op == 0x68:  # BINGET
            push(memo.get(data[pos], OPAQUE))
            pos += 1
        elif op == 0x6A:  # LONG_BINGET
            push(memo.get(_U32(data, pos)[0], OPAQUE))
            pos += 4
        elif op == 0x4B:  # BININT1
            push(data[pos])
            pos += 1
        elif op == 0x8C:  # SHORT_BINUNICODE
            stop = pos + 1 + data[pos]
            if stop > end:
                raise IndexError
            push(data[pos + 1 : stop].decode("utf-8", "surrogatepass"))
            pos = stop
        elif op == 0x28:  # MARK
            marks.append(len(stack))
        elif op == 0x75:  # SETITEMS
            items = since_mark()
            target = stack[-1]
            if isinstance(target, dict):
                for key, value in zip(items[::2], items[1::2], strict=True):
                    if isinstance(key, str):
                        target[key] = value
        elif op == 0x81:  # NEWOBJ
            pop()
            push(_new(pop(), lean))
        elif op == 0x62:  # BUILD
            state = pop()
            target = stack[-1]
            if isinstance(state, tuple) and len(state) == 2 and isinstance(state[1], dict):
                state = state[1]  # of a class with slots
            if isinstance(target, Inert):
                if lean:
                    if isinstance(state, dict):
                        built(target.name, state)
                elif target is not OPAQUE:
                    target.state = state
        elif op == 0x85:  # TUPLE1
            push((pop(),))
        elif op == 0x86:  # TUPLE2
            second = pop()
            push((pop(), second))
        elif op == 0x87:  # TUPLE3
            third = pop()
            second = pop()
            push((pop(), second, third))
        elif op == 0x52:  # REDUCE
            pop()
            push(_new(pop(), lean))
        elif op == 0x7D:  # EMPTY_DICT
            push({})
        elif op == 0x29:  # EMPTY_TUPLE
            push(())
        elif op == 0x4D:  # BININT2
            push(_U16(data, pos)[0])
            pos += 2
        elif op == 0x4A:  # BININT
            push(_I32(data, pos)[0])
            pos += 4
        elif op == 0x8A or op == 0x8B:  # LONG1, LONG4
            count, width = (data[pos], 1) if op == 0x8A else (_I32(data, pos)[0], 4)
            stop = pos + width + count
            if count < 0 or stop > end:
                raise IndexError
            push(int.from_bytes(data[pos + width : stop], "little", signed=True))
            pos = stop
        elif op in _COUNTED:
            unpack, width, text = _COUNTED[op]
            count = unpack(data, pos)[0] if unpack else data[pos]
            stop = pos + width + count
            if stop > end:
                raise IndexError
            raw = bytes(data[pos + width : stop])
            push(raw.decode("utf-8", "surrogatepass") if text else raw)
            pos = stop
        elif op == 0x4E:  # NONE
            push(None)
        elif op == 0x88 or op == 0x89:  # NEWTRUE, NEWFALSE
            push(op == 0x88)
        elif op == 0x47:  # BINFLOAT
            push(_F64(data, pos)[0])
            pos += 8
        elif op == 0x71 or op == 0x72:  # BINPUT, LONG_BINPUT
            index = data[pos] if op == 0x71 else _U32(data, pos)[0]
            pos += 1 if op == 0x71 else 4
            top = stack[-1]
            if not lean or isinstance(top, (str, _Class)):
                memo[index] = top
        elif op == 0x5D:  # EMPTY_LIST
            push([])
        elif op == 0x61:  # APPEND
            value = pop()
            if not lean and isinstance(stack[-1], list):
                stack[-1].append(value)
        elif op == 0x65:  # APPENDS
            items = since_mark()
            if not lean and isinstance(stack[-1], list):
                stack[-1].extend(items)
        elif op == 0x73:  # SETITEM
            value = pop()
            key = pop()
            if isinstance(stack[-1], dict) and isinstance(key, str):
                stack[-1][key] = value
        elif op == 0x74:  # TUPLE
            push(tuple(since_mark()))
        elif op == 0x6C:  # LIST
            push(since_mark())
        elif op == 0x64:  # DICT
            items = since_mark()
            pairs = zip(items[::2], items[1::2], strict=True)
            push({key: value for key, value in pairs if isinstance(key, str)})
        elif op == 0x93:  # STACK_GLOBAL
            name = pop()
            push(glob(f"{_text(pop())}.{_text(name)}"))
        elif op in (0x63, 0x69):  # GLOBAL, INST
            module, pos = _line(data, pos)
            name, pos = _line(data, pos)
            if op == 0x69:
                since_mark()
            found = glob(f"{module.decode('utf-8')}.{name.decode('utf-8')}")
            push(_new(found, lean) if op == 0x69 else found)
        elif op == 0x6F:  # OBJ
            push(_new(since_mark()[0], lean))
        elif op == 0x92:  # NEWOBJ_EX
            pop()
            pop()
            push(_new(pop(), lean))
        elif op == 0x51:  # BINPERSID
            pop()
            push(OPAQUE)
        elif op == 0x50:  # PERSID
            pos = _line(data, pos)[1]
            push(OPAQUE)
        elif op == 0x8F:  # EMPTY_SET
            push(OPAQUE)
        elif op == 0x90:  # ADDITEMS
            since_mark()
        elif op == 0x91:  # FROZENSET
            since_mark()
            push(OPAQUE)
        elif op == 0x80:  # PROTO
            if data[pos] > 5:
                raise ValueError
            pos += 1
        elif op == 0x95:  # FRAME
            if pos + 8 + _U64(data, pos)[0] > end:
                raise IndexError
            pos += 8
        elif op in (0x49, 0x4C, 0x46, 0x53, 0x56):  # INT, LONG, FLOAT, STRING, UNICODE
            line, pos = _line(data, pos)
            text = line.decode("utf-8", "replace")
            if op == 0x46:
                push(float(text))
            elif op == 0x53:
                push(text.strip("'\""))
            elif op == 0x56:
                push(line.decode("raw-unicode-escape"))
            else:
                push(int(text.rstrip("L")))
        elif op in (0x67, 0x70):  # GET, PUT
            line, pos = _line(data, pos)
            if op == 0x67:
                push(memo.get(int(line), OPAQUE))
            else:
                memo[int(line)] = stack[-1]
        elif op == 0x30:  # POP
            pop()
        elif op == 0x31:  # POP_MARK
            since_mark()
        elif op == 0x32:  # DUP
            push(stack[-1])
        elif op == 0x2E:  # STOP
            return pop(), pos
        else:
            raise ValueError


def _new(cls: object, lean: bool) -> object:
    if not isinstance(cls, _Class):
        return OPAQUE
    if cls.name in _ORDERED:
        return {}
    # Without its state one object of a class is as good as another.
    return cls.any if lean else Inert(cls.name)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError
    return value


def _line(data: bytes, pos: int) -> tuple[bytes, int]:
    stop = data.find(b"\n", pos, pos + 65536)
    if stop < 0:
        raise IndexError
    return bytes(data[pos:stop]), stop + 1
