"""Tickets: what is sent and signed, what is tried again, what is refused at once, and what never shows."""

from __future__ import annotations

import hashlib
import hmac
import json
import socket
import time
import types

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.goodput.fleet.plugins.module_utils.lifecycle import ticket
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import FleetError, Unavailable
from ansible_collections.goodput.fleet.plugins.modules import repair_ticket

from tests.standin.tickets import Answer, TicketDesk

SECRET = "a-secret-of-the-site"
TICKET = {
    "key": "xid-79-3f1c2ab4/ticket",
    "node": "gpu-0007",
    "serials": ["1650000000007"],
    "why": "fails after a réboot",
    "attempts": [{"rung": "reset", "executed": True, "verified": False}],
}


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    """Pauses are noted, not waited."""
    pauses = []
    clock = types.SimpleNamespace(time=time.time, sleep=pauses.append, strftime=time.strftime, gmtime=time.gmtime)
    monkeypatch.setattr(repair_ticket, "time", clock)
    return pauses


def send(capsys, desk_url: str, check: bool = False, **options) -> dict:
    given = {"url": desk_url, "ticket": TICKET, "secret": SECRET, "retries": 3, "use_proxy": False, **options}
    with patch_module_args({**given, "_ansible_check_mode": check}), pytest.raises(SystemExit):
        repair_ticket.main()
    printed = capsys.readouterr().out
    assert SECRET not in printed and "/hooks/goodput" not in printed
    return {"failed": False, **json.loads(printed)}


def test_a_ticket_arrives_whole_and_signed(capsys):
    with TicketDesk(SECRET) as desk:
        result = send(capsys, desk.url)
    assert (result["changed"], result["reference"], result["status"], result["attempts"]) == (True, "OPS-1", 201, 1)
    assert desk.tickets == {TICKET["key"]: TICKET}
    (seen,) = desk.requests
    stamp = seen.headers["x-goodput-timestamp"]
    wanted = hmac.new(SECRET.encode(), stamp.encode() + b"." + seen.body, hashlib.sha256).hexdigest()
    assert seen.headers["x-goodput-signature"] == f"sha256={wanted}" and abs(time.time() - int(stamp)) < 60
    assert (seen.headers["content-type"], seen.headers["idempotency-key"]) == ("application/json", TICKET["key"])
    assert result["receiver"] == desk.host and result["bytes"] == len(seen.body)


def test_check_mode_sends_nothing(capsys):
    with TicketDesk(SECRET) as desk:
        result = send(capsys, desk.url, check=True)
    assert result["changed"] and not result["failed"] and desk.requests == []


@pytest.mark.parametrize(
    "trouble",
    [
        pytest.param(Answer(503), id="unavailable"),
        pytest.param(Answer(429, {"Retry-After": "2"}), id="too many"),
        pytest.param(Answer(500, body="<html>oops</html>"), id="error"),
        pytest.param(Answer(0), id="hung up"),
        pytest.param(Answer(0, keep=True), id="answer lost"),
        pytest.param(Answer(0, delay=1.5), id="slow"),
    ],
)
def test_trouble_that_passes_is_tried_again(capsys, trouble):
    with TicketDesk(SECRET, [trouble, trouble]) as desk:
        result = send(capsys, desk.url, timeout=1)
    assert (result["failed"], result["attempts"], list(desk.tickets)) == (False, 3, [TICKET["key"]])
    bodies = {(seen.body, seen.headers["idempotency-key"]) for seen in desk.requests}
    assert len(desk.requests) == 3 and len(bodies) == 1


def test_pauses_grow_and_follow_retry_after(capsys, no_waiting):
    with TicketDesk(SECRET, [Answer(503), Answer(503), Answer(503, {"Retry-After": "9"})]) as desk:
        send(capsys, desk.url)
    assert no_waiting == [1, 2, 9]


@pytest.mark.parametrize("after", ["", "soon", "-3", "Mon, 30 Nov 2020 00:00:00 GMT", "1e9"])
def test_a_retry_after_that_says_nothing_is_none(after):
    response = ticket.Response(503, {"retry-after": after})
    assert ticket.meaning(response, [200], 4.0, 1764460800.0) == 4.0


def test_a_date_in_retry_after_counts():
    response = ticket.Response(503, {"retry-after": "Mon, 30 Nov 2026 00:00:20 GMT"})
    assert ticket.meaning(response, [200], 1.0, 1795996800.0 + 5) == 15.0


def test_it_ends(capsys, no_waiting):
    with TicketDesk(SECRET, [Answer(502)] * 9) as desk:
        result = send(capsys, desk.url)
        assert result["failed"] and "tried 4 times; last, it answered 502" in result["msg"]
        assert len(desk.requests) == 4 and "same key" in result["msg"]
        desk.answers = [Answer(503, {"Retry-After": "3600"})]
        assert "tried once" in send(capsys, desk.url, give_up_after=60)["msg"]  # not waited for an hour


def test_nobody_listens(capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        result = send(capsys, f"http://127.0.0.1:{taken.getsockname()[1]}/hooks/goodput", retries=1)
    assert result["failed"] and "the connection was refused" in result["msg"]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (Answer(400, body='{"error": "no\nsuch queue"}'), "refused the ticket with 400"),
        (Answer(404), "refused the ticket with 404"),
        (Answer(409, body="known"), "409: known (if this answer means that it has the ticket"),
        (Answer(401), "answered 401 (secret, url_username"),
        (Answer(302, {"Location": "https://login.example.com/x?token=1"}), "a redirect to login.example.com"),
        (Answer(307, {"Location": "https://evil.example.com/hook"}), "a redirect to evil.example.com"),
    ],
)
def test_a_refusal_is_told_at_once(capsys, answer, told):
    with TicketDesk(SECRET, [answer]) as desk:
        result = send(capsys, desk.url)
    assert result["failed"] and told in result["msg"] and "\n" not in result["msg"]
    assert len(desk.requests) == 1


