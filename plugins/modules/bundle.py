#!/usr/bin/python
# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
module: bundle
short_description: Render a recipe's lock file for the deployer that installs it
version_added: 1.0.0
author:
  - goodput.fleet contributors (@goodput)
description:
  - Writes a folder that Helm, Argo CD, Argo CD with Helm, Flux or Helmfile installs, from a C(RecipeLock) alone.
    Nothing is downloaded and nothing is applied to a cluster.
  - The same lock and the same options give the same bytes. Files that no longer belong to the bundle are removed, and
    C(changed) is V(true) only when bytes change.
  - The folder is closed. C(bundle.sha256) lists every other file in the form of C(sha256sum), and
    M(goodput.fleet.bundle_info) fails when a file was changed, added or taken away.
  - A run that was killed leaves no folder that verifies. The next run finishes it.
options:
  lock:
    description:
      - Path of the lock file that M(goodput.fleet.recipe) wrote, or its content as a dictionary.
      - A lock that was edited is refused, with everything that is wrong with it.
    type: raw
    required: true
  deployer:
    description:
      - What installs the bundle.
      - V(helm) writes values in numbered folders and C(plan.json), which the role C(goodput.fleet.install) executes.
      - V(argocd) writes an C(Application) for each release and one that holds them all.
      - V(argocd-helm) writes a chart that renders those Applications, so that a site sets repository, project and
        values when it installs the chart.
      - V(flux) writes a C(HelmRelease) for each release, and its sources.
      - V(helmfile) writes a C(helmfile.yaml).
    type: str
    choices: [helm, argocd, argocd-helm, flux, helmfile]
    required: true
  dest:
    description:
      - Folder of the bundle. It is made when it is not there.
      - It belongs to the bundle alone. What else is in a bundle's folder is removed; a folder that is not empty and no
        bundle is refused.
    type: path
    required: true
  repo_url:
    description:
      - URL of the Git repository that the bundle is committed to, without credentials.
      - Needed for O(deployer=argocd). For O(deployer=argocd-helm) it can be set when the chart is installed, too.
        Other deployers do not use it.
    type: str
  revision:
    description:
      - Branch, tag or commit that Argo CD reads from O(repo_url).
    type: str
    default: main
  path:
    description:
      - Folder of the bundle in the Git repository. V(.) is its root.
      - Needed with O(repo_url), and for O(deployer=flux) when the recipe has manifests, which are charts in this
        folder.
    type: str
  mirror:
    description:
      - Where charts and images come from in a cluster without a way out. The bundle, its lock file included, then names
        the mirror, and lists in C(mirror/) what to copy there, what was rewritten, and what still names its source.
    type: dict
    suboptions:
      charts:
        description:
          - The chart repository, such as V(oci://registry.example.com/charts) or V(https://charts.example.com).
        type: str
      images:
        description:
          - Registry and prefix, such as V(registry.example.com/mirror). Images keep their path behind it.
        type: str
  exclude:
    description:
      - Components to leave out. One that a remaining component depends on cannot be left out.
    type: list
    elements: str
    default: []
  signing_key:
    description:
      - An Ed25519 private key in PEM form, without a passphrase. C(bundle.sha256.sig) then holds the signature of
        C(bundle.sha256).
      - Mutually exclusive with O(signing_key_path).
    type: str
  signing_key_path:
    description:
      - Path of a file that holds the key.
    type: path
  options:
    description:
      - Settings of the deployers.
    type: dict
    default: {}
    suboptions:
      timeout:
        description: Seconds that one release may take.
        type: int
        default: 600
      timeouts:
        description: Seconds for releases of single components, by the component's name.
        type: dict
        default: {}
      argocd_namespace:
        description: Namespace of Argo CD's Applications.
        type: str
        default: argocd
      project:
        description: Argo CD project of the Applications.
        type: str
        default: default
      destination_server:
        description: API server that Argo CD installs to.
        type: str
        default: https://kubernetes.default.svc
      name_prefix:
        description: What the names of Applications begin with, where one Argo CD serves several clusters.
        type: str
        default: ""
      prune:
        description: Whether Argo CD deletes what is no longer in the bundle.
        type: bool
        default: true
      self_heal:
        description: Whether Argo CD reverts changes made on the cluster.
        type: bool
        default: true
      cascade:
        description: Whether deleting an Application deletes what it installed.
        type: bool
        default: false
      flux_namespace:
        description: Namespace of Flux's objects.
        type: str
        default: flux-system
      source_name:
        description: Name of the GitRepository that holds the bundle.
        type: str
        default: flux-system
      source_namespace:
        description: Namespace of that GitRepository.
        type: str
        default: flux-system
      interval:
        description: How often Flux looks at sources and releases.
        type: str
        default: 10m
      retries:
        description: How often Flux tries a failed installation or upgrade again. V(-1) is without end.
        type: int
        default: 3
      drift_detection:
        description: Whether Flux corrects changes made on the cluster (V(enabled)), or only reports them (V(warn)).
        type: str
        choices: [enabled, warn, disabled]
        default: warn
extends_documentation_fragment:
  - goodput.fleet.attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
requirements:
  - cryptography (Python package; only for signing)
notes:
  - Versions, namespaces and names are data. No script is written, and no shell ever reads them.
  - A signature proves who rendered a bundle. Without one, C(bundle.sha256) protects against accidents, not against
    someone who rewrites it together with the files.
seealso:
  - module: goodput.fleet.bundle_info
  - module: goodput.fleet.recipe
  - module: goodput.fleet.gitops_publish
"""

EXAMPLES = r"""
- name: Render for Flux
  goodput.fleet.bundle:
    lock: clusters/prod-1/recipe.lock.yaml
    deployer: flux
    dest: build/prod-1
    path: clusters/prod-1/bundle

- name: Render for Argo CD, signed
  goodput.fleet.bundle:
    lock: "{{ recipe.lock }}"
    deployer: argocd
    dest: build/prod-1
    repo_url: https://git.example.com/platform/gitops.git
    path: clusters/prod-1/bundle
    signing_key_path: /etc/goodput/signing.pem
    options:
      project: gpu-fleet
      name_prefix: prod-1-

- name: Render for a cluster without a way out, and leave one component to another team
  goodput.fleet.bundle:
    lock: clusters/prod-1/recipe.lock.yaml
    deployer: helm
    dest: build/prod-1
    exclude: [prometheus-adapter]
    mirror:
      charts: oci://registry.example.com/charts
      images: registry.example.com/mirror
    options:
      timeouts:
        gpu-operator: 1800
"""

RETURN = r"""
dest:
  description: Folder of the bundle.
  returned: success
  type: str
  sample: build/prod-1
deployer:
  description: What installs it.
  returned: success
  type: str
  sample: flux
recipe:
  description: Name of the recipe.
  returned: success
  type: str
  sample: eks-h100-ubuntu-inference-dynamo
lock_digest:
  description:
    - Digest of the lock file inside the bundle. With O(exclude) or O(mirror) it is not that of O(lock).
  returned: success
  type: str
  sample: sha256:0f3c8c1a1d7f0f64b1d0fb5ae5ecb2bb8a4c4a4a13c3a3fb7b8e0ea2a7e1c111
files:
  description: How many files the bundle has.
  returned: success
  type: int
  sample: 48
added:
  description: Files that were not there.
  returned: success
  type: list
  elements: str
  sample: [releases/gpu-operator.yaml]
updated:
  description: Files whose content changed.
  returned: success
  type: list
  elements: str
  sample: [recipe.lock.yaml]
removed:
  description: Files and folders that did not belong to the bundle, or no longer do.
  returned: success
  type: list
  elements: str
  sample: [releases/kueue.yaml]
signed:
  description: Whether the bundle is signed.
  returned: success
  type: bool
  sample: false
"""

import json

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.common.validation import check_type_path
from ansible_collections.goodput.fleet.plugins.module_utils.bundles import (
    manifest,
    mirror,
    options,
    render,
    tree,
)
from ansible_collections.goodput.fleet.plugins.module_utils.records import signing, yamltree
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import FleetError
from ansible_collections.goodput.fleet.plugins.module_utils.records.lockfile import load_lock

SETTINGS = {
    "timeout": {"type": "int", "default": 600},
    "timeouts": {"type": "dict", "default": {}},
    "argocd_namespace": {"type": "str", "default": "argocd"},
    "project": {"type": "str", "default": "default"},
    "destination_server": {"type": "str", "default": "https://kubernetes.default.svc"},
    "name_prefix": {"type": "str", "default": ""},
    "prune": {"type": "bool", "default": True},
    "self_heal": {"type": "bool", "default": True},
    "cascade": {"type": "bool", "default": False},
    "flux_namespace": {"type": "str", "default": "flux-system"},
    "source_name": {"type": "str", "default": "flux-system"},
    "source_namespace": {"type": "str", "default": "flux-system"},
    "interval": {"type": "str", "default": "10m"},
    "retries": {"type": "int", "default": 3},
    "drift_detection": {"type": "str", "choices": ["enabled", "warn", "disabled"], "default": "warn"},
}
ARGUMENTS = {
    "lock": {"type": "raw", "required": True},
    "deployer": {"type": "str", "required": True, "choices": ["helm", "argocd", "argocd-helm", "flux", "helmfile"]},
    "dest": {"type": "path", "required": True},
    "repo_url": {"type": "str"},
    "revision": {"type": "str", "default": "main"},
    "path": {"type": "str"},
    "mirror": {"type": "dict", "options": {"charts": {"type": "str"}, "images": {"type": "str"}}},
    "exclude": {"type": "list", "elements": "str", "default": []},
    "signing_key": {"type": "str", "no_log": True},
    "signing_key_path": {"type": "path", "no_log": False},
    "options": {"type": "dict", "default": {}, "options": SETTINGS},
}


def rendered(params: dict) -> dict[str, bytes]:
    """The bundle's files, signature included."""
    lock = params["lock"] if isinstance(params["lock"], dict) else check_type_path(params["lock"])
    sources = params["mirror"] or {}
    given = {
        **(params["options"] or {}),
        **{key: params[key] for key in ("repo_url", "revision", "path")},
        "mirror_charts": sources.get("charts"),
        "mirror_images": sources.get("images"),
        "exclude": tuple(params["exclude"]),
    }
    files = render.render(load_lock(lock), params["deployer"], options.read(given))
    key = params["signing_key"]
    if params["signing_key_path"] is not None:
        key = yamltree.read(params["signing_key_path"])
    if key is not None:  # an empty one is refused: it must not leave the bundle unsigned
        files[manifest.SIGNATURE] = signing.sign(files[manifest.LIST], key)
    return files


def main() -> None:
    module = AnsibleModule(
        argument_spec=ARGUMENTS,
        mutually_exclusive=[("signing_key", "signing_key_path")],
        supports_check_mode=True,
    )
    try:
        files = rendered(module.params)
        change = tree.sync(module.params["dest"], files, module.check_mode)
    except FleetError as error:
        module.fail_json(**error.as_result())
    if mirror.LEFT in files:
        module.warn(f"some sources are not rewritten to the mirror: see {mirror.LEFT}")
    diff = change.pop("diff")
    about = json.loads(files[render.ABOUT])
    module.exit_json(
        **change,
        dest=module.params["dest"],
        deployer=about["deployer"],
        recipe=about["recipe"],
        lock_digest=about["lock"],
        files=len(files),
        signed=manifest.SIGNATURE in files,
        **({"diff": diff} if module._diff else {}),
    )


if __name__ == "__main__":
    main()
