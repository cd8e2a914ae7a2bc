"""ValidationRequests: what is read and refused, when two are the same, and when one covers another's nodes."""

from __future__ import annotations

import json

import pytest
import yaml
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle import documents, requests
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import FleetError, InvalidDocument, NotFound
from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas.validationrequest import MAX_NODES

TESTS = [{"domain": "communication", "variant": "nccl-loopback-nvswitch"}, {"domain": "training", "variant": "tiny"}]


def node(number: int, boot: str = "b1", uid: str = "") -> dict:
    return {"name": f"gpu-{number}", "uid": uid or f"uid-{number}", "bootId": boot}


def made(*nodes: dict, reason: str = "repaired", tests: list = TESTS, **options) -> dict:
    return requests.make(reason, nodes, tests, **options)


def with_phases(doc: dict, phase: str, **phases: str) -> dict:
    nodes = [{"name": name.replace("_", "-"), "phase": phase} for name, phase in phases.items()]
    return {**doc, "status": {"phase": phase, "nodes": nodes}}


def test_a_request_is_named_after_its_reason_and_what_it_asks_for():
    found = made(node(2), node(1), cause="reboot")
    assert found["metadata"] == {"name": f"repaired-{requests.digest_of(found['spec'])[3:11]}"}
    assert [each["name"] for each in found["spec"]["nodes"]] == ["gpu-1", "gpu-2"]
    assert found["spec"]["retries"] == 1 and "options" not in found["spec"]
    assert found == made(node(1), node(2), cause="reboot")
    assert made(node(1), namespace="fleet")["metadata"]["namespace"] == "fleet"
    assert made(node(1), cause="x" * 600)["spec"]["cause"] == "x" * 512


@pytest.mark.parametrize(
    "other",
    [
        made(node(1), node(3)),
        made(node(1), node(2, "b2")),
        made(node(1), node(2, uid="other")),
        made(node(1), node(2), tests=TESTS[:1]),
        made(node(1), node(2), options={"repeats": 2}),
        made(node(1), node(2), cause="again"),
        made(node(1), node(2), retries=2),
        made(node(1), node(2), reason="changed"),
    ],
)
def test_what_asks_for_something_else_is_another_one(other):
    first = made(node(1), node(2))
    assert requests.digest_of(first["spec"]) != requests.digest_of(other["spec"])
    assert first["metadata"]["name"] != other["metadata"]["name"]


def test_the_digest_is_that_of_what_a_server_gives_back():
    given = made(node(1), options={"variables": {"margin": 2.0, "part": 0.5}})
    back = json.loads(json.dumps(given).replace("2.0", "2"))
    assert requests.digest_of(given["spec"]) == requests.digest_of(back["spec"])
    assert requests.digest_of(given["spec"]).startswith("vr-") and len(requests.digest_of(given["spec"])) == 19
    assert requests.tests_key(given["spec"]) == requests.tests_key(back["spec"])


def test_the_tests_key_is_of_tests_and_options_only():
    assert requests.tests_key(made(node(1))["spec"]) == requests.tests_key(
        made(node(2), reason="changed", cause="other", options={}, retries=0)["spec"]
    )
    assert requests.tests_key(made(node(1))["spec"]) != requests.tests_key(
        made(node(1), options={"repeats": 2})["spec"]
    )


def test_many_nodes_are_several_requests():
    found = requests.make_all("new-node", [node(i) for i in range(2 * MAX_NODES + 1)], TESTS, cause="rack 7")
    assert [len(each["spec"]["nodes"]) for each in found] == [MAX_NODES, MAX_NODES, 1]
    assert len({each["metadata"]["name"] for each in found}) == 3
    assert len({each["name"] for one in found for each in one["spec"]["nodes"]}) == 2 * MAX_NODES + 1
    with pytest.raises(InvalidDocument, match=r"spec\.nodes: .*empty"):
        requests.make_all("new-node", [], TESTS)


def test_an_open_request_for_the_same_covers():
    old = made(node(1), node(2), node(3, "b0"), reason="new-node")
    new = made(node(1), node(2, uid="replaced"), node(3), node(4), reason="changed", cause="driver")
    rest, covered = requests.uncovered(new, [old])
    assert covered == {"gpu-1": old["metadata"]["name"]}
    assert [each["name"] for each in rest["spec"]["nodes"]] == ["gpu-2", "gpu-3", "gpu-4"]
    assert rest["spec"]["cause"] == "driver" and rest["metadata"]["name"] != new["metadata"]["name"]
    requests.load(rest)
    assert requests.uncovered(new, [new]) == (
        None,
        dict.fromkeys([f"gpu-{i}" for i in (1, 2, 3, 4)], new["metadata"]["name"]),
    )
    assert requests.uncovered(new, []) == (new, {})


