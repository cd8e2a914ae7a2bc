# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What has become of an attempt that was requested. Pure.

Requested, executed and verified are three facts. That an executor says it has acted proves nothing: a reboot is
verified by another boot id of the same node, Ready again; a reset by what was read from the GPUs after it, in the same
boot; a replacement by another node of the name. A fault newer than the action undoes each of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle import budget
from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas.repairrequest import MAX_DETAIL

OPEN, VERIFIED, FAILED = "open", "verified", "failed"
STAMP = "%Y-%m-%dT%H:%M:%SZ"


def noted(attempt: Mapping, outcome: Mapping) -> dict:
    """The attempt with what its executor says. What is known is not forgotten by a later word that knows less."""
    changed = dict(attempt)
    if outcome.get("executed") is not None:
        changed["executed"] = outcome["executed"]
    at = budget.moment(outcome.get("at"))
    if changed.get("executed") and not changed.get("executedAt"):
        # the executor's clock may be wrong; it cannot have acted before it was asked to
        asked = budget.moment(attempt.get("requestedAt"))
        changed["executedAt"] = (max(at, asked) if at and asked else at or asked or _NEVER).strftime(STAMP)
    for name in ("executor", "detail"):
        if outcome.get(name):
            changed[name] = str(outcome[name])[: MAX_DETAIL if name == "detail" else 253]
    return changed


def judge(
    attempt: Mapping,
    outcome: Mapping,
    node: Mapping | None,
    fault: str,
    timeout: int,
    now: datetime,
) -> tuple[str, str, dict]:
    """(OPEN, VERIFIED or FAILED; why; the attempt by now).

    `outcome`: the executor's word, {} where there is none; `node`: as it is now, None where there is none; `fault`:
    what came up after the action, "" for nothing; `timeout` of the rung in seconds.
    """
    attempt = noted(attempt, outcome)
    booted = bool(node and node["bootId"] and attempt.get("bootBefore") and node["bootId"] != attempt["bootBefore"])
    if attempt["rung"] == "reboot" and booted and not attempt.get("executed"):
        # the node is witness, whatever became of the executor
        attempt.update(executed=True, executedAt=attempt.get("executedAt") or attempt.get("requestedAt"))
    if attempt.get("executed") is False:
        return FAILED, f"was not executed{_said(attempt)}", attempt
    state, why = _RULES[attempt["rung"]](attempt, outcome, node, booted)
    if state == VERIFIED and fault:
        return FAILED, f"the fault came again: {fault}", attempt
    if state == OPEN:
        asked = budget.moment(attempt.get("requestedAt"))
        if asked is None or now - asked >= timedelta(seconds=timeout) or budget.is_to_come(asked, now):
            return FAILED, f"not verified within {budget.spell(timeout)}: {why}{_said(attempt)}", attempt
    return state, why, attempt


def _reset(attempt: Mapping, outcome: Mapping, node: Mapping | None, booted: bool) -> tuple[str, str]:
    if booted:
        return FAILED, "the node booted meanwhile, so that nothing read after the reset holds any more"
    if outcome.get("verified") is False:
        return FAILED, f"the GPU is not well after it{_said(attempt)}"
    if outcome.get("verified") and attempt.get("executed"):
        return VERIFIED, "the GPU is well after it, in the same boot"
    return OPEN, "nothing was read from the GPU after it"


def _reboot(attempt: Mapping, outcome: Mapping, node: Mapping | None, booted: bool) -> tuple[str, str]:
    del outcome
    if node is None:
        return OPEN, "the node is gone"
    if not attempt.get("bootBefore"):
        return OPEN, "the node told no boot id before, so that nothing can prove a reboot"
    if not booted:
        return OPEN, f"the node still runs boot {node['bootId']}" if node["bootId"] else "the node tells no boot id"
    if not node["ready"]:
        return OPEN, f"the node runs boot {node['bootId']} and is not Ready"
    return VERIFIED, f"boot {attempt['bootBefore']} is over, the node is Ready with {node['bootId']}"


def _replace(attempt: Mapping, outcome: Mapping, node: Mapping | None, booted: bool) -> tuple[str, str]:
    del outcome, booted
    if node is None:
        return OPEN, "the node is gone, and no other has come under its name"
    if node["uid"] == attempt.get("uidBefore"):
        return OPEN, "the same node is still there"
    return VERIFIED, f"another node has the name, {node['uid']}"


_RULES = {"reset": _reset, "reboot": _reboot, "replace": _replace}
_NEVER = datetime.min.replace(year=1970, tzinfo=budget.moment("1970-01-01T00:00:00Z").tzinfo)


def _said(attempt: Mapping) -> str:
    return f" ({attempt['detail']})" if attempt.get("detail") else ""
