#!/usr/bin/python
# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: job_recovery
short_description: Start failed jobs again where that helps, and only there
version_added: 1.1.0
author:
  - goodput.fleet contributors (@goodput)
description:
  - Looks at the jobs of a Kubernetes cluster that failed, at the logs of their ranks, and at what is known of exactly
    the nodes that they ran on. The rules of a C(RecoveryPolicy) decide for each of them whether it is started again on
    the same nodes, started again without some of them, put back into its queue, held, or given back to its owner.
  - C(Job), C(JobSet), C(TrainJob), C(PyTorchJob) and C(MPIJob) are known. Kueue and KAI queues keep their say.
  - Nothing is written unless O(mode) is V(enforce), the policy says C(enforce), B(and) the job, its namespace or the
    policy says C(act) for that job (annotation C(goodput.fleet/recovery)). Check mode is the plan.
  - "An attempt is acted on once, however many runs there are at the same time, and wherever one is killed: the next run
    goes on with what it began. Evidence is kept before anything is done, since the logs go with the pods."
  - It never touches a node, but for one thing that has to be asked for, see O(off_nodes). What it thinks of nodes is in
    RV(advice), for M(goodput.fleet.node_quarantine) and for a certification.
options:
  policy:
    description:
      - A C(RecoveryPolicy), as the path of a file, as a dictionary, or as the name of one that this collection ships.
      - V(default) gives advice for every failed job, and touches none.
    type: raw
    default: default
  mode:
    description:
      - V(observe) decides and reports, V(dry_run) also keeps the evidence and the decisions in O(evidence_dir),
        V(enforce) does what was decided.
      - It can only lower what the policy says.
    type: str
    choices: [observe, dry_run, enforce]
    default: observe
  namespaces:
    description: Names or patterns of namespaces. Jobs of others are not looked at. By default those of all are.
    type: list
    elements: str
    default: []
  selector:
    description: Labels of the jobs that are looked at.
    type: str
    default: ''
  since:
    description: Jobs that failed longer ago than so many seconds are left as they are.
    type: int
    default: 86400
  hangs:
    description:
      - Whether jobs that run are looked at as well, for whether they still get on. The end of one log of each of them
        is read, which is a request for each job that asks for recovery at each pass.
      - How long a silence is a hang follows from the job's own steps, and is seen over several passes. With
        O(evidence_dir) these may be of several runs, unless in check mode or with O(mode=observe).
      - The policy says whether a job that hangs may be stopped (C(hang.act)). By default it is only told.
    type: bool
    default: false
  events:
    description: C(HealthEvent) documents, as for M(goodput.fleet.node_quarantine).
    type: list
    elements: dict
    default: []
  event_files:
    description: Files with health events, as for M(goodput.fleet.node_quarantine).
    type: list
    elements: path
    default: []
  record_dir:
    description:
      - Directory in which M(goodput.fleet.node_quarantine) keeps the events that it saw. Those of today and yesterday
        count as well.
    type: path
  evidence_dir:
    description:
      - Directory, on the host that runs the module, for what is known of each failed attempt, with the logs of its
        ranks. C(recovery.json) in it holds the last decisions.
      - O(mode=enforce) needs it. In check mode, and with O(mode=observe), nothing is kept.
    type: path
  log_dir:
    description:
      - Pattern of the files in which the site keeps logs, such as V(/var/log/jobs/{namespace}/{pod}.log). C(namespace),
        C(pod), C(container), C(uid) and C(job) can be named. Where the file is not there, the API server is asked.
    type: str
    default: ''
  checkpoint_roots:
    description:
      - Where this host sees the directories in which jobs keep checkpoints, as a map from the path in the job's
        containers to the path here. Jobs name theirs by the annotation C(goodput.fleet/checkpoint-path).
    type: dict
    default: {}
  checkpoint_settle:
    description: As O(goodput.fleet.checkpoint_info#module:settle).
    type: float
    default: 60
  resume_env:
    description:
      - Name of the environment variable that tells a job the checkpoint to go on from, for jobs that name none by the
        annotation C(goodput.fleet/recovery-resume-env). Without one, a job finds its checkpoint itself.
    type: str
    default: ''
  off_nodes:
    description:
      - Nodes that are proven to be off, each with C(node), C(source) (who says so, such as the BMC) and C(at), the time
        of that; C(uid) and C(bootId) of the node may be told too. At most 15 minutes old.
      - Where a job to be started again has pods there that cannot end, the node gets Kubernetes' taint
        C(node.kubernetes.io/out-of-service), which frees them. It is taken off when the node is back in another boot.
      - Without proof this is never done, since a pod whose node still runs would then run twice.
    type: list
    elements: dict
    default: []
  watch:
    description:
      - For how many seconds to go on, acting as soon as a job fails. V(0) is one pass.
      - With V(async) the task runs in the background for that time. Otherwise it shows what it does as it goes.
    type: int
    default: 0
  interval:
    description: With O(watch), the most seconds between two passes, however quiet it is.
    type: int
    default: 15
  wait:
    description: Seconds to wait for the pods of the old attempt to be gone, and for those of the new one to run.
    type: int
    default: 120
  ledger_namespace:
    description: Namespace of the ConfigMap that holds what was decided in the last 30 days. It must exist.
    type: str
    default: goodput-fleet
  ledger_name:
    description: Name of that ConfigMap. It is made when it is not there.
    type: str
    default: goodput-recovery
  fail_on:
    description:
      - What the module fails for. V(failed) is something that could not be done, V(escalated) a job that a person has
        to look at, V(excluded) a new attempt that runs on a node it was to leave out.
    type: list
    elements: str
    choices: [failed, escalated, excluded]
    default: [failed, excluded]
  concurrency:
    description: How many jobs are acted on, and how many logs are read, at a time.
    type: int
    default: 8
  catalog:
    description:
      - Layers of the catalogue that hold the signatures of failures and the signal tables. V(shipped) is the one of
        this collection.
    type: list
    elements: str
    default: [shipped]
extends_documentation_fragment:
  - goodput.fleet.attributes
  - goodput.fleet.attributes.action_group
  - goodput.fleet.kubernetes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  idempotent:
    support: full
requirements:
  - jsonschema (Python package)
seealso:
  - module: goodput.fleet.node_quarantine
  - module: goodput.fleet.checkpoint_info
  - module: goodput.fleet.certification
  - module: goodput.fleet.report
"""

EXAMPLES = r"""
- name: What would be done about the jobs that failed? Nothing is written
  goodput.fleet.job_recovery:
  register: plan

- name: Start again what the policy says
  goodput.fleet.job_recovery:
    policy: policies/recovery.yaml
    mode: enforce
    record_dir: /var/lib/goodput
    evidence_dir: /var/lib/goodput/jobs
    checkpoint_roots: {/checkpoints: /mnt/lustre/checkpoints}

- name: Stay for an hour in the background, and act as soon as a job fails
  goodput.fleet.job_recovery:
    policy: policies/recovery.yaml
    mode: enforce
    evidence_dir: /var/lib/goodput/jobs
    watch: 3600
  async: 3900
  poll: 0
  register: job_track
"""

RETURN = r"""
msg:
  description: What was decided, in one line.
  returned: always
  type: str
  sample: "enforce: 2 failed attempts, decided 1 restart, 1 giveBack; actions: 1 done"
lines:
  description: The decisions in lines, one for each attempt, with their reasons and what came of them.
  returned: when decisions were reached
  type: list
  elements: str
  sample: ["ml/train attempt 1: restart (row-5): GPU has fallen off the bus; without gpu-0003 -> running"]
decisions:
  description: C(RecoveryDecision) documents, one for each failed attempt.
  returned: when decisions were reached
  type: list
  elements: dict
actions:
  description:
    - "What became of each decision that means something to be done: C(attempt), C(status) (V(done), V(planned),
      V(waiting), V(already), V(refused) or V(failed)), C(detail), C(path), C(at), C(successor), C(excluded),
      C(waitingFor), C(outcome) (V(running), or why it does not run) and C(onExcluded)."
  returned: when decisions were reached
  type: list
  elements: dict
