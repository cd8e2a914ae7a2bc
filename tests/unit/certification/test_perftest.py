"""Tables of perftest, of one end and of both."""

from __future__ import annotations

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers.perftest import parse
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import FleetError

from tests.unit.certification.nccl_output import codes

RULE = "-" * 87
BANDWIDTH = " #bytes     #iterations    BW peak[{0}/sec]    BW average[{0}/sec]   MsgRate[Mpps]"
LATENCY = (
    " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   "
    "99% percentile[usec]   99.9% percentile[usec] "
)


def head(title: str, local: str = "0x0a", remote: str = "0x0b", gids=(), server: bool = False, **facts) -> list[str]:
    lines = ["*" * 36, "* Waiting for client to connect... *", "*" * 36] if server else []
    lines += [
        RULE,
        f"                    {title}",
        f" Dual-port       : OFF\t\tDevice         : {facts.get('device', 'mlx5_0')}",
        " Number of qps   : 4\t\tTransport type : IB",
        " Connection type : RC\t\tUsing SRQ      : OFF",
        " Mtu             : 4096[B]",
        f" Link type       : {facts.get('link', 'IB')}",
        " rdma_cm QPs\t : OFF",
        RULE,
        f" local address: LID {local} QPN 0x095f PSN 0x3c9e82 RKey 0x080359 VAddr 0x007f9fc479c000",
    ]
    lines += [f" GID: {gids[0]}"] if gids else []
    lines += [f" remote address: LID {remote} QPN 0x0960 PSN 0x3c9e83 RKey 0x080258 VAddr 0x007fe62504b000"]
    return [*lines, *([f" GID: {gids[1]}"] if gids else []), RULE]


def output(*rows: str, header: str = BANDWIDTH.format("Gb"), title: str = "RDMA_Write BW Test", **facts) -> str:
    return "\n".join([*head(title, **facts), header, *rows, RULE])


@pytest.mark.parametrize(
    ("unit", "value", "gbps"),
    [("MB", "24056.72", 201.8024), ("MiB", "24056.72", 201.8024), ("Gb", "391.23", 391.23)],
)
def test_units(unit, value, gbps):
    row = f" 8388608    20000            {value}            {value}\t\t   0.003007"
    result = parse(output(row, header=BANDWIDTH.format(unit)))
    run = result["runs"][0]
    assert (result["complete"], codes(result)) == (True, [])
    assert run["metrics"] == {
        "bandwidthAverageGbps": {"value": pytest.approx(gbps, abs=1e-3), "unit": "Gb/s"},
        "bandwidthPeakGbps": {"value": pytest.approx(gbps, abs=1e-3), "unit": "Gb/s"},
        "messageRateMpps": {"value": 0.003007, "unit": "Mpps"},
    }
    assert run["facts"]["device"] == "mlx5_0"
    assert run["facts"]["mtu"] == "4096[B]"


@pytest.mark.parametrize(
    ("title", "test", "both"),
    [
        ("RDMA_Write BW Test", "ib_write_bw", False),
        ("RDMA_Write Bidirectional BW Test", "ib_write_bw", True),
        ("RDMA_Read BW Test", "ib_read_bw", False),
        ("Send BW Test", "ib_send_bw", False),
        ("Send Bidirectional BW Test", "ib_send_bw", True),
        ("Send Post List BW Test", "ib_send_bw", False),
        ("Atomic FETCH_AND_ADD BW Test", "ib_atomic_bw", False),
        ("RDMA_Write Latency Test", "ib_write_lat", False),
        ("Send Latency Test", "ib_send_lat", False),
    ],
)
def test_titles(title, test, both):
    run = parse(output(title=title))["runs"][0]
    assert (run["test"], run["bidirectional"]) == (test, both)


