"""The module gitops_publish, the role publish and the module report, run by ansible-playbook."""

import json
import os
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.integration.githttp import GitServer
from tests.integration.gitsite import Site, write
from tests.unit.reports import documents

pytestmark = pytest.mark.git
ROOT = Path(__file__).resolve().parents[2]
TOKEN = "s3cret-t0ken-of-the-site"
CRITERIA = {"service": "aks", "accelerator": "a100", "intent": "training", "os": "ubuntu", "platform": "kubeflow"}


def play(folder: Path, *tasks: dict, args=(), ok=True, **variables) -> tuple[dict, str]:
    """Run tasks on this machine: ({registered name: result}, everything that was printed)."""
    folder.mkdir(exist_ok=True)
    kept = folder / "kept.json"
    kept.unlink(missing_ok=True)
    names = [task["register"] for task in tasks if "register" in task]
    content = "{{ {" + ", ".join(f"'{name}': {name}" for name in names) + "} | to_json }}"
    keep = {
        "name": "Keep results",
        "ansible.builtin.copy": {"dest": str(kept), "content": content},
        "check_mode": False,
        "changed_when": False,
        "when": bool(names),
    }
    book = [{"name": "Test", "hosts": "localhost", "gather_facts": False, "vars": variables, "tasks": [*tasks, keep]}]
    (folder / "play.yml").write_text(yaml.safe_dump(book, sort_keys=False))
    env = {key: value for key, value in os.environ.items() if not key.startswith(("GIT_", "GOODPUT_"))}
    env |= {
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".build" / "collections"),
        "ANSIBLE_LOCALHOST_WARNING": "False",
        "ANSIBLE_INVENTORY_UNPARSED_WARNING": "False",
        "ANSIBLE_LOCAL_TEMP": str(folder / "tmp"),
        "ANSIBLE_SHOW_CUSTOM_STATS": "True",
        "ANSIBLE_NOCOLOR": "True",
    }
    command = [str(ROOT / ".venv" / "bin" / "ansible-playbook"), str(folder / "play.yml"), *args]
    done = subprocess.run(command, env=env, capture_output=True, text=True, cwd=folder)
    output = done.stdout + done.stderr
    assert (done.returncode == 0) is ok, output
    return json.loads(kept.read_text()) if kept.exists() else {}, output


@pytest.fixture
def site(tmp_path):
    site = Site(tmp_path / "srv")
    site.push({"README": "x"})
    return site


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bundle")
    rendering = {"lock": str(folder / "lock.yaml"), "deployer": "flux", "dest": str(folder / "bundle")}
    rendering["path"] = "clusters/p1"
    tasks = [
        {"name": "Resolve", "goodput.fleet.recipe": {"criteria": CRITERIA, "dest": str(folder / "lock.yaml")}},
        {"name": "Render", "goodput.fleet.bundle": rendering},
    ]  # fmt: skip
    play(folder / "play", *tasks)
    return folder / "bundle"


class TestModule:
    def task(self, **options):
        return {"name": "Publish", "goodput.fleet.gitops_publish": options, "register": "published"}

    def test_plan_then_commit_then_nothing(self, tmp_path, site):
        src = write(tmp_path / "src", {"a b/ü.yaml": "x: 1\n"})
        task = self.task(
            repo=site.url, path="clusters/p1", src=src, cluster="p1", recipe="h100", digests={"lock": "sha256:aa"}
        )
        plan, output = play(tmp_path / "plan", task, args=["--check", "--diff"])
        assert "+x: 1" in output
        assert site.count() == 1
        done, _output = play(tmp_path / "done", task)
        assert done["published"]["changed"] is plan["published"]["changed"] is True
        assert {key: done["published"][key] for key in ("files", "message", "tree", "branch")} == {
            key: plan["published"][key] for key in ("files", "message", "tree", "branch")
        }
        assert site.heads()["main"] == done["published"]["commit"]
        again, _output = play(tmp_path / "again", task)
        assert again["published"]["changed"] is False
        assert site.count() == 2

    def test_secrets_are_in_no_output_even_when_it_fails(self, tmp_path, site):
        src = write(tmp_path / "src", {"a": "1"})
        options = {"src": src, "token": "{{ token | default(omit) }}", "repo": "{{ repo }}"}
        with GitServer(site.bare.parent, token=TOKEN) as server:
            # Ansible prints the lines of a failed task, so secrets come from another file, as they should
            secrets = {
                "right.yml": f"token: {TOKEN}\nrepo: {server.url}/site.git\n",
                "wrong.yml": f"repo: {server.url.replace('http://', 'http://bot:wr0ng-passw0rd@')}/site.git\n",
            }
            write(tmp_path, secrets)
            outputs = [
                play(
                    tmp_path / "play",
                    self.task(**options, path="p"),
                    args=["-vvv", "--diff", "-e", f"@{tmp_path / name}"],
                    ok=ok,
                )[1]
                for name, ok in (("right.yml", True), ("wrong.yml", False))
            ]
        assert "changed: [localhost]" in outputs[0] and "wants a credential" in outputs[1]
        for output in outputs:
            assert TOKEN not in output and "wr0ng" not in output and "Traceback" not in output

    def test_bad_options_are_told_all_at_once_without_a_trace(self, tmp_path, site):
        task = self.task(repo=site.url, path="../x", src=str(tmp_path), recipe="a\nb", mode="review")
        _results, output = play(tmp_path / "play", task, ok=False)
        for words in ("leads out of the repository", "must be a single line", "named after the cluster"):
            assert words in output
        assert "Traceback" not in output


