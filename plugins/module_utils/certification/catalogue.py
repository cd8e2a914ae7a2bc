# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The catalogue's tests, and what becomes of one with a category's options. Pure but for reading files.

tests = load_tests(["gitops/catalog", "site/catalog"])     # a later layer's test replaces an earlier one's
resolved = tests.resolve(category, category["options"], accelerator="h100")
command, env = fill(resolved, nodes=4, gpus_per_node=8)
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator, Mapping

from ansible_collections.goodput.fleet.plugins.module_utils.certification import durations, expected_output, own_tests
from ansible_collections.goodput.fleet.plugins.module_utils.certification.placeholders import (
    NAMES,
    given_by_run,
    literal,
    replace,
)
from ansible_collections.goodput.fleet.plugins.module_utils.records import digest, quickcheck, yamltree
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import (
    InvalidDocument,
    NotFound,
    Problem,
    nearest,
)
from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas import certificationtest

KIND = "CertificationTest"
# options that are values of a test's variables
VARIABLES = ("maxBytes", "numIterations", "numCycles", "maxSteps", "exitDurationMins")
LIMITS = {"timeoutPerJob": "run", "startTimeout": "start", "silenceTimeout": "silence"}
# seconds that training may take beside its steps
BEFORE_AND_AFTER = 3600
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"


class Tests:
    """The tests of a catalogue, by (domain, variant)."""

    def __init__(self) -> None:
        self._tests: dict[tuple[str, str], dict] = {}

    def add(self, document: yamltree.Document) -> None:
        """Takes over a document; one of the same domain and variant is replaced."""
        spec = document.data["spec"]
        key = (spec["domain"], spec["variant"])
        self._tests[key] = {"name": document.data["metadata"]["name"], **spec, "source": document.source}

    def __iter__(self) -> Iterator[dict]:
        return iter(self._tests.values())

    def __len__(self) -> int:
        return len(self._tests)

    def get(self, domain: str, variant: str) -> dict:
        """The test as the catalogue has it, with `name` and `source`. Raises NotFound."""
        found = self._tests.get((domain, variant))
        if found is None:
            asked, names = f"{domain}/{variant}", ["/".join(key) for key in self._tests]
            raise NotFound(f"the catalogue has no test {asked!r}", path="categories", hint=nearest(asked, names))
        return found

    def resolve(self, category: Mapping, options: Mapping | None = None, accelerator: str = "") -> dict:
        """A ResolvedTest: what a category runs on nodes of that accelerator, apart from how many there are.

        {test: "domain/variant", category, scope, launcher, image, command and env (with {nodes}, {gpus}, {ranks} and
        {gpusPerNode} still to fill), variables, gpus: "all" | n, nics: {resource, count} | None, resources, shm,
        capabilities, privileged, hostNetwork, imagePullSecrets, limits: {start, run, silence} in seconds, minNodes,
        requirements, multiple (must divide the GPUs of a group), metrics, parser, bounds: [{metric, expression, size?,
        scope?, accelerator?, source}], isolation, usesNetwork, transport, labels, schedulerName, notes: [text],
        digest}. Raises NotFound or InvalidDocument.
        """
        options = category.get("options", {}) if options is None else options
        if "workload" in category:
            by_tool: dict[str, dict] = {}
            for one in self:
                by_tool.setdefault(one["parser"]["tool"], {}).update(one["metrics"])
            test = own_tests.of_workload(category["name"], category["workload"], by_tool)
        else:
            test = self.get(category["domain"], category["variant"])
        metrics = {metric for one in self for metric in one["metrics"]}
        return _Resolution(category, test, options, accelerator, metrics).result()


def load_tests(layers: Iterable[str]) -> Tests:
    """The tests of catalogue directories (`tests/*.yaml` of each), in order. Raises NotFound or InvalidDocument."""
    layers = [str(layer) for layer in layers]
    patterns = [os.path.join(glob.escape(layer), "tests", "*.yaml") for layer in layers]
    paths = [path for pattern in patterns for path in sorted(glob.glob(pattern))]
    if not paths:
        raise NotFound("no tests", file=", ".join(layers), hint="a catalogue has them in tests/*.yaml")
    return load_texts((yamltree.read(path), path) for path in paths)


