# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files beside checkpoints that name the one a trainer will load: do they name one that is whole?"""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints import deepspeed, megatron, tree
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints.finding import Unclear

_MOST = 4096  # bytes


# Which trainers need a pointer beside checkpoints called so, and what they do without.
_NEEDED = (
    (re.compile(r"iter_\d{7,}"), megatron.TRACKER, "is missing: Megatron begins with random weights"),
    (re.compile(r"global_step\d+"), deepspeed.POINTERS[0], "is missing: DeepSpeed loads only a tag that it is told"),
)


def read(paths: list[str], documents: list[dict], judge: Callable[[str], dict | None], root: str) -> list[dict]:
    """One {path, names, complete, why} per pointer, those among them that are needed below `root` and missing.

    `judge` gives the document of a checkpoint by its path.
    """
    known = {document["path"]: document for document in documents}
    lacking = {
        os.path.join(folder, pointer): why
        for folder, name in map(os.path.split, known)
        for pattern, pointer, why in _NEEDED
        if pattern.fullmatch(name) and tree.inside(folder, root)
    }
    found = [_read(path, known, judge) for path in paths]
    found += [
        {"path": path, "names": None, "complete": False, "why": why}
        for path, why in lacking.items()
        if path not in paths
    ]
    return sorted(found, key=lambda pointer: pointer["path"])


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
