"""The primitives are complete and true: examples, conditions and refusals are what happens."""

from __future__ import annotations

import copy
import re
from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import assume, given, settings, strategies as st

from agentkit.composites.contracts import Conditions
from agentkit.errors import ModelRetry
from agentkit.testing import primitive_library
from agentkit.tools.validation import validate_arguments

TOOLS = {tool.name: tool for tool in primitive_library()}
DEFINITIONS = {name: tool.definition for name, tool in TOOLS.items()}
CONDITIONS = {name: Conditions(definition) for name, definition in DEFINITIONS.items()}


def test_there_are_as_many_as_in_the_paper():
    """The library has 42 primitives (CoCoDA, appendix E)."""
    assert len(TOOLS) == 42


@pytest.mark.parametrize("name", TOOLS)
def test_all_four_levels_are_filled(name):
    """Every primitive has a result type, words for each parameter, conditions and three examples."""
    definition = DEFINITIONS[name]
    effects = definition.signature.effects
    assert definition.signature.result is not None
    assert effects.is_read_only
    assert effects.reads is effects.destructive is effects.open_world is False
    assert set(definition.description.parameters) == set(definition.signature.properties)
    assert definition.description.summary
    assert definition.description.tags
    assert definition.specification.post
    assert definition.specification.complexity
    assert len(definition.examples) >= 3
    assert any(example.query for example in definition.examples)


@pytest.mark.parametrize("name", TOOLS)
def test_examples_are_what_the_primitive_returns(name):
    """Calling a primitive with the arguments of an example gives its result, of the same type."""
    for example in DEFINITIONS[name].examples:
        result = TOOLS[name](**example.arguments)
        assert result == example.result
        assert type(result) is type(example.result)


@pytest.mark.parametrize("name", TOOLS)
def test_conditions_hold_on_the_examples(name):
    """The checker of contracts finds nothing wrong with any worked example."""
    for example in DEFINITIONS[name].examples:
        assert CONDITIONS[name].before(example.arguments) is None
        assert CONDITIONS[name].after(example.arguments, example.result) is None


# --- any valid call -------------------------------------------------------------------------------

INTEGERS = st.integers(-(10**6), 10**6)
NUMBERS = INTEGERS | st.floats(-1e6, 1e6)
DIVISORS = NUMBERS.filter(lambda number: abs(number) >= 1e-3)
TEXTS = st.text(max_size=20)
PARTS = st.text("ab,", max_size=4)
MEASURES = st.lists(NUMBERS, max_size=12)
SOME_MEASURES = st.lists(NUMBERS, min_size=1, max_size=12)
FEW_VALUES = st.lists(st.integers(0, 4), max_size=9) | st.lists(st.sampled_from("abc"), max_size=9)
ITEMS = st.lists(st.none() | st.integers(0, 3) | TEXTS | st.lists(st.integers(0, 1)), max_size=6)
COUNTS = st.integers(0, 8)
DAYS = st.dates().map(date.isoformat)
ROWS = st.lists(
    st.fixed_dictionaries({"region": st.sampled_from(["EU", "US", "CN"]), "amount": NUMBERS}),
    max_size=6,
)
MANAGERS = st.lists(
    st.fixed_dictionaries({"region": st.sampled_from(["EU", "US", "JP"]), "manager": TEXTS}),
    max_size=4,
)
COLUMNS = st.sampled_from(["region", "amount"])
PREDICATES = st.sampled_from(
    ['row["amount"] > 0', 'row["region"] in ["EU", "CN"]', 'len(row) == 2 and row["amount"] < 5']
)

