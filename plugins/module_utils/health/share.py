# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One component's share of its namespace: the workloads and pods that are its own, and what is wrong with them."""

from __future__ import annotations

from ansible_collections.goodput.fleet.plugins.module_utils.health import pods, workloads
from ansible_collections.goodput.fleet.plugins.module_utils.health.owners import Owners, controller
from ansible_collections.goodput.fleet.plugins.module_utils.health.reasons import unhealthy, unreadable

NOT_READ = {"error": {"code": "unavailable", "message": "was not read"}}
ROLLOUTS = ("Deployment", "DaemonSet", "StatefulSet")


def namespaces(component: dict) -> list[str]:
    """The component's own namespace, then others that its declared workloads are in."""
    declared = (component.get("health") or {}).get("workloads") or []
    own = component["namespace"]
    return [own, *sorted({item.get("namespace") or own for item in declared} - {own})]


class Share:
    """`exclusive`: the component has the namespace for itself, so that every pod in it is its pod."""

    def __init__(self, component: dict, objects: dict, exclusive: bool):
        health = component.get("health") or {}
        self.component, self.exclusive = component, exclusive
        self.namespace = component["namespace"]
        self.release = component.get("release") or component["name"]
        self.selector = health.get("selector") or {}
        self.declared = health.get("workloads")
        self.lists = {name: objects.get("lists", {}).get(name, {}) for name in namespaces(component)}
        self.space = objects.get("namespaces", {}).get(self.namespace, NOT_READ)
        self.judged: set[tuple[str, str, str]] = set()  # (namespace, kind, name) of workloads that were evaluated

    def faults(self, proven_otherwise: bool) -> list[dict]:
        """All reasons. `proven_otherwise`: CRDs or checks stand for the component, it need not run anything."""
        wanted = self._wanted()
        if "object" in self.space and self.space["object"] is None:
            # without the namespace nothing of it can be there: one reason says it all
            return (
                []
                if proven_otherwise and not wanted
                else [self._absent(f"Namespace/{self.namespace}", "does not exist, so nothing of the component runs")]
            )
        found = self._namespace()
        for namespace in self.lists:
            found += self._workloads(
                namespace, {key[1:]: value for key, value in wanted.items() if key[0] == namespace}
            )
        if not (self.judged or found or wanted or proven_otherwise):
            found.append(
                self._absent(
                    f"Release/{self.namespace}/{self.release}",
                    "no workload of this release is in the cluster",
                    "; if it runs none, say in health.checks what proves it",
                )
            )
        for namespace in self.lists:
            found += self._pods(namespace)
        return found

    def _wanted(self) -> dict[tuple[str, str, str], bool]:
        """(namespace, kind, name) -> optional, of what must be there: as declared, else as the chart renders it."""
        own = self.namespace
        if self.declared is not None:
            return {
                (item.get("namespace") or own, item["kind"], item["name"]): bool(item.get("optional"))
                for item in self.declared
            }
        rendered = (self.component.get("rendered") or {}).get("workloads") or []
        # a chart's Jobs are hooks as a rule, which Helm deletes when they are done
        return {
            (own, item["kind"], item["name"]): False
            for item in rendered
            if item["kind"] in ROLLOUTS and item.get("namespace") in (None, "", own)
        }

    def _namespace(self) -> list[dict]:
        name = f"Namespace/{self.namespace}"
        if self.space.get("error"):
            return [unreadable(name, self.space["error"])]
        meta, status = self.space["object"]["metadata"], self.space["object"].get("status") or {}
        if status.get("phase") == "Active" and not meta.get("deletionTimestamp"):
            return []
        held = [item.get("message", "") for item in status.get("conditions") or [] if item.get("status") == "True"]
        text = "; ".join(["is being deleted", *held])
        return [unhealthy("terminating", name, text, f"kubectl get namespace {self.namespace} -o yaml")]

    def _read(self, namespace: str, kind: str) -> dict:
        return self.lists[namespace].get(kind, NOT_READ)

    def _workloads(self, namespace: str, wanted: dict[tuple[str, str], bool]) -> list[dict]:
        found = []
        for kind in workloads.KINDS if self.declared is None else sorted({kind for kind, _name in wanted}):
            answer = self._read(namespace, kind)
            if answer.get("error"):
                found.append(unreadable(f"{kind}s in namespace {namespace}", answer["error"]))
                continue
            present = {item["metadata"]["name"]: item for item in answer["items"]}
            for name, obj in sorted(present.items()):
                if (kind, name) in wanted or (self.declared is None and self._discovered(kind, obj)):
                    self.judged.add((namespace, kind, name))
                    found += workloads.faults(kind, obj, wanted.get((kind, name), False))
            missing = (
                name
                for (want, name), optional in wanted.items()
                if want == kind and name not in present and not optional
            )
            found += [self._absent(f"{kind}/{namespace}/{name}", "is not in the cluster") for name in missing]
        return found

    def _discovered(self, kind: str, obj: dict) -> bool:
        # Jobs of a CronJob come and go; their pods tell
        return self._mine(obj) and not (kind == "Job" and controller(obj))

    def _mine(self, obj: dict) -> bool:
        """By the component's selector, else by the labels and annotations of its release."""
        labels, annotations = obj["metadata"].get("labels") or {}, obj["metadata"].get("annotations") or {}
        if self.selector:
            return all(labels.get(key) == value for key, value in self.selector.items())
        return self.release in (annotations.get("meta.helm.sh/release-name"), labels.get("app.kubernetes.io/instance"))

    def _pods(self, namespace: str) -> list[dict]:
        answer = self._read(namespace, "Pod")
        if answer.get("error"):
            return [unreadable(f"Pods in namespace {namespace}", answer["error"])]
        owners = Owners(
            *(self._read(namespace, kind).get("items") or [] for kind in ("Deployment", "ReplicaSet", "Job"))
        )
        every = self.exclusive and not self.selector and namespace == self.namespace
        found, kinds = [], set()
        for pod in answer["items"]:
            top = owners.top(pod)
            judged = (namespace, *top) in self.judged
            if not (judged or every or (namespace == self.namespace and self._mine(pod))):
                continue
            kinds.add((controller(pod) or ("",))[0])
            if not owners.is_past(pod):
                who = f"{top[0]}/{namespace}/{top[1]}" if top else ""
                must_be_ready = not judged and top[:1] not in (("Job",), ("CronJob",))
                found += [(pod, who, fault) for fault in pods.faults(pod, must_be_ready)]
        # without the controllers it is not known which pods still count
        unread = {kind: self._read(namespace, kind).get("error") for kind in ("ReplicaSet", "Job") if kind in kinds}
        return pods.fold(found) + [
            unreadable(f"{kind}s in namespace {namespace}", error) for kind, error in unread.items() if error
        ]

    def _absent(self, obj: str, text: str, more: str = "") -> dict:
        return unhealthy("absent", obj, text, f"install {self.component['name']}{more}")
