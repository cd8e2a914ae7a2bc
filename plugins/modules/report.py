#!/usr/bin/python
# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: report
short_description: Write drift, component health, installs, certifications and job recovery as report files
version_added: 1.0.0
author:
  - goodput.fleet contributors (@goodput)
description:
  - Writes what other modules of this collection found for people (Markdown, one HTML page) and for machines (JSON,
    JUnit, SARIF).
  - Files are written only when their bytes change. They hold no time of writing, so that the same findings give the
    same files.
  - What could not be determined is never reported as passed. It is an C(error) in JUnit, and a result of level
    C(error) in SARIF.
  - Of a certification, JUnit has a case for each node and test. Only a pass is passed. What failed or hung is a
    C(failure), a test that was blocked, skipped or not measured is an C(error), and one that passed for want of a bound
    is C(skipped).
  - Of job recovery, JUnit has a case for each incident. One that nobody has to do anything about any more is passed, or
    C(skipped) where its job was given back to its owner. One that waits is an C(error), one that somebody has to look
    at a C(failure).
requirements:
  - jsonschema (Python package), with O(drift)
  - jinja2 (Python package), for the HTML page
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
    details:
      - RV(files) and RV(changed_files) name what is written.
  idempotent:
    support: full
extends_documentation_fragment:
  - goodput.fleet.attributes
