"""What manifests ask for, and CRDs as the API server stores them."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import yaml
from ansible_collections.goodput.fleet.plugins.module_utils.records import manifests
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument

from tests.unit.drift.samples import CRD, MANIFEST

ODD = yaml.load(Path(__file__).with_name("odd_crd.yaml").read_text(), Loader=manifests._loader())


def test_workloads_and_crds_of_texts():
    found = manifests.from_texts([MANIFEST, CRD], "gpu-operator", "x")
    assert [(item["kind"], item["namespace"], item["name"], item["images"]) for item in found["workloads"]] == [
        ("CronJob", "other", "sweep", {"sweep": "busybox:1.36"}),
        (
            "Deployment",
            "gpu-operator",
            "gpu-operator",
            {"gpu-operator": "nvcr.io/nvidia/gpu-operator:v26.7.0", "setup": "nvcr.io/nvidia/cuda:13.0"},
        ),
    ]
    assert [item["name"] for item in found["crds"]] == ["clusterpolicies.nvidia.com"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "---\n---\n# only a comment\n",
        "kind: ConfigMap\nmetadata: {name: x}\ndata:\n  y: |\n    kind: Deployment\n",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x, annotations: {helm.sh/hook: post-install}}\n",
    ],
)
def test_what_is_no_workload(text):
    assert manifests.from_texts([text], "x", "x") == {"workloads": [], "crds": []}


@pytest.mark.parametrize(
    "text",
    [
        'kind: "Deployment"\nmetadata: {name: d}',
        "'kind': 'Deployment'\nmetadata: {name: d}",
        '{"kind": "Deployment", "metadata": {"name": "d"}}',
        "kind: List\nitems:\n- kind: Deployment\n  metadata: {name: d}",
        "kind: ConfigMap\n---  # next\nkind: Deployment\nmetadata: {name: d}\n",
    ],
)
def test_ways_to_write_a_deployment(text):
    assert [item["name"] for item in manifests.from_texts([text], "x", "x")["workloads"]] == ["d"]


def test_a_malformed_manifest_names_its_source():
    with pytest.raises(InvalidDocument, match="release a/b: malformed manifest"):
        manifests.from_texts(["kind: Deployment\n  x: ["], "x", "release a/b")


def changed(path: str, value) -> dict:
    """The odd CRD with one field of its second version, or of the whole, set."""
    item = copy.deepcopy(ODD)
    *parents, last = path.split("/")
    place = item
    for key in parents:
        place = place[int(key)] if isinstance(place, list) else place[key]
    place[last] = value
    return item


V1 = "spec/versions/1"
SPEC = f"{V1}/schema/openAPIV3Schema/properties/spec"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata/annotations", {"controller-gen.kubebuilder.io/version": "v0.20"}),
        ("metadata/resourceVersion", "7"),
        ("status", {"storedVersions": ["v1"]}),
        ("spec/preserveUnknownFields", None),
        ("spec/names/singular", "widget"),
        ("spec/names/listKind", "WidgetList"),
        ("spec/conversion/webhook/clientConfig/caBundle", "Zm9v"),
        ("spec/conversion/webhook/clientConfig/service/port", 443),
        (f"{V1}/additionalPrinterColumns/0/priority", None),
        (f"{V1}/schema/openAPIV3Schema/description", None),
        (f"{SPEC}/nullable", None),
        (f"{SPEC}/properties/ratio/maximum", 1),
        (f"{SPEC}/properties/ratio/default", 1),
        (f"{SPEC}/properties/replicas/maximum", 9007199254740992),  # a float to the API server
        (f"{SPEC}/properties/nothing/default", None),
        (f"{SPEC}/properties/set/uniqueItems", None),
        (f"{SPEC}/unknownKeyword", True),
    ],
)
def test_what_the_api_server_adds_or_drops_is_no_difference(path, value):
    assert manifests.crd(changed(path, value)) == manifests.crd(ODD)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec/scope", "Cluster"),
        ("spec/names/shortNames", ["w"]),
        ("spec/conversion", {"strategy": "None"}),
        ("spec/conversion/webhook/clientConfig/service/path", "/other"),
        (f"{V1}/served", False),
        (f"{V1}/additionalPrinterColumns/0/jsonPath", ".spec.x"),
        (f"{V1}/subresources", {"status": {}}),
        (f"{SPEC}/required", []),
        (f"{SPEC}/properties/color/enum", ["red"]),
        (f"{SPEC}/properties/color/default", "on"),
        (f"{SPEC}/properties/replicas/default", 1),
        (f"{SPEC}/properties/set/minItems", None),
        (f"{SPEC}/properties/free/x-kubernetes-preserve-unknown-fields", False),
        (f"{SPEC}/properties/map/default", None),
        (f"{SPEC}/properties/description/description", "other"),
        (f"{SPEC}/properties/new", {}),
        (f"{SPEC}/x-kubernetes-validations/0/rule", "true"),
    ],
)
def test_what_a_person_changed_is_a_difference(path, value):
    assert manifests.crd(changed(path, value))["digest"] != manifests.crd(ODD)["digest"]


def test_the_version_that_differs_is_told_apart():
    before, after = manifests.crd(ODD), manifests.crd(changed(f"{SPEC}/required", []))
    assert before["versions"]["v1"] != after["versions"]["v1"]
    assert before["versions"]["v1beta1"] == after["versions"]["v1beta1"]
