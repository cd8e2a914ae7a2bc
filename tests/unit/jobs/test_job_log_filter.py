"""parse_job_log as a play uses it."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.goodput.fleet.plugins.filter.parse_job_log import parse_job_log

ECC = "[rank3]: RuntimeError: CUDA error: uncorrectable ECC error encountered"


def test_text_lines_and_logs_of_pods():
    answer = parse_job_log(f"noise\n{ECC}")
    assert (answer["id"], answer["blame"]["ranks"], answer["lines"][0]["number"]) == ("J043", [3], 2)
    assert parse_job_log(["noise", ECC]) == answer
    pods = [{"rank": 0, "pod": "train-0", "log": "noise"}, {"rank": "3", "pod": "train-3", "log": [ECC]}]
    assert parse_job_log(pods)["blame"]["pods"] == ["train-3"]


def test_exits_and_world():
    answer = parse_job_log("nothing", exits=[{"rank": 1, "exitCode": 139}], world="4")
    assert (answer["id"], answer["firstFailing"]) == ("exit139", 1)


@pytest.mark.parametrize(
    "value, options, words",
    [
        (None, {}, "takes a text, a list of lines or a list of logs, not NoneType"),
        ([{"rank": 1, "pod": "a"}], {}, "this one has only rank, pod"),
        ([{"rank": "first", "log": ""}], {}, "rank is 'first', not a number"),
        ([1], {}, "takes a text"),
        ("", {"exits": ["x"]}, "exits are maps with rank, exitCode and at, not 'x'"),
        ("", {"world": "many"}, "world is 'many'"),
        ("", {"catalog": ["/nowhere"]}, "no failure signatures"),
    ],
)
def test_bad_input_is_one_clear_error(value, options, words):
    with pytest.raises(AnsibleFilterError, match="parse_job_log: ") as caught:
        parse_job_log(value, **options)
    assert words in str(caught.value)
