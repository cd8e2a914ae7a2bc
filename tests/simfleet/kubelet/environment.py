"""A container's environment and command, from its spec. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tests.simfleet.rundir import MARKER

PASSED_ON = ("PATH", "LANG", "TZ", MARKER)


def environment_of(
    pod: Mapping[str, Any], container: Mapping[str, Any], pod_ip: str, host: Mapping[str, str]
) -> dict[str, str]:
    """What the script sees: the host's PATH, who it is, and the container's own variables over these.

    Variables from ConfigMaps and Secrets are left out.
    """
    meta = pod["metadata"]
    env = {name: host[name] for name in PASSED_ON if name in host}
    env |= {
        "POD_NAME": meta["name"],
        "POD_NAMESPACE": meta["namespace"],
        "POD_UID": meta["uid"],
        "NODE_NAME": pod["spec"]["nodeName"],
        "HOSTNAME": meta["name"],
        "CONTAINER_NAME": container["name"],
    }
    for entry in container.get("env", []):
        if "value" in entry:
            env[entry["name"]] = expand(entry["value"], env)
        elif "fieldRef" in entry.get("valueFrom", {}):
            env[entry["name"]] = field_of(pod, entry["valueFrom"]["fieldRef"]["fieldPath"], pod_ip)
    return env


def field_of(pod: Mapping[str, Any], path: str, pod_ip: str) -> str:
    if path in ("status.podIP", "status.podIPs"):
        return pod_ip
    if path in ("status.hostIP", "status.hostIPs"):
        return "127.0.0.1"
    keyed = re.fullmatch(r"metadata\.(labels|annotations)\['(.+)'\]", path)
    if keyed:
        return pod["metadata"].get(keyed[1], {}).get(keyed[2], "")
    value: Any = pod
    for part in path.split("."):
        value = value.get(part, "") if isinstance(value, Mapping) else ""
    return str(value)


def command_of(container: Mapping[str, Any], env: Mapping[str, str]) -> list[str]:
    return [expand(part, env) for part in [*container.get("command", []), *container.get("args", [])]]


def expand(text: str, env: Mapping[str, str]) -> str:
    """$(NAME) becomes its value, $$(NAME) becomes $(NAME), and an unknown name stays as it is."""

    def value(match: re.Match[str]) -> str:
        if match[0].startswith("$$"):
            return match[0][1:]
        return env.get(match[1], match[0])

    return re.sub(r"\$?\$\(([A-Za-z_][\w.-]*)\)", value, text)
