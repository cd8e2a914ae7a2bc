"""Publishing to real git remotes: what is committed, where, and what stays untouched."""

import os
import shutil
import subprocess

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.publish.access import access
from ansible_collections.goodput.fleet.plugins.module_utils.publish.publish import publish
from ansible_collections.goodput.fleet.plugins.module_utils.publish.request import Request
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import (
    Conflict,
    Denied,
    InvalidDocument,
    NotFound,
    Unavailable,
)

from tests.integration.gitsite import Site, git, write

pytestmark = pytest.mark.git
BUNDLE = {"bundle.sha256": "00  a\n", "recipe.lock.yaml": "kind: RecipeLock\n", "apps/gpu-operator.yaml": "a: 1\n"}


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


@pytest.fixture
def bundle(tmp_path):
    return write(tmp_path / "bundle", BUNDLE)


def go(site, src, path="clusters/p1", *, url="", check=False, diff=False, token="", **options):
    """Publish as the module does."""
    options = {"cluster": "p1", "recipe": "h100", **options}
    request = Request(src=src, path=path, **options)
    return publish(request, access(url or site.url, token=token), check, diff)


def contents(files):
    return {name: text.encode() for name, text in files.items()}


class TestWhatIsCommitted:
    def test_into_an_empty_repository(self, site, bundle):
        result = go(site, bundle, digests={"lock": "sha256:aa"})
        assert (result["changed"], result["branch"], result["base"], result["attempts"]) == (True, "main", "main", 1)
        assert site.heads() == {"main": result["commit"]}
        assert site.read(path="clusters/p1") == contents(BUNDLE)
        assert result["files"] == {"added": sorted(BUNDLE), "modified": [], "removed": []}
        assert site.ask("rev-parse", "main:clusters/p1") == result["tree"]
        assert site.ask("log", "-1", "--format=%B", "main") == result["message"]
        assert site.ask("log", "-1", "--format=%(trailers:key=Lock-Digest,valueonly)", "main").strip() == "sha256:aa"
        assert (
            site.ask("log", "-1", "--format=%an %ae %cn", "main")
            == "goodput.fleet goodput.fleet@localhost goodput.fleet"
        )

    def test_an_empty_repository_keeps_the_branch_that_was_asked_for(self, site, bundle):
        assert go(site, bundle, branch="prod")["branch"] == "prod"
        assert list(site.heads()) == ["prod"]

    def test_nothing_is_committed_when_nothing_differs(self, site, bundle):
        first = go(site, bundle)
        again = go(site, bundle, recipe="another name", digests={"lock": "other"})
        assert (again["changed"], again["commit"], again["message"]) == (False, first["commit"], "")
        assert again["counts"] == {"added": 0, "modified": 0, "removed": 0}
        assert site.count() == 1

    def test_the_directory_becomes_exactly_the_source_and_the_rest_stays(self, site, tmp_path, bundle):
        other = {
            "README.md": "site\n",
            "clusters/p2/bundle.sha256": "p2\n",
            "clusters/p10/x": "y",
            "clusters/p1.yaml": "z",
        }
        site.push(
            {
                **other,
                "clusters/p1/stale.yaml": "old\n",
                "clusters/p1/apps/gpu-operator.yaml": "a: 0\n",
                "clusters/p1/deep/er/x": "1",
            }
        )
        before = site.ask("ls-tree", "main:clusters")
        result = go(site, bundle)
        assert result["files"] == {
            "added": ["bundle.sha256", "recipe.lock.yaml"],
            "modified": ["apps/gpu-operator.yaml"],
            "removed": ["deep/er/x", "stale.yaml"],
        }
        assert site.read() == contents({**other, **{f"clusters/p1/{name}": text for name, text in BUNDLE.items()}})
        untouched = [line for line in before.splitlines() if not line.endswith("\tp1")]
        assert [
            line for line in site.ask("ls-tree", "main:clusters").splitlines() if not line.endswith("\tp1")
        ] == untouched
        assert site.count() == 2

    def test_bytes_are_those_of_the_source_whatever_site_and_user_configure(self, site, tmp_path, monkeypatch):
        files = {
            "crlf.yaml": b"a\r\nb\n", "ident.txt": b"$Id$\n", "lfs.bin": bytes(range(256)), "ignored.lock": b"x",
            "latin1": b"caf\xe9\n", "keep/.gitignore": b"*\n", ".gitattributes": b"* text eol=crlf\n", "bare": b"a",
        }  # fmt: skip
        site.push(
            {
                ".gitattributes": "* text=auto eol=crlf ident filter=shout\n*.bin filter=lfs\n",
                ".gitignore": "*\n!README\n",
            }
        )
        home = tmp_path / "home"
        config = "[core]\nautocrlf = true\nhooksPath = {0}\nexcludesFile = {0}/all\n[commit]\ngpgSign = true\n"
        config += (
            '[filter "shout"]\nclean = tr a-z A-Z\nrequired = true\n[init]\ntemplateDir = {0}\n[push]\ngpgSign = true\n'
        )
        config += "[diff]\nexternal = false\n[transfer]\nfsckObjects = true\n[user]\nuseConfigOnly = true\n"
        config += "[fetch]\nprune = true\n"
        write(
            home,
            {
                ".gitconfig": config.format(home),
                "all": "*\n",
                "hooks/pre-push": "#!/bin/sh\nexit 1\n",
                "pre-push": "#!/bin/sh\nexit 1\n",
            },
        )
        for hook in ("pre-push", "hooks/pre-push"):
            (home / hook).chmod(0o755)
        monkeypatch.setenv("HOME", str(home))
        monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
        monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path))
        go(site, write(tmp_path / "src", files), diff=True)
        assert site.read(path="clusters/p1") == files
        assert go(site, str(tmp_path / "src"))["changed"] is False

    def test_odd_names_and_modes(self, site, tmp_path):
        names = [
            "with blank/a b.yaml",
            "ünïcödé/日本.yaml",
            '"quoted".txt',
            "-dash",
            "a\\b",
            "'single'",
            "#hash",
            "x" * 200,
            ":colon",
            "*star[1]?",
        ]
        src = write(tmp_path / "src", {name: name for name in names})
        os.chmod(os.path.join(src, "-dash"), 0o711)
        os.chmod(os.path.join(src, "#hash"), 0o444)
        result = go(site, src, path="clusters/my prod ü")
        assert site.read(path="clusters/my prod ü") == contents({name: name for name in names})
        assert result["files"]["added"] == sorted(names)
        modes = {
            line.split("\t")[1]: line[:6]
            for line in site.ask("ls-tree", "-r", "-z", "main:clusters/my prod ü").split("\0")
            if line
        }
        assert modes.pop("-dash") == "100755"
        assert set(modes.values()) == {"100644"}
        os.chmod(os.path.join(src, "#hash"), 0o666)
        assert go(site, src, path="clusters/my prod ü/")["changed"] is False
        assert go(site, src, path="clusters/my prod ü", check=True)["changed"] is False

    def test_a_big_tree_goes_through(self, site, tmp_path):
        files = {f"apps/{index % 50}/{index}.yaml": f"index: {index}\n" * 20 for index in range(3000)}
        result = go(site, write(tmp_path / "src", files))
        assert result["counts"]["added"] == 3000
        assert len(result["files"]["added"]) == 1000
        assert site.read(path="clusters/p1") == contents(files)

    def test_a_file_may_become_a_directory_and_back(self, site, tmp_path):
        go(site, write(tmp_path / "one", {"a": "1", "b/c": "2"}))
        go(site, write(tmp_path / "two", {"a/x": "1", "b": "2"}))
        assert site.read(path="clusters/p1") == {"a/x": b"1", "b": b"2"}
        go(site, str(tmp_path / "one"))
        assert site.read(path="clusters/p1") == {"a": b"1", "b/c": b"2"}

    def test_a_repository_with_sha256_objects(self, tmp_path, bundle):
        site = Site(tmp_path, object_format="sha256")
        site.push({"README": "x"})
        assert len(go(site, bundle)["commit"]) == 64
        assert go(site, bundle)["changed"] is False
        assert site.read(path="clusters/p1") == contents(BUNDLE)

    def test_own_author_and_message(self, site, bundle):
        go(
            site,
            bundle,
            commit_message="Pin the driver\n\nIt was time.",
            author_name="Bot Ü",
            author_email="bot@example.com",
        )
        assert site.ask("log", "-1", "--format=%an <%ae>%n%s%n%b", "main").startswith(
            "Bot Ü <bot@example.com>\nPin the driver\nIt was time.\n"
        )

    def test_a_commit_signed_with_an_ssh_key(self, site, bundle, tmp_path):
        key = tmp_path / "key"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
        go(site, bundle, signing_key=str(key), signing_format="ssh", author_email="bot@example.com")
        (tmp_path / "signers").write_text(f"bot@example.com {key.with_suffix('.pub').read_text()}")
        site.ask(
            "-c", "gpg.format=ssh", "-c", f"gpg.ssh.allowedSignersFile={tmp_path / 'signers'}", "verify-commit", "main"
        )
        with pytest.raises(Denied, match="could not be signed"):
            go(site, write(tmp_path / "new", {"a": "b"}), signing_key=str(tmp_path / "none"), signing_format="ssh")


