# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finding container images in values and manifests, and moving them to another registry.

Charts name images in three ways, and all three are understood: a whole reference (`quay.io/a/b:1`), the map
`registry` + `repository` + `tag`, and the map `repository` + `image` + `version` of NVIDIA's operators.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

# Registries that are one wherever they stand; others count where the key says that it is about an image.
KNOWN = (
    "docker.io",
    "gcr.io",
    "ghcr.io",
    "mcr.microsoft.com",
    "nvcr.io",
    "public.ecr.aws",
    "quay.io",
    "registry.k8s.io",
)
_IMAGE_KEY = re.compile(r".*(?:images?|repository|registry)$", re.IGNORECASE)
_IMAGE = re.compile(r".*image", re.IGNORECASE)
_REGISTRY_KEY = re.compile(r".*registry$", re.IGNORECASE)
_HOST = re.compile(r"(?:[a-z0-9-]+(?:\.[a-z0-9-]+)+(?::[0-9]{1,5})?|[a-z0-9-]+:[0-9]{1,5}|localhost)")
# `image: busybox:1.36`, which means docker.io: a tag, and nothing that is a registry before the first slash
_HOSTLESS = re.compile(
    r"""(?P<key>\bimage["']?\s*:\s*["']?)(?P<image>(?![^/\s"']*[.:][^/\s"']*/)(?!localhost/)"""
    r"""[a-z0-9][a-z0-9._-]*(?:/[a-z0-9._-]+)*:\w[\w.-]*)(?=["']?\s*(?:[#,}]|$))""",
    re.IGNORECASE,
)
_REFERENCE = re.compile(r"[a-z0-9][a-z0-9._/-]*(?::[0-9]+/[a-z0-9._/-]+)?(?::[\w][\w.-]*)?(?:@sha256:[0-9a-f]{64})?")


def host(reference: str) -> str:
    """The registry of a reference, docker.io where none is named."""
    first, slash, _rest = reference.partition("/")
    return first if slash and _HOST.fullmatch(first) else "docker.io"


def full(reference: str) -> str:
    """The reference with its registry and, on docker.io, with library/ where it has no owner."""
    registry = host(reference)
    rest = reference.removeprefix(registry + "/")
    if registry == "docker.io" and "/" not in rest:
        rest = f"library/{rest}"
    return f"{registry}/{rest}"


def moved(reference: str, mirror: str) -> str:
    """Where the mirror has the image: the same path without its registry."""
    return f"{mirror}/{full(reference).partition('/')[2]}"


def hostless(text: str) -> bool:
    """Whether the text is an image with a tag and without a registry."""
    return bool(_HOSTLESS.fullmatch(f"image: {text}"))


def hosts(data: object) -> set[str]:
    """Registries that values name under a key that is about images."""
    found = set()
    for path, text in strings(data):
        key = next((part for part in reversed(path) if isinstance(part, str)), "")
        if _IMAGE_KEY.match(key):
            first, slash, _rest = text.partition("/")
            if _HOST.fullmatch(first) and (slash or _REGISTRY_KEY.fullmatch(key)):
                found.add(first)
    return found


def strings(data: object, path: tuple = ()) -> Iterator[tuple[tuple, str]]:
    """(path, text) of every string in the data."""
    if isinstance(data, str):
        yield path, data
    elif isinstance(data, dict):
        for key, value in data.items():
            yield from strings(value, (*path, key))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from strings(value, (*path, index))


def references(data: object) -> Iterator[str]:
    """Whole references, with tag or digest, that the data names in any of the three ways."""
    if isinstance(data, dict):
        yield from _composed(data)
        yield from (
            value for key, value in data.items() if isinstance(value, str) and _IMAGE.fullmatch(key) and hostless(value)
        )
        data = data.values()
    elif not isinstance(data, list):
        return
    for value in data:
        if isinstance(value, str):
            first = value.partition("/")[0]
            if "/" in value and _HOST.fullmatch(first) and _tagged(value) and _REFERENCE.fullmatch(value):
                yield value
        else:
            yield from references(value)


