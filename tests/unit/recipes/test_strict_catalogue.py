"""A catalogue is read strictly: every mistake has a file, a line and a cure, and all are told at once."""

from __future__ import annotations

import os

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.recipes import catalog
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import InvalidDocument, NotFound

from .layers import Site, chart

OVERLAY = """\
apiVersion: goodput.fleet/v1alpha1
kind: Overlay
metadata:
  name: gke
spec:
  criteria: {service: gke}
  components:
    - name: a
      version: 1.1.0
      values: {x: 1}
"""

# what is written in the overlay -> what it says: (old, new, line, words)
FAULTS = [
    pytest.param("  components:", "  componentRefz:", 7, "did you mean 'components'?", id="typo-in-a-key"),
    pytest.param("service: gke", "service: gkee", 6, "did you mean 'gke'?", id="unknown-criteria-value"),
    pytest.param("service: gke", "service: gke, region: eu", 6, "'region' is not declared", id="unknown-dimension"),
    pytest.param("name: a", "name: aa", 8, "component 'aa' is in no registry", id="unknown-component"),
    pytest.param("name: a", "name: ../../evil", 8, "is malformed", id="path-as-a-name"),
    pytest.param("      values:", "    - name: a\n      values:", 10, "component 'a' is there twice", id="twice"),
    pytest.param("1.1.0", "latest", 9, "latest, ranges, branches", id="latest"),
    pytest.param("1.1.0", '""', 9, "is malformed", id="empty-version"),
    pytest.param("1.1.0", '"^1.1.0"', 9, "is malformed", id="caret-range"),
    pytest.param("1.1.0", '">=1.1.0"', 9, "is malformed", id="comparison"),
    pytest.param("1.1.0", "1.x", 9, "is malformed", id="wildcard"),
    pytest.param("1.1.0", '"*"', 9, "is malformed", id="star"),
    pytest.param("1.1.0", "main", 9, "is malformed", id="branch"),
    pytest.param("1.1.0", '"1.1"', 9, "short versions float", id="short-version-is-a-range-for-helm"),
    pytest.param("1.1.0", "1.1", 9, "put it in quotes", id="number-as-a-version"),
    pytest.param("1.1.0", "cm$(id)", 9, "is malformed", id="shell-in-a-version"),
    pytest.param("1.1.0", '"1.0.0; touch x #"', 9, "is malformed", id="shell-after-a-version"),
    pytest.param("1.1.0", '"1.0.0\\n"', 9, "is malformed", id="newline-after-a-version"),
    pytest.param("version: 1.1.0", "namespace: $(id)", 9, "DNS-1123", id="shell-in-a-namespace"),
    pytest.param("version: 1.1.0", "release: a b", 9, "Helm release", id="blank-in-a-release"),
    pytest.param("version: 1.1.0", "chart: {name: a/../b}", 9, "is malformed", id="path-as-a-chart"),
    pytest.param("version: 1.1.0", "chart: {repository: file:///etc}", 9, "https://HOST", id="local-repository"),
    pytest.param("version: 1.1.0", "chart: {repository: https://u:p@h/x}", 9, "without credentials", id="password"),
    pytest.param("version: 1.1.0", "chart: {repository: 'https://h/$(id)'}", 9, "is malformed", id="shell-in-an-url"),
    pytest.param("      values:", "      chart: {version: 1.1.0}\n      values:", 9, "same field", id="version-twice"),
    pytest.param("version: 1.1.0", "valuesFiles: [values/gone.yaml]", 9, "does not exist", id="missing-values-file"),
    pytest.param("version: 1.1.0", "valuesFiles: [values/../x.yaml]", 9, "without ..", id="values-outside-the-layer"),
    pytest.param("version: 1.1.0", "valuesFiles: [/etc/passwd]", 9, "below values/", id="absolute-values-file"),
    pytest.param("version: 1.1.0", "dependsOn: [bb]", 9, "did you mean 'b'?", id="unknown-dependency"),
    pytest.param("version: 1.1.0", "dependsOn: [b, b]", 9, "dependency 'b' is there twice", id="dependency-twice"),
    pytest.param("version: 1.1.0", "dependsOn: [a]", 9, "a depends on itself", id="dependency-on-itself"),
    pytest.param(
        "version: 1.1.0", "manifests: [{name: m}]", 9, "exactly one of file, content and", id="empty-manifest"
    ),
    pytest.param(
        "version: 1.1.0",
        "manifests: [{name: m, file: manifests/m.yaml}]",
        9,
        "'manifests/m.yaml' does not exist",
        id="no-manifest",
    ),
    pytest.param(
        "version: 1.1.0",
        "manifests: [{name: m, content: x}, {name: m, content: y}]",
        9,
        "manifest 'm' is there twice",
        id="m-twice",
    ),
    pytest.param("version: 1.1.0", "dependsOn: a", 9, "is a string, not a list", id="text-for-a-list"),
    pytest.param(
        "kind: Overlay", "kind: Registry", 2, "an? Overlay belongs here|a Overlay belongs here", id="wrong-kind"
    ),
    pytest.param("v1alpha1", "v1beta1", 1, "is not known", id="other-api-version"),
    pytest.param(
        "      values: {x: 1}", "      values: {x: 1, x: 2}", 10, "stands here twice", id="duplicate-yaml-key"
    ),
    pytest.param("  components:\n", "  components:\n\t- x\n", 8, "malformed YAML", id="malformed-yaml"),
    pytest.param(
        "metadata:\n  name: gke", "metadata:\n  name: base", 4, "is there twice", id="name-of-another-overlay"
    ),
    pytest.param("{service: gke}", "[gke]", 6, "is a list, not a", id="criteria-as-a-list"),
    pytest.param(
        "spec:\n", "spec:\n  recipe: true\n  mixin: true\n", 6, "a mixin has no recipe", id="mixin-and-recipe"
    ),
    pytest.param("{service: gke}", "{service: any}\n  recipe: true", 7, "a recipe needs criteria", id="recipe-for-all"),
    pytest.param("{service: gke}", "{os: 24.04}", 6, "put it in quotes", id="number-as-a-criterion"),
]


