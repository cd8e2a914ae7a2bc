# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Chart archives into the lock: each archive's digest and, through helm, what it renders and which images it needs."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator

from ansible_collections.goodput.fleet.plugins.module_utils.records import digest, lockfile, manifests, yamltree
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import (
    FleetError,
    InvalidDocument,
    NotFound,
    Problem,
    Unavailable,
)

MAX_ARCHIVE = 64 * 1024 * 1024
TIMEOUT = 120  # seconds for one chart; helm template reads local files only


def add_charts(lock: dict, folder: str, helm: str | None = None) -> tuple[dict, list[str]]:
    """A lock with what the archives NAME-VERSION.tgz of a folder say, and warnings for charts that are not there.

    With helm (the program's path) each chart is rendered with the lock's values: `rendered` and `images`. The given
    lock is left as it is. Raises NotFound for the folder, InvalidDocument for archives that are not what their name
    says or do not render, Unavailable when helm cannot be run.
    """
    if not os.path.isdir(folder):
        raise NotFound("is not a directory of chart archives", file=str(folder))
    components, problems, warnings = [], [], []
    for component in lock["spec"]["components"]:
        components.append(component)
        if "chart" not in component:
            continue
        path = _archive(folder, component["chart"])
        if path is None:
            chart = component["chart"]
            archive = f"{chart['name']}-{chart['version']}.tgz"
            warnings.append(f"{folder} has no {archive}: {component['name']} is locked without a chart digest")
            continue
        try:
            components[-1] = _with_chart(component, path, helm)
        except FleetError as error:
            problems += error.problems
    if problems:
        raise InvalidDocument(problems)
    spec = {**lock["spec"], "components": components}
    result = {**lock, "metadata": {**lock["metadata"], "digest": digest.sha256(spec)}, "spec": spec}
    faults = lockfile.faults(yamltree.Document(result, {}, "lock"))
    if faults:
        raise InvalidDocument(faults)
    return result, warnings


def _archive(folder: str, chart: dict) -> str | None:
    # a repository may index v1.2.3 what the archive calls 1.2.3, and the other way round
    version = chart["version"]
    for name in (version, version.lstrip("vV"), f"v{version}"):
        path = os.path.join(folder, f"{chart['name']}-{name}.tgz")
        if os.path.isfile(path):
            return path
    return None


def _with_chart(component: dict, path: str, helm: str | None) -> dict:
    with open(path, "rb") as stream:
        content = stream.read(MAX_ARCHIVE + 1)
    if len(content) > MAX_ARCHIVE:
        raise InvalidDocument("is larger than 64 MiB", file=path)
    chart = component["chart"]
    found = _chart_yaml(content, path)
    wanted = (chart["name"], chart["version"].lstrip("vV"))
    if (found.get("name"), str(found.get("version")).lstrip("vV")) != wanted:
        message = f"holds chart {found.get('name')} {found.get('version')}, not {chart['name']} {chart['version']}"
        raise InvalidDocument(message, code="wrong-chart", file=path)
    result = {**component, "chart": {**chart, "digest": digest.sha256_bytes(content)}}
    if helm:
        text = _template(component, path, helm)
        result["rendered"] = manifests.from_texts([text], component["namespace"], path)
        result["images"] = sorted({*component.get("images", []), *images(text)})
    return result


def _chart_yaml(content: bytes, path: str) -> dict:
    """Chart.yaml of the archive, read without unpacking anything."""
    try:
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive:
            for member in archive:
                if (
                    member.isfile()
                    and member.name.removeprefix("./").count("/") == 1
                    and member.name.endswith("/Chart.yaml")
                ):
                    text = archive.extractfile(member).read(yamltree.MAX_BYTES).decode()
                    data = yamltree.load_text(text, f"{path}:{member.name}").data
                    return data if isinstance(data, dict) else {}
    except (tarfile.TarError, OSError, EOFError, UnicodeDecodeError) as error:
        raise InvalidDocument(f"is not a chart archive: {error}", code="wrong-chart", file=path) from error
    raise InvalidDocument("has no Chart.yaml", code="wrong-chart", file=path)


def _template(component: dict, path: str, helm: str) -> str:
    """What `helm template` prints for the lock's values."""
    with tempfile.TemporaryDirectory() as scratch:
        values = os.path.join(scratch, "values.yaml")
        with open(values, "w", encoding="utf-8") as stream:
            stream.write(yamltree.dump(component["values"]))
        command = [
            helm,
            "template",
            component["release"],
            path,
            "--namespace",
            component["namespace"],
            "--include-crds",
            "--values",
            values,
        ]
        # a person's own helm settings and plugins must not reach a lock
        env = {"PATH": os.environ.get("PATH", os.defpath), "HOME": scratch}
        try:
            done = subprocess.run(command, env=env, capture_output=True, timeout=TIMEOUT, check=False)
        except OSError as error:
            raise Unavailable(f"cannot be run: {error.strerror}", file=helm) from error
        except subprocess.TimeoutExpired as error:
            raise Unavailable(f"helm template takes longer than {TIMEOUT} s", file=path) from error
    if done.returncode:
        reason = " ".join(done.stderr.decode(errors="replace").replace(values, "the recipe's values").split())
        raise InvalidDocument(
            Problem("does-not-render", f"helm template of {component['name']} fails: {reason[:2000]}", path)
        )
    return done.stdout.decode()


def images(text: str) -> set[str]:
    """The images of every container and init container in manifests, those of Helm's hooks included."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    found: set[str] = set()
    for part in manifests.SEPARATOR.split(text):
        if "image:" in part and "kind: CustomResourceDefinition" not in part:
            found.update(_containers(yaml.load(part, Loader=loader)))
    return found


def _containers(data: object) -> Iterator[str]:
    if isinstance(data, dict):
        for key, value in data.items():
            if key in ("containers", "initContainers") and isinstance(value, list):
                yield from (
                    one["image"]
                    for one in value
                    if isinstance(one, dict) and isinstance(one.get("image"), str) and one["image"]
                )
            yield from _containers(value)
    elif isinstance(data, list):
        for item in data:
            yield from _containers(item)
