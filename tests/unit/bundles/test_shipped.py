"""Every shipped recipe, for every deployer."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from ansible_collections.goodput.fleet.plugins.module_utils.bundles import images, manifest
from ansible_collections.goodput.fleet.plugins.module_utils.recipes.catalog import load_catalog
from ansible_collections.goodput.fleet.plugins.module_utils.recipes.resolve import resolve
from ansible_collections.goodput.fleet.plugins.module_utils.records import yamltree
from ansible_collections.goodput.fleet.plugins.module_utils.records.lockfile import load_lock

from tests.unit.bundles import outputs

CATALOG = load_catalog([str(Path(__file__).parents[3] / "gitops/catalog")])
LOCKS = {one.name: json.loads(json.dumps(resolve(CATALOG, one.criteria))) for one in CATALOG.recipes}
MIRROR = {"mirror_charts": "oci://mirror.internal/charts", "mirror_images": "mirror.internal/images"}


def sources(lock: dict) -> set[str]:
    """Every host that the lock's charts and images come from."""
    components = lock["spec"]["components"]
    found = {one["chart"]["repository"].split("/")[2] for one in components if one.get("chart")}
    return found | {images.host(image) for one in components for image in one.get("images") or ()}


@pytest.mark.parametrize("name", LOCKS)
@pytest.mark.parametrize("deployer", outputs.DEPLOYERS)
def test_it_renders_whole_and_the_mirror_leaves_no_source(deployer, name):
    files = outputs.bundle(LOCKS[name], deployer)
    assert files["recipe.lock.yaml"].decode() == yamltree.dump(LOCKS[name])
    listed, problems = manifest.parse(files[manifest.LIST])
    assert not problems and set(listed) == set(files) - {manifest.LIST}
    for path, text in outputs.deployable(files).items():
        if path.endswith((".yaml", ".json")) and not re.search(r"templates/|crds/", path):
            assert yaml.load(text, yaml.CSafeLoader) is not None, path
        if path != "templates/applications.yaml":
            assert not re.search(r"TODO|REPLACE|CHANGEME|<[A-Za-z_ -]+>", text), path
    mirrored = outputs.bundle(LOCKS[name], deployer, **MIRROR)
    hosts = "|".join(map(re.escape, sources(LOCKS[name])))
    for path, text in outputs.deployable(mirrored).items():
        assert not re.search(rf"(?<![\w.-])(?:{hosts})(?![\w-]|\.\w)", text), path
    if deployer == "helm":  # it is the same in all of them
        assert load_lock(yaml.load(mirrored["recipe.lock.yaml"], yaml.CSafeLoader))
