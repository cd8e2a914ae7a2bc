"""The words that work.py and the tools share."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Act:
    lines: list[str]
    code: int = 0
    hang: bool = False  # after the lines; it then ends only when it is stopped


@dataclass
class Work:
    command: list[str]
    env: dict[str, str]
    nodes: list[str]  # of the run, by the index of their pods
    hosts: list[str]
    me: int
    gpus: int  # on each node, as launched
    faults: dict[str, str]
    bad_pair: bool
    wobble: float  # about 1

    @property
    def my_fault(self) -> str:
        return self.faults.get(self.nodes[self.me], "")

    def hosts_with(self, *faults: str) -> list[str]:
        return [host for node, host in zip(self.nodes, self.hosts, strict=True) if self.faults.get(node, "") in faults]

    def option(self, *names: str, default: str = "") -> str:
        """The value after the last of these options, or behind its =."""
        found = default
        for index, word in enumerate(self.command):
            if word in names and index + 1 < len(self.command):
                found = self.command[index + 1]
            for name in names:
                if word.startswith(f"{name}="):
                    found = word.partition("=")[2]
        return found
