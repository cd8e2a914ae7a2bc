# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a certification runs: which nodes in which groups, for how long, and which nodes cannot be tested. Pure.

    planner = Planner(certification, tests, nodes, options)
    planned = planner.plan()
    further = planner.run("nccl-all-reduce", ["gpu-1", "gpu-7"], repeat=2, purpose="isolate")

Every node that is asked for has a row in every category: with the ids of its runs, or with why it has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.certification import bounds, catalogue, grouping, timetable
from ansible_collections.goodput.fleet.plugins.module_utils.certification import nodes as nodes_
from ansible_collections.goodput.fleet.plugins.module_utils.certification.isolation import plan as isolation
from ansible_collections.goodput.fleet.plugins.module_utils.certification.nodes import Node
from ansible_collections.goodput.fleet.plugins.module_utils.certification.planned_run import Team, build
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import (
    FleetError,
    InvalidDocument,
    NotFound,
    Problem,
    nearest,
)

OPTIONS = {
    "domainLabels": nodes_.DOMAIN_LABELS,
    "poolTaints": nodes_.POOL_TAINTS,
    "gpuResource": nodes_.GPU,
    "includeCordoned": False,
}
DIAGNOSE = "diagnose"
# of one category; so many are a slip in repeatCount
MOST_RUNS = 100_000
# tools whose output is a pass or none by itself
JUDGES = ("dcgm_diag",)


def plan(
    certification: Mapping, tests: catalogue.Tests, nodes: Iterable[Mapping], options: Mapping | None = None
) -> dict:
    """{runs, rows, blocked, searches, categories, nodes, jobs, limits, nodeHours, longestPathMinutes, notes,
    problems}.

    certification: of `documents.load`; nodes: see `nodes.read`. options: domainLabels, poolTaints (globs),
    gpuResource, includeCordoned.
    runs: see `planned_run.build`. rows: [{node, category, test, runs: [ids], outcome?, why?}]; blocked: those of them
    without a run, with outcome blocked, not_applicable or not_run. searches: [{category, nodes: [{name, domain}],
    options}] as `isolation.plan.advance` takes them. nodeHours and longestPathMinutes are upper bounds, by the limits
    of the runs, without what searches add. problems: [{code, message, …, severity}]; errors among them mean that
    nothing is to be run.
    Raises InvalidDocument or NotFound with everything that is wrong with the categories.
    """
    return Planner(certification, tests, nodes, options).plan()


