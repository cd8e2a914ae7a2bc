# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A HealthEvent as decisions need it: its times, entities and class at hand."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.quarantine import moments

DEVICES = ("GPU_UUID", "PCI", "GPU")  # kinds of entities that name a GPU
WHOLE = (*DEVICES, "NVSWITCH", "NIC", "NODE")  # others name a part of one of these
SEVERITY = {"fatal": 0, "error": 1, "warning": 2, "info": 3}
OUR_OWN = ("application", "consequence")  # classes that are not the node's fault
XID_OF_DCGM = ("DCGM_FR_XID_ERROR",)  # the Xid stands in its message only
LOST = "ConnectivityFailure"  # how monitors' checks of their own connection end
VAGUE = ("NONE", "CONTACT_SUPPORT", "UNKNOWN")  # no verdict of the driver

# Of Xids whose event does not say it: other monitors report codes without their class.
# code: (class, codes that bring it about, where those are found)
XIDS: dict[str, tuple[str, tuple[str, ...], str]] = {
    "8": ("application", (), ""),
    "11": ("application", (), ""),
    "13": ("application", (), ""),
    "25": ("application", (), ""),
    "31": ("application", (), ""),
    "32": ("application", (), ""),
    "43": ("application", ("13", "31", "94", "109"), "gpu"),
    "45": ("consequence", ("*",), "node"),
    "63": ("memory", ("48", "94", "171"), "gpu"),
    "68": ("application", (), ""),
    "69": ("application", (), ""),
    "74": ("link", ("79",), "node"),
    "94": ("memory", ("48", "171", "172"), "gpu"),
    "95": ("memory", ("48", "171", "172"), "gpu"),
    "119": ("driver", ("79",), "gpu"),
    "120": ("driver", ("79",), "gpu"),
    "145": ("link", ("149",), "domain"),
    "154": ("recovery", ("*",), "gpu"),
    "155": ("link", ("149",), "domain"),
}
AHEAD = 600 * moments.SECOND  # clocks differ by that much; what is more ahead is wrong

_PCI = re.compile(r"(?:([0-9a-f]{1,8}):)?([0-9a-f]{1,2}):([0-9a-f]{1,2})(?:\.[0-9a-f])?")
_ODD = re.compile(r"[^A-Za-z0-9_.-]+")
_GPU = re.compile(r"[A-Za-z0-9][A-Za-z0-9:._-]{0,63}")  # UUID, PCI address or index
_SECONDS = re.compile(r"[0-9]{1,10}(?:\.[0-9]{1,9})?")
_XID_OF_DCGM = re.compile(r"\bXID\s+(\d{1,4})\b", re.IGNORECASE)


