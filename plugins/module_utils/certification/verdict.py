# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From what a run printed and how it ended to a row per node, and from the rows to a verdict per node. Pure.

    rows = outcomes(run, parsed, observed, bounds.load(run))
    nodes = combine(rows, required=["nccl-all-reduce"], asked=["gpu-0001", "gpu-0002"])

A pass needs everything: pods that ran on every node of the run and ended with 0, output to its end, work that was
done, no finding against it, and a bound for what was measured. Whatever is missing is an outcome of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ansible_collections.goodput.fleet.plugins.module_utils.certification import durations
from ansible_collections.goodput.fleet.plugins.module_utils.certification.bounds import Bounds, judge
from ansible_collections.goodput.fleet.plugins.module_utils.certification.findings import (
    BLOCKED,
    CONFIGURATION,
    CRASH,
    ERROR,
    FABRIC,
    FAIL,
    GROUP,
    HANG,
    HARDWARE,
    INFRASTRUCTURE,
    NOT_APPLICABLE,
    NOT_MEASURED,
    NOT_RUN,
    ORDER,
    PASS,
    SKIPPED,
    TOOL,
    UNBOUNDED,
    UNKNOWN,
    Cause,
    cause_of,
    cause_of_pod,
    weight,
)
from ansible_collections.goodput.fleet.plugins.module_utils.records import digest

REASONS = 50
# what is known of a node before anything runs: the key in the context, and the outcome
BEFORE = {"blocked": BLOCKED, "notApplicable": NOT_APPLICABLE, "skipped": SKIPPED}
# their output speaks of one node at a time
PER_NODE = ("dcgm-diag", "nvbandwidth", "gpu-burn")
_RANKS_TOLD = frozenset(
    [
        "ranks-missing",
        "ranks-too-many",
        "ranks-unknown",
        "host-missing",
        "hosts-missing",
        "hosts-too-many",
        "hosts-unknown",
        "ranks-not-joined",
        "runs-interleaved",
        "single-rank",
        "no-run",
        "run-incomplete",
    ]
)


def outcomes(
    run: Mapping,
    parsed: Mapping | None,
    observed: Mapping,
    bounds: Bounds,
    context: Mapping | None = None,
) -> list[dict]:
    """One row per node of the run, and per node of `context["asked"]`.

    run: a planned run: {id, category, test, nodes, launcher, limits (seconds), parser: {tool}, arguments (of the
    parser), expected: {ranks, hosts}, accelerator, scope, repeat, purpose}.
    parsed: a parser's result; None where there was no output.
    observed: {phase: queued | starting | running | succeeded | failed | gone, pods: [{name, node, phase, exitCode,
    reason, message, restarts, role, index}], why, timedOut: the limit for which the run was stopped (queue | start |
    run | silence) or None, dirty: {node: what is left}}.
    context: {category, accelerator, scope (the run's own without them), fleet (see `bounds.judge`), asked: [node],
    hosts: {host in the output: node}, and blocked, notApplicable, skipped: {node: why}}.

    A row: {node, category, test, run, result (of the run and its bounds), repeat, purpose, outcome, code,
    reasons: [text], warnings: [text], attribution: hardware | configuration | tool | infrastructure | unknown |
    group | None, own, metrics, violations, notMeasured, boundsUsed}. With `group` nothing tells which node of
    the group it was.
    """
    nodes = list(run["nodes"])
    context = {"accelerator": run.get("accelerator"), "scope": run.get("scope"), **(context or {})}
    if len(nodes) == 1:
        context["scope"] = "domain"
    # categories that differ only in bounds share a run, and each has its own rows
    run = {**run, "category": context.get("category") or run["category"]}
    before = {node: (outcome, why) for key, outcome in BEFORE.items() for node, why in (context.get(key) or {}).items()}
    judgement = _Judgement(run, parsed, observed or {}, bounds, context)
    rows = []
    for node in dict.fromkeys([*nodes, *(context.get("asked") or ())]):
        if node in before:
            outcome, why = before[node]
            attribution = UNKNOWN if outcome == BLOCKED else CONFIGURATION
            rows.append(_row(run, bounds, node, Cause(outcome, outcome.replace("_", "-"), why, attribution)))
        elif node not in nodes:
            cause = Cause(NOT_RUN, "not-tested", "no test ran on this node", INFRASTRUCTURE)
            rows.append(_row(run, bounds, node, cause))
        else:
            rows.append(judgement.of(node))
    return rows


