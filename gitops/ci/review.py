# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Print the review of a pull request as Markdown; the exit code is its result.

review --base origin/main --lock clusters/prod-1/recipe.lock.yaml --certification certifications/driver.yaml
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

COLLECTION = Path(__file__).resolve().parents[2]
BAD_INPUT, BROKEN = 2, 1
AFTERWORD = """exit codes:
  0  nothing stands against the change
  3  the cluster has drifted from the lock that the change starts from
  4  something that was asked could not be told
  2  the input is bad
  1  the review itself could not run

The page goes to stdout, all else to stderr. Rights: gitops/rbac/reader.yaml of this collection."""


class BadInput(Exception):
    """What, and what would be right."""


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="review",
        description="Recipe diff, drift, certification plan and its cost of a pull request, as Markdown.",
        epilog=AFTERWORD,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("-l", "--lock", required=True, metavar="FILE", help="the lock file, as the change leaves it")
    add(
        "-b", "--base", metavar="REF", help="git commit, branch or tag that the change starts from, such as origin/main"
    )
    add("--base-lock", metavar="FILE", help="the lock file before the change, instead of the one in --base")
    add(
        "-c", "--certification", action="append", default=[], metavar="FILE", help="tests to plan with; may be repeated"
    )
    add("-k", "--kubeconfig", metavar="FILE", help="kubeconfig of the cluster; without it the environment decides")
    add("--context", help="context of the kubeconfig")
    add("-s", "--snapshot", metavar="FILE", help="look at this stored snapshot, and at no cluster")
    add("--offline", action="store_true", help="compare the documents alone")
    add("--cluster", help="name of the cluster on the page")
    add("--vars", action="append", default=[], metavar="FILE", help="further variables of the role review (YAML)")
    add("--json", metavar="FILE", help="write the result there as well")
    return parser.parse_args(given)


def variables(options: argparse.Namespace, folder: Path) -> dict:
    """The role's variables, all paths absolute. What `--base` holds is put below `folder`."""
    if options.base and options.base_lock:
        raise BadInput("--base-lock replaces the lock file of --base: give one of the two")
    given = {
        "review_head": existing(options.lock, "--lock"),
        "review_certifications": [{"head": existing(path, "--certification")} for path in options.certification],
        "review_offline": options.offline,
        "review_fail_on": [],
        "ansible_python_interpreter": "{{ ansible_playbook_python }}",  # it has what the collection needs
        "review_report_dir": str(folder / "result"),
    }
    if options.base_lock:
        given["review_base"] = existing(options.base_lock, "--base-lock")
    if options.base:
        before = Before(options.base, folder / "base")
        given["review_base"] = before.file(options.lock) or ""
        for entry in given["review_certifications"]:
            entry.update({"base": path} if (path := before.file(entry["head"])) else {})
    if options.snapshot:
        given["review_snapshot"] = existing(options.snapshot, "--snapshot")
    if options.kubeconfig:
        given["review_kubeconfig"] = existing(options.kubeconfig, "--kubeconfig")
    named = {"review_context": options.context, "review_cluster": options.cluster}
    return {**given, **{key: value for key, value in named.items() if value}}


def existing(path: str, option: str) -> str:
    if not os.path.isfile(path):
        raise BadInput(f"{option}: there is no file {path}")
    return os.path.abspath(path)


class Before:
    """Files of a commit. A file that it does not have is new with the change."""

    def __init__(self, ref: str, folder: Path):
        self.folder = folder
        done = git(".", "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
        self.commit = done.stdout.decode().strip()
        if done.returncode or not self.commit:
            why = done.stderr.decode(errors="replace").strip()
            hint = why or "fetch it first; CI systems clone shallowly, so give the checkout its whole history"
            raise BadInput(f"--base: git knows no commit {ref} here ({hint})")

    def file(self, path: str) -> str | None:
        """Where the file of then is, or None where there was none."""
        there = Path(path).resolve()
        root = git(there.parent, "rev-parse", "--show-toplevel").stdout.decode().strip()
        if not root:
            raise BadInput(f"--base: {path} is in no git repository; give its old version with --base-lock")
        name = there.relative_to(Path(root).resolve()).as_posix()
        listed = git(root, "ls-tree", "--name-only", "-z", self.commit, "--", f":(literal){name}")
        if listed.returncode:
            raise BadInput(f"--base: {listed.stderr.decode(errors='replace').strip()}")
        if not listed.stdout:
            return None
        shown = git(root, "show", f"{self.commit}:{name}")
        if shown.returncode:
            raise BadInput(f"--base: {shown.stderr.decode(errors='replace').strip()}")
        target = self.folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(shown.stdout)
        return str(target)


def git(folder: str | Path, *words: str) -> subprocess.CompletedProcess:
    try:
        return subprocess.run(["git", "-C", str(folder), *words], capture_output=True, check=False)
    except FileNotFoundError as error:
        raise BadInput("--base: there is no git on the PATH; give the old file with --base-lock") from error


def run(given: dict, more: list[str], folder: Path) -> subprocess.CompletedProcess:
    """The playbook, with this very collection whether it is installed or a checkout."""
    program = shutil.which("ansible-playbook") or str(Path(sys.executable).with_name("ansible-playbook"))
    tree = folder / "collections"
    (tree / "ansible_collections/goodput").mkdir(parents=True)
    (tree / "ansible_collections/goodput/fleet").symlink_to(COLLECTION)
    (folder / "variables.json").write_text(json.dumps(given))
    known = os.environ.get("ANSIBLE_COLLECTIONS_PATH") or "~/.ansible/collections:/usr/share/ansible/collections"
    environment = {
        **os.environ,
        "ANSIBLE_COLLECTIONS_PATH": f"{tree}:{known}",
        "ANSIBLE_LOCALHOST_WARNING": "False",
        "ANSIBLE_INVENTORY_UNPARSED_WARNING": "False",
        "ANSIBLE_NOCOLOR": "True",
        "LC_ALL": "C.UTF-8",  # the page has signs that others lack
        "ANSIBLE_RETRY_FILES_ENABLED": "False",
    }
    files = [*(f"@{existing(path, '--vars')}" for path in more), f"@{folder / 'variables.json'}"]
    words = [word for name in files for word in ("-e", name)]
    return subprocess.run(
        [program, "-i", "localhost,", "-c", "local", "goodput.fleet.review", *words],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )


def review(options: argparse.Namespace, folder: Path) -> int:
    try:
        done = run(variables(options, folder), options.vars, folder)
    except FileNotFoundError as error:
        print(f"review: cannot run {error.filename}: install ansible-core", file=sys.stderr)
        return BROKEN
    try:
        result = json.loads((folder / "result/review.json").read_text())
    except (OSError, ValueError):
        result = {}
    code = result.get("exit_code", BROKEN)
    if "markdown" in result:
        print(result["markdown"], end="")
    elif code == BAD_INPUT:
        print(f"review: {result['msg']}".replace(f"{folder / 'base'}/", f"{options.base}:"), file=sys.stderr)
    else:
        print(f"review: the playbook did not come to a result:\n{done.stdout.strip()}", file=sys.stderr)
    if options.json and result:
        shutil.copyfile(folder / "result/review.json", options.json)
    return code


def main() -> int:
    sys.stdout.reconfigure(encoding="utf-8")
    options = arguments()
    with tempfile.TemporaryDirectory(prefix="goodput-review-") as folder:
        try:
            return review(options, Path(folder))
        except (BadInput, OSError) as error:
            print(f"review: {error}", file=sys.stderr)
            return BAD_INPUT


if __name__ == "__main__":
    sys.exit(main())
