"""Rendering every shipped recipe for every deployer, from locks in memory; nothing is cached between two bundles."""

from __future__ import annotations

import json
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / ".build/collections"))

from ansible_collections.goodput.fleet.plugins.module_utils.bundles import options, render
from ansible_collections.goodput.fleet.plugins.module_utils.recipes import resolve
from ansible_collections.goodput.fleet.plugins.module_utils.recipes.catalog import load_catalog
from ansible_collections.goodput.fleet.plugins.module_utils.records import yamltree

BOUND = 15.0  # ms for one bundle, the mean over all


def milliseconds(work) -> float:
    """CPU time, the least of three runs: what the work costs, not what else the machine does."""
    times = []
    for _run in range(3):
        began = time.process_time()
        work()
        times.append((time.process_time() - began) * 1000)
    return min(times)


def main() -> int:
    catalog = load_catalog([str(ROOT / "gitops/catalog")])
    locks = [json.loads(json.dumps(resolve.resolve(catalog, recipe.criteria))) for recipe in catalog.recipes]
    given = options.read({"repo_url": "https://git.example.com/fleet.git", "path": "clusters/prod-1"})
    dumps = statistics.mean(milliseconds(lambda lock=lock: yamltree.dump(lock)) for lock in locks)
    means, size = [], 0
    for deployer in render.RENDERERS:
        mean = statistics.mean(milliseconds(lambda lock=lock: render.render(lock, deployer, given)) for lock in locks)  # noqa: B023
        means.append(mean)
        size += sum(len(content) for lock in locks for content in render.render(lock, deployer, given).values())
        print(f"bundle_render_{deployer} {mean:.2f} ms {mean / dumps:.2f}x-lock-dump - ok")
    mean = statistics.mean(means)
    print(f"bundle_bytes {size / len(locks) / len(means) / 1024:.1f} KiB - - ok")
    print(
        f"bundle_render {mean:.2f} ms {mean / dumps:.2f}x-lock-dump {BOUND:.0f} {'ok' if mean <= BOUND else 'MISSED'}"
    )
    return int(mean > BOUND)


if __name__ == "__main__":
    sys.exit(main())
