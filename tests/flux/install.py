# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Puts CRDs on a cluster and waits until it serves them."""

from __future__ import annotations

from collections.abc import Iterable

from tests.simfleet.api import Api, wait_until

PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SECONDS = 30


def install(api: Api, crds: Iterable[dict]) -> list[str]:
    """Apply the CRDs server-side (ApplicationSet's is too large for the other way); their names once all serve."""
    names = [api.apply(f"{PATH}/{crd['metadata']['name']}", crd)["metadata"]["name"] for crd in crds]
    for name in names:
        wait_until(lambda name=name: established(api.get(f"{PATH}/{name}")), SECONDS, f"{name} is Established")
    return names


def established(crd: dict) -> bool:
    found = (crd.get("status") or {}).get("conditions") or []  # null until the first controller has looked at it
    conditions = {each["type"]: each["status"] for each in found}
    return conditions.get("Established") == "True"
