"""The stored form of programs, binding them to their children, and contracts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from agentkit import ModelRetry
from agentkit.composites.composite import (
    Composite,
    composite_tool,
    program_from_json,
    program_to_json,
)
from agentkit.composites.contracts import RuleChecker, check_post, check_pre
from agentkit.composites.language import Program, calls, child_of, render
from agentkit.composites.parser import parse
from agentkit.composites.problems import READING_LIMITS, CompositeLimits
from agentkit.composites.source import compose
from agentkit.errors import CompositeError, CompositeRunError, ContractViolation
from agentkit.messages import ToolCall
from agentkit.tools.decorator import tool
from agentkit.tools.definition import Effects, Signature, Specification, ToolDefinition
from agentkit.tools.rules import Condition
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


def test_each_node_of_the_older_form_is_read() -> None:
    """Statements and expressions keep their parts in their places."""
    x, one = {"kind": "Name", "name": "x"}, {"kind": "Constant", "value": 1}
    cut = {"kind": "Slice", "value": x, "start": one, "stop": None, "step": one}
    chosen = {"kind": "Conditional", "test": x, "then": one, "otherwise": cut}
    many = {"kind": "Builtin", "function": "max", "arguments": [x, chosen], "keywords": []}
    found = {"kind": "Method", "receiver": x, "method": "count", "arguments": [one]}
    sides = {
        "kind": "Binary",
        "operator": "-",
        "left": found,
        "right": {**cut, "kind": "Index", "index": one},
    }
    body = [
        {"kind": "Update", "target": "x", "operator": "+", "value": many},
        {"kind": "For", "targets": ["i", "j"], "source": x, "body": [{"kind": "Break"}]},
        {"kind": "If", "test": x, "then": [{"kind": "Return", "value": sides}], "otherwise": []},
        {"kind": "Return", "value": {"kind": "ListLiteral", "items": [x, one]}},
    ]
    text = """def composite(x):
    x += max(x, 1 if x else x[1::1])
    for i, j in x:
        break
    if x:
        return x.count(1) - x[1]
    return [x, 1]
