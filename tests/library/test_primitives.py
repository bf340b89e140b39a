"""The primitives are complete and true: examples, conditions and refusals are what happens."""

from __future__ import annotations

import copy
import math
import re
from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import assume, given, settings, strategies as st

from agentkit.composites.contracts import Conditions
from agentkit.errors import CompositeRunError, ModelRetry
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


def is_false(expression, values):
    """Whether an expression has a value, and that is not true."""
    try:
        return not expression.evaluate(values)
    except CompositeRunError:
        return False


def every_postcondition():
    """Name of the tool and text of each condition."""
    return [
        (name, condition)
        for name, definition in DEFINITIONS.items()
        for condition in definition.specification.post
    ]


WRONG = {
    "add": lambda a, b: a - b,
    "sub": lambda a, b: b - a,
    "mul": lambda a, b: a + b,
    "div": lambda a, b: a // b,
    "floor_div": lambda a, b: int(a / b),
    "mod": math.fmod,
    "pow_int": lambda base, exponent: base * exponent,
    "sqrt": lambda value: value / 2,
    "neg": abs,
    "absolute": lambda value: value,
    "round_to": round,
    "sum_list": lambda values: sum(values[1:]),
    "count_items": lambda values: len({str(value) for value in values}) + 1,
    "mean": lambda values: (min(values) + max(values)) / 2 + 0.1,
    "median": lambda values: values[len(values) // 2],
    "mode": max,
    "variance": lambda values, _: sum(values) / len(values),
    "minimum": lambda values: values[0],
    "maximum": lambda values: values[-1],
    "percentile": lambda values, percent: max(values) * percent / 100,
    "sort_list": lambda values, _: values,
    "unique": lambda values: sorted(set(values)),
    "take": lambda values, count, skip: values[skip:count],
    "index_of": lambda values, _: len(values) - 1,
    "concat": lambda first, second: second + first,
    "to_lower": str.upper,
    "trim": str.lstrip,
    "split_text": lambda text, _: text.split(),
    "join_text": lambda parts, _: "".join(parts),
    "replace_text": lambda text, old, new: text.replace(old, new, 1),
    "contains_text": lambda text, part, _: part in text,
    "substring": lambda text, start, length: text[start:length],
    "days_between": lambda start, end: abs(
        (date.fromisoformat(end) - date.fromisoformat(start)).days
    ),
    "add_days": lambda day, days: plus(day, days + 1),
    "add_months": lambda day, months: plus(day, months * 30),
    "weekday": lambda _: "Tuesday",
    "format_date": lambda day, _: day,
    "filter_rows": lambda rows, _: rows[:1],
    "select_column": lambda rows, _: [row.get("amount") for row in rows],
    "sort_rows": lambda rows, _, __: rows,
    "group_rows": lambda rows, column: {row[column]: [row] for row in rows},
    "join_rows": lambda left, right, _: [a | b for a, b in zip(left, right, strict=False)],
}


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
