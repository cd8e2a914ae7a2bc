"""Requests as API servers really answer them: pages, pressure, broken connections, refusals."""

from __future__ import annotations

import gzip
import json

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.client import api_path
from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.connection import connect
from ansible_collections.goodput.fleet.plugins.module_utils.clusters.kubernetes.failures import Refused, describe
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import (
    Conflict,
    Denied,
    NotFound,
    Unavailable,
)

from tests.unit.clusters.scripted import Answer, serving

NODES = "/api/v1/nodes"


def a_client(host: str, **options):
    client = connect({"host": host, "api_key": "t0ken"}, **options)
    client.slept = []
    client._sleep = client.slept.append
    return client


def page(names: list[str], token: str = "") -> Answer:
    items = [{"metadata": {"name": name}} for name in names]
    return Answer(body={"metadata": {"continue": token} if token else {}, "items": items})


def status(code: int, **fields) -> Answer:
    return Answer(code, {"kind": "Status", "code": code, **fields})


EXPIRED = status(410, reason="Expired", message="The provided continue parameter is too old")


def names(items) -> list[str]:
    return [item["metadata"]["name"] for item in items]


def test_a_list_is_read_page_by_page():
    with serving(page(["a", "b"], "t1"), page(["c"])) as (host, asked):
        assert names(a_client(host).list(NODES, labelSelector="x=y", page=2)) == ["a", "b", "c"]
    assert [request.path for request in asked] == [
        "/api/v1/nodes?labelSelector=x%3Dy&limit=2",
        "/api/v1/nodes?labelSelector=x%3Dy&limit=2&continue=t1",
    ]


def test_a_list_that_the_server_forgot_is_begun_anew_without_duplicates():
    script = [page(["a", "b"], "t1"), EXPIRED, page(["a", "b", "bb"], "t2"), page(["c"])]
    with serving(*script) as (host, _asked):
        assert names(a_client(host).list(NODES)) == ["a", "b", "bb", "c"]


def test_a_list_that_is_forgotten_again_and_again_ends_in_an_error():
    script = [page(["a"], "t"), EXPIRED] * 10
    with serving(*script) as (host, _asked), pytest.raises(Unavailable, match="too old"):
        list(a_client(host).list(NODES))


def test_same_names_in_two_namespaces_are_two_objects():
    def items(*keys):
        return [{"metadata": {"namespace": space, "name": name}} for space, name in keys]

    script = [
        Answer(body={"metadata": {"continue": "t"}, "items": items(("x", "a"))}),
        EXPIRED,
        Answer(body={"metadata": {}, "items": items(("x", "a"), ("y", "a"))}),
    ]
    with serving(*script) as (host, _asked):
        assert len(list(a_client(host).list(NODES))) == 2


@pytest.mark.parametrize(
    ("answer", "waits"),
    [
        (status(429), 0.2),
        (Answer(429, {}, {"Retry-After": "7"}), 7.0),
        (Answer(429, {}, {"Retry-After": "900"}), 30.0),
        (Answer(503, b"", {"Retry-After": "soon"}), 0.2),
        (status(500, message="etcdserver: leader changed"), 0.2),
        (status(504), 0.2),
        (Answer(hang_up=True), 0.2),
    ],
)
def test_what_passes_is_tried_again(answer, waits):
    with serving(answer, page(["a"])) as (host, _asked):
        client = a_client(host)
        assert names(client.list(NODES)) == ["a"]
        assert client.slept == [pytest.approx(waits, rel=0.25)]


def test_trying_again_has_an_end_and_says_what_the_server_said():
    with serving(status(503, message="the server is overloaded")) as (host, asked):
        client = a_client(host)
        with pytest.raises(Unavailable, match="answered 503 to list nodes at cluster scope: the server is overloaded"):
            client.get(NODES)
        assert len(asked) == 5
        assert sum(client.slept) < 5


@pytest.mark.parametrize(
    ("answer", "requests"), [(Answer(hang_up=True), 1), (status(500), 1), (status(503), 2), (status(429), 2)]
)
def test_a_post_is_sent_again_only_if_the_first_surely_did_nothing(answer, requests):
    with serving(answer, Answer(201, {"made": True})) as (host, asked):
        client = a_client(host)
        if requests == 1:
            with pytest.raises(Unavailable):
                client.post(NODES, {})
        else:
            assert client.post(NODES, {}) == {"made": True}
        assert len(asked) == requests


def test_an_eviction_that_a_budget_forbids_is_not_tried_again():
    answer = status(429, message="Cannot evict pod", details={"causes": [{"reason": "DisruptionBudget"}]})
    with serving(answer) as (host, asked):
        with pytest.raises(Refused) as caught:
            a_client(host).post("/api/v1/namespaces/x/pods/p/eviction", {})
        assert caught.value.problems[0].code == "disruption-budget"
        assert len(asked) == 1


def test_patch_types_and_bodies():
    with serving(Answer(body={"ok": 1})) as (host, asked):
        client = a_client(host)
        client.patch("/api/v1/nodes/a", {"spec": {}}, fieldManager="me")
        client.patch("/api/v1/nodes/a", [{"op": "test"}], "json")
        client.delete("/api/v1/nodes/a", {"preconditions": {"uid": "u"}})
    assert [request.headers.get("Content-Type") for request in asked] == [
        "application/merge-patch+json",
        "application/json-patch+json",
        "application/json",
    ]
    assert asked[0].path == "/api/v1/nodes/a?fieldManager=me"
    assert json.loads(asked[2].body) == {"preconditions": {"uid": "u"}}