class TestBranches:
    def test_a_missing_branch_is_an_error_that_names_the_nearest(self, site, bundle):
        site.push({"README": "x"})
        with pytest.raises(NotFound, match="did you mean 'main'"):
            go(site, bundle, branch="mian")
        assert list(site.heads()) == ["main"]

    def test_a_branch_made_on_request_starts_from_the_default(self, site, bundle):
        first = site.push({"README": "x"})
        result = go(site, bundle, branch="prod", create_branch=True)
        assert site.ask("rev-parse", "prod^") == first
        assert site.heads()["main"] == first
        assert site.read("prod")["README"] == b"x"
        assert go(site, bundle, branch="prod", create_branch=True)["commit"] == result["commit"]

    def test_a_branch_made_on_request_needs_no_commit_when_the_content_is_there(self, site, bundle):
        tip = go(site, bundle)["commit"]
        result = go(site, bundle, branch="prod", create_branch=True)
        assert (result["changed"], result["commit"]) == (True, tip)
        assert site.heads() == {"main": tip, "prod": tip}

    def test_names_that_are_none(self, site, bundle):
        for branch in ("a..b", "a b", "x.lock", "@{-1}"):
            with pytest.raises(InvalidDocument, match="not a name for a branch"):
                go(site, bundle, branch=branch)
        site.push({"README": "x"})
        with pytest.raises(Conflict, match="cannot be made while"):
            go(site, bundle, branch="main/x", create_branch=True)

    def test_a_server_whose_head_names_another_branch(self, tmp_path, bundle):
        site = Site(tmp_path, branch="trunk")
        site.push({"README": "x"})
        site.push({"README": "y"}, branch="main")
        assert go(site, bundle)["branch"] == "trunk"


