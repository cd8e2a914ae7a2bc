"""Tables of nccl-tests: the header decides, whatever stands around the rows."""

from __future__ import annotations

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers.nccl import parse

from tests.unit.certification import nccl_output as out
from tests.unit.certification.nccl_output import codes

PLATEAU = [out.busbw(size)[2] for size in out.SIZES if size >= 256 << 20]


def only(result: dict) -> dict:
    assert len(result["runs"]) == 1
    return result["runs"][0]


@pytest.mark.parametrize("generation", out.GENERATIONS)
def test_every_generation_gives_the_same_values(generation):
    result = parse("\n".join(out.run(generation)), expected_ranks=16, expected_hosts=["node-a", "node-b"])
    run = only(result)
    assert (result["complete"], codes(result), result["unparsed"]) == (True, [], [])
    assert [row["size"] for row in run["rows"]] == out.SIZES
    for row in run["rows"]:
        time, algbw, busbw = out.busbw(row["size"])
        for side in ("outOfPlace", "inPlace"):
            assert row[side]["time"] == pytest.approx(time, abs=0.006)
            assert row[side]["algbw"] == pytest.approx(algbw, abs=0.006)
            assert row[side]["busbw"] == pytest.approx(busbw, abs=0.006)
    metrics = run["metrics"]
    assert metrics["busBandwidthGBps"] == {"value": pytest.approx(max(PLATEAU), abs=0.01), "unit": "GB/s"}
    assert metrics["busBandwidthPlateauGBps"]["value"] == pytest.approx(sorted(PLATEAU)[1], abs=0.01)
    assert metrics["wrongValues"]["value"] == 0
    assert run["reported"]["averageBusBandwidth"]["value"] < 0.8 * metrics["busBandwidthPlateauGBps"]["value"]


def test_header_and_ranks():
    run = only(parse("\n".join(out.run(unalign=0))))
    assert run["test"] == "all_reduce"
    assert run["config"] == {
        "threads": 1,
        "gpusPerThread": 1,
        "minBytes": out.SIZES[0],
        "maxBytes": out.SIZES[-1],
        "step": {"value": 2, "unit": "factor"},
        "warmupIters": 5,
        "iters": 20,
        "aggIters": 1,
        "check": True,
        "graph": 0,
    }
    assert (run["rankCount"], run["hosts"]) == (16, ["node-a", "node-b"])
    assert run["ranks"][9] == {
        "rank": 9,
        "group": 0,
        "pid": 2001,
        "host": "node-b",
        "device": 1,
        "busId": "0000:1a:00",
        "name": "Some GPU 80GB",
    }


@pytest.mark.parametrize("form", ["plain", "oldest"])
def test_rank_lines_of_old_versions(form):
    lines = [out.settings(), *out.rank_lines(["h1", "h2"], 4, form), *out.table("2.10", [{"size": 1024}])]
    run = only(parse("\n".join(lines)))
    assert (run["rankCount"], run["hosts"]) == (8, ["h1", "h2"])


def test_iterations_and_time_stamps():
    assert only(parse("\n".join(out.run("2.17 iters"))))["rows"][0]["iters"] == 20
    assert only(parse("\n".join(out.run("2.18 time stamp"))))["rows"][0]["at"] == "2026-02-05 16:03:52"


def test_per_iteration_columns():
    side = "time algbw busbw #wrong i_min i_max i_p99 i_cv%"
    text = "\n".join(
        [
            f"#  size count type redop root {side} {side}",
            "  1048576  262144  float  sum  -1  10.0  104.86  196.6  0  9.0  12.0  11.9  3.1"
            "  11.0  95.33  178.7  0  10.0  12.5  12.4  2.2",
        ]
    )
    row = only(parse(text))["rows"][0]
    assert row["outOfPlace"]["busbw"] == 196.6
    assert row["inPlace"]["busbw"] == 178.7
    assert row["inPlace"]["iterations"] == {"min": 10.0, "max": 12.5, "p99": 12.4, "cvPercent": 2.2}


