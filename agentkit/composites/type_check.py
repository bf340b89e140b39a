"""The types that a text declares, and those that flow through its calls into the children's L1.

Annotations are read from syntax and never evaluated.

A type is a set of JSON's base types; of a list or an object nothing more is known. Types are those
of constants and literals, of parameters, of what children declare to return, and of variables that
are set once; what operators and functions give may be anything. Only certain misfits are reported,
such as text where a number is declared or a constant outside an ``enum``.
"""

from __future__ import annotations

import ast
import collections.abc
import functools
import operator
import re
import types
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin

from agentkit.composites.language import (
    Program,
    arguments_of,
    calls,
    child_of,
    statements,
    targets_of,
    walk,
)
from agentkit.composites.problems import Fault
from agentkit.errors import UsageError
from agentkit.messages import JsonObject
from agentkit.tools.schema import ANY_TYPE, JsonType, allowed_types, json_type
from agentkit.tools.schema_validator import fits
from agentkit.tools.tool import Tool

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


@dataclass(frozen=True, slots=True)
class Expr:
    """A predicate or formula as text, in the composite language.

    A model can write ``row["amount"] > 10`` where it could not write a function. In Python files
    that type checkers read, write ``Annotated[str, Expr("row -> bool")]``; elsewhere
    ``Expr["row -> bool"]`` says the same.

    Attributes:
        form: The names that the expression may use, an arrow, and what it gives: ``bool``,
            ``int``, ``float``, ``str`` or ``Any``.

    Raises:
        UsageError: ``form`` has another form.

    Example:
        >>> Expr("row -> bool").schema
        {'format': 'expression', 'x-expression': {'names': ['row'], 'result': 'boolean'}}
    """

    form: str

    def __post_init__(self) -> None:
        match = _FORM.fullmatch(self.form.strip())
        is_known = match is not None and match["result"] in _RESULTS
        if not is_known or not all(map(str.isidentifier, self.names)):
            raise UsageError(
                f'Expr({self.form!r}) does not say what goes in and out; write Expr("row -> bool") '
                f"with names, an arrow and one of {', '.join(_RESULTS)}"
            )

    def __class_getitem__(cls, form: str) -> Any:
        return Annotated[str, cls(form)]

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in order."""
        return tuple(name.strip() for name in self.form.partition("->")[0].split(","))

    @property
    def schema(self) -> JsonObject:
        """The keywords of the parameter's JSON Schema beside ``"type": "string"``."""
        result = _RESULTS[self.form.partition("->")[2].strip()]
        facts = {"names": list(self.names), **({"result": result} if result else {})}
        return {"format": "expression", EXPRESSION_KEYWORD: facts}

    def __get_pydantic_json_schema__(
        self, core_schema: Any, handler: Callable[[Any], dict[str, Any]]
    ) -> dict[str, Any]:
        return {**handler(core_schema), **self.schema}


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
_MAX_PARTS = 200


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
        return _read_all(node)
    except _UnknownTypeError as refused:
        message = f"{place} is annotated `{shown(node)}`, but {refused.why}"
        return Fault(refused.node, "annotation", message, _ADVICE)


def _read_all(node: ast.expr) -> Any:
    if sum(1 for _ in ast.walk(node)) > _MAX_PARTS:
        raise _UnknownTypeError(node, f"a type has at most {_MAX_PARTS} parts")
    return _read(node)


def _read(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=None):
            return type(None)
        case ast.BinOp(op=ast.BitOr(), left=left, right=right):
            return _union_of([_read(left), _read(right)])
        case ast.Subscript():
            return _subscript(node)
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


def _subscript(node: ast.Subscript) -> Any:
    """A type in brackets; ``List[...]`` is ``list[...]``, and so on."""
    name = _name(node.value)
    items = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
    literal: Any = Literal
    annotated: Any = Annotated
    match name, items:
        case "Literal", [_, *_]:
            return literal[tuple(map(_literal, items))]
        case "Annotated", [first, _, *_]:
            return annotated[(_read(first), *map(_metadata, items[1:]))]
        case "Expr", [ast.Constant(value=str(text))]:
            return Annotated[str, _expr(node, text)]
        case "Optional", [item]:
            return _union_of([_read(item), type(None)])
        case "Union", [_, *_]:
            return _union_of([*map(_read, items)])
        case "tuple" | "Tuple", [item, ast.Constant(value=value)] if value is ...:
            return types.GenericAlias(tuple, (_read(item), ...))
        case ("tuple" | "Tuple", [_, *_]) | ("list" | "List" | "Sequence", [_]):
            return types.GenericAlias(_TYPES[name], tuple(map(_read, items)))
        case "dict" | "Dict" | "Mapping", [ast.Name(id="str"), value]:
            return types.GenericAlias(_TYPES[name], (str, _read(value)))
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


# --- types across calls ---------------------------------------------------------------------------

Bases: TypeAlias = frozenset[JsonType]
"""The types a value may have; empty for unreachable code."""

_MOST_BRANCHES = 3
"""More types than these together say too little to be declared."""

_WORDS: Mapping[JsonType, str] = {
    "boolean": "True or False",
    "integer": "an integer",
    "number": "a number",
    "string": "text",
    "array": "a list",
    "object": "a dict",
    "null": "None",
}
_ANY: Bases = frozenset(_WORDS)
_NEVER: Bases = frozenset()
_NUMERIC: Bases = frozenset({"boolean", "integer", "number"})


