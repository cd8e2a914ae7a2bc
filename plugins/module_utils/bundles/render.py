# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A lock as the files of a bundle, for one deployer. Pure: same lock, same options, same bytes."""

from __future__ import annotations

import json

from ansible_collections.goodput.fleet.plugins.module_utils.bundles import (
    argocd,
    argocd_helm,
    flux,
    helm,
    helmfile,
    manifest,
    mirror,
    readme,
    units,
    yamltext,
)
from ansible_collections.goodput.fleet.plugins.module_utils.bundles.exclude import without
from ansible_collections.goodput.fleet.plugins.module_utils.bundles.options import Options, check_names
from ansible_collections.goodput.fleet.plugins.module_utils.records import yamltree
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, Problem, nearest

RENDERERS = {
    "argocd": argocd.render,
    "argocd-helm": argocd_helm.render,
    "flux": flux.render,
    "helm": helm.render,
    "helmfile": helmfile.render,
}
LOCK = "recipe.lock.yaml"
ABOUT = "bundle.json"
_NO_VALUES = "\n    values: {}\n"


def render(lock: dict, deployer: str, options: Options | None = None) -> dict[str, bytes]:
    """path -> content of every file, bundle.sha256 included. `lock` is what `load_lock` returned.

    The bundle's own recipe.lock.yaml is the lock that is deployed: without excluded components, with mirrored
    sources. Raises InvalidDocument or Conflict.
    """
    options = options or Options()
    if deployer not in RENDERERS:
        hint = nearest(deployer, RENDERERS)
        raise InvalidDocument(Problem("bad-value", f"there is no deployer {deployer!r}", path="deployer", hint=hint))
    check_names(options, lock["spec"]["order"])
    deployed = without(lock, options.exclude)
    lists: dict[str, bytes] = {}
    if options.mirror_charts or options.mirror_images:
        deployed, lists = mirror.through(deployed, options.mirror_charts, options.mirror_images)
    planned = units.plan(deployed)
    files = {
        **RENDERERS[deployer](planned, options),
        **lists,
        "README.md": readme.render(deployed, deployer, planned, options, lists),
        ABOUT: _about(lock, deployed, deployer),
        LOCK: lock_text(deployed, planned).encode(),
    }
    files[manifest.LIST] = manifest.listing(files)
    return files


def _about(lock: dict, deployed: dict, deployer: str) -> bytes:
    about = {
        "deployer": deployer,
        "recipe": lock["metadata"]["name"],
        "lock": deployed["metadata"]["digest"],
        "renderedFrom": lock["metadata"]["digest"],
        "order": deployed["spec"]["order"],
    }
    return (json.dumps(about, indent=2) + "\n").encode()


def lock_text(lock: dict, planned: list[units.Unit]) -> str:
    """The lock as YAML, as `yamltree.dump` writes it. Values are not dumped again: the units have them as text."""
    texts = {unit.component: unit.values_text for unit in planned if unit.values_text}
    components = lock["spec"]["components"]
    bare = [{**one, "values": {}} if one["name"] in texts else one for one in components]
    head, *rest = yamltree.dump({**lock, "spec": {**lock["spec"], "components": bare}}).split(_NO_VALUES)
    parts = [head]
    # one empty map a component, in the order of the components: nothing else stands at that depth under that key
    for component, following in zip(components, rest, strict=True):
        text = texts.get(component["name"])
        parts += [f"\n    values:\n{yamltext.indent(text, 6)}" if text else _NO_VALUES, following]
    return "".join(parts)
