# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The names and labels of what a run has in a cluster. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.records import digest
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument

DOMAIN = "goodput.fleet"
CERTIFICATION = f"{DOMAIN}/certification"
RUN = f"{DOMAIN}/run"
CATEGORY = f"{DOMAIN}/category"
ROLE = f"{DOMAIN}/role"  # of a pod: worker, or launcher
SPEC = f"{DOMAIN}/spec"  # annotation: digest of what was made
WORKER, LAUNCHER = "worker", "launcher"
CONTAINER = "node"  # as Kubeflow's trainer calls it
MANAGER = "goodput-fleet"

_LABEL = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_ID = re.compile(r"[0-9a-f]{12}")


def object_name(run_id: str) -> str:
    """Of every object of a run. Raises InvalidDocument for what is not the id of a run."""
    if not isinstance(run_id, str) or not _ID.fullmatch(run_id):
        raise InvalidDocument(f"{run_id!r} is not the id of a run", hint="12 hexadecimal digits")
    return f"gp-{run_id}"


def label_value(text: str) -> str:
    """The text where it can be a label's value, else a short form of it that is as unique."""
    if _LABEL.fullmatch(text):
        return text
    short = re.sub(r"[^A-Za-z0-9]+", "-", text)[:40].strip("-")
    tail = digest.sha256(text).removeprefix("sha256:")[:12]
    return f"{short}-{tail}" if short else tail


def of_run(run: Mapping, certification: str) -> dict[str, str]:
    return {
        CERTIFICATION: label_value(certification),
        RUN: run["id"],
        CATEGORY: label_value(run["category"]),
        "app.kubernetes.io/managed-by": MANAGER,
    }
