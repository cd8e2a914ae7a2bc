# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who else holds a node: people's cordons, other tools' taints and marks. Read only; nothing of it is ever lifted.

An entry is {kind, key, value, detail, holds}. Kinds: cordon, taint, system (Kubernetes' own taints, a node that is
being deleted), pool (a taint that reserves a pool for the workloads it is meant for), annotation, label.
`holds` is false for what is reported only: pool taints, marks that were left behind, work that is merely announced.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase

from ansible_collections.goodput.fleet.plugins.module_utils.gates import gate as gates_

VALUE_LIMIT = 256  # characters of a value that a report shows
_CLOSING = ("NoSchedule", "NoExecute")
_SYSTEM = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
# These say what a pool is for, all its life; a node that has one is open to its own workloads.
POOL_TAINTS = (
    "nvidia.com/gpu",
    "amd.com/gpu",
    "habana.ai/gaudi",
    "vpc.amazonaws.com/efa",
    "sku",
    "dedicated",
    "node-role.kubernetes.io/*",
    "kubernetes.azure.com/scalesetpriority",
    "cloud.google.com/gke-spot",
    "cloud.google.com/gke-accelerator",
    "cloud.google.com/gke-queued",
    "google.com/tpu",
    "kubernetes.io/arch",
    "CriticalAddonsOnly",
)
_TAINT_WORDS = (
    ("ToBeDeletedByClusterAutoscaler", "Cluster Autoscaler is removing the node"),
    ("karpenter.sh/disrupt", "Karpenter is replacing or removing the node"),
    ("karpenter.sh/unregistered", "Karpenter has not registered the node yet"),
    ("aws-node-termination-handler/", "AWS announced an interruption or maintenance"),
    ("cloud.google.com/impending-node-termination", "Google Cloud is about to end the node"),
    ("medik8s.io/", "medik8s is remediating the node, or it is under maintenance"),
    ("kubevirt.io/drain", "the node is under maintenance"),
    ("AggregatedNodeHealth", "NVSentinel's"),
    ("nvidia.com/gpu-error", "quarantined by another tool (NVSentinel's example taint)"),
    ("node.cilium.io/agent-not-ready", "Cilium's agent is not ready yet"),
    ("ebs.csi.aws.com/agent-not-ready", "a storage driver is not ready yet"),
)
_NVSENTINEL_STATES = (
    "quarantined",
    "draining",
    "drain-succeeded",
    "drain-failed",
    "remediating",
    "remediation-succeeded",
    "remediation-failed",
)
_NVSENTINEL_LISTS = ("quarantineHealthEvent", "quarantineValidationHealthEvent")
_UPGRADE = re.compile(r"nvidia\.com/[a-z0-9-]*driver-upgrade-state")
_MCO = "machineconfiguration.openshift.io/state"


def cordon_managers(node: Mapping) -> dict[str, str]:
    """Manager -> time of those that managedFields names as setters of spec.unschedulable; empty when it tells none."""
    found = {}
    for entry in (node.get("metadata") or {}).get("managedFields") or ():
        spec = (entry.get("fieldsV1") or {}).get("f:spec") or {}
        if "f:unschedulable" in spec:
            found[entry.get("manager") or "unknown"] = entry.get("time") or ""
    return found


def is_cordoned(node: Mapping) -> bool:
    return bool((node.get("spec") or {}).get("unschedulable"))


def cordon_is_ours(node: Mapping, gates: Iterable[Mapping]) -> bool:
    """Whether this collection may lift the cordon: a gate has to do with it, and nobody else has set it since."""
    managers = set(cordon_managers(node))
    if not is_cordoned(node) or not managers <= {gates_.MANAGER}:
        return False
    # when managedFields is sure, the gate may be one that came to a cordon that was there, or one that is unreadable
    return any(each["cordonOurs"] or (managers and (each["cordon"] or not each["readable"])) for each in gates)


def external(node: Mapping, gates: list[dict], pool_taints: Iterable[str] = ()) -> list[dict]:
    """Everything on a raw node that is not ours. `pool_taints`: further taint keys of the site's pools, as globs."""
    found = []
    if is_cordoned(node) and not cordon_is_ours(node, gates):
        found.append(_cordon(node))
    found += _taints(node, gates, (*POOL_TAINTS, *pool_taints))
    found += marks(node, gates)
    return found


