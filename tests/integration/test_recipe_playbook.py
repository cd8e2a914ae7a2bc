"""Recipes by ansible-playbook, as a site uses them: shipped catalogue, own overlays, charts and real helm."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.recipes.catalog import load_catalog
from ansible_collections.goodput.fleet.plugins.module_utils.recipes.resolve import resolve
from ansible_collections.goodput.fleet.plugins.module_utils.records import lockfile

from tests.standin.charts import archives

pytestmark = pytest.mark.helm
CATALOG = Path(__file__).resolve().parents[2] / "gitops/catalog"
CRITERIA = {"service": "eks", "accelerator": "h100", "os": "ubuntu", "intent": "inference", "platform": "dynamo"}
OVERLAY = """\
apiVersion: goodput.fleet/v1alpha1
kind: Overlay
metadata: {name: ours}
spec:
  criteria: {service: eks, accelerator: h100, os: ubuntu, intent: inference, platform: dynamo}
  components:
    - name: gpu-operator
      values: {driver: {version: 580.105.08}}
"""


@pytest.fixture(scope="module")
def charts(tmp_path_factory) -> Path:
    """An archive for every chart of the recipe."""
    folder = tmp_path_factory.mktemp("charts")
    for name, content in archives(resolve(load_catalog([str(CATALOG)]), CRITERIA)).items():
        (folder / name).write_bytes(content)
    return folder


def recipe(register: str, **arguments) -> dict:
    return {"goodput.fleet.recipe": arguments, "register": register}


def test_from_criteria_to_a_rendered_lock_twice(tmp_path, charts, helm_binary, run_play):
    arguments = {"criteria": CRITERIA, "dest": "x.lock.yaml", "charts": str(charts), "helm_binary": str(helm_binary)}
    results = run_play(
        tmp_path, [recipe("first", **arguments), recipe("again", **arguments), recipe("read", lock="x.lock.yaml")]
    )
    assert [results[name]["changed"] for name in ("first", "again", "read")] == [True, False, False]
    assert not results["first"].get("warnings")
    lock = lockfile.load_lock(str(tmp_path / "x.lock.yaml"))
    assert lock == results["first"]["lock"] == results["read"]["lock"]
    for component in lock["spec"]["components"]:
        assert "chart" not in component or component["chart"]["digest"].startswith("sha256:"), component["name"]
    operator = next(one for one in lock["spec"]["components"] if one["name"] == "gpu-operator")
    rendered = {(one["kind"], one["name"]) for one in operator["rendered"]["workloads"]}
    declared = {(one["kind"], one["name"]) for one in operator["health"]["workloads"] if one["kind"] == "Deployment"}
    assert declared <= rendered
    assert {image for one in operator["rendered"]["workloads"] for image in one["images"].values()} <= {
        *operator["images"]
    }


def test_a_sites_own_layer_is_explained_and_linted(tmp_path, run_play):
    layer = tmp_path / "site/overlays"
    layer.mkdir(parents=True)
    (layer / "ours.yaml").write_text(OVERLAY)
    catalog = ["shipped", str(tmp_path / "site")]
    # two overlays with the same criteria contradict each other only where both state a key
    results = run_play(
        tmp_path,
        [
            recipe("lock", criteria=CRITERIA, catalog=catalog),
            {
                "goodput.fleet.recipe_info": {
                    "query": "explain",
                    "criteria": CRITERIA,
                    "path": "gpu-operator.values.driver.version",
                    "catalog": catalog,
                },
                "register": "why",
            },
            {"goodput.fleet.recipe_info": {"query": "lint", "catalog": catalog}, "register": "lint"},
            {"goodput.fleet.recipe_info": {"catalog": catalog}, "register": "list"},
            {
                "ansible.builtin.assert": {
                    "that": [
                        "(criteria | goodput.fleet.resolve(catalog)) == lock.lock",
                        "(lock.lock | goodput.fleet.deployment_order) == lock.lock.spec.order",
                        "'1.34.2' | goodput.fleet.version_satisfies('>= 1.34, < 1.36')",
                    ]
                }
            },
        ],
        criteria=CRITERIA,
        catalog=catalog,
    )
    assert results["why"]["explanation"]["value"] == "580.105.08"
    last = results["why"]["explanation"]["chain"][-1]
    assert (last["overlay"], last["line"], last["file"]) == ("ours", 8, str(layer / "ours.yaml"))
    assert last["replaced"]
    assert results["lint"]["counts"]["error"] == 0
    assert len(results["list"]["recipes"]) >= 30
    assert "ours" in results["lock"]["overlays"]


def test_check_mode_writes_nothing_and_an_edited_lock_is_refused(tmp_path, run_play):
    tasks = [
        {**recipe("plan", criteria=CRITERIA, dest="x.lock.yaml"), "check_mode": True, "diff": True},
        {"ansible.builtin.stat": {"path": "x.lock.yaml"}, "register": "nothing"},
        recipe("made", criteria=CRITERIA, dest="x.lock.yaml"),
        {"ansible.builtin.replace": {"path": "x.lock.yaml", "regexp": "v26.7.0", "replace": "v26.6.0"}},
        {**recipe("edited", lock="x.lock.yaml"), "failed_when": False},
        {**recipe("open", criteria={"service": "gke", "accelerator": "h100"}), "failed_when": False},
    ]
    results = run_play(tmp_path, tasks)
    assert results["plan"]["changed"]
    assert "kind: RecipeLock" in results["plan"]["diff"]["after"]
    assert not results["nothing"]["stat"]["exists"]
    assert results["made"]["changed"]
    assert [one["code"] for one in results["edited"]["problems"]] == ["digest-mismatch"]
    assert results["open"]["code"] == "not-covered"
    assert "add os: cos" in results["open"]["msg"]
