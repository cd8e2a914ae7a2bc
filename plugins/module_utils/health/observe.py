# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads what evaluate.py judges, and only that: the components' namespaces, their CRDs, their checks' objects.

Read-only (get and list). What the account may not read, or the server fails to give, is noted in its place; a
server that cannot be reached or refuses the credential ends the run with the client's own error.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from ansible_collections.goodput.fleet.plugins.module_utils.health import checks, crds, pods, share
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import Denied, FleetError, NotFound

KINDS = {
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
    "DaemonSet": "/apis/apps/v1/namespaces/{}/daemonsets",
    "StatefulSet": "/apis/apps/v1/namespaces/{}/statefulsets",
    "ReplicaSet": "/apis/apps/v1/namespaces/{}/replicasets",
    "Job": "/apis/batch/v1/namespaces/{}/jobs",
    "CronJob": "/apis/batch/v1/namespaces/{}/cronjobs",
    "Pod": "/api/v1/namespaces/{}/pods",
}
ALWAYS = ("Deployment", "DaemonSet", "StatefulSet", "ReplicaSet", "Job", "Pod")
THREADS = 8
ANNOTATIONS = ("meta.helm.sh/release-name", "deployment.kubernetes.io/revision")
METADATA = ("name", "namespace", "labels", "generation", "creationTimestamp", "deletionTimestamp", "ownerReferences")


def observe(client, components: list[dict]) -> dict:
    """The `objects` of evaluate.evaluate(). `client` has get(path) and list(path, metadata_only=...)."""
    namespaces = sorted({name for component in components for name in share.namespaces(component)})
    declared = {
        item["kind"] for component in components for item in (component.get("health") or {}).get("workloads") or []
    }
    kinds = [*ALWAYS, *sorted(declared - {*ALWAYS})]
    partial = {"ReplicaSet"} - declared  # only whose they are and which revision
    wanted = sorted({name for component in components for name in crds.names(component)})
    asked = {
        checks.key(component, check): check
        for component in components
        for check in (component.get("health") or {}).get("checks") or []
    }
    with ThreadPoolExecutor(THREADS) as pool:
        spaces = {name: pool.submit(_answer, lambda name=name: _namespace(client, name)) for name in namespaces}
        lists = {
            (name, kind): pool.submit(
                _answer, lambda name=name, kind=kind: {"items": _list(client, name, kind, kind in partial)}
            )
            for name in namespaces
            for kind in kinds
        }
        found = {name: pool.submit(_answer, lambda name=name: _crd(client, name)) for name in wanted}
        objects = {
            key: pool.submit(_answer, lambda key=key, check=check: _checked(client, key, check))
            for key, check in asked.items()
        }
        return {
            "namespaces": {name: future.result() for name, future in spaces.items()},
            "lists": {name: {kind: lists[name, kind].result() for kind in kinds} for name in namespaces},
            "crds": _joined([future.result() for future in found.values()]),
            "checks": {key: future.result() for key, future in objects.items()},
        }


def _answer(read: Callable[[], dict]) -> dict:
    try:
        return read()
    except NotFound as error:
        return {"absent": True, "items": [], "object": None, "message": str(error)}
    except FleetError as error:
        status = getattr(error, "status", None)
        if status is None or status == 401:
            raise
        return {"error": {"code": "denied" if isinstance(error, Denied) else "unavailable", "message": str(error)}}


def _namespace(client, name: str) -> dict:
    return {"object": slim(client.get(f"/api/v1/namespaces/{name}"))}


def _list(client, namespace: str, kind: str, metadata_only: bool) -> list[dict]:
    items = client.list(KINDS[kind].format(namespace), metadata_only=metadata_only)
    if kind == "Pod":
        # a pod without a fault adds nothing to the verdict, and there may be tens of thousands
        items = (pod for pod in items if pods.faults(pod, must_be_ready=True))
    return [slim(item) for item in items]


def _crd(client, name: str) -> dict:
    crd = client.get(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}")
    return {"items": [{"metadata": slim(crd)["metadata"], "status": {"conditions": crd["status"].get("conditions")}}]}


def _joined(answers: list[dict]) -> dict:
    """One answer of many; what failed for one failed for all that it says."""
    failed = next((answer for answer in answers if answer.get("error")), None)
    return failed or {"items": [item for answer in answers for item in answer["items"]]}


def _checked(client, key: tuple[str, str, str], check: dict) -> dict:
    version, plural, namespace = key
    base = f"/apis/{version}" if "/" in version else f"/api/{version}"
    if not check.get("plural"):
        served = {item["kind"]: item["name"] for item in client.get(base)["resources"] if "/" not in item["name"]}
        if check["kind"] not in served:
            return {"absent": True, "items": []}
        plural = served[check["kind"]]
    items = list(client.list(f"{base}/namespaces/{namespace}/{plural}" if namespace else f"{base}/{plural}"))
    for item in items:
        item["metadata"].pop("managedFields", None)
    return {"items": items}


def slim(obj: dict) -> dict:
    """The object without what no rule reads; the pod template is most of a workload's size."""
    meta = obj["metadata"]
    kept = {key: meta[key] for key in METADATA if key in meta}
    kept["annotations"] = {key: value for key, value in (meta.get("annotations") or {}).items() if key in ANNOTATIONS}
    spec = obj.get("spec") or {}
    fields = ("replicas", "paused", "updateStrategy", "nodeName", "suspend", "completions")
    kept_spec = {key: spec[key] for key in fields if key in spec}
    return {"metadata": kept, "spec": kept_spec, "status": obj.get("status") or {}}
