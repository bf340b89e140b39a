"""The children that random programs call, and what came of a call.

The children are tools that log their calls and never surprise: some change nothing, some change the
state that all of them share, one reads that state, and one fails on some arguments; so order, number
and values of calls all show.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, Literal

from agentkit.composites.composite import Composite
from agentkit.composites.parser import parse
from agentkit.composites.problems import RunCode
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
    parameters: Mapping[str, str]
    required: int
    result: str
    writes: bool = False


def _spec(
    name: str, parameters: str, required: int, result: str, *, writes: bool = False
) -> ChildSpec:
    kinds = dict(entry.split(":") for entry in parameters.split())
    spelling = name.replace("-", "_")
    return ChildSpec(
        spelling=spelling,
        name=name,
        parameters=kinds,
        required=required,
        result=result,
        writes=writes,
    )


CHILDREN: tuple[ChildSpec, ...] = (
    _spec("add", "a:int b:int", 2, "int"),
    _spec("unit-price", "row:record quantity:int", 1, "float"),
    _spec("label", "value:any prefix:str", 1, "str"),
    _spec("split_words", "text:str", 1, "texts"),
    _spec("is_even", "n:int", 1, "bool"),
    _spec("store.rows", "count:int", 0, "rows"),
    _spec("numbers", "stop:int", 1, "ints"),
    _spec("summary", "values:ints key:str extra:any", 1, "table"),
    _spec("echo", "value:any", 1, "any"),
    _spec("ratio", "a:int b:int", 1, "float", writes=True),
    _spec("peek", "", 0, "int"),
    _spec("next_number", "", 0, "int", writes=True),
    _spec("note", "topic:str value:any", 1, "none", writes=True),
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


_PURE: Mapping[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b,
    "unit-price": lambda row, quantity=1: row["amount"] / quantity,
    "label": lambda value, prefix="v": f"{prefix}:{value!r}"[:40],
    "split_words": lambda text: text.split(),
    "is_even": lambda n: bool(n % 2 == 0),
    "store.rows": lambda count=2: [
        {"name": f"row {i}", "amount": i * 1.5, "tags": ["a"] * (i % 3)} for i in range(count % 5)
    ],
    "numbers": lambda stop: [*range(stop % 7)],
    "summary": lambda values, key="a", extra=None: {
        key: len(values),
        "b": sum(values),
        "c": 0 if extra is None else 1,
    },
    "echo": lambda value: value,
}


# --- what came of a call --------------------------------------------------------------------------

CODES: tuple[tuple[type[Exception], RunCode], ...] = (
    (ChildError, "child_failed"),
    (ZeroDivisionError, "zero_division"),
    (OverflowError, "overflow"),
    (IndexError, "index_error"),
    (KeyError, "key_error"),
    (ValueError, "value_error"),
    (TypeError, "type_error"),
    (AttributeError, "type_error"),  # a method that the value's type does not have
)
"""The code that stands for each of Python's exceptions, the first that fits."""

GUARDS: frozenset[str] = frozenset(
    [
        "in_place_list", "string_format", "complex_number", "opaque_value", "fuel",
        "integer_bits", "string_chars", "collection_items", "child_calls", "deadline", "nesting",
        "unserialisable_result",
    ]
)  # fmt: skip
"""Codes where the language stops by design, and Python goes on."""

_WRITERS = {child.name for child in CHILDREN if child.writes}

Order = Literal["exact", "concurrent"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What came of one call.

    Attributes:
        value: What was returned.
        code: The code of the failure; None when it returned.
        log: The children's calls.
    """

    value: Any = None
    code: str | None = None
    log: Sequence[LoggedCall] = ()


def code_of(error: Exception) -> str:
    """The code that stands for an exception; its class name when none does."""
    return next((code for kind, code in CODES if isinstance(error, kind)), type(error).__name__)


def same(left: Any, right: Any) -> bool:
    """Whether two values are the same down to types, signs of zero and the order of dicts.

    Example:
        >>> same([1, float("nan")], [1, float("nan")]), same(1, True), same(0.0, -0.0)
        (True, False, False)
    """
    if type(left) is not type(right):
        return False
    if isinstance(left, float):
        if math.isnan(left) or math.isnan(right):
            return math.isnan(left) and math.isnan(right)
        return left == right and math.copysign(1, left) == math.copysign(1, right)
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return same([*left.items()], [*right.items()])
    return bool(left == right)


def difference(expected: Outcome, actual: Outcome, *, order: Order = "exact") -> str:
    """How ``actual`` differs, in words; empty when it does not.

    With ``concurrent`` order, children that change nothing may be called in another order, and
    some more of them when the program fails.
    """
    if expected.code != actual.code:
        return f"ends with {_ending(actual)} instead of {_ending(expected)}"
    if not same(expected.value, actual.value):
        return f"returns {actual.value!r} instead of {expected.value!r}"
    return _log_difference(expected, actual, order)


def _ending(outcome: Outcome) -> str:
    return outcome.code or f"the value {outcome.value!r}"


def _log_difference(expected: Outcome, actual: Outcome, order: Order) -> str:
    wanted, made = _keys(expected.log), _keys(actual.log)
    if order == "exact":
        agree = wanted == made
    else:
        agree = _writes(wanted) == _writes(made)
        missing, extra = Counter(wanted), Counter(made)
        agree &= missing <= extra if expected.code else missing == extra
    return "" if agree else f"calls {made} instead of {wanted}"


def _keys(log: Sequence[LoggedCall]) -> list[tuple[str, str]]:
    """The calls in a form that can be counted; the order of arguments does not matter."""
    return [(call.name, repr(sorted(call.arguments.items()))) for call in log]


def _writes(calls: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    return [call for call in calls if call[0] in _WRITERS]
