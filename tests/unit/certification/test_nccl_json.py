"""The report nccl-tests writes with -J: all its spellings, alone or in a log, whole or broken off."""

from __future__ import annotations

import json

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers.nccl import parse

from tests.unit.certification import nccl_output as out
from tests.unit.certification.nccl_output import codes


def report(version: int = 3, misspelt: bool = False, rows: list[dict] | None = None, **more) -> dict:
    rows = [{"size": size} for size in out.SIZES] if rows is None else rows
    results = []
    for row in rows:
        time, algbw, busbw = out.busbw(row["size"], ranks=4)
        side = {"time": time, "alg_bw": algbw, "bus_bw": busbw, "nwrong": float(row.get("wrong", 0))}
        results.append(
            {
                "size": row["size"],
                "count": row["size"] // 4,
                "type": "float",
                "redop": "sum",
                "root": "    -1",
                "out_of_place": side,
                "in_place": {**side, "nwrong": None},
                "actual_iterations": 20,
                "experiment_name": "AllReduce",
            }
        )
    devices = [
        {"rank": rank, "group": 0, "pid": 100 + rank, "hostname": f"node-{rank}", "device": 0,
         "device_hex": "0000:19:00", "device_info": "Some GPU 80GB"}
        for rank in range(2)
    ]  # fmt: skip
    key = "bandwidith" if misspelt else "bandwidth"
    mean = sum(out.busbw(row["size"], ranks=4)[2] for row in rows) / len(rows)
    return {
        "version": version,
        "start_time": "2026-02-05 16:03:52",
        "args": ["/opt/all_reduce_perf", "-J", "/tmp/o.json"],
        "env": ["PATH=/usr/bin", "DB_PASSWORD=hunter2 {", 'QUOTED="}'],
        "nccl_version": 22807,
        "config": {
            "nthreads": 1,
            "ngpus": 2,
            "minimum_bytes": rows[0]["size"],
            "maximum_bytes": rows[-1]["size"],
            "step_factor": 2,
            "warmup_iters": 1,
            "iterations": 20,
            "aggregated_iterations": 1,
            "validation": 1,
            "graph": 0,
            "blocking_collectives": "false",
            "devices": devices,
        },
        "results": results,
        "out_of_bounds": {"count": more.get("outside", 0), "okay": "true"},
        f"average_bus_{key}": {key: mean, "okay": more.get("okay", "unchecked")},
        "errors": more.get("errors", []),
        "end_time": "2026-02-05 16:04:10",
    }


@pytest.mark.parametrize("misspelt", [False, True])
@pytest.mark.parametrize("version", [1, 2, 3, 4])
@pytest.mark.parametrize("indent", [None, 1])
def test_every_version_of_the_file(version, misspelt, indent):
    document = report(version, misspelt)
    result = parse(json.dumps(document, indent=indent), expected_ranks=4, expected_hosts=2)
    assert (result["complete"], codes(result), result["unparsed"]) == (True, [], [])
    run = result["runs"][0]
    assert (run["test"], run["source"], run["ncclVersion"], run["rankCount"]) == ("all_reduce", "json", "2.28.7", 4)
    assert run["rows"][0]["root"] == -1
    assert run["checked"] == ["outOfPlace"]
    assert run["config"]["gpusPerThread"] == 2
    mean = sum(row["outOfPlace"]["busbw"] for row in run["rows"]) / len(run["rows"])
    assert run["reported"]["averageBusBandwidth"]["value"] == pytest.approx(mean)
    assert "hunter2" not in repr(result)


def test_a_document_and_its_text_are_the_same():
    whole = parse(json.dumps(report()))
    assert [run["rows"] for run in parse(report())["runs"]] == [run["rows"] for run in whole["runs"]]


