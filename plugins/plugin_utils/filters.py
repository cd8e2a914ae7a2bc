# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What filters have in common: plain data goes in, and what is wrong with it is one error of Ansible's."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

from ansible.errors import AnsibleFilterError
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import FleetError


def guarded(function: Callable) -> Callable:
    """The function as a filter. It gets plain data; FleetError, TypeError, ValueError and RecursionError become an
    AnsibleFilterError that begins with its name."""

    @functools.wraps(function)
    def run(*args, **options):
        try:
            return function(*map(plain, args), **{name: plain(value) for name, value in options.items()})
        except (FleetError, TypeError, ValueError, RecursionError) as error:
            raise AnsibleFilterError(f"{function.__name__}: {error}") from error

    return run


def plain(value: object) -> object:
    """Without the containers and texts of its own that the templating engine hands to filters. Keys become texts, as in
    JSON. Raises TypeError for what JSON does not know either."""
    if value is None or isinstance(value, (bool, bytes)):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, (int, float)):
        return int(value) if isinstance(value, int) else float(value)
    if isinstance(value, Mapping):
        return {_key(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    raise TypeError(f"takes data as JSON has it, not {type(value).__name__}")


def _key(key: object) -> str:
    if isinstance(key, str):
        return str.__str__(key)
    if isinstance(key, (bool, int, float)):
        return str(key).lower() if isinstance(key, bool) else str(key)
    raise TypeError(f"takes texts as keys, not {type(key).__name__}")
