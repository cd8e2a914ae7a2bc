# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""AWS: scheduled events of instances (API and metadata server), AWS Health, spot interruptions."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.signals.cloud_notice import (
    OVER,
    Notice,
    Unreadable,
    listed,
    text,
)

_PREFIX = re.compile(r"\s*\[(Completed|Cancell?ed)\]\s*", re.IGNORECASE)
_INSTANCE = re.compile(r"(?:arn:[^\s]*:instance/)?(i-[0-9a-f]{8,32})")


def read(data: Mapping) -> list[Notice | Unreadable] | None:
    """None: not of AWS."""
    if isinstance(data.get("InstanceStatuses"), (list, tuple)):
        return [notice for item in data["InstanceStatuses"] for notice in _status(item)]
    if "detail-type" in data or isinstance(data.get("detail"), Mapping):
        return _bridge(data)
    if text(data.get("eventTypeCode")):
        return [_health(data, {})]
    if _is_event(data):
        return [_event(data, [])]
    if isinstance(data.get("Events"), (list, tuple)) and "DocumentIncarnation" not in data:
        events = data["Events"]
        if all(isinstance(item, Mapping) and _is_event(item) for item in events):
            return [_event(item, listed(data.get("InstanceId"))) for item in events]
        return None
    if text(data.get("action")) in ("terminate", "stop", "hibernate") and "time" in data:
        return [Notice("aws", f"spot-{data['action']}", not_before=data["time"])]
    if "noticeTime" in data and len(data) <= 2:
        return [Notice("aws", "rebalance-recommendation", generated=data["noticeTime"])]
    return None


def _status(item: object) -> list[Notice | Unreadable]:
    if not isinstance(item, Mapping) or not text(item.get("InstanceId")):
        return [Unreadable("an instance status without an InstanceId")]
    events = listed(item.get("Events"))
    return [
        _event(one, [text(item["InstanceId"])])
        if isinstance(one, Mapping) and _is_event(one)
        else Unreadable(f"an event of {text(item['InstanceId'])} without a Code")
        for one in events
    ]


def _is_event(data: Mapping) -> bool:
    return bool(text(data.get("Code"))) and bool(
        data.keys() & {"NotBefore", "EventId", "InstanceEventId", "State", "NotAfter"}
    )


def _event(data: Mapping, instances: list) -> Notice:
    description = text(data.get("Description"))
    mark = _PREFIX.match(description)
    status = text(data.get("State")) or (mark[1] if mark else "")
    if mark and status.lower() not in OVER:  # the API has no State, only the word before the text
        status = mark[1]
    return Notice(
        "aws",
        text(data["Code"]),
        instances=[text(name) for name in instances or listed(data.get("InstanceId"))],
        id=text(data.get("InstanceEventId") or data.get("EventId")),
        status=status.lower(),
        not_before=data.get("NotBefore"),
        not_after=data.get("NotAfter"),
        deadline=data.get("NotBeforeDeadline"),
        description=description[mark.end() :] if mark else description,
    )


def _bridge(data: Mapping) -> list[Notice | Unreadable] | None:
    detail, kind = data.get("detail"), text(data.get("detail-type"))
    if not isinstance(detail, Mapping):
        return [Unreadable(f"an EventBridge event {kind!r} without a detail")]
    if text(detail.get("eventTypeCode")):
        return [_health(detail, data)]
    if not kind:
        return None
    instances = [text(detail.get("instance-id"))] if text(detail.get("instance-id")) else _named(data.get("resources"))
    action = text(detail.get("instance-action"))
    if kind == "EC2 Instance Rebalance Recommendation":
        code = "rebalance-recommendation"
    else:
        code = f"spot-{action}" if kind.startswith("EC2 Spot") and action else kind
    return [
        Notice("aws", code, instances, id=text(data.get("id")), generated=data.get("time"), description=kind)
        if instances
        else Unreadable(f"the event {kind!r} names no instance")
    ]


def _health(detail: Mapping, envelope: Mapping) -> Notice | Unreadable:
    entities = [item for item in listed(detail.get("affectedEntities")) if isinstance(item, Mapping)]
    named = [text(item.get("entityValue")) for item in entities]
    instances = _named(named) or _named(envelope.get("resources")) or [name for name in named if name]
    if not instances:  # of a region or an account
        return Unreadable(f"{text(detail['eventTypeCode'])} names no instance")
    states = {text(item.get("status") or item.get("statusCode")).lower() for item in entities}
    status = text(detail.get("statusCode")).lower()
    if states and states <= {"resolved"}:
        status = "resolved"
    descriptions = [
        text(item.get("latestDescription"))
        for item in listed(detail.get("eventDescription"))
        if isinstance(item, Mapping)
    ]
    return Notice(
        "aws",
        text(detail["eventTypeCode"]),
        instances=instances,
        id=text(detail.get("eventArn") or detail.get("arn") or envelope.get("id")),
        status=status,
        not_before=detail.get("startTime"),
        not_after=detail.get("endTime"),
        generated=envelope.get("time"),
        description=descriptions[0] if descriptions else "",
        fields={"category": text(detail.get("eventTypeCategory")), "region": text(envelope.get("region"))},
    )


def _named(values: object) -> list[str]:
    found = [_INSTANCE.search(text(value)) for value in listed(values)]
    return list(dict.fromkeys(match[1] for match in found if match))
