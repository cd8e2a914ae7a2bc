"""Deciding over 100,000 events, 5,000 nodes and 20 rules: time, memory, and whether time grows with the events only."""

from __future__ import annotations

import datetime
import resource
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / ".build/collections"))

from ansible_collections.goodput.fleet.plugins.module_utils.quarantine import policy
from ansible_collections.goodput.fleet.plugins.module_utils.quarantine.decide import decide

EVENTS, NODES, RULES, RACK = 100_000, 5_000, 20, 18
NOW = datetime.datetime(2026, 11, 29, 18, 0, tzinfo=datetime.UTC)
TIME_BOUND = 60  # seconds
MEMORY_BOUND = 1024  # MiB, everything included
LINEAR_BOUND = 1.5  # time per event of the most, as multiple of that of a tenth

# code, fatal, action, class, causes, where they are: what a bad day in a fleet looks like
KINDS = (
    ("149", True, "COMPONENT_RESET", "link", "", ""),
    ("145", True, "CONTACT_SUPPORT", "link", "149", "domain"),
    ("45", False, "NONE", "consequence", "*", "node"),
    ("13", False, "RESTART_APP", "application", "", ""),
    ("48", True, "COMPONENT_RESET", "memory", "", ""),
    ("94", False, "RESTART_APP", "memory", "48,171,172", "gpu"),
    ("79", True, "RESTART_BM", "hardware", "", ""),
    ("63", False, "NONE", "memory", "48,94,171", "gpu"),
    ("119", True, "COMPONENT_RESET", "driver", "79", "gpu"),
    ("31", False, "RESTART_APP", "application", "", ""),
)
CONDITIONS = (
    "event.isFatal && event.agent == 'kernel-log' && !('example.com/left-alone' in node.labels)",
    "'{0}' in event.errorCode && event.recommendedAction in ['COMPONENT_RESET', 'RESTART_BM']",
    "history.sameCode24h > {0} && event.class == 'memory'",
    "event.entitiesImpacted.exists(e, e.entityType == 'PCI' && e.entityValue.startsWith('000{0}'))",
    "now - event.receivedTimestamp < duration('{0}m') && node.ready != 'True' && domain.sick < 3",
)


def inventory() -> list[dict]:
    return [
        {
            "name": f"gpu-{number:04}",
            "labels": {"nvidia.com/gpu.clique": f"rack-{number // RACK}.0", "kubernetes.io/hostname": f"gpu-{number}"}
            | {f"example.com/label-{extra}": str(number % 7) for extra in range(20)},
            "annotations": {},
            "taints": [{"key": "nvidia.com/gpu", "value": "", "effect": "NoSchedule"}],
            "unschedulable": False,
            "ready": "True",
            "bootId": f"boot-{number}",
            "providerId": "",
            "conditions": {"Ready": {"status": "True", "reason": "KubeletReady", "message": ""}},
            "gates": [],
            "external": [],
        }
        for number in range(NODES)
    ]


def recorded(count: int) -> list[dict]:
    """Some from an earlier boot, some twice, some of another cluster; the last hour."""
    events = []
    for number in range(count):
        code, fatal, action, cls, causes, within = KINDS[number * 7 % len(KINDS)]
        node = number * 13 % (NODES + 50)
        moment = NOW - datetime.timedelta(seconds=3500 * (count - number) / count)
        metadata = {"class": cls, "consequenceOf": causes, "within": within, "count": "3"}
        events.append(
            {
                "apiVersion": "goodput.fleet/v1alpha1",
                "kind": "HealthEvent",
                "metadata": {"name": f"{number - number % 50 // 49:016x}"},
                "spec": {
                    "nodeName": f"gpu-{node:04}",
                    "agent": "kernel-log",
                    "componentClass": "GPU",
                    "checkName": "SysLogsXIDError",
                    "isFatal": fatal,
                    "isHealthy": False,
                    "state": "sick",
                    "severity": "fatal" if fatal else "warning",
                    "errorCode": [code],
                    "codeSpace": "xid",
                    "entitiesImpacted": [{"entityType": "PCI", "entityValue": f"000{number % 8}:01:00"}],
                    "recommendedAction": action,
                    "message": f"Xid {code} at 000{number % 8}:01:00, event {number}",
                    "generatedTimestamp": moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
                    "receivedTimestamp": moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
                    "bootId": f"boot-{node}" if number % 20 else f"before:boot-{node}",
                    "source": {"name": "kern.log", "line": number + 1, "text": f"NVRM: Xid {code} line {number}"},
                    "cause": None,
                    "metadata": {key: value for key, value in metadata.items() if value},
                },
            }
        )
    return events


def rules() -> policy.Policy:
    made = [
        {"name": f"rule-{number}", "priority": number, "expression": CONDITIONS[number % 5].format(number % 9 + 1)}
        for number in range(RULES)
    ]
    spec = {"mode": "enforce", "breaker": {"fleet": {"max": 50, "percent": 2}}, "rules": made}
    head = {"apiVersion": "goodput.fleet/v1alpha1", "kind": "QuarantinePolicy", "metadata": {"name": "bench"}}
    return policy.load({**head, "spec": spec})


def timed(made: policy.Policy, events: list[dict], nodes: list[dict]) -> tuple[float, dict]:
    begin = time.perf_counter()
    decision = decide(made, events, nodes, [], NOW)
    return time.perf_counter() - begin, decision


def show(name: str, value: float, unit: str, ratio: str, bound: str, good: bool) -> bool:
    print(f"{name} {value:.6g} {unit} {ratio} {bound} {'ok' if good else 'MISSED'}", flush=True)
    return good


def main() -> int:
    made, nodes, events = rules(), inventory(), recorded(EVENTS)
    few = recorded(EVENTS // 10)
    timed(made, few[:1000], nodes)
    small = min(timed(made, few, nodes)[0] for _turn in range(3))
    took, decision = timed(made, events, nodes)
    counts = decision["counts"]
    if not (counts["gates"] and counts["blocked"] and counts["ignored"] and counts["active"] > EVENTS * 0.8):
        print(f"quarantine_decide: the decision is not what was to be measured: {counts}", file=sys.stderr)
        return 1
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    linear = took / small / 10
    good = [
        show("decide_time", took, "s", "-", f"<={TIME_BOUND}", took <= TIME_BOUND),
        show("decide_rate", EVENTS / took, "events/s", "-", f">={EVENTS / TIME_BOUND:.0f}", took <= TIME_BOUND),
        show("decide_memory", memory, "MiB", "-", f"<={MEMORY_BOUND}", memory <= MEMORY_BOUND),
        show("decide_linear", took, "s", f"{linear:.2f}", f"<={LINEAR_BOUND}", linear <= LINEAR_BOUND),
    ]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
