"""The types that a text declares, read from syntax and never evaluated, and ``Expr``."""

from __future__ import annotations

import ast
import collections.abc
import functools
import operator
import re
import types
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from agentkit.composites.problems import Fault
from agentkit.errors import UsageError
from agentkit.messages import JsonObject

# --- expressions as parameters --------------------------------------------------------------------

EXPRESSION_KEYWORD = "x-expression"
"""The schema keyword that holds an expression's names and its result."""

_FORM = re.compile(r"(?P<names>\w+(\s*,\s*\w+)*)\s*->\s*(?P<result>\w+)")
_RESULTS = {
    "Any": None,
    "bool": "boolean",
    "float": "number",
    "int": "integer",
    "str": "string",
}


class Expr:
    """A predicate or formula as text, in the composite language.

    A model can write ``row["amount"] > 10`` where it could not write a function. In Python files
    that type checkers read, write ``Annotated[str, Expr("row -> bool")]``; elsewhere
    ``Expr["row -> bool"]`` says the same.

    Args:
        form: The names that the expression may use, an arrow, and what it gives: ``bool``,
            ``int``, ``float``, ``str`` or ``Any``.

    Attributes:
        names: The names, in order.
        result: The JSON type of what it gives; None for anything.

    Raises:
        UsageError: ``form`` has another form.

    Example:
        >>> Expr("row -> bool").schema
        {'format': 'expression', 'x-expression': {'names': ['row'], 'result': 'boolean'}}
    """

    __slots__ = ("names", "result")

    def __init__(self, form: str) -> None:
        match = _FORM.fullmatch(form.strip())
        names = tuple(re.split(r"\s*,\s*", match["names"])) if match else ()
        if not match or match["result"] not in _RESULTS or not all(map(str.isidentifier, names)):
            raise UsageError(
                f'Expr({form!r}) does not say what goes in and out; write Expr("row -> bool") '
                f"with names, an arrow and one of {', '.join(_RESULTS)}"
            )
        self.names: tuple[str, ...] = names
        self.result: str | None = _RESULTS[match["result"]]

    def __class_getitem__(cls, form: str) -> Any:
        return Annotated[str, cls(form)]

    @property
    def schema(self) -> JsonObject:
        """The keywords of the parameter's JSON Schema beside ``"type": "string"``."""
        facts = {"names": list(self.names), "result": self.result}
        return {
            "format": "expression",
            EXPRESSION_KEYWORD: {key: fact for key, fact in facts.items() if fact is not None},
        }

    def __get_pydantic_json_schema__(
        self, core_schema: Any, handler: Callable[[Any], dict[str, Any]]
    ) -> dict[str, Any]:
        return {**handler(core_schema), **self.schema}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expr) and self.schema == other.schema

    def __hash__(self) -> int:
        return hash((self.names, self.result))

    def __repr__(self) -> str:
        names = {json: name for name, json in _RESULTS.items()}
        return f'Expr("{", ".join(self.names)} -> {names[self.result]}")'


# --- annotations ----------------------------------------------------------------------------------

_TYPES: Mapping[str, Any] = {
    "Any": Any,
    "Dict": dict,
    "List": list,
    "Mapping": collections.abc.Mapping,
    "None": type(None),
    "Sequence": collections.abc.Sequence,
    "Tuple": tuple,
    "bool": bool,
    "dict": dict,
    "float": float,
    "int": int,
    "list": list,
    "object": object,
    "str": str,
    "tuple": tuple,
}
_MODULES = {"t", "typing", "typing_extensions", "collections.abc", "agentkit"}
_ADVICE = (
    "Write int, float, str, bool, None, Any, list[...], dict[str, ...], tuple[...], Literal[...], "
    '`X | None`, Annotated[..., "text"] or Expr["row -> bool"].'
)
_SHOWN = 80
_MAX_NESTING = 10
_MAX_BRANCHES = 50


class _UnknownTypeError(Exception):
    """A part of an annotation that is not a JSON type."""

    def __init__(self, node: ast.expr, why: str) -> None:
        self.node = node
        self.why = why
        super().__init__(why)


def shown(node: ast.expr) -> str:
    """The start of a piece of syntax, for a message."""
    try:
        text = ast.unparse(node)
    except RecursionError:  # a chain of a thousand operators
        return "…"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def read_annotation(node: ast.expr, *, place: str) -> Any:
    """The type that an annotation names, as Python itself would resolve it.

    Args:
        node: The annotation.
        place: What it annotates, for the message.

    Returns:
        A type such as ``int`` or ``list[str]``, or the ``Fault`` that it has.

    Example:
        >>> read_annotation(ast.parse("List[int]", mode="eval").body, place="it")
        list[int]
    """
    try:
        return _read(node, 0)
    except _UnknownTypeError as refused:
        message = f"{place} is annotated `{shown(node)}`, but {refused.why}"
        return Fault(refused.node, "annotation", message, _ADVICE)


