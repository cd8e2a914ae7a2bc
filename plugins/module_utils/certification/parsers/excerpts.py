# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What of a line may be stored: bounded, without dumped environments and values that look like credentials."""

from __future__ import annotations

import re

LIMIT = 300  # characters

_SECRET = re.compile(
    r"(?i)\b([\w.-]*(?:passw|secret|token|credential|api_?key|access_?key|private_?key|authorization)[\w.-]*)"
    r"(\"?\s*[=:]\s*)(\"[^\"]*\"|'[^']*'|(?:bearer\s+|basic\s+)?\S+)"
)
_VARIABLE = re.compile(
    r"(?<![\w.-])((?:export\s+|declare\s+-\w+\s+|setenv\s+)?[A-Z_][A-Z0-9_]{2,})=(\"[^\"]*\"|'[^']*'|\S*)"
)
# one of these is in every name of a credential; much faster to look for than the names
_HINTS = ("passw", "secret", "token", "credential", "key", "authorization")
_COUNT = re.compile(r"(?i)\b[\w.-]*tokens[\w.-]*\"?\s*[=:]\s*[-+]?[\d.,]+(?:e[-+]?\d+)?[,;|)}\]]*")


def masked(text: str) -> str:
    """The text with `***` for the values of variables and of what is named like a credential."""
    if "=" in text:
        text = _VARIABLE.sub(r"\1=***", text)
    small = text.lower()
    return _SECRET.sub(_hidden, text) if any(hint in small for hint in _HINTS) else text


def _hidden(match: re.Match) -> str:
    # how many tokens a model was trained on
    return match[0] if _COUNT.fullmatch(match[0]) else f"{match[1]}{match[2]}***"


def excerpt(text: str) -> str:
    text = masked(text[: 8 * LIMIT].strip())
    return text if len(text) <= LIMIT else text[: LIMIT - 1] + "…"