def type_check(
    program: Program,
    parameters: JsonObject,
    tools: Mapping[str, Tool],
    *,
    result: JsonObject | None = None,
) -> tuple[list[Fault], JsonObject | None]:
    r"""Check what flows into each child against the child's L1.

    Args:
        program: A program that keeps the static rules; those are not checked again.
        parameters: The schema of its arguments.
        tools: Its children by their name in the library; one that is missing may take and give
            anything.
        result: The schema of its result; None when it is not declared.

    Returns:
        Certain misfits, and a schema of what the program returns, None when nothing is known of it.

    Example:
        >>> from agentkit import tool
        >>> from agentkit.composites.parser import parse
        >>> @tool
        ... def double(x: float) -> float:
        ...     '''Twice a number.'''
        ...     return 2 * x
        >>> parsed = parse("def f(name):\n    return double(name)\n", {"double": double})
        >>> schema = {"type": "object", "properties": {"name": {"type": "string"}}}
        >>> faults, _ = type_check(parsed.program, schema, {"double": double})
        >>> faults[0].message
        '`x` of `double` cannot take this: it is text'
    """
    types = _Types(program, parameters, tools)
    faults = [fault for call in calls(program) for fault in types.argument_faults(call)]
    returned: Bases = _NEVER
    for node in statements(program):
        if isinstance(node, ast.Return) and node.value is not None:
            bases = types.of(node.value)
            returned |= bases
            why = _mismatch(node.value, bases, result, result or {})
            if why:
                message = f"this is returned, but it does not fit the declared result: {why}"
                advice = f"The result is declared as {_rules(result):.200}."
                faults.append(Fault(node.value, "result_type", message, advice))
    return faults, _schema(returned)


def _mismatch(node: ast.expr, actual: Bases, schema: Any, root: JsonObject) -> str:
    """Why no value of an expression satisfies a schema; empty when one may."""
    if not actual or not isinstance(schema, Mapping):
        return ""
    if isinstance(node, ast.Constant):
        value = node.value
        # Python lets True stand for 1, and so do functions that declare a number.
        stand_ins = [value, int(value)] if isinstance(value, bool) else [value]
        if all(fits(item, schema, root=root) is False for item in stand_ins):
            return f"{value!r:.80} breaks {_rules(schema):.160}"
        return ""
    expected = allowed_types(schema, root=root)
    numbers = _NUMERIC if expected & {"integer", "number"} else _NEVER
    if actual & (expected | numbers):
        return ""
    return f"it is {' or '.join(words for base, words in _WORDS.items() if base in actual)}"


def _rules(schema: Any) -> str:
    """A schema without its words, for a message."""
    return str({key: rule for key, rule in schema.items() if key not in {"default", "description"}})


def _schema(bases: Bases) -> dict[str, Any] | None:
    """A schema that all values of a type satisfy; None when nothing is known of them."""
    bases = bases - {"integer"} if "number" in bases else bases
    if not 0 < len(bases) <= _MOST_BRANCHES:
        return None
    branches = [{"type": base} for base in _WORDS if base in bases]
    return branches[0] if len(branches) == 1 else {"anyOf": branches}


_SETTERS = (ast.stmt, ast.ListComp, ast.DictComp, ast.GeneratorExp)


class _Types:
    """Tells the types of the expressions of one program."""

    def __init__(self, program: Program, parameters: JsonObject, tools: Mapping[str, Tool]) -> None:
        self._tools = tools
        self._names: dict[str, Bases] = {}
        properties = parameters.get("properties", {})
        for parameter in program.parameters:
            declared = _declared(properties.get(parameter.name, {}), parameters)
            default = _NEVER if parameter.default is None else _type_of(parameter.default.value)
            self._names[parameter.name] = declared | default
        setters = [node for node in walk(program) if isinstance(node, _SETTERS)]
        bound = Counter(name for node in setters for name in targets_of(node))
        bound.update([*self._names])
        self._names |= {name: _ANY for name, times in bound.items() if times > 1}
        for node in setters:
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if bound[name] == 1:
                    self._names[name] = self.of(value)

    def argument_faults(self, node: ast.Call) -> Iterator[Fault]:
        """The arguments of a call that certainly do not fit the child's L1."""
        tool = self._tools.get(child_of(node))
        for name, value in arguments_of(node) if tool else ():
            assert tool is not None
            signature = tool.definition.signature
            rule = signature.properties.get(name)
            why = _mismatch(value, self.of(value), rule, signature.parameters)
            if why:
                message = f"`{name}` of `{tool.name}` cannot take this: {why}"
                advice = f"`{name}` is declared as {_rules(rule):.200}."
                yield Fault(value, "argument_type", message, advice)

    def of(self, node: ast.expr) -> Bases:
        """The type of an expression."""
        match node:
            case ast.Constant(value=value):
                return _type_of(value)
            case ast.Name(id=name):
                return self._names.get(name, _ANY)
            case ast.IfExp(body=then, orelse=otherwise):
                return self.of(then) | self.of(otherwise)
            case ast.Call() if tool := self._tools.get(child_of(node)):
                declared = tool.definition.signature.result
                return _ANY if declared is None else _declared(declared, declared)
        return _OF_NODES.get(type(node), _ANY)


_OF_NODES: Mapping[type, Bases] = {
    ast.Compare: frozenset({"boolean"}),
    ast.JoinedStr: frozenset({"string"}),
    **dict.fromkeys((ast.List, ast.Tuple, ast.ListComp), frozenset[JsonType]({"array"})),
    **dict.fromkeys((ast.Dict, ast.DictComp), frozenset[JsonType]({"object"})),
}


def _declared(schema: Any, root: JsonObject) -> Bases:
    found = allowed_types(schema, root=root)
    return _ANY if found == ANY_TYPE else found


def _type_of(value: object) -> Bases:
    return frozenset({json_type(value) if type(value) is not float else "number"})
