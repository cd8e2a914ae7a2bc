#!/usr/bin/python
# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: validation_request
short_description: Ask for GPU nodes to be validated before they take work again
version_added: 1.1.0
author:
  - goodput.fleet contributors (@goodput)
description:
  - Makes a C(ValidationRequest), which says which nodes have to pass which tests and why. The role
    C(goodput.fleet.revalidate) carries it out. It closes the nodes with the gate C(validation), certifies them and
    opens those that pass.
  - The nodes are those that are named, selected, named by a drift report, behind a switch by their labels, or that pods
    of a component run on. Only GPU nodes count. Each is written down with its uid and the boot that it is in.
  - Nothing is asked for twice. What an open request already asks for is left out, if the node's tests have not begun.
    The same request made again changes nothing.
  - More nodes than one request holds become several requests.
options:
  request:
    description:
      - A whole C(ValidationRequest), as the path of a file, its text, or a dictionary. It is kept as it is.
      - Without it O(reason) and O(tests) are needed, and something that tells the nodes.
    type: raw
  reason:
    description: Why the nodes have to be validated.
    type: str
    choices: [new-node, repaired, changed, manual]
  cause:
    description:
      - What happened, for people; at most 512 characters. The default names what told the nodes.
      - Requests of which only the cause differs are two, so an id of the change or the repair belongs into it.
    type: str
  nodes:
    description: Names of GPU nodes. All of them must be there.
    type: list
    elements: str
  selector:
    description: Labels of the nodes, as C(kubectl -l) takes them. It may select none.
    type: str
  drift:
    description:
      - A C(DriftReport), as the path of a file or as a dictionary. The nodes that it wants certified again are taken.
        It may name none; one that could not see the nodes is refused.
      - With it, O(components) are taken into account only where the report has findings about them.
    type: raw
  topology:
    description:
      - Labels with a value or a list of values, such as those of the switch or the rack that was changed. All nodes
        that have one of them are taken.
    type: dict
  components:
    description: Components that were changed, such as an operator. The nodes that their pods run on are taken.
    type: list
    elements: dict
    suboptions:
      name:
        description: The component, as the recipe names it.
        type: str
        required: true
      namespace:
        description: Namespace of its pods.
        type: str
        required: true
      selector:
        description: Labels that its pods have. The default is every pod of the namespace.
        type: dict
        default: {}
  tests:
    description:
      - The tests, as the categories of a C(Certification), see M(goodput.fleet.certification). Each has the keys
        C(domain) and C(variant), or C(workload).
    type: list
    elements: dict
  options:
    description: Options of every test, as those of a C(Certification).
    type: dict
  retries:
    description: How many further certifications follow a failed one, from 0 to 5.
    type: int
    default: 1
  again:
    description:
      - Whether to ask anew where the same request is there and is over. By default it stands, unless a node that it
        certified has been changed since, as by another driver within the same boot.
    type: bool
    default: false
  records_dir:
    description: Keep the requests as files below this directory, rather than as objects of the cluster.
    type: path
  namespace:
    description: Without O(records_dir), the namespace of the requests.
    type: str
    default: goodput-fleet
  catalog:
    description:
      - Layers of the catalogue that hold the tests, as of M(goodput.fleet.certification). A test that none of them has
        is refused.
    type: list
    elements: str
    default: [shipped]
extends_documentation_fragment:
  - goodput.fleet.kubernetes
  - goodput.fleet.attributes
  - goodput.fleet.attributes.action_group
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
  - module: goodput.fleet.drift_info
  - module: goodput.fleet.certification
"""

EXAMPLES = r"""
- name: Validate two nodes by hand
  goodput.fleet.validation_request:
    reason: manual
    cause: "INC-4711: looked at the cables"
    nodes: [gpu-0012, gpu-0013]
    tests: &tests
      - domain: communication
        variant: nccl-loopback-nvswitch
        options: {thresholds: {busBandwidthGBps: "value >= 300"}}
      - {domain: diagnostics, variant: dcgm-level2}

- name: What differs from the lock?
  goodput.fleet.drift_info:
    lock: locks/h100.yaml
  register: drift

- name: Validate the nodes whose driver was changed behind our back, and those of a changed operator
  goodput.fleet.validation_request:
    reason: changed
    drift: "{{ drift.report }}"
    components:
      - name: network-operator
        namespace: network-operator
    tests: *tests

- name: Validate what is behind a switch that was replaced, with the requests kept as files
  goodput.fleet.validation_request:
    reason: changed
    cause: CHG-1234
    topology: {example.com/leaf: [leaf-07, leaf-08]}
    tests: *tests
    records_dir: records

- name: Make the request that is written in a file
  goodput.fleet.validation_request:
    request: requests/rack-7.yaml
"""

RETURN = r"""
msg:
  description: What was done in one line.
  returned: always
  type: str
  sample: "asked for: changed-1a2b3c4d (12 nodes)"