def claims_cordon(node: Mapping, gates: list[dict]) -> list[str]:
    """Keys of other tools' active marks: their owners count on a cordon that they found, even if it is ours."""
    return [each["key"] for each in marks(node, gates) if each["holds"] and each["kind"] != "system"]


def _entry(kind: str, key: str, value: object, detail: str, holds: bool = True) -> dict:
    text = _text(value)
    if len(text) > VALUE_LIMIT:
        text = text[: VALUE_LIMIT - 1] + "…"
    return {"kind": kind, "key": key, "value": text, "detail": detail, "holds": holds}


def _cordon(node: Mapping) -> dict:
    managers = cordon_managers(node)
    others = {name: time for name, time in managers.items() if name != gates_.MANAGER}
    if others:
        detail = "set by " + ", ".join(f"{name} at {time}" if time else name for name, time in others.items())
    elif managers:
        detail = f"set by {gates_.MANAGER}, but no gate says so any more"
    else:
        detail = "nothing tells who set it"
    return _entry("cordon", "spec.unschedulable", "true", detail)


def _taints(node: Mapping, gates: list[dict], pools: tuple[str, ...]) -> Iterator[dict]:
    ours = {gates_.triple(each["taint"]) for each in gates if each["taintOurs"]}
    unreadable = {gates_.annotation(each["owner"]) for each in gates if not each["readable"]}
    for taint in (node.get("spec") or {}).get("taints") or ():
        key, value, effect = gates_.triple(taint)
        if effect not in _CLOSING or (key, value, effect) in ours or key in unreadable:
            continue
        if key == "node.kubernetes.io/unschedulable":  # the cordon's shadow
            continue
        text = f"{value}:{effect}" if value else f":{effect}"
        if key.startswith(_SYSTEM):
            yield _entry("system", key, text, "Kubernetes' own")
        elif key.startswith(gates_.PREFIX):
            yield _entry("taint", key, text, "of this collection's, but its gate's annotation is gone")
        elif any(fnmatchcase(key, pattern) for pattern in pools):
            yield _entry("pool", key, text, "reserves the pool", holds=False)
        else:
            words = [said for prefix, said in _TAINT_WORDS if key.startswith(prefix)]
            yield _entry("taint", key, text, words[0] if words else "not set by this collection")


def marks(node: Mapping, gates: list[dict]) -> list[dict]:
    """Annotations and labels by which other tools say that they have taken the node."""
    metadata = node.get("metadata") or {}
    annotations, labels = metadata.get("annotations") or {}, metadata.get("labels") or {}
    found = list(_nvsentinel(node, annotations, labels, cordon_is_ours(node, gates)))
    found += _nvidia_operators(labels)
    for key in sorted(annotations):
        value = _text(annotations[key])
        if not value:
            continue
        if key.endswith("/kured-reboot-in-progress"):
            found.append(_entry("annotation", key, value, "kured is rebooting the node"))
        elif re.search(r"(^|/)cordon_", key) and value.lower() != "false":
            found.append(_entry("annotation", key, value, "nodewright (Skyhook) keeps the node cordoned"))
        elif key == "nodeset.slinky.slurm.net/node-cordon-reason":
            found.append(_entry("annotation", key, value, "Slinky drains the node"))
        elif key == _MCO and value in ("Working", "Degraded"):
            found.append(_entry("annotation", key, value, "OpenShift's machine config operator is changing the node"))
    if metadata.get("deletionTimestamp"):
        at = metadata["deletionTimestamp"]
        found.append(_entry("system", "metadata.deletionTimestamp", at, "the node is being deleted"))
    return found


