"""A bundle is a closed world: whatever was changed, added or taken away shows."""

from __future__ import annotations

import os
import socket
import subprocess

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.bundles import manifest, tree
from ansible_collections.goodput.fleet.plugins.module_utils.records import closedworld

from tests.unit.bundles import locks, outputs

FILES = outputs.bundle(locks.sample(), "helm")
VALUES = "004-gpu-operator/values.yaml"


@pytest.fixture
def bundle(tmp_path):
    tree.sync(str(tmp_path / "bundle"), FILES)
    return tmp_path / "bundle"


def found(bundle) -> list[tuple[str, str]]:
    return [(problem.code, problem.file) for problem in manifest.verify(str(bundle))]


def relist(bundle, change) -> None:
    path = bundle / manifest.LIST
    path.write_text(change(path.read_text()))


def line(text: str, path: str) -> str:
    return next(one for one in text.splitlines(keepends=True) if one.endswith(f"  {path}\n"))


def test_a_bundle_as_rendered(bundle):
    assert found(bundle) == []


def test_every_other_file_is_listed(bundle):
    listed, problems = manifest.parse((bundle / manifest.LIST).read_bytes())
    assert problems == []
    assert set(listed) == set(FILES) - {manifest.LIST}
    assert {"recipe.lock.yaml", "README.md", "bundle.json", "plan.json"} <= set(listed)


