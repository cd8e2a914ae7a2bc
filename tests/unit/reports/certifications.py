"""Results of certifications, as the rooms make them from runs."""

from __future__ import annotations

from ansible_collections.goodput.fleet.plugins.module_utils.certification import bounds, results, verdict
from ansible_collections.goodput.fleet.plugins.module_utils.records import digest

SIZES = [1 << power for power in range(20, 31, 2)]


def run(*nodes: str, category: str = "all-reduce", **fields) -> dict:
    return {
        "id": digest.sha256([category, *nodes])[7:19],
        "category": category,
        "categories": [category],
        "test": "communication/nccl-all-reduce",
        "nodes": list(nodes),
        "launcher": "indexed-job",
        "parser": {"tool": "nccl"},
        "expected": {},
        "limits": {},
        "repeat": 1,
        "purpose": "screen",
        **fields,
    }


def parsed(speed: float, **fields) -> dict:
    """A collective that reaches the speed at its biggest size."""
    sizes = [{"size": size, "busbw": round(speed * size / (size + (1 << 24)), 2)} for size in SIZES]
    metrics = {"busBandwidthGBps": {"value": speed, "unit": "GB/s"}, "wrongValues": {"value": 0, "unit": "elements"}}
    return {
        "tool": "nccl-tests",
        "complete": True,
        "runs": [{"test": "all_reduce", "sizes": sizes, "metrics": metrics, "ncclVersion": "2.28.7"}],
        "findings": [],
        "lines": 40,
        **fields,
    }


def observed(one: dict, **fields) -> dict:
    pods = [{"name": f"gp-{node}", "node": node, "phase": "Succeeded", "exitCode": 0} for node in one["nodes"]]
    return {"phase": "succeeded", "pods": pods, **fields}


def bounded(*expressions: str) -> bounds.Bounds:
    given = [{"metric": "busBandwidthGBps", "expression": text, "source": "thresholds"} for text in expressions]
    metrics = {"busBandwidthGBps": {"unit": "GB/s", "direction": "higher", "field": "busBandwidthGBps"}}
    return bounds.load({"category": "all-reduce", "metrics": metrics, "parser": {"tool": "nccl"}, "bounds": given})


def made(speeds: dict[str, float], *expressions: str, asked=None, allow_unbounded=False, **fields) -> dict:
    """A certification of nodes that are tested alone: {node: GB/s}."""
    runs = [(run(node), parsed(speed)) for node, speed in speeds.items()]
    limits = bounded(*expressions)
    rows = [row for one, read in runs for row in verdict.outcomes(one, read, observed(one), limits)]
    verdicts = verdict.combine(rows, ["all-reduce"], asked or list(speeds), allow_unbounded)
    categories = [{"name": "all-reduce", "test": "communication/nccl-all-reduce"}]
    return results.build("acceptance", rows, verdicts, categories, runs, **fields)
