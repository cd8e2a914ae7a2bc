# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The requests of a drain: evictions, and deletions where a policy forces them. What came of each, as an Attempt."""

from __future__ import annotations

from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.client import api_path
from ansible_collections.goodput.fleet.plugins.module_utils.gates.drain_budgets import several
from ansible_collections.goodput.fleet.plugins.module_utils.gates.drain_plan import Attempt, Step
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import (
    Conflict,
    Denied,
    FleetError,
    NotFound,
    Unavailable,
)

MAX_BACKOFF = 30.0
EXACT_TRIES = 3  # conflicts after which a pod that changes all the time is held by its uid alone


def request(client, step: Step, exact: bool = True) -> None:
    """Ask for it. The uid keeps a new pod of the same name, the version a pod that has changed since, from harm."""
    pod = step.pod
    options: dict = {"preconditions": {"uid": pod.uid, **({"resourceVersion": pod.version} if exact else {})}}
    if step.grace is not None:
        options["gracePeriodSeconds"] = step.grace
    path = api_path("v1", "pods", pod.namespace, pod.name)
    if step.force:
        client.delete(path, {"apiVersion": "v1", "kind": "DeleteOptions", **options})
        return
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod.name, "namespace": pod.namespace},
        "deleteOptions": options,
    }
    client.post(f"{path}/eviction", body)


def attempt(client, step: Step, before: Attempt | None, budgets: list[str], now: float, interval: float) -> Attempt:
    """Ask, and say what came of it. `budgets`: names of those that select the pod, `now` in Unix seconds."""
    before = before or Attempt()
    made = Attempt(tries=before.tries + 1, conflicts=before.conflicts, unsure=before.unsure)
    made.next_at = now + min(MAX_BACKOFF, interval * 2 ** min(before.tries, 8))
    try:
        request(client, step, exact=before.conflicts < EXACT_TRIES)
        made.accepted = True
    except NotFound:
        made.message = "was gone already"
    except Conflict:
        # it changed since it was looked at, or is another pod by now: the next look tells
        made.tries, made.conflicts, made.next_at = before.tries, before.conflicts + 1, now
        made.message = "changed meanwhile, is looked at again"
    except FleetError as error:
        _refused(made, error, budgets, now)
    return made


def _refused(made: Attempt, error: FleetError, budgets: list[str], now: float) -> None:
    problem, status, text = error.problems[0], getattr(error, "status", None), str(error)
    if problem.code == "disruption-budget":
        names = ", ".join(budgets) or "whose name is not known"
        made.blocked, made.message = True, f"PodDisruptionBudget {names} forbids it: {_said(text)}"
    elif status == 500 and ("PodDisruptionBudget" in text or len(budgets) > 1):
        made.blocked, made.message = True, several(budgets)
    elif isinstance(error, Denied) and (status == 401 or problem.hint.startswith("user ")):
        made.final, made.message = True, text
    elif isinstance(error, Unavailable):
        made.unsure = made.unsure or status in (None, 502, 504)  # the request may have got through
        made.next_at = max(made.next_at, now + min(MAX_BACKOFF, getattr(error, "retry_after", 0.0)))
        made.message = f"{text}; it is asked again"
    else:  # an admission rule, or a namespace that is being deleted
        said = problem.hint if isinstance(error, Denied) else _said(text)
        made.blocked, made.message = True, f"the API server refuses it: {said}"


def _said(text: str) -> str:
    """What the server said, without what was asked."""
    return text.partition(": ")[2] or text
