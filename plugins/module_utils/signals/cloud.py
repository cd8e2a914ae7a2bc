# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Notices of AWS, Google Cloud and Azure to HealthEvents: maintenance, retirement, preemption.

result = cloud.parse(text, tables=tables, nodes={"i-0123456789abcdef0": "gpu-7"}, received="2026-03-06T09:34:56Z")
result["events"]     HealthEvent documents, one per notice and node; completed and cancelled notices are healthy
result["unparsed"]   [{line, text, reason}]: no notice, or of an instance that is no known node; at most 1,000

Times stand in the event's metadata, in UTC: notBefore, notAfter, deadline (of the latest start). What a notice means is
the catalogue's: see gitops/catalog/signals/cloud.yaml.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.signals import (
    cloud_aws,
    cloud_azure,
    cloud_gcp,
    dates,
    documents,
    event,
)
from ansible_collections.goodput.fleet.plugins.module_utils.signals.cloud_instances import Instances
from ansible_collections.goodput.fleet.plugins.module_utils.signals.cloud_notice import Notice, Unreadable
from ansible_collections.goodput.fleet.plugins.module_utils.signals.tables import Tables

CHECK = "CSPMaintenance"  # NVSentinel's name for it
DEPTH = 6
_LISTS = ("items", "events", "instances", "entries")
_NOTHING = re.compile(r"\s*(?:<\?xml|<!doctype|<html).*404", re.IGNORECASE | re.DOTALL)


def parse(
    value: object,
    *,
    tables: Tables,
    node: str = "",
    nodes: Mapping | Iterable | None = None,
    boot_id: str | None = None,
    received: str | None = None,
    source_name: str = "cloud notice",
) -> dict:
    """`node` is where the notices were read, for those that name no instance; `nodes` says which node an instance is:
    {instance id: node}, or a list of Nodes. Raises InvalidDocument for neither text nor data, and for such `nodes`.
    """
    unparsed, received = event.Unparsed(), dates.received(received)
    instances = Instances(nodes)
    text = documents.plain(value, "notices of a cloud, as text or data")
    lines = documents.count(text) if text is not None else 0
    parts = [documents.Part(value)] if text is None else _parts(text, unparsed, source_name)
    events = []
    for part in parts:
        for notice in _walk(part.data, 0):
            if isinstance(notice, Unreadable):
                unparsed.add(part.line, part.text or notice.reason, notice.reason)
                continue
            for instance in notice.instances or [""]:
                name, reason = _node(instance, node, instances)
                if name is None:
                    unparsed.add(part.line, part.text or notice.code, f"{notice.code}: {reason}")
                    continue
                events.append(_event(notice, name, instance, tables, boot_id, received, source_name, part))
    return {"events": events, "unparsed": unparsed.in_order(), "unparsedTotal": unparsed.total, "lines": lines}


def _parts(text: str, unparsed: event.Unparsed, source: str) -> list[documents.Part]:
    first = text.strip().partition("\n")[0][: event.SOURCE_LIMIT]
    if _NOTHING.match(text[:2048]):
        return []  # how metadata servers say that there is none
    notice = cloud_gcp.plain(text) if len(text) <= 128 else None
    if notice:
        return [documents.Part(notice, 1, first)]
    flat = cloud_gcp.flat(text) if "{" not in text else None
    if flat:
        return [documents.Part(flat, 1, first)]
    return documents.read(cloud_gcp.braced(text), unparsed, source)


def _walk(data: object, depth: int) -> Iterator[Notice | Unreadable]:
    if isinstance(data, Notice):
        yield data
    elif isinstance(data, (list, tuple)) and depth < DEPTH:
        for item in data:
            yield from _walk(item, depth + 1)
    elif isinstance(data, str) and cloud_gcp.plain(data):
        yield cloud_gcp.plain(data)
    elif isinstance(data, Mapping):
        for cloud in (cloud_aws, cloud_azure, cloud_gcp):
            found = cloud.read(data)
            if found is not None:
                yield from found
                return
        inner = [data[key] for key in _LISTS if isinstance(data.get(key), (list, tuple, Mapping))]
        if not inner or depth >= DEPTH:
            yield Unreadable("no notice of AWS, Google Cloud or Azure")
        for item in inner[:DEPTH] if depth < DEPTH else []:
            # zones of an aggregated list are a map
            yield from _walk(list(item.values()) if isinstance(item, Mapping) else item, depth + 1)
    else:
        yield Unreadable("no notice of AWS, Google Cloud or Azure")


def _node(instance: str, node: str, instances: Instances) -> tuple[str | None, str]:
    if not instance:
        return (node, "") if node else (None, "the notice names no instance: say which node it was read on")
    if node and instance.lower() == node.lower():
        return node, ""
    return instances.node(instance)


def _event(
    notice: Notice,
    node: str,
    instance: str,
    tables: Tables,
    boot_id: str | None,
    received: str | None,
    source_name: str,
    part: documents.Part,
) -> dict:
    meaning = tables.of("cloud").choose(
        notice.code, {**notice.fields, "status": notice.status, "description": notice.description}
    )
    healthy = notice.over or meaning.state == "healthy"
    times = {"notBefore": notice.not_before, "notAfter": notice.not_after, "deadline": notice.deadline}
    told = {key: dates.utc(value) or (str(value) if value else "") for key, value in times.items()}
    metadata = {
        **({} if healthy else meaning.metadata()),
        **told,
        **notice.fields,
        "family": notice.cloud,
        "noticeId": notice.id,
        "noticeStatus": notice.status,
        "description": notice.description,
    }
    title = "no longer holds" if healthy else meaning.title
    when = f", from {told['notBefore']}" if told["notBefore"] else ""
    entities = [("INSTANCE", instance)] if instance else []
    entities += [("NOTICE", notice.id)] if notice.id else []
    return event.make(
        node=node,
        agent=f"cloud-{notice.cloud}",
        check=CHECK,
        component="NODE",
        codes=[notice.code],
        space="cloud",
        entities=entities,
        action="NONE" if healthy else meaning.action,
        fatal=meaning.fatal,
        healthy=healthy,
        state=None if healthy else meaning.state,
        severity=None if healthy else meaning.severity,
        message=f"{notice.code}: {title}{when}" + (f": {notice.description}" if notice.description else ""),
        generated=dates.utc(notice.generated),
        received=received,
        boot_id=boot_id,
        source={"name": source_name, "line": part.line, "text": part.text},
        metadata={key: value for key, value in metadata.items() if value},
        position=[notice.id, told["notBefore"], told["notAfter"], notice.status],
    )
