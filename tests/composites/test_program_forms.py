"""A program as JSON and as text: exact forms, read strictly."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, strategies as st

from agentkit.composites import language as ir
from agentkit.composites.codec import literal_of, program_digest, program_from_json, program_to_json
from agentkit.composites.parser import parse
from agentkit.composites.problems import READING_LIMITS, CompositeLimits
from agentkit.composites.rendering import render
from agentkit.errors import CompositeError, UsageError
from agentkit.tools.tool import Tool


def record_of(body: str) -> dict[str, Any]:
    """The JSON of a program with this body."""
    tree = parse(f"def f(x):\n  {body}\n  return x", {}).program
    return json.loads(json.dumps(program_to_json(tree)))


def refused(record: Any, **options: Any) -> tuple[str, str]:
    """Code and message of the one problem."""
    with pytest.raises(CompositeError) as caught:
        program_from_json(record, **options)
    (problem,) = caught.value.problems
    return problem.code, problem.message


def test_one_and_one_point_nought_and_true_stay_apart() -> None:
    """Values that compare equal in Python are different programs."""
    digests = set()
    for text in ("1", "1.0", "True", "'1'", "0.1", "-0.0", "0", "2 ** 64", str(2**64)):
        program = parse(f"def f(): return {text}", {}).program
        again = program_from_json(json.loads(json.dumps(program_to_json(program))))
        assert program_digest(again) == program_digest(program)
        digests.add(program_digest(program))
    assert len(digests) == 9


@pytest.mark.parametrize(
    ("body", "path", "value", "message"),
    [
        ("y = 1", ["format"], True, "$.format: expected an integer from 1, got a bool"),
        ("y = 1", ["kind"], "Assign", "$: expected an object with `kind` Program"),
        ("y = 1", ["body", 0], "y = 1", "$.body[0]: expected an object"),
        ("y = 1", ["body", 0, "kind"], "Constant", "$.body[0]: expected an object with `kind`"),
        ("y = 1", ["body", 0, "targets"], [], "$.body[0]: there is at least one target"),
        ("y = 1", ["body", 0, "targets", 0], "if", "$.body[0].targets[0]: 'if' is no name"),
        ("y = 1", ["body", 0, "targets", 0], 1, "$.body[0].targets[0]: expected a text, got a int"),
        ("y = 1", ["body", 0, "value", "value"], 1.5, "$.body[0].value: a Constant is"),
        ("y = 1", ["body", 0, "value", "value"], 2**53 + 1, "$.body[0].value: a Constant is"),
        ("y = 1", ["body", 0, "value", "value"], "\ud800", "$.body[0].value: expected a text"),
        ("y = 1", ["body", 0, "value", "value"], -1, "$.body[0].value: write -1 as Unary"),
        ("y = 1.5", ["body", 0, "value", "float"], "nan", "$.body[0].value: a Constant is"),
        ("y = 1.5", ["body", 0, "value", "float"], 1.5, "$.body[0].value: a Constant is"),
        ("y = 1.5", ["body", 0, "value", "float"], "-0.0", "$.body[0].value: write -0.0 as Unary"),
        ("y = x + 1", ["body", 0, "value", "operator"], "@", "$.body[0].value.operator: expected one"),
        ("y = x or 1", ["body", 0, "value", "operands"], [], "$.body[0].value: two or more"),
        ("y = [k for k in x]", ["body", 0, "value", "makes"], "dict", "$.body[0].value: a dict compr"),
        ("y = f'{x}a'", ["body", 0, "value", "parts", 0], {"kind": "Constant", "value": "b"},
         "$.body[0].value: a Format without a value"),
        ("y = f'{x}a'", ["body", 0, "value", "parts", 1, "value"], 1, "$.body[0].value: a Constant in"),
        ("y = x", ["parameters", 0, "default"], {"kind": "Name", "name": "x"},
         "$.parameters[0].default: expected an object with `kind` Constant, got 'Name'"),
    ],
)  # fmt: skip
def test_what_is_no_program(body: str, path: list[Any], value: Any, message: str) -> None:
    """The one change is named with its path in the JSON."""
    record: Any = record_of(body)
    place = record
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    code, text = refused(record)
    assert code == "malformed_program"
    assert text.startswith(message)


def test_a_newer_form_asks_for_an_upgrade() -> None:
    """What a newer agentkit wrote is not half understood."""
    record = record_of("y = 1") | {"format": 2}
    with pytest.raises(CompositeError, match="Upgrade agentkit-evolve"):
        program_from_json(record)


def test_the_rules_of_the_language_hold_for_data() -> None:
    """A program that no text could be is refused."""
    record = record_of("y = 1")
    record["body"][1]["value"]["name"] = "absent"
    with pytest.raises(CompositeError) as caught:
        program_from_json(record, name="f")
    (problem,) = caught.value.problems
    assert problem.code == "unknown_name"
    assert caught.value.tool_name == "f"


def nested(depth: int) -> dict[str, Any]:
    """A program with an expression so deep."""
    value: dict[str, Any] = {"kind": "Constant", "value": 1}
    for _ in range(depth):
        value = {"kind": "Unary", "operator": "-", "operand": value}
    body = [{"kind": "Return", "value": value}]
    return {"format": 1, "kind": "Program", "parameters": [], "body": body}


@pytest.mark.parametrize("depth", [25, 1_000, 100_000])
def test_deep_data(depth: int) -> None:
    """Depth is refused before it is walked, under any limits."""
    assert refused(nested(depth))[0] == "too_large"
    wide = CompositeLimits(nesting=10**6, nodes=10**6)
    if depth > 25:
        assert refused(nested(depth), limits=wide)[0] == "too_large"


def test_large_integers_survive() -> None:
    """An integer beyond all floats is an integer like others; its sign stands before it."""
    program = parse(f"def f(n=-{10**400}): return -{10**400}", {}).program
    assert program_from_json(json.loads(json.dumps(program_to_json(program)))) == program
    record = record_of(f"y = {10**400}")
    record["body"][0]["value"]["integer"] = str(-(10**400))
    assert "as Unary" in refused(record)[1]


def test_long_data() -> None:
    """Nodes and texts have the limits that a text would have."""
    many = record_of("y = 1")
    many["body"] = [many["body"][0]] * 10_000 + [many["body"][1]]
    assert refused(many)[0] == "too_large"
    long = record_of("y = 'a'")
    long["body"][0]["value"]["value"] = "a" * 10_000
    assert refused(long)[0] == "too_large"
    long["body"][0]["targets"][0] = "a" * 10_000
    assert refused(long)[0] == "too_large"


# --- render ----------------------------------------------------------------------------------------


def test_the_text_is_what_a_person_would_write(tools: Mapping[str, Tool]) -> None:
    """Parentheses, quotes and blank space are canonical; elif is one line."""
    source = """
