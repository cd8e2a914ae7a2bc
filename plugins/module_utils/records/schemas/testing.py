# Copyright (c) 2026 goodput.fleet contributors
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pieces that the documents of certification share: which nodes, which options, which bounds, which workload."""

from __future__ import annotations

from ansible_collections.goodput.fleet.plugins.module_utils.records.schemas import parts

SCALES = ("intra-node", "intra-rack", "diagnose", "full-scale")
TOOLS = ("nccl", "dcgm_diag", "nvbandwidth", "gpu_burn", "perftest", "training", "regex")
MAX_CATEGORIES = 64
# the document's name is also the value of a label on every object that is made for it
METADATA = parts.closed(
    ["name"],
    {
        "name": parts.text(
            r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?", "lower-case letters, digits, - and ., at most 63 characters"
        ),
        "namespace": parts.LABEL,
        "labels": parts.SELECTOR,
        "annotations": {"type": "object", "additionalProperties": {"type": "string"}, "description": "KEY: TEXT"},
    },
    "name, namespace, labels and annotations",
)


def count(least: int, description: str) -> dict:
    """A whole number."""
    return {"type": "integer", "minimum": least, "maximum": 1_000_000, "description": description}


_LABEL_NAME = r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
_PREFIX = r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?"
_NUMBER = r"[0-9]+(\.[0-9]+)?"

DURATION = parts.text(rf"({_NUMBER}(ms|h|m|s))+", "a duration such as 90s, 15m, 1h or 1h30m")
KEY = parts.text(rf"({_PREFIX}/)?{_LABEL_NAME}", "NAME or PREFIX/NAME, as of a label, taint or extended resource")
VALUE = parts.text(rf"({_LABEL_NAME})?", "at most 63 letters, digits, ., _ and -")
LABELS = {
    "type": "object",
    "propertyNames": KEY,
    "additionalProperties": VALUE,
    "description": "LABEL: VALUE",
    "maxProperties": 32,
}
QUANTITY = {
    "type": ["string", "integer", "number"],
    "pattern": rf"^{_NUMBER}(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$",
    "minimum": 0,
    "description": "a quantity such as 8, 500m or 64Gi",
}
_QUANTITIES = {
    "type": "object",
    "propertyNames": KEY,
    "additionalProperties": QUANTITY,
    "maxProperties": 32,
    "description": "RESOURCE: QUANTITY",
}
RESOURCES = parts.closed([], {"limits": _QUANTITIES, "requests": _QUANTITIES}, "limits and requests")
ENV = {
    **parts.listed(
        parts.closed(
            ["name", "value"],
            {
                "name": parts.text(r"[A-Za-z_][A-Za-z0-9_]{0,255}", "letters, digits and _"),
                "value": {"type": "string", "maxLength": 4096, "description": "a text; no secrets"},
            },
            "name and value",
        ),
        "a list of name and value",
    ),
    "maxItems": 128,
}
SECRETS = {**parts.listed(parts.closed(["name"], {"name": parts.NAME}), "a list of {name: SECRET}"), "maxItems": 16}
ARGUMENTS = {
    **parts.listed({"type": "string", "maxLength": 16384, "description": "one argument"}, "a list of arguments"),
    "maxItems": 256,
}
METRIC = parts.text(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}", "a metric of the test's parser, such as busBandwidthGBps")
EXPRESSION = {
    "type": "string",
    "minLength": 1,
    "maxLength": 1024,
    "description": "a CEL expression over `value` that is true or false, such as 'value >= 300'",
}
THRESHOLDS = {
    "type": "object",
    "propertyNames": METRIC,
    "additionalProperties": EXPRESSION,
    "maxProperties": 64,
    "description": "METRIC: EXPRESSION",
}
BYTES = parts.text(r"[1-9][0-9]{0,15}(K|M|G|T)?", "a size such as 8, 512M or 16G")
BOUNDS = {
    **parts.listed(
        parts.closed(
            ["metric", "expression"],
            {
                "metric": METRIC,
                "expression": EXPRESSION,
                "size": {**BYTES, "description": "the message size that is bounded, such as 1G"},
                "scope": {
                    "enum": ["domain", "cross"],
                    "description": "only groups within one NVLink domain or rack (domain), or of several (cross)",
                },
                "accelerator": {**KEY, "description": "only on nodes of this accelerator, such as h100"},
                "minPeers": count(2, "peers at least that a bound over fleet.median or fleet.mad needs"),
                "source": {**parts.SENTENCE, "maxLength": 256, "description": "where the bound comes from"},
            },
            "metric, expression, size, scope, accelerator, minPeers and source",
        )
    ),
    "maxItems": 256,
}
PARSER = parts.closed(
    ["tool"],
    {
        "tool": {"enum": list(TOOLS), "description": "what writes the output"},
        "pattern": {
            "type": "string",
            "minLength": 1,
            "maxLength": 1024,
            "description": "of tool regex: a regular expression with one group, the value",
        },
        "metric": METRIC,
        "unit": {"type": "string", "maxLength": 32, "description": "of tool regex: the unit of the value"},
    },
    "tool; of tool regex also pattern, metric and unit",
)
QUEUE = parts.closed(
    ["name"],
    {
        "name": {**parts.NAME, "description": "the queue: of Kueue, KAI or Run:ai"},
        "labelKey": {**KEY, "description": "the label that carries its name; without it kueue.x-k8s.io/queue-name"},
        "schedulerName": {**parts.NAME, "description": "the pods' scheduler"},
    },
    "name, labelKey and schedulerName",
)
IMAGE = {**parts.IMAGE, "maxLength": 512}


TARGET = {
    **parts.closed(
        [],
        {
            "nodeSelector": {**LABELS, "minProperties": 1},
            "matchExpressions": {
                **parts.listed(
                    parts.closed(
                        ["key", "operator"],
                        {
                            "key": KEY,
                            "operator": {"enum": ["In", "NotIn", "Exists", "DoesNotExist"]},
                            "values": {**parts.listed(VALUE), "maxItems": 1024, "description": "of In and NotIn"},
                        },
                        "key, operator and values",
                    )
                ),
                "minItems": 1,
                "maxItems": 32,
            },
            "nodeNames": {**parts.listed(parts.NAME, "a list of node names"), "minItems": 1, "maxItems": 10000},
            "taintSelectors": {
                **parts.listed(
                    parts.closed(
                        ["key"],
                        {
                            "key": KEY,
                            "value": VALUE,
                            "effect": {"enum": ["NoSchedule", "PreferNoSchedule", "NoExecute"]},
                        },
                        "key, value and effect",
                    )
                ),
                "minItems": 1,
                "maxItems": 32,
            },
        },
        "nodeSelector, matchExpressions, nodeNames and taintSelectors; a node must fit all that are given",
    ),
    "minProperties": 1,
}

# of a test, whether it comes from the catalogue or is a site's own
_RUNNING = {
    "gpusPerNode": count(1, "GPUs that each pod uses; without it all that nodes of the kind have"),
    "nicsPerNode": count(0, "network devices that each pod asks for"),
    "nicResourceName": {**KEY, "description": "the extended resource they are, such as rdma/ib"},
    "resources": RESOURCES,
    "imagePullSecrets": SECRETS,
    "env": ENV,
    "transport": parts.text(r"[A-Za-z0-9][A-Za-z0-9/_-]{0,31}", "what NCCL must use between hosts, such as IB or EFA"),
    "repeatCount": count(1, "how often each group is tested"),
    "testScale": {"enum": list(SCALES), "description": "how nodes are grouped: " + ", ".join(SCALES)},
    "maxConcurrent": count(0, "runs at once; 0 is no bound"),
    "minGroupSize": count(1, "nodes in the smallest group of a search for the bad node"),
    "timeoutPerJob": {**DURATION, "description": "how long a run may take, such as 1h"},
    "startTimeout": {**DURATION, "description": "how long a run may wait for its pods to run, such as 30m"},
    "silenceTimeout": {**DURATION, "description": "how long a run may write nothing, such as 10m"},
    "thresholds": THRESHOLDS,
    "bounds": BOUNDS,
    "isolate": {"type": "boolean", "description": "whether a failing group is searched for the bad node"},
    "repeats": count(1, "failing tests before a node is called bad"),
    "allowUnbounded": {"type": "boolean", "description": "whether a test without any bound may open a gate"},
    "workloadMetadata": parts.closed([], {"labels": LABELS}, "labels"),
    "queue": QUEUE,
}
OPTIONS = parts.closed(
    [],
    {
        "nodesPerJob": count(1, "nodes in each group; without it all that may be in one"),
        "image": IMAGE,
        "maxBytes": BYTES,
        "numIterations": count(1, "iterations of each message size"),
        "numCycles": count(1, "cycles over all message sizes"),
        "maxSteps": count(1, "training steps"),
        "exitDurationMins": count(1, "minutes after which training ends"),
        "variables": {
            "type": "object",
            "propertyNames": parts.text(r"[A-Za-z][A-Za-z0-9]{0,63}", "letters and digits"),
            "additionalProperties": {"type": ["string", "integer", "number"]},
            "maxProperties": 64,
            "description": "VARIABLE: VALUE, of the test's own variables",
        },
        **_RUNNING,
    },
    "options of a category",
)

WORKLOAD = {
    "image": IMAGE,
    "exec": parts.closed(["command"], {"command": ARGUMENTS, "args": ARGUMENTS}, "command and args"),
    "mpi": parts.closed(
        ["binary"], {"binary": {**parts.SENTENCE, "maxLength": 1024}, "args": ARGUMENTS}, "binary and args"
    ),
    "torch": parts.closed(
        [],
        {
            "script": {**parts.SENTENCE, "maxLength": 1024, "description": "a Python file in the image"},
            "module": {**parts.SENTENCE, "maxLength": 256, "description": "a Python module in the image"},
            "args": ARGUMENTS,
        },
        "script or module, and args",
    ),
    "numNodes": count(1, "nodes of each run; 1 without it"),
    "sharedMemory": {**QUANTITY, "description": "the size of /dev/shm, such as 64Gi"},
    "parser": PARSER,
    **_RUNNING,
}
