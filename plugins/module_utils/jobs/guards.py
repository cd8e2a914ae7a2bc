# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What may stop a restart that the table asks for, in this order: storage, a lost checkpoint, a bug that comes again,
used-up budgets, the budget of all jobs together, and missing capacity."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ansible_collections.goodput.fleet.plugins.module_utils.jobs import budgets, memory, moments, placement
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.budgets import Everybody, Use
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.placement import Place
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.rows import Case, Verdict

RESTARTS = memory.RESTARTS


@dataclass(slots=True)
class Shared:
    """What all decisions of a pass share: `taken` are GPUs per node, `lemons` is {node: why}."""

    everybody: Everybody
    lemons: Mapping[str, str]
    taken: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Passed:
    """A verdict after the guards, and what they found."""

    verdict: Verdict
    uses: list[Use] = field(default_factory=list)
    place: Place | None = None
    resize: dict | None = None
    missing: dict | None = None


def guard(case: Case, verdict: Verdict, shared: Shared) -> Passed:
    passed = Passed(verdict)
    if verdict.action == "requeue":
        _requeues(case, passed)
    if verdict.action not in RESTARTS:
        return passed
    for check in GUARDS:
        check(case, passed, shared)
        if passed.verdict.action not in RESTARTS:
            return passed
    if passed.place:
        per_pod = (case.job.get("shape") or {}).get("gpusPerPod") or 0
        for node, pods in passed.place.take.items():
            shared.taken[node] = shared.taken.get(node, 0) + pods * per_pod
    done = case.job.get("succeeded") or 0
    if done:
        passed.verdict.why.append(f"what its {done} pods that succeeded have done is done again")
    passed.verdict.until = _not_before(case, passed.verdict)
    return passed


def _requeues(case: Case, passed: Passed) -> None:
    use = budgets.requeues(case.policy.budgets.requeues, case.before, case.now)
    passed.uses.append(use)
    if use.full:
        _stop(passed, "escalate", "row-16", f"{use.why}: it would hold its quota for ever", 11)
        return
    carried = _carried(case)
    if carried and placement.place(case.attempt, case.nodes, {**carried, **passed.verdict.exclude}).fits is not False:
        passed.verdict.exclude = {**carried, **passed.verdict.exclude}


def _storage(case: Case, passed: Passed, shared: Shared) -> None:
    if (case.fleet.get("storage") or {}).get("ok") is False:
        _stop(passed, "hold", "row-14", f"{case.storage}: the job waits until it is", 14)
        passed.verdict.escalate = True
    elif case.storage and passed.verdict.soft:
        verdict = passed.verdict
        verdict.action, verdict.soft = "retry", False
        verdict.exclude.clear()
        verdict.hardware.clear()
        verdict.why.append(f"but {case.storage}, which looks like many sick nodes: no node is suspected for that")
        verdict.safety.add(14)


def _lost_checkpoint(case: Case, passed: Passed, shared: Shared) -> None:
    checkpoint = case.attempt.get("checkpoint")
    before = [entry.checkpoint for entry in case.before if entry.checkpoint is not None]
    if not checkpoint or checkpoint.get("complete") or not before:
        return
    why = f"no checkpoint is whole, and there was one of step {max(before)}: a restart would begin anew"
    _stop(passed, "hold", "row-14", why)
    passed.verdict.escalate = True


def _same_bug(case: Case, passed: Passed, shared: Shared) -> None:
    limit = case.policy.budgets.same_failure
    exits = {(case.attempt.get(part) or {}).get("exitCode") for part in ("signature", "firstFailure")}
    if exits & case.policy.budgets.replays:
        code = sorted(exits & case.policy.budgets.replays)[0]
        passed.verdict.why.append(f"exit code {code} asks for the same step again, so that it comes again is no fault")
        passed.verdict.safety.add(13)
        return
    if case.look.sick:
        return
    count = budgets.same(case.history.of(case.attempt), case.attempt)
    if memory.fault_of(case.attempt):
        passed.uses.append(Use("sameFailure", count, limit, f"the same {count} times before"))
    if count >= max(1, limit):
        exception = case.attempt["signature"].get("exception") or {}
        place = f" in {exception['file']}:{exception.get('line')}" if exception.get("file") else ""
        step = memory.step_of(case.attempt)
        at = f" at step {step}" if step is not None else ""
        what = exception.get("type") or case.look.id
        why = (
            f"{what}{place}{at}, the same as {_times(count)} before: a bug that comes again, "
            "so no more GPUs are spent on it"
        )
        _stop(passed, "giveBack", "row-16", why)


def _budgets(case: Case, passed: Passed, shared: Shared) -> None:
    uses = budgets.of_job(case.policy.budgets, case.attempt, case.before, case.advanced, case.cls, case.now)
    passed.uses.extend(uses)
    full = [use for use in uses if use.full]
    if not full:
        return
    ours = bool(case.look.sick) or case.look.cls == "unknown" or all(use.name.startswith("job-") for use in full)
    action = "escalate" if ours and not any(use.name == "declared" for use in full) else "giveBack"
    why = "; ".join(f"{use.why}, {use.max} allowed" for use in full)
    _stop(passed, action, "row-16", why, 1, 10)


