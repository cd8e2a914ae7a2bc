# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs that install bundles.

helm_binary     path of helm
kubectl_binary  path of kubectl, which also builds kustomizations
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools import tools


@pytest.fixture(scope="session")
def helm_binary() -> Path:
    return tools.helm()


@pytest.fixture(scope="session")
def kubectl_binary() -> Path:
    return tools.kubectl()
