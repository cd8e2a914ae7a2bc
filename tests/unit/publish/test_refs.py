"""Which branch a commit starts from."""

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.publish.refs import Base, Refs, check_free, choose, parse
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import Conflict, NotFound

SITE = Refs({"main": "1" * 40, "next": "2" * 40}, "main")


def test_a_listing_is_read_exactly():
    listing = (
        f"ref: refs/heads/main\tHEAD\n{'1' * 40}\tHEAD\n{'1' * 40}\trefs/heads/main\n{'3' * 40}\trefs/heads/a/b\n"
        f"{'4' * 40}\trefs/remotes/x/refs/heads/main\n"
    )
    assert parse(listing) == Refs({"main": "1" * 40, "a/b": "3" * 40}, "main")
    assert parse("") == Refs({}, "")
    assert parse(f"{'1' * 40}\tHEAD\n") == Refs({}, "")


@pytest.mark.parametrize(
    ("refs", "branch", "create", "base"),
    [
        (SITE, "", False, Base("main", "main")),
        (SITE, "next", False, Base("next", "next")),
        (SITE, "new", True, Base("new", "main")),
        (Refs(), "", False, Base("main", "")),
        (Refs(), "prod", False, Base("prod", "")),
        (Refs({}, "trunk"), "", False, Base("trunk", "")),
    ],
)
def test_the_base_of_a_direct_commit(refs, branch, create, base):
    assert choose(refs, branch, create, review=False) == base


def test_a_missing_branch_names_the_nearest():
    with pytest.raises(NotFound) as caught:
        choose(SITE, "mian", False, review=False)
    assert "did you mean 'main'" in str(caught.value)
    assert "create_branch" in str(caught.value)


@pytest.mark.parametrize("create", [False, True])
def test_a_review_needs_a_branch_that_is_there(create):
    with pytest.raises(NotFound):
        choose(SITE, "new", create, review=True)
    with pytest.raises(Conflict):
        choose(Refs(), "main", create, review=True)


def test_a_repository_whose_head_names_no_branch_needs_a_name():
    with pytest.raises(NotFound):
        choose(Refs({"a": "1"}, ""), "", False, review=False)
    with pytest.raises(NotFound):
        choose(Refs({"a": "1"}, "gone"), "", False, review=False)
    with pytest.raises(NotFound):
        choose(Refs({"a": "1"}, "gone"), "new", True, review=False)


@pytest.mark.parametrize("branch", ["main/x", "a"])
def test_branches_that_git_cannot_have_side_by_side(branch):
    with pytest.raises(Conflict):
        check_free(Refs({"main": "1", "a/b": "2"}, "main"), branch)


def test_other_new_branches_are_free():
    check_free(Refs({"main": "1", "a/b": "2"}, "main"), "a/c")
