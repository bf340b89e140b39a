"""Waiting for children changes neither results nor effects."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import given, settings, strategies as st

from agentkit.composites.composite import Composite
from agentkit.errors import CompositeRunError
from agentkit.tools.definition import Effects, Signature, ToolDefinition
from agentkit.tools.tool import Tool

Compile = Callable[..., Composite]
Log = list[tuple[str, Any]]

EFFECTS = {
    "look": Effects(reads=False, writes=False),
    "save": Effects(writes=True),
    "call": Effects(),
}
"""A child that changes nothing, one that does, one of which nothing is known."""

SIMPLE = (
    "{x} = look({y})",
    "{x} = look({y}) + look({z})",
    "{x} = save({y})",
    "{x} = call({y}) + look({z})",
    "{x} = {y} + {z}",
    "{x} = {y} // ({z} - 2)",
    "{x} += look({y})",
    "{x} = sum(look(k + {y}) for k in items)",
    "{x} = len([save(k) for k in items if look(k) > {y}])",
    "{x} = look({y}) and save({z})",
    "{x} = save({y}) if look({z}) > 1 else look({y})",
    "{x} = max(look({y}), call({z}), 1)",
    "save(look({y}))",
    "if look({x}) > 3:\n    return [a, b, c]",
)
COMPOUND = (
    "if look({x}) > {y}:\n{one}\nelse:\n{two}",
    "for i in items:\n{one}\n    if {x} > look({y}):\n        break",
    "for i in items:\n    {y} = i\n{one}",
)
NAMES = st.sampled_from("abc")


def statements(texts: Sequence[str], **parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Texts with their places filled in."""
    return st.builds(
        lambda text, x, y, z, **rest: text.format(x=x, y=y, z=z, **rest),
        st.sampled_from(texts), NAMES, NAMES, NAMES, **parts,
    )  # fmt: skip


def blocks(inner: st.SearchStrategy[str], indent: str) -> st.SearchStrategy[str]:
    """A few statements, indented."""
    lines = st.lists(inner, min_size=1, max_size=4).map("\n".join)
    return lines.map(lambda text: "\n".join(indent + line for line in text.split("\n")))


SMALL = statements(SIMPLE)
LARGE = statements(COMPOUND, one=blocks(SMALL, "    "), two=blocks(SMALL, "    "))
PROGRAMS = blocks(SMALL | LARGE, "    ").map(
    lambda text: f"def f(items, a=1, b=2, c=3):\n{text}\n    return [a, b, c]"
)


def children(log: Log, *, slow: bool) -> list[Tool]:
    """The children, each call logged; they fail on numbers divisible by 7."""

    def work(name: str, x: Any) -> Any:
        if x % 7 == 0 and x:
            message = f"{name} fails on {x}"
            raise ValueError(message)
        return (x * 5 + len(name)) % 11

    def tool(name: str) -> Tool:
        def call(x: Any) -> Any:
            log.append((name, x))
            return work(name, x)

        async def call_slowly(x: Any) -> Any:
            log.append((name, x))
            for _ in range(x % 4):
                await asyncio.sleep(0)
            return work(name, x)

        schema = {"type": "object", "properties": {"x": {}}, "required": ["x"]}
        signature = Signature(parameters=schema, effects=EFFECTS[name])
        return Tool(
            definition=ToolDefinition(name=name, signature=signature),
            function=call_slowly if slow else call,
            is_async=slow,
        )

    return [tool(name) for name in EFFECTS]


def outcome(run: Callable[[], Any]) -> tuple[Any, ...]:
    """The result, or what the error says."""
    try:
        return ("value", run())
    except CompositeRunError as error:
        return (error.code, error.path, error.expression)


def effects(log: Log) -> Log:
    """The calls that may have changed something, in order."""
    return [call for call in log if call[0] != "look"]


@settings(max_examples=150)
@given(text=PROGRAMS, items=st.lists(st.integers(0, 9), max_size=3))
def test_results_errors_and_effects_are_the_same(
    parse_or_skip: Callable[..., Any], text: str, items: list[int]
) -> None:
    """The value or the first error, the order of effects, and, in success, every call."""
    plain: Log = []
    waited: Log = []
    at_once = parse_or_skip(text, *children(plain, slow=False))
    waiting = parse_or_skip(text, *children(waited, slow=True))
    expected = outcome(lambda: at_once.run({"items": items}))
    actual = outcome(lambda: asyncio.run(waiting.run_async({"items": items})))
    assert actual == expected
    assert effects(waited) == effects(plain)
    if expected[0] == "value":
        assert sorted(waited) == sorted(plain)
    else:  # what only looks may have started early, but not the other way round
        assert all(waited.count(call) >= plain.count(call) for call in plain)
