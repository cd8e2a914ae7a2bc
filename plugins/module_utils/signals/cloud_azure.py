# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Azure: Scheduled Events of the metadata server. Every machine of a set is told of all of them."""

from __future__ import annotations

from collections.abc import Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.signals.cloud_notice import (
    Notice,
    Unreadable,
    listed,
    text,
)


def read(data: Mapping) -> list[Notice | Unreadable] | None:
    """None: not of Azure."""
    if "DocumentIncarnation" in data:
        events = data.get("Events")
        if events is not None and not isinstance(events, (list, tuple)):
            return [Unreadable("Events is no list")]
        return [_event(item) for item in listed(events)]
    if text(data.get("EventType")) and data.keys() & {"ResourceType", "Resources", "EventStatus"}:
        return [_event(data)]
    events = data.get("Events")
    if isinstance(events, (list, tuple)) and all(isinstance(item, Mapping) and "EventType" in item for item in events):
        return [_event(item) for item in events]
    return None


def _event(data: object) -> Notice | Unreadable:
    if not isinstance(data, Mapping) or not text(data.get("EventType")):
        return Unreadable("a scheduled event without an EventType")
    resources = [text(name) for name in listed(data.get("Resources")) if text(name)]
    if not resources:
        return Unreadable(f"the {text(data['EventType'])} event {text(data.get('EventId'))} names no resource")
    return Notice(
        "azure",
        text(data["EventType"]),
        instances=resources,
        id=text(data.get("EventId")),
        status=text(data.get("EventStatus")).lower(),
        not_before=data.get("NotBefore"),
        description=text(data.get("Description")),
        fields={
            "eventSource": text(data.get("EventSource")),
            "durationInSeconds": text(data.get("DurationInSeconds")),
            "resourceType": text(data.get("ResourceType")),
        },
    )
