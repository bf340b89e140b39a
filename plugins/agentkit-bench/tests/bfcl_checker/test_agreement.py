"""Our verdict beside the public checker's: agreement, and every difference explained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from agentkit_bench.bfcl import CATEGORIES

EXPLAINED = {
    "a tuple, which no JSON call holds",
    "arguments that can not be read count as a call where none is expected",
    "upstream raises: OverflowError",
    "upstream takes the first call that fits",
}


@pytest.mark.corpora
@pytest.mark.parametrize("category", CATEGORIES)
def test_verdicts_agree(comparison, category):
    """On right and wrong answers alike, but for the differences that are explained."""
    found = comparison.category(category, limit=3)
    assert found.items == 3
    assert found.outputs > 10
    assert 0 < found.passed < found.outputs
    assert set(found.classes) <= EXPLAINED
    assert not found.disagreeing
    assert found.gold_passed == found.upstream_gold


Calls = Sequence[tuple[str, dict[str, Any]]]


def tool(name="find", required=(), **properties):
    """A tool in the form of the benchmark's files."""
    parameters = {"type": "dict", "properties": properties, "required": list(required)}
    return {"name": name, "description": "A tool.", "parameters": parameters}


@dataclass(frozen=True, kw_only=True)
class Case:
    """Calls, what they are compared with, and what upstream says; None: it raises."""

    functions: Sequence[dict[str, Any]]
    gold: Sequence[dict[str, dict[str, Any]]]
    calls: Calls
    upstream: bool | None
    category: str = "simple_python"
    source: Calls | None = None


def case(schema, allowed, given, *, text=None, required=(), **more):
    """One argument: what is allowed, what is given, and the same as source text."""
    return Case(
        functions=[tool(required=required, x=schema)],
        gold=[{"find": {"x": allowed}}],
        calls=[("find", {"x": given})],
        source=None if text is None else [("find", {"x": text})],
        **more,
    )


STRING, FLOAT, OBJECT = {"type": "string"}, {"type": "float"}, {"type": "dict"}

GREEDY = Case(
    functions=[tool(a=STRING)],
    gold=[{"find": {"a": ["x", "y"]}}, {"find": {"a": ["x"]}}],
    calls=[("find", {"a": "x"}), ("find", {"a": "y"})],
    category="parallel",
    upstream=False,
)
HUGE = case(FLOAT, [1.5], 10**400, upstream=None)
BARE_OPTION = case(OBJECT, [{"town": "Moss"}], {"town": "moss"}, upstream=False)
LETTERS = case(OBJECT, [{"town": "Moss"}], {"town": "M"}, upstream=True)
NOTHING_ALLOWED = case(STRING, [], "x", required=["x"], upstream=False)
UNKNOWN_ARGUMENT = Case(
    functions=[tool(a=STRING)],
    gold=[{"find": {"a": ["x"], "b": ["y"]}}],
    calls=[("find", {"a": "x"})],
    upstream=False,
)
NATIVE_LONG = case({"type": "long"}, [42], 42, category="simple_java", upstream=False)
NATIVE_STRINGS = case(
    {"type": "Array", "items": {"type": "String"}},
    [["a", "b"]],
    ["a", "b"],
    text='new String[]{"a", "b"}',
    category="simple_java",
    upstream=False,
)
COMMA_INSIDE = case(
    {"type": "array", "items": {"type": "String"}},
    [["Moss, Norway"]],
    ["Moss, Norway"],
    text='["Moss, Norway"]',
    category="simple_javascript",
    upstream=False,
)
QUOTED_TRUE = case(
    OBJECT,
    [{"open": [True]}],
    {"open": "true"},
    text='{open: "true"}',
    category="simple_javascript",
    upstream=True,
)
TUPLE = case({"type": "array", "items": {"type": "integer"}}, [[1, 2]], (1, 2), upstream=False)
CASES = {name: case for name, case in list(globals().items()) if isinstance(case, Case)}


@pytest.mark.parametrize("name", CASES)
def test_upstream_says_what_is_recorded(name, upstream_verdict):
    """The public checker's verdicts, as the tests below tell them, are its own."""
    assert upstream_verdict(CASES[name]) == CASES[name].upstream


async def test_calls_go_to_the_gold_calls_that_need_them(verdict):
    """Upstream gives a call to the first gold call that takes it, and may then lack it."""
    assert (await verdict(GREEDY)).passed
    swapped = replace(GREEDY, calls=GREEDY.calls[::-1])
    assert (await verdict(swapped)).passed


async def test_an_integer_beyond_any_float_is_a_wrong_value(verdict):
    """Upstream raises where a float is declared; here it is a finding like any other."""
    found = await verdict(HUGE)
    assert (found.passed, found.fault, found.evidence[0].kind) == (False, None, "wrong_type")


async def test_one_text_in_place_of_options_is_one_option(verdict):
    """Upstream takes its letters for the options, so that a letter passes and the word fails."""
    assert (await verdict(BARE_OPTION)).passed
    assert not (await verdict(LETTERS)).passed


@pytest.mark.parametrize("case", [NOTHING_ALLOWED, UNKNOWN_ARGUMENT])
async def test_gold_that_nothing_can_match_is_not_the_models_fault(verdict, case):
    """Upstream counts it as a failure; here the verdict is a gold error and counts nowhere."""
    found = await verdict(case)
    assert (found.passed, found.fault) == (False, "gold_error")


@pytest.mark.parametrize("case", [NATIVE_LONG, NATIVE_STRINGS, COMMA_INSIDE])
async def test_json_values_stand_for_their_literals(verdict, case):
    """Upstream wants source text; its readers fail long without L, quotes and commas in lists."""
    assert (await verdict(case)).passed
    if case.source is not None:
        assert (await verdict(replace(case, calls=case.source))).passed is case.upstream


async def test_a_json_text_is_not_the_boolean_that_it_spells(verdict):
    """Upstream drops quotes inside an object; as JSON the text stays one, as source it is read."""
    assert not (await verdict(QUOTED_TRUE)).passed
    assert (await verdict(replace(QUOTED_TRUE, calls=QUOTED_TRUE.source))).passed


async def test_tuples_count_as_lists(verdict):
    """JSON has none, so one that reaches us was written by a program and means a list."""
    assert (await verdict(TUPLE)).passed
