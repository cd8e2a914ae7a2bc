#!/usr/bin/python
# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_snapshot_info
short_description: Read a cluster's stable facts into a Snapshot document
version_added: 1.0.0
description:
  - Reads the server's version, nodes, installed releases (of Helm, Argo CD and Flux), workloads' images and CRDs of a
    Kubernetes cluster into one document that can be stored, compared with a recipe or with another snapshot.
  - Only what stays the same while nobody changes the cluster is kept. Two snapshots taken one after the other differ
    in nothing but the time at which they were taken.
  - Only C(get) and C(list) requests are made. The rights it needs are in C(gitops/rbac) of this collection.
  - What may not be read makes its part C(unknown), with the reason; the rest is read.
  - Values of releases that look like secrets are replaced by short salted digests.
author:
  - goodput.fleet contributors (@goodput)
extends_documentation_fragment:
  - goodput.fleet.kubernetes
  - goodput.fleet.attributes
  - goodput.fleet.attributes.info_module
  - goodput.fleet.attributes.action_group
options:
  namespaces:
    description:
      - Namespaces in which releases and workloads are read.
      - The default is everywhere, which needs the right to list Secrets in the whole cluster. With namespaces, that
        right is needed in these only.
    type: list
    elements: str
    default: []
  name:
    description:
      - The cluster's name in the snapshot. The default is the kubeconfig's context, else the server's address.
    type: str
seealso:
  - module: goodput.fleet.drift_info
"""

EXAMPLES = r"""
- name: Read the cluster
  goodput.fleet.cluster_snapshot_info:
    context: prod-1
    namespaces: [gpu-operator, monitoring]
  register: now

- name: Keep it
  ansible.builtin.copy:
    content: "{{ now.snapshot | to_nice_json }}"
    dest: snapshots/prod-1.json
    mode: "0644"
"""

RETURN = r"""
snapshot:
  description: The Snapshot document.
  returned: success
  type: dict
  sample:
    apiVersion: goodput.fleet/v1alpha1
    kind: Snapshot
    metadata: {name: prod-1, takenAt: "2026-11-29T12:00:00Z"}
    spec:
      parts: {server: {status: ok}, nodes: {status: ok}}
      server: {version: v1.36.3, platform: linux/amd64}
unknown:
  description: The parts that could not be read, with the reason.
  returned: success
  type: dict
  sample: {crds: "forbidden: cannot list customresourcedefinitions.apiextensions.k8s.io at cluster scope"}
"""

import time

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.connection import (
    KUBERNETES_ARGS,
    connect,
)
from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.releases import READERS
from ansible_collections.goodput.fleet.plugins.module_utils.drift import observe
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import FleetError


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **KUBERNETES_ARGS,
            "namespaces": {"type": "list", "elements": "str", "default": []},
            "name": {"type": "str"},
        },
        supports_check_mode=True,
    )
    try:
        client = connect(module.params, module.no_log_values)
        snapshot = observe.take(
            client,
            READERS,
            module.params["namespaces"],
            name=module.params["name"],
            taken_at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        )
    except FleetError as error:
        module.fail_json(**error.as_result())
    parts = snapshot["spec"]["parts"].items()
    unknown = {part: state["reason"] for part, state in parts if state["status"] != "ok"}
    module.exit_json(changed=False, snapshot=snapshot, unknown=unknown)


if __name__ == "__main__":
    main()
