"""Fleets in the middle of a driver update, as facts of nodefacts.py."""

from __future__ import annotations

from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle import rollout
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle.rollout_target import rollout_id

OLD, NEW = "570.172.08", "580.105.08"
ID = rollout_id(NEW)


def gate(owner: str, evidence: str = "", reason: str = "") -> dict:
    return {"owner": owner, "evidence": evidence, "reason": reason, "readable": True}


def node(name: str, driver: str = OLD, *gates: dict, certified: bool = False, **facts) -> dict:
    external = facts.get("external", [])
    return {
        "name": name,
        "uid": f"uid-{name}",
        "bootId": f"boot-{name}",
        "ready": True,
        "driver": driver,
        "product": "H100",
        "domain": "rack=a",
        "gates": list(gates),
        "external": external,
        "open": not gates and not any(each["holds"] for each in external),
        "certified": {"valid": certified, "why": "certified" if certified else "never certified"},
        **facts,
    }


def maintenance(mark: str = "", wave: int = 1, roll_out: str = ID) -> dict:
    return gate("maintenance", roll_out + mark, f"driver update to {NEW}, wave {wave}")


def cordon() -> dict:
    return {"kind": "cordon", "key": "spec.unschedulable", "value": "true", "detail": "set by kubectl", "holds": True}


def request(nodes: list[dict], phase: str = "", roll_out: str = ID, wave: int = 1, attempt: int = 1, **parts) -> dict:
    """A ValidationRequest of a driver update in which every node has that phase."""
    told = [{"name": each["name"], "uid": each["uid"], "phase": phase, **parts} for each in nodes]
    over = {"Opened": "Succeeded", "Passed": "Succeeded", "Failed": "Failed"}
    cause = f"{roll_out}: driver update to {NEW}, wave {wave}, attempt {attempt}"
    return {
        "metadata": {"name": f"changed-{roll_out[3:9]}{wave}{attempt}"},
        "spec": {
            "reason": "changed",
            "cause": cause,
            "nodes": [{key: each[key] for key in ("name", "uid", "bootId")} for each in nodes],
            "tests": ["dcgm-level1"],
        },
        **({"status": {"phase": over.get(phase, phase), "nodes": told}} if phase else {}),
    }


def plan(nodes: list[dict], requests: list[dict] = (), **options) -> dict:
    target = options.pop("target", NEW)
    return rollout.plan(nodes, requests, target, ID, rollout.Options(**options))


def names(entries: list[dict]) -> list[str]:
    return [each.get("name") or each["node"] for each in entries]
