# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""YAML in and out: documents that remember where each field stood, and one deterministic way to write.

Reading accepts YAML 1.1 as PyYAML's safe loader does, minus what hides mistakes: duplicate keys, keys that
are not strings, and values that JSON cannot hold are problems. Timestamps stay the text they were.
"""

from __future__ import annotations

import functools
import math
import os
import re

from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, NotFound, Problem

MAX_BYTES = 10 * 1024 * 1024
MAX_NODES = 500_000  # an alias bomb expands to more than any document a person writes


# Strings that PyYAML writes plain and a YAML 1.2 or Go parser reads as a number or a boolean: 1e3, 0o17, y
AMBIGUOUS = re.compile(r"[-+]?[.]?[0-9][0-9a-fA-FxXoOeE_+.:-]*|[yYnN]")


class Document:
    """Plain data plus the line of every field. `source` names the file or whatever the text came from."""

    def __init__(self, data, lines: dict[tuple, int], source: str):
        self.data = data
        self.source = source
        self._lines = lines

    def line(self, path: tuple = ()) -> int | None:
        """Line (from 1) of the field, or of its nearest parent that is there."""
        path = tuple(path)
        while path and path not in self._lines:
            path = path[:-1]
        return self._lines.get(path)

    def problem(self, path: tuple, code: str, message: str, hint: str = "", severity: str = "error") -> Problem:
        """A problem at that field."""
        return Problem(code, message, self.source, self.line(path), dotted(path), hint, severity)


def dotted(path: tuple) -> str:
    """("spec", "components", 2, "version") as "spec.components[2].version"."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def load_file(path: str) -> Document:
    """The single document of a file. Raises NotFound or InvalidDocument."""
    return load_text(read(path), str(path))


