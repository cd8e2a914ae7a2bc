"""The shipped tests, and what becomes of one with options."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
import yaml
from ansible_collections.goodput.fleet.plugins.module_utils.certification import catalogue
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, NotFound

CATALOG = Path(__file__).parents[3] / "gitops" / "catalog"
NAMED = {
    "communication": [
        "nccl-all-gather",
        "nccl-all-reduce",
        "nccl-alltoall",
        "nccl-loopback",
        "nccl-loopback-nvswitch",
        "nccl-reduce-scatter",
        "nccl-sendrecv",
    ],
    "diagnostics": ["dcgm-level1", "dcgm-level2", "dcgm-level3", "dcgm-level4", "gpu-burn", "nvbandwidth"],
    "training": ["nemotron5-56b", "nemotron5-8b"],
}
PARSER = 'parser: {tool: regex, pattern: "(x)", metric: rate}'
OWN = """\
apiVersion: goodput.fleet/v1alpha1
kind: CertificationTest
metadata: {name: own}
spec:
  domain: site
  variant: own
  scope: node
  launcher: job
  image: registry.example.com/own:1
  command: [own, "--size={size}", "${SHELL}", "{{literal}}", "{gpus}"]
  variables: {size: 4}
  limits: {start: 1m, run: 10m, silence: 1m}
  {PARSER}
  metrics: {rate: {unit: "1/s", direction: higher}}
  isolation: diagnostics
