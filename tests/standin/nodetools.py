# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs of a GPU node, and of clouds, as scripts in a folder: nvidia-smi, systemctl, aws, gcloud, az.

node = NodeTools(folder, shows=smi.log(...), after_reset=smi.log(...))
node.program("nvidia-smi")      # prints `shows`; with --gpu-reset it shows `after_reset` from then on
node.program("systemctl")       # `reboot` runs the command line `on_reboot`
node.calls()                    # [["nvidia-smi", "-q", "-x"], ...] in order
"""

from __future__ import annotations

import shlex
from pathlib import Path

SCRIPT = """#!/bin/sh
{{ printf '%s' {name}; for each in "$@"; do printf '\\t%s' "$each"; done; echo; }} >> {folder}/calls
{body}
"""


class NodeTools:
    def __init__(
        self,
        folder: Path,
        shows: str = "",
        after_reset: str | None = None,
        reset_says: str = "GPU 00000000:10:00.0 was successfully reset.",
        reset_code: int = 0,
        boot_id: str = "0b0c1d2e-0000-4000-8000-000000000001",
        on_reboot: str = "",
        reboot_code: int = 0,
        active: tuple[str, ...] = (),
        cloud_code: int = 0,
    ):
        self.folder = folder
        folder.mkdir(parents=True)
        (folder / "shows").write_text(shows)
        (folder / "after").write_text(shows if after_reset is None else after_reset)
        self.set_boot_id(boot_id)
        self._script(
            "nvidia-smi",
            f"case $1 in --gpu-reset) echo {shlex.quote(reset_says)}; "
            f"[ {reset_code} = 0 ] && cp {folder}/after {folder}/shows; exit {reset_code};; "
            f"*) cat {folder}/shows;; esac",
        )
        running = "|".join(active) or "nothing"
        self._script(
            "systemctl",
            f"case $1 in is-active) for last; do :; done; case $last in {running}) exit 0;; *) exit 3;; esac;; "
            f"reboot) {on_reboot or ':'}; exit {reboot_code};; esac",
        )
        for name in ("aws", "gcloud", "az"):
            self._script(name, f"[ {cloud_code} = 0 ] || echo 'not authorized' >&2; exit {cloud_code}")

    def program(self, name: str) -> str:
        return str(self.folder / name)

    def set_boot_id(self, boot_id: str) -> None:
        self.boot_id = boot_id
        (self.folder / "boot_id").write_text(f"{boot_id}\n")

    def calls(self, name: str = "") -> list[list[str]]:
        path = self.folder / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        return [words for words in (line.split("\t") for line in lines) if words[0] == (name or words[0])]

    def variables(self) -> dict:
        """Of the role remediate, for this node."""
        return {
            "remediate_nvidia_smi": self.program("nvidia-smi"),
            "remediate_boot_id_file": str(self.folder / "boot_id"),
            "remediate_reboot_command": [self.program("systemctl"), "reboot"],
        }

    def _script(self, name: str, body: str) -> None:
        path = self.folder / name
        path.write_text(SCRIPT.format(name=name, folder=shlex.quote(str(self.folder)), body=body))
        path.chmod(0o755)
