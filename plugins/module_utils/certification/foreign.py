# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Certifications of NVIDIA's cluster readiness engine (nvcre.nvidia.com/v1alpha1) as ours. Pure."""

from __future__ import annotations

import copy
from collections.abc import Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.records import yamltree
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, nearest
from ansible_collections.goodput.fleet.plugins.module_utils.records.schema import API_VERSION

VERSIONS = ("nvcre.nvidia.com/v1alpha1", "cre.nvidia.com/v1alpha1")
NIC_RESOURCE = "nvidia.com/mlnxnics"
_QUEUE_LABEL, _QUEUE = "kai.scheduler/queue", "default-queue"  # the engine's own defaults
_SAME = (
    "nodesPerJob",
    "gpusPerNode",
    "nicResourceName",
    "resources",
    "image",
    "imagePullSecrets",
    "exitDurationMins",
    "repeatCount",
    "testScale",
    "maxBytes",
    "numIterations",
    "numCycles",
    "thresholds",
    "maxConcurrent",
    "minGroupSize",
    "timeoutPerJob",
    "workloadMetadata",
)
_CHECKPOINTS = "training is tested without checkpoints"
_REASONS = {
    "enableCheckpoint": _CHECKPOINTS,
    "storageClassName": _CHECKPOINTS,
    "storageSize": _CHECKPOINTS,
    "saveInterval": _CHECKPOINTS,
    "saveRetainInterval": _CHECKPOINTS,
    "saveTopK": _CHECKPOINTS,
    "maxRestarts": "a run is never restarted: a second try would hide the fault of the first",
    "measurementTimeout": "there is nothing to wait for: the log is read when the run has ended",
    "rdmaDeviceAccess": "pods ask for network devices as resources: nicResourceName",
    "placement": "pods are always pinned to the nodes under test",
    "enableMNNVL": "no ComputeDomain is made here, only NCCL_MNNVL_ENABLE is set; the nodes need IMEX running",
    "maxSteps": "training needs an end: a number of steps from 1 on",
}
# values that ask for what is done anyway
_NO_CHANGE = {"enableCheckpoint": (False,), "maxRestarts": (0,), "placement": ("Pinned",), "rdmaDeviceAccess": ("",)}


def is_foreign(data: Mapping) -> bool:
    """Whether it is a document of that engine, of whatever kind."""
    return str(data.get("apiVersion", "")).partition("/")[0] in {version.partition("/")[0] for version in VERSIONS}


def convert(document: yamltree.Document) -> tuple[yamltree.Document, list[dict]]:
    """The same as a Certification of ours, and [{path, value, why}] for what has no meaning here.

    Problems found later in what is returned name the lines and paths of the original. Raises InvalidDocument.
    """
    data = document.data
    if data.get("apiVersion") not in VERSIONS:
        message = f"apiVersion {data.get('apiVersion')!r} is not known"
        raise InvalidDocument(document.problem(("apiVersion",), "wrong-version", message, nearest("", VERSIONS)))
    if data.get("kind") != "Certification":
        message = f"is of kind {data.get('kind')!r}; of this API only Certification is read"
        raise InvalidDocument(document.problem(("kind",), "wrong-kind", message, f"a WorkloadRun of {API_VERSION}"))
    if not isinstance(data.get("spec"), Mapping):
        raise InvalidDocument(document.problem(("spec",), "missing-key", "spec is missing or no map"))
    return _Conversion(document).run()


