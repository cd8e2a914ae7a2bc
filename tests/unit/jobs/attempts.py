# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Attempts, fleets and memories of such, for tests of what is decided about them."""

from __future__ import annotations

import datetime

from ansible_collections.goodput.fleet.plugins.module_utils.jobs import decide, memory, policy
from ansible_collections.goodput.fleet.plugins.module_utils.records import schema, yamltree

NOW = datetime.datetime(2026, 3, 6, 12, 0, tzinfo=datetime.UTC)


def ago(seconds: float) -> str:
    return (NOW - datetime.timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def rules(**spec) -> policy.Policy:
    document = {"apiVersion": schema.API_VERSION, "kind": "RecoveryPolicy", "metadata": {"name": "test"}}
    return policy.load({**document, "spec": {"mode": "enforce", **spec}})


def nodes(count: int = 24, per_domain: int = 8, free: int = 8, **changed: dict) -> dict:
    """gpu-0, gpu-1, …; `gpu_3={...}` changes what is known of gpu-3."""
    found = {
        f"gpu-{index}": {
            "uid": f"uid-{index}",
            "domain": f"rack-{index // per_domain}",
            "gpus": 8,
            "freeGpus": free,
            "open": True,
            "ready": "True",
            "verdict": "healthy",
            "lemon": 0.0,
            "certifiedAt": None,
        }
        for index in range(count)
    }
    for name, facts in changed.items():
        found[name.replace("_", "-")].update(facts)
    return found


def fleet(known: dict | None = None, storage: bool | None = None, **plane) -> dict:
    return {
        "nodes": nodes() if known is None else known,
        "controlPlane": {"ok": True, "why": "", "age": 1.0, **plane},
        "storage": {"ok": storage},
    }


def attempt(name: str = "train", on: tuple = (0, 1, 2, 3), number: int = 1, ended: float = 10, **changed) -> dict:
    """A failed one with a pod of 8 GPUs on each of these nodes; `job={...}` changes what the job says."""
    used = [f"gpu-{index}" for index in on]
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "namespace": "research",
        "name": name,
        "uid": f"{name}-{number}",
        "resourceVersion": "7",
        "created": ago(4000 - number),
        "queue": {"kind": "none", "name": "", "managed": False},
        "user": "ada",
        "image": "trainer:1",
        "mode": "act",
        "modeFrom": "goodput.fleet/recovery of the job",
        "shape": {"pods": len(on), "gpusPerPod": 8, "gang": True, "elastic": None, "completionMode": "Indexed"},
        "maxRetries": None,
        "checkpoint": None,
        "suspended": False,
        "restarts": 0,
        "neverTouch": False,
        **changed.pop("job", {}),
    }
    ranks = [
        {
            "index": place,
            "pod": f"{name}-{place}-abcde",
            "uid": f"pod-{place}",
            "node": node,
            "nodeUid": f"uid-{on[place]}",
            "domain": f"rack-{on[place] // 8}",
            "phase": "Failed",
            "exitCode": 1,
            "signal": None,
            "reason": "Error",
            "disruption": "",
            "terminating": False,
        }
        for place, node in enumerate(used)
    ]
    domains: dict = {}
    for rank in ranks:
        domains.setdefault(rank["domain"], []).append(rank["node"])
    return {
        "key": f"research/{name}/{job['uid']}/{number}",
        "job": job,
        "number": number,
        "previous": f"{name}-{number - 1}" if number > 1 else "",
        "state": "failed",
        "startedAt": ago(3600),
        "endedAt": ago(ended),
        "reason": "BackoffLimitExceeded",
        "ranks": ranks,
        "nodes": used,
        "domains": domains,
        "hardware": {},
        "firstFailure": {"index": 0, "node": used[0], "at": ago(ended), "exitCode": 1, "signal": None},
        "signature": None,
        "progress": None,
        "checkpoint": None,
        **changed,
    }


def signature(cls: str, id_: str = "J001", action: str = "retry in place", **changed) -> dict:
    blame = {"kind": "none", "ranks": [], "hosts": [], "pods": [], "devices": [], **changed.pop("blame", {})}
    return {
        "id": id_,
        "class": cls,
        "action": action,
        "blame": blame,
        "cascade": False,
        "confidence": 0.9,
        "lines": [{"rank": 0, "pod": "train-0-abcde", "number": 12, "text": f"a line of {id_}"}],
        "exception": None,
        "exitCode": 1,
        "firstFailing": None,
        "waiting": [],
        "missing": [],
        "cascades": 0,
        "attempts": 1,
        "progress": None,
        "others": [],
        **changed,
    }


TIMEOUT = signature("transient-software")
PAIR = signature("network", "J012", "retry in place", blame={"kind": "pair", "hosts": ["gpu-1", "gpu-2"]})


def bug(line: int = 42, step: int | None = 700, **changed) -> dict:
    exception = {"type": "KeyError", "message": "'tokens'", "file": "train.py", "line": line, "step": step}
    return signature("user-code", "J163", "fail to user", exception=exception, **changed)


def xid(at: float = 20, **changed) -> dict:
    return {"source": "gate", "at": ago(at), "what": "quarantine: Xid 79", "fatal": True, "evidence": "e1", **changed}


def entry(name: str = "train", number: int = 1, at: float = 1000, **changed) -> dict:
    """What is remembered of a restart."""
    return {
        "key": f"research/{name}/{name}-{number}/{number}",
        "previous": "",
        "job": f"research/{name}",
        "at": ago(at),
        "class": "transient-software",
        "id": "J001",
        "action": "retry",
        "rule": "row-10",
        "mode": "act",
        "nodes": ["gpu-0", "gpu-1", "gpu-2", "gpu-3"],
        "blamed": [],
        "exclude": [],
        "step": None,
        "checkpointStep": None,
        "advanced": None,
        "fault": "",
        "user": "ada",
        "image": "trainer:1",
        "outcome": "done",
        **changed,
    }


def history(*entries: dict) -> dict:
    return {"decisions": list(entries)}


def decided(attempts, known=None, past=(), **spec) -> list[dict]:
    """The specs of the decisions, after each was checked against the schema."""
    attempts = attempts if isinstance(attempts, list) else [attempts]
    documents = decide.decide(rules(**spec), attempts, known or fleet(), history(*past), NOW)
    for document in documents:
        schema.check(yamltree.Document(document, {}, "decision"), "RecoveryDecision")
    return [document["spec"] for document in documents]


def one(given, known=None, past=(), **spec) -> dict:
    (found,) = decided(given, known, past, **spec)
    return found


def remembered(given: dict, known=None, past=(), **spec) -> dict:
    """The entry that a decision about the attempt leaves behind."""
    (document,) = decide.decide(rules(**spec), [given], known or fleet(), history(*past), NOW)
    return memory.entry(document, given, "done")


def advice(spec: dict) -> dict:
    return {one["node"]: one["advice"] for one in spec["hardware"]}


def excluded(spec: dict) -> list[str]:
    return [one["node"] for one in spec["exclude"]]