request:
  description: The first of RV(requests); null where none was needed.
  returned: success
  type: dict
  sample: {kind: ValidationRequest, metadata: {name: changed-1a2b3c4d}}
requests:
  description: The requests that were made, or would be in check mode. Those that were there already are not among them.
  returned: success
  type: list
  elements: dict
  sample: []
created:
  description: Whether a request was made.
  returned: success
  type: bool
  sample: true
covered:
  description: Nodes that a request asks for that was there already, with its name.
  returned: success
  type: dict
  sample: {gpu-0007: repaired-0badcafe}
nodes:
  description: All the nodes, with uid, boot id and why each was taken.
  returned: success
  type: list
  elements: dict
  sample: [{name: gpu-0007, uid: 8f0c2d1e, bootId: 1b4e28ba, why: "drift: nodes/driver"}]
gone:
  description: Nodes that O(drift) names and that are no GPU nodes of the cluster any more.
  returned: success
  type: list
  elements: str
  sample: []
unplaced:
  description:
    - Components that O(drift) has findings about and O(components) does not name, so that the nodes of their pods were
      not taken.
  returned: success
  type: list
  elements: str
  sample: [gpu-operator]
problems:
  description: What is wrong with the input.
  returned: when the input was bad
  type: list
  elements: dict
"""

import re
from dataclasses import replace

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.goodput.fleet.plugins.module_utils.certification import catalogue, feasible
from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.client import api_path
from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.connection import (
    KUBERNETES_ARGS,
    connect,
)
from ansible_collections.goodput.fleet.plugins.module_utils.gates import fleet, hosts, labels
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle import affected, nodefacts, requests
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle.store import ClusterStore, DirectoryStore
from ansible_collections.goodput.fleet.plugins.module_utils.records import schema, yamltree
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import FleetError, InvalidDocument, NotFound

WHERE = ("nodes", "selector", "drift", "topology", "components")


def work(module: AnsibleModule) -> dict:
    params = module.params
    written = params["request"] is not None
    client = None if params["records_dir"] and written else connect(params, module.no_log_values)
    store = (
        DirectoryStore(params["records_dir"]) if params["records_dir"] else ClusterStore(client, params["namespace"])
    )
    answer: dict = {"gone": [], "unplaced": []}
    bases: dict[str, dict] = {}
    if written:
        wanted = [requests.load(params["request"])]
        answer["nodes"] = wanted[0]["spec"]["nodes"]
        check_tests(wanted[0]["spec"], params["catalog"])
    else:
        check_tests({"tests": params["tests"], "options": params["options"]}, params["catalog"])
        report = drift_report(params["drift"])
        nodes = [node for node in client.list(api_path("v1", "nodes")) if fleet.is_gpu_node(node)]
        answer["nodes"] = find(params, client, nodes, report)
        if report:
            placed = {each["name"] for each in params["components"] or []}
            answer |= {"gone": affected.gone(report, nodes)}
            answer["unplaced"] = sorted(affected.drifted_components(report) - placed)
        wanted = make(params, answer["nodes"], report) if answer["nodes"] else []
        named = {each["name"] for each in answer["nodes"]}
        bases = {name: basis_of(node) for node in nodes if (name := node["metadata"]["name"]) in named}
    docs, problems = store.list(requests.KIND)
    for problem in problems:
        module.warn(f"a request that cannot be read is left out: {problem}")
    made, covered = [], {}
    for doc in wanted:
        # one that somebody wrote down is kept as it is
        needed, there = (doc, {}) if written else requests.needed(doc, docs, params["again"], bases)
        if needed and store.create(needed, module.check_mode):
            made.append(needed)
        elif needed:
            there = dict.fromkeys((node["name"] for node in needed["spec"]["nodes"]), needed["metadata"]["name"])
        covered |= there
    created = bool(made)
    answer |= {"request": made[0] if made else None, "requests": made, "created": created, "covered": covered}
    return {"changed": created, "msg": describe(answer, docs, module.check_mode), **answer}


def basis_of(node: dict) -> dict:
    """What a certification would be about now."""
    return nodefacts.basis(nodefacts.facts(node, hosts.host(node)["facts"]))


def find(params: dict, client, nodes: list[dict], report: dict | None) -> list[dict]:
    components = {each["name"]: each for each in params["components"] or []}
    spaces = sorted({each["namespace"] for each in components.values()})
    pods = [pod for space in spaces for pod in client.list(api_path("v1", "pods", space))]
    return affected.affected(
        nodes,
        pods,
        drift_report=report,
        components=components,
        topology=topology(params["topology"] or {}),
        names=params["nodes"] or [],
        selector=selects(params["selector"]),
    )


def make(params: dict, nodes: list[dict], report: dict | None) -> list[dict]:
    parts = [
        f"drift of {report['metadata']['name']}" if report else "",
        ", ".join(f"{key}={value}" for key, value in (params["topology"] or {}).items()),
        ", ".join(each["name"] for each in params["components"] or []),
        params["selector"] or "",
    ]
    cause = params["cause"] or "; ".join(filter(None, parts))
    space = "" if params["records_dir"] else params["namespace"]
    options = {"options": params["options"], "cause": cause, "retries": params["retries"], "namespace": space}
    return requests.make_all(params["reason"], nodes, params["tests"], **options)


def check_tests(spec: dict, catalog: list[str]) -> None:
    """What the certification would refuse is refused now, and not when the nodes are closed."""
    try:
        feasible.check(spec, catalogue.load_tests(catalog))
    except (InvalidDocument, NotFound) as error:
        # where they stand here
        places = (("spec.categories", "tests"), ("spec.options", "options"), ("categories", "tests"))
        found = error.problems
        for theirs, ours in places:
            found = [replace(each, file=None, path=re.sub(f"^{re.escape(theirs)}", ours, each.path)) for each in found]
        raise InvalidDocument(found) from error


def drift_report(given: object) -> dict | None:
    if given is None:
        return None
    if not isinstance(given, (str, dict)):
        raise InvalidDocument(f"is a {type(given).__name__}", path="drift", hint="the path of a DriftReport, or a map")
    document = yamltree.load_file(given) if isinstance(given, str) else yamltree.Document(given, {}, "drift")
    schema.check(document, "DriftReport")
    return document.data


def topology(given: dict) -> dict:
    for label, values in given.items():
        each = values if isinstance(values, list) else [values]
        if not each or not all(isinstance(value, str) for value in each):
            what = f"{values!r} is not a value of the label {label}"
            raise InvalidDocument(what, path="topology", hint="a text in quotes, or a list of texts")
    return given


def selects(text: str | None):
    if text is None:
        return None
    try:
        parsed = labels.parse(text)
    except ValueError as error:
        raise InvalidDocument(
            str(error), path="selector", hint="as kubectl -l takes it: rack=r7,zone in (a, b)"
        ) from error
    return lambda found: labels.matches(parsed, found)


def describe(answer: dict, docs: list[dict], check_mode: bool) -> str:
    parts = [f"{doc['metadata']['name']} ({len(doc['spec']['nodes'])} nodes)" for doc in answer["requests"]]
    text = f"{'would ask for' if check_mode else 'asked for'}: {', '.join(parts)}" if parts else "nothing to ask for"
    if not answer["nodes"]:
        return f"{text}: no GPU node is affected"
    phases = {doc["metadata"]["name"]: (doc.get("status") or {}).get("phase", "Pending") for doc in docs}
    for name in sorted(set(answer["covered"].values())):
        count = sum(each == name for each in answer["covered"].values())
        text += f"; {name} ({phases.get(name, 'Pending')}) asks for {count} of them already"
        if phases.get(name) in ("Succeeded", "Failed"):
            text += ", and is over (again: true asks anew)"
    return text


def main() -> None:
    component = {
        "name": {"type": "str", "required": True},
        "namespace": {"type": "str", "required": True},
        "selector": {"type": "dict", "default": {}},
    }
    module = AnsibleModule(
        argument_spec={
            **KUBERNETES_ARGS,
            "request": {"type": "raw"},
            "reason": {"type": "str", "choices": ["new-node", "repaired", "changed", "manual"]},
            "cause": {"type": "str"},
            "nodes": {"type": "list", "elements": "str"},
            "selector": {"type": "str"},
            "drift": {"type": "raw"},
            "topology": {"type": "dict"},
            "components": {"type": "list", "elements": "dict", "options": component},
            "tests": {"type": "list", "elements": "dict"},
            "options": {"type": "dict"},
            "retries": {"type": "int", "default": 1},
            "again": {"type": "bool", "default": False},
            "records_dir": {"type": "path"},
            "namespace": {"type": "str", "default": "goodput-fleet"},
            "catalog": {"type": "list", "elements": "str", "default": ["shipped"]},
        },
        required_one_of=[("request", "reason")],
        mutually_exclusive=[("request", name) for name in ("reason", "cause", "tests", "options", *WHERE)],
        required_by={"reason": ("tests",)},
        supports_check_mode=True,
    )
    params = module.params
    if params["request"] is None and all(params[name] is None for name in WHERE):
        module.fail_json(msg=f"which nodes? Give one of {', '.join(WHERE)}")
    for name in ("request", "nodes", "topology", "components", "tests", "selector", "records_dir"):
        if params[name] is not None and not params[name]:
            module.fail_json(msg=f"{name} is empty; leave it out, or say what")
    try:
        answer = work(module)
    except FleetError as error:
        module.fail_json(**error.as_result())
    module.exit_json(**answer)


if __name__ == "__main__":
    main()
