# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One log, read once: its last attempt, with the first failures of every rank.

Nearly all lines are only looked at by their shape, the line without its digits: what a shape cannot be is known after
its first line. Memory does not grow with the log.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from ansible_collections.goodput.fleet.plugins.module_utils.jobs import literals, logs, redaction, signatures
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.attempt_log import (
    HITS,
    NAMES,
    Attempt,
    Exit,
    Hit,
    Log,
    Raised,
)
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.logs import whole
from ansible_collections.goodput.fleet.plugins.module_utils.jobs.signatures import Found, Pattern, Signature, Table

SHAPES = 16384  # kept at a time
SHAPE_SIZE = 480  # bytes; longer lines are looked at one by one
TRACES = 64  # tracebacks open at a time
FRAMES = 400  # lines of a traceback
WORLD_LIMIT = 1_000_000

_DIGITS = b"0123456789"
_TRACEBACK = "Traceback (most recent call last)"
# parts of a launcher's report, and what tells how many ranks there are
_REPORT = ("exitcode  : ", "rank      : ", "host      : ", "(exitcode: ", "nranks ", "world_size", "world ")
_FRAME = re.compile(r'^\s+File "(?P<file>[^"]{1,400})", line (?P<line>\d+)')
_EXCEPTION = re.compile(r"^(?P<type>[A-Za-z_][\w.]{0,200})(?:: (?P<message>.*))?$")
_LIBRARY = re.compile(r"/(?:site|dist)-packages/|/lib/python\d|/usr/lib/|<frozen|<string>|importlib|/bin/[\w-]+$")
_FAILED = re.compile(r"\(exitcode: (?P<code>-?\d+)\) local_rank: (?P<local>\d+) \(pid: (?P<pid>\d+)\)")
_BLOCK_RANK = re.compile(r"^\s*rank +: (?P<rank>\d+) \(local_rank: (?P<local>\d+)\)")
_BLOCK_CODE = re.compile(r"^\s*exitcode +: (?P<code>-?\d+)")
_BLOCK_HOST = re.compile(r"^\s*host +: (?P<host>[\w.-]+)")
_WORLD = re.compile(r"(?:^world|\bworld_size|\bnranks)[ =:]+(?P<world>\d{1,7})\b")
_GROUP_RANK = re.compile(r"\[PG (?:ID )?(?P<group>[^\]]{1,120}?) Rank (?P<rank>\d+)\]")
_GROUP_ID = re.compile(r"PG GUID (\S+)")
_DONE = re.compile(
    r"[Ll]ast enqueued (?:NCCL )?work: (?P<enqueued>-?\d+), last completed (?:NCCL )?work: (?P<completed>-?\d+)"
)
_SEQUENCE = re.compile(r"WorkNCCL\(SeqNum=(?P<number>\d+)")
_PID = re.compile(rb"^[^\]]{0,40}\d\d:\d\d:\d\d\.\d+ +(\d+) ")
_ENDPOINT = re.compile(r"[%<>,\])].*$")
# after a progress bar that did not end its line; in a message of c10d
_INSIDE = (re.compile(r"\[rank(?P<rank>\d{1,9})\]:"), re.compile(r"\[(?:PG [^\]]{1,120} )?Rank (?P<rank>\d{1,9})\]"))


@dataclass(slots=True)
class Shape:
    """What lines of one shape may be."""

    idle: bool  # nothing but, perhaps, a time
    stamped: bool
    only_labelled: bool  # nothing but whose it is
    leading: bool  # which is what the line begins with, up to the first colon
    traceback: bool = False
    report: bool = False
    progress: bool = False
    marks: bool = False  # begins or ends an attempt, perhaps
    signatures: tuple[Signature, ...] = ()
    drop: tuple[Pattern, ...] = ()


@dataclass(slots=True)
class Trace:
    """A traceback that is being printed."""

    lines: int = 0
    file: str = ""
    line: int | None = None
    own: bool = False  # the frame is of the program


