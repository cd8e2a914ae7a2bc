# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Would merging the review branch still do what it was made for?"""

from __future__ import annotations

from ansible_collections.goodput.fleet.plugins.module_utils.publish import objects
from ansible_collections.goodput.fleet.plugins.module_utils.publish.gitcli import Git
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import Conflict


def needs_base(git: Git, path: str, parts: list[str], tip: str, head: str, branch: str) -> bool:
    """Whether the base's newer state must be merged into the review branch; both histories are complete here.

    It must when the directory changed on the base since the branch left it: the merge would conflict, or do nothing
    where the branch was merged and that was reverted. Raises Conflict when somebody else's work on the branch is in
    the way.
    """
    common = git.run("merge-base", tip, head).text.split()
    fork = common[0] if common else ""
    if fork and objects.locate(git, fork, parts).tree == objects.locate(git, tip, parts).tree:
        return False
    names = git("diff-tree", "-r", "-z", "--name-only", "--no-renames", fork or tip, head).fields
    others = [name for name in names if not name.startswith(path + "/")]
    if others:
        raise Conflict(
            f"branch {branch} also changes {others[0]}"
            + (f" and {len(others) - 1} more" if others[1:] else "")
            + f", and {path} changed on its base since",
            path="review_branch",
            hint="merge or delete that branch, then run again",
            code="stale-review",
        )
    return True
