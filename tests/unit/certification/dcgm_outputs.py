"""Outputs of DCGM diagnostics, built the way its versions print them."""

from __future__ import annotations

import json


def old_json(tests: dict[str, list[dict | None]], version: str | None = "3.3.5", category: str = "Hardware") -> str:
    root: dict = {
        "DCGM GPU Diagnostic": {
            "test_categories": [
                {
                    "category": category,
                    "tests": [None, *({"name": name, "results": results} for name, results in tests.items())],
                }
            ]
        }
    }
    if version:
        root |= {"version": version, "Driver Version Detected": "550.90.07"}
    return json.dumps(root, indent=4)


def warning(message: str, identity: int, category: int, severity: int) -> dict:
    return {"warning": message, "error_id": identity, "error_category": category, "error_severity": severity}


def entity(gpu: int, status: str = "Pass", *warnings: dict, group: str = "GPU", info: list[str] | None = None) -> dict:
    result: dict = {"entity_group": group, "entity_group_id": 1, "entity_id": gpu, "status": status}
    if warnings:
        result["warnings"] = list(warnings)
    if info:
        result["info"] = info
    return result


def new_json(tests: dict[str, tuple[str, list[dict]]], gpus: int = 8, **more: object) -> str:
    root = {
        "DCGM Diagnostic": {
            "test_categories": [
                {
                    "category": "Integration",
                    "tests": [
                        {"name": name, "results": results, "test_summary": {"status": status}}
                        for name, (status, results) in tests.items()
                    ],
                }
            ]
        },
        "entity_groups": [
            {
                "entity_group": "GPU",
                "entity_group_id": 1,
                "entities": [
                    {"device_id": "2330", "entity_id": gpu, "serial_num": f"16530{gpu}"} for gpu in range(gpus)
                ],
            }
        ],
        "metadata": {"Driver Version Detected": "570.86.15", "version": "4.4.1"},
        **more,
    }
    return json.dumps(root, indent=2)


RULE = "+---------------------------+------------------------------------------------+"


def section(name: str) -> str:
    return f"+-----  {name}  ".ljust(28, "-") + "+------------------------------------------------+"


def row(name: str, text: str) -> list[str]:
    """A message is cut every 45 characters, wherever that falls."""
    pieces = [text[at : at + 45] for at in range(0, len(text), 45)] or [""]
    return [f"| {name if not index else '':<25} | {piece:<46} |" for index, piece in enumerate(pieces)]


def table(*rows: str | list[str], version: str = "3.3.8", devices: int = 8, ended: bool = True) -> str:
    lines = [
        "Successfully ran diagnostic for group.",
        RULE,
        *row("Diagnostic", "Result"),
        "+===========================+================================================+",
        "|-----  Metadata  ----------+------------------------------------------------|",
        *row("DCGM Version", version),
        *row("Driver Version Detected", "550.90.07"),
        *row("GPU Device IDs Detected", ",".join(["2330"] * devices)),
    ]
    for item in rows:
        lines.extend([item] if isinstance(item, str) else item)
    return "\n".join([*lines, RULE] if ended else lines) + "\n"
