"""A site's GitOps repository for tests: a bare repository, and what is in it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

PERSON = {
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.com",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.com",
}


def raw(*args: str, cwd: str | Path | None = None, data: bytes = b"") -> bytes:
    """stdout of a git command that must succeed, with a fixed identity and nobody's configuration."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    env |= PERSON | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}
    done = subprocess.run(["git", *args], cwd=cwd, input=data, capture_output=True, env=env)
    if done.returncode:
        raise AssertionError(f"git {' '.join(args)}: {done.stderr.decode()}")
    return done.stdout


def git(*args: str, cwd: str | Path | None = None) -> str:
    """The same as text, without the last newline."""
    return raw(*args, cwd=cwd).decode("utf-8", "surrogateescape").removesuffix("\n")


class Site:
    """A bare repository at `bare`; `work` is somebody's clone of it. `filters`: can fetch names only, as forges can."""

    def __init__(
        self, folder: Path, name: str = "site", branch: str = "main", object_format: str = "sha1", filters: bool = True
    ):
        self.bare, self.work, self.branch = folder / f"{name}.git", folder / f"{name}-work", branch
        self.object_format = object_format
        git("init", "-q", "--bare", f"--initial-branch={branch}", f"--object-format={object_format}", str(self.bare))
        self.ask("config", "uploadpack.allowFilter", str(filters).lower())
        self.url = f"file://{self.bare}"

    def push(
        self, files: dict[str, str | bytes | None], branch: str = "", start: str = "", message: str = "by hand"
    ) -> str:
        """Somebody commits and pushes {name: content, or None to remove}; the commit. `start`: from another branch."""
        branch = branch or self.branch
        if not self.work.exists():
            kind = f"--object-format={self.object_format}"
            git("init", "-q", f"--initial-branch={branch}", kind, str(self.work))
            git("remote", "add", "origin", self.url, cwd=self.work)
        git("fetch", "-q", "origin", cwd=self.work)
        if (start or branch) in self.heads():
            git("checkout", "-q", "-f", "-B", branch, f"refs/remotes/origin/{start or branch}", cwd=self.work)
        for name, content in files.items():
            path = self.work / name
            if content is None:
                git("rm", "-rq", "--", name, cwd=self.work)
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        git("add", "-A", "-f", cwd=self.work)
        git("commit", "-q", "--allow-empty", "-m", message, cwd=self.work)
        git("push", "-q", "origin", f"HEAD:refs/heads/{branch}", cwd=self.work)
        return git("rev-parse", "HEAD", cwd=self.work)

    def merge(self, branch: str, *, squash: bool = False) -> str:
        """Somebody merges a branch into the site's own."""
        git("fetch", "-q", "origin", cwd=self.work)
        git("checkout", "-q", "-f", "-B", self.branch, f"origin/{self.branch}", cwd=self.work)
        git("merge", "-q", *(["--squash"] if squash else ["--no-ff", "-m", "merge"]), f"origin/{branch}", cwd=self.work)
        if squash:
            git("commit", "-q", "-m", "squashed", cwd=self.work)
        git("push", "-q", "origin", f"HEAD:refs/heads/{self.branch}", cwd=self.work)
        return git("rev-parse", "HEAD", cwd=self.work)

    def revert_merge(self) -> None:
        """Somebody takes the last merge back."""
        git("revert", "--no-edit", "-m", "1", "HEAD", cwd=self.work)
        git("push", "-q", "origin", f"HEAD:refs/heads/{self.branch}", cwd=self.work)

    def hook(self, name: str, script: str) -> None:
        """Install a server hook."""
        path = self.bare / "hooks" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def ask(self, *args: str) -> str:
        """stdout of a git command in the bare repository."""
        return git("-C", str(self.bare), *args)

    def heads(self) -> dict[str, str]:
        """Every branch and its commit."""
        return dict(
            line.split(" ")
            for line in self.ask(
                "for-each-ref", "--format=%(refname:lstrip=2) %(objectname)", "refs/heads"
            ).splitlines()
        )

    def count(self, branch: str = "") -> int:
        """How many commits a branch has."""
        return int(self.ask("rev-list", "--count", branch or self.branch))

    def read(self, branch: str = "", path: str = "") -> dict[str, bytes]:
        """{name: bytes} of every file on a branch, or in a directory of it."""
        listing = self.ask("ls-tree", "-r", "-z", "--full-tree", f"{branch or self.branch}:{path}")
        names = [line.split("\t")[1] for line in listing.split("\0") if line]
        blobs = [line.split("\t")[0].split(" ")[2] for line in listing.split("\0") if line]
        stream, files = raw("-C", str(self.bare), "cat-file", "--batch", data="\n".join(blobs).encode()), {}
        for name in names:
            head, _newline, stream = stream.partition(b"\n")
            size = int(head.split(b" ")[2])
            files[name], stream = stream[:size], stream[size + 1 :]
        return files


def write(folder: Path, files: dict[str, str | bytes]) -> str:
    """Make the files; the folder's path."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return str(folder)