def test_a_sweep_gives_its_best_and_every_size():
    rows = [" 2          5000           0.32               0.31                 19.44",
            " 65536      5000             381.50             381.41               0.727473",
            " 1048576    5000           198.72             198.45               0.024"]  # fmt: skip
    run = parse(output(*rows))["runs"][0]
    assert [row["size"] for row in run["rows"]] == [2, 65536, 1048576]
    assert run["metrics"]["bandwidthAverageGbps"]["value"] == 381.41
    assert run["metrics"]["messageRateMpps"]["value"] == 19.44


def test_duration_mode_measures_no_peak():
    row = " 65536      1059332          0.00               92.57              0.176557         5.07"
    run = parse(output(row, header=BANDWIDTH.format("Gb") + "    CPU_Util[%]"))["runs"][0]
    assert "bandwidthPeakGbps" not in run["metrics"]
    assert run["metrics"]["bandwidthAverageGbps"]["value"] == 92.57
    assert run["rows"][0]["cpuPercent"] == 5.07


def test_more_columns():
    header = (
        BANDWIDTH.format("Gb") + "   BW Port1[Gb/sec]   MsgRate Port1[Mpps]   BW Port2[Gb/sec]   MsgRate Port2[Mpps]"
    )
    row = " 65536      5000     190.1     180.2     0.3     90.0     0.15     90.2     0.15"
    run = parse(output(row, header=header))["runs"][0]
    assert run["metrics"]["bandwidthAverageGbps"]["value"] == 180.2
    header = BANDWIDTH.format("Gb").replace("#bytes ", "#bytes    #sl ")
    run = parse(output(" 65536   3   5000   190.1     180.2     0.3", header=header))["runs"][0]
    assert run["metrics"]["bandwidthAverageGbps"]["value"] == 180.2


def test_latency():
    noise = "Conflicting CPU frequency values detected: 1000.001000 != 3073.683000. CPU Frequency is not max."
    row = " 2       1000          1.44           2.93         1.48     \t       1.49  \t0.02   \t\t1.56    \t\t2.93   "
    result = parse(output(noise, noise, row, header=LATENCY, title="RDMA_Write Latency Test"))
    assert (result["complete"], codes(result)) == (True, ["cpu-frequency"])
    values = {name: metric["value"] for name, metric in result["runs"][0]["metrics"].items()}
    assert values == {
        "latencyTypicalUs": 1.48,
        "latencyAverageUs": 1.49,
        "latencyMinUs": 1.44,
        "latencyMaxUs": 2.93,
        "latencyP99Us": 1.56,
        "latencyP999Us": 2.93,
    }


def test_latency_by_duration():
    text = "\n".join([" #bytes        #iterations       t_avg[usec]    tps average",
                      " 2             62078352            2.42           413812.77", RULE])  # fmt: skip
    assert parse(text)["runs"][0]["metrics"] == {"latencyAverageUs": {"value": 2.42, "unit": "us"}}


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ({"local": "0xd06", "remote": "0xd06"}, True),
        ({"local": "0x0a", "remote": "0x0b"}, False),
        ({"local": "0000", "remote": "0000"}, None),
        ({"local": "0000", "remote": "0000", "gids": ("00:00:255:255:10:00:00:01", "00:00:255:255:10:00:00:01")}, True),
        (
            {"local": "0000", "remote": "0000", "gids": ("00:00:255:255:10:00:00:01", "00:00:255:255:10:00:00:02")},
            False,
        ),
    ],
)
def test_loopback(ends, expected):
    result = parse(output(" 65536 5000 190.1 180.2 0.3", **ends))
    assert result["runs"][0]["loopback"] is expected
    assert codes(result) == (["loopback"] if expected else [])


def test_both_ends_in_one_log():
    """The server's end comes when the client has ended its table, and their rules stand together."""
    row = " 8388608    20000            391.2            391.1\t\t   0.003007"
    client = [*head("RDMA_Write BW Test"), BANDWIDTH.format("Gb"), row]
    server = [*head("RDMA_Write BW Test", server=True), BANDWIDTH.format("Gb"), row]
    result = parse("\n".join([*client, *server, RULE, "", RULE]))
    assert [(run["role"], run["complete"]) for run in result["runs"]] == [("client", True), ("server", True)]
    assert parse("\n".join([*client, *server, RULE]))["complete"] is False


