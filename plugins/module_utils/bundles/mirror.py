# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A lock whose sources are an internal registry, for clusters without a way out.

It is a lock like any other afterwards: what is deployed is what it says, so health and drift compare with the truth.
"""

from __future__ import annotations

from ansible_collections.goodput.fleet.plugins.module_utils.bundles import images, localchart
from ansible_collections.goodput.fleet.plugins.module_utils.bundles.exclude import sealed
from ansible_collections.goodput.fleet.plugins.module_utils.records.digest import sha256, sha256_bytes
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import Conflict, Problem

LEFT = "mirror/not-rewritten.txt"
CONTAINERD = "mirror/containerd"


def through(lock: dict, charts: str, registry: str) -> tuple[dict, dict[str, bytes]]:
    """The lock with its charts from `charts` and its images from `registry` (each may be empty), and the lists.

    The lists are files: what to copy where, what was rewritten, and what still names its source. Raises Conflict
    when two sources would have one place in the mirror.
    """
    components = lock["spec"]["components"]
    files: dict[str, bytes] = {}
    if charts:
        components, files["mirror/charts.txt"] = _charts(components, charts.rstrip("/"))
    if registry:
        components, lists = _images(components, registry.rstrip("/"))
        files.update(lists)
    return sealed(lock, {"components": components}), files


def _charts(components: list[dict], mirror: str) -> tuple[list[dict], bytes]:
    moved, lines, origins, problems = [], [], {}, []
    for component in components:
        chart = component.get("chart")
        if chart:
            repository = chart["repository"].rstrip("/")
            if mirror.startswith("oci://"):
                target = f"{mirror}/{chart['name']}:{chart['version'].replace('+', '_')}"
            else:
                target = f"{mirror} {chart['name']} {chart['version']}"
            if origins.setdefault(target, repository) != repository:
                what = f"chart {chart['name']} {chart['version']}"
                problems.append(_clash("charts", what, origins[target], repository))
            lines.append(f"{repository} {chart['name']} {chart['version']} {target}")
            component = {**component, "chart": {**chart, "repository": mirror}}
        moved.append(component)
    if problems:
        raise Conflict(problems)
    return moved, _list("repository chart version target", sorted(set(lines)))


def _images(components: list[dict], mirror: str) -> tuple[list[dict], dict[str, bytes]]:
    known = {component["name"]: _known(component) for component in components}
    sources = {images.full(image) for found in known.values() for image in found}
    registries = set(images.KNOWN) | {images.host(image) for image in sources}
    for component in components:
        registries |= images.hosts(component["values"])
    moved, rewritten, left = [], [], []
    for component in components:
        name, mover = component["name"], images.Mover(registries, mirror)
        component, found = _component(component, mover)
        sources |= {images.full(image) for image in found}
        rewritten += [f"{name} {where}: {before} -> {after}" for where, before, after in mover.log]
        named = sorted(image for image in known[name] if not mover.covers(image))
        left += [f"{name} {image}: no value of the recipe names it, the chart's default does" for image in named]
        left += [f"{name} {where}: still names {mention}" for where, mention in _leftovers(component, mover)]
        unnamed = sorted(map(_dotted, images.unnamed(component["values"])))
        left += [f"{name} {where}: names no registry, the chart's default does" for where in unnamed]
        moved.append(component)
    pairs = {source: images.moved(source, mirror) for source in sorted(sources)}
    _check_targets(pairs)
    files = {
        "mirror/images.txt": _list("source target", [f"{source} {target}" for source, target in pairs.items()]),
        "mirror/rewritten.txt": _list("component place: before -> after", rewritten),
    }
    for registry in sorted(set(map(images.host, pairs))):
        files[f"{CONTAINERD}/{_directory(registry)}/hosts.toml"] = _hosts(registry, mirror)
    if left:
        files[LEFT] = _list("component place: why its source is still named", left)
    return moved, files


def _known(component: dict) -> set[str]:
    """Images that the lock states for the component."""
    workloads = (component.get("rendered") or {}).get("workloads") or ()
    rendered = {image for one in workloads for image in one["images"].values() if image}
    return rendered | set(component.get("images") or ())


def _component(component: dict, mover: images.Mover) -> tuple[dict, set[str]]:
    """The component with moved values and manifests, and the images that these name."""
    found = set(images.references(component["values"]))
    values = mover.data("", component["values"])
    changed = {**component, "values": values, "valuesDigest": sha256(values)}
    manifests = []
    for manifest in component.get("manifests") or ():
        parts = []
        for part in localchart.SEPARATOR.split(manifest["content"]):
            if localchart.is_crd(part):  # its schema may speak of registries and pulls from none
                parts.append(part)
                continue
            found |= set(images.references(_parsed(part)))
            parts.append(mover.text(f"manifest {manifest['name']}", part))
        content = "---".join(parts)
        manifests.append({**manifest, "content": content, "digest": sha256_bytes(content.encode())})
    if manifests:
        changed["manifests"] = manifests

    def place(image: str) -> str:
        return images.moved(image, mover.mirror) if mover.covers(image) else image

    if component.get("images"):
        changed["images"] = sorted(map(place, component["images"]))
    if component.get("rendered"):
        workloads = [
            {**one, "images": {container: place(image) for container, image in one["images"].items()}}
            for one in component["rendered"]["workloads"]
        ]
        changed["rendered"] = {**component["rendered"], "workloads": workloads}
    return changed, found


def _parsed(part: str) -> object:
    import yaml

    try:
        return yaml.load(part, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError:  # not ours to judge; its text is moved all the same
        return None


def _leftovers(component: dict, mover: images.Mover) -> list[tuple[str, str]]:
    """(place, what) of registries that are still named, as a key or in a form that is not understood."""
    places = [(f"manifest {one['name']}", part) for one in component.get("manifests") or ()
              for part in localchart.SEPARATOR.split(one["content"]) if not localchart.is_crd(part)]  # fmt: skip
    places += [(_dotted(path), text) for path, text in images.strings(component["values"])]
    places += [(_dotted(path), str(path[-1])) for path in _maps(component["values"])]
    return [
        (where, mention)
        for where, text in places
        for mention in mover.mentions(text.replace(mover.mirror, ""))
    ]  # fmt: skip


def _maps(data: object, path: tuple = ()) -> list[tuple]:
    """The paths of all keys."""
    if isinstance(data, dict):
        return [found for key, value in data.items() for found in [(*path, key), *_maps(value, (*path, key))]]
    if isinstance(data, list):
        return [found for index, value in enumerate(data) for found in _maps(value, (*path, index))]
    return []


def _dotted(path: tuple) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")


def _check_targets(pairs: dict[str, str]) -> None:
    origins: dict[str, str] = {}
    problems = [
        _clash("images", target, origins[target], source)
        for source, target in pairs.items()
        if origins.setdefault(target, source) != source
    ]
    if problems:
        raise Conflict(problems)


def _clash(option: str, what: str, one: str, other: str) -> Problem:
    message = f"{what} comes from {one} and from {other}: one place in the mirror cannot hold both"
    return Problem("mirror-clash", message, path=f"mirror.{option}", hint="change one of them in an overlay")


def _directory(registry: str) -> str:
    """containerd's own way to write a port in a folder's name."""
    name, colon, port = registry.partition(":")
    return f"{name}_{port}_" if colon else name


def _hosts(registry: str, mirror: str) -> bytes:
    """containerd's configuration that pulls from the mirror what names the registry."""
    host, _slash, prefix = mirror.partition("/")
    server = "registry-1.docker.io" if registry == "docker.io" else registry
    root = f"https://{host}/v2/{prefix}".rstrip("/")
    lines = (f'server = "https://{server}"', f'[host."{root}"]', '  capabilities = ["pull", "resolve"]',
             "  override_path = true")  # fmt: skip
    return "".join(f"{line}\n" for line in lines).encode()


def _list(columns: str, lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in [f"# {columns}", *lines]).encode()
