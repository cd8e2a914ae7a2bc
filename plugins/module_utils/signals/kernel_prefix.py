# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What stands before the kernel's message in a line: times, host, and who wrote it.

    <12>[40417.250031] MESSAGE                                   dmesg -r, pstore
    [Tue Mar 25 10:42:05 2025] MESSAGE                           dmesg -T, in any language
    kern  :warn  : 2025-03-11T06:22:31,904417+00:00 MESSAGE      dmesg --decode --time-format=iso
    4,8012,318445120,-;MESSAGE                                   /dev/kmsg
    [  +0.000012] MESSAGE                                        dmesg -H
    May 21 09:14:33 host kernel: [512044.207715] MESSAGE         syslog
    2026-06-03T11:04:09.120+02:00 host kernel: MESSAGE           syslog with ISO time, journalctl -o short-iso
    Tue 2026-05-21 09:14:33 CEST host kernel: MESSAGE            journalctl -o short-full
    1772789696.504042 host kernel: MESSAGE                       journalctl -o short-unix
    <4>1 2026-05-21T09:14:33.5Z host kernel - - - MESSAGE        syslog of RFC 5424
    10.1.2.7: kern: warning: [2026-06-03T11:04:09.12003Z]: MESSAGE   Talos

A word with a colon that is not the kernel's names another writer: such a line is no kernel message, whatever it says.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

KERNEL, OTHER, UNKNOWN = "kernel", "other", "unknown"

_ISO = r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:[.,]\d{1,12})?(?:\s?(?:[Zz]\b|UTC\b|[+-]\d\d:?\d\d))?"
_LEVEL = r"(?:emerg(?:ency)?|panic|alert|crit(?:ical)?|err(?:or)?|warn(?:ing)?|notice|info|debug)"
_FACILITY = r"(?:kern|user|daemon|syslog|local[0-7])"
_MONTH = r"(?:[^\W\d_]{2,9}\.?|\d{1,2}月)"
_TOKEN = re.compile(
    rf"""
    (?P<space> [\s\x00\ufeff\ufffd]+ )
  | (?P<priority> <\d{{1,3}}> )
  | (?P<kmsg> \d{{1,3}},(?P<seq>\d{{1,19}}),(?P<usec>\d{{1,19}}),[^;\s]*; )
  | (?P<talos> (?P<taloshost>\S+):\s+ {_FACILITY}:\s+ {_LEVEL}:\s+ \[(?P<talostime>{_ISO})\]: )
  | (?P<level> {_FACILITY}\s*:\s*{_LEVEL}\s*: )
  | (?P<rfc5424> (?<=>)1\ (?:(?P<time5424>{_ISO})|-)\ (?P<host5424>\S+)\ (?P<app>\S+)
        \ \S+\ \S+\ (?:-|\[[^\]]*\])(?=\s) )
  | (?P<seconds> \[\s*(?P<mono>\d{{1,12}}\.\d{{1,9}})(?:\s*<\s*[\d.+]+>)?\] )
  | (?P<human> \[\s*\+\d+\.\d+\] | \[[^\W\d_]{{2,5}}\.?\s?\d{{1,2}}\ \d\d:\d\d\] )
  | (?P<full> [^\W\d_]{{2,5}}\.?\ (?P<fulltime>\d{{4}}-\d\d-\d\d\ \d\d:\d\d:\d\d(?:\.\d{{1,9}})?)
        \ (?P<fullzone>[+-]\d\d(?::?\d\d)?|[A-Z]{{2,5}})(?=\s) )
  | (?P<unix> (?P<epoch>\d{{10}}\.\d{{6}})(?=\s) )
  | (?P<caller> \[\s*[TC]\d+\] )
  | (?P<dots> \[\.\.\.\] )
  | (?P<ctime> \[\S+\s+(?P<cmonth>{_MONTH})\s+(?P<cday>\d{{1,2}})\s+(?P<cclock>\d\d:\d\d:\d\d)\s+(?P<cyear>\d{{4}})\] )
  | (?P<iso> \[?(?P<isotime>{_ISO})\]?:? )
  | (?P<date> (?:(?P<month>{_MONTH})\s+(?P<day>\d{{1,2}})|(?P<day2>\d{{1,2}})\.?\s+(?P<month2>{_MONTH}))
        (?:\s+(?P<year>\d{{4}}))?\s+(?P<clock>\d\d:\d\d:\d\d(?:[.,]\d{{1,9}})?)(?=\s) )
  | (?P<kernel> kernel(?:\[\d+\])?: )
  | (?P<number> \[\d+\] )
  | (?P<ident> [^\W\d][^\s\[\]:]*(?:\[\d+\])?:(?=\s|$) )
  | (?P<word> \S+ )
    """,
    re.VERBOSE | re.IGNORECASE,
)

