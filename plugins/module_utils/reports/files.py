# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From documents to files, and the files to a directory."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile

from ansible_collections.goodput.fleet.plugins.module_utils.records import schema, yamltree
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import (
    InvalidDocument,
    Problem,
    Unavailable,
    nearest,
)
from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas import driftreport
from ansible_collections.goodput.fleet.plugins.module_utils.reports import certification as certifications
from ansible_collections.goodput.fleet.plugins.module_utils.reports import html, junit, markdown, sarif
from ansible_collections.goodput.fleet.plugins.module_utils.reports import recovery as recoveries
from ansible_collections.goodput.fleet.plugins.module_utils.reports.model import STEPS, Section, sections

SCHEMA = driftreport.SCHEMA  # imported by name, because Ansible carries only such modules to the host
FORMATS = {"markdown": ".md", "junit": ".junit.xml", "sarif": ".sarif", "html": ".html"}


def check(
    drift: dict | None,
    health: dict | None,
    install: dict | None,
    certification: dict | None = None,
    recovery: dict | None = None,
) -> list[Section]:
    """The sections of documents that are sound. Raises InvalidDocument with everything that is wrong.

    recovery: the account of job recovery, see jobs.recovery_account, which checks what it is made from.
    """
    problems = []
    if drift:
        problems += schema.validate(yamltree.Document(drift, {}, "drift"), "DriftReport")
    if health:
        problems += _shape("health", health, "components", ("name", "status"))
    if install:
        problems += _shape("install", install, "steps", ("name",)) or _states(install)
    if certification:
        problems += certifications.check(certification)
    if not (drift or health or install or certification or recovery):
        hint = "give drift, health, install, certification or recovery"
        problems.append(Problem("empty", "there is nothing to report", hint=hint))
    if problems:
        raise InvalidDocument(problems)
    parts = sections(drift, health, install)
    parts += [certifications.section(certification)] if certification else []
    return parts + ([recoveries.section(recovery)] if recovery else [])


def _shape(name: str, document: dict, key: str, needed: tuple[str, ...]) -> list[Problem]:
    items = document.get(key, [] if key == "steps" else None)
    if not isinstance(items, list):
        return [Problem("missing-key", f"{key!r} must be a list", path=name, hint="give the module's whole result")]
    return [
        Problem("missing-key", f"{word!r} must be text", path=f"{name}.{key}[{index}].{word}")
        for index, item in enumerate(items)
        for word in needed
        if not isinstance(item, dict) or not isinstance(item.get(word), str)
    ]


def _states(install: dict) -> list[Problem]:
    return [
        Problem(
            "bad-value",
            f"{status!r} is not a status",
            path=f"install.steps[{index}].status",
            hint=nearest(status, STEPS),
        )
        for index, status in enumerate(step.get("status") or "ok" for step in install.get("steps") or [])
        if status not in STEPS
    ]


def render(
    heading: str,
    formats: list[str],
    stem: str = "report",
    drift: dict | None = None,
    health: dict | None = None,
    install: dict | None = None,
    source: str = "",
    certification: dict | None = None,
    recovery: dict | None = None,
) -> dict[str, bytes]:
    """{file name: content}. Pages are STEM.*; with json each document becomes a file of its own, as it is."""
    parts = check(drift, health, install, certification, recovery)
    if os.path.basename(stem) != stem or stem in ("", ".", ".."):
        raise InvalidDocument(f"{stem!r} is not the name of a file", path="name", code="bad-name")
    writers = {
        "markdown": lambda: markdown.render(heading, parts),
        "junit": lambda: junit.render(heading, parts),
        "sarif": lambda: sarif.render(heading, parts, source),
        "html": lambda: html.render(heading, parts),
    }
    if not formats:
        raise InvalidDocument("no format is named", path="formats", code="empty", hint=nearest("", [*FORMATS, "json"]))
    files = {}
    for name in formats:
        if name == "json":
            documents = {"drift": drift, "health": _lasting(health), "install": install}
            documents |= {"certification": certification, "recovery": recovery}
            files |= {f"{kind}.json": pretty(document) for kind, document in documents.items() if document}
        else:
            files[stem + FORMATS[name]] = writers[name]()
    return {name: content.encode("utf-8", "replace") for name, content in files.items()}


def _lasting(health: dict | None) -> dict | None:
    """The result without what Ansible adds and what differs in every run."""
    return health and {key: health[key] for key in ("name", "healthy", "components", "counts") if key in health}


def title(parts: list[Section]) -> str:
    """What to call the report: its clusters."""
    names = dict.fromkeys(part.name for part in parts if part.name)
    return f"GPU fleet report: {', '.join(names)}" if names else "GPU fleet report"


def counts(parts: list[Section]) -> dict[str, int]:
    """How many rows have each verdict."""
    return {verdict: sum(len(part.of(verdict)) for part in parts) for verdict in ("fail", "unknown", "note", "pass")}


def pretty(document: dict) -> str:
    """JSON with sorted keys: same data, same bytes."""
    return json.dumps(document, indent=2, ensure_ascii=False, sort_keys=True) + "\n"


def write(dest: str, files: dict[str, bytes], check_only: bool = False) -> list[str]:
    """Write the files whose bytes differ, each at once; their names. Raises Unavailable when that is not possible."""
    if not dest.strip() or "\0" in dest:
        raise InvalidDocument(f"{dest!r} is not the path of a folder", path="dest", code="bad-dest")
    changed = []
    for name, content in sorted(files.items()):
        path = os.path.join(dest, name)
        try:
            with open(path, "rb") as stream:
                if stream.read() == content:
                    continue
        except OSError:
            pass  # not there, or not readable: writing tells
        changed.append(name)
        if not check_only:
            _replace(dest, path, content)
    return changed


def _replace(dest: str, path: str, content: bytes) -> None:
    try:
        os.makedirs(dest, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=".report-", dir=dest)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(content)
            os.chmod(temporary, 0o644)
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
            raise
    except OSError as error:
        raise Unavailable(f"{path} cannot be written: {error.strerror}", path="dest", code="os-error") from error
