#!/usr/bin/python
# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: checkpoint_info
short_description: Find the newest complete checkpoint of a training run
version_added: 1.1.0
author:
  - goodput.fleet contributors (@goodput)
description:
  - Looks for checkpoints in a directory of the host it runs on, newest first, and tells which is the newest complete
    one, and which newer ones are torn and why.
  - Names, lengths, headers and metadata are read. No tensor is loaded, no pickle is executed, and nothing is changed.
  - Understands C(torch.distributed.checkpoint), Megatron-LM (distributed and legacy), NeMo 2, DeepSpeed, Hugging Face,
    Orbax, and files of safetensors or C(torch.save).
  - A checkpoint that cannot be looked at, that may still be being written, or whose form does not tell whether it is
    whole, is neither complete nor torn.
options:
  path:
    description:
      - The directory in which a run keeps its checkpoints, or one checkpoint.
      - Directories below are looked into, three levels deep. Checkpoints of several runs are taken for those of one.
    type: path
    required: true
  all:
    description: Look at older checkpoints as well, when the newest complete one is found.
    type: bool
    default: false
  limit:
    description: How many checkpoints are looked at.
    type: int
    default: 100
  settle:
    description:
      - Seconds that a checkpoint's newest file has to be old for the checkpoint to count as written, where its format
        has no file that is written last.
      - Good is twice the time that saving takes.
    type: float
    default: 60
  formats:
    description: Look for these formats only. The default is all.
    type: list
    elements: str
    choices:
      - pytorch-dcp
      - megatron-torch-dist
      - megatron-legacy
      - nemo2
      - deepspeed
      - huggingface
      - orbax
      - safetensors
      - torch-save
    default: []
  world_size:
    description:
      - How many ranks wrote the checkpoint, for formats with files per rank that do not tell themselves (the random
        states of Hugging Face, the optimizer partitions of DeepSpeed).
    type: int
extends_documentation_fragment:
  - goodput.fleet.attributes
  - goodput.fleet.attributes.info_module
notes:
  - A bit that flipped in a tensor is not seen; that takes loading the checkpoint.
  - A checkpoint is compared with the one before it. A file that the older one has and nothing accounts for is missing.
  - Where Orbax's arrays lie is read with C(libzstd.so.1) or Python 3.14. Without either, the data files of a step are
    only compared with those of the step before.
  - Links are followed as long as they stay in O(path).
requirements:
  - Python 3.10 or later, on the host
seealso:
  - plugin: goodput.fleet.newest_checkpoint
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Where can the run go on?
  goodput.fleet.checkpoint_info:
    path: /mnt/checkpoints/llm-7b
  register: found

- name: Say so
  ansible.builtin.debug:
    msg: >-
      {{ ('resume from step ' ~ found.newest.step) if found.newest else 'no complete checkpoint' }};
      torn: {{ found.torn | map(attribute='path') | list }}

- name: Stop when the tracker file names a checkpoint that is torn
  ansible.builtin.assert:
    that: found.pointers | selectattr('complete', 'false') | length == 0

- name: All Megatron checkpoints, saved by 512 ranks within two minutes each
  goodput.fleet.checkpoint_info:
    path: /mnt/checkpoints/llm-70b
    formats: [megatron-torch-dist]
    all: true
    settle: 240
"""

RETURN = r"""
newest:
  description: The newest complete checkpoint, as an element of RV(checkpoints). Null when there is none.
  returned: success
  type: dict
  sample:
    format: megatron-torch-dist
    step: 4000
    path: /mnt/checkpoints/llm-70b/iter_0004000
    complete: true
    why: ""
    files: 514
    bytes: 981467136000
    writtenAt: "2026-11-29T02:41:07Z"
torn:
  description: The checkpoints that were looked at and are not whole, newest first.
  returned: success
  type: list
  elements: dict
  sample:
    - format: megatron-torch-dist
      step: 4500
      path: /mnt/checkpoints/llm-70b/iter_0004500
      complete: false
      why: "metadata.json is missing: the save was not finalised"
      files: 371
      bytes: 705123456000
      writtenAt: "2026-11-29T03:02:55Z"
checkpoints:
  description: All that were looked at, newest first, by step, those without a step by time after them.
  returned: success
  type: list
  elements: dict
  contains:
    format:
      description: One of O(formats), or V(unknown) for the remains of a save that do not tell.
      returned: success
      type: str
      sample: pytorch-dcp
    step:
      description: The step in its name. Null where its name has none.
      returned: success
      type: int
      sample: 4000
    path:
      description:
        - Where it is on the host, below O(path) as it was given.
        - For a set of shards without a directory of its own, what their names have in common.
      returned: success
      type: str
      sample: /mnt/checkpoints/llm-7b/step_4000
    complete:
      description: Whether it is whole. Null when that cannot be told.
      returned: success
      type: bool
      sample: true
    why:
      description: What it lacks, or why it cannot be told. Empty for a complete one.
      returned: success
      type: str
      sample: ""
    files:
      description: How many files it has.
      returned: success
      type: int
      sample: 514
    bytes:
      description: Bytes of all of them.
      returned: success
      type: int
      sample: 981467136000
    writtenAt:
      description: When its newest file was written, in UTC. Null when it has none.
      returned: success
      type: str
      sample: "2026-11-29T02:41:07Z"
pointers:
  description:
    - Files beside the checkpoints that name the one which a trainer will load (C(latest_checkpointed_iteration.txt),
      C(latest)). Each with C(path), C(names) (the checkpoint's path), C(complete) and C(why).
    - C(complete) is false also where the file is empty or names what is not there, and where a file that the trainer
      needs is missing.
  returned: success
  type: list
  elements: dict
  sample:
    - path: /mnt/checkpoints/llm-70b/latest_checkpointed_iteration.txt
      names: /mnt/checkpoints/llm-70b/iter_0004000
      complete: true
      why: ""
unread:
  description: What below O(path) could not be looked at, and why.
  returned: success
  type: list
  elements: str
  sample: ["/mnt/checkpoints/llm-70b/old cannot be read: Permission denied"]
more:
  description: How many checkpoints were not looked at, all older than those that were.
  returned: success
  type: int
  sample: 37
problems:
  description: Everything that is wrong with the options.
  returned: when the path does not exist or cannot be read
  type: list
  elements: dict
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints import formats, survey
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import FleetError


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "required": True},
            "all": {"type": "bool", "default": False},
            "limit": {"type": "int", "default": survey.LIMIT},
            "settle": {"type": "float", "default": survey.SETTLE},
            "formats": {"type": "list", "elements": "str", "choices": list(formats.ALL), "default": []},
            "world_size": {"type": "int"},
        },
        supports_check_mode=True,
    )
    params = module.params
    try:
        answer = survey.survey(
            params["path"],
            every=params["all"],
            limit=params["limit"],
            settle=params["settle"],
            only=params["formats"],
            world_size=params["world_size"],
        )
    except FleetError as error:
        module.fail_json(**error.as_result())
    module.exit_json(changed=False, **answer)


if __name__ == "__main__":
    main()
