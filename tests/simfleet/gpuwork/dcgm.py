"""dcgmi diag --json of DCGM 4."""

from __future__ import annotations

import json

from .playing import Act, Work

# (level from which on, name, category)
TESTS = (
    (1, "software", "Deployment"),
    (2, "pcie", "Integration"),
    (2, "memory", "Hardware"),
    (3, "diagnostic", "Hardware"),
    (3, "nvbandwidth", "Integration"),
    (3, "memory_bandwidth", "Stress"),
    (3, "targeted_stress", "Stress"),
    (3, "targeted_power", "Stress"),
    (4, "memtest", "Stress"),
    (4, "pulse_test", "Hardware"),
)
SICK_GPU = 3


def act(work: Work) -> Act:
    level = int(work.option("--run", "-r", default="1"))
    if work.my_fault == "hang":
        return Act([], hang=True)
    if work.my_fault == "crash":
        return Act(["Error: Unable to complete diagnostic for group 2147483647. Return: (-21): Host gone"], 235)
    gpus = work.gpus - (work.my_fault == "missing-gpu")
    categories: dict[str, list[dict]] = {}
    failed = False
    for since, name, category in TESTS:
        if level >= since:
            warning = _warning(work.my_fault, name)
            failed = failed or bool(warning)
            categories.setdefault(category, []).append(_test(name, gpus, warning))
    document = {
        "DCGM Diagnostic": {
            "test_categories": [{"category": name, "tests": tests} for name, tests in categories.items()]
        },
        "entity_groups": [
            {
                "entity_group": "GPU",
                "entity_group_id": 1,
                "entities": [
                    {"device_id": "2330", "entity_id": gpu, "serial_num": f"16530239{gpu:05d}"} for gpu in range(gpus)
                ],
            }
        ],
        "metadata": {"Driver Version Detected": "580.105.08", "version": "4.5.2"},
    }
    return Act(json.dumps(document, indent=2).splitlines(), 226 if failed else 0)


def _warning(fault: str, test: str) -> dict | None:
    if fault == "wrong-values" and test == "memory":
        text = f"GPU {SICK_GPU}: There was a memory mismatch: 17 bytes differ. Run a field diagnostic on the GPU."
        return {"warning": text, "error_id": 46, "error_category": 7, "error_severity": 3}
    if fault == "slow-gpu" and test == "targeted_stress":
        text = (
            f"GPU {SICK_GPU}: Max stress level of 9811.3 did not reach desired stress level of 18900.0. "
            "Check the GPU's cooling and power."
        )
        return {"warning": text, "error_id": 40, "error_category": 7, "error_severity": 2}
    return None


def _test(name: str, gpus: int, warning: dict | None) -> dict:
    results = []
    for gpu in range(gpus):
        entry: dict = {"entity_group": "GPU", "entity_group_id": 1, "entity_id": gpu, "status": "Pass"}
        if warning and gpu == SICK_GPU:
            entry |= {"status": "Fail", "warnings": [warning]}
        results.append(entry)
    return {"name": name, "results": results, "test_summary": {"status": "Fail" if warning else "Pass"}}
