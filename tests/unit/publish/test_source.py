"""What may be published, and where to."""

import os

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.publish import source
from ansible_collections.goodput.fleet.plugins.module_utils.publish.publish import backoff
from ansible_collections.goodput.fleet.plugins.module_utils.publish.request import Request
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, NotFound
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    "path", ["clusters/p1", "clusters/p1/", "a", "with blank/ü", ".github", "git", "-x", "a/.gitignore"]
)
def test_directories_of_the_repository(path):
    assert source.split(path) == path.rstrip("/").split("/")


@pytest.mark.parametrize(
    "path",
    [
        "",
        ".",
        "/",
        "/abs",
        "..",
        "a/../b",
        "a/..",
        "a//b",
        "./a",
        "a/.",
        ".git",
        "a/.git/hooks",
        ".GIT",
        ".git. ",
        "git~1",
        "a\nb",
        "a\0",
        "\ud800",
    ],
)
def test_paths_that_lead_elsewhere_are_refused(path):
    with pytest.raises(InvalidDocument) as caught:
        source.split(path)
    assert caught.value.problems[0].code == "unsafe-path"


@given(
    st.text(st.characters(), max_size=30)
    | st.lists(st.sampled_from(["a", "..", ".", "", ".git", ".Git", "b c"])).map("/".join)
)
def test_no_path_that_is_accepted_leaves_the_repository(path):
    try:
        parts = source.split(path)
    except InvalidDocument:
        return
    assert not os.path.isabs(path)
    assert parts and all(part not in ("", ".", "..") and part.lower() != ".git" for part in parts)
    assert os.path.normpath(path) == "/".join(parts)


def test_files_are_listed_with_gits_modes(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "empty").mkdir()
    for name, mode in (("b/run", 0o740), ("b/data", 0o600), ("a", 0o666), ("b.txt", 0o455)):
        (tmp_path / name).write_text(name)
        (tmp_path / name).chmod(mode)
    assert source.read(str(tmp_path)) == [
        ("a", "100644"),
        ("b.txt", "100644"),
        ("b/data", "100644"),
        ("b/run", "100755"),
    ]


def test_everything_that_cannot_be_published_is_named_at_once(tmp_path):
    (tmp_path / "fine").write_text("x")
    (tmp_path / "link").symlink_to("fine")
    (tmp_path / "folder").symlink_to(tmp_path)
    (tmp_path / "sub" / ".GIT").mkdir(parents=True)
    (tmp_path / "sub" / ".GIT" / "config").write_text("x")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "new\nline").write_text("x")
    with open(os.fsencode(tmp_path) + b"/\xff", "w"):
        pass
    with pytest.raises(InvalidDocument) as caught:
        source.read(str(tmp_path))
    text = str(caught.value)
    assert len(caught.value.problems) == 6
    for words in (
        "link is a symbolic",
        "folder is a symbolic",
        ".GIT is git's own",
        "pipe is neither",
        "new?line has a control",
        "not UTF-8",
    ):
        assert words in text
    assert "fine" not in text


def test_a_source_must_hold_files(tmp_path):
    with pytest.raises(NotFound, match="does not exist"):
        source.read(str(tmp_path / "none"))
    (tmp_path / "file").write_text("x")
    with pytest.raises(NotFound, match="not a directory"):
        source.read(str(tmp_path / "file"))
    (tmp_path / "sub").mkdir()
    with pytest.raises(InvalidDocument, match="only delete"):
        source.read(str(tmp_path / "sub"))


def test_all_faults_of_the_options_are_told_at_once():
    request = Request(
        src="/x",
        path="../x",
        mode="review",
        recipe="a\nb",
        author_name="<>",
        author_email="a\nb",
        depth=-1,
        retries=-1,
        timeout=0,
    )
    assert sorted(problem.path for problem in request.problems()) == [
        "author_email", "author_name", "cluster", "depth", "path", "recipe", "retries", "timeout"]  # fmt: skip
    assert Request(src="/x", path="x").problems() == []


def test_the_wait_between_attempts_grows_and_is_bounded():
    assert [backoff(attempt, 1.0) for attempt in (1, 2, 3, 4, 5, 6, 60)] == [0.5, 1.0, 2.0, 4.0, 5.0, 5.0, 5.0]
    assert backoff(3, 0.0) == 0.0