def _read(node: ast.expr, nesting: int) -> Any:
    if nesting > _MAX_NESTING:
        raise _UnknownTypeError(node, f"types nest at most {_MAX_NESTING} deep")
    match node:
        case ast.Constant(value=None):
            return type(None)
        case ast.BinOp(op=ast.BitOr()):
            branches: list[ast.expr] = []
            left: ast.expr = node
            while isinstance(left, ast.BinOp) and isinstance(left.op, ast.BitOr):
                branches.insert(0, left.right)
                left = left.left
            if len(branches) >= _MAX_BRANCHES:
                raise _UnknownTypeError(node, f"a union has at most {_MAX_BRANCHES} branches")
            return _union_of([_read(branch, nesting + 1) for branch in (left, *branches)])
        case ast.Subscript():
            return _subscript(node, nesting)
        case ast.Name() | ast.Attribute() if (name := _name(node)) in _TYPES:
            return _TYPES[name]
    raise _UnknownTypeError(node, f"{shown(node)} is not a JSON type")


def _union_of(branches: list[Any]) -> Any:
    """The union, its branches in the order in which they are written.

    ``Union[...]`` gives back whatever equal union this process made first, and equal are also
    those of another order, so that a definition would depend on what was read before it.
    """
    flat: list[Any] = []
    for branch in branches:
        is_union = get_origin(branch) in {Union, types.UnionType}
        flat.extend(get_args(branch) if is_union else (branch,))
    return functools.reduce(operator.or_, flat)


def _subscript(node: ast.Subscript, nesting: int) -> Any:
    """A type in brackets; ``List[...]`` is ``list[...]``, and so on."""
    name = _name(node.value)
    items = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
    form: Any
    match name, items:
        case "Literal", [_, *_]:
            form = Literal
            return form[tuple(_literal(item) for item in items)]
        case "Annotated", [first, _, *_]:
            form = Annotated
            return form[(_read(first, nesting + 1), *map(_metadata, items[1:]))]
        case "Expr", [ast.Constant(value=str(text))]:
            return Annotated[str, _expr(node, text)]
        case "Optional", [item]:
            return _union_of([_read(item, nesting + 1), type(None)])
        case "Union", [_, *_]:
            return _union_of([_read(item, nesting + 1) for item in items])
        case "tuple" | "Tuple", [item, ast.Constant(value=value)] if value is ...:
            return types.GenericAlias(tuple, (_read(item, nesting + 1), ...))
        case ("tuple" | "Tuple", [_, *_]) | ("list" | "List" | "Sequence", [_]):
            parts = tuple(_read(item, nesting + 1) for item in items)
            return types.GenericAlias(_TYPES[name], parts)
        case "dict" | "Dict" | "Mapping", [ast.Name(id="str"), value]:
            return types.GenericAlias(_TYPES[name], (str, _read(value, nesting + 1)))
        case "dict" | "Dict" | "Mapping", [key, _]:
            raise _UnknownTypeError(key, "the keys of a JSON object are text")
    raise _UnknownTypeError(node, f"{shown(node)} is not a JSON type")


def _literal(item: ast.expr) -> Any:
    match item:
        case ast.Constant(value=value) if value is None or type(value) in {str, bool, int}:
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as value)) if (
            type(value) is int
        ):
            return -value
    raise _UnknownTypeError(item, "a Literal holds text, integers, True, False or None")


def _metadata(item: ast.expr) -> object:
    match item:
        case ast.Constant(value=str(text)):
            return text
        case ast.Call(func=callee, args=[ast.Constant(value=str(form))], keywords=[]) if (
            _name(callee) == "Expr"
        ):
            return _expr(item, form)
    raise _UnknownTypeError(item, f"{shown(item)} is neither a text nor an Expr")


def _expr(node: ast.expr, form: str) -> Expr:
    try:
        return Expr(form)
    except UsageError as error:
        raise _UnknownTypeError(node, str(error)) from error


def _name(node: ast.expr) -> str:
    """A plain name, or the last part of one from a module of types; empty for anything else."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=module, attr=name) if shown(module) in _MODULES:
            return name
    return ""
