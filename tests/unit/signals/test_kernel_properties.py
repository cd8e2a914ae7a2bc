"""What holds for every log, also for those nobody has seen yet."""

from __future__ import annotations

import re

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.records import quickcheck
from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas import healthevent
from ansible_collections.goodput.fleet.plugins.module_utils.signals import kernel_prefix, kernel_scan
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.unit.signals.shipped import parse

GOOD = quickcheck.compile_schema(healthevent.SCHEMA)
SEEDS = [
    b"[  1.5] NVRM: Xid (PCI:0000:3b:00): 79, pid=7, name=x, GPU has fallen off the bus.",
    b"NVRM: Xid (PCI:0012:06:00): 149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 01 (0x021169c6 0x00000000 0x00000000)",
    b"NVRM: Xid (PCI:0012:06:00): 154, GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)",
    b"May 21 09:14:33 h kernel: [512044.2] NVRM: Xid (PCI:0000:4a:02): 63, pid=2211, Row Remapper: reset gpu",
    b"NVRM: Xid (PCI:0005:00:00): 74, pid='<unknown>', name=<unknown>, NVLink: error on link 6(0x0, 0x4, 0x1)",
    b"<12>[40417.250031] nvidia-nvswitch0: SXid (PCI:0000:d5:00.0): 19999, Severity 1 Engine instance 00",
    b"nvidia-nvswitch0: SXid (PCI:0000:e4:00.0): 20034, Fatal, Link 22 LTSSM Fault Up",
    b"nvidia-nvswitch0: SXid (PCI:0000:e4:00.0): 20034, Data {0x41720003, 0x20200048}",
    b"NVRM: The NVIDIA GPU 0000:5e:00.0",
    b"NVRM: fallen off the bus and is not responding to commands.",
    b"NVRM: GPU at PCI:0000:3b:00: GPU-3f1c2ab4-5d6e-7f80-91a2-b3c4d5e6f708",
    b"GPU reset executed: GPU-3f1c2ab4-5d6e-7f80-91a2-b3c4d5e6f708, success: true",
    b"4,8012,318445120,-;NVRM: Xid (PCI:0000:3b:00): 48, x",
    b'{"_TRANSPORT":"kernel","_BOOT_ID":"6e43a052e544467ba97263d7cd2ce80a","MESSAGE":"NVRM: Xid (PCI:1:3b:0): 8, x"}',
    b'{"MESSAGE":[78,86,82,77,58,32,88,105,100,32,40,80,67,73,58,49,58,48,58,48,41,58,32,56,44]}',
    b"10.1.2.7: kern: warning: [2026-06-03T11:04:09.120034567Z]: NVRM: Xid (PCI:0000:3b:00): 31, x",
    b"mlx5_core 0000:84:00.1: Port module event: module 1, Cable unplugged",
    b"NETDEV WATCHDOG: ens5 (ena): transmit queue 3 timed out 5120 ms",
    b"Linux version 6.8.0",
    b"-- Boot 6e43a052e544467ba97263d7cd2ce80a --",
    b"NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.105.08  Release Build",
]
NOISE = [
    b"",
    b"noise",
    b"IPv6: ADDRCONF(NETDEV_CHANGE): eth0: link becomes ready",
    b"\xff\x00\xfe",
    b"a\rb",
    b"x" * 300,
]


@st.composite
def mangled(draw) -> bytes:
    """A line of a kind that is read, cut, with bytes of others in it."""
    line = bytearray(draw(st.sampled_from(SEEDS)))
    for _change in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(line)))
        piece = draw(
            st.one_of(
                st.binary(max_size=8), st.sampled_from(SEEDS), st.sampled_from([b"(", b")", b",", b"0x", b"9" * 5000])
            )
        )
        line[at : at + draw(st.integers(0, 20))] = piece
    return bytes(line)


LINES = st.lists(st.one_of(mangled(), st.sampled_from(NOISE + SEEDS), st.binary(max_size=60)), max_size=25)
CUTS = st.lists(st.integers(1, 400), max_size=40)


def pieces(log: bytes, sizes: list[int]) -> list[bytes]:
    found, at = [], 0
    for size in sizes:
        found.append(log[at : at + size])
        at += size
    return [*found, log[at:]]


@given(st.binary(max_size=2000))
@example(b"NVRM: Xid (PCI:0000:3b:00): 13, GPC " + b"9" * 5000)
@example(b"NVRM: Xid (PCI:0000:3b:00): 149, " + b"a/" * 30_000)
@example(b"NVRM: Xid (PCI:0000:3b:00): 154, from 0x" + b"f" * 5000 + b" to 0x1")
@example(b"[" + b"9" * 5000 + b".5] NVRM: Xid (PCI:0000:3b:00): 79,")
@example(b"99999999999999999999,1,1,-;NVRM: Xid (PCI:0000:3b:00): 79,")
@example("\u0663\u0663 NVRM: Xid (PCI:0000:3b:00): \u0667\u0669, x".encode())
@example("\u00b2\u6708 14 03:21:40 h kernel: NVRM: Xid (PCI:0000:3b:00): 79, x".encode())
@example(b'{"MESSAGE":"NVRM: Xid (PCI:0000:3b:00): 79,","__REALTIME_TIMESTAMP":"999999999999999999"}')
@example(b"9999-12-31T23:59:59-23:59 h kernel: NVRM: Xid (PCI:0000:3b:00): 79,")
@example(b"0000-01-01T00:00:00+23:59 h kernel: NVRM: Xid (PCI:0000:3b:00): 79,")
def test_no_bytes_raise(log):
    parse(log)


