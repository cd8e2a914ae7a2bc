# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One number out of a site's own test, by a regular expression."""

from __future__ import annotations

import re

from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers import streams
from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers.outcome import Outcome, metric, number
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument


def parse(text: streams.Text, *, pattern: str, name: str, unit: str = "") -> dict:
    """See the room's result. The value is the last one that each process printed; of several processes the least,
    the mean and the greatest are `NAME.min`, `NAME.mean` and `NAME.max`, and `NAME` is the mean.

    `pattern` has one group, the number. Raises InvalidDocument for a pattern that is none.
    """
    try:
        search = re.compile(pattern).search
        groups = re.compile(pattern).groups
    except (re.error, RecursionError) as error:
        raise InvalidDocument(f"{pattern!r} is no regular expression: {error}", path="parser.pattern") from error
    if groups != 1:
        raise InvalidDocument(f"has {groups} groups", path="parser.pattern", hint="one, around the number")
    outcome = Outcome("regex")
    found: dict[str, float] = {}
    for at, line in enumerate(streams.lines(text), 1):
        outcome.lines = at
        label, rest = streams.unmark(line)
        match = search(rest)
        if not match:
            # what looks like a launcher's mark (`throughput: 42`) may be what the program printed
            label, match = "", search(line)
        if not match:
            continue
        if label not in found and len(found) >= streams.STREAM_LIMIT:
            label = "(others)"
        value = number(match.group(1))
        if value is None:
            outcome.unread(at, line, f"{match.group(1)!r} is no number")
        else:
            found[label] = value
    values, hosts = list(found.values()), [streams.host_of(label) for label in found]
    if values:
        mean = sum(values) / len(values)
        numbers = {name: mean, f"{name}.min": min(values), f"{name}.mean": mean, f"{name}.max": max(values)}
        metrics = {each: metric(value, unit) for each, value in numbers.items()}
        outcome.runs.append({"test": name, "hosts": [host for host in hosts if host], "metrics": metrics})
    outcome.complete = bool(values)
    return outcome.result()