def test_a_wrong_secret_is_told_and_not_shown(capsys):
    with TicketDesk("another") as desk:
        result = send(capsys, desk.url)
    assert result["failed"] and "the signature is wrong" in result["msg"] and desk.tickets == {}


def test_redirects_within_the_host_carry_the_ticket(capsys):
    with TicketDesk(SECRET, [Answer(308, {"Location": "/new"})]) as desk:
        result = send(capsys, desk.url)
    assert not result["failed"] and [seen.path for seen in desk.requests] == ["/hooks/goodput", "/new"]
    with TicketDesk(SECRET, [Answer(307, {"Location": "/round"})] * 9) as desk:
        assert "a redirect" in send(capsys, desk.url)["msg"] and len(desk.requests) <= 4


def test_sent_twice_is_one_ticket(capsys):
    with TicketDesk(SECRET) as desk:
        first, second = send(capsys, desk.url), send(capsys, desk.url)
    assert (first["status"], second["status"], len(desk.tickets)) == (201, 200, 1)
    assert first["reference"] == second["reference"]


def test_an_answer_that_the_site_knows_may_count(capsys):
    with TicketDesk(SECRET, [Answer(409)]) as desk:
        assert send(capsys, desk.url, status_code=[200, 201, 409])["status"] == 409


def test_headers_of_the_site_are_sent_and_never_shown(capsys):
    with TicketDesk(SECRET) as desk:
        result = send(capsys, desk.url, headers={"Authorization": "Bearer qwertz-4711"})
    assert desk.requests[0].headers["authorization"] == "Bearer qwertz-4711" and "qwertz" not in json.dumps(result)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"ticket": {"key": "k"}}, "ticket.node: a ticket that names no node"),
        ({"ticket": {"node": " ", "key": "k"}}, "ticket.node"),
        ({"ticket": {"node": "gpu-1"}}, "key: is missing"),
        ({"key": "two words"}, "key: 'two words' is no idempotency key"),
        ({"key": "a\r\nX-Evil: 1"}, "is no idempotency key"),
        ({"ticket": {"node": "gpu-1", "key": "k", "log": "x" * (1 << 20)}}, "more than 1048576"),
        ({"url": "tickets.example.com/hooks/goodput"}, "url: is no URL of a web server"),
        ({"url": "ftp://tickets.example.com/hooks/goodput"}, "url: is no URL of a web server"),
        ({"url": "http://u:p@tickets.example.com/hooks/goodput"}, "url: holds a password"),
        ({"url": "http://tickets.example.com:x/hooks/goodput"}, "url: is no URL"),
        ({"url": "http://tickets.example.com/hooks/goodput\r\nX: 1"}, "url: holds blanks"),
        ({"headers": {"X-Goodput-Signature": "sha256=0"}}, "headers: 'X-Goodput-Signature' cannot be given"),
        ({"headers": {"X-A": "a\r\nb"}}, "headers.X-A"),
        ({"retries": -1}, "retries: is -1 (from 0 to 20)"),
        ({"timeout": 0}, "timeout: is 0"),
        ({"ca_path": "/nowhere/ca.pem"}, "ca_path: there is no file /nowhere/ca.pem"),
        ({"client_cert": "/nowhere/me.pem"}, "client_cert: there is no file"),
    ],
)
def test_bad_input_is_one_clear_error(capsys, given, told):
    with TicketDesk(SECRET) as desk:
        result = send(
            capsys, **{"desk_url": desk.url, **({"desk_url": given.pop("url")} if "url" in given else {})}, **given
        )
    assert result["failed"] and told in result["msg"] and desk.requests == []


@pytest.mark.parametrize(
    ("body", "reference"),
    [
        ('{"key": "OPS-12"}', "OPS-12"),
        ('{"result": {"number": "INC0012"}}', "INC0012"),
        ('{"id": 42}', "42"),
        ('{"id": true}', ""),
        ("ok", ""),
        ("", ""),
        ("[" * 100000, ""),
        ('["a"]', ""),
        ('{"key": "a\\u001b[31mb"}', "a [31mb"),
    ],
)
def test_what_the_receiver_calls_it(body, reference):
    assert ticket.reference_of(ticket.Response(200, {}, body)) == reference


def test_the_clock_bounds_all_attempts():
    """Whatever the receiver does, it ends within give_up_after and one attempt."""
    now = [1000.0]

    def post(_url, _body, _headers, timeout):
        now[0] += timeout
        raise ticket.NoAnswer("it did not answer in time")

    with pytest.raises(Unavailable):
        ticket.hand_over(
            post, "http://a/", b"{}", key="k", secret=None, accepted=[200], more={}, retries=20, timeout=15,
            give_up_after=100, clock=lambda: now[0], sleep=lambda seconds: now.__setitem__(0, now[0] + seconds),
        )  # fmt: skip
    assert now[0] - 1000 <= 101


def test_no_secret_no_signature():
    made = ticket.headers(b"{}", key="k", secret=None, now=1)
    assert "X-Goodput-Signature" not in made
    with pytest.raises(FleetError):
        ticket.check_headers({"Host": "x"})