job_attempts:
  description:
    - The failed attempts and the ones that followed them, with ranks, nodes, what is known of those nodes, the
      signature of the failure and the lines that decided it.
  returned: when decisions were reached
  type: list
  elements: dict
advice:
  description: What the hardware side is told of nodes, under C(gate), C(diagnose) and C(observe).
  returned: when decisions were reached
  type: dict
  sample: {gate: [], diagnose: [{node: gpu-0003, why: the same time-out three times, jobs: [ml/train]}], observe: []}
counts:
  description: C(decisions) by action, C(actions) by status, and how many new attempts run, C(running).
  returned: when decisions were reached
  type: dict
out_of_service:
  description: Nodes of O(off_nodes) that Kubernetes was told to be off, and those that this was taken back of.
  returned: when decisions were reached
  type: list
  elements: dict
partial:
  description: What of the evidence could not be had, and why.
  returned: when decisions were reached
  type: list
  elements: str
failures:
  description: What of V(failed), V(escalated) and V(excluded) there was, whether or not the module fails for it.
  returned: when decisions were reached
  type: list
  elements: str
passes:
  description: How many passes were made.
  returned: when decisions were reached
  type: int
policy:
  description: All numbers of the policy that are in force; durations in seconds.
  returned: when decisions were reached
  type: dict
