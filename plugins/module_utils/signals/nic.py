# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages of network drivers (mlx5, and the kernel's transmit watchdog for any) that say a NIC is ill."""

from __future__ import annotations

import re
from typing import NamedTuple

from ansible_collections.goodput.fleet.plugins.module_utils.signals import event
from ansible_collections.goodput.fleet.plugins.module_utils.signals.kernel_signal import Signal

CHECK = "SysLogsNICDriverError"


class Pattern(NamedTuple):
    """`needles`: a message that fits `text` has one of these in it, in lower case."""

    code: str
    fatal: bool
    severity: str
    text: str
    needles: tuple[bytes, ...]
    title: str


# fatal: the NIC does no work any more. The others recover by themselves or warn.
PATTERNS = (
    Pattern(
        "cmd_exec_timeout",
        True,
        "fatal",
        r"timeout\. Will cause a leak of a command|cmd_exec timeout",
        (b"will cause a leak of", b"cmd_exec timeout"),
        "the firmware does not answer commands",
    ),
    Pattern(
        "health_poll_failed",
        True,
        "fatal",
        r"device's health compromised\b.*reached miss count",
        (b"health compromised",),
        "the firmware's heartbeat stopped",
    ),
    Pattern(
        "unrecoverable_err",
        True,
        "fatal",
        r"\bunrecoverable hardware error\b",
        (b"unrecoverable hardware error",),
        "unrecoverable hardware error",
    ),
    Pattern(
        "fatal_sensor",
        False,
        "error",
        r"\bpoll_health\b.*\bFatal error \d+ detected",
        (b"poll_health",),
        "the NIC reports a fatal state and its driver tries to recover it",
    ),
    Pattern(
        "netdev_watchdog",
        False,
        "warning",
        r"NETDEV WATCHDOG:.*transmit queue\b.*timed out|\bTX timeout detected",
        (b"netdev watchdog", b"tx timeout detected"),
        "a transmit queue stood still and its driver recovers it",
    ),
    Pattern(
        "pci_power_insufficient",
        False,
        "warning",
        r"Detected insufficient power on the PCIe slot",
        (b"detected insufficient power",),
        "the slot gives too little power",
    ),
    Pattern(
        "port_module_high_temp",
        False,
        "warning",
        r"Port module event.*High Temperature",
        (b"high temperature",),
        "the transceiver is too hot",
    ),
    Pattern(
        "module_unplugged",
        False,
        "warning",
        r"Port module event.*Cable unplugged",
        (b"cable unplugged",),
        "cable or transceiver unplugged",
    ),
    Pattern(
        "access_reg_failed",
        False,
        "info",
        r"\bACCESS_REG\b.*\bfailed",
        (b"access_reg",),
        "a register access was refused, most often to a monitoring tool",
    ),
)
_COMPILED = [(pattern, re.compile(pattern.text, re.IGNORECASE | re.DOTALL)) for pattern in PATTERNS]
_DEVICE = re.compile(r"\bmlx5_core ([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])", re.IGNORECASE)
_WATCHDOG = re.compile(r"NETDEV WATCHDOG:\s*(?:CPU: \d+:\s*)?([\w.:@-]{1,32})\s*\(([\w-]{1,32})\)", re.IGNORECASE)
_MODULE = re.compile(r"Port module event[^:]*: module (\d{1,3})\b", re.IGNORECASE)


def read(body: str) -> Signal | None:
    """Of a message that begins with `mlx5` or `NETDEV WATCHDOG`. None: nothing that asks for attention."""
    found = next((pattern for pattern, compiled in _COMPILED if compiled.search(body)), None)
    if found is None:
        return None
    entities, metadata = [], {"class": "hardware"}
    device, watchdog, module = _DEVICE.search(body), _WATCHDOG.search(body), _MODULE.search(body)
    if device:
        # the ports of a NIC differ by function, which the PCI entity leaves out
        entities.append(("NIC", device[1].lower()))
        pci = event.pci(device[1])
        entities += [("PCI", pci)] if pci else []
    if watchdog:
        entities.append(("NETDEV", watchdog[1]))
        metadata["driver"] = watchdog[2]
    if module:
        entities.append(("PORT_MODULE", str(int(module[1]))))
    return Signal(
        check=CHECK,
        component="NIC",
        space="nic",
        code=found.code,
        entities=tuple(entities),
        action="REPLACE_VM" if found.fatal else "NONE",
        fatal=found.fatal,
        severity=found.severity,
        message=f"NIC, {found.title}: {' '.join(body.split())}",
        metadata=metadata,
    )
