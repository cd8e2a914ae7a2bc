# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The CRDs of those who read a bundle: Flux and Argo CD, as their own releases publish them.

They are taken from pinned Go modules whose sum is checked, and kept in the project's cache; no controller is built.
Flux's HelmRelease CRD is generated from its Go types (see crds/), since helm-controller itself cannot be had from
every module proxy.

    python -m tests.flux.consumers        prints the files
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import yaml

from tests.controlplane import build as gobuild
from tests.controlplane import gotool

HERE = Path(__file__).resolve().parent
GENERATOR = HERE / "crds"
HELM_API = "github.com/fluxcd/helm-controller/api/v2"
ARGOCD = ("github.com/argoproj/argo-cd/v3", "v3.5.6", "h1:twzdsPiPufKLRtEqD1Jg3FqtuZmSHLTIxs7t6fSkjlk=")
FLUX = ("github.com/fluxcd/source-controller", "github.com/fluxcd/kustomize-controller")  # pinned in go.mod, go.sum


class CrdsMissing(RuntimeError):
    """A CRD cannot be had; the message says why."""


def crds(say: Callable[[str], None] = gobuild.say_to_stderr) -> dict[str, list[dict]]:
    """{"flux": [...], "argocd": [...]}: CustomResourceDefinitions, by name. Raises CrdsMissing or BuildFailed."""
    return {
        consumer: [_load(path) for path in sorted((folder(say) / consumer).glob("*.yaml"))]
        for consumer in ("flux", "argocd")
    }


def _load(path: Path) -> dict:
    return yaml.load(path.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def folder(say: Callable[[str], None] = gobuild.say_to_stderr) -> Path:
    """Where flux/*.yaml and argocd/*.yaml are, fetched when they are not there yet."""
    cache = gobuild.cache_dir()
    cache.mkdir(parents=True, exist_ok=True)
    made = cache / f"consumers-{_key()}"
    if not made.exists():
        with gobuild.only_one(cache / "consumers.lock", lambda: say("waiting for another fetch of the CRDs")):
            if not made.exists():  # else the other one has just fetched them
                _fetch(cache, made, say)
    return made


def _key() -> str:
    digest = hashlib.sha256(repr((ARGOCD, [pinned(module) for module in FLUX])).encode())
    for path in (*sorted(GENERATOR.iterdir()), Path(__file__)):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


@functools.cache
def pinned(module: str) -> tuple[str, str, str]:
    """(module, version, sum) as the Flux build uses it."""
    found = re.search(rf"^{re.escape(module)} (v\S+) (h1:\S+)$", (HERE / "go.sum").read_text(), re.MULTILINE)
    if not found:
        raise CrdsMissing(f"{HERE / 'go.sum'} does not pin {module}")
    return module, found[1], found[2]


def _fetch(cache: Path, made: Path, say: Callable[[str], None]) -> None:
    say("CRDs of Flux and Argo CD from their Go modules (once)")
    go, _version = gotool.find_go(gobuild.go_line(GENERATOR), cache, say)
    with tempfile.TemporaryDirectory(prefix="consumers.", dir=cache) as scratch:
        partial = Path(scratch) / "made"
        (partial / "argocd").mkdir(parents=True)
        (partial / "flux").mkdir()
        for path in (_module(go, cache, *ARGOCD) / "manifests" / "crds").glob("*-crd.yaml"):
            shutil.copyfile(path, partial / "argocd" / path.name)
        for module in FLUX:
            for path in (_module(go, cache, *pinned(module)) / "config" / "crd" / "bases").glob("*.yaml"):
                shutil.copyfile(path, partial / "flux" / path.name)
        _generate(cache, partial / "flux", say)
        counts = {consumer: len(list((partial / consumer).glob("*.yaml"))) for consumer in ("argocd", "flux")}
        if counts != {"argocd": 3, "flux": 8}:
            raise CrdsMissing(f"the modules hold other CRD files than expected: {counts}")
        partial.rename(made)


def _module(go: Path, cache: Path, module: str, version: str, expected: str) -> Path:
    """The unpacked module. Outside any module of ours, so that Go does not look at its dependencies."""
    command = [str(go), "mod", "download", "-modcacherw", "-json", f"{module}@{version}"]
    # GOSUMDB off: the sum that is pinned here is the stricter check, and needs no further server
    env = {**gobuild.go_environment(cache), "GOSUMDB": "off"}
    done = subprocess.run(command, cwd=cache, env=env, capture_output=True, text=True)
    answer = json.loads(done.stdout or "{}")
    if done.returncode or "Dir" not in answer:
        raise CrdsMissing(f"cannot download {module}@{version}: {answer.get('Error') or done.stderr.strip()}")
    if answer["Sum"] != expected:
        raise CrdsMissing(f"{module}@{version} has the sum {answer['Sum']}, pinned is {expected}: not used")
    return Path(answer["Dir"])


def _generate(cache: Path, target: Path, say: Callable[[str], None]) -> None:
    program = "controller-gen"
    tools = gobuild.build(GENERATOR, {program: f"sigs.k8s.io/controller-tools/cmd/{program}"}, say)
    env = gobuild.go_environment(cache)
    env["GOFLAGS"] = "-mod=readonly -modcacherw -trimpath"
    env["PATH"] = f"{gotool.find_go(gobuild.go_line(GENERATOR), cache, say)[0].parent}:{env.get('PATH', '')}"
    command = [str(tools[program]), "crd", f"paths={HELM_API}", f"output:crd:dir={target}"]
    done = subprocess.run(command, cwd=GENERATOR, env=env, capture_output=True, text=True)
    if done.returncode:
        raise CrdsMissing(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()[-2000:]}")


if __name__ == "__main__":
    print(*sorted(folder().rglob("*.yaml")), sep="\n")
    sys.exit(0)
