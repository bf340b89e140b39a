"""The types that a text declares, and those that flow through its calls into the children's L1.

Annotations are read from syntax and never evaluated.

A type is a set of JSON's base types; of a list or an object nothing more is known. A variable has
one type, the union of all that is assigned to it anywhere. Only certain misfits are reported, such
as text where a number is declared or a constant outside an ``enum``; what is not declared may be
anything.
"""

from __future__ import annotations

import ast
import collections.abc
import functools
import itertools
import operator
import re
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
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
from agentkit.composites.syntax import OPERATORS
from agentkit.errors import UsageError
from agentkit.messages import JsonObject
from agentkit.tools.schema import ANY_TYPE, JsonType, allowed_types
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
_REPEATED: Bases = frozenset({"string", "array"})
_BOOLEAN, _INTEGER, _NUMBER, _STRING, _ARRAY, _OBJECT, _NULL = (
    frozenset[JsonType]([base])
    for base in ("boolean", "integer", "number", "string", "array", "object", "null")
)


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
    for node in statements(program.body):
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
    bases = bases - _INTEGER if "number" in bases else bases
    if not 0 < len(bases) <= _MOST_BRANCHES:
        return None
    branches = [{"type": base} for base in _WORDS if base in bases]
    return branches[0] if len(branches) == 1 else {"anyOf": branches}


class _Types:
    """Tells the types of the expressions of one program."""

    def __init__(self, program: Program, parameters: JsonObject, tools: Mapping[str, Tool]) -> None:
        self._tools = tools
        self._names: dict[str, Bases] = {}
        properties = parameters.get("properties", {})
        for parameter in program.parameters:
            declared = _declared(properties.get(parameter.name, {}), parameters)
            self._names[parameter.name] = declared | (
                _NEVER if parameter.default is None else _type_of(parameter.default.value)
            )
        bindings = [node for node in walk(program) if isinstance(node, _BINDING)]
        before = None
        while before != self._names:  # types only grow, and there are seven
            before = dict(self._names)
            for node in bindings:
                for name, type_ in self._bound(node).items():
                    self._names[name] = self._names.get(name, _NEVER) | type_

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

    def _bound(self, node: Any) -> Mapping[str, Bases]:
        """The types that a statement or a comprehension gives to names."""
        targets = targets_of(node)
        match node:
            case ast.Assign(value=ast.Tuple(elts=items)) if len(items) == len(targets) > 1:
                types = [*map(self.of, items)]
            case ast.Assign(value=value):
                types = [self.of(value)] if len(targets) == 1 else [_ANY] * len(targets)
            case ast.AugAssign(op=op, value=value):
                types = [_arithmetic(OPERATORS[type(op)], self._names[targets[0]], self.of(value))]
            case ast.For(iter=source):
                types = self._items(source, len(targets))
            case _:
                types = self._items(node.generators[0].iter, len(targets))
        return dict(zip(targets, types, strict=True))

    def _items(self, source: ast.expr, count: int) -> list[Bases]:
        """The types of the variables of a loop over ``source``."""
        match source:
            case ast.Call(func=ast.Name(id="enumerate")) if count > 1:
                return [_INTEGER, *[_ANY] * (count - 1)]
            case _ if count > 1:
                return [_ANY] * count
            case ast.Call(func=ast.Name(id="range")):
                return [_INTEGER]
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return [_joined(map(self.of, items))]
        bases = self.of(source)
        return [_ANY if "array" in bases else _STRING if bases & {"string", "object"} else _NEVER]

    def of(self, node: ast.expr) -> Bases:
        """The type of an expression."""
        match node:
            case ast.Constant(value=value):
                return _type_of(value)
            case ast.Name(id=name):
                return self._names.get(name, _NEVER)
            case ast.Call():
                return self._of_call(node)
            case ast.UnaryOp(op=ast.Not()) | ast.Compare():
                return _BOOLEAN
            case ast.UnaryOp(operand=operand):
                return _arithmetic("+", _INTEGER, self.of(operand))
            case ast.BinOp(op=op, left=left, right=right):
                return _arithmetic(OPERATORS[type(op)], self.of(left), self.of(right))
            case ast.BoolOp(op=op, values=values):
                *before, last = map(self.of, values)
                nothing = _NULL if isinstance(op, ast.Or) else _NEVER
                return (_joined(before) - nothing) | last
            case ast.IfExp(body=then, orelse=otherwise):
                return self.of(then) | self.of(otherwise)
            case ast.List() | ast.Tuple() | ast.ListComp() | ast.GeneratorExp():
                return _ARRAY
            case ast.Dict() | ast.DictComp():
                return _OBJECT
            case ast.Subscript(value=value, slice=ast.Slice()):
                return self.of(value) & _REPEATED
            case ast.Subscript(value=value):
                bases = self.of(value)
                return _STRING if bases and bases <= _STRING else _ANY
        return _STRING

    def _of_call(self, node: ast.Call) -> Bases:
        match node.func:
            case ast.Attribute(attr=method):
                return _METHODS.get(method, _ANY)
            case ast.Name(id="max" | "min") if len(node.args) > 1:
                return _joined(map(self.of, node.args))
            case ast.Name(id="sum") if len(node.args) > 1:
                return _ANY
            case ast.Name(id=function) if function in _FUNCTIONS:
                return _FUNCTIONS[function]
        tool = self._tools.get(child_of(node))
        declared = None if tool is None else tool.definition.signature.result
        return _ANY if declared is None else _declared(declared, declared)


