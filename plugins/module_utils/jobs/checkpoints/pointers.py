# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files beside checkpoints that name the one a trainer will load: do they name one that is whole?"""

from __future__ import annotations

import os
from collections.abc import Callable

from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints import megatron, tree
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints.finding import Unclear

_MOST = 4096  # bytes


def read(paths: list[str], documents: list[dict], judge: Callable[[str], dict | None]) -> list[dict]:
    """One {path, names, complete, why} per pointer. `judge` gives the document of a checkpoint by its path."""
    known = {document["path"]: document for document in documents}
    return [_read(path, known, judge) for path in sorted(paths)]


def named(paths: list[str]) -> set[str]:
    """Paths of the checkpoints that pointers name, whether they are there or not."""
    answers = (_read(path, {}, lambda path: None) for path in paths)
    return {answer["names"] for answer in answers if answer["names"]}


def _read(path: str, known: dict[str, dict], judge: Callable[[str], dict | None]) -> dict:
    answer = {"path": path, "names": None, "complete": None, "why": ""}
    try:
        with tree.open_regular(path) as file:
            text = file.read(_MOST).decode("utf-8", "replace").strip("\0 \t\r\n")
    except OSError as error:
        return {**answer, "why": f"cannot be read: {error.strerror or error}"}
    except Unclear as error:
        return {**answer, "why": str(error)}
    if not text:
        return {**answer, "complete": False, "why": "is empty"}
    if os.path.basename(path) == megatron.TRACKER:
        if text != "release" and not (text.isascii() and text.isdigit() and len(text) <= 18):
            return {**answer, "complete": False, "why": f"says {text[:40]!r}, which is no iteration"}
        target = text if text == "release" else f"iter_{int(text):07d}"
    elif "/" in text or text in (".", ".."):
        return {**answer, "complete": False, "why": f"says {text[:80]!r}, which is no directory beside it"}
    else:
        target = text
    named = os.path.join(os.path.dirname(path), target)
    answer["names"] = named
    if not os.path.lexists(named):
        return {**answer, "complete": False, "why": f"names {target[:80]}, which is not there"}
    document = known.get(named) or judge(named)
    if document is None:
        return {**answer, "why": f"names {target[:80]}, which was not recognised"}
    return {**answer, "complete": document["complete"], "why": document["why"]}
