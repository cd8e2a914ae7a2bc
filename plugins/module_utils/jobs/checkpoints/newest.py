# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Chooses among checkpoints that were looked at, on one host or several."""

from __future__ import annotations

from ansible_collections.goodput.fleet.plugins.module_utils.jobs.checkpoints.finding import is_int
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, Problem


def newest(checkpoints: object, before: int | None = None) -> dict | None:
    """The complete checkpoint with the highest step, written last among equals; `before` bounds the step.

    `checkpoints` is a list of {complete, step, writtenAt, ...}, or a document with such a list at `checkpoints`.
    Those without a step are older than all others. Raises `InvalidDocument` for anything else.
    """
    if isinstance(checkpoints, dict) and "checkpoints" in checkpoints:
        checkpoints = checkpoints["checkpoints"]
    if not isinstance(checkpoints, list):
        raise InvalidDocument(
            f"not a list of checkpoints but {type(checkpoints).__name__}", hint="what checkpoint_info returns"
        )
    if before is not None and not is_int(before):
        raise InvalidDocument(f"not a step: {before!r}", path="before", hint="a whole number")
    problems = [problem for index, item in enumerate(checkpoints) for problem in _problems(index, item)]
    if problems:
        raise InvalidDocument(problems)
    whole = [item for item in checkpoints if item["complete"] is True]
    if before is not None:
        whole = [item for item in whole if item.get("step") is not None and item["step"] < before]
    return max(whole, key=_age, default=None)


def _age(item: dict) -> tuple:
    step = item.get("step")
    return step is not None, step or 0, item.get("writtenAt") or ""


def _problems(index: int, item: object) -> list[Problem]:
    def problem(path: str, message: str, hint: str) -> Problem:
        return Problem("invalid-document", message, path=f"[{index}]{path}", hint=hint)

    if not isinstance(item, dict):
        return [problem("", "not a checkpoint", "a dictionary with complete, step and path")]
    found = []
    if item.get("complete", 0) not in (True, False, None) or "complete" not in item or is_int(item["complete"]):
        found.append(problem(".complete", "is missing or no answer", "true, false or null"))
    if item.get("step") is not None and not is_int(item["step"]):
        found.append(problem(".step", f"not a step: {item['step']!r}", "a whole number or null"))
    if item.get("writtenAt") is not None and not isinstance(item["writtenAt"], str):
        found.append(problem(".writtenAt", f"not a time: {item['writtenAt']!r}", "such as 2026-11-29T02:41:07Z"))
    return found
