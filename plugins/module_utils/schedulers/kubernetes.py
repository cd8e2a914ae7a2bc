# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A decision about a job's attempt, carried out on a cluster exactly once.

    result = apply(client, decision, attempt)
    for intent in intents.unfinished(client):          # what a killed run left
        result = proceed(client, intent)
    seen = verify(client, result["intent"])

A result is {status, changed, detail, job: "ns/name", action, path: recreate | in-place | "", intent: {namespace, name}
| None, successor: {uid, name} | None, excluded: [names], waitingFor: [{pod, node, phase, terminating}]}, for failures
with `code`. Statuses: done, planned (nothing written), waiting (begun; a later call goes on), already (it is done, or
another run is at it), refused (nothing is to be done here; detail says why), failed.

A person always wins: who deletes, suspends, resumes or changes the job before its pods are being ended keeps what they
did, and the intent is abandoned. From then on the job is made anew, whoever is killed when.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime

from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.client import api_path
from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.failures import Refused
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import (
    Conflict,
    Denied,
    FleetError,
    InvalidDocument,
    NotCovered,
    NotFound,
    Unavailable,
)
from ansible_collections.goodput.fleet.plugins.module_utils.schedulers import (
    affinity,
    intents,
    kinds,
    queues,
    successor,
)
from ansible_collections.goodput.fleet.plugins.module_utils.schedulers.replacement import Replacement, result

ACTIONS = ("retry", "restart", "requeue")
HOSTNAME = affinity.HOSTNAME


def apply(
    client,
    decision: Mapping,
    attempt: Mapping,
    *,
    check_mode: bool = False,
    wait: float = 60.0,
    lease: float = 60.0,
    resume_env: str = "",
    domain_label: str = "",
    sleep=time.sleep,
) -> dict:
    """Do to the job what a RecoveryDecision says (the record, or its spec). Never raises a FleetError.

    `wait`: seconds to wait for old pods to go; then the answer is waiting. `lease`: seconds without a sign after which
    another run is taken for dead. `resume_env`: the variable that gets resume.path, where the job names none.
    `domain_label`: the node label that prefer is about.
    """
    spec = decision.get("spec") or decision
    about = {"job": f"{attempt['job']['namespace']}/{attempt['job']['name']}", "action": spec["action"]}
    if spec["action"] not in ACTIONS:
        return result("done", f"{spec['action']}: nothing is to be done to the job", **about)
    try:
        return _apply(
            client,
            spec,
            attempt,
            about,
            check_mode or spec.get("mode") != "act",
            {"wait": wait, "lease": lease, "sleep": sleep},
            resume_env,
            domain_label,
        )
    except (InvalidDocument, NotCovered) as error:
        return result("refused", str(error), **about, code=error.problems[0].code)
    except FleetError as error:
        return result("failed", str(error), **about, code=error.code)


def proceed(client, intent: Mapping, *, wait: float = 60.0, lease: float = 60.0, sleep=time.sleep) -> dict:
    """Go on with an intent that is open, as intents.find() or unfinished() gave it. As apply()."""
    replacement = Replacement(client, dict(intent), wait, lease, sleep)
    try:
        return replacement.run()
    except FleetError as error:
        return replacement.answer("failed", str(error), code=error.code)


