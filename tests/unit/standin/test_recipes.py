"""Every shipped recipe can be stood in for: charts for all of it, a status for all its checks."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.recipes.catalog import load_catalog
from ansible_collections.goodput.fleet.plugins.module_utils.recipes.resolve import resolve
from ansible_collections.goodput.fleet.plugins.module_utils.records import yamltree

from tests.standin import charts, kinds
from tests.standin.locks import component, lock
from tests.standin.operators import Operators

ROOT = Path(__file__).resolve().parents[3]
CATALOG = load_catalog([str(ROOT / "gitops" / "catalog")])


@pytest.mark.parametrize("recipe", CATALOG.recipes, ids=lambda recipe: recipe.name)
def test_it_can(recipe):
    document = resolve(CATALOG, recipe.criteria)
    with_chart = [item for item in document["spec"]["components"] if "chart" in item]
    assert len(charts.archives(document)) == len(with_chart) > 0
    Operators(document, None)  # raises when there is a check that no status fulfils


def test_each_crd_of_a_recipe_comes_with_one_chart():
    document = resolve(CATALOG, CATALOG.recipes[0].criteria)
    known = kinds.Kinds(document)
    listed = [name for item in document["spec"]["components"] for name in item.get("crds") or []]
    brought = [
        crd["metadata"]["name"]
        for item in document["spec"]["components"]
        if "chart" in item
        for crd in known.brought_by(item)
    ]
    assert sorted(brought) == sorted(set(brought)) and set(listed) <= set(brought)


class TestCommand:
    def start(self, tmp_path, *arguments: str) -> subprocess.Popen:
        (tmp_path / "lock.yaml").write_text(yamltree.dump(lock(component("a"))))
        command = [sys.executable, "-m", "tests.standin", "serve", "--lock", str(tmp_path / "lock.yaml")]
        return subprocess.Popen(
            [*command, "--dir", str(tmp_path / "charts"), *arguments],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def test_it_serves_a_repository_until_its_parent_is_gone(self, tmp_path):
        with self.start(tmp_path) as process:
            url = process.stdout.readline().strip()
            assert url.startswith("http://127.0.0.1:")
            with urllib.request.urlopen(f"{url}/index.yaml") as answer:
                assert b"a-1.2.3.tgz" in answer.read()
            with pytest.raises(urllib.error.HTTPError):
                urllib.request.urlopen(f"{url}/")
            process.stdin.close()
            assert process.wait(10) == 0

    def test_detached_it_stays_until_a_signal(self, tmp_path):
        with self.start(tmp_path, "--detached") as process:
            process.stdin.close()
            assert process.stdout.readline().startswith("http://127.0.0.1:")
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.5)
            process.send_signal(signal.SIGTERM)
            assert process.wait(10) == 0

    def test_a_lock_that_is_none_is_one_clear_line(self, tmp_path):
        (tmp_path / "x.json").write_text(json.dumps({"kind": "Overlay"}))
        command = [sys.executable, "-m", "tests.standin", "build", "--lock", str(tmp_path / "x.json"), "--dir", "."]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 1
        assert done.stderr.startswith("standin: ") and "Traceback" not in done.stderr
