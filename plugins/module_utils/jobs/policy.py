# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""RecoveryPolicy: loaded, checked, with the defaults of what it leaves out. They are stated here and nowhere else.

policy = load("gitops/catalog/recovery/default.yaml")     # or data, or text
policy.mode, policy.budgets.no_progress, policy.mode_of("research", declared=None)
"""

from __future__ import annotations

import dataclasses
import fnmatch
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ansible_collections.goodput.fleet.plugins.module_utils.jobs import moments
from ansible_collections.goodput.fleet.plugins.module_utils.records import digest, schema, yamltree
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument
from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas.recoverypolicy import JOB_MODES, MODES

KIND = "RecoveryPolicy"
UNDECLARED = "advise"
MINUTE, HOUR, DAY = 60, 3600, 86400


@dataclass(frozen=True, slots=True)
class Within:
    """At most `max` in `window` seconds."""

    max: int
    window: int


@dataclass(frozen=True, slots=True)
class Budgets:
    """`no_progress`, `same_failure` and `classes` are counted since the job last advanced; the rest by the clock."""

    no_progress: int = 3
    same_failure: int = 1
    classes: Mapping[str, int] = dataclasses.field(
        default_factory=lambda: {
            "hardware": 3,
            "network": 3,
            "transient-software": 3,
            "user-code": 1,
            "storage": 3,
            "unknown": 2,
        }
    )
    job: tuple[Within, ...] = (Within(3, 6 * HOUR), Within(10, DAY))
    requeues: Within = Within(20, DAY)
    everybody: Within = Within(20, 10 * MINUTE)
    replays: frozenset[int] = frozenset({16})  # Megatron's "run again elsewhere, to tell which"


@dataclass(frozen=True, slots=True)
class Backoff:
    """`delays` in seconds before the first, second, … retry; at most `jitter` percent are added."""

    delays: tuple[int, ...] = (0, 30, 2 * MINUTE, 8 * MINUTE)
    jitter: int = 20


@dataclass(frozen=True, slots=True)
class Hang:
    """Silence that is a hang: `factor` times the usual step, but from `least` to `most` seconds; `start` before the
    first step. `act`: whether a job that hangs may be stopped."""

    act: bool = False
    factor: float = 10
    least: int = 10 * MINUTE
    most: int = 2 * HOUR
    start: int = 30 * MINUTE


@dataclass(frozen=True, slots=True)
class Suspects:
    window: int = DAY
    network: int = 2
    timeouts: int = 3
    exclude: int = DAY
    confidence: float = 0.6


@dataclass(frozen=True, slots=True)
class Blast:
    jobs: int = 3
    nodes: int = 3
    window: int = 10 * MINUTE
    gates_percent: float = 5
    gates_per_domain: int = 1
    unready_percent: float = 10
    unready_least: int = 5


@dataclass(frozen=True, slots=True)
class Lemon:
    """A failure weighs 1, and half of that after `half_life` seconds."""

    window: int = 30 * DAY
    half_life: int = 7 * DAY
    score: float = 1.5
    jobs: int = 2


@dataclass(frozen=True, slots=True)
class Data:
    max_age: int = 5 * MINUTE
    skew: int = MINUTE


@dataclass(frozen=True, slots=True)
class Policy:
    """Durations are seconds."""

    name: str
    digest: str
    mode: str
    undeclared: str
    namespaces: tuple[tuple[tuple[str, ...], str], ...]
    budgets: Budgets
    backoff: Backoff
    hang: Hang
    suspects: Suspects
    blast: Blast
    lemon: Lemon
    data: Data

    def capped(self, mode: str) -> Policy:
        """The same, but not above that mode."""
        return dataclasses.replace(self, mode=min(self.mode, mode, key=MODES.index))

    def mode_of(self, namespace: str, declared: str | None) -> tuple[str, str]:
        """(act, advise or off, where that is from) for a job of that namespace or partition.

        `declared` is what the job or its namespace says, if anything. Raises InvalidDocument for another word.
        """
        if declared:
            if declared not in JOB_MODES:
                raise InvalidDocument(
                    f"is {declared!r}", path="goodput.fleet/recovery", hint="act, advise or off are known"
                )
            return declared, "declared"
        for names, mode in self.namespaces:
            if any(fnmatch.fnmatchcase(namespace, name) for name in names):
                return mode, f"policy {self.name}, namespaces {', '.join(names)}"
        return self.undeclared, f"policy {self.name}, undeclared"


def load(source: object, name: str = "policy (inline)") -> Policy:
    """From a path, a YAML text (of more than one line), data, or a Document.

    Raises NotFound, or InvalidDocument with every problem: file, line, and what would be right.
    """
    document = _document(source, name)
    schema.check(document, KIND)
    spec = document.data["spec"]
    odd = [path for path, value in _numbers(spec, ("spec",)) if not math.isfinite(value)]
    if odd:
        raise InvalidDocument(
            [document.problem(path, "bad-value", "is no number that can be compared", "such as 1.5") for path in odd]
        )
    hang = _given(spec, "hang", act=None, factor=None, least=moments.span, most=moments.span, start=moments.span)
    policy = Policy(
        name=document.data["metadata"]["name"],
        digest=digest.sha256(spec),
        mode=spec["mode"],
        undeclared=spec.get("undeclared", UNDECLARED) or "off",
        namespaces=tuple((tuple(one["names"]), one["mode"] or "off") for one in spec.get("namespaces", ())),
        budgets=_budgets(spec.get("budgets", {})),
        backoff=_backoff(spec.get("backoff", {})),
        hang=Hang(**hang),
        suspects=Suspects(
            **_given(
                spec,
                "suspects",
                window=moments.span,
                networkFailures=("network", None),
                timeouts=None,
                exclude=moments.span,
                confidence=None,
            )
        ),
        blast=Blast(
            **_given(
                spec,
                "blastRadius",
                jobs=None,
                nodes=None,
                window=moments.span,
                gatesPercent=("gates_percent", None),
                gatesPerDomain=("gates_per_domain", None),
                unreadyPercent=("unready_percent", None),
                unreadyLeast=("unready_least", None),
            )
        ),
        lemon=Lemon(
            **_given(spec, "lemon", window=moments.span, halfLife=("half_life", moments.span), score=None, jobs=None)
        ),
        data=Data(**_given(spec, "data", maxAge=("max_age", moments.span), skew=moments.span)),
    )
    if policy.hang.least > policy.hang.most:
        problem = document.problem(
            ("spec", "hang"),
            "bad-value",
            f"least ({moments.spell(policy.hang.least)}) is longer than most ({moments.spell(policy.hang.most)})",
            "least is the shortest silence that is a hang, most the longest that is none",
        )
        raise InvalidDocument([problem])
    return policy


def describe(policy: Policy) -> dict:
    """All numbers in force, as plain data; durations in seconds."""
    plain = dataclasses.asdict(policy)
    plain["budgets"]["replays"] = sorted(policy.budgets.replays)
    plain["budgets"]["global"] = plain["budgets"].pop("everybody")
    plain["budgets"]["classes"] = dict(policy.budgets.classes)
    plain["budgets"]["job"] = list(plain["budgets"]["job"])
    plain["backoff"]["delays"] = list(policy.backoff.delays)
    plain["namespaces"] = [{"names": list(names), "mode": mode} for names, mode in policy.namespaces]
    return plain


def _document(source: object, name: str) -> yamltree.Document:
    if isinstance(source, yamltree.Document):
        return source
    if isinstance(source, Mapping):
        return yamltree.Document(source, {}, name)
    if isinstance(source, os.PathLike) or (isinstance(source, str) and "\n" not in source):
        return yamltree.load_file(str(source))
    if isinstance(source, str):
        return yamltree.load_text(source, name)
    raise InvalidDocument(f"a policy is a path or a map, not a {type(source).__name__}", path="policy")


def _given(spec: Mapping, section: str, **fields) -> dict:
    """Arguments for what the section states. A field is None, how to read it, or (our name, how to read it)."""
    found = {}
    for key, value in spec.get(section, {}).items():
        ours, read = fields[key] if isinstance(fields[key], tuple) else (key, fields[key])
        found[ours] = read(value) if read else value
    return found


def _numbers(data: object, path: tuple) -> Iterator[tuple[tuple, float]]:
    if isinstance(data, float):
        yield path, data
    elif isinstance(data, Mapping | list):
        for key, value in data.items() if isinstance(data, Mapping) else enumerate(data):
            yield from _numbers(value, (*path, key))


def _within(given: Mapping) -> Within:
    return Within(given["max"], moments.span(given["window"]))


def _budgets(given: Mapping) -> Budgets:
    default = Budgets()
    return Budgets(
        no_progress=given.get("noProgress", default.no_progress),
        same_failure=given.get("sameFailure", default.same_failure),
        classes={**default.classes, **given.get("classes", {})},
        job=tuple(map(_within, given["job"])) if "job" in given else default.job,
        requeues=_within(given["requeues"]) if "requeues" in given else default.requeues,
        everybody=_within(given["global"]) if "global" in given else default.everybody,
        replays=frozenset(given.get("replayExitCodes", default.replays)),
    )


def _backoff(given: Mapping) -> Backoff:
    default = Backoff()
    delays = tuple(map(moments.span, given["delays"])) if "delays" in given else default.delays
    return Backoff(delays, given.get("jitterPercent", default.jitter))