def test_cycles_are_averaged_by_size():
    rows = [{"size": size, "busbw": busbw} for busbw in (300, 310, 350) for size in out.SIZES]
    lines = out.run(rows=rows)
    lines[1] = out.settings()
    run = only(parse("\n".join(lines)))
    assert run["sizes"][-1]["samples"] == 3
    assert run["metrics"]["busBandwidthGBps"]["value"] == 320
    assert run["sizes"][-1]["busbwMin"] == 300


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ("7017920.42   244.81  459.02   0   1.2e+07   244.8   459.0   0", (7017920.42, 459.02, 0)),
        ("12345   1.3e+03   0.00    N/A   12345   1303.8   0.00    N/A", (12345, 0.0, None)),
        ("1.0   2.0   -nan   1.2e+06   1.0   2.0   nan   0", (1.0, None, 1.2e6)),
        ("1.0   2.0   3.0   5*   1.0   2.0   3.0   0", (1.0, 3.0, 5)),
    ],
)
def test_forms_of_numbers(cells, expected):
    lines = [*out.table("2.12", []), f"  17179869184  4294967296  float  sum  -1  {cells}"]
    side = only(parse("\n".join(lines)))["rows"][0]["outOfPlace"]
    assert (side["time"], side["busbw"], side["wrong"]) == expected


def test_several_runs_in_one_log():
    slow = [{"size": size, "busbw": 5.0} for size in out.SIZES]
    text = "\n".join(["$ srun all_reduce_perf", *out.run(), "", "$ srun all_reduce_perf", *out.run(rows=slow)])
    result = parse(text)
    assert [run["metrics"]["busBandwidthGBps"]["value"] for run in result["runs"]] == [pytest.approx(396.9, abs=0.1), 5]
    assert (result["complete"], codes(result)) == (True, [])


PREFIXES = {
    "mpirun": "[1,0]<stdout>:",
    "open mpi 5": "[prterun-node-a-4711@1,0]<stdout>: ",
    "mpirun with time": "Thu Feb  5 16:03:52 2026[1,0]<stdout>:",
    "hydra": "[0] ",
    "srun": "0: ",
    "wide srun": " 0: ",
    "kubectl": "[pod/nccl-launcher-x7/main] ",
    "kubectl with times": "[pod/nccl-launcher-x7/main] 2026-02-05T16:03:52.123456789Z ",
    "container runtime": "2026-02-05T16:03:52.123456789Z stdout F ",
    "compose": "launcher-1  | ",
    "pdsh": "node-a: ",
    "indent": "        ",
    "colours": "\x1b[32m",
}


@pytest.mark.parametrize("prefix", PREFIXES.values(), ids=PREFIXES.keys())
def test_prefixes_of_launchers(prefix):
    plain = parse("\n".join(out.run()))
    result = parse("\r\n".join(prefix + line for line in out.run()) + "\r\n")
    assert (result["complete"], codes(result), result["unparsed"]) == (True, [], [])
    for name in ("rows", "ranks", "metrics", "config", "test"):
        assert only(result)[name] == only(plain)[name]


def test_bytes_lines_and_text_are_the_same():
    lines = out.run()
    assert parse(lines) == parse("\n".join(lines)) == parse("\n".join(lines).encode())


@pytest.mark.parametrize("at", [0, 60, 75, 100, 115])
def test_a_message_inside_a_row(at):
    """NCCL writes while the row is half printed; the rest of it follows on a line of its own."""
    lines = out.run()
    index = next(i for i, line in enumerate(lines) if line.split()[:1] == [str(out.SIZES[3])])
    row = lines[index]
    cut = row.rfind(" ", 0, at) + 1
    head, rest = row[:cut], row[cut:]
    lines[index : index + 1] = [f"{head}node-a:12:34 [0] NCCL INFO Launch mode Parallel", rest]
    result = parse("\n".join(lines))
    assert [row["size"] for row in only(result)["rows"]] == out.SIZES
    assert (result["complete"], codes(result), result["unparsed"]) == (True, [], [])


def test_marks_of_mpirun_inside_a_line():
    mark = "[1,0]<stdout>:"
    lines = [f"{mark}{line}" for line in out.run()]
    index = next(i for i, line in enumerate(lines) if line.split()[1:2] == [str(out.SIZES[3])])
    row = lines[index]
    lines[index] = (
        f"{row[:80]}{mark}{row[80:]}[1,9]<stderr>:node-b:12:34 [1] NCCL INFO Channel 00 : 0[0] -> 1[1] via SHM"
    )
    result = parse("\n".join(lines))
    assert [row["size"] for row in only(result)["rows"]] == out.SIZES
    assert (result["complete"], codes(result), result["unparsed"]) == (True, [], [])
    assert only(result)["transports"][0]["kind"] == "SHM"


