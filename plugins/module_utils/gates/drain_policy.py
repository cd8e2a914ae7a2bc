# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What may happen to which pods of a node that is drained: an ordered list, first match wins. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from ansible_collections.goodput.fleet.plugins.module_utils.gates import labels
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, Problem, nearest

LEAVE, WAIT, EVICT = "leave", "wait", "evict"
ACTIONS = (LEAVE, WAIT, EVICT)
SYSTEM_NAMESPACES = (
    "kube-system",
    "kube-public",
    "kube-node-lease",
    "gpu-operator",
    "network-operator",
    "node-feature-discovery",
    "nvsentinel",
    "goodput-system",
)
_DURATION = re.compile(r"^(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+$")
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
_EVICT_ONLY = ("after", "unmanaged", "local_data", "grace_seconds", "force", "force_after", "force_grace_seconds")
_KEYS = ("namespaces", "selector", "action", *_EVICT_ONLY)


@dataclass(frozen=True)
class Policy:
    """One entry. Times are seconds; None means not given."""

    name: str  # what messages call it
    namespaces: tuple[str, ...]
    action: str
    selector: dict | None = None
    after: float = 0.0
    unmanaged: bool = False
    local_data: bool = False
    grace_seconds: int | None = None
    force_after: float | None = None  # None: never deleted
    force_grace_seconds: int | None = None

    def takes(self, namespace: str, pod_labels: dict) -> bool:
        if not any(fnmatchcase(namespace, pattern) for pattern in self.namespaces):
            return False
        return self.selector is None or labels.matches(self.selector, pod_labels)


@dataclass(frozen=True)
class Policies:
    """System namespaces stay, then the given entries, then everything else is waited for."""

    given: tuple[Policy, ...] = ()
    system: tuple[str, ...] = SYSTEM_NAMESPACES
    _all: tuple[Policy, ...] = field(init=False, default=())

    def __post_init__(self):
        first = Policy("system_namespaces", self.system, LEAVE)
        object.__setattr__(self, "_all", (first, *self.given, Policy("the default", ("*",), WAIT)))

    def match(self, namespace: str, pod_labels: dict) -> Policy:
        return next(policy for policy in self._all if policy.takes(namespace, pod_labels))


def load(entries: list[dict] | None, system_namespaces: list[str] | None = None) -> Policies:
    """Policies from a module's options; InvalidDocument with every problem of every entry.

    An entry: {namespaces: [glob], selector: "a=b", action, after, unmanaged, local_data, grace_seconds, force,
    force_after, force_grace_seconds}; see Policy. Keys that are None count as not given.
    """
    system = SYSTEM_NAMESPACES if system_namespaces is None else tuple(system_namespaces)
    problems: list[Problem] = []
    policies = [_read(entry, f"policies[{index}]", system, problems) for index, entry in enumerate(entries or [])]
    if problems:
        raise InvalidDocument(problems)
    return Policies(tuple(policy for policy in policies if policy), system)


def _read(entry: object, where: str, system: tuple[str, ...], problems: list[Problem]) -> Policy | None:
    def wrong(key: str, message: str, hint: str = "") -> None:
        problems.append(Problem("policy", message, path=f"{where}.{key}" if key else where, hint=hint))

    before = len(problems)
    if not isinstance(entry, dict):
        wrong("", f"is {type(entry).__name__}, not a map")
        return None
    given = {key: value for key, value in entry.items() if value is not None}
    for key in given:
        if key not in _KEYS:
            wrong(str(key), "there is no such key", nearest(key, _KEYS))
    action = given.get("action")
    if action not in ACTIONS:
        wrong("action", f"is {action!r}" if action else "is missing", nearest(action or "", ACTIONS))
    elif action != EVICT:
        for key in _EVICT_ONLY:
            if given.get(key):
                wrong(key, f"means nothing with action {action}", "action: evict")
    namespaces = _namespaces(given.get("namespaces"), system, wrong)
    selector = None
    if "selector" in given:
        try:
            selector = labels.parse(str(given["selector"]))
        except ValueError as error:
            wrong("selector", str(error), "such as app=trainer,tier in (batch, low)")
    seconds = {key: _duration(given, key, wrong) for key in ("after", "force_after")}
    grace = {key: _whole(given, key, least, wrong) for key, least in (("grace_seconds", 1), ("force_grace_seconds", 0))}
    if given.get("force") and "force_after" not in given:
        wrong("force_after", "is missing: force needs a deadline of its own", "such as 1h, counted from the eviction")
    for key in ("force_after", "force_grace_seconds"):
        if key in given and not given.get("force"):
            wrong(key, "means nothing without force", "force: true deletes pods that cannot be evicted")
    if len(problems) > before:
        return None
    return Policy(
        name=where,
        namespaces=namespaces,
        action=action,
        selector=selector,
        after=seconds["after"] or 0.0,
        unmanaged=bool(given.get("unmanaged")),
        local_data=bool(given.get("local_data")),
        grace_seconds=grace["grace_seconds"],
        force_after=seconds["force_after"],
        force_grace_seconds=grace["force_grace_seconds"],
    )


def _namespaces(given: object, system: tuple[str, ...], wrong) -> tuple[str, ...]:
    if not isinstance(given, list) or not given or not all(isinstance(item, str) and item for item in given):
        wrong("namespaces", "is not a list of namespace patterns", 'such as [training, "team-*"]')
        return ()
    for name in given:
        if not set(name) & set("*?[") and any(fnmatchcase(name, pattern) for pattern in system):
            wrong("namespaces", f"{name!r} is a system namespace, whose pods stay", "take it out of system_namespaces")
    return tuple(given)


def _duration(given: dict, key: str, wrong) -> float | None:
    if key not in given:
        return None
    try:
        return duration(given[key])
    except ValueError as error:
        wrong(key, str(error), "such as 30m, 1h30m, or a number of seconds")
        return None


def _whole(given: dict, key: str, least: int, wrong) -> int | None:
    value = given.get(key)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
        hint = "only force_grace_seconds may be 0" if least else ""
        wrong(key, f"is {value!r}, not a number of seconds from {least} on", hint)
        return None
    return value


def duration(value: object) -> float:
    """'1h30m', '90s', 90 or '90' as seconds. Raises ValueError."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < float("inf"):
        return float(value)
    text = str(value).strip()
    if text.isdigit():
        return float(text)
    if isinstance(value, bool) or not _DURATION.match(text):
        raise ValueError(f"{value!r} is not a duration")
    return sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text))
