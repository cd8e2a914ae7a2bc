# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Those who read bundles.

deployer_crds  the CRDs of Flux and Argo CD are on `cluster`; their names
flux           Flux's source-controller and kustomize-controller on a cluster of their own, `flux.cluster`
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.flux import consumers
from tests.flux.controllers import Flux
from tests.flux.install import install
from tests.simfleet import EmbeddedCluster


@pytest.fixture(scope="session")
def deployer_crds(cluster: EmbeddedCluster, show: Callable[[str], None]) -> list[str]:
    found = consumers.crds(show)
    return install(cluster.api, [*found["flux"], *found["argocd"]])


@pytest.fixture(scope="module")
def flux(show: Callable[[str], None]) -> Iterator[Flux]:
    with EmbeddedCluster(nodes=2, say=show) as own, Flux(own, show) as running:
        yield running
