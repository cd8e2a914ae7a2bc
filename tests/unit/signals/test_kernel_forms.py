"""The forms logs have, who wrote a line, when, and in which boot."""

from __future__ import annotations

import io
import json

import pytest

from tests.unit.signals.shipped import BOOT, one, parse, specs

XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid=7, name=x, GPU has fallen off the bus."
SXID = "nvidia-nvswitch3: SXid (PCI:0000:c2:00.0): 24007, Fatal, Link 9 sourcetrack timeout error"
OLD_BOOT = "0f3d9a1c-1111-4222-8333-944455556666"


@pytest.mark.parametrize("message", [XID, SXID])
@pytest.mark.parametrize(
    "before, time, seconds",
    [
        ("", None, None),
        ("[ 2209.114477] ", None, "2209.114477"),
        ("[222222222.25] ", None, "222222222.25"),
        ("[    1.000000][  T123] ", None, "1.000000"),
        ("[...] ", None, None),
        ("<12>[40417.250031] ", None, "40417.250031"),
        ("<4>[  411.020304] ", None, "411.020304"),
        ("[Tue Mar 25 10:42:05 2025] ", "2025-03-25T10:42:05Z", None),
        ("[Tue Mar  4 10:42:05 2025] ", "2025-03-04T10:42:05Z", None),
        ("[Sa Okt  5 03:21:40 2024] ", "2024-10-05T03:21:40Z", None),
        ("[mar. mars 25 10:42:05 2025] ", "2025-03-25T10:42:05Z", None),
        ("[土 10月  5 03:21:40 2024] ", "2024-10-05T03:21:40Z", None),
        ("[Xyz Qqq  5 03:21:40 2024] ", None, None),
        ("[Tue Mar 25 10:42:05 2025] gpu-0007 kernel: ", "2025-03-25T10:42:05Z", None),
        ("2025-03-11T06:22:31,904417+00:00 ", "2025-03-11T06:22:31.904417Z", None),
        ("2025-03-11T06:22:31,904417+02:00 ", "2025-03-11T04:22:31.904417Z", None),
        ("kern  :warn  : 2025-03-11T06:22:31,904417+00:00 ", "2025-03-11T06:22:31.904417Z", None),
        ("kern  :err   : [ 2209.114477] ", None, "2209.114477"),
        ("kern  :warn  : [Tue Mar 25 10:42:05 2025] ", "2025-03-25T10:42:05Z", None),
        ("4,8012,318445120,-;", None, "318.445120"),
        ("6,8013,318445120,-,caller=T77;", None, "318.445120"),
        ("May 21 09:14:33 gpu-0007 kernel: [512044.207715] ", "2026-05-21T09:14:33Z", "512044.207715"),
        ("May 21 09:14:33.123456 gpu-0007 kernel: ", "2026-05-21T09:14:33.123456Z", None),
        ("Dec  3 09:14:33 gpu-0007 kernel: ", "2025-12-03T09:14:33Z", None),
        ("Okt 14 03:21:40 node-b kernel: ", "2026-10-14T03:21:40Z", None),
        ("14. Okt 03:21:40 node-b kernel: ", "2026-10-14T03:21:40Z", None),
        ("10月 14 03:21:40 node-b kernel: ", "2026-10-14T03:21:40Z", None),
        ("<4>May 21 09:14:33 gpu-0007 kernel: ", "2026-05-21T09:14:33Z", None),
        ("2026-05-21T09:14:33.5+02:00 gpu-0007 kernel: [12.5] ", "2026-05-21T07:14:33.5Z", "12.5"),
        ("2026-05-21T09:14:33+0200 gpu-0007 kernel: ", "2026-05-21T07:14:33Z", None),
        ("2026-05-21 09:14:33 gpu-0007 kernel: ", "2026-05-21T09:14:33Z", None),
        ("2025-04-02 12:30:00.000 gke-pool-a-7 [4242] ", "2025-04-02T12:30:00Z", None),
        ("10.1.2.7: kern: warning: [2026-06-03T11:04:09.120034567Z]: ", "2026-06-03T11:04:09.120034Z", None),
        ("gpu-0007 kernel: ", None, None),
        ("kernel: [   21.400733] ", None, "21.400733"),
        ("May 21 09:14:33 gpu-0007 kernel[0]: ", "2026-05-21T09:14:33Z", None),
        ("[  12.345678] gpu-0007 kernel: ", None, "12.345678"),
        ("1772789696.504042 gpu-0007 kernel: ", "2026-03-06T09:34:56.504042Z", None),
        ("Tue 2026-05-21 09:14:33 UTC gpu-0007 kernel: ", "2026-05-21T09:14:33Z", None),
        ("Di 2026-05-21 09:14:33.5 +0200 gpu-0007 kernel: ", "2026-05-21T07:14:33.5Z", None),
        ("Tue 2026-05-21 09:14:33 CEST gpu-0007 kernel: ", "2026-05-21T09:14:33Z", None),
        ("<4>1 2026-05-21T09:14:33.5+02:00 gpu-0007 kernel - - - ", "2026-05-21T07:14:33.5Z", None),
        ('<4>1 2026-05-21T09:14:33.5Z gpu-0007 kernel - - [t@1 q="2"] [12.5] ', "2026-05-21T09:14:33.5Z", "12.5"),
        ("<4>1 - - kernel - - - ", None, None),
        ("[  +0.000012] ", None, None),
        ("[Mar25 10:42] ", None, None),
        ("[   21.400733 <    0.000012>] ", None, "21.400733"),
        ("\x1b[32m[   21.400733] \x1b[0m\x1b[33m", None, "21.400733"),
        ("\x00\x00\x00[   21.400733] ", None, "21.400733"),
        ("\ufeff[   21.400733] ", None, "21.400733"),
    ],
)
def test_every_form_of_line(before, message, time, seconds):
    spec = one(before + message)
    assert spec["errorCode"] == [message.split("): ")[1].split(",")[0]]
    assert spec["isFatal"]
    assert spec["generatedTimestamp"] == time
    assert spec["metadata"].get("kernelTime") == seconds


