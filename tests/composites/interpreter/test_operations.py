"""What an operation raises, and where the interpreter stops before Python would."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import pytest

from agentkit.composites.composite import Composite
from agentkit.composites.problems import CompositeLimits
from agentkit.errors import CompositeRunError
from agentkit.tools.tool import Tool

Body = Callable[..., Any]


def failure(
    body: Body, text: str, a: Any = None, b: Any = None, **limits: Any
) -> CompositeRunError:
    """What a program raises."""
    with pytest.raises(CompositeRunError) as failed:
        body(text, a, b, limits=CompositeLimits(**limits))
    return failed.value


@pytest.mark.parametrize(
    ("text", "code", "cause"),
    [
        ("return 1 / a", "zero_division", ZeroDivisionError),
        ("return 1.5 / (a * 1.0)", "zero_division", ZeroDivisionError),
        ("return 1 // a", "zero_division", ZeroDivisionError),
        ("return 1.0 % a", "zero_division", ZeroDivisionError),
        ("return a + 'x'", "type_error", TypeError),
        ("return a < 'x'", "type_error", TypeError),
        ("return -'x'", "type_error", TypeError),
        ("return a.upper()", "type_error", AttributeError),
        ("return a['x']", "type_error", TypeError),
        ("for x in a:\n    pass\nreturn 1", "type_error", TypeError),
        ("return {[]: a}", "type_error", TypeError),
        ("return {a: a}[[]]", "type_error", TypeError),
        ("return [x for x in a]", "type_error", TypeError),
        ("return sum(['x'])", "type_error", TypeError),
        ("return sum(['x'], 'y')", "type_error", TypeError),
        ("return max('a', 1)", "type_error", TypeError),
        ("return ','.join([1])", "type_error", TypeError),
        ("return max(a)", "type_error", TypeError),
        ("x, y = [1]\nreturn x", "value_error", ValueError),
        ("x, y = [1, 2, 3]\nreturn x", "value_error", ValueError),
        ("return int('x')", "value_error", ValueError),
        ("return max([])", "value_error", ValueError),
        ("return 'ab'.index('c')", "value_error", ValueError),
        ("return 'ab'.split('')", "value_error", ValueError),
        ("return [1, 2][::a]", "value_error", ValueError),
        ("return [1][1]", "index_error", IndexError),
        ("return 'a'[1]", "index_error", IndexError),
        ("return {}['k']", "key_error", KeyError),
        ("return 10.0 ** 400", "overflow", OverflowError),
        ("return len(range(10 ** 30))", "overflow", OverflowError),
        ("return int(float('inf'))", "overflow", OverflowError),
    ],
)
def test_errors_of_python_have_codes(body: Body, text: str, code: str, cause: type) -> None:
    """The error names its place; Python's own is its cause."""
    error = failure(body, text, 0)
    assert (error.code, error.path, type(error.__cause__)) == (code, ("f",), cause)
    assert error.expression
    assert f"{cause.__name__}: {error.__cause__}" in str(error)
    assert f"`{error.expression}`" in str(error)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("return '%d' % a", "string_format"),
        ("x = [1]\nx += [2]\nreturn x", "in_place_list"),
        ("x = [1]\nx *= 2\nreturn x", "in_place_list"),
        ("return (a - 8) ** 0.5", "complex_number"),
        ("return 2 ** 10 ** 9", "integer_bits"),
        ("return (2 ** 4000) * (2 ** 4000)", "integer_bits"),
        ("return int('9' * 4000)", "integer_bits"),
        ("x = 2 ** 4095\nreturn x + x", "integer_bits"),
        ("return sum([2 ** 4095, 2 ** 4095])", "integer_bits"),
        ("return 'x' * 10 ** 9", "string_chars"),
        ("return 'x' * 60000 + 'x' * 60000", "string_chars"),
        ("x = 'x' * 60000\nreturn f'{x}{x}'", "string_chars"),
        ("return ('x' * 1000).replace('x', 'y' * 1000)", "string_chars"),
        ("return ('x' * 10000).join(list('abcdefghijklmn'))", "string_chars"),
        ("return [0] * 10 ** 9", "collection_items"),
        ("return list(range(10 ** 9))", "collection_items"),
        ("return (a,) * 9999 + (a,) * 9999", "collection_items"),
        ("return ('x ' * 10001).split()", "collection_items"),
        ("return [x for x in range(10001)]", "collection_items"),
        ("return {x: x for x in range(10001)}", "collection_items"),
        ("return sorted(x for x in range(10001))", "collection_items"),
    ],
)
def test_what_python_would_do_and_we_do_not(body: Body, text: str, code: str) -> None:
    """Operations out of proportion are refused before they are carried out."""
    error = failure(body, text, 1)
    assert (error.code, error.__cause__) == (code, None)


def test_values_that_are_no_json_data_are_not_operated_on(body: Body) -> None:
    """The operators of other objects are code that nobody has counted."""
    value = Decimal(1)
    texts = (
        "return a + 1",
        "return a == 1",
        "return str(a)",
        "return a",
        "return [a][0] < 2",
        "return len(a)",
        "return a.upper()",
        "return f'{a}'",
        "return [a] == [1]",
        "return [a]",
    )
    codes = {text: failure(body, text, value).code for text in texts}
    assert set(codes.values()) == {"opaque_value"}


def test_rounding_to_huge_powers_of_ten_is_zero_work(body: Body) -> None:
    """Python computes the power first; the result is known without it."""
    assert body("return round(a, -10 ** 9)", 12345) == 0
    assert [body("return round(a, b)", 15, digits) for digits in (-1, -2, 5)] == [20, 0, 15]
    assert body("return round(a, -b)", 2**4000, 1200) == round(2**4000, -1200)


def test_huge_values_of_children_are_refused_where_they_are_used(
    compiled: Callable[..., Composite], calculator: Mapping[str, Tool]
) -> None:
    """A child may return what a program could not compute; computing with it has the limits."""
    composite = compiled("def f(a):\n    return echo(a) * 3", calculator["echo"])
    with pytest.raises(CompositeRunError, match="integer of") as refused:
        composite.run({"a": 1 << 1_000_000})
    assert refused.value.code == "integer_bits"
