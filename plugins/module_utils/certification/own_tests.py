# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A site's own container (a WorkloadRun) in the form of a test of the catalogue. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.certification.placeholders import literal

LIMITS = {"start": "30m", "run": "24h", "silence": "24h"}
# no test of the catalogue runs perftest, which needs a server and a client
PERFTEST = {
    "bandwidthAverageGbps": {"unit": "Gb/s", "direction": "higher"},
    "bandwidthPeakGbps": {"unit": "Gb/s", "direction": "higher"},
    "messageRateMpps": {"unit": "Mpps", "direction": "higher"},
    "latencyTypicalUs": {"unit": "us", "direction": "lower"},
    "latencyAverageUs": {"unit": "us", "direction": "lower"},
    "latencyMinUs": {"unit": "us", "direction": "lower"},
    "latencyP99Us": {"unit": "us", "direction": "lower"},
    "latencyP999Us": {"unit": "us", "direction": "lower"},
    "latencyMaxUs": {"unit": "us", "direction": "lower"},
}


def of_workload(name: str, workload: Mapping, metrics: Mapping[str, Mapping]) -> dict:
    """The test. `metrics`: parser's tool -> what the catalogue's tests measure with it; without a parser it is none."""
    nodes = workload.get("numNodes", 1)
    launcher, command = _command(workload, nodes)
    parser = dict(workload.get("parser", {"tool": "none"}))
    if parser["tool"] == "regex":
        measured = {parser["metric"]: {"unit": parser.get("unit", "")}}
    else:
        measured = metrics.get(parser["tool"], {}) if parser["tool"] != "perftest" else PERFTEST
    return {
        "domain": "workload",
        "variant": name,
        "scope": "node" if nodes == 1 else "group",
        "launcher": launcher,
        "image": workload["image"],
        "command": command,
        "variables": {},
        "limits": LIMITS,
        "minNodes": nodes,
        "nodesPerJob": nodes,
        "sharedMemory": workload.get("sharedMemory", "unlimited"),
        "capabilities": ["IPC_LOCK"],
        "metrics": dict(measured),
        "parser": parser,
        "isolation": "diagnostics" if nodes == 1 else "training" if "torch" in workload else "communication",
    }


def _command(workload: Mapping, nodes: int) -> tuple[str, list[str]]:
    """(launcher, command)."""
    if "exec" in workload:
        given = workload["exec"]
        return "job" if nodes == 1 else "indexed-job", _literal([*given["command"], *given.get("args", ())])
    if "mpi" in workload:
        given = workload["mpi"]
        start = ["mpirun", "--allow-run-as-root", "-np", "{ranks}", "-N", "{gpusPerNode}", "{envFlags}"]
        return "mpijob", start + _literal([given["binary"], *given.get("args", ())])
    given = workload["torch"]
    program = [given["script"]] if "script" in given else ["-m", given["module"]]
    start = ["torchrun", "--nnodes", "{nodes}", "--nproc-per-node", "{gpusPerNode}"]
    return "job" if nodes == 1 else "trainjob", start + _literal([*program, *given.get("args", ())])


def _literal(arguments: list[str]) -> list[str]:
    return [literal(argument) for argument in arguments]
