# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bounds of a test's metrics: read once, with every fault told, then held against what a run measured. Pure.

    bounds = load(tests.resolve(category))
    judged = judge(bounds, parsed["runs"], {"accelerator": "h100", "scope": "cross", "fleet": [runs of each peer]})

Every bound that applies must hold. A bound may be for one message size, for groups inside a domain or across domains,
or for one accelerator; one over `fleet.median` and `fleet.mad` compares with the peers: other nodes or groups of the
same kind in the same test.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ansible_collections.goodput.fleet.plugins.module_utils.certification import expressions
from ansible_collections.goodput.fleet.plugins.module_utils.records.cel import CelError, Failure
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, Problem, nearest

MIN_PEERS = 5
# parsers that name metrics after what the output holds, and how such names end
OPEN = {"dcgm_diag": (".min", ".max"), "nvbandwidth": (".min", ".max", ".mean", ".sum")}
# where a run has a metric for each message size: in the list `sizes` of collectives, else in `rows`
PER_SIZE = {
    "busBandwidthGBps": "busbw",
    "algBandwidthGBps": "algbw",
    "busBandwidthInPlaceGBps": "inPlaceBusbw",
    "bandwidthAverageGbps": "average",
    "bandwidthPeakGbps": "peak",
    "messageRateMpps": "messageRate",
    "latencyTypicalUs": "typical",
    "latencyAverageUs": "average",
    "latencyMinUs": "min",
    "latencyMaxUs": "max",
    "latencyP99Us": "p99",
    "latencyP999Us": "p999",
}
# a collective's size is rounded to what its ranks can share
SIZE_TOLERANCE = 0.01
SHOWN = 80  # letters of an expression that is wrong
_BYTES = re.compile("[0-9]{1,16}[KMGT]?")
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


@dataclass(frozen=True)
class Bound:
    """`name` is the metric in the parser's words; `size` in bytes."""

    metric: str
    name: str
    compiled: expressions.Compiled
    size: int | None = None
    scope: str = ""
    accelerator: str = ""
    source: str = ""
    unit: str = ""
    direction: str = ""
    min_peers: int = MIN_PEERS

    def as_dict(self) -> dict:
        """The fields that are set, as the report has them."""
        fields = {"metric": self.metric, "expression": self.compiled.text, "size": self.size, "scope": self.scope}
        fields |= {"accelerator": self.accelerator, "source": self.source}
        return {name: value for name, value in fields.items() if value not in (None, "")}


@dataclass(frozen=True)
class Bounds:
    """All bounds of a category; `warnings` are [text]."""

    entries: tuple[Bound, ...] = ()
    warnings: tuple[str, ...] = field(default=())

    @property
    def compare(self) -> bool:
        """Whether any looks at the peers, which have to be sought among all other runs."""
        return any(bound.compiled.uses_fleet for bound in self.entries)


def load(resolved: Mapping) -> Bounds:
    """The bounds of a resolved test, or of a run. Raises InvalidDocument with every problem."""
    metrics, tool = resolved["metrics"], resolved["parser"]["tool"]
    entries: list[Bound] = []
    problems: list[Problem] = []
    warnings: list[str] = []
    listed = 0
    for given in resolved["bounds"]:
        name, path = given["metric"], f"categories.{resolved['category']}."
        if given.get("source") == "thresholds":
            path += f"thresholds.{name}"
        else:
            path, listed = f"{path}bounds[{listed}]", listed + 1
        if not _known(name, metrics, tool):
            message = f"{resolved['category']} does not measure {name!r}"
            problems.append(Problem("unknown-metric", message, path=path, hint=_valid(name, metrics, tool)))
            continue
        if given.get("size") not in (None, "") and name not in PER_SIZE:
            hint = f"valid: {', '.join(sorted(set(PER_SIZE) & set(metrics)) or PER_SIZE)}"
            problems.append(Problem("bad-size", f"{name} is not measured per message size", path=path, hint=hint))
            continue
        try:
            bound = _bound(given, metrics.get(name, {}))
        except CelError as error:
            message = f"{_excerpt(given['expression'])!r} is no bound: {error}"
            problems.append(Problem("bad-expression", message, path=path))
            continue
        entries.append(bound)
        if bound.size is not None and (largest := _largest(resolved)) and bound.size > largest:
            warnings.append(f"{path}: {given['size']} is beyond the largest size {_size(largest)}: it is not measured")
        passing = _backwards(bound)
        if passing:
            warnings.append(f"{path}: {bound.compiled.text!r} lets {passing} values pass, {bound.direction} is better")
    if problems:
        raise InvalidDocument(problems)
    return Bounds(tuple(entries), tuple(warnings))


