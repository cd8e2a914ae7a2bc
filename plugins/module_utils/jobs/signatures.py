# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The catalogue's failure signatures, compiled: what a line of a job's log means.

    table = load_catalog(["/usr/share/goodput/catalog"])
    table.match("RuntimeError: CUDA error: uncorrectable ECC error encountered").signature.cls     # hardware

A later layer's signature of the same id replaces the earlier one; what it has beyond that is looked at first.
"""

from __future__ import annotations

import functools
import glob
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ansible_collections.goodput.fleet.plugins.module_utils.jobs import literals
from ansible_collections.goodput.fleet.plugins.module_utils.records import quickcheck, yamltree
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, NotFound, Problem
from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas import failuresignatures

KIND = "FailureSignatures"
STRENGTHS = {"weak": 0, "normal": 1, "strong": 2}
_NESTED = re.compile(r"(?<!\\)[*+]\)[*+{]")
_GROUP = re.compile(r"\(\?P<(\w+)>")


@dataclass(frozen=True, slots=True)
class Pattern:
    """An expression with the texts one of which every line has that it fits."""

    search: Callable[[str], re.Match | None]
    literals: tuple[str, ...]

    def find(self, text: str) -> re.Match | None:
        for literal in self.literals:
            if literal in text:
                return self.search(text)
        return None


@dataclass(frozen=True, slots=True)
class Signature:
    """What a line means. `cascade` is never, maybe or always; `blame` is the table's word, before it is computed."""

    id: str
    component: str
    pattern: Pattern
    cls: str
    action: str
    blame: str
    cascade: str
    strength: int
    generic: bool
    waiting: bool
    died: bool
    collateral_after: frozenset[str]
    note: str


@dataclass(frozen=True, slots=True)
class Exit:
    """What an exit code says where no line says more."""

    title: str
    cls: str
    action: str
    blame: str
    cascade: str


@dataclass(frozen=True, slots=True)
class Found:
    signature: Signature
    match: re.Match

    def group(self, name: str) -> str:
        """What the expression's group caught, "" where it has none of that name."""
        return self.match.groupdict().get(name) or ""


@dataclass(slots=True, eq=False)
class Table:
    """Everything the documents say, in the order of the files."""

    signatures: list[Signature] = field(default_factory=list)
    drop: list[Pattern] = field(default_factory=list)
    starts: list[Pattern] = field(default_factory=list)
    ends: list[Pattern] = field(default_factory=list)
    progress: list[Pattern] = field(default_factory=list)
    exits: dict[int, Exit] = field(default_factory=dict)
    prefixes: list[str] = field(default_factory=list)
    prefix: re.Pattern | None = None
    prefix_groups: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def match(self, text: str) -> Found | None:
        """The first signature that fits; generic ones come last. None for advice and for all else."""
        if any(pattern.find(text) for pattern in self.drop):
            return None
        return first(self.signatures, text)

    @property
    def patterns(self) -> list[Pattern]:
        """Of all lines that say something."""
        return [*(one.pattern for one in self.signatures), *self.starts, *self.ends, *self.progress]

    @property
    def fallback(self) -> Signature | None:
        """What holds for an exception nobody described."""
        plain = (one for one in self.signatures if one.generic and one.cls == "user-code")
        return next(plain, None)

    def settle(self) -> None:
        """Derives what reading needs; after the last document."""
        self.signatures.sort(key=lambda one: one.generic)
        groups: dict[str, list[int]] = {}
        parts, count = [], 0
        for text in self.prefixes:
            compiled = re.compile(text)
            for name, index in compiled.groupindex.items():
                groups.setdefault(name, []).append(count + index)
            count += compiled.groups
            parts.append(_GROUP.sub("(", text))
        self.prefix = re.compile("|".join(parts).encode()) if parts else None
        self.prefix_groups = {name: tuple(indexes) for name, indexes in groups.items()}


def first(signatures: Iterable[Signature], text: str) -> Found | None:
    """The first that fits. What only follows from another failure gives way to what it quotes on the same line."""
    follows = None
    for signature in signatures:
        if follows and (signature.cascade != "never" or signature.generic or signature.strength == 0):
            continue
        match = signature.pattern.find(text)
        if match and signature.cascade != "always":
            return Found(signature, match)
        if match and not follows:
            follows = Found(signature, match)
    return follows


def load_catalog(layers: Iterable[str]) -> Table:
    """The table of catalogue directories (`signatures/*.yaml`), in order. Raises NotFound or InvalidDocument."""
    layers = [str(layer) for layer in layers]
    patterns = [os.path.join(glob.escape(layer), "signatures", "*.yaml") for layer in layers]
    paths = [path for pattern in patterns for path in sorted(glob.glob(pattern))]
    if not paths:
        raise NotFound(
            "no failure signatures", file=", ".join(layers), hint="a catalogue has them in signatures/*.yaml"
        )
    return load([(yamltree.read(path), path) for path in paths])


