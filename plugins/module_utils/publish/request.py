# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What to publish and where: the options, and what is wrong with them. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from ansible_collections.goodput.fleet.plugins.module_utils.publish import message, source
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, Problem

IDENTITY = ("goodput.fleet", "goodput.fleet@localhost")


@dataclass(frozen=True)
class Request:
    """What to publish. `depth` 0 fetches the whole history; `timeout` is in seconds, over all attempts."""

    src: str
    path: str
    branch: str = ""
    mode: str = "direct"
    review_branch: str = ""
    create_branch: bool = False
    recipe: str = ""
    cluster: str = ""
    digests: dict[str, str] = field(default_factory=dict)
    commit_message: str = ""
    author_name: str = IDENTITY[0]
    author_email: str = IDENTITY[1]
    signing_key: str = ""
    signing_format: str = "openpgp"
    depth: int = 1
    retries: int = 10
    timeout: int = 300

    def problems(self) -> list[Problem]:
        """Everything wrong with the options, without looking at files or the remote."""
        found = message.problems(self.recipe, self.cluster, self.digests, self.commit_message)
        try:
            source.split(self.path)
        except InvalidDocument as error:
            found += error.problems
        if self.mode == "review" and not (self.cluster or self.review_branch):
            found.append(
                Problem(
                    "missing-key",
                    "a review branch is named after the cluster",
                    path="cluster",
                    hint="give cluster or review_branch",
                )
            )
        for name, value in (("author_name", self.author_name), ("author_email", self.author_email)):
            if not value.strip(" .,:;<>\"'\\") or any(sign in value for sign in "<>\n\r\0"):
                found.append(
                    Problem("bad-value", f"{value!r} cannot stand in a commit", path=name, hint="no < > and not empty")
                )
        for name, value, low in (("depth", self.depth, 0), ("retries", self.retries, 0), ("timeout", self.timeout, 1)):
            if value < low:
                found.append(Problem("bad-value", f"{value} is too small", path=name, hint=f"at least {low}"))
        return found
