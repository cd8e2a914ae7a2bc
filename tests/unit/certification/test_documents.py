"""Certifications as people write them: read, merged, refused with the place."""

from __future__ import annotations

import json
import textwrap

import pytest
import yaml
from ansible_collections.goodput.fleet.plugins.module_utils.certification import documents
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, NotFound
from hypothesis import given, settings
from hypothesis import strategies as st

HEAD = "apiVersion: goodput.fleet/v1alpha1\nkind: Certification\nmetadata: {name: delivery}\nspec:\n"
TARGET = '  target: {nodeSelector: {nvidia.com/gpu.present: "true"}}\n'
NCCL = "{domain: communication, variant: nccl-all-reduce}"
FOREIGN = """\
apiVersion: nvcre.nvidia.com/v1alpha1
kind: Certification
metadata: {name: fleet, uid: 8e1b, resourceVersion: "7", creationTimestamp: null}
spec:
  target:
    nodeSelector: {nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3}
"""


def spec(categories: str, more: str = "") -> str:
    return (
        HEAD + TARGET + "  categories:\n" + textwrap.indent(textwrap.dedent(categories).rstrip() + "\n", "    ") + more
    )


def categories(text: str) -> list[dict]:
    return documents.load(text)["certification"]["spec"]["categories"]


def refused(text: str | dict) -> str:
    with pytest.raises(InvalidDocument) as caught:
        documents.load(text, "c.yaml")
    return str(caught.value)


def test_the_manifest_of_the_architecture_is_read_as_it_is_written():
    text = spec("""\
        - {domain: communication, variant: nccl-all-reduce, options: {thresholds: {busBandwidthGBps: "value >= 300"}}}
        - {domain: training, variant: nemotron5-8b}
    """)
    found = documents.load(text)
    assert found["notUnderstood"] == []
    assert found["certification"]["spec"] == {
        "target": {"nodeSelector": {"nvidia.com/gpu.present": "true"}},
        "categories": [
            {
                "name": "nccl-all-reduce",
                "domain": "communication",
                "variant": "nccl-all-reduce",
                "options": {"thresholds": {"busBandwidthGBps": "value >= 300"}},
                "own": ["thresholds"],
            },
            {"name": "nemotron5-8b", "domain": "training", "variant": "nemotron5-8b", "options": {}, "own": []},
        ],
        "options": {},
        "tolerateGates": [],
        "limits": {},
    }


def test_options_of_a_category_win_field_by_field_and_replace_maps_but_for_labels():
    [one] = categories(
        spec(
            """\
            - domain: communication
              variant: nccl-all-reduce
              options:
                maxBytes: 1G
                thresholds: {algBandwidthGBps: value > 1}
                workloadMetadata: {labels: {b: "2"}}
            """,
            """\
  options:
    maxBytes: 16G
    nodesPerJob: 2
    thresholds: {busBandwidthGBps: value > 300}
    workloadMetadata: {labels: {a: "1", b: "1"}}
""",
        )
    )
    assert one["options"] == {
        "maxBytes": "1G",
        "nodesPerJob": 2,
        "thresholds": {"algBandwidthGBps": "value > 1"},
        "workloadMetadata": {"labels": {"a": "1", "b": "2"}},
    }
    assert one["own"] == ["maxBytes", "thresholds", "workloadMetadata"]


def test_two_categories_that_differ_in_thresholds_are_two():
    found = categories(
        spec("""\
            - {domain: communication, variant: nccl-all-reduce, options: {thresholds: {busBandwidthGBps: value > 1}}}
            - {domain: communication, variant: nccl-all-reduce, options: {thresholds: {busBandwidthGBps: value > 2}}}
            - {domain: communication, variant: nccl-all-reduce, name: nccl-all-reduce-3}
            - {domain: communication, variant: nccl-all-reduce, options: {maxBytes: 1G}}
        """)
    )
    assert [one["name"] for one in found] == [
        "nccl-all-reduce",
        "nccl-all-reduce-2",
        "nccl-all-reduce-3",
        "nccl-all-reduce-4",
    ]


