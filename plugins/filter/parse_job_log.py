# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: parse_job_log
short_description: What a job failed of, by the logs of its ranks
version_added: 1.1.0
description:
  - Reads logs of PyTorch, NCCL, JAX, DeepSpeed, Megatron-LM, C(torchrun), C(mpirun), Slurm, Ray and Kubernetes, with
    the labels of launchers before each line, and tells the class of the failure, whom it points at, and the lines that
    decided.
  - Class and blame are two answers. A rank that waited for others is never blamed, whatever it printed; what
    C(torchrun) calls the root cause is not believed.
  - Of several attempts in one log only the last counts.
  - What lines mean is in the catalogue, in C(signatures/*.yaml).
options:
  _input:
    description:
      - The log, as one text or as a list of lines. It may hold the lines of several ranks.
      - Or a list of logs, each with C(log), a text or a list of lines, and C(rank) and C(pod), whose it is.
    type: raw
    required: true
  exits:
    description:
      - How processes ended, as the scheduler knows it, each with C(rank), C(exitCode) and C(at), the time in UTC.
      - They decide where the logs say nothing.
    type: list
    elements: dict
    default: []
  world:
    description:
      - How many ranks the job has, for logs that hold the lines of several ranks.
      - Ranks that printed nothing are only then known.
    type: int
  year:
    description: The year of times that stand in the log without one.
    type: int
  catalog:
    description:
      - Directories of the catalogue's layers, in order.
      - The word V(shipped) stands for the catalogue of this collection.
    type: list
    elements: path
    default: [shipped]
author:
  - goodput.fleet contributors (@goodput)
"""

EXAMPLES = r"""
- name: Read the log of a run
  ansible.builtin.slurp:
    src: /data/run/slurm-4711.out
  register: log

- name: Why did it fail?
  ansible.builtin.debug:
    msg: "{{ found.class }}: {{ found.lines | map(attribute='text') | first | default('nothing in the log') }}"
  vars:
    found: "{{ log.content | b64decode | goodput.fleet.parse_job_log(world=512) }}"

- name: Whom do the logs of two pods point at?
  ansible.builtin.debug:
    msg: "{{ ([{'rank': 0, 'pod': 'train-0', 'log': first}, {'rank': 1, 'pod': 'train-1', 'log': second}]
      | goodput.fleet.parse_job_log).blame }}"
"""

RETURN = r"""
_value:
  description: What the logs say.
  type: dict
  contains:
    id:
      description:
        - The signature that decided. C(exit) and a number where only an exit code tells; empty where nothing does.
      type: str
    class:
      description:
        - V(hardware), V(network), V(transient-software), V(user-code), V(storage), V(preemption) or V(unknown).
      type: str
    action:
      description: What the catalogue advises for this signature alone.
      type: str
    blame:
      description:
        - Whom it points at, as C(kind), and C(ranks), C(hosts), C(pods) and C(devices) as far as the logs name them.
        - The kind is V(none), V(emitter), V(peer), V(pair), V(named-node), V(named-rank), V(store-host) or V(clique).
      type: dict
    cascade:
      description: Whether only lines were found that follow from another failure.
      type: bool
    confidence:
      description: How sure it is, from 0 to 1.
      type: float
    lines:
      description:
        - The lines that decided, each with C(rank), C(pod), C(number) from 1, and C(text), at most 300 characters,
          without secrets.
      type: list
      elements: dict
    exception:
      description: The Python exception, as C(type), C(message), and the C(file), C(line) and C(step) of the program.
      type: dict
    exitCode:
      description: The exit code of the rank that failed first, or the first that is known.
      type: int
    firstFailing:
      description: The rank that failed first.
      type: int
    waiting:
      description: Ranks that waited for others.
      type: list
      elements: int
    missing:
      description: Ranks that neither waited nor failed by what they printed.
      type: list
      elements: int
    cascades:
      description: How many lines follow from another failure.
      type: int
    attempts:
      description: How many attempts the log holds.
      type: int
    progress:
      description: C(firstStep), C(lastStep), C(lastStepAt) in UTC, and C(stepSeconds), the median.
      type: dict
    others:
      description: Other signatures that were found, each with C(id), C(rank) and C(count).
      type: list
      elements: dict
"""

from ansible_collections.goodput.fleet.plugins.action.recipe import with_shipped
from ansible_collections.goodput.fleet.plugins.module_utils.jobs import classify, signatures
from ansible_collections.goodput.fleet.plugins.plugin_utils.filters import guarded


@guarded
def parse_job_log(value, exits=None, world=None, year=None, catalog=None):
    options = {"exits": _exits(exits), "world": _number("world", world), "year": _number("year", year)}
    return classify.classify(_sources(value), signatures.load_catalog(with_shipped(catalog)), options)


def _sources(value):
    if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
        for one in value:
            if "log" not in one:
                raise ValueError(
                    f"a log of a list is {{rank, pod, log}}, this one has only {', '.join(one) or 'nothing'}"
                )
        return [(_number("rank", one.get("rank")), str(one.get("pod") or ""), _log(one["log"])) for one in value]
    return [(None, "", _log(value))]


def _log(value):
    if isinstance(value, (str, bytes)) or (isinstance(value, list) and all(isinstance(line, str) for line in value)):
        return value
    raise TypeError(f"takes a text, a list of lines or a list of logs, not {type(value).__name__}")


def _exits(value):
    for one in value or []:
        if not isinstance(one, dict) or not isinstance(one.get("exitCode"), int):
            raise TypeError(f"exits are maps with rank, exitCode and at, not {one!r}")
    return value or []


def _number(name, value):
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not str(value).isdigit():
        raise ValueError(f"{name} is {value!r}, not a number")
    return int(value)


class FilterModule:
    def filters(self):
        return {"parse_job_log": parse_job_log}