VALID: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "add": {"a": NUMBERS, "b": NUMBERS},
    "sub": {"a": NUMBERS, "b": NUMBERS},
    "mul": {"a": NUMBERS, "b": NUMBERS},
    "div": {"a": NUMBERS, "b": DIVISORS},
    "floor_div": {"a": NUMBERS, "b": DIVISORS},
    "mod": {"a": NUMBERS, "b": DIVISORS},
    "pow_int": {"base": DIVISORS, "exponent": st.integers(-40, 40)},
    "sqrt": {"value": NUMBERS.map(abs)},
    "neg": {"value": NUMBERS},
    "absolute": {"value": NUMBERS},
    "round_to": {"value": NUMBERS, "digits": st.integers(-12, 12)},
    "sum_list": {"values": MEASURES},
    "count_items": {"values": ITEMS},
    "mean": {"values": SOME_MEASURES},
    "median": {"values": SOME_MEASURES},
    "mode": {"values": FEW_VALUES.filter(bool)},
    "variance": {"values": st.lists(NUMBERS, min_size=2, max_size=9), "sample": st.booleans()},
    "minimum": {"values": SOME_MEASURES},
    "maximum": {"values": SOME_MEASURES},
    "percentile": {"values": SOME_MEASURES, "percent": st.floats(0, 100)},
    "sort_list": {"values": MEASURES | st.lists(TEXTS), "descending": st.booleans()},
    "unique": {"values": FEW_VALUES},
    "take": {"values": ITEMS, "count": COUNTS, "skip": COUNTS},
    "index_of": {"values": ITEMS, "value": st.integers(0, 3) | st.none()},
    "concat": {"first": ITEMS, "second": ITEMS},
    "to_lower": {"text": TEXTS},
    "trim": {"text": TEXTS},
    "split_text": {"text": st.text("ab,", max_size=12), "separator": PARTS.filter(bool)},
    "join_text": {"parts": st.lists(TEXTS, max_size=6), "separator": PARTS},
    "replace_text": {"text": st.text("ab,"), "old": PARTS.filter(bool), "new": PARTS},
    "contains_text": {"text": st.text("aAbB"), "part": PARTS, "ignore_case": st.booleans()},
    "substring": {"text": TEXTS, "start": COUNTS, "length": COUNTS},
    "days_between": {"start": DAYS, "end": DAYS},
    "add_days": {"day": DAYS, "days": st.integers(-4_000_000, 4_000_000)},
    "add_months": {"day": DAYS, "months": st.integers(-120_000, 120_000)},
    "weekday": {"day": DAYS},
    "format_date": {"day": DAYS, "pattern": st.sampled_from(["DD.MM.YYYY", "YYYY-MM", "", "x"])},
    "filter_rows": {"rows": ROWS, "predicate": PREDICATES},
    "select_column": {"rows": ROWS, "column": COLUMNS},
    "sort_rows": {"rows": ROWS, "column": COLUMNS, "descending": st.booleans()},
    "group_rows": {"rows": ROWS, "column": COLUMNS},
    "join_rows": {"left": ROWS, "right": MANAGERS, "column": st.just("region")},
}
MAY_LEAVE_THE_CALENDAR = {"add_days", "add_months"}


@pytest.mark.parametrize("name", TOOLS)
def test_conditions_hold_on_any_valid_call(name):
    """Valid arguments fit the schema and the preconditions, stay as they are, and give a result."""
    definition = DEFINITIONS[name]

    @settings(max_examples=30, deadline=None, database=None)
    @given(st.fixed_dictionaries(VALID[name]))
    def check(arguments):
        before = copy.deepcopy(arguments)
        assert validate_arguments(definition, arguments) == ()
        assert CONDITIONS[name].before(arguments) is None
        try:
            result = TOOLS[name](**arguments)
        except ModelRetry:
            assume(name not in MAY_LEAVE_THE_CALENDAR)
            raise
        assert CONDITIONS[name].after(arguments, result) is None
        assert arguments == before

    check()


# --- wrong results --------------------------------------------------------------------------------

ISO_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
OTHER_ROW = {"region": "?", "amount": 0}


def plus(day, days):
    """The day so many days later."""
    return (date.fromisoformat(day) + timedelta(days=days)).isoformat()


def wrong_results(example):
    """Values that are not the result: it in altered form, or what was given instead."""
    candidates = [*altered(example.result), *example.arguments.values(), None]
    return [wrong for wrong in candidates if wrong != example.result]


def altered(result):
    """Values of about the right kind."""
    match result:
        case bool():
            others = [not result]
        case int() | float():
            others = [result + 1, result - 1, -result, result * 2 + 0.5, result + 400]
        case str() if ISO_DAY.fullmatch(result):
            others = [plus(result, 1), plus(result, -1), plus(result, 31), result[:7], "1999-01-31"]
        case str():
            others = [result + "x", result[:-1], result[::-1], result.upper()]
        case list():
            others = [result[::-1], result[:-1], result + result, [*result, 7], [OTHER_ROW], []]
        case dict():
            others = [
                {},
                dict([*result.items()][1:]),
                {**result, "x": []},
                {name: [] for name in result},
                {f"{name}x": rows for name, rows in result.items()},
                {name: [*rows, OTHER_ROW] for name, rows in result.items()},
                {name: [OTHER_ROW, *rows] for name, rows in result.items()},
            ]
        case _:
            others = [0, "x"]
    return others


def all_arguments(name, example):
    """The arguments of an example in declared order, with the defaults of those left out."""
    return {
        parameter: example.arguments.get(parameter, schema.get("default"))
        for parameter, schema in DEFINITIONS[name].signature.properties.items()
    }


def is_caught(name, arguments, result):
    """Whether some postcondition does not hold, or has no value."""
    return CONDITIONS[name].after(arguments, result) is not None


LOOSE = {
    # what these conditions can not tell; the examples do, and say so below
    "round_to": "where a half goes",
    "filter_rows": "whether the predicate was asked",
    "days_between": "a day more or less",
    "add_days": "a day more or less",
    "join_rows": "pairs in the middle",
}


@pytest.mark.parametrize("name", sorted(TOOLS.keys() - LOOSE.keys()))
def test_conditions_catch_every_wrong_result(name):
    """No altered result of an example passes the postconditions."""
    definition = DEFINITIONS[name]
    passed = [
        (dict(example.arguments), wrong)
        for example in definition.examples
        for wrong in wrong_results(example)
        if not is_caught(name, example.arguments, wrong)
    ]
    assert passed == []


# --- invalid arguments ----------------------------------------------------------------------------
