"""Fixtures of the integration tests: real clusters on loopback.

cluster       one EmbeddedCluster of eight H100 nodes for the whole session; keep to your own `namespace` in it
namespace     name of a fresh namespace of `cluster`, emptied afterwards
kubeconfig    path of the administrator's kubeconfig of `cluster`
make_cluster  make_cluster(nodes=..., profile=..., ...) -> EmbeddedCluster of the test's own, ended with the test

Further fixtures lie in fixtures_*.py beside this file, and are found there.
"""

from __future__ import annotations

import contextlib
import importlib
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.simfleet import EmbeddedCluster
from tests.simfleet.api import ApiError, wait_until

HERE = Path(__file__).parent


def pytest_configure(config: pytest.Config) -> None:
    # Not `pytest_plugins`: pytest refuses it in a conftest.py below the root.
    for path in sorted(HERE.glob("fixtures_*.py")):
        module = importlib.import_module(f"tests.integration.{path.stem}")
        if not config.pluginmanager.is_registered(module):
            config.pluginmanager.register(module, f"integration-{path.stem}")


@pytest.fixture(scope="session")
def show(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Print a line at once, for steps that take long, such as a first build."""
    capture = request.config.pluginmanager.getplugin("capturemanager")

    def write(line: str) -> None:
        with capture.global_and_fixture_disabled() if capture else contextlib.nullcontext():
            print(f"\n{line}", flush=True)

    return write


@pytest.fixture(scope="session")
def cluster(show: Callable[[str], None]) -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(nodes=8, profile="demo", say=show) as running:
        yield running


@pytest.fixture
def make_cluster(show: Callable[[str], None]) -> Iterator[Callable[..., EmbeddedCluster]]:
    with contextlib.ExitStack() as stack:

        def make(nodes: int | None = None, profile: str | dict[str, Any] = "demo", **options: Any) -> EmbeddedCluster:
            return stack.enter_context(EmbeddedCluster(nodes=nodes, profile=profile, say=show, **options))

        yield make


@pytest.fixture
def kubeconfig(cluster: EmbeddedCluster) -> Path:
    return cluster.kubeconfig


@pytest.fixture
def namespace(cluster: EmbeddedCluster) -> Iterator[str]:
    cluster.check()  # else a cluster that has died shows as a refused connection in every test
    name = f"test-{uuid.uuid4().hex[:8]}"
    cluster.api.create("/api/v1/namespaces", {"metadata": {"name": name}})
    account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
    wait_until(lambda: cluster.api.find(account), 20, f"{account}, without which no pod can be made", pause=0.02)
    yield name
    with contextlib.suppress(ApiError):
        cluster.api.delete(f"/api/v1/namespaces/{name}")
        # Its pods hold GPUs that the next test may want; the namespace itself may take longer to go.
        cluster.api.delete(f"/api/v1/namespaces/{name}/pods", gracePeriodSeconds=0)
