# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Time lines of incidents and the shares of the GPU time, as SVG inside the page: no script, every value escaped."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from itertools import pairwise
from xml.etree import ElementTree

from ansible_collections.goodput.fleet.plugins.module_utils.reports.junit import clean
from ansible_collections.goodput.fleet.plugins.module_utils.reports.recovery import (
    CLASSES,
    MARKS,
    PARTS,
    STATUS,
    percent,
    spell,
)

WIDTH, LEFT, RIGHT = 900, 150, 20
_ROW, _TOP = 22, 28
_NAMES, _LANE, _SIGN = 4, 14, 7.5  # lanes for the names of marks, their height, and the width of a letter
_TRACKS = 8  # lanes of nodes
_LONGEST = 22
_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400)


def timeline(incident: Mapping) -> str:
    """One incident from its fault on: the job's lane with its marks, and below a lane for each thing done to a node.

    Empty when fewer than two of its marks have a time.
    """
    known = [(mark, _seconds(mark["at"])) for mark in incident["marks"] if mark["at"]]
    if len(known) < 2:
        return ""
    begin, end = min(at for _mark, at in known), max(at for _mark, at in known)
    end = max(end, begin + 1)
    tracks = [track for track in incident["tracks"] if track["since"]][:_TRACKS]
    # so that one sees the nodes' work go on, without making the job's part too small to read
    last = max((_seconds(track["until"] or track["since"]) for track in tracks), default=end)
    end = max(end, min(last, begin + 1.5 * (end - begin)))
    drawing = _Drawing(_TOP + _ROW * (1 + len(tracks)) + _LANE * _NAMES + 8, _told(incident))

    def across(at: float) -> float:
        return LEFT + (min(max(at, begin), end) - begin) / (end - begin) * (WIDTH - LEFT - RIGHT)

    for seconds in _ticks(end - begin):
        x = across(begin + seconds)
        drawing.add("line", "grid", x1=x, x2=x, y1=_TOP - 6, y2=drawing.height - 4)
        drawing.text(
            x, 14, f"+{spell(seconds)}" if seconds else _clock(begin), "quiet", "start" if x < LEFT + 9 else "middle"
        )
    y = _TOP + _ROW / 2
    drawing.text(LEFT - 10, y + 4, "job", "", "end")
    ordered = sorted(known, key=lambda each: each[1])
    for (_before, since), (mark, at) in pairwise(ordered):
        told = f"until {MARKS[mark['mark']]}: {spell(at - since)}"
        drawing.stripe(across(since), across(at), y, f"part {mark['mark']}", told)
    free = [0.0] * _NAMES
    for mark, at in ordered:
        guess = " (estimated)" if mark["estimated"] else ""
        told = f"{MARKS[mark['mark']]}{guess}: {mark['at']}, {mark['source']}"
        drawing.dot(across(at), y, "guess" if mark["estimated"] else "mark", told)
        _name(drawing, across(at), y + 18, MARKS[mark["mark"]], free)
    for place, track in enumerate(tracks):
        y = _TOP + _ROW * 1.5 + _LANE * _NAMES + _ROW * place
        since, until = _seconds(track["since"]), _seconds(track["until"]) if track["until"] else None
        drawing.text(LEFT - 10, y + 4, f"{track['kind']} {track['node']}", "", "end")
        ends = track["until"] or "now, or not known"
        told = f"{track['kind']} of {track['node']}, {track['what']}: {track['since']} to {ends}"
        drawing.stripe(across(since), across(end if until is None else until), y, f"track {track['kind']}", told)
    return drawing.markup()


def _name(drawing: _Drawing, x: float, y: float, word: str, free: list[float]) -> None:
    """In the first lane where it covers no other name; `free` tells how far each is taken. Without one, none."""
    begin = min(x, WIDTH - len(word) * _SIGN)
    for lane, taken in enumerate(free):
        if taken <= begin:
            drawing.text(begin, y + _LANE * lane, word, "quiet", "start")
            free[lane] = begin + (len(word) + 1) * _SIGN
            return


