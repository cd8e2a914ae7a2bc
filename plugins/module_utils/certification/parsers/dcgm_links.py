# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two JSON outputs that come with a diagnostic: `dcgmi nvlink -e -j`, and the PCIe test's own bandwidth program."""

from __future__ import annotations

import re

from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers.outcome import (
    HARDWARE,
    Outcome,
    clip,
    metric,
    number,
)

ROOTS = ("body", "GPUs")
_BANDWIDTHS = {"maxRxBw": "rx_bandwidth", "maxTxBw": "tx_bandwidth", "maxBidirBw": "bidirectional_bandwidth"}


def read(outcome: Outcome, document: dict, line: int, host: str | None) -> None:
    if isinstance(document.get("body"), dict):
        _errors(outcome, document, line, host)
    elif isinstance(document.get("GPUs"), list):
        _bandwidths(outcome, document["GPUs"], line, host)


def _errors(outcome: Outcome, document: dict, line: int, host: str | None) -> None:
    """Error counters of one GPU's links, which the driver prints as texts."""
    header = document.get("header")
    names = [clip(item, 100) for item in header] if isinstance(header, list) else []
    entity = next((name for name in names if re.fullmatch(r"GPU \d+|NvSwitch \d+", name)), None)
    measurements = []
    for link, entry in document["body"].items():
        children = entry.get("children") if isinstance(entry, dict) else None
        for name, child in children.items() if isinstance(children, dict) else ():
            value = number(child.get("value")) if isinstance(child, dict) else None
            if value is None:
                continue
            item = {"link": clip(link, 50), "name": clip(name, 100), "entity": entity, "value": value, "unit": "errors"}
            measurements.append(item)
            # corrected and retried errors are for a bound to judge; a recovery took the link down
            if value > 0:
                outcome.find(
                    "nvlink-errors",
                    f"{entity or 'A GPU'}, {item['link']}: {value:.0f} of {item['name']}",
                    severity="warning",
                    scope="gpu",
                    host=host,
                    entity=entity,
                    line=line,
                    category=HARDWARE,
                )
    if measurements:
        _run(outcome, "dcgm-nvlink-errors", measurements, host, {
            "nvlink.errors": metric(sum(item["value"] for item in measurements), "errors")
        })  # fmt: skip


def _bandwidths(outcome: Outcome, gpus: list, line: int, host: str | None) -> None:
    measurements = []
    for gpu in gpus:
        if not isinstance(gpu, dict):
            continue
        for key, name in _BANDWIDTHS.items():
            value = number(gpu.get(key))
            if value is not None:
                entity = gpu.get("gpuId")
                measurements.append({"name": name, "gpu": entity, "line": line, "value": value, "unit": "GB/s"})
    metrics = {}
    for name in _BANDWIDTHS.values():
        values = [item["value"] for item in measurements if item["name"] == name]
        if values:
            metrics[f"pcie.{name}.min"] = metric(min(values), "GB/s")
    if measurements:
        _run(outcome, "dcgm-pcie-bandwidth", measurements, host, metrics)


def _run(outcome: Outcome, test: str, measurements: list[dict], host: str | None, metrics: dict) -> None:
    outcome.runs.append(
        {
            "test": test,
            "format": "json",
            "measurements": measurements,
            "metrics": metrics,
            "ranks": [],
            "hosts": [host] if host else [],
            "transports": [],
        }
    )