def _capacity(case: Case, passed: Passed, shared: Shared) -> None:
    """Excluded nodes and lemons are avoided as far as there is room; a node that is surely at fault always."""
    verdict = passed.verdict
    if not case.nodes:
        verdict.why.append("nothing is known of the nodes, so the scheduler has to find room")
        return
    carried = _carried(case)
    must = {} if verdict.soft else verdict.exclude
    may = {**carried, **({} if verdict.action == "retry" else shared.lemons), **verdict.exclude}
    first = _place(case, may, verdict, shared)
    if first.fits is False and may.keys() - carried.keys() - verdict.exclude.keys():
        # rather on a node that is only often blamed than on one that was left out for a reason
        few = {**carried, **verdict.exclude}
        second = _place(case, few, verdict, shared)
        first, may = (second, few) if second.fits is not False else (first, may)
    cost = sum(first.stranded.get(node, 0) for node in verdict.exclude)
    if verdict.soft and verdict.exclude and cost and not _blamed_before(case, verdict):
        verdict.why.append(
            f"to leave it out on a first suspicion would idle {cost} other nodes of its domain: in place"
        )
        verdict.action, verdict.exclude = "retry", {}
        passed.place, verdict.exclude = _place(case, carried, verdict, shared), dict(carried)
    elif first.fits is not False:
        passed.place, verdict.exclude = first, may
        for node, count in first.stranded.items():
            verdict.why.append(f"without {node}, {count} other nodes of its domain are of no use to the job")
    else:
        passed.place, verdict.exclude = _place(case, must, verdict, shared), dict(must)
        if verdict.soft and passed.place.fits is not False:
            verdict.action = "retry"
            verdict.why.append("there is no room without the suspect, so in place")
    shared_lemons = sorted(verdict.exclude.keys() & shared.lemons.keys())
    if shared_lemons:
        verdict.safety.add(10)
        verdict.why.append(f"also without nodes that keep killing jobs: {', '.join(shared_lemons)}")
    if passed.place.fits is None:
        verdict.why.append(f"{passed.place.why}: the scheduler has to find room")
    elif not passed.place.fits:
        _too_small(case, passed)


def _too_small(case: Case, passed: Passed) -> None:
    shape = case.job.get("shape") or {}
    wanted, fit = placement.workers(case.attempt), passed.place.pods
    if not shape.get("gang", True) and fit:
        passed.verdict.why.append(f"{passed.place.why}; its pods do not need each other, so the others wait their turn")
        return
    elastic = shape.get("elastic") or {}
    if elastic and fit >= max(1, elastic.get("min") or 1):
        passed.resize = {"pods": min(fit, elastic.get("max") or fit), "was": wanted}
        passed.verdict.rule = "row-18"
        passed.verdict.why.append(f"{passed.place.why}; the job declares that fewer pods will do: {fit}")
        return
    gpus = (wanted - fit) * (shape.get("gpusPerPod") or 0)
    passed.missing = {"pods": wanted - fit, "gpus": gpus, "why": passed.place.why}
    why = f"{passed.place.why}: {gpus} GPUs are missing; the nodes under diagnosis should come first"
    _stop(passed, "hold", "row-18", why, 12)


def _spent(case: Case, passed: Passed, shared: Shared) -> None:
    """Asked before room is looked for, as that is what takes long where a thousand jobs wait."""
    if shared.everybody.spent(case.attempt["key"]):
        _everybody(case, passed, shared)


def _everybody(case: Case, passed: Passed, shared: Shared) -> None:
    if not shared.everybody.take(case.attempt["key"]):
        use = shared.everybody.use()
        _stop(passed, "hold", passed.verdict.rule, f"{use.why}, and no more are allowed: the job waits", 1, 14)
        passed.verdict.until = shared.everybody.again()
    passed.uses.append(shared.everybody.use())


GUARDS: tuple[Callable[[Case, Passed, Shared], None], ...] = (
    _storage,
    _lost_checkpoint,
    _same_bug,
    _budgets,
    _spent,
    _capacity,
    _everybody,
)


def _stop(passed: Passed, action: str, rule: str, why: str, *safety: int) -> None:
    """The restart does not happen; what is advised about nodes stays."""
    verdict = passed.verdict
    verdict.action, verdict.rule = action, rule
    verdict.why.append(why)
    verdict.escalate = verdict.escalate or action == "escalate"
    verdict.safety.update(safety)


def _place(case: Case, without: Mapping[str, str], verdict: Verdict, shared: Shared) -> Place:
    return placement.place(case.attempt, case.nodes, without, verdict.shun, shared.taken)


def _carried(case: Case) -> dict[str, str]:
    """Nodes that earlier attempts were to leave out, as long as that lasts and no certification cleared them."""
    found = {}
    for entry in case.before:
        for node in sorted(entry.exclude):
            certified = moments.of((case.nodes.get(node) or {}).get("certifiedAt"))
            if entry.at + case.policy.suspects.exclude > case.now and (certified is None or certified < entry.at):
                found[node] = f"left out since {moments.text(entry.at)} ({entry.id or entry.cls or entry.action})"
    return found


def _blamed_before(case: Case, verdict: Verdict) -> bool:
    return any(entry.blamed & verdict.exclude.keys() for entry in case.history.of(case.attempt))


def _not_before(case: Case, verdict: Verdict) -> float | None:
    """After the backoff; at once only where a node was surely to blame or the old attempt is surely gone."""
    retries = 0
    for entry in reversed(case.before):
        if case.advanced:
            break
        retries += entry.restarted
        if entry.advanced:
            break
    clean = not case.look.lingering and not case.look.hung and case.attempt.get("state") != "lost"
    if case.look.lingering:
        verdict.safety.add(3)
        verdict.why.append(f"not before the old pods are gone: {', '.join(case.look.lingering[:4])}")
    ended = moments.of(case.attempt.get("endedAt"))
    wait = budgets.delay(case.policy.backoff, case.attempt["key"], retries, bool(case.look.fatal) or clean)
    at = (case.now if ended is None else ended) + wait
    return at if at > case.now else None


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
