"""Numbers of a site's own program, with and without a launcher's marks."""

from __future__ import annotations

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers import regex


@pytest.mark.parametrize(
    ("text", "pattern", "values"),
    [
        ("speed: 200\n", r"speed: ([0-9.]+)", [200, 200]),  # no host of that name
        ("speed: 200\n", r"^speed: ([0-9.]+)$", [200, 200]),
        ("speed: 100\nspeed: 200\n", r"speed: ([0-9.]+)", [200, 200]),
        ("0: speed: 100\n1: speed: 200\n", r"^speed: ([0-9.]+)", [100, 200]),
        ("[pod/a/main] speed: 100\n[pod/b/main] speed: 300\n", r"^speed: ([0-9.]+)", [100, 300]),
        ("gpu-0001: 100\ngpu-0002: 300\n", r"([0-9.]+)$", [100, 300]),
    ],
)
def test_the_last_number_of_each_process(text, pattern, values):
    metrics = regex.parse(text, pattern=pattern, name="speed", unit="1/s")["runs"][0]["metrics"]
    assert [metrics["speed.min"]["value"], metrics["speed.max"]["value"]] == values


def test_what_is_no_number_is_kept_and_is_no_measurement():
    result = regex.parse("speed: fast\n", pattern="speed: (.+)", name="speed")
    assert (result["runs"], result["complete"], result["unparsedTotal"], result["lines"]) == ([], False, 1, 1)
