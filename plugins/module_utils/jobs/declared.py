# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a job's owner has declared about its recovery, on the job or on its namespace. Pure.

Annotations goodput.fleet/recovery: act | advise | off, and /recovery-max-retries, /recovery-elastic: "MIN-MAX",
/checkpoint-path, /recovery-resume-env: NAME. A label does as well. The job's word goes before its namespace's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.jobs import shapes
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import nearest

PREFIX = "goodput.fleet/"
MODE = f"{PREFIX}recovery"
MAX_RETRIES = f"{PREFIX}recovery-max-retries"
ELASTIC = f"{PREFIX}recovery-elastic"
CHECKPOINT = f"{PREFIX}checkpoint-path"
RESUME_ENV = f"{PREFIX}recovery-resume-env"
NUMBER = f"{PREFIX}attempt"
PREVIOUS = f"{PREFIX}previous-attempt"
USER = f"{PREFIX}user"
PATH, NAME = 4096, 253  # characters
MODES = ("act", "advise", "off")
_USERS = (USER, "user")
_RANGE = re.compile(r"\s*(\d{1,6})\s*[-:]\s*(\d{1,6})\s*")
_ENV = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
KUEUE = "kueue.x-k8s.io/queue-name"
KAI = ("kai.scheduler/queue", "runai/queue")
_KAI_SCHEDULERS = ("kai-scheduler", "runai-scheduler")


def mode(job: Mapping, namespace: Mapping | None, default: str = "off") -> tuple[str, str]:
    """(act | advise | off, where that is from). A word that is none of these is advise: nothing is done, and said why.

    default: for a job that nobody declared anything about.
    """
    for raw, what in ((job, "job"), (namespace, "namespace")):
        said = _said(raw, MODE)
        if said is None:
            continue
        word, where = said.strip().lower(), f"{MODE} of the {what}"
        if word in MODES:
            return word, where
        hint = nearest(word, MODES)
        return "advise", f"{where} is {said[:60]!r}, not act, advise or off{f' ({hint})' if hint else ''}"
    return default, f"nothing declared; {MODE}: act on the job or its namespace would opt in"


def opted_in(jobs: Iterable[Mapping], namespaces: Iterable[Mapping] = (), default: str = "off") -> list[Mapping]:
    """The jobs whose recovery is wanted, without those that another of the list made: what is worth a look."""
    spaces = by_name(namespaces)
    jobs = [job for job in jobs if isinstance(job, Mapping)]
    uids = {uid for job in jobs if (uid := shapes.text(shapes.metadata(job).get("uid")))}
    found = []
    for job in jobs:
        made_by = shapes.owner(job)
        if (
            job.get("kind") not in shapes.KINDS
            or made_by.get("kind") in shapes.KINDS
            or shapes.text(made_by.get("uid")) in uids
        ):
            continue
        if mode(job, spaces.get(shapes.text(shapes.metadata(job).get("namespace"))), default)[0] != "off":
            found.append(job)
    return found


def by_name(objects: Iterable[Mapping]) -> dict[str, Mapping]:
    return {name: raw for raw in objects if (name := shapes.text(shapes.metadata(raw).get("name")))}


def read(job: Mapping, namespace: Mapping | None, default: str = "off") -> dict:
    """{mode, modeFrom, maxRetries, elastic, checkpoint, resumeEnv, neverTouch, neverTouchWhy, user, queue, number,
    previous, problems: [texts]}. What cannot be read is as if it were not there, and is a problem."""
    problems: list[str] = []
    word, where = mode(job, namespace, default)
    if " is " in where:
        problems.append(where)
    path = _either(job, namespace, CHECKPOINT).strip()
    if len(path) > PATH:
        problems.append(f"{CHECKPOINT} has {len(path)} characters, more than the {PATH} of a path")
        path = ""
    why = _untouchable(job, word)
    return {
        "mode": word,
        "modeFrom": where,
        "maxRetries": _retries(_either(job, namespace, MAX_RETRIES), problems),
        "elastic": _elastic(job, _either(job, namespace, ELASTIC), problems),
        "checkpoint": {"path": path} if path else None,
        "resumeEnv": _env(_either(job, namespace, RESUME_ENV), problems),
        "neverTouch": bool(why),
        "neverTouchWhy": why,
        "user": next((said for key in _USERS if (said := _said(job, key))), "")[:NAME]
        or shapes.text(shapes.metadata(job).get("namespace")),
        "queue": queue(job),
        "number": _number(_said(job, NUMBER), problems),
        "previous": _said(job, PREVIOUS) or "",
        "problems": problems,
    }


def queue(job: Mapping) -> dict:
    """{kind: kueue | kai | none, name, managed}. managed: the queue's controller decides on suspend."""
    name = _said(job, KUEUE)
    if name:
        return {"kind": "kueue", "name": name, "managed": True}
    templates = [template for _name, _jobs, _pods, template in shapes.parts(job)]
    for raw in (job, *templates):
        for key in KAI:
            if shapes.text(shapes.labels(raw).get(key)):
                return {"kind": "kai", "name": shapes.labels(raw)[key], "managed": False}
    if any(shapes.spec(template).get("schedulerName") in _KAI_SCHEDULERS for template in templates):
        return {"kind": "kai", "name": "", "managed": False}
    return {"kind": "none", "name": "", "managed": False}


def _untouchable(job: Mapping, word: str) -> str:
    """Why nobody but its owner may start it again."""
    if word == "off":
        return "recovery is off"
    if shapes.metadata(job).get("deletionTimestamp"):
        return "it is being deleted"
    made_by = shapes.owner(job)
    if made_by and made_by.get("kind") not in shapes.KINDS:
        return f"{made_by.get('kind')} {made_by.get('name')} made it, and would make it again"
    return ""


def _said(raw: Mapping | None, key: str) -> str | None:
    for place in (shapes.notes(raw), shapes.labels(raw)):
        if isinstance(place.get(key), str):
            return place[key]
    return None


def _either(job: Mapping, namespace: Mapping | None, key: str) -> str:
    return _said(job, key) or _said(namespace, key) or ""


def _retries(said: str, problems: list[str]) -> int | None:
    if not said:
        return None
    if said.strip().isdecimal() and len(said) <= 6:
        return int(said)
    problems.append(f"{MAX_RETRIES} is {said[:60]!r}, not a number such as 3")
    return None


def _elastic(job: Mapping, said: str, problems: list[str]) -> dict | None:
    if said:
        found = _RANGE.fullmatch(said)
        low, high = (int(found[1]), int(found[2])) if found else (0, 0)
        if 1 <= low <= high:
            return {"min": low, "max": high}
        problems.append(f"{ELASTIC} is {said[:60]!r}, not MIN-MAX such as 6-8")
        return None
    policy = shapes.mapping(shapes.spec(job).get("elasticPolicy"))  # of a PyTorchJob
    low, high = shapes.count(policy.get("minReplicas")), shapes.count(policy.get("maxReplicas"))
    return {"min": low, "max": high} if 1 <= low <= high else None


def _env(said: str, problems: list[str]) -> str:
    name = said.strip()
    if name and not _ENV.fullmatch(name):
        problems.append(f"{RESUME_ENV} is {said[:60]!r}, not the name of an environment variable such as RESUME_FROM")
        return ""
    return name


def _number(said: str | None, problems: list[str]) -> int:
    if said is None:
        return 1
    if said.isdecimal() and int(said[:9]) >= 1:
        return int(said[:9])
    problems.append(f"{NUMBER} is {said[:60]!r}, not a number of an attempt such as 2")
    return 1