"""

import contextlib
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.client import api_path
from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.connection import (
    KUBERNETES_ARGS,
    connect,
)
from ansible_collections.goodput.fleet.plugins.module_utils.gates import gate, outofservice
from ansible_collections.goodput.fleet.plugins.module_utils.gates.external import external
from ansible_collections.goodput.fleet.plugins.module_utils.gates.facts import ready
from ansible_collections.goodput.fleet.plugins.module_utils.gates.fleet import is_gpu_node
from ansible_collections.goodput.fleet.plugins.module_utils.jobs import (
    attempt,
    budgets,
    classify,
    collect,
    decide,
    declared,
    history,
    memory,
    moments,
    outcome,
    policy,
    progress,
    pulse,
    resume_point,
    signatures,
    topology,
)
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle import nodefacts
from ansible_collections.goodput.fleet.plugins.module_utils.records import durable
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import (
    Denied,
    FleetError,
    InvalidDocument,
    Unavailable,
)
from ansible_collections.goodput.fleet.plugins.module_utils.schedulers import intents, journal, kubernetes, listing
from ansible_collections.goodput.fleet.plugins.module_utils.schedulers.changes import Changes
from ansible_collections.goodput.fleet.plugins.module_utils.signals import eventlog, given, tables

FAILURES = ["failed", "escalated", "excluded"]
BETWEEN = 0.5  # seconds between two looks at attempts that are about to run
CLUSTER = "cluster"
AT_ONCE = 5.0  # seconds that a watching run waits for pods to go before it looks at other jobs


class Recovery:
    """Passes over the jobs of a cluster, and what they came to."""

    def __init__(self, module: AnsibleModule):
        self.module, self.params = module, module.params
        self.policy = policy.load(self.params["policy"]).capped(self.params["mode"])
        self.acts = self.policy.mode == "enforce" and self.params["mode"] == "enforce" and not module.check_mode
        self.keeps = self.params["mode"] != "observe" and not module.check_mode
        if self.acts and not self.params["evidence_dir"]:
            hint = "a directory that outlives the run: logs go with the pods of a failed job"
            raise InvalidDocument("is needed with mode enforce", path="evidence_dir", hint=hint)
        self.table = signatures.load_catalog(self.params["catalog"])
        self.signals = tables.load_catalog(self.params["catalog"])
        self.client = connect(self.params, module.no_log_values, threads=self.params["concurrency"])
        self.ledger = {"namespace": self.params["ledger_namespace"], "name": self.params["ledger_name"]}
        self.kept = self.params["evidence_dir"] if self.keeps and self.params["evidence_dir"] else module.tmpdir
        self.decisions, self.actions, self.attempts, self.pending = {}, {}, {}, {}
        self.told_off, self.partial, self.raw, self.passes = {}, {}, {}, 0
        self.seen = history.load(self.kept)

    def run(self) -> None:
        if not self.params["watch"]:
            self.look()
            self.settle(block=True)
            return
        ends, changes = time.monotonic() + self.params["watch"], Changes(self.client)
        self.look()
        due = time.monotonic() + self.params["interval"]
        while time.monotonic() < ends:
            pause = min(due, ends) - time.monotonic()
            told = changes.wait(max(0.0, min(pause, BETWEEN) if self.pending else pause))
            try:
                if told or time.monotonic() >= due:
                    due = time.monotonic() + self.params["interval"]
                    self.look()
                self.settle(block=False)
                self.partial.pop(CLUSTER, None)
            except Unavailable as error:  # it may be back before the time is over
                self.partial[CLUSTER] = [f"the last pass came to no end: {error}"]
                due = time.monotonic() + AT_ONCE
        changes.close()
        self.settle(block=True)

    def look(self) -> None:
        """One pass: what a killed run left, what is there, what to do about it, and that done."""
        self.passes += 1
        now = datetime.now(UTC)
        spaces = listing.namespaces(self.client)
        jobs = listing.jobs(self.client, self.params["namespaces"], self.params["selector"])
        self.go_on(spaces, jobs)
        self.raw = {job["metadata"]["uid"]: job for job in jobs}
        wanted = declared.opted_in(jobs, spaces, self.default_mode())
        pods, used = listing.job_pods(self.client, wanted)
        nodes = listing.nodes(self.client)
        if self.acts:
            self.note_off(outofservice.clear(self.client, nodes))
        found = self.failed(jobs, pods, nodes, spaces, now)
        if not found:
            return
        entries = journal.read(self.client, **self.ledger).entries
        decided = decide.decide(self.policy, found, self.fleet(nodes, used), {"decisions": entries}, now)
        by_key = {one["key"]: one for one in found}
        decided = [one for one in decided if _matters(one, by_key[one["spec"]["attempt"]])]
        self.attempts.update((one["spec"]["attempt"], by_key[one["spec"]["attempt"]]) for one in decided)
        self.decisions.update((one["spec"]["attempt"], one) for one in decided)
        self.act(decided, by_key, entries, now)
        self.write()

    def tidy(self) -> None:
        """What was done long ago need not be told for ever, in the namespaces that something was done in now."""
        spaces = {one["intent"]["namespace"] for one in self.actions.values() if one.get("intent")}
        if self.acts and spaces:
            with contextlib.suppress(Denied):
                intents.prune(self.client, sorted(spaces))

    def default_mode(self) -> str:
        return "off" if self.policy.undeclared == "off" and not self.policy.namespaces else "advise"

    def failed(self, jobs: list, pods: list, nodes: dict, spaces: list, now: datetime) -> list[dict]:
        """The attempts of all jobs that ask for recovery, with the evidence of those that failed; none if none did."""
        gates = {name: gate.read(node["metadata"].get("annotations")) for name, node in nodes.items()}
        snapshot = attempt.Snapshot(
            jobs=jobs,
            pods=pods,
            nodes=nodes.values(),
            namespaces=spaces,
            gates={name: each for name, each in gates.items() if each},
            events=self.events(now),
            known=self.seen["nodes"],
            earlier=self.seen["attempts"],
        )
        built = attempt.build(snapshot, now.timestamp(), self.default_mode())
        if self.params["hangs"]:
            running = [one for one in built if one["state"] == "running" and self.mine(one)]
            with ThreadPoolExecutor(self.params["concurrency"]) as pool:
                list(pool.map(lambda one: self.pulse(one, now), running))
        self.seen = history.remember(self.seen, built, nodes.values(), now.timestamp())
        if self.keeps and self.params["evidence_dir"]:
            history.save(self.kept, self.seen)
        found = [one for one in built if self.mine(one)]
        oldest = now.timestamp() - self.params["since"]
        failed = [one for one in collect.wanted(found) if (moments.of(one["endedAt"]) or now.timestamp()) >= oldest]
        broken = [one for one in found if _on_broken_nodes(one)]
        if not failed and not broken:
            return []
        for one in [*failed, *broken]:
            self.evidence(one, pods)
        # of the others their state is enough
        keys = {one["key"] for one in failed}
        return [one for one in found if one["key"] in keys or one["state"] not in decide.FAILED]

    def pulse(self, one: dict, now: datetime) -> None:
        """Whether it still gets on. A log that cannot be read says nothing of that."""
        rank = pulse.listened_to(one)
        if rank is None:
            return
        path = api_path("v1", "pods", rank["namespace"], rank["pod"], "log")
        query = {"container": rank["container"], "tailLines": pulse.LINES, "timestamps": "true"}
        try:
            tail = b"".join(self.client.stream(path, **query))
        except FleetError as error:
            self.partial[one["key"]] = [f"{rank['namespace']}/{rank['pod']}: whether it gets on is not known: {error}"]
            return

        def steps(lines: list[str]) -> dict:
            return classify.classify([(rank["index"], rank["pod"], lines)], self.table)["progress"] or {}

        kept = (self.seen["attempts"].get(one["key"]) or {}).get("samples") or ()
        progress.apply(one, pulse.feel(one, tail, steps, kept, now.timestamp(), self.policy.hang))

    def mine(self, one: dict) -> bool:
        """Where neither the job nor its namespace says anything, the policy does."""
        if one["job"]["modeFrom"].startswith("nothing declared"):
            one["job"]["mode"], one["job"]["modeFrom"] = self.policy.mode_of(one["job"]["namespace"], None)
        return one["job"]["mode"] != "off"

    def events(self, now: datetime) -> list[dict]:
        context = {"tables": self.signals, "received": intents.moment(now)}
        paths = list(self.params["event_files"])
        if self.params["record_dir"]:
            days = (eventlog.path_of(self.params["record_dir"], now - timedelta(days=each)) for each in (1, 0))
            paths += [path for path in days if os.path.exists(path)]
        found = given.parse(self.params["events"], source_name="events", **context)["events"]
        for path in paths:
            found += given.parse(eventlog.read(path), source_name=path, **context)["events"]
        return found

    def evidence(self, one: dict, pods: list) -> None:
        job = self.raw[one["job"]["uid"]]
        one["job"]["generation"] = job["metadata"].get("generation")
        mine = {rank["uid"] for rank in one["ranks"]}
        raw = {"job": job, "pods": [pod for pod in pods if pod["metadata"]["uid"] in mine]}
        shape = one["job"]["shape"]
        more = {"world": shape["ranks"] * max(1, shape["gpusPerPod"]) or None, "year": datetime.now(UTC).year}
        kept = collect.collect(
            one,
            lambda request: self.log(request, one["job"]["name"]),
            lambda sources, options: classify.classify(sources, self.table, {**options, **more}),
            self.kept,
            raw,
            workers=self.params["concurrency"],
        )
        self.partial[one["key"]] = kept["partial"]
        if one["job"]["checkpoint"]:
            path, roots = one["job"]["checkpoint"]["path"], self.params["checkpoint_roots"]
            one["checkpoint"], unknown = resume_point.look(path, roots, self.params["checkpoint_settle"])
            if unknown:
                self.partial[one["key"]] = [*self.partial[one["key"]], unknown]

    def log(self, request: dict, job: str):
        """The log of a container, in pieces."""
        if self.params["log_dir"] and not request["previous"]:
            told = {key: request[key] for key in ("namespace", "container", "uid")}
            path = self.params["log_dir"].format(pod=request["name"], job=job, **told)
            if os.path.isfile(path):
                return _pieces(path)
        path = api_path("v1", "pods", request["namespace"], request["name"], "log")
        return self.client.stream(
            path, container=request["container"], previous="true" if request["previous"] else None
        )

    def fleet(self, nodes: dict[str, dict], used: dict[str, int]) -> dict:
        """What decide() takes: the nodes that have GPUs, and those that jobs ran on are among them or unknown."""
        facts = {}
        for name, node in nodes.items():
            if not is_gpu_node(node):
                continue
            gates, gpus = gate.read(node["metadata"].get("annotations")), listing.allocatable(node)
            closed = gates or (node.get("spec") or {}).get("unschedulable")
            closed = closed or any(each["holds"] for each in external(node, gates, ()))
            certified = nodefacts.record((node["metadata"].get("annotations") or {}).get(nodefacts.CERTIFIED))
            facts[name] = {
                "certifiedAt": certified.get("at") if certified.get("uid") == node["metadata"]["uid"] else None,
                "uid": node["metadata"]["uid"],
                "domain": topology.domain(node["metadata"].get("labels")),
                "gpus": gpus,
                "freeGpus": max(0, gpus - used.get(name, 0)),
                "open": not closed,
                "ready": ready(node),
                "readySince": _since_ready(node),
            }
        return {"nodes": facts, "controlPlane": {"ok": True, "why": "", "age": 0}, "storage": self.storage()}

    def storage(self) -> dict:
        for path in self.params["checkpoint_roots"].values():
            try:
                with os.scandir(path):
                    pass
            except OSError as error:
                return {"ok": False, "why": f"{path} cannot be read: {error.strerror}"}
        return {"ok": True if self.params["checkpoint_roots"] else None, "why": ""}

    def act(self, decided: list[dict], attempts: dict[str, dict], entries: list[dict], now: datetime) -> None:
        """Written down first, so that a run that is killed in between has been counted."""
        before = {entry["key"]: entry for entry in entries}
        # of jobs that only want advice nothing is planned
        wanting = {key for key, one in attempts.items() if one["job"]["mode"] == "act"}
        due = [
            one for one in decided if one["spec"]["action"] in kubernetes.ACTIONS and one["spec"]["attempt"] in wanting
        ]
        if self.acts:
            noted = [one for one in decided if _news(one, before.get(one["spec"]["attempt"]), now)]
            wanted = [memory.entry(one, attempts[one["spec"]["attempt"]]) for one in noted]
            if wanted:
                recorded = journal.record(self.client, wanted, now, admit=self.admit(now), **self.ledger)
                late = {entry["key"] for entry in recorded.blocked}
                for one in due:
                    if one["spec"]["attempt"] in late:
                        told = {"status": "waiting", "detail": "another run has used up the budget of all jobs"}
                        self.note(one["spec"]["attempt"], {**told, "changed": False}, now)
                due = [one for one in due if one["spec"]["attempt"] not in late]
            self.free(due, attempts, now)
        with ThreadPoolExecutor(self.params["concurrency"]) as pool:
            list(pool.map(lambda one: self.apply(one, attempts[one["spec"]["attempt"]], now), due))
        self.outcomes({one["spec"]["attempt"] for one in due}, now)

    def apply(self, decision: dict, one: dict, now: datetime) -> None:
        spec = decision["spec"]
        label, prefer = _domains(spec["prefer"])
        result = kubernetes.apply(
            self.client,
            {"spec": {**spec, "prefer": prefer}},
            one,
            check_mode=not self.acts,
            wait=self.patience(),
            resume_env=self.params["resume_env"],
            domain_label=label,
        )
        self.note(one["key"], result, now)

    def patience(self) -> float:
        return min(AT_ONCE, self.params["wait"]) if self.params["watch"] else self.params["wait"]

    def admit(self, now: datetime):
        """The budget of all jobs, asked again where another run wrote meanwhile."""

        def admit(entries: list[dict], wanted: list[dict]) -> tuple[list[dict], list[dict]]:
            known = memory.History({"decisions": entries}, now.timestamp()).entries
            everybody = budgets.Everybody(self.policy.budgets.everybody, known, now.timestamp())
            admitted, blocked = [], []
            for entry in wanted:
                counts = entry["mode"] == "act" and entry["action"] in memory.RESTARTS
                (admitted if not counts or everybody.take(entry["key"]) else blocked).append(entry)
            return admitted, blocked

        return admit

    def free(self, due: list[dict], attempts: dict[str, dict], now: datetime) -> None:
        """Tell Kubernetes of nodes that are proven to be off, where a job that is to start again waits for them."""
        for one in due:
            if one["spec"]["mode"] == "act":
                self.mark(attempts[one["spec"]["attempt"]]["lostNodes"], now)

    def mark(self, nodes, now: datetime) -> bool:
        proofs = {each["node"]: each for each in self.params["off_nodes"] if each["node"] in nodes}
        marked = []
        for node, proof in proofs.items():
            if self.told_off.get(node, {}).get("status") not in ("held", "unchanged"):
                marked.append(outofservice.mark(self.client, node, {**proof, "off": True}, now=now))
        self.note_off(marked)
        return bool(marked)

    def note_off(self, results: list[dict]) -> None:
        self.told_off.update((one["node"], one) for one in results)

    def go_on(self, spaces: list[dict], jobs: list[dict]) -> None:
        """With what a killed run, or a run that had no time left, has begun."""
        for intent in self.unfinished(spaces, jobs):
            now = datetime.now(UTC)
            if (
                not listing.wanted(intent["namespace"], tuple(self.params["namespaces"]))
                or intent["key"] in self.pending
            ):
                continue
            if not self.acts:
                detail = f"a run that began at {intent['at']} is not through; it would be gone on with"
                self.note(intent["key"], {"status": "planned", "changed": False, "detail": detail}, now)
                continue
            result = kubernetes.proceed(self.client, intent, wait=self.patience())
            if self.mark({each["node"] for each in result["waitingFor"]}, now):
                result = kubernetes.proceed(self.client, intent, wait=self.patience())
            self.note(intent["key"], result, now)
            self.outcomes({intent["key"]}, now)

    def unfinished(self, spaces: list[dict], jobs: list[dict]) -> list[dict]:
        """By one list, or by one of each namespace that is opted in where that is all that this account may read."""
        try:
            return list(intents.unfinished(self.client))
        except Denied:
            pass
        acting = {job["metadata"]["namespace"] for job in jobs if declared.mode(job, None)[0] == "act"}
        for space in spaces:
            name = space["metadata"]["name"]
            said = declared.mode({}, space, self.policy.mode_of(name, None)[0])[0]
            if said == "act" and listing.wanted(name, tuple(self.params["namespaces"])):
                acting.add(name)
        found = []
        for name in sorted(acting):
            try:
                found += intents.unfinished(self.client, [name])
            except Denied as error:
                self.partial[f"namespace {name}"] = [f"namespace {name}: it may hold jobs half done, but {error}"]
        return found

    def note(self, key: str, result: dict, now: datetime) -> None:
        before = self.actions.get(key)
        if before and before["status"] == "done" and result["status"] == "already":
            return
        self.actions[key] = {"attempt": key, "at": intents.moment(now), **(before or {}), **result}
        if result["status"] == "done" and result.get("intent"):
            self.pending[key] = (result["intent"], time.monotonic() + self.params["wait"])

    def settle(self, block: bool) -> None:
        """See whether the new attempts run. `block`: until they do, or the time for that is over."""
        while self.pending:
            over = set()
            for key, (intent, ends) in list(self.pending.items()):
                seen = kubernetes.verify(self.client, intent)
                told = seen["ended"]["state"] if seen["ended"] else "running" if seen["running"] else ""
                if told or seen["onExcluded"] or time.monotonic() >= ends or self.module.check_mode:
                    self.actions[key]["outcome"] = told or f"not running yet: {seen['waiting']}"
                    self.actions[key]["onExcluded"] = seen["onExcluded"]
                    self.follow(key, intent)
                    over.add(key)
            for key in over:
                del self.pending[key]
            if over:
                self.outcomes(over, datetime.now(UTC))
                self.write()
            if not block or not self.pending:
                return
            time.sleep(BETWEEN)

    def follow(self, key: str, intent: dict) -> None:
        """The new attempt, for the report."""
        stored = intents.find(self.client, intent["namespace"], intent["name"])
        job = kubernetes.live(self.client, stored["job"]) if stored else None
        if job is None:
            return
        pods = list(listing.pods_of(self.client, job))
        for one in attempt.build(attempt.Snapshot(jobs=[job], pods=pods), time.time(), "advise"):
            if one["key"] != key:
                self.attempts.setdefault(one["key"], one)

    def outcomes(self, keys: set[str], now: datetime) -> None:
        """What came of it, in the journal. That another run does it says nothing of that run's outcome."""
        told = []
        for key in sorted(keys):
            action = self.actions.get(key)
            if action and action["status"] != "already" and action.get("mode") != "advise":
                told.append({"key": key, "outcome": action.get("outcome") or action["status"]})
        known = (
            {entry["key"] for entry in journal.read(self.client, **self.ledger).entries} if told and self.acts else ()
        )
        told = [one for one in told if one["key"] in known]
        if told:
            journal.record(self.client, told, now, **self.ledger)

    def write(self) -> None:
        if self.keeps and self.params["evidence_dir"]:
            with durable.disk(self.kept):
                os.makedirs(self.kept, exist_ok=True)
                text = json.dumps(self.answer(), indent=1, sort_keys=True, default=str) + "\n"
                durable.replace(self.kept, "recovery.json", text.encode())

    def answer(self) -> dict:
        decisions = [self.decisions[key] for key in sorted(self.decisions)]
        return {
            "decisions": decisions,
            "actions": [self.actions[key] for key in sorted(self.actions)],
            # not `attempts`: a task with `until` has its own there
            "job_attempts": [self.attempts[key] for key in sorted(self.attempts)],
            "advice": outcome.advice(decisions),
            "lines": outcome.lines(decisions, self.actions),
            "counts": outcome.counts(decisions, self.actions.values()),
            "out_of_service": [self.told_off[node] for node in sorted(self.told_off)],
            "partial": [text for key in sorted(self.partial) for text in self.partial[key]],
            "failures": outcome.failures(decisions, self.actions.values()),
        }