def test_what_is_sent_and_what_is_understood():
    packed = Answer(body=gzip.compress(b'{"items": []}'), headers={"Content-Encoding": "gzip"})
    with serving(packed) as (host, asked):
        assert list(a_client(host).list(NODES, metadata_only=True)) == []
    headers = asked[0].headers
    assert headers["Authorization"] == "Bearer t0ken"
    assert "gzip" in headers["Accept-Encoding"]
    assert "as=PartialObjectMetadataList" in headers["Accept"]


def test_one_objects_metadata_is_not_asked_for_as_a_list():
    """A server refuses the list's kind for one object, and has carried the patch out by then."""
    with serving(Answer(body={}), Answer(body={})) as (host, asked):
        a_client(host).get(f"{NODES}/a", metadata_only=True)
        a_client(host).patch(f"{NODES}/a", {}, metadata_only=True)
    assert ["as=PartialObjectMetadata;" in each.headers["Accept"] for each in asked] == [True, True]


@pytest.mark.parametrize(
    ("answer", "kind", "code", "text"),
    [
        (status(401, message="Unauthorized"), Denied, "unauthorized", "401 Unauthorized"),
        (
            status(403, message='secrets is forbidden: User "jo" cannot list resource "secrets"'),
            Denied,
            "forbidden",
            r"forbidden: cannot list secrets in namespace x \(user jo needs that right\)",
        ),
        (Answer(404, b"404 page not found\n"), NotFound, "api-missing", "does not serve secrets of v1"),
        (status(404, details={"name": "x"}), NotFound, "object-missing", "it is not there"),
        (status(409, message="object has been modified"), Conflict, "conflict", "has been modified"),
        (status(422, message="spec.x: Invalid value"), Refused, "refused", "Invalid value"),
        (
            Answer(400, b"Client sent an HTTP request to an HTTPS server.\n"),
            Refused,
            "refused",
            "the host needs https://",
        ),
        (Answer(200, b"<html>hello</html>"), Unavailable, "not-kubernetes", "is it a Kubernetes API server"),
    ],
)
def test_refusals_in_words(answer, kind, code, text):
    with serving(answer) as (host, _asked), pytest.raises(kind, match=text) as caught:
        a_client(host).get("/api/v1/namespaces/x/secrets")
    assert caught.value.problems[0].code == code


def test_find_is_none_for_what_is_not_there():
    with serving(status(404, details={"name": "x"})) as (host, _asked):
        assert a_client(host).find("/api/v1/nodes/x") is None


@pytest.mark.parametrize(
    ("method", "path", "words"),
    [
        ("GET", "/api/v1/nodes", "list nodes at cluster scope"),
        ("GET", "/api/v1/namespaces", "list namespaces at cluster scope"),
        ("GET", "/api/v1/namespaces/x", "get namespaces x at cluster scope"),
        ("GET", "/apis/apps/v1/namespaces/x/deployments/d", "get deployments.apps d in namespace x"),
        ("PATCH", "/api/v1/nodes/a/status", "patch nodes/status a at cluster scope"),
        ("POST", "/api/v1/namespaces/x/pods/p/eviction", "create pods/eviction p in namespace x"),
        ("DELETE", "/apis/batch/v1/namespaces/x/jobs/j", "delete jobs.batch j in namespace x"),
        ("GET", "/version", "get /version"),
    ],
)
def test_requests_are_named_as_rights(method, path, words):
    assert describe(method, path) == words


def test_paths():
    assert api_path("v1", "nodes") == "/api/v1/nodes"
    assert api_path("apps/v1", "deployments", "x", "d", "scale") == "/apis/apps/v1/namespaces/x/deployments/d/scale"
    assert api_path("v1", "nodes", name="a/../b") == "/api/v1/nodes/a%2F..%2Fb"


def test_an_address_where_nobody_listens():
    client = a_client("https://127.0.0.1:9", attempts=2)
    with pytest.raises(Unavailable, match=r"cannot reach the API server 127\.0\.0\.1:9: Connection refused") as caught:
        client.get(NODES)
    assert len(client.slept) == 1
    assert "K8S_AUTH_HOST" in str(caught.value)


def test_a_name_that_nobody_knows():
    with pytest.raises(Unavailable, match="the name cannot be resolved"):
        a_client("https://no-such-host.invalid:6443", attempts=1).get(NODES)


def test_tls_to_a_server_without():
    with serving(Answer()) as (host, _asked):
        client = a_client(host.replace("http://", "https://"))
        with pytest.raises(Unavailable, match="TLS with") as caught:
            client.get(NODES)
    assert caught.value.problems[0].code == "tls"
    assert client.slept == []  # trying again does not cure that


def test_a_long_text_comes_in_pieces_and_the_connection_is_used_again():
    text = b"line\n" * 400_000
    with serving(Answer(503, b"busy"), Answer(body=text), Answer(body={"kind": "Node"})) as (host, asked):
        client = a_client(host)
        pieces = list(client.stream("/log", container="main"))
        assert b"".join(pieces) == text and len(pieces) > 1
        assert client.get(NODES + "/a") == {"kind": "Node"}
        assert [request.path for request in asked] == ["/log?container=main"] * 2 + [NODES + "/a"]


def test_what_is_not_read_to_its_end_does_no_harm():
    with serving(Answer(body=b"x" * 3_000_000), Answer(body={"kind": "Node"})) as (host, _asked):
        client = a_client(host)
        next(iter(client.stream("/log")))
        assert client.get(NODES + "/a") == {"kind": "Node"}
