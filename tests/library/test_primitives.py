"""The primitives and the sample library are complete and true, and compose as in the paper."""

from __future__ import annotations

import re
from datetime import date, timedelta

import pytest

from agentkit.composites.composite import composite_tool
from agentkit.composites.contracts import Conditions
from agentkit.composites.source import compose
from agentkit.errors import ContractViolation, ModelRetry
from agentkit.library.dag import depth, flat_size
from agentkit.testing import primitive_library, sample_library

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


LIBRARY = primitive_library()
SALES = [
    {"region": "EU", "amount": 120},
    {"region": "US", "amount": 80},
    {"region": "EU", "amount": 40},
]

QUADRATIC_EXPR = """
def quadratic_expr(a: float, b: float, c: float, x: float) -> float:
    '''Evaluate a*x**2 + b*x + c at x (CoCoDA, appendix F.2).'''
    return add(add(mul(a, pow_int(x, 2)), mul(b, x)), c)
"""
SUM_WHERE = """
def sum_where(rows: list[dict[str, Any]], column: str, predicate: Expr["row -> bool"]) -> float:
    '''Sum a numeric column over rows satisfying a predicate (CoCoDA, appendix F.2).'''
    return sum_list(select_column(filter_rows(rows, predicate), column))
"""
COMPUTE_RATIO = """
def compute_ratio(part: float, whole: float) -> float:
    '''Part of a whole in percent.'''
    return mul(div(part, whole), 100)
"""
SOLVE_QUADRATIC = """
def solve_quadratic(a: float, b: float, c: float) -> list[float]:
    '''The real roots of a*x**2 + b*x + c (CoCoDA, appendix H.2).'''
    discriminant = sub(pow_int(b, 2), mul(4, mul(a, c)))
    if discriminant < 0:
        return []
    root = sqrt(discriminant)
    signs = [-1, 1] if root > 0 else [1]
    return [div(add(neg(b), mul(sign, root)), mul(2, a)) for sign in signs]
"""

WRITTEN = [
    (QUADRATIC_EXPR, {"a": 1, "b": -3, "c": 2, "x": 2}, 0, 5),
    (QUADRATIC_EXPR, {"a": 2, "b": 0, "c": -1, "x": 3}, 17, 5),
    (QUADRATIC_EXPR, {"a": 0, "b": 1, "c": 0, "x": 5}, 5, 5),
    (
        SUM_WHERE,
        {"rows": SALES, "column": "amount", "predicate": 'row["region"] == "EU"'},
        160,
        3,
    ),
    (COMPUTE_RATIO, {"part": 15, "whole": 60}, 25.0, 2),
    (SOLVE_QUADRATIC, {"a": 1, "b": -5, "c": 6}, [2.0, 3.0], 4),
    (SOLVE_QUADRATIC, {"a": 1, "b": 0, "c": 4}, [], 4),
]


def bound(source):
    """The composite of a text, with every contract checked at each call."""
    return composite_tool(compose(source, LIBRARY.tools), LIBRARY.tools, contracts="always")


@pytest.mark.parametrize(("source", "arguments", "result", "size"), WRITTEN)
def test_composites_of_the_paper_and_others(source, arguments, result, size):
    """The text composes, runs with all conditions checked, and stands for so many primitives."""
    tool = bound(source)
    assert tool(**arguments) == result
    grown = LIBRARY.with_tools([tool])
    assert depth(grown, tool.name) == 1
    assert flat_size(grown, tool.name) == size
    assert tool.definition.signature.effects.is_read_only


def test_a_broken_precondition_names_the_primitive():
    """With contracts checked, the call stops before the primitive and says whose rule it is."""
    with pytest.raises(ContractViolation) as caught:
        bound(COMPUTE_RATIO)(part=1, whole=0)
    assert caught.value.condition == "b != 0"
    assert caught.value.path == ("compute_ratio", "div")


def test_a_refusal_of_a_primitive_surfaces_with_its_path():
    """Without contracts the primitive itself refuses, and its advice is kept."""
    tool = composite_tool(compose(COMPUTE_RATIO, LIBRARY.tools), LIBRARY.tools)
    with pytest.raises(ModelRetry, match="compute_ratio → div: 1 can not be divided by zero"):
        tool(part=1, whole=0)


SAMPLE_TOOLS = {tool.name: tool for tool in sample_library()}


@pytest.mark.parametrize("name", SAMPLE_TOOLS)
def test_all_four_levels_of_the_sample_are_filled(name):
    """Every tool has a signature, words for each parameter, conditions and a worked example."""
    definition = SAMPLE_TOOLS[name].definition
    assert definition.signature.result is not None
    assert definition.signature.effects.to_json()
    assert set(definition.description.parameters) == set(definition.signature.properties)
    assert definition.description.summary
    assert definition.description.tags
    assert (
        definition.specification.pre
        or definition.specification.post
        or definition.specification.text
    )
    assert definition.specification.complexity
    assert all(example.query for example in definition.examples)
    assert definition.examples


@pytest.mark.parametrize("name", SAMPLE_TOOLS)
def test_examples_are_what_the_tool_returns(name):
    """Calling a tool with the arguments of an example gives the result of the example."""
    tool = SAMPLE_TOOLS[name]
    for example in tool.definition.examples:
        assert tool(**example.arguments) == example.result


def test_effects_range_from_pure_to_destructive():
    """The library has tools that read, that write, and one that asks for approval."""
    effects = [tool.definition.signature.effects for tool in SAMPLE_TOOLS.values()]
    assert any(effect.is_read_only for effect in effects)
    assert any(effect.writes and not effect.destructive for effect in effects)
    assert [tool.name for tool in SAMPLE_TOOLS.values() if tool.needs_approval] == [
        "calendar_cancel_event"
    ]
