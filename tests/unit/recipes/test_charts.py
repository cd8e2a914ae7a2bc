"""Chart archives: their digests, what they render, and the images they need; nothing goes through a shell."""

from __future__ import annotations

import io
import os
import sys
import tarfile
from pathlib import Path

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.recipes import charts
from ansible_collections.goodput.fleet.plugins.module_utils.records import digest, lockfile, yamltree
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, NotFound, Unavailable

from .layers import chart

EKS = {"service": "eks"}
RENDERED = """\
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: a}
spec:
  template:
    spec:
      initContainers: [{name: init, image: "r.example.com/init:1"}]
      containers: [{name: main, image: "r.example.com/main:1"}]
---
apiVersion: batch/v1
kind: Job
metadata: {name: hook, annotations: {helm.sh/hook: pre-install}}
spec: {template: {spec: {containers: [{name: h, image: "r.example.com/hook@sha256:%s"}]}}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Thing, plural: things}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, properties: {image: {type: string}}}}
""" % ("0" * 64)


def archive(folder: Path, name: str, version: str, inside: dict[str, str] | None = None, file: str = "") -> Path:
    """NAME-VERSION.tgz with a Chart.yaml, or with what is given."""
    path = folder / (file or f"{name}-{version}.tgz")
    contents = inside or {f"{name}/Chart.yaml": yamltree.dump({"apiVersion": "v2", "name": name, "version": version})}
    with tarfile.open(path, "w:gz") as tar:
        for member, text in contents.items():
            info = tarfile.TarInfo(member)
            info.size = len(text.encode())
            tar.addfile(info, io.BytesIO(text.encode()))
    return path


@pytest.fixture
def lock(bare):
    bare.registry(chart("a", values={"x": "$(touch x)"}, images=["r.example.com/extra:1"], namespace="ns"), chart("b"))
    bare.overlay("eks", EKS, components=["a", "b"])
    return bare.resolve(**EKS)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "charts").mkdir()
    return tmp_path / "charts"


@pytest.fixture
def helm(tmp_path):
    """A program in helm's place that keeps its arguments and environment, and prints manifests."""
    path = tmp_path / "helm"
    path.write_text(
        f"#!{sys.executable}\n"
        "import json, os, pathlib, sys\n"
        f"log = pathlib.Path({str(tmp_path / 'log')!r})\n"
        "values = pathlib.Path(sys.argv[sys.argv.index('--values') + 1]).read_text()\n"
        "log.write_text(json.dumps({'argv': sys.argv[1:], 'values': values, 'env': dict(os.environ)}))\n"
        "if 'fail' in pathlib.Path(sys.argv[3]).name or os.path.exists(log.parent / 'fail'):\n"
        "    sys.exit('Error: execution error at (a/templates/x.yaml:1): x is required')\n"
        f"print({RENDERED!r})\n"
    )
    path.chmod(0o755)
    return path


def test_digests_without_helm(lock, folder):
    path = archive(folder, "a", "1.0.0")
    archive(folder, "b", "1.0.0")
    before = yamltree.dump(lock)
    result, warnings = charts.add_charts(lock, str(folder))
    assert warnings == []
    assert result["spec"]["components"][0]["chart"]["digest"] == digest.sha256_bytes(path.read_bytes())
    assert "rendered" not in result["spec"]["components"][0]
    assert result["metadata"]["digest"] != lock["metadata"]["digest"]
    lockfile.load_lock(result)
    assert yamltree.dump(lock) == before, "the given lock is left as it was"


def test_rendered_workloads_crds_and_all_images(lock, folder, helm):
    for name in "ab":
        archive(folder, name, "1.0.0")
    component = charts.add_charts(lock, str(folder), str(helm))[0]["spec"]["components"][0]
    images = {"init": "r.example.com/init:1", "main": "r.example.com/main:1"}
    workload = {"kind": "Deployment", "namespace": "ns", "name": "a", "images": images}
    assert component["rendered"]["workloads"] == [workload]
    assert [one["name"] for one in component["rendered"]["crds"]] == ["things.example.com"]
    hook = f"r.example.com/hook@sha256:{'0' * 64}"
    assert component["images"] == ["r.example.com/extra:1", hook, "r.example.com/init:1", "r.example.com/main:1"]


