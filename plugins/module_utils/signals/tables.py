# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The catalogue's signal tables: what a code means.

    tables = load([(text_of_xid_yaml, "xid.yaml"), (text_of_sxid_yaml, "sxid.yaml")])    # or load_catalog(layers)
    tables.meaning("xid", "79").action      # RESTART_BM
    tables.meaning("xid", "999").known      # False: what the table says of unknown codes

A later text of the same code space adds to an earlier one and replaces its entries code by code, so that a site's layer
needs only what it changes.
"""

from __future__ import annotations

import fnmatch
import functools
import glob
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ansible_collections.goodput.fleet.plugins.module_utils.records import quickcheck, schema, yamltree
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, NotFound, Problem
from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas import signaltable

MANY = ("nvlink5", "condition", "cloud")  # spaces where one code has several entries
UNKNOWN = {"class": "driver", "action": "CONTACT_SUPPORT", "fatal": False, "severity": "error"}


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a code means. `entry` is the table's own map, for what only one space has."""

    code: str
    known: bool
    name: str
    title: str
    cls: str
    action: str
    fatal: bool
    severity: str
    state: str | None
    deferred: str | None
    consequence_of: tuple[str, ...]
    within: str | None
    clears: tuple[str, ...]
    entry: dict

    def metadata(self) -> dict[str, str]:
        """What correlation and rules need of it, as an event's metadata."""
        texts = {
            "class": self.cls,
            "codeName": self.name,
            "deferredAction": self.deferred,
            "consequenceOf": ",".join(self.consequence_of),
            "within": self.within,
            "clears": ",".join(self.clears),
            "note": self.entry.get("note"),
            "unknownCode": "" if self.known else "true",
        }
        return {key: text for key, text in texts.items() if text}


class Table:
    """The entries of one code space, in the order of the files."""

    def __init__(self, space: str):
        self.space = space
        self.entries: dict[str, list[dict]] = {}
        self.unknown: dict = UNKNOWN
        self.recovery: dict[int, dict] = {}
        self.watches: list[dict] = []
        self._meanings: dict[str, Meaning] = {}
        self._patterns: list[str] = []

    def extend(self, spec: dict) -> None:
        """Takes over a document's spec; its codes replace those that are there."""
        fresh: dict[str, list[dict]] = {}
        for entry in spec["entries"]:
            fresh.setdefault(entry["code"], []).append(entry)
        self.entries.update(fresh)
        self._patterns = [code for code in self.entries if "*" in code]
        self.unknown = spec.get("unknown", self.unknown)
        self.recovery.update({action["code"]: action for action in spec.get("recoveryActions", [])})
        self.watches = spec.get("watches", self.watches)
        self._meanings.clear()

    def meaning(self, code: str) -> Meaning:
        """Of a code with one entry. A code that is not there has the meaning of unknown ones; none is an error."""
        found = self._meanings.get(code)
        if found is None:
            entries = self.entries.get(code)
            found = _meaning(code, entries[0] if entries else self.unknown, bool(entries))
            if entries:  # codes out of a log are without end, those of the table are not
                self._meanings[code] = found
        return found

    def choose(self, code: str, fields: Mapping[str, str]) -> Meaning:
        """Of a code with several entries, or that only the pattern of an entry fits (`Frequent*Restart`).

        The code's own entries come before patterns; the first whose `match` fits `fields` holds.
        """
        for key in self._keys(code):
            for entry in self.entries[key]:
                if fits(entry, fields):
                    return _meaning(code, entry, True)
        return _meaning(code, self.unknown, False)

    def _keys(self, code: str) -> Iterator[str]:
        if code in self.entries:
            yield code
        for key in self._patterns:
            if fnmatch.fnmatchcase(code, key):
                yield key


class Tables:
    """The tables at hand, by code space. A space without a table knows no code."""

    def __init__(self) -> None:
        self._tables: dict[str, Table] = {}

    def of(self, space: str) -> Table:
        return self._tables.setdefault(space, Table(space))

    def meaning(self, space: str, code: str) -> Meaning:
        return self.of(space).meaning(code)


def load(texts: Iterable[tuple[str, str]]) -> Tables:
    """The tables of these (YAML text, source), in order; shared, so not to be changed. Raises InvalidDocument."""
    return _load(tuple((str(text), str(source)) for text, source in texts))


