"""One pod from its start to its end: init containers in order, then the others together, restarts, termination."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.simfleet.kubelet import status
from tests.simfleet.kubelet.behaviour import BadBehaviour, Behaviour, Rule, behaviour_of
from tests.simfleet.kubelet.environment import command_of, environment_of
from tests.simfleet.kubelet.logs import ContainerLog
from tests.simfleet.kubelet.process import ContainerProcess

# As the real kubelet's 10 s doubling up to 5 min, but for tests.
BACKOFF_SECONDS = (1.0, 2.0, 4.0, 8.0)
CANNOT_RUN = 128
TERMINATED_BY_SIGTERM = 128 + signal.SIGTERM
BACK_OFF_MESSAGE = "back-off {delay:g}s restarting failed container={name} pod={pod}"


@dataclass(frozen=True)
class Host:
    """What every pod shares."""

    logs: Path
    scripts: Path
    scratch: Path
    report: Callable[[PodRun], None]  # asks for the pod's status to be sent, soon
    rules: Callable[[], Sequence[Rule]]


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class ContainerRun:
    """One container: its spec, its state, what runs it, and its logs by restart."""

    def __init__(self, spec: dict[str, Any], is_init: bool, uid: str):
        self.spec, self.is_init, self._uid = spec, is_init, uid
        self.state = status.ContainerState(
            spec["name"], spec.get("image", ""), sidecar=is_init and spec.get("restartPolicy") == "Always"
        )
        self.logs: dict[int, ContainerLog] = {}
        self.process: ContainerProcess | None = None
        self.behaviour: Behaviour | BadBehaviour | None = None
        self.attempt: asyncio.Task[int] | None = None
        self.interrupted = False
        self.started = asyncio.Event()
        self.began = now()

    @property
    def name(self) -> str:
        return self.state.name

    def set_waiting(self, reason: str, message: str = "") -> None:
        self.state.state = {"waiting": {"reason": reason, **({"message": message} if message else {})}}
        self.state.ready = False

    def set_running(self, ready: bool) -> None:
        self.began = now()
        self.state.container_id = f"sim://{self._uid}/{self.name}/{self.state.restarts}"
        self.state.state = {"running": {"startedAt": self.began}}
        self.state.ready = ready
        self.started.set()

    def set_terminated(self, code: int, reason: str = "", message: str = "") -> None:
        ended = {
            "exitCode": code,
            "reason": reason or ("Completed" if code == 0 else "Error"),
            "startedAt": self.began,
            "finishedAt": now(),
            "containerID": self.state.container_id,
        }
        self.state.state = {"terminated": ended | ({"message": message} if message else {})}
        self.state.ready = False

    def log_for(self, previous: bool) -> ContainerLog | None:
        if not self.logs:
            return None
        newest = max(self.logs)
        # Between two runs the last one that ended is both the current and the previous one.
        return self.logs.get(newest - 1 if previous and "running" in self.state.state else newest)


class PodRun:
    def __init__(self, pod: dict[str, Any], host: Host, pod_ip: str):
        self.pod, self._host, self.pod_ip = pod, host, pod_ip
        meta, spec = pod["metadata"], pod["spec"]
        self.uid, self.namespace, self.name = meta["uid"], meta["namespace"], meta["name"]
        self.restart_policy = spec.get("restartPolicy", "Always")
        self.inits = [ContainerRun(entry, True, self.uid) for entry in spec.get("initContainers", [])]
        self.mains = [ContainerRun(entry, False, self.uid) for entry in spec["containers"]]
        self.conditions: dict[str, dict[str, Any]] = {}
        self.final_phase: str | None = None
        self.reason: str | None = None
        self.start_time = pod.get("status", {}).get("startTime") or now()
        # A kubelet that was started anew finds pods that ran before: they run again, as after a reboot.
        for before in pod.get("status", {}).get("containerStatuses", []):
            for container in self.mains:
                if container.name == before["name"] and "running" in before.get("state", {}):
                    container.state.restarts = before["restartCount"] + 1
        self.reporting = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._stopping = False

    # ---- life ----

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        deadline = self.pod["spec"].get("activeDeadlineSeconds")
        try:
            async with asyncio.timeout(deadline):
                await self._run_containers()
        except TimeoutError:
            self.reason = "DeadlineExceeded"
            await self._end_containers(grace=self._grace())
            self.final_phase = "Failed"
        self._report()

    async def _run_containers(self) -> None:
        tasks: list[asyncio.Task[int]] = []
        try:
            for init in self.inits:
                task = asyncio.create_task(self._run_container(init))
                tasks.append(task)
                if init.state.sidecar:
                    await init.started.wait()
                elif await task != 0:
                    self.final_phase = "Failed"  # only restartPolicy Never gets here
                    return
            mains = [asyncio.create_task(self._run_container(container)) for container in self.mains]
            tasks += mains
            await asyncio.gather(*mains)
            sidecars = [init for init in self.inits if init.state.sidecar]
            if sidecars:
                phase = status.phase_of(self.restart_policy, self._states(self.inits), self._states(self.mains))
                await asyncio.gather(*(self._end_container(init, self._grace()) for init in sidecars))
                self.final_phase = phase
        finally:
            for task in tasks:
                task.cancel()

    async def _run_container(self, container: ContainerRun) -> int:
        """Run it as often as its restart policy wants; the last exit code."""
        failures = 0
        while True:
            container.interrupted = False
            container.attempt = asyncio.create_task(self._attempt(container))
            try:
                code = await container.attempt
            except asyncio.CancelledError:
                if container.interrupted and not self._stopping:  # it is to behave otherwise from now on
                    if "running" in container.state.state:
                        await self._end_container(container, grace=0)
                        container.state.last = container.state.state
                        container.state.restarts += 1
                    continue
                container.attempt.cancel()
                raise
            if not self._restarts(container, code):
                self._report()
                return code
            delay = BACKOFF_SECONDS[min(failures, len(BACKOFF_SECONDS) - 1)]
            failures += 1
            container.state.last = container.state.state
            pod = f"{self.name}_{self.namespace}({self.uid})"
            container.set_waiting(
                "CrashLoopBackOff", BACK_OFF_MESSAGE.format(delay=delay, name=container.name, pod=pod)
            )
            self._report()
            await asyncio.sleep(delay)
            container.state.restarts += 1

    def _restarts(self, container: ContainerRun, code: int) -> bool:
        policy = container.spec.get("restartPolicy", self.restart_policy)
        if container.is_init and not container.state.sidecar:
            return code != 0 and policy != "Never"
        return policy == "Always" or (policy == "OnFailure" and code != 0)

    async def _attempt(self, container: ContainerRun) -> int:
        container.behaviour = behaviour = self._behaviour_of(container)
        if isinstance(behaviour, BadBehaviour):
            container.set_waiting("CreateContainerConfigError", str(behaviour))
            return await self._forever()
        container.state.restarts = max(container.state.restarts, behaviour.restarts)
        if behaviour.waiting:
            self._wait_with(container, behaviour)
            return await self._forever()
        if behaviour.start_delay:
            container.set_waiting("ContainerCreating")
            self._report()
            await asyncio.sleep(behaviour.start_delay)
        return await self._execute(container, behaviour)

    async def _forever(self) -> int:
        self._report()
        await asyncio.Event().wait()
        return 0

    def _behaviour_of(self, container: ContainerRun) -> Behaviour | BadBehaviour:
        try:
            return behaviour_of(self.pod, container.spec, container.is_init, self._host.rules())
        except BadBehaviour as error:
            return error

    def _wait_with(self, container: ContainerRun, behaviour: Behaviour) -> None:
        if behaviour.waiting == "CrashLoopBackOff":  # which says that it ran, failed, and will be tried again
            code = behaviour.exit_code if behaviour.exit_code is not None else 1
            container.state.restarts = max(container.state.restarts, 1)
            container.state.container_id = container.state.container_id or f"sim://{self.uid}/{container.name}/0"
            container.set_terminated(code, behaviour.reason)
            container.state.last = container.state.state
            self._write_log(container, behaviour.log)
            self._close_log(container)
        container.set_waiting(behaviour.waiting, behaviour.message or f"simulated: {behaviour.waiting}")

    async def _execute(self, container: ContainerRun, behaviour: Behaviour) -> int:
        env = environment_of(self.pod, container.spec, self.pod_ip, os.environ)
        command = [str(self._script(container, behaviour.script))] if behaviour.script else []
        if behaviour.exec:
            command = command_of(container.spec, env)
        if not command and behaviour.exit_code is None:
            container.set_running(behaviour.ready)
            self._write_log(container, behaviour.log)
            return await self._forever()
        container.set_running(behaviour.ready)
        self._report()
        if not command:
            self._write_log(container, behaviour.log)
            await asyncio.sleep(behaviour.after)
            code = behaviour.exit_code or 0
        else:
            log = self._new_log(container)
            log.write(behaviour.log.encode())
            try:
                scratch = self._host.scratch / self.uid
                scratch.mkdir(parents=True, exist_ok=True)
                env |= {"HOME": str(scratch), "SIM_RESTART_COUNT": str(container.state.restarts)}
                container.process = ContainerProcess(command, env, scratch, log)
            except OSError as error:
                log.close()
                container.set_terminated(CANNOT_RUN, "StartError", f"cannot run {command[0]}: {error.strerror}")
                return CANNOT_RUN
            code = await container.process.wait()
            container.process = None
        self._close_log(container)
        container.set_terminated(code, behaviour.reason if code else "", behaviour.message if code else "")
        return code

    def _script(self, container: ContainerRun, text: str) -> Path:
        if not text.startswith("#!"):
            return self._host.scripts / Path(text).name
        path = self._host.scratch / self.uid / f"{container.name}.script"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o700)
        return path

    # ---- changes from outside ----

    def reconsider(self) -> None:
        """The fault rules are others now: what would behave otherwise starts again."""
        if self.is_over() or self._stopping:
            return
        for container in (*self.inits, *self.mains):
            attempt = container.attempt
            if attempt is None or attempt.done():
                continue
            wanted = self._behaviour_of(container)
            if wanted != container.behaviour and not isinstance(wanted, BadBehaviour):
                container.interrupted = True
                attempt.cancel()

    async def stop(self, grace: float) -> None:
        """End every container, as for a deletion; the pod's last phase is set after it."""
        if self._stopping:
            return
        self._stopping = True
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        was_over = self.is_over()
        await self._end_containers(grace)
        if not was_over:
            self.final_phase = status.final_phase_of(self._states(self.mains))

    async def _end_containers(self, grace: float) -> None:
        await asyncio.gather(*(self._end_container(container, grace) for container in (*self.mains, *self.inits)))

    async def _end_container(self, container: ContainerRun, grace: float) -> None:
        if container.attempt is not None:
            container.interrupted = False
            container.attempt.cancel()
        code = TERMINATED_BY_SIGTERM
        process, container.process = container.process, None
        if process is not None:
            process.terminate()
            try:
                async with asyncio.timeout(grace):
                    code = await process.wait()
            except TimeoutError:
                process.kill()
                code = await process.wait()
        self._close_log(container)
        if "running" in container.state.state:
            container.set_terminated(code)
        elif "waiting" in container.state.state and self._stopping:
            container.set_terminated(CANNOT_RUN + 9, "ContainerStatusUnknown")

    def clean_up(self) -> None:
        shutil.rmtree(self._host.scratch / self.uid, ignore_errors=True)
        shutil.rmtree(self._log_folder(), ignore_errors=True)

    # ---- logs ----

    def container(self, name: str) -> ContainerRun | None:
        return next((each for each in (*self.inits, *self.mains) if each.name == name), None)

    def _log_folder(self) -> Path:
        return self._host.logs / f"{self.namespace}_{self.name}_{self.uid}"

    def _new_log(self, container: ContainerRun) -> ContainerLog:
        number = container.state.restarts
        container.logs[number] = ContainerLog(self._log_folder() / container.name / f"{number}.log")
        return container.logs[number]

    def _write_log(self, container: ContainerRun, text: str) -> None:
        log = self._new_log(container)
        log.write(text.encode() + (b"\n" if text and not text.endswith("\n") else b""))

    def _close_log(self, container: ContainerRun) -> None:
        if container.logs:
            container.logs[max(container.logs)].close()

    # ---- status ----

    def is_over(self) -> bool:
        return self.phase() in ("Succeeded", "Failed")

    def phase(self) -> str:
        if self.final_phase is not None:
            return self.final_phase
        return status.phase_of(self.restart_policy, self._states(self.inits), self._states(self.mains))

    def as_status(self) -> dict[str, Any]:
        phase = self.phase()
        inits, mains = self._states(self.inits), self._states(self.mains)
        self.conditions = status.conditions_of(phase, inits, mains, self.conditions, now())
        result = {
            "phase": phase,
            "startTime": self.start_time,
            "hostIP": "127.0.0.1",
            "hostIPs": [{"ip": "127.0.0.1"}],
            "podIP": self.pod_ip,
            "podIPs": [{"ip": self.pod_ip}],
            "conditions": list(self.conditions.values()),
            "containerStatuses": [state.as_status() for state in mains],
            "initContainerStatuses": [state.as_status() for state in inits],
        }
        if self.reason:
            result |= {
                "reason": self.reason,
                "message": "Pod was active on the node longer than the specified deadline",
            }
        return result

    @staticmethod
    def _states(containers: Sequence[ContainerRun]) -> list[status.ContainerState]:
        return [container.state for container in containers]

    def _grace(self) -> float:
        return float(self.pod["spec"].get("terminationGracePeriodSeconds", 30))

    def _report(self) -> None:
        if not self._stopping:
            self._host.report(self)
