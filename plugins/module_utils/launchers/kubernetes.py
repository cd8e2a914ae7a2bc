# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs on a cluster: start them, see how they are, read what they print, remove them. Never writes to a node.

    launcher = Launcher(client, "certify", certification=uid)
    launcher.start(run)
    observed = launcher.observe(runs)
    late = observation.overdue(run, observed[run["id"]], now)
    for log in launcher.logs(run): ...
    launcher.stop(run["id"])

Every method may be called again after a failure, or by another process: what is there already is taken over.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime

from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.client import api_path
from ansible_collections.goodput.fleet.plugins.module_utils.launchers import (
    manifests,
    names,
    observation,
    operators,
    ssh_keys,
)
from ansible_collections.goodput.fleet.plugins.module_utils.launchers.ends import both_ends
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import (
    Conflict,
    Denied,
    FleetError,
    NotFound,
    Unavailable,
)

LOG_BYTES = 64 << 20  # of one pod
ATTEMPTS = 4
DELETING_SECONDS = 60
EVENTS_AT_ONCE = 20
# kind: (apiVersion, plural)
KINDS = {
    "Job": ("batch/v1", "jobs"),
    "MPIJob": (operators.MPI, "mpijobs"),
    "TrainJob": (operators.TRAINER, "trainjobs"),
    "TrainingRuntime": (operators.TRAINER, "trainingruntimes"),
    "Secret": ("v1", "secrets"),
    "Service": ("v1", "services"),
}
OPERATORS = {"MPIJob": manifests.MPI, "TrainJob": manifests.TRAIN, "TrainingRuntime": manifests.TRAIN}


