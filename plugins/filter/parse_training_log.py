# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: parse_training_log
short_description: Read the steps out of a training log
version_added: 1.1.0
description:
  - Takes logs of NeMo 2, Megatron-LM, Megatron-Bridge, Megatron-DeepSpeed and nanotron, also with the labels of
    C(srun), C(mpirun), C(torchrun), C(pdsh) or C(kubectl) before each line.
  - Gives the time of the steps in seconds, loss, TFLOP/s and tokens per second and GPU, and memory in bytes, whatever
    unit the framework prints.
  - Finds losses that are not numbers, steps that were skipped, pauses, restarts, and errors of CUDA, NCCL and the
    program.
options:
  _input:
    description: The log, as one text or as a list of lines.
    type: raw
    required: true
  warmup_steps:
    description: How many steps at the start, and after each restart, are left out of the metrics.
    type: int
    default: 0
  min_steps:
    description: With fewer measured steps there is a finding.
    type: int
  silence_seconds:
    description: A pause of this length between lines with times is a finding.
    type: int
    default: 300
author:
  - goodput.fleet contributors (@goodput)
"""

EXAMPLES = r"""
- name: Read the log of a run
  ansible.builtin.slurp:
    src: /data/run/train.log
  register: log

- name: How long does a step take?
  ansible.builtin.debug:
    msg: "{{ metrics['stepTimeSec.median'].value }} s, at most {{ metrics['stepTimeSec.p95'].value }} s in 95 % of them"
  vars:
    found: "{{ log.content | b64decode | goodput.fleet.parse_training_log(warmup_steps=10, min_steps=50) }}"
    metrics: "{{ found.runs[0].metrics }}"
"""

RETURN = r"""
_value:
  description: What the output holds.
  type: dict
  contains:
    tool:
      description: V(training).
      type: str
    toolVersion:
      description: The tool's version, none where it prints none.
      type: str
    complete:
      description: Every process that reports steps came to the last one, or the log says that the training is done.
      type: bool
    runs:
      description:
        - The steps that one process printed, by the launcher's label, each with C(test), C(framework), C(label),
          C(steps), C(firstStep), C(lastStep), C(totalSteps), C(warmupDropped), C(restarts), C(rows), C(gaps) and
          C(metrics).
        - C(rows) are at most 1,000 steps, spread evenly over the run.
        - C(metrics) holds C(avgStepTimeSec), C(stepTimeSec.median), C(stepTimeSec.p95), C(avgTFLOPsPerGPU),
          C(tokensPerSecPerGpu.median), C(peakMemoryBytes), C(goodputRatio), C(maxSilenceSec) and others, each with
          C(value) and C(unit). What the log does not print is absent.
      type: list
      elements: dict
    findings:
      description:
        - What is wrong without any threshold, each with C(code), C(severity), C(scope), C(host), C(entity),
          C(message), C(line), C(text) and C(category).
        - The first 1,000 of them.
      type: list
      elements: dict
    findingsTotal:
      description: How many findings there are.
      type: int
    unparsed:
      description: Lines that do not belong to the tool's output, each with C(line), C(text) and C(reason).
      type: list
      elements: dict
    unparsedTotal:
      description: How many such lines there are.
      type: int
    lines:
      description: How many lines the output has.
      type: int
"""

from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers import training
from ansible_collections.goodput.fleet.plugins.plugin_utils.filters import guarded


@guarded
def parse_training_log(value, warmup_steps=0, min_steps=None, silence_seconds=300):
    return training.parse(value, warmup_steps=warmup_steps, min_steps=min_steps, silence_seconds=silence_seconds)


class FilterModule:
    def filters(self):
        return {"parse_training_log": parse_training_log}