@settings(max_examples=300)
@given(LINES)
def test_whatever_a_log_holds_events_are_whole_and_nothing_is_lost_twice(lines):
    log = b"\n".join(lines)
    result = parse(log)
    assert all(GOOD(event) for event in result["events"])
    assert result["lines"] == log.count(b"\n") + (not log.endswith(b"\n") and log != b"")
    numbers = [event["spec"]["source"]["line"] for event in result["events"]]
    assert numbers == sorted(numbers)
    assert all(1 <= number <= result["lines"] for number in numbers)
    for event in result["events"]:
        spec = event["spec"]
        assert not (spec["isFatal"] and spec["recommendedAction"] == "NONE")
        assert not (spec["isFatal"] and (spec["isHealthy"] or spec["state"] == "unknown"))
    assert parse(log) == result


@settings(max_examples=300)
@given(LINES, CUTS)
def test_where_a_log_is_cut_does_not_matter(lines, sizes):
    log = b"\n".join(lines)
    assert parse(pieces(log, sizes)) == parse(log)


@settings(max_examples=200)
@given(LINES)
def test_line_ends_of_windows_do_not_matter(lines):
    log = b"\n".join(line.rstrip(b"\r") for line in lines).replace(b"\r\n", b"\n") + b"\n"
    assert parse(log.replace(b"\n", b"\r\n")) == parse(log)


@settings(max_examples=200)
@given(st.lists(st.booleans(), max_size=200), CUTS)
def test_every_fault_has_the_number_of_its_line(plan, sizes):
    """Each fault on a GPU of its own, so that none is a repeat."""
    lines, wanted = [], {}
    for number, fault in enumerate(plan, 1):
        address = f"{number:04x}:3b:00"
        lines.append(f"NVRM: Xid (PCI:{address}): 79, x".encode() if fault else NOISE[number % len(NOISE)])
        if fault:
            wanted[address] = number
    found = parse(pieces(b"\n".join(lines) + b"\n", sizes))["events"]
    assert {
        event["spec"]["entitiesImpacted"][0]["entityValue"]: event["spec"]["source"]["line"] for event in found
    } == wanted


@given(st.integers(1, 99999), st.text(alphabet=st.characters(blacklist_characters="\n\r"), max_size=200))
def test_an_xid_is_never_dropped_whatever_follows_its_code(code, text):
    (event,) = parse(f"NVRM: Xid (PCI:0000:3b:00): {code}, {text}".replace("\n", " "))["events"]
    assert event["spec"]["errorCode"] == [str(code)]


@given(
    st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1), st.sampled_from(["Fatal", "Nonfatal"]), st.integers(144, 150)
)
def test_an_nvlink_error_is_never_dropped_whatever_its_words(first, second, word, code):
    line = f"NVRM: Xid (PCI:0012:06:00): {code}, NETIR_LINK_EVT {word} XC0 i0 Link 01 (0x{first:08x} 0x{second:08x})"
    (event,) = parse(line)["events"]
    assert event["spec"]["metadata"]["decoded"] in ("v1", "v2", "no")


@pytest.mark.parametrize("limit", [64, 4096])
@given(st.data())
def test_the_scanner_sees_what_a_plain_reading_sees(limit, data):
    """Also at the limit of a line, wherever the pieces end."""
    needle = data.draw(st.sampled_from(kernel_scan.NEEDLES))
    lengths = st.integers(0, limit + 20)
    lines = [
        b"." * length + (needle if data.draw(st.booleans()) else b"") + b"." * data.draw(st.integers(0, 30))
        for length in data.draw(st.lists(lengths, max_size=6))
    ]
    log = b"\n".join(lines)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel_scan, "LINE_LIMIT", limit)
        scanner = kernel_scan.Scanner()
        found = [hit for piece in pieces(log, data.draw(CUTS)) for hit in scanner.feed(piece)] + list(scanner.finish())
    assert found == [(number, line[:limit]) for number, line in enumerate(lines, 1) if needle in line[:limit]]


TOKENS = st.sampled_from(
    [
        "May 21 09:14:33 ",
        "2026-05-21T09:14:33.5+02:00 ",
        "host-1 ",
        "kernel: ",
        "[12.5] ",
        "[  12.5] ",
        "app[7]: ",
        "word ",
        "<4>",
        " ",
    ]
)


@settings(max_examples=500)
@given(st.lists(TOKENS, max_size=6).map("".join))
def test_the_short_way_through_a_prefix_leads_to_the_same_place(text):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel_prefix, "_COMMON", re.compile("(?!)"))
        slow = kernel_prefix.read(text)
    assert kernel_prefix.read(text) == slow
