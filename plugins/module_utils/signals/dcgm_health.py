# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""DCGM's health report (`dcgmi health -c`, with or without `-j`) to HealthEvents.

    result = dcgm_health.parse(text, tables.load_catalog(layers), node="gpu-7", boot_id="…", received="2026-…Z")
    result["events"]     one for each error of each entity; one healthy event when DCGM calls all healthy; one with
                         state unknown when DCGM cannot be asked or its report cannot be read
    result["unparsed"]   [{line, text, reason}]

An Xid that DCGM reports has the code and the meaning of the Xid. A watch that only warns takes nothing out, whatever
the table says of the error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.signals import dcgm_report
from ansible_collections.goodput.fleet.plugins.module_utils.signals.dcgm_messages import Messages
from ansible_collections.goodput.fleet.plugins.module_utils.signals.dcgm_table import Incident, Report
from ansible_collections.goodput.fleet.plugins.module_utils.signals.observer import Observer, decoded, expected, uuids
from ansible_collections.goodput.fleet.plugins.module_utils.signals.tables import Tables

AGENT = "dcgm"
CHECK = "GpuHealthWatch"  # of all watches together
BLIND = "GpuDcgmConnectivityFailure"
COUNT = "GpuCount"
VALUES = ("Healthy", "Warning", "Failure")
CONNECTION = "DCGM_FR_HOSTENGINE_CONN"

# group of entities: component class, entity type
KINDS = {
    "gpu": ("GPU", "GPU"),
    "vgpu": ("GPU", "VGPU"),
    "gpu_i": ("GPU", "GPU_I"),
    "gpu_ci": ("GPU", "GPU_CI"),
    "nvswitch": ("NVSWITCH", "NVSWITCH"),
    "switch": ("NVSWITCH", "NVSWITCH"),
    "link": ("NVLINK", "NVLINK"),
    "connectx": ("NIC", "CONNECTX"),
    "cpu": ("CPU", "CPU"),
    "cpu core": ("CPU", "CPU_CORE"),
    "cpu_core": ("CPU", "CPU_CORE"),
}
_CONNECTION = re.compile(
    r"connect|host ?engine|time[d ]*-?out|refused|unreachable|deadline|not currently loaded|uninitialized",
    re.IGNORECASE,
)
# DCGM's own return values that tell of a GPU and not of DCGM
_GPU_FAULTS = (
    (re.compile(r"\bGPU is lost\b", re.IGNORECASE), "DCGM_FR_FALLEN_OFF_BUS"),
    (re.compile(r"\bGPU requires reset\b", re.IGNORECASE), "DCGM_FR_GPU_RECOVERY_RESET"),
)
_XID = re.compile(r"\bXID(?:\s+error)?\s*:?\s*(\d{1,6})\b", re.IGNORECASE)
_SXID = re.compile(r"\bSXID(?:\s+error)?\s*:?\s*(\d{1,6})\b", re.IGNORECASE)
_LINK = re.compile(r"\b(?:link|port|NvLink)\s+(\d{1,4})\b", re.IGNORECASE)
_GPU = re.compile(r"\bGPU:?\s*(\d{1,4})\b", re.IGNORECASE)


def parse(
    given: object,
    tables: Tables,
    *,
    node: str = "",
    boot_id: str | None = None,
    received: str | None = None,
    source_name: str = "dcgmi health",
    expected_gpus: int | None = None,
    index_to_uuid: Mapping | None = None,
) -> dict:
    """Of a text, bytes, lines, or the JSON as data. Raises InvalidDocument for options that cannot be, never for what
    DCGM printed.

    `expected_gpus` counts where the output of `dcgmi discovery -l` stands beside the report, which itself does not tell
    how many GPUs DCGM sees, nor which: it has DCGM's numbers only. `index_to_uuid` has the UUIDs where that output is
    not there.
    """
    observer = Observer(AGENT, node=node, boot_id=boot_id, received=received, source=source_name)
    count = expected(expected_gpus)
    report = dcgm_report.read_data(given) if isinstance(given, Mapping) else dcgm_report.read(decoded(given))
    _Teller(observer, tables, uuids(index_to_uuid or {})).tell(report, count)
    return observer.result(report.lines)