class TestReview:
    def test_a_review_branch_carries_the_change_and_the_base_stays(self, site, bundle):
        first = site.push({"README": "x"})
        result = go(site, bundle, mode="review")
        assert result["branch"] == f"goodput/p1-{result['tree'][:12]}"
        assert (result["base"], result["pending"], result["changed"]) == ("main", True, True)
        assert site.heads() == {"main": first, result["branch"]: result["commit"]}
        assert site.ask("rev-parse", f"{result['commit']}^") == first
        again = go(site, bundle, mode="review")
        assert (again["changed"], again["branch"], again["commit"], again["pending"]) == (
            False,
            result["branch"],
            result["commit"],
            True,
        )

    def test_other_work_on_the_base_does_not_disturb_an_open_review(self, site, bundle):
        site.push({"README": "x"})
        result = go(site, bundle, mode="review")
        site.push({"clusters/p2/a": "b"})
        assert go(site, bundle, mode="review")["changed"] is False
        site.merge(result["branch"])
        done = go(site, bundle, mode="review")
        assert (done["changed"], done["pending"], done["branch"]) == (False, False, "main")

    @pytest.mark.parametrize("squash", [False, True])
    def test_after_a_revert_the_same_content_can_be_reviewed_again(self, site, bundle, squash):
        site.push({"clusters/p1/old": "1"})
        result = go(site, bundle, mode="review")
        site.merge(result["branch"], squash=squash)
        site.push({**{f"clusters/p1/{name}": None for name in BUNDLE}, "clusters/p1/old": "1"})
        again = go(site, bundle, mode="review")
        # a squashed branch is still what it was and can be merged; a merged one has to be refreshed
        assert (again["changed"], again["pending"], again["branch"]) == (not squash, True, result["branch"])
        site.merge(again["branch"])
        assert site.read(path="clusters/p1") == contents(BUNDLE)
        assert go(site, bundle, mode="review")["pending"] is False

    def test_a_review_is_refreshed_when_the_directory_changed_on_the_base(self, site, bundle):
        site.push({"clusters/p1/a": "1"})
        result = go(site, bundle, mode="review")
        site.push({"clusters/p1/a": "2", "clusters/p2/new": "keep"})
        again = go(site, bundle, mode="review")
        assert (again["changed"], again["branch"]) == (True, result["branch"])
        assert go(site, bundle, mode="review")["changed"] is False
        site.merge(again["branch"])
        assert site.read(path="clusters/p1") == contents(BUNDLE)
        assert site.read()["clusters/p2/new"] == b"keep"

    def test_what_somebody_changed_in_the_directory_is_set_right_and_their_other_work_stays(self, site, bundle):
        site.push({"README": "x"})
        branch = go(site, bundle, mode="review")["branch"]
        theirs = site.push({"clusters/p1/apps/gpu-operator.yaml": "a: 99\n", "docs/note": "theirs"}, branch=branch)
        again = go(site, bundle, mode="review")
        assert again["changed"] is True
        assert site.ask("rev-parse", f"{branch}^") == theirs
        assert site.read(branch)["docs/note"] == b"theirs"
        assert site.read(branch, "clusters/p1") == contents(BUNDLE)

    def test_other_work_on_a_stale_review_branch_is_never_dropped(self, site, bundle):
        site.push({"clusters/p1/a": "1"})
        branch = go(site, bundle, mode="review")["branch"]
        theirs = site.push({"docs/note": "theirs"}, branch=branch)
        site.push({"clusters/p1/a": "2"})
        with pytest.raises(Conflict, match="also changes docs/note"):
            go(site, bundle, mode="review")
        assert site.heads()[branch] == theirs

    def test_a_review_needs_a_base(self, site, bundle):
        with pytest.raises(Conflict, match="empty"):
            go(site, bundle, mode="review")
        site.push({"README": "x"})
        with pytest.raises(NotFound):
            go(site, bundle, mode="review", branch="none")
        with pytest.raises(InvalidDocument, match="branch to review against"):
            go(site, bundle, mode="review", review_branch="main")
        assert go(site, bundle, mode="review", review_branch="change/42")["branch"] == "change/42"

    def test_another_content_gets_another_branch(self, site, bundle, tmp_path):
        site.push({"README": "x"})
        branches = {go(site, src, mode="review")["branch"] for src in (bundle, write(tmp_path / "other", {"a": "b"}))}
        assert len(branches) == 2


