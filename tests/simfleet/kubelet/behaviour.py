"""What a simulated container does, from its pod's annotations and from fault rules. Pure.

Annotations of a pod, `sim.goodput.fleet/KEY` for all of its main containers or `sim.goodput.fleet/KEY.CONTAINER` for
one (the only way to reach an init container):

    script        runs as the container: its output is the log, its exit status the result. A text that begins with
                  "#!", or the name of a file in the cluster's scripts folder.
    exec          "true": runs the container's own command and args on this machine
    exit-code     ends with this code, after `after` seconds (0)
    log           text of the log
    waiting       never runs, waits with this reason: CrashLoopBackOff, ImagePullBackOff, CreateContainerConfigError...
    message       of the waiting or terminated state
    reason        of the terminated state, in place of Completed and Error: OOMKilled...
    ready         "false": runs, and is not ready
    restarts      count of restarts to begin with
    start-delay   seconds in ContainerCreating first

Fault rules say the same of pods by what they look like; they take effect on pods that run already, and their removal
heals them. They are YAML lists in the data of ConfigMaps labelled sim.goodput.fleet/faults=true:

    - match: {owner: DaemonSet/nvidia-*, exceptNode: gpu-0000}
      set: {waiting: CrashLoopBackOff, restarts: 7}

`match` knows namespace, pod, container, image, node, exceptNode, owner ("Kind/name") as globs or lists of them, and
labels (a map, all of which must be there). A rule reaches main containers, and init containers that `container` names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase
from typing import Any

import yaml

PREFIX = "sim.goodput.fleet/"
FAULTS_LABEL = PREFIX + "faults"


class BadBehaviour(ValueError):
    """An annotation or rule that cannot be followed; the message says which and why."""


@dataclass(frozen=True)
class Behaviour:
    script: str = ""
    exec: bool = False
    exit_code: int | None = None
    after: float = 0.0
    log: str = ""
    waiting: str = ""
    message: str = ""
    reason: str = ""
    ready: bool = True
    restarts: int = 0
    start_delay: float = 0.0


KEYS = {entry.name.replace("_", "-"): entry.name for entry in fields(Behaviour)}
READERS = {
    "exec": "bool",
    "ready": "bool",
    "exit_code": "int",
    "restarts": "int",
    "after": "float",
    "start_delay": "float",
}


def read_values(values: Mapping[str, Any], where: str) -> dict[str, Any]:
    """{"exit-code": "3"} -> {"exit_code": 3}; raises BadBehaviour."""
    result = {}
    for key, value in values.items():
        name = KEYS.get(key)
        if name is None:
            raise BadBehaviour(f"{where}: unknown key {key!r}; known: {', '.join(sorted(KEYS))}")
        try:
            result[name] = read_one(READERS.get(name, "str"), value)
        except ValueError:
            raise BadBehaviour(f"{where}: {key} is {value!r}, expected {READERS[name]}") from None
    return result


def read_one(kind: str, value: Any) -> Any:
    if kind == "bool":
        text = str(value).lower()
        if text not in ("true", "false"):
            raise ValueError
        return text == "true"
    return {"int": int, "float": float, "str": str}[kind](str(value))


@dataclass(frozen=True)
class Rule:
    match: Mapping[str, Any]
    change: Mapping[str, Any] = field(default_factory=dict)

    def applies(self, pod: Mapping[str, Any], container: Mapping[str, Any], is_init: bool) -> bool:
        if is_init and "container" not in self.match:
            return False
        meta, spec = pod["metadata"], pod["spec"]
        owners = [f"{owner['kind']}/{owner['name']}" for owner in meta.get("ownerReferences", [])]
        found = {
            "namespace": [meta.get("namespace", "")],
            "pod": [meta.get("name", "")],
            "container": [container["name"]],
            "image": [container.get("image", "")],
            "node": [spec.get("nodeName", "")],
            "owner": owners,
        }
        for key, wanted in self.match.items():
            if key == "labels":
                if not wanted.items() <= meta.get("labels", {}).items():
                    return False
            elif key == "exceptNode":
                if any_glob(wanted, found["node"]):
                    return False
            elif not any_glob(wanted, found[key]):
                return False
        return True


MATCH_KEYS = ("namespace", "pod", "container", "image", "node", "exceptNode", "owner", "labels")


def any_glob(wanted: Any, values: Iterable[str]) -> bool:
    patterns = wanted if isinstance(wanted, list) else [wanted]
    return any(fnmatchcase(value, str(pattern)) for value in values for pattern in patterns)


def read_rules(text: str, where: str) -> list[Rule]:
    """The rules of one YAML list; raises BadBehaviour."""
    try:
        data = yaml.safe_load(text) or []
    except yaml.YAMLError as error:
        raise BadBehaviour(f"{where}: not YAML: {error}") from None
    rules = []
    for number, entry in enumerate(data if isinstance(data, list) else [data]):
        place = f"{where}[{number}]"
        if not isinstance(entry, dict) or set(entry) != {"match", "set"}:
            raise BadBehaviour(f"{place}: expected a map of `match` and `set`")
        unknown = set(entry["match"]) - set(MATCH_KEYS)
        if unknown:
            raise BadBehaviour(f"{place}: match.{min(unknown)} is unknown; known: {', '.join(MATCH_KEYS)}")
        rules.append(Rule(entry["match"], read_values(entry["set"], place)))
    return rules


def behaviour_of(
    pod: Mapping[str, Any], container: Mapping[str, Any], is_init: bool, rules: Iterable[Rule]
) -> Behaviour:
    """Later wins: the pod's annotations, the container's own, then the rules in their order. Raises BadBehaviour."""
    for_all: dict[str, Any] = {}
    for_one: dict[str, Any] = {}
    for name, value in (pod["metadata"].get("annotations") or {}).items():
        if not name.startswith(PREFIX):
            continue
        key, _, only = name.removeprefix(PREFIX).partition(".")
        if only == container["name"]:
            for_one |= read_values({key: value}, f"annotation {name}")
        elif not only and not is_init:
            for_all |= read_values({key: value}, f"annotation {name}")
    # An init container that is told nothing succeeds at once.
    start: dict[str, Any] = {"exit_code": 0} if is_init and container.get("restartPolicy") != "Always" else {}
    values = start | for_all | for_one
    for rule in rules:
        if rule.applies(pod, container, is_init):
            values |= rule.change
    return Behaviour(**values)
