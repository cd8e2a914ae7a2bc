"""Catalogue layers to start from."""

from __future__ import annotations

import pytest

from .layers import Site, chart


@pytest.fixture
def site(tmp_path) -> Site:
    """A layer with the components a, b and c, all in the base, and an overlay for eks."""
    made = Site(tmp_path / "layer")
    made.registry(chart("a"), chart("b", dependsOn=["a"]), chart("c"))
    made.overlay("base", components=["a", "b"])
    made.overlay("eks", {"service": "eks"}, components=["a"])
    return made


@pytest.fixture
def bare(tmp_path) -> Site:
    """A layer without a file."""
    return Site(tmp_path / "layer")
