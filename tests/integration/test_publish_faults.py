"""Publishing when things go wrong: races, lost answers, kills, credentials."""

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.publish.access import access
from ansible_collections.goodput.fleet.plugins.module_utils.publish.gitcli import Git
from ansible_collections.goodput.fleet.plugins.module_utils.publish.publish import publish
from ansible_collections.goodput.fleet.plugins.module_utils.publish.request import Request
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import Denied, NotFound, Unavailable

from tests.integration.githttp import GitServer
from tests.integration.gitsite import Site, write

pytestmark = pytest.mark.git
ROOT = Path(__file__).resolve().parents[2]
TOKEN = "tok3n-With+Odd/Chars=="


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path / "srv")


@pytest.fixture
def bundle(tmp_path):
    return write(tmp_path / "bundle", {"bundle.sha256": "00  a\n", "apps/a.yaml": "a: 1\n"})


def start(env=None, **options) -> subprocess.Popen:
    """A publisher in a process of its own."""
    places = os.pathsep.join([str(ROOT), str(ROOT / ".build" / "collections")])
    command = [sys.executable, "-m", "tests.integration.publish_once", json.dumps(options)]
    return subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": places, **(env or {})}, stdout=subprocess.PIPE
    )


def finish(process: subprocess.Popen) -> dict:
    out, _err = process.communicate(timeout=120)
    return json.loads(out or "{}")


def intrude(monkeypatch, times: int, action) -> list[int]:
    """Run `action` just before each of the first pushes; the list grows with every push."""
    pushes, run = [], Git.run

    def meddled(self, *args, **more):
        if args[0] == "push":
            pushes.append(len(pushes))
            if len(pushes) <= times:
                action(len(pushes))
        return run(self, *args, **more)

    monkeypatch.setattr(Git, "run", meddled)
    return pushes


class TestRaces:
    @pytest.mark.parametrize("over_http", [False, True])
    def test_eight_publishers_at_once_lose_nothing(self, tmp_path, over_http):
        site = Site(tmp_path / "srv")
        site.push({"README": "x"})
        with GitServer(tmp_path / "srv") as server:
            repo = f"{server.url}/site.git" if over_http else site.url
            sources = {
                f"c{index}": write(tmp_path / f"src{index}", {"a": f"{index}", f"only-{index}": "x"})
                for index in range(8)
            }
            running = [
                start(repo=repo, src=src, path=f"clusters/{name}", cluster=name, retries=20, timeout=90)
                for name, src in sources.items()
            ]
            results = [finish(process) for process in running]
        assert [result.get("changed") for result in results] == [True] * 8, results
        assert site.count() == 9
        assert site.read() == {
            "README": b"x",
            **{f"clusters/c{index}/a": str(index).encode() for index in range(8)},
            **{f"clusters/c{index}/only-{index}": b"x" for index in range(8)},
        }
        assert len({result["commit"] for result in results}) == 8
        assert max(result["attempts"] for result in results) > 1

    def test_publishers_that_find_an_empty_repository_together(self, site, tmp_path):
        running = [
            start(repo=site.url, src=write(tmp_path / name, {"f": name}), path=name, retries=20)
            for name in ("a", "b", "c")
        ]
        assert all(finish(process)["changed"] for process in running)
        assert site.count() == 3
        assert site.read() == {"a/f": b"a", "b/f": b"b", "c/f": b"c"}

    def test_a_push_that_comes_second_is_made_again_on_the_new_tip(self, site, bundle, monkeypatch):
        site.push({"README": "x"})
        intrude(monkeypatch, 3, lambda turn: site.push({f"theirs-{turn}": "1", "clusters/p1/stale": "x"}))
        waits = []
        result = publish(
            Request(src=bundle, path="clusters/p1"), access(site.url), sleep=waits.append, chance=lambda: 1.0
        )
        assert (result["attempts"], waits) == (4, [0.5, 1.0, 2.0])
        assert result["files"]["removed"] == ["stale"]
        assert set(site.read()) == {
            "README",
            "theirs-1",
            "theirs-2",
            "theirs-3",
            "clusters/p1/bundle.sha256",
            "clusters/p1/apps/a.yaml",
        }
        assert site.count() == 5

    def test_retries_are_bounded(self, site, bundle, monkeypatch):
        site.push({"README": "x"})
        pushes = intrude(monkeypatch, 99, lambda turn: site.push({"theirs": str(turn)}))
        with pytest.raises(Unavailable, match="other pushes came first 3 times") as caught:
            publish(Request(src=bundle, path="a", retries=2), access(site.url), sleep=lambda _seconds: None)
        assert caught.value.problems[0].code == "busy"
        assert len(pushes) == 3
        assert site.count() == 4

    def test_no_attempt_starts_after_the_time_is_up(self, site, bundle, monkeypatch):
        site.push({"README": "x"})
        pushes = intrude(monkeypatch, 99, lambda turn: site.push({"theirs": str(turn)}))
        with pytest.raises(Unavailable, match="came first 1 times"):
            publish(Request(src=bundle, path="a", timeout=3), access(site.url), chance=lambda: 20.0)
        assert len(pushes) == 1

    def test_somebody_else_publishing_the_same_is_no_second_commit(self, site, bundle, monkeypatch):
        site.push({"README": "x"})
        intrude(monkeypatch, 1, lambda _turn: site.push({"p/bundle.sha256": "00  a\n", "p/apps/a.yaml": "a: 1\n"}))
        result = publish(Request(src=bundle, path="p"), access(site.url), sleep=lambda _seconds: None)
        assert (result["changed"], result["attempts"], site.count()) == (False, 2, 2)

    def test_a_review_branch_made_by_somebody_else_meanwhile(self, site, bundle, monkeypatch):
        site.push({"README": "x"})
        way = Request(src=bundle, path="p", mode="review", review_branch="review/1")
        intrude(monkeypatch, 1, lambda _turn: site.push({"theirs": "1"}, branch="review/1", start="main"))
        result = publish(way, access(site.url), sleep=lambda _seconds: None)
        assert result["attempts"] == 2
        assert {"theirs", "p/apps/a.yaml"} < set(site.read("review/1"))

    def test_a_push_whose_answer_is_lost_is_not_done_twice(self, site, bundle):
        site.push({"README": "x"})
        with GitServer(site.bare.parent, lose_answers=1) as server:
            way = access(f"{server.url}/site.git")
            result = publish(Request(src=bundle, path="p"), way, sleep=lambda _seconds: None)
        assert (result["changed"], result["attempts"]) == (True, 2)
        assert result["commit"] == site.heads()["main"]
        assert result["counts"]["added"] == 2
        assert site.count() == 2

    def test_it_counts_as_done_even_when_others_pushed_before_it_was_noticed(self, site, bundle):
        site.push({"README": "x"})
        with GitServer(site.bare.parent, lose_answers=1) as server:
            way = access(f"{server.url}/site.git")
            result = publish(Request(src=bundle, path="p"), way, sleep=lambda _seconds: site.push({"theirs": "1"}))
        assert (result["changed"], result["commit"], site.count()) == (True, site.ask("rev-parse", "main^"), 3)

    def test_a_server_that_is_not_there_is_tried_three_times(self, bundle):
        waits = []
        with pytest.raises(Unavailable, match="cannot be reached"):
            publish(Request(src=bundle, path="p"), access("http://127.0.0.1:1/x.git"), sleep=waits.append)
        assert len(waits) == 2


