"""Synthetic fleets: healthy noise as it is, with what a test makes worse."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle import degradation, metrics
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle.series import History, utc

HOUR, DAY = 3600.0, 86400.0
NOW = 1_795_910_400.0  # 2026-11-29T00:00:00Z: a window of six hours has just ended
KEEP = 60 * DAY
Shape = Callable[[float], float]  # age in days -> what is added


def name(number: int) -> str:
    return f"gpu-{number:04d}"


def fleet(nodes: int, **more: str) -> dict[str, dict]:
    return {
        name(number): {"product": "H100", "role": "", "domain": f"rack-{number // 8}", **more}
        for number in range(nodes)
    }


def times(days: float, every: float = HOUR, until: float = NOW) -> Iterator[float]:
    at = until - days * DAY
    while at < until:
        yield at
        at += every


def history(table: dict | None = None, now: float = NOW, nodes: dict | None = None, keep: float = KEEP) -> History:
    return History(table or metrics.table(), now, keep, nodes)


def add(found: History, node: str, metric: str, value: float, at: float, entity: str = "", boot: str = "b1") -> None:
    line = {"node": node, "entity": entity, "bootId": boot, "at": utc(at), "values": {metric: value}}
    found.add(line, "made")


def gauges(
    metric: str,
    nodes: int,
    usual: float,
    noise: float,
    worse: dict[str, Shape] | None = None,
    days: float = 21,
    seed: int = 1,
    every: float = HOUR,
    everyone: Shape = lambda age: 0.0,
    apart: float = 0.0,
) -> History:
    """A gauge of each node with normal noise; `apart`: how much machines differ for good."""
    dice, found = random.Random(seed), history()
    for number in range(nodes):
        node, own = name(number), usual + dice.gauss(0, apart)
        shape = (worse or {}).get(node, lambda age: 0.0)
        for at in times(days, every):
            age = (NOW - at) / DAY
            add(found, node, metric, own + dice.gauss(0, noise) + shape(age) + everyone(age), at)
    return found


def counters(
    metric: str, nodes: int, per_hour: float, worse: dict[str, Shape] | None = None, days: float = 21, seed: int = 1
) -> History:
    """A counter of each node to which events come by chance."""
    dice, found = random.Random(seed), history()
    for number in range(nodes):
        node, total = name(number), 0
        shape = (worse or {}).get(node, lambda age: 0.0)
        for at in times(days):
            expected = per_hour + shape((NOW - at) / DAY)
            total += sum(dice.random() < expected / 50 for _chance in range(50)) if expected else 0
            add(found, node, metric, total, at)
    return found


def since(days: float, amount: float) -> Shape:
    """A step, so many days ago."""
    return lambda age: amount if age <= days else 0.0


def decide(found: History, nodes: int, **settings: float) -> dict:
    return degradation.decide(found, fleet(nodes), found.now, degradation.Settings.checked(**settings))


def blamed(decision: dict) -> list[str]:
    return sorted({one["node"] for one in decision["findings"]})