class Launcher:
    """The runs of one certification in one namespace."""

    def __init__(self, client, namespace: str, certification: str, sleep=time.sleep):
        self.client, self.namespace, self.certification = client, namespace, certification
        self._selector = f"{names.CERTIFICATION}={names.label_value(certification)}"
        self._sleep = sleep
        self._operators: frozenset[str] | None = None
        self._heard: dict[str, str] = {}  # uid of a pod: when it last printed something, as far as we know

    # ------------------------------------------------------------ start

    def start(self, run: Mapping) -> dict:
        """{status: created | adopted, launcher, note}. note: why the launcher is not the run's own, else "".

        A run that is there already is adopted where it is equal and this certification's. Raises Conflict where it is
        not, or where the last one of that name is not gone yet; and what the API server says.
        """
        launcher, note = manifests.choose(run, self.served())
        objects = manifests.build(run, self.namespace, self.certification, launcher)
        for needed in objects[:-1]:
            if needed["kind"] == "Secret":
                needed = {**needed, "data": ssh_keys.new_pair()}
            self._create(needed)
        deadline = time.monotonic() + DELETING_SECONDS
        while not self._create(objects[-1]):
            found = self.client.find(self._path(objects[-1]["kind"], run["id"]))
            if found is None:
                if time.monotonic() > deadline:
                    raise Conflict(f"{names.object_name(run['id'])} can neither be made nor is it there")
                self._sleep(0.1)
                continue
            if not found["metadata"].get("deletionTimestamp"):
                self._check_equal(found, objects[-1])
                return {"status": "adopted", "launcher": launcher, "note": note}
            if time.monotonic() > deadline:
                where = f"{self.namespace}/{names.object_name(run['id'])}"
                hint = "a pod of it does not end, perhaps since its node is not there"
                raise Conflict(f"{where} is still being deleted after {DELETING_SECONDS} s", hint=hint)
            self._sleep(0.5)
        return {"status": "created", "launcher": launcher, "note": note}

    def _create(self, body: Mapping) -> bool:
        """False where one of that name is there already, and was before."""
        version, plural = KINDS[body["kind"]]
        failed = False
        for attempt in range(ATTEMPTS):
            try:
                self.client.post(api_path(version, plural, self.namespace), dict(body), fieldManager=names.MANAGER)
                return True
            except Conflict:
                return failed  # an answer that was lost may have been a yes
            except Unavailable:
                # the client does not repeat what may have been done; here it can do no harm
                if attempt + 1 == ATTEMPTS:
                    raise
                failed = True
                self._sleep(0.2 * 2**attempt)
        raise AssertionError("not reached")

    def _check_equal(self, found: Mapping, wanted: Mapping) -> None:
        metadata, ours = found["metadata"], wanted["metadata"]
        where = f"{wanted['kind']} {self.namespace}/{ours['name']}"
        owner = (metadata.get("labels") or {}).get(names.CERTIFICATION)
        if owner != ours["labels"][names.CERTIFICATION]:
            whose = f"certification {owner}" if owner else "somebody else"
            raise Conflict(f"{where} is of {whose}", code="run-of-another", hint="wait for it, or delete it")
        if (metadata.get("annotations") or {}).get(names.SPEC) != ours["annotations"][names.SPEC]:
            message = f"{where} is there already, and is not what would be started"
            raise Conflict(message, code="unequal-run", hint="delete it; its result is not that of this run")

    def served(self) -> frozenset[str]:
        """Those of mpijob and trainjob that the cluster has."""
        if self._operators is None:
            found = set()
            for kind, launcher in OPERATORS.items():
                version, plural = KINDS[kind]
                group = self.client.find(f"/apis/{version}") or {}
                if any(each.get("name") == plural for each in group.get("resources") or []):
                    found.add(launcher)
            self._operators = frozenset(found)
        return self._operators

    # ------------------------------------------------------------ observe

    def observe(self, runs: Iterable[Mapping], now: datetime | None = None) -> dict[str, dict]:
        """Run id -> observation (see observation.py), by one list of each kind and one of pods.

        lastLogAt is looked up only where a run may have been silent for too long.
        """
        runs, now = list(runs), now or datetime.now(UTC)
        main: dict[str, dict] = {}
        for kind in self._kinds(runs):
            for item in self._list(kind):
                main[_run_of(item)] = item
        pods: dict[str, list[dict]] = {}
        for item in self.client.list(api_path("v1", "pods", self.namespace), labelSelector=self._selector):
            pods.setdefault(_run_of(item), []).append(item)
        result, asked = {}, 0
        for run in runs:
            seen = observation.look(run, main.get(run["id"]), pods.get(run["id"], []))
            if seen["phase"] == "queued" and not seen["pods"] and asked < EVENTS_AT_ONCE:
                asked += 1
                seen["why"] = self._refusal(main[run["id"]]) or seen["why"]
            if seen["phase"] == "running":
                seen["lastLogAt"] = self._last_heard(run, seen["pods"], now)
            result[run["id"]] = seen
        return result

    def _kinds(self, runs: list[Mapping]) -> list[str]:
        wanted = {run["launcher"] for run in runs} & self.served() if runs else set()
        return ["Job", *(kind for kind in ("MPIJob", "TrainJob") if OPERATORS[kind] in wanted)]

    def _list(self, kind: str, **options) -> Iterator[dict]:
        version, plural = KINDS[kind]
        return self.client.list(api_path(version, plural, self.namespace), labelSelector=self._selector, **options)

    def _refusal(self, main: Mapping) -> str:
        """Why a job has no pods: only its events tell of quotas and admission."""
        if (main.get("spec") or {}).get("suspend"):
            return ""
        selector = f"involvedObject.uid={main['metadata'].get('uid')},type=Warning"
        try:
            events = list(self.client.list(api_path("v1", "events", self.namespace), fieldSelector=selector))
        except Denied:
            return ""
        last = max(events, key=lambda event: event.get("lastTimestamp") or event.get("eventTime") or "", default=None)
        return f"{last.get('reason')}: {last.get('message')}"[: observation.TEXT] if last else ""

    def _last_heard(self, run: Mapping, pods: list[dict], now: datetime) -> str | None:
        silence = run["limits"]["silence"]
        if silence >= run["limits"]["run"]:
            return None
        heard = [self._heard.get(pod["uid"]) or pod["startedAt"] or "" for pod in pods]
        if not heard or (now - _moment(max(heard))).total_seconds() <= silence:
            return max(heard, default=None) or None
        for pod in pods:
            if pod["startedAt"]:
                self._heard[pod["uid"]] = last = self._last_line(pod["name"]) or pod["startedAt"]
                if (now - _moment(last)).total_seconds() <= silence:
                    return last  # one that speaks is enough
        return max(self._heard.get(pod["uid"]) or "" for pod in pods) or None

    def _last_line(self, pod: str) -> str | None:
        """When its last line was printed; None where that cannot be read."""
        path = api_path("v1", "pods", self.namespace, pod, "log")
        try:
            text = self.client.text(path, container=names.CONTAINER, tailLines=1, timestamps="true")
        except Denied:
            raise
        except FleetError:
            return None
        return text.split(" ", 1)[0] if text[:1].isdigit() else None

    # ------------------------------------------------------------ logs

    def logs(self, run: Mapping, limit: int = LOG_BYTES) -> Iterator[dict]:
        """{pod, node, host, index, role, text, bytes, leftOut, problem} of each pod, one after the other.

        text: of about `limit` bytes at most, the begin and the end of what is longer. problem: why a log cannot be
        read or is not whole, else "". Raises Denied, and what listing the pods raises.
        """
        selector = f"{names.RUN}={run['id']}"
        items = list(self.client.list(api_path("v1", "pods", self.namespace), labelSelector=selector))
        for pod in observation.look(run, None, items)["pods"]:
            entry = {key: pod[key] for key in ("node", "host", "index", "role")}
            yield {"pod": pod["name"], **entry, **self._log(pod["name"], limit)}

    def _log(self, pod: str, limit: int) -> dict:
        path = api_path("v1", "pods", self.namespace, pod, "log")
        problem = ""

        def pieces() -> Iterator[bytes]:
            nonlocal problem
            try:
                yield from self.client.stream(path, container=names.CONTAINER)
            except Denied:
                raise
            except FleetError as error:
                problem = str(error)

        text, total, left_out = both_ends(pieces(), limit)
        return {"text": text.decode(errors="replace"), "bytes": total, "leftOut": left_out, "problem": problem}

    # ------------------------------------------------------------ stop

    def stop(self, run_id: str) -> list[str]:
        """Delete all that a run has, and say what that was: kinds. What runs goes only after its pods have.

        The Service goes last, so that a run which is deleted half way is still found by orphans().
        """
        deleted = []
        for kind, (version, plural) in KINDS.items():
            if kind in OPERATORS and OPERATORS[kind] not in self.served():
                continue
            path = api_path(version, plural, self.namespace, names.object_name(run_id))
            policy = "Foreground" if kind in ("Job", "MPIJob", "TrainJob") else "Background"
            try:
                self.client.delete(path, {"propagationPolicy": policy})
                deleted.append(kind)
            except NotFound:
                pass
        return deleted

    def left(self, run_ids: Collection[str]) -> dict[str, list[dict]]:
        """Run id -> its pods that are still there, {name, node}; none of them is a run that is wholly gone."""
        found: dict[str, list[dict]] = {}
        for item in self.client.list(api_path("v1", "pods", self.namespace), labelSelector=self._selector):
            if (run_id := _run_of(item)) in run_ids:
                pod = {"name": item["metadata"]["name"], "node": (item.get("spec") or {}).get("nodeName") or ""}
                found.setdefault(run_id, []).append(pod)
        return found

    def orphans(self, known: Collection[str] = ()) -> dict[str, list[str]]:
        """Run id -> kinds of what this certification has in the cluster for runs that are not known."""
        found: dict[str, list[str]] = {}
        for kind in KINDS:
            if kind == "Secret" or (kind in OPERATORS and OPERATORS[kind] not in self.served()):
                continue
            for item in self._list(kind, metadata_only=True):
                run_id = _run_of(item)
                if run_id not in known and not item["metadata"].get("deletionTimestamp"):
                    found.setdefault(run_id, []).append(kind)
        return found

    def _path(self, kind: str, run_id: str) -> str:
        version, plural = KINDS[kind]
        return api_path(version, plural, self.namespace, names.object_name(run_id))


def _run_of(item: Mapping) -> str:
    return (item["metadata"].get("labels") or {}).get(names.RUN, "")


def _moment(text: str) -> datetime:
    """1970 for what is no time: then a log is looked at once more."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return datetime.fromtimestamp(0, UTC)
