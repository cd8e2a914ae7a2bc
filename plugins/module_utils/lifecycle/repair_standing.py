# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a repair stands: what became of its attempt, of its validation, and of the node meanwhile. Pure."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from datetime import timedelta

from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle import (
    budget,
    ladder,
    repair_attempt,
    repair_validation,
    requests,
)
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle import repair_request as made
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle.nodefacts import gate as gate_of
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle.nodefacts import holders
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle.repair_step import (
    STAMP,
    Context,
    Step,
    open_attempt,
    phase,
)


def look(context: Context, doc: Mapping) -> Step:
    """The step of a request that is not over; `due` where it wants its next rung."""
    status = copy.deepcopy(dict(doc.get("status") or {}))
    status.setdefault("phase", "Open")
    step = Step(dict(doc), status)
    attempt, node = open_attempt(status), context.nodes.get(step.node)
    if attempt is not None:
        _keep_serials(step, context.outcome(step, attempt))
    if node is None or node["uid"] != step.uid:
        _other_machine(context, step, attempt, node)
        return step
    gate = gate_of(node, made.owner(doc))
    if gate is not None and not gate["readable"]:
        step.tell("waiting", why=gate["problem"])
    elif status["phase"] == "Validating":
        _validating(context, step, node, gate)
    else:
        _repairing(context, step, attempt, node, gate)
    return step


def _repairing(context: Context, step: Step, attempt: dict | None, node: Mapping, gate: Mapping | None) -> None:
    newer, held = _superseded(step, node, gate), _held(step, node, gate)
    if attempt is None:
        step.due = step.status["phase"] != "Exhausted"
    elif newer or held:
        _judge(context, step, attempt, node, newer)
    else:
        # the executor's word is kept; whether it helped is not ours to find out any more
        attempt.update(repair_attempt.noted(attempt, context.outcome(step, attempt)))
    if newer and made.owner(step.doc) == made.VALIDATION:
        step.due = False
        step.tell("waiting", why=newer)
    elif newer and open_attempt(step.status) is None:
        step.end("Withdrawn", newer, context.stamp)
    elif not newer and not held:
        exhausted = step.status["phase"] == "Exhausted"
        why = "the node was opened by whoever has the ticket" if exhausted else "somebody opened the gate"
        step.end("Closed" if exhausted else "Withdrawn", why, context.stamp)


def _held(step: Step, node: Mapping, gate: Mapping | None) -> bool:
    """Whether the node is still closed for what the request is about: by its gate, or once that was given up for
    validation, by validation."""
    if made.of_gate(step.doc, gate):
        return True
    return bool(step.status.get("validation")) and gate_of(node, made.VALIDATION) is not None


def _superseded(step: Step, node: Mapping, gate: Mapping | None) -> str:
    """Why another request goes on with the node, or goes first, "" where none does."""
    if made.owner(step.doc) == made.VALIDATION:
        there = gate_of(node, made.QUARANTINE) is not None
        return "a fault closed the node since, and goes first" if there else ""
    if gate is None or made.of_gate(step.doc, gate):
        return ""
    return f"the gate was opened, and closed again at {made.since(gate)}; another request goes on"


def _other_machine(context: Context, step: Step, attempt: dict | None, node: Mapping | None) -> None:
    """The node is gone, or another one has its name."""
    replacing = any(each["rung"] == "replace" for each in step.attempts)
    if node is not None:
        if attempt is not None:
            _judge(context, step, attempt, node, "another machine")
        step.end("Closed", f"replaced: another node has the name, with uid {node['uid']}", context.stamp)
        step.handover = None
    elif replacing and attempt is not None:
        _judge(context, step, attempt, None, "")
    elif replacing and step.status["phase"] != "Exhausted":
        step.due = True
    else:
        step.end("Withdrawn", "the node is gone", context.stamp)