options:
  dest:
    description:
      - Directory for the files, on the host that runs the module. It is made when it is not there.
    type: path
    required: true
  name:
    description:
      - Name of the files that hold everything, without their suffixes C(.md), C(.html), C(.junit.xml) and C(.sarif).
    type: str
    default: report
  title:
    description:
      - Title of the report. The default names the cluster.
    type: str
  formats:
    description:
      - What to write. V(json) writes each document as it is, to C(drift.json), C(health.json), C(install.json) and
        C(certification.json). Of O(recovery) it writes the incidents and the goodput that follow from it, to
        C(recovery.json).
    type: list
    elements: str
    choices: [html, json, junit, markdown, sarif]
    default: [json, markdown]
  drift:
    description:
      - A C(DriftReport), the RV(goodput.fleet.drift_info#module:report) of M(goodput.fleet.drift_info).
    type: dict
  health:
    description:
      - The result of M(goodput.fleet.component_health_info). The key C(name) may name the cluster.
    type: dict
  install:
    description:
      - What an installation did, or would do.
    type: dict
    suboptions:
      name:
        description: Name of the cluster.
        type: str
        default: ''
      status:
        description: How it ended. By default the worst step decides.
        type: str
        choices: [failed, ok, planned, unknown]
      facts:
        description: What else readers want to know, such as the recipe or the commit.
        type: dict
        default: {}
      steps:
        description:
          - The steps, in their order. Each is a dictionary with the key C(name).
          - Its C(status) is V(ok), V(changed), V(planned), V(skipped), V(failed) or V(unknown), by default V(ok).
            C(message) tells what happened, C(hint) what to do next.
        type: list
        elements: dict
        default: []
  certification:
    description:
      - The results document of a certification, such as the C(results.json) of its evidence.
      - The HTML page shows its bandwidth by message size and the values of its nodes as plots, and names the nodes
        that stand out.
    type: dict
    version_added: 1.1.0
  recovery:
    description:
      - What is known of jobs that failed and what was done about it. Time lines, the time to recovery, lost steps and
        goodput are reckoned from it. A time that is not known is left out, and is never taken for zero.
      - Times are in UTC, such as V(2026-03-06T09:34:56Z).
      - The HTML page shows a time line for each of the latest incidents, and where the GPU time went.
      - Texts of logs are cut, and what looks like a credential is taken out of them.
    type: dict
    version_added: 1.1.0
    suboptions:
      name:
        description: Name of the cluster.
        type: str
        default: ''
      until:
        description: When this was looked at. Without it nothing is known of jobs that still run after their last step.
        type: str
      attempts:
        description:
          - The attempts of jobs, of those that failed as well as of those that came after, as
            M(goodput.fleet.job_recovery) returns them.
          - Each has C(key), C(job) (with C(namespace), C(name) and C(uid)), C(number) and C(state) at least.
        type: list
        elements: dict
      decisions:
        description: The C(RecoveryDecision) documents.
        type: list
        elements: dict
      actions:
        description:
          - What was done. Each has C(attempt) (key of the attempt that had failed), C(status) and C(at), when the
            restart was requested. Without it, that is when the next attempt was created.
        type: list
        elements: dict
        default: []
      gates:
        description:
          - Gates, each with C(node), C(owner), C(reason), C(since), and C(until) once it is gone. The
            RV(goodput.fleet.node_gate_info#module:nodes) of M(goodput.fleet.node_gate_info) will do.
        type: list
        elements: dict
        default: []
      drains:
        description: Drains, each with C(node), C(status), C(startedAt) and C(finishedAt).
        type: list
        elements: dict
        default: []
      repairs:
        description: C(RepairRequest) documents.
        type: list
        elements: dict
        default: []
      phases:
        description:
          - What attempts spent their time on, where their programs tell. Each has C(attempt) (its key), C(from), C(to)
            and C(class), which is V(deviceInit), V(trainingPrep), V(programStartup), V(dataLoading),
            V(checkpointSave), V(checkpointRestore), V(custom), or V(excluded) for time that is not to count.
        type: list
        elements: dict
        default: []
  source:
    description:
      - File in the repository that SARIF results are shown at, such as C(clusters/prod-1/recipe.lock.yaml). GitHub
        shows only results with a file.
    type: str
    default: ''
seealso:
  - module: goodput.fleet.drift_info
  - module: goodput.fleet.component_health_info
  - module: goodput.fleet.job_recovery
"""

EXAMPLES = r"""
- name: Compare the cluster with its recipe
  goodput.fleet.drift_info:
    lock: clusters/prod-1/recipe.lock.yaml
  register: drift

- name: Report what was found
  goodput.fleet.report:
    dest: reports/prod-1
    formats: [html, json, junit, markdown, sarif]
    drift: "{{ drift.report }}"
    source: clusters/prod-1/recipe.lock.yaml

- name: Show what a certification found
  goodput.fleet.report:
    dest: reports/acceptance
    formats: [html, json, junit, markdown]
    certification: "{{ lookup('ansible.builtin.file', 'evidence/acceptance-3f1b2c4d5e6f/results.json') | from_json }}"

- name: Show how jobs recovered, and what that cost
  goodput.fleet.report:
    dest: reports/recovery
    formats: [html, json, markdown]
    recovery:
      name: prod-1
      until: "{{ now(utc=true, fmt='%Y-%m-%dT%H:%M:%SZ') }}"
      attempts: "{{ recovery.attempts }}"
      decisions: "{{ recovery.decisions }}"
      gates: "{{ gates.nodes }}"

- name: Show what an installation did
  goodput.fleet.report:
    dest: reports/prod-1
    name: install
    formats: [html]
    install:
      name: prod-1
      facts:
        Recipe: h100-eks-ubuntu-inference-dynamo
      steps:
        - name: gpu-operator
          status: changed
          message: upgraded to v26.7.0
"""

RETURN = r"""
verdict:
  description: V(pass), V(fail) or V(unknown), over everything that was reported.
  returned: success
  type: str
  sample: fail
files:
  description: Paths of the report files by format. With V(json), one for each document.
  returned: success
  type: list
  elements: str
  sample: [reports/prod-1/drift.json, reports/prod-1/report.md]
changed_files:
  description: Names of the files whose bytes changed.
  returned: success
  type: list
  elements: str
  sample: [report.md]
counts:
  description: How many things were looked at, by verdict. What counts as V(note) is worth knowing, but no fault.
  returned: success
  type: dict
  sample: {fail: 2, unknown: 0, note: 1, pass: 14}
problems:
  description: Everything that is wrong with the input.
  returned: failure
  type: list
  elements: dict
  sample:
    - code: missing-key
      message: "'components' must be a list"
      path: health
      hint: give the module's whole result
      severity: error
"""

import os

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.goodput.fleet.plugins.module_utils.jobs import recovery_account
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import FleetError
from ansible_collections.goodput.fleet.plugins.module_utils.reports import files
from ansible_collections.goodput.fleet.plugins.module_utils.reports.model import overall

INSTALL = {
    "name": {"type": "str", "default": ""},
    "status": {"type": "str", "choices": ["failed", "ok", "planned", "unknown"]},
    "facts": {"type": "dict", "default": {}},
    "steps": {"type": "list", "elements": "dict", "default": []},
}
RECOVERY = {
    "name": {"type": "str", "default": ""},
    "until": {"type": "str"},
    "attempts": {"type": "list", "elements": "dict"},
    "decisions": {"type": "list", "elements": "dict"},
    **{
        key: {"type": "list", "elements": "dict", "default": []}
        for key in ("actions", "gates", "drains", "repairs", "phases")
    },
}
DOCUMENTS = ("drift", "health", "install", "certification", "recovery")
FORMATS = ["html", "json", "junit", "markdown", "sarif"]
ARGUMENTS = {
    "dest": {"type": "path", "required": True},
    "name": {"type": "str", "default": "report"},
    "title": {"type": "str"},
    "formats": {"type": "list", "elements": "str", "choices": FORMATS, "default": ["json", "markdown"]},
    "drift": {"type": "dict"},
    "health": {"type": "dict"},
    "install": {"type": "dict", "options": INSTALL},
    "certification": {"type": "dict"},
    "recovery": {"type": "dict", "options": RECOVERY},
    "source": {"type": "str", "default": ""},
}


def main():
    module = AnsibleModule(ARGUMENTS, supports_check_mode=True, required_one_of=[DOCUMENTS])
    given = module.params
    documents = {key: given[key] for key in DOCUMENTS}
    try:
        if given["recovery"] is not None:
            documents["recovery"] = recovery_account.account(given["recovery"])
        parts = files.check(**documents)
        title = given["title"] or files.title(parts)
        made = files.render(title, given["formats"], given["name"], source=given["source"], **documents)
        changed = files.write(given["dest"], made, module.check_mode)
    except FleetError as error:
        module.fail_json(**error.as_result())
    module.exit_json(
        changed=bool(changed),
        changed_files=changed,
        files=sorted(os.path.join(given["dest"], name) for name in made),
        verdict=overall(parts),
        counts=files.counts(parts),
    )


if __name__ == "__main__":
    main()
