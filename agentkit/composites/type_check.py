"""Types across the calls of a composite: its children's L1 against what flows into them.

A variable has one type: the union of all that is assigned to it anywhere. Only certain misfits are
told, such as text where a number is declared or a constant outside an ``enum``. What is not
declared may be anything.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from agentkit.composites import language as ir
from agentkit.composites.problems import Fault
from agentkit.messages import JsonObject
from agentkit.tools.schema_validator import fits
from agentkit.tools.tool import Tool
from agentkit.tools.types.declared import declared_type
from agentkit.tools.types.lattice import ANY, NEVER, Alternative, Base, TypeSet, join, json_text

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
_WORDS_ONLY = {"default", "description", "examples", "title"}

_BOOLEAN, _INTEGER, _NUMBER, _STRING, _ARRAY, _OBJECT, _NULL = (
    TypeSet.of(base)
    for base in ("boolean", "integer", "number", "string", "array", "object", "null")
)
_Names: TypeAlias = Mapping[str, TypeSet]


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
    types = _Types(tools)
    names = types.variables(program, parameters)
    faults: list[Fault] = []
    returned: list[TypeSet] = []
    types.faults = faults
    for statement in ir.statements(program.body):
        for value in ir.parts(statement):
            if isinstance(value, ir.EXPRESSIONS):
                found = types.of(value, names)  # type: ignore[arg-type]  # one of the expressions
                if isinstance(statement, ir.Return):
                    returned.append(found)
                    faults += _result_faults(statement.value, found, result)
    known = join(returned)
    return faults, None if known.is_never else _schema(known)


def _result_faults(node: ir.Expression, found: TypeSet, rule: JsonObject | None) -> Iterator[Fault]:
    why = "" if rule is None else _mismatch(node, found, rule, rule)
    if why and rule is not None:
        message = f"this is returned, but it does not fit the declared result: {why}"
        yield Fault(node, "result_type", message, f"The result is declared as {_rules(rule):.200}.")


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
    """Tells the types of expressions, and notes arguments that can not fit.

    Attributes:
        faults: Certain misfits; None as long as the types of variables are being worked out.
    """

    def __init__(self, tools: Mapping[str, Tool]) -> None:
        self.faults: list[Fault] | None = None
        self._tools = tools
        self._results: dict[str, TypeSet] = {}

    def variables(self, program: ir.Program, parameters: JsonObject) -> _Names:
        """The type of each variable: of all that is assigned to it."""
        names: dict[str, TypeSet] = {}
        properties = parameters.get("properties", {})
        for parameter in program.parameters:
            schema, default = properties.get(parameter.name, {}), parameter.default
            declared = declared_type(schema, root=parameters, is_result=True)
            names[parameter.name] = (
                declared if default is None else declared | _constant(default.value)
            )
        for _ in range(_PASSES):
            before = dict(names)
            for statement in ir.statements(program.body):
                for name, type_ in self._assigned(statement, names).items():
                    names[name] = _shallow(names.get(name, NEVER) | type_)
            if names == before:
                return names
        return names | dict.fromkeys((target for target, _ in ir.assigned(program.body)), ANY)

    def _assigned(self, node: ir.Statement, names: _Names) -> dict[str, TypeSet]:
        match node:
            case ir.Assign(targets=(target,), value=value):
                return {target: self.of(value, names)}
            case ir.Assign(targets=targets, value=ir.TupleLiteral(items=items)) if len(
                items
            ) == len(targets):
                return {
                    target: self.of(item, names)
                    for target, item in zip(targets, items, strict=True)
                }
            case ir.Assign(targets=targets, value=value):
                return dict.fromkeys(targets, _element(self.of(value, names)))
            case ir.Update(target=target, operator=operator, value=value):
                old = names.get(target, NEVER)
                return {target: _arithmetic(operator, old, self.of(value, names))}
            case ir.For(targets=targets, source=source):
                return self._items(targets, source, names)
        return {}

    def _items(
        self, targets: Sequence[str], source: ir.Expression, names: _Names
    ) -> dict[str, TypeSet]:
        """What the variables of a loop are."""
        match source:
            case _ if len(targets) == 1:
                return {targets[0]: _element(self.of(source, names))}
            case ir.Builtin(function="enumerate", arguments=(items, *_)):
                parts = [_INTEGER, _element(self.of(items, names))]
            case ir.Builtin(function="zip", arguments=arguments):
                parts = [_element(self.of(items, names)) for items in arguments]
            case ir.Method(method="items"):
                parts = [_STRING, ANY]
            case _:
                parts = [_element(_element(self.of(source, names)))] * len(targets)
        return dict(zip(targets, parts, strict=False))

    def _all(self, nodes: Iterable[ir.Expression], names: _Names) -> list[TypeSet]:
        return [self.of(node, names) for node in nodes]

    def of(self, node: ir.Expression, names: _Names) -> TypeSet:
        """The type of an expression."""
        match node:
            case ir.Constant(value=value):
                return _constant(value)
            case ir.Name(name=name):
                return names.get(name, NEVER)
            case ir.Call():
                return self._call(node, names)
            case ir.Builtin(function=function):
                self._all((keyword.value for keyword in node.keywords), names)
                is_open = any(keyword.name == "default" for keyword in node.keywords)
                given = self._all(node.arguments, names)
                return ANY if is_open else _function_result(function, given)
            case ir.Method(method=method, receiver=receiver):
                self._all((receiver, *node.arguments), names)
                return _METHODS.get(method, ANY)
            case ir.Unary(operator="-", operand=ir.Constant(value=int() | float() as value)):
                return _constant(-value)
            case ir.Unary(operator=operator, operand=operand):
                signed = _number(self.of(operand, names))
                return _BOOLEAN if operator == "not" else signed
            case ir.Binary(operator=operator, left=left, right=right):
                return _arithmetic(operator, self.of(left, names), self.of(right, names))
            case ir.Boolean(operator=operator, operands=operands):
                *before, last = self._all(operands, names)
                if operator == "or":
                    before = [one.without_null() for one in before]
                return join([*before, last])
            case ir.Conditional(test=test, then=then, otherwise=otherwise):
                self.of(test, names)
                return self.of(then, names) | self.of(otherwise, names)
            case ir.ListLiteral(items=items) | ir.TupleLiteral(items=items):
                return _list_of(join(self._all(items, names)))
            case ir.DictLiteral(keys=keys, values=values):
                self._all(keys, names)
                return _dict_of(keys, self._all(values, names))
            case ir.Index(value=value, index=index):
                return _looked_up(self.of(value, names), self.of(index, names))
            case ir.Comprehension():
                return self._comprehension(node, names)
            case ir.Slice(value=value):
                found, *_ = self._all(ir.operands(node), names)
                return join([_plain_text(found), _ARRAY] if found.bases & {"array"} else [found])
        self._all(ir.operands(node), names)
        return _BOOLEAN if isinstance(node, ir.Compare) else _STRING

    def _call(self, node: ir.Call, names: _Names) -> TypeSet:
        """What a child gives; its arguments are checked against its L1."""
        given = [(argument, self.of(argument.value, names)) for argument in node.arguments]
        tool = self._tools.get(node.child)
        if tool is None:
            return ANY
        signature = tool.definition.signature
        for argument, type_ in given if self.faults is not None else ():
            rule = signature.properties.get(argument.name)
            why = _mismatch(argument.value, type_, rule, signature.parameters)
            if why and rule is not None and self.faults is not None:
                message = f"`{argument.name}` of `{tool.name}` can not take this: {why}"
                advice = f"`{argument.name}` is declared as {_rules(rule):.200}."
                self.faults.append(Fault(argument.value, "argument_type", message, advice))
        if tool.name not in self._results:
            declared = signature.result
            self._results[tool.name] = (
                ANY if declared is None else declared_type(declared, is_result=True)
            )
        return self._results[tool.name]

    def _comprehension(self, node: ir.Comprehension, names: _Names) -> TypeSet:
        inside = {**names, **self._items(node.targets, node.source, names)}
        self._all([node.source], names)
        *_, element = self._all(ir.within(node), inside)
        if node.kind == "dict":
            return _OBJECT
        return _ARRAY if node.conditions else _list_of(element)  # it may well be empty


def _constant(value: Any) -> TypeSet:
    if isinstance(value, float) and value.is_integer():  # which JSON does not tell from an integer
        return _NUMBER
    return TypeSet.one_of([value])


def _list_of(items: TypeSet) -> TypeSet:
    return _ARRAY if items.is_never else _shallow(TypeSet.list_of(items))


def _dict_of(keys: Sequence[ir.Expression], values: Sequence[TypeSet]) -> TypeSet:
    names = [key.value for key in keys if isinstance(key, ir.Constant)]
    if len(names) != len(keys) or any(value.is_never for value in values):
        return _OBJECT  # a key that is worked out may be any of them
    fields = {name: t for name, t in zip(names, values, strict=True) if isinstance(name, str)}
    return _shallow(TypeSet.object_with(fields))


def _shallow(type_: TypeSet, levels: int = _DEEPEST) -> TypeSet:
    """A type with no more than some levels, so that values that grow stay cheap to compare."""
    if all(one.items is None and not one.fields for one in type_.alternatives):
        return type_
    cut = []
    for one in type_.alternatives:
        items = None if one.items is None or not levels else _shallow(one.items, levels - 1)
        kept = one.fields if levels else ()
        fields = tuple((name, _shallow(part, levels - 1)) for name, part in kept)
        cut.append(replace(one, items=items, fields=fields))
    return TypeSet.union(cut)


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


def _plain_text(type_: TypeSet) -> TypeSet:
    """The texts among some values, whatever they say."""
    return _STRING if "string" in type_.bases else NEVER


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
        elif operator == "*":
            pairs = ((one, two), (two, one))
            bases |= {many for many, times in pairs if many in _REPEATED and times in _NUMERIC}
    return TypeSet.of(*sorted(bases)) if bases else ANY


def _number(type_: TypeSet) -> TypeSet:
    """The numbers among some values, which a sign or ``abs`` keeps."""
    bases = type_.bases & _NUMERIC
    if not bases:
        return NEVER if type_.is_never else ANY
    return _NUMBER if "number" in bases else _INTEGER


def _function_result(name: str, given: Sequence[TypeSet]) -> TypeSet:
    """What a function of the language gives."""
    first = given[0]
    match name:
        case "max" | "min":
            return _element(first) if len(given) == 1 else join(given)
        case "abs":
            return _number(first)
        case "round":
            return _INTEGER if len(given) == 1 else _number(first)
        case "sum" if len(given) == 1 and not _element(first).is_never:
            return _INTEGER | _number(_element(first))
        case "list" | "sorted":
            return _list_of(_element(first))
    return _FUNCTIONS.get(name, ANY)


_FUNCTIONS: Mapping[str, TypeSet] = {
    **dict.fromkeys(("all", "any", "bool", "is_close", "isfinite"), _BOOLEAN),
    **dict.fromkeys(("enumerate", "zip"), TypeSet.list_of(_ARRAY)),
    "float": _NUMBER,
    "int": _INTEGER,
    "len": _INTEGER,
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


# --- parameters that nobody declared --------------------------------------------------------------

_MAY_SKIP = (ir.Boolean, ir.Compare, ir.Conditional, ir.Comprehension)
"""Expressions that may leave out a call inside them."""


def parameter_schemas(
    program: ir.Program, undeclared: Collection[str], tools: Mapping[str, Tool]
) -> Mapping[str, dict[str, Any]]:
    """What the children demand of the parameters that reach them unchanged.

    Only calls that every run makes count, and only parameters that are never assigned. A
    parameter that reaches several children has the schema on which they agree.

    Args:
        program: The program.
        undeclared: The parameters without an annotation.
        tools: Its children by their name in the library.
    """
    changed = {target for target, _ in ir.assigned(program.body)}
    fixed = {p.name: p for p in program.parameters if p.name in set(undeclared) - changed}
    demands: dict[str, list[dict[str, Any]]] = {}
    for call in _certain_calls(program.body) if fixed else ():
        tool = tools.get(call.child)
        properties = tool.definition.signature.properties if tool else {}
        for argument in call.arguments:
            schema, value = properties.get(argument.name), argument.value
            if not isinstance(schema, Mapping) or '"$' in json_text(schema):
                continue  # it does not mean the same outside the document that holds it
            if isinstance(value, ir.Name) and value.name in fixed:
                bare = {key: rule for key, rule in schema.items() if key not in _WORDS_ONLY}
                demands.setdefault(value.name, []).append(bare)
    agreed = {name: _agreed(found) for name, found in demands.items()}
    return {
        name: schema
        for name, schema in agreed.items()
        if schema and _takes_default(fixed[name], schema)
    }


def _certain_calls(block: ir.Block) -> Iterator[ir.Call]:
    """Calls that are plainly made whichever way the program goes."""
    for statement in block:
        if isinstance(statement, ir.If | ir.For):
            if any(isinstance(node, ir.Return) for node in ir.walk(statement)):
                return
        elif not any(isinstance(node, _MAY_SKIP) for node in ir.walk(statement)):
            yield from ir.calls(statement)


def _agreed(demands: list[dict[str, Any]]) -> dict[str, Any]:
    """The one demand; of numbers and integers the integers; nothing when they differ else."""
    distinct = [one for at, one in enumerate(demands) if one and one not in demands[:at]]
    if len(distinct) == 1:
        return distinct[0]
    if distinct and all(one in ({"type": "integer"}, {"type": "number"}) for one in distinct):
        return {"type": "integer"}
    return {}


def _takes_default(parameter: ir.Parameter, schema: dict[str, Any]) -> bool:
    default = parameter.default
    return default is None or fits(default.value, schema) is not False