def test_times_without_a_zone_are_where_the_caller_says():
    spec = one(f"[Tue Mar 25 10:42:05 2025] {XID}", utc_offset="+02:00")
    assert spec["generatedTimestamp"] == "2025-03-25T08:42:05Z"
    assert one(f"2025-03-25T10:42:05Z {XID}", utc_offset="+02:00")["generatedTimestamp"] == "2025-03-25T10:42:05Z"


@pytest.mark.parametrize(
    "received, date, year",
    [
        ("2026-11-29T18:00:00Z", "Nov 29 17:59:59", "2026"),
        ("2026-11-29T18:00:00Z", "Nov 30 10:00:00", "2026"),
        ("2026-11-29T18:00:00Z", "Dec  1 10:00:00", "2025"),
        ("2027-01-01T00:00:10Z", "Dec 31 23:59:59", "2026"),
        ("2026-12-31T23:59:50Z", "Jan  1 00:00:05", "2027"),
        ("2027-03-01T00:00:00Z", "Feb 29 10:00:00", "2024"),
    ],
)
def test_the_year_that_syslog_leaves_out(received, date, year):
    assert one(f"{date} h kernel: {XID}", received=received)["generatedTimestamp"][:4] == year


def test_without_a_time_of_reading_there_is_no_year_to_guess():
    spec = one(f"May 21 09:14:33 h kernel: {XID}", received=None)
    assert spec["generatedTimestamp"] is None and spec["receivedTimestamp"] is None


@pytest.mark.parametrize("line", [f"Feb 31 09:14:33 h kernel: {XID}", f"[Tue Mar 25 26:42:05 2025] {XID}"])
def test_a_time_that_cannot_be_is_no_time(line):
    assert one(line)["generatedTimestamp"] is None


# who wrote it


@pytest.mark.parametrize(
    "before",
    [
        "May 21 09:14:33 gpu-0007 train[4711]: ",
        "May 21 09:14:33 gpu-0007 kubelet: ",
        "May 21 09:14:33 gpu-0007 python3[1]: kernel: ",
        "2026-05-21T09:14:33.5+02:00 gpu-0007 containerd[99]: ",
        "[   12.5] Comm: ",
        "<4>1 2026-05-21T09:14:33.5Z gpu-0007 train 7 - - ",
        "user-app: ",
    ],
)
def test_a_process_that_prints_the_same_does_not_count(before):
    result = parse(f"{before}{XID}\n{before}{SXID}\n{before}GPU reset executed: GPU-1, success: true\n")
    assert (result["events"], result["unparsed"]) == ([], [])
    assert result["ignored"] == {"not from the kernel": 3}


@pytest.mark.parametrize(
    "before",
    [
        "2026-05-21T09:14:33Z stderr F ",
        "I0102 15:04:05.000000 1 main.go:12] ",
        '"MESSAGE" : "',
        "[   12.5] somebody said ",
        "x" * 5000 + " ",
    ],
)
def test_a_form_nobody_knows_is_kept_and_does_not_count(before):
    result = parse(before + XID)
    assert result["events"] == []
    assert "form" in result["unparsed"][0]["reason"]


def test_the_reset_job_counts_and_no_other_process():
    line = "May 21 09:14:33 h {}: GPU reset executed: GPU-3f1c2ab4-5d6e, success: true"
    assert one(line.format("nvsentinel-gpu-reset[7]"))["isHealthy"]
    assert specs(line.format("root")) == []


