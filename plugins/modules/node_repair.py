#!/usr/bin/python
# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: node_repair
short_description: Decide what is tried next against the faults of gated nodes
version_added: 1.1.0
author:
  - goodput.fleet contributors (@goodput)
description:
  - "One step of the repair of all nodes that the gate C(quarantine) holds, or that failed their validation. Each has a
    C(RepairRequest), which climbs a ladder, from a reset of the GPU over a reboot to another machine, and last a ticket
    for people. Where it begins follows from the action that was recommended for the fault."
  - "The module carries out none of it. It returns the nodes that are to be drained (RV(repairs)), the attempts that
    are to be made now (RV(execute)), and the tickets that are to be handed over (RV(tickets)). What came of them is
    given to the next step in O(outcomes). The role P(goodput.fleet.remediate#role) does both."
  - That something was requested, executed and verified are three facts. A reboot is verified by a new boot id of the
    same node, Ready again; a reset by what was read from the GPU after it, in the same boot; a replacement by another
    node of the name. A newer fault undoes each of them.
  - A node whose repair is verified is held by the gate C(validation) with a C(ValidationRequest), and only then its
    gate C(quarantine) is opened. It takes work when it has passed, see M(goodput.fleet.node_validation).
  - An attempt is written down before it is returned. It is returned once, and it counts, even if the run is killed
    before it is made.
  - "The attempts are counted over all requests of a node, and of nodes that were the same machine by its system UUID,
    whatever they were called. With none left, a node stays closed, and the ticket says who
    has to act. A person who opens the gate has the last word: the request is withdrawn."
  - Nodes with the annotation C(goodput.fleet/no-repair) are left alone.
options:
  mode:
    description:
      - V(observe) decides and reports. V(dry_run) also makes the C(RepairRequest) documents. V(enforce) requests
        attempts, and changes gates.
      - Without V(enforce), RV(execute) and RV(tickets) are empty, and RV(planned) has what would be in them.
    type: str
    choices: [observe, dry_run, enforce]
    default: observe
  tests:
    description: What a repaired node has to pass, as the categories of a C(Certification).
    type: list
    elements: dict
    required: true
  test_options:
    description: Options of all of O(tests), as those of a C(Certification).
    type: dict
  retries:
    description: How many further certifications of a repaired node follow a failed one, from 0 to 5.
    type: int
    default: 1
  executors:
    description:
      - The rungs that somebody can carry out, V(reset), V(reboot), V(replace) and V(ticket), as a list, or with the
        name of each one's executor as a dictionary. A rung that is not among them is passed over.
      - Without V(ticket), a node with nothing left to try is exhausted at once, and the ticket is in RV(exhausted).
    type: raw
    default: [ticket]
  attempts:
    description: Attempts at each rung for one fault within O(window). What is not given is V(1).
    type: dict
  per_fault:
    description:
      - Attempts against one fault, over all rungs, within O(window). A fault against which nothing is to be done may as
        often, and at least once, come again after the node has passed its validation.
    type: int
    default: 3
  per_node:
    description: Attempts on one node, over all faults, within O(window).
    type: int
    default: 5
  window:
    description: Seconds that an attempt counts.
    type: int
    default: 604800
  timeouts:
    description:
      - Seconds after which an attempt that is not verified has failed. What is not given is V(900) for a reset, V(3600)
        for a reboot, and V(7200) for a replacement.
    type: dict
  min_between:
    description: Seconds between two attempts on one node.
    type: int
    default: 600
  max_parallel:
    description: Nodes that are under repair at a time.
    type: int
    default: 4
  max_parallel_per_domain:
    description: The same for each topology domain, which the first of O(domain_labels) that a node has names.
    type: int
    default: 1
  domain_labels:
    description: Labels that name a node's NVLink domain or rack. The default knows the usual ones.
    type: list
    elements: str
  on_validation_failure:
    description: The rung to begin with for a node that failed a validation and has no fault.
    type: str
    choices: [reset, reboot, replace, ticket]
    default: ticket
  only:
    description: Names of the nodes to work on. Without it, all. The budget counts all in any case.
    type: list
    elements: str
    default: []
  drained:
    description:
      - Nodes that were drained for RV(repairs). A name means the whole node. A dictionary has C(node), C(scope),
        which is V(gpu) or V(node), and C(entity), the GPU.
    type: list
    elements: raw
    default: []
  outcomes:
    description:
      - What came of attempts, each with C(request), C(rung) and C(key) as in RV(execute) or RV(tickets), and with
        C(executed), which is true, false, or null where it is not known.
      - Further keys are C(verified) (of a reset, whether the GPU is well after it), C(detail), C(serials), C(executor),
        C(reference) (of a ticket) and C(at), the time right before it was done. A fault that is newer than that undoes
        the attempt; without it the time of the request counts.
    type: list
    elements: dict
    default: []
  wait:
    description: Seconds that the module may watch the nodes whose reboot or replacement is not verified yet.
    type: int
    default: 0
  poll:
    description: Seconds between two looks at them.
    type: int
    default: 5
  records_dir:
    description: Where the requests are files below a directory, that directory.
    type: path
  namespace:
    description: Namespace of the requests where they are objects of the cluster.
    type: str
    default: goodput-fleet
  ledger_namespace:
    description:
      - Namespace of the ConfigMap in which M(goodput.fleet.node_quarantine) notes the newest fault of each node.
    type: str
    default: goodput-fleet
  ledger_name:
    description: Name of that ConfigMap.
    type: str
    default: goodput-quarantine
  concurrency:
    description: How many nodes are written at a time.
    type: int
    default: 8
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
  - module: goodput.fleet.node_drain
  - module: goodput.fleet.node_validation
  - module: goodput.fleet.repair_ticket
"""

EXAMPLES = r"""
- name: What would be tried next?
  goodput.fleet.node_repair:
    executors: [reset, reboot, ticket]
    tests: &tests
      - {domain: diagnostics, variant: dcgm-level2}
  register: looked

- name: Request the attempts on two nodes that were drained
  goodput.fleet.node_repair:
    mode: enforce
    executors: {reset: ssh, reboot: redfish, ticket: webhook}
    tests: *tests
    drained:
      - gpu-0007
      - {node: gpu-0012, scope: gpu, entity: GPU-5f1c8a52-0c1c-4d8e-9a57-2d5f10b1f1ee}
  register: repair

- name: Say what came of them, and watch the nodes for half an hour
  goodput.fleet.node_repair:
    mode: enforce
    executors: {reset: ssh, reboot: redfish, ticket: webhook}
    tests: *tests
    outcomes: "{{ outcomes }}"
    wait: 1800
"""

RETURN = r"""
msg:
  description: What was done, in one line.
  returned: always
  type: str
  sample: "enforce: 1 reboot requested; 2 nodes wait"
lines:
  description: What was done and what waits, one line each.
  returned: when a step was made
  type: list
  elements: str
  sample: ["gpu-0007: reboot requested, attempt 1"]
created:
  description: Names of the C(RepairRequest) documents that were made.
  returned: when a step was made
  type: list
  elements: str
  sample: [gpu-0007-1a2b3c4d]
repairs:
  description:
    - Attempts that can begin once the node is drained. Each has C(request), C(node), C(uid), C(rung), C(entity) (the
      GPU, empty for the whole node), C(drain_scope) (V(gpu) or V(node)), C(fault), C(domain) and C(held_by), who else
      holds the node.
  returned: when a step was made
  type: list
  elements: dict
  sample: [{request: gpu-0007-1a2b3c4d, node: gpu-0007, rung: reboot, entity: '', drain_scope: node, fault: xid-79}]
execute:
  description:
    - Attempts that are written down and have to be made now. Beside those of RV(repairs), each has C(key), C(executor),
      C(attempt), C(bootBefore), C(serials), and what is known of the machine in C(address), C(providerId), C(machineId)
      and C(systemUUID).
  returned: when a step was made
  type: list
  elements: dict
  sample: [{request: gpu-0007-1a2b3c4d, node: gpu-0007, rung: reboot, key: gpu-0007-1a2b3c4d/reboot/1, executor: ssh}]
planned:
  description: What would be in RV(execute) and RV(tickets), in check mode and without O(mode=enforce).
  returned: when a step was made
  type: list
  elements: dict
  sample: []
tickets:
  description:
    - Nodes that are to be handed to people, the same under the same C(key) until an outcome says that it was done. Each
      has C(node), C(serials), C(fault), C(attempts), C(evidence), C(why), C(who), and what is known of the machine.
  returned: when a step was made
  type: list
  elements: dict
  sample: []
pending:
  description: Attempts that are not verified yet, with C(until), when they time out.
  returned: when a step was made
  type: list
  elements: dict
  sample: []
verified:
  description: Attempts that were verified in this step.
  returned: when a step was made
  type: list
  elements: dict
  sample: []
failed_attempts:
  description: Attempts that did not help, with C(why).
  returned: when a step was made
  type: list
  elements: dict
  sample: []
validations:
  description: C(ValidationRequest) documents that repaired nodes have to pass, each with C(name) and C(node).
  returned: when a step was made
  type: list
  elements: dict
  sample: [{request: gpu-0007-1a2b3c4d, node: gpu-0007, name: repaired-5e6f7a8b}]
released:
  description: The gates C(quarantine) that were opened, as in the result of M(goodput.fleet.node_gate).
  returned: when a step was made
  type: list
  elements: dict
  sample: []
closed:
  description: Requests that came to their end in this step, with C(why).
  returned: when a step was made
  type: list
  elements: dict
  sample: []
exhausted:
  description: Requests with nothing left to try, with C(why) and the C(ticket). Their nodes stay closed.
  returned: when a step was made
  type: list
  elements: dict
  sample: []
withdrawn:
  description: Requests whose node is gone, or was opened by somebody, with C(why).
  returned: when a step was made
  type: list
  elements: dict
  sample: []
waiting:
  description: What cannot go on now, with C(why).
  returned: when a step was made
  type: list
  elements: dict
  sample: []
conflicts:
  description: Steps that another run was quicker with, with C(why). Nothing was done for them.
  returned: when a step was made
  type: list
  elements: dict
  sample: []
failures:
  description: What could not be written, and entries of O(outcomes) that cannot be understood, with C(why). The module
      fails for it, after everything else was done.
  returned: when a step was made
  type: list
  elements: dict
  sample: []
unknown_outcomes:
  description: Entries of O(outcomes) that belong to no attempt.
  returned: when a step was made
  type: list
  elements: dict
  sample: []
requests:
  description: The requests that are not over, with C(name), C(node), C(phase), C(rung) and C(message).
  returned: when a step was made
  type: list
  elements: dict
  sample: [{name: gpu-0007-1a2b3c4d, node: gpu-0007, phase: Repairing, rung: reboot, message: reboot requested}]
problems:
  description: Documents that cannot be read, or what is wrong with the input.
  returned: when there are any
  type: list
  elements: dict
"""

import time
from datetime import UTC, datetime

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.connection import (
    KUBERNETES_ARGS,
    connect,
)
from ansible_collections.goodput.fleet.plugins.module_utils.gates import hosts, ledger
from ansible_collections.goodput.fleet.plugins.module_utils.gates import kubernetes as gates
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle import (
    nodefacts,
    repair,
    repair_options,
    repair_request,
    repair_run,
    repair_step,
)
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle.store import ClusterStore, DirectoryStore
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import FleetError, Problem


class Steps:
    """Steps of one call: the first with what the caller tells, and after a wait a second one."""

    def __init__(self, module: AnsibleModule):
        params = module.params
        self.module, self.params = module, params
        self.policy = repair_options.policy(params)
        self.drained = repair_options.drained(params["drained"])
        self.outcomes, self.misread = repair_options.outcomes(params["outcomes"])
        self.client = connect(params, module.no_log_values, threads=params["concurrency"])
        kept = params["records_dir"]
        self.store = DirectoryStore(kept) if kept else ClusterStore(self.client, params["namespace"])
        self.mode = "observe" if module.check_mode else params["mode"]
        self.raw: dict[str, dict] = {}
        self.problems: list[Problem] = []

    def run(self) -> dict:
        found = self.step(self.drained, self.outcomes)
        watched = [each for each in found["pending"] if each["rung"] != "reset"]
        if watched and self.params["wait"] and self.mode == "enforce":
            self.watch(watched)
            found = repair_run.joined(found, self.step([], []))
        found["failures"] += self.misread
        return found

    def step(self, drained: list[dict], outcomes: list[dict]) -> dict:
        now = datetime.now(UTC).replace(microsecond=0)
        self.raw = gates.read_nodes(self.client)
        nodes = {name: self.facts(raw) for name, raw in self.raw.items()}
        repairs, validations = self.list("RepairRequest"), self.list("ValidationRequest")
        entries, only = self.ledger(), self.params["only"]
        decision = repair.decide(nodes, entries, repairs, validations, outcomes, drained, self.policy, now, only)
        hands = repair_run.Hands(
            store=self.store,
            look=self.look,
            hold=lambda wants: self.change(gates.hold_many, wants),
            release=lambda wants: self.change(gates.release_many, wants),
            newest_faults=lambda: repair_step.newest_faults(self.ledger(), datetime.now(UTC)),
            crowded=lambda: repair.crowded(self.list("RepairRequest"), nodes, self.policy, now),
            now=now,
        )
        return repair_run.carry_out(decision, hands, self.mode)

    def facts(self, raw: dict) -> dict:
        labels = self.params["domain_labels"] or nodefacts.DOMAIN_LABELS
        seen = nodefacts.facts(raw, hosts.host(raw)["facts"], domain_labels=labels)
        return {**seen, **repair_request.machine(raw)}

    def list(self, kind: str) -> list[dict]:
        docs, self.problems = self.store.list(kind)
        for problem in self.problems:
            self.module.warn(f"a request that cannot be read is left out: {problem}")
        return docs

    def ledger(self) -> list[dict]:
        return ledger.read(self.client, self.params["ledger_namespace"], self.params["ledger_name"]).entries

    def look(self, names: list[str]) -> dict[str, dict]:
        self.raw = gates.find_nodes(self.client, names)
        return {name: self.facts(raw) for name, raw in self.raw.items()}

    def change(self, how, wants: list[dict]) -> list[dict]:
        results = how(self.client, wants, workers=self.params["concurrency"], nodes=self.raw)
        self.raw = gates.find_nodes(self.client, [want["node"] for want in wants])
        return results

    def watch(self, pending: list[dict]) -> None:
        """Until each node is Ready as another machine or boot than before."""
        end = time.monotonic() + self.params["wait"]
        while pending and (left := end - time.monotonic()) > 0:
            time.sleep(min(self.params["poll"], left))
            nodes = self.look([each["node"] for each in pending])
            pending = [each for each in pending if not self.is_back(each, nodes.get(each["node"]))]

    def is_back(self, attempt: dict, node: dict | None) -> bool:
        if node is None or not node["ready"]:
            return False
        return (node["uid"], node["bootId"]) != (attempt["uidBefore"], attempt["bootBefore"])


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **KUBERNETES_ARGS,
            "mode": {"type": "str", "choices": ["observe", "dry_run", "enforce"], "default": "observe"},
            "tests": {"type": "list", "elements": "dict", "required": True},
            "test_options": {"type": "dict"},
            "retries": {"type": "int", "default": 1},
            "executors": {"type": "raw", "default": ["ticket"]},
            "attempts": {"type": "dict"},
            "per_fault": {"type": "int", "default": 3},
            "per_node": {"type": "int", "default": 5},
            "window": {"type": "int", "default": 604800},
            "timeouts": {"type": "dict"},
            "min_between": {"type": "int", "default": 600},
            "max_parallel": {"type": "int", "default": 4},
            "max_parallel_per_domain": {"type": "int", "default": 1},
            "domain_labels": {"type": "list", "elements": "str"},
            "on_validation_failure": {
                "type": "str",
                "choices": ["reset", "reboot", "replace", "ticket"],
                "default": "ticket",
            },
            "only": {"type": "list", "elements": "str", "default": []},
            "drained": {"type": "list", "elements": "raw", "default": []},
            "outcomes": {"type": "list", "elements": "dict", "default": []},
            "wait": {"type": "int", "default": 0},
            "poll": {"type": "int", "default": 5},
            "records_dir": {"type": "path"},
            "namespace": {"type": "str", "default": "goodput-fleet"},
            "ledger_namespace": {"type": "str", "default": "goodput-fleet"},
            "ledger_name": {"type": "str", "default": "goodput-quarantine"},
            "concurrency": {"type": "int", "default": 8},
        },
        supports_check_mode=True,
    )
    try:
        steps = Steps(module)
        found = steps.run()
    except FleetError as error:
        module.fail_json(**error.as_result())
    found.update(msg=repair_run.line(found, steps.mode), lines=repair_run.lines(found))
    if steps.problems:
        found["problems"] = [each.as_dict() for each in steps.problems]
    if found["failures"]:
        module.fail_json(**found)
    module.exit_json(**found)


if __name__ == "__main__":
    main()
