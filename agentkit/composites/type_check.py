"""Types across the calls of a composite: its children's L1 against what flows into them.

A type is a set of JSON's base types; of a list or an object nothing more is known. A variable has
one type, the union of all that is assigned to it anywhere. Only certain misfits are reported, such
as text where a number is declared or a constant outside an ``enum``; what is not declared may be
anything.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from agentkit.composites import language as ir
from agentkit.composites.problems import Fault
from agentkit.messages import JsonObject
from agentkit.tools.schema import ANY_TYPE, JsonType, allowed_types
from agentkit.tools.schema_validator import fits
from agentkit.tools.tool import Tool

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
    program: ir.Program,
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
    faults = [fault for call in ir.calls(program) for fault in types.argument_faults(call)]
    returned: Bases = _NEVER
    for node in ir.statements(program.body):
        if isinstance(node, ir.Return):
            bases = types.of(node.value)
            returned |= bases
            why = _mismatch(node.value, bases, result, result or {})
            if why:
                message = f"this is returned, but it does not fit the declared result: {why}"
                advice = f"The result is declared as {_rules(result):.200}."
                faults.append(Fault(node.value, "result_type", message, advice))
    return faults, _schema(returned)


def _mismatch(node: ir.Expression, actual: Bases, schema: Any, root: JsonObject) -> str:
    """Why no value of an expression satisfies a schema; empty when one may."""
    if not actual or not isinstance(schema, Mapping):
        return ""
    if isinstance(node, ir.Constant):
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

    def __init__(
        self, program: ir.Program, parameters: JsonObject, tools: Mapping[str, Tool]
    ) -> None:
        self._tools = tools
        self._names: dict[str, Bases] = {}
        properties = parameters.get("properties", {})
        for parameter in program.parameters:
            declared = _declared(properties.get(parameter.name, {}), parameters)
            self._names[parameter.name] = declared | (
                _NEVER if parameter.default is None else self.of(parameter.default)
            )
        bindings = [node for node in ir.walk(program) if isinstance(node, _BINDING)]
        before = None
        while before != self._names:  # types only grow, and there are seven
            before = dict(self._names)
            for node in bindings:
                for name, type_ in self._bound(node).items():
                    self._names[name] = self._names.get(name, _NEVER) | type_

    def argument_faults(self, node: ir.Call) -> Iterator[Fault]:
        """The arguments of a call that certainly do not fit the child's L1."""
        tool = self._tools.get(node.child)
        for argument in node.arguments if tool else ():
            assert tool is not None
            signature = tool.definition.signature
            rule = signature.properties.get(argument.name)
            why = _mismatch(argument.value, self.of(argument.value), rule, signature.parameters)
            if why:
                message = f"`{argument.name}` of `{tool.name}` cannot take this: {why}"
                advice = f"`{argument.name}` is declared as {_rules(rule):.200}."
                yield Fault(argument.value, "argument_type", message, advice)

    def _bound(self, node: ir.Node) -> dict[str, Bases]:
        """The types that a statement or a comprehension gives to names."""
        match node:
            case ir.Assign(targets=(target,), value=value):
                return {target: self.of(value)}
            case ir.Assign(targets=targets, value=ir.TupleLiteral(items=items)) if len(
                items
            ) == len(targets):
                return dict(zip(targets, map(self.of, items), strict=True))
            case ir.Update(target=target, operator=operator, value=value):
                return {target: _arithmetic(operator, self._names[target], self.of(value))}
            case ir.Assign(targets=targets):
                return dict.fromkeys(targets, _ANY)
            case (
                ir.For(targets=targets, source=source)
                | ir.Comprehension(targets=targets, source=source)
            ):
                return dict(zip(targets, self._items(source, len(targets)), strict=True))
        return {}

    def _items(self, source: ir.Expression, count: int) -> Sequence[Bases]:
        """The types of the variables of a loop over ``source``."""
        if count > 1:
            is_numbered = isinstance(source, ir.Builtin) and source.function == "enumerate"
            return [_INTEGER if is_numbered else _ANY, *[_ANY] * (count - 1)]
        if isinstance(source, ir.Builtin) and source.function == "range":
            return [_INTEGER]
        if isinstance(source, ir.ListLiteral | ir.TupleLiteral):
            return [_joined(map(self.of, source.items))]
        bases = self.of(source)
        return [_ANY if "array" in bases else _STRING if bases & {"string", "object"} else _NEVER]

    def of(self, node: ir.Expression) -> Bases:
        """The type of an expression."""
        match node:
            case ir.Constant(value=value):
                return _type_of(value)
            case ir.Name(name=name):
                return self._names.get(name, _NEVER)
            case ir.Call(child=child):
                tool = self._tools.get(child)
                declared = None if tool is None else tool.definition.signature.result
                return _ANY if declared is None else _declared(declared, declared)
            case ir.Builtin(function="max" | "min", arguments=(_, _, *_) as arguments):
                return _joined(map(self.of, arguments))
            case ir.Builtin(function="sum", arguments=(_, _)):
                return _ANY
            case ir.Builtin(function=function):
                return _FUNCTIONS.get(function, _ANY)
            case ir.Method(method=method):
                return _METHODS.get(method, _ANY)
            case ir.Unary(operator="not") | ir.Compare():
                return _BOOLEAN
            case ir.Unary(operand=operand):
                return _arithmetic("+", _INTEGER, self.of(operand))
            case ir.Binary(operator=operator, left=left, right=right):
                return _arithmetic(operator, self.of(left), self.of(right))
            case ir.Boolean(operator=operator, operands=operands):
                *before, last = map(self.of, operands)
                nothing = _NULL if operator == "or" else _NEVER
                return (_joined(before) - nothing) | last
            case ir.Conditional(then=then, otherwise=otherwise):
                return self.of(then) | self.of(otherwise)
            case ir.ListLiteral() | ir.TupleLiteral():
                return _ARRAY
            case ir.DictLiteral():
                return _OBJECT
            case ir.Index(value=value):
                bases = self.of(value)
                return _STRING if bases and bases <= _STRING else _ANY
            case ir.Slice(value=value):
                return self.of(value) & _REPEATED
            case ir.Comprehension(kind=kind):
                return _OBJECT if kind == "dict" else _ARRAY
        return _STRING


_BINDING = (ir.Assign, ir.Update, ir.For, ir.Comprehension)


def _declared(schema: Any, root: JsonObject) -> Bases:
    found = allowed_types(schema, root=root)
    return _ANY if found == ANY_TYPE else found


def _joined(types: Iterable[Bases]) -> Bases:
    return _NEVER.union(*types)


def _type_of(value: ir.Scalar) -> Bases:
    if value is None or isinstance(value, str):
        return _NULL if value is None else _STRING
    if isinstance(value, bool):
        return _BOOLEAN
    return _INTEGER if isinstance(value, int) else _NUMBER


def _arithmetic(operator: ir.BinaryOperator, left: Bases, right: Bases) -> Bases:
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