# /dev/kmsg


def test_a_record_read_twice_counts_once():
    record = f"4,8012,318445120,-;{XID}"
    result = parse(f"{record}\n SUBSYSTEM=pci\n DEVICE=+pci:0000:3b:00.0\n{record}\n4,8013,318445124,-;{XID}\n")
    (event,) = result["events"]
    assert event["spec"]["metadata"]["count"] == "2"
    assert result["ignored"] == {"read before": 1}


def test_a_record_of_several_lines():
    record = (
        r"3,8012,318445120,-;NVRM: The NVIDIA GPU 0000:3b:00.0\x0aNVRM: (PCI ID: 10de:2321) installed in this "
        r"system has\x0aNVRM: fallen off the bus and is not responding to commands."
    )
    assert one(record)["entitiesImpacted"] == [{"entityType": "PCI", "entityValue": "0000:3b:00"}]


def test_what_a_process_wrote_into_the_kernels_buffer_says_so():
    assert "process" in one(f"12,8012,318445120,-;{XID}")["metadata"]["writtenBy"]
    assert "writtenBy" not in one(f"4,8012,318445120,-;{XID}")["metadata"]


# the journal


def record(message, **fields) -> str:
    given = {
        "__CURSOR": "s=1",
        "_HOSTNAME": "gpu-0007",
        "_BOOT_ID": BOOT.replace("-", ""),
        "_TRANSPORT": "kernel",
        "SYSLOG_IDENTIFIER": "kernel",
        "__REALTIME_TIMESTAMP": "1772789696504042",
        "_SOURCE_MONOTONIC_TIMESTAMP": "318445120",
        "MESSAGE": message,
        **fields,
    }
    return json.dumps({key: value for key, value in given.items() if value is not None}, separators=(",", ":"))


@pytest.mark.parametrize(
    "line",
    [
        record(XID),
        record(list(XID.encode())),
        record(XID, _TRANSPORT=None),
        record(XID, SYSLOG_IDENTIFIER=None),
        record(XID, _BOOT_ID=[BOOT, OLD_BOOT]),
        "\x1e" + record(XID),
        "data: " + record(XID),
        json.dumps(json.loads(record(XID)), indent=None),
    ],
)
def test_a_journal_record(line):
    spec = one(line, node="", boot_id=None)
    assert spec["nodeName"] == "gpu-0007"
    assert spec["bootId"] == BOOT
    assert spec["generatedTimestamp"] == "2026-03-06T09:34:56.504042Z"
    assert spec["metadata"]["kernelTime"] == "318.445120"
    assert spec["source"]["text"] == XID


@pytest.mark.parametrize("transport", ["stdout", "syslog", "journal", "audit", "driver"])
def test_a_forged_journal_record_does_not_count(transport):
    result = parse(record(XID, _TRANSPORT=transport) + "\n" + record(SXID, _TRANSPORT=transport))
    assert (result["events"], result["unparsed"]) == ([], [])
    assert result["ignored"] == {"not from the kernel": 2}


def test_a_record_without_transport_counts_only_as_the_kernels():
    assert specs(record(XID, _TRANSPORT=None, SYSLOG_IDENTIFIER="train")) == []


def test_the_reset_job_must_be_root():
    line = "GPU reset executed: GPU-3f1c2ab4-5d6e, success: true"
    job = {"_TRANSPORT": "syslog", "SYSLOG_IDENTIFIER": "nvsentinel-gpu-reset"}
    assert one(record(line, **job, _UID="0"))["isHealthy"]
    assert specs(record(line, **job, _UID="1000")) == []
    assert specs(record(line, **{**job, "SYSLOG_IDENTIFIER": "logger"}, _UID="0")) == []


@pytest.mark.parametrize(
    "line",
    [
        record(XID)[:-20],
        json.dumps({"msg": XID}),
        json.dumps({"MESSAGE": {"a": XID}}),
        '{"MESSAGE":[300,1],"x":"NVRM: Xid ("}',
        "{" * 30_000 + "NVRM: Xid (PCI:0000:3b:00): 79",
        '{"a":' * 12_000 + '"NVRM: Xid (PCI:0000:3b:00): 79"',
    ],
)
def test_json_that_is_no_record_is_kept(line):
    result = parse(line)
    assert result["events"] == []
    assert "JSON" in result["unparsed"][0]["reason"]


def test_a_record_with_a_message_of_several_lines():
    message = "NVRM: The NVIDIA GPU 0000:3b:00.0\nNVRM: (PCI ID: 10de:2321) in\nNVRM: fallen off the bus and is not"
    assert one(record(message))["isFatal"]


# boots


