"""Bundles read back by the parsers of their formats."""

from __future__ import annotations

import json
import re

import yaml
from ansible_collections.goodput.fleet.plugins.module_utils.bundles import options
from ansible_collections.goodput.fleet.plugins.module_utils.bundles.render import render

GIT = {"repo_url": "https://git.example.com/fleet.git", "path": "clusters/prod-1", "revision": "release-7"}
DEPLOYERS = ["argocd", "argocd-helm", "flux", "helm", "helmfile"]


def bundle(lock: dict, deployer: str, **given) -> dict[str, bytes]:
    return render(lock, deployer, options.read({**GIT, **given}))


def read(files: dict[str, bytes], path: str):
    return yaml.load(files[path], yaml.CSafeLoader)


def folder(files: dict[str, bytes], name: str) -> dict[str, dict]:
    """Documents of one folder, by file name without its ending."""
    return {
        path.rpartition("/")[2].removesuffix(".yaml"): yaml.load(content, yaml.CSafeLoader)
        for path, content in files.items()
        if re.fullmatch(rf"{name}/[^/]+\.yaml", path)
    }


def steps(files: dict[str, bytes]) -> list[dict]:
    return json.loads(files["plan.json"])["steps"]


def deployable(files: dict[str, bytes]) -> dict[str, str]:
    """What a deployer reads: not the README, the lists of the mirror, or the records of the bundle."""
    return {
        path: content.decode()
        for path, content in files.items()
        if not path.startswith(("README", "mirror/", "recipe.lock", "bundle."))
    }
