# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CEL expressions through cel-expr-python: checked when a document is loaded, fast when they are used.

Every field is declared as a variable of its own with a dotted name (`event.isFatal`), so that the checker itself finds
misspelt fields and comparisons of unlike types. What an expression meets only when it runs (a key that a map lacks) is
a `Failure`, neither true nor false.
"""

from __future__ import annotations

import functools
import platform
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import FleetError, nearest

_FAULT = re.compile(r"ERROR: <input>:(\d+):(\d+): (.*)")
_UNDECLARED = re.compile(r"undeclared reference to '([^']*)'")
_OVERLOAD = re.compile(r"found no matching overload for '([^']*)' applied to '\((.*)\)'")
_MISSING = re.compile(r'Key not found in map : "?([^"]*)"?')
_OPERATOR = re.compile(r"_?([^_a-z]+)_?|@?(in)")


class CelError(Exception):
    """An expression that cannot be used. `line` and `column` count from 1 within it."""

    def __init__(self, message: str, line: int = 1, column: int = 1, hint: str = ""):
        self.message, self.line, self.column, self.hint = message, line, column, hint
        super().__init__(f"line {line}, column {column}: {message}" + (f" ({hint})" if hint else ""))


@dataclass(frozen=True, slots=True)
class Failure:
    """An expression that could not be decided."""

    why: str


class Expression:
    """A compiled expression."""

    def __init__(self, text: str, compiled, error):
        self.text = text
        self._eval = compiled.eval
        self._error = error

    def evaluate(self, activation) -> object:
        """The value, or a Failure. `activation` is of the same environment."""
        try:
            result = self._eval(activation)
        except RuntimeError as error:  # of loops in loops that take too long
            return Failure(_runtime(str(error).removesuffix(" [INTERNAL]")))
        if result.type() == self._error:
            return Failure(_runtime(str(result.value())))
        return result.plain_value()

    def holds(self, activation) -> bool | Failure:
        """Whether it is true."""
        value = self.evaluate(activation)
        if value is True or value is False or isinstance(value, Failure):
            return value
        return Failure(f"gives {type(value).__name__} {str(value)[:80]!r}, not true or false")


class Environment:
    """The variables that expressions may use: {"event": {"isFatal": "bool", ...}, "now": "timestamp"}."""

    def __init__(self, variables: Mapping[str, Mapping[str, str] | str]):
        cel, extensions = _library()
        types = _types(cel)
        self._fields = {root: fields if isinstance(fields, Mapping) else {} for root, fields in variables.items()}
        declared = {}
        for root, fields in variables.items():
            if isinstance(fields, str):
                declared[root] = types[fields]
            else:
                declared.update({f"{root}.{name}": types[kind] for name, kind in fields.items()})
        self._env = cel.NewEnv(variables=declared, extensions=extensions)
        self._bool, self._dyn, self._error = cel.Type.BOOL, cel.Type.DYN, cel.Type.ERROR

    def activation(self, values: dict):
        """Values for every variable by its dotted name: plain data, times as datetime with a zone."""
        return self._env.Activation(values)

    def compile(self, text: str) -> Expression:
        """Raises CelError."""
        try:
            compiled = self._env.compile(text)
        except RuntimeError as error:
            raise self._explain(text, str(error)) from error
        kind = compiled.return_type()
        if kind not in (self._bool, self._dyn):
            raise CelError(f"gives {kind.name().lower()}, not true or false", hint="compare it with something")
        return Expression(text, compiled, self._error)

    def _explain(self, text: str, said: str) -> CelError:
        found = _FAULT.search(said)
        if not found:
            return CelError(" ".join(said.split())[:300])
        line, column, message = int(found[1]), int(found[2]), found[3].removesuffix(" [INVALID_ARGUMENT]")
        unknown = _UNDECLARED.search(message)
        if unknown:
            return self._unknown(text, line, column, unknown[1])
        overload = _OVERLOAD.search(message)
        if overload:
            operator = _OPERATOR.fullmatch(overload[1])
            name = (operator[1] or operator[2]) if operator else overload[1]
            return CelError(f"{name} does not work on ({overload[2]})", line, column)
        message = message.split(" expecting {")[0].removeprefix("Syntax error: ")
        if "'<EOF>'" in message:
            return CelError("ends too early", line, column)
        return CelError(f"syntax error: {message}", line, column)

    def _unknown(self, text: str, line: int, column: int, name: str) -> CelError:
        root, _dot, rest = name.partition(".")
        lines = text.splitlines() or [""]
        row = lines[min(line, len(lines)) - 1]
        # the checker points at the last dot
        column = row.rfind(root, 0, column + len(root)) + 1 or column
        fields = self._fields.get(root)
        if fields and rest:
            field = rest.split(".")[0]
            return CelError(f"{root} has no field {field!r}", line, column, nearest(field, fields))
        if fields:
            return CelError(
                f"{root} can be used by its fields only", line, column, f"such as {root}.{next(iter(fields))}"
            )
        if row[column - 2 : column - 1] == "." or row[column - 1 + len(name) :].lstrip()[:1] == "(":
            return CelError(f"there is no function {name!r}", line, column)
        return CelError(f"there is no variable {name!r}", line, column, nearest(root, self._fields))


def _runtime(said: str) -> str:
    missing = _MISSING.search(said)
    if missing:
        return f"the key {missing[1]!r} is not there; ask for it first with has() or in"
    return said.partition(": ")[2] or said


@functools.lru_cache(maxsize=1)
def _library():
    try:
        from cel_expr_python import cel
        from cel_expr_python.ext import ext_bindings, ext_math, ext_optional, ext_strings
    except ImportError as error:
        raise FleetError(
            f"the Python library cel-expr-python is missing on {platform.node()} ({sys.executable})",
            code="missing-library",
            hint="pip install cel-expr-python==0.1.3",
        ) from error
    extensions = (ext_bindings.ExtBindings, ext_math.ExtMath, ext_optional.ExtOptional, ext_strings.ExtStrings)
    return cel, [extension() for extension in extensions]


def _types(cel) -> dict:
    """What a variable may hold, by the words of `Environment`."""
    kind = cel.Type
    texts = kind.Map(kind.STRING, kind.STRING)
    return {
        "bool": kind.BOOL,
        "int": kind.INT,
        "double": kind.DOUBLE,
        "string": kind.STRING,
        "timestamp": kind.TIMESTAMP,
        "strings": kind.List(kind.STRING),
        "texts": texts,  # text by text, as labels are
        "list of texts": kind.List(texts),
        "map of texts": kind.Map(kind.STRING, texts),
        "dyn": kind.DYN,
    }