class TestPlan:
    @pytest.mark.parametrize("options", [{}, {"mode": "review"}])
    def test_check_mode_writes_nothing_and_shows_the_difference(self, site, bundle, options):
        site.push({"clusters/p1/apps/gpu-operator.yaml": "a: 0\n", "clusters/p1/stale": "s\n"})
        before = site.heads()
        objects = site.ask("count-objects", "-v")
        plan = go(site, bundle, check=True, diff=True, **options)
        assert plan["changed"] is True
        assert plan["commit"] == before["main"]
        shown = plan["diff"]["prepared"]
        name = "clusters/p1/apps/gpu-operator.yaml"
        assert f"--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-a: 0\n+a: 1\n" in shown
        assert "deleted file mode 100644" in shown and "new file mode 100644" in shown
        assert site.heads() == before
        assert site.ask("count-objects", "-v") == objects
        done = go(site, bundle, **options)
        assert {key: plan[key] for key in ("changed", "branch", "files", "counts", "message", "tree", "pending")} == {
            key: done[key] for key in ("changed", "branch", "files", "counts", "message", "tree", "pending")
        }

    def test_a_long_difference_is_cut(self, site, tmp_path):
        plan = go(site, write(tmp_path / "src", {"a": "line\n" * 100_000}), check=True, diff=True)
        assert 60 * 1024 < len(plan["diff"]["prepared"]) < 66 * 1024
        assert plan["diff"]["prepared"].endswith("+line\n... the rest is not shown: more than 64 KiB differ\n")


