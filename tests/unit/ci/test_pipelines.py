# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ready pipelines: their scripts are sound, and name only what there is."""

from __future__ import annotations

import importlib.util
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[3]
CI = ROOT / "gitops/ci"
GITHUB = yaml.safe_load((CI / "github-driver-update.yml").read_text())
GITLAB = yaml.safe_load((CI / "gitlab-driver-update.yml").read_text())
VARIABLES = yaml.safe_load((CI / "driver_update.vars.yml").read_text())


def scripts() -> dict[str, str]:
    """Each job's script as the runner's shell gets it."""
    found = {
        f"github/{name}": "\n".join(step["run"] for step in job["steps"] if "run" in step)
        for name, job in GITHUB["jobs"].items()
    }
    for name in ("review", "roll-out"):
        lines = GITLAB[GITLAB[name]["extends"]]["before_script"] + GITLAB[name]["script"]
        found[f"gitlab/{name}"] = "\n".join(lines)
    return found


def review_module():
    spec = importlib.util.spec_from_file_location("review_command", CI / "review.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def options_of(role: str) -> set[str]:
    spec = yaml.safe_load((ROOT / f"roles/{role}/meta/argument_specs.yml").read_text())
    return set(spec["argument_specs"]["main"]["options"])


@pytest.mark.parametrize("job", scripts())
def test_scripts_are_sound(job):
    # SC2154: variables that the pipeline or the runner sets
    command = ["shellcheck", "--shell=bash", "--exclude=SC2154", "-"]
    done = subprocess.run(command, input=scripts()[job], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_command_itself_is_sound():
    done = subprocess.run(["shellcheck", str(CI / "review")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert (CI / "review").stat().st_mode & 0o111


@pytest.mark.parametrize("job", ["github/review", "gitlab/review"])
def test_the_review_takes_the_words_it_is_given(job):
    script = scripts()[job].replace("\\\n", " ")
    (line,) = [line for line in script.splitlines() if "gitops/ci/review" in line]
    words = shlex.split(line.partition('gitops/ci/review"')[2].partition(">")[0])
    options = review_module().arguments(words)
    assert options.base and options.lock == "$LOCK" and options.certification == ["$CERTIFICATION"]


@pytest.mark.parametrize("job", ["github/roll-out", "gitlab/roll-out"])
def test_the_roll_out_sets_variables_that_there_are(job):
    known = options_of("driver_update") | options_of("revalidate") | {"goodput_mode"}
    given = set(re.findall(r"-e (\w+)=", scripts()[job]))
    assert {"driver_update_lock", "driver_update_change", "goodput_mode"} <= given <= known
    assert set(VARIABLES) - {"reviewed"} <= known
    order = re.findall(r"ansible-playbook goodput\.fleet\.(\w+)", scripts()[job])
    assert order == ["driver_update", "revalidate"]
    assert all((ROOT / f"playbooks/{name}.yml").is_file() for name in order)


def test_the_roll_out_runs_on_the_main_branch_alone_and_one_at_a_time():
    job = GITHUB["jobs"]["roll-out"]
    assert "github.event_name != 'pull_request'" in job["if"] and "refs/heads/main" in job["if"]
    assert job["concurrency"]["cancel-in-progress"] is False and job["environment"]
    job = GITLAB["roll-out"]
    assert all("$CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH" in rule["if"] for rule in job["rules"])
    assert job["resource_group"] and job["interruptible"] is False


def test_pull_requests_never_see_the_right_to_roll_out():
    review = yaml.safe_dump(GITHUB["jobs"]["review"]) + yaml.safe_dump(GITLAB["review"])
    assert "ROLL_OUT" not in review and "READER_KUBECONFIG" in review
    assert "pull_request_target" not in GITHUB["on"]


@pytest.mark.parametrize("name", ["clusters/prod 1/recipe 'x'.lock.yaml", "-odd.yaml", "ünï.yaml", ":(glob)*.yaml"])
def test_files_of_a_commit_whatever_their_names(tmp_path, name):
    """Through git itself; a file that the commit does not have is new."""
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("before\n")
    who = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "x"], ["tag", "then"]):
        subprocess.run(["git", *who, *words], cwd=tmp_path, check=True)
    path.write_text("after\n")
    code = (
        "import importlib.util, pathlib, sys\n"
        f"spec = importlib.util.spec_from_file_location('review_command', {str(CI / 'review.py')!r})\n"
        "made = importlib.util.module_from_spec(spec); spec.loader.exec_module(made)\n"
        "before = made.Before('then', pathlib.Path(sys.argv[1]))\n"
        "print(pathlib.Path(before.file(sys.argv[2])).read_text().strip(), before.file('no-such.yaml'))\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "base"), name]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["before", "None"], done.stderr