def load_texts(texts: Iterable[tuple[str, str]]) -> Tests:
    """The tests of these (YAML text, source), of which each may hold several. Raises InvalidDocument."""
    tests, problems = Tests(), []
    seen: dict[tuple, str] = {}
    for text, source in texts:
        try:
            documents = yamltree.load_all_text(text, source)
        except InvalidDocument as error:
            problems += error.problems
            continue
        for document in documents:
            found = quickcheck.validate(document, KIND, certificationtest.SCHEMA) or _rules(document)
            if not found:
                spec, layer = document.data["spec"], os.path.dirname(source)
                key = (layer, spec["domain"], spec["variant"])
                if key in seen:
                    message = f"{spec['domain']}/{spec['variant']} is also in {seen[key]}"
                    found = [document.problem(("spec", "variant"), "duplicate-test", message)]
                seen[key] = source
            problems += found
            if not found:
                tests.add(document)
    if problems:
        raise InvalidDocument(problems)
    return tests


def _rules(document: yamltree.Document) -> list[Problem]:
    spec = document.data["spec"]
    problems = expected_output.faults(document, spec["parser"], ("spec", "parser"))
    problems += expected_output.unknown(document, spec["parser"], ("spec", "parser", "expects"))
    problems += _limits(document, spec["limits"], ("spec", "limits"))
    known = {*spec.get("variables", {}), *NAMES, *given_by_run(spec["launcher"])}
    places = [(("spec", "command", index), text) for index, text in enumerate(spec["command"])]
    places += [(("spec", "env", name), text) for name, text in spec.get("env", {}).items()]
    for kind in ("accelerators", "scales"):
        for key, override in spec.get(kind, {}).items():
            problems += _limits(document, override.get("limits", {}), ("spec", kind, key, "limits"))
            places += [(("spec", kind, key, "env", name), text) for name, text in override.get("env", {}).items()]
            for name in override.get("variables", {}):
                if name not in spec.get("variables", {}):
                    path = ("spec", kind, key, "variables", name)
                    hint = nearest(name, spec.get("variables", {}))
                    problems.append(document.problem(path, "unknown-variable", f"no variable {name!r}", hint))
    for path, text in places:
        for name in replace(text, {})[1]:
            if name not in known:
                problems.append(
                    document.problem(path, "unknown-variable", f"no variable {name!r}", nearest(name, known))
                )
    for index, name in enumerate(spec.get("requirements", {}).get("multipleOf", ())):
        if name not in spec.get("variables", {}):
            path = ("spec", "requirements", "multipleOf", index)
            problems.append(document.problem(path, "unknown-variable", f"no variable {name!r}"))
    for name in spec.get("variables", {}):
        if name in NAMES:
            path = ("spec", "variables", name)
            problems.append(document.problem(path, "reserved", f"{name} is what the run gives", "another name"))
    return problems


def _limits(document: yamltree.Document, limits: Mapping, path: tuple) -> list[Problem]:
    faults = {name: durations.fault(text) for name, text in limits.items()}
    return [document.problem((*path, name), "bad-value", fault) for name, fault in faults.items() if fault]


def fill(resolved: Mapping, nodes: int, gpus_per_node: int) -> tuple[list[str], dict[str, str]]:
    """(command, env) for a group of that size."""
    gpus = nodes * gpus_per_node
    values = {**resolved["variables"], "nodes": nodes, "gpusPerNode": gpus_per_node, "gpus": gpus, "ranks": gpus}
    env = {name: replace(text, values)[0] for name, text in resolved["env"].items()}
    command = []
    for item in resolved["command"]:
        if item == "{envFlags}":
            # a launcher of MPI hands on to the other hosts only what it is told to
            command += [part for name in env for part in ("-x", name)]
        else:
            command.append(replace(item, values)[0])
    return command, env