class _Judgement:
    def __init__(self, run: Mapping, parsed: Mapping | None, observed: Mapping, bounds: Bounds, context: Mapping):
        self.run, self.observed, self.bounds, self.context = run, observed, bounds, context
        self.parsed = parsed or {}
        self.findings = self.parsed.get("findings") or ()
        self.alone = len(run["nodes"]) == 1
        self.apart = self.parsed.get("tool") in PER_NODE
        self.tool = (run.get("parser") or {}).get("tool") or self.parsed.get("tool") or ""
        self.pods = observed.get("pods") or ()
        self.complete = self.parsed.get("complete") is True
        self.warnings: list[str] = []
        self.places = self._places()
        self.causes = self._causes()

    def of(self, node: str) -> dict:
        mine = [cause for cause in self.causes if cause.node in ("", node)]
        others = [cause for cause in self.causes if cause.node not in ("", node)]
        runs = self._runs(node)
        judged = judge(self.bounds, runs, self.context)
        if others and not self.apart and not any(cause.node for cause in mine):
            # that the run came to nothing follows from the other node
            named = "; ".join(f"{cause.node}: {cause.text}" for cause in others[:5])
            spoiled = Cause(NOT_MEASURED, "spoiled", f"another node spoiled the test of the group: {named}", GROUP)
            mine = [*(cause for cause in mine if cause.outcome in (FAIL, HANG)), spoiled]
        mine = mine or self._measured(node, runs) or self._bounded(judged)
        dirty = (self.observed.get("dirty") or {}).get(node)
        if dirty:
            text = f"the test left something on the node: {dirty}"
            mine = [*mine, Cause(ERROR, "dirty", text, INFRASTRUCTURE)]
        mine = sorted(mine, key=weight)
        row = _row(self.run, self.bounds, node, mine[0], [cause.text for cause in mine])
        row["warnings"] = list(dict.fromkeys([*self.warnings, *self.bounds.warnings]))[:REASONS]
        row["metrics"] = _metrics(runs)
        row.update({key: judged[key] for key in ("violations", "notMeasured", "boundsUsed")})
        return row

    def _places(self) -> dict[str, str]:
        """Nodes by the names that the output may have for them; a short name only where it is one node's."""
        names = {pod["name"]: pod["node"] for pod in self.pods if pod.get("name") and pod.get("node")}
        names |= {node: node for node in self.run["nodes"]} | dict(self.context.get("hosts") or {})
        short: dict[str, set[str]] = {}
        for name, node in names.items():
            short.setdefault(_short(name), set()).add(node)
        places = {name: nodes.pop() for name, nodes in short.items() if len(nodes) == 1}
        places.update({name.lower(): node for name, node in names.items()})
        return {name: node for name, node in places.items() if node in self.run["nodes"]}

    def _node(self, host: str | None) -> str:
        """The node that a host of the output is; "" where that is not known."""
        host = (host or "").lower()
        return self.places.get(host) or self.places.get(_short(host), "")

    def _runs(self, node: str) -> list[Mapping]:
        """What was measured on the node."""
        runs = [run for run in self.parsed.get("runs") or () if isinstance(run, Mapping)]
        if self.alone or not self.apart:
            return runs
        return [run for run in runs if node in map(self._node, run.get("hosts") or ())]

    # ---------------------------------------------------------------- what speaks against a pass

    def _causes(self) -> list[Cause]:
        """All that speaks against a pass, or where that makes the rest meaningless, only what does."""
        found = [self._of_finding(finding) for finding in self.findings]
        causes = [cause for cause in found if cause]
        fabric = [cause for cause in causes if cause.code == FABRIC]
        if fabric:
            # without it CUDA starts on no GPU, and all else that is said follows from that
            return fabric
        self.warnings = [finding["message"] for finding in self.findings if finding.get("severity") == "warning"]
        hardware = [cause for cause in causes if cause.outcome == FAIL and cause.attribution == HARDWARE]
        pods = [cause for cause in map(cause_of_pod, self.pods) if cause]
        if not hardware and (pods or not self._ended()):
            return pods or [self._unfinished()]
        return causes + self._ending()

    def _of_finding(self, finding: Mapping) -> Cause | None:
        if finding["code"] == "single-rank" and self._expected("ranks") in (None, 1):
            return Cause(NOT_APPLICABLE, "single-rank", finding["message"], CONFIGURATION)
        required = finding["code"] in ("test-skipped", "test-not-run") and not self._required()
        if required and finding.get("severity") == "warning":
            # nobody said which tests must run, so that all must
            finding = {**finding, "severity": "error"}
        return cause_of(finding, self._node(finding.get("host")), self.alone, self.apart)

    def _ended(self) -> bool:
        """The processes came to their end, or the output did and only they did not."""
        if self._timed_out() in ("queue", "start"):
            return False
        return self.observed.get("phase") in ("succeeded", "failed") or bool(self._timed_out())

    def _timed_out(self) -> str:
        if any(pod.get("reason") == "DeadlineExceeded" for pod in self.pods):
            return "run"
        return self.observed.get("timedOut") or ""

    def _unfinished(self) -> Cause:
        phase, why = self.observed.get("phase"), self.observed.get("why")
        said, limits = f": {why}" if why else "", self.run.get("limits") or {}
        late = self._timed_out()
        if late == "queue":
            return Cause(
                NOT_RUN, "queue-timeout", f"the run was not admitted by its queue in time{said}", INFRASTRUCTURE
            )
        if late == "start":
            limit = f" within {durations.text(limits['start'])}" if limits.get("start") else " in time"
            return Cause(NOT_RUN, "start-timeout", f"not all pods of the run ran{limit}{said}", INFRASTRUCTURE)
        if phase == "gone":
            text = f"the objects of the run went away before its end{said}"
            return Cause(ERROR, "objects-gone", text, INFRASTRUCTURE)
        return Cause(
            NOT_RUN, "not-ended", f"the run has not come to its end ({phase or 'phase unknown'}){said}", UNKNOWN
        )

    def _ending(self) -> list[Cause]:
        causes = []
        late, limits = self._timed_out(), self.run.get("limits") or {}
        if self._stopped() and self.complete:
            self.warnings.append("the output is complete, but its processes did not end and were stopped")
        elif late == "silence":
            limit = f" for {durations.text(limits['silence'])}" if limits.get("silence") else ""
            text = f"the test wrote nothing{limit} and was stopped before its end"
            causes.append(Cause(HANG, "silence", text, UNKNOWN if self.alone else GROUP))
        elif late == "run":
            limit = f" of {durations.text(limits['run'])}" if limits.get("run") else ""
            causes.append(Cause(ERROR, "run-timeout", f"the test was stopped at its limit{limit}", UNKNOWN))
        causes += self._exits()
        if self.tool != "none" and not self.complete and not self._stopped():
            what = "the output of the test breaks off" if self.parsed.get("lines") else "the test has no output"
            causes.append(Cause(ERROR, "output-incomplete", what, UNKNOWN))
        return causes + self._place() + self._joined()

    def _exits(self) -> list[Cause]:
        causes = []
        counted = [pod for pod in self.pods if not self._worker(pod)]
        bad = [pod for pod in counted if pod.get("exitCode")]
        restarted = [pod for pod in self.pods if pod.get("restarts")]
        # what was stopped ended as it was told to
        for pod in bad[:8] if not self._stopped() else ():
            text = f"{pod.get('name')} ended with {_status(pod['exitCode'])}"
            if self.complete:
                text += ", although its output is complete"
            code = "crash" if 128 < pod["exitCode"] < 160 else "exit-status"
            causes.append(Cause(ERROR, code, text, UNKNOWN, (pod.get("node") or "") if self.apart else ""))
        if self.observed.get("phase") == "failed" and not bad and not self._stopped():
            why = f": {self.observed['why']}" if self.observed.get("why") else ""
            causes.append(Cause(ERROR, "failed", f"the run failed{why}", UNKNOWN))
        if restarted:
            names = ", ".join(str(pod.get("name")) for pod in restarted[:8])
            causes.append(Cause(ERROR, "restarted", f"{names} began anew in the middle of the test", UNKNOWN))
        return causes

    def _stopped(self) -> bool:
        return self._timed_out() in ("run", "silence")

    def _worker(self, pod: Mapping) -> bool:
        """A worker of mpirun is stopped when the launcher has ended: how it ends says nothing."""
        if self.run.get("launcher") != "mpijob" or pod.get("role") == "launcher":
            return False
        return pod.get("index") != 0 or any(other.get("role") == "launcher" for other in self.pods)

    def _place(self) -> list[Cause]:
        ran = {pod.get("node") for pod in self.pods}
        missing = [node for node in self.run["nodes"] if node not in ran]
        if not missing:
            return []
        text = f"nothing shows that the test ran on {', '.join(missing[:8])}"
        text += f" and {len(missing) - 8} more" if len(missing) > 8 else ""
        return [Cause(ERROR, "node-missing", text, INFRASTRUCTURE)]

    def _joined(self) -> list[Cause]:
        """Ranks and hosts of a collective, where its parser was not told what to expect."""
        if self.parsed.get("tool") != "nccl-tests" or _RANKS_TOLD & {finding["code"] for finding in self.findings}:
            return []
        causes = []
        for key, name in (("ranks", "rankCount"), ("hosts", "hosts")):
            wanted = self._expected(key)
            for run in self.parsed.get("runs") or ():
                found = len(run.get(name) or ()) if key == "hosts" else run.get(name)
                if wanted and found != wanted:
                    text = f"the run tells {found or 'no'} {key}, {wanted} were launched"
                    causes.append(Cause(ERROR, f"{key}-missing", text, CONFIGURATION))
        return causes

    def _expected(self, key: str) -> int | None:
        wanted = (self.run.get("expected") or {}).get(key)
        return len(wanted) if isinstance(wanted, (list, tuple, set)) else wanted

    # ---------------------------------------------------------------- what speaks for one

    def _measured(self, node: str, runs: Sequence[Mapping]) -> list[Cause]:
        """Why the run is no proof of work, although nothing speaks against it."""
        if self.tool == "none":
            return []
        tool = self.parsed.get("tool")
        where = "" if self.alone else f" of {node}"
        if tool == "dcgm-diag":
            status = {test.get("name"): test.get("status") for run in runs for test in run.get("tests") or ()}
            unmet = {name: status.get(name) for name in self._required() or status if status.get(name) != PASS}
            if unmet:
                told = ", ".join(f"{name} {word or 'has no result'}" for name, word in sorted(unmet.items(), key=str))
                ran = set(unmet.values()) - {None, "skip", "not_run"}
                text = f"tests that must pass did not{where}: {told}"
                return [Cause(ERROR if ran else SKIPPED, "required-tests", text, TOOL)]
            if not status:
                return [Cause(NOT_MEASURED, "no-measurement", f"no test of the diagnostic passed{where}", TOOL)]
            return []
        metrics = _metrics(runs)
        if tool == "gpu-burn":
            done = (metrics.get("iterations.min") or {}).get("value")
            if not done or done < 0:
                return [Cause(ERROR, "no-work", f"nothing shows that every GPU{where} did any work", TOOL)]
        if not set(metrics) - {"wrongValues"}:
            return [Cause(NOT_MEASURED, "no-measurement", f"the output{where} holds no measurement", TOOL)]
        return []

    def _required(self) -> list[str]:
        """Tests of a diagnostic that must pass."""
        return list((self.run.get("arguments") or {}).get("expected_tests") or ())

    def _bounded(self, judged: Mapping) -> list[Cause]:
        unsure = UNKNOWN if self.alone else GROUP
        causes = [Cause(FAIL, "bound", violation["text"], unsure) for violation in judged["violations"]]
        causes += [Cause(NOT_MEASURED, "not-measured", item["text"], TOOL) for item in judged["notMeasured"]]
        if causes:
            return causes
        if judged["uncovered"]:
            text = f"no bound is for nodes or groups like these: {', '.join(judged['uncovered'])}"
            return [Cause(UNBOUNDED, "unbounded", text, "")]
        # a diagnostic that was told which tests must pass has its bounds in itself
        if judged["unbounded"] and not (self.parsed.get("tool") == "dcgm-diag" and self._required()):
            return [Cause(UNBOUNDED, "unbounded", "nothing that was measured has a bound", "")]
        return [Cause(PASS, "pass", "", "")]


