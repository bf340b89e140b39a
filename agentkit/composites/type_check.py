"""Types across the calls of a composite: its children's L1 against what flows into them.

A variable has one type: the union of all that is assigned to it anywhere. Only certain misfits are
told, such as text where a number is declared or a constant outside an ``enum``. What is not
declared may be anything.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agentkit.composites import language as ir
from agentkit.composites.problems import Fault
from agentkit.messages import JsonObject
from agentkit.tools.schema_validator import fits
from agentkit.tools.tool import Tool
from agentkit.tools.types import (
    ANY,
    NEVER,
    Alternative,
    Base,
    TypeSet,
    declared_type,
    join,
)

_PASSES = 6
"""Looks at a program before its variables count as anything."""

_DEEPEST = 4
"""Levels of lists and objects that are kept of a value that a program builds."""

_MOST_BRANCHES = 3
"""More types than these together say too little to be declared."""

_WORDS: Mapping[Base, str] = {
    "boolean": "True or False",
    "integer": "an integer",
    "number": "a number",
    "string": "text",
    "array": "a list",
    "object": "a dict",
    "null": "None",
}
_NUMERIC: frozenset[Base] = frozenset({"boolean", "integer", "number"})
_REPEATED: frozenset[Base] = frozenset({"string", "array"})

_BOOLEAN, _INTEGER, _NUMBER, _STRING, _ARRAY, _OBJECT, _NULL = (
    TypeSet.of(base)
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
        '`x` of `double` can not take this: it is text'
    """
    types = _Types(program, parameters, tools)
    faults = [fault for call in ir.calls(program) for fault in types.argument_faults(call)]
    returned: list[TypeSet] = []
    for node in ir.statements(program.body):
        if isinstance(node, ir.Return):
            returned.append(types.of(node.value))
            why = "" if result is None else _mismatch(node.value, returned[-1], result, result)
            if why and result is not None:
                message = f"this is returned, but it does not fit the declared result: {why}"
                advice = f"The result is declared as {_rules(result):.200}."
                faults.append(Fault(node.value, "result_type", message, advice))
    known = join(returned)
    return faults, None if known.is_never else _schema(known)


# --- whether it fits ------------------------------------------------------------------------------


def _mismatch(node: ir.Expression, given: TypeSet, schema: Any, root: JsonObject) -> str:
    """Why no value of an expression satisfies a schema; empty when one may."""
    if given.is_never or not isinstance(schema, Mapping):
        return ""
    constant = given.constant()
    if constant is not None:
        value = constant[0]
        # Python lets True stand for 1, and so do functions that declare a number.
        stand_ins = [value, int(value)] if isinstance(value, bool) else [value]
        if all(fits(item, schema, root=root) is False for item in stand_ins):
            return f"{value!r:.80} breaks {_rules(schema):.160}"
        return ""
    wanted = _bare(declared_type(schema, root=root))
    numbers = _NUMERIC if wanted.bases & {"integer", "number"} else frozenset()
    if not given.bases & (wanted.bases | numbers):
        words = [words for base, words in _WORDS.items() if base in given.bases]
        return f"it is {' or '.join(words)}"
    if isinstance(node, ir.DictLiteral) and len(wanted.alternatives) == 1:
        keys = {key.value for key in node.keys if isinstance(key, ir.Constant)}
        (only,) = wanted.alternatives
        missing = [name for name, _ in only.fields if name not in keys]
        if missing and len(keys) == len(node.keys):
            return f"it has no key {missing[0]!r}"
    return f"it is {given}, and not {wanted}" if (_bare(given) & wanted).is_never else ""


def _rules(schema: JsonObject) -> str:
    """A schema without its words, for a message."""
    return str({key: rule for key, rule in schema.items() if key not in {"default", "description"}})


def _bare(type_: TypeSet) -> TypeSet:
    """A type as far as values certainly differ by it: meanings are no more than hints."""
    made = []
    for one in type_.alternatives:
        items = None if one.items is None else _bare(one.items)
        fields = tuple((name, _bare(part)) for name, part in one.fields)
        made.append(replace(one, meaning="", items=items, fields=fields))
        if one.base == "boolean":  # which stands for a number
            made.append(Alternative(base="number"))
    return TypeSet.union(made)


def _schema(type_: TypeSet) -> dict[str, Any] | None:
    """A schema that all values of a type satisfy; None when nothing is known of them."""
    bases = type_.bases - ({"integer"} if "number" in type_.bases else set())
    if type_.is_any or not 0 < len(bases) <= _MOST_BRANCHES:
        return None
    branches = [
        _branch(base, [one for one in type_.alternatives if one.base == base])
        for base in _WORDS
        if base in bases
    ]
    return branches[0] if len(branches) == 1 else {"anyOf": branches}


