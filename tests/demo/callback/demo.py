"""What `make demo` shows of a playbook: a line for each thing that is done, as it is done, and nothing else."""

from __future__ import annotations

DOCUMENTATION = r"""
name: demo
type: stdout
short_description: A line for each task that does something
description: Set E(DEMO_TASKS) to a file that every task's result is noted in.
"""

import json
import os
import textwrap
import time

from ansible.plugins.callback import CallbackBase

# bookkeeping of the roles
QUIET = ("set_fact", "include_tasks", "import_tasks", "include_role", "tempfile", "file", "set_stats", "assert", "fail")
WIDTH = 100


def wrapped(line) -> str:
    """Indented below its task. Names and paths stay whole, so that they can be copied."""
    return textwrap.fill(
        str(line), WIDTH, initial_indent="      ", subsequent_indent="        ", break_on_hyphens=False
    )


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "demo"

    def __init__(self):
        super().__init__()
        self._began = 0.0
        self._open = False
        self._last = ""
        self._notes = os.environ.get("DEMO_TASKS")

    def v2_playbook_on_play_start(self, play):
        self._print(f"\n{play.get_name()}")

    def v2_playbook_on_task_start(self, task, is_conditional):
        self._began = time.monotonic()

    def v2_runner_on_start(self, host, task):
        self._began = time.monotonic()
        if self._shown(task) and os.isatty(1):
            self._display.display(f"  ... {self._name(task)}\r", newline=False)
            self._open = True

    def v2_runner_on_ok(self, result):
        task, data = result._task, result._result
        self._note(task, data, "ok")
        action = task.action.rpartition(".")[2]
        if action == "debug":
            lines = data.get("msg", "")
            for line in lines if isinstance(lines, list) else str(lines).splitlines():
                self._print(wrapped(line))
        elif not self._shown(task) and action != "assert":
            self._clear()
        elif action == "assert" and data.get("msg") and not task.args.get("quiet"):
            for line in data["msg"] if isinstance(data["msg"], list) else [data["msg"]]:
                self._print(wrapped(line))
        elif self._shown(task):
            mark = "+" if data.get("changed") else "-"
            self._print(f"  {mark} {self._name(task):<70} {time.monotonic() - self._began:5.1f} s")

    def v2_runner_on_failed(self, result, ignore_errors=False):
        self._note(result._task, result._result, "failed")
        message = result._result.get("msg") or result._result.get("stderr") or "failed"
        if message == self._last:
            return  # roles that tidy up fail once more at the end
        self._last = message
        self._print(f"  ! {self._name(result._task)}")
        for line in message if isinstance(message, list) else str(message).splitlines():
            self._print(wrapped(line))
        if result._result.get("stderr") and result._result["stderr"] != message:
            self._print(textwrap.indent(result._result["stderr"].strip()[-2000:], "      "))

    def v2_runner_on_skipped(self, result):
        self._clear()

    def v2_runner_on_unreachable(self, result):
        self._print(f"  ! {result._result.get('msg')}")

    def _shown(self, task) -> bool:
        return task.action.rpartition(".")[2] not in (*QUIET, "debug") and "Validating arguments" not in task.get_name()

    def _name(self, task) -> str:
        return task.get_name().rpartition(" : ")[2].partition(" | ")[0]

    def _print(self, text: str) -> None:
        self._clear()
        self._display.display(text)

    def _clear(self) -> None:
        if self._open:
            self._display.display("\033[2K\r", newline=False)
            self._open = False

    def _note(self, task, data: dict, status: str) -> None:
        if self._notes:
            kept = {key: value for key, value in data.items() if not key.startswith("_ansible")}
            note = {"task": task.get_name(), "status": status, "seconds": round(time.monotonic() - self._began, 2)}
            with open(self._notes, "a") as notes:
                notes.write(json.dumps({**note, "result": kept}, default=str) + "\n")
