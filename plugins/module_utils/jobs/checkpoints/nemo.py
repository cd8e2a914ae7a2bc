# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NeMo 2: NAME/weights is a Megatron checkpoint, NAME/context describes the model, NAME-unfinished marks a save."""

from __future__ import annotations

import os

from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints import dcp, megatron
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints.finding import Finding
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints.tree import Tree

FORMAT = "nemo2"
MARKER = "-unfinished"


def check(tree: Tree, finding: Finding) -> None:
    if os.path.lexists(tree.root + MARKER):
        finding.fault(f"{tree.name}{MARKER} lies beside it: a save or a removal was not finished")
    if not any(tree.below("weights")):
        finding.fault("weights is missing")
    elif "weights" in dcp.folders(tree) or "weights/metadata.json" in tree.files:
        megatron.check_dist(tree, finding, "weights")
    else:
        finding.doubt("weights is not in a form that is looked into")
    if "context/io.json" not in tree.files:
        finding.fault("context/io.json is missing")
    if "context/model.yaml" not in tree.files:
        finding.doubt("context/model.yaml is missing")
