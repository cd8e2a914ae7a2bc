#!/usr/bin/python
# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: drift_info
short_description: Tell whether a cluster has left its recipe
version_added: 1.0.0
description:
  - Compares a RecipeLock with a live cluster or with a stored Snapshot, or one Snapshot with another.
  - Reads only. Sees releases of Helm, Argo CD and Flux with their chart versions and values, images of workloads,
    CRDs, and on nodes the GPU driver, kernel, operating system, kubelet, container runtime and GPU resources.
  - Images and CRDs are compared with what the installed release itself rendered, so that one changed value is one
    finding. Where no record of Helm can be seen, they are compared with what the lock recorded.
  - On nodes the worst one counts. A node is compared with what the lock fixes, with the lock's constraints, and with
    the other nodes of its pool (or of its accelerator and instance type); all nodes at fault are named.
  - What cannot be read or told is C(unknown), never taken for a match.
author:
  - goodput.fleet contributors (@goodput)
extends_documentation_fragment:
  - goodput.fleet.kubernetes
  - goodput.fleet.attributes
  - goodput.fleet.attributes.info_module
  - goodput.fleet.attributes.action_group
options:
  lock:
    description:
      - The RecipeLock, as a path or as data. Required unless O(baseline) is given.
    type: raw
  snapshot:
    description:
      - A Snapshot to look at instead of the live cluster, as a path (YAML or JSON) or as data. No cluster is contacted.
    type: raw
  baseline:
    description:
      - A Snapshot to compare with instead of a lock, as a path or as data.
    type: raw
  namespaces:
    description:
      - Namespaces of the live cluster in which releases and workloads are read.
      - The default is those of the lock's components, or those that O(baseline) covers.
    type: list
    elements: str
    default: []
  ignore:
    description:
      - JMESPath expressions over a finding (see RV(report)); a finding for which one is true is accepted.
      - A part that is unknown can be accepted too. It looks like a finding with C(code) V(unknown) and the part's name
        as C(path).
      - RV(report) tells how often each rule matched. A rule that matched nothing is a finding of severity V(info).
    type: list
    elements: str
    default: []
  node_keys:
    description:
      - Keys of labels and taints that the nodes of one group have to share, as globs.
      - The default is none, since labels and taints differ between nodes for many good reasons.
    type: list
    elements: str
    default: []
  fail_on:
    description:
      - Results with which the task fails. Bad input always fails.
    type: list
    elements: str
    choices: [drifted, unknown]
    default: [drifted, unknown]
  name:
    description:
      - The cluster's name in the report. The default is the name of the snapshot, of the kubeconfig's context, or the
        server's address.
    type: str
