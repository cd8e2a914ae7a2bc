#!/usr/bin/python
# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Resolve criteria to a RecipeLock."""

from __future__ import annotations

DOCUMENTATION = r"""
module: recipe
short_description: Resolve criteria to a pinned, self-contained recipe lock
version_added: 1.0.0
description:
  - Finds the overlays of a catalogue that match the criteria, merges them in the order of their specificity, and writes
    the result as a C(RecipeLock) - charts with exact versions, values, manifests, constraints, checks, dependency edges
    and digests. The same inputs give the same bytes.
  - Everything stated must have an effect. A criterion that no applied overlay carries, two overlays that contradict
    each other, a version that floats, or a typing error is refused with file, line and what would be right.
  - Can also read a lock back and prove that nobody edited it, and hold a cluster's snapshot against its constraints.
extends_documentation_fragment:
  - goodput.fleet.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  criteria:
    description:
      - What the recipe is for, as a map of dimension to value, such as C(service), C(accelerator), C(os), C(intent) and
        C(platform). The catalogue declares dimensions and values; M(goodput.fleet.recipe_info) lists them.
      - A dimension that is left out, empty or V(any) matches only overlays that leave it open as well.
      - Exactly one of O(criteria) and O(lock) is required.
    type: dict
  lock:
    description:
      - A lock to verify instead of resolving one, as the path of its file or as data.
    type: raw
  catalog:
    description:
      - Directories of the catalogue's layers, in order. A layer has C(registry/), C(overlays/), C(values/) and
        C(manifests/). Names are unique over all layers; a site changes what is shipped with overlays of its own.
      - The word V(shipped) stands for the catalogue of this collection, which is also the default.
    type: list
    elements: path
  dest:
    description:
      - File to write the lock to. Nothing is written without it. The file is replaced at once, and only when its
        content differs. Its directory must exist.
    type: path
  charts:
    description:
      - Directory of chart archives named C(NAME-VERSION.tgz). The digest of each archive goes into the lock; a chart
        without archive gives a warning.
    type: path
  helm_binary:
    description:
      - The C(helm) program. With O(charts), every chart is rendered with the lock's values, so that the lock also has
        the workloads, CRDs and images that will be there. By default C(helm) is looked for on the C(PATH), and
        rendering is left out where there is none.
    type: path
  snapshot:
    description:
      - A C(Snapshot) of the cluster, as the path of its file or as data. Every constraint of the lock is judged on it,
        on the worst node, and all violations are reported at once. The lock is not written when one is violated.
    type: raw
  fail_on_unknown:
    description:
      - Whether a constraint that cannot be judged, because its fact is not in the snapshot, fails as well.
    type: bool
    default: true
notes:
  - Reads and writes files of the host that the task runs on. Run it on the controller, where the shipped catalogue is.
seealso:
  - module: goodput.fleet.recipe_info
author:
  - goodput.fleet contributors (@goodput)
"""

EXAMPLES = r"""
- name: Pin what an inference cluster on EKS gets
  goodput.fleet.recipe:
    criteria: {service: eks, accelerator: h100, os: ubuntu, intent: inference, platform: dynamo}
    dest: clusters/prod/recipe.lock.yaml

- name: The same with the overlays of a site, chart digests and what the charts render
  goodput.fleet.recipe:
    criteria: {service: eks, accelerator: h100, os: ubuntu, intent: training, platform: kubeflow}
    catalog: [shipped, "{{ playbook_dir }}/catalog"]
    charts: /srv/charts
    dest: clusters/prod/recipe.lock.yaml

- name: Does this cluster meet the recipe's constraints?
  goodput.fleet.recipe:
    lock: clusters/prod/recipe.lock.yaml
    snapshot: clusters/prod/snapshot.yaml
"""

RETURN = r"""
lock:
  description: The RecipeLock document.
  returned: success
  type: dict
  sample: {"apiVersion": "goodput.fleet/v1alpha1", "kind": "RecipeLock", "metadata": {"name": "eks-h100"}, "spec": {}}
name:
  description: The criteria's values joined, in the order of the dimensions.
  returned: success
  type: str
  sample: eks-h100-ubuntu-inference-dynamo
digest:
  description: The lock's digest, over everything that it says.
  returned: success
  type: str
  sample: sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
path:
  description: The file that holds the lock.
  returned: when O(dest) or a file in O(lock) is given
  type: str
  sample: clusters/prod/recipe.lock.yaml
overlays:
  description: Names of the overlays and mixins that were applied, in order.
  returned: success
  type: list
  elements: str
  sample: [base, os-ubuntu, eks, h100-eks]
components:
  description: The components in deployment order.
  returned: success
  type: list
  elements: dict
  sample: [{"name": "cert-manager", "namespace": "cert-manager", "tier": 0, "version": "v1.20.2"}]
  contains:
    name:
      description: The component's name.
      returned: always
      type: str
      sample: cert-manager
    namespace:
      description: The namespace it is installed in.
      returned: always
      type: str
      sample: cert-manager
    tier:
      description: The length of the longest chain of dependencies below it.
      returned: always
      type: int
      sample: 0
    version:
      description: The chart's version.
      returned: when it has a chart
      type: str
      sample: v1.20.2
constraints:
  description: Every constraint as judged on the snapshot.
  returned: when O(snapshot) is given
  type: list
  elements: dict
  sample:
    - name: K8s.server.version
      value: ">= 1.34"
      severity: error
      status: pass
      reason: v1.36.3 satisfies >= 1.34
      found: v1.36.3
      nodes: []
problems:
  description: Every fault, with file, line, field and hint.
  returned: failure
  type: list
  elements: dict
  sample:
    - code: unknown-value
      message: service 'ekss' is not known
      hint: did you mean 'eks'?
      path: criteria.service
      severity: error
"""

