# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report that nccl-tests writes with `-J`, in a file of its own or inside another text, whole or broken off.

The writer is a row of printf: truth values are texts in some versions, `root` is a padded text, two keys were misspelt
from 2.17.3 to 2.17.8, and a process that dies leaves the document open. `env` holds all variables of the process,
secrets among them, and is never looked at.
"""

from __future__ import annotations

import json
import re

from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers import nccl_info, nccl_table

_BEGIN = re.compile(
    r"\{\s*\"(?:version|start_time|args|env|nccl_version|config|results|out_of_bounds|average_bus_bandwi\w{2,5})\"\s*:"
)
_KEYS = {"results", "config", "nccl_version"}
# what JSON is made of; anything else ends a document that was broken off
_TOKEN = re.compile(
    r"\s+|\"(?:[^\"\\\n]|\\.)*\"|[{}\[\],:]|-?(?:\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|nan|inf|Infinity)|NaN|Infinity"
    r"|true|false|null"
)
_NOT_JSON = re.compile(r"(?<=[:\[,\s])(-?)(?:nan|inf|NaN|Infinity)(?=[\s,\]}])")
_DEPTH = 64


def find(text: str, after: int = 0) -> tuple[dict, int, int, bool] | None:
    """(document, start, end, whole) of the next report in the text, None where there is none."""
    while match := _BEGIN.search(text, after):
        document, end, whole = _document(text, match.start())
        if isinstance(document, dict) and _KEYS & document.keys():
            return document, match.start(), end, whole
        after = max(end, match.end())
    return None


def _document(text: str, begin: int) -> tuple[object, int, bool]:
    stack: list[str] = []
    position, cut, closing, whole = begin, begin, "", False
    while token := _TOKEN.match(text, position):
        sign, position = token[0], token.end()
        if sign in ("{", "["):
            stack.append("}" if sign == "{" else "]")
        elif sign in ("}", "]"):
            if not stack or stack.pop() != sign:
                break
            cut, closing = position, "".join(reversed(stack))
            if not stack:
                whole = True
                break
        elif sign == ",":
            cut, closing = token.start(), "".join(reversed(stack))
        if len(stack) > _DEPTH:
            break
    try:
        return json.loads(_NOT_JSON.sub("null", text[begin:cut]) + closing), position, whole
    except (ValueError, RecursionError):
        return None, position, False


def header(document: dict) -> dict:
    """The facts about the run, in the names the text's header gets (see nccl_run)."""
    config = document.get("config") if isinstance(document.get("config"), dict) else {}
    facts: dict = {}
    for name, key in (
        ("threads", "nthreads"),
        ("gpusPerThread", "ngpus"),
        ("minBytes", "minimum_bytes"),
        ("maxBytes", "maximum_bytes"),
        ("warmupIters", "warmup_iters"),
        ("iters", "iterations"),
        ("aggIters", "aggregated_iterations"),
        ("graph", "graph"),
    ):
        if _count(config.get(key)) is not None:
            facts[name] = _count(config[key])
    for key, unit in (("step_factor", "factor"), ("step_bytes", "bytes")):
        if _count(config.get(key)) is not None:
            facts["step"] = {"value": _count(config[key]), "unit": unit}
    if _count(config.get("validation")) is not None:
        facts["check"] = bool(_count(config["validation"]))
    return facts


def ranks(document: dict) -> list[dict]:
    """The first GPU of each process; the writer leaves out the others."""
    config = document.get("config")
    devices = config.get("devices") if isinstance(config, dict) else None
    result = []
    for device in devices if isinstance(devices, list) else []:
        if not isinstance(device, dict) or _count(device.get("rank")) is None:
            continue
        result.append(
            {
                "rank": _count(device["rank"]),
                "group": _count(device.get("group")) or 0,
                "pid": _count(device.get("pid")),
                "host": str(device.get("hostname", ""))[:256],
                "device": _count(device.get("device")),
                "busId": str(device.get("device_hex", ""))[:64],
                "name": str(device.get("device_info", ""))[:256],
            }
        )
    return result