class Item:
    """One event. `at` and `last` are microseconds; `key` puts events in order.

    `mono`: when it was first and last seen in seconds since boot, where no other clock is known.
    """

    __slots__ = (
        "action",
        "at",
        "cause_code",
        "causes",
        "cls",
        "codes",
        "doc",
        "fatal",
        "gpus",
        "key",
        "last",
        "mono",
        "name",
        "node",
        "overrides",
        "received",
        "root",
        "space",
        "spec",
        "within",
    )

    def __init__(self, document: Mapping, now: int):
        spec = document["spec"]
        metadata = spec.get("metadata") or {}
        self.doc, self.spec = document, spec
        self.name, self.node = document["metadata"]["name"], spec["nodeName"]
        received = moments.micros(spec.get("receivedTimestamp"))
        generated = moments.micros(spec.get("generatedTimestamp"))
        # an event that nobody stamped has just been handed over, unless its monitor dated it
        self.received = min(now, received if received is not None else generated if generated is not None else now)
        self.at = self._possible(generated if generated is not None else self.received)
        self.last = max(self.at, self._possible(moments.micros(metadata.get("lastTimestamp")) or self.at))
        first, last = _seconds(metadata.get("kernelTime")), _seconds(metadata.get("lastKernelTime"))
        self.mono = None if generated is not None or first is None else (first, max(first, last or first))
        self.key = (self.at, (spec.get("source") or {}).get("line") or 0, self.name)
        self.codes = tuple(spec.get("errorCode") or ())
        self.space = _space(spec, self.codes)
        self.action = spec.get("recommendedAction") or "UNKNOWN"
        self.fatal = spec["isFatal"] and not spec["isHealthy"]
        self.root: Item = self
        self.gpus: tuple[tuple[str, str], ...] = ()
        self._meaning(metadata)
        told = self.cls == "recovery" and self.space in ("nvml", "dcgm")
        self.overrides = self.action not in VAGUE and (told or metadata.get("overrides") == "true")
        if self.overrides and not self.causes:  # a verdict is about what came before it
            self.causes, self.within = ("*",), "gpu"

    def _meaning(self, metadata: Mapping) -> None:
        self.cls = metadata.get("class") or ""
        self.within = metadata.get("within") or ""
        self.causes = tuple((metadata.get("consequenceOf") or "").split(",")) if metadata.get("consequenceOf") else ()
        self.cause_code = metadata.get("causeCode") or ""
        if self.cls and self.codes != XID_OF_DCGM:
            return
        codes = self.codes if self.space == "xid" else ()
        if self.codes == XID_OF_DCGM:
            codes = _XID_OF_DCGM.findall(self.spec.get("message") or "")
        known = [XIDS.get(code) for code in codes]
        if len(known) == 1 and known[0]:
            cls, causes, within = known[0]
            self.cls = self.cls if self.cls and cls not in OUR_OWN else cls
            self.causes = self.causes or causes
            self.within = self.within or within
        elif known and all(one and one[0] in OUR_OWN for one in known):
            self.cls = "application"

    def _possible(self, moment: int) -> int:
        """A report came in after what it tells of. A clock that is far ahead would otherwise have the last word."""
        return moment if moment <= self.received + AHEAD else self.received

    def date(self, at: int, last: int) -> None:
        self.at, self.last = at, last
        self.key = (at, *self.key[1:])

    @property
    def severity(self) -> int:
        """From 0, the worst."""
        return SEVERITY.get(self.spec.get("severity") or ("fatal" if self.fatal else "error"), 1)

    @property
    def blind(self) -> bool:
        """Whether the monitor could not see. Some call that fatal."""
        state = self.spec.get("state")
        lost = self.cls == "monitor" or self.spec["checkName"].endswith(LOST)
        return state == "unknown" or (lost and state != "healthy" and not self.spec["isHealthy"])

    @property
    def echo(self) -> bool:
        """Whether anything at all may have brought it about, so that it explains nothing itself."""
        return "*" in self.causes

    def locate(self) -> None:
        """Sets `gpus`: the names of the GPUs it concerns."""
        found = entities(self.spec)
        self.gpus = tuple((kind, value) for kind in DEVICES for value in sorted(found.get(kind, ())))

    def title(self) -> str:
        """As `Xid 79`, `DCGM_FR_NVLINK_DOWN` or the check's name."""
        code = ", ".join(self.codes)
        if not code:
            return self.spec["checkName"]
        return {"xid": f"Xid {code}", "sxid": f"SXid {code}"}.get(self.space, code)

    def fault(self) -> str:
        """In one word, as xid-79 or DCGM_FR_NVLINK_DOWN."""
        code = "-".join(self.codes)
        name = f"{self.space}-{code}" if code and self.space in ("xid", "sxid") else code or self.spec["checkName"]
        return _ODD.sub("-", name)[:128]

    def entity(self) -> str:
        """The one GPU that a reset could be of, as nvidia-smi takes it; "" when it is none or several."""
        found: dict[str, set[str]] = {}
        for one in self.spec.get("entitiesImpacted") or ():
            found.setdefault(one["entityType"], set()).add(one["entityValue"].strip())
        names = next((found[kind] for kind in DEVICES if kind in found), set())
        name = names.pop() if len(names) == 1 else ""
        return name if _GPU.fullmatch(name) else ""


def entities(spec: Mapping) -> dict[str, set[str]]:
    """The values by kind, with PCI addresses and UUIDs in one spelling."""
    found: dict[str, set[str]] = {}
    for entity in spec.get("entitiesImpacted") or ():
        kind, value = entity["entityType"], entity["entityValue"].strip()
        if kind == "PCI":
            value = _address(value)
        elif kind == "GPU_UUID":
            value = value.lower()
        found.setdefault(kind, set()).add(value)
    return found


def _space(spec: Mapping, codes: tuple[str, ...]) -> str:
    """Monitors that know no code spaces report the Xids of GPUs as bare numbers."""
    space = spec.get("codeSpace") or "other"
    numbers = codes and all(code.isdecimal() and len(code) <= 3 for code in codes)
    return "xid" if space == "other" and numbers and spec["componentClass"] == "GPU" else space


def _address(text: str) -> str:
    match = _PCI.fullmatch(text.lower())
    if not match:
        return text.lower()
    domain, bus, device = (int(part or "0", 16) for part in match.groups())
    return f"{domain:04x}:{bus:02x}:{device:02x}"


def _seconds(text: str | None) -> float | None:
    return float(text) if text and _SECONDS.fullmatch(text) else None