def test_what_an_earlier_boot_left_is_history():
    lines = [f"May 21 09:14:33 h kernel: {XID}", "May 21 07:20:00 h kernel: Linux version 6.8.0 (x) #1 SMP", ""]
    lines += [f"May 21 07:30:57 h kernel: {XID.replace('3b', '3c')}"]
    assert [spec["bootId"] for spec in specs(*lines)] == [f"before:{BOOT}", BOOT]
    assert [spec["bootId"] for spec in specs(*lines, boot_id=None)] == [None, None]


def test_a_process_cannot_begin_a_boot():
    for line in ("May 21 07:20:00 h train[7]: Linux version 6.8.0", "12,9,9,-;Linux version 6.8.0"):
        assert one(XID, line)["bootId"] == BOOT


def test_boots_of_one_node_are_not_those_of_another():
    found = specs(
        f"May 21 09:14:33 a kernel: {XID}",
        f"May 21 07:08:58 b kernel: {XID}",
        "May 21 07:20:00 b kernel: Linux version 6.8.0",
        node="",
    )
    assert {spec["nodeName"]: spec["bootId"] for spec in found} == {"a": BOOT, "b": f"before:{BOOT}"}


def test_journalctl_names_the_boots():
    line = f"May 21 09:14:33 h kernel: {XID}"
    old, new = (boot.replace("-", "") for boot in (OLD_BOOT, BOOT))
    found = specs(f"-- Boot {old} --", line, f"-- Boot {new} --", "May 21 07:09:00 h kernel: Linux version 6.8.0", line)
    assert [spec["bootId"] for spec in found] == [OLD_BOOT, BOOT]
    assert [spec["bootId"] for spec in specs(line, "-- Reboot --", line)] == [f"before:{BOOT}", BOOT]


def test_a_repeat_in_the_next_boot_is_news_and_so_is_the_gpus_uuid():
    told = "NVRM: GPU at PCI:0000:3b:00: GPU-aaaaaaaa-5d6e-7f80-91a2-b3c4d5e6f708"
    found = specs(told, XID, "Linux version 6.8.0", told.replace("aaaaaaaa", "bbbbbbbb"), XID)
    assert [spec["entitiesImpacted"][1]["entityValue"][:12] for spec in found] == ["GPU-aaaaaaaa", "GPU-bbbbbbbb"]


def test_what_is_older_than_the_boot_is_history_where_the_zone_is_certain():
    given = {"boot_time": "2026-05-21T10:00:00Z"}
    assert one(f"2026-05-21T09:14:33Z h kernel: {XID}", **given)["bootId"] == f"before:{BOOT}"
    assert one(f"2026-05-21T10:08:57Z h kernel: {XID}", **given)["bootId"] == BOOT
    assert one(f"2026-05-21 09:14:33 h kernel: {XID}", **given)["bootId"] == BOOT


# bytes


@pytest.mark.parametrize(
    "log",
    [
        f"a\n{XID}\nb\n",
        f"a\n{XID}\nb\n".encode(),
        bytearray(f"a\n{XID}\nb\n".encode()),
        io.BytesIO(f"a\n{XID}\nb\n".encode()),
        io.StringIO(f"a\n{XID}\nb\n"),
        ["a", XID, "b"],
        ["a\n", XID + "\r\n", "b\n"],
        [b"a\nNV", XID[2:].encode() + b"\n", b"b\n"],
        f"a\r\n{XID}\r\nb\r\n",
        f"a\n{XID}\nb",
    ],
)
def test_a_log_may_come_in_many_ways(log):
    result = parse(log)
    (event,) = result["events"]
    assert (event["spec"]["source"]["line"], result["lines"]) == (2, 3)
    assert event["spec"]["source"]["text"] == XID


def test_bytes_that_are_no_text():
    spec = one_of(b"\xff\xfe\x00\x01\n\xc3\x28 noise\n[ 1.5] " + XID.encode() + b" \xff\x07\ttail\n\x00\x00\n")
    assert spec["source"]["line"] == 3
    assert spec["source"]["text"].endswith("bus. \ufffd\ufffd\ufffdtail")


def one_of(log: bytes) -> dict:
    (event,) = parse(log)["events"]
    return event["spec"]


def test_text_with_halves_of_characters():
    assert one("\ud800 noise", XID)["source"]["line"] == 2


def test_long_lines_are_cut_and_counted():
    result = parse(
        b"x" * 3_000_000 + b"\n" + XID.encode() + b" " + b"y" * 200_000 + b"\n" + b"z" * 70_000 + XID.encode()
    )
    (event,) = result["events"]
    assert event["spec"]["source"]["line"] == 2
    assert len(event["spec"]["source"]["text"]) == 512
    assert len(event["spec"]["message"]) <= 1024
    assert (result["lines"], result["unparsed"]) == (3, [])