def test_a_workload_takes_defaults_but_not_the_image_of_the_tests():
    [one] = categories(
        spec(
            """\
            - name: own
              options: {timeoutPerJob: 5m}
              workload:
                image: registry.example.com/own:1
                exec: {command: [run]}
                timeoutPerJob: 1h
                thresholds: {rate: value > 1}
                parser: {tool: regex, pattern: 'rate ([0-9]+)', metric: rate}
            """,
            "  options: {image: registry.example.com/nccl:2, startTimeout: 10m}\n",
        )
    )
    assert one["workload"]["image"] == "registry.example.com/own:1"
    assert one["options"] == {"startTimeout": "10m", "timeoutPerJob": "5m", "thresholds": {"rate": "value > 1"}}


def test_a_workload_run_is_a_certification_of_one_category():
    text = """
        apiVersion: goodput.fleet/v1alpha1
        kind: WorkloadRun
        metadata: {name: burn.in}
        spec:
          target: {nodeNames: [gpu-1]}
          image: registry.example.com/burn:1
          exec: {command: [burn]}
          numNodes: 2
          tolerateGates: [quarantine]
          limits: {maxMinutes: 30}
    """
    found = documents.load(text)["certification"]
    assert found["kind"] == "Certification"
    assert found["spec"]["tolerateGates"] == ["quarantine"]
    assert found["spec"]["limits"] == {"maxMinutes": 30}
    [one] = found["spec"]["categories"]
    assert one["name"] == "burn-in"
    assert one["workload"] == {
        "image": "registry.example.com/burn:1",
        "exec": {"command": ["burn"]},
        "numNodes": 2,
    }