@pytest.mark.parametrize(
    "other",
    [
        made(node(1), tests=TESTS[:1]),
        made(node(1), options={"repeats": 2}),
        with_phases(made(node(1)), "Succeeded", gpu_1="Opened"),
        with_phases(made(node(1)), "Failed", gpu_1="Failed"),
        with_phases(made(node(1)), "Running", gpu_1="Running"),
        with_phases(made(node(1)), "Running", gpu_1="Passed"),
        with_phases(made(node(1)), "Running", gpu_1="Failed"),
    ],
)
def test_other_tests_and_tests_that_have_begun_cover_nothing(other):
    new = made(node(1), reason="changed", cause="a reset")
    assert requests.uncovered(new, [other]) == (new, {})


def test_which_requests_are_open():
    doc = made(node(1))
    assert requests.is_open(doc) and requests.is_open({**doc, "status": {}})
    assert [requests.is_open({**doc, "status": {"phase": phase}}) for phase in ("Pending", "Running")] == [True] * 2
    assert [requests.is_open({**doc, "status": {"phase": phase}}) for phase in ("Succeeded", "Failed")] == [False] * 2


# ---------------------------------------------------------------- reading


def test_one_is_read_from_a_file_a_text_and_an_object(tmp_path):
    doc = made(node(1))
    path = tmp_path / "any.yaml"
    path.write_text(yaml.safe_dump(doc))
    assert requests.load(str(path)) == requests.load(path.read_text()) == requests.load(json.dumps(doc)) == doc
    managed = {"uid": "u", "resourceVersion": "7", "creationTimestamp": "x", "managedFields": [{}], "generation": 1}
    stored = {**doc, "metadata": {**doc["metadata"], **managed}, "status": {"phase": "Running"}}
    assert requests.load(stored) == stored