class Shapes:
    """The shapes seen so far, for all logs of a job."""

    def __init__(self, table: Table):
        self.table = table
        self.known: dict[bytes, Shape] = {}
        self.speaks = _speaks(table)

    def of(self, raw: bytes, key: bytes) -> Shape:
        text = logs.plain(raw) if b"\x1b" in raw or raw[:1] in b"\0{" else raw
        bare = text.translate(None, _DIGITS)
        shape = self._speaking(text, bare) if self.speaks(bare) else self._quiet(text)
        if len(key) <= SHAPE_SIZE:
            if len(self.known) >= SHAPES:
                self.known.clear()
            self.known[key] = shape
        return shape

    def _quiet(self, text: bytes) -> Shape:
        line = logs.stripped(self.table, text)
        labelled = line.rank is not None or line.local is not None
        lead = labelled and logs.stripped(self.table, text.partition(b":")[0] + b": .").rank == line.rank
        return Shape(idle=not labelled, stamped=bool(line.stamp), only_labelled=labelled, leading=lead)

    def _speaking(self, text: bytes, bare: bytes) -> Shape:
        table, shape, decoded = self.table, self._quiet(text), bare.decode("utf-8", "replace")
        shape.signatures = tuple(one for one in table.signatures if _possible(one.pattern, decoded))
        shape.drop = tuple(one for one in table.drop if _possible(one, decoded)) if shape.signatures else ()
        shape.marks = any(_possible(one, decoded) for one in (*table.starts, *table.ends))
        shape.progress = any(_possible(one, decoded) for one in table.progress)
        shape.traceback = _TRACEBACK in decoded
        shape.report = any(part in decoded for part in _REPORT)
        if shape.signatures or shape.marks or shape.progress or shape.traceback or shape.report:
            shape.idle = shape.only_labelled = False
        return shape


@functools.lru_cache(maxsize=8)
def _speaks(table: Table):
    """Tells of bytes without digits whether they may say anything."""
    texts = [text for pattern in table.patterns for text in pattern.literals]
    return literals.any_of([*texts, *_REPORT, _TRACEBACK]).search


def _possible(pattern: Pattern, bare: str) -> bool:
    return any(literal.translate(_NO_DIGITS) in bare for literal in pattern.literals)


_NO_DIGITS = str.maketrans("", "", "0123456789")


