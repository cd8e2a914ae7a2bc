"""Container logs: what is asked for and what comes."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from tests.simfleet.kubelet.logs import BadLogRequest, ContainerLog, LogOptions, shown

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


def read(log: ContainerLog, **query: str) -> str:
    async def collect() -> bytes:
        return b"".join([chunk async for chunk in log.read(LogOptions.from_query(query, NOW))])

    return asyncio.run(collect()).decode()


@pytest.fixture
def log(tmp_path):
    written = ContainerLog(tmp_path / "main" / "0.log")
    written.write(b"one\ntw")
    written.write(b"o\n\nfo")
    written.write(b"ur")
    return written


def test_a_line_is_shown_once_it_is_whole_and_the_rest_at_the_end(log):
    assert read(log) == "one\ntwo\n\n"
    log.close()
    assert read(log) == "one\ntwo\n\nfour"


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ({"tailLines": "2"}, "\nfour"),
        ({"tailLines": "0"}, ""),
        ({"tailLines": "99"}, "one\ntwo\n\nfour"),
        ({"limitBytes": "5"}, "one\nt"),
        ({"tailLines": "3", "limitBytes": "2"}, "tw"),
        ({"sinceSeconds": "3600"}, "one\ntwo\n\nfour"),
        ({"sinceTime": "2999-01-01T00:00:00Z"}, ""),
    ],
)
def test_a_log_can_be_cut(log, query, text):
    log.close()
    assert read(log, **query) == text


def test_times_are_shown_on_demand_and_compared_in_utc():
    lines = [b"2026-03-01T11:59:58.000000000Z stdout F old", b"2026-03-01T11:59:59.500000000Z stdout P new"]
    options = LogOptions.from_query({"sinceTime": "2026-03-01T12:59:59+01:00", "timestamps": "true"}, NOW)
    assert list(shown(lines, options)) == [b"2026-03-01T11:59:59.500000000Z new"]
    assert list(shown(lines, LogOptions.from_query({"sinceSeconds": "1"}, NOW))) == [b"new"]


@pytest.mark.parametrize("query", [{"tailLines": "x"}, {"sinceTime": "yesterday"}, {"sinceSeconds": ""}])
def test_a_question_that_makes_no_sense_is_refused(query):
    with pytest.raises(BadLogRequest):
        LogOptions.from_query(query, NOW)


def test_a_follower_gets_what_comes_until_the_end(tmp_path):
    async def follow() -> list[bytes]:
        log = ContainerLog(tmp_path / "0.log")
        log.write(b"before\n")
        chunks: list[bytes] = []

        async def reader() -> None:
            async for chunk in log.read(LogOptions(follow=True)):
                chunks.append(chunk)

        task = asyncio.create_task(reader())
        await asyncio.sleep(0.01)
        assert chunks == [b"before\n"]
        log.write(b"after\n")
        await asyncio.sleep(0.01)
        assert chunks == [b"before\n", b"after\n"] and not task.done()
        log.close()
        await asyncio.wait_for(task, 1)
        return chunks

    assert asyncio.run(follow()) == [b"before\n", b"after\n"]