def verify(client, intent: Mapping) -> dict:
    """What became of it: {state, running, ended, pods: {expected, running, pending, ended}, onExcluded: [{pod, node}],
    waiting: why it does not run, successor}. `intent`: {namespace, name} as results have it.

    `state` is the intent's, "missing" where it is gone. running: as many pods run as the job asks for. Raises what the
    client raises.
    """
    found = intents.find(client, intent["namespace"], intent["name"])
    pods = {"expected": None, "running": 0, "pending": 0, "ended": 0}
    seen = {"state": "missing", "running": False, "ended": None, "pods": pods, "onExcluded": [], "waiting": ""}
    if found is None:
        return {**seen, "waiting": "there is no such intent", "successor": None}
    seen |= {"state": found["state"], "successor": found["successor"]}
    if found["state"] not in ("created", "done"):
        return {**seen, "waiting": found["detail"] or "the next attempt is not there yet"}
    job = live(client, found["job"])
    if job is None or job["metadata"]["uid"] != (found["successor"] or {}).get("uid"):
        return {**seen, "waiting": "the next attempt is gone"}
    excluded = successor.excluded_in(job)
    pods["expected"], reasons = kinds.expected_pods(job), []
    for pod in client.list(api_path("v1", "pods", found["namespace"]), labelSelector=kinds.pod_selector(job)):
        phase, node = (pod.get("status") or {}).get("phase"), (pod.get("spec") or {}).get("nodeName")
        state = {"Running": "running", "Succeeded": "ended", "Failed": "ended"}.get(phase, "pending")
        pods[state] += 1
        if node in excluded:
            seen["onExcluded"].append({"pod": pod["metadata"]["name"], "node": node})
        if state == "pending":
            reasons.append(_why_pending(pod))
    seen["ended"] = kinds.ended(job)
    seen["running"] = not seen["ended"] and pods["running"] >= (pods["expected"] or 1)
    if not seen["running"] and not seen["ended"]:
        seen["waiting"] = _why_waiting(job, reasons)
    return seen


def clean(client, job: Mapping) -> bool:
    """Take mark and finalizer off a raw job whose intent somebody deleted; whether there was anything to take off."""
    metadata = job.get("metadata") or {}
    notes = metadata.get("annotations") or {}
    name = notes.get(successor.MARK) or notes.get(successor.INTENT)
    ours = successor.MARK in notes or successor.FINALIZER in (metadata.get("finalizers") or ())
    if not ours or (name and intents.find(client, metadata["namespace"], name) is not None):
        return False
    finalizers = [each for each in metadata.get("finalizers") or () if each != successor.FINALIZER]
    change = {"resourceVersion": metadata["resourceVersion"], "annotations": {successor.MARK: None}}
    try:
        client.patch(path_of(job), {"metadata": {**change, "finalizers": finalizers}}, fieldManager=intents.MANAGER)
    except (Conflict, NotFound):  # somebody is at it, or it is gone
        return False
    return True


def path_of(job: Mapping) -> str:
    """`job`: raw, or with namespace and name beside apiVersion and kind."""
    place = job.get("metadata") or job
    return api_path(job["apiVersion"], kinds.kind_of(job).plural, place["namespace"], place["name"])


def live(client, job: Mapping) -> dict | None:
    found = client.find(path_of(job))
    return None if found is None else {"apiVersion": job["apiVersion"], "kind": job["kind"], **found}


def _apply(
    client, spec: Mapping, attempt: Mapping, about: dict, plan: bool, how: dict, resume_env: str, domain_label: str
) -> dict:
    reference = attempt["job"]
    namespace, name = reference["namespace"], intents.name_of(spec["attempt"])
    try:
        found = intents.find(client, namespace, name)
    except Denied:
        if not plan:  # a plan may be made by who only has the right to read jobs
            raise
        found = None
    if found is not None:
        return _there_already(client, found, plan, how)
    if _in_future(spec.get("notBefore")):
        return result("waiting", f"not before {spec['notBefore']}", **about)
    job = live(client, reference)
    why = _refusal(client, job, reference)
    if why:
        return result("refused", why, **about, code="job-changed")
    intent = _intent(client, spec, attempt, job, name, resume_env, domain_label)
    about |= {"path": intent["path"], "excluded": [each["node"] for each in intent["excluded"]]}
    try:
        why = _server_says(client, job, intent["manifest"])
    except Denied:
        if not plan:
            raise
        why = ""
    if why:
        return result("refused", f"the API server would not take its next attempt: {why}", **about, code="manifest")
    if plan:
        return result("planned", _plan_text(intent), **about)
    created = intents.create(client, intent)
    if created is None:  # another run was quicker
        found = intents.find(client, namespace, name)
        if found is None:
            return result("failed", f"intent {namespace}/{name} came and went", **about, code="conflict")
        return _there_already(client, found, plan, how)
    return proceed(client, created, **how)