class TestCredentials:
    def publish(self, server, bundle, token="", name="site"):
        return publish(
            Request(src=bundle, path="clusters/p1"),
            access(f"{server.url}/{name}.git", token=token),
            sleep=lambda _seconds: None,
        )

    def test_the_token_opens_the_server(self, site, bundle):
        with GitServer(site.bare.parent, token=TOKEN) as server:
            assert self.publish(server, bundle, TOKEN)["changed"] is True
            assert self.publish(server, bundle, TOKEN)["changed"] is False
        assert site.count() == 1

    def test_the_token_also_opens_what_a_difference_needs(self, site, bundle):
        site.push({"clusters/p1/apps/a.yaml": "a: 0\n"})
        with GitServer(site.bare.parent, token=TOKEN) as server:
            way = access(f"{server.url}/site.git", token=TOKEN)
            result = publish(Request(src=bundle, path="clusters/p1"), way, diff=True)
        assert "-a: 0\n+a: 1\n" in result["diff"]["prepared"]

    @pytest.mark.parametrize("token", ["", "wr0ng-token-of-somebody"])
    def test_without_the_right_token_it_is_denied_and_the_token_is_not_told(self, site, bundle, token):
        with (
            GitServer(site.bare.parent, token=TOKEN) as server,
            pytest.raises(Denied, match="wants a credential") as caught,
        ):
            self.publish(server, bundle, token)
        assert not token or token not in json.dumps(caught.value.as_result())

    def test_a_credential_that_may_only_read(self, site, bundle):
        with (
            GitServer(site.bare.parent, token=TOKEN, read_only=True) as server,
            pytest.raises(Denied, match="lacks the right"),
        ):
            self.publish(server, bundle, TOKEN)

    def test_a_repository_that_is_not_there(self, site, bundle):
        with (
            GitServer(site.bare.parent, token=TOKEN) as server,
            pytest.raises(NotFound, match="no git repository is there"),
        ):
            self.publish(server, bundle, TOKEN, name="none")

    def test_the_users_own_credential_store_is_neither_asked_nor_filled(self, site, bundle, tmp_path, monkeypatch):
        noted = tmp_path / "noted"
        helper = f"!f() {{ cat >> {noted}; echo $1 >> {noted}; }}; f"
        config = f'[credential]\nhelper = "{helper}"\n[credential "http://127.0.0.1"]\nhelper = "{helper}"\n'
        write(tmp_path / "home", {".gitconfig": config})
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        with GitServer(site.bare.parent, token=TOKEN) as server:
            self.publish(server, bundle, TOKEN)
        assert not noted.exists()

    def test_the_token_is_in_no_argument_of_any_process_and_in_no_file(self, site, bundle, tmp_path):
        site.hook("pre-receive", "sleep 0.5")
        seen, stop = set(), threading.Event()

        def watch():
            while not stop.is_set():
                for entry in os.scandir("/proc"):
                    if entry.name.isdigit() and int(entry.name) != os.getpid():
                        try:
                            seen.add(Path(entry.path, "cmdline").read_bytes().replace(b"\0", b" "))
                        except OSError:
                            continue
                time.sleep(0.002)

        work = tmp_path / "work"
        work.mkdir()
        kept = []
        with GitServer(site.bare.parent, token=TOKEN) as server:
            watcher = threading.Thread(target=watch)
            watcher.start()
            address = (
                f"http://bot:{'tok3n-With%2BOdd%2FChars%3D%3D'}@127.0.0.1:{server.url.rpartition(':')[2]}/site.git"
            )
            try:
                original = shutil.rmtree
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(shutil, "rmtree", lambda folder, **_: kept.append(folder))
                    result = publish(Request(src=bundle, path="p"), access(address), diff=True, workdir=str(work))
            finally:
                stop.set()
                watcher.join()
        mine = [line for line in seen if server.url.encode() in line]
        assert any(b"git-remote-http" in line for line in mine), "the watcher saw no transport process"
        assert not [line for line in seen if b"tok3n" in line]
        stored = b"".join(path.read_bytes() for path in Path(kept[0]).rglob("*") if path.is_file())
        assert stored and b"tok3n" not in stored
        assert "tok3n" not in json.dumps(result)
        original(kept[0])

    def test_ssh_gets_the_key_and_never_asks(self, site, bundle, tmp_path, monkeypatch):
        log = tmp_path / "log"
        write(tmp_path / "bin", {"ssh": f'#!/bin/sh\necho "$@" >> {log}\nfor last; do :; done\nexec sh -c "$last"\n'})
        (tmp_path / "bin" / "ssh").chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
        way = access(f"git@git.example.com:{site.bare}", ssh_key_file="/keys/deploy key")
        assert publish(Request(src=bundle, path="p"), way)["changed"] is True
        assert site.count() == 1
        lines = log.read_text().splitlines()
        assert len(lines) == 2  # an empty repository has nothing to fetch
        assert all("-o BatchMode=yes" in line and "-i /keys/deploy key -o IdentitiesOnly=yes" in line for line in lines)


