# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One intent, step by step, each step decided on what the cluster shows: so it may be killed, and be run twice.

A job is made anew thus: mark it (annotation and finalizer, on the resourceVersion that was looked at), delete it in the
foreground, wait until none of its pods is left, note that it is gone by our hand, let go of it, create the next one
(with our finalizer), note that it is there, take the finalizer off, done. The finalizer is what tells a person's
deletion from ours: it keeps the object until we have looked.

In place: suspend and mark it, wait until no pod of it runs, change its template and resume it, done.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping
from datetime import UTC, datetime

from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.client import api_path
from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.failures import Refused
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import Conflict, NotFound, Unavailable
from ansible_collections.goodput.fleet.plugins.module_utils.schedulers import intents, kinds, successor

POLL = 0.3  # seconds between two looks at pods that have to go
RENEW = 2.0  # seconds after which a run may have to say that it is alive, however short its lease is
CONFLICTS = 20  # times that somebody else may be quicker
FAILURES = 3  # times that an answer may be lost where the client itself may not ask again
FOREGROUND = "foregroundDeletion"
SUCCEEDED = "the job has succeeded meanwhile"


class TakenOver(Exception):
    """Another run holds the intent now."""


def result(status: str, detail: str, **more) -> dict:
    empty = {"changed": False, "job": "", "action": "", "path": "", "intent": None, "successor": None}
    return {"status": status, "detail": detail, **empty, "excluded": [], "waitingFor": [], **more}


