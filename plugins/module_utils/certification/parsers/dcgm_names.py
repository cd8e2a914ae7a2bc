# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""DCGM's words in one form: names of tests, statuses, error categories, return codes."""

from __future__ import annotations

import re

from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers.outcome import (
    CONFIGURATION,
    HARDWARE,
    INFRASTRUCTURE,
    TOOL,
    UNKNOWN,
)

PASS, FAIL, WARN, SKIP, NOT_RUN = "pass", "fail", "warn", "skip", "not_run"
_STATUSES = {
    "pass": PASS, "passed": PASS,
    "fail": FAIL, "failed": FAIL, "failure": FAIL, "error": FAIL,
    "warn": WARN, "warning": WARN,
    "skip": SKIP, "skipped": SKIP,
    "not run": NOT_RUN, "notrun": NOT_RUN, "not_run": NOT_RUN,
}  # fmt: skip

# DCGM 4 named the tests anew; 2 and 3 print titles
_ALIASES = {
    "gpu_memory": "memory",
    "pulse": "pulse_test",
    "eud_test": "eud",
    "cpu_eud_test": "cpu_eud",
    "environmental_variables": "environment_variables",
    "permissions_and_os_related_blocks": "permissions_and_os_blocks",
    "blacklist": "denylist",
    "nccl_test": "nccl_tests",
    "mnubergemm_test": "mnubergemm",
}

# ids whose meaning is stronger than the category DCGM files them under, the same in every version
_CONFIGURATION_IDS = frozenset({18, 20, 23, 25, 28, 29, 46, 47, 48, 55, 60, 68, 72, 78, 82, 90, 96, 117})
_TOOL_IDS = frozenset({21, 22, 24, 26, 27, 32, 37, 44, 49, 53, 64, 65, 67, 69, 77, 89, 91, 92, 93, 97, 124, 130})
FABRIC_IDS = frozenset({108, 112})

_WORDS = (
    (INFRASTRUCTURE, re.compile(r"\bMCUTIL\b|gpu is (?:busy|in use)|not idle", re.IGNORECASE)),
    (TOOL, re.compile(
        r"internal error|child process|couldn't be parsed|cannot load|can't load|unable to (?:load|open|find hardware)"
        r"|(?:couldn't|could not|cannot|unable to) (?:find|locate|run|execute|start) [^.]*(?:executable|binary|library)"
        r"|BwChecker|plugin|no such file|timed out|dcgm api|error querying", re.IGNORECASE)),
    (CONFIGURATION, re.compile(
        r"persistence mode|ecc memory|not currently active|skipp(?:ed|ing)|disabled|permission|environment variable"
        r"|not allow|nouveau|power limit|mig |graphics process|unsupported|not supported", re.IGNORECASE)),
    (HARDWARE, re.compile(
        r"thermal|temperature|double[- ]bit|single[- ]bit|row remap|page retire|retired page|\bxid\b|faulty|nvlink"
        r"|replay|bandwidth|latency|stress level|uncorrect|inforom|fallen off|clocks event|throttl|miscompare"
        r"|memory error|power draw|gflop", re.IGNORECASE)),
)  # fmt: skip

# dcgmi exits with these, seen as 256 minus the number
_RETURNS = {
    -7: ("DCGM could not initialise", INFRASTRUCTURE),
    -8: ("the driver's management library failed", INFRASTRUCTURE),
    -11: ("time-out", INFRASTRUCTURE),
    -12: ("dcgmi and the host engine are of different versions", CONFIGURATION),
    -17: ("no permission", CONFIGURATION),
    -18: ("a GPU is lost", HARDWARE),
    -19: ("a GPU needs a reset", HARDWARE),
    -21: ("no connection to the host engine (nv-hostengine)", INFRASTRUCTURE),
    -22: ("a GPU that DCGM does not support", CONFIGURATION),
    -23: ("GPUs of different kinds in one group", CONFIGURATION),
    -25: ("a library is missing", TOOL),
    -29: ("root is required", CONFIGURATION),
    -30: ("the diagnostic returned an error", TOOL),
    -33: ("a module of DCGM is not loaded", TOOL),
    -34: ("the resource is in use", INFRASTRUCTURE),
    -35: ("the group has no GPUs", CONFIGURATION),
    -39: ("another diagnostic is running", INFRASTRUCTURE),
    -40: ("the diagnostic's answer is no valid JSON", TOOL),
    -41: ("the diagnostic could not be started", TOOL),
    -43: ("a threshold was exceeded", HARDWARE),
    -44: ("the driver is too old", CONFIGURATION),
    -49: ("not enough resources", INFRASTRUCTURE),
    -50: ("a plugin of the diagnostic crashed", TOOL),
    -51: ("an error was found for which the node should be isolated", HARDWARE),
    -52: ("the diagnostic's binary (nvvs) was not found", TOOL),
    -53: ("the diagnostic was killed", INFRASTRUCTURE),
    -56: ("the driver's management library is not loaded", INFRASTRUCTURE),
    -57: ("the driver does not answer", HARDWARE),
    -58: ("no test is available for these GPUs", CONFIGURATION),
    -66: ("the diagnostic was stopped", INFRASTRUCTURE),
}

_BY_TEST = {
    **dict.fromkeys(("page_retirement_row_remap", "inforom"), HARDWARE),
    **dict.fromkeys(
        ("denylist", "nvml_library", "cuda_main_library", "permissions_and_os_blocks", "persistence_mode")
        + ("environment_variables", "graphics_processes"),
        CONFIGURATION,
    ),
}


def status(word: object) -> str | None:
    """pass, fail, warn, skip, not_run; None for any other word, which is never a pass."""
    return _STATUSES.get(" ".join(str(word).lower().split()))


def test_name(title: object) -> str:
    """The name DCGM 4 uses; a title nobody knows yet becomes a name too."""
    name = re.sub(r"[^a-z0-9]+", "_", str(title).lower()).strip("_")
    return _ALIASES.get(name, name) or "unnamed"


def category(message: str, error_id: int | None, error_category: int | None, severity: int | None) -> str:
    """Whose fault an error is: hardware, configuration, tool, unknown."""
    if severity == 5 or error_id in _CONFIGURATION_IDS:
        return CONFIGURATION
    if error_id in _TOOL_IDS:
        return TOOL
    if error_category in (1, 2, 5, 9, 10, 11, 12, 13, 14, 15):
        return HARDWARE
    if error_category == 3:
        return CONFIGURATION
    if error_category == 7 and error_id == 95:
        return HARDWARE  # the field diagnostic ran, and the part failed it
    if error_category in (4, 6, 7, 8, 16):
        return TOOL
    for kind, words in _WORDS:
        if words.search(message):
            return kind
    return HARDWARE if severity in (2, 6) else UNKNOWN


def test_category(name: str) -> str:
    """Whose fault a failure is of which DCGM says nothing but the test's name."""
    return _BY_TEST.get(name, UNKNOWN)


def return_code(code: int) -> tuple[str, str]:
    """(meaning, category) of a negative return code."""
    return _RETURNS.get(code, ("an error of DCGM", TOOL))


def of_exit_status(status_: int) -> int | None:
    """The return code behind a process's exit status: 205 is -51. None for 0 and for a shell's own statuses."""
    if 128 < status_ < 166:
        return None  # ended by a signal
    return status_ - 256 if 166 <= status_ <= 255 else status_ if status_ < 0 else None
