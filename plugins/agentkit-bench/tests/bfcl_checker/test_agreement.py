"""Our verdict beside the public checker's: agreement, and every difference explained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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


STRING, FLOAT = {"type": "string"}, {"type": "float"}

GREEDY = Case(
    functions=[tool(a=STRING)],
    gold=[{"find": {"a": ["x", "y"]}}, {"find": {"a": ["x"]}}],
    calls=[("find", {"a": "x"}), ("find", {"a": "y"})],
    category="parallel",
    upstream=False,
)
HUGE = Case(
    functions=[tool(n=FLOAT)],
    gold=[{"find": {"n": [1.5]}}],
    calls=[("find", {"n": 10**400})],
    upstream=None,
)
BARE_OPTION = Case(
    functions=[tool(where={"type": "dict"})],
    gold=[{"find": {"where": [{"town": "Moss"}]}}],
    calls=[("find", {"where": {"town": "moss"}})],
    upstream=False,
)
LETTERS = Case(
    functions=BARE_OPTION.functions,
    gold=BARE_OPTION.gold,
    calls=[("find", {"where": {"town": "M"}})],
    upstream=True,
)
NOTHING_ALLOWED = Case(
    functions=[tool(required=["a"], a=STRING)],
    gold=[{"find": {"a": []}}],
    calls=[("find", {"a": "x"})],
    upstream=False,
)
UNKNOWN_ARGUMENT = Case(
    functions=[tool(a=STRING)],
    gold=[{"find": {"a": ["x"], "b": ["y"]}}],
    calls=[("find", {"a": "x"})],
    upstream=False,
)
NATIVE_LONG = Case(
    functions=[tool(n={"type": "long"})],
    gold=[{"find": {"n": [42]}}],
    calls=[("find", {"n": 42})],
    category="simple_java",
    upstream=False,
)
NATIVE_STRINGS = Case(
    functions=[tool(names={"type": "Array", "items": {"type": "String"}})],
    gold=[{"find": {"names": [["a", "b"]]}}],
    calls=[("find", {"names": ["a", "b"]})],
    source=[("find", {"names": 'new String[]{"a", "b"}'})],
    category="simple_java",
    upstream=False,
)
COMMA_INSIDE = Case(
    functions=[tool(names={"type": "array", "items": {"type": "String"}})],
    gold=[{"find": {"names": [["Moss, Norway"]]}}],
    calls=[("find", {"names": ["Moss, Norway"]})],
    source=[("find", {"names": '["Moss, Norway"]'})],
    category="simple_javascript",
    upstream=False,
)
QUOTED_TRUE = Case(
    functions=[tool(options={"type": "dict"})],
    gold=[{"find": {"options": [{"open": [True]}]}}],
    calls=[("find", {"options": {"open": "true"}})],
    source=[("find", {"options": '{open: "true"}'})],
    category="simple_javascript",
    upstream=True,
)
TUPLE = Case(
    functions=[tool(n={"type": "array", "items": {"type": "integer"}})],
    gold=[{"find": {"n": [[1, 2]]}}],
    calls=[("find", {"n": (1, 2)})],
    upstream=False,
)
CASES = {name: case for name, case in list(globals().items()) if isinstance(case, Case)}


@pytest.mark.parametrize("name", CASES)
def test_upstream_says_what_is_recorded(name, upstream_verdict):
    """The public checker's verdicts, as the tests below tell them, are its own."""
    assert upstream_verdict(CASES[name]) == CASES[name].upstream


async def test_calls_go_to_the_gold_calls_that_need_them(verdict):
    """Upstream gives a call to the first gold call that takes it, and may then lack it."""
    assert (await verdict(GREEDY)).passed
    swapped = Case(**{**vars(GREEDY), "calls": GREEDY.calls[::-1]})
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
        as_text = Case(**{**vars(case), "calls": case.source})
        assert (await verdict(as_text)).passed is case.upstream


async def test_a_json_text_is_not_the_boolean_that_it_spells(verdict):
    """Upstream drops quotes inside an object; as JSON the text stays one, as source it is read."""
    assert not (await verdict(QUOTED_TRUE)).passed
    as_text = Case(**{**vars(QUOTED_TRUE), "calls": QUOTED_TRUE.source})
    assert (await verdict(as_text)).passed


async def test_tuples_count_as_lists(verdict):
    """JSON has none, so one that reaches us was written by a program and means a list."""
    assert (await verdict(TUPLE)).passed
