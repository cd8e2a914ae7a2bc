#!/usr/bin/python
# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: node_drain
short_description: Move the pods off closed Kubernetes nodes, by policy and within their disruption budgets
version_added: 1.1.0
author:
  - goodput.fleet contributors (@goodput)
description:
  - Drains any number of nodes in one call. What happens to a pod is said by O(policies), per namespace; a pod that no
    policy takes is waited for.
  - Pods are moved through the Eviction API, so a C(PodDisruptionBudget) always holds. A budget that forbids an eviction
    is named, and asked again until O(timeout). One pod that cannot go keeps no other from going.
  - Pods of a C(DaemonSet) and mirror pods stay, and so do those in O(system_namespaces). Finished pods do not count.
    A pod counts until it is gone, also when it is not ready or its node does not answer.
  - Every request carries the C(uid) and version of the pod that was looked at. A new pod of the same name, as a
    C(StatefulSet) makes one, is never hit in its place.
  - Every run decides from what is there. A run that was ended half way is simply run again, and a second run over
    drained nodes changes nothing.
  - Nodes are never written to. Close them first, with M(goodput.fleet.node_gate) or C(kubectl cordon); the module
    refuses a node that is open, and stops when somebody opens it meanwhile.
options:
  nodes:
    description: Names of the nodes.
    type: list
    elements: str
    required: true
  policies:
    description:
      - What to do with pods. The first entry that takes a pod decides.
      - Pods in O(system_namespaces) stay whatever is said here. After the last entry comes V(wait) for everything.
    type: list
    elements: dict
    default: []
    suboptions:
      namespaces:
        description: Patterns of namespaces, such as V(team-*). C(*), C(?) and C([...]) have their usual meaning.
        type: list
        elements: str
        required: true
      selector:
        description: Labels that a pod must have, as C(kubectl -l) takes them.
        type: str
      action:
        description:
          - V(leave) lets the pod run and does not count it.
          - V(wait) waits until it has finished by itself.
          - V(evict) evicts it, at once or after O(policies[].after).
        type: str
        choices: [leave, wait, evict]
        required: true
      after:
        description:
          - How long a pod may still run before it is evicted, such as V(30m) or V(1h30m), or a number of seconds.
          - It counts from when the node's gate was set (see O(owner)), and from the beginning of this run when a node
            is only cordoned.
        type: str
      unmanaged:
        description:
          - Whether to evict pods that no controller would make anew. They are lost then. Else they block the drain.
          - What C(--force) is to C(kubectl drain).
        type: bool
        default: false
      local_data:
        description:
          - Whether to evict pods with C(emptyDir) or ephemeral volumes, whose content is lost. Else they block the
            drain.
          - What C(--delete-emptydir-data) is to C(kubectl drain).
        type: bool
        default: false
      grace_seconds:
        description: Seconds that an evicted pod gets to end. The default is what the pod itself asks for.
        type: int
      force:
        description:
          - Whether pods that a budget keeps from being evicted are deleted after O(policies[].force_after), past the
            budget. The eviction is always asked for first.
        type: bool
        default: false
      force_after:
        description:
          - How long after the eviction of a pod was due it may be deleted by force. Needed with O(policies[].force).
        type: str
      force_grace_seconds:
        description:
          - Seconds that a pod gets to end when it is deleted by force. The default is what the pod itself asks for.
          - When given, it also cuts short the grace of a pod that has been ending for O(policies[].force_after).
          - V(0) removes the record of a pod whose own grace is over and whose node does not confirm that it ended. It
            may still be running there.
        type: int
  system_namespaces:
    description: Patterns of namespaces whose pods stay.
    type: list
    elements: str
    default:
      - kube-system
      - kube-public
      - kube-node-lease
      - gpu-operator
      - network-operator
      - node-feature-discovery
      - nvsentinel
      - goodput-system
  gpus:
    description:
      - UUIDs of GPUs. Only pods that use one of them are drained, as before the reset of one GPU.
      - What a pod uses is read from O(devices), else from the pod's annotation C(dgxc.nvidia.com/devices). A pod that
        requests GPUs, MIG slices or resource claims without such data counts as using every GPU, and so does one
        whose data names fewer GPUs than it requests. A pod without any GPU stays.
    type: list
    elements: str
  devices:
    description:
      - Device ids by pod, C(namespace/name), as the kubelet's pod-resources interface gives them.
    type: dict
    default: {}
  owner:
    description:
      - Owner of the gate that the drain belongs to, such as V(quarantine). The node must have it, and deadlines count
        from when it was set. Without it, any gate or cordon will do, and of several gates the newest counts.
    type: str
  allow_open:
    description: Drain a node that is open, too. What is evicted may then be placed on it again.
    type: bool
    default: false
  wait:
    description:
      - Go on until all nodes are drained or O(timeout) has passed. Otherwise what is due is evicted once.
    type: bool
    default: true
  timeout:
    description: Seconds that the whole call may take, for all nodes together.
    type: int
    default: 600
  interval:
    description: Seconds between two looks, at most.
    type: float
    default: 5
  fail_on_remaining:
    description:
      - Fail when a node is not drained at the end. Without O(wait) and in check mode, only nodes that cannot be drained
        at all count, such as one that does not exist or is open.
    type: bool
    default: true