def _branch(base: Base, same: Sequence[Alternative]) -> dict[str, Any]:
    if base == "array":
        return {"items": _schema(join(one.items or ANY for one in same)) or {}, "type": base}
    common = set.intersection(*({name for name, _ in one.fields} for one in same))
    if base != "object" or not common:
        return {"type": base}
    properties = {
        name: _schema(join(dict(one.fields)[name] for one in same)) or {} for name in sorted(common)
    }
    return {"properties": properties, "type": base}


# --- the type of an expression --------------------------------------------------------------------


class _Types:
    """Tells the types of the expressions of one program."""

    def __init__(
        self, program: ir.Program, parameters: JsonObject, tools: Mapping[str, Tool]
    ) -> None:
        self._tools = tools
        self._results: dict[str, TypeSet] = {}
        self._names: dict[str, TypeSet] = {}
        properties = parameters.get("properties", {})
        for parameter in program.parameters:
            schema, default = properties.get(parameter.name, {}), parameter.default
            declared = declared_type(schema, root=parameters, is_result=True)
            self._names[parameter.name] = (
                declared if default is None else declared | _constant(default.value)
            )
        bindings = [node for node in ir.walk(program) if isinstance(node, _BINDING)]
        for _ in range(_PASSES):
            before = dict(self._names)
            for node in bindings:
                for name, type_ in self._bound(node).items():
                    self._names[name] = self._names.get(name, NEVER) | type_
            if self._names == before:
                return
        self._names |= {name: ANY for node in bindings for name in self._bound(node)}

    def argument_faults(self, node: ir.Call) -> Iterator[Fault]:
        """The arguments of a call that certainly do not fit the child's L1."""
        tool = self._tools.get(node.child)
        for argument in node.arguments if tool else ():
            assert tool is not None
            signature = tool.definition.signature
            rule = signature.properties.get(argument.name)
            why = _mismatch(argument.value, self.of(argument.value), rule, signature.parameters)
            if why and rule is not None:
                message = f"`{argument.name}` of `{tool.name}` can not take this: {why}"
                advice = f"`{argument.name}` is declared as {_rules(rule):.200}."
                yield Fault(argument.value, "argument_type", message, advice)

    def _bound(self, node: ir.Node) -> dict[str, TypeSet]:
        """The types that a statement or a comprehension gives to names."""
        match node:
            case ir.Assign(targets=(target,), value=value):
                return {target: self.of(value)}
            case ir.Assign(targets=targets, value=ir.TupleLiteral(items=items)) if len(
                items
            ) == len(targets):
                return dict(zip(targets, map(self.of, items), strict=True))
            case ir.Assign(targets=targets, value=value):
                return dict.fromkeys(targets, _element(self.of(value)))
            case ir.Update(target=target, operator=operator, value=value):
                return {target: _arithmetic(operator, self._names[target], self.of(value))}
            case (
                ir.For(targets=targets, source=source)
                | ir.Comprehension(targets=targets, source=source)
            ):
                item = _element(self.of(source))
                if len(targets) == 1:
                    return {targets[0]: item}
                first, *rest = [_element(item)] * len(targets)
                is_numbered = isinstance(source, ir.Builtin) and source.function == "enumerate"
                return dict(zip(targets, [_INTEGER if is_numbered else first, *rest], strict=True))
        return {}

    def of(self, node: ir.Expression) -> TypeSet:
        """The type of an expression."""
        match node:
            case ir.Constant(value=value):
                return _constant(value)
            case ir.Unary(operator="-", operand=ir.Constant(value=int() | float() as value)):
                return _constant(-value)
            case ir.Name(name=name):
                return self._names.get(name, NEVER)
            case ir.Call(child=child):
                return self._result(child)
            case ir.Builtin(function=function, arguments=arguments):
                is_open = any(keyword.name == "default" for keyword in node.keywords)
                return ANY if is_open else _given_by(function, [*map(self.of, arguments)])
            case ir.Method(method=method):
                return _METHODS.get(method, ANY)
            case ir.Unary(operator="not") | ir.Compare():
                return _BOOLEAN
            case ir.Unary():
                return _arithmetic("+", _INTEGER, self.of(node.operand))
            case ir.Binary(operator=operator, left=left, right=right):
                return _arithmetic(operator, self.of(left), self.of(right))
            case ir.Boolean(operator=operator, operands=operands):
                *before, last = map(self.of, operands)
                if operator == "or":
                    before = [one.without_null() for one in before]
                return join([*before, last])
            case ir.Conditional(then=then, otherwise=otherwise):
                return self.of(then) | self.of(otherwise)
            case ir.ListLiteral(items=items) | ir.TupleLiteral(items=items):
                return _list_of(join(map(self.of, items)))
            case ir.DictLiteral(keys=keys, values=values):
                return _dict_of(keys, [*map(self.of, values)])
            case ir.Index(value=value, index=index):
                return _looked_up(self.of(value), self.of(index))
            case ir.Slice(value=value):
                return join(one for one in (_STRING, _ARRAY) if one.bases & self.of(value).bases)
            case ir.Comprehension(kind="dict"):
                return _OBJECT
            case ir.Comprehension(element=element, conditions=conditions):
                return _ARRAY if conditions else _list_of(self.of(element))  # it may well be empty
        return _STRING

    def _result(self, child: str) -> TypeSet:
        """What a child gives."""
        if child not in self._results:
            tool = self._tools.get(child)
            declared = None if tool is None else tool.definition.signature.result
            self._results[child] = (
                ANY if declared is None else declared_type(declared, is_result=True)
            )
        return self._results[child]


