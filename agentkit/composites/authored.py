"""What the author of a composite says beside its body: the words in ``@composite(...)``."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from agentkit.composites.faults import Fault
from agentkit.composites.parser import Function
from agentkit.tools.canonical import is_json

DECORATOR = "composite"
_SHOWN = 80

LISTS = ("pre", "post", "text", "tags", "usage_rules")
"""Keywords that take a list of texts."""

WORDS = ("description", "complexity")
"""Keywords that take one text."""

BINDING = (
    "contracts",
    "limits",
    "max_retries",
    "requires_approval",
    "timeout_seconds",
    "tools",
)
"""Keywords that say how the tool runs; a definition does not hold them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Authored:
    """What stands in the decorator.

    Attributes:
        description: The summary; the docstring's when None.
        complexity: Cost in words.
        pre: Expressions over the parameters.
        post: Expressions over the parameters and ``result``.
        text: Conditions in words.
        tags: Free labels.
        usage_rules: One rule a sentence.
        examples: Worked calls in their JSON form.
        nodes: The syntax of each item, by keyword and index.
        faults: What could not be read.
    """

    description: str | None = None
    complexity: str = ""
    pre: tuple[str, ...] = ()
    post: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    usage_rules: tuple[str, ...] = ()
    examples: tuple[Mapping[str, Any], ...] = ()
    nodes: Mapping[tuple[str, int], ast.AST] = field(default_factory=dict)
    faults: tuple[Fault, ...] = ()

    def node(self, keyword: str, index: int) -> ast.AST:
        """The syntax of an item; the function's when it is written elsewhere."""
        return self.nodes.get((keyword, index), self.nodes["", 0])


@dataclass(frozen=True, kw_only=True, slots=True)
class Given:
    """A decorator that Python has evaluated already.

    Attributes:
        keywords: The values of its keywords; the syntax only tells where they stand.
        name: The name by which the file calls it.
    """

    keywords: Mapping[str, Any]
    name: str = DECORATOR


class _NotWrittenOutError(Exception):
    """A value that is not a constant of JSON."""

    def __init__(self, node: ast.expr) -> None:
        self.node = node
        super().__init__(shown(node))


def read_authored(function: Function, given: Given | None = None) -> Authored:
    """Read the decorators of a function.

    Args:
        function: The syntax.
        given: The decorator's values, when they need not be read from the syntax.
    """
    faults: list[Fault] = []
    nodes: dict[tuple[str, int], ast.AST] = {("", 0): function}
    found: dict[str, Any] = {} if given is None else dict(given.keywords)
    for keyword in _keywords(function, DECORATOR if given is None else given.name, faults):
        name = keyword.arg or "**"
        nodes.update(_items(name, keyword.value))
        if given is None and name not in BINDING:
            _read_keyword(keyword, found, faults)
    return Authored(**found, nodes=nodes, faults=tuple(faults))


def _keywords(function: Function, name: str, faults: list[Fault]) -> Iterator[ast.keyword]:
    """The keywords of the one decorator; any other decorator is a fault."""
    seen = False
    for decorator in function.decorator_list:
        call = decorator if isinstance(decorator, ast.Call) else None
        if seen or name_of(decorator) != name or (call and call.args):
            message = f"`@{shown(decorator)}` is not applied to a text"
            advice = "Remove it; only one @composite(...), with keywords alone, may stand there."
            faults.append(Fault(decorator, "decorator", message, advice))
            continue
        seen = True
        yield from call.keywords if call else ()


def shown(node: ast.expr) -> str:
    """The start of a piece of syntax, for a message."""
    try:
        text = ast.unparse(node)
    except RecursionError:  # a chain of a thousand operators
        return "…"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def name_of(decorator: ast.expr) -> str:
    """The last name of a decorator: ``composite`` for ``@agentkit.composite(...)``."""
    named = decorator.func if isinstance(decorator, ast.Call) else decorator
    if isinstance(named, ast.Attribute):
        return named.attr
    return named.id if isinstance(named, ast.Name) else ""


def _items(name: str, value: ast.expr) -> Iterator[tuple[tuple[str, int], ast.AST]]:
    items = value.elts if isinstance(value, ast.List | ast.Tuple) else [value]
    for at, item in enumerate(items):
        yield (name, at), item


def _read_keyword(keyword: ast.keyword, found: dict[str, Any], faults: list[Fault]) -> None:
    name = keyword.arg or "**"
    if name not in {*LISTS, *WORDS, "examples"}:
        advice = f"Use some of {', '.join((*LISTS, *WORDS, 'examples'))}."
        message = f"@composite knows no `{name}`"
        faults.append(Fault(keyword.value, "decorator", message, advice))
        return
    try:
        value = constant(keyword.value)
    except _NotWrittenOutError as error:
        message = f"`{name}` of @composite holds `{error}`, which is no constant"
        faults.append(Fault(error.node, "decorator", message, "Write the value out."))
        return
    why = unfit(name, value)
    if why:
        faults.append(Fault(keyword.value, "decorator", *why))
        return
    found[name] = tuple(value) if isinstance(value, list) else value


def unfit(name: str, value: object) -> tuple[str, str] | None:
    """Why a keyword can not have that value, and what to write; None when it can."""
    if name in WORDS:
        if isinstance(value, str):
            return None
        return f"`{name}` of @composite is no text", f'Write {name}="...".'
    texts = isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)
    if name in LISTS:
        if texts:
            return None
        return f"`{name}` of @composite is no list of texts", f'Write {name}=["..."].'
    if isinstance(value, list | tuple) and all(map(_is_example, value)):
        return None
    return (
        "`examples` of @composite is no list of worked calls",
        'Write examples=[{"arguments": {"x": 1}, "result": 2, "query": ""}], in JSON values.',
    )


def _is_example(item: object) -> bool:
    return (
        isinstance(item, Mapping)
        and isinstance(item.get("arguments"), Mapping)
        and set(item) <= {"arguments", "result", "query"}
        and isinstance(item.get("query", ""), str)
        and is_json(dict(item))
    )


def constant(node: ast.expr) -> Any:
    """The JSON value that is written out in syntax; tuples become lists.

    Raises:
        _NotWrittenOutError: A part of it is no constant.
    """
    match node:
        case ast.Constant(value=value) if value is None or type(value) in {bool, int, float, str}:
            return value
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [constant(item) for item in items]
        case ast.Dict(keys=keys, values=values):
            return {_key(key, node): constant(value) for key, value in _pairs(keys, values)}
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)) if (
            type(value) is not bool
        ):
            return -value
    raise _NotWrittenOutError(node)


def _pairs(
    keys: list[ast.expr | None], values: list[ast.expr]
) -> Iterator[tuple[ast.expr | None, ast.expr]]:
    yield from zip(keys, values, strict=True)


def _key(key: ast.expr | None, node: ast.expr) -> str:
    match key:
        case ast.Constant(value=str(name)):
            return name
    raise _NotWrittenOutError(key or node)
