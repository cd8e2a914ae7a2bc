#!/usr/bin/python
# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: bundle_info
short_description: Verify a bundle and tell what is in it
version_added: 1.0.0
author:
  - goodput.fleet contributors (@goodput)
description:
  - Checks that a folder is exactly what M(goodput.fleet.bundle) rendered. Every file is listed in C(bundle.sha256) with
    its digest, the lock file included, and nothing else is there. A changed, missing or added file, a symbolic link and
    an unknown folder are problems.
  - With a public key, the bundle must be signed by it.
  - Nothing is written, a read-only folder will do.
options:
  path:
    description:
      - Folder of the bundle.
    type: path
    required: true
  public_key:
    description:
      - Ed25519 public key in PEM form. A bundle without a signature by it is invalid.
      - Mutually exclusive with O(public_key_path).
    type: str
  public_key_path:
    description:
      - Path of a file that holds the key.
    type: path
  fail_on_invalid:
    description:
      - Fail when the bundle is not valid.
    type: bool
    default: true
extends_documentation_fragment:
  - goodput.fleet.attributes
  - goodput.fleet.attributes.info_module
requirements:
  - cryptography (Python package; only to check a signature)
seealso:
  - module: goodput.fleet.bundle
"""

EXAMPLES = r"""
- name: Fail unless the bundle is what was rendered and signed
  goodput.fleet.bundle_info:
    path: clusters/prod-1/bundle
    public_key_path: /etc/goodput/signing.pub

- name: Look at a bundle
  goodput.fleet.bundle_info:
    path: clusters/prod-1/bundle
    fail_on_invalid: false
  register: prod_bundle
"""

RETURN = r"""
valid:
  description: Whether the folder is what was rendered, and signed where a key was given.
  returned: always
  type: bool
  sample: true
problems:
  description: Everything that is wrong with it.
  returned: always
  type: list
  elements: dict
  contains:
    code:
      description:
        - V(no-bundle), V(bad-list), V(extra-file), V(extra-folder), V(missing-file), V(changed-file), V(symlink),
          V(not-a-file), V(unreadable), V(not-signed), V(bad-signature), V(bad-about), or a code of the lock file.
      type: str
      returned: always
      sample: extra-file
    message:
      description: What is wrong.
      type: str
      returned: always
      sample: is not listed
    file:
      description: The file or folder, seen from the bundle.
      type: str
      returned: when one is concerned
      sample: 004-gpu-operator/templates/evil.yaml
    hint:
      description: What would be right.
      type: str
      returned: when there is one
      sample: "remove it: a deployer would apply it"
deployer:
  description: What installs the bundle; null when that cannot be read.
  returned: always
  type: str
  sample: flux
recipe:
  description: Name of the recipe.
  returned: always
  type: str
  sample: eks-h100-ubuntu-inference-dynamo
lock:
  description: Digest of the lock file in the bundle.
  returned: always
  type: str
  sample: sha256:0f3c8c1a1d7f0f64b1d0fb5ae5ecb2bb8a4c4a4a13c3a3fb7b8e0ea2a7e1c111
rendered_from:
  description: Digest of the lock file that was rendered. It differs where components were left out or sources mirrored.
  returned: always
  type: str
  sample: sha256:0f3c8c1a1d7f0f64b1d0fb5ae5ecb2bb8a4c4a4a13c3a3fb7b8e0ea2a7e1c111
components:
  description: The components, in the order of installation.
  returned: always
  type: list
  elements: dict
  contains:
    name:
      description: Name of the component.
      type: str
      returned: always
      sample: gpu-operator
    namespace:
      description: Its namespace.
      type: str
      returned: always
      sample: gpu-operator
    release:
      description: Its Helm release.
      type: str
      returned: always
      sample: gpu-operator
    tier:
      description: How many components in a row come before it.
      type: int
      returned: always
      sample: 2
    chart:
      description: Its chart; null for a component that has only manifests.
      type: str
      returned: always
      sample: gpu-operator
    version:
      description: Version of the chart.
      type: str
      returned: always
      sample: v26.7.0
    repository:
      description: Repository of the chart.
      type: str
      returned: always
      sample: https://helm.ngc.nvidia.com/nvidia
order:
  description: Names of the components, in the order of installation.
  returned: always
  type: list
  elements: str
  sample: [cert-manager, gpu-operator]
signed:
  description: Whether there is a signature.
  returned: always
  type: bool
  sample: true
signature:
  description: V(valid) or V(invalid) where a key was given, V(unchecked) where not, V(absent) where there is none.
  returned: always
  type: str
  sample: valid
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.goodput.fleet.plugins.module_utils.bundles.inspect import inspect
from ansible_collections.goodput.fleet.plugins.module_utils.records import yamltree
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import FleetError


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "required": True},
            "public_key": {"type": "str", "no_log": False},
            "public_key_path": {"type": "path", "no_log": False},
            "fail_on_invalid": {"type": "bool", "default": True},
        },
        mutually_exclusive=[("public_key", "public_key_path")],
        supports_check_mode=True,
    )
    params = module.params
    try:
        key = params["public_key"]
        if params["public_key_path"] is not None:
            key = yamltree.read(params["public_key_path"])
        found = inspect(params["path"], key)
    except FleetError as error:
        module.fail_json(**error.as_result())
    problems = found.pop("problems")
    result = {"changed": False, **found, "problems": [problem.as_dict() for problem in problems]}
    if problems and params["fail_on_invalid"]:
        module.fail_json(msg="\n".join(map(str, problems)), **result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
