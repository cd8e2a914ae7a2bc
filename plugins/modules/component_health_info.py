#!/usr/bin/python
# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: component_health_info
short_description: Tell whether a recipe's components are healthy on a Kubernetes cluster
version_added: 1.0.0
author:
  - goodput.fleet contributors (@goodput)
description:
  - Judges every component of a lock file, or of a list given here, by what the Kubernetes API server says now. Nothing
    is started in the cluster and nothing is written; C(get) and C(list) are enough.
  - Everything that is violated is reported at once, each with the object, what is wrong and what to do next.
  - A component is V(healthy) when its workloads are rolled out for their current generation with at least one pod
    wanted, its CRDs are Established, no container or init container waits in an error such as C(CrashLoopBackOff) or
    C(ImagePullBackOff) whatever the phase of its pod, no pod is pending, failed or lost, and all checks of the
    catalogue hold.
  - It is V(unhealthy) when any of that is violated, or when nothing of it is there.
  - It is V(unknown) when nothing is violated but something could not be read, for example for lack of a right.
options:
  lock:
    description:
      - Path of a C(RecipeLock) file, whose components are judged.
      - Either O(lock) or O(components) is needed.
    type: path
  components:
    description:
      - The components to judge, for clusters that were not installed from a lock file.
    type: list
    elements: dict
    suboptions:
      name:
        description: What messages call the component.
        type: str
        required: true
      namespace:
        description: Namespace that it runs in.
        type: str
        required: true
      release:
        description: Its Helm release. The default is its O(components[].name).
        type: str
      crds:
        description: Names of CRDs that it must bring.
        type: list
        elements: str
        default: []
      health:
        description: What must be true for it.
        type: dict
        default: {}
        suboptions:
          workloads:
            description:
              - Workloads that must be there. Without this option those of the Helm release are found by its
                annotation C(meta.helm.sh/release-name) and the label C(app.kubernetes.io/instance).
            type: list
            elements: dict
            suboptions:
              kind:
                description: Kind of the workload.
                type: str
                choices: [Deployment, DaemonSet, StatefulSet, Job, CronJob, ReplicaSet]
                required: true
              name:
                description: Name of the workload.
                type: str
                required: true
              namespace:
                description: Its namespace, when that is not the component's.
                type: str
              optional:
                description: Whether it may be absent, or want no pod at all.
                type: bool
                default: false
          selector:
            description: Labels that narrow which pods and workloads belong to the component.
            type: dict
          checks:
            description: Conditions on any kind of object.
            type: list
            elements: dict
            default: []
            suboptions:
              name:
                description: What messages call the check.
                type: str
                required: true
              apiVersion:
                description: Group and version of the objects.
                type: str
                required: true
              kind:
                description: Kind of the objects.
                type: str
                required: true
              plural:
                description: Name of the kind in the URL. The API server is asked when it is not given.
                type: str
              namespaced:
                description: Whether the objects are in the component's namespace rather than cluster-wide.
                type: bool
                default: true
              namespace:
                description: Namespace of the objects, when that is not the component's.
                type: str
              selector:
                description: Labels that the objects must carry to be checked.
                type: dict
              expression:
                description: JMESPath that must give V(true) for an object. Anything else fails, null too.
                type: str
                required: true
              match:
                description: Whether it must be true for all objects or for any one.
                type: str
                choices: [all, any]
                default: all
              optional:
                description: Whether it is fine when there is no object at all.
                type: bool
                default: false
  only:
    description:
      - Names of components to judge, when not all are wanted.
    type: list
    elements: str
  wait:
    description:
      - Look again until all are healthy or O(timeout) has passed. The last state is what is reported.
    type: bool
    default: false
  timeout:
    description: Seconds to wait at most.
    type: int
    default: 300
  interval:
    description: Seconds between two looks.
    type: float
    default: 5
  fail_on_unhealthy:
    description:
      - Fail when a component is V(unhealthy) or V(unknown).
    type: bool
    default: true
extends_documentation_fragment:
  - goodput.fleet.attributes
  - goodput.fleet.attributes.info_module
  - goodput.fleet.attributes.action_group
  - goodput.fleet.kubernetes
requirements:
  - jmespath (Python package; only for checks)
seealso:
  - module: goodput.fleet.drift_info
"""

EXAMPLES = r"""
- name: Wait until everything that the recipe installs is healthy
  goodput.fleet.component_health_info:
    lock: clusters/prod-1/recipe.lock.yaml
    wait: true
    timeout: 900

- name: Look at one component, without failing
  goodput.fleet.component_health_info:
    lock: clusters/prod-1/recipe.lock.yaml
    only: [gpu-operator]
    fail_on_unhealthy: false
  register: gpu_operator

- name: Judge a component that was installed by hand
  goodput.fleet.component_health_info:
    components:
      - name: gpu-operator
        namespace: gpu-operator
        crds: [clusterpolicies.nvidia.com]
        health:
          checks:
            - name: cluster-policy-ready
              apiVersion: nvidia.com/v1
              kind: ClusterPolicy
              namespaced: false
              expression: status.state == 'ready'
"""

RETURN = r"""
healthy:
  description: Whether every component that was looked at is healthy.
  returned: when the cluster could be reached
  type: bool
  sample: false
