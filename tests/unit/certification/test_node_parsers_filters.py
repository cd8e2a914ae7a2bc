"""The filters: plain data in, plain data out, one clear error for what cannot be."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.goodput.fleet.plugins.filter import (
    parse_dcgm_diag,
    parse_gpu_burn,
    parse_nvbandwidth,
    parse_training_log,
)

from tests.unit.certification.dcgm_outputs import entity, new_json
from tests.unit.certification.test_gpu_burn import burn
from tests.unit.certification.test_nvbandwidth import END, PEER, head, matrix, peers
from tests.unit.certification.training_logs import nemo


def filters(module) -> dict:
    return module.FilterModule().filters()


def test_dcgm_diag():
    parse = filters(parse_dcgm_diag)["parse_dcgm_diag"]
    text = new_json({"memory": ("Pass", [entity(gpu) for gpu in range(7)])}, gpus=7)
    result = parse(text, expected_gpus=8, expected_tests=["memory"], exit_code=0)
    assert [finding["code"] for finding in result["findings"]] == ["gpu-missing"]
    assert parse(text.splitlines(), expected_gpus=7)["findings"] == []


def test_nvbandwidth():
    result = filters(parse_nvbandwidth)["parse_nvbandwidth"](
        head() + matrix(PEER, peers()) + END, expected_tests=(PEER,)
    )
    assert result["complete"] and result["runs"][0]["metrics"][f"{PEER}.min"]["value"] == 391.2


def test_gpu_burn():
    assert filters(parse_gpu_burn)["parse_gpu_burn"](burn(8), expected_gpus="8")["findings"] == []


def test_training_log():
    parse = filters(parse_training_log)["parse_training_log"]
    result = parse("\n".join(nemo(step, 9) for step in range(10)), warmup_steps=2, min_steps=8)
    assert result["complete"] and result["runs"][0]["metrics"]["steps"]["value"] == 8


@pytest.mark.parametrize(
    ("module", "options"),
    [
        (parse_dcgm_diag, {"expected_gpus": "all"}),
        (parse_dcgm_diag, {"exit_code": "x"}),
        (parse_nvbandwidth, {"expected_tests": "x"}),
        (parse_gpu_burn, {"expected_gpus": 1.5}),
        (parse_training_log, {"warmup_steps": -1}),
    ],
)
def test_one_clear_error(module, options):
    ((name, parse),) = filters(module).items()
    option = next(iter(options))
    with pytest.raises(AnsibleFilterError, match=f"^{name}: {option}"):
        parse("", **options)
    with pytest.raises(AnsibleFilterError, match=f"^{name}: .*not a text"):
        parse(None)