def _judge(context: Context, step: Step, attempt: dict, node: Mapping | None, newer: str) -> None:
    if attempt["rung"] == ladder.TICKET:
        ticket(context, step, attempt, node)
        return
    outcome, timeout = context.outcome(step, attempt), context.policy.timeouts[attempt["rung"]]
    noted = repair_attempt.noted(attempt, outcome)
    replaced = node is not None and node["uid"] != step.uid
    fault = "" if node is None or replaced else newer or context.fault_after(step, noted, noted.get("executedAt"))
    state, why, changed = repair_attempt.judge(attempt, outcome, node, fault, timeout, context.now)
    attempt.update(changed)
    if replaced and attempt["rung"] != "replace":
        state, why = repair_attempt.FAILED, newer
    about = {"rung": attempt["rung"], "key": attempt["key"], "why": why}
    if state == repair_attempt.OPEN:
        step.say(f"{attempt['rung']}: {why}")
        until = (budget.moment(attempt["requestedAt"]) or context.now) + timedelta(seconds=timeout)
        before = {part: attempt.get(part) or "" for part in ("bootBefore", "uidBefore")}
        step.tell("pending", **about, **before, until=until.strftime(STAMP))
    elif state == repair_attempt.FAILED:
        _failed(step, attempt, "verified", why)
    else:
        attempt.update(verified=True, verifiedAt=context.stamp)
        if not replaced:
            validate(context, step, node, attempt)
        step.tell("verified", **about, validation=attempt.get("validation") or "")


def _failed(step: Step, attempt: dict | None, fact: str, why: str) -> None:
    """An attempt did not help. On to the next rung."""
    if attempt is not None:
        attempt.update({fact: False, "detail": why[: repair_attempt.MAX_DETAIL]})
        step.tell("failed_attempts", rung=attempt["rung"], key=attempt["key"], why=why)
    step.status["phase"], step.due = "Open", True
    step.say(why)


def ticket(context: Context, step: Step, attempt: dict, node: Mapping | None) -> None:
    """The node is handed to people: said again, under the same key, until somebody has taken it."""
    outcome = context.outcome(step, attempt)
    attempt.update(repair_attempt.noted(attempt, outcome))
    body = made.ticket(step.doc, step.status, node or {}, step.status.get("message") or "", attempt["key"])
    if not attempt.get("executed"):
        step.tell("tickets", **{part: body[part] for part in body if part not in ("request", "node")})
        return
    attempt.update(verified=True, verifiedAt=context.stamp)
    step.status["ticket"] = {"key": attempt["key"], "at": context.stamp, "by": attempt.get("executor") or ""}
    if outcome.get("reference"):
        step.status["ticket"]["reference"] = str(outcome["reference"])[:1024]
    exhaust(context, step, body)


def exhaust(context: Context, step: Step, body: Mapping) -> None:
    """Nothing is left that we could do; the node stays closed."""
    reference = (step.status.get("ticket") or {}).get("reference")
    told = f"; ticket {reference}" if reference else ""
    why = body["why"][:600]
    step.end("Exhausted", f"{why}{told}; next: {body['who']}", context.stamp, ticket=dict(body))


def _validating(context: Context, step: Step, node: Mapping, gate: Mapping | None) -> None:
    """The repair is done, and the node has to prove it."""
    attempt = step.attempts[-1] if step.attempts else None
    newer = _superseded(step, node, gate)
    if newer and made.owner(step.doc) == made.VALIDATION:
        _failed(step, attempt, "validated", newer)
        step.due = False
        return
    if newer:
        if attempt is not None:
            attempt["validated"] = False
        step.end("Closed", f"did not last: {newer}", context.stamp)
        return
    name = step.status.get("validation") or ""
    request, held = context.validations.get(name), gate_of(node, made.VALIDATION)
    if made.of_gate(step.doc, gate) and not _handed_over(gate, request):
        fault = context.fault_after(step, attempt, attempt.get("verifiedAt")) if attempt else ""
        if fault:
            _failed(step, attempt, "validated", f"the fault came again: {fault}")
        else:
            validate(context, step, node, attempt)
        return
    if request is None:
        if held is None:
            step.end("Withdrawn", f"ValidationRequest {name} is gone, and somebody opened the node", context.stamp)
        else:
            why = f"ValidationRequest {name} is gone; the node stays closed until another one is passed"
            step.tell("waiting", why=why)
        return
    entry = _entry(request, node)
    state = entry.get("phase") or ("Failed" if phase(request) == "Failed" else "")
    if state in ("Passed", "Opened"):
        if attempt is not None:
            attempt["validated"] = True
        others = holders(node)
        step.end("Closed", "validated" + (f"; held by {', '.join(others)}" if others else ""), context.stamp)
    elif state == "Failed":
        _failed(step, attempt, "validated", f"did not pass {name}: {entry.get('why') or 'no reason told'}")
    else:
        step.say(f"waits for ValidationRequest {name}")