def test_wrong_values_and_verdicts_of_the_report():
    rows = [{"size": size, "wrong": 3 if size == out.SIZES[2] else 0} for size in out.SIZES]
    result = parse(report(rows=rows, outside=3, okay="false", errors=["remote process exited"]))
    assert sorted(codes(result)) == ["nccl-last-error", "tool-minimum-missed", "wrong-values"]
    assert result["runs"][0]["metrics"]["wrongValues"]["value"] == 3


def measured(run: dict) -> list[tuple]:
    return [(row["size"], row["outOfPlace"], row["inPlace"]) for row in run["rows"]]


@pytest.mark.parametrize("indent", [None, 1])
def test_broken_off_anywhere(indent):
    """Rows that are there whole are the rows of the whole file, and a cut file is never complete."""
    text = json.dumps(report(), indent=indent)
    rows = measured(parse(text)["runs"][0])
    for end in range(1, len(text) - 1, 97):
        result = parse(text[:end])
        assert not result["complete"]
        for run in result["runs"]:
            assert measured(run) == rows[: len(run["rows"])]
        assert "hunter2" not in repr(result)
    assert len(result["runs"][0]["rows"]) == len(rows)


def test_not_a_number():
    """Written as a text by some versions, bare by others."""
    document = report()
    document["results"][0]["out_of_place"].update(bus_bw="nan", alg_bw=float("nan"))
    side = parse(json.dumps(document))["runs"][0]["rows"][0]["outOfPlace"]
    assert (side["busbw"], side["algbw"]) == (None, None)
    text = json.dumps(document).replace("NaN", "-nan")
    assert parse(text)["runs"][0]["rows"][0]["outOfPlace"] == side


def test_a_broken_report_before_what_the_launcher_says():
    text = json.dumps(report(), indent=1)
    said = '\n------\nmpirun noticed that process rank 3 with PID 0 on node h3 exited on signal 9 (Killed), "x" [1, {\n'
    result = parse(text[: len(text) // 2] + said)
    assert codes(result, "error") == ["run-incomplete", "killed-by-signal"]
    assert result["runs"][0]["rows"]


def table() -> list[str]:
    lines = out.run(hosts=["node-0", "node-1"], gpus=2)
    for pid, new in ((1000, 100), (1001, 100), (2000, 101), (2001, 101)):
        lines = [line.replace(f"Pid {pid:6d}", f"Pid {new:6d}") for line in lines]
    return lines


def test_a_report_behind_its_table_is_one_run():
    result = parse("\n".join([*table(), json.dumps(report(), indent=1)]), expected_ranks=4)
    assert [run["source"] for run in result["runs"]] == ["table"]
    assert (result["complete"], codes(result)) == (True, [])


def test_a_whole_report_behind_a_broken_table():
    lines = table()
    result = parse("\n".join([*lines[:-6], "", json.dumps(report())]), expected_ranks=4)
    assert [(run["source"], len(run["rows"])) for run in result["runs"]] == [("json", 11)]
    assert (result["complete"], codes(result)) == (True, [])


def test_a_report_with_a_launchers_prefixes():
    lines = [f"[1,0]<stdout>:{line}" for line in json.dumps(report(), indent=1).split("\n")]
    result = parse("\n".join(["[1,0]<stdout>:# Writing JSON output to /tmp/o.json", *lines]))
    assert (result["complete"], codes(result)) == (True, [])


@pytest.mark.parametrize(
    "text",
    [
        '{"results": 5, "config": []}',
        '{"results": [5, null, {"size": "x"}], "config": {"devices": [1, {}]}}',
        '{"config": {"nthreads": 1e400, "ngpus": true, "step_factor": "two"}, "results": [{}]}',
        '{"nccl_version": -5, "args": [5], "errors": 7, "average_bus_bandwidth": 1}',
        '{"results": ' + "[" * 500,
        '{"version": 3, "results": [' + '{"size": 1' + "0" * 6000 + "}]}",
    ],
)
def test_documents_of_no_use(text):
    result = parse(text)
    assert not result["complete"]
    assert codes(result, "error")