def load(texts: Iterable[tuple[str, str]]) -> Table:
    """The table of these (YAML text, source), in order; shared, so not to be changed. Raises InvalidDocument."""
    return _load(tuple((str(text), str(source)) for text, source in texts))


@functools.lru_cache(maxsize=8)
def _load(texts: tuple[tuple[str, str], ...]) -> Table:
    table, problems, seen = Table(), [], {}
    layers: dict[str, list[Signature]] = {}
    for text, source in texts:
        try:
            document = yamltree.load_text(text, source)
        except (InvalidDocument, NotFound) as error:
            problems += error.problems
            continue
        found = quickcheck.validate(document, KIND, failuresignatures.SCHEMA)
        if not found:
            _read(table, document, found)
            _collect(layers, document, found, seen)
        problems += found
    if problems:
        raise InvalidDocument(problems)
    # a site's own, narrower signatures must not lose to ours
    table.signatures = [one for layer in reversed(layers.values()) for one in layer]
    table.settle()
    return table


def _read(table: Table, document: yamltree.Document, problems: list[Problem]) -> None:
    """How logs are read, into the table."""
    spec = document.data["spec"]
    for name in ("drop", "starts", "ends", "progress"):
        for index, entry in enumerate(spec.get(name, [])):
            pattern = _pattern(document, ("spec", name, index), entry, problems)
            if pattern:
                getattr(table, name).append(pattern)
    for index, entry in enumerate(spec.get("prefixes", [])):
        if _compiled(document, ("spec", "prefixes", index, "match"), entry["match"], problems):
            table.prefixes.append(entry["match"])
    for entry in spec.get("exitCodes", []):
        meaning = Exit(
            entry.get("title", ""), entry["class"], entry["action"], entry["blame"], entry.get("cascade", "never")
        )
        table.exits.update(dict.fromkeys(entry["codes"], meaning))


def _collect(
    layers: dict[str, list[Signature]], document: yamltree.Document, problems: list[Problem], seen: dict[str, tuple]
) -> None:
    """The signatures of a document, into its layer, or in the place of those of the same id in earlier layers."""
    layer = os.path.dirname(document.source)
    own = layers.setdefault(layer, [])
    for index, entry in enumerate(document.data["spec"].get("signatures", [])):
        path = ("spec", "signatures", index)
        before = seen.get(entry["id"])
        if before and before[0] == layer:
            message = f"the id {entry['id']!r} stands here twice"
            problems.append(document.problem((*path, "id"), "duplicate-id", message, f"first in {before[1]}"))
            continue
        seen[entry["id"]] = (layer, f"{document.source}:{document.line((*path, 'id'))}")
        pattern = _pattern(document, path, entry, problems)
        if not pattern:
            continue
        if "example" in entry and not pattern.find(entry["example"]):
            message = f"the pattern of {entry['id']} does not fit its example"
            hint = "change one of the two, or `literals`, one of which must be in every line"
            problems.append(document.problem((*path, "example"), "no-match", message, hint))
        signature = _signature(entry, pattern)
        for signatures in layers.values() if before else ():
            for place, one in enumerate(signatures):
                if one.id == signature.id:
                    signatures[place] = signature
        if not before:
            own.append(signature)


def _signature(entry: dict, pattern: Pattern) -> Signature:
    return Signature(
        id=entry["id"],
        component=entry["component"],
        pattern=pattern,
        cls=entry["class"],
        action=entry["action"],
        blame=entry["blame"],
        cascade=entry["cascade"],
        strength=STRENGTHS[entry.get("strength", "normal")],
        generic=bool(entry.get("generic")),
        waiting=bool(entry.get("waiting")),
        died=bool(entry.get("died")),
        collateral_after=frozenset(entry.get("collateralAfter", ())),
        note=entry.get("note", ""),
    )


def _pattern(document: yamltree.Document, path: tuple, entry: dict, problems: list[Problem]) -> Pattern | None:
    compiled = _compiled(document, (*path, "match"), entry["match"], problems)
    if not compiled:
        return None
    texts = entry.get("literals") or literals.needed(entry["match"])
    if not texts or any(len(literals.without_digits(text)) < 3 for text in texts):
        message = f"{entry['match']!r} has no text that every line has that it fits"
        hint = "give `literals`: texts of 3 characters or more, digits not counted, one of which is in each such line"
        problems.append(document.problem((*path, "match"), "no-literal", message, hint))
        return None
    return Pattern(compiled.search, tuple(texts))


def _compiled(document: yamltree.Document, path: tuple, text: str, problems: list[Problem]) -> re.Pattern | None:
    try:
        compiled = re.compile(text)
    except re.error as error:
        problems.append(document.problem(path, "bad-pattern", f"{text!r} is no regular expression: {error}", ""))
        return None
    if _NESTED.search(text):
        message = f"{text!r} repeats what is repeated, which takes for ever on some lines"
        problems.append(document.problem(path, "slow-pattern", message, "repeat only once"))
        return None
    return compiled