class Planner:
    """One certification on one fleet."""

    def __init__(
        self,
        certification: Mapping,
        tests: catalogue.Tests,
        nodes: Iterable[Mapping],
        options: Mapping | None = None,
    ):
        self.options = _options(options)
        self.spec, self.tests = certification["spec"], tests
        self.limits = self.spec.get("limits", {})
        self.fleet = nodes_.read(nodes)
        self.asked, self.others = nodes_.select(self.fleet, self.spec["target"])
        self.by_name = {node.name: node for node in self.asked}
        self.domains = {node.name: node.domain(self.options["domainLabels"]) for node in self.asked}
        self.whole = nodes_.whole_counts(self.fleet, self.options["gpuResource"])
        self._whole_nics: dict[str, dict[str, int]] = {}
        selectors = self.spec["target"].get("taintSelectors", ())
        gates, pools = self.spec.get("tolerateGates", ()), self.options["poolTaints"]
        self.access = {
            node.name: nodes_.access(node, gates, selectors, pools, self.options["includeCordoned"])
            for node in self.asked
        }
        self.categories = {category["name"]: category for category in self.spec["categories"]}
        self.resolved = self._resolve()
        self._searched: dict[tuple[str, str], dict] = {}
        self._unmet: list[str] = []  # what is asked for and the plan cannot do

    def _resolve(self) -> dict[tuple[str, str], dict]:
        """(category, accelerator) -> ResolvedTest."""
        found: dict[tuple[str, str], dict] = {}
        problems: list[Problem] = []
        errors: list[FleetError] = []
        for category in self.spec["categories"]:
            for accelerator in self._accelerators():
                try:
                    key = (category["name"], accelerator)
                    found[key] = self.tests.resolve(category, category["options"], accelerator)
                    found[key]["notes"] += bounds.load(found[key]).warnings
                except FleetError as error:
                    errors.append(error)
                    problems += [problem for problem in error.problems if problem not in problems]
        if problems:
            kinds = {type(error) for error in errors}
            raise (NotFound if kinds == {NotFound} else InvalidDocument)(problems)
        return found

    def _accelerators(self) -> list[str]:
        return sorted({node.accelerator for node in self.asked}) or [""]

    def plan(self) -> dict:
        runs: dict[str, dict] = {}
        rows: list[dict] = []
        searches: list[dict] = []
        for category in self.spec["categories"]:
            for run in self._category(category, rows, searches):
                # categories that differ in bounds only look at one run
                first = runs.setdefault(run["id"], run)
                if category["name"] not in first["categories"]:
                    first["categories"].append(category["name"])
        kept, problems = self._cap(list(runs.values()), rows)
        path = timetable.minutes(kept, self.concurrent(), self.limits.get("maxNodesOut"))
        problems += self._faults(path)
        return {
            "runs": kept,
            "rows": rows,
            "blocked": [row for row in rows if not row["runs"]],
            "searches": searches,
            "categories": [self._summary(category) for category in self.spec["categories"]],
            "nodes": [*(node.name for node in self.asked), *self.others],
            "jobs": len(kept),
            "limits": dict(self.limits),
            "nodeHours": round(sum(len(run["nodes"]) * run["limits"]["run"] for run in kept) / 3600, 2),
            "longestPathMinutes": path,
            "notes": self._notes(),
            "problems": [problem.as_dict() for problem in problems],
        }

    def run(self, category: str, names: Iterable[str], repeat: int = 1, purpose: str = "isolate") -> dict:
        """The Run of further nodes, such as those that a search asks for. Raises InvalidDocument."""
        names = list(names)
        if category not in self.categories:
            raise InvalidDocument(
                f"there is no category {category!r}", path="category", hint=nearest(category, self.categories)
            )
        for name in names:
            if name not in self.by_name:
                raise InvalidDocument(
                    f"{name!r} is no node of this plan", path="nodes", hint=nearest(name, self.by_name)
                )
        resolved = self.resolved[category, self.by_name[names[0]].accelerator]
        if purpose != "screen":
            resolved = self._shorter(category, self.by_name[names[0]].accelerator)
        return build(resolved, self._team(resolved, names), repeat, purpose)

    def _shorter(self, name: str, accelerator: str) -> dict:
        """The test as a search runs it, again and again."""
        if (name, accelerator) not in self._searched:
            category = self.categories[name]
            options = {**category["options"], "testScale": DIAGNOSE}
            self._searched[name, accelerator] = self.tests.resolve(category, options, accelerator)
        return self._searched[name, accelerator]

    # ------------------------------------------------------------ one category

    def _category(self, category: Mapping, rows: list[dict], searches: list[dict]) -> list[dict]:
        runs, why = [], dict(self._refused(category))
        kinds: dict[tuple, list[Node]] = {}
        for node in self.asked:
            if node.name not in why:
                gpus, nics = self._devices(category, node)
                kinds.setdefault((node.product, gpus, nics), []).append(node)
        for _kind, members in sorted(kinds.items(), key=lambda entry: entry[0]):
            formed = self._form(category, members, searches)
            why.update({name: ("blocked", text) for name, text in formed.left.items()})
            resolved = self._test(category, members[0])
            repeats = 1 if self._searching(category, resolved) else category["options"].get("repeatCount", 1)
            self._bearable(category, len(runs) + len(formed.groups) * repeats, repeats)
            for group in formed.groups:
                for repeat in range(1, repeats + 1):
                    runs.append(build(resolved, self._team(resolved, group.nodes, group.borrowed), repeat, "screen"))
        ids: dict[str, list[str]] = {}
        for run in runs:
            for name in run["nodes"]:
                ids.setdefault(name, []).append(run["id"])
        why.update({name: ("blocked", text) for name, text in self.others.items()})
        test = self._any(category)["test"]
        for name in [*(node.name for node in self.asked), *self.others]:
            row = {"node": name, "category": category["name"], "test": test, "runs": ids.get(name, [])}
            if not row["runs"]:
                later = ("not_run", "tested later, together with nodes that have passed")
                row["outcome"], row["why"] = why.get(name, later)
            rows.append(row)
        return runs

    def _bearable(self, category: Mapping, runs: int, repeats: int) -> None:
        if runs > MOST_RUNS:
            message = f"{category['name']} would be {runs} runs, at most {MOST_RUNS} can be planned"
            hint = f"repeatCount is {repeats}"
            raise InvalidDocument(message, path=f"categories.{category['name']}.options.repeatCount", hint=hint)

    def _refused(self, category: Mapping) -> Iterable[tuple[str, tuple[str, str]]]:
        """(node, (outcome, why)) of nodes that cannot be tested."""
        gpu = self.options["gpuResource"]
        for node in self.asked:
            resolved = self._test(category, node)
            needs, have = resolved["requirements"], node.allocatable.get(gpu, 0)
            wanted = self._wanted(resolved, node)
            if self.access[node.name].why:
                yield node.name, ("blocked", self.access[node.name].why)
            elif node.mig and not needs.get("mig"):
                yield node.name, ("not_applicable", "MIG is on: the test needs whole GPUs")
            elif not self.whole[node.name]:
                yield node.name, ("not_applicable", f"the node has no {gpu}")
            elif needs.get("accelerators") and node.accelerator not in needs["accelerators"]:
                wants = ", ".join(needs["accelerators"])
                yield (
                    node.name,
                    ("not_applicable", f"the test is for {wants}, the node has {node.accelerator or 'no label'}"),
                )
            elif have < wanted:
                yield node.name, ("blocked", f"{have} of {wanted} GPUs")
            elif wanted < needs.get("minGpusPerNode", 0):
                text = f"the test needs {needs['minGpusPerNode']} GPUs in a node, it has {wanted}"
                yield node.name, ("not_applicable", text)
            elif resolved["nics"]:
                resource, found = resolved["nics"]["resource"], node.allocatable.get(resolved["nics"]["resource"], 0)
                expected = self._nics(resolved, node)
                if found < max(expected, 1):
                    yield node.name, ("blocked", f"{found} of {max(expected, 1)} {resource}")

    def _wanted(self, resolved: Mapping, node: Node) -> int:
        return self.whole[node.name] if resolved["gpus"] == "all" else resolved["gpus"]

    def _nics(self, resolved: Mapping, node: Node) -> int:
        if not resolved["nics"]:
            return 0
        if resolved["nics"]["count"] is not None:
            return resolved["nics"]["count"]
        resource = resolved["nics"]["resource"]
        if resource not in self._whole_nics:
            self._whole_nics[resource] = nodes_.whole_counts(self.fleet, resource)
        return self._whole_nics[resource][node.name]

    def _devices(self, category: Mapping, node: Node) -> tuple[int, int]:
        resolved = self._test(category, node)
        return self._wanted(resolved, node), self._nics(resolved, node)

    def _test(self, category: Mapping, node: Node) -> dict:
        return self.resolved[category["name"], node.accelerator]

    def _searching(self, category: Mapping, resolved: Mapping) -> bool:
        return category["options"].get("testScale") == DIAGNOSE and resolved["scope"] != "node"

    def _form(self, category: Mapping, members: list[Node], searches: list[dict]) -> grouping.Grouping:
        """The groups of nodes of one kind."""
        resolved, options = self._test(category, members[0]), category["options"]
        domain_of = {node.name: self.domains[node.name] for node in members}
        sizes = self._sizes(category, resolved, members[0])
        scale = options.get("testScale", "full-scale")
        search = self._search(category, resolved, domain_of, sizes)
        name = category["name"]
        if search and (scale == DIAGNOSE or options.get("isolate", True)):
            searches.append(search)
        elif scale != DIAGNOSE and options.get("isolate", True) and sizes.of(len(members))[0]:
            least = max(options.get("minGroupSize", 2), sizes.minimum)
            why = f"a search needs groups of {least} nodes at least, of one kind there {grouping.are(len(members))}"
            self._unmet.append(f"{name}: the bad node of a group that fails is not searched for: {why}")
        if resolved["scope"] != "node" and scale not in (grouping.ALONE, DIAGNOSE):
            wanted, most = options.get("nodesPerJob", 0), len(members)
            if wanted > most and sizes.of(most)[0]:
                self._unmet.append(f"{name}: nodesPerJob is {wanted}, of one kind there {grouping.are(most)}")
        if resolved["scope"] == "node":
            return grouping.form(domain_of, sizes, grouping.ALONE)
        if scale != DIAGNOSE:
            return grouping.form(domain_of, sizes, scale, tuple(self.options["domainLabels"]))
        if not search:
            _size, why = sizes.of(len(members))
            why = why or "a search for the bad node needs two groups at least"
            return grouping.Grouping(left={node.name: why for node in members})
        step = isolation.advance(search["nodes"], [], search["options"])
        return grouping.Grouping([grouping.Group(test["group"]) for test in step["tests"]])

    def _sizes(self, category: Mapping, resolved: Mapping, node: Node) -> grouping.Sizes:
        options = category["options"]
        wanted = options.get("nodesPerJob") or category.get("workload", {}).get("numNodes")
        if resolved["scope"] == "pair" and not wanted:
            wanted = 2
        needs = resolved["requirements"]
        return grouping.Sizes(
            gpus_per_node=max(self._wanted(resolved, node), 1),
            wanted=wanted,
            least=resolved["minNodes"],
            least_gpus=needs.get("minGpus", 0),
            multiple=resolved["multiple"],
            most=self.limits.get("maxNodesOut"),
        )

    def _search(self, category: Mapping, resolved: Mapping, domain_of: dict, sizes: grouping.Sizes) -> dict | None:
        """What `isolation.plan.advance` needs for nodes of one kind; None where nothing can be told apart."""
        options = category["options"]
        given: dict = {"mode": resolved["isolation"]}
        if resolved["scope"] == "node" or options.get("testScale") == grouping.ALONE:
            given["mode"] = "diagnostics"
        else:
            least = max(options.get("minGroupSize", 2), sizes.minimum)
            fitting = [size for size in sizes.fitting(len(domain_of)) if size >= least]
            if not fitting:
                return None
            given["min_size"] = fitting[0]
            if sizes.multiple > 1:
                given["sizes"] = fitting
            if options.get("testScale") == DIAGNOSE and options.get("nodesPerJob"):
                given["group_size"] = options["nodesPerJob"]
        for name, limit in (("max_tests", "maxTests"), ("max_nodes", "maxNodesOut")):
            if self.limits.get(limit):
                given[name] = self.limits[limit]
        if options.get("repeats"):
            given["repeats"] = options["repeats"]
        nodes = [{"name": name, "domain": domain} for name, domain in sorted(domain_of.items())]
        return {"category": category["name"], "test": resolved["test"], "nodes": nodes, "options": given}

    def _team(self, resolved: Mapping, names: list[str], borrowed: Iterable[str] = ()) -> Team:
        members = [self.by_name[name] for name in names]
        tolerated = [taint for node in members for taint in self.access[node.name].tolerated]
        domains = [self.domains[name] for name in names]
        return Team(
            names=names,
            borrowed=list(borrowed),
            domains=domains,
            accelerator=members[0].accelerator,
            product=members[0].product,
            gpus_per_node=self._wanted(resolved, members[0]),
            gpu_resource=self.options["gpuResource"],
            nics_per_node=self._nics(resolved, members[0]),
            tolerated=tolerated,
        )

    # ------------------------------------------------------------ the whole

    def _cap(self, runs: list[dict], rows: list[dict]) -> tuple[list[dict], list[Problem]]:
        """limits.maxTests: what is beyond is not run, and said so."""
        most = self.limits.get("maxTests")
        if most is None or len(runs) <= most:
            return runs, []
        kept = {run["id"] for run in runs[:most]}
        for row in rows:
            if row["runs"] and not (left := [one for one in row["runs"] if one in kept]):
                row["outcome"], row["why"] = "not_run", f"limits.maxTests {most} is reached before"
                row["runs"] = left
            else:
                row["runs"] = [one for one in row["runs"] if one in kept]
        message = (
            f"the plan has {len(runs)} runs, limits.maxTests allows {most}: the last {len(runs) - most} are not run"
        )
        hint = "raise maxTests, or ask for fewer nodes or categories"
        return runs[:most], [
            Problem("too-many-tests", message, path="spec.limits.maxTests", hint=hint, severity="warning")
        ]

    def concurrent(self) -> dict[str, int]:
        """Category -> runs at once, where there is a bound."""
        return {
            name: category["options"]["maxConcurrent"]
            for name, category in self.categories.items()
            if category["options"].get("maxConcurrent")
        }

    def _faults(self, path: int) -> list[Problem]:
        problems = []
        if not self.asked:
            left = "; ".join(nodes_.left_by(self.fleet, self.spec["target"]))
            message = f"no node fits the target: of {len(self.fleet)} nodes {left}"
            message = message if self.fleet else "the cluster has no nodes"
            lost = next((name for name, why in self.others.items() if why == nodes_.UNKNOWN), "")
            hint = self._like(lost) or "every part must fit a node"
            problems.append(Problem("no-nodes", message, path="spec.target", hint=hint))
        for name, why in self.others.items() if self.asked else ():
            message, path = f"{name}: {why}", "spec.target.nodeNames"
            hint = self._like(name) if why == nodes_.UNKNOWN else ""
            problems.append(Problem("no-such-node", message, path=path, hint=hint, severity="warning"))
        most = self.limits.get("maxMinutes")
        if most is not None and path > most:
            message = f"the runs may take {path} minutes, limits.maxMinutes allows {most}"
            hint = "what has not begun by then is not run"
            problems.append(Problem("too-long", message, path="spec.limits.maxMinutes", hint=hint, severity="warning"))
        return problems

    def _like(self, name: str) -> str:
        """The node that was probably meant, as a hint."""
        known = [node.name for node in self.fleet]
        hint = nearest(name, known).partition(" valid:")[0] if name and len(known) > 1 else ""
        return f"{name}: {hint}" if hint.startswith("did you mean") else ""

    def _notes(self) -> list[str]:
        found = [note for resolved in self.resolved.values() for note in resolved["notes"]]
        for name, category in self.categories.items():
            options = category["options"]
            searching = self._searching(category, self._any(category))
            if searching:
                found.append(f"{name}: these are a search's first groups, others follow from their results")
            if searching and options.get("repeatCount", 1) > 1:
                found.append(
                    f"{name}: repeatCount has no meaning for testScale diagnose, the search repeats what it must"
                )
            bounded = options.get("thresholds") or options.get("bounds")
            if not bounded and self._any(category)["parser"]["tool"] not in JUDGES:
                found.append(f"{name} has no bound: its nodes can at best be pass_unbounded")
        return list(dict.fromkeys([*found, *self._unmet]))

    def _summary(self, category: Mapping) -> dict:
        """What is run for a category on each accelerator, for the evidence."""
        return {
            "name": category["name"],
            "test": self._any(category)["test"],
            "isolation": self._any(category)["isolation"],
            "isolate": category["options"].get("isolate", True),
            "allowUnbounded": category["options"].get("allowUnbounded", False),
            "resolved": {name: self.resolved[category["name"], name] for name in self._accelerators()},
        }

    def _any(self, category: Mapping) -> dict:
        """The test, for what is the same on all accelerators."""
        return self.resolved[category["name"], self._accelerators()[0]]


def _options(given: Mapping | None) -> dict:
    given = {key: value for key, value in (given or {}).items() if value is not None}
    for key in given:
        if key not in OPTIONS:
            raise InvalidDocument("there is no such option", path=f"options.{key}", hint=nearest(key, OPTIONS))
    return {**OPTIONS, **given}
