#!/usr/bin/python
# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: node_rollout_info
short_description: Tell what a driver update has to do next, and the waves to come
version_added: 1.1.0
author:
  - goodput.fleet contributors (@goodput)
description:
  - Compares the GPU driver that nodes tell with the one they shall have, and plans the update in waves. First come
    canaries of each GPU model; then waves, within bounds of nodes that are out in each topology domain and in all.
  - Nodes that are out already count, for whatever reason, also those that are not selected.
  - Nothing is remembered between calls. Where a node stands is told by its driver, by its gate C(maintenance) with the
    id of the roll-out, by its C(ValidationRequest), and by the record of its certification. A roll-out that was killed
    goes on where it was.
  - A node that others hold is left alone, be it by a gate, a cordon or a taint. When one node fails, nothing further is
    begun.
  - Reads only. The role P(goodput.fleet.driver_update#role) carries the plan out.
options:
  driver:
    description:
      - Version that the nodes shall have, as they tell it.
      - One of O(driver) and O(lock) is needed.
    type: str
  lock:
    description: RecipeLock that pins the driver, as a path or as data.
    type: raw
  selector:
    description: Labels of the nodes to update, as C(kubectl -l) takes them. The default is all GPU nodes.
    type: str
  nodes:
    description: Names of the nodes to update.
    type: list
    elements: str
  canary:
    description: Nodes of each GPU model that must be certified with the driver before waves begin. V(0) has none.
    type: int
    default: 1
  wave:
    description: Nodes of a wave, as a number or as a share of the selected ones.
    type: str
    default: 10%
  max_unavailable:
    description: GPU nodes that may be out at a time, as a number or as a share of all. Of a share, one node may be out.
    type: str
    default: 10%
  max_unavailable_per_domain:
    description: The same for each topology domain.
    type: str
    default: 25%
  domain_labels:
    description:
      - Labels that name a node's domain; the first that a node has counts. The default is the usual ones of NVLink
        cliques and racks.
      - For a node that has none, only O(max_unavailable) holds.
    type: list
    elements: str
  retry:
    description: Names of failed nodes that are to be taken up again.
    type: list
    elements: str
    default: []
  waited:
    description: Names of nodes whose change got its time. It is made again, where the driver is still another.
    type: list
    elements: str
    default: []
  not_drained:
    description: Nodes that could not be emptied, and why. They count as failed.
    type: dict
    default: {}
  recertify:
    description:
      - Names of nodes that M(goodput.fleet.drift_info) wants certified again. Those that have the driver, but no
        certification with it, come into RV(affected).
    type: list
    elements: str
    default: []
  wait:
    description: Seconds to wait for until no node is in RV(wait) any more.
    type: int
    default: 0
  interval:
    description: Seconds between two looks, when waiting.
    type: float
    default: 10
  records_dir:
    description: Directory with the C(ValidationRequest) documents, when they are not kept in the cluster.
    type: path
  namespace:
    description: Namespace of the C(ValidationRequest) objects.
    type: str
    default: goodput-fleet
  pool_taints:
    description: Keys of taints, as globs, that reserve pools of the site's and therefore close no node.
    type: list
    elements: str
    default: []
extends_documentation_fragment:
  - goodput.fleet.kubernetes
  - goodput.fleet.attributes
  - goodput.fleet.attributes.info_module
  - goodput.fleet.attributes.action_group
seealso:
  - module: goodput.fleet.node_gate
  - module: goodput.fleet.drift_info
"""

EXAMPLES = r"""
- name: Which waves would an update to the new lock's driver have?
  goodput.fleet.node_rollout_info:
    lock: clusters/prod-1/recipe.lock.yaml
    max_unavailable_per_domain: 1
  register: rollout

- name: Show it
  ansible.builtin.debug:
    msg: "{{ rollout.lines }}"
"""

RETURN = r"""
id:
  description: Id of the roll-out. It depends on the driver and on O(selector) or O(nodes) only.
  returned: success
  type: str
  sample: du-4f0c2b9a7d31
target:
  description: The driver.
  returned: success
  type: str
  sample: 580.105.08
phase:
  description:
    - V(canary) or V(wave) while one is under way or can begin; V(done) when every node has the driver; V(idle) when
      some have not, but are held by others or no more may be out; V(stopped) when a node failed.
  returned: success
  type: str
  sample: wave
wave:
  description: Number of the wave. V(0) is the canaries.
  returned: success
  type: int
  sample: 2
nodes:
  description: Names of this wave's nodes.
  returned: success
  type: list
  elements: str
  sample: [gpu-0004, gpu-0005]
release:
  description:
    - Nodes whose gate is to be released, since they are certified, or were not touched and will not be.
    - The entries of this and of the other steps are as M(goodput.fleet.node_gate) takes them. C(evidence) is what the
      gate is founded on; in RV(gate) and RV(change), what it is to be founded on.
  returned: success
  type: list
  elements: dict
  sample: []
gate:
  description: Nodes to be gated.
  returned: success
  type: list
  elements: dict
  sample:
    - name: gpu-0004
      boot_id: 1b4e28ba-2fa1-41d2-883f-0016d3cca427
      evidence: du-4f0c2b9a7d31
change:
  description: Gated nodes to be drained and changed.
  returned: success
  type: list
  elements: dict
  sample: []
wait:
  description: Nodes that are being changed, or are not ready yet.
  returned: success
  type: list
  elements: dict
  sample: []
validate:
  description: Nodes that have the driver and are to be certified. Empty until all of the wave have it.
  returned: success
  type: list
  elements: dict
  sample: []
affected:
  description: Nodes for the request to make, which are RV(validate) without those that one is under way for.
  returned: success
  type: list
  elements: dict
  sample: []
requests:
  description: Names of the requests that are under way for RV(validate).
  returned: success
  type: list
  elements: str
  sample: []
reason:
  description: Text for the gates.
  returned: success
  type: str
  sample: driver update to 580.105.08, wave 2
cause:
  description: Text for the request. The plan knows its own requests by it.
  returned: success
  type: str
  sample: 'du-4f0c2b9a7d31: driver update to 580.105.08, wave 2, attempt 1'
done:
  description: Names of the nodes that have the driver and nothing left to do.
  returned: success
  type: list
  elements: str
  sample: [gpu-0000]
uncertified:
  description: Nodes that had the driver without this roll-out, and are not certified with it, with why.
  returned: success
  type: list
  elements: dict
  sample: []
foreign:
  description: Nodes that are left alone, with why.
  returned: success
  type: list
  elements: dict
  sample:
    - {node: gpu-0007, why: 'held by others: gate of quarantine'}
failures:
  description: Nodes that failed, with why.
  returned: success
  type: list
  elements: dict
  sample: []
pending:
  description: Number of nodes that have another driver and are not in this wave yet, foreign ones included.
  returned: success
  type: int
  sample: 24
waves:
  description: Names of the nodes of the waves after this one, when all of them pass.
  returned: success
  type: list
  elements: list
  sample: [[gpu-0008, gpu-0009], [gpu-0010]]
blocked:
  description: Why some nodes do not come into any wave.
  returned: success
  type: list
  elements: str
  sample: []
counts:
  description: Number of the selected nodes, and of those at each stage.
  returned: success
  type: dict
  sample: {selected: 32, pending: 24, gated: 0, validated: 8}
missing:
  description: Names out of O(nodes) and O(retry) for which there is no GPU node.
  returned: success
  type: list
  elements: str
  sample: []
lines:
  description: The plan in words.
  returned: success
  type: list
  elements: str
  sample: ['du-4f0c2b9a7d31: driver 580.105.08: 8 of 32 nodes have it, wave', 'wave 2: gpu-0008, gpu-0009']
problems:
  description: Everything that is wrong with the input, and requests that cannot be read.
  returned: when there is something
  type: list
  elements: dict
"""

import time

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.connection import (
    KUBERNETES_ARGS,
    connect,
)
from ansible_collections.goodput.fleet.plugins.module_utils.gates import fleet, hosts, kubernetes, labels
from ansible_collections.goodput.fleet.plugins.module_utils.gates.facts import name_of
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle import nodefacts, rollout, rollout_target
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle.rollout_bounds import bound
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle.store import ClusterStore, DirectoryStore
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import FleetError, InvalidDocument, NotFound
from ansible_collections.goodput.fleet.plugins.module_utils.records.lockfile import load_lock


def target_of(params: dict) -> str:
    if params["driver"] is not None:
        return rollout_target.checked(params["driver"])
    return rollout_target.pinned(load_lock(params["lock"]))


def selected(params: dict, nodes: list[dict]) -> set[str] | None:
    """Names of the nodes to update, None for all. Raises NotFound when there are none: nobody means that."""
    if params["nodes"] is not None:
        found = {name_of(node) for node in nodes} & set(params["nodes"])
        what = f"nodes: none of {', '.join(params['nodes'][:5]) or '(no names)'} is a GPU node"
    elif params["selector"] is not None:
        try:
            wanted = labels.parse(params["selector"])
        except ValueError as error:
            raise InvalidDocument(str(error), path="selector", hint="as kubectl -l takes it") from error
        found = {name for name, each in _labels(nodes) if labels.matches(wanted, each)}
        what = f"selector: {params['selector']} fits no GPU node"
    else:
        found, what = None, "there is no GPU node"
    if not (nodes if found is None else found):
        raise NotFound(what, hint=f"the cluster has {len(nodes)} GPU nodes")
    return found


def _labels(nodes: list[dict]) -> list[tuple[str, dict]]:
    return [(name_of(node), (node.get("metadata") or {}).get("labels") or {}) for node in nodes]


def look(client, params: dict, target: str, scope: object) -> tuple[dict, list]:
    """The plan by what is there now, from one list of nodes and one of requests; and what of these cannot be read."""
    store = (
        DirectoryStore(params["records_dir"]) if params["records_dir"] else ClusterStore(client, params["namespace"])
    )
    requests, problems = store.list("ValidationRequest")
    raw = [node for node in kubernetes.read_nodes(client).values() if fleet.is_gpu_node(node)]
    names = selected(params, raw)
    domains = params["domain_labels"] or nodefacts.DOMAIN_LABELS
    nodes = [
        nodefacts.facts(node, hosts.host(node, pool_taints=params["pool_taints"])["facts"], True, domains)
        for node in raw
    ]
    options = rollout.Options(
        canary=params["canary"],
        wave=bound(params["wave"], "wave"),
        fleet=bound(params["max_unavailable"], "max_unavailable"),
        domain=bound(params["max_unavailable_per_domain"], "max_unavailable_per_domain"),
        names=names,
        retry=set(params["retry"]),
        waited=set(params["waited"]),
        not_drained=params["not_drained"],
        recertify=set(params["recertify"]),
    )
    made = rollout.plan(nodes, requests, target, rollout_target.rollout_id(target, scope), options)
    there = {node["name"] for node in nodes}
    return {**made, "missing": sorted({*(params["nodes"] or ()), *params["retry"]} - there)}, problems


def main() -> None:
    names = {"type": "list", "elements": "str"}
    module = AnsibleModule(
        argument_spec={
            **KUBERNETES_ARGS,
            "driver": {"type": "str"},
            "lock": {"type": "raw"},
            "selector": {"type": "str"},
            "nodes": names,
            "canary": {"type": "int", "default": 1},
            "wave": {"type": "str", "default": "10%"},
            "max_unavailable": {"type": "str", "default": "10%"},
            "max_unavailable_per_domain": {"type": "str", "default": "25%"},
            "domain_labels": names,
            "retry": {**names, "default": []},
            "waited": {**names, "default": []},
            "not_drained": {"type": "dict", "default": {}},
            "recertify": {**names, "default": []},
            "wait": {"type": "int", "default": 0},
            "interval": {"type": "float", "default": 10},
            "records_dir": {"type": "path"},
            "namespace": {"type": "str", "default": "goodput-fleet"},
            "pool_taints": {**names, "default": []},
        },
        mutually_exclusive=[("driver", "lock"), ("nodes", "selector")],
        required_one_of=[("driver", "lock")],
        supports_check_mode=True,
    )
    params = module.params
    if params["canary"] < 0 or params["wait"] < 0 or params["interval"] <= 0:
        module.fail_json(msg="canary and wait cannot be below 0, and interval has to be above 0")
    try:
        target = target_of(params)
        scope = sorted(params["nodes"]) if params["nodes"] is not None else params["selector"] or ""
        client, until = connect(params, module.no_log_values), time.monotonic() + params["wait"]
        made, problems = look(client, params, target, scope)
        while made["wait"] and time.monotonic() < until:
            time.sleep(min(params["interval"], max(0.0, until - time.monotonic())))
            made, problems = look(client, params, target, scope)
    except FleetError as error:
        module.fail_json(**error.as_result())
    for problem in problems:
        module.warn(f"a request cannot be read, and counts as none: {problem}")
    if made["missing"]:
        module.warn("there is no such GPU node: " + ", ".join(made["missing"][:20]))
    if problems:
        made["problems"] = [problem.as_dict() for problem in problems]
    module.exit_json(changed=False, msg="\n".join(made["lines"]), **made)


if __name__ == "__main__":
    main()
