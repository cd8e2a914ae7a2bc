"""The address of a repository and its credentials."""

import subprocess

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.publish.access import access
from ansible_collections.goodput.fleet.plugins.module_utils.publish.gitcli import environment
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument


@pytest.mark.parametrize(
    "repo",
    [
        "https://git.example.com/a/b.git",
        "http://[::1]:8080/b.git",
        "ssh://git@git.example.com:2222/b.git",
        "git@git.example.com:a/b.git",
        "git://git.example.com/b.git",
        "file:///srv/git/with blank/b.git",
        "/srv/git/b.git",
    ],
)
def test_addresses_that_git_knows_are_taken_as_they_are(repo):
    assert access(repo).url == repo


@pytest.mark.parametrize(
    ("repo", "why"),
    [
        ("", "not the address"),
        ("--upload-pack=touch /tmp/x", "not the address"),
        ("ext::sh -c touch% /tmp/x", "not the address"),
        ("ext::sh", "not the address"),
        ("ftp://host/b.git", "ftp:// is not supported"),
        ("htps://host/b.git", "did you mean 'https'"),
        ("https:///b.git", "names no host"),
        ("https://host:port/b.git", "names no host"),
        ("relative/b.git", "not the address"),
        ("https://host/b.git\nx", "not the address"),
    ],
)
def test_other_addresses_are_refused(repo, why):
    with pytest.raises(InvalidDocument) as caught:
        access(repo)
    assert why in str(caught.value)
    assert caught.value.problems[0].path == "repo"


def test_credentials_leave_the_address():
    way = access("https://me:s3cr3t-w%C3%B6rd@git.example.com:8443/a.git")
    assert way.url == "https://git.example.com:8443/a.git"
    assert way.env["GOODPUT_GIT_USERNAME"] == "me"
    assert way.env["GOODPUT_GIT_PASSWORD"] == "s3cr3t-wörd"
    assert not any("s3cr3t" in value for _key, value in way.config)


def test_a_token_in_the_place_of_the_user_is_a_secret_too():
    way = access("https://ghp_abcdefghijklmnop@github.com/a/b.git")
    assert "ghp_" not in way.url
    assert "ghp_" not in way.redact("fatal: ghp_abcdefghijklmnop was refused")


@pytest.mark.parametrize(
    "said",
    [
        "token is t0p/secret",
        "t0p%2Fsecret",
        "Authorization: Basic eC1hY2Nlc3MtdG9rZW46dDBwL3NlY3JldA==",
        "http://u:t0p@h/x",
    ],
)
def test_no_form_of_the_token_survives_redaction(said):
    way = access("https://git.example.com/a.git", token="t0p/secret")
    shown = way.redact(said)
    assert "t0p" not in shown
    assert "eC1hY2Nlc3MtdG9rZW46dDBwL3NlY3JldA==" not in shown


def credential(way, address: str) -> str:
    """What git's own machinery would send to an address."""
    env = environment("/nonexistent", way, (("core.askPass", ""), *way.config))
    asked = subprocess.run(
        ["git", "credential", "fill"], input=f"url={address}\n\n", env=env, text=True, capture_output=True
    )
    return asked.stdout


def test_git_offers_the_token_to_the_repository_host_and_to_no_other():
    way = access("https://git.example.com/a.git", token="s%c \"'$(r)e`t`\\n", username="bot")
    assert "username=bot\npassword=s%c \"'$(r)e`t`\\n\n" in credential(way, "https://git.example.com/a.git")
    for other in (
        "https://evil.example.com/a.git",
        "http://git.example.com/a.git",
        "https://git.example.com:444/a.git",
    ):
        assert "password" not in credential(way, other)


def test_unencrypted_transport_of_a_token_is_warned_about_except_on_loopback():
    assert "unencrypted" in access("http://git.example.com/a.git", token="x").warnings[0]
    assert not access("http://127.0.0.1:80/a.git", token="x").warnings
    assert not access("https://git.example.com/a.git", token="x").warnings


def test_a_token_for_ssh_is_not_used_and_said_so():
    way = access("git@git.example.com:a.git", token="hush")
    assert "not used" in way.warnings[0]
    assert "hush" not in str(way.env)


def test_ssh_never_asks_and_takes_only_the_given_key():
    way = access("git@git.example.com:a.git", ssh_key_file="/keys/my key", ssh_known_hosts_file="/etc/known hosts")
    command = way.env["GIT_SSH_COMMAND"]
    assert command.startswith("ssh -o BatchMode=yes ")
    assert "-i '/keys/my key' -o IdentitiesOnly=yes" in command
    assert "-o 'UserKnownHostsFile=\"/etc/known hosts\"'" in command
    assert command.endswith("-o StrictHostKeyChecking=yes")
    assert access("git@h:a.git", ssh_accept_new_host_key=True).env["GIT_SSH_COMMAND"].endswith("=accept-new")


def test_the_callers_repository_does_not_reach_git(monkeypatch):
    for name in (
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_CONFIG_PARAMETERS",
        "GIT_TRACE_CURL",
        "GIT_ASKPASS",
        "SSH_ASKPASS",
    ):
        monkeypatch.setenv(name, "/somewhere")
    monkeypatch.setenv("GIT_SSL_CAINFO", "/ca.pem")
    env = environment("/repo.git", access("/srv/b.git"), ())
    assert env["GIT_DIR"] == "/repo.git"
    assert env["GIT_ASKPASS"] == ""
    assert env["GIT_SSL_CAINFO"] == "/ca.pem"
    assert not {"GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_CONFIG_PARAMETERS", "GIT_TRACE_CURL", "SSH_ASKPASS"} & set(env)
