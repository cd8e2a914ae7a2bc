# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The git actuator: one directory of a site's repository becomes exactly the rendered tree, in one commit.

Level-triggered: each attempt fetches what is there now, and commits only when the directory differs from what it
should be. So a run that was killed anywhere, or whose push came second, is simply done again. Nothing is ever forced.
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
import time
from collections.abc import Callable

from ansible_collections.goodput.fleet.plugins.module_utils.publish import (
    faults,
    message,
    objects,
    refs,
    review,
    source,
)
from ansible_collections.goodput.fleet.plugins.module_utils.publish.access import Access
from ansible_collections.goodput.fleet.plugins.module_utils.publish.gitcli import REMOTE, Git
from ansible_collections.goodput.fleet.plugins.module_utils.publish.request import Request
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import (
    Denied,
    InvalidDocument,
    Problem,
    Unavailable,
)

NAMES_SHOWN = 1000  # per list of the result; the counts are always complete
DIFF_BYTES = 64 * 1024
LOOK_BACK = 200  # commits in which to look for one whose push was not answered
TRANSPORT_RETRIES = 2  # a server that does not answer is not worth as many tries as a busy branch


class Moved(Exception):
    """Somebody else's push came first."""


def publish(
    request: Request,
    access: Access,
    check: bool = False,
    diff: bool = False,
    workdir: str | None = None,
    sleep: Callable[[float], None] = time.sleep,
    chance: Callable[[], float] = random.random,
) -> dict:
    """Make the directory on the remote what `src` is; the module's result.

    `check` only plans: it fetches, commits and pushes nothing. `diff` adds a unified diff. `chance` gives 0..1 for the
    jitter between attempts. Raises FleetError.
    """
    problems = request.problems()
    if problems:
        raise InvalidDocument(problems)
    files = source.read(request.src)
    folder = tempfile.mkdtemp(prefix="goodput-publish-", dir=workdir)
    try:
        run = _Run(request, access, os.path.join(folder, "repo.git"), time.monotonic() + request.timeout, check, diff)
        return run.all(files, sleep, chance)
    except OSError as error:
        raise Unavailable(f"{error.filename or folder}: {error.strerror}", code="os-error") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def backoff(attempt: int, chance: float) -> float:
    """Seconds before the next attempt (1, 2, ...): full jitter, so that publishers that collided part."""
    return chance * min(5.0, 0.25 * 2**attempt)


