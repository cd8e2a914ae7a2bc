# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The next rung of a repair: whether it may begin now, and what whoever carries it out has to know. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle import budget, ladder, repair_standing
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle import repair_request as made
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle.nodefacts import gate as gate_of
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle.repair_step import Context, Step

_MACHINE = ("address", "providerId", "machineId", "systemUUID")


def go_on(context: Context, step: Step, room: budget.Room) -> None:
    """Request the next attempt of a step that is due, where nothing is in its way; else say what is."""
    node = context.nodes.get(step.node) or {}
    if node.get("noRepair"):
        step.tell("waiting", why=f"annotation {made.NO_REPAIR}")
        return
    start = ladder.first(step.fault.get("action") or "")
    if step.fault["code"] == made.CERTIFICATION:
        start = context.policy.on_validation_failure
    rung, skipped = _choose(context, step, start)
    if start == ladder.NOTHING and not step.attempts and not step.status.get("validation"):
        in_vain = _proven_in_vain(context, step)
        if not in_vain:
            if not step.fresh:
                repair_standing.validate(context, step, node, None)
            return
        skipped = [in_vain]
    step.status["rung"] = rung
    if rung == ladder.TICKET or not node:
        _give_up(context, step, node, start, skipped)
    else:
        _try(context, step, node, rung, room)


def _choose(context: Context, step: Step, start: str) -> tuple[str, list[str]]:
    policy, history = context.policy, context.history.get(step.uid, [])

    def spent(rung: str) -> str:
        return budget.spent(policy.bounds, history, rung, step.fault["code"], context.now)

    return ladder.choose(start, [each["rung"] for each in step.attempts], policy.executors, spent)


def _proven_in_vain(context: Context, step: Step) -> str:
    """Why another proof would tell nothing, "" where it would: a fault that comes again and again is for people."""
    bounds = context.policy.bounds
    begin = context.now - timedelta(seconds=bounds.window)
    times = sum(at > begin for at in context.proven.get((step.uid, step.fault["code"]), ()))
    if times < max(1, bounds.per_fault):
        return ""
    within = budget.spell(bounds.window)
    return f"{step.fault['code']} came again, after the node has passed validation for it {times} times within {within}"


def _try(context: Context, step: Step, node: Mapping, rung: str, room: budget.Room) -> None:
    entity = step.fault.get("entity") or ""
    scope = "gpu" if rung == "reset" and entity else "node"
    why = _not_now(context, step, node, room)
    if not step.status.get("message"):
        step.say(f"next: {rung}")
    if why:
        step.tell("waiting", rung=rung, why=why)
        return
    room.take(step.node, node["domain"])
    context.chosen.add(step.uid)
    about = {
        "uid": step.uid,
        "rung": rung,
        "entity": entity,
        "fault": step.fault["code"],
        "domain": node["domain"],
        "held_by": [each["detail"] for each in node["external"] if each["holds"]],
    }
    if step.fresh or not is_drained(context, step, scope):
        step.tell("repairs", drain_scope=scope, **about)
        return
    attempt = _request(context, step, node, rung)
    step.say(f"{rung} requested")
    told = {part: attempt[part] for part in ("key", "executor", "bootBefore")}
    told |= {part: node[part] for part in _MACHINE}
    serials = list(step.status.get("serials") or ())
    step.tell("execute", **about, **told, attempt=len(step.attempts), serials=serials)


def _not_now(context: Context, step: Step, node: Mapping, room: budget.Room) -> str:
    history = context.history.get(step.uid, [])
    if step.uid in context.chosen:
        return "another request of this node goes first"
    for each in history:
        if each.request != step.name and context.at_work(each):
            return f"{each.rung} of {each.request} may still be at work"
    return budget.too_soon(context.policy.bounds, history, context.now) or room.full(step.node, node["domain"])


def is_drained(context: Context, step: Step, scope: str = "gpu") -> bool:
    """A drain of the whole node serves the repair of one GPU as well, not the other way round."""
    done = context.drained.get(step.node)
    if done is None or (done.get("scope") or "node") == "node":
        return done is not None
    return scope == "gpu" and (done.get("entity") or "") in ("", step.fault.get("entity"))


def _give_up(context: Context, step: Step, node: Mapping, start: str, skipped: list[str]) -> None:
    """Nothing is left but people."""
    step.status["rung"] = ladder.TICKET
    step.say(_why(step, start, skipped)[:600])
    if step.fresh:
        return
    if ladder.TICKET in context.policy.executors:
        repair_standing.ticket(context, step, _request(context, step, node, ladder.TICKET), node)
        return
    key = made.key(step.doc, ladder.TICKET, len(step.attempts) + 1)
    body = made.ticket(step.doc, step.status, node, step.status["message"], key)
    repair_standing.exhaust(context, step, body)


def _why(step: Step, start: str, skipped: list[str]) -> str:
    failed = [f"{each['rung']}: {each.get('detail') or 'did not help'}" for each in step.attempts]
    if failed or skipped:
        return "; ".join([*failed, *skipped])
    if step.fault["code"] == made.CERTIFICATION or start != ladder.TICKET:
        return step.fault.get("reason") or step.fault["code"]
    action = step.fault.get("action") or "no action known"
    return f"no reset, reboot or other machine is known to mend {step.fault['code']} ({action})"


def _request(context: Context, step: Step, node: Mapping, rung: str) -> dict:
    """Writes the attempt down."""
    gate = gate_of(node, made.owner(step.doc)) if node else None
    attempt = {
        "rung": rung,
        "key": made.key(step.doc, rung, len(step.attempts) + 1),
        "executor": context.policy.executors[rung],
        "requestedAt": context.stamp,
        "bootBefore": node.get("bootId") or "",
        "uidBefore": node.get("uid") or "",
        "executed": None,
        "verified": None,
        "validated": None,
        "evidence": gate["evidence"] if made.of_gate(step.doc, gate) else "",
    }
    step.status.setdefault("attempts", []).append(attempt)
    step.status.update(phase="Repairing", rung=rung)
    step.status.setdefault("startedAt", context.stamp)
    return attempt
