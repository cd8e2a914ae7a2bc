# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether tests that somebody asks for can be run at all, before a node is closed for them. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.certification import catalogue, documents
from ansible_collections.goodput.fleet.plugins.module_utils.certification.plan import Planner
from ansible_collections.goodput.fleet.plugins.module_utils.records import schema


def check(spec: Mapping, tests: catalogue.Tests) -> int:
    """How many nodes they need at a time. spec: {tests, options}, as of a ValidationRequest.

    Raises InvalidDocument, or NotFound where the catalogue has no such test, with every fault; paths begin with
    spec.categories, spec.options or categories.
    """
    part = {"target": {"nodeNames": ["any"]}, "categories": spec["tests"], "options": spec.get("options") or {}}
    document = {"apiVersion": schema.API_VERSION, "kind": "Certification", "metadata": {"name": "tests"}, "spec": part}
    planner = Planner(documents.load(document)["certification"], tests, [])
    return max(resolved["minNodes"] for resolved in planner.resolved.values())
