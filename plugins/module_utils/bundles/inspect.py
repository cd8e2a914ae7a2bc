# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a bundle on disk is, and whether it is what was rendered. Only reads."""

from __future__ import annotations

import json
import os

from ansible_collections.goodput.fleet.plugins.module_utils.bundles import manifest, signature
from ansible_collections.goodput.fleet.plugins.module_utils.bundles.render import ABOUT, LOCK, RENDERERS
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import FleetError, Problem, nearest
from ansible_collections.goodput.fleet.plugins.module_utils.records.lockfile import load_lock


def inspect(root: str, public_key: str | None = None) -> dict:
    """{valid, problems, deployer, recipe, lock, rendered_from, components, order, signed, signature}.

    What cannot be read is None or empty. With a key (PEM) the signature must be there and be its own; `signature` is
    valid, invalid, absent or unchecked. Raises InvalidDocument for a bad key.
    """
    problems = manifest.verify(root)
    whole = not any(problem.code == "no-bundle" for problem in problems)
    signed = whole and os.path.isfile(os.path.join(root, manifest.SIGNATURE))
    verdict, faults = _signature(root, public_key, whole, signed)
    problems += faults
    about, lock = {}, None
    if whole:
        about, faults = _about(root)
        problems += faults
        try:
            lock = load_lock(os.path.join(root, LOCK))
        except FleetError as error:
            problems += error.problems
    if about and lock:
        problems += _agree(about, lock)
    spec = lock["spec"] if lock else {"components": [], "order": []}
    components = {one["name"]: _component(one) for one in spec["components"]}
    return {
        "valid": not problems,
        "problems": problems,
        "deployer": about.get("deployer"),
        "recipe": lock["metadata"]["name"] if lock else None,
        "lock": lock["metadata"]["digest"] if lock else None,
        "rendered_from": about.get("renderedFrom"),
        "components": [components[name] for name in spec["order"]],
        "order": spec["order"],
        "signed": signed,
        "signature": verdict,
    }


def _signature(root: str, public_key: str | None, whole: bool, signed: bool) -> tuple[str, list[Problem]]:
    if not signed:
        if public_key is None:
            return "absent", []
        what = "is not signed, and a public key was given"
        return "absent", [Problem("not-signed", what, root, hint="render it with signing_key")]
    if public_key is None:
        return "unchecked", []
    try:
        content, stated = (_read(root, name) for name in (manifest.LIST, manifest.SIGNATURE))
    except OSError as error:
        return "invalid", [Problem("unreadable", f"cannot be read: {error.strerror}", manifest.SIGNATURE)]
    faults = signature.check(content, stated, public_key)
    return ("invalid" if faults else "valid"), faults


def _about(root: str) -> tuple[dict, list[Problem]]:
    try:
        about = json.loads(_read(root, ABOUT))
    except (OSError, ValueError):
        about = None
    if not isinstance(about, dict) or about.get("deployer") not in RENDERERS:
        return {}, [
            Problem("bad-about", "does not tell which deployer the bundle is for", ABOUT, hint=nearest("", RENDERERS))
        ]
    return about, []


def _agree(about: dict, lock: dict) -> list[Problem]:
    facts = {"lock": lock["metadata"]["digest"], "recipe": lock["metadata"]["name"], "order": lock["spec"]["order"]}
    return [
        Problem("bad-about", f"{key} is not that of {LOCK}", ABOUT, path=key, hint="render the bundle again")
        for key, value in facts.items()
        if about.get(key) != value
    ]


def _component(component: dict) -> dict:
    chart = component.get("chart") or {}
    return {
        "name": component["name"],
        "namespace": component["namespace"],
        "release": component["release"],
        "tier": component["tier"],
        "chart": chart.get("name"),
        "version": chart.get("version"),
        "repository": chart.get("repository"),
    }


def _read(root: str, name: str) -> bytes:
    with open(os.path.join(root, name), "rb") as stream:
        return stream.read()