def _there_already(client, intent: dict, plan: bool, how: dict) -> dict:
    if intent["state"] in intents.OPEN and not plan:
        return proceed(client, intent, **how)
    run = Replacement(client, intent, **how)
    if intent["state"] == "abandoned":
        return run.answer("refused", intent["detail"], code="job-changed")
    if intent["state"] == "done":
        return run.answer("already", intent["detail"] or "this attempt has been acted on")
    return run.answer("planned", f"a run that began at {intent['at']} is not through; it would be gone on with")


def _refusal(client, job: Mapping | None, reference: Mapping) -> str:
    """Why nothing may be done to the job as it is now; "" where something may."""
    if job is None:
        return "the job is not there any more"
    metadata = job["metadata"]
    notes = metadata.get("annotations") or {}
    if metadata["uid"] != reference["uid"]:
        return "another job has this name now"
    if metadata.get("deletionTimestamp"):
        return "somebody is deleting the job"
    if reference.get("generation") not in (None, metadata.get("generation")):
        return "somebody changed the job since this was decided"
    owner = kinds.controller(job)
    if owner:
        whose = f"{owner.get('kind')} {owner.get('name')}"
        advice = ": recover that one" if owner.get("kind") in kinds.KINDS else ", which would make it anew or miss it"
        return f"the job is controlled by {whose}{advice}"
    if str((job.get("spec") or {}).get("managedBy") or "").endswith("multikueue"):
        return "the job runs in another cluster (MultiKueue)"
    said = kinds.opted_out(job)
    if reference.get("neverTouch") or said:
        return said or "nobody but its owner may start the job again"
    end = kinds.ended(job)
    if end and end["state"] == "succeeded":
        return "the job has succeeded"
    if kinds.suspended(job) and not end:
        queue = queues.queue_of(job)
        return f"its queue {queue['name']} holds the job" if queue["managed"] else "somebody suspended the job"
    other = notes.get(successor.MARK)
    if other:
        found = intents.find(client, metadata["namespace"], other)
        if found is not None and found["state"] in intents.OPEN:
            return f"another recovery of the job is under way ({other})"
    return ""


def _intent(client, spec: Mapping, attempt: Mapping, job: dict, name: str, resume_env: str, domain_label: str) -> dict:
    now = datetime.now(UTC)
    # what earlier attempts left out is among it, as long as that holds and there is room
    excluded = [_excluded(client, each) for each in sorted(spec.get("exclude") or (), key=lambda each: each["node"])]
    preferred = affinity.preference(domain_label, spec.get("prefer") or ())
    if spec["action"] == "retry":
        names = {each["node"] for each in excluded}
        same = [each for each in attempt.get("nodes") or () if each not in names]
        # a hint only: its other nodes may be taken by now
        preferred += affinity.preference(HOSTNAME, same, weight=100)
    notes = job["metadata"].get("annotations") or {}
    path = (spec.get("resume") or {}).get("path")
    variable = notes.get(successor.RESUME_ENV) or resume_env
    env = {variable: path} if variable and path else {}
    number, queue = successor.number_of(job), queues.queue_of(job)
    pods = (spec.get("resize") or {}).get("pods")
    manifest = successor.build(
        job,
        number,
        successor.Placement(excluded, preferred),
        intent=name,
        env=env,
        originals=queues.workload_templates(client, job) if queue["managed"] else {},
        job_set=_job_set(client, job),
        pods=pods,
    )
    in_place = job["kind"] == "Job" and not (kinds.ended(job) or env or queue["managed"] or pods is not None)
    status = job.get("status") or {}
    in_place = in_place and not (status.get("succeeded") or status.get("failedIndexes"))  # those would not run again
    metadata = job["metadata"]
    return {
        "name": name,
        "namespace": metadata["namespace"],
        "key": spec["attempt"],
        "job": {
            **{key: job[key] for key in ("apiVersion", "kind")},
            **{key: metadata[key] for key in ("namespace", "name", "uid")},
        },
        "number": number,
        "action": spec["action"],
        "path": "in-place" if in_place else "recreate",
        "generation": metadata.get("generation"),
        "expires": _expires(job),
        "selector": kinds.pod_selector(job),
        "manifest": manifest,
        "excluded": excluded,
        "preferred": preferred,
        "state": "begun",
        "holder": intents.me(),
        "at": intents.moment(now),
        "renewed": intents.moment(now),
        "detail": "",
        "successor": None,
    }


