# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What git said, as an error for people: what failed, why, what to do next. Pure."""

from __future__ import annotations

import re

from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import (
    Conflict,
    Denied,
    FleetError,
    NotFound,
    Problem,
    Unavailable,
)

# first match wins; git speaks English here because the environment sets LC_ALL=C
_RULES: tuple[tuple[str, type[FleetError], str, str], ...] = (
    (
        r"Host key verification failed|REMOTE HOST IDENTIFICATION",
        Denied,
        "the host key of the server is not trusted",
        "put the host's key into ssh_known_hosts_file, or set ssh_accept_new_host_key for the first contact",
    ),
    (
        r"could not read (Username|Password)|Authentication failed|Permission denied \(|error: 401\b|"
        r"Invalid credentials|HTTP Basic: Access denied|terminal prompts disabled",
        Denied,
        "the server wants a credential that is valid",
        "check token and username, or ssh_key_file",
    ),
    (
        r"error: 403\b|[Pp]ermission to .* denied|not allowed to|insufficient permission|"
        r"Write access .*not granted|access denied",
        Denied,
        "the credential lacks the right to do this",
        "grant it read and write on this repository",
    ),
    (
        r"dubious ownership",
        Denied,
        "the repository belongs to another user",
        "git config --global --add safe.directory PATH",
    ),
    (
        r"does not appear to be a git repository|not a git repository|not valid: is this a git repository|"
        r"[Rr]epository .*not found|error: 404\b|project you were looking for could not be found",
        NotFound,
        "no git repository is there, or the credential may not see it",
        "check repo, then the credential",
    ),
    (r"[Cc]ould not resolve host", Unavailable, "the name of the host cannot be resolved", "check repo and DNS"),
    (
        r"SSL certificate problem|server certificate verification failed|certificate verif",
        Unavailable,
        "the server's certificate cannot be verified",
        "give the CA's certificate with ca_file",
    ),
    (
        r"error: 5\d\d\b|RPC failed|hung up|early EOF|unexpected disconnect|Connection reset|broken pipe|Empty reply",
        Unavailable,
        "the server broke off",
        "try again; look at the server's log if it stays",
    ),
    (
        r"Failed to connect|Could(n't| not) connect|Connection refused|timed out|No route to host|unreachable|"
        r"Connection closed|unable to access|Could not read from remote",
        Unavailable,
        "the server cannot be reached",
        "check repo, network and proxy",
    ),
    (
        r"mismatched algorithms|object format",
        Conflict,
        "the repository uses an object format that this git does not know",
        "use a newer git",
    ),
    (
        r"gpg failed to sign|signing failed|[Cc]ouldn't (load|get) .*key|No private key found|error: Load key",
        Denied,
        "the commit could not be signed",
        "check signing_key and signing_format, and that the key needs no passphrase",
    ),
)


def explain(doing: str, repo: str, stderr: str) -> FleetError:
    """The error for a git command that failed. `doing` completes "cannot ..."; `stderr` is free of secrets."""
    said = complaint(stderr)
    for pattern, kind, why, hint in _RULES:
        if re.search(pattern, stderr):
            return kind(
                Problem(
                    kind.code, f"cannot {doing} {repo}: {why}" + (f": {said}" if said else ""), path="repo", hint=hint
                )
            )
    return Unavailable(Problem(Unavailable.code, f"cannot {doing} {repo}: {said or 'git gave no reason'}", path="repo"))


def complaint(stderr: str) -> str:
    """The lines of git's own that carry the reason, joined; at most 500 characters."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    told = [
        line for line in lines if re.match(r"(fatal|error|remote|ssh|.*denied|.*verification failed)\b", line)
    ] or lines
    told = [re.sub(r"^(fatal|error|remote): ?(ERROR: ?)?", "", line) for line in told if not line.startswith("hint:")]
    text = "; ".join(dict.fromkeys(line for line in told if line))
    return text if len(text) <= 500 else text[:497] + "..."


def remote_says(stderr: str) -> str:
    """What a hook or the server's rules printed, line by line; at most 2000 characters."""
    lines = [match[1].rstrip() for match in re.finditer(r"^remote: ?(.*)$", stderr.replace("\r", "\n"), re.MULTILINE)]
    text = "\n".join(
        line
        for line in lines
        if line and not re.match(r"(Resolving deltas|Counting|Compressing|Total|Enumerating)\b", line)
    )
    return text if len(text) <= 2000 else text[:1997] + "..."


# reasons in parentheses after [rejected] or [remote rejected]: another push came first
_MOVED = re.compile(
    r"fetch first|non-fast-forward|stale info|cannot lock ref|failed to (update|lock) ref|incorrect old value|"
    r"already exists|failed to lock|remote ref updated since|atomic|is at [0-9a-f]+ but expected"
)


def rejection(porcelain: str) -> tuple[str, str]:
    """Verdict on `git push --porcelain` output that names a refused ref.

    ("moved", reason): the branch was pushed to meanwhile; ("declined", reason): the server's rules say no;
    ("lost", reason): the server did not say what became of it; ("", ""): no ref was refused.
    """
    for line in porcelain.splitlines():
        if not line.startswith("!\t"):
            continue
        summary = line.split("\t", 2)[-1]
        reason = re.sub(r"^\[[^]]*\] ?", "", summary).strip("() ") or summary
        if summary.startswith("[remote failure]"):
            return "lost", reason
        if summary.startswith("[rejected]") or _MOVED.search(summary):
            return "moved", reason
        return "declined", reason
    return "", ""
