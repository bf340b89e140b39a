"""The stored form of programs, and binding them to their children."""

from __future__ import annotations

import ast
import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from agentkit import Agent, ModelRetry, tool
from agentkit.agent import ToolPolicy
from agentkit.agent.types import Approval
from agentkit.composites.composite import (
    composite_tool,
    program_from_json,
    program_to_json,
)
from agentkit.composites.language import Program, calls, child_of, render
from agentkit.composites.parser import parse
from agentkit.composites.problems import READING_LIMITS
from agentkit.composites.source import compose
from agentkit.errors import CompositeError
from agentkit.messages import ToolCall
from agentkit.testing import ScriptedModel
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool


def record_of(*body: dict[str, Any]) -> dict[str, Any]:
    """A program in the older form, a tree of nodes."""
    parameters = [{"kind": "Parameter", "name": "x", "default": None}]
    return {"format": 1, "kind": "Program", "parameters": parameters, "body": list(body)}


def returning(value: Any) -> dict[str, Any]:
    """The older form of a program of one line."""
    return record_of({"kind": "Return", "value": value})


def refused(record: Any, **options: Any) -> str:
    """The code of the one problem."""
    with pytest.raises(CompositeError) as caught:
        program_from_json(record, **options)
    (problem,) = caught.value.problems
    assert problem.advice
    return problem.code


def stored(program: Program) -> Any:
    """What a store keeps of a program."""
    return json.loads(json.dumps(program_to_json(program)))


@pytest.mark.parametrize(
    "value", ["1", "1.0", "True", "'1'", "0.1", "-0.0", "0", "2 ** 64", str(2**64), f"-{10**400}"]
)
def test_what_is_stored_comes_back(value: str) -> None:
    """Values that compare equal in Python are different programs, and stay what they are."""
    program = parse(f"def f(): return {value}", {}).program
    assert repr(program_from_json(stored(program))) == repr(program)


def test_names_that_python_can_not_write_are_stored_as_they_are(tools: Mapping[str, Tool]) -> None:
    """A tool and a parameter with foreign characters are quoted; no tools are needed to read them."""
    source = "def f(x): return [get_user(user_id=x, from_=1), weather.now(x)]"
    program = parse(source, tools).program
    assert [child_of(call) for call in calls(program)] == ["get user", "weather.now"]
    text = render(program, "f")
    assert "tools['get user'](**{'user-id': x}, **{'from': 1}), weather.now(city=x)" in text
    assert parse(text, tools).program == program
    assert program_from_json(stored(program)) == program


def test_a_stored_call_names_its_arguments() -> None:
    """Without the tools nobody knows what an argument by position means."""
    record = {"format": 2, "source": "def f(x): return add(x, b=1)"}
    assert refused(record) == "malformed_program"


def test_the_older_form_is_read(tools: Mapping[str, Tool]) -> None:
    """A tree of nodes is the program that its text would be."""
    call = {
        "kind": "Call",
        "child": "get user",
        "arguments": [
            {"kind": "Argument", "name": "user-id", "value": {"kind": "Constant", "float": "1.0"}}
        ],
    }
    items = {
        "kind": "Comprehension",
        "makes": "list",
        "targets": ["k"],
        "key": None,
        "source": {"kind": "Name", "name": "x"},
        "conditions": [],
        "element": call,
    }
    big = {
        "kind": "Unary",
        "operator": "-",
        "operand": {"kind": "Constant", "integer": str(10**400)},
    }
    program = program_from_json(record_of(
        {"kind": "Assign", "targets": ["y"], "value": items},
        {"kind": "Return", "value": {"kind": "TupleLiteral", "items": [{"kind": "Name", "name": "y"}, big]}},
    ))  # fmt: skip
    text = "def f(x):\n y = [tools['get user'](**{'user-id': 1.0}) for k in x]\n"
    assert repr(program) == repr(parse(f"{text} return y, -{10**400}", tools).program)


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"format": True},
        {"format": 2},
        {"format": 2, "source": 5},
        {"format": 1},
        {
            "format": 1,
            "kind": "Assign",
            "targets": ["x"],
            "value": {"kind": "Constant", "value": 1},
        },
        returning("x"),
        returning({"kind": "Call"}),
        returning({"kind": "Nothing"}),
        returning({"kind": "Constant", "value": [1]}),
        returning({"kind": "Constant", "float": "many"}),
        returning({"kind": "Binary", "operator": "@", "left": 1, "right": 2}),
    ],
)
def test_what_is_no_program(record: Any) -> None:
    """Data of any form is refused with a reason."""
    assert refused(record) == "malformed_program"