def test_both_ends_with_prefixes():
    row = " 8388608    20000            391.2            391.1\t\t   0.003007"
    one = output(row).split("\n")
    mixed = [line for pair in zip((f"0: {t}" for t in one), (f"1: {t}" for t in one), strict=True) for line in pair]
    result = parse("\n".join(mixed))
    assert (result["complete"], len(result["runs"]), codes(result)) == (True, 2, [])


def test_the_server_of_a_latency_test_prints_no_row():
    text = "\n".join([*head("RDMA_Read Latency Test", server=True), "", RULE])
    result = parse(text)
    assert (result["complete"], result["runs"][0]["metrics"], codes(result)) == (True, {}, [])


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (["Couldn't connect to 192.0.2.9:18515", "Unable to open file descriptor for socket connection"],
         "connection-failed"),
        (["Unable to init the socket connection"], "connection-failed"),
        ([" Completion with error at client", " Failed status 12: wr_id 0 syndrom 0x81"], "completion-error"),
        (["Failed status-transport retry counter exceeded (12)"], "completion-status"),
        (["IB device mlx5_9 not found", " Unable to find the Infiniband/RoCE device"], "no-device"),
        ([" Port number 1 state is Down"], "port-down"),
        (["Couldn't allocate MR", "failed to create mr"], "setup-failed"),
        (["Failed to modify QP 95 to RTR"], "connection-failed"),
        (["ethernet_read_keys: Couldn't read remote address"], "peer-lost"),
        ([" Failed to exchange data between server and clients"], "peer-lost"),
        (["Unexpected CM event bl blka 8", " Unable to perform rdma_client function"], "connection-failed"),
    ],
)  # fmt: skip
def test_why_it_stopped(lines, found):
    text = "\n".join([*head("RDMA_Write BW Test"), BANDWIDTH.format("Gb"), *lines])
    result = parse(text)
    assert not result["complete"]
    assert found in codes(result, "error")
    assert "run-incomplete" in codes(result, "error")
    assert result["runs"][0]["metrics"] == {}


def test_what_the_status_means():
    result = parse(" Failed status 12: wr_id 0 syndrom 0x81")
    finding = next(f for f in result["findings"] if f["code"] == "completion-status")
    assert (finding["entity"], finding["scope"]) == ("status 12", "pair")
    assert "does not answer" in finding["message"]


def test_a_sweep_that_breaks_off():
    result = parse("\n".join([*head("Send BW Test"), BANDWIDTH.format("Gb"), " 2 1000 0.02 0.02 1.8", " 4 1000 0.0"]))
    assert codes(result, "error") == ["run-incomplete"]
    assert [row["size"] for row in result["runs"][0]["rows"]] == [2]
    assert result["unparsed"] == [{"line": 15, "text": "4 1000 0.0", "reason": "does not fit the table's header"}]


def test_no_traffic():
    assert codes(parse(output(" 65536 5000 0.00 0.00 0.0")), "error") == ["no-traffic"]


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        ({"expected_device": "mlx5_0", "expected_link": "ib"}, []),
        ({"expected_device": "mlx5_1"}, ["wrong-adapter"]),
        ({"expected_link": "Ethernet"}, ["wrong-link"]),
    ],
)
def test_what_was_to_be_used(expected, found):
    assert codes(parse(output(" 65536 5000 190.1 180.2 0.3"), **expected)) == found
    if found:
        bare = "\n".join([BANDWIDTH.format("Gb"), " 65536 5000 190.1 180.2 0.3", RULE])
        assert codes(parse(bare, **expected)) == [found[0].removeprefix("wrong-") + "-unknown"]


def test_nothing():
    assert codes(parse("")) == ["no-run"]
    with pytest.raises(FleetError, match="expected_device"):
        parse("", expected_device=3)
