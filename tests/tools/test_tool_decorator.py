"""``@tool`` makes tools of functions and keeps them callable."""

from __future__ import annotations

import functools

import pytest

from agentkit.errors import DefinitionError, UsageError
from agentkit.tools import Effects, Example, Specification, Tool
from agentkit.tools.decorator import tool


def add(a: int, b: int = 1) -> int:
    """Add two numbers.

    Args:
        a: The first.
        b: The second.
    """
    return a + b


class Counter:
    """Something with state."""

    def __init__(self, start: int) -> None:
        self.start = start

    def count(self, steps: int) -> int:
        """Count on."""
        return self.start + steps

    async def count_slowly(self, steps: int) -> int:
        """Count on, later."""
        return self.start + steps


class Greeter:
    """Greets people."""

    def __call__(self, name: str) -> str:
        return f"Hello {name}"


def test_bare_decorator() -> None:
    """``@tool`` without parentheses gives a tool that is called like the function."""

    @tool
    def double(x: int) -> int:
        """Twice a number."""
        return 2 * x

    assert isinstance(double, Tool)
    assert double(4) == double(x=4) == 8
    assert double.name == "double"
    assert double.definition.description.summary == "Twice a number."
    assert double.definition.signature.result == {"type": "integer"}


def test_every_option_reaches_the_tool() -> None:
    """What the author gives wins over what the code says."""
    made = tool(
        name="plus",
        description="Sum of two.",
        effects=("reads",),
        tags=("math",),
        usage_rules=("Use it for sums.",),
        pre=("a >= 0",),
        post=("result >= a",),
        complexity="O(1)",
        examples=[{"arguments": {"a": 1, "b": 2}, "result": 3, "query": "1 plus 2"}],
        timeout_seconds=2.5,
        max_retries=0,
        requires_approval=True,
    )(add)
    definition = made.definition
    assert definition.name == "plus"
    assert definition.text == "Sum of two.\nUse it for sums."
    assert definition.signature.effects == Effects(reads=True, writes=False)
    assert definition.description.tags == ("math",)
    assert definition.specification == Specification(
        pre=("a >= 0",), post=("result >= a",), complexity="O(1)"
    )
    assert definition.examples == (Example(arguments={"a": 1, "b": 2}, result=3, query="1 plus 2"),)
    assert (made.timeout_seconds, made.max_retries, made.needs_approval) == (2.5, 0, True)
    assert made(1, 2) == 3


def test_plain_call_and_effects_record() -> None:
    """``tool(function)`` works as a call, with or without options."""
    assert tool(add)(2) == 3
    made = tool(add, effects=Effects(destructive=True))
    assert made.needs_approval
    assert made.definition.signature.effects == Effects(destructive=True)


async def test_async_function() -> None:
    """An async function stays awaitable and is marked as such."""

    @tool
    async def fetch(url: str) -> str:
        """Fetch a page."""
        return url

    assert fetch.is_async
    assert await fetch("x") == "x"
    assert not tool(add).is_async


async def test_bound_methods() -> None:
    """A method bound to its instance does not show ``self`` to the model."""
    counter = Counter(10)
    count, slowly = tool(counter.count), tool(counter.count_slowly)
    assert list(count.definition.signature.properties) == ["steps"]
    assert count(5) == 15
    assert slowly.is_async
    assert await slowly(5) == 15


async def test_partials_hide_what_they_bind() -> None:
    """Values bound by ``functools.partial`` are neither shown to the model nor asked of it."""

    def search(connection: object, query: str, limit: int = 5, *, user: str) -> str:
        """Search."""
        return f"{connection}:{query}:{limit}:{user}"

    bound = tool(functools.partial(search, "db", user="ada"))
    assert bound.name == "search"
    assert list(bound.definition.signature.properties) == ["query", "limit"]
    assert bound(query="x") == "db:x:5:ada"
    slow = tool(functools.partial(Counter(1).count_slowly, steps=2))
    assert slow.is_async
    assert await slow() == 3


def test_callable_object() -> None:
    """An object with ``__call__`` is named after its class."""
    greet = tool(Greeter())
    assert (greet.name, greet.definition.text) == ("Greeter", "Greets people.")
    assert greet("Ada") == "Hello Ada"


def test_wrapped_function_keeps_its_annotations() -> None:
    """A decorator that uses ``functools.wraps`` does not hide the signature."""

    @functools.wraps(add)
    def traced(*args, **kwargs):
        return add(*args, **kwargs)

    assert tool(traced).definition.signature == tool(add).definition.signature
    assert tool(traced)(1, 1) == 2


def test_deferred_tool_has_no_body() -> None:
    """A deferred tool has a definition, but nothing runs in this process."""

    @tool(deferred=True)
    def ask_manager(question: str) -> str:
        """Ask the manager."""
        raise AssertionError

    assert not ask_manager.is_bound
    assert ask_manager.definition.signature.required == ("question",)
    with pytest.raises(TypeError, match="'ask_manager' has no function"):
        ask_manager("May I?")


def test_lambda_needs_a_name() -> None:
    """A lambda is a tool once it has a name."""
    with pytest.raises(DefinitionError, match="name="):
        tool(lambda x: x)
    assert tool(lambda x: x, name="same").definition.signature.properties == {"x": {}}


def test_tool_of_a_tool_is_refused() -> None:
    """Decorating twice is a mistake and is said to be one."""
    with pytest.raises(UsageError, match="is a tool already"):
        tool(tool(add))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tags": "math"}, r"tags=\('math',\)"),
        ({"effects": "reads"}, r"effects=\('reads',\)"),
        ({"timeout_seconds": 0}, "timeout_seconds must be positive"),
        ({"max_retries": -1}, "max_retries must be 0 or more"),
    ],
)
def test_misused_options(options, message) -> None:
    """An option of the wrong kind is refused with what to write instead."""
    with pytest.raises(UsageError, match=message):
        tool(add, **options)


def test_unknown_effect_is_refused() -> None:
    """A misspelt effect is refused with the effects there are."""
    with pytest.raises(DefinitionError, match="idempotent"):
        tool(add, effects=("read",))


@pytest.mark.parametrize(
    "example",
    [
        {"arguments": {"a": "one"}},
        {"arguments": {}},
        {"arguments": {"a": float("nan")}},
        {"args": {}},
    ],
)
def test_example_that_breaks_the_schema_is_refused(example) -> None:
    """A worked example has to be a valid call of its own tool."""
    with pytest.raises(DefinitionError, match="example"):
        tool(add, examples=[example])