_BINDING = (ast.Assign, ast.AugAssign, ast.For, ast.ListComp, ast.DictComp, ast.GeneratorExp)


def _declared(schema: Any, root: JsonObject) -> Bases:
    found = allowed_types(schema, root=root)
    return _ANY if found == ANY_TYPE else found


def _joined(types: Iterable[Bases]) -> Bases:
    return _NEVER.union(*types)


def _type_of(value: object) -> Bases:
    if value is None or isinstance(value, str):
        return _NULL if value is None else _STRING
    if isinstance(value, bool):
        return _BOOLEAN
    return _INTEGER if isinstance(value, int) else _NUMBER


def _arithmetic(operator: str, left: Bases, right: Bases) -> Bases:
    """The result type of an operator; anything when Python would refuse the operands."""
    if not left or not right:
        return _NEVER
    bases: set[JsonType] = set()
    for one, two in itertools.product(left, right):
        if one in _NUMERIC and two in _NUMERIC:
            is_real = operator in {"/", "**"} or "number" in {one, two}
            bases.add("number" if is_real else "integer")
        elif operator == "+" and one == two and one in _REPEATED:
            bases.add(one)
        elif operator == "*" and {one, two} & _NUMERIC:
            bases |= {one, two} & _REPEATED
    return frozenset(bases) or _ANY


_FUNCTIONS: Mapping[str, Bases] = {
    **dict.fromkeys(("all", "any", "bool", "is_close", "isfinite"), _BOOLEAN),
    **dict.fromkeys(("enumerate", "list", "range", "sorted", "zip"), _ARRAY),
    **dict.fromkeys(("abs", "float", "round", "sum"), _NUMBER | _INTEGER),
    **dict.fromkeys(("int", "len"), _INTEGER),
    "str": _STRING,
}
_METHODS: Mapping[str, Bases] = {
    **dict.fromkeys(("capitalize", "join", "lower", "lstrip", "replace", "rstrip"), _STRING),
    **dict.fromkeys(("strip", "title", "upper"), _STRING),
    **dict.fromkeys(("endswith", "isalpha", "isdigit", "startswith"), _BOOLEAN),
    **dict.fromkeys(("count", "find", "index"), _INTEGER),
    **dict.fromkeys(("items", "keys", "split", "splitlines", "values"), _ARRAY),
}