class _Conversion:
    def __init__(self, document: yamltree.Document):
        self.document = document
        self.left: list[dict] = []
        self.origin: dict[tuple, tuple] = {}

    def run(self) -> tuple[yamltree.Document, list[dict]]:
        data = self.document.data
        spec, ours = data["spec"], {}
        given = {key: value for key, value in spec.items() if key not in ("target", "categories", "gangScheduler")}
        for key in ("target", "categories"):
            if key in spec:
                ours[key] = copy.deepcopy(spec[key])
        options = self.options(given, ("spec",), ("spec", "options"))
        if isinstance(spec.get("gangScheduler"), Mapping):
            options["queue"] = self.queue(spec["gangScheduler"])
        elif "gangScheduler" in spec:
            self.leave(("spec", "gangScheduler"), "is no map")
        if options:
            ours["options"] = options
        categories = ours.get("categories")
        for index, category in enumerate(categories if isinstance(categories, list) else ()):
            if isinstance(category, dict):
                self.category(category, ("spec", "categories", index))
        whole = {"apiVersion": API_VERSION, "kind": "Certification", "metadata": data.get("metadata"), "spec": ours}
        return _Converted(whole, self.document, self.origin), self.left

    def category(self, category: dict, path: tuple) -> None:
        """In place."""
        for key in [key for key in category if key not in ("domain", "variant", "options")]:
            category.pop(key)
            self.leave((*path, key), "no such field is known")
        if isinstance(category.get("options"), Mapping):
            category["options"] = self.options(category["options"], (*path, "options"), (*path, "options"))

    def options(self, given: Mapping, path: tuple, into: tuple) -> dict:
        options: dict = {}
        for key, value in given.items():
            if value is None:
                continue
            if key in _SAME:
                options[key] = copy.deepcopy(value)
                self.origin[(*into, key)] = (*path, key)
            elif key == "mlnxPerNode":
                self.set(options, into, "nicsPerNode", value, (*path, key))
                if value and not given.get("nicResourceName"):
                    self.set(options, into, "nicResourceName", NIC_RESOURCE, (*path, key))
            elif key == "startupStallTimeoutSeconds" and isinstance(value, int) and not isinstance(value, bool):
                self.set(options, into, "silenceTimeout", f"{value}s", (*path, key))
            elif key == "sourceRepo":
                self.set(options, into, "variables", {"megatronRepository": value}, (*path, key))
            elif key == "maxSteps" and value != -1:
                self.set(options, into, key, value, (*path, key))
            elif value not in _NO_CHANGE.get(key, ()):
                if key == "enableMNNVL" and isinstance(value, bool):
                    env = [{"name": "NCCL_MNNVL_ENABLE", "value": "1" if value else "0"}]
                    self.set(options, into, "env", env, (*path, key))
                    if not value:
                        continue
                self.leave((*path, key), _REASONS.get(key) or "no such field is known")
        return options

    def set(self, options: dict, into: tuple, key: str, value: object, origin: tuple) -> None:
        options[key] = value
        self.origin[(*into, key)] = origin

    def queue(self, scheduler: Mapping) -> dict:
        path = ("spec", "gangScheduler")
        self.origin[("spec", "options", "queue")] = path
        names = {"queue": "name", "queueLabelKey": "labelKey", "schedulerName": "schedulerName"}
        for key in scheduler:
            if key not in names:
                self.leave((*path, key), "no such field is known")
        found = {names[key]: value for key, value in scheduler.items() if key in names}
        return {"name": _QUEUE, "labelKey": _QUEUE_LABEL, **found}

    def leave(self, path: tuple, why: str) -> None:
        value = self.document.data
        for part in path:
            value = value[part]
        found = {"path": yamltree.dotted(path), "value": value, "why": why}
        line = self.document.line(path)
        self.left.append({**found, **({"line": line} if line else {})})


class _Converted(yamltree.Document):
    """Our document, with the places of the one that it was made of."""

    def __init__(self, data: dict, original: yamltree.Document, origin: dict[tuple, tuple]):
        super().__init__(data, {}, original.source)
        self._original, self._origin = original, origin

    def line(self, path: tuple = ()) -> int | None:
        return self._original.line(self._place(tuple(path)))

    def problem(self, path: tuple, code: str, message: str, hint: str = "", severity: str = "error"):
        return self._original.problem(self._place(tuple(path)), code, message, hint, severity)

    def _place(self, path: tuple) -> tuple:
        for length in range(len(path), 0, -1):
            if path[:length] in self._origin:
                return (*self._origin[path[:length]], *path[length:])
        return ("spec", *path[2:]) if path[:2] == ("spec", "options") else path
