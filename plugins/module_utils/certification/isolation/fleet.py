# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The nodes under test as bits of an integer, so that groups are compared and united at once. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, Problem, nearest

# from so many members on, looking at every digit is the faster way
_DENSE = 24


def bits(mask: int) -> list[int]:
    """The numbers of the nodes in a group, ascending."""
    if mask.bit_count() > _DENSE:
        return [number for number, digit in enumerate(bin(mask)[:1:-1]) if digit == "1"]
    numbers = []
    while mask:
        low = mask & -mask
        numbers.append(low.bit_length() - 1)
        mask ^= low
    return numbers


class Fleet:
    """Nodes numbered by domain and name, so that neighbours in number are neighbours in the fabric.

    `mates[i]` is the group of all nodes in node i's domain, itself included; nodes without a domain count as one
    domain. `domains` maps each domain's name to its group.
    """

    def __init__(self, domain_of: dict[str, str | None]):
        self.names = sorted(domain_of, key=lambda name: (domain_of[name] is None, domain_of[name] or "", name))
        self.index = {name: number for number, name in enumerate(self.names)}
        self.all = (1 << len(self.names)) - 1
        groups: dict[str | None, int] = {}
        for number, name in enumerate(self.names):
            groups[domain_of[name]] = groups.get(domain_of[name], 0) | 1 << number
        self.domains = {name: group for name, group in groups.items() if name is not None}
        self.blocks = list(groups.values())
        self.mates = [groups[domain_of[name]] for name in self.names]

    def __len__(self) -> int:
        return len(self.names)

    def members(self, mask: int) -> list[str]:
        return [self.names[number] for number in bits(mask)]

    def spans(self, mask: int) -> bool:
        """Whether a group has nodes of more than one domain."""
        return bool(mask & ~self.mates[(mask & -mask).bit_length() - 1])


def read(nodes: Iterable[str | dict]) -> Fleet:
    """Names, or maps {name, domain}; `domain` (a rack, an NVLink clique) may be absent. InvalidDocument otherwise."""
    domain_of: dict[str, str | None] = {}
    problems = []
    for number, node in enumerate(nodes):
        name, domain = (node.get("name"), node.get("domain")) if isinstance(node, dict) else (node, None)
        where = f"nodes[{number}]"
        if not isinstance(name, str) or not name:
            problems.append(Problem("isolation", f"is {node!r}", path=where, hint="a name, or {name, domain}"))
        elif domain is not None and not isinstance(domain, str):
            problems.append(Problem("isolation", f"is {domain!r}, not a text", path=f"{where}.domain"))
        elif name in domain_of:
            problems.append(Problem("isolation", f"{name!r} is named twice", path=where))
        else:
            domain_of[name] = domain or None
    if problems:
        raise InvalidDocument(problems)
    return Fleet(domain_of)


def group_of(fleet: Fleet, names: object, where: str, problems: list[Problem]) -> int:
    """A group as bits; 0, with the reasons in `problems`, when it is none."""
    if not isinstance(names, (list, tuple)) or not names:
        problems.append(Problem("isolation", f"is {names!r}", path=where, hint="a list of node names"))
        return 0
    group, before = 0, len(problems)
    for name in names:
        number = fleet.index.get(name) if isinstance(name, str) else None
        if number is None:
            hint = nearest(name, fleet.names)
            problems.append(Problem("isolation", f"{name!r} is no node of this run", path=where, hint=hint))
        elif group >> number & 1:
            problems.append(Problem("isolation", f"{name!r} is named twice", path=where))
        else:
            group |= 1 << number
    return group if len(problems) == before else 0
