# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: gpu_nodes
short_description: GPU nodes of a Kubernetes cluster as inventory
version_added: 1.1.0
description:
  - Every GPU node of the cluster is a host, with the address it has in the cluster as C(ansible_host).
  - What is known of the node is in the variable C(gpu_node), see the notes.
  - The file's name has to end with C(gpu_nodes.yml), C(gpu_nodes.yaml), C(.goodput.yml) or C(.goodput.yaml).
notes:
  - The groups are C(gpu_nodes), with every host; C(gated) and C(gate_OWNER), closed by a gate of this collection;
    C(external_hold), closed by somebody else, such as a person's cordon; C(open), closed by nobody; C(not_ready), where
    the condition Ready is V(False) or V(Unknown); C(accelerator_PRODUCT); C(rack_NAME); C(nvlink_domain_NAME);
    C(zone_NAME); C(certified) and C(uncertified).
  - In the names of groups, characters that Ansible does not allow become underscores.
  - A node is certified while its annotation C(goodput.fleet/certified) holds a JSON object whose C(bootId) is the
    node's current boot id, and whose C(driver) is the driver that the node's labels tell. After a reboot or a driver
    upgrade it is uncertified.
  - "C(gpu_node) has C(name), C(open), C(gates), C(external) (who else holds the node), C(ready), C(unschedulable),
    C(boot_id), C(driver), C(accelerator), C(rack), C(nvlink_domain), C(zone), C(gpus) (C(capacity) and
    C(allocatable)), C(certified), C(certification) (why, or why not), C(provider_id), C(labels), C(taints) and
    C(conditions) (the status of each)."
extends_documentation_fragment:
  - goodput.fleet.kubernetes
  - constructed
  - inventory_cache
