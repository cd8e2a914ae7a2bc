"""What git says, in words for people."""

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.publish import faults
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import Denied, NotFound, Unavailable

# as git 2.39 and well-known servers print it
SAID = [
    ("fatal: could not read Username for 'https://h': terminal prompts disabled", Denied, "wants a credential"),
    ("fatal: Authentication failed for 'https://h/x.git/'", Denied, "wants a credential"),
    (
        "remote: HTTP Basic: Access denied\nfatal: Authentication failed for 'https://h/x.git/'",
        Denied,
        "wants a credential",
    ),
    (
        "git@h: Permission denied (publickey).\nfatal: Could not read from remote repository.\n\nPlease make",
        Denied,
        "wants a credential",
    ),
    ("Host key verification failed.\nfatal: Could not read from remote repository.", Denied, "host key"),
    (
        "remote: Permission to o/r.git denied to bot.\nfatal: unable to access 'https://h/': error: 403",
        Denied,
        "lacks the right",
    ),
    ("fatal: unable to access 'https://h/': The requested URL returned error: 403", Denied, "lacks the right"),
    ("remote: Repository not found.\nfatal: repository 'https://h/x.git/' not found", NotFound, "no git repository"),
    ("fatal: '/srv/x' does not appear to be a git repository", NotFound, "no git repository"),
    ("fatal: unable to access 'https://h/': Could not resolve host: h", Unavailable, "cannot be resolved"),
    (
        "fatal: unable to access 'https://h/': Failed to connect to h port 443: Connection refused",
        Unavailable,
        "cannot be reached",
    ),
    (
        "fatal: unable to access 'https://h/': server certificate verification failed. CAfile: none CRLfile: none",
        Unavailable,
        "certificate",
    ),
    ("fatal: unable to access 'https://h/': The requested URL returned error: 502", Unavailable, "broke off"),
    (
        "error: RPC failed; curl 52 Empty reply from server\nfatal: the remote end hung up unexpectedly",
        Unavailable,
        "broke off",
    ),
    (
        "ssh: connect to host h port 22: No route to host\nfatal: Could not read from remote repository.",
        Unavailable,
        "reached",
    ),
    ("fatal: something new", Unavailable, "something new"),
    ("", Unavailable, "no reason"),
]


@pytest.mark.parametrize(("stderr", "kind", "words"), SAID)
def test_failures_are_told_apart(stderr, kind, words):
    error = faults.explain("reach", "https://h/x.git", stderr)
    assert type(error) is kind
    assert str(error).startswith("repo: cannot reach https://h/x.git: ")
    assert words in str(error)


@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        ("!\tabc:refs/heads/main\t[rejected] (fetch first)", "moved"),
        ("!\tabc:refs/heads/main\t[rejected] (non-fast-forward)", "moved"),
        (
            "!\tabc:refs/heads/main\t[remote rejected] (cannot lock ref 'refs/heads/main': is at 12 but expected 34)",
            "moved",
        ),
        ("!\tabc:refs/heads/main\t[remote rejected] (failed to update ref)", "moved"),
        ("!\tabc:refs/heads/main\t[remote rejected] (incorrect old value provided)", "moved"),
        ("!\tabc:refs/heads/main\t[remote rejected] (pre-receive hook declined)", "declined"),
        ("!\tabc:refs/heads/main\t[remote rejected] (protected branch hook declined)", "declined"),
        ("!\tabc:refs/heads/main\t[remote rejected] (branch is currently checked out)", "declined"),
        ("!\tabc:refs/heads/main\t[remote failure] (remote failed to report status)", "lost"),
        ("*\tabc:refs/heads/main\t[new branch]", ""),
        (" \tabc:refs/heads/main\t1234..5678", ""),
    ],
)
def test_a_refused_push_is_judged_by_its_reason(line, verdict):
    assert faults.rejection(f"To https://h/x.git\n{line}\nDone\n")[0] == verdict


def test_what_a_hook_printed_is_kept_line_by_line():
    progress = "remote: Resolving deltas: 100% (1/1)\rremote: \n"
    stderr = f"{progress}remote: main is protected.        \nremote: Ask #platform.\nTo /x\n"
    assert faults.remote_says(stderr) == "main is protected.\nAsk #platform."


def test_long_complaints_are_cut():
    assert len(faults.complaint("fatal: " + "x" * 5000)) == 500
    assert len(faults.remote_says("remote: " + "x" * 5000)) == 2000
