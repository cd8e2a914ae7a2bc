# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stored Snapshots: from a file, a text or data to a checked document."""

from __future__ import annotations

import json
import os

from ansible_collections.goodput.fleet.plugins.module_utils.records import quickcheck, yamltree
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, NotFound, Problem
from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas import snapshot as schema

MAX_JSON_BYTES = 256 * 1024 * 1024  # five thousand nodes are about 15 MB, more than a YAML document may be


def load(source: str | dict) -> dict:
    """The Snapshot in a YAML or JSON file, or given as data. Raises NotFound or InvalidDocument with all problems."""
    if isinstance(source, dict):
        return checked(yamltree.Document(source, {}, "snapshot (inline)"))
    if not isinstance(source, str):
        raise InvalidDocument(f"a snapshot is a path or a map, not a {type(source).__name__}")
    try:
        with open(source, "rb") as stream:
            is_json = stream.read(64).lstrip().startswith(b"{")
            size = os.fstat(stream.fileno()).st_size
            if is_json and size <= MAX_JSON_BYTES:
                stream.seek(0)
                return parse(stream.read().decode("utf-8", errors="replace"), source)
    except OSError as error:
        raise NotFound(f"cannot be read: {os.strerror(error.errno or 0)}", file=source) from error
    except ValueError as error:  # a NUL byte in the name
        raise NotFound(f"cannot be read: {error}", file=repr(source)) from error
    return checked(yamltree.load_file(source))


def parse(text: str, source: str) -> dict:
    """The Snapshot in a YAML or JSON text. Raises InvalidDocument."""
    if not text.lstrip().startswith("{"):
        return checked(yamltree.load_text(text, source))
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        raise InvalidDocument(Problem("malformed-json", f"malformed JSON: {error}", source, line)) from error
    return checked(yamltree.Document(data, {}, source))


def checked(document: yamltree.Document) -> dict:
    problems = quickcheck.validate(document, "Snapshot", schema.SCHEMA)
    if problems:
        raise InvalidDocument(problems)
    return document.data