class TestRefusals:
    @pytest.mark.parametrize("path", ["../out", "/abs", ".git/hooks", "a/../../b", ""])
    def test_paths_out_of_the_repository(self, site, bundle, path):
        with pytest.raises(InvalidDocument):
            go(site, bundle, path=path)
        assert site.heads() == {}

    def test_a_link_a_file_or_a_submodule_in_the_way(self, site, bundle):
        head = site.push({"clusters/real/x": "1", "file": "f"})
        os.symlink("real", site.work / "clusters" / "p1")
        git("add", "clusters/p1", cwd=site.work)
        git("update-index", "--add", "--cacheinfo", f"160000,{head},module", cwd=site.work)
        git("commit", "-q", "-m", "odd", cwd=site.work)
        git("push", "-q", "origin", "main", cwd=site.work)
        cases = {
            "clusters/p1": "symbolic link",
            "clusters/p1/x": "symbolic link",
            "file/x": "a file",
            "module": "submodule",
        }
        for path, what in cases.items():
            with pytest.raises(Conflict, match=what):
                go(site, bundle, path=path)
        assert site.read(path="clusters/real") == {"x": b"1"}
        before = site.ask("ls-tree", "main")
        go(site, bundle, path="beside")
        assert [
            line for line in site.ask("ls-tree", "main").splitlines() if "\tbeside" not in line
        ] == before.splitlines()

    def test_other_bundles_above_and_below_are_protected(self, site, bundle):
        go(site, bundle, path="clusters/p1")
        go(site, bundle, path="clusters/p2")
        with pytest.raises(Conflict) as caught:
            go(site, bundle, path="clusters")
        assert len(caught.value.problems) == 2
        with pytest.raises(Conflict, match="clusters/p1 is a bundle itself"):
            go(site, bundle, path="clusters/p1/nested")
        assert site.count() == 2

    def test_links_in_the_source(self, site, tmp_path, bundle):
        os.symlink("/etc/passwd", os.path.join(bundle, "link"))
        with pytest.raises(InvalidDocument, match="symbolic link"):
            go(site, bundle)
        assert site.heads() == {}

    def test_not_a_repository(self, tmp_path, site, bundle):
        (tmp_path / "plain").mkdir()
        for url in (f"file://{tmp_path}/plain", str(tmp_path / "plain"), f"file://{tmp_path}/none"):
            with pytest.raises(NotFound, match="no git repository"):
                go(site, bundle, url=url)

    def test_git_missing_or_too_old(self, tmp_path, site, bundle, monkeypatch):
        tools = tmp_path / "bin"
        tools.mkdir()
        monkeypatch.setenv("PATH", str(tools))
        with pytest.raises(Unavailable, match="git is not installed"):
            go(site, bundle)
        (tools / "git").write_text("#!/bin/sh\necho git version 2.30.9\n")
        (tools / "git").chmod(0o755)
        with pytest.raises(Unavailable, match=r"git 2\.30 is too old"):
            go(site, bundle)

    @pytest.mark.parametrize("hook", ["pre-receive", "update"])
    def test_a_declined_push_shows_what_the_hook_said(self, site, bundle, hook):
        site.push({"README": "x"})
        site.hook(hook, "echo 'main is protected: open a merge request' >&2; echo 'ask #platform' >&2; exit 1")
        with pytest.raises(Denied) as caught:
            go(site, bundle)
        text = str(caught.value)
        assert "declined the push to main" in text and "main is protected: open a merge request\nask #platform" in text
        assert caught.value.problems[0].code == "declined"
        assert site.count() == 1

    def test_a_server_that_hangs_is_given_up_and_nothing_runs_on(self, site, bundle, tmp_path):
        site.push({"README": "x"})
        site.hook("pre-receive", f"echo $$ > {tmp_path}/pid; exec sleep 60")
        with pytest.raises(Unavailable, match="did not end in time"):
            go(site, bundle, timeout=2)
        state = subprocess.run(
            ["ps", "-o", "stat=", "-p", (tmp_path / "pid").read_text().strip()], capture_output=True, text=True
        ).stdout
        assert state.strip() in ("", "Z", "Zs")

    def test_nothing_is_left_behind(self, site, bundle, tmp_path):
        work = tmp_path / "tmp"
        work.mkdir()
        publish(Request(src=bundle, path="a"), access(site.url), workdir=str(work))
        with pytest.raises(NotFound):
            publish(Request(src=bundle, path="b", branch="none"), access(site.url), workdir=str(work))
        assert list(work.iterdir()) == []


