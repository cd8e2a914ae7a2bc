# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`-e revalidate_until_done=true` sets the text "true", which is no condition, and "false" as text is true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[3]
ROLES = sorted(path.parent.parent for path in ROOT.glob("roles/*/meta/argument_specs.yml"))


def flags(role: Path) -> list[str]:
    spec = yaml.safe_load((role / "meta/argument_specs.yml").read_text())
    options = [entry.get("options") or {} for entry in spec["argument_specs"].values()]
    return [name for each in options for name, option in each.items() if option["type"] == "bool"]


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_flags_are_made_true_or_false_where_something_hangs_on_them(role):
    bare = []
    for name in flags(role):
        # beside a word of logic, or alone as an entry of `when`; what a module is given, it converts itself
        used = re.compile(rf"((when:|- |\b(if|and|or|not)) *{name}\b(?! *\| *bool))|(\b{name} (and|or|if|else)\b)")
        for path in sorted(role.glob("tasks/**/*.yml")):
            bare += [f"{path.relative_to(ROOT)}: {line.strip()}" for line in conditions(path) if used.search(line)]
    assert not bare


def conditions(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if not re.match(r" *#", line)]
