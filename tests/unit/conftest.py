"""Settings of all unit tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# The same examples in every run, and no bound on how long one takes: a busy machine must not fail a good change.
settings.register_profile("goodput", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("goodput")
