"""The forms in which dcgmi prints a health report, written as dcgmi writes them."""

from __future__ import annotations

import json
import textwrap


def as_json(overall: str, entities: dict[tuple[str, str], dict[str, tuple[str, str]]]) -> str:
    """Of {(group, id): {system: (value, message)}}; with the tabs and the line breaks of dcgmi -j."""
    body: dict = {"Overall Health": {"value": overall}}
    for (group, entity), systems in entities.items():
        errors = {name: {"overflow": wrap(message), "value": value} for name, (value, message) in systems.items()}
        place = body.setdefault(group, {"children": {}})["children"]
        place[entity] = {"children": {"Errors": {"children": errors}}, "value": worst(systems)}
    return json.dumps({"body": body, "header": ["Health Monitor Report"]}, indent="\t") + "\n"


def as_tree(overall: str, entities: dict[tuple[str, str], dict[str, tuple[str, str]]]) -> str:
    """The table of DCGM 3 and 4."""
    rule = f"+{'-' * 27}+{'-' * 58}+"
    lines = [rule, f"| {'Health Monitor Report':<85}|", rule.replace("-", "="), row(0, "Overall Health", overall)]
    before = None
    for (group, entity), systems in entities.items():
        lines += [row(0, group, "")] if group != before else []
        before = group
        lines += [row(1, entity, worst(systems)), row(2, "Errors", "")]
        for name, (value, message) in systems.items():
            lines += [row(3, name, value), *(row(0, "", piece) for piece in wrap(message))]
    return "\n".join([*lines, rule]) + "\n"


def row(level: int, label: str, value: str) -> str:
    left = f"{'-> ':>{level * 3}}{label}" if level else label
    return f"| {left:<25} | {value:<56} |"


def wrap(message: str) -> list[str]:
    return textwrap.wrap(message, 54, break_long_words=False, break_on_hyphens=False)


def worst(systems: dict) -> str:
    return "Failure" if any(value == "Failure" for value, _message in systems.values()) else "Warning"