_BINDING = (ir.Assign, ir.Update, ir.For, ir.Comprehension)


def _constant(value: Any) -> TypeSet:
    if isinstance(value, float) and value.is_integer():  # which JSON does not tell from an integer
        return _NUMBER
    return TypeSet.one_of([value])


def _list_of(items: TypeSet) -> TypeSet:
    return _ARRAY if items.is_never or _depth(items) > _DEEPEST else TypeSet.list_of(items)


def _dict_of(keys: Sequence[ir.Expression], values: Sequence[TypeSet]) -> TypeSet:
    names = [key.value for key in keys if isinstance(key, ir.Constant)]
    fields = {name: t for name, t in zip(names, values, strict=False) if isinstance(name, str)}
    if len(fields) < len(keys) or any(t.is_never or _depth(t) > _DEEPEST for t in values):
        return _OBJECT  # a key that is worked out may be any of them
    return TypeSet.object_with(fields)


def _depth(type_: TypeSet) -> int:
    """Levels of lists and objects, so that values that grow stay cheap to compare."""
    inside = [one.items for one in type_.alternatives if one.items is not None]
    inside += [part for one in type_.alternatives for _, part in one.fields]
    return 1 + max(map(_depth, inside), default=0)


def _element(type_: TypeSet) -> TypeSet:
    """What a loop over a value meets: items, characters, keys."""
    lists = [one.items or ANY for one in type_.alternatives if one.base == "array"]
    return join([*lists, *([_STRING] if type_.bases & {"string", "object"} else [])])


def _looked_up(type_: TypeSet, index: TypeSet) -> TypeSet:
    """What ``value[index]`` gives; anything when Python would refuse it."""
    key = (index.constant() or (None,))[0]
    found = []
    for one in type_.alternatives:
        if one.base == "object":
            found.append(dict(one.fields).get(key, ANY) if isinstance(key, str) else ANY)
        elif one.base in _REPEATED:
            found.append(_STRING if one.base == "string" else one.items or ANY)
    return join(found) if found or type_.is_never else ANY


def _arithmetic(operator: ir.BinaryOperator, left: TypeSet, right: TypeSet) -> TypeSet:
    """What an operator makes of two operands; anything when Python would refuse them."""
    if left.is_never or right.is_never:
        return NEVER
    bases: set[Base] = set()
    for one, two in itertools.product(left.bases, right.bases):
        if one in _NUMERIC and two in _NUMERIC:
            is_real = operator in {"/", "**"} or "number" in {one, two}
            bases.add("number" if is_real else "integer")
        elif operator == "+" and one == two and one in _REPEATED:
            bases.add(one)
        elif operator == "*" and {one, two} & _NUMERIC:
            bases |= {one, two} & _REPEATED
    return TypeSet.of(*sorted(bases)) if bases else ANY


def _given_by(name: str, given: Sequence[TypeSet]) -> TypeSet:
    """What a function of the language gives."""
    if name in {"max", "min"}:
        return _element(given[0]) if len(given) == 1 else join(given)
    if name in {"list", "sorted"}:
        return _list_of(_element(given[0]))
    return ANY if name == "sum" and len(given) > 1 else _FUNCTIONS[name]


_FUNCTIONS: Mapping[str, TypeSet] = {
    **dict.fromkeys(("all", "any", "bool", "is_close", "isfinite"), _BOOLEAN),
    **dict.fromkeys(("enumerate", "zip"), TypeSet.list_of(_ARRAY)),
    **dict.fromkeys(("abs", "float", "round", "sum"), _NUMBER),
    **dict.fromkeys(("int", "len"), _INTEGER),
    "range": TypeSet.list_of(_INTEGER),
    "str": _STRING,
}
_METHODS: Mapping[str, TypeSet] = {
    **dict.fromkeys(("capitalize", "join", "lower", "lstrip", "replace", "rstrip"), _STRING),
    **dict.fromkeys(("strip", "title", "upper"), _STRING),
    **dict.fromkeys(("endswith", "isalpha", "isdigit", "startswith"), _BOOLEAN),
    **dict.fromkeys(("count", "find", "index"), _INTEGER),
    **dict.fromkeys(("keys", "split", "splitlines"), TypeSet.list_of(_STRING)),
    **dict.fromkeys(("items", "values"), _ARRAY),
}
