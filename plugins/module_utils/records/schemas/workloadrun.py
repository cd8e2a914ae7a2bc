# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""WorkloadRun: a container of the site's own as a test."""

from __future__ import annotations

from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas import certification, parts, testing

SPEC = parts.closed(
    ["target", "image"],
    {
        "target": testing.TARGET,
        **testing.WORKLOAD,
        "tolerateGates": certification.SPEC["properties"]["tolerateGates"],
        "limits": certification.SPEC["properties"]["limits"],
    },
    "target, image, and one of exec, mpi and torch",
)

SCHEMA = parts.document("WorkloadRun", testing.METADATA, SPEC)
SCHEMA["properties"]["status"] = {"type": "object", "description": "written by the run"}