def _bound(given: Mapping, about: Mapping) -> Bound:
    """`about` is what the test says of the metric. Raises CelError."""
    size = given.get("size")
    return Bound(
        given["metric"],
        about.get("field", given["metric"]),
        expressions.compile_bound(given["expression"]),
        bytes_of(size) if size not in (None, "") else None,
        given.get("scope", ""),
        given.get("accelerator", ""),
        given.get("source", ""),
        about.get("unit", ""),
        about.get("direction", ""),
        given.get("minPeers", MIN_PEERS),
    )


def _largest(resolved: Mapping) -> int:
    """The largest message size of the test in bytes; 0 where it does not tell."""
    text = str((resolved.get("variables") or {}).get("maxBytes", ""))
    return bytes_of(text) if _BYTES.fullmatch(text) else 0


def _backwards(bound: Bound) -> str:
    """low or high, where a bound lets pass only what is worse."""
    lowest, highest = bound.compiled.lowest, bound.compiled.highest
    if bound.direction == "higher" and lowest and not highest:
        return "low"
    return "high" if bound.direction == "lower" and highest and not lowest else ""


def _known(name: str, metrics: Mapping, tool: str) -> bool:
    return name in metrics or name.endswith(OPEN.get(tool, ("\0",)))


def _valid(name: str, metrics: Mapping, tool: str) -> str:
    if tool in OPEN:
        return nearest(name, metrics) or "such as " + ("pcie.gpu_to_host_bandwidth.min" if tool == "dcgm_diag" else "")
    return nearest(name, metrics) or "it has no parser, or its parser has no metric"


def bytes_of(size: object) -> int:
    """Bytes of 1G, 512M or 8 as nccl-tests counts them: K is 1,024."""
    text = str(size)
    unit = text[-1:] if text[-1:] in "KMGT" else ""
    return int(text.removesuffix(unit)) * _UNITS[unit]


def judge(bounds: Bounds, runs: Sequence[Mapping], context: Mapping | None = None) -> dict:
    """What the runs of one test are worth.

    `runs` are a parser's; each value that one of them has must hold. `context`: {accelerator, scope: "domain" |
    "cross", fleet: [runs of one peer, ...]}. Gives {violations: [{metric, value, unit, comparator, bound, expression,
    source, …, text}], notMeasured: [{metric, …, why, text}], boundsUsed: [{…, value, holds: bool | None}], uncovered:
    [metric] that are bounded for other accelerators or scopes only, unbounded: nothing was bounded here, or not all}.
    """
    context = context or {}
    violations: list[dict] = []
    missing: list[dict] = []
    used: list[dict] = []
    covered: set[str] = set()
    for bound in bounds.entries:
        applies, why = _applies(bound, context)
        if applies is False:
            continue
        covered.add(bound.metric)
        entry = {**bound.as_dict(), "unit": bound.unit, "value": None, "holds": None}
        used.append(entry)
        values = _values(runs, bound) if applies else []
        fleet = None
        if applies and not values:
            size = f" at {_size(bound.size)}" if bound.size is not None else ""
            why = f"{bound.metric} was not measured{size}"
        elif applies and bound.compiled.uses_fleet:
            fleet, why = _fleet(bound, context.get("fleet") or ())
            if fleet:
                entry["fleet"] = fleet
        if not why:
            entry["value"] = value = _worst(values, bound)
            entry["unit"] = bound.unit or _unit(runs, bound)
            entry["limits"] = [
                {"comparator": clause.comparator, "bound": limit} for clause, limit in bound.compiled.bounds(fleet)
            ]
            why, failing = _hold(bound, values, fleet)
            entry["holds"] = None if why else not failing
            if failing:
                entry["value"] = value = failing[0]
                violations += _violations(bound, entry, value, fleet)
        if why:
            missing.append({**bound.as_dict(), "why": why, "text": f"{why} (bound: {bound.compiled.text})"})
    uncovered = sorted({bound.metric for bound in bounds.entries} - covered)
    return {
        "violations": violations,
        "notMeasured": missing,
        "boundsUsed": used,
        "uncovered": uncovered,
        "unbounded": not used or bool(uncovered),
    }


def peers(run: Mapping, others: Iterable[tuple[Mapping, Mapping | None]]) -> list[list[Mapping]]:
    """The `fleet` of a run's context: what nodes and groups of the same kind measured in the same test.

    `others` are (planned run, what its parser read). A peer has none of the run's nodes, the same spec, accelerator,
    product and scope, and an output that is complete; what it measured in several repeats is one peer's.
    """
    kind, nodes = _kind(run), set(run["nodes"])
    found: dict[tuple, list[Mapping]] = {}
    for other, parsed in others:
        if parsed and parsed.get("complete") and nodes.isdisjoint(other["nodes"]) and _kind(other) == kind:
            found.setdefault(tuple(sorted(other["nodes"])), []).extend(parsed.get("runs") or ())
    return list(found.values())


