# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A raw Node as a host of an inventory: its groups, its address, what is known of it. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.gates import model
from ansible_collections.goodput.fleet.plugins.module_utils.gates.external import is_cordoned
from ansible_collections.goodput.fleet.plugins.module_utils.gates.facts import boot_id, name_of, ready

CERTIFIED = "goodput.fleet/certified"
RESOURCES = ("nvidia.com/gpu", "nvidia.com/mig-", "nvidia.com/shared-gpu")
PRODUCT_LABELS = ("nvidia.com/gpu.product", "cloud.google.com/gke-accelerator", "k8s.amazonaws.com/accelerator")
_DRIVER = "nvidia.com/cuda.driver"


def host(
    node: Mapping,
    *,
    rack_labels: Iterable[str] = (),
    nvlink_domain_labels: Iterable[str] = (),
    zone_labels: Iterable[str] = (),
    address_types: Iterable[str] = ("InternalIP",),
    pool_taints: Iterable[str] = (),
) -> dict:
    """{name, address, groups: [names as labels have them], facts}. Of several labels the first that is set counts."""
    metadata, spec, status = (node.get(part) or {} for part in ("metadata", "spec", "status"))
    state, labels, boot = model.state(node, pool_taints), dict(metadata.get("labels") or {}), boot_id(node)
    driver = driver_of(labels)
    certified, why = certification((metadata.get("annotations") or {}).get(CERTIFIED), boot, driver)
    places = {
        "accelerator": _first(labels, PRODUCT_LABELS),
        "rack": _first(labels, rack_labels),
        "nvlink_domain": _first(labels, nvlink_domain_labels),
        "zone": _first(labels, zone_labels),
    }
    facts = {
        "name": name_of(node),
        "open": state["open"],
        "gates": state["gates"],
        "external": state["external"],
        "ready": ready(node),
        "unschedulable": is_cordoned(node),
        "boot_id": boot,
        "driver": driver,
        **places,
        "gpus": {part: gpus(status.get(part)) for part in ("capacity", "allocatable")},
        "certified": certified,
        "certification": why,
        "provider_id": spec.get("providerID") or "",
        "labels": labels,
        "taints": [
            {part: taint.get(part) or "" for part in ("key", "value", "effect")} for taint in spec.get("taints") or ()
        ],
        "conditions": {
            each["type"]: each.get("status") or "" for each in status.get("conditions") or () if each.get("type")
        },
    }
    return {
        "name": facts["name"],
        "address": _address(status, address_types),
        "groups": _groups(facts, places),
        "facts": facts,
    }


def certification(record: object, boot_id: str, driver: str) -> tuple[bool, str]:
    """Whether a node's record of certification still holds, and why. It holds for one boot with one driver: what has
    been booted or upgraded since has not been tested."""
    if not record:
        return False, "never certified"
    try:
        found = json.loads(record) if isinstance(record, str) else record
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, Mapping):
        return False, f"the annotation {CERTIFIED} is no JSON object"
    for name, now, word in (("bootId", boot_id, "boot"), ("driver", driver, "driver")):
        if not now:
            return False, f"the node does not tell its {word}"
        if found.get(name) != now:
            return False, f"certified with another {word}: {str(found.get(name))[:128]}, now {now}"
    return True, f"certified at {str(found.get('at') or 'a time not told')[:64]}"


def driver_of(labels: Mapping[str, str]) -> str:
    """The GPU driver's version as feature discovery tells it, also under its older names."""
    full = labels.get(f"{_DRIVER}-version.full")
    if full:
        return full
    for prefix, last in ((f"{_DRIVER}-version", "revision"), (_DRIVER, "rev")):
        parts = [labels.get(f"{prefix}.{part}", "") for part in ("major", "minor", last)]
        if parts[0] and parts[1]:
            return ".".join(part for part in parts if part)
    return ""


def gpus(resources: Mapping | None) -> int:
    """GPUs and MIG devices; what is no number counts as none."""
    counts = [str(value) for key, value in (resources or {}).items() if key.startswith(RESOURCES)]
    return sum(int(count) for count in counts if count.isascii() and count.isdecimal() and len(count) < 10)


def _groups(facts: dict, places: dict[str, str]) -> list[str]:
    groups = ["certified" if facts["certified"] else "uncertified"]
    groups += ["gated", *(f"gate_{gate['owner']}" for gate in facts["gates"])] if facts["gates"] else []
    if any(entry["holds"] for entry in facts["external"]):
        groups.append("external_hold")
    if facts["open"]:
        groups.append("open")
    if facts["ready"] != "True":  # nobody knows is not ready either
        groups.append("not_ready")
    return groups + [f"{kind}_{value}" for kind, value in places.items() if value]


def _first(labels: Mapping[str, str], names: Iterable[str]) -> str:
    return next((labels[name] for name in names if labels.get(name)), "")


def _address(status: Mapping, types: Iterable[str]) -> str:
    found = {each.get("type"): each.get("address") for each in reversed(status.get("addresses") or ())}
    return next((found[kind] for kind in types if found.get(kind)), "")
