# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Findings that a site accepts: JMESPath rules over a finding."""

from __future__ import annotations

from ansible_collections.goodput.fleet.plugins.module_utils.drift.codes import finding
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, Problem


class Rules:
    """Compiled rules and how often each matched. Raises InvalidDocument naming every malformed one."""

    def __init__(self, expressions: list[str]):
        import jmespath

        problems = []
        self._rules = []
        for index, expression in enumerate(expressions):
            try:
                self._rules.append((expression, jmespath.compile(expression)))
            except (jmespath.exceptions.JMESPathError, TypeError, ValueError) as error:
                problems.append(_problem(index, expression, error))
        if problems:
            raise InvalidDocument(problems)
        self.counts = [0] * len(self._rules)

    def match(self, item: dict) -> bool:
        """Whether any rule accepts the finding. All rules are tried, so that each one's count is right."""
        import jmespath

        matched = False
        for index, (expression, compiled) in enumerate(self._rules):
            try:
                hit = compiled.search(item)
            except jmespath.exceptions.JMESPathError as error:
                raise InvalidDocument(_problem(index, expression, error)) from error
            if hit not in (None, False, "", [], {}):
                self.counts[index] += 1
                matched = True
        return matched

    def result(self) -> list[dict]:
        return [{"rule": rule, "count": count} for (rule, _unused), count in zip(self._rules, self.counts, strict=True)]

    def unused(self) -> list[dict]:
        return [
            finding("ignore-rule-unused", f"ignore[{index}]", f"the ignore rule {rule!r} matched nothing", found=rule)
            for index, (rule, _compiled) in enumerate(self._rules)
            if not self.counts[index]
        ]


def _problem(index: int, expression: object, error: Exception) -> Problem:
    what = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return Problem(
        "bad-ignore-rule",
        f"{expression!r} is not a rule that can be used: {what}",
        path=f"ignore[{index}]",
        hint="a JMESPath expression over a finding, such as code == 'container-added' && component == 'x'",
    )