def test_sha256sum_reads_the_list(bundle):
    done = subprocess.run(
        ["sha256sum", "--check", "--strict", manifest.LIST], cwd=bundle, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(": OK") == len(FILES) - 1


def test_modes_do_not_count(bundle):
    for path, _mode in closedworld.entries(str(bundle)):
        os.chmod(bundle / path, 0o755)
    assert found(bundle) == []


def test_it_works_where_nothing_can_be_written(bundle):
    for folder, _folders, names in os.walk(bundle, topdown=False):
        for name in names:
            os.chmod(os.path.join(folder, name), 0o444)
        os.chmod(folder, 0o555)
    assert found(bundle) == []
    for folder, _folders, _names in os.walk(bundle):
        os.chmod(folder, 0o755)


def change(bundle):
    (bundle / VALUES).write_text("driver: {version: evil}\n")


def same_size(bundle):
    content = (bundle / VALUES).read_bytes()
    (bundle / VALUES).write_bytes(content.replace(b"580.105.08", b"580.105.09"))


def lock(bundle):
    path = bundle / "recipe.lock.yaml"
    path.write_text(path.read_text() + "# x\n")


def extra(bundle):
    (bundle / "005-gpu-operator-manifests/templates/evil.yaml").write_text("kind: Evil\n")


def hidden(bundle):
    (bundle / ".evil").write_text("x")


def stale_folder(bundle):
    (bundle / "010-old").mkdir()
    (bundle / "010-old/values.yaml").write_text("a: 1\n")


def empty_folder(bundle):
    (bundle / "empty").mkdir()


def missing(bundle):
    (bundle / VALUES).unlink()


def folder_for_file(bundle):
    (bundle / VALUES).unlink()
    (bundle / VALUES).mkdir()


def link_to_same(bundle):
    (bundle / VALUES).rename(bundle.parent / "elsewhere")
    (bundle / VALUES).symlink_to(bundle.parent / "elsewhere")


def extra_link(bundle):
    (bundle / "link").symlink_to("README.md")


def linked_folder(bundle):
    (bundle / "004-gpu-operator").rename(bundle.parent / "moved")
    (bundle / "004-gpu-operator").symlink_to(bundle.parent / "moved")


def pipe(bundle):
    (bundle / VALUES).unlink()
    os.mkfifo(bundle / VALUES)  # reading it would never end


def sock(bundle):
    with socket.socket(socket.AF_UNIX) as one:
        path = os.getcwd()
        os.chdir(bundle)
        try:
            one.bind("socket")
        finally:
            os.chdir(path)


def odd_name(bundle):
    with open(os.path.join(os.fsencode(bundle), b"bad\xff\nname"), "wb"):
        pass


def dropped_line(bundle):
    change(bundle)
    relist(bundle, lambda text: text.replace(line(text, VALUES), ""))


def ghost_line(bundle):
    relist(bundle, lambda text: text + line(text, VALUES).replace(VALUES, "ghost.yaml"))


def twice(bundle):
    relist(bundle, lambda text: text + line(text, VALUES))


def escape(bundle):
    relist(bundle, lambda text: text + line(text, VALUES).replace(VALUES, "../../etc/passwd"))


def absolute(bundle):
    relist(bundle, lambda text: text + line(text, VALUES).replace(VALUES, "/etc/passwd"))


def dotted(bundle):
    relist(bundle, lambda text: text + line(text, VALUES).replace(VALUES, f"./{VALUES}"))


def itself(bundle):
    relist(bundle, lambda text: text + line(text, VALUES).replace(VALUES, manifest.SIGNATURE))


def binary_mark(bundle):
    relist(bundle, lambda text: text.replace(f"  {VALUES}", f" *{VALUES}"))


def upper(bundle):
    relist(bundle, lambda text: text.replace(line(text, VALUES), line(text, VALUES).upper()))


def crlf(bundle):
    relist(bundle, lambda text: text.replace(line(text, VALUES), line(text, VALUES)[:-1] + "\r\n"))


def cut(bundle):
    relist(bundle, lambda text: text[:-20])


def emptied(bundle):
    relist(bundle, lambda _text: "")


def no_list(bundle):
    (bundle / manifest.LIST).unlink()


def linked_list(bundle):
    (bundle / manifest.LIST).rename(bundle.parent / "list")
    (bundle / manifest.LIST).symlink_to(bundle.parent / "list")


def git_folder(bundle):
    (bundle / ".git").mkdir()
    (bundle / ".git/config").write_text("[core]\n")


@pytest.mark.parametrize("harm, expected", [
    (change, [("changed-file", VALUES)]),
    (same_size, [("changed-file", VALUES)]),
    (lock, [("changed-file", "recipe.lock.yaml")]),
    (extra, [("extra-file", "005-gpu-operator-manifests/templates/evil.yaml")]),
    (hidden, [("extra-file", ".evil")]),
    (stale_folder, [("extra-file", "010-old/values.yaml")]),
    (empty_folder, [("extra-folder", "empty")]),
    (missing, [("missing-file", VALUES)]),
    (folder_for_file, [("not-a-file", VALUES)]),
    (link_to_same, [("symlink", VALUES)]),
    (extra_link, [("symlink", "link")]),
    (linked_folder, [("symlink", "004-gpu-operator"), ("missing-file", VALUES)]),
    (pipe, [("not-a-file", VALUES)]),
    (sock, [("extra-file", "socket")]),
    (odd_name, [("extra-file", "bad\\udcff\\x0aname")]),
    (dropped_line, [("extra-file", VALUES)]),
    (ghost_line, [("missing-file", "ghost.yaml")]),
    (twice, [("bad-list", manifest.LIST)]),
    (escape, [("bad-list", manifest.LIST)]),
    (absolute, [("bad-list", manifest.LIST)]),
    (dotted, [("bad-list", manifest.LIST)]),
    (itself, [("bad-list", manifest.LIST)]),
    (binary_mark, [("extra-file", VALUES), ("bad-list", manifest.LIST)]),
    (upper, [("extra-file", VALUES), ("bad-list", manifest.LIST)]),
    (crlf, [("extra-file", VALUES), ("bad-list", manifest.LIST)]),
    (cut, None),
    (emptied, None),
    (no_list, [("no-bundle", None)]),
    (linked_list, [("no-bundle", None)]),
    (git_folder, [("extra-file", ".git/config")]),
], ids=lambda value: getattr(value, "__name__", ""))  # fmt: skip
def test_any_harm_shows(bundle, harm, expected):
    harm(bundle)
    problems = found(bundle)
    if expected is None:
        assert ("bad-list", manifest.LIST) in problems
    elif expected == [("no-bundle", None)]:
        assert [code for code, _file in problems] == ["no-bundle"]
    else:
        assert problems == expected


def test_all_harm_shows_at_once(bundle):
    for harm in (change, extra, extra_link, stale_folder):
        harm(bundle)
    assert [code for code, _file in found(bundle)] == [
        "changed-file",
        "extra-file",
        "extra-file",
        "symlink",
    ]


def test_messages_tell_what_to_do(bundle):
    extra(bundle)
    assert str(manifest.verify(str(bundle))[0]) == (
        "005-gpu-operator-manifests/templates/evil.yaml: is not listed (remove it: a deployer would apply it)"
    )
    assert "is not a folder" in str(manifest.verify(str(bundle / "nowhere"))[0])
