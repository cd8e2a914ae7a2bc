# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which branch the commit starts from. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import Conflict, NotFound, nearest

FIRST = "main"  # the branch of a repository that has none and whose server names none


@dataclass(frozen=True)
class Refs:
    """Branches of the remote: {name: commit}; `default` is the one its HEAD names."""

    heads: dict[str, str] = field(default_factory=dict)
    default: str = ""


def parse(listing: str) -> Refs:
    """The answer of `git ls-remote --symref URL HEAD refs/heads/*`."""
    heads, default = {}, ""
    for line in listing.split("\n"):
        value, _tab, name = line.partition("\t")
        if value.startswith("ref: refs/heads/") and name == "HEAD":
            default = value[len("ref: refs/heads/") :]
        elif name.startswith("refs/heads/"):
            heads[name[len("refs/heads/") :]] = value
    return Refs(heads, default)


@dataclass(frozen=True)
class Base:
    """The branch that the content belongs on, and the branch whose tip it starts from ("" in an empty repository)."""

    branch: str
    start: str


def choose(refs: Refs, branch: str, create: bool, review: bool) -> Base:
    """The base for the options. Raises NotFound or Conflict when there is none."""
    if not refs.heads:
        if review:
            raise Conflict(
                "the repository is empty: there is no branch to review against",
                path="mode",
                hint="publish once with mode: direct, or push a first commit",
                code="no-base",
            )
        return Base(branch or refs.default or FIRST, "")
    name = branch or refs.default
    if name in refs.heads:
        return Base(name, name)
    if not name:
        raise NotFound(
            "the repository names no default branch", path="branch", hint=nearest("main", refs.heads), code="no-branch"
        )
    if create and not review and refs.default in refs.heads:
        return Base(name, refs.default)
    hint = nearest(name, refs.heads)
    if not review and not create:
        hint += "; or set create_branch to start it from the default branch"
    raise NotFound(f"the repository has no branch {name!r}", path="branch", hint=hint, code="no-branch")


def check_free(refs: Refs, branch: str) -> None:
    """Raises Conflict when git cannot have this branch beside another: x and x/y exclude each other."""
    for name in refs.heads:
        if name.startswith(branch + "/") or branch.startswith(name + "/"):
            raise Conflict(
                f"branch {branch!r} cannot be made while the repository has {name!r}",
                path="branch",
                hint="choose another name, or delete that branch",
                code="bad-name",
            )
