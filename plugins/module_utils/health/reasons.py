# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A reason why a component is not healthy, and the verdict that follows from all its reasons.

A reason is a plain dict:
  code     stable word for machines ("rollout-incomplete")
  verdict  "unhealthy", or "unknown" when the fact could not be read
  object   "DaemonSet/gpu-operator/nvidia-driver-daemonset"
  message  what is wrong, for people
  next     the command or step that leads on
  nodes    names of the nodes concerned (only where pods are concerned)
  pods     how many pods share the fault (only where pods are concerned)
"""

from __future__ import annotations

HEALTHY, UNHEALTHY, UNKNOWN = "healthy", "unhealthy", "unknown"


def unhealthy(code: str, obj: str, message: str, next_step: str = "", **more) -> dict:
    """A violated rule."""
    return {"code": code, "verdict": UNHEALTHY, "object": obj, "message": message, "next": next_step, **more}


def unknown(code: str, obj: str, message: str, next_step: str = "") -> dict:
    """A rule that could not be judged."""
    return {"code": code, "verdict": UNKNOWN, "object": obj, "message": message, "next": next_step}


def unreadable(obj: str, error: dict) -> dict:
    """The reason for a read that failed; `error` is {code, message} as the observer noted it."""
    step = {
        "denied": "grant get and list on it to the account that runs this, then run again",
        "unavailable": "check that the API server is reachable, then run again",
    }.get(error["code"], "")
    return unknown(error["code"], obj, f"cannot be read: {error['message']}", step)


def verdict(reasons: list[dict]) -> str:
    """A violation outweighs what is unknown; only no reason at all is healthy."""
    verdicts = {reason["verdict"] for reason in reasons}
    return UNHEALTHY if UNHEALTHY in verdicts else UNKNOWN if verdicts else HEALTHY


def name_of(obj: dict, kind: str = "") -> str:
    """Kind/namespace/name of an object; list items carry no kind of their own."""
    meta = obj.get("metadata") or {}
    return "/".join(filter(None, (kind or obj.get("kind", ""), meta.get("namespace"), meta.get("name"))))
