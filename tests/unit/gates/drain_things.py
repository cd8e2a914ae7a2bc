"""Raw pods, budgets and nodes, short to write, and a cluster in memory that takes evictions as an API server does."""

from __future__ import annotations

import copy
import itertools
import threading
from urllib.parse import unquote

from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.failures import Refused
from ansible_collections.goodput.fleet.plugins.module_utils.gates import drain_pods, labels
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import Conflict, NotFound, Unavailable

NOW = 1_764_450_000.0  # 2025-11-29T21:00:00Z
UIDS = itertools.count(1)


def stamp(seconds: float) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def pod(
    name: str = "web-1",
    namespace: str = "apps",
    owner: tuple[str, str] | None = ("ReplicaSet", "web"),
    node: str = "gpu-0",
    phase: str = "Running",
    ready: bool = True,
    gpus: int | str | None = None,
    labels: dict | None = None,
    annotations: dict | None = None,
    deleted: float | None = None,
    grace: int = 30,
    **spec,
) -> dict:
    """A raw pod. `deleted`: Unix time at which its grace ends."""
    meta: dict = {"name": name, "namespace": namespace, "uid": f"uid-{next(UIDS)}", "resourceVersion": "1"}
    meta["labels"], meta["annotations"] = labels or {}, annotations or {}
    if owner:
        meta["ownerReferences"] = [{"kind": owner[0], "name": owner[1], "uid": f"of-{owner[1]}", "controller": True}]
    if deleted is not None:
        meta.update(deletionTimestamp=stamp(deleted), deletionGracePeriodSeconds=grace)
    limits = {} if gpus is None else {"nvidia.com/gpu": str(gpus)}
    return {
        "metadata": meta,
        "spec": {"nodeName": node, "containers": [{"name": "main", "resources": {"limits": limits}}], **spec},
        "status": {"phase": phase, "conditions": [{"type": "Ready", "status": "True" if ready else "False"}]},
    }


def read(*args, **fields) -> drain_pods.Pod:
    return drain_pods.read(pod(*args, **fields))


def budget(name: str = "web", namespace: str = "apps", allowed: int = 0, selector: dict | None = None, **more) -> dict:
    status = {"disruptionsAllowed": allowed, "currentHealthy": more.pop("healthy", 2), "desiredHealthy": 2}
    spec = {"selector": {"matchLabels": {"app": "web"}} if selector is None else selector, **more}
    return {"metadata": {"name": name, "namespace": namespace}, "spec": spec, "status": status}


def node(name: str = "gpu-0", cordoned: bool = True, ready: str = "True", annotations=None, taints=None) -> dict:
    return {
        "metadata": {"name": name, "uid": f"uid-of-{name}", "annotations": annotations or {}},
        "spec": {"unschedulable": cordoned, "taints": taints or []},
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }


class Cluster:
    """Nodes, pods and budgets in memory, as a client of them. Deleted pods go after `ends` seconds of its clock."""

    def __init__(self, *pods: dict, nodes: list[dict] | None = None, budgets: list[dict] | None = None, ends=1.0):
        self.now, self.ends = NOW, ends
        self.nodes = {item["metadata"]["name"]: item for item in nodes or [node()]}
        self.pods = {self._key(item): item for item in pods}
        self.budgets = budgets or []
        self.asked: list[tuple[str, str, dict]] = []  # ("evict" | "delete", namespace/name, options)
        self.answers: dict[str, list] = {}  # namespace/name: errors to raise, in turn, before it works
        self.at: list[tuple[float, object]] = []  # (time, what happens then)
        self._going: dict[str, float] = {}  # uid: time it is gone
        self._lock = threading.Lock()

    @staticmethod
    def _key(item: dict) -> str:
        return f"{item['metadata']['namespace']}/{item['metadata']['name']}"

    # ---- time ----

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now += seconds
        for item in list(self.at):
            if item[0] <= self.now:
                self.at.remove(item)
                item[1]()
        for key, item in list(self.pods.items()):
            if self._going.get(item["metadata"]["uid"], float("inf")) <= self.now:
                del self.pods[key]

    # ---- the client ----

    def get(self, path: str) -> dict:
        name = path.removeprefix("/api/v1/nodes/")
        if name not in self.nodes:
            raise NotFound("it is not there")
        return copy.deepcopy(self.nodes[name])

    def list(self, path: str, fieldSelector: str = ""):
        if "poddisruptionbudgets" in path:
            return [item for item in self.budgets if f"/{item['metadata']['namespace']}/" in path]
        wanted = fieldSelector.split(",")[0].removeprefix("spec.nodeName").lstrip("=!")
        return [copy.deepcopy(item) for item in self.pods.values() if wanted in ("", item["spec"]["nodeName"])]

    def post(self, path: str, body: dict) -> dict:
        _, _, _, _, namespace, _, name, sub = map(unquote, path.split("/"))
        assert sub == "eviction" and body["apiVersion"] == "policy/v1"
        with self._lock:
            return self._delete("evict", f"{namespace}/{name}", body["deleteOptions"])

    def delete(self, path: str, options: dict) -> dict:
        parts = path.split("/")
        with self._lock:
            return self._delete("delete", f"{parts[4]}/{parts[6]}", options)

    def _delete(self, how: str, key: str, options: dict) -> dict:
        self.asked.append((how, key, options))
        if self.answers.get(key):
            answer = self.answers[key].pop(0)
            if isinstance(answer, Exception):
                raise answer
            answer()
        item = self.pods.get(key)
        if item is None:
            raise NotFound("it is not there")
        meta = item["metadata"]
        wanted = options["preconditions"]
        if any(meta[name] != value for name, value in wanted.items()):
            raise Conflict("the precondition does not hold")
        if how == "evict":
            self._spend(item)
        if "deletionTimestamp" not in meta or options.get("gracePeriodSeconds") == 0:
            meta["deletionTimestamp"], meta["resourceVersion"] = stamp(self.now + 30), "2"
            meta["deletionGracePeriodSeconds"] = 30
            self._going[meta["uid"]] = self.now + (0 if options.get("gracePeriodSeconds") == 0 else self.ends)
        return {}

    def _spend(self, item: dict) -> None:
        found = [
            each
            for each in self.budgets
            if each["metadata"]["namespace"] == item["metadata"]["namespace"]
            and labels.matches(each["spec"]["selector"], item["metadata"]["labels"])
        ]
        if len(found) > 1:
            raise with_status(Unavailable("answered 500: more than one PodDisruptionBudget"), 500)
        for each in found:
            if each["status"]["disruptionsAllowed"] < 1:
                raise forbidden_by_budget()
            each["status"]["disruptionsAllowed"] -= 1


def with_status(error, status: int, **more):
    error.status = status
    for name, value in more.items():
        setattr(error, name, value)
    return error


def forbidden_by_budget():
    return with_status(Refused("cannot evict: would violate the budget", code="disruption-budget"), 429)