components:
  description: The components, in the order of the lock file.
  returned: when the cluster could be reached
  type: list
  elements: dict
  contains:
    name:
      description: Name of the component.
      type: str
      returned: success
      sample: gpu-operator
    namespace:
      description: Its namespace.
      type: str
      returned: success
      sample: gpu-operator
    status:
      description: V(healthy), V(unhealthy) or V(unknown).
      type: str
      returned: success
      sample: unhealthy
    reasons:
      description: Everything that keeps it from being healthy.
      type: list
      elements: dict
      returned: success
      contains:
        code:
          description:
            - V(absent), V(terminating), V(stale-generation), V(rollout-incomplete), V(zero-desired), V(job-failed),
              V(job-incomplete), V(container-waiting), V(container-failed), V(pod-pending), V(pod-failed),
              V(pod-unknown), V(pod-not-ready), V(crd-absent), V(crd-not-established), V(check-failed),
              V(check-no-object); or, for what could not be read, V(denied), V(unavailable).
          type: str
          returned: success
          sample: container-waiting
        verdict:
          description: V(unhealthy), or V(unknown) for what could not be read.
          type: str
          returned: success
          sample: unhealthy
        object:
          description: Kind, namespace and name of the object.
          type: str
          returned: success
          sample: DaemonSet/gpu-operator/nvidia-driver-daemonset
        message:
          description: What is wrong with it.
          type: str
          returned: success
          sample: container driver waits in CrashLoopBackOff on 3 pods, first nvidia-driver-daemonset-x7k2p
        next:
          description: The command or step that leads on.
          type: str
          returned: success
          sample: kubectl -n gpu-operator logs nvidia-driver-daemonset-x7k2p -c driver --previous
        nodes:
          description: Nodes of the pods concerned.
          type: list
          elements: str
          returned: when pods are concerned
          sample: [gpu-0007]
        pods:
          description: How many pods share the fault.
          type: int
          returned: when pods are concerned
          sample: 3
counts:
  description: How many components are in each state.
  returned: when the cluster could be reached
  type: dict
  sample: {total: 12, healthy: 11, unhealthy: 1, unknown: 0}
waited:
  description: Seconds until the reported state was reached.
  returned: when the cluster could be reached
  type: float
  sample: 12.4
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.connection import (
    KUBERNETES_ARGS,
    connect,
)
from ansible_collections.goodput.fleet.plugins.module_utils.health.checks import compile_all
from ansible_collections.goodput.fleet.plugins.module_utils.health.evaluate import counts, describe, evaluate
from ansible_collections.goodput.fleet.plugins.module_utils.health.observe import observe
from ansible_collections.goodput.fleet.plugins.module_utils.health.wait import until_healthy
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import (
    FleetError,
    InvalidDocument,
    NotFound,
    nearest,
)
from ansible_collections.goodput.fleet.plugins.module_utils.records.lockfile import load_lock

KINDS = ("Deployment", "DaemonSet", "StatefulSet", "Job", "CronJob", "ReplicaSet")
WORKLOAD = {
    "kind": {"type": "str", "required": True, "choices": list(KINDS)},
    "name": {"type": "str", "required": True},
    "namespace": {"type": "str"},
    "optional": {"type": "bool", "default": False},
}
CHECK = {
    "name": {"type": "str", "required": True},
    "apiVersion": {"type": "str", "required": True},
    "kind": {"type": "str", "required": True},
    "plural": {"type": "str"},
    "namespaced": {"type": "bool", "default": True},
    "namespace": {"type": "str"},
    "selector": {"type": "dict"},
    "expression": {"type": "str", "required": True},
    "match": {"type": "str", "choices": ["all", "any"], "default": "all"},
    "optional": {"type": "bool", "default": False},
}
HEALTH = {
    "workloads": {"type": "list", "elements": "dict", "options": WORKLOAD},
    "selector": {"type": "dict"},
    "checks": {"type": "list", "elements": "dict", "default": [], "options": CHECK},
}
COMPONENT = {
    "name": {"type": "str", "required": True},
    "namespace": {"type": "str", "required": True},
    "release": {"type": "str"},
    "crds": {"type": "list", "elements": "str", "default": []},
    "health": {"type": "dict", "default": {}, "options": HEALTH},
}


def wanted(params: dict) -> tuple[list[dict], list[str] | None]:
    """All components, and the names of those to judge."""
    components = load_lock(params["lock"])["spec"]["components"] if params["lock"] is not None else params["components"]
    for option, given in (("components", components), ("only", params["only"])):
        if given == []:  # all of nothing would be healthy
            raise InvalidDocument("names no component, so nothing would be judged", path=option)
    names = [component["name"] for component in components]
    for name in params["only"] or []:
        if name not in names:
            raise NotFound(f"there is no component {name!r}", path="only", hint=nearest(name, names))
    compile_all(components)  # a malformed check is told before the cluster is asked
    return components, params["only"]


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **KUBERNETES_ARGS,
            "lock": {"type": "path"},
            "components": {"type": "list", "elements": "dict", "options": COMPONENT},
            "only": {"type": "list", "elements": "str"},
            "wait": {"type": "bool", "default": False},
            "timeout": {"type": "int", "default": 300},
            "interval": {"type": "float", "default": 5},
            "fail_on_unhealthy": {"type": "bool", "default": True},
        },
        required_one_of=[("lock", "components")],
        mutually_exclusive=[("lock", "components")],
        supports_check_mode=True,
    )
    params = module.params
    try:
        components, only = wanted(params)
        client = connect(params, module.no_log_values)
        looked_at = [component for component in components if only is None or component["name"] in only]
        results, waited = until_healthy(
            lambda: evaluate(components, observe(client, looked_at), only),
            timeout=params["timeout"] if params["wait"] else 0,
            interval=params["interval"],
        )
    except FleetError as error:
        module.fail_json(**error.as_result())
    tally = counts(results)
    healthy = tally["healthy"] == tally["total"]
    answer = {"healthy": healthy, "components": results, "counts": tally, "waited": round(waited, 1)}
    if params["fail_on_unhealthy"] and not healthy:
        module.fail_json(msg=describe(results), **answer)
    module.exit_json(changed=False, **answer)


if __name__ == "__main__":
    main()
