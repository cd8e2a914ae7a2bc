# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One run of a collective: what its output tells, and the dict a caller gets."""

from __future__ import annotations

from dataclasses import dataclass, field

from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers import nccl_info, nccl_table
from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers.nccl_table import (
    IN_PLACE,
    OUT_OF_PLACE,
)
from ansible_collections.goodput.fleet.plugins.module_utils.certification.parsers.outcome import median, metric

PLATEAU = 256 << 20  # bytes; bandwidth no longer grows with the size from about here

# these cannot work in place, so that the values they leave there are not checked and mean nothing
_NEVER_IN_PLACE = {"alltoall", "alltoallv", "sendrecv"}
# busbw / algbw by the number of ranks; the others have a fixed ratio
_RATIO = {
    "all_reduce": lambda n: 2 * (n - 1) / n,
    "all_gather": lambda n: (n - 1) / n,
    "reduce_scatter": lambda n: (n - 1) / n,
    "alltoall": lambda n: (n - 1) / n,
}


@dataclass
class Run:
    """`config`: threads, gpusPerThread, minBytes, maxBytes, step {value, unit}, warmupIters, iters, aggIters, check,
    graph. `bounds` and `average` are the footer's {count, ok} and {value, ok}."""

    line: int | None
    stream: str
    source: str = "table"
    test: str = ""
    version: str | None = None
    nccl: str | None = None
    stage: int = 0
    config: dict = field(default_factory=dict)
    ranks: list[dict] = field(default_factory=list)
    ranks_cut: bool = False
    header: nccl_table.Header | None = None
    rows: list[dict] = field(default_factory=list)
    bounds: dict | None = None
    average: dict | None = None
    started: bool = False
    concluded: bool = False
    whole: bool = True
    mixed: int = 1  # runs whose lines cannot be told apart
    last_line: int | None = None
    transports: nccl_info.Transports = field(default_factory=nccl_info.Transports)

    @property
    def empty(self) -> bool:
        return not (self.config or self.ranks or self.header or self.rows or self.average)

    @property
    def bare(self) -> bool:
        """Only a beginning."""
        return not (self.ranks or self.header or self.rows or self.average)

    @property
    def complete(self) -> bool:
        """The footer stands there; a process that hangs at its end has measured all the same."""
        return self.average is not None and self.whole

    @property
    def processes(self) -> set[tuple]:
        return {(rank["host"], rank["pid"]) for rank in self.ranks}

    @property
    def twice(self) -> set[int]:
        """Numbers of ranks that several processes claim: they do not know of each other."""
        claims: dict[tuple, set] = {}
        for rank in self.ranks:
            claims.setdefault(rank["rank"], set()).add((rank["host"], rank["pid"], rank["device"]))
        return {number for number, who in claims.items() if len(who) > 1}

    @property
    def rank_count(self) -> int | None:
        """Ranks that took part together, None where nothing tells."""
        numbers = {rank["rank"] for rank in self.ranks}
        if self.twice:
            return len(numbers)
        each = self.config.get("threads", 1) * self.config.get("gpusPerThread", 1)
        if not numbers:
            return max(self.transports.sizes) if self.transports.sizes else None
        if self.ranks_cut or self.source == "json":
            # the list holds the first GPUs of each process
            return max(len(numbers), len(self.processes) * each)
        if not self.config:
            return max(numbers) + 1  # the beginning of the output is lost
        return len(numbers)

    @property
    def hosts(self) -> list[str]:
        return sorted({rank["host"] for rank in self.ranks} or self.transports.hosts)

    @property
    def hosts_known(self) -> bool:
        """All hosts are told: the list of ranks was not cut."""
        count = self.rank_count
        if not self.ranks:
            return bool(self.transports.hosts)
        return self.ranks_cut or self.source == "json" or len({rank["rank"] for rank in self.ranks}) == count

    @property
    def checked(self) -> list[str]:
        """Directions whose values were compared with what they must be."""
        if self.config.get("check") is False:
            return []
        sides = []
        for side in (OUT_OF_PLACE, IN_PLACE):
            if side == IN_PLACE and self.test in _NEVER_IN_PLACE:
                continue
            cells = [row[side] for row in self.rows if side in row]
            if any(cell.get("wrong") is not None or cell.get("error") is not None for cell in cells):
                sides.append(side)
        return sides

    @property
    def single(self) -> bool:
        """Nothing was sent: one rank, where bus bandwidth is 0 by definition."""
        if self.rank_count is not None:
            return self.rank_count == 1
        ratios = [row[side] for row in self.rows for side in (OUT_OF_PLACE, IN_PLACE) if side in row]
        moved = [cell for cell in ratios if cell["algbw"]]
        return bool(moved) and all(cell["busbw"] == 0 for cell in moved) and max(c["algbw"] for c in moved) > 1

    @property
    def measured(self) -> bool:
        return bool(self.rows) and not self.single and self.mixed == 1 and not self.twice

    def wrong(self) -> list[dict]:
        """[{size, side, wrong}] of the checked directions."""
        sides = self.checked
        return [
            {"size": row["size"], "side": side, "wrong": row[side]["wrong"]}
            for row in self.rows
            for side in sides
            if side in row and row[side].get("wrong")
        ]

    @property
    def wrong_values(self) -> float | None:
        """None where nothing was checked, or the table has tolerances and no footer that counts."""
        counted = self.header.counts_wrong if self.header else self.source == "json"
        if not self.checked or not (counted or self.bounds):
            return None
        return max(sum(entry["wrong"] for entry in self.wrong()), self.bounds["count"] if self.bounds else 0)

    def sizes(self) -> list[dict]:
        """Mean over the cycles per size, by size: {size, samples, time, algbw, busbw, busbwMin, inPlaceBusbw}."""
        by_size: dict[int, list[dict]] = {}
        for row in self.rows:
            by_size.setdefault(row["size"], []).append(row)
        result = []
        for size, rows in sorted(by_size.items()):
            main = [row.get(OUT_OF_PLACE) or row[IN_PLACE] for row in rows]
            entry: dict = {"size": size, "samples": len(rows)}
            for name in ("time", "algbw", "busbw"):
                values = [cell[name] for cell in main if cell[name] is not None]
                if values:
                    entry[name] = round(sum(values) / len(values), 4)
                if values and name == "busbw":
                    entry["busbwMin"] = min(values)
            beside = [row[IN_PLACE]["busbw"] for row in rows if OUT_OF_PLACE in row and IN_PLACE in row]
            beside = [value for value in beside if value is not None]
            if beside:
                entry["inPlaceBusbw"] = round(sum(beside) / len(beside), 4)
            result.append(entry)
        return result

    def metrics(self, sizes: list[dict], plateau: int) -> dict:
        """What was measured, by name; what was not is absent."""
        metrics: dict = {}
        wrong = self.wrong_values
        if wrong is not None:
            metrics["wrongValues"] = metric(wrong, "values")
        if not self.measured:
            return {} if self.mixed > 1 or self.twice else metrics
        for name, key in (
            ("busBandwidthGBps", "busbw"),
            ("algBandwidthGBps", "algbw"),
            ("busBandwidthInPlaceGBps", "inPlaceBusbw"),
        ):
            values = [entry[key] for entry in sizes if key in entry]
            if values:
                metrics[name] = metric(max(values), "GB/s")
        flat = [entry["busbw"] for entry in sizes if entry["size"] >= plateau and "busbw" in entry]
        if flat:
            metrics["busBandwidthPlateauGBps"] = metric(median(flat), "GB/s")
            metrics["busBandwidthPlateauMinGBps"] = metric(min(flat), "GB/s")
        if sizes and "busbw" in sizes[-1]:
            metrics["busBandwidthTopSizeGBps"] = metric(sizes[-1]["busbw"], "GB/s")
        small = next((entry for entry in sizes if entry["size"] > 0 and "time" in entry), None)
        if small:
            metrics["smallestSizeTimeUs"] = metric(small["time"], "us")
        return metrics

    def asked_sizes(self) -> int | None:
        """How many sizes the run was to measure."""
        low, high = self.config.get("minBytes"), self.config.get("reducedMaxBytes", self.config.get("maxBytes"))
        step = self.config.get("step")
        if low is None or high is None or not step or high < low:
            return None
        if low == high:
            return 1
        if step["unit"] == "bytes":
            return (high - low) // step["value"] + 1 if step["value"] > 0 else 1
        if step["value"] < 2 or low < 1:
            return None
        count = 0
        while low <= high:
            count, low = count + 1, low * step["value"]
        return count

    @property
    def foreign_rows(self) -> bool:
        """Rows of another run are among these: a sweep goes up, and begins anew only when it was through."""
        asked, step = self.asked_sizes(), self.config.get("step")
        if not asked or asked < 2 or not step or self.source == "json":
            return False
        if len(self.rows) > asked and self.average and len(self.rows) % asked:
            return True
        top = self.config.get("reducedMaxBytes", self.config["maxBytes"])
        for previous, row in zip(self.rows, self.rows[1:], strict=False):
            size = previous["size"]
            last = (size * step["value"] if step["unit"] == "factor" else size + step["value"]) > top
            if not last and (row["size"] < size or (row["size"] == size > 0 and step["unit"] == "factor")):
                return True
        return False

    def ratio_ranks(self, expected: int) -> float | None:
        """busbw / algbw of the biggest rows, where that tells a number of ranks that `expected` is not; else None."""
        ratio = _RATIO.get(self.test)
        groups = {rank["group"] for rank in self.ranks}
        cells = [row[OUT_OF_PLACE] for row in self.rows[-3:] if OUT_OF_PLACE in row]
        cells = [cell for cell in cells if cell["algbw"] and cell["busbw"] and cell["algbw"] >= 1]
        if ratio is None or not cells or len(groups) > 1 or expected < 2:
            return None
        found = sum(cell["busbw"] / cell["algbw"] for cell in cells) / len(cells)
        return found if abs(found - ratio(expected)) > 0.03 * ratio(expected) else None

    def as_dict(self, plateau: int) -> dict:
        sizes = self.sizes()
        metrics = self.metrics(sizes, plateau)
        result = {
            "test": self.test or None,
            "source": self.source,
            "line": self.line,
            "stream": self.stream,
            "complete": self.complete and self.mixed == 1,
            "concluded": self.concluded,
            "interleaved": self.mixed,
            "toolVersion": self.version,
            "ncclVersion": self.nccl,
            "config": self.config,
            "rankCount": self.rank_count,
            "ranks": sorted(self.ranks, key=lambda rank: (rank["rank"], rank["host"], rank["device"] or 0)),
            "hosts": self.hosts,
            "checked": self.checked,
            "units": nccl_table.UNITS,
            "rows": self.rows,
            "sizes": sizes if self.measured else [],
            "plateauFromBytes": plateau,
            "metrics": metrics,
            "reported": {
                key: value
                for key, value in (("outOfBounds", self.bounds), ("averageBusBandwidth", self.average))
                if value is not None
            },
            "transports": self.transports.as_list(),
            "networks": self.transports.networks,
            "adapters": self.transports.adapters,
            "interfaces": self.transports.interfaces,
        }
        return result