def _kind(run: Mapping) -> tuple:
    return tuple(run.get(key) for key in ("test", "spec", "accelerator", "product", "scope"))


def _applies(bound: Bound, context: Mapping) -> tuple[bool | None, str]:
    """Whether the bound is for these nodes; None and why, where that cannot be told."""
    accelerator, scope = context.get("accelerator") or "", context.get("scope") or ""
    if accelerator and bound.accelerator and accelerator.lower() != bound.accelerator.lower():
        return False, ""
    if scope and bound.scope and scope != bound.scope:
        return False, ""
    if bound.accelerator and not accelerator:
        return None, f"the bound of {bound.metric} is for {bound.accelerator}, and what these nodes have is not known"
    if bound.scope and not scope:
        place = "groups in one domain" if bound.scope == "domain" else "groups across domains"
        return None, f"the bound of {bound.metric} is for {place}, and the domains of these nodes are not known"
    return True, ""


def _hold(bound: Bound, values: list[float], fleet: dict | None) -> tuple[str, list[float]]:
    """(why it cannot be decided, values that break the bound)."""
    failing = []
    for value in values:
        holds = bound.compiled.holds(value, fleet)
        if isinstance(holds, Failure):
            return f"{bound.metric} {value:g} cannot be compared: {holds.why}", []
        if not holds:
            failing.append(value)
    return "", failing


def _violations(bound: Bound, entry: dict, value: float, fleet: dict | None) -> list[dict]:
    found = []
    unit = f" {entry['unit']}" if entry["unit"] else ""
    size = f" at {_size(bound.size)}" if bound.size is not None else ""
    for comparator, limit in bound.compiled.failing(value, fleet):
        wanted = f"{comparator} {limit:g}{unit}" if limit is not None else bound.compiled.text
        origin = bound.source
        if fleet:
            origin += f"; {fleet['count']:g} peers, median {fleet['median']:g}, MAD {fleet['mad']:g}"
        found.append(
            {
                **bound.as_dict(),
                "value": value,
                "unit": entry["unit"],
                "comparator": comparator or None,
                "bound": limit,
                **({"fleet": fleet} if fleet else {}),
                "text": f"{bound.metric} is {value:g}{unit}{size}, not {wanted} (bound from {origin})",
            }
        )
    return found


def _fleet(bound: Bound, peers: Sequence[Sequence[Mapping]]) -> tuple[dict | None, str]:
    """({median, mad, count} of the peers' values, why there is none)."""
    values = [_worst(measured, bound) for runs in peers if (measured := _values(runs, bound))]
    if len(values) < max(bound.min_peers, 1):
        return (
            None,
            f"{bound.metric} was measured on {len(values)} peers of the same kind, {bound.min_peers} are needed",
        )
    median = statistics.median(values)
    mad = statistics.median(abs(value - median) for value in values)
    return {"median": round(median, 6), "mad": round(mad, 6), "count": len(values)}, ""


def _values(runs: Sequence[Mapping], bound: Bound) -> list[float]:
    return [value for run in runs if (value := _value(run, bound)) is not None]


def _value(run: Mapping, bound: Bound) -> float | None:
    if bound.size is None:
        measured = (run.get("metrics") or {}).get(bound.name)
        return _number(measured.get("value") if isinstance(measured, Mapping) else None)
    key = PER_SIZE[bound.metric]
    rows = run.get("sizes") if "sizes" in run else run.get("rows")
    near = [
        (abs(row["size"] - bound.size), value)
        for row in rows or ()
        if _number(row.get("size")) is not None
        and abs(row["size"] - bound.size) <= SIZE_TOLERANCE * bound.size
        and (value := _number(row.get(key))) is not None
    ]
    return min(near)[1] if near else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return float(value)


def _worst(values: list[float], bound: Bound) -> float:
    return max(values) if bound.direction == "lower" else min(values)


def _excerpt(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _unit(runs: Sequence[Mapping], bound: Bound) -> str:
    units = [(run.get("metrics") or {}).get(bound.name, {}).get("unit") for run in runs]
    return next((unit for unit in units if unit), "")


def _size(size: int) -> str:
    for unit in "TGMK":
        if size and size % _UNITS[unit] == 0:
            return f"{size // _UNITS[unit]}{unit}"
    return f"{size} bytes"