def load_catalog(layers: Iterable[str]) -> Tables:
    """The tables of catalogue directories (`signals/*.yaml` of each), in order. Raises NotFound or InvalidDocument."""
    layers = [str(layer) for layer in layers]
    patterns = [os.path.join(glob.escape(layer), "signals", "*.yaml") for layer in layers]
    paths = [path for pattern in patterns for path in sorted(glob.glob(pattern))]
    if not paths:
        raise NotFound("no signal tables", file=", ".join(layers), hint="a catalogue has them in signals/*.yaml")
    return load([(yamltree.read(path), path) for path in paths])


@functools.lru_cache(maxsize=16)
def _load(texts: tuple[tuple[str, str], ...]) -> Tables:
    tables, problems = Tables(), []
    for text, source in texts:
        try:
            spec = read(text, source)
        except (InvalidDocument, NotFound) as error:
            problems += error.problems
            continue
        tables.of(spec["codeSpace"]).extend(spec)
    if problems:
        raise InvalidDocument(problems)
    return tables


def read(text: str, source: str) -> dict:
    """The spec of one SignalTable document. Raises InvalidDocument."""
    document = yamltree.load_text(text, source)
    if not _good(document.data):
        schema.check(document, "SignalTable")
    spec = document.data["spec"]
    problems = _duplicates(document, spec) + _contradictions(document, spec)
    if problems:
        raise InvalidDocument(problems)
    return spec


def _good(data: object) -> bool:
    spec = data.get("spec") if isinstance(data, dict) else None
    space = spec.get("codeSpace") if isinstance(spec, dict) else None
    return isinstance(space, str) and space in signaltable.ENTRY and _judge(space)(data)


@functools.cache
def _judge(space: str) -> quickcheck.Judge:
    return quickcheck.compile_schema(signaltable.of_space(space))


def _duplicates(document: yamltree.Document, spec: dict) -> list[Problem]:
    if spec["codeSpace"] in MANY:
        return []
    problems, first = [], {}
    for index, entry in enumerate(spec["entries"]):
        path = ("spec", "entries", index, "code")
        before = first.setdefault(entry["code"], path)
        if before != path:
            message = f"the code {entry['code']!r} stands here twice"
            problems.append(document.problem(path, "duplicate-code", message, f"first on line {document.line(before)}"))
    return problems


def _contradictions(document: yamltree.Document, spec: dict) -> list[Problem]:
    """An event that takes a node out and asks for nothing would leave it out for ever."""
    rows = [(("spec", "entries", index), entry) for index, entry in enumerate(spec["entries"])]
    rows += [
        ((*path, "rows", number), row) for path, entry in list(rows) for number, row in enumerate(entry.get("rows", []))
    ]
    rows += [(("spec", "recoveryActions", index), row) for index, row in enumerate(spec.get("recoveryActions", []))]
    return [
        document.problem((*path, "action"), "no-exit", "fatal, and asks for nothing", "name the action that ends it")
        for path, row in rows
        if row.get("fatal") and row.get("action") == "NONE"
    ]


def _meaning(code: str, entry: dict, known: bool) -> Meaning:
    return Meaning(
        code=code,
        known=known,
        name=entry.get("name", ""),
        title=entry.get("title") or ("documented as not used" if entry["class"] == "unused" else entry.get("name", "")),
        cls=entry["class"],
        action=entry["action"],
        fatal=entry["fatal"],
        severity=severity(entry),
        state=entry.get("state"),
        deferred=entry.get("deferred"),
        consequence_of=tuple(entry.get("consequenceOf", ())),
        within=entry.get("within"),
        clears=tuple(entry.get("clears", ())),
        entry=entry,
    )


def fits(entry: dict, fields: Mapping[str, str]) -> bool:
    """Whether each field that the entry's `match` names has one of its patterns; case does not count."""
    for field, patterns in entry.get("match", {}).items():
        found = fields.get(field, "").lower()
        patterns = [patterns] if isinstance(patterns, str) else patterns
        if not any(fnmatch.fnmatchcase(found, pattern.lower()) for pattern in patterns):
            return False
    return True


def severity(entry: dict) -> str:
    """The entry's own, or what follows from the rest of it."""
    if "severity" in entry:
        return entry["severity"]
    if entry["fatal"]:
        return "fatal"
    if entry.get("class") in ("notice", "recovery") and entry["action"] == "NONE":
        return "info"
    if entry["action"] == "NONE" or entry.get("class") in ("application", "consequence"):
        return "warning"
    return "error"