"""
    assert program_from_json(record_of(*body)).text == text


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


Compile = Callable[..., Composite]


@pytest.fixture
def root() -> Tool:
    """A square root with conditions, one of which its result breaks for 16."""

    @tool(
        pre=["x >= 0", "digits < 10"],
        post=["is_close(result * result, x)", "result != 4", "digits < 10"],
    )
    def root(x: float, digits: int = 5) -> float:
        """A square root."""
        return x**0.5

    return root


def test_a_violation_explains_itself(root: Tool) -> None:
    """Tool, condition, the values that it speaks of, and a sentence with them."""
    violation = check_pre(root.definition, {"x": -1, "digits": 2})
    assert isinstance(violation, ContractViolation)
    assert (violation.code, violation.tool_name) == ("precondition", "root")
    assert (violation.condition, violation.values) == ("x >= 0", {"x": -1})
    assert str(violation) == "root: the precondition `x >= 0` does not hold for x = -1"
    after = check_post(root.definition, {"x": 4.0}, 3.0)
    assert after is not None
    assert (after.code, after.values) == ("postcondition", {"x": 4.0, "result": 3.0})


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ("x >=", "cannot be read"),
        ("open(x)", "cannot be read"),
        ("1 / x", "cannot be evaluated"),
        ("[x] * 999999 == 1", "cannot be evaluated"),
        ("missing > 0", "cannot be evaluated"),
        ("x", "does not hold for x = 0"),
    ],
)
def test_what_can_not_be_checked_is_violated(condition: str, reason: str) -> None:
    """An unreadable condition is a failure of its own, with the reason."""
    schema = {"type": "object", "properties": {"x": {}, "missing": {}}}
    definition = ToolDefinition.from_schema("f", "", schema)
    for kind in ("pre", "post"):
        checked = ToolDefinition(
            name="f",
            signature=definition.signature,
            specification=Specification(**{kind: (condition,)}),
        )
        found = (
            check_pre(checked, {"x": 0}) if kind == "pre" else check_post(checked, {"x": 0}, None)
        )
        assert found is not None
        assert (found.code, found.condition) == (f"{kind}condition", condition)
        assert reason in str(found)


@pytest.mark.parametrize("count", [4, 100])
def test_many_conditions_share_their_fuel(count: int) -> None:
    """Each of a few may do much work, and all of many together no more; a rule then says nothing."""
    low, high = (("sum(range(80000)) " + sign,) * count for sign in ("> x", "< x"))
    rules = tuple(Condition(expression=one, words="w") for one in high)
    definition = replace(
        ToolDefinition.from_schema("f", "", {"type": "object", "properties": {"x": {}}}),
        specification=Specification(pre=low, post=low, rules=rules),
    )
    call = {"x": 0}
    for found in (check_pre(definition, call), check_post(definition, call, None)):
        assert (found is None) == (count == 4)
    assert (RuleChecker(definition).refusal(call) is not None) == (count == 4)
    simple = replace(definition, specification=Specification(pre=("x == 0",) * count))
    assert check_pre(simple, call) is None


def test_the_mode_says_when(compiled: Compile, root: Tool) -> None:
    """Off means never, always means every run."""
    text = "def f(x):\n    return root(x) + 1"
    assert compiled(text, root, contracts="off").run({"x": 16.0}) == 5.0
    composite = compiled(text, root, contracts="always")
    assert composite.run({"x": 4.0}) == 3.0
    with pytest.raises(ContractViolation) as violated:
        composite.run({"x": 16.0})
    assert violated.value.path == ("f", "root")
    assert "f → root: the postcondition `result != 4`" in str(violated.value)


def own_conditions(text: str, *conditions: str) -> ToolDefinition:
    """The definition of a composite over ``x``, with conditions."""
    schema = {"type": "object", "properties": {"x": {"type": "number"}}}
    plain = ToolDefinition.from_schema("f", "", schema)
    return ToolDefinition(
        name="f", signature=plain.signature, specification=Specification(**{text: conditions})
    )


@pytest.mark.parametrize("kind", ["pre", "post"])
def test_the_composite_keeps_its_own_conditions(compiled: Compile, root: Tool, kind: str) -> None:
    """They are checked around the whole program."""
    definition = own_conditions(kind, "x < 100")
    composite = compiled(
        "def f(x):\n    return root(x)", root, contracts="always", definition=definition
    )
    assert composite.run({"x": 9.0}) == 3.0
    with pytest.raises(ContractViolation) as violated:
        composite.run({"x": 400.0})
    assert (violated.value.path, violated.value.code) == (("f",), f"{kind}condition")


def test_checking_reaches_into_nested_composites(compiled: Compile, root: Tool) -> None:
    """A composite that is called by a checked one is checked inside as well, once."""
    inner = compiled("def inner(x):\n    return root(x)", root)
    definition = ToolDefinition(
        name="inner",
        signature=own_conditions("pre").signature,
        specification=Specification(pre=("x != 25",)),
    )
    outer = compiled(
        "def outer(x):\n    return inner(x)",
        Tool(definition=definition, function=inner),
        contracts="always",
    )
    assert outer.run({"x": 9.0}) == 3.0
    paths = []
    for x in (25.0, 16.0):
        with pytest.raises(ContractViolation) as violated:
            outer.run({"x": x})
        paths.append(violated.value.path)
    assert paths == [("outer", "inner"), ("outer", "inner", "root")]


def test_a_learned_condition_reads_defaults() -> None:
    """A parameter that is left out has the default of the schema, for learned rules as well."""
    rule = Condition(expression="count > least", words="`count` is above `least`")
    schema = {"properties": {"count": {"type": "integer", "default": 3}, "least": {}}}
    plain = ToolDefinition.from_schema("f", "", schema)
    checker = RuleChecker(replace(plain, specification=Specification(rules=(rule,))))
    assert checker.refusal({"least": 2}) is None
    refused = checker.refusal({"least": 5})
    assert refused is not None
    assert refused.rule == "`count` is above `least`, got count = 3 and least = 5"


# --- expressions -----------------------------------------------------------------------------------


def as_tool(composite: Composite) -> Tool:
    """A composite as a tool that is known to change nothing."""
    names = [parameter.name for parameter in composite.program.parameters]
    schema = {"type": "object", "properties": {name: {} for name in names}, "required": names}
    signature = Signature(parameters=schema, effects=Effects(reads=False, writes=False))
    return Tool(
        definition=ToolDefinition(name=composite.name, signature=signature),
        function=composite,
        is_async=composite.needs_event_loop,
    )


@pytest.fixture
def ratio(compiled: Compile, calculator: Mapping[str, Tool]) -> Tool:
    """A composite over ``div``."""
    return as_tool(compiled("def ratio(a, b):\n    return div(a, b)", calculator["div"]))


def test_the_path_goes_all_the_way_down(compiled: Compile, ratio: Tool) -> None:
    """A failure is told once, with every tool that led to it."""
    percent = as_tool(compiled("def percent(a, b):\n    return 100 * ratio(a, b)", ratio))
    table = compiled("def table(rows):\n    return [percent(x, y) for x, y in rows]", percent)
    assert table.run({"rows": [[1, 2], [3, 4]]}) == [50, 75]
    with pytest.raises(CompositeRunError) as failed:
        table.run({"rows": [[1, 0]]})
    error = failed.value
    assert error.path == ("table", "percent", "ratio", "div")
    assert str(error).startswith("table → percent → ratio → div: ZeroDivisionError: ")
    assert (error.code, type(error.__cause__)) == ("child_failed", ZeroDivisionError)


@pytest.mark.parametrize(
    ("limits", "code"),
    [
        (CompositeLimits(fuel=150), "fuel"),
        (CompositeLimits(child_calls=15), "child_calls"),
        (CompositeLimits(nesting=1), "nesting"),
    ],
)
def test_one_meter_for_all(
    compiled: Compile, ratio: Tool, limits: CompositeLimits, code: str
) -> None:
    """What the inner runs use is missing in the outer one, whatever they allow themselves."""
    text = "def f(n):\n    return [ratio(x, 2) for x in range(n)]"
    assert compiled(text, ratio).run({"n": 20})[-1] == 9.5
    with pytest.raises(CompositeRunError) as stopped:
        compiled(text, ratio, limits=limits).run({"n": 20})
    assert (stopped.value.code, stopped.value.path[0]) == (code, "f")


async def test_nesting_and_waiting(compiled: Compile, world: Any) -> None:
    """Inner composites of a waiting one share its meter, path and concurrency."""
    read = world.tools[0]
    inner = as_tool(compiled("def inner(key):\n    return read(key) + '!'", read))
    assert inner.is_async
    outer = compiled(
        "def outer(keys):\n    return [inner(keys[0]), inner(keys[1]), inner(keys[2])]",
        inner,
        limits=CompositeLimits(concurrency=2),
    )
    keys = list("abc")
    assert await outer.run_async({"keys": keys}) == [f"{key}!" for key in keys]
    assert world.most == 2
    with pytest.raises(CompositeRunError) as failed:
        await outer.run_async({"keys": ["a", "bad", "c"]})
    assert failed.value.path == ("outer", "inner", "read")
    few = compiled(
        "def outer(keys):\n    return [inner(key) for key in keys]",
        inner,
        limits=CompositeLimits(child_calls=5),
    )
    with pytest.raises(CompositeRunError) as stopped:
        await few.run_async({"keys": list("abcdefgh")})
    assert stopped.value.code == "child_calls"