extends_documentation_fragment:
  - goodput.fleet.attributes
  - goodput.fleet.attributes.action_group
  - goodput.fleet.kubernetes
attributes:
  check_mode:
    support: full
    details:
      - Tells which pods would be evicted at once, which stay and why, and what blocks.
  diff_mode:
    support: full
  idempotent:
    support: full
seealso:
  - module: goodput.fleet.node_gate
"""

EXAMPLES = r"""
- name: Wait for the jobs on two nodes to finish, for four hours at most
  goodput.fleet.node_drain:
    nodes: [gpu-0003, gpu-0007]
    timeout: 14400
    interval: 30

- name: Show what a drain would do
  goodput.fleet.node_drain:
    nodes: [gpu-0003]
    policies: "{{ drain_policies }}"
  check_mode: true
  diff: true

- name: Drain for maintenance, by policy
  goodput.fleet.node_drain:
    nodes: "{{ groups['rack_12'] }}"
    owner: maintenance
    timeout: 3600
    policies:
      - namespaces: [inference]
        action: evict
        local_data: true
      - namespaces: [training, "team-*"]
        selector: preemptible=true
        action: evict
        unmanaged: true
        local_data: true
      - namespaces: [training, "team-*"]
        action: evict
        after: 30m
        local_data: true
      - namespaces: [monitoring]
        action: leave

- name: Past a budget that never allows anything, an hour after the eviction was due
  goodput.fleet.node_drain:
    nodes: [gpu-0003]
    policies:
      - namespaces: [sandbox]
        action: evict
        force: true
        force_after: 1h

- name: Free one GPU for a reset and leave the others at work
  goodput.fleet.node_drain:
    nodes: [gpu-0003]
    gpus: [GPU-455d8f70-2051-db6c-0430-ffc457bff834]
    policies:
      - namespaces: ["*"]
        action: evict
        local_data: true
"""

RETURN = r"""
nodes:
  description: The nodes, in the order given.
  returned: when the cluster could be reached
  type: list
  elements: dict
  contains:
    node:
      description: Name of the node.
      type: str
      returned: success
      sample: gpu-0003
    status:
      description:
        - V(drained), nothing is left that counts.
        - V(draining), pods are being evicted or are ending.
        - V(waiting), only pods are left that are waited for.
        - V(blocked), a pod cannot be evicted without somebody's help.
        - V(failed), the node or a pod of it cannot be drained at all.
      type: str
      returned: success
      sample: blocked
    reason:
      description: What is to be said of the node as a whole. Empty when there is nothing.
      type: str
      returned: success
      sample: it has no gate and is not cordoned, so pods would come back; hold it with node_gate first
    code:
      description:
        - Why the node as a whole failed, V(not-found), V(open), V(replaced), or the code of the API server's error.
          Empty when it did not.
      type: str
      returned: success
      sample: open
    changed:
      description: Whether a pod of it was evicted or deleted, or would be.
      type: bool
      returned: success
      sample: true
    evicted:
      description: Pods whose eviction was accepted, or would be asked for in check mode.
      type: list
      elements: str
      returned: success
      sample: [inference/llm-7c9d8-x2x7p]
    forced:
      description: Pods that were deleted by force.
      type: list
      elements: str
      returned: success
      sample: []
    remaining:
      description: Pods that are still there and count.
      type: list
      elements: dict
      returned: success
      contains:
        pod:
          description: Namespace and name of the pod.
          type: str
          returned: success
          sample: inference/llm-7c9d8-q8z4k
        state:
          description: V(waiting), V(evicting), V(terminating), V(blocked) or V(failed).
          type: str
          returned: success
          sample: blocked
        why:
          description: Why it is still there.
          type: str
          returned: success
          sample: PodDisruptionBudget llm allows no disruption (2 healthy, 2 needed)
        pdb:
          description: Names of the C(PodDisruptionBudget) objects in its namespace that select it.
          type: list
          elements: str
          returned: success
          sample: [llm]
        policy:
          description: The policy that took it.
          type: str
          returned: success
          sample: policies[0]
    stays:
      description: Pods that are left where they are.
      type: list
      elements: dict
      returned: success
      contains:
        pod:
          description: Namespace and name of the pod.
          type: str
          returned: success
          sample: gpu-operator/nvidia-dcgm-exporter-mmz2c
        why:
          description: Why it stays.
          type: str
          returned: success
          sample: pod of DaemonSet nvidia-dcgm-exporter