options:
  plugin:
    description: The name of this plugin.
    type: str
    required: true
    choices: [goodput.fleet.gpu_nodes, gpu_nodes]
  selector:
    description:
      - Label selector of the nodes.
      - Without it, the nodes that have GPUs, or whose labels say so.
    type: str
  rack_labels:
    description: Labels that name a node's rack. The first that a node has counts.
    type: list
    elements: str
    default:
      - goodput.fleet/rack
      - topology.kubernetes.io/rack
      - cloud.google.com/gce-topology-subblock
      - topology.k8s.aws/network-node-layer-3
      - oci.oraclecloud.com/rdma.local_block_id
  nvlink_domain_labels:
    description: Labels that name a node's NVLink domain.
    type: list
    elements: str
    default: [nvidia.com/gpu.clique]
  zone_labels:
    description: Labels that name a node's zone.
    type: list
    elements: str
    default: [topology.kubernetes.io/zone]
  address_types:
    description: Kinds of address that may become C(ansible_host), in order. An empty list sets none.
    type: list
    elements: str
    default: [InternalIP]
  pool_taints:
    description:
      - Keys of taints, as globs, that reserve pools of the site's for their workloads and therefore close no node.
      - V(nvidia.com/gpu), V(dedicated), V(sku) and C(node-role.kubernetes.io/*) are among those known already.
    type: list
    elements: str
    default: []
author:
  - goodput.fleet contributors (@goodput)
"""

EXAMPLES = r"""
# fleet.gpu_nodes.yml, with the current context of the kubeconfig
plugin: goodput.fleet.gpu_nodes

---
# train.gpu_nodes.yml: one pool, kept for five minutes, with groups of the site's own
plugin: goodput.fleet.gpu_nodes
kubeconfig: /etc/kubernetes/reader.conf
selector: pool=train
rack_labels: [example.com/rack]
cache: true
cache_plugin: ansible.builtin.jsonfile
cache_connection: /var/cache/ansible
cache_timeout: 300
groups:
  reduced: gpu_node.gpus.allocatable < gpu_node.gpus.capacity
keyed_groups:
  - prefix: driver
    key: gpu_node.driver
compose:
  ansible_user: "'root'"
"""

import functools
import hashlib
import json
import os

from ansible.errors import AnsibleError, AnsibleParserError
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.inventory import BaseInventoryPlugin, Cacheable, Constructable, to_safe_group_name
from ansible.utils.unsafe_proxy import wrap_var
from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.connection import (
    KUBERNETES_ARGS,
    connect,
)
from ansible_collections.goodput.fleet.plugins.module_utils.gates import labels
from ansible_collections.goodput.fleet.plugins.module_utils.gates.fleet import is_gpu_node
from ansible_collections.goodput.fleet.plugins.module_utils.gates.hosts import host
from ansible_collections.goodput.fleet.plugins.module_utils.gates.kubernetes import read_nodes
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import FleetError, nearest

try:
    from ansible.template import trust_as_template
except ImportError:  # before 2.19 every text is trusted

    def trust_as_template(value):
        return value


ENDS = ("gpu_nodes.yml", "gpu_nodes.yaml", ".goodput.yml", ".goodput.yaml")
ALL = "gpu_nodes"
SHAPE = ("rack_labels", "nvlink_domain_labels", "zone_labels", "address_types", "pool_taints")


class InventoryModule(BaseInventoryPlugin, Constructable, Cacheable):
    NAME = "goodput.fleet.gpu_nodes"

    def verify_file(self, path):
        return super().verify_file(path) and path.endswith(ENDS)

    def parse(self, inventory, loader, path, cache=True):
        super().parse(inventory, loader, path, cache)
        self._refuse_unknown(path, self._read_config_data(path))
        self._groups = {}
        for each in self._hosts(path, cache):
            self._add(each)

    def _refuse_unknown(self, path, given):
        """A misspelt selector would make an inventory of other nodes."""
        known = dict(self.option_definitions)
        names = {*known, *(alias for option in known.values() for alias in option.get("aliases") or ())}
        for key in given:
            if key not in names:
                raise AnsibleParserError(f"{path}: unknown option {str(key)!r} ({nearest(key, names)})")

    def _hosts(self, path, cache):
        """From the cache where that is allowed and has them, else from the API."""
        connection = {name: self._option(name) for name in KUBERNETES_ARGS}
        shape = {name: self.get_option(name) for name in SHAPE}
        selector = self.get_option("selector") or None
        key = self._key(path, [connection, shape, selector])
        if cache and self.get_option("cache"):
            try:
                return self._cache[key]
            except KeyError:
                pass
        try:
            if selector:
                labels.parse(selector)
        except ValueError as error:
            raise AnsibleParserError(f"{path}: selector: {error}") from error
        try:
            client = connect(connection)
            nodes = read_nodes(client, selector)
        except FleetError as error:
            raise AnsibleParserError(f"{path}: {error}") from error
        hosts = [host(node, **shape) for node in nodes.values() if selector or is_gpu_node(node)]
        if self.get_option("cache"):
            self._cache[key] = hosts
        return hosts

    def _option(self, name):
        """As modules have it: the file's, else the environment's."""
        value = self.get_option(name)
        if value is None:
            _fallback, names = KUBERNETES_ARGS[name]["fallback"]
            value = next((os.environ[each] for each in names if os.environ.get(each)), None)
        if value is None:
            return None
        try:
            return boolean(value) if KUBERNETES_ARGS[name]["type"] == "bool" else value
        except TypeError as error:
            raise AnsibleParserError(f"{name}: {error}") from error

    def _key(self, path, given):
        """Of another cluster, selector or set of labels nothing is taken over. The digest keeps tokens out of names."""
        text = json.dumps(given, sort_keys=True, default=str)
        return f"{self.get_cache_key(path)}_{hashlib.sha256(text.encode()).hexdigest()[:16]}"

    def _add(self, found):
        name = self.inventory.add_host(found["name"], group=self._group(ALL))
        variables = {"gpu_node": _no_template(found["facts"])}
        if found["address"]:
            variables["ansible_host"] = _no_template(found["address"])
        for key, value in variables.items():
            self.inventory.set_variable(name, key, value)
        for group in found["groups"]:
            self.inventory.add_child(self._group(group), name)
        self._construct(name, variables)

    def _group(self, name):
        if name not in self._groups:
            self._groups[name] = self.inventory.add_group(to_safe_group_name(name))
        return self._groups[name]

    def _construct(self, name, variables):
        strict = self.get_option("strict")
        try:
            if self.get_option("compose"):
                self._set_composite_vars(self.get_option("compose"), variables, name, strict=strict)
            if self.get_option("groups"):
                self._add_host_to_composed_groups(self.get_option("groups"), variables, name, strict=strict)
            if self.get_option("keyed_groups"):
                self._add_host_to_keyed_groups(self.get_option("keyed_groups"), variables, name, strict=strict)
        except AnsibleError as error:
            raise AnsibleParserError(f"{name}: {error}") from error


def _no_template(value):
    """What a node says of itself is never a template, so what looks like one is marked. The rest is trusted, which
    changes nothing but how ansible-core 2.19 shows it in --list."""
    if isinstance(value, dict):
        return {key: _no_template(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_no_template(item) for item in value]
    return _text(value) if isinstance(value, str) else value


@functools.lru_cache(maxsize=65536)
def _text(value):
    """Nodes of a fleet say much the same."""
    return wrap_var(value) if any(mark in value for mark in ("{{", "{%", "{#")) else trust_as_template(value)
