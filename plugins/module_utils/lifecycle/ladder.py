# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is tried against a fault, in which order: reset the GPU, reboot the node, replace it, hand it to people. Pure.

A rung never follows a wider one: what a reboot did not mend, a reset will not. The ticket is always there, so that no
node is left closed without somebody who must act.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

RUNGS = ("reset", "reboot", "replace", "ticket")
TICKET = RUNGS[-1]
NOTHING = ""  # there is nothing to repair; the node has to prove that it is well, and that is all

# recommendedAction of a HealthEvent -> the first rung
FIRST = {
    "NONE": NOTHING,
    "RESTART_APP": NOTHING,
    "COMPONENT_RESET": "reset",
    "BUS_RESET": "reset",
    "DRAIN_P2P": "reset",
    "DRAIN_RESET": "reset",
    "RECOVER_IMEX_DOMAIN": "reboot",
    "RESTART_VM": "reboot",
    "RESTART_BM": "reboot",
    "REPLACE_VM": "replace",
    "RUN_DCGMEUD": TICKET,
    "RUN_FIELDDIAG": TICKET,
    "CONTACT_SUPPORT": TICKET,
    "UNKNOWN": TICKET,
}


def first(action: str) -> str:
    """The rung to begin with, NOTHING where there is none to climb. What nobody understands is for people."""
    return FIRST.get(action, TICKET)


def choose(
    start: str, tried: Iterable[str], executors: Mapping[str, str], spent: Callable[[str], str]
) -> tuple[str, list[str]]:
    """The next rung, and why the ones before it were passed over.

    `tried`: rungs of this request, in order; `executors`: the rungs that somebody can carry out; `spent(rung)`: why the
    budget has no further attempt at it, "" where it has.
    """
    tried, skipped = list(tried), []
    lowest = max(map(RUNGS.index, [start or TICKET, *tried]))
    for rung in RUNGS[lowest:-1]:
        why = f"no executor for {rung}" if rung not in executors else spent(rung)
        if not why:
            return rung, skipped
        skipped.append(why)
    return TICKET, skipped
