# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Everything that tells what is installed, by the part of a Snapshot that it fills."""

from __future__ import annotations

from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes import gitops_apps, helm_releases

READERS = {
    "releases": helm_releases.read,
    "argocd": gitops_apps.argo_applications,
    "flux": gitops_apps.flux_releases,
}