notes:
  - "Codes of findings and what they mean. Severity V(error): V(release-missing) no release is installed;
    V(release-failed) the last install or upgrade failed; V(chart-name), V(chart-version) another chart or version;
    V(value-differs), V(value-missing), V(value-added) a Helm value is not the recipe's; V(workload-missing),
    V(container-missing) something that was rendered is gone; V(image-differs) a container runs another image;
    V(crd-missing), V(crd-differs) a CRD is absent or not its chart's; V(node-not-as-locked) a node does not have what
    the lock fixes; V(constraint-violated) a constraint does not hold (with the constraint's severity);
    V(gpus-not-allocatable) a node offers fewer GPUs than it has."
  - "Severity V(warning): V(release-pending), V(release-out-of-sync), V(release-suspended) the deployer has not finished
    or says so; V(image-unverifiable) only a digest is known where the recipe names a tag; V(node-odd-one-out) a node
    differs from its group; V(node-group-split) a group has no majority. Between snapshots also V(server-changed),
    V(node-added), V(node-removed), V(node-changed), V(release-added), V(release-changed), V(workload-added),
    V(crd-added)."
  - "Severity V(info), which leaves the cluster in sync: V(container-added) as sidecar injectors do;
    V(node-state-changed) readiness or schedulability changed between snapshots; V(ignore-rule-unused) an ignore rule
    matched nothing."
requirements:
  - jmespath, jsonschema, PyYAML (Python packages)
seealso:
  - module: goodput.fleet.cluster_snapshot_info
"""

EXAMPLES = r"""
- name: Has this cluster left its recipe?
  goodput.fleet.drift_info:
    lock: clusters/prod-1/recipe.lock.yaml
    context: prod-1

- name: The same without access to the cluster
  goodput.fleet.drift_info:
    lock: clusters/prod-1/recipe.lock.yaml
    snapshot: snapshots/prod-1.json

- name: What changed since last week, without failing
  goodput.fleet.drift_info:
    baseline: snapshots/prod-1-last-week.json
    snapshot: snapshots/prod-1.json
    fail_on: []
  register: change

- name: Accept the debug image of one component
  goodput.fleet.drift_info:
    lock: clusters/prod-1/recipe.lock.yaml
    ignore:
      - code == 'image-differs' && component == 'kube-prometheus-stack' && contains(found, 'debug')
"""

RETURN = r"""
status:
  description:
    - V(in_sync), V(drifted) or V(unknown). Drift that was found outranks what is unknown; RV(report) tells both.
  returned: when the input was good
  type: str
  sample: drifted
exit_code:
  description: 0 for V(in_sync), 3 for V(drifted), 4 for V(unknown), 1 for bad input. For scripts around the playbook.
  returned: always
  type: int
  sample: 3
findings:
  description: The findings of the report, errors first.
  returned: when the input was good
  type: list
  elements: dict
  sample:
    - code: node-not-as-locked
      severity: error
      component: gpu-operator
      path: nodes/driver
      expected: 580.105.08
      found: 575.57.08
      nodes: [gpu-7]
      message: "driver is 575.57.08 on 1 node, gpu-operator pins 580.105.08: gpu-7"
      hint: update the node, then certify it again
counts:
  description: Number of findings by severity.
  returned: when the input was good
  type: dict
  sample: {error: 1, warning: 0, info: 0}
recertify:
  description: Nodes to certify again, because something that a certification vouches for differs.
  returned: when the input was good
  type: list
  elements: str
  sample: [gpu-7]
report:
  description: The DriftReport document, with the state of every part and the use of each ignore rule.
  returned: when the input was good
  type: dict
  sample: {apiVersion: goodput.fleet/v1alpha1, kind: DriftReport, metadata: {name: prod-1}}
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
from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.releases import READERS
from ansible_collections.goodput.fleet.plugins.module_utils.drift import run
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import FleetError


def main() -> None:
    strings = {"type": "list", "elements": "str", "default": []}
    module = AnsibleModule(
        argument_spec={
            **KUBERNETES_ARGS,
            "lock": {"type": "raw"},
            "snapshot": {"type": "raw"},
            "baseline": {"type": "raw"},
            "namespaces": strings,
            "ignore": strings,
            "node_keys": {**strings, "no_log": False},  # names of labels
            "fail_on": {
                "type": "list",
                "elements": "str",
                "choices": ["drifted", "unknown"],
                "default": ["drifted", "unknown"],
            },
            "name": {"type": "str"},
        },
        mutually_exclusive=[("lock", "baseline"), ("snapshot", "namespaces")],
        required_one_of=[("lock", "baseline")],
        supports_check_mode=True,
    )
    options = {key: module.params[key] for key in ("lock", "snapshot", "baseline", "ignore", "node_keys", "name")}
    try:
        report = run.report(
            lambda: connect(module.params, module.no_log_values),
            READERS,
            namespaces=module.params["namespaces"],
            **options,
        )
    except FleetError as error:
        module.fail_json(exit_code=1, **error.as_result())
    spec = report["spec"]
    result = {"exit_code": spec["exitCode"], "report": report}
    result.update((key, spec[key]) for key in ("status", "findings", "counts", "recertify"))
    if spec["status"] in module.params["fail_on"]:
        module.fail_json(msg=run.summary(report), **result)
    module.exit_json(changed=False, msg=run.summary(report), **result)


if __name__ == "__main__":
    main()