# the shapes nearly all logs have, in one step
_COMMON = re.compile(
    rf"""
    (?: (?: (?P<month>[A-Za-z]{{3}})\s+(?P<day>\d{{1,2}})\s+(?P<clock>\d\d:\d\d:\d\d) | (?P<iso>{_ISO}) )
        \s+ (?P<host>[^\s:\[\]]+) \s+ kernel:\s+ )?
    (?: \[\s*(?P<mono>\d{{1,12}}\.\d{{1,9}})\]\s+ )?
    """,
    re.VERBOSE,
)
_LIMIT = 1024  # characters; no log puts more before a message


@dataclass(slots=True)
class Prefix:
    """`wall` is (kind, parts of the text) for `kernel_clock`; `mono` is the text of the seconds since boot."""

    origin: str
    writer: str = ""
    host: str = ""
    mono: str | None = None
    wall: tuple | None = None
    sequence: int | None = None
    user: bool = False  # written to the kernel's buffer by a process, which takes root


def read(text: str) -> Prefix:
    """Reads the text that stands before the message."""
    common = _COMMON.fullmatch(text)
    if common:
        month, day, clock, iso, host, mono = common.groups()
        wall = ("written", month, day, clock, None) if month else ("iso", iso) if iso else None
        return Prefix(KERNEL, "", host or "", mono, wall)
    if len(text) > _LIMIT:
        return Prefix(UNKNOWN)
    prefix = Prefix(KERNEL)
    words: list[str] = []
    named = dated = False
    position, end = 0, len(text)
    while position < end:
        match = _TOKEN.match(text, position)
        position = match.end()
        kind = match.lastgroup
        if kind == "space":
            continue
        if kind == "seconds":
            prefix.mono = match["mono"]
        elif kind == "kernel":
            named = True
        elif kind == "word":
            words.append(match[0])
        elif kind == "iso":
            prefix.wall, dated = ("iso", match["isotime"]), True
        elif kind == "date":
            month, day = match["month"] or match["month2"], match["day"] or match["day2"]
            prefix.wall, dated = ("written", month, day, match["clock"], match["year"]), True
        elif kind == "ctime":
            prefix.wall = ("written", match["cmonth"], match["cday"], match["cclock"], match["cyear"])
        elif kind == "kmsg":
            prefix.sequence = int(match["seq"])
            micros = int(match["usec"])
            prefix.mono = f"{micros // 1_000_000}.{micros % 1_000_000:06d}"
            prefix.user = int(match[0].partition(",")[0]) >= 8
        elif kind == "rfc5424":
            prefix.wall = ("iso", match["time5424"]) if match["time5424"] else None
            prefix.host = match["host5424"] if match["host5424"] != "-" else ""
            if match["app"] != "kernel":
                prefix.origin, prefix.writer = OTHER, match["app"]
                return prefix
        elif kind == "full":
            # a zone's name is no zone: CST is four of them
            zone = match["fullzone"] if match["fullzone"][0] in "+-" or match["fullzone"] == "UTC" else ""
            prefix.wall, dated = ("iso", match["fulltime"] + zone), True
        elif kind == "unix":
            prefix.wall, dated = ("unix", match["epoch"]), True
        elif kind == "talos":
            prefix.wall, prefix.host, named = ("iso", match["talostime"]), match["taloshost"], True
        elif kind == "priority":
            prefix.user = int(match[0][1:-1]) >= 8
        elif kind == "ident":
            prefix.origin, prefix.writer = OTHER, match[0][:-1].partition("[")[0]
            return prefix
    if len(words) == 1 and (named or dated):
        prefix.host = words[0]
    elif words:
        prefix.origin = UNKNOWN
    return prefix
