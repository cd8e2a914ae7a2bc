# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Image references: is what runs what was asked for?"""

from __future__ import annotations

from typing import NamedTuple


class Image(NamedTuple):
    name: str
    tag: str
    digest: str


def parse(reference: str) -> Image:
    """`nginx` as (docker.io/library/nginx, latest, ''), as container runtimes read it."""
    rest, _at, digest = reference.partition("@")
    head, slash, last = rest.rpartition("/")
    last, _colon, tag = last.partition(":")
    name = f"{head}{slash}{last}"
    first = name.partition("/")[0]
    if "/" not in name:
        name = f"docker.io/library/{name}"
    elif not ("." in first or ":" in first or first == "localhost"):
        name = f"docker.io/{name}"
    return Image(name, tag or ("" if digest else "latest"), digest)


def same(expected: str, found: str) -> bool | None:
    """Whether `found` satisfies `expected`. None: only digests could tell, and just one side has one.

    A digest on both sides decides alone. A digest that a policy webhook added to the same tag is no difference.
    """
    if expected == found:
        return True
    want, have = parse(expected), parse(found)
    if want.name != have.name:
        return False
    if want.digest and have.digest:
        return want.digest == have.digest
    if want.tag and have.tag:
        return want.tag == have.tag and not (want.digest and not have.digest)
    return None