class TestRole:
    def role(self, tmp_path, site, bundle, ok=True, args=(), **variables):
        tasks = [
            {"name": "Publish", "ansible.builtin.include_role": {"name": "goodput.fleet.publish", "public": True}},
            {"name": "Keep", "ansible.builtin.set_fact": {"summary": "{{ publish_summary }}"}, "register": "kept"},
        ]
        given = {
            "publish_bundle": str(bundle), "publish_repo": site.url,
            "publish_path": "clusters/p1", "publish_cluster": "p1",
            "publish_record": str(tmp_path / "records" / "publish.json"),
            **variables,
        }  # fmt: skip
        results, output = play(tmp_path / "play", *tasks, ok=ok, args=args, **given)
        return (results["kept"]["ansible_facts"]["summary"] if ok else None), output

    def test_observe_is_the_default_and_only_tells(self, tmp_path, site, bundle):
        summary, output = self.role(tmp_path, site, bundle)
        assert (summary["mode"], summary["planned"], summary["changed"]) == ("observe", True, True)
        assert "Would commit: aks-a100" in output.replace("a100-aks", "aks-a100")
        assert site.count() == 1
        assert not (tmp_path / "records").exists()
        assert "goodput_publish" in output

    def test_dry_run_also_records(self, tmp_path, site, bundle):
        summary, _output = self.role(tmp_path, site, bundle, goodput_mode="dry_run")
        assert json.loads((tmp_path / "records" / "publish.json").read_text()) == summary
        assert site.count() == 1

    def test_enforce_commits_once_and_what_it_commits_is_the_bundle(self, tmp_path, site, bundle):
        summary, output = self.role(tmp_path, site, bundle, goodput_mode="enforce")
        assert "Committed: " in output
        assert site.heads() == {"main": summary["commit"]}
        files = {str(path.relative_to(bundle)): path.read_bytes() for path in bundle.rglob("*") if path.is_file()}
        assert site.read(path="clusters/p1") == files
        trailers = site.ask("log", "-1", "--format=%(trailers)", "main")
        assert f"Recipe: {summary['recipe']}" in trailers and f"Lock-Digest: {summary['lock']}" in trailers
        summary, output = self.role(tmp_path, site, bundle, goodput_mode="enforce")
        assert summary["changed"] is False and "Nothing to commit" in output
        assert site.count() == 2
        assert "changed=0" in output

    def test_check_mode_never_commits(self, tmp_path, site, bundle):
        summary, output = self.role(tmp_path, site, bundle, goodput_mode="enforce", args=["--check", "--diff"])
        assert summary["planned"] is True and "Would commit" in output and "+++ b/clusters/p1/" in output
        assert site.count() == 1

    def test_review(self, tmp_path, site, bundle):
        summary, output = self.role(tmp_path, site, bundle, goodput_mode="enforce", publish_mode="review")
        assert (summary["base"], summary["pending"]) == ("main", True)
        assert set(site.heads()) == {"main", summary["branch"]}
        assert "to be merged into main" in output

    def test_a_bundle_that_was_touched_is_not_published(self, tmp_path, site, bundle):
        copy = tmp_path / "touched"
        subprocess.run(["cp", "-r", str(bundle), str(copy)], check=True)
        (copy / "evil.yaml").write_text("kind: Pod\n")
        _summary, output = self.role(tmp_path, site, copy, ok=False, goodput_mode="enforce")
        assert "evil.yaml" in output and "is not listed" in output
        assert site.count() == 1

    def test_arguments_are_checked(self, tmp_path, site, bundle):
        _summary, output = self.role(tmp_path, site, bundle, ok=False, goodput_mode="force", publish_retries="many")
        assert "goodput_mode" in output and "publish_retries" in output
        assert site.count() == 1


class TestReport:
    def test_files_are_written_once_and_the_verdict_is_told(self, tmp_path):
        drift = documents.drift([documents.finding(nodes=["gpu-7"])])
        health = documents.health(kueue=[])
        options = {
            "dest": str(tmp_path / "out"),
            "formats": ["html", "json", "junit", "markdown", "sarif"],
            "drift": drift,
            "health": health,
        }
        options["install"] = documents.install()
        tasks = [{"name": "Report", "goodput.fleet.report": options, "register": name, **more} for name, more in (
            ("plan", {"check_mode": True}), ("first", {}), ("second", {}))]  # fmt: skip
        results, _output = play(tmp_path / "play", *tasks)
        assert [results[name]["changed"] for name in ("plan", "first", "second")] == [True, True, False]
        assert results["first"]["verdict"] == "fail"
        assert results["first"]["files"] == sorted(str(path) for path in (tmp_path / "out").iterdir())
        assert results["first"]["counts"] == {"fail": 1, "unknown": 0, "note": 0, "pass": 5}
        assert json.loads((tmp_path / "out" / "drift.json").read_text()) == drift
        assert "gpu-7" in (tmp_path / "out" / "report.md").read_text()

    def test_bad_input_is_told_without_a_trace(self, tmp_path):
        task = {
            "name": "Report",
            "goodput.fleet.report": {"dest": str(tmp_path / "out"), "drift": {"kind": "Snapshot"}},
        }
        _results, output = play(tmp_path / "play", task, ok=False)
        assert "a DriftReport belongs here" in output and "Traceback" not in output
        assert not (tmp_path / "out").exists()
