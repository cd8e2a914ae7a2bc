"""Runs as the plan makes them, for the catalogue's own tests."""

from __future__ import annotations

from pathlib import Path

from ansible_collections.goodput.fleet.plugins.module_utils.certification import catalogue
from ansible_collections.goodput.fleet.plugins.module_utils.certification.planned_run import Team, build

CATALOG = Path(__file__).parents[3] / "gitops/catalog"


def a_run(variant: str = "nccl-all-reduce", nodes: int = 2, domain: str = "communication", **more) -> dict:
    """`gpus`, `nics`, `tolerated`, `names` are the team's; the rest are options of the category."""
    names = more.pop("names", None) or [f"gpu-{index:04}" for index in range(nodes)]
    team = Team(
        names=names,
        domains=[None] * len(names),
        accelerator="h100",
        product="",
        gpus_per_node=more.pop("gpus", 8),
        gpu_resource="nvidia.com/gpu",
        nics_per_node=more.pop("nics", 0),
        tolerated=more.pop("tolerated", []),
    )
    category = {"name": more.pop("category", variant), "domain": domain, "variant": variant}
    options = {"image": "registry.example.com/tests:1", **more}
    resolved = catalogue.load_tests([CATALOG]).resolve({**category, "options": options}, options, "h100")
    return build(resolved, team, 1, "screen")
