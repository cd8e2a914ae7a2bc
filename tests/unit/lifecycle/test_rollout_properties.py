"""What a driver update never does, whatever the nodes' states are."""

from __future__ import annotations

import random

from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle.rollout_bounds import bound, is_out
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.lifecycle.rollouts import ID, NEW, OLD, cordon, gate, maintenance, names, node, plan, request

GATES = [
    (),
    (maintenance(),),
    (maintenance("/changing"),),
    (maintenance("/failed"),),
    (maintenance("/changing", roll_out="du-0123456789ab"),),
    (gate("maintenance", "CHG-1"),),
    (gate("validation", "vr-1"),),
    (maintenance("/changing"), gate("validation", "vr-1")),
    (gate("quarantine", "xid"),),
    (maintenance("/changing"), gate("quarantine", "xid")),
    (maintenance("/failed"), gate("quarantine", "xid")),
]
PHASES = ["", "Pending", "Running", "Passed", "Failed", "Opened", "Gone"]
BOUNDS = ["1", "2", "5", "10%", "25%", "50%", "100%"]


@st.composite
def fleets(draw) -> tuple[list[dict], list[dict], dict]:
    nodes, requests = [], []
    for number in range(draw(st.integers(1, 24))):
        one = node(
            f"n{number:02}",
            draw(st.sampled_from([OLD, NEW, "", "1.2"])),
            *draw(st.sampled_from(GATES)),
            certified=draw(st.booleans()),
            ready=draw(st.integers(0, 5)) > 0,
            product=draw(st.sampled_from(["H100", "B200"])),
            domain=draw(st.sampled_from(["rack=a", "rack=b", ""])),
            external=[cordon()] if draw(st.integers(0, 7)) == 0 else [],
        )
        nodes.append(one)
        if draw(st.booleans()):
            basis = {"driver": draw(st.sampled_from([OLD, NEW])), "bootId": one["bootId"]}
            requests.append(request([one], draw(st.sampled_from(PHASES)), basis=basis))
    options = {name: bound(draw(st.sampled_from(BOUNDS)), name) for name in ("wave", "fleet", "domain")}
    options["canary"] = draw(st.integers(0, 2))
    some = st.sets(st.sampled_from([each["name"] for each in nodes]))
    options.update(retry=draw(some), waited=draw(some), not_drained=dict.fromkeys(draw(some), "blocked"))
    return nodes, requests, options


def allowed(nodes: list[dict], options: dict) -> bool:
    """Whether no more are out than may be."""
    domains = {each["domain"] for each in nodes}
    groups = [(nodes, options["fleet"])]
    groups += [([each for each in nodes if each["domain"] == name], options["domain"]) for name in domains]
    return all(sum(map(is_out, group)) <= most.of(len(group)) for group, most in groups)


@given(fleets())
def test_bounds_hold_and_steps_make_sense(fleet):
    nodes, requests, options = fleet
    by_name = {each["name"]: each for each in nodes}
    made = plan(nodes, requests, **options)
    gated = {each["name"] for each in made["gate"]}
    fresh = {name for name in gated if not is_out(by_name[name])}
    after = [{**each, "open": each["open"] and each["name"] not in gated} for each in nodes]
    if fresh:
        touched = {by_name[name]["domain"] for name in fresh}
        for domain in touched:
            members = [each for each in after if each["domain"] == domain]
            assert domain == "" or sum(map(is_out, members)) <= options["domain"].of(len(members))
        assert sum(map(is_out, after)) <= options["fleet"].of(len(after))
    for step in ("gate", "change"):
        assert all(by_name[name]["driver"] != NEW for name in names(made[step]))
    for name in names(made["change"]):
        assert any(
            each["owner"] == "maintenance" and each["evidence"].startswith(ID) for each in by_name[name]["gates"]
        )
    for name in gated | set(names(made["change"])):
        assert not any(each["owner"] == "quarantine" for each in by_name[name]["gates"])
    assert all(by_name[name]["driver"] == NEW for name in names(made["validate"]))
    if made["failures"]:
        assert made["phase"] == "stopped" and not made["gate"] and not made["change"]
    foreseen = [name for wave in made["waves"] for name in wave]
    assert len(foreseen) == len(set(foreseen)) and not set(foreseen) & set(made["nodes"])
    steps = [name for step in ("release", "gate", "change", "wait", "validate") for name in names(made[step])]
    assert len(steps) == len(set(steps))
    assert sum(made["counts"].values()) - made["counts"]["selected"] == len(nodes)


@given(st.integers(0, 10_000))
def test_a_run_that_is_killed_everywhere_changes_each_node_once(seed):
    """The steps are carried out on simulated nodes, every one of them only in part at times; nothing is remembered."""
    rng = random.Random(seed)
    options = {name: bound(rng.choice(BOUNDS), name) for name in ("wave", "fleet", "domain")}
    nodes = {
        each["name"]: each
        for each in (node(f"n{number:02}", domain=f"rack={number % 3}") for number in range(rng.randint(3, 24)))
    }
    requests: list[dict] = []
    changed: list[str] = []
    for _round in range(1000):
        made = plan(list(nodes.values()), requests, **options)
        if made["phase"] == "done":
            break
        assert made["phase"] in ("canary", "wave")
        for step in ("release", "gate", "change", "wait", "validate"):
            some = [name for name in names(made[step]) if rng.random() < 0.8]
            carry_out(step, some, nodes, requests, changed, made)
            assert allowed(list(nodes.values()), options)
    assert sorted(changed) == sorted(nodes)
    assert all(each["open"] and each["driver"] == NEW for each in nodes.values())


def carry_out(step: str, some: list[str], nodes: dict, requests: list[dict], changed: list[str], made: dict) -> None:
    for name in some:
        one = nodes[name]
        if step == "release":
            one["gates"] = [each for each in one["gates"] if each["owner"] != "maintenance"]
        elif step == "gate":
            one["gates"] = [gate("maintenance", ID, made["reason"])]
        elif step == "change":
            one["gates"] = [gate("maintenance", f"{ID}/changing", made["reason"])]
            one["ready"] = False
            changed.append(name)
        elif step == "wait":
            one.update(driver=NEW, ready=True, bootId=f"next-{name}")
        elif step == "validate":
            one.update(gates=[], certified={"valid": True, "why": "certified"})
            requests.append(request([one], "Opened", wave=made["wave"]))
        one["open"] = not one["gates"]