@pytest.mark.parametrize("old, new, line, words", FAULTS)
def test_each_mistake_has_its_line_and_its_cure(site, old, new, line, words):
    path = site.write("overlays/gke.yaml", OVERLAY.replace(old, new))
    found = [one for one in site.problems() if one.file == str(path)]
    assert found, site.problems()
    assert found[0].line == line, found
    with pytest.raises(InvalidDocument, match=words):
        site.load()


def test_the_overlay_without_a_mistake_is_read(site):
    site.write("overlays/gke.yaml", OVERLAY)
    assert site.component("a", service="gke")["chart"]["version"] == "1.1.0"


REGISTRY_FAULTS = [
    pytest.param({"version": "latest"}, "latest, ranges", id="floating"),
    pytest.param({"repository": "registry.example.com/x"}, "https://HOST", id="no-scheme"),
    pytest.param({"name": "a", "repository": "oci://r.example.com/x;id"}, "is malformed", id="shell"),
]


@pytest.mark.parametrize("fields, words", REGISTRY_FAULTS)
def test_registry_charts(bare, fields, words):
    bare.registry(chart("a", chart={"name": "a", "repository": "https://h", **fields}))
    with pytest.raises(InvalidDocument, match=words):
        bare.load()


@pytest.mark.parametrize(
    "entries, code, words",
    [
        ([chart("a"), chart("a")], "duplicate-name", "component 'a' is there twice"),
        (
            [chart("a", dependsOn=["b"]), chart("b", dependsOn=["c"]), chart("c", dependsOn=["a"])],
            "cycle",
            "a -> b -> c -> a",
        ),
        ([chart("a", dependsOnOptional=["b"]), chart("b", dependsOn=["a"])], "cycle", "a -> b -> a"),
        ([chart("a", dependsOn=["bb"]), chart("bbb")], "unknown-dependency", "did you mean 'bbb'"),
        ([chart("a", values={"x": 1}, valuesFiles=["values/a.yaml"])], "missing-file", "has no file"),
        ([chart("a", mergeKeys={"env": "name"}, values={"env": [{"value": 1}]})], "no-merge-key", "merge by name"),
        ([chart("a", kustomize={})], "unknown-key", "unknown key 'kustomize'"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_registry_faults(bare, entries, code, words):
    bare.registry(*entries)
    (problem,) = bare.problems()
    assert (problem.code, words in str(problem)) == (code, True), str(problem)
    assert problem.line


def test_a_cycle_that_only_an_overlay_closes_is_found_for_its_recipe(site):
    site.overlay("eks", {"service": "eks"}, components=[{"name": "a", "dependsOn": ["b"]}])
    (problem,) = site.problems(service="eks")
    assert problem.code == "cycle"
    assert "a -> b -> a" in problem.message


def test_a_dependency_that_is_not_in_the_recipe_names_all_who_need_it(site):
    site.overlay(
        "eks", {"service": "eks"}, components=[{"name": "a", "dependsOn": ["c"]}, {"name": "b", "dependsOn": ["c"]}]
    )
    (problem,) = site.problems(service="eks")
    assert problem.code == "missing-dependency"
    assert "component c is needed by a, b" in problem.message


@pytest.mark.parametrize(
    "aliases, words",
    [
        ({"x": "ekss"}, "did you mean 'eks'"),
        ({"eks": "any"}, "is a value as well"),
        ({"any": "eks"}, "is a value as well"),
    ],
)
def test_aliases_stand_for_values(bare, aliases, words):
    bare.registry(chart("a"), criteria={"service": {"values": ["eks"], "aliases": aliases}})
    bare.overlay("base", components=["a"])
    with pytest.raises(InvalidDocument, match=words):
        bare.load()


def test_everything_wrong_in_all_files_is_told_at_once(site):
    site.write("overlays/one.yaml", OVERLAY.replace("components:", "componentz:").replace("name: gke", "name: one"))
    site.write("overlays/two.yaml", OVERLAY.replace("service: gke", "service: x").replace("name: gke", "name: two"))
    site.write("overlays/three.yaml", OVERLAY.replace("1.1.0", "latest").replace("name: gke", "name: three"))
    site.write("overlays/four.yaml", "a: [\n")
    site.registry(chart("a"), chart("z", dependsOn=["y"]), name="more")
    codes = sorted(one.code for one in site.problems())
    assert codes == sorted(
        ["unknown-key", "unknown-value", "bad-value", "malformed-yaml", "duplicate-name", "unknown-dependency"]
    )


def test_a_registry_that_cannot_be_read_does_not_make_everything_else_unknown(site):
    path = site.root / "registry/main.yaml"
    path.write_text(path.read_text().replace("spec:", "spec:\n  surprise: 1"))
    assert [one.code for one in site.problems()] == ["unknown-key"]


def test_an_overlay_that_cannot_be_read_does_not_make_its_includers_wrong(site):
    site.write(
        "overlays/mix.yaml",
        OVERLAY.replace("name: gke", "name: mix").replace("  criteria: {service: gke}\n", "  mixin: yep\n"),
    )
    site.overlay("eks", {"service": "eks"}, include=["mix"])
    assert [one.code for one in site.problems()] == ["wrong-type"]


# layers


def test_a_site_layer_adds_and_never_restates(site, tmp_path):
    """Were a name allowed twice, one file would silently win over the other."""
    more = Site(tmp_path / "site").registry(chart("mine"), name="mine", criteria={})
    more.overlay("mine-eks", {"service": "eks"}, components=["mine", {"name": "a", "values": {"site": True}}])
    assert site.load(more).components.keys() == {"a", "b", "c", "mine"}
    more.overlay("eks", {"service": "eks"}, file="overlays/other.yaml")
    more.registry(chart("mine"), chart("a"), name="mine", criteria={})
    with pytest.raises(InvalidDocument) as caught:
        site.load(more)
    problems = caught.value.problems
    assert [one.code for one in problems] == ["duplicate-name", "duplicate-name"]
    assert all(str(more.root) in one.file and str(site.root) in one.hint for one in problems)


def test_files_belong_to_the_layer_that_names_them(site, tmp_path):
    site.write("values/only-here.yaml", "x: 1\n")
    more = Site(tmp_path / "site")
    more.overlay("mine", {"service": "gke"}, components=[{"name": "a", "valuesFiles": ["values/only-here.yaml"]}])
    with pytest.raises(InvalidDocument, match=r"does not exist in .*site"):
        site.load(more)


@pytest.mark.parametrize("what", ["file", "folder", "top"])
def test_symbolic_links_are_refused(site, tmp_path, what):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.yaml").write_text("x: 1\n")
    (site.root / "values").mkdir()
    if what == "file":
        os.symlink(outside / "secret.yaml", site.root / "values/a.yaml")
    elif what == "folder":
        os.symlink(outside, site.root / "values/a")
    else:
        (site.root / "values").rmdir()
        os.symlink(outside, site.root / "values")
    (problem,) = site.problems()
    assert problem.message == "is a symbolic link"


def test_the_layer_itself_may_be_reached_by_a_link(site, tmp_path):
    os.symlink(site.root, tmp_path / "link")
    assert catalog.load_catalog([str(tmp_path / "link")]).digest == site.load().digest


def test_too_large_and_unreadable_files_are_refused(site):
    site.write("values/big.yaml", "x: " + "y" * (10 * 1024 * 1024))
    site.write("manifests/bad.yaml", "").write_bytes(b"\xff\xfe")
    assert sorted(one.message for one in site.problems()) == ["is larger than 10 MiB", "is not UTF-8 text"]


@pytest.mark.parametrize(
    "make, words", [(lambda path: None, "not a directory"), (lambda path: path.mkdir(), "has no file")]
)
def test_a_layer_that_is_none(tmp_path, make, words):
    make(tmp_path / "x")
    with pytest.raises(NotFound, match=words):
        catalog.load_catalog([str(tmp_path / "x")])


def test_no_layer_at_all():
    with pytest.raises(NotFound, match="no catalogue"):
        catalog.load_catalog([])


@pytest.mark.parametrize(
    "text, words", [("- x\n", "one map of Helm values"), ("a: 1\n---\nb: 1\n", "one map"), ("a: [\n", "malformed")]
)
def test_values_files_are_one_map(site, text, words):
    site.write("values/a.yaml", text)
    site.overlay("eks", {"service": "eks"}, components=[{"name": "a", "valuesFiles": ["values/a.yaml"]}])
    with pytest.raises(InvalidDocument, match=words):
        site.load()


def test_an_empty_values_file_is_an_empty_map(site):
    site.write("values/a.yaml", "# nothing yet\n")
    site.overlay("eks", {"service": "eks"}, components=[{"name": "a", "valuesFiles": ["values/a.yaml"]}])
    assert site.component("a", service="eks")["values"] == {}


def test_a_clash_of_types_in_a_values_file_is_reported_there(site):
    site.write("values/a.yaml", "driver:\n  version: 1\n")
    site.overlay("base", components=[{"name": "a", "values": {"driver": "off"}}, "b"])
    site.overlay("eks", {"service": "eks"}, components=[{"name": "a", "valuesFiles": ["values/a.yaml"]}])
    (problem,) = site.problems(service="eks")
    assert (problem.code, problem.path, problem.line) == ("type-clash", "driver", 1)
    assert problem.file.endswith("values/a.yaml")


def test_the_cache_notices_changed_files(site):
    first = catalog.load_cached([str(site.root)])
    assert catalog.load_cached([str(site.root)]) is first
    site.overlay("gke", {"service": "gke"}, components=["a"])
    assert "gke" in catalog.load_cached([str(site.root)]).overlays
