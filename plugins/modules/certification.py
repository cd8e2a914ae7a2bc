#!/usr/bin/python
# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: certification
short_description: Prove with real workloads which nodes of a Kubernetes cluster can carry work
version_added: 1.1.0
author:
  - goodput.fleet contributors (@goodput)
description:
  - Runs the tests that a C(Certification) names on the nodes that it targets, holds what they print against bounds,
    finds the node or the link behind a group that fails, and keeps the evidence in a directory outside the cluster.
  - It never changes a node. Opening a gate is for whoever reads the results.
  - What is not certain is no pass. Only RV(report.nodes[].mayOpenGate) says that a node passed all its tests.
  - A run that was killed goes on where it was when the same certification is run again. A test that has ended is not
    run twice; jobs that went on meanwhile are taken over, others of this certification are removed.
  - Nothing is started unless O(mode) is V(enforce). Check mode and the other modes return the plan.
options:
  certification:
    description:
      - A C(Certification) or C(WorkloadRun), as the path of a file, or as a dictionary. Of an object of the cluster, as
        M(kubernetes.core.k8s_info) gives it, the status is written too. A C(Certification) of
        C(nvcre.nvidia.com/v1alpha1) is taken too; RV(not_understood) tells what of it has no meaning here.
    type: raw
    required: true
  mode:
    description:
      - V(observe) and V(dry_run) plan only, V(enforce) runs the tests.
    type: str
    choices: [observe, dry_run, enforce]
    default: observe
  evidence_dir:
    description:
      - Directory for the evidence. Each certification gets a folder of its own in it, named after the certification and
        a digest of its spec, its tests and its nodes.
      - Required with O(mode=enforce).
    type: path
  namespace:
    description: Namespace that the tests run in. It must exist.
    type: str
    default: goodput-certify
  signing_key_path:
    description: File with the Ed25519 key (PEM) that the manifest of the evidence is signed with.
    type: path
  interval:
    description: Seconds between two looks at the running tests.
    type: float
    default: 5
  slice:
    description:
      - Return after so many seconds, with RV(done) false, when the certification goes on. V(0) stays until it is over.
      - The action plugin sets it, to show the progress, and calls the module again.
    type: int
    default: 0
  domain_labels:
    description:
      - Labels that name a node's NVLink domain or rack; the first that a node has counts. The default knows the usual
        ones.
    type: list
    elements: str
  pool_taints:
    description: Keys of taints, as globs, that the tests tolerate, beside those usual for GPU nodes.
    type: list
    elements: str
  include_cordoned:
    description: Whether cordoned nodes are tested too.
    type: bool
    default: false
  fail_on:
    description:
      - Ends that the module fails for, by RV(status). V(incomplete) is when a node has no result, V(pass_unbounded)
        when something that was measured has no bound.
    type: list
    elements: str
    choices: [fail, incomplete, pass_unbounded]
    default: [fail, incomplete]
  catalog:
    description: Layers of the catalogue that hold the tests. V(shipped) is the one of this collection.
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
    details:
      - The plan is in RV(plan).
  idempotent:
    support: full
    details:
      - A certification that is over is not run again, but for tests that the cluster did not take. Its stored results
        are returned.
requirements:
  - cel-expr-python (Python package)
  - jsonschema (Python package)
  - cryptography (Python package), for O(signing_key_path)
seealso:
  - module: goodput.fleet.node_gate
  - module: goodput.fleet.report
"""

EXAMPLES = r"""
- name: What would be run, and how long may it take?
  goodput.fleet.certification:
    certification: certifications/accept-rack-12.yaml
  register: plan

- name: Show it
  ansible.builtin.debug:
    var: plan.plan

- name: Certify
  goodput.fleet.certification:
    certification: certifications/accept-rack-12.yaml
    mode: enforce
    evidence_dir: /var/lib/goodput/evidence
  register: certified

- name: A bound on all-reduce and a diagnostic, for one node
  goodput.fleet.certification:
    mode: enforce
    evidence_dir: /var/lib/goodput/evidence
    certification:
      apiVersion: goodput.fleet/v1alpha1
      kind: Certification
      metadata: {name: gpu-0007}
      spec:
        target: {nodeNames: [gpu-0007]}
        tolerateGates: [quarantine]
        categories:
          - domain: communication
            variant: nccl-loopback-nvswitch
            options: {thresholds: {busBandwidthGBps: "value >= 300"}}
          - {domain: diagnostics, variant: dcgm-level2}
"""

RETURN = r"""
msg:
  description: The plan or the result in one line.
  returned: always
  type: str
  sample: "accept: fail; 62 nodes passed, 2 failed: gpu-0013, gpu-0040"
plan:
  description: What is to be run, in lines, with the cost.
  returned: when there is a plan
  type: list
  elements: str
  sample: ["65 jobs on 64 nodes: at most 12.5 node-hours, 1h30m from begin to end"]