class _Teller:
    def __init__(self, observer: Observer, tables: Tables, known: dict[str, str]):
        self._observer, self._tables = observer, tables
        self._uuids = known
        self._devices: dict[str, dict[str, str]] = {}
        self._dcgm = tables.of("dcgm")
        self._messages = Messages(self._dcgm)
        self._checks = {watch["name"]: watch["checkName"] for watch in self._dcgm.watches}

    def tell(self, report: Report, expected_gpus: int | None) -> None:
        observer, self._devices = self._observer, report.devices
        for line, text, reason in report.unreadable:
            observer.unparsed.add(line, text, reason)
        for incident in report.incidents:
            self._incident(incident)
        self._errors(report.errors)
        counted = self._count(report.gpus_found, expected_gpus)
        if report.watches and not any(report.watches.values()):
            observer.blind(BLIND, "no health watch of DCGM is on, so it sees nothing")
        if not counted and all(event["spec"]["isHealthy"] for event in observer.events):
            self._overall(report)

    def _overall(self, report: Report) -> None:
        """What remains to be said where nothing in the report says more."""
        observer, value = self._observer, report.overall
        place = {"line": report.overall_line}
        if observer.unparsed.total:
            observer.blind(BLIND, "DCGM gave a health report that cannot be read")
        elif not report.found:
            # the count of GPUs and the list of watches are asked for their own sake, too
            if not report.watches and report.gpus_found is None:
                observer.blind(BLIND, "DCGM gave no health report")
        elif value == "Healthy":
            observer.well(CHECK, "DCGM calls everything it watches healthy", **place)
        elif value in ("Warning", "Failure"):
            self._unknown(
                CHECK, "GPU", [], value, f"DCGM says {value} and does not say what is wrong", report.overall_line
            )
        else:
            observer.blind(BLIND, f"DCGM says {value or 'nothing'} of the node's health", **place)

    def _errors(self, errors: list[tuple[int | None, str]]) -> None:
        """dcgmi says one failure in several lines, so those that only say that it saw nothing are one event."""
        blind = []
        for line, text in errors:
            code = next((code for pattern, code in _GPU_FAULTS if pattern.search(text)), None)
            if code is None:
                blind.append((line, text))
                continue
            gpu, place = _GPU.search(text), {"line": line, "text": text}
            entities = self._entities("gpu", gpu[1]) if gpu else []
            meaning = self._dcgm.meaning(code)
            self._observer.tell(
                meaning, check=CHECK, component="GPU", space="dcgm", message=text, entities=entities, **place
            )
        if not blind:
            return
        text = " ".join(text for _line, text in blind)
        place = {"line": blind[0][0], "text": text}
        if _CONNECTION.search(text):
            self._observer.blind(BLIND, f"DCGM cannot be reached: {text}", code=CONNECTION, space="dcgm", **place)
        else:
            self._observer.blind(BLIND, f"DCGM did not check: {text}", **place)

    def _count(self, found: int | None, wanted: int | None) -> bool:
        if found is None or wanted is None or found == wanted:
            return False
        code = "GPU_COUNT_LOW" if found < wanted else "GPU_COUNT_HIGH"
        meaning = self._tables.of("nvml").meaning(code)
        message = f"DCGM sees {found} GPUs, the node has {wanted}"
        self._observer.tell(meaning, check=COUNT, component="GPU", space="nvml", message=message, position=message)
        return True

    def _incident(self, incident: Incident) -> None:
        component, _kind = KINDS.get(incident.group.lower(), ("NODE", ""))
        entities = self._entities(incident.group, incident.entity)
        check = self._check(incident.system)
        if incident.value not in VALUES:
            said = f"{incident.group} {incident.entity} {incident.system}: {incident.value or 'no value'}"
            self._observer.blind(
                check,
                f"DCGM does not say how it is: {' '.join(said.split())}",
                component=component,
                entities=entities,
                line=incident.line,
                text=incident.text,
            )
        elif incident.value == "Healthy":
            self._observer.well(
                check,
                f"DCGM calls {incident.group} {incident.entity} healthy",
                component=component,
                entities=entities,
                line=incident.line,
            )
        elif not incident.text:
            what = " ".join(f"{incident.group} {incident.entity} {incident.system}".split())
            self._unknown(
                check, component, entities, incident.value, f"DCGM says {incident.value} of {what}", incident.line
            )
        else:
            for code, texts in self._grouped(incident.text):
                self._message(incident, check, component, entities, code, texts)

    def _grouped(self, text: str) -> list[tuple[str | None, list[str]]]:
        """The messages of one watch; those of one error together, such as those of eighteen links."""
        grouped: dict[object, list[str]] = {}
        for number, (code, message) in enumerate(self._messages.split(text)):
            grouped.setdefault((code, _xid(code, message)) if code else number, []).append(message)
        return [(key[0] if isinstance(key, tuple) else None, texts) for key, texts in grouped.items()]

    def _message(
        self, incident: Incident, check: str, component: str, entities: list, code: str | None, texts: list[str]
    ) -> None:
        first = texts[0]
        space, number = _xid(code, first)
        metadata = {"watchResult": incident.value}
        if number:
            meaning = self._tables.meaning(space, number)
            metadata["dcgmCode"] = code or ("DCGM_FR_XID_ERROR" if space == "xid" else "DCGM_FR_SXID_ERROR")
        else:
            meaning = self._dcgm.meaning(code or "")
            if check == CHECK and code:
                check = self._check(str(meaning.entry.get("watch", "")).partition(",")[0])
        links = sorted({int(link) for text in texts for link in _LINK.findall(text)}) if meaning.cls == "link" else []
        if len(texts) > 1:
            metadata["count"] = str(len(texts))
        warns = incident.value == "Warning" and not number and meaning.fatal
        more = f" (and {len(texts) - 1} more of it)" if len(texts) > 1 else ""
        what = f"{'Xid' if space == 'xid' else 'SXid'} {number}, {meaning.title}: " if number else ""
        self._observer.tell(
            meaning,
            check=check,
            component=component,
            space=space or "dcgm",
            code=bool(number or code),
            message=f"{what}{first}{more}",
            entities=entities + [("NVLINK", str(link)) for link in links],
            fatal=False if warns else None,
            severity="warning" if warns else None,
            metadata=metadata,
            line=incident.line,
            text=f"{incident.system}: {incident.value} {incident.text}",
        )

    def _unknown(self, check: str, component: str, entities: list, value: str, message: str, line: int | None) -> None:
        self._observer.tell(
            self._dcgm.meaning(""),
            check=check,
            component=component,
            space="dcgm",
            code=False,
            message=message,
            entities=entities,
            severity="warning" if value == "Warning" else None,
            metadata={"watchResult": value},
            line=line,
            text=message,
        )

    def _entities(self, group: str, entity: str) -> list[tuple[str, str]]:
        kind = KINDS.get(group.lower(), ("", group.upper() or "ENTITY"))[1]
        entities = [(kind, entity)] if entity and group.lower() not in ("none", "global") else []
        if kind != "GPU":
            return entities
        known = dict(self._devices.get(entity, {}))
        if entity in self._uuids:
            known["GPU_UUID"] = self._uuids[entity]
        return entities + list(known.items())

    def _check(self, system: str) -> str:
        """`Memory system` is the watch MEM. Xids that concern all watches have none, and print as `Internal error`."""
        name = system.strip().upper().removesuffix(" SYSTEM").replace("MEMORY", "MEM")
        name = {"NVSWITCH NF": "NVSWITCH_NONFATAL", "NVSWITCH F": "NVSWITCH_FATAL", "NVSWITCH": "NVSWITCH_FATAL"}.get(
            name, name
        )
        return self._checks.get(name, CHECK)


def _xid(code: str | None, text: str) -> tuple[str, str]:
    """("xid", number) of a message that is about one; ("", "") of others."""
    if code in (None, "DCGM_FR_XID_ERROR"):
        found = _XID.search(text)
        if found:
            return "xid", str(int(found[1]))
    if code in (None, "DCGM_FR_SXID_ERROR"):
        found = _SXID.search(text)
        if found:
            return "sxid", str(int(found[1]))
    return "", ""
