"""What an operation raises, and where the interpreter stops before Python would."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import pytest

from agentkit.composites import language as ir
from agentkit.composites.composite import Composite
from agentkit.composites.problems import CompositeLimits
from agentkit.errors import CompositeError, CompositeRunError
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


def test_the_innermost_expression_is_named(body: Body) -> None:
    """Of a large expression, the message shows the part that failed."""
    error = failure(body, "return [x + sum([1, 2 / (x - 2)]) for x in a]", [1, 2])
    assert error.expression == "2 / (x - 2)"
    assert str(error) == "f: ZeroDivisionError: division by zero, at `2 / (x - 2)`"


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


def test_integers_at_the_limit_are_computed(body: Body) -> None:
    """The limit counts bits of the result, and is exact."""
    assert body("return 2 ** 4095 - 1 + 2 ** 4095") == 2**4096 - 1
    assert failure(body, "return 2 ** 4095 + 2 ** 4095").code == "integer_bits"
    assert failure(body, "return a * a", 200, integer_bits=8).code == "integer_bits"
    assert body("return a * b", 15, 17, limits=CompositeLimits(integer_bits=8)) == 255
    assert body("return a ** -1 + (-1) ** b + a ** 0", 2, 10**30) == 2.5


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


def test_stripping_many_characters_equals_python(body: Body) -> None:
    """Long sets of characters to strip are looked up once each."""
    characters = "".join(map(chr, range(33, 500)))
    assert body("return a.strip(b)", f"  {characters} x {characters}", characters + " ") == ""
    assert body("return a.lstrip(b)", "aaab" + "c" * 80, "ab" * 80) == "c" * 80


def test_iterators_that_escape_stay_harmless() -> None:
    """Data that skipped the checks may store an iterator; nothing can be done with it."""
    stored = ir.Builtin(function="range", arguments=(ir.Constant(value=10**12),))
    doubled = ir.Binary(operator="+", left=stored, right=stored)
    for value in (stored, doubled):
        program = ir.Program(parameters=(), body=(ir.Return(value=value),))
        with pytest.raises(CompositeRunError) as refused:
            Composite(program, {}, name="f").run({})
        assert refused.value.code == "opaque_value"


def test_a_long_text_is_not_unpacked_to_be_refused(body: Body) -> None:
    """One item more than there are targets is enough to say so."""
    text = "x" * 1_000_000
    tracemalloc.start()
    error = failure(body, "x, y = a\nreturn x", a=text)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (error.code, str(error.__cause__)) == (
        "value_error",
        "too many values to unpack (expected 2)",
    )
    assert peak < 1_000_000


def test_a_function_that_does_not_exist_is_refused() -> None:
    """Also in a program that was made by hand and never checked."""
    value = ir.Builtin(function="eval", arguments=(ir.Constant(value="1"),))
    program = ir.Program(parameters=(), body=(ir.Return(value=value),))
    with pytest.raises(CompositeError, match="no function `eval`") as refused:
        Composite(program, {}, name="f").run({})
    assert [problem.code for problem in refused.value.problems] == ["unknown_name"]
