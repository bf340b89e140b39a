"""Contracts of tools, and composites inside composites."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from agentkit.composites.composite import Composite
from agentkit.composites.contracts import Expression, check_post, check_pre
from agentkit.composites.problems import CompositeLimits
from agentkit.errors import CompositeRunError, ContractViolation, UsageError
from agentkit.tools.decorator import tool
from agentkit.tools.definition import Effects, Signature, Specification, ToolDefinition
from agentkit.tools.tool import Tool

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


def sums(post: str) -> ToolDefinition:
    """A tool over a list with one postcondition."""

    @tool(pre=["len(xs) > 0"], post=[post])
    def total(xs: list[float]) -> float:
        """The sum."""
        return sum(xs)

    return total.definition


@pytest.mark.parametrize(
    "condition",
    [
        "all(x >= 0 for x in xs)",
        "sorted(xs) == xs",
        "len({x: x for x in xs}) == len(xs)",
    ],
)
def test_conditions_look_at_large_tables(condition: str) -> None:
    """They have more fuel than a run, and may build larger collections."""
    xs = list(range(20_000))
    assert check_post(sums(condition), {"xs": xs}, sum(xs)) is None


# --- expressions -----------------------------------------------------------------------------------


def test_it_knows_what_it_reads() -> None:
    """Only names that the expression uses have to be given."""
    expression = Expression.parse("a + sum(x for x in b)", names=["b", "c", "a"])
    assert (expression.reads, expression.names) == (("b", "a"), ("b", "c", "a"))
    assert expression.text == "a + sum(x for x in b)"
    assert expression.evaluate({"a": 1, "b": [2, 3], "other": None}) == 6
    with pytest.raises(UsageError, match="reads 'b', but was given 'a'"):
        expression.evaluate({"a": 1})


def test_each_evaluation_has_its_own_fuel() -> None:
    """The limits are those of one evaluation."""
    limits = CompositeLimits(fuel=100)
    expression = Expression.parse("[y for y in range(x)]", names=["x"])
    for _ in range(10):
        assert len(expression.evaluate({"x": 20}, limits=limits)) == 20
    with pytest.raises(CompositeRunError):
        expression.evaluate({"x": 100}, limits=limits)


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


def test_many_levels_run_and_too_many_are_refused(compiled: Compile) -> None:
    """Composites may be nested as deep as the limit allows."""
    level = as_tool(compiled("def level_0(x):\n    return x + 1"))
    for number in range(1, 24):
        level = as_tool(
            compiled(f"def level_{number}(x):\n    return level_{number - 1}(x) + 1", level)
        )
    assert level(x=0) == 24
    top = compiled("def top(x):\n    return level_23(x)", level)
    with pytest.raises(CompositeRunError, match="24 levels") as refused:
        top.run({"x": 0})
    assert (refused.value.code, len(refused.value.path)) == ("nesting", 25)


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