def _pieces(path: str):
    with open(path, "rb") as log:
        while piece := log.read(1 << 16):
            yield piece


def _since_ready(node: dict) -> str | None:
    for each in (node.get("status") or {}).get("conditions") or ():
        if each.get("type") == "Ready":
            return each.get("lastTransitionTime")
    return None


def _domains(prefer: list[str]) -> tuple[str, list[str]]:
    """The label of the best domain, and the values of those that have the same; domains are LABEL=VALUE."""
    label = prefer[0].partition("=")[0] if prefer else ""
    return label, [each.partition("=")[2] for each in prefer if each.partition("=")[0] == label]


def _matters(decision: dict, one: dict) -> bool:
    """Of jobs that run, only what is to be done about them."""
    return one["state"] in decide.FAILED or decision["spec"]["action"] != "none"


def _on_broken_nodes(one: dict) -> bool:
    """Whether it still runs although one of its nodes broke under it, so that it may be waiting for ever."""
    if one["state"] != "running" or one["job"]["mode"] not in ("act", "advise"):
        return False
    return any(each["fatal"] and not each.get("before") for told in one["hardware"].values() for each in told)


def _news(decision: dict, before: dict | None, now: datetime) -> bool:
    """Whether it is to be written down: what was decided anew, but no restart whose time has not come."""
    spec = decision["spec"]
    if spec["action"] == "none":
        return False
    if spec["action"] in memory.RESTARTS and (moments.of(spec["notBefore"]) or 0) > now.timestamp():
        return False
    return before is None or any(before.get(key) != spec[key] for key in ("action", "rule", "mode"))


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **KUBERNETES_ARGS,
            "policy": {"type": "raw", "default": "default"},
            "mode": {"type": "str", "choices": ["observe", "dry_run", "enforce"], "default": "observe"},
            "namespaces": {"type": "list", "elements": "str", "default": []},
            "selector": {"type": "str", "default": ""},
            "since": {"type": "int", "default": 86400},
            "hangs": {"type": "bool", "default": False},
            "events": {"type": "list", "elements": "dict", "default": []},
            "event_files": {"type": "list", "elements": "path", "default": []},
            "record_dir": {"type": "path"},
            "evidence_dir": {"type": "path"},
            "log_dir": {"type": "str", "default": ""},
            "checkpoint_roots": {"type": "dict", "default": {}},
            "checkpoint_settle": {"type": "float", "default": 60},
            "resume_env": {"type": "str", "default": ""},
            "off_nodes": {"type": "list", "elements": "dict", "default": []},
            "watch": {"type": "int", "default": 0},
            "interval": {"type": "int", "default": 15},
            "wait": {"type": "int", "default": 120},
            "ledger_namespace": {"type": "str", "default": "goodput-fleet"},
            "ledger_name": {"type": "str", "default": "goodput-recovery"},
            "fail_on": {"type": "list", "elements": "str", "choices": FAILURES, "default": ["failed", "excluded"]},
            "concurrency": {"type": "int", "default": 8},
            "catalog": {"type": "list", "elements": "str", "default": ["shipped"]},
        },
        supports_check_mode=True,
    )
    params = module.params
    try:
        _check(params)
        recovery = Recovery(module)
        recovery.run()
        recovery.tidy()
    except FleetError as error:
        module.fail_json(**error.as_result())
    answer = recovery.answer()
    answer.update(
        msg=outcome.message(answer["decisions"], answer["actions"], params["mode"], not recovery.acts),
        changed=any(one.get("changed") for one in (*answer["actions"], *answer["out_of_service"])),
        passes=recovery.passes,
        policy=policy.describe(recovery.policy),
    )
    if set(answer["failures"]) & set(params["fail_on"]):
        module.fail_json(**answer)
    module.exit_json(**answer)


