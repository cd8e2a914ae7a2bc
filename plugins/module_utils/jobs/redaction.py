# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What of a log's line may be kept: bounded, without values that look like credentials."""

from __future__ import annotations

import re

LIMIT = 300  # characters
_NAMED = re.compile(
    r"(?i)\b([\w.-]*(?:passw|secret|token|credential|api_?key|access_?key|private_?key|authorization|cookie)[\w.-]*)"
    r"([\"']?\s*[=:]\s*)(\"[^\"]*\"|'[^']*'|(?:bearer\s+|basic\s+)?\S+)"
)
_VARIABLE = re.compile(r"(?<![\w.-])((?:export\s+)?[A-Z][A-Z0-9_]{2,})=(\"[^\"]*\"|'[^']*'|[^\s,;)]*)")
_SHAPED = re.compile(
    r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\b(?:hf|ghp|gho|ghs|glpat|xox[abp])[_-][\w-]{16,}|\bsk-[\w-]{16,}|\bnvapi-[\w-]{16,}"
    r"|\beyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*|(?<=://)[^\s/:@]+:[^\s/@]+(?=@)|(?i:\bbearer\s+)[\w.~+/-]{12,}=*"
)
_COUNT = re.compile(r"(?i)[\w.-]*tokens[\w.-]*[\"']?\s*[=:]\s*[-+]?[\d.,]+(?:e[-+]?\d+)?[KMGTB]?[,;|)}\]]*")
# not secret, and what somebody who reads the line needs
_OPEN = ("NCCL_", "CUDA_", "TORCH_", "OMP_", "SLURM_RESTART", "RANK", "LOCAL_RANK", "WORLD_SIZE", "EADDRINUSE")


def excerpt(text: str, limit: int = LIMIT) -> str:
    """The line's text as it may be kept, cut to `limit` characters."""
    text = redacted(" ".join(text[: 8 * limit].split()))
    return text if len(text) <= limit else text[: limit - 1] + "…"


def redacted(text: str) -> str:
    """The text with `***` for what is named or formed like a credential, and for values of variables."""
    text = _NAMED.sub(_named, _SHAPED.sub("***", text))
    return _VARIABLE.sub(_variable, text) if "=" in text else text


def _named(match: re.Match) -> str:
    # how many tokens a model was trained on
    return match[0] if _COUNT.fullmatch(match[0]) else f"{match[1]}{match[2]}***"


def _variable(match: re.Match) -> str:
    return match[0] if match[1].startswith(_OPEN) else f"{match[1]}=***"
