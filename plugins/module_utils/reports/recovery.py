# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Job recovery as a section of a report: each incident, the time to recovery, and what became of the GPU time. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.reports.model import ORDER, Row, Section

# (verdict, what it is called, what to do next) by an incident's status
STATUS = {
    "recovered": ("pass", "recovered", ""),
    "running": ("pass", "runs again", "no step of it is known yet"),
    "failedAgain": ("note", "failed again", "the next attempt is an incident of its own"),
    "givenBack": ("note", "given back", "its owner has to mend it"),
    "ignored": ("note", "left alone", ""),
    "advised": ("unknown", "advised", "follow the advice, or let job recovery act on this job"),
    "waiting": ("unknown", "waiting", "look again"),
    "undecided": ("unknown", "undecided", "run job_recovery on it"),
    "escalated": ("fail", "escalated", "somebody has to look at it"),
    "notDone": ("fail", "not done", "see why the act failed, then run job_recovery again"),
}
PARTS = {
    "detect": "detect",
    "decide": "decide",
    "gate": "gate",
    "restart": "restart",
    "run": "until it runs",
    "step": "until its first step",
}
MARKS = {
    "fault": "fault",
    "detected": "detected",
    "decided": "decided",
    "gated": "gated",
    "requested": "restart requested",
    "running": "running",
    "firstStep": "first step",
}
CLASSES = {
    "productive": "productive steps",
    "wastedProgress": "wasted progress from disruption",
    "infrastructureRecovery": "infrastructure recovery from disruption",
    "programStartup": "program start-up",
    "deviceInit": "device init",
    "trainingPrep": "training preparation",
    "dataLoading": "data loading",
    "checkpointSave": "checkpoint save",
    "checkpointRestore": "checkpoint restore",
    "custom": "custom events",
    "other": "other",
    "unknown": "not known",
}
_REASONS = 2
JOBS = 200  # named with their goodput, the lowest first


def section(account: Mapping) -> Section:
    """The account of job recovery, see jobs.recovery_account. Its verdict is never better than its incidents."""
    incidents = account["incidents"]
    rows = tuple(map(_row, incidents))
    found = {row.verdict for row in rows}
    verdict = next((verdict for verdict in ORDER if verdict in found), "pass")
    again = sum(row.verdict == "pass" for row in rows)
    summary = f"{again} of {len(rows)} incidents recovered" if rows else "no job failed"
    clocks = [f"{each['job']}, attempt {each['number']}: {text}" for each in incidents for text in each["clocks"]]
    jobs = sorted((job for job in account["jobs"] if job["goodput"] is not None), key=lambda job: job["goodput"])
    untold = [f"{job['job']}: {note}" for job in account["jobs"] for note in job["notes"]]
    lists = (
        ("Goodput by job", tuple(map(_job, jobs[:JOBS]))),
        ("Jobs whose GPUs or times are not known", tuple(account["goodput"]["left"])),
        ("Clocks that disagree", tuple(clocks[:JOBS])),
        ("What is not known", tuple([*account["notes"], *untold][:JOBS])),
    )
    return Section(
        kind="recovery",
        name=account["name"],
        status={"pass": "recovered", "fail": "failed"}.get(verdict, "unknown") if rows else "quiet",
        verdict=verdict,
        summary=summary,
        rows=rows,
        facts=tuple(_facts(account)),
        lists=tuple((title, names) for title, names in lists if names),
        plots={"goodput": [account["goodput"]], "incidents": incidents},
    )


def _row(incident: Mapping) -> Row:
    verdict, word, hint = STATUS[incident["status"]]
    done = incident["done"] or {}
    why = [incident["signature"] or incident["class"], incident["reason"], *incident["reasons"][:_REASONS]]
    action = incident["action"] or "no decision"
    told = f"{incident['state']} ({', '.join(filter(None, why[:2]))}); {action}"
    if incident["mode"] == "advise":
        told += ", advice only"
    told += f" by {incident['rule']}" if incident["rule"] else ""
    told += "".join(f"; {reason}" for reason in why[2:])
    if incident["status"] == "notDone":
        told += f"; {done.get('status')}: {done.get('detail')}"
    return Row(
        verdict=verdict,
        severity=word,
        code=incident["status"],
        message=told,
        component=incident["job"],
        path=f"attempt {incident['number']}",
        expected=_split(incident),
        found=spell(incident["toRunning"]),
        nodes=tuple(incident["excluded"]),
        hint=hint,
    )


def _split(incident: Mapping) -> str | None:
    told = [f"{word} {spell(incident['parts'][part]) or '?'}" for part, word in PARTS.items()]
    return ", ".join(told) if any(value is not None for value in incident["parts"].values()) else None


def _facts(account: Mapping) -> Iterable[tuple[str, str]]:
    mttr, goodput = account["mttr"], account["goodput"]
    if account["until"]:
        yield "Looked at", str(account["until"])
    if mttr["toRunning"]:
        times = ", ".join(f"{word} {spell(mttr['toRunning'][word])}" for word in ("median", "p95", "most"))
        yield "Time from fault to running", f"{times} ({mttr['running']} of {mttr['count']} incidents have both times)"
        split = (f"{word} {spell(mttr['parts'][part]) or 'not known'}" for part, word in PARTS.items())
        yield "Medians of its parts", ", ".join(split)
    lost = [each["lostSteps"] for each in account["incidents"]]
    if lost:
        open_ones = f", not known for {lost.count(None)} incidents" if None in lost else ""
        yield "Lost steps", f"{sum(filter(None, lost))}{open_ones}"
    if goodput["goodput"] is None:
        yield "Goodput", "not known"
        return
    most = goodput["goodputAtMost"]
    upto = f", at most {percent(most)} if all that is not known was productive" if goodput["shares"]["unknown"] else ""
    yield "Goodput", f"{percent(goodput['goodput'])} of {goodput['gpuSeconds'] / 3600:.4g} GPU hours{upto}"
    badput = [(kind, share) for kind, share in goodput["shares"].items() if kind != "productive" and share]
    for kind, share in sorted(badput, key=lambda each: -each[1]):
        yield f"Badput: {CLASSES[kind]}", percent(share)
    unmarked = [CLASSES[kind] for kind, share in goodput["shares"].items() if share is None]
    if unmarked:
        yield "Not marked by any job", ", ".join(unmarked)


def _job(job: Mapping) -> str:
    lost = "not known how many" if job["lostSteps"] is None else job["lostSteps"]
    told = f"{job['job']}: {percent(job['goodput'])} of {spell(job['elapsedSeconds'])}"
    return f"{told}, {job['disruptions']} disruption{'s' * (job['disruptions'] != 1)}, {lost} steps lost"


def percent(share: float) -> str:
    """Never 100 % for less than all, never 0 % for more than nothing."""
    shown = f"{share * 100:.1f}"
    if shown == "100.0" and share < 1:
        shown = "99.9"
    return f"{'<0.1' if shown == '0.0' and share > 0 else shown} %"


def spell(seconds: float | None) -> str | None:
    """As people say it: 0.35 s, 42 s, 3 min 5 s, 2 h 10 min, 3 d 4 h."""
    if seconds is None:
        return None
    if seconds < 60:
        return f"{seconds:.2g} s" if seconds < 10 else f"{min(seconds, 59):.0f} s"
    whole = round(seconds)
    for size, word, below, small in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            rest = whole % size // below
            return f"{whole // size} {word}" + (f" {rest} {small}" if rest else "")
    return f"{whole} s"
