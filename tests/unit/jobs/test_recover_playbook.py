# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook recover: nothing that fails on the way keeps the job track from being joined and told."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

HERE = Path(__file__).parents[3]
ROLE = HERE / "roles/recover_jobs"


def read(path: str) -> list:
    return yaml.safe_load((HERE / path).read_text())


def of_role(task: dict) -> str:
    given = task.get("ansible.builtin.include_role") or {}
    return given["tasks_from"] if given.get("name") == "goodput.fleet.recover_jobs" else ""


def test_between_start_and_finish_every_part_that_may_fail_is_rescued():
    tasks = [task for play in read("playbooks/recover.yml") if play["hosts"] == "localhost" for task in play["tasks"]]
    order = [of_role(task) for task in tasks]
    start, finish = order.index("start"), order.index("finish")
    assert start < order.index("hardware") < finish == len(tasks) - 1
    assert all("rescue" in task or of_role(task) == "hardware" for task in tasks[start + 1 : finish])
    assert all("rescue" in task for task in read("roles/recover_jobs/tasks/hardware.yml"))


def test_when_it_ends_reports_and_diagnoses_that_fail_do_not_hide_the_result():
    tasks = read("roles/recover_jobs/tasks/finish.yml")
    told = [task for task in tasks if "ansible.builtin.set_stats" in task or "ansible.builtin.assert" in task]
    others = [task for task in tasks if "block" in task]
    assert len(told) == 2 and len(others) == 2 and all("rescue" in task for task in others)
    assert max(map(tasks.index, others)) < min(map(tasks.index, told))


def test_variables_are_declared_defaulted_and_used_alike():
    specs = yaml.safe_load((ROLE / "meta/argument_specs.yml").read_text())["argument_specs"]
    defaults = yaml.safe_load((ROLE / "defaults/main.yml").read_text())
    declared = specs["main"]["options"]
    assert {name: each["default"] for name, each in declared.items()} == defaults
    assert all(each["options"] == declared for each in specs.values())
    parts = [path.read_text() for path in (*ROLE.glob("tasks/*.yml"), *ROLE.glob("vars/*.yml"))]
    text = "\n".join([*parts, (HERE / "playbooks/recover.yml").read_text()])
    used = set(re.findall(r"\brecover_jobs_\w+", text))
    results = {"recover_jobs_result", "recover_jobs_diagnosis", "recover_jobs_drain"}
    assert used - results - {"recover_jobs_"} == declared.keys()
    assert set(re.findall(r"\brecover_jobs_\w+", (ROLE / "README.md").read_text())) <= declared.keys()