planned:
  description: The same as data; how many jobs, node-hours, and minutes on the longest path.
  returned: when there is a plan
  type: dict
  sample: {jobs: 65, nodeHours: 12.5, longestPathMinutes: 90}
not_understood:
  description: What of a manifest of another engine has no meaning here, with its path and why.
  returned: when there is a plan
  type: list
  elements: dict
  sample: []
done:
  description: Whether the certification is over.
  returned: when there is a plan
  type: bool
  sample: true
news:
  description: What has happened in this slice.
  returned: when tests were run
  type: list
  elements: str
  sample: ["dcgm-level1 on gpu-0007: dcgm-level1: pass"]
progress:
  description: How many tests are done, running and waiting, and how many nodes are busy.
  returned: when tests were run
  type: dict
  sample: {done: 12, running: 4, waiting: 49, nodes: 4}
status:
  description:
    - V(pass), V(fail), V(incomplete), or V(pass_unbounded), which is a pass for want of a bound.
  returned: when the certification is over
  type: str
  sample: fail
report:
  description: The results document, as C(results.json) in the evidence holds it.
  returned: when the certification is over
  type: dict
  contains:
    nodes:
      description: The verdict on each node, and why.
      type: list
      elements: dict
      returned: always
      contains:
        mayOpenGate:
          description: Whether the node passed every test of the certification.
          type: bool
          returned: always
          sample: true
evidence:
  description: The folder of the evidence, and the digest of its manifest.
  returned: when the certification is over
  type: dict
  sample: {path: /var/lib/goodput/evidence/accept-3f1c5a8e9d02, digest: "sha256:5891b5b522d5"}
