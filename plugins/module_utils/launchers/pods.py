# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pod of a run: pinned to the run's nodes, one on each, with all that the test asks for. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.launchers import names

GPU_TAINT = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
KEYS_PATH = "/etc/goodput-ssh"
GRACE_SECONDS = 10
# nobody may move a pod that measures
UNDISTURBED = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false", "karpenter.sh/do-not-disrupt": "true"}


def template(
    run: Mapping,
    labels: Mapping[str, str],
    *,
    command: Iterable[str],
    env: Iterable[Mapping] = (),
    role: str = names.WORKER,
    subdomain: str = "",
    keys_secret: str = "",
) -> dict:
    """A pod template. `labels`: of names.of_run. `env`: entries after those of the run.

    role launcher: without devices, on any of the run's nodes. keys_secret: name of a Secret with SSH keys.
    """
    worker = role == names.WORKER
    container: dict = {
        "name": names.CONTAINER,
        "image": run["image"],
        "env": [*({"name": name, "value": str(value)} for name, value in sorted(run["env"].items())), *env],
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    if command := list(command):
        container["command"] = command
    if worker:
        container["resources"] = resources(run)
    if security := _security(run):
        container["securityContext"] = security
    volumes, mounts = _volumes(run, keys_secret)
    if mounts:
        container["volumeMounts"] = mounts
    spec: dict = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "affinity": _affinity(run, worker),
        "tolerations": tolerations(run),
        "containers": [container],
    }
    if volumes:
        spec["volumes"] = volumes
    if run["imagePullSecrets"]:
        spec["imagePullSecrets"] = [{"name": name} for name in run["imagePullSecrets"]]
    if run["schedulerName"]:
        spec["schedulerName"] = run["schedulerName"]
    if run["hostNetwork"]:
        spec |= {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}
    if subdomain:
        spec["subdomain"] = subdomain
    return {
        "metadata": {
            "labels": {**run["labels"], **labels, names.ROLE: role},
            "annotations": dict(UNDISTURBED),
        },
        "spec": spec,
    }


def resources(run: Mapping) -> dict:
    """Limits and requests as text; what has a limit only is requested as much by Kubernetes itself."""
    return {
        part: {name: str(value) for name, value in sorted(run["resources"].get(part, {}).items())}
        for part in ("limits", "requests")
        if run["resources"].get(part)
    }


def tolerations(run: Mapping) -> list[dict]:
    """Those that the run names, and the taint that keeps pods without GPUs off."""
    return [*run["tolerations"], *([] if GPU_TAINT in run["tolerations"] else [GPU_TAINT])]


def _affinity(run: Mapping, worker: bool) -> dict:
    """The names of the nodes, since the label kubernetes.io/hostname need not equal them: one term each, for a field
    takes one value. Beside a worker of the run no other fits."""
    terms = [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]} for node in sorted(run["nodes"])
    ]
    affinity: dict = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    if worker and len(run["nodes"]) > 1:
        workers = {"matchLabels": {names.RUN: run["id"], names.ROLE: names.WORKER}}
        apart = {"labelSelector": workers, "topologyKey": "kubernetes.io/hostname"}
        affinity["podAntiAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}
    return affinity


def _security(run: Mapping) -> dict:
    security: dict = {}
    if run["capabilities"]:
        security["capabilities"] = {"add": list(run["capabilities"])}
    if run["privileged"]:
        security["privileged"] = True
    return security


def _volumes(run: Mapping, keys_secret: str) -> tuple[list[dict], list[dict]]:
    volumes: list[dict] = []
    mounts: list[dict] = []
    if run["shm"]:
        limit = {} if run["shm"] == "unlimited" else {"sizeLimit": str(run["shm"])}
        volumes.append({"name": "shm", "emptyDir": {"medium": "Memory", **limit}})
        mounts.append({"name": "shm", "mountPath": "/dev/shm"})
    if keys_secret:
        volumes.append({"name": "ssh-keys", "secret": {"secretName": keys_secret, "defaultMode": 0o400}})
        mounts.append({"name": "ssh-keys", "mountPath": KEYS_PATH, "readOnly": True})
    return volumes, mounts