def _row(run: Mapping, bounds: Bounds, node: str, cause: Cause, reasons: Iterable[str] = ()) -> dict:
    reasons = [text for text in dict.fromkeys(reasons or [cause.text]) if text]
    return {
        "node": node,
        "category": run["category"],
        "test": run["test"],
        "run": run["id"],
        "result": digest.sha256({"run": run["id"], "bounds": [bound.as_dict() for bound in bounds.entries]})[7:19],
        "repeat": run.get("repeat", 0),
        "purpose": run.get("purpose", "screen"),
        "outcome": cause.outcome,
        "code": cause.code,
        "reasons": reasons[:REASONS],
        "warnings": [],
        "attribution": cause.attribution or None,
        "own": len(run["nodes"]) == 1 or cause.node == node or cause.outcome in (PASS, UNBOUNDED),
        "metrics": {},
        "violations": [],
        "notMeasured": [],
        "boundsUsed": [],
    }


def _metrics(runs: Iterable[Mapping]) -> dict:
    """Of several runs in one output the last that has a metric."""
    return {name: value for run in runs for name, value in (run.get("metrics") or {}).items() if value}


def _short(host: str) -> str:
    first = str(host).partition(".")[0].lower()
    return str(host).lower() if first.isdigit() else first  # an address has no short form


