"""Taking a snapshot: what is read, what a refusal does, and documents on disk."""

from __future__ import annotations

import json

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.goodput.fleet.plugins.filter.parse_snapshot import FilterModule
from ansible_collections.goodput.fleet.plugins.module_utils.drift import observe, run
from ansible_collections.goodput.fleet.plugins.module_utils.drift.expected import Wanted
from ansible_collections.goodput.fleet.plugins.module_utils.records import quickcheck, snapshots, yamltree
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import Denied, FleetError, Unavailable
from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas import snapshot as schema

from tests.unit.drift import samples

VERSION = {"gitVersion": "v1.36.3", "platform": "linux/amd64", "major": "1", "minor": "36"}


def denied(status: int = 403) -> Denied:
    error = Denied(f"refused with {status}")
    error.status = status
    return error


class FakeClient:
    """Answers by path; an answer that is an error is raised. What is not named is empty."""

    context = "prod-1"

    def __init__(self, **answers):
        self.answers, self.asked = {"/version": VERSION, **answers.pop("paths", {})}, []

    def get(self, path: str):
        self.asked.append(path)
        answer = self.answers[path]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def find(self, path: str):
        return self.get(path) if path in self.answers else None

    def pages(self, path: str, **_options):
        self.asked.append(path)
        answer = self.answers.get(path, [])
        if isinstance(answer, Exception):
            raise answer
        yield from samples_in_pages(answer)


def samples_in_pages(items: list[dict], size: int = 3):
    for start in range(0, len(items), size):
        yield items[start : start + size]


def reader(*records: dict):
    return lambda client, namespaces: iter(records)


def failing(error: Exception, *records: dict):
    def read(client, namespaces):
        yield from records
        raise error

    return read


def take(paths: dict | None = None, readers: dict | None = None, **options) -> dict:
    return observe.take(FakeClient(paths=paths or {}), readers or {}, **options)


def test_a_snapshot_is_sorted_valid_and_named():
    shot = take({"/api/v1/nodes": list(reversed(samples.nodes()))}, {"releases": reader(samples.record())})
    assert [node["name"] for node in shot["spec"]["nodes"]] == [f"gpu-000{index}" for index in range(8)]
    assert shot["metadata"] == {"name": "prod-1"}
    assert shot["spec"]["server"] == {"version": "v1.36.3", "platform": "linux/amd64"}
    assert {state["status"] for state in shot["spec"]["parts"].values()} == {"ok"}
    assert snapshots.load(shot) == shot
    assert take(name="other", taken_at="now")["metadata"] == {"name": "other", "takenAt": "now"}


def test_only_the_namespaces_that_were_named_are_read():
    client = FakeClient()
    seen = []
    observe.take(client, {"releases": lambda _client, spaces: iter(seen.append(spaces) or ())}, ["b", "a"])
    assert seen == [["a"], ["b"]]
    assert "/apis/apps/v1/namespaces/a/deployments" in client.asked
    assert not any(path.startswith("/apis/apps/v1/deployments") for path in client.asked)


def test_workloads_are_read_where_a_release_put_them():
    client = FakeClient()
    shot = observe.take(client, {"releases": reader(samples.record())}, ["gpu-operator"])
    assert "/apis/batch/v1/namespaces/other/cronjobs" in client.asked
    assert (shot["spec"]["namespaces"], shot["spec"]["workloadNamespaces"]) == (["gpu-operator"], ["other"])
    assert snapshots.load(shot) == shot


def test_a_refusal_names_its_part_and_hides_nothing_else():
    shot = take(
        {"/api/v1/nodes": samples.nodes(), "/apis/apps/v1/namespaces/a/daemonsets": denied()},
        {"releases": reader(samples.record())},
        namespaces=["a"],
    )
    parts = shot["spec"]["parts"]
    assert parts["workloads"] == {"status": "unknown", "reason": "refused with 403"}
    assert [part for part, state in parts.items() if state["status"] != "ok"] == ["workloads"]
    assert len(shot["spec"]["nodes"]) == 8


def test_one_namespace_that_refuses_its_releases_does_not_hide_the_others():
    def read(_client, spaces):
        if spaces == ["a"]:
            raise denied()
        return iter([samples.record()])

    shot = take(None, {"releases": read}, namespaces=["a", "gpu-operator"])
    assert [item["name"] for item in shot["spec"]["releases"]] == ["gpu-operator"]
    assert shot["spec"]["parts"]["releases"]["status"] == "unknown"


def test_a_damaged_release_makes_the_part_unknown():
    bad = samples.record(manifest="kind: Deployment\n  x: [")
    shot = take(None, {"releases": reader(bad)})
    assert "malformed manifest" in shot["spec"]["parts"]["releases"]["reason"]


def test_reasons_add_up_once_each():
    shot = take({f"/apis/apps/v1/{plural}": denied() for plural in ("deployments", "daemonsets")})
    assert shot["spec"]["parts"]["workloads"]["reason"] == "refused with 403"


