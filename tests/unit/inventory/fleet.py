"""Nodes of a made-up fleet, and the plugin as Ansible's loader makes it."""

from __future__ import annotations

import yaml
from ansible import constants
from ansible.plugins.doc_fragments import constructed, inventory_cache
from ansible_collections.goodput.fleet.plugins.doc_fragments import kubernetes
from ansible_collections.goodput.fleet.plugins.inventory import gpu_nodes

PLUGIN = "goodput.fleet.gpu_nodes"


def a_plugin() -> gpu_nodes.InventoryModule:
    """With its options defined. The loader itself cannot be used once collections have been imported without it."""
    texts = [gpu_nodes.DOCUMENTATION]
    texts += [fragment.ModuleDocFragment.DOCUMENTATION for fragment in (kubernetes, constructed, inventory_cache)]
    options = {key: option for text in texts for key, option in yaml.safe_load(text)["options"].items()}
    constants.config.initialize_plugin_configuration_definitions("inventory", PLUGIN, options)
    plugin = gpu_nodes.InventoryModule()
    plugin._load_name = PLUGIN
    return plugin


def nodes(number: int) -> dict[str, dict]:
    found = {}
    for index in range(number):
        name = f"gpu-{index:04d}"
        labels = {f"example.com/label-{each}": f"value-{each}" for each in range(30)}
        labels |= {"nvidia.com/gpu.present": "true", "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
        labels |= {"goodput.fleet/rack": f"rack-{index // 16}", "nvidia.com/gpu.clique": f"clique.{index // 18}"}
        conditions = [
            {"type": f"Condition{each}", "status": "False", "reason": "x", "message": "y"} for each in range(12)
        ]
        conditions.append({"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready"})
        found[name] = {
            "metadata": {"name": name, "labels": labels, "annotations": {"a": "b"}, "resourceVersion": "7"},
            "spec": {"providerID": f"metal://{name}"},
            "status": {
                "capacity": {"nvidia.com/gpu": "8"},
                "conditions": conditions,
                "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
                "nodeInfo": {"bootID": f"boot-{index}"},
            },
        }
    return found
