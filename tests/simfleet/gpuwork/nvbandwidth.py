"""nvbandwidth --json."""

from __future__ import annotations

import json

from .playing import Act, Work

# name, description, GB/s, whether from GPU to GPU
CASES = (
    ("host_to_device_memcpy_ce", "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)", 55.3, False),
    ("device_to_host_memcpy_ce", "memcpy CE CPU(row) <- GPU(column) bandwidth (GB/s)", 55.9, False),
    ("device_to_device_memcpy_read_ce", "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)", 395.1, True),
    ("device_to_device_memcpy_write_ce", "memcpy CE GPU(row) <- GPU(column) bandwidth (GB/s)", 396.4, True),
)
SICK_GPU = 3


def act(work: Work) -> Act:
    if work.my_fault == "hang":
        return Act(["nvbandwidth Version: v0.8", "Built from Git version: v0.8", ""], hang=True)
    if work.my_fault == "crash":
        return Act(["[CUDA_ERROR_ILLEGAL_ADDRESS] an illegal memory access was encountered in expression"], 1)
    gpus = work.gpus - (work.my_fault == "missing-gpu")
    document = {
        "nvbandwidth": {
            "CUDA Runtime Version": 12090,
            "Driver Version": "580.105.08",
            "git_version": "v0.8",
            "testcases": [_case(work, gpus, *case) for case in CASES],
        }
    }
    return Act(json.dumps(document, indent=4).splitlines())


def _case(work: Work, gpus: int, name: str, description: str, speed: float, between: bool) -> dict:
    def cell(row: int, column: int) -> float | None:
        if between and row == column:
            return None
        slow = work.my_fault == "slow-gpu" and SICK_GPU in ((row, column) if between else (column,))
        return speed * work.wobble * (0.4 if slow else 1) + 0.01 * column

    matrix = [[cell(row, column) for column in range(gpus)] for row in range(gpus if between else 1)]
    values = [value for row in matrix for value in row if value is not None]
    return {
        "name": name,
        "status": "Passed",
        "bandwidth_description": description,
        "bandwidth_matrix": [["N/A" if value is None else f"{value:.2f}" for value in row] for row in matrix],
        "average": sum(values) / len(values),
        "max": max(values),
        "min": min(values),
        "sum": sum(values),
    }
