#!/usr/bin/python
# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_health_info
short_description: Read the health of a node's GPUs through NVML
version_added: 1.1.0
author:
  - goodput.fleet contributors (@goodput)
description:
  - Asks the NVIDIA driver of the node it runs on, through NVML, how each GPU is, and gives what is wrong as
    HealthEvents. Nothing is changed, and no privilege is needed beyond that of C(nvidia-smi).
  - Looks at the recovery action that the driver asks for, memory errors, retired pages and remapped rows, what slows
    clocks down, temperature limits, PCIe lanes and generation, NVLinks, and whether the GPU joined its NVLink fabric.
  - A reading that a GPU or a driver does not have says nothing, it is not zero.
  - A GPU that is lost or needs a reset is sick, and the others are read all the same. Where the driver cannot be asked
    at all, because it is not loaded, the library is missing or a call does not return, the state is V(unknown) and no
    GPU is called sick.
options:
  library:
    description:
      - Path of C(libnvidia-ml.so.1), where the loader does not find it, such as below C(/run/nvidia/driver) when the
        GPU Operator installs the driver.
    type: path
  node:
    description:
      - What the cluster calls the node.
      - The default is the host's name in the inventory.
    type: str
  boot_id:
    description: Id of the node's current boot. The default is what its kernel says.
    type: str
  received:
    description: The time that events count as received, in UTC. The default is now, by the controller's clock.
    type: str
  expected_gpus:
    description: How many GPUs the node has. Fewer is a fault, none at all too.
    type: int
  expected_nvlinks:
    description:
      - How many NVLinks of each GPU are up.
      - The default is as many as the best GPU of the node has up, and all where the GPUs are part of a fabric.
    type: int
  timeout:
    description:
      - Seconds that one call of NVML may take.
      - A GPU whose call takes longer is left out, and the others are still read.
    type: float
    default: 15
  catalog:
    description:
      - Directories of the catalogue's layers on the controller, in order; their C(signals/*.yaml) say what states mean.
      - The word V(shipped) stands for the catalogue of this collection.
    type: list
    elements: path
    default: [shipped]
  tables:
    description: What O(catalog) holds, as data. Set by the action plugin.
    type: dict
extends_documentation_fragment:
  - goodput.fleet.attributes
  - goodput.fleet.attributes.info_module
requirements:
  - Python 3.10 or later, on the node
  - nvidia-ml-py (Python package, on the node)
"""

EXAMPLES = r"""
- name: How are the GPUs?
  goodput.fleet.gpu_health_info:
    expected_gpus: 8
  register: gpus

- name: Show what is wrong
  ansible.builtin.debug:
    msg: "{{ gpus.state }}: {{ gpus.events | map(attribute='spec.message') | list }}"

- name: The same with the driver that the GPU Operator installed
  goodput.fleet.gpu_health_info:
    library: /run/nvidia/driver/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1
"""

RETURN = r"""
state:
  description: V(sick), V(healthy), or V(unknown) when something could not be seen and nothing that was seen is sick.
  returned: success
  type: str
  sample: sick
events:
  description: HealthEvent documents. One healthy event when nothing is wrong.
  returned: success
  type: list
  elements: dict
  sample:
    - apiVersion: goodput.fleet/v1alpha1
      kind: HealthEvent
      metadata: {name: 3f1c2ab45d6e7f80}
      spec: {nodeName: gpu-0007, agent: nvml, checkName: GpuMemWatch, errorCode: [ROW_REMAP_FAILURE], isFatal: true}
gpus:
  description: The GPUs that NVML knows of, with the readings they have.
  returned: success
  type: list
  elements: dict
  contains:
    index:
      description: NVML's number of the GPU.
      returned: success
      type: int
      sample: 3
    uuid:
      description: Its UUID.
      returned: when it can be read
      type: str
      sample: GPU-3f1c2ab4-5d6e-7f80-91a2-b3c4d5e6f708
    pci:
      description: Its PCI address, without function.
      returned: when it can be read
      type: str
      sample: "0000:3b:00"
    serial:
      description: Its serial number.
      returned: when it has one
      type: str
      sample: "1650000000007"
    name:
      description: Its product name.
      returned: when it can be read
      type: str
      sample: NVIDIA H200
    state:
      description: V(sick), V(healthy) or V(unknown).
      returned: success
      type: str
      sample: sick
    fault:
      description: Why it cannot be read as a whole, as a code of the catalogue's table C(nvml).
      returned: when it cannot be read
      type: str
      sample: GPU_LOST
    failed:
      description: Readings that failed, with NVML's error.
      returned: when some failed
      type: dict
      sample: {Temperature: Unknown Error}
    recovery_action:
      description: What the driver asks for; 0 is nothing.
      returned: when the driver tells
      type: int
      sample: 0
    nvlinks_down:
      description: Numbers of the NVLinks that are down or not connected.
      returned: when there are any
      type: list
      elements: int
      sample: [4]
not_seen:
  description: GPUs that could not be read, each with C(index) and C(why).
  returned: success
  type: list
  elements: dict
  sample: [{index: 5, why: GPU is lost}]
driver_version:
  description: Version of the driver; empty where it could not be asked.
  returned: success
  type: str
  sample: 580.105.08
"""

import platform
import time
import traceback

from ansible.module_utils.basic import AnsibleModule, missing_required_lib
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import FleetError, InvalidDocument
from ansible_collections.goodput.fleet.plugins.module_utils.signals import gpu_tables, nvml
from ansible_collections.goodput.fleet.plugins.module_utils.signals.tables import Tables, load_catalog

BOOT_ID = "/proc/sys/kernel/random/boot_id"


def tables_of(params: dict) -> Tables:
    return gpu_tables.unpack(params["tables"]) if params["tables"] is not None else load_catalog(params["catalog"])


def checked(params: dict) -> None:
    for option, least in (("timeout", 0.01), ("expected_nvlinks", 0)):
        value = params[option]
        if value is not None and not least <= value <= 3600:
            raise InvalidDocument(f"{option} is {value:g}", path=option, hint=f"from {least:g} to 3600")


def boot_id() -> str | None:
    try:
        with open(BOOT_ID, encoding="ascii") as file:
            return file.read().strip() or None
    except OSError:
        return None


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "library": {"type": "path"},
            "node": {"type": "str"},
            "boot_id": {"type": "str"},
            "received": {"type": "str"},
            "expected_gpus": {"type": "int"},
            "expected_nvlinks": {"type": "int"},
            "timeout": {"type": "float", "default": 15},
            "catalog": {"type": "list", "elements": "path", "default": ["shipped"]},
            "tables": {"type": "dict"},
        },
        supports_check_mode=True,
    )
    params = module.params
    try:
        import pynvml  # noqa: F401
    except ImportError:
        module.fail_json(msg=missing_required_lib("nvidia-ml-py"), exception=traceback.format_exc())
    try:
        checked(params)
        result = nvml.parse(
            nvml.observe(params["library"], params["timeout"]),
            tables_of(params),
            node=params["node"] or platform.node(),
            boot_id=params["boot_id"] or boot_id(),
            received=params["received"] or time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            expected_gpus=params["expected_gpus"],
            expected_nvlinks=params["expected_nvlinks"],
        )
    except FleetError as error:
        module.fail_json(**error.as_result())
    module.exit_json(changed=False, **result)


if __name__ == "__main__":
    main()
