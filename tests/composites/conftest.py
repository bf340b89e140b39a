"""Tools that composites call in these tests, and composites made from text over them."""

from __future__ import annotations

import asyncio
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from agentkit.composites.composite import Composite
from agentkit.composites.parser import parse
from agentkit.errors import CompositeError, SourceProblem
from agentkit.tools.definition import EffectName, Effects, Signature, ToolDefinition
from agentkit.tools.tool import Tool

Problems = Callable[[str], tuple[SourceProblem, ...]]


def unbound(name: str, *parameters: str, optional: str = "", effects: EffectName | None = None):
    """A catalogue entry: what the parser needs of a tool."""
    schema = {
        "type": "object",
        "properties": {parameter: {} for parameter in (*parameters, *optional.split())},
        "required": list(parameters),
        "additionalProperties": False,
    }
    known = Effects.of((effects,)) if effects else None
    return Tool(definition=ToolDefinition.from_schema(name, "", schema, effects=known))


@pytest.fixture(scope="session")
def tools() -> Mapping[str, Tool]:
    """Two tools that only read, one that writes, three of which nothing is known."""
    made = (
        unbound("add", "a", "b"),
        unbound("look_up", "key", optional="default", effects="reads"),
        unbound("measure", "x", effects="reads"),
        unbound("send", "text", effects="writes"),
        unbound("weather.now", "city", optional="unit"),
        unbound("get user", "user-id", optional="from"),
    )
    return {tool.name: tool for tool in made}


@pytest.fixture(scope="session")
def problems_of(tools: Mapping[str, Tool]) -> Problems:
    """Parses a text and gives what is wrong with it; empty when it was read."""

    def problems(source: str) -> tuple[SourceProblem, ...]:
        try:
            parse(source, tools)
        except CompositeError as error:
            return error.problems
        return ()

    return problems


Compile = Callable[..., Composite]


@pytest.fixture(scope="session")
def compiled() -> Compile:
    """Makes a composite of a text and its children; options go to ``Composite``."""

    def compile_text(source: str, *children: Tool, **options: Any) -> Composite:
        tools = {child.name: child for child in children}
        parsed = parse(textwrap.dedent(source).strip(), tools)
        return Composite(parsed.program, tools, name=parsed.name, **options)

    return compile_text


@pytest.fixture(scope="session")
def body(compiled: Compile) -> Callable[..., Any]:
    """Runs statements over the parameters ``a`` and ``b``, without children."""

    def run(text: str, a: Any = None, b: Any = None, **options: Any) -> Any:
        source = "def f(a, b=None):\n" + textwrap.indent(textwrap.dedent(text).strip(), "    ")
        return compiled(source, **options).run({"a": a, "b": b})

    return run


def schema(*names: str, optional: tuple[str, ...] = ()) -> dict[str, Any]:
    """The parameters of a tool that takes anything."""
    return {
        "type": "object",
        "properties": {name: {} for name in (*names, *optional)},
        "required": list(names),
        "additionalProperties": False,
    }


@dataclass
class World:
    """Async tools that read and write, and a log of what happened in which order.

    Attributes:
        log: ``start x``, ``end x`` for reads, ``write x`` for writes.
        running: Reads that run now.
        most: Most reads that ran at the same time.
        gates: A read of a key that stands here waits for its event.
    """

    log: list[str] = field(default_factory=list)
    running: int = 0
    most: int = 0
    gates: dict[str, asyncio.Event] = field(default_factory=dict)

    async def _read(self, key: Any, *_: Any) -> Any:
        self.log.append(f"start {key}")
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            if key in self.gates:
                await self.gates[key].wait()
            else:
                await asyncio.sleep(0)
        finally:
            self.running -= 1
        self.log.append(f"end {key}")
        if str(key).startswith("bad"):
            message = f"no {key}"
            raise ValueError(message)
        return key

    async def _write(self, key: Any) -> Any:
        self.log.append(f"write {key}")
        await asyncio.sleep(0)
        self.log.append(f"wrote {key}")
        if str(key).startswith("bad"):
            message = f"no {key}"
            raise ValueError(message)
        return key

    def _tool(self, name: str, function: Any, names: tuple[str, ...], effects: Effects) -> Tool:
        async def call(**arguments: Any) -> Any:
            return await function(*arguments.values())

        signature = Signature(parameters=schema(names[0], optional=names[1:]), effects=effects)
        definition = ToolDefinition(name=name, signature=signature)
        return Tool(definition=definition, function=call, is_async=True)

    @property
    def tools(self) -> tuple[Tool, Tool, Tool]:
        """``read``, which changes nothing, ``write``, and ``guess``, of which nothing is known."""
        reads = Effects(reads=True, writes=False)
        return (
            self._tool("read", self._read, ("key", "after"), reads),
            self._tool("write", self._write, ("key",), Effects(writes=True)),
            self._tool("guess", self._write, ("key",), Effects()),
        )


@pytest.fixture
def world() -> World:
    """A fresh world."""
    return World()


@pytest.fixture(scope="session")
def calculator() -> Mapping[str, Tool]:
    """Plain functions as tools that compute."""

    def add(a: float, b: float) -> float:
        return a + b

    def div(a: float, b: float) -> float:
        return a / b

    def echo(value: Any) -> Any:
        return value

    functions = {"add": (add, ("a", "b")), "div": (div, ("a", "b")), "echo": (echo, ("value",))}
    pure = Effects(reads=False, writes=False)
    return {
        name: Tool(
            definition=ToolDefinition(
                name=name, signature=Signature(parameters=schema(*names), effects=pure)
            ),
            function=function,
        )
        for name, (function, names) in functions.items()
    }
