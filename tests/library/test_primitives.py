"""The primitives are complete and true: examples, conditions and refusals are what happens."""

from __future__ import annotations

import re
from datetime import date, timedelta

import pytest
from hypothesis import strategies as st

from agentkit.composites.contracts import Conditions
from agentkit.errors import ModelRetry
from agentkit.testing import primitive_library

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


# --- any valid call -------------------------------------------------------------------------------

INTEGERS = st.integers(-(10**6), 10**6)


# --- wrong results --------------------------------------------------------------------------------

ISO_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
OTHER_ROW = {"region": "?", "amount": 0}


def plus(day: str, days: int) -> str:
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

HUGE = 10**400
REFUSED = [
    ("add", {"a": 1e308, "b": 1e308}, "beyond the largest number"),
    ("sub", {"a": -HUGE, "b": 1}, "beyond the largest number"),
    ("mul", {"a": 1e200, "b": 1e200}, "beyond the largest number"),
    ("div", {"a": 7, "b": 0}, "7 can not be divided by zero"),
    ("floor_div", {"a": 7, "b": 0}, "divided by zero"),
    ("mod", {"a": 7, "b": 0.0}, "divided by zero"),
    ("pow_int", {"base": 0, "exponent": -1}, "0 to the power of -1"),
    ("pow_int", {"base": 10, "exponent": 10**9}, "beyond the largest number"),
    ("pow_int", {"base": -7, "exponent": 10**9}, "beyond the largest number"),
    ("pow_int", {"base": 1.5, "exponent": 10**6}, "beyond the largest number"),
    ("sqrt", {"value": -4}, "-4 is negative"),
    ("round_to", {"value": 1.5, "digits": 13}, "give -12 to 12"),
    ("sum_list", {"values": [1e308, 1e308]}, "beyond the largest number"),
    ("mean", {"values": []}, "an empty list has no mean"),
    ("median", {"values": []}, "an empty list has no median"),
    ("mode", {"values": []}, "an empty list has no mode"),
    ("variance", {"values": []}, "at least one value"),
    ("variance", {"values": [3], "sample": True}, "at least two values"),
    ("variance", {"values": [1e200, -1e200]}, "beyond the largest number"),
    ("minimum", {"values": []}, "an empty list has no minimum"),
    ("maximum", {"values": []}, "an empty list has no maximum"),
    ("percentile", {"values": [1], "percent": 101}, "give 0 to 100"),
    ("percentile", {"values": [], "percent": 50}, "an empty list has no percentile"),
    ("sort_list", {"values": [1, "a"]}, "no common order"),
    ("take", {"values": [1], "count": -1}, "count is -1"),
    ("take", {"values": [1], "count": 1, "skip": -1}, "skip is -1"),
    ("concat", {"first": [0] * 9_000, "second": [0] * 9_000}, "more than 10,000"),
    ("split_text", {"text": "a", "separator": ""}, "separator is empty"),
    ("split_text", {"text": "," * 10_000, "separator": ","}, "more than 10,000 parts"),
    ("join_text", {"parts": ["a"] * 1_000, "separator": "-" * 1_000}, "more than 100,000"),
    ("replace_text", {"text": "a", "old": "", "new": "b"}, "old is empty"),
    ("replace_text", {"text": "a" * 1_000, "old": "a", "new": "b" * 1_000}, "more than 100,000"),
    ("substring", {"text": "a", "start": -1, "length": 1}, "start is -1"),
    ("substring", {"text": "a", "start": 0, "length": -1}, "length is -1"),
    ("days_between", {"start": "today", "end": "2026-03-01"}, "'today' is no day"),
    ("days_between", {"start": "2026-03-01", "end": "later"}, "'later' is no day"),
    ("days_between", {"start": "2026-02-30", "end": "2026-03-01"}, "'2026-02-30' is no day"),
    ("add_days", {"day": "2026-W01-1", "days": 1}, "write YYYY-MM-DD"),
    ("add_days", {"day": "now", "days": 1}, "write YYYY-MM-DD"),
    ("add_months", {"day": "now", "months": 1}, "write YYYY-MM-DD"),
    ("add_days", {"day": "9999-12-31", "days": 1}, "outside the calendar"),
    ("add_days", {"day": "2026-01-01", "days": 10**20}, "outside the calendar"),
    ("add_months", {"day": "2026-01-01", "months": -(10**6)}, "outside the calendar"),
    ("weekday", {"day": "tomorrow"}, "'tomorrow' is no day"),
    ("format_date", {"day": "20260302", "pattern": "MM"}, "write YYYY-MM-DD"),
    ("filter_rows", {"rows": [], "predicate": "amount > 1"}, "can not be used: there is no variable `amount`"),
    ("filter_rows", {"rows": [], "predicate": "open('x')"}, "can not be used"),
    ("filter_rows", {"rows": [{"a": 1}], "predicate": 'row["b"] > 1'}, "no value for row 0"),
    ("filter_rows", {"rows": [{"a": 1}], "predicate": 'row["a"]'}, "gives 1 for row 0"),
    ("select_column", {"rows": [{"a": 1}, {"b": 2}], "column": "a"}, "row 1 has no column 'a'"),
    ("sort_rows", {"rows": [{"a": 1}, {"a": "x"}], "column": "a"}, "no common order"),
    ("sort_rows", {"rows": [{"a": 1}], "column": "b"}, "it has a"),
    ("group_rows", {"rows": [{"a": 1}], "column": "b"}, "row 0 has no column 'b'"),
    ("join_rows", {"left": [{"a": [1]}], "right": [{"a": [1]}], "column": "a"}, "join on text"),
    ("join_rows", {"left": [{"a": 1}], "right": [{}], "column": "a"}, "row 0 has no column 'a'"),
    (
        "join_rows",
        {"left": [{"a": 1}] * 200, "right": [{"a": 1}] * 200, "column": "a"},
        "more than 10,000 pairs",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("name", "arguments", "advice"), REFUSED)
def test_a_bad_argument_is_refused_with_advice(name, arguments, advice):
    """The model is told what was wrong with the value and what to give instead."""
    with pytest.raises(ModelRetry, match=advice):
        TOOLS[name](**arguments)


def test_rows_share_the_work_of_a_predicate():
    """A predicate that is dear for each row is refused on a large table, in few words."""
    filter_rows = primitive_library()["filter_rows"]
    dear = "sum(i for i in range(9000)) > row['a']"
    rows = [{"a": 1, "b": "x" * 9_999}] * 2
    assert filter_rows(rows=rows, predicate=dear) == rows
    assert len(filter_rows(rows=rows * 5_000, predicate="row['a'] > 0")) == 10_000
    with pytest.raises(ModelRetry, match="200 units of work") as refused:
        filter_rows(rows=rows * 5_000, predicate=dear)
    assert len(str(refused.value)) < 500