def test_helm_gets_arguments_not_a_command_line_and_no_settings_of_ours(lock, folder, helm, tmp_path, monkeypatch):
    monkeypatch.setenv("HELM_NAMESPACE", "mine")
    monkeypatch.setenv("KUBECONFIG", "/mine")
    archive(folder, "a", "1.0.0")
    charts.add_charts(lock, str(folder), str(helm))
    seen = yamltree.load_file(str(tmp_path / "log")).data
    assert seen["argv"][:5] == ["template", "a", str(folder / "a-1.0.0.tgz"), "--namespace", "ns"]
    assert "x: $(touch x)" in seen["values"]
    assert not {"HELM_NAMESPACE", "KUBECONFIG"} & seen["env"].keys()
    assert not os.path.exists("x")


def test_the_same_archives_give_the_same_lock(lock, folder, helm):
    archive(folder, "a", "1.0.0")
    one, two = (yamltree.dump(charts.add_charts(lock, str(folder), str(helm))[0]) for _ in range(2))
    assert one == two


def test_a_missing_archive_is_a_warning(lock, folder):
    archive(folder, "a", "1.0.0")
    result, warnings = charts.add_charts(lock, str(folder))
    assert "digest" not in result["spec"]["components"][1]["chart"]
    assert ["b-1.0.0.tgz" in one for one in warnings] == [True]


@pytest.mark.parametrize(
    "version, file", [("v1.0.0", "a-v1.0.0.tgz"), ("1.0.0", "a-v1.0.0.tgz"), ("v1.0.0", "a-1.0.0.tgz")]
)
def test_a_v_before_the_version_does_not_matter(lock, folder, version, file):
    archive(folder, "a", version, file=file)
    result, _warnings = charts.add_charts(lock, str(folder))
    assert "digest" in result["spec"]["components"][0]["chart"]


@pytest.mark.parametrize(
    "inside, words",
    [
        ({"a/Chart.yaml": "name: other\nversion: 1.0.0\n"}, "holds chart other 1.0.0, not a 1.0.0"),
        ({"a/Chart.yaml": "name: a\nversion: 1.0.1\n"}, "holds chart a 1.0.1"),
        ({"a/values.yaml": "x: 1\n"}, "has no Chart.yaml"),
        ({"a/charts/b/Chart.yaml": "name: a\nversion: 1.0.0\n"}, "has no Chart.yaml"),
        ({"a/Chart.yaml": "a: [\n"}, "malformed YAML"),
    ],
)
def test_an_archive_must_hold_what_its_name_says(lock, folder, inside, words):
    archive(folder, "a", "1.0.0", inside)
    with pytest.raises(InvalidDocument, match=words) as caught:
        charts.add_charts(lock, str(folder))
    assert "a-1.0.0.tgz" in str(caught.value)


def test_what_is_no_archive(lock, folder):
    (folder / "a-1.0.0.tgz").write_text("not a tar")
    (folder / "b-1.0.0.tgz").write_bytes(b"")
    with pytest.raises(InvalidDocument, match="not a chart archive") as caught:
        charts.add_charts(lock, str(folder))
    assert len(caught.value.problems) == 2


def test_a_chart_that_does_not_render_says_what_helm_said(lock, folder, helm, tmp_path):
    archive(folder, "a", "1.0.0")
    (tmp_path / "fail").touch()
    with pytest.raises(InvalidDocument, match=r"helm template of a fails: .* x is required"):
        charts.add_charts(lock, str(folder), str(helm))


def test_folders_and_programs_that_are_not_there(lock, folder):
    with pytest.raises(NotFound, match="not a directory"):
        charts.add_charts(lock, str(folder / "gone"))
    archive(folder, "a", "1.0.0")
    with pytest.raises((Unavailable, InvalidDocument), match="cannot be run"):
        charts.add_charts(lock, str(folder), str(folder / "no-helm"))
