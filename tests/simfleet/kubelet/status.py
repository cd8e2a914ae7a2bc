"""A pod's status from the states of its containers, by the rules of the real kubelet. Pure: `now` is an argument."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

State = dict[str, Any]  # {"waiting": {...}} | {"running": {...}} | {"terminated": {...}}


@dataclass
class ContainerState:
    name: str
    image: str
    container_id: str = ""
    state: State = field(default_factory=lambda: {"waiting": {"reason": "PodInitializing"}})
    last: State = field(default_factory=dict)
    restarts: int = 0
    ready: bool = False
    sidecar: bool = False  # an init container that keeps running

    def as_status(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "image": self.image,
            "imageID": f"sim://{self.image}" if self.container_id else "",
            "containerID": self.container_id,
            "ready": self.ready,
            "started": "running" in self.state,
            "restartCount": self.restarts,
            "state": self.state,
            "lastState": self.last,
        }

    def exit_code(self) -> int | None:
        """Of the present state; None while it has not ended."""
        ended = self.state.get("terminated")
        return None if ended is None else ended["exitCode"]


def phase_of(restart_policy: str, inits: Sequence[ContainerState], mains: Sequence[ContainerState]) -> str:
    for init in inits:
        if init.sidecar:
            if "running" not in init.state and not any("terminated" in main.state for main in mains):
                return "Pending"
        elif init.exit_code() is None:
            return "Pending"
        elif init.exit_code() != 0:
            return "Failed" if restart_policy == "Never" else "Pending"
    # A container that waits after it has run once counts as stopped, so CrashLoopBackOff shows phase Running.
    if any("waiting" in main.state and "terminated" not in main.last for main in mains):
        return "Pending"
    if any("running" in main.state for main in mains):
        return "Running"
    if restart_policy == "Always":
        return "Running"
    codes = [main.exit_code() for main in mains]
    if all(code == 0 for code in codes):
        return "Succeeded"
    return "Failed" if restart_policy == "Never" else "Running"


def final_phase_of(mains: Sequence[ContainerState]) -> str:
    """Of a pod whose containers will not be started again, whatever its restart policy."""
    return "Succeeded" if all(main.exit_code() == 0 for main in mains) else "Failed"


def is_initialized(inits: Sequence[ContainerState]) -> bool:
    return all(("running" in init.state) if init.sidecar else init.exit_code() == 0 for init in inits)


def conditions_of(
    phase: str,
    inits: Sequence[ContainerState],
    mains: Sequence[ContainerState],
    before: dict[str, dict[str, Any]],
    now: str,
) -> dict[str, dict[str, Any]]:
    """Conditions by type; a condition's lastTransitionTime stays while its status does."""
    initialized = is_initialized(inits)
    watched = [*mains, *(init for init in inits if init.sidecar)]
    unready = [container.name for container in watched if not container.ready]
    over = phase in ("Succeeded", "Failed")
    if over:
        not_ready = {"reason": "PodCompleted" if phase == "Succeeded" else "PodFailed"}
    else:
        not_ready = {
            "reason": "ContainersNotReady",
            "message": f"containers with unready status: [{' '.join(unready)}]",
        }
    ready = not unready and not over and initialized
    incomplete = [init.name for init in inits if not init.sidecar and init.exit_code() != 0]
    uninitialized = {
        "reason": "ContainersNotInitialized",
        "message": f"containers with incomplete status: [{' '.join(incomplete)}]",
    }
    wanted = {
        "PodReadyToStartContainers": (not over, {}),
        "Initialized": (initialized, {} if initialized else uninitialized),
        "ContainersReady": (ready, {} if ready else not_ready),
        "Ready": (ready, {} if ready else not_ready),
    }
    result = {}
    for kind, (is_true, why) in wanted.items():
        status = str(is_true)
        same = before.get(kind, {}).get("status") == status
        since = before[kind]["lastTransitionTime"] if same else now
        # A strategic merge patch keeps fields it does not name, hence the nulls.
        empty = {"reason": None, "message": None}
        result[kind] = {"type": kind, "status": status, "lastTransitionTime": since, **empty, **why}
    return result
