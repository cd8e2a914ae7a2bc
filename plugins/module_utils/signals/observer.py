# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the events of one reading share: who looked, at which node, when; and how the parsers take their input."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument
from ansible_collections.goodput.fleet.plugins.module_utils.signals import event, timestamps
from ansible_collections.goodput.fleet.plugins.module_utils.signals.tables import Meaning

_DIGITS = re.compile(r"[0-9]+(?:\.[0-9]+)?")


class Observer:
    """Makes events and keeps them, with what could not be read beside them."""

    def __init__(
        self, agent: str, *, node: str = "", boot_id: str | None = None, received: str | None = None, source: str = ""
    ):
        self.agent, self.node, self.boot_id, self.source = agent, node, boot_id, source
        self.received = timestamps.utc(moment(received, "received"))
        self.events: list[dict] = []
        self.unparsed = event.Unparsed()

    def tell(
        self,
        meaning: Meaning,
        *,
        check: str,
        component: str,
        space: str,
        message: str,
        entities: Iterable[tuple[str, str]] = (),
        code: bool = True,
        fatal: bool | None = None,
        severity: str | None = None,
        metadata: Mapping[str, str] | None = None,
        line: int | None = None,
        text: str = "",
        generated: str | None = None,
        position: object = None,
    ) -> None:
        """An event with a table's meaning. Without `code` it carries none: nothing told which one it is.

        `position` tells apart what else would be the same report; by default the message without its figures, since
        counters move from one reading to the next.
        """
        self.events.append(
            event.make(
                node=self.node,
                agent=self.agent,
                check=check,
                component=component,
                codes=(meaning.code,) if code else (),
                space=space,
                entities=entities,
                action=meaning.action,
                fatal=meaning.fatal if fatal is None else fatal,
                state=meaning.state,
                healthy=meaning.state == "healthy",
                severity=severity or meaning.severity,
                message=message,
                generated=generated,
                received=self.received,
                boot_id=self.boot_id,
                source={"name": self.source, "line": line, "text": text},
                metadata={**meaning.metadata(), **(metadata or {})},
                position=_DIGITS.sub("#", message) if position is None else position,
            )
        )

    def blind(self, check: str, message: str, *, code: str = "", space: str = "other", **details) -> None:
        """An event that says that nothing could be seen, which says nothing about the hardware."""
        self._plain(check, message, codes=(code,) if code else (), space=space, state="unknown", **details)

    def well(self, check: str, message: str, **details) -> None:
        """An event that says that all is well with what the check looks at."""
        self._plain(check, message, healthy=True, **details)

    def _plain(
        self,
        check: str,
        message: str,
        *,
        component: str = "GPU",
        entities: Iterable[tuple[str, str]] = (),
        line: int | None = None,
        text: str = "",
        **fields,
    ) -> None:
        blind = fields.get("state") == "unknown"
        self.events.append(
            event.make(
                node=self.node,
                agent=self.agent,
                check=check,
                component=component,
                entities=entities,
                message=message,
                severity="warning" if blind else "info",
                received=self.received,
                boot_id=self.boot_id,
                source={"name": self.source, "line": line, "text": text},
                metadata={"class": "monitor"} if blind else {},
                position=_DIGITS.sub("#", message),
                **fields,
            )
        )

    def result(self, lines: int) -> dict:
        """As every parser gives it."""
        return {
            "events": self.events,
            "unparsed": self.unparsed.items,
            "unparsedTotal": self.unparsed.total,
            "lines": lines,
        }


def moment(text: str | None, name: str) -> int | None:
    """An option's time. Raises InvalidDocument where it is none."""
    if text is None:
        return None
    micros = timestamps.iso(str(text))
    if micros is None:
        raise InvalidDocument(f"{name} is {text!r}, which is no time", path=name, hint="such as 2026-03-06T09:34:56Z")
    return micros


def decoded(given: object) -> str:
    """The text of a tool's output, given as text, bytes, or a list of lines. Raises InvalidDocument for others."""
    if isinstance(given, (bytes, bytearray, memoryview)):
        given = bytes(given).decode("utf-8", "replace")
    elif isinstance(given, (list, tuple)) and all(isinstance(line, str) for line in given):
        given = "\n".join(given)
    if not isinstance(given, str):
        raise InvalidDocument(
            f"takes a text or a list of lines, not {type(given).__name__}", hint="what the tool printed, as it is"
        )
    return given.lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def expected(count: object) -> int | None:
    """The number of GPUs a node should have. Raises InvalidDocument where it is no count."""
    if count is None:
        return None
    if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= 1024:
        raise InvalidDocument(
            f"expected_gpus is {count!r}", path="expected_gpus", hint="how many GPUs the node has, such as 8"
        )
    return count


def uuids(known: object) -> dict[str, str]:
    """UUIDs by DCGM's number of the GPU, as texts. Raises InvalidDocument where it is no map of them."""
    if not isinstance(known, Mapping) or not all(str(index).isdecimal() for index in known):
        raise InvalidDocument(
            f"index_to_uuid is {known!r}"[:200], path="index_to_uuid", hint="NUMBER: UUID, such as 0: GPU-..."
        )
    return {str(index): str(uuid) for index, uuid in known.items()}
