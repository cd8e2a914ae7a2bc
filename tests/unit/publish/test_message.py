"""Commit messages and names of review branches."""

import re
import subprocess

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.publish import message
from hypothesis import given
from hypothesis import strategies as st

TREE = "0123456789abcdef0123456789abcdef01234567"


def trailers(text: str) -> dict[str, str]:
    """As git reads them."""
    out = subprocess.run(
        ["git", "interpret-trailers", "--parse"], input=text, text=True, capture_output=True, check=True
    ).stdout
    return dict(line.split(": ", 1) for line in out.splitlines())


def test_a_message_names_recipe_cluster_and_digests():
    digests = {"lock": "sha256:aa", "bundle": "sha256:bb"}
    text = message.compose("clusters/p1", "h100-eks", "p1", digests, {"added": 1, "modified": 2, "removed": 0})
    assert text.splitlines()[0] == "Publish h100-eks to p1"
    assert "1 file added, 2 modified under clusters/p1." in text
    assert trailers(text) == {
        "Recipe": "h100-eks",
        "Cluster": "p1",
        "Path": "clusters/p1",
        "Bundle-Digest": "sha256:bb",
        "Lock-Digest": "sha256:aa",
    }


def test_an_own_message_keeps_the_trailers():
    text = message.compose("c", "", "", {"lock": "x"}, {}, "Pin the driver\n\nBecause of #12.\n\n")
    assert text == "Pin the driver\n\nBecause of #12.\n\nPath: c\nLock-Digest: x\n"


def test_a_message_without_recipe_and_cluster_names_the_path():
    assert message.compose("clusters/p1", "", "", {}, {"removed": 3}).startswith(
        "Publish bundle to clusters/p1\n\n3 files removed under"
    )


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"recipe": "a\nLock-Digest: sha256:forged"}, "recipe"),
        ({"cluster": "a\rb"}, "cluster"),
        ({"cluster": "a\u2028b"}, "cluster"),
        ({"digests": {"a b": "x"}}, "digests"),
        ({"digests": {"lock": ""}}, "digests.lock"),
        ({"digests": {"lock": "a\nb"}}, "digests.lock"),
        ({"digests": {"lock": 1}}, "digests.lock"),
        ({"message": "a\0b"}, "commit_message"),
    ],
)
def test_values_that_could_forge_a_trailer_are_refused(fields, path):
    given_fields = {"recipe": "", "cluster": "", "digests": {}, "message": "", **fields}
    assert [problem.path for problem in message.problems(**given_fields)] == [path]


line = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=40)


@given(recipe=line, cluster=line, digest=line)
def test_what_is_accepted_stays_on_its_line(recipe, cluster, digest):
    if message.problems(recipe, cluster, {"lock": digest}, ""):
        return
    text = message.compose("c", recipe, cluster, {"lock": digest}, {"added": 1})
    assert text.splitlines()[-4:] == [f"Recipe: {recipe}", f"Cluster: {cluster}", "Path: c", f"Lock-Digest: {digest}"]


@pytest.mark.parametrize(
    ("cluster", "branch"),
    [
        ("prod-1", "goodput/prod-1-0123456789ab"),
        ("arn:aws:eks:eu-west-1:1:cluster/p 1", "goodput/arn-aws-eks-eu-west-1-1-cluster-p-1-0123456789ab"),
        ("..", "goodput/cluster-0123456789ab"),
        ("Köln", "goodput/K-ln-0123456789ab"),
    ],
)
def test_a_review_branch_is_named_after_cluster_and_content(cluster, branch):
    assert message.review_branch(cluster, TREE) == branch


@given(cluster=st.text(max_size=60))
def test_every_cluster_name_gives_a_branch_that_git_accepts(cluster):
    branch = message.review_branch(cluster, TREE)
    assert re.fullmatch(r"goodput/[A-Za-z0-9_](?:[A-Za-z0-9_-]|\.(?!\.))*", branch)
    assert not branch.endswith((".lock", ".")) and "@{" not in branch
