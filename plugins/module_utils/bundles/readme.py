# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The bundle's README, for the people who find it in the repository."""

from __future__ import annotations

from collections.abc import Iterable

from ansible_collections.goodput.fleet.plugins.module_utils.bundles.options import Options
from ansible_collections.goodput.fleet.plugins.module_utils.bundles.units import Unit

_APPLY = {
    "helm": """\
`plan.json` lists the Helm releases in their order; each has its values or its chart in the folder of the same number.
`ansible-playbook goodput.fleet.install` executes it, and after each component waits until that is healthy.

Helm installs the CRDs of a chart's `crds/` folder once and never upgrades them. Steps with `crdsFirst` may bring such
CRDs: what `helm show crds` prints for them has to be applied before the release is upgraded. The playbook does that.
""",
    "argocd": """\
Commit this folder, then apply `app-of-apps.yaml` once, in the cluster that Argo CD runs in. It syncs the Applications
in `apps/`, each with its values inside.

Sync waves put them in order: `10 * tier` for a component, later for what follows its chart. A wave waits for the one
before only if Argo CD knows when an Application is healthy, which it does not by default. `argocd-cm.yaml` is the
setting; merge it into the ConfigMap `argocd-cm` first:

```console
$ kubectl patch configmap argocd-cm --namespace {namespace} --patch-file argocd-cm.yaml
```

Private registries and repositories need a repository Secret in Argo CD, with `enableOCI: "true"` for OCI registries.
""",
    "argocd-helm": """\
This folder is a Helm chart. It renders one Argo CD Application for each release, and `values.yaml` holds everything
that a site may want to set: `repoURL`, `targetRevision` and `path` of this folder in Git, `project`, `namePrefix`,
`destination.server`, `automated`, and under `components` the values of each chart. Other keys are refused.

Let Argo CD install the chart rather than Helm: only then do sync waves put the Applications in order, `10 * tier` for a
component and later for what follows its chart.{application} A wave waits for the one before only if Argo CD knows when
an Application is healthy, which it does not by default. `argocd-cm.yaml` is the setting; merge it into the ConfigMap
`argocd-cm` first:

```console
$ kubectl patch configmap argocd-cm --namespace {namespace} --patch-file argocd-cm.yaml
```

Private registries and repositories need a repository Secret in Argo CD, with `enableOCI: "true"` for OCI registries.
""",
    "flux": """\
Commit this folder and let a Flux Kustomization point at it; `kustomization.yaml` lists what belongs to it. Everything
lives in the namespace `{flux}` and is released into the components' own namespaces. A HelmRelease waits for those it
depends on (`dependsOn`), which are the edges of the recipe's graph; independent components go in parallel.

CRDs are created and upgraded with their charts (`crds: CreateReplace`). Charts of manifests are read from the
GitRepository `{source}`.
""",
    "helmfile": """\
`helmfile sync` or `helmfile apply` in this folder installs the releases in the order of their `needs`, independent ones
in parallel. `--selector component=NAME --include-needs` takes a single component and what it stands on.

Helm installs the CRDs of a chart's `crds/` folder once and never upgrades them, and Helmfile does not either: before
you move to a chart version with other CRDs, apply what `helm show crds` prints for it.
""",
}
_MIRROR = """\
## Mirror

Sources are rewritten to the mirror. Copy these there first:

{lists}
"""


def render(lock: dict, deployer: str, units: list[Unit], options: Options, mirror: Iterable[str]) -> bytes:
    """Markdown. `mirror` are the paths of the mirror's files."""
    lists = {path if path.endswith(".txt") else "/".join(path.split("/")[:2]) for path in mirror}
    spec = lock["spec"]
    text = _APPLY[deployer].format(
        namespace=options.argocd_namespace,
        flux=options.flux_namespace,
        source=f"{options.source_namespace}/{options.source_name}",
        application=" `application.yaml` does that." if options.repo_url else "",
    )
    criteria = ", ".join(f"{name} {value}" for name, value in spec["criteria"].items())
    parts = [
        f"# {lock['metadata']['name']}\n",
        f"Rendered by goodput.fleet for {deployer}, from the recipe for {criteria}. Do not edit it:\n"
        "change the recipe and render again. `recipe.lock.yaml` is the recipe, and what drift is measured against.\n",
        "## Apply\n\n" + text,
        "## What is installed\n\n" + _table(("component", "release", "namespace", "chart", "after"), map(_row, units)),
    ]
    if spec["constraints"]:
        rows = ((entry["name"], entry["value"], entry["severity"]) for entry in spec["constraints"])
        parts.append("## What the cluster must satisfy\n\n" + _table(("fact", "constraint", "severity"), rows))
    if lists:
        parts.append(
            _MIRROR.format(lists="\n".join(f"- `{path}`: {text}" for path, text in _MEANING.items() if path in lists))
        )
    parts.append(
        "## Is it untouched?\n\n"
        "`bundle.sha256` lists every file. `sha256sum --check bundle.sha256` finds files that were changed,\n"
        "`goodput.fleet.bundle_info` also those that were added, and checks the signature in `bundle.sha256.sig`\n"
        "where there is one.\n"
    )
    return "\n".join(parts).encode()


_MEANING = {
    "mirror/charts.txt": "charts: repository, name, version and place in the mirror",
    "mirror/images.txt": "images that the recipe names: source and place in the mirror",
    "mirror/rewritten.txt": "every value that was rewritten",
    "mirror/not-rewritten.txt": "what still names its source, such as images that only a chart's defaults name: set "
    "the chart's values in an overlay, or let the nodes pull them from the mirror",
    "mirror/containerd": "containerd's configuration for that, for `/etc/containerd/certs.d` on the nodes",
}


def _row(unit: Unit) -> tuple[str, ...]:
    chart = f"{unit.chart['name']} {unit.chart['version']}" if unit.chart else "manifests"
    return unit.component, unit.release, unit.namespace, chart, ", ".join(unit.needs)


def _table(head: tuple[str, ...], rows) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)
