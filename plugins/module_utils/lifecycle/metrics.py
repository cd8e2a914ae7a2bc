# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is measured of nodes and GPUs over time, and how much of it matters. Pure.

A metric is a gauge (a value that stands for itself), a counter (begins anew with a boot or a reset), or a total
(a counter that lives in the hardware and survives boots). Counters are judged as rates per hour, by differences.

It is judged statistically where it has `floor` and `effect`, and by `limit` alone where it is so rare that it has no
usual value. Gauges that depend on load are only to be recorded under load.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, Problem, nearest

KINDS = ("gauge", "counter", "total")
WORSE = ("up", "down")
SUGGESTIONS = ("certify", "maintenance", "watch")
_WEEK = 168.0


@dataclass(frozen=True, slots=True)
class Metric:
    """`floor` and `effect`: in the unit (counters: per hour), or shares of the usual value where `relative`."""

    kind: str
    worse: str
    unit: str
    words: str  # for reports
    floor: float = 0.0  # the least spread that is believed, so that what never changes has no infinite scores
    effect: float = 0.0  # the least change that matters, whatever its score; 0: not judged statistically
    relative: bool = False
    limit: float | None = None  # gauge: this value; counter: this many in the time that is judged; enough alone
    suggestion: str = "certify"
    hours: float = 6.0  # length of a window
    baseline: int = 12  # windows that a history of its own needs
    confirm: int = 3  # windows in a row that have to be bad
    partial: bool = False  # whether the window counts that is not over yet


def gpu(kind: str, unit: str, words: str, **rest: object) -> Metric:
    return Metric(kind, str(rest.pop("worse", "up")), unit, words, **rest)


KNOWN: dict[str, Metric] = {
    "ecc_correctable": gpu("counter", "errors/h", "correctable memory errors", floor=0.5, effect=2),
    "remapped_rows_correctable": gpu("total", "rows", "rows remapped for correctable errors", limit=4),
    "remapped_rows_uncorrectable": gpu(
        "total", "rows", "rows remapped for uncorrectable errors", limit=2, suggestion="maintenance"
    ),
    "row_remap_pending": gpu(
        "gauge", "", "a row remap waits for a reset", limit=1, confirm=1, suggestion="maintenance", partial=True
    ),
    "nvlink_errors": gpu("counter", "errors/h", "NVLink CRC and recovery errors", floor=0.5, effect=2, limit=500),
    "nvlink_replays": gpu("counter", "replays/h", "NVLink replays", floor=1, effect=10),
    "nvlink_flaps": gpu("counter", "flaps", "NVLinks that went down", limit=4),
    "nvlinks_up": gpu("gauge", "links", "NVLinks that are up", worse="down", floor=0.1, effect=1),
    "pcie_width": gpu(
        "gauge", "lanes", "PCIe lanes", worse="down", floor=0.25, effect=2, confirm=2, suggestion="maintenance"
    ),
    "pcie_replays": gpu("counter", "replays/h", "PCIe replays", floor=1, effect=10),
    "gpu_temperature": gpu("gauge", "C", "temperature under load", floor=1, effect=6, suggestion="maintenance"),
    "memory_temperature": gpu(
        "gauge", "C", "memory temperature under load", floor=1, effect=6, suggestion="maintenance"
    ),
    "sm_clock": gpu("gauge", "MHz", "SM clock under load", worse="down", relative=True, floor=0.005, effect=0.05),
    "throttled_seconds": gpu(
        "counter", "s/h", "time slowed down by heat or power brakes", floor=36, effect=180, suggestion="maintenance"
    ),
    "nic_errors": gpu("counter", "errors/h", "errors of the NIC's port", floor=5, effect=60),
    "nic_link_downed": gpu("counter", "flaps", "NIC link flaps", limit=5),
    "nic_rate": gpu("gauge", "Gb/s", "rate of the NIC's link", worse="down", relative=True, floor=0.01, effect=0.2),
    "step_time": gpu("gauge", "s", "step time", relative=True, floor=0.005, effect=0.05),
    "bandwidth": gpu("gauge", "GB/s", "bandwidth", worse="down", relative=True, floor=0.005, effect=0.05),
}

# What certifications measured; there are few of them, so that each counts for a week.
CERTIFICATION = Metric(
    "gauge", "down", "", "", floor=0.01, effect=0.05, relative=True, hours=_WEEK, baseline=4, confirm=2, partial=True
)


def of_certification(category: str, name: str, unit: str, worse: str) -> tuple[str, Metric]:
    """(name, Metric) of what a test measured: `certification:fabric/busBandwidthGBps`."""
    return f"certification:{category}/{name}", replace(
        CERTIFICATION, worse=worse, unit=unit, words=f"{name} of the certification's {category}"
    )


def table(changes: Mapping[str, Mapping] | None = None) -> dict[str, Metric]:
    """KNOWN with a site's changes and its own metrics: {name: {field: value}}; `None` for a name leaves it out.

    Raises InvalidDocument with every problem.
    """
    found, problems = dict(KNOWN), []
    for name, change in (changes or {}).items():
        where = f"metrics.{name}"
        if change is None:
            found.pop(name, None)
        elif not isinstance(change, Mapping):
            problems.append(Problem("wrong-type", f"is {change!r}", path=where, hint="a map of fields, or null"))
        elif not (wrong := _wrong(change, where, found.get(name))):
            change = {key: _number(value) for key, value in change.items()}
            found[name] = replace(found[name], **change) if name in found else Metric(**{"words": name, **change})
        else:
            problems += wrong
    if problems:
        raise InvalidDocument(problems)
    return found


def _number(value: object) -> object:
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


_CHOICES = {"kind": KINDS, "worse": WORSE, "suggestion": SUGGESTIONS}
_WHOLE = ("baseline", "confirm")


def _wrong(change: Mapping, where: str, known: Metric | None) -> list[Problem]:
    names = [each.name for each in fields(Metric)]
    problems = []
    for key, value in change.items():
        path, hint = f"{where}.{key}", ""
        if key not in names:
            problems.append(Problem("unknown-field", "no field of a metric", path=path, hint=nearest(key, names)))
            continue
        if key in _CHOICES:
            hint = "" if value in _CHOICES[key] else "one of " + ", ".join(_CHOICES[key])
        elif key in ("relative", "partial"):
            hint = "" if isinstance(value, bool) else "true or false"
        elif key in ("unit", "words"):
            hint = "" if isinstance(value, str) else "a text"
        elif key != "limit" or value is not None:
            least = {"baseline": 2, "confirm": 1, "hours": 0.25}.get(key, 0)
            sound = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
            if not sound or value < least or (key in _WHOLE and value != int(value)):
                hint = f"a {'whole ' if key in _WHOLE else ''}number from {least}"
        if hint:
            problems.append(Problem("wrong-value", f"is {value!r}", path=path, hint=hint))
    if known is None:
        name = where.removeprefix("metrics.")
        hint = f"a metric of the site's own says all of it; {nearest(name, KNOWN)}"
        problems += [
            Problem("missing", "is missing", path=f"{where}.{key}", hint=hint)
            for key in ("kind", "worse", "unit")
            if key not in change
        ]
    judged = {"effect": known.effect if known else 0, "limit": known.limit if known else None, **change}
    floor = change.get("floor", known.floor if known else 0)
    if not problems and judged["effect"] and not floor:
        problems.append(Problem("missing", "is 0", path=f"{where}.floor", hint="the least spread that is believed"))
    if not problems and not judged["effect"] and judged["limit"] is None:
        problems.append(
            Problem("missing", "nothing is judged", path=where, hint="give floor and effect, or limit, or both")
        )
    return problems
