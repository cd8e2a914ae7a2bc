# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""{variables} in the commands of tests. `${NAME}` is the shell's; a brace of the command's own is written twice."""

from __future__ import annotations

import re
from collections.abc import Mapping

# what the size of a group gives
NAMES = ("nodes", "gpusPerNode", "gpus", "ranks")
_PLACE = re.compile(r"\{\{|\}\}|(?<!\$)\{([A-Za-z][A-Za-z0-9]*)\}")


def given_by_run(launcher: str) -> tuple[str, ...]:
    """`envFlags`, an argument of its own, is `-x NAME` for each variable of the environment."""
    return ("envFlags",) if launcher == "mpijob" else ()


def replace(text: str, values: Mapping[str, object]) -> tuple[str, list[str]]:
    """The text with its variables filled in, and the names of those that `values` lacks, which stay as they are."""
    missing: list[str] = []

    def one(match: re.Match) -> str:
        if match[0] in ("{{", "}}"):
            return match[0][0]
        if match[1] in values:
            return str(values[match[1]])
        missing.append(match[1])
        return match[0]

    return _PLACE.sub(one, text), missing


def literal(text: str) -> str:
    """A text in which nothing is to be filled in."""
    return text.replace("{", "{{").replace("}", "}}")
