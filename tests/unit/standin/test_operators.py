"""The simulated operators give a status to what lacks it, and leave alone what has it."""

from __future__ import annotations

import time

import pytest

from tests.simfleet.api import ApiError
from tests.standin.locks import component, lock
from tests.standin.operators import PAUSE_SECONDS, Operators

CHECK = {"name": "available", "apiVersion": "example.com/v1", "kind": "Thing", "plural": "things", "namespaced": True}
LENGTH = "length(status.conditions[?type == 'Available' && status == 'True']) > `0`"
AVAILABLE = {"conditions": [{"type": "Available", "status": "True"}]}


class Api:
    def __init__(self, *objects: dict, fault: Exception | None = None):
        self.objects, self.fault, self.patched = objects, fault, []

    def list(self, path):
        assert path == "/apis/example.com/v1/things"
        if self.fault:
            raise self.fault
        return self.objects

    def patch(self, path, body, _type):
        self.patched.append((path, body))


def thing(name: str, **fields) -> dict:
    return {"metadata": {"name": name, "namespace": "ns"}, **fields}


def operators(api: Api, **check) -> Operators:
    return Operators(lock(component("a", health={"checks": [{**CHECK, "expression": LENGTH, **check}]})), api)


def test_no_status_and_a_wrong_one_are_written_and_a_right_one_is_not():
    wrong = {"conditions": [{"type": "Available", "status": "False"}]}
    api = Api(thing("none"), thing("null", status=None), thing("wrong", status=wrong), thing("ok", status=AVAILABLE))
    assert operators(api).step() == 3
    assert api.patched == [
        (f"/apis/example.com/v1/namespaces/ns/things/{name}/status", {"status": AVAILABLE})
        for name in ("none", "null", "wrong")
    ]


def test_a_kind_that_is_held_or_not_there_yet_is_left():
    held = operators(Api(thing("none")))
    held.held.add("Thing")
    assert held.step() == 0
    assert operators(Api(fault=ApiError(404, {}, "GET"))).step() == 0


def test_work_that_broke_off_is_told():
    with pytest.raises(KeyError), operators(Api({"kind": "no metadata"})).at_work():
        time.sleep(2 * PAUSE_SECONDS)
