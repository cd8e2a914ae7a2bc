"""The shipped catalogue: consistent as a whole, every recipe resolves, and what nobody described does not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.recipes.catalog import load_catalog
from ansible_collections.goodput.fleet.plugins.module_utils.recipes.lint import lint
from ansible_collections.goodput.fleet.plugins.module_utils.recipes.resolve import resolve
from ansible_collections.goodput.fleet.plugins.module_utils.records import lockfile, yamltree
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import NotCovered

CATALOG = Path(__file__).parents[3] / "gitops" / "catalog"
OVERLAYS = {
    document["metadata"]["name"]: document
    for document in (yamltree.load_file(str(path)).data for path in sorted(CATALOG.glob("overlays/**/*.yaml")))
}
RECIPES = {name: data["spec"]["criteria"] for name, data in OVERLAYS.items() if data["spec"].get("recipe")}
COMPONENTS = {
    component["name"]: component
    for path in sorted(CATALOG.glob("registry/*.yaml"))
    for component in yamltree.load_file(str(path)).data["spec"].get("components", [])
}
SEED = {"service": "eks", "accelerator": "h100", "os": "ubuntu", "intent": "inference", "platform": "dynamo"}
PINNED = re.compile(r"v?\d+\.\d+\.\d+(-[0-9A-Za-z.]+)?")

# components that only sites add; see "What the site brings" in the catalogue's README
FOR_SITES = {"agentgateway", "agentgateway-crds", "nodewright", "topograph"}

# what the issue asks for, and what of it has no recipe (with the reason)
ASKED = {
    "service": {"eks", "aks", "gke", "oke", "kind", "baremetal"},
    "accelerator": {"h100", "h200", "b200", "gb200", "gb300", "a100", "l40s"},
    "intent": {"training", "inference"},
    "os": {"ubuntu", "cos", "rhel"},
    "platform": {"kubeflow", "dynamo", "kueue", "runai"},
}
LEFT_OUT: dict[str, str] = {}


@pytest.fixture(scope="module")
def catalog():
    return load_catalog([str(CATALOG)])


@pytest.fixture(scope="module")
def locks(catalog):
    return {name: resolve(catalog, criteria) for name, criteria in RECIPES.items()}


def names(lock: dict) -> list[str]:
    return [component["name"] for component in lock["spec"]["components"]]


def component(lock: dict, name: str) -> dict:
    return next(item for item in lock["spec"]["components"] if item["name"] == name)


def constraints(lock: dict) -> dict[str, str]:
    return {item["name"]: item["value"] for item in lock["spec"]["constraints"]}


def test_lint_finds_nothing_but_the_components_left_to_sites(catalog):
    allowed = {f"component {name} is listed by no overlay" for name in FOR_SITES}
    problems = lint(catalog)
    assert [str(problem) for problem in problems if problem.message not in allowed] == []
    assert {problem.message for problem in problems} == allowed


def test_every_recipe_resolves_to_a_valid_lock(locks):
    for lock in locks.values():
        lockfile.load_lock(lock)


def test_recipes_are_named_after_their_criteria():
    order = ("accelerator", "service", "os", "intent", "platform")
    expected = {"-".join(criteria[key] for key in order if key in criteria) for criteria in RECIPES.values()}
    assert set(RECIPES) == expected


@pytest.mark.parametrize("dimension", ASKED)
def test_everything_asked_for_is_in_a_recipe_or_left_out_with_a_reason(dimension):
    covered = {criteria.get(dimension) for criteria in RECIPES.values()}
    assert ASKED[dimension] - covered == {value for value in ASKED[dimension] if value in LEFT_OUT}


def test_the_readme_lists_the_recipes():
    text = (CATALOG / "README.md").read_text(encoding="utf-8")
    rows = {
        cells[0].lower(): cells[1:]
        for cells in (
            [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if "|" in line
        )
    }
    columns = ("eks", "gke", "aks", "oke", "kind", "baremetal")
    told = {
        (accelerator, service, platform)
        for accelerator in ASKED["accelerator"]
        for service, cell in zip(columns, rows[accelerator], strict=True)
        for platform in re.sub(r"\(.*\)", "", cell).replace(",", " ").split()
    }
    assert told == {(c["accelerator"], c["service"], c["platform"]) for c in RECIPES.values()}


def test_the_seed_recipe(locks):
    lock = locks["h100-eks-ubuntu-inference-dynamo"]
    pins = {item["name"]: item["chart"]["version"] for item in lock["spec"]["components"]}
    assert pins == {
        "aws-ebs-csi-driver": "2.59.0",
        "aws-efa": "v0.5.29",
        "cert-manager": "v1.20.2",
        "dra-driver-nvidia-gpu": "0.5.0",
        "dynamo-platform": "1.4.2",
        "gpu-operator": "v26.7.0",
        "grove": "v0.1.0-alpha.12",
        "k8s-ephemeral-storage-metrics": "1.19.2",
        "kai-scheduler": "v0.16.9",
        "kube-prometheus-stack": "84.4.0",
        "node-feature-discovery": "0.19.0",
        "nvsentinel": "v1.20.0",
        "prometheus-adapter": "5.3.0",
        "prometheus-operator-crds": "28.0.1",
    }
    driver = component(lock, "gpu-operator")["nodeFacts"]["driver"]
    assert driver == {"valuesPath": "driver.version", "value": "595.91.07"}
    assert constraints(lock)["K8s.server.version"] == ">= 1.34"
    assert constraints(lock)["OS.release.VERSION_ID"] == "24.04"
    assert {"cert-manager", "gpu-operator", "grove", "kai-scheduler"} <= set(
        component(lock, "dynamo-platform")["dependsOn"]
    )


def test_no_catalogue_overlay_makes_two_versions_of_one_chart(locks):
    charts = {}
    for lock in locks.values():
        for item in lock["spec"]["components"]:
            charts.setdefault(item["name"], set()).add(item["chart"]["version"])
    # Run:ai's support matrix asks for a later Prometheus than the others are pinned to
    assert {name for name, versions in charts.items() if len(versions) > 1} == {"kube-prometheus-stack"}


@pytest.mark.parametrize(
    "criteria",
    [
        {"service": "gke"},
        {"service": "gke", "accelerator": "h100", "intent": "training"},
        {"accelerator": "b200"},
        {"os": "rhel"},
        {"platform": "dynamo"},
        {**SEED, "os": "rhel"},
        {**SEED, "os": "cos"},
        {**SEED, "accelerator": "l40s"},
        {**SEED, "intent": "training"},
        {**SEED, "service": "oke"},
        {"service": "baremetal", "accelerator": "h100", "os": "rhel", "intent": "inference", "platform": "dynamo"},
        {"service": "eks", "accelerator": "h100", "os": "ubuntu", "intent": "inference", "platform": "kubeflow"},
        {"service": "aks", "accelerator": "h100", "os": "ubuntu", "intent": "training", "platform": "kueue"},
    ],
    ids=lambda criteria: "-".join(criteria.values()),
)
def test_what_nobody_described_is_not_covered(catalog, criteria):
    with pytest.raises(NotCovered):
        resolve(catalog, criteria)


@pytest.mark.parametrize(
    ("criteria", "absent"),
    [
        ({"service": "eks", "os": "ubuntu"}, {"dynamo-platform", "kubeflow-trainer", "kai-scheduler"}),
        ({"service": "gke", "os": "cos", "accelerator": "h100"}, {"aws-efa", "dra-driver-nvidia-gpu"}),
    ],
)
def test_a_partial_answer_gives_the_common_part_only(catalog, criteria, absent):
    assert absent.isdisjoint(names(resolve(catalog, criteria)))


def test_the_driver_is_fixed_only_where_the_operator_installs_it(locks):
    for name, lock in locks.items():
        operator = component(lock, "gpu-operator")
        preinstalled = RECIPES[name]["service"] in {"gke", "oke", "kind"}
        assert operator["values"]["driver"]["enabled"] is not preinstalled
        assert ("driver" in (operator.get("nodeFacts") or {})) is not preinstalled
        daemonsets = {item["name"] for item in operator["health"]["workloads"]}
        assert ("nvidia-driver-daemonset" in daemonsets) is not preinstalled
        # its labeler would look for a driver pod that never comes
        labeler = component(lock, "nvsentinel")["values"].get("labeler", {})
        assert labeler.get("assumeDriverInstalled", False) is preinstalled


def test_dra_finds_the_driver_where_it_is(locks):
    roots = {"gke": "/home/kubernetes/bin/nvidia", "oke": "/", "kind": "/"}
    for name, lock in locks.items():
        if "dra-driver-nvidia-gpu" in names(lock):
            values = component(lock, "dra-driver-nvidia-gpu")["values"]
            assert values["nvidiaDriverRoot"] == roots.get(RECIPES[name]["service"], "/run/nvidia/driver")
            # the device plugin advertises the GPUs; both would sell them twice
            assert values["resources"]["gpus"]["enabled"] is False
            assert constraints(lock)["K8s.server.version"] == ">= 1.34"


@pytest.mark.parametrize("accelerator", ["gb200", "gb300"])
def test_a_rack_with_one_nvlink_domain_gets_compute_domains(locks, accelerator):
    of_racks = [lock for name, lock in locks.items() if RECIPES[name]["accelerator"] == accelerator]
    assert of_racks
    for lock in of_racks:
        assert component(lock, "dra-driver-nvidia-gpu")["values"]["resources"]["computeDomains"]["enabled"] is True


def test_kernel_module_options_come_before_the_driver_that_reads_them(locks):
    operator = component(locks["gb200-eks-ubuntu-training-kubeflow"], "gpu-operator")
    manifest = next(item for item in operator["manifests"] if item["name"] == "kernel-module-params")
    wanted = operator["values"]["driver"]["kernelModuleConfig"]["name"]
    assert manifest["phase"] == "pre"
    assert yamltree.load_text(manifest["content"], "manifest").data["metadata"]["name"] == wanted


@pytest.mark.parametrize(
    ("recipe", "check", "expression"),
    [
        ("h100-eks-ubuntu-training-kubeflow", "nccl-all-reduce", "value >= 300"),
        ("h100-eks-ubuntu-training-kueue", "nccl-all-reduce", "value >= 300"),
        ("h100-gke-cos-training-kubeflow", "nccl-all-reduce", "value >= 250"),
        ("h100-aks-ubuntu-training-kubeflow", "nccl-all-reduce", "value >= 100"),
        ("gb200-eks-ubuntu-training-kubeflow", "nccl-all-reduce-nvls", "value >= 500"),
    ],
)
def test_bandwidth_floors(locks, recipe, check, expression):
    found = {item["name"]: item["expression"] for item in locks[recipe]["spec"]["checks"]}
    assert found[check] == expression


@pytest.mark.parametrize(
    ("service", "storage_class"),
    [
        ("eks", "gp3"),
        ("aks", "managed-csi"),
        ("gke", "standard-rwo"),
        ("oke", "oci-bv"),
        ("kind", "standard"),
        ("baremetal", None),
    ],
)
def test_prometheus_keeps_its_data_on_the_services_own_storage(locks, service, storage_class):
    for name, lock in locks.items():
        if RECIPES[name]["service"] == service:
            spec = component(lock, "kube-prometheus-stack")["values"]["prometheus"]["prometheusSpec"]
            claim = spec["storageSpec"]["volumeClaimTemplate"]["spec"]
            assert claim.get("storageClassName") == storage_class
            assert spec["retention"]


def test_what_must_run_on_a_gated_node_tolerates_its_gate(locks):
    everything = [{"operator": "Exists"}]
    for lock in locks.values():
        assert component(lock, "gpu-operator")["values"]["daemonsets"]["tolerations"] == everything
        assert component(lock, "nvsentinel")["values"]["global"]["tolerations"] == everything


def test_nvsentinel_never_acts_on_nodes(locks):
    for lock in locks.values():
        values = component(lock, "nvsentinel")["values"]["global"]
        assert [
            values[part]["enabled"] for part in ("faultQuarantine", "nodeDrainer", "faultRemediation", "janitor")
        ] == [False] * 4


def test_run_ai_gets_its_prerequisites_and_no_second_scheduler(locks):
    lock = locks["h100-eks-ubuntu-training-runai"]
    assert {"kai-scheduler", "kueue", "dra-driver-nvidia-gpu", "prometheus-operator-crds"}.isdisjoint(names(lock))
    stack = component(lock, "kube-prometheus-stack")
    assert stack["chart"]["version"] == "88.6.5"
    assert stack["values"]["crds"] == {"enabled": True}


def test_the_recipes_for_trying_things_out_are_small(locks):
    sizes = {name: len(names(lock)) for name, lock in locks.items() if RECIPES[name]["service"] == "kind"}
    assert len(sizes) >= 2
    assert all(8 <= size <= 12 for size in sizes.values()), sizes


@pytest.mark.parametrize("name", sorted(COMPONENTS))
def test_a_component_has_one_pinned_source_and_says_what_it_is(name):
    chart = COMPONENTS[name]["chart"]
    assert PINNED.fullmatch(chart["version"])
    assert re.fullmatch(r"(https|oci)://[a-z0-9.-]+(/[A-Za-z0-9._-]+)*", chart["repository"])
    # an OCI reference is REPOSITORY/NAME: the name twice is the usual slip, and only KAI is really published so
    doubled = chart["repository"].startswith("oci://") and chart["repository"].endswith(f"/{chart['name']}")
    assert doubled is (name == "kai-scheduler")
    assert COMPONENTS[name]["description"]
    for image in COMPONENTS[name].get("images", []):
        assert re.search(r":[^:/]*\d[^:/]*$|@sha256:[0-9a-f]{64}$", image), image


@pytest.mark.parametrize("name", sorted(OVERLAYS))
def test_an_overlay_says_what_it_is_for_and_is_small(name):
    assert OVERLAYS[name]["metadata"]["description"]
    assert len(yamltree.dump(OVERLAYS[name]).splitlines()) <= 80


def test_the_readmes_examples_work_as_a_sites_layer(tmp_path):
    text = (CATALOG / "README.md").read_text(encoding="utf-8")
    examples = [block for block in re.findall(r"```yaml\n(.*?)```", text, re.S) if "kind: Overlay" in block]
    assert len(examples) == 2
    (tmp_path / "overlays").mkdir()
    for number, block in enumerate(examples):
        (tmp_path / "overlays" / f"{number}.yaml").write_text(block, encoding="utf-8")
    catalog = load_catalog([str(CATALOG), str(tmp_path)])
    assert not [problem for problem in lint(catalog) if problem.severity == "error"]
    lock = resolve(
        catalog, {"service": "eks", "accelerator": "h200", "os": "ubuntu", "intent": "training", "platform": "kueue"}
    )
    assert "k8s-ephemeral-storage-metrics" not in names(lock)
    assert component(lock, "kube-prometheus-stack")["values"]["prometheus"]["prometheusSpec"]["retention"] == "30d"
    assert "kueue" in names(lock)