def _status(code: int) -> str:
    return f"signal {code - 128} (exit status {code})" if 128 < code < 160 else f"exit status {code}"


def for_search(rows: Sequence[Mapping]) -> dict:
    """{outcome, signature} of a group's test, as the search for the bad node takes it."""
    rows = [row for row in rows if row["code"] != "not-tested"]
    if not rows:
        return {"outcome": NOT_RUN, "signature": ""}
    worst = min(rows, key=lambda row: ORDER.index(row["outcome"]))
    outcome = worst["outcome"]
    if outcome == ERROR and worst["code"] in CRASH:
        outcome = "crash"
    return {"outcome": outcome, "signature": next(iter(worst["reasons"]), "")}


# ---------------------------------------------------------------- per node


def combine(
    rows: Iterable[Mapping],
    required: Iterable[str] | None = None,
    asked: Iterable[str] | None = None,
    allow_unbounded: bool | Iterable[str] = False,
    cleared: Mapping[str, Iterable[str]] | None = None,
    blamed: Mapping[str, Mapping[str, str]] | None = None,
) -> list[dict]:
    """A verdict per node: the worst of its required tests.

    `required` are categories, all that have a row without it; `asked` nodes get a verdict also without a row.
    `allow_unbounded`: whether pass_unbounded may open a gate, or the categories where it may. `cleared`:
    {category: [node]} that a search after a failing group found to be good; what only the group did (rows that
    are not the node's `own`) is taken off such a node if it passed a test of that category itself. `blamed`:
    {category: {node: text}} that it found to be bad or flaky: they fail, and no longer for their group only.

    Gives [{node, verdict, mayOpenGate, attribution, reasons, tests: [{category, test, outcome, code, attribution,
    reasons, runs}]}], in the order of `asked`. A later row of the same run replaces one that says nothing about the
    node (it was run again), never a fail.
    """
    by_node: dict[str, dict[str, list[Mapping]]] = {node: {} for node in asked or ()}
    names: dict[str, None] = dict.fromkeys(required or ())
    for row in rows:
        by_node.setdefault(row["node"], {}).setdefault(row["category"], []).append(row)
        if required is None:
            names[row["category"]] = None
    allowed = allow_unbounded if isinstance(allow_unbounded, bool) else set(allow_unbounded)
    good = {category: set(nodes) for category, nodes in (cleared or {}).items()}
    verdicts = []
    for node, categories in by_node.items():
        tests = [_of_category(name, categories.get(name, []), node in good.get(name, ())) for name in names]
        tests = [_blamed(test, ((blamed or {}).get(test["category"]) or {}).get(node)) for test in tests]
        worst = min(tests, key=lambda test: ORDER.index(test["outcome"]), default=None)
        verdicts.append(
            {
                "node": node,
                "verdict": worst["outcome"] if worst else NOT_RUN,
                "mayOpenGate": bool(tests) and all(_opens(test, allowed) for test in tests),
                "attribution": worst["attribution"] if worst else None,
                "reasons": [f"{test['category']}: {text}" for test in tests for text in test["reasons"]][:REASONS],
                "tests": tests,
            }
        )
    return verdicts