GIT_THAT_KILLS = """#!/bin/sh
count=$(( $(cat "$COUNTER" 2>/dev/null || echo 0) + 1 ))
echo $count > "$COUNTER"
"$REAL_GIT" "$@"
status=$?
test "$count" != "$KILL_AFTER" || kill -9 $PPID
exit $status
"""


@pytest.mark.slow
@pytest.mark.parametrize("case", ["empty", "direct", "review"])
def test_killed_after_any_git_command_a_second_run_ends_the_same(case, tmp_path, bundle):
    """Crash sweep: for every n, kill the publisher after its n-th git command, run it again, compare."""
    write(tmp_path / "bin", {"git": GIT_THAT_KILLS})
    (tmp_path / "bin" / "git").chmod(0o755)
    env = {"REAL_GIT": shutil.which("git"), "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    survived, step = False, 0
    while not survived:
        step += 1
        site = Site(tmp_path / str(step))
        if case != "empty":
            site.push({"README": "x", "clusters/p1/stale": "y"})
        options = {"repo": site.url, "src": bundle, "path": "clusters/p1", "cluster": "p1", "workdir": str(tmp_path)}
        options["mode"] = "review" if case == "review" else "direct"
        process = start({**env, "COUNTER": str(tmp_path / f"count{step}"), "KILL_AFTER": str(step)}, **options)
        survived = finish(process).get("changed") is True
        assert process.returncode == (0 if survived else -9)
        repo, workdir = options.pop("repo"), options.pop("workdir")
        again = publish(Request(**options), access(repo), workdir=workdir)
        branch = again["branch"]
        assert branch.startswith("goodput/p1-" if case == "review" else "main")
        assert set(site.read(branch)) == {"clusters/p1/bundle.sha256", "clusters/p1/apps/a.yaml"} | (
            {"README"} if case != "empty" else set()
        )
        assert site.count(branch) == (1 if case == "empty" else 2), f"killed after command {step}"
        assert set(site.heads()) == {"main", branch}
        assert publish(Request(**options), access(repo))["changed"] is False
    assert step > 8
