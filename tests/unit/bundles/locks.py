"""Locks for the tests: small ones by hand, and any graph by hypothesis."""

from __future__ import annotations

from ansible_collections.goodput.fleet.plugins.module_utils.records import digest, graph
from ansible_collections.goodput.fleet.plugins.module_utils.records.lockfile import load_lock
from hypothesis import strategies as st

CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: widgets.example.com
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions:
    - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, description: "{{ braces }}"}}}
"""
WIDGET = """\
apiVersion: example.com/v1
kind: Widget
metadata: {name: one}
"""
ALERT = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: alerts}
data:
  text: "{{ $labels.node }} lost {{ $value }} GPUs {{{ {{- x -}} }}"
"""
QUOTA = """\
apiVersion: v1
kind: ResourceQuota
metadata: {name: critical-pods}
spec: {hard: {pods: 1k}}
"""


def manifest(name: str, content: str, phase: str = "post") -> dict:
    return {"name": name, "phase": phase, "content": content, "digest": digest.sha256_bytes(content.encode())}


def chart(name: str, version: str = "1.2.3", repository: str = "https://charts.example.com/stable") -> dict:
    return {"name": name, "repository": repository, "version": version}


def component(name: str, *needs: str, **fields) -> dict:
    found = {
        "name": name,
        "namespace": name,
        "release": name,
        "tier": 0,
        "dependsOn": sorted(needs),
        "values": {},
        **fields,
    }
    if not found.get("chart") and not found.get("manifests"):
        found["chart"] = chart(name)
    found["valuesDigest"] = digest.sha256(found["values"])
    return found


def lock(*components: dict, **spec) -> dict:
    """A lock that `load_lock` accepts; tiers, order and digests follow from the components."""
    edges = {one["name"]: one["dependsOn"] for one in components}
    tiers = graph.tiers(edges)
    order = graph.order(edges)
    whole = {
        "criteria": {"service": "eks", "accelerator": "h100"},
        "catalog": {"digest": digest.sha256("catalogue"), "version": "1.0.0"},
        "overlays": [{"name": "base", "criteria": {}}],
        "components": sorted(
            ({**one, "tier": tiers[one["name"]]} for one in components), key=lambda one: (one["tier"], one["name"])
        ),
        "constraints": [
            {
                "name": "K8s.server.version",
                "value": ">= 1.34",
                "severity": "error",
                "remediation": "upgrade",
                "from": "base",
            }
        ],
        "checks": [],
        "order": order,
        **spec,
    }
    return load_lock(sealed(whole))


def sealed(spec: dict) -> dict:
    return {
        "apiVersion": "goodput.fleet/v1alpha1",
        "kind": "RecipeLock",
        "metadata": {"name": "-".join(spec["criteria"].values()), "digest": digest.sha256(spec)},
        "spec": spec,
    }


def sample() -> dict:
    """Charts over HTTPS and OCI, manifests before and after, manifests only, CRDs, shared namespaces, braces, nulls."""
    return lock(
        component(
            "cert-manager",
            chart=chart("cert-manager", "v1.20.2", "https://charts.jetstack.io"),
            values={"crds": {"enabled": True}, "image": {"repository": "quay.io/jetstack/cert-manager-controller"}},
            crds=["certificates.cert-manager.io"],
            images=[f"quay.io/jetstack/cert-manager-{part}:v1.20.2" for part in ("controller", "webhook")],
        ),
        component("quotas", namespace="gpu-operator", manifests=[manifest("critical-pods", QUOTA)]),
        component(
            "gpu-operator",
            "cert-manager",
            "quotas",
            chart=chart("gpu-operator", "v26.7.0", "https://helm.ngc.nvidia.com/nvidia/"),
            values={
                "driver": {"version": "580.105.08", "repository": "nvcr.io/nvidia", "image": "driver"},
                "alert": "{{ $labels.node }} is gone\nfor ${GOOD}\n\n  indented\n",
                "looksLikeANumber": "1e3",
                "tolerations": [{"operator": "Exists"}],
                "empty": {},
                "cost": 1.5,
                "n": False,
            },
            crds=["clusterpolicies.nvidia.com"],
            manifests=[
                manifest("tuning", ALERT),
                manifest("widget", CRD + "---\n" + WIDGET),
                manifest("first", QUOTA, "pre"),
            ],
            images=["nvcr.io/nvidia/driver:580.105.08", "nvcr.io/nvidia/gpu-operator:v26.7.0"],
            nodeFacts={"driver": {"valuesPath": "driver.version", "value": "580.105.08"}},
        ),
        component(
            "kai-scheduler",
            "gpu-operator",
            release="kai",
            chart=chart("kai-scheduler", "v0.16.9", "oci://ghcr.io/kai-scheduler/kai-scheduler"),
            values={"global": {"registry": "ghcr.io/kai-scheduler"}, "gone": None, "deep": [{"also": None, "n": 1}]},
        ),
        component(
            "widgets",
            "gpu-operator",
            manifests=[manifest("crd", CRD, "pre"), manifest("one", WIDGET), manifest("early", QUOTA, "pre")],
        ),
        component("tail", "widgets", namespace="gpu-operator"),
    )


NAMES = [f"c{number}" for number in range(9)]


@st.composite
def any_lock(draw) -> dict:
    """Any acyclic graph of up to nine components with charts and manifests in every combination."""
    names = draw(st.permutations(NAMES))[: draw(st.integers(1, len(NAMES)))]
    components = []
    for index, name in enumerate(names):
        needs = draw(st.lists(st.sampled_from(names[:index]), unique=True, max_size=4)) if index else []
        kind = draw(st.sampled_from(["https", "oci", "none"]))
        phases = draw(st.lists(st.sampled_from(["pre", "post"]), min_size=int(kind == "none"), max_size=3))
        texts = [draw(st.sampled_from([QUOTA, CRD, CRD + "---\n" + WIDGET, ALERT])) for _phase in phases]
        fields = {"manifests": [manifest(f"m{number}", text, phase)
                                for number, (phase, text) in enumerate(zip(phases, texts, strict=True))]}  # fmt: skip
        if kind != "none":
            repository = "oci://registry.example.com/charts" if kind == "oci" else draw(
                st.sampled_from(["https://charts.example.com/a", "https://charts.example.com/b"]))  # fmt: skip
            fields["chart"] = chart(name, repository=repository)
            fields["values"] = draw(st.sampled_from([{}, {"a": 1}, {"a": {"b": None}}, {"x": "text\n\n"}]))
        namespace = draw(st.sampled_from(["shared", name]))
        components.append(component(name, *needs, namespace=namespace, **fields))
    return lock(*components)
