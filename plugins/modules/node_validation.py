#!/usr/bin/python
# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: node_validation
short_description: Let GPU nodes take work only when they are proven
version_added: 1.1.0
author:
  - goodput.fleet contributors (@goodput)
description:
  - "One pass over all open C(ValidationRequest) documents and all nodes. Nodes that a request names, and nodes that are
    new, are held by the gate C(validation); those that are ready are put together for a certification; those that have
    passed it are let in; those that failed for good stay out."
  - "It runs no test. RV(certifications) are to be run, with M(goodput.fleet.certification) and the same evidence
    directory, and then another pass is to be made. The role P(goodput.fleet.revalidate#role) does both."
  - The pass looks at what is true now, not at what an earlier one did. Run again, it changes nothing; killed at any
    point and run again, it ends in the same state. Only one should be made at a time, since two could together take
    more nodes out than O(max_out).
  - "A gate is opened when the evidence is sealed and unchanged, is of the tests that were asked for, and is of what the
    node is now: the same node object, boot, driver, kernel and number of GPUs. Only the gate C(validation) is opened.
    Other gates and other people's holds stay, and are named."
  - A deleted or edited request opens nothing, and neither does an edited status.
options:
  mode:
    description:
      - V(observe) and V(dry_run) decide and report, V(enforce) writes gates, requests and their statuses.
    type: str
    choices: [observe, dry_run, enforce]
    default: observe
  evidence_dir:
    description:
      - Directory that the certifications leave their evidence in, as
        O(goodput.fleet.certification#module:evidence_dir).
      - Required with O(mode=enforce).
    type: path
  public_key_path:
    description: File with the Ed25519 public key (PEM). With it, only evidence that is signed with its key counts.
    type: path
  records_dir:
    description:
      - Where the requests are files below a directory, that directory. It is of this cluster alone; nodes of another
        are taken for nodes that are gone.
    type: path
  namespace:
    description:
      - Namespace of the requests where they are objects of the cluster, and of the ConfigMap C(goodput-lifecycle),
        which holds since when nodes are new. It must exist.
    type: str
    default: goodput-fleet
  only:
    description: Names of the requests to work on. Without it, all, and nodes that are new as well.
    type: list
    elements: str
    default: []
  new_nodes:
    description:
      - Whether GPU nodes that were never certified get a request. Nodes that were there when the first pass was made
        are taken as they are.
      - A node that has the taint C(gate.goodput.fleet/validation) and no such gate is new in any case.
    type: bool
    default: true
  tests:
    description: What new nodes have to pass, as the categories of a C(Certification).
    type: list
    elements: dict
    default: [{domain: diagnostics, variant: dcgm-level2}]
  options:
    description: Options of all of O(tests), as those of a C(Certification).
    type: dict
  retries:
    description: How many further certifications of a new node follow a failed one, from 0 to 5.
    type: int
    default: 1
  max_out:
    description:
      - How many nodes that have been in service may be out at a time, as a number or a share such as V(10%). Nodes that
        others hold count. Requests that name more nodes in service wait.
      - New nodes and nodes that are out already are gated in any case.
    type: str
    default: 10%
  max_out_domain:
    description: The same for each topology domain, which the first of O(domain_labels) that a node has names.
    type: str
    default: 50%
  domain_labels:
    description: Labels that name a node's NVLink domain or rack. The default knows the usual ones.
    type: list
    elements: str
  settle:
    description: Seconds that nodes wait for further nodes to be certified with, from the last that came.
    type: int
    default: 120
  batch_seconds:
    description: Seconds that they wait at most.
    type: int
    default: 600
  wait:
    description: Seconds that the module may wait for that, rather than return with nothing to be certified yet.
    type: int
    default: 0
  accept_changed:
    description:
      - Take requests as they are now, where one was edited or deleted after nodes had been gated for it. Without it,
        such nodes stay closed.
    type: bool
    default: false
  adopt_orphans:
    description: Make a request, with O(tests), for nodes whose gate C(validation) stands for no request.
    type: bool
    default: false
  require_driver:
    description: Whether a node is certified only when its labels tell a driver version.
    type: bool
    default: true
  not_run:
    description:
      - Certifications that could not be run, each with C(certification), its name, and C(msg), why. It is noted in the
        requests, and they are not returned again.
    type: list
    elements: dict
    default: []
  pool_taints:
    description: Keys of taints, as globs, that reserve a pool and hold nobody out, beside those usual for GPU nodes.
    type: list
    elements: str
    default: []
  fail_on:
    description:
      - What the module fails for, after everything was done. V(failing) is a node that stays gated since it failed,
        V(orphans) a gate that stands for no request, V(unwritten) something that could not be written, V(unreadable)
        a request that is no good.
    type: list
    elements: str
    choices: [failing, orphans, unwritten, unreadable]
    default: [unwritten, unreadable]
  concurrency:
    description: How many nodes are written at a time.
    type: int
    default: 8
  catalog:
    description:
      - Layers of the catalogue that hold the tests, as of M(goodput.fleet.certification). No node is closed for a
        request with a test that none of them has.
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
  - cryptography (Python package), for O(public_key_path)
seealso:
  - module: goodput.fleet.validation_request
  - module: goodput.fleet.certification
  - module: goodput.fleet.node_gate
"""

EXAMPLES = r"""
- name: What is open, and what would be done?
  goodput.fleet.node_validation:
  register: looked

- name: Show it
  ansible.builtin.debug:
    var: looked.lines

- name: Gate what has to be proven, and let in what is
  goodput.fleet.node_validation:
    mode: enforce
    evidence_dir: /var/lib/goodput/evidence
  register: pass

- name: Certify
  goodput.fleet.certification:
    certification: "{{ item }}"
    mode: enforce
    evidence_dir: /var/lib/goodput/evidence
    fail_on: []
  loop: "{{ pass.certifications }}"

- name: Let in what has passed
  goodput.fleet.node_validation:
    mode: enforce
    evidence_dir: /var/lib/goodput/evidence
"""

RETURN = r"""
msg:
  description: The pass in one line.
  returned: always
  type: str
  sample: "enforce: 2 gated, 4 opened, 1 failing, 3 waiting; 1 certification to be run"
certifications:
  description: What is to be run now. Run again, it goes on where it was.
  returned: success
  type: list
  elements: dict
  sample: [{kind: Certification, metadata: {name: vr-0d1e2f3a4b5c6d7e}}]
goes_on:
  description: Whether another pass would find more to do, now or after the certifications.
  returned: success
  type: bool
  sample: true
made:
  description: Names of the requests that were made for new nodes, or would be.
  returned: success
  type: list
  elements: str
  sample: [new-node-1a2b3c4d]
gated:
  description: Nodes that were gated, or would be.
  returned: success
  type: list
  elements: str
  sample: [gpu-0007]
opened:
  description: Nodes that take work again, or would.
  returned: success
  type: list
  elements: str
  sample: [gpu-0003]
passed:
  description: Nodes that are proven and stay closed for others.
  returned: success
  type: list
  elements: str
  sample: []
failing:
  description: Nodes that failed and stay gated, with the request and why.
  returned: success
  type: list
  elements: dict
  sample: [{node: gpu-0009, request: repaired-5e6f7a8b, why: "attempt 2: fail: …"}]
waiting:
  description: Nodes that wait, with the request and what for.
  returned: success
  type: list
  elements: dict
  sample: [{node: gpu-0011, request: new-node-1a2b3c4d, why: waits for company}]
gone:
  description: Nodes of open requests that are not there any more, with the request.
  returned: success
  type: list
  elements: dict
  sample: []
orphans:
  description: Nodes whose gate stands for no request, with its evidence and why.
  returned: success
  type: list
  elements: dict
  sample: []
requests:
  description: The requests that were worked on, with their phase and the number of nodes in each phase.
  returned: success
  type: list
  elements: dict
  sample: [{name: new-node-1a2b3c4d, phase: Running, counts: {running: 2}}]
lines:
  description: All of it in lines for people.
  returned: success
  type: list
  elements: str
  sample: ["gpu-0011: waiting (new-node-1a2b3c4d): the node is not ready"]
unwritten:
  description: What could not be written, and why. The next pass tries again.
  returned: success
  type: list
  elements: str
  sample: []
unreadable:
  description: Requests that are no good and were left out, with every fault.
  returned: success
  type: list
  elements: str
  sample: []
counts:
  description: Numbers of all of these.
  returned: success
  type: dict
  sample: {gated: 2, opened: 4, passed: 0, failing: 1, waiting: 3, gone: 0, orphans: 0, certifications: 1}
"""

import json
import os
import re
import time
from dataclasses import replace
from datetime import UTC, datetime

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.goodput.fleet.plugins.module_utils.certification import (
    catalogue,
    documents,
    evidence,
    feasible,
)
from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.client import api_path
from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.connection import (
    KUBERNETES_ARGS,
    connect,
)
from ansible_collections.goodput.fleet.plugins.module_utils.gates import kubernetes as gates
from ansible_collections.goodput.fleet.plugins.module_utils.gates.fleet import is_gpu_node
from ansible_collections.goodput.fleet.plugins.module_utils.gates.hosts import host
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle import (
    batches,
    newcomers,
    nodefacts,
    requests,
    validation,
    validation_report,
)
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle.rollout_bounds import bound
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle.store import ClusterStore, DirectoryStore
from ansible_collections.goodput.fleet.plugins.module_utils.records import digest, durable
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import (
    Conflict,
    FleetError,
    InvalidDocument,
    NotFound,
    Unavailable,
    nearest,
)

MANAGER = "goodput-fleet"
LOOKS = 3  # at what was just created and gated
RELEASES = 3  # attempts to open a node that others write to meanwhile
CHANGED = "somebody else wrote the node meanwhile"
FAILURES = ["failing", "orphans", "unwritten", "unreadable"]


class Once:
    """A client whose patches are not repeated after a conflict: what the node is then has to be looked at first."""

    def __init__(self, client):
        self._client = client

    def __getattr__(self, name):
        return getattr(self._client, name)

    def patch(self, *args, **options):
        try:
            return self._client.patch(*args, **options)
        except Conflict as error:
            raise FleetError(CHANGED, code="changed") from error


class Pass:
    """One pass: observe, gate, write down, let in."""

    def __init__(self, module: AnsibleModule):
        self.module, self.params = module, module.params
        params = self.params
        self.tests = catalogue.load_tests(params["catalog"])
        self.policy = policy(params, self.tests)
        self.wrong: dict[str, str] = {}  # tests -> what is wrong with them, if anything
        self.together: dict[str, int] = {}  # tests -> how many nodes they need at a time
        self.writes = params["mode"] == "enforce" and not module.check_mode
        self.key = public_key(params["public_key_path"])
        self.client = connect(params, module.no_log_values, threads=params["concurrency"])
        where = params["records_dir"]
        self.store = DirectoryStore(where) if where else ClusterStore(self.client, params["namespace"])
        self.report = validation_report.Report()

    def run(self) -> validation_report.Report:
        end = time.monotonic() + self.params["wait"]
        while True:
            plan = self.once()
            due = plan.due
            if not self.writes or plan.goes_on or due is None or time.monotonic() + due > end:
                return self.report
            time.sleep(due + 0.1)

    def once(self) -> validation.Plan:
        report, plan = self.report, self.look()
        for _look in range(LOOKS - 1):
            if not self.writes or not (plan.create or plan.holds):
                break
            self.prepare(plan)
            plan = self.look()
        report.take(plan, self.docs, planned=not self.writes)
        if not self.writes:
            return plan
        lost = self.write(plan.statuses)
        plan.certifications = [each for each in plan.certifications if each["metadata"]["name"] not in lost]
        report.certifications = plan.certifications
        results = self.release(plan.releases)
        report.released(plan.releases, results)
        self.write(plan.conclude(results))
        report.requests_of(self.docs.values(), self.policy.only)
        return plan

    # ---- observe ----

    def look(self) -> validation.Plan:
        params, now = self.params, datetime.now(UTC)
        self.raw = gates.read_nodes(self.client)
        fleet = nodefacts.Fleet(self.raw, self.facts_of)
        docs, problems = self.store.list(requests.KIND)
        self.report.unreadable = [str(problem) for problem in problems]
        names = {doc["metadata"]["name"] for doc in docs}
        for name in self.policy.only - names:
            raise NotFound(f"there is no request {name}", path="only", hint=nearest(name, names))
        docs = [doc for doc in docs if self.can_be_run(doc)]
        self.policy = replace(self.policy, together=self.together)
        self.docs = {doc["metadata"]["name"]: doc for doc in docs}
        adopted = self.adopted() if self.policy.new_nodes else ""
        proofs = self.proofs(docs) if params["evidence_dir"] else {}
        return validation.decide(fleet, docs, proofs, self.policy, adopted, now)

    def can_be_run(self, doc: dict) -> bool:
        """No node is closed for tests that cannot be run. One that has been taken up goes on, and is told of as it
        fails."""
        if not requests.is_open(doc):
            return True
        key = requests.tests_key(doc["spec"])
        if key not in self.wrong:
            try:
                self.together[key] = feasible.check(doc["spec"], self.tests)
                self.wrong[key] = ""
            except (InvalidDocument, NotFound) as error:
                self.wrong[key] = str(error)
        if not self.wrong[key] or (doc.get("status") or {}).get("nodes"):
            return True
        self.report.unreadable.append(f"request {doc['metadata']['name']}: {self.wrong[key]}")
        return False

    def facts_of(self, node: dict) -> dict:
        seen = host(node, pool_taints=self.params["pool_taints"])["facts"]
        labels = self.params["domain_labels"] or nodefacts.DOMAIN_LABELS
        return nodefacts.facts(node, seen, is_gpu_node(node), labels)

    def adopted(self) -> str:
        """Since when nodes are new; kept by the first pass."""
        path = api_path("v1", "configmaps", self.params["namespace"])
        found = self.client.find(f"{path}/{newcomers.NAME}")
        since = ((found or {}).get("data") or {}).get(newcomers.KEY)
        if found and not newcomers.is_time(since):
            where = f"ConfigMap {self.params['namespace']}/{newcomers.NAME}"
            hint = "a time as in 2026-03-06T09:34:56Z; without the ConfigMap, all nodes of now are taken as they are"
            raise InvalidDocument(f"is {since!r}", file=where, path=f"data.{newcomers.KEY}", hint=hint)
        if found:
            return since
        since = newcomers.adoption(self.raw.values())
        if self.writes:
            metadata = {"name": newcomers.NAME, "labels": {"app.kubernetes.io/managed-by": MANAGER}}
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {newcomers.KEY: since}}
            try:
                self.client.post(path, body, fieldManager=MANAGER)
            except NotFound as error:
                hint = "gitops/rbac/revalidate.yaml makes goodput-fleet"
                raise NotFound(
                    f"there is no namespace {self.params['namespace']}", path="namespace", hint=hint
                ) from error
            except Conflict:  # another pass was first
                return self.adopted()
        return since

    def proofs(self, docs: list[dict]) -> dict[str, dict]:
        """What there is of evidence for the certifications that nodes wait for."""
        wanted: dict[str, dict[str, dict]] = {}  # batch -> tests -> spec
        for doc in filter(requests.is_open, docs):
            for entry in (doc.get("status") or {}).get("nodes") or ():
                if entry["phase"] == validation.RUNNING and entry.get("batch"):
                    wanted.setdefault(entry["batch"], {})[requests.tests_key(doc["spec"])] = doc["spec"]
        base = self.params["evidence_dir"]
        with durable.disk(base):
            names = sorted(os.listdir(base)) if wanted and os.path.isdir(base) else []
        found: dict[str, dict] = {}
        for name in names:
            batch = name.rpartition("-")[0]
            one = self.proof(os.path.join(base, name), batch, wanted[batch]) if batch in wanted else None
            if one and (batch not in found or one.get("finished", "") >= found[batch].get("finished", "")):
                found[batch] = one
        return found

    def proof(self, path: str, batch: str, specs: dict[str, dict]) -> dict | None:
        """None while the certification is not over. specs: of the requests that wait for it, by their tests."""
        if not os.path.lexists(os.path.join(path, evidence.MANIFEST)):
            return None
        try:
            with durable.disk(path):
                problems = evidence.verify(path, self.key)
                with open(os.path.join(path, evidence.MANIFEST), "rb") as file:
                    seal = digest.sha256_bytes(file.read())
        except Unavailable as error:
            return {"problem": str(error)}
        if problems:
            return {"problem": str(problems[0])}
        try:
            about = stored(path, evidence.CERTIFICATION)
            found = batches.proof(about, stored(path, "results.json"), seal)
            spec = specs.get(found["tests"])
            asked = documents.load(batches.certification(spec, found["members"]))["certification"] if spec else {}
        except InvalidDocument as error:
            return {"problem": str(error)}
        is_it = found["batch"] == batch and asked.get("spec") == about["certification"]["spec"]
        return found if is_it else {"problem": f"{path} is not of the tests that were asked for"}

    # ---- act ----

    def prepare(self, plan: validation.Plan) -> None:
        """Requests first: a gate stands for one, and without it nobody would open the node any more."""
        missing: set[str] = set()
        for document in plan.create:
            name = document["metadata"]["name"]
            try:
                self.store.create(document)
            except Unavailable:
                raise
            except FleetError as error:
                self.report.not_written(f"request {name}: {error}")
                missing |= {node["name"] for node in document["spec"]["nodes"]}
            else:
                self.report.made.append(name)
        holds = [want for want in plan.holds if want["node"] not in missing]
        workers = self.params["concurrency"]
        self.report.held(gates.hold_many(self.client, holds, workers=workers, nodes=self.raw))

    def write(self, statuses: dict[str, dict]) -> set[str]:
        """The batches that could not be written down, and so must not be run."""
        lost: set[str] = set()
        for name, status in statuses.items():
            try:
                self.docs[name] = self.store.write_status(self.docs[name], status)
                self.report.changed = True
            except Unavailable:
                raise
            except FleetError as error:  # of this one; the others' nodes shall not wait for it
                self.report.not_written(f"request {name}: {error}")
                lost |= {entry["batch"] for entry in status["nodes"]}
        return lost

    def release(self, wants: list[dict]) -> list[dict]:
        """Results in the order of the wants. Each node is read again, and has to be what was proven, and so are the
        requests, which have to ask for the same."""
        left, results, workers = list(wants), {}, self.params["concurrency"]
        asked = requests.asking(self.docs.values(), (want["node"] for want in wants))
        for _attempt in range(RELEASES):
            if not left:
                break
            names = [want["node"] for want in left]
            there = gates.find_nodes(self.client, names)
            now = requests.asking(self.store.list(requests.KIND)[0], names)
            same = []
            for want in left:
                name = want["node"]
                if now[name] != asked[name]:
                    results[name] = refused(want, "what is asked of the node changed meanwhile")
                elif not self.is_as_proven(there.get(name), want):
                    results[name] = refused(want, "the node is not what was certified any more")
                else:
                    same.append(want)
            done = gates.release_many(
                Once(self.client), same, workers=workers, nodes=there, pool_taints=self.params["pool_taints"]
            )
            results |= {each["node"]: each for each in done}
            left = [want for want in same if results[want["node"]]["reason"] == CHANGED]
        return [results[want["node"]] for want in wants]

    def is_as_proven(self, node: dict | None, want: dict) -> bool:
        facts = self.facts_of(node) if node is not None else {}
        return bool(facts) and nodefacts.basis(facts) == want["basis"] and nodefacts.is_whole(facts)


def refused(want: dict, why: str) -> dict:
    """As a result of the gates."""
    nobody = {"gates": [], "external": [], "open": False}
    return {
        "node": want["node"],
        "owner": want["owner"],
        "status": "refused",
        "changed": False,
        "reason": why,
        **nobody,
    }


def stored(path: str, name: str) -> dict:
    """A document of evidence that has been verified."""
    try:
        with open(os.path.join(path, name), encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError) as error:
        raise InvalidDocument(f"cannot be read: {error}", file=os.path.join(path, name)) from error
    return found if isinstance(found, dict) else {}


def policy(params: dict, tests: catalogue.Tests) -> validation.Policy:
    for name, least, most in (("retries", 0, 5), ("concurrency", 1, 64), ("settle", 0, 86400), ("wait", 0, 86400)):
        if not least <= params[name] <= most:
            raise InvalidDocument(f"is {params[name]}", path=name, hint=f"from {least} to {most}")
    if params["mode"] == "enforce" and not params["evidence_dir"]:
        raise InvalidDocument("is empty", path="evidence_dir", hint="the directory of the certifications' evidence")
    new_nodes = params["new_nodes"] and not params["only"]
    if new_nodes or params["adopt_orphans"]:  # what is wrong with the tests must not show when a node joins
        check_tests(params, tests)
    return validation.Policy(
        tests=params["tests"],
        options=params["options"],
        retries=params["retries"],
        new_nodes=new_nodes,
        max_out=bound(params["max_out"], "max_out"),
        max_out_domain=bound(params["max_out_domain"], "max_out_domain"),
        settle=params["settle"],
        batch_seconds=params["batch_seconds"],
        accept_changed=params["accept_changed"],
        adopt_orphans=params["adopt_orphans"],
        require_driver=params["require_driver"],
        only=frozenset(params["only"]),
        namespace="" if params["records_dir"] else params["namespace"],
        not_run={each.get("certification"): str(each.get("msg") or "") for each in params["not_run"]},
    )


def check_tests(params: dict, tests: catalogue.Tests) -> None:
    """As requests and certifications read them; what is wrong is told of the options here."""
    try:
        made = requests.make(
            "new-node", [{"name": "any"}], params["tests"], params["options"], retries=params["retries"]
        )
        feasible.check(made["spec"], tests)
    except (InvalidDocument, NotFound) as error:
        places = (("spec.categories", "tests"), ("categories", "tests"), ("spec.", ""))
        found = error.problems
        for theirs, ours in places:
            found = [replace(each, file=None, path=re.sub(f"^{re.escape(theirs)}", ours, each.path)) for each in found]
        raise InvalidDocument(found) from error


def public_key(path: str | None) -> str | None:
    if path is None:
        return None
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, ValueError) as error:
        what = f"cannot be read: {getattr(error, 'strerror', None) or error}"
        raise NotFound(what, file=path, path="public_key_path") from error


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **KUBERNETES_ARGS,
            "mode": {"type": "str", "choices": ["observe", "dry_run", "enforce"], "default": "observe"},
            "evidence_dir": {"type": "path"},
            "public_key_path": {"type": "path", "no_log": False},
            "records_dir": {"type": "path"},
            "namespace": {"type": "str", "default": "goodput-fleet"},
            "only": {"type": "list", "elements": "str", "default": []},
            "new_nodes": {"type": "bool", "default": True},
            "tests": {
                "type": "list",
                "elements": "dict",
                "default": [{"domain": "diagnostics", "variant": "dcgm-level2"}],
            },
            "options": {"type": "dict"},
            "retries": {"type": "int", "default": 1},
            "max_out": {"type": "str", "default": "10%"},
            "max_out_domain": {"type": "str", "default": "50%"},
            "domain_labels": {"type": "list", "elements": "str"},
            "settle": {"type": "int", "default": 120},
            "batch_seconds": {"type": "int", "default": 600},
            "wait": {"type": "int", "default": 0},
            "accept_changed": {"type": "bool", "default": False},
            "adopt_orphans": {"type": "bool", "default": False},
            "require_driver": {"type": "bool", "default": True},
            "not_run": {"type": "list", "elements": "dict", "default": []},
            "pool_taints": {"type": "list", "elements": "str", "default": []},
            "catalog": {"type": "list", "elements": "str", "default": ["shipped"]},
            "fail_on": {
                "type": "list",
                "elements": "str",
                "choices": FAILURES,
                "default": ["unwritten", "unreadable"],
            },
            "concurrency": {"type": "int", "default": 8},
        },
        supports_check_mode=True,
    )
    try:
        report = Pass(module).run()
    except FleetError as error:
        module.fail_json(**error.as_result())
    for text in report.unreadable:
        module.warn(f"a request that cannot be read is left out: {text}")
    answer = report.as_result(module.params["mode"], module.check_mode)
    if any(getattr(report, name) for name in module.params["fail_on"]):
        module.fail_json(**answer)
    module.exit_json(**answer)


if __name__ == "__main__":
    main()