def test_a_newer_form_asks_for_an_upgrade() -> None:
    """What a newer agentkit wrote is not half understood."""
    with pytest.raises(CompositeError, match="Upgrade agentkit-evolve"):
        program_from_json({"format": 3, "source": "def f(): return 1"})


def lines_of(body: str) -> dict[str, Any]:
    """What a store keeps of a function of ``x`` with these lines."""
    return {"format": 2, "source": f"def f(x):\n{body}"}


def test_only_new_programs_are_refused_for_dead_calls(tools: Mapping[str, Tool]) -> None:
    """A stored program that would run does run, also where a new one is refused."""
    record = lines_of("    measure(x=x)\n    return x\n")
    assert refused(record, tools=tools, is_new=True) == "dead_call"
    assert program_from_json(record, tools=tools).text.count("measure") == 1


def test_a_long_program_is_read_under_the_limits_for_reading() -> None:
    """A program of half a mebibyte, written under limits of its author's own, is still there."""
    texts = ", ".join(f"'{letter * 90_000}'" for letter in "abcdef")
    record = lines_of(f"    return [x, {texts}]\n")
    assert refused(record) == "too_large"
    assert len(program_from_json(record, limits=READING_LIMITS).body) == 1


def test_the_rules_of_the_language_hold_for_data() -> None:
    """A stored program is held to what its author was held to."""
    record = {"format": 2, "source": "def g(x): return absent"}
    with pytest.raises(CompositeError) as caught:
        program_from_json(record, name="f")
    (problem,) = caught.value.problems
    assert problem.code == "unknown_name"
    assert caught.value.tool_name == "f"
    assert refused({"format": 2, "source": "def g(x): return f(x=x)"}, name="f") == "recursive_call"
    assert refused(returning({"kind": "Name", "name": "absent"})) == "unknown_name"


@pytest.mark.parametrize("depth", [25, 1_000, 100_000])
def test_deep_data(depth: int) -> None:
    """Depth is refused in either form."""
    value: dict[str, Any] = {"kind": "Constant", "value": 1}
    for _ in range(depth):
        value = {"kind": "Unary", "operator": "-", "operand": value}
    assert refused(returning(value)) == "too_large"
    assert refused({"format": 2, "source": f"def f(): return {'-' * depth}1"}) == "too_large"


def test_long_data() -> None:
    """Nodes and texts have the limits that a text would have."""
    line = {"kind": "Assign", "targets": ["y"], "value": {"kind": "Constant", "value": 1}}
    assert refused(record_of(*[line] * 10_000)) == "too_large"
    assert (
        refused({"format": 2, "source": "def f(): return '" + "a" * 2_000_000 + "'"}) == "too_large"
    )


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
        "def sum_up(a: int, b: int | None=2) -> int:\n"
        '    """Adds.\n'
        "\n"
        '    Says "a\\\\b"."""\n'
        "    return add(a=a, b=b)\n"
    )
    assert ast.get_docstring(ast.parse(text).body[0]) == 'Adds.\n\nSays "a\\b".'


@tool(pre=["b != 0"])
def divide(a: float, b: float) -> float:
    """A quotient."""
    return a / b


@tool
def add(a: float, b: float) -> float:
    """A sum."""
    return a + b


@tool(effects=("reads",))
async def look_up(name: str) -> float:
    """A price."""
    await asyncio.sleep(0)
    return float(len(name))


@tool(effects=("destructive",))
def delete(name: str) -> str:
    """Delete something."""
    return f"deleted {name}"


@tool
def book(day: str) -> str:
    """Book a day."""
    if day == "Sunday":
        raise ModelRetry("we are closed on Sunday")
    return f"booked {day}"


