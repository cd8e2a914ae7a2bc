"""Executors of repairs: what they do to a node, what they say of it, and what they leave alone.

Hosts are this machine under other names; the programs of a node and of clouds are scripts, BMC and desk are real HTTP
servers. One play runs all cases at once.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.standin.nodetools import NodeTools
from tests.standin.redfish import Bmc
from tests.unit.signals import smi

ROOT = Path(__file__).parents[2]
BOOT = "0b0c1d2e-0000-4000-8000-000000000001"
GPU = "GPU-00000000-5d6e-7f80-91a2-b3c4d5e6f708"
SICK = {"gpu_recovery_action": "Reset", "serial": "77"}
UUID = "12345678-9abc-def0-1122-334455667788"
SWAPPED = "78563412-bc9a-f0de-1122-334455667788"
AZURE = "azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/gpu-1"


def shows(*changes: dict) -> str:
    return smi.log(
        *[smi.gpu(number, changes={"serial": str(77 + number), **each}) for number, each in enumerate(changes)]
    )


def play(folder: Path, book: list[dict], *arguments: str, path: str = "", inventory: dict | None = None) -> str:
    """What ansible-playbook prints; it has to end well unless `arguments` begin with '!'."""
    (folder / "play.yml").write_text(yaml.safe_dump(book, sort_keys=False))
    (folder / "hosts.yml").write_text(yaml.safe_dump(inventory or {"all": {}}, sort_keys=False))
    kept = {
        key: value for key, value in os.environ.items() if not key.startswith(("ANSIBLE_", "GOODPUT_", "KUBECONFIG"))
    }
    done = subprocess.run(
        [str(ROOT / ".venv/bin/ansible-playbook"), "-i", "hosts.yml", "play.yml", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        env={
            **kept,
            "HOME": str(folder),
            "PATH": f"{path}:{os.environ['PATH']}",
            "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".build/collections"),
            "ANSIBLE_HOST_KEY_CHECKING": "false",
        },
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


class Cases:
    """Hosts with a step each; after `run`, what came of them."""

    def __init__(self, folder: Path):
        self.folder, self.nodes, self.hosts = folder, {}, {}
        self.bmcs: dict[str, Bmc] = {}

    def add(self, name: str, rung: str, executor: str, tools: dict | None = None, step: dict | None = None, **more):
        self.nodes[name] = NodeTools(self.folder / name, **(tools or {}))
        given = {"request": name, "node": name, "rung": rung, "key": f"{name}/1", "bootBefore": BOOT, "entity": GPU}
        self.hosts[name] = {
            "ansible_connection": "local",
            "remediate_executors": {rung: executor},
            "remediate_step": {**given, "executor": executor, "providerId": "", "systemUUID": "", **(step or {})},
            **self.nodes[name].variables(),
            **more,
        }

    def bmc(self, stack: contextlib.ExitStack, name: str, step: dict | None = None, password: str = "", **options: Any):
        bmc = self.bmcs[name] = stack.enter_context(Bmc(**options))
        access = {"remediate_redfish_username": "admin", "remediate_redfish_password": password or bmc.password}
        self.add(name, "reboot", "reboot_redfish", step=step, remediate_redfish_url=f"{bmc.url}/", **access)

    def run(self) -> None:
        variables = {
            "goodput_mode": "enforce",
            "remediate_become": False,
            "remediate_reset_looks": 2,
            "remediate_reset_pause": 0,
            "remediate_reset_services": ["nvidia-persistenced", "nvidia-dcgm"],
            "remediate_cloud_arguments": ["--profile", "repair"],
            "ansible_python_interpreter": sys.executable,
            "ansible_ssh_common_args": "-o BatchMode=yes -o ConnectTimeout=2",
        }
        include = {"name": "goodput.fleet.remediate", "tasks_from": "execute"}
        hosts = "groups['goodput_repair']"
        outcome = f"{{{{ dict({hosts} | zip({hosts} | map('extract', hostvars, 'remediate_outcome'))) }}}}"
        book = [
            {
                "hosts": "goodput_repair",
                "gather_facts": False,
                "ignore_unreachable": True,
                "vars": variables,
                "environment": {"PATH": "{{ stubs }}/{{ inventory_hostname }}:" + os.environ["PATH"]},
                "tasks": [{"ansible.builtin.include_role": include}],
            },
            {
                "hosts": "localhost",
                "gather_facts": False,
                "tasks": [{"ansible.builtin.copy": {"dest": "outcomes.json", "content": outcome}}],
            },
        ]
        inventory = {
            "all": {"vars": {"stubs": str(self.folder)}, "children": {"goodput_repair": {"hosts": self.hosts}}}
        }
        self.printed = play(self.folder, book, "--forks", "4", inventory=inventory)
        self.outcomes = json.loads((self.folder / "outcomes.json").read_text())

    def said(self, name: str) -> tuple:
        found = self.outcomes[name]
        return found["executed"], found["verified"], found["serials"]


@pytest.fixture(scope="module")
def cases(tmp_path_factory) -> Iterator[Cases]:
    made = Cases(tmp_path_factory.mktemp("executors"))
    sick, well = shows(SICK, {}), shows({}, {})
    ssh = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 9}
    reset = ("reset", "reset_ssh")
    made.add("reset-helps", *reset, {"shows": sick, "after_reset": well, "active": ("nvidia-dcgm",)})
    made.add("reset-of-all", *reset, {"shows": sick, "after_reset": well}, {"entity": ""})
    made.add("reset-without-effect", *reset, {"shows": sick})
    made.add("reset-refused", *reset, {"shows": sick, "reset_code": 3, "reset_says": "In use by another client"})
    made.add("reset-of-another-boot", *reset, {"shows": sick}, {"bootBefore": "another"})
    made.add("reset-unreachable", *reset, {"shows": sick}, None, **ssh)
    made.add("reset-of-nonsense", *reset, {"shows": sick, "active": ("nvidia-dcgm",)}, {"entity": "--all"})
    reboot = ("reboot", "reboot_ssh")
    made.add("reboot", *reboot, {"shows": sick})
    made.add("reboot-blind", *reboot, {"shows": "NVIDIA-SMI has failed"})
    made.add("reboot-refused", *reboot, {"reboot_code": 1})
    made.add("reboot-of-another-boot", *reboot, {}, {"bootBefore": "another"})
    made.add("reboot-unreachable", *reboot, {}, None, **ssh)
    made.add("aws", "reboot", "reboot_aws", {}, {"providerId": "aws:///us-east-1a/i-0123456789abcdef0"})
    made.add("aws-of-metal", "reboot", "reboot_aws", {}, {"providerId": "metal://gpu-0001"})
    made.add("azure", "reboot", "reboot_azure", {"cloud_code": 1}, {"providerId": AZURE})
    site = made.folder / "site.yml"
    fact = {
        "remediate_outcome": {"executed": True, "verified": None, "detail": "asked", "serials": ["{{ site_rack }}"]}
    }
    site.write_text(yaml.safe_dump([{"name": "Ask the site's robot", "ansible.builtin.set_fact": fact}]))
    made.add("replaced-by-the-site", "replace", "site.yml", site_rack="r7")
    broken = made.folder / "broken.yml"
    broken.write_text(yaml.safe_dump([{"name": "Ask the robot", "ansible.builtin.fail": {"msg": "it is at lunch"}}]))
    made.add("site-fails", "replace", str(broken))
    odd = made.folder / "odd.yml"
    said = {"remediate_outcome": {"executed": "yes", "detail": 7, "serials": "SN-1"}}
    odd.write_text(yaml.safe_dump([{"name": "Say something", "ansible.builtin.set_fact": said}]))
    made.add("site-says-nonsense", "replace", "odd.yml")
    mute = made.folder / "mute.yml"
    mute.write_text(
        yaml.safe_dump([{"name": "Say nothing", "ansible.builtin.set_fact": {"remediate_outcome": "done"}}])
    )
    made.add("site-says-no-map", "reset", "mute.yml")
    made.add("site-is-not-there", "replace", "nowhere.yml")
    with contextlib.ExitStack() as stack:
        made.bmc(stack, "bmc", uuid=UUID, step={"systemUUID": UUID})
        made.bmc(stack, "bmc-swapped", uuid=SWAPPED.upper(), action_info=True, step={"systemUUID": UUID})
        made.bmc(stack, "bmc-of-another", uuid="0" + UUID[1:], step={"systemUUID": UUID})
        made.bmc(stack, "bmc-off", power="Off")
        made.bmc(stack, "bmc-without", types=["On", "ForceOff"])
        made.bmc(stack, "bmc-of-two", systems=("1", "2"))
        made.bmc(stack, "bmc-refuses", answer=409)
        made.bmc(stack, "bmc-silent", drop=True)
        made.bmc(stack, "bmc-locked", password="wrong-4711")
        made.add("bmc-unknown", "reboot", "reboot_redfish")
        made.run()
        yield made


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("reset-helps", (True, True, ["77"])),
        ("reset-of-all", (True, True, ["77", "78"])),
        ("reset-without-effect", (True, False, ["77"])),
        ("reset-refused", (False, False, ["77"])),
        ("reset-of-another-boot", (False, False, [])),
        ("reset-unreachable", (False, False, [])),
        ("reset-of-nonsense", (False, False, [])),
        ("reboot", (True, None, ["77", "78"])),
        ("reboot-blind", (True, None, [])),
        ("reboot-refused", (False, None, [])),
        ("reboot-of-another-boot", (False, False, [])),
        ("reboot-unreachable", (False, False, [])),
        ("aws", (True, None, [])),
        ("aws-of-metal", (False, None, [])),
        ("azure", (False, None, [])),
        ("replaced-by-the-site", (True, None, ["r7"])),
        ("site-fails", (None, None, [])),
        ("site-is-not-there", (False, None, [])),
        ("site-says-nonsense", (None, None, [])),
        ("site-says-no-map", (None, None, [])),
        ("bmc", (True, None, ["SN-1"])),
        ("bmc-swapped", (True, None, ["SN-1"])),
        ("bmc-of-another", (False, None, ["SN-1"])),
        ("bmc-off", (True, None, ["SN-1"])),
        ("bmc-without", (False, None, ["SN-1"])),
        ("bmc-of-two", (False, None, [])),
        ("bmc-refuses", (False, None, ["SN-1"])),
        ("bmc-silent", (None, None, ["SN-1"])),
        ("bmc-locked", (False, None, [])),
        ("bmc-unknown", (False, None, [])),
    ],
)
def test_what_came_of_it(cases, name, said):
    assert cases.said(name) == said, cases.outcomes[name]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("reset-without-effect", "the driver asks for"),
        ("reset-refused", "In use by another client"),
        ("reset-of-another-boot", f"another boot than the one that this was decided for, {BOOT}; nothing was done"),
        ("reset-unreachable", "cannot be reached"),
        ("reset-of-nonsense", "is no GPU"),
        ("reboot-unreachable", "cannot be reached"),
        ("aws-of-metal", "metal://gpu-0001 is no instance of aws"),
        ("azure", "not authorized"),
        ("site-fails", "Ask the robot: it is at lunch"),
        ("site-is-not-there", "nowhere.yml"),
        ("site-says-nonsense", "executed is neither true, false nor null; 7"),
        ("site-says-no-map", "left no map in remediate_outcome"),
        ("bmc-of-another", "nothing was reset. Correct remediate_redfish_url"),
        ("bmc-without", "cannot be reset by ForceRestart; it knows On, ForceOff"),
        ("bmc-of-two", "has 2 systems (/redfish/v1/Systems/1, /redfish/v1/Systems/2)"),
        ("bmc-refuses", "the BMC answered 409"),
        ("bmc-silent", "the BMC answered -1"),
        ("bmc-locked", "401"),
        ("bmc-unknown", "remediate_redfish_url of bmc-unknown is not set"),
    ],
)
def test_why_is_said(cases, name, words):
    assert words in cases.outcomes[name]["detail"]


def test_what_was_called(cases):
    resets = {name: cases.nodes[name].calls("nvidia-smi") for name in cases.nodes if name.startswith("reset")}
    asked = {name: [call[2:] for call in calls if "--gpu-reset" in call] for name, calls in resets.items()}
    assert asked["reset-helps"] == [["-i", GPU]] and asked["reset-of-all"] == [[]]
    for name in ("reset-of-another-boot", "reset-unreachable", "reset-of-nonsense"):
        assert asked[name] == []
    assert cases.nodes["reset-helps"].calls("systemctl")[-2:] == [
        ["systemctl", "stop", "nvidia-dcgm"],
        ["systemctl", "start", "nvidia-dcgm"],
    ]
    assert [call[1] for call in cases.nodes["reset-of-all"].calls("systemctl")] == ["is-active", "is-active"]
    reboots = [name for name in cases.nodes if ["systemctl", "reboot"] in cases.nodes[name].calls()]
    assert sorted(reboots) == ["reboot", "reboot-blind", "reboot-refused"]
    (aws,) = cases.nodes["aws"].calls("aws")
    assert aws[1:3] == ["ec2", "reboot-instances"] and aws[-2:] == ["--profile", "repair"]
    assert cases.nodes["aws-of-metal"].calls() == []
    (azure,) = cases.nodes["azure"].calls("az")
    assert azure[1:3] == ["vm", "restart"]


def test_what_bmcs_were_asked_for(cases):
    asked = {name: bmc.resets for name, bmc in cases.bmcs.items() if bmc.resets}
    system = "/redfish/v1/Systems/1"
    restarted = {name: [(system, "ForceRestart")] for name in ("bmc", "bmc-swapped", "bmc-silent")}
    assert asked == {**restarted, "bmc-off": [(system, "On")]}


def test_no_password_shows(cases):
    for bmc in cases.bmcs.values():
        assert bmc.password not in cases.printed and bmc.password not in json.dumps(cases.outcomes)
    assert "wrong-4711" not in cases.printed