def test_an_error_printed_on_the_row_that_was_being_written():
    lines = out.run()
    index = next(i for i, line in enumerate(lines) if line.split()[:1] == [str(out.SIZES[3])])
    error = "node-b: Test CUDA failure all_reduce.cu:44 'an illegal memory access was encountered'"
    text = "\n".join([*lines[:index], lines[index][:52] + error, " .. node-b pid 2001: Test failure common.cu:590"])
    result = parse(text)
    assert [row["size"] for row in only(result)["rows"]] == out.SIZES[:3]
    assert not result["complete"]
    assert codes(result, "error") == ["run-incomplete", "illegal-memory-access"]
    finding = result["findings"][-1]
    assert (finding["host"], finding["scope"], finding["line"]) == ("node-b", "gpu", index + 1)
    assert [entry["line"] for entry in result["unparsed"]] == [index + 1]


def test_a_table_that_breaks_off():
    lines = out.run()
    index = next(i for i, line in enumerate(lines) if line.split()[:1] == [str(out.SIZES[4])])
    result = parse("\n".join([*lines[:index], lines[index][:80]]))
    assert not result["complete"]
    assert [row["size"] for row in only(result)["rows"]] == out.SIZES[:4]
    assert codes(result) == ["run-incomplete"]
    assert "11 sizes were asked for" in result["findings"][0]["message"]


def test_the_footer_ends_a_run_that_hangs_when_it_should_exit():
    result = parse("\n".join(out.run()[:-2]))
    assert result["complete"]
    assert codes(result) == ["no-conclusion"]


def test_rows_left_out():
    lines = out.run()
    index = next(i for i, line in enumerate(lines) if line.split()[:1] == [str(out.SIZES[4])])
    result = parse("\n".join([*lines[:index], "...", *lines[index + 3 :]]))
    assert codes(result) == ["rows-missing"]
    assert result["unparsed"] == [{"line": index + 1, "text": "...", "reason": "no row of the table"}]


def test_an_average_that_its_rows_do_not_have():
    rows = [{"size": size, "busbw": 7.0} for size in out.SIZES]
    lines = out.run(rows=rows)
    lines = [*lines[:-4], *out.footer([{"size": 8, "busbw": 53.7}])]
    assert codes(parse("\n".join(lines))) == ["average-contradicts-rows"]


def test_less_memory_than_the_biggest_size():
    rows = [{"size": size} for size in out.SIZES[:6]]
    lines = out.run(rows=rows)
    lines[1] = out.settings()
    lines.insert(2, f"# Reducing maxBytes to {out.SIZES[5]} due to memory limitation")
    assert codes(parse("\n".join(lines))) == []


def test_rccl():
    lines = out.run()
    lines[2] = "rccl-tests: Version develop:33cc4df"
    lines.insert(-4, "# Errors with asterisks indicate errors that have exceeded the maximum threshold.")
    lines.insert(4, "RCCL version 2.22.3+hip6.4 HEAD:1a2b3c4")
    result = parse("\n".join(lines))
    assert (result["tool"], result["toolVersion"]) == ("rccl-tests", "develop:33cc4df")
    assert only(result)["ncclVersion"] == "2.22.3+hip6.4"
    assert (result["complete"], codes(result), result["unparsed"]) == (True, [], [])


def test_a_log_that_lost_its_signs():
    lines = [line.removeprefix("#") for line in out.run("2.10")]
    result = parse("\n".join(lines))
    assert (result["complete"], len(only(result)["rows"]), codes(result)) == (True, len(out.SIZES), [])


def test_version_line():
    lines = ["# nccl-tests version 2.18.2 nccl-headers=22807 nccl-library=23007", *out.run()]
    result = parse("\n".join(lines))
    assert result["toolVersion"] == "2.18.2"
    assert only(result)["ncclVersion"] == "2.30.7"