class _Run:
    def __init__(self, request: Request, access: Access, folder: str, deadline: float, check: bool, diff: bool):
        self.request, self.access, self.check, self.diff = request, access, check, diff
        self.parts = source.split(request.path)
        self.path = "/".join(self.parts)
        self.shown = access.redact(access.url)
        settings: tuple[tuple[str, str], ...] = ()
        if request.signing_key:
            settings = (("gpg.format", request.signing_format), ("user.signingKey", request.signing_key))
        os.makedirs(folder)
        self.git = Git(folder, access, deadline, settings)
        self.tree = ""
        self.sent: dict[str, dict] = {}  # results of the commits that were pushed, whatever came of it

    def all(self, files: list[tuple[str, str]], sleep, chance) -> dict:
        """Attempts until one settles it."""
        self.git.check_version()
        self._check_names()
        lost, attempt = 0, 0
        while True:
            attempt += 1
            try:
                return {**self._attempt(files), "attempts": attempt}
            except Moved as error:
                last = Unavailable(
                    f"{self.shown}: other pushes came first {attempt} times ({error}); nothing was published",
                    path="retries",
                    hint="run again, or raise retries",
                    code="busy",
                )
                more = attempt <= self.request.retries
            except Unavailable as error:
                lost += 1
                last, more = error, lost <= min(TRANSPORT_RETRIES, self.request.retries)
            wait = backoff(attempt, chance())
            if not more or time.monotonic() + wait >= self.git.deadline:
                raise last
            sleep(wait)

    def _check_names(self) -> None:
        wrong = [
            Problem("bad-name", f"{value!r} is not a name for a branch", path=name)
            for name, value in (("branch", self.request.branch), ("review_branch", self.request.review_branch))
            if value and self.git.run("check-ref-format", f"refs/heads/{value}").status
        ]
        if wrong:
            raise InvalidDocument(wrong)

    def _attempt(self, files: list[tuple[str, str]]) -> dict:
        listing = self.git("ls-remote", "--symref", REMOTE, "HEAD", "refs/heads/*", doing="reach").text
        remote = refs.parse(listing)
        request = self.request
        base = refs.choose(remote, request.branch, request.create_branch, request.mode == "review")
        if base.branch not in remote.heads:
            refs.check_free(remote, base.branch)
        if not self.tree:
            self._init(remote)
            self.tree = objects.store(self.git, request.src, files)
        tip = self._fetch(base.start) if base.start else ""
        place = objects.locate(self.git, tip, self.parts)
        if place.tree == self.tree:
            return self._settled(base, base.branch, tip, place)
        if request.mode == "review":
            return self._review(remote, base, tip, place)
        return self._change(base, base.branch, [tip] if tip else [], place)

    def _init(self, remote: refs.Refs) -> None:
        long = any(len(commit) == 64 for commit in remote.heads.values())
        kind = "sha256" if long else "sha1"
        self.git("init", "--quiet", "--bare", "--template=", f"--object-format={kind}", self.git.folder)

    def _fetch(self, branch: str) -> str:
        """Bring the branch here; the commit of its tip."""
        self._transfer([f"--depth={self.request.depth}"] if self.request.depth else [], (branch,))
        return self._tip(branch)

    def _transfer(self, options: list[str], branches: tuple[str, ...]) -> None:
        # the contents of the site's files are not needed, only their names
        flags = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--filter=blob:none")
        specs = (f"+refs/heads/{branch}:refs/goodput/{branch}" for branch in branches)
        output = self.git.run("fetch", *flags, *options, REMOTE, *specs)
        if output.status and "couldn't find remote ref" in output.err:
            raise Moved("a branch was removed meanwhile")
        if output.status:
            raise faults.explain("fetch from", self.shown, output.err)

    def _tip(self, branch: str) -> str:
        return self.git("rev-parse", "--verify", f"refs/goodput/{branch}^{{commit}}").text.strip()

    def _review(self, remote: refs.Refs, base: refs.Base, tip: str, place: objects.Place) -> dict:
        branch = self.request.review_branch or message.review_branch(self.request.cluster, self.tree)
        if branch == base.branch:
            raise InvalidDocument(f"{branch} is the branch to review against", path="review_branch", code="bad-value")
        if branch not in remote.heads:
            refs.check_free(remote, branch)
            return self._change(base, branch, [tip], place)
        shallow = self.git("rev-parse", "--is-shallow-repository").text.strip() == "true"
        self._transfer(["--unshallow"] if shallow else [], (base.start, branch))
        tip, head = self._tip(base.start), self._tip(branch)
        there = objects.locate(self.git, head, self.parts)
        if review.needs_base(self.git, self.path, self.parts, tip, head, branch):
            return self._change(base, branch, [head, tip], objects.locate(self.git, tip, self.parts))
        if there.tree == self.tree:
            return self._settled(base, branch, head, there)
        return self._change(base, branch, [head], there)

    def _settled(self, base: refs.Base, branch: str, commit: str, place: objects.Place) -> dict:
        if base.branch != base.start and branch == base.branch:
            # the branch has to be made, even without a commit of its own
            return self._change(base, branch, [commit], place)
        if self.sent:  # an earlier attempt of this run may have done it and not heard so
            self._transfer([f"--depth={LOOK_BACK}"], (branch,))
            for mine, result in self.sent.items():
                if not self.git.run("merge-base", "--is-ancestor", mine, commit).status:
                    return result
        return self._result(base, branch, commit, {"added": [], "modified": [], "removed": []})

    def _change(self, base: refs.Base, branch: str, parents: list[str], place: objects.Place) -> dict:
        old = place.tree or objects.empty(self.git)
        files = objects.changes(self.git, old, self.tree)
        objects.check_removals(self.path, files["removed"])
        counts = {word: len(names) for word, names in files.items()}
        ask = self.request
        text = message.compose(self.path, ask.recipe, ask.cluster, ask.digests, counts, ask.commit_message)
        if place.tree == self.tree and len(parents) == 1:
            commit, text = parents[0], ""
        elif self.check:
            commit = parents[0] if parents else ""
        else:
            commit = self._commit(objects.graft(self.git, place, self.parts, self.tree), parents, text)
        result = self._result(base, branch, commit, files, True, text)
        if self.diff:
            result["diff"] = {"prepared": objects.unified(self.git, self.path, old, self.tree, DIFF_BYTES)}
        if not self.check:
            self.sent[commit] = result
            self._push(commit, branch)
        return result

    def _commit(self, tree: str, parents: list[str], text: str) -> str:
        name, email = self.request.author_name, self.request.author_email
        env = {"GIT_AUTHOR_NAME": name, "GIT_COMMITTER_NAME": name}
        env |= {"GIT_AUTHOR_EMAIL": email, "GIT_COMMITTER_EMAIL": email}
        args = [word for parent in parents for word in ("-p", parent)]
        if self.request.signing_key:
            args.append("-S")
        feed = text.encode()
        made = self.git("commit-tree", *args, "-F", "-", tree, stdin=feed, env=env, doing="make a commit for")
        return made.text.strip()

    def _push(self, commit: str, branch: str) -> None:
        # not thin: deltas against the site's files would need their contents
        flags = ("--porcelain", "--no-verify", "--no-signed", "--no-thin")
        output = self.git.run("push", *flags, REMOTE, f"{commit}:refs/heads/{branch}")
        verdict, reason = faults.rejection(output.text)
        if not output.status and not verdict:
            return
        if verdict == "moved":
            raise Moved(reason)
        said = faults.remote_says(output.err)
        if verdict == "declined":
            raise Denied(
                f"{self.shown} declined the push to {branch}: {reason}" + (f": {said}" if said else ""),
                path="branch",
                hint="the server's rules stand against it; with a protected branch use mode: review",
                code="declined",
            )
        raise faults.explain(f"push to {branch} of", self.shown, output.err)

    def _result(self, base, branch, commit, files, changed=False, text="") -> dict:
        return {
            "changed": changed,
            "commit": commit,
            "branch": branch,
            "base": base.branch,
            "pending": branch != base.branch,
            "tree": self.tree,
            "files": {word: names[:NAMES_SHOWN] for word, names in files.items()},
            "counts": {word: len(names) for word, names in files.items()},
            "message": text,
        }