@pytest.mark.parametrize("filters", [False, True])
class TestTransfer:
    """Against servers that serve partial fetches and those that do not."""

    @pytest.fixture
    def site(self, tmp_path, filters):
        return Site(tmp_path, filters=filters)

    @pytest.fixture
    def fetched(self, monkeypatch):
        """Bytes in the work repository of each run, when it ends."""
        sizes = []
        monkeypatch.setattr(shutil, "rmtree", lambda folder, **_: sizes.append(size(folder)))
        return sizes

    def test_of_a_long_history_and_big_files_little_is_fetched(self, site, bundle, fetched, filters):
        for index in range(30):
            site.push({"big": os.urandom(50_000), "clusters/p1/big": os.urandom(50_000), "n": str(index)})
        go(site, bundle)
        assert fetched[0] < (30_000 if filters else 300_000)
        assert site.count() == 31

    def test_a_difference_is_shown_all_the_same(self, site, bundle, filters):
        site.push({"clusters/p1/apps/gpu-operator.yaml": "a: 0\n", "clusters/p1/stale": "old\n"})
        shown = go(site, bundle, check=True, diff=True)["diff"]["prepared"]
        assert "-a: 0\n+a: 1\n" in shown and "-old\n" in shown

    def test_a_review_that_needs_the_history(self, site, bundle, filters):
        site.push({"clusters/p1/a": "1"})
        result = go(site, bundle, mode="review")
        site.push({"clusters/p1/a": "2"})
        assert go(site, bundle, mode="review", diff=True)["changed"] is True
        site.merge(result["branch"])
        assert site.read(path="clusters/p1") == contents(BUNDLE)

    def test_the_whole_history_on_request(self, site, bundle, fetched, filters):
        for index in range(3):
            site.push({"n": str(index)})
        assert go(site, bundle, depth=0)["changed"] is True


def size(folder):
    places = ((place, name) for place, _folders, names in os.walk(folder) for name in names)
    return sum(os.path.getsize(os.path.join(*place)) for place in places)
