# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command that reboots a cloud's instance, by the provider id of its node.

    reboot("aws", "aws:///us-east-1a/i-0123456789abcdef0")   # ["aws", "ec2", "reboot-instances", ...]

Ids are matched as a whole, so that nothing of a node object becomes an option of a command.
"""

from __future__ import annotations

import re

from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, NotCovered, nearest

_NAME = r"[A-Za-z0-9_(][A-Za-z0-9_.()-]*"
_AWS = re.compile(r"aws://[^/]*/([a-z]{2,3}(?:-[a-z]+)+-\d+)[a-z0-9-]*/(i-[0-9a-f]{8,17})")
_GCP = re.compile(r"gce://((?:[a-z][a-z0-9.-]*:)?[a-z][a-z0-9-]*)/([a-z][a-z0-9-]*)/([a-z][a-z0-9-]*)")
_GROUP = rf"azure://(/subscriptions/({_NAME})/resourceGroups/({_NAME})/providers/Microsoft\.Compute"
_AZURE = re.compile(rf"{_GROUP}/virtualMachines/{_NAME})", re.IGNORECASE)
_AZURE_SET = re.compile(rf"{_GROUP}/virtualMachineScaleSets/({_NAME})/virtualMachines/(\d+))", re.IGNORECASE)


def reboot(cloud: str, provider_id: str) -> list[str]:
    """The command as a list. Raises NotCovered for an id that is no instance of this cloud, InvalidDocument for a
    cloud that is not known."""
    if cloud not in _CLOUDS:
        raise InvalidDocument(f"no cloud is called {cloud!r}", path="cloud", hint=nearest(cloud, _CLOUDS))
    command = _CLOUDS[cloud](provider_id)
    if command is None:
        shape = _SHAPES[cloud]
        raise NotCovered(
            f"the provider id {provider_id or '(none)'} is no instance of {cloud}", hint=f"such as {shape}"
        )
    return command


def _aws(provider_id: str) -> list[str] | None:
    match = _AWS.fullmatch(provider_id)
    return match and ["aws", "ec2", "reboot-instances", "--region", match[1], "--instance-ids", match[2]]


def _gcp(provider_id: str) -> list[str] | None:
    match = _GCP.fullmatch(provider_id)
    if not match:
        return None
    project, zone, name = match.groups()
    return ["gcloud", "compute", "instances", "reset", name, "--project", project, "--zone", zone, "--quiet"]


def _azure(provider_id: str) -> list[str] | None:
    single, member = _AZURE.fullmatch(provider_id), _AZURE_SET.fullmatch(provider_id)
    if single:
        return ["az", "vm", "restart", "--ids", single[1], "--no-wait"]
    if not member:
        return None
    _path, subscription, group, name, number = member.groups()
    place = ["--subscription", subscription, "--resource-group", group, "--name", name]
    return ["az", "vmss", "restart", *place, "--instance-ids", number, "--no-wait"]


_CLOUDS = {"aws": _aws, "gcp": _gcp, "azure": _azure}
_SHAPES = {
    "aws": "aws:///us-east-1a/i-0123456789abcdef0",
    "gcp": "gce://project/zone/name",
    "azure": "azure:///subscriptions/S/resourceGroups/G/providers/Microsoft.Compute/virtualMachines/N",
}
