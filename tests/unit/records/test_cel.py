"""The CEL library as it is used here: the language's own semantics, and how its errors are put."""

from __future__ import annotations

import datetime

import pytest
from ansible_collections.goodput.fleet.plugins.module_utils.records import cel
from ansible_collections.goodput.fleet.plugins.module_utils.records.errors import FleetError

VARIABLES = {
    "event": {
        "isFatal": "bool",
        "codes": "strings",
        "count": "int",
        "agent": "string",
        "metadata": "texts",
        "when": "timestamp",
        "anything": "dyn",
    },
    "now": "timestamp",
}
WHEN = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
VALUES = {
    "event.isFatal": True,
    "event.codes": ["79", "74"],
    "event.count": 3,
    "event.agent": "kernel-log é",
    "event.metadata": {"a": "b"},
    "event.when": WHEN,
    "event.anything": {"ratio": 0.75, "nothing": None, "list": [1, 2]},
    "now": WHEN + datetime.timedelta(hours=25),
}


@pytest.fixture(scope="module")
def environment() -> cel.Environment:
    return cel.Environment(VARIABLES)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("event.isFatal && event.metadata['a'] == 'b' && event.codes.exists(c, c == '79')", True),
        ("has(event.metadata.a) && !has(event.metadata.b)", True),
        ("event.metadata.missing == 'x' || true", True),
        ("event.metadata.missing == 'x' && false", False),
        ("true || event.metadata.missing == 'x'", True),
        ("'a' in event.metadata && '79' in event.codes", True),
        ("event.codes.all(c, c.startsWith('7'))", True),
        ("event.codes.exists_one(c, c == '79')", True),
        ("event.codes.filter(c, c != '79') == ['74']", True),
        ("event.codes.map(c, int(c)) == [79, 74]", True),
        ("event.codes.map(c, c != '79', c + 'x') == ['74x']", True),
        ("event.metadata.exists(k, k.startsWith('a'))", True),
        ("size(event.codes) == 2 && event.codes.size() == 2", True),
        ("now - event.when > duration('24h')", True),
        ("timestamp(event.when) + duration('25h') == now", True),
        ("timestamp('2026-01-02T03:04:05Z').getFullYear() == 2026", True),
        ("timestamp('2026-01-02T03:04:05Z').getDayOfWeek() == 5", True),
        ("duration('90s').getSeconds() == 90", True),
        ("'hello'.matches('^h.*o$')", True),
        ("event.agent.contains('-') && event.agent.endsWith('é')", True),
        ("dyn(1) == 1.0 && dyn(1) < 2.5", True),
        ("dyn(1) == '1'", False),
        ("event.count == 3 && type(event.count) == int", True),
        ("-7 / 2 == -3 && -7 % 3 == -1", True),
        ("'é'.size() == 1", True),
        ("event.anything.ratio > 0.5 && event.anything.nothing == null", True),
        ("type(event.anything.list[0]) == int && event.anything.list == [1, 2]", True),
        ("event.metadata.?missing.orValue('d') == 'd'", True),
        ("'a,b'.split(',') == ['a', 'b'] && 'ABC'.lowerAscii() == 'abc'", True),
        ("'x %s'.format(['y']) == 'x y'", True),
        ("cel.bind(x, 3, x * x) == 9 && math.greatest(1, 2) == 2", True),
    ],
)
def test_values(environment, expression, value):
    assert environment.compile(expression).holds(environment.activation(VALUES)) is value


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("event.metadata.missing == 'x'", "the key 'missing' is not there; ask for it first with has() or in"),
        ("event.metadata['missing'] == 'x'", "the key 'missing' is not there"),
        ("9223372036854775807 + event.count > 0", "overflow"),
        ("event.count / (event.count - 3) == 1", "divide by zero"),
        ("event.codes[7] == '1'", "index=7"),
        ("int(event.agent) == 1", "convert"),
        ("event.agent.matches(event.metadata.a + '(')", "missing )"),
        ("event.anything.list", "gives list '[1, 2]', not true or false"),
        ("event.anything.nothing", "gives NoneType"),
        ("timestamp(event.agent) > now", "imestamp"),
    ],
)
def test_what_fails_only_when_it_runs_is_neither_true_nor_false(environment, expression, words):
    answer = environment.compile(expression).holds(environment.activation(VALUES))
    assert isinstance(answer, cel.Failure) and words in answer.why


@pytest.mark.parametrize(
    ("expression", "line", "column", "words"),
    [
        ("event.isFatal &&", 1, 17, "ends too early"),
        ("event.isFatal\n  && event.isFatall", 2, 6, "event has no field 'isFatall'"),
        ("event.count == 1.0", 1, 13, "== does not work on (int, double)"),
        ("event.count == '3'", 1, 13, "== does not work on (int, string)"),
        ("event.codes.all(c, d)", 1, 20, "there is no variable 'd'"),
        ("event.anythin.list.size() == 1", 1, 1, "event has no field 'anythin'"),
        ("é", 1, 1, "syntax error"),
        ("event.count", 1, 1, "gives int, not true or false"),
        ("", 1, 1, "ends too early"),
    ],
)
def test_what_is_refused_and_where(environment, expression, line, column, words):
    with pytest.raises(cel.CelError) as caught:
        environment.compile(expression)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert words in str(caught.value)


def test_a_loop_without_end_is_stopped(environment):
    many = "[" + ",".join(map(str, range(200))) + "]"
    text = f"{many}.all(a, {many}.all(b, {many}.all(c, a + b + c >= 0)))"
    answer = environment.compile(text).holds(environment.activation(VALUES))
    assert answer == cel.Failure("Iteration budget exceeded")


def test_without_the_library_there_is_one_clear_error(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "cel_expr_python", None)
    cel._library.cache_clear()
    try:
        with pytest.raises(FleetError, match=r"cel-expr-python is missing on .*pip install cel-expr-python") as caught:
            cel.Environment(VARIABLES)
        assert caught.value.problems[0].code == "missing-library"
    finally:
        cel._library.cache_clear()
