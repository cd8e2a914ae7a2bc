# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Google Cloud: upcomingMaintenance of API and metadata server, its plain values, and audit log entries."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.signals.cloud_notice import (
    Notice,
    Unreadable,
    listed,
    text,
)

CODE = "upcomingMaintenance"
_KEYS = ("upcomingMaintenance", "upcoming_maintenance", "Upcoming maintenance")
_PLAIN = re.compile(r"[A-Z]+_ON_HOST_MAINTENANCE")
_FLAT = re.compile(r"^[ \t]*([a-z_]+)[ \t:=]+(\S.*?)[ \t]*$", re.MULTILINE)
_WRAPPED = re.compile(r'\s*"[^"\n]*"\s*:\s*\{')
_FIELDS = {
    "can_reschedule",
    "latest_window_start_time",
    "maintenance_reasons",
    "maintenance_status",
    "type",
    "window_end_time",
    "window_start_time",
}


def plain(given: str) -> Notice | None:
    """The one word that maintenance-event and preempted of the metadata server answer. None: another text."""
    word = given.strip()
    if word == "NONE":
        return Notice("gcp", "NONE", status="none", healthy=True, description="no maintenance is announced")
    if _PLAIN.fullmatch(word):
        return Notice("gcp", word)
    if word.upper() in ("TRUE", "FALSE") and word != word.capitalize():
        return Notice("gcp", "preempted", status=word.lower(), healthy=word.upper() == "FALSE")
    return None


def flat(given: str) -> dict | None:
    """`KEY VALUE` lines of the metadata server as a map. None: another text."""
    found = {key: value for key, value in _FLAT.findall(given) if key in _FIELDS}
    return found if {"maintenance_status", "window_start_time"} & found.keys() and len(found) >= 2 else None


def braced(given: str) -> str:
    """`"Upcoming maintenance": {...}` as people cut it out, made a document of its own."""
    return "{" + given + "}" if _WRAPPED.match(given) else given


def read(data: Mapping) -> list[Notice | Unreadable] | None:
    """None: not of Google Cloud."""
    if isinstance(data.get("protoPayload"), Mapping):
        return _audit(data, data["protoPayload"])
    if isinstance(data.get("instance"), Mapping):  # the metadata server, asked for everything
        return read(data["instance"])
    values = {_snake(key): value for key, value in data.items()}
    if {"maintenance_event", "preempted"} & values.keys():
        return _values(values)
    holder = data.get("resourceStatus") if isinstance(data.get("resourceStatus"), Mapping) else data
    for key in _KEYS:
        if key in holder:
            given = holder[key]
            return (
                [_maintenance(given, _name(data))] if isinstance(given, Mapping) else [Unreadable(f"{key} is no map")]
            )
    if {_snake(key) for key in data} & {"maintenance_status", "window_start_time"}:
        return [_maintenance(data, "")]
    if text(data.get("kind")).startswith("compute#") or "machineType" in data or "resourceStatus" in data:
        return []  # an instance of which nothing is announced
    return None


def _values(values: Mapping) -> list[Notice | Unreadable]:
    """The metadata server's own values, of the machine that it was asked on."""
    found: list[Notice | Unreadable] = []
    for key in ("maintenance_event", "preempted"):
        if key in values:
            notice = plain(str(values[key]).upper())
            found.append(notice or Unreadable(f"{key} is {str(values[key])[:64]!r}"))
    given = values.get("upcoming_maintenance")
    return found + ([_maintenance(given, "")] if isinstance(given, Mapping) else [])


def _maintenance(given: Mapping, instance: str) -> Notice:
    fields = {_snake(key): value for key, value in given.items()}
    reasons = [
        word for reason in listed(fields.get("maintenance_reasons")) for word in text(reason).replace(",", " ").split()
    ]
    return Notice(
        "gcp",
        CODE,
        instances=[instance] if instance else [],
        status=text(fields.get("maintenance_status")).lower(),
        not_before=fields.get("window_start_time"),
        not_after=fields.get("window_end_time"),
        deadline=fields.get("latest_window_start_time"),
        description=", ".join(reasons),
        fields={
            "type": text(fields.get("type")),
            "reasons": " ".join(reasons),
            "canReschedule": text(fields.get("can_reschedule")).lower(),
        },
    )


def _audit(entry: Mapping, payload: Mapping) -> list[Notice | Unreadable] | None:
    method = text(payload.get("methodName"))
    if "compute.instances." not in method:
        return None
    method = method[method.index("compute.instances.") :]
    instance = text(payload.get("resourceName"))
    if not instance:
        return [Unreadable(f"the log entry {method} names no instance")]
    told = payload.get("metadata") if isinstance(payload.get("metadata"), Mapping) else {}
    given = next((told[key] for key in _KEYS if isinstance(told.get(key), Mapping)), None)
    if given is not None or method == f"compute.instances.{CODE}":
        notice = _maintenance(given or {}, instance)
    else:
        notice = Notice("gcp", method, [instance])
    status = payload.get("status")
    if isinstance(status, Mapping) and text(status.get("message")):
        notice.description = text(status["message"])
    notice.id, notice.generated = text(entry.get("insertId")), entry.get("timestamp")
    return [notice]


def _name(data: Mapping) -> str:
    """An instance's address where it has one, which says zone and project, else its name."""
    address = text(data.get("selfLink"))
    return address[address.index("projects/") :] if "projects/" in address else text(data.get("name"))


def _snake(key: object) -> str:
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", str(key)).lower().replace("-", "_").replace(" ", "_")
