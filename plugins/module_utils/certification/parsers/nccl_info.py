# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What NCCL itself says with NCCL_DEBUG=INFO: version, size of the communicators, and which way the data goes.

node-a:4766:4780 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eth0:192.0.2.10<0>
node-a:4766:4780 [0] NCCL INFO Channel 00/0 : 7[7] -> 8[0] [send] via NET/IB/0/GDRDMA
node-a:4766:4780 [0] NCCL INFO Channel 00 : 1[1] -> 0[0] via SHM/direct/direct
"""

from __future__ import annotations

import re

_LINE = re.compile(
    r"(?:(?P<host>[A-Za-z0-9][\w.-]{0,250}):(?P<pid>\d{1,10}):(?P<tid>\d{1,10}) (?:\[(?P<device>-?\d{1,9})\] )?"
    r"(?:\S.{0,300}? )?)?[NR]?CCL (?P<level>INFO|WARN|ERROR|TRACE) (?P<message>.*)"
)
_CHANNEL = re.compile(
    r"Channel (?P<channel>\d{1,6})(?:/\d{1,6})? : (?P<a>\d{1,9})\[[^\]]{0,40}\] -> (?P<b>\d{1,9})\[[^\]]{0,40}\]"
    r"(?: \[(?:send|receive)\])? via (?P<via>\S.{0,120})"
)
_NETWORK = re.compile(r"(?:Using network |Assigned NET plugin )(?P<name>[\w ./-]{1,60}?)(?: to comm\b.*)?\s*\Z")
_ADAPTER = re.compile(r"\[\d{1,4}\](?P<name>[\w.-]{1,60}):(?P<port>\d{1,3})/(?P<link>\w{1,20})")
_INTERFACE = re.compile(r"\[\d{1,4}\](?P<name>[\w.-]{1,60}):")
_PROVIDER = re.compile(r"NET/OFI Selected provider is (?P<name>[\w;-]{1,40})", re.IGNORECASE)
_VERSION = re.compile(r"\b(?P<kind>[NR]CCL) version\s*:? *(?P<version>\d{1,4}\.\d{1,4}[\w.+-]{0,60})")
_RANKS = re.compile(r"\b(?:nranks|nRanks) (?P<ranks>\d{1,9})\b")

# the names network plugins give themselves
_PLUGINS = (
    (re.compile(r"socket\Z", re.IGNORECASE), "NET/Socket"),
    (re.compile(r"g?ib(?:ext.*)?\Z", re.IGNORECASE), "NET/IB"),
    (re.compile(r"(?:aws )?libfabric\Z|(?:aws-)?ofi\Z|efa\Z", re.IGNORECASE), "NET/OFI"),
)
_LOCAL = {"P2P", "SHM", "NVLS", "MNNVL", "COLLNET", "CE"}
_SAME = {
    "ib": "NET/IB",
    "infiniband": "NET/IB",
    "roce": "NET/IB",
    "rdma": "NET/IB",
    "socket": "NET/Socket",
    "tcp": "NET/Socket",
    "efa": "NET/OFI",
    "ofi": "NET/OFI",
    "libfabric": "NET/OFI",
    "nvlink": "P2P",
}


def read(text: str) -> re.Match | None:
    """A line of NCCL's log inside `text`, with groups host, pid, tid, device, level, message."""
    return _LINE.search(text)


def version(text: str) -> tuple[str, str] | None:
    """("NCCL" or "RCCL", version) where a line tells."""
    match = _VERSION.search(text)
    return (match["kind"], match["version"]) if match else None


def version_of_code(code: int) -> str:
    """22807 is 2.28.7, and 2804 was 2.8.4."""
    major = 10000 if code >= 10000 else 1000
    return f"{code // major}.{code % major // 100}.{code % 100}"


def transport(name: str) -> str:
    """The one name of a transport: `IB`, `roce` and `NET/IBext_v8` are all NET/IB."""
    name = name.strip()
    if name.lower() in _SAME:
        return _SAME[name.lower()]
    if name.upper().startswith("NET/"):
        plugin = name[4:].strip()
        return next((known for pattern, known in _PLUGINS if pattern.match(plugin)), f"NET/{plugin}")
    known = next((known for pattern, known in _PLUGINS if pattern.match(name)), None)
    return known or (name.upper() if name.upper() in _LOCAL else f"NET/{name}")