def _opens(test: Mapping, allowed: bool | set[str]) -> bool:
    if test["outcome"] == UNBOUNDED:
        return allowed if isinstance(allowed, bool) else test["category"] in allowed
    return test["outcome"] == PASS


def _blamed(test: dict, text: str | None) -> dict:
    if not text:
        return test
    own = test["attribution"] if test["outcome"] == FAIL and test["attribution"] != GROUP else UNKNOWN
    return {**test, "outcome": FAIL, "code": "found", "attribution": own, "reasons": [text, *test["reasons"]]}


def _replaced(old: Mapping, row: Mapping) -> bool:
    same = (old["run"], old.get("result")) == (row["run"], row.get("result"))
    return same and old["outcome"] not in (FAIL, HANG)


def _of_category(category: str, rows: list[Mapping], cleared: bool) -> dict:
    kept: list[Mapping] = []
    for row in rows:
        kept = [old for old in kept if not _replaced(old, row)] + [row]
    passed = [row for row in kept if row["outcome"] in (PASS, UNBOUNDED)]
    if cleared and passed:
        kept = [row for row in kept if row["attribution"] != GROUP and row.get("own", True)]
    if not kept:
        test = {"category": category, "test": "", "outcome": NOT_RUN, "code": "not-tested", "attribution": None}
        return {**test, "reasons": ["no test ran on this node"], "runs": []}
    worst = min(kept, key=lambda row: ORDER.index(row["outcome"]))
    return {
        **{key: worst[key] for key in ("category", "test", "outcome", "code", "attribution")},
        "reasons": list(worst["reasons"]),
        "runs": [row["run"] for row in kept],
    }