class Replacement:
    def __init__(self, client, intent: dict, wait: float, lease: float, sleep=time.sleep):
        self.client, self.intent, self.lease, self.sleep = client, intent, lease, sleep
        self.deadline, self.changed = time.monotonic() + wait, False
        job = intent["job"]
        self.path = api_path(job["apiVersion"], kinds.kind_of(job).plural, job["namespace"], job["name"])

    def answer(self, status: str, detail: str, **more) -> dict:
        it = self.intent
        about = {"job": f"{it['job']['namespace']}/{it['job']['name']}", "action": it["action"], "path": it["path"]}
        about |= {"intent": {"namespace": it["namespace"], "name": it["name"]}, "successor": it["successor"]}
        excluded = [each["node"] for each in it.get("excluded") or ()]
        return result(status, detail, changed=self.changed, **about, excluded=excluded, **more)

    def run(self) -> dict:
        """Raises what the client raises; all that was done by then is found again by the next run."""
        it = self.intent
        if it["state"] in intents.CLOSED:
            return self.answer("already" if it["state"] == "done" else "refused", it["detail"] or "it is done")
        if intents.held_by_another(it, self.lease):
            return self.answer("already", f"another run is at it ({it['holder']}, last seen {it['renewed']})")
        try:
            if it["holder"] != intents.me():
                self._note(holder=intents.me())
            return self._steps()
        except TakenOver:
            return self.answer("already", "another run has taken it over")

    def _steps(self) -> dict:
        conflicts = failures = 0
        while True:
            try:
                done = self._in_place() if self.intent["path"] == "in-place" else self._recreate()
            except (Conflict, NotFound):  # what was looked at is not there any more as it was: look again
                conflicts += 1
                if conflicts > CONFLICTS:
                    raise
                self.sleep(0.02 * conflicts)
                continue
            except Unavailable:
                failures += 1
                if failures > FAILURES:
                    raise
                self.sleep(0.2 * 2**failures)
                continue
            if done is not None:
                return done

    # ------------------------------------------------------------ delete, and make anew

    def _recreate(self) -> dict | None:
        it, job = self.intent, self._job()
        if it["state"] == "created":
            return self._finish(job)
        if job is None:
            if it["state"] == "begun":
                if not self._expired():
                    return self._abandon("somebody deleted the job")
                self._note(state="creating")
            return self._create()
        metadata = job["metadata"]
        if metadata["uid"] != it["job"]["uid"]:
            if (metadata.get("annotations") or {}).get(successor.INTENT) != it["name"]:
                return self._abandon("somebody made the job anew")
            self._note(state="created", successor={"uid": metadata["uid"], "name": metadata["name"]})
            return None
        finalizers = metadata.get("finalizers") or []
        marked = self._marked(job) and successor.FINALIZER in finalizers
        if not metadata.get("deletionTimestamp"):
            why = self._others_will(job)
            if why:
                return self._let_go(job, why)
            if not marked and self._stale(job):
                return self._withdraw()
            if not marked:
                self._patch(job, {successor.MARK: it["name"]}, [*finalizers, successor.FINALIZER])
                return None
            only = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
            self.client.delete(self.path, {"propagationPolicy": "Foreground", "preconditions": only})
            self.changed = True
            return None
        if not marked:
            return self._wait([], "the cluster deletes it") if self._expired() else self._abandon("somebody deletes it")
        pods = self._pods()
        if it["state"] == "begun" and FOREGROUND not in finalizers and any(_left_alone(pod) for pod in pods):
            # ours is a foreground one, which ends only when it has no pods any more
            return self._let_go(job, "somebody deleted the job")
        others = [each for each in finalizers if each != successor.FINALIZER]
        if pods or others:
            return self._wait(pods, f"the old attempt is not gone yet ({', '.join(others) or 'pods are left'})")
        if it["state"] == "begun":
            self._note(state="creating", detail="")
        self._patch(job, {}, others)
        return None

    def _create(self) -> dict | None:
        if self._silence() > max(self.lease / 3, RENEW):
            self._note()  # a run that was asleep may have been taken over, and the next attempt be over by now
            return None
        try:
            made = self.client.post(self.path.rpartition("/")[0], self.intent["manifest"], fieldManager=intents.MANAGER)
        except Conflict:
            return None
        self.changed = True
        metadata = made["metadata"]
        self._note(state="created", detail="", successor={"uid": metadata["uid"], "name": metadata["name"]})
        return None

    def _finish(self, job: Mapping | None) -> dict:
        it = self.intent
        detail = f"attempt {it['number'] + 1} is there"
        if job is None or job["metadata"]["uid"] != it["successor"]["uid"]:
            detail += "; somebody deleted it since"
        elif successor.FINALIZER in (job["metadata"].get("finalizers") or ()):
            finalizers = [each for each in job["metadata"]["finalizers"] if each != successor.FINALIZER]
            self._patch(job, {}, finalizers)
        self._note(state="done", detail=detail)
        return self.answer("done", detail)

    # ------------------------------------------------------------ suspend, and resume

    def _in_place(self) -> dict | None:
        it, job = self.intent, self._job()
        if job is None or job["metadata"]["uid"] != it["job"]["uid"]:
            return self._abandon("somebody deleted the job" if job is None else "somebody made the job anew")
        metadata = job["metadata"]
        if metadata.get("deletionTimestamp"):
            return self._abandon("somebody deletes it")
        if (metadata.get("annotations") or {}).get(successor.INTENT) == it["name"]:
            detail = f"attempt {it['number'] + 1} is there"
            self._note(state="done", detail=detail, successor={"uid": metadata["uid"], "name": metadata["name"]})
            return self.answer("done", detail)
        changed = copy.deepcopy(job)
        if not self._marked(job):
            why = self._others_will(job)
            if why:
                return self._let_go(job, why)
            if self._stale(job):
                return self._withdraw()
            if kinds.ended(job):
                return self._ended_meanwhile(job)
            kinds.set_suspended(changed, True)
            changed["metadata"].setdefault("annotations", {})[successor.MARK] = it["name"]
            self._put(changed)
            return None
        if kinds.ended(job):
            return self._ended_meanwhile(job)
        if not kinds.suspended(job):
            return self._let_go(job, "somebody resumed the job")
        pods = [pod for pod in self._pods() if (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")]
        if pods or not _is_suspended(job):
            return self._wait(pods, "pods of the old attempt are left")
        placement = successor.Placement(it["excluded"], it["preferred"])
        successor.replace(changed, job, it["number"], placement, intent=it["name"])
        kinds.set_suspended(changed, False)
        try:
            self._put(changed)
        except Refused:  # a server that lets nobody change the template of a job that has run
            self._note(path="recreate", generation=metadata.get("generation"))
        return None

    def _ended_meanwhile(self, job: Mapping) -> dict | None:
        """Nothing resumes a job that has ended: a failed one is made anew."""
        if kinds.ended(job)["state"] == "succeeded":
            return self._let_go(job, SUCCEEDED)
        self._note(path="recreate", generation=job["metadata"].get("generation"))
        return None

    # ------------------------------------------------------------ what both need

    def _job(self) -> dict | None:
        found, job = self.client.find(self.path), self.intent["job"]
        return None if found is None else {"apiVersion": job["apiVersion"], "kind": job["kind"], **found}

    def _pods(self) -> list[dict]:
        path = api_path("v1", "pods", self.intent["namespace"])
        return list(self.client.list(path, labelSelector=self.intent["selector"]))

    def _marked(self, job: Mapping) -> bool:
        return (job["metadata"].get("annotations") or {}).get(successor.MARK) == self.intent["name"]

    def _others_will(self, job: Mapping) -> str:
        """What a person decided about the job since the intent was written."""
        it = self.intent
        if job["metadata"].get("generation") != it["generation"]:
            return "somebody changed the job"
        said = kinds.opted_out(job)
        if said:
            return said
        end = kinds.ended(job)
        if end and end["state"] == "succeeded":
            return SUCCEEDED
        return ""

    def _stale(self, job: Mapping) -> bool:
        """Whether what was decided is about a state of affairs that may be over. A job that has not ended may get on
        again by itself."""
        age = datetime.now(UTC) - datetime.fromisoformat(self.intent["at"])
        return age > (intents.STALE if kinds.ended(job) else intents.STALE_ACTIVE)

    def _withdraw(self) -> dict:
        """As if it had never been written, since nothing has been done: the next pass decides on what it sees."""
        it = self.intent
        try:
            only = {"resourceVersion": it["resourceVersion"]}
            self.client.delete(intents.path_of(it["namespace"], it["name"]), {"preconditions": only})
        except Conflict as error:
            raise TakenOver from error
        except NotFound:
            pass
        return self.answer("waiting", f"this was decided at {it['at']} and never begun: it is decided anew")

    def _expired(self) -> bool:
        """Whether the cluster itself deletes the job by now, since it has ended long enough ago."""
        return bool(self.intent["expires"]) and datetime.fromisoformat(self.intent["expires"]) <= datetime.now(UTC)

    def _let_go(self, job: Mapping, why: str) -> dict:
        """Take off the job what is ours, then abandon it."""
        finalizers = job["metadata"].get("finalizers") or []
        if self._marked(job) or successor.FINALIZER in finalizers:
            self._patch(job, {successor.MARK: None}, [each for each in finalizers if each != successor.FINALIZER])
        return self._abandon(why)

    def _abandon(self, why: str) -> dict:
        self._note(state="abandoned", detail=why)
        return self.answer("refused", why, code="job-changed")

    def _wait(self, pods: list[dict], why: str) -> dict | None:
        if time.monotonic() >= self.deadline:
            left = [_pod(pod) for pod in pods]
            if self.intent["detail"] != why:
                self._note(detail=why)
            return self.answer("waiting", why, waitingFor=left)
        if self._silence() > max(self.lease / 3, RENEW):
            self._note()
        self.sleep(POLL)
        return None

    def _silence(self) -> float:
        """Seconds since the intent was last written by us."""
        return (datetime.now(UTC) - datetime.fromisoformat(self.intent["renewed"])).total_seconds()

    def _patch(self, job: Mapping, annotations: Mapping, finalizers: list[str]) -> None:
        metadata: dict = {"resourceVersion": job["metadata"]["resourceVersion"], "finalizers": finalizers}
        if annotations:
            metadata["annotations"] = dict(annotations)
        self.client.patch(self.path, {"metadata": metadata}, metadata_only=True, fieldManager=intents.MANAGER)
        self.changed = True

    def _put(self, job: dict) -> None:
        self.client.put(self.path, job, fieldManager=intents.MANAGER)
        self.changed = True

    def _note(self, **changes) -> None:
        """Write to the intent; one that somebody deleted meanwhile is made again, since marks refer to it."""
        try:
            self.intent = intents.update(self.client, self.intent, **changes)
        except Conflict as error:
            raise TakenOver from error
        except NotFound:
            made = intents.create(self.client, {**self.intent, **changes, "resourceVersion": ""})
            if made is None:
                raise TakenOver from None
            self.intent = made


def _is_suspended(job: Mapping) -> bool:
    """Whether the controller has seen it, which is when the template may be changed."""
    status = job.get("status") or {}
    seen = any(each["type"] == "Suspended" and each["status"] == "True" for each in status.get("conditions") or ())
    return seen and not status.get("active")


def _left_alone(pod: Mapping) -> bool:
    metadata = pod["metadata"]
    return bool(metadata.get("ownerReferences")) and not metadata.get("deletionTimestamp")


def _pod(pod: Mapping) -> dict:
    metadata = pod["metadata"]
    return {
        "pod": metadata["name"],
        "node": (pod.get("spec") or {}).get("nodeName") or "",
        "phase": (pod.get("status") or {}).get("phase") or "",
        "terminating": bool(metadata.get("deletionTimestamp")),
    }
