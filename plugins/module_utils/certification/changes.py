# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a change of a Certification changes, and whether nodes get through it more easily. Pure.

changes = diff(documents.load("main.yaml")["certification"], documents.load("head.yaml")["certification"])
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.certification import expressions
from ansible_collections.goodput.fleet.plugins.module_utils.records.cel import CelError

LOOSER, TIGHTER, OTHER, NEW = "loosened", "tightened", "changed", "new"

# the fleet that an expression is tried with: one of alike nodes, a scattered one, and a small one
_FLEETS = (
    expressions.TRIAL,
    {"median": 300.0, "mad": 0.5, "count": 1000.0},
    {"median": 20.0, "mad": 10.0, "count": 5.0},
)
# options that are numbers or yes and no, and whether more of it asks more of a node
_MORE_IS_STRICTER = {"repeatCount": True, "isolate": True, "allowUnbounded": False}


def diff(old: Mapping | None, new: Mapping) -> list[dict]:
    """[{category, path, before, after, effect}], categories in the order of the new document, then those that went.

    old, new: as `documents.load` makes them even; without `old` all of it is new. category is "" for what holds for
    all; before or after is None where there was or is nothing. effect: loosened (a node can pass that did not before),
    tightened (one can fail that did not), none (said in other words), new (there is no `old`), or changed (all else,
    and what cannot be told).
    """
    before, after = (old or {}).get("spec") or {}, new["spec"]
    had, have = ({one["name"]: one for one in spec.get("categories") or ()} for spec in (before, after))
    found: list[dict] = []
    for name in [*have, *sorted(had.keys() - have.keys())]:
        one, other = had.get(name), have.get(name)
        if one is None or other is None:
            effect = TIGHTER if one is None else LOOSER
            found.append(_change(name, "", one and _test(one), other and _test(other), effect))
            bounds = [{} if side is None else _bounds(side["options"]) for side in (one, other)]
            found += _bound_changes(name, *bounds)
        else:
            found += _category(name, one, other)
    if old is not None:
        for key in ("target", "tolerateGates", "limits"):
            found += [_change("", path, *sides, OTHER) for path, *sides in _fields(before.get(key), after[key], key)]
    if old is None:
        return [{**change, "effect": NEW} for change in found]
    return found


def effect(before: str | None, after: str | None) -> str:
    """What another bound (CEL over `value`) does to nodes; "" where both let the same values pass. None is no bound."""
    if before == after:
        return ""
    texts = [text for text in (before, after) if text is not None]
    try:
        compiled = [None if text is None else expressions.compile_bound(text) for text in (before, after)]
    except CelError:
        return OTHER
    fleets = _FLEETS if any(one and one.uses_fleet for one in compiled) else (None,)
    tried = [(point, fleet) for fleet in fleets for point in _points(texts, compiled, fleet)]
    passing = [
        {number for number, (point, fleet) in enumerate(tried) if one is None or one.holds(point, fleet) is True}
        for one in compiled
    ]
    if passing[0] == passing[1]:
        # where its bounds are no plain comparisons with the peers, what was tried is only a sample
        return OTHER if fleets is _FLEETS and not all(one and one.clauses for one in compiled) else ""
    if passing[0] < passing[1]:
        return LOOSER
    return TIGHTER if passing[0] > passing[1] else OTHER


def _points(texts: list[str], compiled: list[expressions.Compiled | None], fleet: dict | None) -> list[float]:
    limits = [limit for one in compiled if one for _clause, limit in one.bounds(fleet) if limit is not None]
    return [
        *expressions.trial_points(*texts),
        *(limit * factor for limit in limits for factor in (1 - 1e-6, 1, 1 + 1e-6)),
    ]


def effect_of_check(change: Mapping) -> str:
    """What the change of a recipe's check does to nodes; `change` {path, before, after, change} of lockdiff."""
    if change["change"] != "differs":
        return TIGHTER if change["change"] == "added" else LOOSER
    if not change["path"].endswith(".expression"):
        return OTHER
    return effect(change["before"], change["after"]) or "none"


def _change(category: str, path: str, before: object, after: object, effect_: str) -> dict:
    return {"category": category, "path": path, "before": before, "after": after, "effect": effect_}


def _test(category: Mapping) -> str:
    if "workload" in category:
        return "a workload of its own"
    return f"{category['domain']}/{category['variant']}"


def _category(name: str, old: Mapping, new: Mapping) -> list[dict]:
    found = []
    if _test(old) != _test(new):
        found.append(_change(name, "test", _test(old), _test(new), OTHER))
    for path, *sides in _fields(old.get("workload"), new.get("workload"), "workload"):
        found.append(_change(name, path, *sides, OTHER))
    options = [
        {key: value for key, value in one["options"].items() if key not in ("thresholds", "bounds")}
        for one in (old, new)
    ]
    for path, *sides in _fields(*options, "options"):
        found.append(_change(name, path, *sides, _of_option(path.removeprefix("options."), *sides)))
    return found + _bound_changes(name, _bounds(old["options"]), _bounds(new["options"]))


def _of_option(name: str, before: object, after: object) -> str:
    stricter = _MORE_IS_STRICTER.get(name)
    if stricter is None:
        return OTHER
    # what is left out is: tested once, searched for the bad node, and no pass without a bound
    default = {"repeatCount": 1, "isolate": True, "allowUnbounded": False}[name]
    was, will = (default if side is None else side for side in (before, after))
    if was == will:
        return OTHER
    return TIGHTER if (will > was) is stricter else LOOSER


def _bounds(options: Mapping) -> dict[str, list[str]]:
    """Where a bound is for -> its expressions, which must all hold."""
    found = {f"thresholds.{metric}": [text] for metric, text in (options.get("thresholds") or {}).items()}
    for bound in options.get("bounds") or ():
        where = ", ".join(f"{key} {bound[key]}" for key in ("size", "scope", "accelerator", "minPeers") if key in bound)
        key = f"bounds.{bound['metric']}" + (f" ({where})" if where else "")
        found.setdefault(key, []).append(bound["expression"])
    return found


def _bound_changes(name: str, old: Mapping, new: Mapping) -> list[dict]:
    found = []
    for path in sorted(old.keys() | new.keys()):
        before, after = (
            " && ".join(f"({text})" if len(side[path]) > 1 else text for text in side[path]) if path in side else None
            for side in (old, new)
        )
        if before != after:
            found.append(_change(name, path, before, after, effect(before, after) or "none"))
    return found


def _fields(old: object, new: object, path: str) -> Iterator[tuple[str, object, object]]:
    """(path, before, after) of each field that differs; lists count as a whole."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted(old.keys() | new.keys(), key=str):
            yield from _fields(old.get(key), new.get(key), f"{path}.{key}")
    elif old != new or isinstance(old, bool) is not isinstance(new, bool):
        yield path, old, new