def caption(incident: Mapping) -> str:
    """What the time line is of, and what it cannot show."""
    word = STATUS[incident["status"]][1]
    missing = [
        f"{MARKS[mark['mark']]} ({mark['why']})" for mark in incident["marks"] if not mark["at"] and mark["needed"]
    ]
    told = f"{incident['job']}, attempt {incident['number']}: {word}"
    if incident["toRunning"] is not None:
        told += f", running after {spell(incident['toRunning'])}"
    if incident["parallel"]:
        told += ", while its old nodes were still worked on"
    if missing:
        told += f". Not known: {'; '.join(missing)}"
    return told + "".join(f". {text}" for text in incident["clocks"])


def shares(goodput: Mapping) -> str:
    """One bar of all GPU time, split into goodput and the classes of badput; each has a line with its share below."""
    found = [(kind, goodput["shares"].get(kind)) for kind in CLASSES]
    found = [(kind, share) for kind, share in found if share]
    if not found:
        return ""
    told = ", ".join(f"{CLASSES[kind]} {percent(share)}" for kind, share in found)
    drawing = _Drawing(40 + _ROW * len(found), f"GPU time: {told}")
    x, whole = 10.0, WIDTH - 20
    for place, (kind, share) in enumerate(found):
        drawing.stripe(x, x + share * whole, 18, f"share {kind}", f"{CLASSES[kind]}: {percent(share)}", 20)
        x += share * whole
        y = 48 + _ROW * place
        drawing.stripe(10, 26, y, f"share {kind}", CLASSES[kind], 12)
        drawing.text(34, y + 4, f"{percent(share)}  {CLASSES[kind]}", "", "start")
    return drawing.markup()


class _Drawing:
    """An SVG image that has a text for those who cannot see it."""

    def __init__(self, height: float, told: str):
        self.height = height
        label = clean(told)
        self.root = ElementTree.Element(
            "svg",
            {"viewBox": f"0 0 {WIDTH} {height:.0f}", "role": "img", "class": "plot times", "aria-label": label},
        )
        ElementTree.SubElement(self.root, "title").text = label

    def add(self, tag: str, tone: str, **attributes: float):
        numbers = {name: f"{value:.1f}" for name, value in attributes.items()}
        return ElementTree.SubElement(self.root, tag, {"class": tone, **numbers})

    def stripe(self, begin: float, end: float, y: float, tone: str, told: str, height: float = 12) -> None:
        # what took no time that can be seen is still there
        drawn = self.add("rect", tone, x=begin, y=y - height / 2, width=max(end - begin, 1.0), height=height)
        ElementTree.SubElement(drawn, "title").text = clean(told)

    def dot(self, x: float, y: float, tone: str, told: str) -> None:
        dot = self.add("circle", tone, cx=x, cy=y, r=4.5)
        ElementTree.SubElement(dot, "title").text = clean(told)

    def text(self, x: float, y: float, text: str, tone: str, anchor: str) -> None:
        element = self.add("text", tone, x=x, y=y)
        element.set("text-anchor", anchor)
        element.text = clean(text if len(text) <= _LONGEST * 3 else f"{text[: _LONGEST * 3 - 1]}…")
        if anchor == "end" and len(text) > _LONGEST:
            element.text = clean(f"{text[: _LONGEST - 1]}…")

    def markup(self) -> str:
        return ElementTree.tostring(self.root, encoding="unicode")


def _told(incident: Mapping) -> str:
    split = [f"{word} {spell(incident['parts'][part]) or 'not known'}" for part, word in PARTS.items()]
    return f"{incident['job']}, attempt {incident['number']}: {', '.join(split)}"


def _ticks(length: float) -> list[float]:
    step = next((step for step in _STEPS if length / step <= 8), length / 4)
    return [number * step for number in range(int(length // step) + 1)]


def _seconds(time: str) -> float:
    moment = datetime.datetime.fromisoformat(time)
    return (moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)).timestamp()


def _clock(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%H:%M:%S")
