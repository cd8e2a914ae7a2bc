"""Container logs: files in the format real container runtimes write, and the ways the API server asks for them.

A line of a file is `<RFC 3339 time> stdout F <text>`, or P in place of F for a text that has no newline after it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path


class BadLogRequest(ValueError):
    """A query parameter that cannot be understood."""


@dataclass(frozen=True)
class LogOptions:
    follow: bool = False
    timestamps: bool = False
    tail_lines: int | None = None
    limit_bytes: int | None = None
    since: str = ""  # RFC 3339, UTC

    @classmethod
    def from_query(cls, query: Mapping[str, str], now: datetime) -> LogOptions:
        try:
            since = query.get("sinceTime", "")
            if since:
                since = stamp(datetime.fromisoformat(since).astimezone(UTC))
            if "sinceSeconds" in query:
                since = stamp(now - timedelta(seconds=int(query["sinceSeconds"])))
            return cls(
                follow=query.get("follow") == "true",
                timestamps=query.get("timestamps") == "true",
                tail_lines=int(query["tailLines"]) if "tailLines" in query else None,
                limit_bytes=int(query["limitBytes"]) if "limitBytes" in query else None,
                since=since,
            )
        except ValueError as error:
            raise BadLogRequest(str(error)) from None


def stamp(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%f000Z")


class ContainerLog:
    """The log of one run of a container. Written by one task, read by any number."""

    def __init__(self, path: Path):
        self.path = path
        self.open = True
        self._rest = b""  # the beginning of a line whose end is yet to come
        self._grown = asyncio.Event()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    def write(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._append(lines, b"F")

    def close(self) -> None:
        if self._rest:
            self._append([self._rest], b"P")
            self._rest = b""
        self.open = False
        self._wake()

    def _append(self, lines: list[bytes], tag: bytes) -> None:
        if not lines:
            return
        head = stamp(datetime.now(UTC)).encode() + b" stdout " + tag + b" "
        with self.path.open("ab") as file:
            file.write(b"".join(head + line + b"\n" for line in lines))
        self._wake()

    def _wake(self) -> None:
        self._grown.set()
        self._grown = asyncio.Event()

    async def read(self, options: LogOptions) -> AsyncIterator[bytes]:
        """Yield text in chunks; with `follow`, until the container has ended."""
        budget = options.limit_bytes
        position = 0
        first = True
        while True:
            grown, still_open = self._grown, self.open
            with self.path.open("rb") as file:
                file.seek(position)
                data = file.read()
            position += len(data)
            lines = list(shown(data.splitlines(), options))
            if first and options.tail_lines is not None:
                lines = lines[len(lines) - min(options.tail_lines, len(lines)) :]
            first = False
            text = b"".join(lines)
            if budget is not None:
                text = text[:budget]
                budget -= len(text)
            if text:
                yield text
            if budget == 0 or not options.follow or not still_open:
                return
            await grown.wait()


def shown(lines: list[bytes], options: LogOptions) -> Iterator[bytes]:
    since = options.since.encode()
    for line in lines:
        when, _, tag, text = line.split(b" ", 3)
        if when >= since:
            yield (when + b" " if options.timestamps else b"") + text + (b"\n" if tag == b"F" else b"")
