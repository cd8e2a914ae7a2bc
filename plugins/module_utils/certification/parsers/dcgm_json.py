# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`dcgmi diag -j` of DCGM 2 to 4, nvvs' own output, and `dcgmi mndiag -j`.

DCGM 2 and 3 have the root key "DCGM GPU Diagnostic" with the tests below it, DCGM 4 has "DCGM Diagnostic" and names
entities. mndiag keeps its tests beside the root key and names hosts by number. Array elements may be null in any.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers.dcgm_model import (
    Diagnostic,
    Result,
    Test,
    Warned,
)
from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers.outcome import clip

OLD, NEW, MULTI = "DCGM GPU Diagnostic", "DCGM Diagnostic", "DCGM Multi-Node Diagnostic"
ROOTS = (OLD, NEW, MULTI)


def read(document: dict, whole: bool) -> Diagnostic:
    """The document has one of ROOTS."""
    key = next(name for name in ROOTS if name in document)
    root = document[key]
    multi = key == MULTI or (isinstance(root, str) and "multi-node" in root.lower())
    body = root if isinstance(root, dict) else document
    diagnostic = Diagnostic("json", generation=4, multinode=multi, whole=whole)
    metadata = _dict(document.get("metadata"))
    for source in (document, metadata, body):
        diagnostic.version = diagnostic.version or _text(source, "version", "DCGM Version")
        diagnostic.driver = diagnostic.driver or _text(source, "Driver Version Detected", "driver_version_detected")
    if key == OLD:
        diagnostic.generation = _old_generation(diagnostic.version, body)
    hosts = _hosts(document, diagnostic)
    _devices(document, diagnostic)
    for source in (body, document) if body is not document else (document,):
        if source.get("runtime_error"):
            diagnostic.errors.append((None, clip(source["runtime_error"], 2000)))
    for category in _dicts(body.get("test_categories")):
        for item in _dicts(category.get("tests")):
            diagnostic.tests.append(_test(item, str(category.get("category") or ""), hosts))
    for item in _dicts(document.get("global_errors")):
        diagnostic.stray.extend((hosts.get(item.get("host_id")), warned) for warned in _warnings([item]))
    return diagnostic


def _old_generation(version: str | None, body: dict) -> int | None:
    major = re.match(r"[23]\b", version or "")  # 1.7 is the version of the form
    if major:
        return int(major[0])
    names = {
        str(test.get("name")) for part in _dicts(body.get("test_categories")) for test in _dicts(part.get("tests"))
    }
    return 2 if "Blacklist" in names else 3 if names else None


def _hosts(document: dict, diagnostic: Diagnostic) -> dict[object, str]:
    hosts: dict[object, str] = {}
    for host in _dicts(document.get("hosts")):
        name = str(host.get("hostname") or f"host {host.get('host_id')}")
        identity = _int(host.get("host_id"))
        hosts[identity] = name
        diagnostic.hosts.append(name)
        diagnostic.version = diagnostic.version or _text(host, "dcgm_version")
        diagnostic.driver = diagnostic.driver or _text(host, "driver_version")
        for entity in _dicts(host.get("entities")):
            diagnostic.devices.append({"host": name, **_device(entity)})
    return hosts


def _devices(document: dict, diagnostic: Diagnostic) -> None:
    for group in _dicts(document.get("entity_groups")):
        for entity in _dicts(group.get("entities")):
            diagnostic.devices.append(_device({"entity_group": group.get("entity_group"), **entity}))
    identities = document.get("GPU Device IDs")
    if isinstance(identities, list):
        diagnostic.counted = len([item for item in identities if item is not None]) or None
    serials = document.get("GPU Device Serials")
    if isinstance(serials, dict):
        for number, serial in serials.items():
            diagnostic.devices.append({"entity": f"GPU {number}", "serial": clip(serial, 100)})


def _device(entity: dict) -> dict:
    device = {"entity": f"{entity.get('entity_group') or 'GPU'} {entity.get('entity_id')}"}
    if entity.get("device_id"):
        device["deviceId"] = clip(entity["device_id"], 100)
    if entity.get("serial_num"):
        device["serial"] = clip(entity["serial_num"], 100)
    return device


def _test(item: dict, section: str, hosts: dict[object, str]) -> Test:
    summary = _dict(item.get("test_summary"))
    word = summary.get("status", item.get("status"))
    test = Test(clip(item.get("name") or "", 200), section, None if word is None else clip(word, 100))
    test.info = _infos(summary.get("info"))
    test.warnings = [*_warnings(summary.get("warnings")), *_warnings(item.get("mpi_error"))]
    for result in _dicts(item.get("results")):
        test.results.extend(_results(result, hosts))
    return test


def _results(item: dict, hosts: dict[object, str]) -> Iterator[Result]:
    """One per GPU: old versions name several in one result."""
    word = clip(item.get("status") if item.get("status") is not None else "", 100)
    info, warnings = _infos(item.get("info")), _warnings(item.get("warnings")) + _warnings(item.get("error"))
    host = hosts.get(_int(item.get("host_id"))) if "host_id" in item else None
    if item.get("entity_group") is not None or item.get("entity_id") is not None:
        group, number = str(item.get("entity_group") or "GPU"), _int(item.get("entity_id"))
        gpu = number if group.upper() == "GPU" else None
        yield Result(word, f"{group} {number}", gpu, host, info, warnings)
        return
    numbers = _numbers(item.get("gpu_ids", item.get("gpu_id")))
    if not numbers:
        yield Result(word, None, None, host, info, warnings)
    for number in numbers:
        own = [warned for warned in warnings if _about(warned.message) in (None, number)]
        yield Result(word, f"GPU {number}", number, host, info if len(numbers) == 1 else [], own)


def _about(message: str) -> int | None:
    """The one GPU a message names."""
    named = set(re.findall(r"\bGPU\s?(\d{1,4})\b", message))
    return int(named.pop()) if len(named) == 1 else None


def _numbers(value: object) -> list[int]:
    if isinstance(value, list):
        return [number for item in value for number in _numbers(item)]
    if isinstance(value, int) and not isinstance(value, bool):
        return [value]
    return [int(item) for item in re.findall(r"\d{1,6}", value)] if isinstance(value, str) else []


def _infos(value: object) -> list[str]:
    items = value if isinstance(value, list) else [value]
    return [clip(item, 2000) for item in items if isinstance(item, (str, int, float)) and str(item).strip()]


def _warnings(value: object) -> list[Warned]:
    warned = []
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, dict):
            message = item.get("warning") or item.get("error") or item.get("message") or ""
            numbers = (_int(item.get(name)) for name in ("error_id", "error_category", "error_severity"))
            warned.append(Warned(clip(message, 2000), *numbers))
        elif isinstance(item, str) and item.strip():
            warned.append(Warned(clip(item, 2000)))
    return warned


def _dicts(value: object) -> list[dict]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _dict(value: object) -> dict:
    return value if isinstance(value, dict) else {}


def _text(source: dict, *names: str) -> str | None:
    for name in names:
        if isinstance(source.get(name), (str, int, float)) and str(source[name]).strip():
            return clip(source[name], 100)
    return None


def _int(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and re.fullmatch(r"-?\d{1,9}", value.strip()):
        return int(value)
    return value if isinstance(value, int) else None
