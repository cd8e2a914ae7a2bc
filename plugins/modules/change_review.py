#!/usr/bin/python
# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: change_review
short_description: Tell reviewers of a pull request what it changes in a cluster, and what certifying that costs
version_added: 1.1.0
description:
  - Compares the RecipeLock of a change with the one that it starts from, and the Certifications likewise; says plainly
    which bounds are loosened and which are tightened.
  - Compares the cluster with the lock that the change starts from. A change is planned on what the lock says, so a
    cluster that has left it comes as a surprise after the merge.
  - Finds the nodes to certify again, for the change and for drift, and plans that with the tests of the change. The
    cost is an upper bound.
  - Makes one Markdown page of it. The same input gives the same page. Secrets in values are left out.
  - Reads only.
author:
  - goodput.fleet contributors (@goodput)
extends_documentation_fragment:
  - goodput.fleet.kubernetes
  - goodput.fleet.attributes
  - goodput.fleet.attributes.info_module
  - goodput.fleet.attributes.action_group
options:
  base:
    description:
      - The RecipeLock that the change starts from, as a path or as data. This is what the cluster is compared with.
      - Without it everything in O(head) is new, and drift is not looked at.
    type: raw
  head:
    description: The RecipeLock of the change, as a path or as data.
    type: raw
    required: true
  certifications:
    description:
      - Certifications of the change, whose tests are planned for the nodes to certify again.
      - Without any, the nodes are told and the cost is not.
    type: list
    elements: dict
    default: []
    suboptions:
      head:
        description: The Certification or WorkloadRun, as a path or as data.
        type: raw
        required: true
      base:
        description: The one that the change starts from. Without it all of it is new.
        type: raw
  snapshot:
    description:
      - A Snapshot to look at instead of the live cluster, as a path (YAML or JSON) or as data. No cluster is contacted.
      - It knows no resources of nodes but GPUs, so tests that want NICs show as blocked in the plan.
    type: raw
  offline:
    description: Look at no cluster at all. Then only the documents are compared; drift, nodes and cost stay open.
    type: bool
    default: false
  selector:
    description: Labels of the GPU nodes that the change is for, as C(kubectl -l) takes them. The default is all.
    type: str
  hardware:
    description:
      - Names of components, as globs, whose changes call for a new certification of the nodes. Components that fix a
        fact of nodes in the lock, as the GPU operator does with the driver, always do.
      - The default knows the usual operators, device plugins and network components.
    type: list
    elements: str
  harmless:
    description:
      - Changes of those components that call for none, as globs over C(COMPONENT/PATH) of RV(lock_changes).
    type: list
    elements: str
    default: []
  ignore:
    description: Drift that is accepted, as O(goodput.fleet.drift_info#module:ignore).
    type: list
    elements: str
    default: []
  node_keys:
    description: Labels and taints that a pool's nodes share, as O(goodput.fleet.drift_info#module:node_keys).
    type: list
    elements: str
    default: []
  name:
    description: The cluster's name on the page. The default is what the snapshot or the kubeconfig says.
    type: str
  domain_labels:
    description: Labels that name a node's rack, as O(goodput.fleet.certification#module:domain_labels).
    type: list
    elements: str
  catalog:
    description: Layers of the catalogue that hold the tests. V(shipped) is the one of this collection.
    type: list
    elements: str
    default: [shipped]
requirements:
  - cel-expr-python (Python package), for O(certifications)
  - jmespath, jsonschema, PyYAML (Python packages)
notes:
  - A task that uses this module does not fail for drift, so that the page can be shown; RV(exit_code) tells.
    The role P(goodput.fleet.review#role) fails, and the command C(gitops/ci/review) of the collection ends with the
    code.
seealso:
  - module: goodput.fleet.drift_info
  - module: goodput.fleet.certification
"""

EXAMPLES = r"""
- name: What does this pull request change?
  goodput.fleet.change_review:
    base: /tmp/main/clusters/prod-1/recipe.lock.yaml
    head: clusters/prod-1/recipe.lock.yaml
    certifications:
      - base: /tmp/main/certifications/driver.yaml
        head: certifications/driver.yaml
    context: prod-1
  register: review

- name: Show it
  ansible.builtin.debug:
    msg: "{{ review.markdown }}"

- name: The documents alone
  goodput.fleet.change_review:
    base: /tmp/main/recipe.lock.yaml
    head: recipe.lock.yaml
    offline: true
"""

RETURN = r"""
exit_code:
  description:
    - 0 when nothing stands against the change, whether or not it calls for certifying; 3 when the cluster has drifted
      from O(base); 4 when something that was asked could not be told; 2 when the input is bad. Drift outranks what
      could not be told.
  returned: always
  type: int
  sample: 0
markdown:
  description: The page.
  returned: success
  type: str
  sample: "# Review of eks-h100"
name:
  description: The name of the lock.
  returned: success
  type: str
  sample: eks-h100
lock_changes:
  description:
    - What the lock changes. C(change) is C(differs), C(missing) or C(added); C(kind) is C(added), C(removed),
      C(version), C(value), C(nodeFact), C(manifest), C(image), C(rendered), C(release), C(order), C(constraint),
      C(check), C(criteria), C(catalog) or C(other). A check also has the C(effect) of RV(bound_changes).
  returned: success
  type: list
  elements: dict
  sample:
    - component: gpu-operator
      path: values.driver.version
      before: 580.65.06
      after: 580.105.08
      change: differs
      kind: nodeFact
      recertify: true
      why: the driver of GPU nodes changes
bound_changes:
  description:
    - What the Certifications change. C(effect) is C(loosened), C(tightened), C(changed), C(new), or C(none) for other
      words.
  returned: success
  type: list
  elements: dict
  sample:
    - certification: driver
      category: nccl-all-reduce
      path: thresholds.busBandwidthGBps
      before: value >= 300
      after: value >= 250
      effect: loosened
drift:
  description: The DriftReport, or nothing where drift was not looked at.
  returned: success
  type: dict
  sample: {kind: DriftReport}
drift_why:
  description: Why drift was not looked at.
  returned: success
  type: str
  sample: ""
affects:
  description: Whether the change itself calls for certifying GPU nodes again.
  returned: success
  type: bool
  sample: true
affected:
  description: The nodes to certify again, and why; nothing where they are not known.
  returned: success
  type: list
  elements: dict
  sample: [{node: gpu-7, why: [the driver of GPU nodes changes]}]
affected_why:
  description: Why the nodes are not known.
  returned: success
  type: str
  sample: ""
plans:
  description: The plan of each Certification for those nodes.
  returned: success
  type: list
  elements: dict
  sample: [{certification: driver, jobs: 8, nodeHours: 4.0, minutes: 30, lines: []}]
uncovered:
  description: Nodes to certify again that no target of the Certifications has.
  returned: success
  type: list
  elements: str
  sample: []
cost:
  description: Jobs, node-hours, and minutes one Certification after the other, all at most. Nothing where not known.
  returned: success
  type: dict
  sample: {jobs: 8, nodeHours: 4.0, minutes: 30}
unknown:
  description: What was asked and could not be told, besides the parts of RV(drift).
  returned: success
  type: list
  elements: str
  sample: []
problems:
  description: Everything that is wrong with the input.
  returned: when the input was bad
  type: list
  elements: dict
"""

from dataclasses import replace

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.goodput.fleet.plugins.module_utils.certification import (
    catalogue,
    changes,
    documents,
    planned_text,
    stored,
    subset,
)
from ansible_collections.goodput.fleet.plugins.module_utils.certification.plan import Planner
from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.connection import (
    KUBERNETES_ARGS,
    connect,
)
from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.releases import READERS
from ansible_collections.goodput.fleet.plugins.module_utils.drift import facts, lockdiff, recertify, run
from ansible_collections.goodput.fleet.plugins.module_utils.drift.redact import redact
from ansible_collections.goodput.fleet.plugins.module_utils.gates import labels
from ansible_collections.goodput.fleet.plugins.module_utils.records import lockfile, snapshots
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import (
    Denied,
    FleetError,
    InvalidDocument,
    Unavailable,
)
from ansible_collections.goodput.fleet.plugins.module_utils.reports import review

NODES = "/api/v1/nodes"


class Listening:
    """A client that keeps the nodes that pass by, so that drift and plan see the same ones and list them once."""

    def __init__(self, client):
        self._client, self.nodes = client, None

    def __getattr__(self, name):
        return getattr(self._client, name)

    def pages(self, path, *arguments, **options):
        found = []
        for items in self._client.pages(path, *arguments, **options):
            found += items
            yield items
        if path == NODES:
            self.nodes = found


def look(module, base, unknown):
    """(DriftReport or None, nodes as the planner reads them or None, names and labels of GPU nodes or None)."""
    params = module.params
    drift = {key: params[key] for key in ("ignore", "node_keys", "name")}
    if params["offline"]:
        return None, None, None
    if params["snapshot"] is not None:
        shot = snapshots.load(params["snapshot"])
        report = run.report(None, {}, lock=base, snapshot=shot, **drift) if base else None
        if shot["spec"]["parts"].get("nodes", {}).get("status") != "ok":
            return report, None, None
        nodes = stored.facts(shot)
        gpus = {node["name"] for node in shot["spec"]["nodes"] if facts.is_gpu(node)}
        return report, nodes, {node["name"]: node["labels"] for node in nodes if node["name"] in gpus}
    client = Listening(connect(params, module.no_log_values))
    try:
        report = run.report(lambda: client, READERS, lock=base, **drift) if base else None
        if client.nodes is None and not base:
            list(client.pages(NODES))
    except (Unavailable, Denied) as error:
        unknown.append(f"the cluster cannot be looked at: {error.problems[0].message}")
        return None, None, None
    if client.nodes is None:
        return report, None, None
    found = [node["metadata"] for node in client.nodes if facts.is_gpu(facts.node(node))]
    return report, client.nodes, {metadata["name"]: metadata.get("labels") or {} for metadata in found}


def selector(params):
    """The parsed selector, None where all nodes are meant. Raises InvalidDocument."""
    if not params["selector"]:
        return None
    try:
        return labels.parse(params["selector"])
    except ValueError as error:
        raise InvalidDocument(str(error), path="selector", hint="as kubectl -l takes it") from error


def affected(params, changed, report, names, unknown):
    """[{node, why}] to certify again by name, or None and why they are not known."""
    if names is None:
        if params["offline"]:
            return None, "No cluster was looked at, so the GPU nodes are not known."
        if not unknown:
            unknown.append("the nodes cannot be listed, so those to certify again are not known")
        return None, "The GPU nodes cannot be listed."
    wanted = selector(params)
    fitting = [name for name, labels_ in names.items() if wanted is None or labels.matches(wanted, labels_)]
    again, odd = recertify.affected(changed, report, fitting, params["selector"] or "")
    unknown += [odd] if odd else []
    return again, ""


def plan(params, certification, tests, nodes, names):
    """The plan of one certification, and the nodes that it has. Without nodes only the document is judged."""
    options = {"domainLabels": params["domain_labels"]} if params["domain_labels"] else {}
    name = certification["metadata"]["name"]
    part = subset.of(certification, names)
    if not names or part is None:
        Planner(certification, tests, [], options)  # refuses what no node could be tested with
        row = {"jobs": 0, "nodeHours": 0, "minutes": 0, "lines": ["none of these nodes is in its target"]}
        return {"certification": name, **row}, []
    planner = Planner(part, tests, nodes, options)
    made = planner.plan()
    asked = [node.name for node in planner.asked]
    lines = planned_text.describe(made) if asked else ["none of these nodes is in its target"]
    row = {"jobs": made["jobs"], "nodeHours": made["nodeHours"], "minutes": made["longestPathMinutes"]}
    return {"certification": name, **row, "lines": lines}, asked


def named(certification, act, *arguments):
    """What `act` returns. Raises its FleetError with the name of the certification, of which there may be several."""
    try:
        return act(*arguments)
    except FleetError as error:
        name = certification["metadata"]["name"]
        raise type(error)([replace(each, path=f"{name}: {each.path}") for each in error.problems]) from error


def load(source, what):
    """A certification without secrets. Raises FleetError that names the option."""
    document = documents.load(source, what)["certification"]
    return {**document, "spec": redact(document["spec"], "certification")}


def lock_of(source, what):
    """A checked RecipeLock. Raises FleetError; data is told of by the option's name."""
    if source == "":
        raise InvalidDocument("is empty", path=what, hint="the path of a lock file, or the lock")
    document = lockfile.read(source, what)
    problems = lockfile.faults(document)
    if problems:
        raise InvalidDocument(problems)
    return document.data


def judge(module):
    """The result of the module, without the page."""
    params, unknown = module.params, []
    selector(params)  # a malformed one is told before anything is read
    if params["offline"] and params["snapshot"] is not None:
        raise InvalidDocument("is given together with a snapshot", path="offline", hint="one of the two")
    base = lock_of(params["base"], "base") if params["base"] is not None else None
    head = lock_of(params["head"], "head")
    lock_changes = lockdiff.diff(
        base, head, lockdiff.HARDWARE if params["hardware"] is None else params["hardware"], params["harmless"]
    )
    for each in lock_changes:
        if each["kind"] == "check":
            each["effect"] = changes.effect_of_check(each)
    certifications, bound_changes = [], []
    for number, each in enumerate(params["certifications"]):
        sides = {
            side: load(each[side], f"certifications[{number}].{side}") if each[side] is not None else None
            for side in ("head", "base")
        }
        certifications.append(sides["head"])
        name = sides["head"]["metadata"]["name"]
        bound_changes += [{"certification": name, **row} for row in changes.diff(sides["base"], sides["head"])]
    tests = catalogue.load_tests(params["catalog"]) if certifications else None
    report, nodes, names = look(module, base, unknown)
    again, affected_why = affected(params, lock_changes, report, names, unknown)
    wanted = [each["node"] for each in again or ()]
    planned = [named(each, plan, params, each, tests, nodes or [], wanted) for each in certifications]
    plans = [row for row, _asked in planned] if wanted else []
    covered = {name for _row, asked in planned for name in asked}
    total = {key: round(sum(row[key] for row in plans), 2) for key in ("jobs", "nodeHours", "minutes")}
    drift_why = "No cluster was looked at." if params["offline"] else ""
    if not base and not drift_why:
        drift_why = "There is no lock that this change starts from."
    return {
        "name": head["metadata"]["name"],
        "lock_changes": lock_changes,
        "bound_changes": bound_changes,
        "drift": report,
        "drift_why": "" if report else drift_why or "The cluster cannot be looked at.",
        "affects": any(each["recertify"] for each in lock_changes),
        "affected": again,
        "affected_why": affected_why,
        "plans": plans,
        "uncovered": [name for name in wanted if name not in covered] if plans else [],
        "cost": total if plans else None,
        "unknown": unknown,
        "exit_code": review.exit_code(report and report["spec"]["status"], unknown),
    }


def main() -> None:
    strings = {"type": "list", "elements": "str"}
    sides = {"head": {"type": "raw", "required": True}, "base": {"type": "raw"}}
    module = AnsibleModule(
        argument_spec={
            **KUBERNETES_ARGS,
            "base": {"type": "raw"},
            "head": {"type": "raw", "required": True},
            "certifications": {"type": "list", "elements": "dict", "options": sides, "default": []},
            "snapshot": {"type": "raw"},
            "offline": {"type": "bool", "default": False},
            "selector": {"type": "str"},
            "hardware": strings,
            "harmless": {**strings, "default": []},
            "ignore": {**strings, "default": []},
            "node_keys": {**strings, "default": [], "no_log": False},  # names of labels
            "name": {"type": "str"},
            "domain_labels": strings,
            "catalog": {**strings, "default": ["shipped"]},
        },
        supports_check_mode=True,
    )
    try:
        result = judge(module)
    except FleetError as error:
        module.fail_json(exit_code=review.BAD_INPUT, **error.as_result())
    module.exit_json(changed=False, markdown=review.page(result), **result)


if __name__ == "__main__":
    main()