def test_an_object_of_the_cluster_is_read_with_what_the_server_added():
    text = spec(f"- {NCCL}")
    stored = yaml.safe_load(text)
    stored["metadata"] |= {
        "uid": "u-1",
        "resourceVersion": "12",
        "generation": 1,
        "creationTimestamp": "2026-11-29T21:00:00Z",
        "managedFields": [{"manager": "kubectl"}],
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"},
    }
    stored["status"] = {"phase": "Running"}
    found = documents.load(stored)["certification"]
    assert found["metadata"]["uid"] == "u-1"
    assert "managedFields" not in found["metadata"]
    assert found["spec"] == documents.load(text)["certification"]["spec"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (HEAD + f"  categories: [{NCCL}]\n", ["c.yaml:4: spec.target: 'target' is missing", "nodeSelector"]),
        (HEAD + "  target: {}\n" + f"  categories: [{NCCL}]\n", ["spec.target: must not be empty"]),
        (spec("- {domain: communication}"), ["c.yaml:7: spec.categories[0].variant: 'variant' is missing"]),
        (spec("- {variant: x}"), ["spec.categories[0].domain: 'domain' is missing"]),
        (spec("- {}"), ["spec.categories[0].domain: 'domain' is missing"]),
        (
            spec("- {domain: a, variant: b, workload: {image: x, exec: {command: [y]}}}"),
            ["spec.categories[0]: has a workload and a domain"],
        ),
        (spec("- {workload: {image: x}}"), ["spec.categories[0].workload: has none of exec, mpi and torch"]),
        (
            spec("- {workload: {image: x, exec: {command: [y]}, torch: {script: z}}}"),
            ["has both exec and torch", "exactly one"],
        ),
        (spec("- {workload: {image: x, torch: {args: [a]}}}"), ["workload.torch: has neither script nor module"]),
        (spec("- {workload: {image: x, exec: {command: []}}}"), ["exec.command: must not be empty"]),
        (
            spec("- {workload: {image: x, exec: {command: [y]}, parser: {tool: regex}}}"),
            ["parser.pattern: tool regex needs pattern", "parser.metric: tool regex needs metric"],
        ),
        (
            spec("- {workload: {image: x, exec: {command: [y]}, parser: {tool: regex, metric: m, pattern: '(a)(b)'}}}"),
            ["has 2 groups, not one"],
        ),
        (
            spec("- {workload: {image: x, exec: {command: [y]}, parser: {tool: regex, metric: m, pattern: '(a'}}}"),
            ["is no regular expression"],
        ),
        (
            spec("- {workload: {image: x, exec: {command: [y]}, parser: {tool: nccl, pattern: '(a)'}}}"),
            ["pattern belongs to tool regex only"],
        ),
        (
            spec(f"- {NCCL}\n- {NCCL}"),
            ["c.yaml:8: spec.categories[1]: asks for the same as categories[0]", "repeatCount"],
        ),
        (
            spec("- {name: a, domain: x, variant: y}\n- {name: a, domain: x, variant: z}"),
            ["there are two categories 'a'"],
        ),
        (spec(f"- {NCCL}", "  options: {testScale: fullscale}\n"), ["'fullscale' is not allowed", "'full-scale'"]),
        (spec(f"- {NCCL}", "  options: {timeoutPerJob: 0s}\n"), ["timeoutPerJob: is shorter than a second"]),
        (spec(f"- {NCCL}", "  options: {timeoutPerJob: -5m}\n"), ["'-5m' is malformed"]),
        (spec(f"- {NCCL}", "  options: {startTimeout: 9999999h}\n"), ["startTimeout: is longer than a year"]),
        (spec(f"- {NCCL}", f"  options: {{silenceTimeout: {'9' * 400}h}}\n"), ["is longer than a year"]),
        (
            spec(f"- {NCCL}", "  options: {resources: {limits: {nvidia.com/gpu: 3}}}\n"),
            ["nvidia.com/gpu is asked for with gpusPerNode"],
        ),
        (
            spec(f"- {NCCL}", "  options: {nicResourceName: rdma/ib, resources: {requests: {rdma/ib: 1}}}\n"),
            ["rdma/ib is asked for with nicsPerNode"],
        ),
        (spec(f"- {NCCL}", "  limits: {maxTests: 0}\n"), ["spec.limits.maxTests: 0 is smaller than 1"]),
        (spec(f"- {NCCL}", "  options: {timeoutPerJob: 60}\n"), ["60 is an integer, not a string", "in quotes"]),
        (spec(f"- {NCCL}", "  options: {nodesPerJob: 0}\n"), ["0 is smaller than 1"]),
        (spec(f"- {NCCL}", "  options: {nicsPerNode: 8}\n"), ["nicsPerNode needs nicResourceName", "rdma/ib"]),
        (
            spec(f"- {NCCL}", "  options: {mlnxPerNode: 8}\n"),
            ["unknown key 'mlnxPerNode'", "did you mean 'nicsPerNode'"],
        ),
        (
            spec(f"- {NCCL}", "  options: {resources: {requests: {cpu: 8}, limits: {cpu: 4000m}}}\n"),
            ["the request 8 is larger than the limit 4000m"],
        ),
        (spec(f"- {NCCL}", "  limit: {maxTests: 3}\n"), ["unknown key 'limit'", "did you mean 'limits'"]),
        (
            HEAD
            + "  target: {matchExpressions: [{key: a, operator: In}, {key: a, operator: Exists, values: [b]}]}\n"
            + f"  categories: [{NCCL}]\n",
            ["matchExpressions[0].values: In needs values", "matchExpressions[1].values: Exists takes no values"],
        ),
        (spec(f"- {NCCL}").replace("name: delivery", f"name: {'x' * 64}"), ["metadata.name", "at most 63"]),
        (HEAD.replace("Certification", "Certificate") + TARGET, ["is of kind 'Certificate'", "kind: Certification"]),
        (HEAD.replace("v1alpha1", "v1") + TARGET, ["apiVersion 'goodput.fleet/v1' is not known"]),
        ("- a\n- b\n", ["is a list, not a Certification document"]),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text, words):
    message = refused(text)
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"variables": {"maxBytes": float("inf")}}, "inf is no number that can be used"),
        ({"resources": {"limits": {"cpu": float("nan")}}}, "nan is no number that can be used"),
        ({"resources": {"limits": {"cpu": 10**5000}}}, "is too large a number"),
        ({"thresholds": {"busBandwidthGBps": "value > \ud800"}}, "holds what is no text"),
        ({"env": [{"name": "A", "value": "a\0b"}]}, "holds what is no text"),
    ],
)
def test_what_no_file_can_hold(options, words):
    given_ = yaml.safe_load(spec(f"- {NCCL}"))
    given_["spec"]["options"] = options
    message = refused(given_)
    assert "spec.options." in message and words in message