def rows(document: dict) -> tuple[list[dict], int]:
    """(rows as `nccl_table.row` gives them, how many could not be read)."""
    result, broken = [], 0
    entries = document.get("results")
    for entry in entries if isinstance(entries, list) else []:
        row = _row(entry) if isinstance(entry, dict) else None
        if row:
            result.append(row)
        else:
            broken += 1
    return result, broken


def _row(entry: dict) -> dict | None:
    size, count = _count(entry.get("size")), _count(entry.get("count"))
    sides = {
        nccl_table.OUT_OF_PLACE: _side(entry.get("out_of_place")),
        nccl_table.IN_PLACE: _side(entry.get("in_place")),
    }
    # the last keys of a row: without them the row was broken off
    whole = "actual_iterations" in entry or "experiment_name" in entry or None not in sides.values()
    if size is None or count is None or not whole or not any(sides.values()):
        return None
    row = {"size": size, "count": count, "type": str(entry.get("type", ""))[:32], "line": None}
    if isinstance(entry.get("redop"), str) and entry["redop"].strip():
        row["redop"] = entry["redop"].strip()[:32]
    root = _count(str(entry.get("root", "")).strip())
    if root is not None:
        row["root"] = root
    if _count(entry.get("actual_iterations")) is not None:
        row["iters"] = _count(entry["actual_iterations"])
    row.update({name: side for name, side in sides.items() if side})
    return row


def _side(cells: object) -> dict | None:
    if not isinstance(cells, dict) or "nwrong" not in cells:
        return None
    time = cells.get("time", cells.get("cpu_time"))
    values = {"time": time, "algbw": cells.get("alg_bw"), "busbw": cells.get("bus_bw"), "wrong": cells["nwrong"]}
    return {name: None if isinstance(v, bool) else nccl_table.value(v) for name, v in values.items()}


def footer(document: dict) -> tuple[dict | None, dict | None]:
    """({count, ok}, {value, ok}): out-of-bounds values, and the average with the tool's own verdict, None without."""
    bounds = document.get("out_of_bounds")
    outside = None
    if isinstance(bounds, dict) and _count(bounds.get("count")) is not None:
        outside = {"count": _count(bounds["count"]), "ok": _count(bounds["count"]) == 0}
    average = document.get("average_bus_bandwidth", document.get("average_bus_bandwidith"))
    if not isinstance(average, dict):
        return outside, None
    mean = nccl_table.value(average.get("bandwidth", average.get("bandwidith")))
    okay = average.get("okay")
    okay = okay if isinstance(okay, bool) else {"true": True, "false": False}.get(str(okay).lower())
    return outside, {"value": mean, "ok": okay}


def program(document: dict) -> str:
    arguments = document.get("args")
    first = arguments[0] if isinstance(arguments, list) and arguments else ""
    return first.rpartition("/")[2][:64] if isinstance(first, str) else ""


def experiment(document: dict) -> str:
    """The collective by the name each row carries: AllReduce is all_reduce."""
    entries = document.get("results")
    for entry in entries if isinstance(entries, list) else []:
        name = entry.get("experiment_name") if isinstance(entry, dict) else None
        if isinstance(name, str) and re.fullmatch(r"[A-Za-z]{3,30}", name):
            snake = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
            return {"all_to_all": "alltoall", "send_recv": "sendrecv", "broad_cast": "broadcast"}.get(snake, snake)
    return ""


def nccl_version(document: dict) -> str | None:
    code = _count(document.get("nccl_version"))
    return nccl_info.version_of_code(code) if code else None


def errors(document: dict) -> list[str]:
    entries = document.get("errors")
    return [entry for entry in entries if isinstance(entry, str) and entry.strip()] if isinstance(entries, list) else []


def _count(value: object) -> int | None:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int):
        return value if abs(value) < 10**20 else None
    if isinstance(value, float) and value.is_integer() and abs(value) < 10**20:
        return int(value)
    if isinstance(value, str) and re.fullmatch(r"-?\d{1,19}", value):
        return int(value)
    return None