def spec(**changes) -> str:
    doc = made(node(1), node(2))
    return yaml.safe_dump({**doc, "spec": {k: v for k, v in {**doc["spec"], **changes}.items() if v is not None}})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (spec(nodes=[]), "spec.nodes: must not be empty"),
        (spec(nodes=None), "spec.nodes: 'nodes' is missing"),
        (spec(nodes=["gpu-1"]), "spec.nodes[0]: 'gpu-1' is a string, not a map"),
        (spec(nodes=[{"name": "gpu-1"}, {"name": "gpu-1"}]), "spec.nodes[1].name: 'gpu-1' stands here twice"),
        (spec(nodes=[node(1), node(2, uid="uid-1")]), "spec.nodes[1].uid: 'uid-1' stands here twice"),
        (spec(tests=[]), "spec.tests: must not be empty"),
        (spec(tests=[TESTS[0], TESTS[0]]), "spec.tests[1]: asks for the same as tests[0]"),
        (spec(tests=[{"domain": "training"}]), "spec.tests[0]: has no variant"),
        (spec(tests=[{**TESTS[0], "workload": {"image": "a/b:1"}}]), "spec.tests[0]: has a workload and a domain"),
        (spec(resaon="x"), "did you mean 'reason'?"),
        (spec(reason="new"), "spec.reason: 'new' is not allowed (valid: changed, manual, new-node, repaired)"),
        (spec(retries=9), "spec.retries: 9 is larger than 5"),
        ("kind: Certification\n", "is of kind 'Certification', a ValidationRequest belongs here"),
        ("- a\n- b\n", "not a ValidationRequest document"),
        ("a: [\n", "malformed YAML"),
        ("spec: 1\nspec: 2\n", "the key 'spec' stands here twice"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_place(text, words, tmp_path):
    path = tmp_path / "request.yaml"
    path.write_text(text)
    with pytest.raises(InvalidDocument) as refused:
        requests.load(str(path))
    assert words in str(refused.value)
    assert all(f"{path}:" in line for line in str(refused.value).splitlines())


@pytest.mark.parametrize("source", [None, 7, [], {}, "nowhere.yaml", "{", {"kind": "ValidationRequest", "spec": None}])
def test_what_is_no_request_at_all_is_one_clear_error(source):
    with pytest.raises((InvalidDocument, NotFound)) as refused:
        requests.load(source)
    assert str(refused.value).strip()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\ud800"])
def test_data_that_no_file_can_hold_is_refused(value):
    with pytest.raises(FleetError):
        made(node(1), options={"variables": {"margin": value}})


def test_a_status_with_a_node_twice_is_refused():
    doc = with_phases(made(node(1)), "Running", gpu_1="Passed")
    doc["status"]["nodes"] *= 2
    with pytest.raises(InvalidDocument, match=r"status\.nodes\[1\]\.name: 'gpu-1' stands here twice"):
        requests.load(doc)


# ---------------------------------------------------------------- bounds


def test_long_texts_of_a_status_are_cut_and_a_status_that_is_none_is_refused():
    doc = made(node(1))
    status = {
        "phase": "Failed",
        "message": "m" * 5000,
        "nodes": [{"name": "gpu-1", "phase": "Failed", "why": "w" * 999}],
    }
    found = documents.with_status(doc, status)["status"]
    assert len(found["message"]) == 1024 and found["nodes"][0]["why"] == "w" * 200
    with pytest.raises(InvalidDocument, match=r"status\.phase"):
        documents.with_status(doc, {"phase": "Fine"})
    with pytest.raises(InvalidDocument, match=r"status\.nodes\[0\]"):
        documents.with_status(doc, {"nodes": ["gpu-1"]})


def test_the_largest_request_keeps_within_what_a_cluster_stores():
    doc = made(
        *({"name": f"{i:04d}" + "n" * 59, "uid": "u" * 32 + f"{i:04d}", "bootId": "b" * 36} for i in range(MAX_NODES))
    )
    basis = {"uid": "u" * 36, "bootId": "b" * 36, "osImage": "o" * 60, "kernel": "k" * 40, "driver": "580.105.08"}
    basis |= {"containerRuntime": "c" * 30, "gpus": {"capacity": 8, "allocatable": 8}}

    def entry(one: dict, phase: str) -> dict:
        about = {"phase": phase, "attempts": 1, "batch": "vr-0123456789abcdef", "basis": basis, "why": "w" * 300}
        return {"name": one["name"], "uid": one["uid"], **about, "evidence": "sha256:" + "e" * 64}

    nodes = [entry(one, "Failed" if i % 2 else "Opened") for i, one in enumerate(doc["spec"]["nodes"])]
    found = documents.with_status(doc, {"phase": "Failed", "nodes": nodes})
    assert documents.size(found) <= documents.LIMIT
    assert [each["phase"] for each in found["status"]["nodes"]] == [each["phase"] for each in nodes]
    huge = [{**each, "basis": {"x": "y" * 2000}} for each in nodes]
    with pytest.raises(InvalidDocument, match="fewer nodes in one request"):
        documents.with_status(doc, {"phase": "Failed", "nodes": huge})


# ---------------------------------------------------------------- what is there already


def test_the_same_request_is_not_needed_twice_even_when_it_has_begun():
    doc = made(node(1), node(2))
    half = {**doc, "status": {"phase": "Running", "nodes": [{"name": "gpu-1", "phase": "Running"}]}}
    assert requests.needed(doc, [half]) == (None, dict.fromkeys(["gpu-1", "gpu-2"], doc["metadata"]["name"]))
    assert requests.needed(doc, []) == (doc, {})


def test_one_that_is_over_stands_until_it_is_asked_for_again():
    doc = made(node(1), cause="CHG-1")
    over = {**doc, "status": {"phase": "Failed"}}
    assert requests.needed(doc, [over]) == (None, {"gpu-1": doc["metadata"]["name"]})
    second, covered = requests.needed(doc, [over], again=True)
    assert covered == {} and second["spec"] == {**doc["spec"], "cause": "CHG-1 (2)"}
    assert second["metadata"]["name"] != doc["metadata"]["name"]
    assert requests.needed(doc, [over, second], again=True) == (None, {"gpu-1": second["metadata"]["name"]})
    third, _covered = requests.needed(doc, [over, {**second, "status": {"phase": "Succeeded"}}], again=True)
    assert third["spec"]["cause"] == "CHG-1 (3)"


def test_one_that_is_over_does_not_stand_for_what_was_changed_since():
    doc = made(node(1), cause="drift of fleet")
    basis = {"uid": "u1", "bootId": "b1", "driver": "580.105.08"}
    over = {**doc, "status": {"phase": "Succeeded", "nodes": [{"name": "gpu-1", "phase": "Opened", "basis": basis}]}}
    assert requests.needed(doc, [over], bases={"gpu-1": basis})[0] is None
    changed = {"gpu-1": {**basis, "driver": "590.48.01"}}
    second, _covered = requests.needed(doc, [over], bases=changed)
    assert second["spec"]["cause"] == "drift of fleet (2)"
    assert requests.needed(doc, [over, second], bases=changed)[0] is None


def test_only_the_nodes_that_nothing_asks_for_are_asked_for():
    old, doc = made(node(1)), made(node(1), node(2), cause="CHG-1")
    rest, covered = requests.needed(doc, [old])
    assert covered == {"gpu-1": old["metadata"]["name"]}
    assert [each["name"] for each in rest["spec"]["nodes"]] == ["gpu-2"]
    assert requests.needed(doc, [old, rest])[0] is None


@pytest.mark.parametrize("nodes", [["gpu-1"], [None], [{}], [{"name": 7}], [{"name": "a"}, {"name": "a"}]])
def test_nodes_that_are_none_make_no_request(nodes):
    with pytest.raises(InvalidDocument, match=r"spec\.nodes\[[01]\]"):
        requests.make("manual", nodes, TESTS)


def test_a_request_that_leaves_no_room_for_its_status_is_refused():
    tests = [
        {"workload": {"image": "a/b:1", "exec": {"command": ["x" * 16000] * 60, "args": [str(i)]}}} for i in (1, 2)
    ]
    with pytest.raises(InvalidDocument, match=r"spec: with its status needs .*fewer nodes, or shorter tests"):
        made(node(1), tests=tests)
    made(node(1), tests=tests[:1])
    with pytest.raises(InvalidDocument, match="with its status needs"):
        requests.make("manual", [node(i) for i in range(MAX_NODES)], tests[:1])
