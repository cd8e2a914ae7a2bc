# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines of perftest that say what went wrong."""

from __future__ import annotations

import re
from typing import NamedTuple

from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers.outcome import (
    CONFIGURATION,
    HARDWARE,
    INFRASTRUCTURE,
    UNKNOWN,
)


class Fault(NamedTuple):
    code: str
    message: str
    scope: str
    category: str
    entity: str | None = None


def _rule(words: str, code: str, scope: str, category: str, message: str) -> tuple[re.Pattern[str], Fault]:
    return re.compile(words, re.IGNORECASE), Fault(code, message, scope, category)


_RULES = (
    _rule(
        r"Completion with error at (?P<entity>client|server)",
        "completion-error",
        "pair",
        UNKNOWN,
        "An operation failed: the link, the peer, or what was asked of it",
    ),
    _rule(
        r"Couldn't connect to (?P<entity>\S{1,100}?):\d",
        "connection-failed",
        "pair",
        INFRASTRUCTURE,
        "The server could not be reached",
    ),
    _rule(
        r"Unable to (?:open file descriptor for socket|init the socket) connection|Unable to connect the HCA"
        r"|Failed to modify QP",
        "connection-failed",
        "pair",
        INFRASTRUCTURE,
        "The two ends could not be connected: address, GID index, MTU, or the fabric",
    ),
    _rule(
        r"Unable to perform rdma_(?:client|server) function|Unexpected CM event|rdma_resolve_\w+ failed",
        "connection-failed",
        "pair",
        INFRASTRUCTURE,
        "The two ends could not be connected with the connection manager",
    ),
    _rule(
        r"Couldn't read remote address|Failed to exchange da[tae]+ between|Failed to close connection between",
        "peer-lost",
        "pair",
        INFRASTRUCTURE,
        "The other end went away",
    ),
    _rule(
        r"IB device (?P<entity>\S{1,60}) not found|Unable to find the Infiniband/RoCE device"
        r"|No IB devices found|Did not detect devices",
        "no-device",
        "node",
        INFRASTRUCTURE,
        "There is no such network adapter",
    ),
    _rule(
        r"Port number \d+ state is (?P<entity>\w+)",
        "port-down",
        "node",
        HARDWARE,
        "The port of the network adapter is not up",
    ),
    _rule(
        r"Couldn't (?:get context|allocate (?:PD|MR)|create (?:QP|CQ))|Failed to (?:create QP|initialize RDMA)"
        r"|failed to create mr",
        "setup-failed",
        "node",
        CONFIGURATION,
        "The adapter could not be set up: limit of locked memory, driver for GPU memory, or rights",
    ),
    _rule(
        r"Requested mtu is higher|Invalid MTU|Failed to get gid|Invalid Command line|should be between",
        "invalid-argument",
        "run",
        CONFIGURATION,
        "What was asked for is refused",
    ),
    _rule(
        r"cuInit\S* (?:failed|returned)|CUDA (?:device|error).{0,60}(?:not|fail)|Failed to init GPU",
        "gpu-setup-failed",
        "node",
        UNKNOWN,
        "GPU memory could not be used",
    ),
    _rule(
        r"(?:BW|Msg rate|bandwidth).{0,60}\bbelow\b|below (?:the )?(?:bw|bandwidth|msg rate) limit",
        "tool-minimum-missed",
        "run",
        UNKNOWN,
        "The test itself says that the result is under the limit it was given",
    ),
)
_STATUS = re.compile(
    r"Failed status[ -](?P<status>\d{1,3}|[a-z][\w -]{1,60}?)(?: \((?P<code>\d{1,3})\))?(?:: wr_id|\s*\Z)"
)
_MEANING = {
    "5": "the queue was flushed",
    "9": "the peer refuses the operation",
    "10": "the peer refuses the memory access",
    "12": "the peer does not answer, transport retries are exhausted",
    "13": "the peer is not ready, receiver retries are exhausted",
}


def of_line(text: str) -> Fault | None:
    """What the line says went wrong, if it does."""
    status = _STATUS.search(text)
    if status:
        code = status["code"] or status["status"]
        said = _MEANING.get(code, "see the completion status of the verbs")
        return Fault("completion-status", f"Completion status {code}: {said}", "pair", UNKNOWN, f"status {code}")
    for pattern, fault in _RULES:
        match = pattern.search(text)
        if match:
            return fault._replace(entity=match.groupdict().get("entity"))
    return None