"""

import time
from datetime import UTC, datetime

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.goodput.fleet.plugins.module_utils.certification import (
    catalogue,
    documents,
    objectstatus,
    plan,
    planned_text,
)
from ansible_collections.goodput.fleet.plugins.module_utils.certification.course import Course
from ansible_collections.goodput.fleet.plugins.module_utils.certification.evidence import Evidence
from ansible_collections.goodput.fleet.plugins.module_utils.certification.session import Session, load_bounds
from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.client import api_path
from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.connection import (
    KUBERNETES_ARGS,
    connect,
)
from ansible_collections.goodput.fleet.plugins.module_utils.launchers import observation
from ansible_collections.goodput.fleet.plugins.module_utils.launchers.kubernetes import Launcher
from ansible_collections.goodput.fleet.plugins.module_utils.records import signing
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import (
    Denied,
    FleetError,
    InvalidDocument,
    NotFound,
    Problem,
)

SHOWN = 8  # nodes named in one line


def now() -> datetime:
    return datetime.now(UTC)


def course_of(params: dict, certification: dict, nodes: list[dict]) -> Course:
    options = {
        "domainLabels": params["domain_labels"],
        "poolTaints": params["pool_taints"],
        "includeCordoned": params["include_cordoned"],
    }
    given = {name: value for name, value in options.items() if value is not None}
    tests = catalogue.load_tests(params["catalog"])
    return Course(plan.Planner(certification, tests, nodes, given))


def run(module: AnsibleModule, certification: dict, course: Course, client, nodes: list[dict]) -> dict:
    """One slice of the work."""
    params, planned, metadata = module.params, course.planned, certification["metadata"]
    key = signing_key(params["signing_key_path"])
    check_namespace(client, params["namespace"])
    with Evidence.open(params["evidence_dir"], certification, planned["categories"], planned["nodes"]) as evidence:
        stored = evidence.read("results.json")
        if stored and not stored.get("unstarted"):
            return over(stored, evidence, key) | {"changed": False}
        owner = evidence.about["identity"].removeprefix("sha256:")[:16]
        launcher = Launcher(client, params["namespace"], owner)
        session = Session(metadata["name"], course, evidence, launcher, observation.overdue, now)
        end = time.monotonic() + params["slice"] if params["slice"] else float("inf")
        session.resume()
        tell(module, client, certification, objectstatus.running(session.begun))
        while not session.advance():
            if time.monotonic() >= end:
                return {"changed": True, "done": False, "news": session.news, "progress": session.progress()}
            time.sleep(params["interval"])
        evidence.write("inventory.json", session.inventory(nodes))
        results = session.results(now().strftime("%Y-%m-%dT%H:%M:%SZ"))
        evidence.write("results.json", results)
        about = {"changed": bool(session.ended), "news": session.news, "progress": session.progress()}
        return over(results, evidence, key) | about


def over(results: dict, evidence: Evidence, key: str | None) -> dict:
    seal = {"path": evidence.path, "digest": evidence.seal(key)}
    return {"done": True, "status": results["status"], "report": results, "evidence": seal}


def tell(module: AnsibleModule, client, certification: dict, status: dict) -> None:
    """Write the status of the object that the document was read from, if it is one and still there."""
    path = objectstatus.path_of(certification)
    if path is None:
        return
    try:
        found = client.find(path)
        if not found or found["metadata"].get("uid") != certification["metadata"]["uid"]:
            return
        if {key: (found.get("status") or {}).get(key) for key in status} != status:
            client.patch(path, {"status": status}, fieldManager="goodput-fleet")
    except FleetError as error:
        module.warn(f"the status of the Certification could not be written: {error}")


def signing_key(path: str | None) -> str | None:
    """Tried at once: a bad one must not show when all tests have run."""
    if path is None:
        return None
    try:
        with open(path, encoding="utf-8") as file:
            key = file.read()
    except (OSError, ValueError) as error:
        what = f"cannot be read: {getattr(error, 'strerror', None) or error}"
        raise NotFound(what, file=path, path="signing_key_path") from error
    signing.sign(b"", key)
    return key


def check_namespace(client, name: str) -> None:
    """An account that may not look at it finds out when the first test is started."""
    try:
        found = client.find(api_path("v1", "namespaces", name=name))
    except Denied:
        return
    if found is None:
        hint = "gitops/rbac/certify.yaml makes goodput-certify, with an account that may run tests in it"
        raise NotFound(f"there is no namespace {name}", path="namespace", hint=hint)


def describe(name: str, results: dict) -> str:
    verdicts: dict[str, list[str]] = {}
    for node in results["nodes"]:
        verdicts.setdefault(node["verdict"], []).append(node["node"])
    parts = [f"{len(names)} {verdict}" + _named(verdict, names) for verdict, names in sorted(verdicts.items())]
    return f"{name}: {results['status']}; nodes: {'; '.join(parts)}"


def _named(verdict: str, names: list[str]) -> str:
    if verdict == "pass":
        return ""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f" ({', '.join(names[:SHOWN])}{more})"


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **KUBERNETES_ARGS,
            "certification": {"type": "raw", "required": True},
            "mode": {"type": "str", "choices": ["observe", "dry_run", "enforce"], "default": "observe"},
            "evidence_dir": {"type": "path"},
            "namespace": {"type": "str", "default": "goodput-certify"},
            "signing_key_path": {"type": "path", "no_log": False},
            "interval": {"type": "float", "default": 5},
            "slice": {"type": "int", "default": 0},
            "domain_labels": {"type": "list", "elements": "str"},
            "pool_taints": {"type": "list", "elements": "str"},
            "include_cordoned": {"type": "bool", "default": False},
            "fail_on": {
                "type": "list",
                "elements": "str",
                "choices": ["fail", "incomplete", "pass_unbounded"],
                "default": ["fail", "incomplete"],
            },
            "catalog": {"type": "list", "elements": "str", "default": ["shipped"]},
        },
        required_if=[("mode", "enforce", ["evidence_dir"])],
        supports_check_mode=True,
    )
    params = module.params
    try:
        if not 0.05 <= params["interval"] <= 3600:
            raise InvalidDocument(f"is {params['interval']:g}", path="interval", hint="from 0.05 to 3600 seconds")
        if params["slice"] < 0:
            raise InvalidDocument(f"is {params['slice']}", path="slice", hint="seconds, or 0")
        if params["evidence_dir"] == "":
            raise InvalidDocument("is empty", path="evidence_dir", hint="a directory for the evidence")
        document = documents.load(params["certification"])
        certification = document["certification"]
        client = connect(params, module.no_log_values)
        nodes = list(client.list("/api/v1/nodes"))
        course = course_of(params, certification, nodes)
        load_bounds(course)
        planned = course.planned
        answer = {
            "plan": planned_text.describe(planned),
            "planned": {key: planned[key] for key in ("jobs", "nodeHours", "longestPathMinutes")},
            "not_understood": document["notUnderstood"],
        }
        errors = [Problem(**problem) for problem in planned["problems"] if problem.get("severity") != "warning"]
        if errors:
            raise InvalidDocument(errors)
        if module.check_mode or params["mode"] != "enforce":
            module.exit_json(changed=False, done=True, msg=answer["plan"][0], **answer)
        answer |= run(module, certification, course, client, nodes)
    except FleetError as error:
        module.fail_json(**error.as_result())
    name = certification["metadata"]["name"]
    if not answer["done"]:
        module.exit_json(msg=f"{name}: goes on", **answer)
    answer["msg"] = describe(name, answer["report"])
    tell(module, client, certification, objectstatus.over(answer["report"], answer["evidence"], answer["msg"]))
    if answer["status"] in params["fail_on"]:
        module.fail_json(**answer)
    module.exit_json(**answer)


if __name__ == "__main__":
    main()