def _check(params: dict) -> None:
    """Raises InvalidDocument for options that cannot be."""
    for name, least, most in (
        ("concurrency", 1, 64),
        ("interval", 1, 3600),
        ("wait", 0, 86400),
        ("watch", 0, 86400 * 7),
    ):
        if not least <= params[name] <= most:
            raise InvalidDocument(f"is {params[name]}", path=name, hint=f"from {least} to {most}")
    for number, each in enumerate(params["off_nodes"]):
        gone = [key for key in ("node", "source", "at") if not isinstance(each.get(key), str) or not each[key]]
        if gone:
            hint = "{node: gpu-0003, source: bmc, at: 2026-03-06T09:41:00Z}"
            raise InvalidDocument(f"does not tell {', '.join(gone)}", path=f"off_nodes[{number}]", hint=hint)
    for inside, here in params["checkpoint_roots"].items():
        if not (isinstance(here, str) and here.startswith("/") and str(inside).startswith("/")):
            hint = "two absolute paths, such as {/checkpoints: /mnt/lustre/checkpoints}"
            raise InvalidDocument(f"is {here!r}", path=f"checkpoint_roots.{inside}", hint=hint)
    try:
        params["log_dir"].format(namespace="", pod="", container="", uid="", job="")
    except (KeyError, IndexError, ValueError, AttributeError) as error:
        hint = "namespace, pod, container, uid and job can be named in braces"
        raise InvalidDocument(f"is {params['log_dir']!r}: {error}", path="log_dir", hint=hint) from error


if __name__ == "__main__":
    main()