""".replace("{PARSER}", PARSER)


@pytest.fixture(scope="module")
def tests():
    return catalogue.load_tests([str(CATALOG)])


def category(variant: str, domain: str = "communication", **options) -> dict:
    return {"name": variant, "domain": domain, "variant": variant, "options": options, "own": sorted(options)}


def workload(**fields) -> dict:
    options = fields.pop("options", {})
    return {"name": "own", "workload": {"image": "x:1", **fields}, "options": options, "own": sorted(options)}


def command(tests, one: dict, accelerator: str = "h100", nodes: int = 2, gpus: int = 8) -> list[str]:
    return catalogue.fill(tests.resolve(one, accelerator=accelerator), nodes, gpus)[0]


def test_all_named_tests_are_there(tests):
    found: dict[str, list[str]] = {}
    for test in tests:
        found.setdefault(test["domain"], []).append(test["variant"])
    assert {domain: sorted(variants) for domain, variants in found.items()} == NAMED


@pytest.mark.parametrize(("domain", "variant"), [(domain, variant) for domain in NAMED for variant in NAMED[domain]])
def test_each_runs_on_a_site_without_options_but_an_image(tests, domain, variant):
    options = {} if tests.get(domain, variant).get("image") else {"image": "registry.example.com/tool:1"}
    resolved = tests.resolve(category(variant, domain, **options), accelerator="h100")
    words, env = catalogue.fill(resolved, 4, 8)
    left = [text for text in [*words, *env.values()] if "{" in text.replace("${", "")]
    assert left == []
    assert resolved["limits"]["silence"] <= resolved["limits"]["run"]
    parser = importlib.import_module(f"{catalogue.__package__}.parsers.{resolved['parser']['tool']}")
    expects = resolved["parser"].get("expects", {})
    assert parser.parse("", **expects)["runs"] == []  # the parser knows all its arguments


@pytest.mark.parametrize("variant", NAMED["communication"])
def test_collectives_name_their_program_and_sizes(tests, variant):
    words = command(tests, category(variant, maxBytes="1G", numIterations=7, numCycles=3))
    joined = " ".join(words)
    assert "-e 1G" in joined
    assert "-n 7 -N 3" in joined
    program = {"nccl-loopback": "all_reduce", "nccl-loopback-nvswitch": "all_reduce"}.get(
        variant, variant.removeprefix("nccl-").replace("-", "_")
    )
    assert any(word.endswith(f"/{program}_perf_mpi") for word in words)


def test_a_launcher_of_mpi_starts_a_process_for_each_gpu_and_hands_on_the_environment(tests):
    one = category("nccl-all-reduce", env=[{"name": "NCCL_IB_HCA", "value": "mlx5_{0}"}])
    resolved = tests.resolve(one, accelerator="h100")
    words, env = catalogue.fill(resolved, 3, 8)
    assert words[words.index("-np") + 1] == "24"
    assert words[words.index("-N") + 1] == "8"
    assert words[words.index("-x") : words.index("-x") + 4] == ["-x", "NCCL_DEBUG", "-x", "NCCL_IB_HCA"]
    assert env == {"NCCL_DEBUG": "INFO", "NCCL_IB_HCA": "mlx5_{0}"}


def test_the_loopback_switches_everything_but_the_network_off(tests):
    resolved = tests.resolve(category("nccl-loopback"), accelerator="h100")
    assert resolved["env"]["NCCL_P2P_DISABLE"] == resolved["env"]["NCCL_SHM_DISABLE"] == "1"
    assert resolved["usesNetwork"]
    assert command(tests, category("nccl-loopback"), nodes=1)[7:9] == ["-g", "8"]


def test_accelerators_and_scales_have_values_of_their_own(tests):
    assert "32G" in command(tests, category("nccl-all-reduce"), "gb200")
    assert "16G" in command(tests, category("nccl-all-reduce"), "h100")
    assert "1G" in command(tests, category("nccl-all-reduce", maxBytes="1G"), "gb200")
    search = tests.resolve(category("nccl-all-reduce", testScale="diagnose"))
    assert (search["variables"]["numIterations"], search["variables"]["numCycles"]) == ("5", "1")
    assert search["limits"]["run"] == 900
    words = command(tests, category("nemotron5-8b", "training"), "a100")
    assert "--tensor-model-parallel-size=8" in words
    assert "--global-batch-size=16" in words
    assert tests.resolve(category("nemotron5-56b", "training"), accelerator="b200")["multiple"] == 4


def test_limits_are_options_and_what_prints_at_its_end_may_be_silent_till_then(tests):
    found = tests.resolve(category("dcgm-level4", "diagnostics"))["limits"]
    assert found == {"start": 1800, "run": 7200, "silence": 7200}
    found = tests.resolve(category("dcgm-level4", "diagnostics", timeoutPerJob="3h", startTimeout="5m"))["limits"]
    assert found == {"start": 300, "run": 10800, "silence": 10800}
    found = tests.resolve(category("nccl-all-reduce", timeoutPerJob="3h"))["limits"]
    assert found == {"start": 1800, "run": 10800, "silence": 900}


def test_training_has_time_for_the_minutes_that_are_asked_for(tests):
    run = {
        minutes: tests.resolve(category("nemotron5-8b", "training", **options))["limits"]["run"]
        for minutes, options in (
            (30, {}),
            (600, {"exitDurationMins": 600}),
            (601, {"exitDurationMins": 601, "timeoutPerJob": "4h"}),
        )
    }
    assert run == {30: 7200, 600: 39600, 601: 14400}


def test_an_image_is_required_where_no_vendor_ships_one(tests):
    with pytest.raises(
        InvalidDocument, match=r"categories\.gpu-burn\.options\.image: the test has no image of its own"
    ):
        tests.resolve(category("gpu-burn", "diagnostics"))


def test_a_test_that_is_not_there(tests):
    with pytest.raises(NotFound, match=r"has no test 'communication/nccl-allreduce'.*nccl-all-reduce"):
        tests.resolve(category("nccl-allreduce"))


def test_thresholds_and_bounds_are_one_list(tests):
    bounds = [{"metric": "busBandwidthGBps", "expression": "value > 40", "scope": "cross", "source": "delivery note"}]
    one = category("nccl-all-reduce", thresholds={"algBandwidthGBps": "value > 1"}, bounds=bounds)
    assert tests.resolve(one)["bounds"] == [
        {"metric": "algBandwidthGBps", "expression": "value > 1", "source": "thresholds"},
        bounds[0],
    ]


def test_a_bound_for_all_categories_holds_for_those_that_measure_it(tests):
    options = {"thresholds": {"busBandwidthGBps": "value > 300", "typo": "value > 1"}}
    one = {**category("nemotron5-8b", "training", **options), "own": []}
    resolved = tests.resolve(one)
    assert [bound["metric"] for bound in resolved["bounds"]] == ["typo"]
    assert "not for nemotron5-8b" in " ".join(resolved["notes"])
    own = tests.resolve(category("nemotron5-8b", "training", **options))
    assert [bound["metric"] for bound in own["bounds"]] == ["busBandwidthGBps", "typo"]


def test_an_option_without_meaning_is_told_when_the_category_sets_it(tests):
    one = category("nccl-all-reduce", maxSteps=5, variables={"minByte": 8})
    notes = " ".join(tests.resolve(one)["notes"])
    assert "maxSteps has no meaning for nccl-all-reduce" in notes
    assert "no variable 'minByte' (did you mean 'minBytes'" in notes
    assert tests.resolve({**one, "own": []})["notes"] == []


def test_the_digest_is_of_what_runs(tests):
    plain = tests.resolve(category("nccl-all-reduce"))
    bounded = tests.resolve(category("nccl-all-reduce", thresholds={"busBandwidthGBps": "value > 1"}))
    labelled = tests.resolve(category("nccl-all-reduce", queue={"name": "gpu"}))
    smaller = tests.resolve(category("nccl-all-reduce", maxBytes="1G"))
    assert plain["digest"] == bounded["digest"] == labelled["digest"] != smaller["digest"]
    assert labelled["labels"] == {"kueue.x-k8s.io/queue-name": "gpu"}


# ---------------------------------------------------------------- workloads


def test_a_site_s_container_keeps_its_braces(tests):
    one = workload(exec={"command": ["run", '{"a": {"b": "{nodes}"}}'], "args": ["${HOME}"]})
    assert command(tests, one) == ["run", '{"a": {"b": "{nodes}"}}', "${HOME}"]
    resolved = tests.resolve(one)
    assert (resolved["launcher"], resolved["scope"], resolved["parser"]) == ("job", "node", {"tool": "none"})


@pytest.mark.parametrize(
    ("fields", "launcher", "words"),
    [
        ({"exec": {"command": ["x"]}, "numNodes": 2}, "indexed-job", ["x"]),
        ({"torch": {"module": "a.b", "args": ["-v"]}}, "job", ["-m", "a.b", "-v"]),
        ({"torch": {"script": "a.py"}, "numNodes": 2}, "trainjob", ["--nnodes", "2", "--nproc-per-node", "8", "a.py"]),
        ({"mpi": {"binary": "hpl", "args": ["-p"]}, "numNodes": 2}, "mpijob", ["-np", "16", "-N", "8", "hpl", "-p"]),
    ],
)
def test_the_form_of_a_workload_decides_how_it_is_started(tests, fields, launcher, words):
    assert tests.resolve(workload(**fields))["launcher"] == launcher
    assert command(tests, workload(**fields))[-len(words) :] == words


@pytest.mark.parametrize(
    ("parser", "metric"),
    [
        ({"tool": "nccl"}, "busBandwidthGBps"),
        ({"tool": "perftest"}, "bandwidthAverageGbps"),
        ({"tool": "training"}, "avgTFLOPsPerGPU"),
        ({"tool": "regex", "pattern": "(x)", "metric": "rate", "unit": "1/s"}, "rate"),
    ],
)
def test_a_workload_measures_what_its_parser_does(tests, parser, metric):
    assert metric in tests.resolve(workload(exec={"command": ["x"]}, parser=parser))["metrics"]


# ---------------------------------------------------------------- a site's layer


def loaded(text: str):
    return catalogue.load_texts([(text, "tests/own.yaml")])


def test_a_site_s_test_and_its_placeholders():
    found = loaded(OWN)
    assert command(found, category("own", "site", variables={"size": 9})) == [
        "own",
        "--size=9",
        "${SHELL}",
        "{literal}",
        "16",
    ]


def test_a_later_layer_replaces_a_test(tmp_path):
    layer = tmp_path / "site"
    (layer / "tests").mkdir(parents=True)
    shipped = yaml.safe_load((CATALOG / "tests" / "gpu-burn.yaml").read_text())
    shipped["spec"]["image"] = "registry.example.com/burn:3"
    (layer / "tests" / "burn.yaml").write_text(yaml.safe_dump(shipped))
    found = catalogue.load_tests([str(CATALOG), str(layer)])
    assert len(found) == sum(map(len, NAMED.values()))
    assert found.resolve(category("gpu-burn", "diagnostics"))["image"] == "registry.example.com/burn:3"


def test_a_layer_without_tests():
    with pytest.raises(NotFound, match=r"tests/\*\.yaml"):
        catalogue.load_tests(["/nowhere"])


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("{size}", "{sise}", "spec.command[1]: no variable 'sise' (did you mean 'size'"),
        ("variables: {size: 4}", "variables: {size: 4, nodes: 2}", "spec.variables.nodes: nodes is what the run gives"),
        ("{gpus}", "{envFlags}", "no variable 'envFlags'"),
        ("scope: node", "scope: rack", "'rack' is not allowed"),
        ("silence: 1m", "silent: 1m", "'silence' is missing"),
        (
            "isolation: diagnostics",
            "isolation: diagnostics\n  accelerators: {h100: {variables: {siz: 1}}}",
            "no variable 'siz'",
        ),
        ("isolation: diagnostics", "isolation: diagnostics\n  requirements: {multipleOf: [tp]}", "no variable 'tp'"),
        ("silence: 1m", "silence: 0s", "spec.limits.silence: is shorter than a second"),
        (
            "isolation: diagnostics",
            "isolation: diagnostics\n  scales: {diagnose: {limits: {run: 99999999h}}}",
            "spec.scales.diagnose.limits.run: is longer than a year",
        ),
        (PARSER, "parser: {tool: regex}", "spec.parser.pattern: tool regex needs pattern"),
        (PARSER, "parser: {tool: regex, metric: m, pattern: '(a'}", "spec.parser.pattern: is no regular expression"),
        (
            PARSER,
            "parser: {tool: nccl, expects: {expected_rank: 2}}",
            "expects.expected_rank: the parser takes no 'expected_rank' (did you mean 'expected_ranks'",
        ),
        (PARSER, "parser: {tool: nccl, expects: {expected_ranks: many}}", "spec.parser.expects: "),
        (PARSER, "parser: {tool: dcgm_diag, expects: {expected_tests: 3}}", "spec.parser.expects: "),
    ],
)
def test_what_is_wrong_with_a_site_s_test_is_said_with_its_place(before, after, words):
    with pytest.raises(InvalidDocument) as caught:
        loaded(OWN.replace(before, after))
    assert words in str(caught.value)
    assert "tests/own.yaml:" in str(caught.value)


def test_one_layer_has_a_test_once():
    with pytest.raises(InvalidDocument, match=r"site/own is also in tests/own\.yaml"):
        loaded(OWN + "---\n" + OWN)


def test_a_variable_without_default_must_be_given():
    found = loaded(OWN.replace("{size: 4}", "{size: null}"))
    with pytest.raises(InvalidDocument, match=r"options\.variables\.size: needs a value"):
        found.resolve(category("own", "site"))
    assert found.resolve(category("own", "site", variables={"size": 2}))["variables"] == {"size": "2"}
