# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""YAML for the files of a bundle. Values are dumped once and then only shifted: dumping is what rendering costs."""

from __future__ import annotations

import re

from ansible_collections.goodput.fleet.plugins.module_utils.records import yamltree

# where a line begins, for a YAML emitter too: it breaks lines at the three Unicode breaks
_LINE = re.compile("(?:^|(?<=[\x85\u2028\u2029]))(?=[^\n\x85\u2028\u2029])", re.MULTILINE)
NOTE = "# Rendered by goodput.fleet. Change the recipe and render again: a bundle that was edited does not verify.\n"


def document(head: dict, values: str = "", under: tuple[int, str] = (0, "")) -> bytes:
    """A file that holds `head`, and behind it `values` (dumped YAML) as the last key `under` = (depth, key)."""
    text = NOTE + yamltree.dump(head)
    if values:
        depth, key = under
        text += f"{' ' * depth}{key}:\n{indent(values, depth + 2)}"
    return text.encode()


def indent(text: str, width: int) -> str:
    """The YAML text moved to the right. Blank lines stay empty: they may be part of a literal block."""
    return _LINE.sub(" " * width, text)
