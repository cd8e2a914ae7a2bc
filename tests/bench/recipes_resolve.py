"""Loading and linting the shipped catalogue, and resolving every recipe in it, inside one process.

Each figure is the best of several runs: what the program costs, not what its neighbours on the machine do.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / ".build/collections"))

import yaml
from ansible_collections.goodput.fleet.plugins.module_utils.recipes.catalog import load_catalog
from ansible_collections.goodput.fleet.plugins.module_utils.recipes.lint import lint
from ansible_collections.goodput.fleet.plugins.module_utils.recipes.resolve import resolve

CATALOG = ROOT / "gitops/catalog"
BOUNDS = {"resolve_slowest_recipe": 3.0, "resolve_mean": 3.0, "catalog_load": 500.0, "catalog_lint": 2000.0}  # ms


def best_ms(call: Callable[[], object], runs: int = 25) -> float:
    times = []
    for _ in range(runs):
        began = time.perf_counter()
        call()
        times.append((time.perf_counter() - began) * 1000)
    return min(times)


def parse_only() -> None:
    """What reading the same files costs with nothing checked: the floor of a load."""
    for path in (path for folder in ("registry", "overlays", "values") for path in CATALOG.glob(f"{folder}/**/*.yaml")):
        yaml.load(path.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def main() -> int:
    catalog = load_catalog([str(CATALOG)])
    resolved, copied = {}, {}
    for overlay in catalog.recipes:
        lock = resolve(catalog, overlay.criteria)
        resolved[overlay.name] = best_ms(lambda criteria=overlay.criteria: resolve(catalog, criteria))
        copied[overlay.name] = best_ms(lambda lock=lock: json.loads(json.dumps(lock)))
    slowest = max(resolved, key=lambda name: resolved[name])
    load, floor = best_ms(lambda: load_catalog([str(CATALOG)]), 5), best_ms(parse_only, 5)
    figures = [
        ("resolve_slowest_recipe", resolved[slowest], f"{resolved[slowest] / copied[slowest]:.1f}x-json-copy-of-lock"),
        ("resolve_mean", statistics.mean(resolved.values()), f"{len(resolved)}-recipes"),
        ("catalog_load", load, f"{load / floor:.1f}x-parsing-only"),
        ("catalog_lint", best_ms(lambda: lint(load_catalog([str(CATALOG)])), 3), "with-load"),
    ]
    for name, value, ratio in figures:
        print(f"{name} {value:.2f} ms {ratio} {BOUNDS[name]:g} {'ok' if value <= BOUNDS[name] else 'MISSED'}")
    return int(any(value > BOUNDS[name] for name, value, _ratio in figures))


if __name__ == "__main__":
    sys.exit(main())
