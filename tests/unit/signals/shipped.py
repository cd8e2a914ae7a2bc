"""The shipped signal tables, and the shortest way from lines to events."""

from __future__ import annotations

from pathlib import Path

from ansible_collections.goodput.fleet.plugins.module_utils.signals import kernel, tables

CATALOG = Path(__file__).parents[3] / "gitops" / "catalog"
TABLES = tables.load_catalog([str(CATALOG)])
RECEIVED = "2026-11-29T18:00:00Z"
BOOT = "6e43a052-e544-467b-a972-63d7cd2ce80a"


def parse(log, **context) -> dict:
    given = {"node": "gpu-0007", "boot_id": BOOT, "received": RECEIVED, "source": "kern.log", **context}
    return kernel.parse(log, TABLES, kernel.Context(**given))


def specs(*lines: str, **context) -> list[dict]:
    """The specs of the events of these lines, of which none may be unreadable."""
    result = parse("\n".join(lines) + "\n", **context)
    assert result["unparsed"] == []
    return [event["spec"] for event in result["events"]]


def one(*lines: str, **context) -> dict:
    (spec,) = specs(*lines, **context)
    return spec


def entities(spec: dict) -> dict[str, str]:
    return {entity["entityType"]: entity["entityValue"] for entity in spec["entitiesImpacted"]}