def _composed(data: dict) -> Iterator[str]:
    def text(key: str) -> str:
        value = data.get(key)
        return value.strip("/") if isinstance(value, str) else ""

    image, repository, tag = text("image"), text("repository"), text("tag") or text("version")
    if repository and image and "/" not in image and not _tagged(image) and tag:
        repository, image = f"{repository}/{image}", ""
    if repository and text("registry"):
        repository = f"{text('registry')}/{repository}"
    elif not _named(repository):
        return  # the chart's own default registry comes before it, and that is not known here
    if repository and not image and (tag or text("digest")):
        at = f"@{text('digest')}" if text("digest").startswith("sha256:") else ""
        yield f"{repository}{':' + tag if tag else ''}{at}"


def unnamed(data: object, path: tuple = ()) -> Iterator[tuple]:
    """The paths of repositories whose registry is a chart's default: where they come from is not known."""
    if isinstance(data, dict):
        repository = data.get("repository")
        if (
            isinstance(repository, str)
            and repository
            and not _named(repository)
            and any(data.get(key) for key in ("tag", "digest", "version"))
            and not data.get("registry")
        ):
            yield (*path, "repository")
        for key, value in data.items():
            yield from unnamed(value, (*path, key))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from unnamed(value, (*path, index))


def _named(repository: str) -> bool:
    return bool(_HOST.fullmatch(repository.partition("/")[0]))


def _tagged(reference: str) -> bool:
    return "@" in reference or ":" in reference.rpartition("/")[2]


class Mover:
    """Replaces registries by the mirror in texts; `log` keeps (where, before, after)."""

    def __init__(self, registries: Iterable[str], mirror: str):
        self.mirror = mirror
        self.log: list[tuple[str, str, str]] = []
        self._stems: set[str] = set()  # what was replaced: an image, or the part that several have in common
        names = "|".join(sorted(map(re.escape, registries), key=lambda name: (-len(name), name)))
        word = rf"(?<![\w.@/-])(?P<scheme>docker://|https?://)?(?:{names})"
        self._bare = re.compile(rf"(?:{names})/?")
        self._path = re.compile(rf"{word}/(?=[a-z0-9])")
        # in manifests, which are text: `registry: nvcr.io`
        key = rf"""(?P<key>registry["']?\s*:\s*["']?)(?:{names})/?(?=["']?\s*(?:[#,}}]|$))"""
        self._key = re.compile(key, re.IGNORECASE)
        self._mention = re.compile(rf"{word}(?P<path>/[\w./:@-]*)?(?![\w-]|\.\w)")

    def text(self, where: str, text: str) -> str:
        """Registries that a path follows or that a key `registry` names, in any line of the text."""
        lines = text.split("\n")
        for number, line in enumerate(lines):
            after = self._key.sub(rf"\g<key>{self.mirror}", self._path.sub(rf"\g<scheme>{self.mirror}/", line))
            after = _HOSTLESS.sub(lambda found: found["key"] + moved(found["image"], self.mirror), after)
            lines[number] = self._noted(f"{where} line {number + 1}" if len(lines) > 1 else where, line, after)
        return "\n".join(lines)

    def data(self, where: str, data, beside: str = ""):
        """A copy of the data, with every string moved; keys stay. `beside`: the repository in the same map."""
        if isinstance(data, str):
            if self._bare.fullmatch(data):
                self._stems.add(f"{data.rstrip('/')}/{beside}".rstrip("/"))
                return self._noted(where, data, self.mirror)
            if where.lower().endswith("image") and hostless(data):
                self._stems.add(full(data))
                return self._noted(where, data, moved(data, self.mirror))
            return self.text(where, data)
        if isinstance(data, dict):
            beside = data.get("repository")
            beside = beside if isinstance(beside, str) else ""
            return {key: self.data(f"{where}.{key}" if where else key, value, beside) for key, value in data.items()}
        if isinstance(data, list):
            return [self.data(f"{where}[{index}]", value) for index, value in enumerate(data)]
        return data

    def mentions(self, text: str) -> list[str]:
        """What the text names of the registries, each with the path behind it."""
        return [found.group(0).removeprefix(found["scheme"] or "") for found in self._mention.finditer(text)]

    def covers(self, image: str) -> bool:
        """Whether something that was replaced names the image: all of it, its path, or the registry of all."""
        wanted = full(image)
        return any(wanted == stem or wanted.startswith((f"{stem}/", f"{stem}:", f"{stem}@")) for stem in self._stems)

    def _noted(self, where: str, before: str, after: str) -> str:
        if after != before:
            self.log.append((where, before.strip(), after.strip()))
            named = (mention.rstrip("/") for mention in self.mentions(before))
            self._stems.update(name for name in named if "/" in name)
        return after
