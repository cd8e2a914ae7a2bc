# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: version_satisfies
short_description: Does a version satisfy a recipe's constraint?
version_added: 1.0.0
description:
  - Judges a version the way recipes do. Versions compare at full precision, any number of numeric parts counts, C(-rc),
    C(-beta), C(-alpha), C(-pre) and C(-dev) come before the release, and other suffixes are builds without rank.
  - What is not a version, or empty, does not satisfy anything.
positional: constraint
options:
  _input:
    description: The version, as a cluster reports it.
    type: str
    required: true
  constraint:
    description:
      - One or more terms with commas between them, all of which must hold - V(>= 1.34), V(< 1.36), V(== 1.34.2),
        V(!= 1.34.1), V(in (1.34.2, 1.34.3\)), V(not in (1.34.0, 1.34.1\)), V(~ 1.34) or V(1.34.*), or plain text for
        equality.
    type: str
    required: true
author:
  - goodput.fleet contributors (@goodput)
"""

EXAMPLES = r"""
- name: Kernel new enough?
  ansible.builtin.assert:
    that: ansible_facts.kernel is defined and ansible_facts.kernel | goodput.fleet.version_satisfies('>= 6.8, < 7')
"""

RETURN = r"""
_value:
  description: Whether it does.
  type: bool
  sample: true
"""

from ansible.errors import AnsibleFilterError
from ansible_collections.goodput.fleet.plugins.module_utils.records import versions


def version_satisfies(value, constraint):
    try:
        return versions.satisfies(str(constraint), value)[0] == versions.PASS
    except ValueError as error:
        raise AnsibleFilterError(f"version_satisfies: {error} ({versions.GRAMMAR})") from error


class FilterModule:
    def filters(self):
        return {"version_satisfies": version_satisfies}
