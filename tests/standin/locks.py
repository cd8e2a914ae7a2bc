# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""RecipeLocks for tests that want few components and not a catalogue."""

from __future__ import annotations

from ansible_collections.goodput.fleet.plugins.module_utils.records import digest


def lock(*components: dict) -> dict:
    """A valid lock of the components (see `component`), which stand in deployment order."""
    spec = {
        "criteria": {"service": "kind"},
        "catalog": {"digest": digest.sha256({}), "version": "1.0.0"},
        "overlays": [{"name": "kind", "criteria": {"service": "kind"}}],
        "components": sorted(components, key=lambda item: (item["tier"], item["name"])),
        "constraints": [],
        "checks": [],
        "order": [item["name"] for item in components],
    }
    return {
        "apiVersion": "goodput.fleet/v1alpha1",
        "kind": "RecipeLock",
        "metadata": {"name": "kind", "digest": digest.sha256(spec)},
        "spec": spec,
    }


def component(name: str, values: dict | None = None, tier: int = 0, **fields) -> dict:
    """A component with a chart of its own name; `fields` replace or add."""
    values = values or {}
    chart = {"name": name, "repository": "https://charts.example.com/stable", "version": "1.2.3"}
    made = {
        "name": name,
        "namespace": name,
        "release": name,
        "tier": tier,
        "dependsOn": [],
        "chart": chart,
        "values": values,
        "valuesDigest": digest.sha256(values),
        **fields,
    }
    return {key: value for key, value in made.items() if value is not None}


def manifest(name: str, content: str, phase: str = "post") -> dict:
    return {"name": name, "phase": phase, "content": content, "digest": digest.sha256_bytes(content.encode())}
