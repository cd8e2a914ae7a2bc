"""The builder of Go programs: its key, its cache, and what it says when it cannot."""

from __future__ import annotations

import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.controlplane import build as builder
from tests.controlplane import gotool

FAKE_GO = """#!{python}
import pathlib, sys
arguments = sys.argv[1:]
with open("{log}", "a") as log:
    print(*arguments, file=log)
if arguments[:2] == ["env", "GOVERSION"]:
    print("go{version}")
elif arguments[0] == "list":
    print("a\\nb")
elif "broken" in arguments[-1]:
    sys.exit("main.go:3: undefined: x")
else:
    out = pathlib.Path(arguments[arguments.index("-o") + 1])
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(arguments[-1])
"""


@pytest.fixture
def module(tmp_path) -> Path:
    folder = tmp_path / "thing"
    (folder / "sub").mkdir(parents=True)
    (folder / "go.mod").write_text("module x\n\ngo 1.26.0\n\nrequire k8s.io/kubernetes v1.36.3\n")
    (folder / "go.sum").write_text("")
    (folder / "sub" / "main.go").write_text("package main")
    return folder


@pytest.fixture
def go(tmp_path, monkeypatch):
    """Put a pretended `go` first on the PATH; returns what makes it another version, with .log of its calls."""
    bin_dir, log = tmp_path / "bin", tmp_path / "go.log"
    bin_dir.mkdir()
    log.touch()
    monkeypatch.setenv("PATH", str(bin_dir))
    monkeypatch.setenv("GOODPUT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("GOODPUT_GO", raising=False)

    def be(version: str) -> Path:
        program = bin_dir / "go"
        program.write_text(FAKE_GO.format(python=sys.executable, log=log, version=version))
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        return program

    be.log = log
    be("1.26.8")
    return be


def builds(go) -> int:
    return sum(line.startswith("build ") for line in go.log.read_text().splitlines())


def test_programs_are_built_once_per_content(go, module):
    packages = {"one": ".", "two": "example.com/two"}
    paths = builder.build(module, packages, say=lambda _: None)
    assert {name: path.read_text() for name, path in paths.items()} == {"one": ".", "two": "example.com/two"}
    assert builder.build(module, packages, say=lambda _: None) == paths
    assert builds(go) == 2

    for change in ("go.mod", "go.sum", "sub/main.go"):
        with (module / change).open("a") as file:
            file.write("\n")
        changed = builder.build(module, packages, say=lambda _: None)
        assert changed["one"] != paths["one"]
        paths = changed
    go("1.27.0")
    assert builder.build(module, packages, say=lambda _: None) != paths
    assert builds(go) == 10


def test_kubernetes_is_told_its_version(module):
    flags = builder.flags_for(module)[-1]
    assert "-X=k8s.io/component-base/version.gitVersion=v1.36.3" in flags
    assert "-X=k8s.io/component-base/version.gitMinor=36" in flags


def test_a_failed_build_says_what_go_said_and_leaves_nothing(go, module, tmp_path):
    with pytest.raises(builder.BuildFailed, match=r"main\.go:3: undefined: x"):
        builder.build(module, {"one": "broken"}, say=lambda _: None)
    assert [entry.name for entry in (tmp_path / "cache").iterdir()] == ["thing.lock"]


def test_two_builders_at_once_build_once(go, module):
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(builder.build(module, {"one": "."}, say=lambda _: None)))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 3 and len({str(each) for each in results}) == 1
    assert builds(go) == 1


def test_the_caches_are_the_projects_own_unless_the_environment_names_others(tmp_path):
    env = builder.go_environment(tmp_path, {"GOCACHE": "/elsewhere", "GOFLAGS": "-mod=mod", "CGO_ENABLED": "1"})
    assert env["GOCACHE"] == "/elsewhere"
    assert env["GOMODCACHE"] == str(tmp_path / "go" / "pkg" / "mod")
    assert (env["GOTOOLCHAIN"], env["GOFLAGS"], env["CGO_ENABLED"]) == ("local", "", "0")


def test_a_go_that_is_too_old_or_absent_is_replaced_by_the_pinned_one(go, tmp_path, monkeypatch):
    said: list[str] = []
    monkeypatch.setattr(gotool, "install", lambda folder, say: folder / "go/bin/go")
    go("1.25.9")
    pinned = (tmp_path / f"go-{gotool.PINNED}/go/bin/go", gotool.PINNED)
    assert gotool.find_go("1.26.0", tmp_path, said.append) == pinned
    assert "is Go 1.25.9, 1.26.0 is needed" in said[0]
    monkeypatch.setenv("PATH", str(tmp_path))
    assert gotool.find_go("1.26.0", tmp_path, said.append) == pinned
    with pytest.raises(gotool.GoMissing, match=r"Go 1\.99 or newer is needed"):
        gotool.find_go("1.99", tmp_path, said.append)


def test_a_go_that_the_user_names_is_used(go, tmp_path, monkeypatch):
    program = go("1.20.1")
    monkeypatch.setenv("GOODPUT_GO", str(program))
    assert gotool.find_go("1.26.0", tmp_path, print) == (program, "1.20.1")
    monkeypatch.setenv("GOODPUT_GO", str(tmp_path / "nowhere"))
    with pytest.raises(gotool.GoMissing, match=r"GOODPUT_GO=.*nowhere does not run"):
        gotool.find_go("1.26.0", tmp_path, print)


def test_an_installation_that_fails_says_what_to_do(tmp_path, monkeypatch):
    failed = subprocess.CompletedProcess([], 1, stdout="ERROR: no matching distribution")
    monkeypatch.setattr(gotool.subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(gotool.GoMissing, match=r"no matching distribution\nInstall Go .* or set GOODPUT_GO"):
        gotool.install(tmp_path / "go", say=lambda _: None)


@pytest.mark.parametrize(
    ("newer", "older"), [("1.26.10", "1.26.9"), ("1.26", "1.25.9"), ("2.0", "1.99"), ("1.27rc1", "1.26.8")]
)
def test_versions_compare_as_numbers(newer, older):
    assert gotool.as_numbers(newer) > gotool.as_numbers(older)
