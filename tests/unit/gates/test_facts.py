"""A raw Node as rules and reports see it."""

from __future__ import annotations

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.gates.facts import boot_id, node_facts


@pytest.mark.parametrize("told", [None, "", 7, "x" * 300, "two\nlines", "a\x00b"])
def test_a_boot_id_that_is_none_is_not_told(told):
    """A gate could not carry it, and one odd node must not stop a pass over all the others."""
    node = {"metadata": {"name": "a"}, "status": {"nodeInfo": {"bootID": told}}}
    assert boot_id(node) == "" and node_facts(node)["bootId"] == ""


def test_a_boot_id_is_told():
    boot = "6e43a052-e544-467b-a972-63d7cd2ce80a"
    assert boot_id({"status": {"nodeInfo": {"bootID": boot}}}) == boot
