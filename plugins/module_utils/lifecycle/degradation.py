# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which nodes and GPUs degrade, from their history. Pure, and without a memory: equal history, equal answer.

A series (node, entity, workload, metric) is cut into windows. The last `recent` of them are judged, by two robust
scores, both in spreads (median absolute deviation, never less than the metric's floor) and positive where worse:

    own     change against the series' own earlier windows, less the median change of its peers in that window
    peers   distance from the median of its peers (same metric, product, role and workload) in that window

A window is bad where both reach `enter`, or one reaches `strong`; the change counted must be the metric's `effect`, and
twice that where peers alone say so, since machines may differ for good. `confirm` bad windows in a row begin a
degradation; it ends with `exit_windows` in a row that are not even half as bad. A metric's `limit` is enough alone.

What most peers show together (a driver, a hot summer) is a shift of the fleet and nobody's degradation. Where most of a
domain shows it, the finding says to look at what they share first. What was not measured lately is unknown.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields

from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle.metrics import Metric
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle.series import (
    History,
    Series,
    increases,
    median,
    spread,
    utc,
    windows,
)
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, Problem

Group = tuple[str, str, str, str]  # metric, product, role, workload
_POINTS = 60  # windows that a slope is made from
_SHARED = 3  # nodes of a domain that have to show the same


@dataclass(frozen=True, slots=True)
class Settings:
    enter: float = 4.0
    strong: float = 8.0
    exit_windows: int = 4
    recent: int = 28  # windows that are judged
    min_peers: int = 5  # nodes beside its own
    stale: int = 6  # windows after which nothing is known any more; one measurement a day has to do

    @classmethod
    def checked(cls, **given: float) -> Settings:
        """Raises InvalidDocument with every problem."""
        least = {"enter": 2, "strong": given.get("enter", cls().enter), "recent": 4, "min_peers": 3}
        problems = [
            Problem("wrong-value", f"is {value:g}", path=name, hint=f"at least {least.get(name, 1):g}")
            for name, value in given.items()
            if not math.isfinite(value) or value < least.get(name, 1)
        ]
        if problems:
            raise InvalidDocument(problems)
        whole = {each.name for each in fields(cls) if each.type == "int"}
        return cls(**{name: int(value) if name in whole else value for name, value in given.items()})


@dataclass(slots=True)
class Track:
    """One series, ready to be judged. Windows by their number."""

    node: str
    entity: str
    metric: str
    group: Group
    judged: dict[int, float]
    usual: float | None  # None: too little history of its own
    spread: float
    all: dict[int, float]


@dataclass(slots=True)
class Peers:
    """What the series of a group show in each window that has enough nodes."""

    level: dict[int, float]
    spread: float
    change: dict[int, float]
    nodes: int


def decide(history: History, places: Mapping[str, Mapping], now: float, settings: Settings | None = None) -> dict:
    """{findings, stale, shifts, unknown, counts}.

    places: {node: {product, role, domain}}, every node that is asked about; now: seconds since 1970.
    findings: [{node, entity, workload, metric, score: {own, peers}, value, usual, peers, unit, since, until, windows,
    hours, perDay, evidence, suggestion, shared}], the worst first; a score that could not be made is None.
    stale: the same of what was degraded when it was measured last, but was not measured lately, as a GPU's temperature
    under load while its node is out of service.
    shifts: [{metric, product, role, workload, change, unit, since, nodes, evidence}]. unknown: [{node, why}].
    """
    settings = settings or Settings()
    tracks, totals = [], []
    for (node, entity, workload), mine in history.series.items():
        for name, series in mine.items() if node in places else ():
            metric, place = history.metrics[name], places[node]
            group = (name, place.get("product") or "", place.get("role") or "", workload)
            if metric.effect or metric.kind == "gauge":
                found = windows(series, metric, now)
                if found:
                    tracks.append(_track(node, entity, name, group, found, metric, now, settings))
            if metric.limit is not None and metric.kind != "gauge":
                totals.append((node, entity, group, *_total(series, metric, now, settings)))
    grouped: dict[tuple, list[Track]] = defaultdict(list)
    for track in tracks:
        grouped[track.group].append(track)
    findings, shifts, stale, known = [], [], [], set()
    for group, members in sorted(grouped.items()):
        metric = history.metrics[group[0]]
        peers = _peers(members, metric, settings)
        if metric.effect:
            shifts += _shift(group, members, peers, metric, settings)
            for track in members:
                fresh = _fresh(track.judged, metric, now, settings)
                if fresh:
                    known.add((track.node, track.entity, track.metric))
                if one := _judge(track, peers, metric, settings):
                    (findings if fresh else stale).append(one)
        if metric.limit is not None and metric.kind == "gauge":
            _level(group, members, peers, metric, now, settings, findings, shifts)
    _too_many(totals, history.metrics, settings, findings, shifts)
    findings = _once(findings)
    _share(findings, places)
    findings.sort(key=lambda one: (-_rank(one), one["node"], one["entity"], one["metric"]))
    return {
        "findings": findings,
        # under another workload, it may have been measured since
        "stale": [one for one in stale if (one["node"], one["entity"], one["metric"]) not in known],
        "shifts": shifts,
        "unknown": _unknown(history, places, now, settings),
        "counts": {
            "nodes": len(places),
            "series": sum(map(len, history.series.values())),
            "samples": history.counts["samples"],
            "degraded": len({one["node"] for one in findings}),
        },
    }


# ------------------------------------------------------------ preparing


def _track(
    node: str,
    entity: str,
    name: str,
    group: Group,
    found: dict[int, float],
    metric: Metric,
    now: float,
    settings: Settings,
) -> Track:
    """What is judged is not what it is judged by. A short history gives its beginning as what is usual."""
    numbers = list(found)
    first = numbers[-1] - settings.recent + 1
    split = next((index for index, number in enumerate(numbers) if number >= first), len(numbers))
    if split < metric.baseline:
        split = metric.baseline if len(numbers) >= metric.baseline + metric.confirm else 0
    reference = [found[number] for number in numbers[:split]]
    judged = {number: found[number] for number in numbers[split:][-settings.recent :]}
    if not reference:
        return Track(node, entity, name, group, judged, None, 0.0, found)
    usual = median(reference)
    return Track(node, entity, name, group, judged, usual, max(spread(reference, usual), _floor(metric, usual)), found)


def _floor(metric: Metric, usual: float) -> float:
    return (metric.floor * (abs(usual) or 1.0) if metric.relative else metric.floor) or 1e-12


def _peers(members: list[Track], metric: Metric, settings: Settings) -> Peers:
    values: dict[int, list[float]] = defaultdict(list)
    changes: dict[int, list[float]] = defaultdict(list)
    nodes: dict[int, set[str]] = defaultdict(set)
    for track in members:
        for number, value in track.judged.items():
            values[number].append(value)
            nodes[number].add(track.node)
            if track.usual is not None:
                changes[number].append(value - track.usual)
    many = [number for number in sorted(values) if len(nodes[number]) > settings.min_peers]
    level = {number: median(values[number]) for number in many}
    change = {number: median(changes[number]) for number in many if len(changes[number]) > settings.min_peers}
    if not many:
        return Peers({}, 0.0, {}, 0)
    # of all windows, since the few peers of a small group agree by chance in one
    width = median(spread(values[number], level[number]) for number in many)
    return Peers(level, max(width, _floor(metric, median(level.values()))), change, len(nodes[many[-1]]))


# ------------------------------------------------------------ judging


def _judge(track: Track, peers: Peers, metric: Metric, settings: Settings) -> dict | None:
    """The finding, where the series is degraded at its last window."""
    inside, bad, calm, since = False, 0, 0, 0
    scores: tuple[float | None, float | None] = (None, None)
    for number, value in track.judged.items():
        own, other, own_effect, other_effect = _scores(track, peers, metric, number, value)
        if _holds(own, other, own_effect, other_effect, settings, 0.5 if inside else 1.0):
            since = since if inside or bad else number
            bad, calm = bad + 1, 0
        else:
            calm += 1
            bad = bad if inside else 0
        if not inside and bad >= metric.confirm:
            inside = True
        elif inside and calm >= settings.exit_windows:
            inside, bad = False, 0
        scores = (own, other)
    last = next(reversed(track.judged))
    return _finding(track, peers, metric, scores, since, last) if inside else None


def _scores(
    track: Track, peers: Peers, metric: Metric, number: int, value: float
) -> tuple[float | None, float | None, float, float]:
    """own, peers (None: cannot be told), and how large the change is for each, in effects."""
    sign = 1 if metric.worse == "up" else -1
    own = other = None
    own_effect = other_effect = 0.0
    if track.usual is not None:
        change = sign * (value - track.usual - peers.change.get(number, 0.0))
        own, own_effect = change / track.spread, change / _effect(metric, track.usual)
    if number in peers.level:
        distance = sign * (value - peers.level[number])
        other, other_effect = distance / peers.spread, distance / _effect(metric, peers.level[number])
    return own, other, own_effect, other_effect


def _effect(metric: Metric, usual: float) -> float:
    return metric.effect * (abs(usual) or 1.0) if metric.relative else metric.effect


def _holds(
    own: float | None, other: float | None, own_effect: float, other_effect: float, settings: Settings, factor: float
) -> bool:
    """factor 0.5: whether a degradation that has begun goes on."""
    own_matters, other_matters = own is not None and own_effect >= factor, other is not None and other_effect >= factor
    if own_matters and own >= settings.strong * factor:
        return True
    if other_matters and other >= settings.strong * factor and other_effect >= 2 * factor:
        return True
    return own_matters and other_matters and min(own, other) >= settings.enter * factor


def _fresh(judged: Mapping[int, float], metric: Metric, now: float, settings: Settings) -> bool:
    return next(reversed(judged)) >= int(now // (metric.hours * 3600)) - settings.stale


def _finding(
    track: Track, peers: Peers, metric: Metric, scores: tuple[float | None, float | None], since: int, last: int
) -> dict:
    seconds, value = metric.hours * 3600, track.judged[last]
    found = {
        "node": track.node,
        "entity": track.entity,
        "workload": track.group[3],
        "metric": track.metric,
        "score": {"own": _round(scores[0]), "peers": _round(scores[1])},
        "value": _round(value),
        "usual": _round(track.usual),
        "peers": _round(peers.level.get(last)),
        "unit": metric.unit,
        "since": utc(since * seconds),
        "until": utc((last + 1) * seconds),
        "windows": sum(number >= since for number in track.judged),
        "hours": metric.hours,
        "perDay": _round(_slope(track.all, metric.hours)),
        "suggestion": metric.suggestion,
        "shared": "",
    }
    compared = []
    if found["usual"] is not None:
        compared.append(f"usual for it {found['usual']:g} (score {found['score']['own']:g})")
    if found["peers"] is not None:
        compared.append(f"its peers {found['peers']:g} (score {found['score']['peers']:g})")
    found["evidence"] = (
        f"{metric.words} {_amount(found['value'], metric.unit)}, {', '.join(compared)}, since {found['since']},"
        f" {found['windows']} windows of {metric.hours:g} h"
    )
    return found


def _slope(found: Mapping[int, float], hours: float) -> float | None:
    """Theil-Sen: the median of the slopes between any two windows, per day."""
    points = list(found.items())[-_POINTS:]
    slopes = [
        (later[1] - point[1]) / (later[0] - point[0])
        for index, point in enumerate(points)
        for later in points[index + 1 :]
    ]
    return median(slopes) * 24 / hours if slopes else None


# ------------------------------------------------------------ limits


def _total(series: Series, metric: Metric, now: float, settings: Settings) -> tuple[float, float | None, float]:
    """(increase within what is judged, when it began, when it was measured last)."""
    series.order()
    length = metric.hours * 3600
    if series.times[-1] < now - settings.stale * length:
        return 0.0, None, series.times[-1]
    first = (int(now // length) - settings.recent) * length
    total, since = 0.0, None
    for start, _end, increase in increases(series, metric):
        # of an interval that began before, it is not known how much is recent
        if increase and start >= first:
            total += increase
            since = start if since is None else since
    return total, since, series.times[-1]


def _too_many(
    totals: list[tuple], metrics: Mapping[str, Metric], settings: Settings, findings: list[dict], shifts: list[dict]
) -> None:
    grouped: dict[tuple, list[tuple]] = defaultdict(list)
    for each in totals:
        grouped[each[2]].append(each)
    for group, members in sorted(grouped.items()):
        metric = metrics[group[0]]
        usual, nodes = median(each[3] for each in members), {each[0] for each in members}
        over = [each for each in members if each[3] >= metric.limit]
        days = settings.recent * metric.hours / 24
        if over and usual >= metric.limit and len(nodes) > settings.min_peers:
            shifts.append(
                _shift_of(group, metric, usual, min(each[4] for each in over), nodes, "within the time judged")
            )
            continue
        for node, entity, _group, total, since, last in over:
            findings.append(
                {
                    **_of_limit(node, entity, group, metric, total),
                    "peers": _round(usual),
                    "since": utc(since),
                    "until": utc(last),
                    "evidence": f"{metric.words}: {total:g} within {days:g} days, {metric.limit:g} are too many;"
                    f" its peers {usual:g}",
                }
            )


def _level(
    group: Group,
    members: list[Track],
    peers: Peers,
    metric: Metric,
    now: float,
    settings: Settings,
    findings: list[dict],
    shifts: list[dict],
) -> None:
    """Gauges that are beyond their limit in their last windows."""
    sign, length = (1 if metric.worse == "up" else -1), metric.hours * 3600
    over = []
    for track in members:
        last = list(track.judged.items())[-metric.confirm :]
        beyond = [number for number, value in last if sign * (value - metric.limit) >= 0]
        if len(beyond) == metric.confirm and _fresh(track.judged, metric, now, settings):
            over.append((track, beyond[0]))
    nodes = {track.node for track in members}
    if over and len(over) * 2 > len(members) and len(nodes) > settings.min_peers:
        usual = median(next(reversed(track.judged.values())) for track in members)
        shifts.append(_shift_of(group, metric, usual, min(since for _track, since in over) * length, nodes, "limit"))
        return
    for track, since in over:
        last, value = next(reversed(track.judged.items()))
        findings.append(
            {
                **_of_limit(track.node, track.entity, group, metric, value),
                "usual": _round(track.usual),
                "peers": _round(peers.level.get(last)),
                "since": utc(since * length),
                "until": utc((last + 1) * length),
                "windows": metric.confirm,
                "evidence": f"{metric.words}: {_amount(_round(value), metric.unit)}, the limit is {metric.limit:g}",
            }
        )


def _of_limit(node: str, entity: str, group: Group, metric: Metric, value: float) -> dict:
    return {
        "node": node,
        "entity": entity,
        "workload": group[3],
        "metric": group[0],
        "score": {"own": None, "peers": None},
        "value": _round(value),
        "usual": None,
        "peers": None,
        "unit": metric.unit,
        "windows": 1,
        "hours": metric.hours,
        "perDay": None,
        "suggestion": metric.suggestion,
        "shared": "",
    }


# ------------------------------------------------------------ together


def _shift(group: Group, members: list[Track], peers: Peers, metric: Metric, settings: Settings) -> list[dict]:
    """Whether most of a group got worse together, in its last windows."""
    last = list(peers.change.items())[-metric.confirm :]
    known = [track for track in members if track.usual is not None]
    if len(last) < metric.confirm or not known:
        return []
    sign = 1 if metric.worse == "up" else -1
    usual = median(track.usual for track in known)
    least = max(_effect(metric, usual), settings.enter * median(track.spread for track in known))
    if any(sign * change < least for _number, change in last):
        return []
    since = last[0][0]
    for number, change in reversed(peers.change.items()):
        if sign * change < least:
            break
        since = number
    change = last[-1][1]
    nodes = {track.node for track in members}
    return [_shift_of(group, metric, change, since * metric.hours * 3600, nodes, f"usual was {_round(usual):g}")]


def _shift_of(group: Group, metric: Metric, change: float, since: float, nodes: Iterable[str], why: str) -> dict:
    name, product, role, workload = group
    number = len(set(nodes))
    which = " ".join(part for part in (product, role, workload) if part) or "fleet"
    return {
        "metric": name,
        "product": product,
        "role": role,
        "workload": workload,
        "change": _round(change),
        "unit": metric.unit,
        "since": utc(since),
        "nodes": number,
        "evidence": f"{metric.words}: most of {number} nodes ({which}) changed together by"
        f" {_amount(_round(change), metric.unit)} ({why}) since {utc(since)}: no node is to blame; look at what"
        " changed for all of them, such as the driver, the job or the cooling",
    }


def _once(findings: list[dict]) -> list[dict]:
    """A series is degraded once, whether by its scores or its limit; the scores tell more."""
    found: dict[tuple, dict] = {}
    for one in findings:
        found.setdefault((one["node"], one["entity"], one["workload"], one["metric"]), one)
    return list(found.values())


def _share(findings: list[dict], places: Mapping[str, Mapping]) -> None:
    """Marks what at least half of a domain's nodes show: a switch or a cooling loop is likelier than all of them."""
    members: dict[str, int] = defaultdict(int)
    for place in places.values():
        members[place.get("domain") or ""] += 1
    sick: dict[tuple[str, str], set[str]] = defaultdict(set)
    for one in findings:
        sick[one["metric"], places[one["node"]].get("domain") or ""].add(one["node"])
    for one in findings:
        domain = places[one["node"]].get("domain") or ""
        nodes = sick[one["metric"], domain]
        if domain and len(nodes) >= _SHARED and 2 * len(nodes) >= members[domain]:
            one["suggestion"], one["shared"] = "watch", domain
            one["evidence"] += f"; {len(nodes)} of {members[domain]} nodes of {domain} show it: look at what they share"


def _unknown(history: History, places: Mapping[str, Mapping], now: float, settings: Settings) -> list[dict]:
    """Nodes of which nothing was measured lately: they are neither degraded nor well."""
    latest: dict[str, float] = {}
    for (node, _entity, _workload), mine in history.series.items():
        for name, series in mine.items():
            age = settings.stale * history.metrics[name].hours * 3600
            seen = max(series.times)
            latest[node] = max(latest.get(node, 0.0), math.inf if seen >= now - age else seen)
    return [
        {"node": node, "why": f"last measured at {utc(latest[node])}" if node in latest else "nothing was measured"}
        for node in sorted(places)
        if latest.get(node) != math.inf
    ]


def _rank(one: Mapping) -> float:
    known = [score for score in one["score"].values() if score is not None]
    return max(known, default=100.0)  # beyond a limit is beyond doubt


def _amount(value: float | None, unit: str) -> str:
    return f"{value:g} {unit}".rstrip() if value is not None else "unknown"


def _round(value: float | None) -> float | None:
    """Four digits are more than any of it is worth."""
    return None if value is None else float(f"{value:.4g}")
