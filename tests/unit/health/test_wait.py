"""Waiting ends with the first healthy look or with the time, and reports the last state."""

from __future__ import annotations

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.health.wait import until_healthy
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import Denied, Unavailable


class Cluster:
    """Answers each look with the next state; time passes only while asleep."""

    def __init__(self, *states):
        self.states, self.looks, self.now = states, 0, 0.0

    def look(self):
        state = self.states[min(self.looks, len(self.states) - 1)]
        self.looks += 1
        if isinstance(state, Exception):
            raise state
        return [{"status": state}]

    def sleep(self, seconds):
        self.now += seconds

    def wait(self, timeout):
        return until_healthy(self.look, timeout, 5, clock=lambda: self.now, sleep=self.sleep)


def test_it_ends_when_healthy():
    cluster = Cluster("unhealthy", "unknown", "healthy")
    assert cluster.wait(60) == ([{"status": "healthy"}], 10.0)


def test_it_reports_the_last_state_at_the_end():
    cluster = Cluster("unhealthy")
    assert cluster.wait(12) == ([{"status": "unhealthy"}], 10.0)
    assert cluster.looks == 3


def test_without_time_it_looks_once():
    cluster = Cluster("unhealthy", "healthy")
    assert cluster.wait(0) == ([{"status": "unhealthy"}], 0.0)


def test_a_server_that_is_away_for_a_moment_does_not_end_it():
    assert Cluster(Unavailable("gone"), "healthy").wait(60)[0] == [{"status": "healthy"}]


def test_a_server_that_stays_away_or_refuses_ends_it():
    with pytest.raises(Unavailable):
        Cluster(Unavailable("gone")).wait(10)
    with pytest.raises(Denied):
        Cluster(Denied("no")).wait(10)