def _excluded(client, entry: Mapping) -> dict:
    """With the host name that affinity knows the node by, which need not be the node's name."""
    node = client.find(api_path("v1", "nodes", name=entry["node"]), metadata_only=True) or {"metadata": {}}
    hostname = (node["metadata"].get("labels") or {}).get(HOSTNAME) or entry["node"]
    kept = {key: entry.get(key) or "" for key in ("uid", "why", "until")}
    return {"node": entry["node"], "hostname": hostname, **kept}


def _job_set(client, job: Mapping) -> dict | None:
    """What the pods of a TrainJob are made from: its JobSet, or its runtime's template before there is one."""
    if job["kind"] != "TrainJob":
        return None
    metadata, version = job["metadata"], kinds.KINDS["JobSet"].api_version
    found = client.find(api_path(version, "jobsets", metadata["namespace"], metadata["name"]))
    if found is not None:
        return found
    runtime = (job.get("spec") or {}).get("runtimeRef") or {}
    local = runtime.get("kind") == "TrainingRuntime"
    plural, namespace = ("trainingruntimes", metadata["namespace"]) if local else ("clustertrainingruntimes", None)
    found = client.find(api_path(job["apiVersion"], plural, namespace, runtime.get("name") or "-"))
    return (found.get("spec") or {}).get("template") if found else None


def _server_says(client, job: Mapping, manifest: Mapping) -> str:
    """Why the API server would refuse the manifest. It is asked while the old job is there: so "it is there already" is
    a yes, as that is said of a valid one only."""
    path = path_of(job).rpartition("/")[0]
    try:
        client.post(path, dict(manifest), dryRun="All", fieldValidation="Strict", fieldManager=intents.MANAGER)
    except Refused as error:
        return "" if "dry run" in str(error).lower() else str(error)  # a webhook that cannot be asked
    except Conflict:
        return ""
    except Denied as error:
        if "quota" in f"{error} {error.problems[0].hint}":
            return ""  # the old one takes up what the new one would
        raise
    except Unavailable as error:
        if getattr(error, "status", None) in (500, 504):  # a webhook's bad day
            return ""
        raise
    return ""


def _expires(job: Mapping) -> str:
    """When the cluster deletes the ended job by itself, "" where it does not."""
    spec, end = job.get("spec") or {}, kinds.ended(job)
    seconds = {**spec, **(spec.get("runPolicy") or {})}.get("ttlSecondsAfterFinished")
    if not isinstance(seconds, int) or not end or not end["at"]:
        return ""
    return intents.moment(datetime.fromtimestamp(datetime.fromisoformat(end["at"]).timestamp() + seconds, UTC))


def _in_future(moment: object) -> bool:
    try:
        return bool(moment) and datetime.fromisoformat(str(moment)) > datetime.now(UTC)
    except (ValueError, TypeError):
        return False


def _plan_text(intent: Mapping) -> str:
    way = "suspend it and resume it" if intent["path"] == "in-place" else "delete it and make it anew"
    names = ", ".join(each["node"] for each in intent["excluded"])
    return f"{intent['action']}: would {way} as attempt {intent['number'] + 1}" + (f", not on {names}" if names else "")


def _why_pending(pod: Mapping) -> str:
    for each in (pod.get("status") or {}).get("conditions") or ():
        if each.get("type") == "PodScheduled" and each.get("status") == "False":
            return f"{each.get('reason') or 'not scheduled'}: {each.get('message') or ''}"[:300].strip(": ")
    return "its pods are starting"


def _why_waiting(job: Mapping, reasons: list[str]) -> str:
    if kinds.suspended(job):
        queue = queues.queue_of(job)
        return f"its queue {queue['name']} has not admitted it" if queue["managed"] else "somebody suspended it"
    return max(set(reasons), key=reasons.count) if reasons else "not all of its pods are there"
