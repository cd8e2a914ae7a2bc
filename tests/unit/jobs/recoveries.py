"""Attempts, decisions and what was done to nodes, in the forms that other modules make them."""

from __future__ import annotations

HOUR = "2026-03-06T09:"


def at(clock: str) -> str:
    """30:05 is 09:30:05 of the day that all of this happens on."""
    return f"{HOUR}{clock}Z"


def attempt(number=1, state="failed", start="00:00", end="30:05", name="llm", **more) -> dict:
    """The attempt with that number of ml/NAME; each has its own object, made when it started."""
    job = {
        "kind": "Job", "namespace": "ml", "name": name, "uid": f"{name}-{number}",
        "created": at(start) if start else "", "shape": {"pods": 2, "gpusPerPod": 8},
    }  # fmt: skip
    return {
        "key": f"ml/{name}/{name}-{number}/{number}",
        "job": job | more.pop("job", {}),
        "number": number,
        "previous": f"{name}-{number - 1}" if number > 1 else "",
        "state": state,
        "startedAt": at(start) if start else "",
        "endedAt": at(end) if end else "",
        "reason": "PodFailurePolicy" if state == "failed" else "",
        "ranks": [],
        "hardware": {},
        **more,
    }


def steps(first: int, last: int, begin: str | None, end: str, each: float | None = 10.0) -> dict:
    told = {"firstStep": first, "lastStep": last, "lastStepAt": at(end), "stepSeconds": each}
    return told | ({"firstStepAt": at(begin)} if begin else {})


def decision(about: dict, action="restart", decided="30:08", gate=("gpu-02",), step=90, **more) -> dict:
    job = {key: about["job"][key] for key in ("kind", "namespace", "name", "uid")}
    spec = {
        "attempt": about["key"], "job": job, "action": action, "rule": "row-5", "safety": [], "mode": "act",
        "reasons": ["gpu-02 has a GPU that fell off the bus"],
        "exclude": [{"node": node, "uid": "", "why": "Xid 79", "until": at("59:00")} for node in gate],
        "hardware": [{"node": node, "advice": "gate", "why": "Xid 79"} for node in gate],
        "decidedAt": at(decided) if decided else None, "resume": {"path": "/ckpt", "step": step, "note": ""},
    }  # fmt: skip
    return {"metadata": {"name": "one"}, "spec": spec | more}


def failed(**more) -> dict:
    """Rank 1 fails on gpu-02 at 30:00, two seconds after its GPU, at step 100 of which the first was done at 13:20."""
    known = {
        "firstFailure": {"index": 1, "node": "gpu-02", "at": at("30:00")},
        "progress": steps(1, 100, "13:20", "29:50"),
        "hardware": {"gpu-02": [{"source": "event", "at": at("29:58"), "what": "xid-79", "fatal": True}]},
        "signature": {"id": "xid-79", "class": "hardware", "lines": [{"text": "NVRM: Xid 79", "rank": 1}]},
    }
    return attempt(**(known | more))


def again(**more) -> dict:
    """The next attempt runs from 30:40 on and begins with step 91."""
    known = {"progress": steps(91, 120, "31:50", "36:40")}
    return attempt(**({"number": 2, "state": "running", "start": "30:40", "end": None} | known | more))


def given(**more) -> dict:
    """A hardware fault, a restart elsewhere, and the old node that is drained and repaired meanwhile."""
    first = failed()
    whole = {
        "name": "prod-1",
        "until": at("37:00"),
        "attempts": [first, again()],
        "decisions": [decision(first)],
        "actions": [{"attempt": first["key"], "status": "done", "at": at("30:12"), "detail": ""}],
        "gates": [{"node": "gpu-02", "owner": "quarantine", "reason": "Xid 79", "since": at("30:10")}],
        "drains": [{"node": "gpu-02", "status": "drained", "startedAt": at("30:15"), "finishedAt": at("34:00")}],
        "repairs": [
            {
                "spec": {"node": {"name": "gpu-02", "uid": "n2"}, "fault": {"code": "xid-79"}},
                "status": {"phase": "Repairing", "rung": "reboot", "startedAt": at("34:10")},
            }
        ],
    }
    return whole | more