class Transports:
    """Collects the lines of one run; `as_list`, `network` give what it used."""

    def __init__(self) -> None:
        self._used: dict[str, dict] = {}
        self._networks: dict[str, set[str]] = {}
        self._adapters: dict[str, dict[str, str]] = {}
        self._interfaces: set[str] = set()
        self.hosts: set[str] = set()
        self.providers: set[str] = set()  # of libfabric
        self.sizes: set[int] = set()  # ranks of the communicators
        self.nodes: int | None = None
        self.lines = 0

    def add(self, host: str, message: str) -> None:
        self.lines += 1
        if host:
            self.hosts.add(host)
        channel = _CHANNEL.search(message) if " via " in message else None
        if channel:
            self._channel(channel)
            return
        network = _NETWORK.match(message)
        if network:
            plugin = network["name"].strip()
            self._networks.setdefault(transport(f"NET/{plugin}"), set()).add(host)
        elif provider := _PROVIDER.match(message):
            self.providers.add(provider["name"].lower())
        elif message.startswith(("NET/IB", "NET/gIB")) and "Using [" in message:
            found = self._adapters.setdefault(host, {})
            found.update({f"{match['name']}:{match['port']}": match["link"] for match in _ADAPTER.finditer(message)})
        elif message.startswith("NET/Socket") and "Using [" in message:
            self._interfaces.update(match["name"] for match in _INTERFACE.finditer(message))
        elif message.startswith(("Connected NVLS tree", "NVLS comm ")):
            self._use("NVLS")
        ranks = _RANKS.search(message) if "Init COMPLETE" in message or "nNodes" in message else None
        if ranks:
            self.sizes.add(int(ranks["ranks"]))
            nodes = re.search(r"\bnNodes (\d{1,9})\b", message)
            if nodes:
                self.nodes = max(self.nodes or 0, int(nodes[1]))
            if re.search(r"\bMNNVL [1-9]", message):
                self._use("MNNVL")

    def _use(self, kind: str) -> dict:
        return self._used.setdefault(kind, {"channels": set(), "pairs": set(), "lines": 0, "gdr": 0, "via": set()})

    def _channel(self, match: re.Match) -> None:
        via = match["via"].strip()
        if via == "direct shared memory":
            kind = "SHM"
        elif via.startswith("NET/"):
            kind = transport("NET/" + re.match(r"NET/([^/]*)", via)[1])
        elif "MNNVL" in via:
            kind = "MNNVL"
        else:
            kind = re.match(r"[\w-]+", via)[0].upper() if re.match(r"[\w-]+", via) else "UNKNOWN"
        used = self._use(kind)
        used["lines"] += 1
        used["channels"].add(int(match["channel"]))
        used["gdr"] += "GDRDMA" in via
        if len(used["pairs"]) < 65536:
            used["pairs"].add((int(match["a"]), int(match["b"])))
        if len(used["via"]) < 32:
            used["via"].add(via)

    def as_list(self) -> list[dict]:
        """[{kind, channels, pairs, via: [...], gdr}]: how many channels and pairs of ranks go which way; `gdr`, for
        networks, is how many of the connections read and write GPU memory directly, against `connections`."""
        result = []
        for kind, used in sorted(self._used.items()):
            entry = {"kind": kind, "channels": len(used["channels"]), "pairs": len(used["pairs"])}
            entry["via"] = sorted(used["via"])
            if kind.startswith("NET/"):
                entry["connections"], entry["gdr"] = used["lines"], used["gdr"]
            result.append(entry)
        return result

    @property
    def kinds(self) -> set[str]:
        """What channels go over; where no channel is told, the network that was chosen."""
        return set(self._used) or set(self._networks)

    @property
    def networks(self) -> dict[str, list[str]]:
        """{network: [hosts that chose it]}."""
        return {name: sorted(filter(None, hosts)) for name, hosts in sorted(self._networks.items())}

    @property
    def adapters(self) -> dict[str, list[str]]:
        """{host: ["mlx5_0:1/IB", ...]}."""
        return {
            host: [f"{name}/{link}" for name, link in sorted(found.items())]
            for host, found in sorted(self._adapters.items())
        }

    @property
    def interfaces(self) -> list[str]:
        return sorted(self._interfaces)