counts:
  description: How many nodes are in each state.
  returned: when the cluster could be reached
  type: dict
  sample: {total: 2, drained: 1, draining: 0, waiting: 0, blocked: 1, failed: 0}
gpus:
  description:
    - The GPUs that the drain was for. Whatever concerns more than them, such as a reboot, needs a drain without
      O(gpus) first.
  returned: when O(gpus) is given
  type: list
  elements: str
  sample: [GPU-455d8f70-2051-db6c-0430-ffc457bff834]
waited:
  description: Seconds that the drain took.
  returned: when the cluster could be reached
  type: float
  sample: 41.5
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.connection import (
    KUBERNETES_ARGS,
    connect,
)
from ansible_collections.goodput.fleet.plugins.module_utils.gates import drain_policy, drain_request
from ansible_collections.goodput.fleet.plugins.module_utils.gates.drain import Drain, counts, describe, diff
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import FleetError

POLICY = {
    "namespaces": {"type": "list", "elements": "str", "required": True},
    "selector": {"type": "str"},
    "action": {"type": "str", "choices": list(drain_policy.ACTIONS), "required": True},
    "after": {"type": "str"},
    "unmanaged": {"type": "bool", "default": False},
    "local_data": {"type": "bool", "default": False},
    "grace_seconds": {"type": "int"},
    "force": {"type": "bool", "default": False},
    "force_after": {"type": "str"},
    "force_grace_seconds": {"type": "int"},
}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **KUBERNETES_ARGS,
            "nodes": {"type": "list", "elements": "str", "required": True},
            "policies": {"type": "list", "elements": "dict", "default": [], "options": POLICY},
            "system_namespaces": {
                "type": "list",
                "elements": "str",
                "default": list(drain_policy.SYSTEM_NAMESPACES),
            },
            "gpus": {"type": "list", "elements": "str"},
            "devices": {"type": "dict", "default": {}},
            "owner": {"type": "str"},
            "allow_open": {"type": "bool", "default": False},
            "wait": {"type": "bool", "default": True},
            "timeout": {"type": "int", "default": 600},
            "interval": {"type": "float", "default": 5},
            "fail_on_remaining": {"type": "bool", "default": True},
        },
        supports_check_mode=True,
    )
    params = module.params
    try:
        request = drain_request.read(params)
        client = connect(params, module.no_log_values, attempts=3, read_timeout=30)
        # not repeated by itself: the drain does that, within its own time
        writer = connect(params, module.no_log_values, attempts=1, read_timeout=30)
        drain = Drain(client, writer, request)
        results, waited = (drain.preview(), 0.0) if module.check_mode else drain.run()
    except FleetError as error:
        module.fail_json(**error.as_result())
    change = diff(results)
    for result in results:
        del result["before"]
    tally = counts(results)
    answer = {
        "changed": any(result["changed"] for result in results),
        "nodes": results,
        "counts": tally,
        "waited": round(waited, 1),
        "diff": change,
        **({"gpus": request.gpus} if request.gpus else {}),
    }
    bad = tally["total"] - tally["drained"] if params["wait"] and not module.check_mode else tally["failed"]
    if params["fail_on_remaining"] and bad:
        module.fail_json(msg=describe(results), **answer)
    module.exit_json(**answer)


if __name__ == "__main__":
    main()