def _nvsentinel(node: Mapping, annotations: Mapping, labels: Mapping, our_cordon: bool) -> Iterator[dict]:
    """NVSentinel keeps a quarantine in several marks and takes them off one by one, or not at all when a person
    lifts the cordon. They hold while the node is cordoned or still has one of its taints. A cordon of ours alone
    proves nothing about labels, but a list of events beside it is a quarantine that found the node cordoned."""
    applied = _json(annotations.get("quarantineHealthEventAppliedTaints"))
    taints = {gates_.triple(taint) for taint in (node.get("spec") or {}).get("taints") or ()}
    tainted = any(_lower_keys(each) in taints for each in applied) if isinstance(applied, list) else False
    by_hand = _true(annotations.get("quarantinedNodeUncordonedManually"))
    lists = [key for key in _NVSENTINEL_LISTS if not _empty(annotations.get(key))]
    acting = tainted or (is_cordoned(node) and (not our_cordon or bool(lists and not by_hand)))

    hand = ", and the cordon was lifted by hand" if by_hand else ""

    def judged(kind: str, key: str, value: object, said: str) -> dict:
        if acting:
            return _entry(kind, key, value, said)
        why = "the cordon was lifted by hand" if by_hand else "the node is neither cordoned nor tainted"
        return _entry(kind, key, value, f"stale, {said} once: {why}", holds=False)

    for key in lists:
        yield judged("annotation", key, annotations[key], "quarantined by NVSentinel")
    if _true(annotations.get("quarantineHealthEventIsCordoned")):
        entry = judged("annotation", "quarantineHealthEventIsCordoned", "True", "cordoned by NVSentinel")
        if not lists:  # the list is emptied first, the cordon lifted next
            entry.update(holds=False, detail=f"stale: NVSentinel's list of events is empty{hand}")
        yield entry
    if applied and isinstance(applied, list) and not tainted:
        said = f"stale: NVSentinel set these taints once, and the node has none of them{hand}"
        yield _entry("annotation", "quarantineHealthEventAppliedTaints", applied, said, holds=False)
    state = _text(labels.get("dgxc.nvidia.com/nvsentinel-state"))
    if state in _NVSENTINEL_STATES:
        yield judged("label", "dgxc.nvidia.com/nvsentinel-state", state, f"NVSentinel's state is {state}")
    for key in sorted(labels):
        if key.endswith("/cordon-by") and not _empty(labels[key]) and not _released(labels, key):
            yield judged("label", key, labels[key], f"cordoned by {_text(labels[key])}")
    validation = _text(labels.get("nvsentinel.nvidia.com/validation-state"))
    if validation in ("validating", "validation-pending", "validation-failed"):
        yield _entry("label", "nvsentinel.nvidia.com/validation-state", validation, "NVSentinel validates the node")
    for key in ("nvsentinel.nvidia.com/validation-session", "nvsentinel.nvidia.com/active-validation-request"):
        if not _empty(annotations.get(key)):
            yield _entry("annotation", key, annotations[key], "NVSentinel validates the node")


def _released(labels: Mapping, cordon_by: str) -> bool:
    """Whether an uncordon-by of the same tool is the later word; without times it is."""
    prefix = cordon_by[: -len("cordon-by")]
    if _empty(labels.get(f"{prefix}uncordon-by")):
        return False
    closed, opened = _text(labels.get(f"{prefix}cordon-timestamp")), _text(labels.get(f"{prefix}uncordon-timestamp"))
    return not (closed and opened and closed > opened)


def _nvidia_operators(labels: Mapping) -> Iterator[dict]:
    paused: dict[str, str] = {}
    for key in sorted(labels):
        if not key.startswith("nvidia.com/"):
            continue
        value = _text(labels[key])
        if _UPGRADE.fullmatch(key) and value and value != "upgrade-done":
            waits = value == "upgrade-required"
            said = "a driver upgrade is due" if waits else f"an operator upgrades the driver ({value})"
            yield _entry("label", key, value, said, holds=not waits)
        elif key.startswith("nvidia.com/gpu.deploy.") and value.startswith("paused-for"):
            paused.setdefault(value, key)
        elif key == "nvidia.com/mig.config.state" and value in ("pending", "rebooting"):
            yield _entry("label", key, value, "the MIG manager is changing the node")
    for value, key in paused.items():
        yield _entry("label", key, value, "GPU operator's pods are paused on the node")


def _text(value: object) -> str:
    if value is None:
        return ""
    return value.strip() if isinstance(value, str) else json.dumps(value)


def _json(value: object) -> object:
    """Annotations are text; one read from YAML may be a list or a boolean by now."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _empty(value: object) -> bool:
    """The values by which the tools say 'no more': nothing, an empty list or map, null, false."""
    return _text(value).lower() in ("", "[]", "{}", "null", "false", '""')


def _true(value: object) -> bool:
    return _text(value).lower() == "true"


def _lower_keys(taint: object) -> tuple[str, str, str]:
    if not isinstance(taint, Mapping):
        return "", "", ""
    return gates_.triple({str(key).lower(): value for key, value in taint.items()})