def f( x,y = -1 ):
  'Says something.'
  total=( add(x ,b = ( y ) ) ) # a comment
  if((x > 1)and not(y is None)): pass
  else:
    if x: total += 1
    else:
        for i , j in enumerate( [1,2,] , start = 1 ): total -= (i*(j))
  return {'a':(total,), "it's":f'{x}{{' 'y', 'n': -x**-2, 'm': (-x)**2, 't': (x if y else 1)}
"""
    assert render(parse(source, tools).program, "f") == (
        "def f(x, y=-1):\n"
        "    total = add(a=x, b=y)\n"
        "    if x > 1 and (not y is None):\n"
        "        pass\n"
        "    elif x:\n"
        "        total += 1\n"
        "    else:\n"
        "        for i, j in enumerate([1, 2], start=1):\n"
        "            total -= i * j\n"
        "    return {'a': (total,), \"it's\": f'{x}{{y', 'n': -x ** (-2), 'm': (-x) ** 2, "
        "'t': x if y else 1}\n"
    )


def test_a_function_can_be_shown_with_its_words_and_types(tools: Mapping[str, Tool]) -> None:
    """Annotations, result and docstring are written where Python wants them."""
    parsed = parse("def f(a, b=2): return add(a, b)", tools)
    text = render(
        parsed.program,
        "sum up",
        docstring='Adds.\n\nSays "a\\b".',
        annotations={"a": "int", "b": "int | None"},
        returns="int",
    )
    assert text == (
        "def sum_up(a: int, b: int | None = 2) -> int:\n"
        '    """Adds.\n'
        "\n"
        '    Says "a\\\\b"."""\n'
        "    return add(a=a, b=b)\n"
    )
    assert ast.get_docstring(ast.parse(text).body[0]) == 'Adds.\n\nSays "a\\b".'


def test_names_that_python_can_not_write_are_written_as_the_parser_reads_them(
    tools: Mapping[str, Tool],
) -> None:
    """Spaces become underscores, dots stay, keywords get an underscore behind."""
    source = "def f(x): return [get_user(user_id=x, from_=1), weather.now(x)]"
    program = parse(source, tools).program
    assert [call.child for call in ir.calls(program)] == ["get user", "weather.now"]
    text = render(program, "f")
    assert "get_user(user_id=x, from_=1), weather.now(city=x)" in text
    assert parse(text, tools).program == program


# --- literals --------------------------------------------------------------------------------------

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([10**400, -(10**400)])
    | st.floats(allow_nan=False, allow_infinity=False)
)
VALUES = st.recursive(
    SCALARS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


@given(value=VALUES)
def test_a_literal_is_what_the_parser_reads(value: object) -> None:
    """The expression of a value is the one of its text in Python, sign and kind included."""
    made = ir.Program(parameters=(), body=(ir.Return(value=literal_of(value)),))
    read = parse(f"def f(): return {value!r}", {}, limits=READING_LIMITS).program
    assert program_digest(made) == program_digest(read)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, b"x", 1j, object()])
def test_what_is_no_json_has_no_literal(value: object) -> None:
    """It is refused, not written as something else."""
    with pytest.raises(UsageError, match="only JSON values"):
        literal_of([value])
