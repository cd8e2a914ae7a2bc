# ruff: noqa: E501
"""Whatever is in the logs, and in whatever order ranks wrote it."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.jobs.joblogs import CLOSED, DESYNC, TIMED_OUT, read, started, steps, torchrun_end, traceback, watchdog
from tests.unit.jobs.test_signatures import ENTRIES

ROOTS = {
    "J043": "RuntimeError: CUDA error: uncorrectable ECC error encountered",
    "J093": "OSError: [Errno 28] No space left on device",
    "J163": "ValueError: Sample 4711 in shard 3 has length 0",
    "J087": "ModuleNotFoundError: No module named 'flash_attn'",
}
PIECES = [
    *(entry["example"] for entry in ENTRIES),
    *started(3), *steps(1, 3), *DESYNC, *torchrun_end(1, -9), *watchdog(2, 5, 4, 5), *traceback(1, CLOSED),
    '  File "', "Traceback (most recent call last):", "[rank", "{\"log\":\"x\\n\",\"time\":\"2026-03-06T09:00:00Z\"}", "\x1b[31m", "\r",
]  # fmt: skip
KINDS = {"hardware", "network", "transient-software", "user-code", "storage", "preemption", "unknown"}
BLAMES = {"none", "emitter", "peer", "pair", "named-node", "named-rank", "store-host", "clique"}


def check(answer: dict) -> None:
    assert answer["class"] in KINDS
    assert answer["blame"]["kind"] in BLAMES
    assert 0 <= answer["confidence"] <= 1
    assert not set(answer["blame"]["ranks"]) & set(answer["waiting"])
    assert all(len(line["text"]) <= 300 for line in answer["lines"])


@settings(max_examples=60)
@given(st.binary(max_size=2000))
def test_any_bytes_are_read(data):
    check(read(data))
    check(read(b"\x1f\x8b" + data))


@settings(max_examples=60)
@given(
    st.lists(
        st.one_of(
            st.sampled_from(PIECES),
            st.text(max_size=40),
            st.tuples(st.sampled_from(PIECES), st.sampled_from(PIECES)).map("".join),
        ),
        max_size=30,
    )
)
def test_any_mixture_of_lines_is_read_and_who_waits_is_not_blamed(lines):
    check(read(lines))
    check(read((0, lines[::2]), (1, lines[1::2])))


def merged(draw, streams: list[list[str]]) -> list[str]:
    """The lines of all streams, each in its own order."""
    order = draw(st.permutations([number for number, lines in enumerate(streams) for _line in lines]))
    sources = [iter(lines) for lines in streams]
    return [next(sources[number]) for number in order]


@settings(max_examples=60)
@given(st.data(), st.sampled_from(sorted(ROOTS)), st.integers(0, 4), st.sampled_from([CLOSED, TIMED_OUT]))
def test_the_answer_does_not_depend_on_how_ranks_are_interleaved(data, name, culprit, victim):
    streams = [traceback(rank, ROOTS[name] if rank == culprit else victim) for rank in range(5)]
    answer = read([*started(5), *steps(1, 5), *merged(data.draw, streams), *torchrun_end(0, 1)])
    assert (answer["id"], answer["firstFailing"]) == (name, culprit)
    assert answer["waiting"] == [rank for rank in range(5) if rank != culprit]
    assert culprit in (answer["blame"]["ranks"] or [culprit])
    check(answer)


@settings(max_examples=30)
@given(st.permutations(range(6)), st.integers(0, 5), st.sampled_from(sorted(ROOTS)))
def test_nor_on_the_order_in_which_logs_are_given(order, culprit, name):
    logs = {
        rank: traceback(None, ROOTS[name]) if rank == culprit else [*steps(1, 2), *watchdog(rank)] for rank in range(6)
    }
    answer = read(*[(rank, logs[rank]) for rank in order])
    assert answer == read(*sorted(logs.items()))
    assert (answer["id"], answer["firstFailing"]) == (name, culprit)


@settings(max_examples=40)
@given(st.data(), st.integers(2, 8), st.data())
def test_of_ranks_that_wait_only_who_does_not_can_be_blamed(data, world, more):
    silent = more.draw(st.integers(0, world - 1))
    streams = [[] if rank == silent else watchdog(rank) for rank in range(world)]
    answer = read([*started(world), *steps(1, 4), *merged(data.draw, streams)])
    assert (answer["blame"]["kind"], answer["blame"]["ranks"]) == ("named-rank", [silent])
    everybody = read([*started(world), *steps(1, 4), *merged(data.draw, [watchdog(rank) for rank in range(world)])])
    assert (everybody["blame"]["kind"], everybody["blame"]["ranks"]) == ("none", [])
