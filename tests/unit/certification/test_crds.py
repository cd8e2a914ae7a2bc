"""The definitions in gitops/crds are those of the schemas."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.tools import crds

FILES = crds.definitions()


@pytest.mark.parametrize("name", FILES)
def test_the_files_are_made_of_the_schemas(name):
    written = yaml.safe_load((crds.FOLDER / name).read_text())
    assert written == FILES[name], "python -m tests.tools.crds writes them anew"


def test_there_is_no_other_file():
    assert {path.name for path in Path(crds.FOLDER).iterdir()} == set(FILES)