class _Resolution:
    def __init__(self, category: Mapping, test: Mapping, options: Mapping, accelerator: str, metrics: set[str]):
        self.all_metrics = metrics
        self.category, self.test, self.options = category, test, options
        self.own = set(category.get("own", options))
        self.notes: list[str] = []
        self.problems: list[Problem] = []
        scale = options.get("testScale", "full-scale")
        self.layers = [
            test,
            test.get("accelerators", {}).get(accelerator, {}),
            test.get("scales", {}).get(scale, {}),
        ]

    def result(self) -> dict:
        test, options = self.test, self.options
        variables = self.variables()
        image = options.get("image") or next((one["image"] for one in reversed(self.layers) if one.get("image")), "")
        if not image:
            self.fault("options.image", "the test has no image of its own", "name one: REGISTRY/NAME:TAG")
        limits = {name: durations.seconds(text) for name, text in self.merged("limits").items()}
        for option, name in LIMITS.items():
            if option in options:
                limits[name] = durations.seconds(options[option])
        if "timeoutPerJob" not in options and "exitDurationMins" in variables:
            minutes = self.whole("exitDurationMins", variables["exitDurationMins"])
            limits["run"] = max(limits["run"], minutes * 60 + BEFORE_AND_AFTER)
        if "timeoutPerJob" in options and "silenceTimeout" not in options and _silent(test):
            limits["silence"] = limits["run"]  # what prints its result at the end is silent all the way
        multiple = 1
        for name in test.get("requirements", {}).get("multipleOf", ()):
            multiple *= self.whole(name, variables.get(name))
        parser = dict(test["parser"])
        bounds = self.bounds()
        if self.problems:
            raise InvalidDocument(self.problems)
        resolved = {
            "test": f"{test['domain']}/{test['variant']}",
            "category": self.category["name"],
            "scope": test["scope"],
            "launcher": test["launcher"],
            "image": image,
            "command": list(test["command"]),
            "env": {
                **self.merged("env"),
                **{entry["name"]: literal(entry["value"]) for entry in options.get("env", ())},
            },
            "variables": variables,
            "gpus": options.get("gpusPerNode", test.get("gpus", "all")),
            "nics": self.nics(),
            "resources": options.get("resources", test.get("resources", {})),
            "shm": test.get("sharedMemory"),
            "capabilities": list(test.get("capabilities", ())),
            "privileged": test.get("privileged", False),
            "hostNetwork": test.get("hostNetwork", False),
            "imagePullSecrets": [secret["name"] for secret in options.get("imagePullSecrets", ())],
            "limits": limits,
            "minNodes": test.get("minNodes", 1),
            "requirements": dict(test.get("requirements", {})),
            "multiple": multiple,
            "metrics": dict(test["metrics"]),
            "parser": parser,
            "isolation": test["isolation"],
            "usesNetwork": test.get("usesNetwork", False),
            "transport": options.get("transport", ""),
        }
        queue = options.get("queue", {})
        labels = dict(options.get("workloadMetadata", {}).get("labels", {}))
        if queue:
            labels[queue.get("labelKey", QUEUE_LABEL)] = queue["name"]
        return {
            **resolved,
            "bounds": bounds,
            "labels": labels,
            "schedulerName": queue.get("schedulerName", ""),
            "notes": self.notes,
            "digest": digest.sha256(resolved),
        }

    def merged(self, key: str) -> dict:
        return {name: value for layer in self.layers for name, value in (layer.get(key) or {}).items()}

    def variables(self) -> dict[str, str]:
        values = self.merged("variables")
        for option in VARIABLES:
            if option in self.options:
                if option in values:
                    values[option] = self.options[option]
                elif option in self.own:
                    self.notes.append(f"{option} has no meaning for {self.category['name']}")
        for name, value in self.options.get("variables", {}).items():
            if name in self.test.get("variables", {}):
                values[name] = value
            elif "variables" in self.own:
                hint = nearest(name, self.test.get("variables", {}))
                self.notes.append(f"{self.category['name']} has no variable {name!r}" + (f" ({hint})" if hint else ""))
        for name, value in values.items():
            if value is None:
                self.fault(f"options.variables.{name}", "needs a value", "it has no default")
        return {name: _text(value) for name, value in values.items()}

    def whole(self, name: str, value: str | None) -> int:
        if value and re.fullmatch(r"[1-9][0-9]{0,5}", value):
            return int(value)
        self.fault(f"options.variables.{name}", f"is {value!r}", "a whole number from 1 on")
        return 1

    def nics(self) -> dict | None:
        count, resource = self.options.get("nicsPerNode"), self.options.get("nicResourceName")
        if not resource or count == 0:
            return None
        return {"resource": resource, "count": count}  # without a count: all that the nodes have

    def bounds(self) -> list[dict]:
        """Thresholds and bounds as one list.

        What the document gives for all categories holds for those that measure it; a category's own always holds.
        """
        found = []
        for metric, expression in self.options.get("thresholds", {}).items():
            if "thresholds" in self.own or not self.of_others(metric):
                found.append({"metric": metric, "expression": expression, "source": "thresholds"})
        for bound in self.options.get("bounds", ()):
            if "bounds" in self.own or not self.of_others(bound["metric"]):
                found.append({"source": "bounds", **bound})
        return found

    def of_others(self, metric: str) -> bool:
        """Whether it is a metric of other tests only."""
        if metric in self.test["metrics"] or metric not in self.all_metrics:
            return False
        self.notes.append(
            f"the document's bound on {metric} is not for {self.category['name']}, which does not measure it"
        )
        return True

    def fault(self, path: str, message: str, hint: str) -> None:
        where = f"categories.{self.category['name']}.{path}"
        self.problems.append(Problem("unresolved-test", message, self.test.get("source"), path=where, hint=hint))


def _silent(test: Mapping) -> bool:
    return test["limits"]["silence"] == test["limits"]["run"]


def _text(value: object) -> str:
    return "" if value is None else str(value)