@pytest.mark.parametrize(
    "paths",
    [
        {"/version": Unavailable("cannot reach the API server")},
        {"/version": denied(401)},
        {"/api/v1/nodes": denied(401)},
    ],
)
def test_a_cluster_that_cannot_be_asked_is_an_error_not_unknown(paths):
    with pytest.raises(FleetError):
        take(paths)


def test_a_version_that_may_not_be_read_is_unknown():
    assert take({"/version": denied()})["spec"]["parts"]["server"]["status"] == "unknown"


def test_wanted_crds_are_read_one_by_one_and_all_of_them_page_by_page():
    import yaml

    crd = yaml.safe_load(samples.CRD)
    path = f"{observe.CRDS}/clusterpolicies.nvidia.com"
    client = FakeClient(paths={path: crd})
    shot = observe.take(
        client, {}, wanted=lambda _releases: Wanted({"clusterpolicies.nvidia.com", "gone.example.com"}, set())
    )
    assert [item["name"] for item in shot["spec"]["crds"]] == ["clusterpolicies.nvidia.com"]
    assert observe.CRDS not in client.asked
    assert len(take({observe.CRDS: [crd]})["spec"]["crds"]) == 1


# documents


def written(tmp_path, text: str) -> str:
    path = tmp_path / "snapshot"
    path.write_text(text)
    return str(path)


def test_a_good_snapshot_needs_no_slow_judge():
    assert quickcheck.compile_schema(schema.SCHEMA)(samples.snapshot())


def test_json_yaml_and_data_are_the_same_snapshot(tmp_path):
    shot = samples.snapshot()
    for text in (json.dumps(shot), json.dumps(shot, indent=4), yamltree.dump(shot)):
        assert snapshots.load(written(tmp_path, text)) == shot
        assert snapshots.parse(text, "x") == shot


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no document"),
        ("foo: bar\n", "a Snapshot belongs here"),
        ('{"foo": "bar"}', "a Snapshot belongs here"),
        ('{"foo":\n bar}', "snapshot:2: malformed JSON"),
        ("foo: [", "malformed YAML"),
        ("apiVersion: goodput.fleet/v1alpha1\nkind: Snapshot\n", "'spec' is missing"),
        ("apiVersion: goodput.fleet/v1alpha1\nkind: RecipeLock\n", "is of kind 'RecipeLock'"),
    ],
)
def test_what_is_no_snapshot_is_bad_input(tmp_path, text, message):
    with pytest.raises(FleetError, match=message):
        snapshots.load(written(tmp_path, text))


def test_an_emptied_snapshot_is_bad_input_too():
    shot = samples.snapshot()
    del shot["spec"]["parts"]["crds"]
    with pytest.raises(FleetError, match="'crds' is missing"):
        snapshots.load(shot)
    with pytest.raises(FleetError, match=r"no such file|cannot be read"):
        snapshots.load("/nowhere")
    with pytest.raises(FleetError, match="a path or a map"):
        snapshots.load(7)


def test_the_filter():
    parse = FilterModule().filters()["parse_snapshot"]
    shot = samples.snapshot()
    assert parse(shot) == parse(json.dumps(shot)) == shot
    with pytest.raises(AnsibleFilterError, match="a Snapshot belongs here"):
        parse("foo: bar")


# runs


def report(**options) -> dict:
    client = FakeClient(paths={"/api/v1/nodes": samples.nodes()})
    return run.report(lambda: client, {"releases": reader(samples.record())}, **options)


def test_a_run_reads_the_namespaces_of_the_lock_by_itself():
    asked = []

    def read(_client, spaces):
        asked.extend(spaces)
        return iter([samples.record()])

    run.report(FakeClient, {"releases": read}, lock=samples.lock())
    assert asked == ["gpu-operator"]


def test_a_bad_rule_is_told_before_anything_is_read():
    def nobody():
        raise AssertionError("nothing may be read")

    with pytest.raises(FleetError, match="is not a rule that can be used"):
        run.report(nobody, {}, lock=samples.lock(), ignore=["code =="])


def test_the_name_in_the_report():
    assert report(lock=samples.lock(), name="prod-7")["metadata"]["name"] == "prod-7"
    offline = run.report(None, {}, lock=samples.lock(), snapshot=samples.snapshot(), name="prod-8")
    assert offline["metadata"]["name"] == "prod-8"
    assert offline["metadata"]["lock"] == samples.lock()["metadata"]["digest"]


def test_the_summary_names_the_worst_first_and_ends():
    raw = samples.nodes(12)
    for index, item in enumerate(raw):
        samples.set_driver(item, f"570.{index}.1")
    shot = samples.snapshot(raw, crds="forbidden: x")
    lines = run.summary(run.report(None, {}, lock=samples.lock(), snapshot=shot)).splitlines()
    assert lines[0] == "prod-1: drifted (12 errors)"
    assert lines[1].startswith("error: driver is 570.")
    assert lines[11:] == ["and 2 more", "unknown: crds: forbidden: x"]