def test_json_in_one_line_is_a_text():
    text = json.dumps(yaml.safe_load(spec(f"- {NCCL}")))
    assert "\n" not in text
    assert documents.load(text)["certification"]["metadata"]["name"] == "delivery"


def test_a_file_that_is_not_there():
    with pytest.raises(NotFound):
        documents.load("/nowhere/certification.yaml")


def test_what_is_no_document_at_all():
    assert "is a path or a map, not a int" in refused(7)


# ---------------------------------------------------------------- of the readiness engine


def test_a_foreign_manifest_keeps_what_has_a_meaning_here():
    found = documents.load(
        FOREIGN
        + """\
  gangScheduler: {schedulerName: kai-scheduler, queueLabelKey: runai/queue, queue: gpu}
  mlnxPerNode: 8
  imagePullSecrets: [{name: ngc}]
  startupStallTimeoutSeconds: 600
  sourceRepo: https://git.example.com/megatron.git
  enableCheckpoint: false
  placement: Pinned
  categories:
    - domain: communication
      variant: nccl-all-reduce
      options: {thresholds: {busBandwidthGBps: value >= 300}, mlnxPerNode: 0, timeoutPerJob: 1h0m0s}
    - {domain: training, variant: nemotron5-8b}
"""
    )
    assert found["notUnderstood"] == []
    options = found["certification"]["spec"]["options"]
    assert options == {
        "queue": {"name": "gpu", "labelKey": "runai/queue", "schedulerName": "kai-scheduler"},
        "nicsPerNode": 8,
        "nicResourceName": "nvidia.com/mlnxnics",
        "imagePullSecrets": [{"name": "ngc"}],
        "silenceTimeout": "600s",
        "variables": {"megatronRepository": "https://git.example.com/megatron.git"},
    }
    first, second = found["certification"]["spec"]["categories"]
    assert first["options"]["nicsPerNode"] == 0
    assert first["options"]["thresholds"] == {"busBandwidthGBps": "value >= 300"}
    assert second["options"]["nicsPerNode"] == 8


