#!/usr/bin/python
# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: node_gate
short_description: Close Kubernetes nodes to new pods, and open them again, in the name of an owner
version_added: 1.1.0
author:
  - goodput.fleet contributors (@goodput)
description:
  - A gate keeps new pods off a node, in the name of one owner and for one reason. A node may have gates of several
    owners; it opens only when the last one is released and nobody else holds it.
  - Works on any number of nodes in one call, in parallel. Every node has a result of its own, and a node that fails
    keeps no other from being done. The task fails at the end when one did.
  - A gate is one annotation, C(gate.goodput.fleet/OWNER), and one taint. C(spec.unschedulable) is set only with
    O(cordon). All of it is written in one request that the API server refuses when the node has changed since it was
    read; the node is then read and decided upon again. A run that is killed leaves nothing half done.
  - What others have set is never lifted. That is so for a cordon by a person or another tool, for every taint that this
    module did not add, and for the marks of NVSentinel, the GPU operator, Cluster Autoscaler, Karpenter, kured and
    others. They are listed as RV(results[].external).
options:
  state:
    description:
      - V(held) closes the nodes. V(released) takes the owner's gate off.
      - Holding a gate that is there, and releasing one that is not, changes nothing.
    type: str
    choices: [held, released]
    default: held
  owner:
    description:
      - In whose name. C(quarantine), C(validation), C(maintenance) and C(manual) are the usual ones; any other DNS
        label will do.
    type: str
    required: true
  nodes:
    description:
      - Names of the nodes. An entry may be a map with the key C(name) and any of O(reason), O(rule), O(rule_digest),
        O(evidence), O(boot_id), O(taint) and O(cordon), where they differ for that node.
      - One of O(nodes) and O(selector) is needed, unless gates are released by O(rule) or O(rule_digest).
    type: list
    elements: raw
  selector:
    description: Labels of the nodes, as C(kubectl -l) takes them.
    type: str
  reason:
    description:
      - Why, for people. Needed to hold a gate. Longer than 512 characters, it is cut.
    type: str
  rule:
    description:
      - Name of the rule that wants the gate.
      - To release, only gates that this rule set.
    type: str
  rule_digest:
    description:
      - Digest of the rule, which tells its versions apart.
      - To release, only gates that this version of a rule set. Without O(nodes) and O(selector), wherever they are.
        This is how everything that one bad rule did is rolled back.
    type: str
  evidence:
    description:
      - Id of what the gate is founded on, such as the name of a C(HealthEvent).
      - To release, the gate must still be founded on it; else the release is refused, since something new has happened.
    type: str
  boot_id:
    description:
      - Boot id of the node that this is about. When the node has booted since, holding and releasing are refused.
      - The default, to hold, is the boot that the node is in.
    type: str
  taint:
    description:
      - The taint of the gate. The default has the key C(gate.goodput.fleet/OWNER), a value made from O(reason) and the
        effect V(NoSchedule). A gate that is there keeps its own.
      - A taint that was on the node before is left there when the gate is released. Gates with the same taint share it.
      - When another taint of the same key and effect is on the node, that one stays, and the result says so.
    type: dict
    suboptions:
      key:
        description: Its key.
        type: str
        required: true
      value:
        description: Its value.
        type: str
        default: ''
      effect:
        description: Its effect.
        type: str
        choices: [NoSchedule, PreferNoSchedule, NoExecute]
        default: NoSchedule
  cordon:
    description:
      - Whether the gate wants the node cordoned as well. The default is V(false), or what the gate has wanted so far.
      - The cordon is lifted with the last gate that wants it, if nobody else has set it meanwhile and no other tool
        that is at work on the node counts on it.
      - Where the node was cordoned already, that cordon stays its owner's. Once they lift it, holding the gate again
        sets one of its own.
      - Prefer the taint. C(kubectl cordon) on a node that is cordoned already changes nothing that anybody could see
        later, so a person's cordon that comes after this one is lifted with it.
    type: bool
  reclose:
    description:
      - To hold, set the cordon again when somebody lifted it. By default that is respected, and the result says so.
      - A taint of a gate that somebody took off is put back in any case.
    type: bool
    default: false
  force:
    description:
      - To release, take off also a gate whose annotation cannot be read, because somebody edited it, and what is left
        of a gate whose annotation is gone. Without it the first is refused and the second is nothing to release.
      - Never touches what is not this collection's, and never overrides O(boot_id) or O(evidence).
    type: bool
    default: false
  pool_taints:
    description:
      - Keys of taints, as globs, that reserve pools of the site's for their workloads and therefore close no node.
      - V(nvidia.com/gpu), V(dedicated), V(sku) and C(node-role.kubernetes.io/*) are among those known already.
    type: list
    elements: str
    default: []
  fail_on_refused:
    description: Whether the task fails when a node refused, as it does when one failed.
    type: bool
    default: true
  concurrency:
    description: How many nodes are worked on at a time.
    type: int
    default: 8
  request_timeout:
    description: Seconds that one request may take. It is tried up to five times.
    type: int
    default: 30
extends_documentation_fragment:
  - goodput.fleet.kubernetes
  - goodput.fleet.attributes
  - goodput.fleet.attributes.action_group
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
seealso:
  - module: goodput.fleet.node_gate_info
  - module: goodput.fleet.node_drain
"""

EXAMPLES = r"""
- name: Close two nodes for maintenance
  goodput.fleet.node_gate:
    owner: maintenance
    reason: "CHG-1234: new power supplies in rack 7"
    nodes: [gpu-0012, gpu-0013]

- name: Close a node for a fault, with a taint that others know
  goodput.fleet.node_gate:
    owner: quarantine
    reason: Xid 79, the GPU fell off the bus
    evidence: 9f86d081884c7d65
    nodes:
      - name: gpu-0007
        boot_id: 1b4e28ba-2fa1-41d2-883f-0016d3cca427
    taint:
      key: nvidia.com/gpu-error
      value: fatal

- name: What would open?
  goodput.fleet.node_gate:
    state: released
    owner: maintenance
    selector: goodput.fleet/rack=rack-07
  check_mode: true
  diff: true

- name: Take back everything that one version of a rule did
  goodput.fleet.node_gate:
    state: released
    owner: quarantine
    rule_digest: sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae
"""

RETURN = r"""
results:
  description: One entry per node, in the order of O(nodes).
  returned: when the input was good
  type: list
  elements: dict
  contains:
    node:
      description: Name of the node.
      type: str
      returned: always
      sample: gpu-0007
    owner:
      description: The owner.
      type: str
      returned: always
      sample: quarantine
    status:
      description: V(held), V(released), V(unchanged), V(refused) or V(failed). In check mode, what it would be.
      type: str
      returned: always
      sample: held
    changed:
      description: Whether the node changed.
      type: bool
      returned: always
      sample: true
    reason:
      description: Why it was refused or failed, or what else there is to say.
      type: str
      returned: always
      sample: the cordon stays for maintenance
    code:
      description: V(not-found), V(denied), V(conflict), V(unavailable) or V(invalid).
      type: str
      returned: when it failed
      sample: denied
    gates:
      description: Owners of all gates that the node has now.
      type: list
      elements: str
      returned: always
      sample: [quarantine]
    external:
      description:
        - Who else holds the node. Entries with C(holds) V(false) are told only, such as taints that reserve a pool, or
          marks that a tool left behind.
      type: list
      elements: dict
      returned: always
      sample:
        - kind: cordon
          key: spec.unschedulable
          value: 'true'
          detail: set by kubectl-cordon at 2026-11-29T12:00:00Z
          holds: true
    open:
      description: Whether the node has no gate and nobody else holds it.
      type: bool
      returned: always
      sample: false
counts:
  description: Number of nodes by status.
  returned: when the input was good
  type: dict
  sample: {held: 1, released: 0, unchanged: 999, refused: 0, failed: 0}
problems:
  description: Everything that is wrong with the input.
  returned: when the input was bad
  type: list
  elements: dict
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.connection import (
    KUBERNETES_ARGS,
    connect,
)
from ansible_collections.goodput.fleet.plugins.module_utils.gates import kubernetes, request
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import FleetError


def work(module: AnsibleModule) -> list[dict]:
    params = module.params
    held = params["state"] == "held"
    client = connect(
        params, module.no_log_values, threads=params["concurrency"], read_timeout=float(params["request_timeout"])
    )
    shared, nodes = request.common(params), None
    if params["nodes"] is not None:
        wants = request.for_entries(params["nodes"], shared, params["state"])
    else:
        request.for_nodes([], shared, params["state"])  # before anything is asked of the server
        nodes = kubernetes.read_nodes(client, params["selector"])
        wants = request.for_nodes(nodes.values(), shared, params["state"])
    options = {"nodes": nodes, "check_mode": module.check_mode, "workers": params["concurrency"]}
    options["pool_taints"] = params["pool_taints"]
    if held:
        return kubernetes.hold_many(client, wants, reclose=params["reclose"], **options)
    return kubernetes.release_many(client, wants, **options)


def main() -> None:
    taint = {
        "key": {"type": "str", "required": True, "no_log": False},
        "value": {"type": "str", "default": ""},
        "effect": {
            "type": "str",
            "choices": ["NoSchedule", "PreferNoSchedule", "NoExecute"],
            "default": "NoSchedule",
        },
    }
    module = AnsibleModule(
        argument_spec={
            **KUBERNETES_ARGS,
            "state": {"type": "str", "choices": ["held", "released"], "default": "held"},
            "owner": {"type": "str", "required": True},
            "nodes": {"type": "list", "elements": "raw"},
            "selector": {"type": "str"},
            **{name: {"type": "str"} for name in ("reason", "rule", "rule_digest", "evidence", "boot_id")},
            "taint": {"type": "dict", "options": taint},
            "cordon": {"type": "bool"},
            "reclose": {"type": "bool", "default": False},
            "force": {"type": "bool", "default": False},
            "pool_taints": {"type": "list", "elements": "str", "default": []},
            "fail_on_refused": {"type": "bool", "default": True},
            "concurrency": {"type": "int", "default": 8},
            "request_timeout": {"type": "int", "default": 30},
        },
        mutually_exclusive=[("nodes", "selector")],
        supports_check_mode=True,
    )
    params = module.params
    by_rule = params["state"] == "released" and (params["rule"] or params["rule_digest"])
    if params["nodes"] is None and params["selector"] is None and not by_rule:
        module.fail_json(msg="which nodes? Give nodes or selector (to release, rule or rule_digest will do)")
    if params["selector"] is not None and not params["selector"].strip():
        module.fail_json(msg="selector is empty, which would be every node; to mean that, say kubernetes.io/hostname")
    if not 1 <= params["concurrency"] <= 64 or params["request_timeout"] < 1:
        module.fail_json(msg="concurrency has to be from 1 to 64, and request_timeout at least 1")
    try:
        results = work(module)
    except FleetError as error:
        module.fail_json(**error.as_result())
    counts, message = request.counts(results), request.summary(results, module.check_mode)
    extra = {"diff": request.differences(results)} if module._diff else {}
    for each in results:
        each.pop("diff", None)
    extra.update(msg=message, changed=any(each["changed"] for each in results), results=results, counts=counts)
    if counts["failed"] or (counts["refused"] and params["fail_on_refused"]):
        module.fail_json(**extra)
    module.exit_json(**extra)


if __name__ == "__main__":
    main()
