"""The children that random programs call: tools that log their calls and never surprise.

Some change nothing, some change the state that all of them share, one reads that state, and one
fails on some arguments; so order, number and values of calls all show.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

from agentkit.composites.composite import Composite
from agentkit.composites.parser import parse
from agentkit.testing.random_programs.kinds import Kind
from agentkit.tools.definition import Effects, Signature, ToolDefinition
from agentkit.tools.tool import Tool

RATIO = """
def ratio(a, b=2):
    note("ratio", value=a)
    return add(a, b=1) / b
"""
"""A child that is a composite itself; only its own children are logged."""

_ALWAYS_PLAIN = {"add", "peek", "numbers"}


class ChildError(Exception):
    """What a child raises, so that a reader of the outcome can tell it from the program's own."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ChildSpec:
    """What the generator needs to know of a child.

    Attributes:
        spelling: How a program calls it.
        name: Its name in the library.
        parameters: Kind by name, in declared order.
        required: How many of the parameters must be given.
        result: The kind of its result; ``any`` when it is that of an argument.
        writes: Whether it changes the shared state.
    """

    spelling: str
    name: str
    parameters: Mapping[str, Kind]
    required: int
    result: Kind
    writes: bool = False


CHILDREN: tuple[ChildSpec, ...] = (
    ChildSpec(
        spelling="add", name="add", parameters={"a": "int", "b": "int"}, required=2, result="int"
    ),
    ChildSpec(
        spelling="unit_price",
        name="unit-price",
        parameters={"row": "record", "quantity": "int"},
        required=1,
        result="float",
    ),
    ChildSpec(
        spelling="label",
        name="label",
        parameters={"value": "any", "prefix": "str"},
        required=1,
        result="str",
    ),
    ChildSpec(
        spelling="split_words",
        name="split_words",
        parameters={"text": "str"},
        required=1,
        result="texts",
    ),
    ChildSpec(
        spelling="is_even", name="is_even", parameters={"n": "int"}, required=1, result="bool"
    ),
    ChildSpec(
        spelling="store.rows",
        name="store.rows",
        parameters={"count": "int"},
        required=0,
        result="rows",
    ),
    ChildSpec(
        spelling="numbers", name="numbers", parameters={"stop": "int"}, required=1, result="ints"
    ),
    ChildSpec(
        spelling="summary",
        name="summary",
        parameters={"values": "ints", "key": "str", "extra": "any"},
        required=1,
        result="table",
    ),
    ChildSpec(spelling="echo", name="echo", parameters={"value": "any"}, required=1, result="any"),
    ChildSpec(
        spelling="ratio",
        name="ratio",
        parameters={"a": "int", "b": "int"},
        required=1,
        result="float",
        writes=True,
    ),
    ChildSpec(spelling="peek", name="peek", parameters={}, required=0, result="int"),
    ChildSpec(
        spelling="next_number",
        name="next_number",
        parameters={},
        required=0,
        result="int",
        writes=True,
    ),
    ChildSpec(
        spelling="note",
        name="note",
        parameters={"topic": "str", "value": "any"},
        required=1,
        result="none",
        writes=True,
    ),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class LoggedCall:
    """One call of a child: its library name, and the arguments that were given, by name."""

    name: str
    arguments: Mapping[str, Any]


class ChildrenInUse:
    """One set of the children, with a state and a log of its own.

    Args:
        asynchronous: Whether most of them are async and the one that reads the state says so; then
            only an engine that waits can run them.

    Attributes:
        log: The calls since the last ``reset``, in order.
        tools: By the name that programs call them by, for the parser.

    Example:
        >>> children = ChildrenInUse()
        >>> children.tools["add"](1, b=2), children.log
        (3, [LoggedCall(name='add', arguments={'a': 1, 'b': 2})])
    """

    def __init__(self, *, asynchronous: bool = False) -> None:
        self.log: list[LoggedCall] = []
        self._count = 0
        bodies = self._bodies()
        self._functions = {spec.spelling: self._logged(spec, bodies) for spec in CHILDREN}
        tools = {spec.spelling: self._tool(spec, asynchronous=asynchronous) for spec in CHILDREN}
        self.tools: Mapping[str, Tool] = tools | {"ratio": _composite(tools)}

    @property
    def by_name(self) -> Mapping[str, Tool]:
        """The tools by their names in the library."""
        return {tool.name: tool for tool in self.tools.values()}

    @property
    def namespace(self) -> Mapping[str, Any]:
        """The plain functions as a Python module would name them; dotted ones in an object."""
        plain: dict[str, Any] = {
            key: value for key, value in self._functions.items() if "." not in key
        }
        for key, value in self._functions.items():
            if "." in key:
                holder, member = key.split(".")
                plain[holder] = SimpleNamespace(**{member: value})
        return plain

    def reset(self) -> None:
        """Forget the calls and the state."""
        self.log.clear()
        self._count = 0

    def _bodies(self) -> Mapping[str, Callable[..., Any]]:
        def peek() -> int:
            return self._count

        def next_number() -> int:
            self._count += 1
            return self._count

        def note(topic: str, value: Any = None) -> None:
            self._count += len(topic) if value is None else 1

        def ratio(a: Any, b: Any = 2) -> Any:
            self._functions["note"]("ratio", value=a)
            return self._functions["add"](a, b=1) / b

        return {**_PURE, "peek": peek, "next_number": next_number, "note": note, "ratio": ratio}

    def _logged(
        self, spec: ChildSpec, bodies: Mapping[str, Callable[..., Any]]
    ) -> Callable[..., Any]:
        body, names = bodies[spec.name], tuple(spec.parameters)

        def call(*args: Any, **kwargs: Any) -> Any:
            given = dict(zip(names, args, strict=False)) | kwargs
            if spec.name == "ratio":
                return body(**given)
            self.log.append(LoggedCall(name=spec.name, arguments=given))
            try:
                return body(**given)
            except Exception as error:
                raise ChildError(f"{spec.name}: {error!r}") from error

        return call

    def _tool(self, spec: ChildSpec, *, asynchronous: bool) -> Tool:
        plain = self._functions[spec.spelling]

        async def call_async(**kwargs: Any) -> Any:
            for _ in range(len(spec.name) % 4):  # some are slower than others
                await asyncio.sleep(0)
            return plain(**kwargs)

        parameters = {
            "type": "object",
            "properties": {name: {} for name in spec.parameters},
            "required": list(spec.parameters)[: spec.required],
            "additionalProperties": False,
        }
        reads = spec.name == "peek" and asynchronous  # a plain call would have to wait for it
        awaited = asynchronous and spec.name not in _ALWAYS_PLAIN
        effects = Effects(reads=reads, writes=spec.writes)
        return Tool(
            definition=ToolDefinition(
                name=spec.name, signature=Signature(parameters=parameters, effects=effects)
            ),
            function=call_async if awaited else plain,
            is_async=awaited,
        )


def _composite(tools: Mapping[str, Tool]) -> Tool:
    """``ratio``, over the tools that it calls."""
    program = parse(RATIO, tools).program
    composite = Composite(program, {name: tools[name] for name in ("note", "add")}, name="ratio")
    return replace(tools["ratio"], function=composite, is_async=composite.needs_event_loop)


def _add(a: Any, b: Any) -> Any:
    return a + b


def _unit_price(row: Any, quantity: Any = 1) -> Any:
    return row["amount"] / quantity


def _label(value: Any, prefix: str = "v") -> str:
    return f"{prefix}:{value!r}"[:40]


def _split_words(text: Any) -> Any:
    return text.split()


def _is_even(n: Any) -> bool:
    return bool(n % 2 == 0)


def _rows(count: int = 2) -> Any:
    return [
        {"name": f"row {i}", "amount": i * 1.5, "tags": ["a"] * (i % 3)} for i in range(count % 5)
    ]


def _numbers(stop: Any) -> Any:
    return [*range(stop % 7)]


def _summary(values: Any, key: str = "a", extra: Any = None) -> Any:
    return {key: len(values), "b": sum(values), "c": 0 if extra is None else 1}


def _echo(value: Any) -> Any:
    return value


_PURE: Mapping[str, Callable[..., Any]] = {
    "add": _add,
    "unit-price": _unit_price,
    "label": _label,
    "split_words": _split_words,
    "is_even": _is_even,
    "store.rows": _rows,
    "numbers": _numbers,
    "summary": _summary,
    "echo": _echo,
}