import os
import tempfile

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.goodput.fleet.plugins.module_utils.recipes import charts, preflight
from ansible_collections.goodput.fleet.plugins.module_utils.recipes.catalog import load_catalog
from ansible_collections.goodput.fleet.plugins.module_utils.recipes.resolve import resolve
from ansible_collections.goodput.fleet.plugins.module_utils.records import lockfile, snapshots, yamltree
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import (
    FleetError,
    InvalidDocument,
    Unavailable,
)


def run(module: AnsibleModule) -> dict:
    params = module.params
    if params["lock"] is not None:
        lock = lockfile.load_lock(params["lock"])
    else:
        lock = resolve(load_catalog(params["catalog"] or []), params["criteria"])
    if params["charts"]:
        helm = params["helm_binary"] or module.get_bin_path("helm")
        lock, missing = charts.add_charts(lock, params["charts"], helm)
        for text in missing:
            module.warn(text)
    result = summary(lock)
    if params["snapshot"] is not None:
        result["constraints"] = preflight.judge(lock, snapshots.load(params["snapshot"]))
        errors, warnings = preflight.violations(result["constraints"], params["fail_on_unknown"])
        for warning in warnings:
            module.warn(str(warning))
        if errors:
            error = preflight.Violated(errors)
            module.fail_json(**error.as_result(), constraints=result["constraints"])
    if params["dest"] is not None:
        result |= write(module, params["dest"], yamltree.dump(lock))
    elif isinstance(params["lock"], str):
        result["path"] = params["lock"]
    return result


def summary(lock: dict) -> dict:
    components = {one["name"]: one for one in lock["spec"]["components"]}
    return {
        "changed": False,
        "lock": lock,
        "name": lock["metadata"]["name"],
        "digest": lock["metadata"]["digest"],
        "overlays": [one["name"] for one in lock["spec"]["overlays"]],
        "components": [
            {key: components[name][key] for key in ("name", "namespace", "tier")}
            | ({"version": components[name]["chart"]["version"]} if "chart" in components[name] else {})
            for name in lock["spec"]["order"]
        ],
    }


def write(module: AnsibleModule, path: str, text: str) -> dict:
    """Replace the file at once when its content differs. Check mode fails where writing would."""
    target = target_of(path)
    before = yamltree.read(target) if os.path.exists(target) else ""
    changed = before != text
    if changed and not os.access(os.path.dirname(target), os.W_OK):
        raise Unavailable("cannot be written: its directory is not writable", file=path, path="dest")
    if changed and not module.check_mode:
        handle, scratch = tempfile.mkstemp(dir=module.tmpdir)
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
        try:
            module.atomic_move(scratch, target)
        except Exception as error:  # it raises nothing narrower; what it refuses on another host fails by itself
            raise Unavailable(f"cannot be written: {error}", file=path, path="dest") from error
    diff = {"before": before, "after": text, "before_header": path, "after_header": path}
    return {"changed": changed, "path": path, **({"diff": diff} if module._diff else {})}


def target_of(path: str) -> str:
    """The file behind dest, links followed: a rename would put a file in place of a link, or of a device."""
    if not path.strip() or "\0" in path:
        raise InvalidDocument(
            f"{path!r} is not the path of a file", path="dest", hint="without dest nothing is written"
        )
    target = os.path.realpath(path)
    if os.path.isdir(target):
        raise InvalidDocument("is a directory, not a file", file=path, path="dest", hint="name a file in it")
    if os.path.exists(target) and not os.path.isfile(target):
        raise InvalidDocument("is a device, a pipe or a socket, not a file", file=path, path="dest")
    if not os.path.isdir(os.path.dirname(target)):
        raise FleetError("the directory of dest does not exist", file=path, code="no-directory", hint="create it first")
    return target


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "criteria": {"type": "dict"},
            "lock": {"type": "raw"},
            "catalog": {"type": "list", "elements": "path"},
            "dest": {"type": "path"},
            "charts": {"type": "path"},
            "helm_binary": {"type": "path"},
            "snapshot": {"type": "raw"},
            "fail_on_unknown": {"type": "bool", "default": True},
        },
        mutually_exclusive=[("criteria", "lock")],
        required_one_of=[("criteria", "lock")],
        supports_check_mode=True,
    )
    try:
        result = run(module)
    except FleetError as error:
        module.fail_json(**error.as_result())
    module.exit_json(**result)


if __name__ == "__main__":
    main()
