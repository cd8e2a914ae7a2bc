# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command lines of a step, as lists that no shell ever reads. Pure."""

from __future__ import annotations

import posixpath
import re


def major(text: str) -> int:
    """4 of "v4.2.3+g1234abc"; 3 where the text says nothing."""
    match = re.search(r"v?(\d+)\.\d+", text)
    return int(match[1]) if match else 3


def commands(
    step: dict,
    bundle: str,
    helm: str = "helm",
    kubectl: str = "kubectl",
    version: str = "",
    kubeconfig: str = "",
    context: str = "",
    extra: list[str] | None = None,
) -> dict[str, list[str]]:
    """{deploy, pull, show_crds, apply_crds, recover} of a step that steps.left_to_do() gave.

    `bundle` is the bundle's folder, `version` what `helm version --short` says, `extra` goes to Helm alone.
    `recover` is empty unless the step's action is recover.
    """
    cluster = [*(["--kubeconfig", kubeconfig] if kubeconfig else []), *(["--kube-context", context] if context else [])]
    namespace = ["--namespace", step["namespace"]]
    chart = _chart(step, bundle)
    deploy = [helm, "upgrade", step["release"], *chart, "--install", "--create-namespace", *namespace]
    deploy += ["--wait", "--timeout", step["timeout"], *cluster]
    if step["values"]:
        deploy += ["--values", posixpath.join(bundle, step["values"])]
    if major(version) >= 4 and step["action"] in ("upgrade", "recover"):
        # Helm 4 applies on the server and stops at fields that somebody else has set by hand; the recipe wins
        deploy += ["--force-conflicts"]
    apply = [kubectl, "apply", "--server-side", "--force-conflicts", "--filename", "-"]
    apply += [*(["--kubeconfig", kubeconfig] if kubeconfig else []), *(["--context", context] if context else [])]
    return {
        "deploy": [*deploy, *(extra or [])],
        "show_crds": [helm, "show", "crds", *chart, *(extra or [])],
        "apply_crds": apply,
        "recover": _recover(step, helm, [*namespace, *cluster]),
    }


def _chart(step: dict, bundle: str) -> list[str]:
    if step.get("archive"):
        return [step["archive"]]
    if step["path"]:
        return [posixpath.join(bundle, step["path"])]
    if step["oci"]:
        return [f"{step['repository']}/{step['chart']}", "--version", step["version"]]
    return [step["chart"], "--repo", step["repository"], "--version", step["version"]]


def _recover(step: dict, helm: str, where: list[str]) -> list[str]:
    if step["action"] != "recover":
        return []
    if any("pending-upgrade" in text or "pending-rollback" in text for text in step["why"]):
        return [helm, "rollback", step["release"], *where]
    return [helm, "uninstall", step["release"], "--ignore-not-found", *where]  # its first installation never ended
