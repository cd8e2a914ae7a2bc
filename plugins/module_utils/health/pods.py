# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with a pod, and many pods' faults folded into few reasons.

The phase alone says little: a pod whose container waits in CrashLoopBackOff is in phase Running.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ansible_collections.goodput.fleet.plugins.module_utils.health.reasons import unhealthy

NORMAL_WAITING = ("ContainerCreating", "PodInitializing")  # on the way up; every other named reason is trouble
SHOWN_NODES = 3


class Fault(NamedTuple):
    """One thing wrong with one pod. Pods of one owner with the same code and text are told of together."""

    code: str
    text: str
    detail: str = ""
    container: str = ""


def faults(pod: dict, must_be_ready: bool) -> list[Fault]:
    """All faults of a pod. `must_be_ready`: no workload that is evaluated tells of its readiness."""
    status = pod.get("status") or {}
    found = [
        fault
        for word, field in (("init container", "initContainerStatuses"), ("container", "containerStatuses"))
        for item in status.get(field) or []
        if (fault := _container(item, word))
    ]
    if not found and (fault := _phase(pod, status, must_be_ready)):
        found.append(fault)
    return found


def _phase(pod: dict, status: dict, must_be_ready: bool) -> Fault | None:
    phase, message = status.get("phase"), status.get("message") or ""
    if phase == "Failed":
        return Fault("pod-failed", f"failed ({status['reason']})" if status.get("reason") else "failed", message)
    if phase == "Pending":
        scheduled = _condition(pod, "PodScheduled")
        text = "is not scheduled" if scheduled.get("status") == "False" else "does not start"
        return Fault("pod-pending", text, scheduled.get("message") or message)
    if phase not in ("Running", "Succeeded"):
        return Fault("pod-unknown", f"is in phase {phase}", message or "its node may be lost")
    ready = _condition(pod, "Ready")
    if phase == "Running" and must_be_ready and ready.get("status") != "True":
        return Fault("pod-not-ready", "is not ready", ready.get("message") or "it has no Ready condition")
    return None


def _container(item: dict, word: str) -> Fault | None:
    name, state = item.get("name", "?"), item.get("state") or {}
    waiting, terminated = state.get("waiting") or {}, state.get("terminated")
    reason = waiting.get("reason")
    if reason and reason not in NORMAL_WAITING:
        detail = waiting.get("message") or _last(item)
        return Fault("container-waiting", f"{word} {name} waits in {reason}", detail, name)
    if terminated and terminated.get("exitCode") != 0:
        detail = terminated.get("message") or terminated.get("reason") or ""
        text = f"{word} {name} ended with exit code {terminated.get('exitCode')}"
        return Fault("container-failed", text, detail, name)
    return None


def _last(item: dict) -> str:
    ended = (item.get("lastState") or {}).get("terminated") or {}
    return f"last exit code {ended['exitCode']}" if "exitCode" in ended else ""


def _condition(pod: dict, kind: str) -> dict:
    return next((item for item in (pod.get("status") or {}).get("conditions") or [] if item.get("type") == kind), {})


def fold(found: Iterable[tuple[dict, str, Fault]]) -> list[dict]:
    """(pod, owner "Kind/namespace/name" or "", fault) triples as reasons, one for all pods that share a fault."""
    groups: dict[tuple, list[tuple[dict, Fault]]] = {}
    for pod, owner, fault in found:
        who = owner or f"Pod/{pod['metadata'].get('namespace')}/{pod['metadata']['name']}"
        groups.setdefault((who, fault.code, fault.text), []).append((pod, fault))
    return [_reason(who, code, members) for (who, code, _text), members in groups.items()]


def _reason(who: str, code: str, members: list[tuple[dict, Fault]]) -> dict:
    pod, fault = members[0]
    name = pod["metadata"]["name"]
    nodes = sorted({node for member, _fault in members if (node := (member.get("spec") or {}).get("nodeName"))})
    text = fault.text
    if len(members) > 1:
        text += f" on {len(members)} pods, first {name}"
    elif not who.startswith("Pod/"):
        text += f" on pod {name}"
    if nodes:
        more = f" and {len(nodes) - SHOWN_NODES} more" if len(nodes) > SHOWN_NODES else ""
        text += f" (node{'s' if len(nodes) > 1 else ''} {', '.join(nodes[:SHOWN_NODES])}{more})"
    if fault.detail:
        text += f": {' '.join(fault.detail.split())[:300]}"
    step = f"describe pod {name}"
    if code == "container-failed" or "CrashLoopBackOff" in fault.text:
        step = f"logs {name} -c {fault.container} --previous"
    step = f"kubectl -n {pod['metadata'].get('namespace', 'default')} {step}"
    return unhealthy(code, who, text, step, nodes=nodes, pods=len(members))