def read(path: str) -> str:
    """The file's UTF-8 text, at most 10 MiB. Raises NotFound or InvalidDocument."""
    try:
        with open(path, "rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except FileNotFoundError as error:
        raise NotFound("no such file", file=str(path)) from error
    except IsADirectoryError as error:
        raise NotFound("is a directory, not a file", file=str(path)) from error
    except OSError as error:
        raise NotFound(f"cannot be read: {os.strerror(error.errno or 0)}", file=str(path)) from error
    except ValueError as error:  # a NUL byte in the name
        raise NotFound(f"cannot be read: {error}", file=repr(path)) from error
    if len(content) > MAX_BYTES:
        raise InvalidDocument("is larger than 10 MiB", file=str(path))
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidDocument("is not UTF-8 text", file=str(path), line=line, hint="save the file as UTF-8") from error


def load_text(text: str, source: str) -> Document:
    """The single document of a text. Raises InvalidDocument."""
    documents = load_all_text(text, source)
    if not documents:
        raise InvalidDocument("holds no document", file=source, line=1)
    if len(documents) > 1:
        raise InvalidDocument(
            f"holds {len(documents)} documents where one belongs",
            file=source,
            line=documents[1].line(),
            hint="one document in a file",
        )
    return documents[0]


def load_all_text(text: str, source: str) -> list[Document]:
    """Every document of a text, empty ones left out. Raises InvalidDocument with all problems of duplicate keys."""
    import yaml

    loader = _loader()(text)
    documents = []
    try:
        while loader.check_node():
            builder = _Builder(source)
            data = builder.build(loader.get_node(), ())
            if builder.problems:
                raise InvalidDocument(builder.problems)
            if data is not None:
                documents.append(Document(data, builder.lines, source))
    except yaml.MarkedYAMLError as error:
        what = " ".join(str(error.problem or "malformed").split())
        # what never ends is wrong where it began
        mark = error.context_mark if "end of stream" in what and error.context_mark else error.problem_mark
        context = f" {error.context}" if error.context else ""
        raise InvalidDocument(
            Problem(
                "malformed-yaml",
                f"malformed YAML:{context} {what}".replace("  ", " "),
                source,
                mark.line + 1 if mark else None,
                hint=_began(error.context_mark, mark),
            )
        ) from error
    except yaml.YAMLError as error:
        line = None
        position = getattr(error, "position", None)
        if position is not None:
            line = text.count("\n", 0, position) + 1
        raise InvalidDocument(
            Problem("malformed-yaml", f"malformed YAML: {getattr(error, 'reason', error)}", source, line)
        ) from error
    finally:
        loader.dispose()
    return documents


def _began(start, mark) -> str:
    """Where the flow map, list or text begins that the parser found broken further down."""
    return f"it begins on line {start.line + 1}" if start and mark and start.line < mark.line else ""


class _Builder:
    """Turns PyYAML's nodes into plain data and notes the line of each field on the way."""

    def __init__(self, source: str):
        self.source = source
        self.lines: dict[tuple, int] = {}
        self.problems: list[Problem] = []
        self._open: set[int] = set()

    def build(self, node, path: tuple):
        self.lines[path] = node.start_mark.line + 1
        if len(self.lines) > MAX_NODES:
            raise InvalidDocument("expands to too many values (aliases of aliases?)", file=self.source)
        kind = node.id
        if kind == "scalar":
            return self.scalar(node, path)
        if id(node) in self._open:
            self.fault(node, path, "recursive-alias", "an alias contains itself")
            return None
        self._open.add(id(node))
        try:
            if kind == "sequence":
                return [self.build(item, (*path, index)) for index, item in enumerate(node.value)]
            return self.mapping(node, path)
        finally:
            self._open.discard(id(node))

    def mapping(self, node, path: tuple) -> dict:
        result: dict = {}
        merged: dict = {}
        for key_node, value_node in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                bases = value_node.value if value_node.id == "sequence" else [value_node]
                for base in reversed(bases):
                    if base.id != "mapping":
                        self.fault(key_node, path, "bad-merge", "<< needs a map")
                        continue
                    merged.update(self.build(base, path))
                continue
            key = self.scalar(key_node, path) if key_node.id == "scalar" else None
            if isinstance(key, bool) or key is None:
                self.fault(
                    key_node,
                    path,
                    "bad-key",
                    f"the key {getattr(key_node, 'value', '')!r} is not a string",
                    "put it in quotes",
                )
                continue
            key = key if isinstance(key, str) else str(key_node.value)
            if key in result:
                self.fault(
                    key_node,
                    (*path, key),
                    "duplicate-key",
                    f"the key {key!r} stands here twice",
                    f"first on line {self.lines[(*path, key)]}",
                )
                continue
            result[key] = self.build(value_node, (*path, key))
            self.lines[(*path, key)] = key_node.start_mark.line + 1
        return {**merged, **result} if merged else result

    def scalar(self, node, path: tuple):
        tag = node.tag.rpartition(":")[2]
        text = node.value
        if tag == "str" or tag in ("timestamp", "value", "merge"):
            return text
        if tag == "null":
            return None
        if tag == "bool":
            return text.lower() in ("yes", "true", "on")
        if tag in ("int", "float"):
            number = _constructor().construct_object(node) if tag == "float" else _integer(node)
            if number is None or (isinstance(number, float) and not math.isfinite(number)):
                self.fault(node, path, "bad-number", f"{text!r} is not a number that JSON can hold", "put it in quotes")
                return None
            return number
        self.fault(node, path, "bad-tag", f"the tag {node.tag!r} is not allowed", "plain YAML only")
        return None

    def fault(self, node, path: tuple, code: str, message: str, hint: str = "") -> None:
        self.problems.append(Problem(code, message, self.source, node.start_mark.line + 1, dotted(path), hint))


def _integer(node):
    # 1.1's sexagesimal integers (22:30) are never what was meant: keep the text
    return node.value if ":" in node.value else _constructor().construct_object(node)


@functools.lru_cache(maxsize=1)
def _constructor():
    from yaml.constructor import SafeConstructor

    return SafeConstructor()


@functools.lru_cache(maxsize=1)
def _loader():
    import yaml

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def dump(data: object) -> str:
    """Plain data as YAML: same data, same bytes. Insertion order, block style, no aliases, newline at the end."""
    import yaml

    text = yaml.dump(
        data, Dumper=_dumper(), sort_keys=False, default_flow_style=False, allow_unicode=True, width=1_000_000
    )
    # libyaml marks the end of a text that ends with blank lines: harmless in a file, wrong inside another document
    return text.removesuffix("...\n") if text.endswith("\n...\n") else text


@functools.lru_cache(maxsize=1)
def _dumper():
    import yaml

    class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):
        def ignore_aliases(self, data):
            return True

    def text(dumper, value):
        # a literal block keeps scripts and manifests readable; the emitter falls back where it cannot
        style = "|" if "\n" in value else "'" if AMBIGUOUS.fullmatch(value) else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, text)
    return Dumper
