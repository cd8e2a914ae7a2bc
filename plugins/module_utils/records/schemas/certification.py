# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Certification: which tests a set of nodes must pass."""

from __future__ import annotations

from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas import parts, testing

CATEGORY = parts.closed(
    [],
    {
        "name": {**parts.LABEL, "description": "unique in the document; without it made of domain and variant"},
        "domain": {**parts.LABEL, "description": "such as communication, diagnostics or training"},
        "variant": {**parts.LABEL, "description": "the test in that domain, such as nccl-all-reduce"},
        "options": testing.OPTIONS,
        "workload": parts.closed(["image"], testing.WORKLOAD, "a container of the site's own, as in a WorkloadRun"),
    },
    "domain and variant of a test in the catalogue, or a workload",
)

SPEC = parts.closed(
    ["target", "categories"],
    {
        "target": testing.TARGET,
        "categories": {
            **parts.listed(CATEGORY, "the tests"),
            "minItems": 1,
            "maxItems": testing.MAX_CATEGORIES,
        },
        "options": {**testing.OPTIONS, "description": "of every category; what a category sets itself wins"},
        "tolerateGates": {
            **parts.listed(parts.LABEL, "owners of gates behind which the nodes are tested"),
            "maxItems": 32,
        },
        "limits": parts.closed(
            [],
            {
                "maxTests": testing.count(1, "runs in all, those of searches for bad nodes included"),
                "maxMinutes": testing.count(1, "minutes until no further run is begun"),
                "maxNodesOut": testing.count(1, "nodes under test at once"),
            },
            "maxTests, maxMinutes and maxNodesOut",
        ),
    },
    "target, categories, options, tolerateGates and limits",
)

SCHEMA = parts.document("Certification", testing.METADATA, SPEC)
SCHEMA["properties"]["status"] = {"type": "object", "description": "written by the run"}