def _handed_over(gate: Mapping, request: Mapping | None) -> bool:
    """A fault's gate that stands is not handed over yet; validation's own is once it stands for the request."""
    if gate["owner"] != made.VALIDATION or request is None:
        return False
    return repair_validation.stands_for(gate, request)


def _entry(request: Mapping, node: Mapping) -> Mapping:
    """What a ValidationRequest says of the node."""
    for each in (request.get("status") or {}).get("nodes") or ():
        if each["name"] == node["name"] and each.get("uid") in (node["uid"], "", None):
            return each
    return {}


def validate(context: Context, step: Step, node: Mapping, attempt: dict | None) -> None:
    """On to validation. The status names the request first; it is made, and the node gated for it, after that."""
    policy, owner = context.policy, made.owner(step.doc)
    what = attempt["key"] if attempt else f"{step.name}, nothing to repair"
    doc = context.validations.get(step.status.get("validation") or "") if step.status["phase"] == "Validating" else None
    if doc is None:
        doc = requests.make(
            "repaired",
            [{part: node[part] for part in ("name", "uid", "bootId")}],
            policy.tests,
            options=policy.options,
            cause=f"{step.fault['code']}: {what}",
            retries=policy.retries,
            namespace=policy.namespace,
        )
    name, gate = doc["metadata"]["name"], gate_of(node, owner)
    earlier = {each.get("validation") for each in step.attempts} | {made.failed_validation(step.doc)}
    made_good = [
        each
        for key, each in context.validations.items()
        if key != name and (key in earlier or _failed_the_same(each, doc, node))
    ]
    step.status.update(phase="Validating", validation=name, rung=attempt["rung"] if attempt else "")
    step.status.setdefault("startedAt", context.stamp)
    if attempt is not None:
        attempt["validation"] = name
    step.say(f"waits for ValidationRequest {name}")
    step.tell("validations", name=name)
    standing = gate if made.of_gate(step.doc, gate) else gate_of(node, made.VALIDATION)
    step.handover = {
        "request": step.name,
        "node": node["name"],
        "standing": {part: standing[part] for part in ("owner", "evidence")},
        "uid": node["uid"],
        "bootId": node["bootId"],
        "validation": doc,
        "made": name in context.validations,
        "evidence": repair_validation.evidence(gate_of(node, made.VALIDATION), doc, made_good, _asking(context, node)),
        "release": gate if owner != made.VALIDATION and made.of_gate(step.doc, gate) else None,
    }


def _failed_the_same(request: Mapping, doc: Mapping, node: Mapping) -> bool:
    """Whether it is over and asked for the tests that the node is to pass now."""
    if phase(request) != "Failed" or requests.tests_key(request["spec"]) != requests.tests_key(doc["spec"]):
        return False
    return _entry(request, node).get("phase") == "Failed"


def _asking(context: Context, node: Mapping) -> list[Mapping]:
    """Open ValidationRequests that name the node."""
    return [
        doc
        for doc in context.validations.values()
        if requests.is_open(doc) and any(each.get("uid") == node["uid"] for each in doc["spec"]["nodes"])
    ]


def _keep_serials(step: Step, outcome: Mapping) -> None:
    told = [str(each)[:253] for each in outcome.get("serials") or () if each]
    if told:
        step.status["serials"] = list(dict.fromkeys([*(step.status.get("serials") or ()), *told]))[:256]
