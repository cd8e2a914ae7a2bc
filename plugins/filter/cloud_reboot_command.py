# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: cloud_reboot_command
short_description: The command that reboots the instance behind a node
version_added: 1.1.0
description:
  - Takes the provider id of a node, C(spec.providerID), and gives the command line of the cloud's own tool that reboots
    the instance, as a list for C(argv).
  - The commands are C(aws ec2 reboot-instances), C(gcloud compute instances reset), C(az vm restart) and, for members
    of scale sets, C(az vmss restart). None of them waits.
  - An id that is no instance of this cloud is an error.
positional: cloud
options:
  _input:
    description: The provider id.
    type: str
    required: true
  cloud:
    description: The cloud.
    type: str
    required: true
    choices: [aws, gcp, azure]
author:
  - goodput.fleet contributors (@goodput)
"""

EXAMPLES = r"""
- name: Reboot the instance of a node
  ansible.builtin.command:
    argv: "{{ gpu_node.provider_id | goodput.fleet.cloud_reboot_command('aws') }}"
  delegate_to: localhost
  changed_when: true
"""

RETURN = r"""
_value:
  description: The command.
  type: list
  elements: str
  sample: [aws, ec2, reboot-instances, --region, us-east-1, --instance-ids, i-0123456789abcdef0]
"""

from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle import providers
from ansible_collections.goodput.fleet.plugins.plugin_utils.filters import guarded


@guarded
def cloud_reboot_command(value, cloud):
    return providers.reboot(str(cloud), str(value or ""))


class FilterModule:
    def filters(self):
        return {"cloud_reboot_command": cloud_reboot_command}