def test_a_foreign_manifest_tells_what_was_not_understood_and_why():
    found = documents.load(
        FOREIGN
        + """\
  enableMNNVL: true
  enableCheckpoint: true
  maxSteps: -1
  measurementTimeout: 5m
  colour: blue
  gangScheduler: {schedulerName: kai-scheduler, weight: 3}
  categories:
    - {domain: communication, variant: nccl-all-reduce, options: {maxRestarts: 3}, note: x}
"""
    )
    left = {item["path"]: item for item in found["notUnderstood"]}
    assert set(left) == {
        "spec.enableMNNVL",
        "spec.enableCheckpoint",
        "spec.maxSteps",
        "spec.measurementTimeout",
        "spec.colour",
        "spec.gangScheduler.weight",
        "spec.categories[0].options.maxRestarts",
        "spec.categories[0].note",
    }
    assert left["spec.colour"] == {"path": "spec.colour", "value": "blue", "why": "no such field is known", "line": 11}
    assert "ComputeDomain" in left["spec.enableMNNVL"]["why"]
    options = found["certification"]["spec"]["options"]
    assert options["env"] == [{"name": "NCCL_MNNVL_ENABLE", "value": "1"}]
    assert options["queue"] == {
        "name": "default-queue",
        "labelKey": "kai.scheduler/queue",
        "schedulerName": "kai-scheduler",
    }


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (
            f"  maxBytes: 16GB\n  categories: [{NCCL}]\n",
            ["c.yaml:7: spec.maxBytes: '16GB' is malformed"],
        ),
        (
            f"  mlnxPerNode: many\n  categories: [{NCCL}]\n",
            ["c.yaml:7: spec.mlnxPerNode: 'many' is a string, not an integer"],
        ),
        ("  categories: []\n", ["c.yaml:7: spec.categories: must not be empty"]),
        ("  categories: {}\n", ["spec.categories: {} is a map, not a list"]),
        ("  categories: [x]\n", ["spec.categories[0]: 'x' is a string, not a map"]),
        (
            "  categories: [{domain: communication, variant: nccl-all-reduce, options: {nodesPerJob: 0}}]\n",
            ["c.yaml:7: spec.categories[0].options.nodesPerJob: 0 is smaller than 1"],
        ),
    ],
)
def test_a_fault_in_a_foreign_manifest_is_told_at_its_own_place(more, words):
    message = refused(FOREIGN + more)
    for word in words:
        assert word in message


def test_other_kinds_and_versions_of_the_engine_are_refused():
    assert "of this API only Certification is read" in refused(FOREIGN.replace("kind: Certification", "kind: Workflow"))
    assert "apiVersion 'nvcre.nvidia.com/v1' is not known" in refused(FOREIGN.replace("v1alpha1", "v1"))
    assert "spec is missing" in refused({"apiVersion": "nvcre.nvidia.com/v1alpha1", "kind": "Certification"})


# ---------------------------------------------------------------- whatever somebody writes

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=4) | st.just("1h"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["name", "domain", "options", "workload", "image", "exec", "torch", "labels", "key", "limits"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
PLACES = [
    ("target",),
    ("target", "nodeNames"),
    ("categories",),
    ("categories", 0),
    ("categories", 0, "options"),
    ("categories", 0, "options", "timeoutPerJob"),
    ("categories", 0, "options", "resources"),
    ("categories", 0, "options", "workloadMetadata"),
    ("categories", 1),
    ("categories", 1, "workload"),
    ("categories", 1, "workload", "exec"),
    ("categories", 1, "workload", "parser"),
    ("options",),
    ("options", "queue"),
    ("gangScheduler",),
    ("mlnxPerNode",),
    ("limits",),
]


@settings(max_examples=300, deadline=None)
@given(ANYTHING, st.sampled_from(PLACES), st.sampled_from(["goodput.fleet/v1alpha1", "nvcre.nvidia.com/v1alpha1"]))
def test_anything_anywhere_is_read_or_refused_in_words(value, path, version):
    content = {
        "target": {"nodeNames": ["a"]},
        "categories": [
            {"domain": "communication", "variant": "x", "options": {}},
            {"workload": {"image": "x:1", "exec": {"command": ["a"]}}},
        ],
        "options": {},
    }
    place = content
    for key in path[:-1]:
        place = place.setdefault(key, {}) if isinstance(place, dict) else place[key]
    place[path[-1]] = value
    given_ = {"apiVersion": version, "kind": "Certification", "metadata": {"name": "a"}, "spec": content}
    try:
        found = documents.load(given_)["certification"]["spec"]["categories"]
    except InvalidDocument as error:
        assert all(problem.message for problem in error.problems)
    else:
        assert len({one["name"] for one in found}) == len(found) > 0
