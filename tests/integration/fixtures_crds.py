"""certification_crds  Certification and WorkloadRun are served by `cluster`."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.simfleet import EmbeddedCluster
from tests.simfleet.api import Api, ApiError, wait_until

CRDS = Path(__file__).parents[2] / "gitops" / "crds"
PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture(scope="session")
def certification_crds(cluster: EmbeddedCluster) -> None:
    install(cluster.api)


def install(api: Api) -> None:
    """Everything in gitops/crds, until it can be used."""
    bodies = [yaml.safe_load(path.read_text()) for path in sorted(CRDS.glob("*.yaml"))]
    for body in bodies:
        if not api.find(f"{PATH}/{body['metadata']['name']}"):
            api.create(PATH, body)
    for body in bodies:
        group, plural = body["spec"]["group"], body["spec"]["names"]["plural"]
        where = f"/apis/{group}/{body['spec']['versions'][0]['name']}/namespaces/default/{plural}"
        wait_until(lambda where=where: _served(api, where), 20, f"{where} can be listed")


def _served(api: Api, where: str) -> bool:
    try:
        return api.find(where) is not None
    except ApiError as error:
        if error.status in (429, 503):  # its storage is being made
            return False
        raise