class Scan:
    """Reads one source. `rank` is of all its lines that do not name another."""

    def __init__(self, shapes: Shapes, rank: int | None, pod: str, year: int, local_is_rank: bool):
        self.shapes, self.table = shapes, shapes.table
        self.year, self.local_is_rank = year, local_is_rank
        self.log = Log(rank, pod, Attempt())
        self.after: Attempt | None = None  # what came after a launcher said that its attempt failed
        self.stamp = b""
        self.traces: dict[object, Trace] = {}
        self.block: Exit | None = None
        self.order = 0
        self.labels: set[bytes] = set()
        self.tasks: set[int] = set()

    def read(self, content: object) -> Log:
        known, log = self.shapes.known, self.log
        number = 0
        for batch in logs.batches(content):
            for raw in batch:
                if raw[:1] != logs.MORE:
                    number += 1
                key = raw.translate(None, _DIGITS)
                shape = known.get(key) or self.shapes.of(raw, key)
                if self.traces or not shape.idle:
                    self._take(raw, shape, number)
                elif shape.stamped:
                    self.stamp = raw
        log.lines = number
        if self.after is not None:
            log.last.absorb(self.after)
        self._settle()
        return log

    def _settle(self) -> None:
        """Lines that name no rank are of the log's, unless several ranks share it."""
        log = self.log
        if not log.ranks and log.rank is None:
            log.ranks |= self.tasks
        log.shared = len(log.labels if log.rank is not None else log.ranks) > 1
        if log.rank is None or log.shared:
            return
        # what the program calls itself is what others call it
        log.own = next(iter(log.labels), log.rank)
        log.ranks.add(log.own)
        for attempt in filter(None, (log.last, log.before)):
            hits = sorted(attempt.hits.values(), key=lambda hit: hit.order)
            attempt.hits = {}
            for hit in hits:
                hit.rank = log.own if hit.rank is None else hit.rank
                known = attempt.hits.setdefault((hit.signature.id, hit.rank), hit)
                if known is not hit:
                    known.count += hit.count
            for left in attempt.exits:
                left.rank = log.own if left.rank is None else left.rank
        if None in log.last_exceptions:
            log.last_exceptions.setdefault(log.own, log.last_exceptions[None])

    @property
    def attempt(self) -> Attempt:
        return self.log.last if self.after is None else self.after

    def _take(self, raw: bytes, shape: Shape, number: int) -> None:
        if shape.only_labelled and not self.traces:
            return self._label(raw, shape)
        raw = logs.plain(raw)
        line = logs.stripped(self.table, raw)
        if line.stamp:
            self.stamp = raw
        rank = self._rank(line)
        stream = rank if rank is not None else line.host or line.local
        found = self._found(shape, line.text)
        if shape.traceback:
            if len(self.traces) < TRACES:
                self.traces[stream] = Trace()
            return None
        raised = self._trace(stream, rank, line.text) if self.traces else None
        if shape.marks:
            self._mark(line.text)
        if shape.progress:
            # what stands before a failure may be a progress bar that did not end its line
            self._progress(line.text[: found.match.start()] if found else line.text, line.stamp)
        if shape.report:
            self._report(raw, line.text)
        if found:
            self._hit(found, line, raw, rank, number, raised)
        elif raised and not raised.type.endswith(("SystemExit", "StopIteration", "GeneratorExit", "Warning")):
            fallback = self.table.fallback
            if fallback:
                self._add(fallback, line, rank, number, raised).guessed = True
        return None

    def _label(self, raw: bytes, shape: Shape) -> None:
        """A line that says nothing but whose it is."""
        if shape.stamped:
            self.stamp = raw
        if shape.leading:
            label = raw.partition(b":")[0]
            if label in self.labels:
                return
            if len(self.labels) < SHAPES:
                self.labels.add(label)
        self._rank(logs.stripped(self.table, logs.plain(raw)))

    def _rank(self, line: logs.Line) -> int | None:
        rank = line.rank
        if rank is None and line.local is not None and self.local_is_rank:
            rank = line.local
        if rank is None:
            return None
        # a number before a colon is only a rank where no line says its rank otherwise
        ranks = self.log.ranks if line.sure or line.rank is None else self.tasks
        if rank < WORLD_LIMIT and len(ranks) < 65536:
            ranks.add(rank)
            if line.sure:
                self.log.labels.add(rank)
            if line.host:
                self.log.hosts.setdefault(rank, line.host)
        return rank

    def _found(self, shape: Shape, text: str) -> Found | None:
        if not shape.signatures or any(one.find(text) for one in shape.drop):
            return None
        return signatures.first(shape.signatures, text)

    # attempts

    def _mark(self, text: str) -> None:
        for pattern in self.table.starts:
            match = pattern.find(text)
            if match:
                given = match.groupdict().get("attempt")
                self._start(whole(given) if given and len(given) < 10 else None)
                return
        if any(pattern.find(text) for pattern in self.table.ends):
            self.attempt.over = True

    def _start(self, number: int | None) -> None:
        last = self.attempt
        # every rank and every launcher of an attempt says that it begins
        new = number != last.number if number is not None and last.number is not None else last.failed
        if new:
            if self.after is not None:
                self.log.last.absorb(self.after)
            self._next(Attempt(number), related=number is None)
        elif number is not None:
            last.number = number

    def _next(self, attempt: Attempt, related: bool) -> None:
        if not related:
            self.log.before = None
        elif self.log.before is None or any(self.log.last.roots):
            self.log.before = self.log.last
        self.log.last, self.after = attempt, None
        self.log.attempts += 1
        self.traces.clear()

    def _progress(self, text: str, stamp: bytes) -> None:
        for pattern in self.table.progress:
            match = pattern.find(text)
            if not match:
                continue
            groups = match.groupdict()
            if len(groups["step"]) > 15:
                return
            step, seconds = whole(groups["step"]), _seconds(groups)
            last = self.attempt
            if last.over and any(hit.signature.cascade == "never" for hit in last.hits.values()) and self.after is None:
                self._next(Attempt(), related=False)
            elif self.after is not None and step <= (self.log.last.last_step or 0):
                # the launcher began again
                failed, self.after = self.after, None
                self.log.last.absorb(failed)
                self._next(Attempt(), related=True)
            self.attempt.step(step, seconds, stamp or self.stamp)
            return

    # what launchers report

    def _report(self, raw: bytes, text: str) -> None:
        match = _WORLD.search(text)
        if match and 0 < whole(match["world"]) < WORLD_LIMIT:
            self.log.world = max(self.log.world, whole(match["world"]))
        match = _FAILED.search(text)
        if match:
            pid = _PID.match(raw)
            self._failed(Exit(whole(match["code"]), None, whole(match["local"])), pid[1].decode() if pid else "")
            return
        match = _BLOCK_HOST.match(text)
        if match:
            self.block = Exit(0, host=match["host"])
            return
        match = _BLOCK_RANK.match(text)
        if match:
            block = self.block or Exit(0)
            block.rank, block.local = whole(match["rank"]), whole(match["local"])
            self.block = block
            return
        match = _BLOCK_CODE.match(text)
        if match and self.block and self.block.rank is not None:
            self.block.code = whole(match["code"])
            self._exit(self.block)
            if self.block.rank < WORLD_LIMIT:
                self.log.ranks.add(self.block.rank)
                self.log.hosts.setdefault(self.block.rank, self.block.host)
            self.block = None

    def _failed(self, left: Exit, launcher: str) -> None:
        """A launcher's first failed process. The same launcher says it once in each attempt."""
        if self.after is not None and launcher and launcher in self.log.last.launchers:
            self.after.exits.append(left)
            self._next(self.after, related=True)
        else:
            self._exit(left)
        self.log.last.launchers.add(launcher)
        if self.after is None:
            self.after = Attempt(self.log.last.number)

    def _exit(self, left: Exit) -> None:
        if len(self.attempt.exits) < NAMES:
            self.attempt.exits.append(left)

    # failures

    def _trace(self, stream: object, rank: int | None, text: str) -> Raised | None:
        """The exception, where the line is the end of the stream's traceback."""
        trace = self.traces.get(stream)
        if trace is None:
            # another process's lines also keep nobody's traceback open for ever
            for key, other in list(self.traces.items()):
                other.lines += 1
                if other.lines > 4 * FRAMES:
                    del self.traces[key]
            return None
        trace.lines += 1
        if text[:1] in (" ", "\t", ""):
            frame = _FRAME.match(text)
            if frame:
                own = not _LIBRARY.search(frame["file"])
                if own or not trace.own:
                    trace.file, trace.line, trace.own = frame["file"], whole(frame["line"]), own
            if trace.lines > FRAMES:
                del self.traces[stream]
            return None
        found = _EXCEPTION.match(text)
        name = found["type"].rpartition(".")[2] if found else ""
        if not found or not (name[:1].isupper() or name.lower().endswith(("error", "exception"))):
            if trace.lines > FRAMES:
                del self.traces[stream]
            return None
        del self.traces[stream]
        raised = Raised(
            found["type"],
            redaction.excerpt(found["message"] or ""),
            redaction.excerpt(trace.file),
            trace.line,
            self.attempt.last_step if self.attempt.last_step is not None else self.log.last.last_step,
        )
        if len(self.log.last_exceptions) < HITS:
            self.log.last_exceptions[rank] = raised
        return raised

    def _hit(
        self, found: Found, line: logs.Line, raw: bytes, rank: int | None, number: int, raised: Raised | None
    ) -> None:
        signature, text = found.signature, line.text
        if rank is None:
            given = _INSIDE[0].search(text) or (_INSIDE[1].search(text) if self.log.rank is None else None)
            rank = whole(given["rank"]) if given and whole(given["rank"]) < WORLD_LIMIT else None
        if found.group("rank"):
            rank = whole(found.group("rank"))
        ranks = numbers(found.group("ranks"))
        if rank is None and len(ranks) == 1 and signature.component == "slurm":
            rank = next(iter(ranks))
        if rank is not None and rank < WORLD_LIMIT and rank != line.rank:
            self.log.ranks.add(rank)
        if signature.component == "slurm":
            self.log.ranks |= ranks
        hit = self._add(signature, line, rank, number, raised)
        if found.group("local"):
            hit.local = whole(found.group("local"))
        hit.ranks |= set(list(ranks)[: NAMES - len(hit.ranks)])
        for names, text_of in ((hit.hosts, found.group("host")), (hit.peers, found.group("peer"))):
            name = _ENDPOINT.sub("", text_of.lstrip("<["))
            if name and name != "ip" and len(names) < NAMES:
                names.add(name)
        if found.group("device") and len(hit.devices) < NAMES:
            hit.devices.add(found.group("device"))
        if found.group("code"):
            for one in ranks or {rank}:
                self._exit(Exit(whole(found.group("code")), one, None, found.group("host")))
        if signature.component == "slurm" and found.group("host"):
            for one in ranks:
                self.log.hosts.setdefault(one, found.group("host"))
        self._sequences(text, rank)

    def _add(self, signature: Signature, line: logs.Line, rank: int | None, number: int, raised: Raised | None) -> Hit:
        attempt = self.attempt
        key = (signature.id, rank)
        hit = attempt.hits.get(key) or (self.log.last.hits.get(key) if self.after is not None else None)
        if hit:
            hit.count += 1
            hit.raised = hit.raised or raised
        else:
            self.order += 1
            stamp = line.stamp or (logs.stripped(self.table, logs.plain(self.stamp)).stamp if self.stamp else b"")
            hit = Hit(
                signature,
                rank,
                self.log.pod,
                number,
                self.order,
                redaction.excerpt(line.text),
                logs.moment(stamp, self.year) if stamp else None,
                attempt.last_step if attempt.last_step is not None else self.log.last.last_step,
                raised=raised,
                collateral=self._collateral(signature),
            )
            if len(attempt.hits) < HITS:
                attempt.hits[key] = hit
        if line.host and len(hit.hosts) < NAMES:
            hit.hosts.add(line.host)
        return hit

    def _collateral(self, signature: Signature) -> bool:
        if not signature.collateral_after:
            return False
        seen = {key[0] for key in self.log.last.hits} | {key[0] for key in self.attempt.hits}
        return bool(seen & signature.collateral_after)

    def _sequences(self, text: str, rank: int | None) -> None:
        """How far the rank came in a group's collectives."""
        given = _GROUP_RANK.search(text)
        done = _DONE.search(text)
        if done and (given or rank is not None):
            group = given["group"] if given else ""
            guid = _GROUP_ID.search(group)
            who = rank if rank is not None else whole(given["rank"])
            self._came(guid[1] if guid else group, who, whole(done["completed"]), whole(done["enqueued"]))
            return
        waits = _SEQUENCE.search(text)
        if waits and rank is not None and len(waits["number"]) < 18:
            number = whole(waits["number"])
            self._came("waits", rank, number - 1, number)

    def _came(self, group: str, rank: int, completed: int, enqueued: int) -> None:
        sequences = self.attempt.sequences
        if len(sequences) < 4 * HITS:
            sequences.setdefault((group, rank), (completed, enqueued))


def numbers(text: str) -> set[int]:
    """`0,4-7` as numbers, at most NAMES of them."""
    found: set[int] = set()
    for first, last in re.findall(r"(\d{1,6})(?:\s*-\s*(\d{1,6}))?", text):
        found.update(range(whole(first), min(whole(last or first) + 1, whole(first) + NAMES)))
        if len(found) >= NAMES:
            break
    return found


def _seconds(groups: dict[str, str | None]) -> float | None:
    try:
        if groups.get("seconds"):
            return float(groups["seconds"])
        if groups.get("milliseconds"):
            return float(groups["milliseconds"]) / 1000
        rate = float(groups["rate"]) if groups.get("rate") else 0.0
    except ValueError:
        return None
    return 1 / rate if rate else None