TOOLS: Mapping[str, Tool] = {entry.name: entry for entry in (divide, add, look_up, delete, book)}
MEAN = "def mean(a: float, b: float, n: float = 2.0) -> float:\n    return divide(add(a, b), n)\n"


def stored_text(source: str) -> ToolDefinition:
    """A definition as a store gives it back."""
    return ToolDefinition.from_json(compose(source, TOOLS).to_json())


def call(tool_name: str, **arguments: object) -> ToolCall:
    """A call of a scripted model."""
    return ToolCall(call_id="1", name=tool_name, arguments=arguments)


def test_a_missing_child_is_named() -> None:
    """Without a pinned child there is nothing to run."""
    with pytest.raises(
        CompositeError, match="calls 'divide', which is not in the library"
    ) as caught:
        composite_tool(stored_text(MEAN), {"add": add})
    assert [problem.code for problem in caught.value.problems] == ["missing_child"]
    assert caught.value.tool_name == "mean"


def test_a_changed_child_is_named_with_both_digests() -> None:
    """A child of another digest may do something else; validate again."""
    changed = replace(add, definition=replace(add.definition, examples=()))
    other = changed.with_definition(
        ToolDefinition.from_schema("add", "Another sum.", dict(add.definition.parameters_schema))
    )
    with pytest.raises(CompositeError) as caught:
        composite_tool(stored_text(MEAN), {**TOOLS, "add": other})
    (problem,) = caught.value.problems
    assert problem.code == "changed_child"
    assert add.definition.digest[:12] in problem.message
    assert other.definition.digest[:12] in problem.message
    assert "again" in problem.advice


def test_a_body_that_calls_more_than_its_pins_is_refused() -> None:
    """Pins are checked against the program, not believed."""
    definition = stored_text(MEAN)
    lying = replace(
        definition,
        signature=replace(definition.signature, children=definition.signature.children[:1]),
    )
    with pytest.raises(CompositeError):
        composite_tool(lying, TOOLS)


def test_a_composite_needs_the_approval_that_a_child_needs() -> None:
    """What a person has to allow alone, a person has to allow inside a composite."""
    destructive = composite_tool(stored_text("def f(n: str):\n    return delete(n)\n"), TOOLS)
    assert destructive.needs_approval
    allowed = {**TOOLS, "delete": replace(delete, requires_approval=False)}
    assert not composite_tool(destructive.definition, allowed).needs_approval
    asked = {**TOOLS, "add": replace(add, requires_approval=True)}
    assert composite_tool(stored_text(MEAN), asked).needs_approval


def test_a_retry_asked_for_by_a_child_reaches_the_model() -> None:
    """``ModelRetry`` keeps its meaning through a composite, and says which child speaks."""
    week = composite_tool(stored_text("def book_day(day: str):\n    return book(day)\n"), TOOLS)
    model = ScriptedModel(
        [[call("book_day", day="Sunday")], [call("book_day", day="Monday")], "Booked."]
    )
    results = Agent(model, tools=[week]).run_sync("Book me a day").episode.results
    assert [outcome.status for outcome in results] == ["failed", "ok"]
    assert results[0].failure is not None
    assert results[0].failure.kind == "retry_requested"
    assert "book_day → book: we are closed on Sunday" in results[0].text


@pytest.mark.parametrize("approved", [True, False])
def test_a_person_is_asked_before_a_destructive_composite(*, approved: bool) -> None:
    """Without approval the run is deferred; with it the answer decides."""
    clean = composite_tool(stored_text("def clean(name: str):\n    return delete(name)\n"), TOOLS)
    script = [[call("clean", name="x")], "Done."]
    waiting = Agent(ScriptedModel(script), tools=[clean]).run_sync("Clean up")
    assert waiting.stop_reason == "deferred"
    decided = Agent(
        ScriptedModel(script),
        tools=[clean],
        tool_policy=ToolPolicy(approve=lambda *_: Approval(approved=approved)),
    ).run_sync("Clean up")
    (outcome,) = decided.episode.results
    assert outcome.status == ("ok" if approved else "denied")
