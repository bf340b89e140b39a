"""Types across the calls of a composite: its children's L1 against what flows into them.

Only certain misfits are told: text where a number is declared, a key that an object can not have,
a constant outside an ``enum``. What is not declared may be anything.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from agentkit.composites import language as ir
from agentkit.composites.problems import Fault, Place, placed
from agentkit.errors import SourceProblem
from agentkit.messages import JsonObject
from agentkit.tools.schema import resolve_local
from agentkit.tools.schema_validator import fits
from agentkit.tools.tool import Tool
from agentkit.tools.types.declared import declared_type
from agentkit.tools.types.lattice import ANY, NEVER, Alternative, Base, TypeSet, join, json_text

_PASSES = 6
"""Looks at a loop before the variables that still change count as anything."""

_PRECISE_LOOPS = 2
"""Loops within loops beyond this are looked at once, so that the work stays linear."""

_DEEPEST = 6
_LONGEST = 1_000
"""Characters of a constant that is kept as such."""

_MOST_BRANCHES = 3
"""More types than these together say too little to be declared."""

_WORDS: Mapping[Base, str] = {
    "array": "a list",
    "boolean": "True or False",
    "integer": "an integer",
    "null": "None",
    "number": "a number",
    "object": "a dict",
    "string": "text",
}
_ORDER: tuple[Base, ...] = ("boolean", "integer", "number", "string", "array", "object", "null")
_NUMERIC: frozenset[Base] = frozenset({"boolean", "integer", "number"})
_REPEATED: frozenset[Base] = frozenset({"string", "array"})
_WORDS_ONLY = {"default", "description", "examples", "title"}


@dataclass(frozen=True, kw_only=True, slots=True)
class TypeReport:
    """What the types of a program tell.

    Attributes:
        problems: Certain misfits, in the order of the text.
        result: Schema of what the program returns; None when nothing is known of it.
    """

    problems: tuple[SourceProblem, ...]
    result: JsonObject | None


def type_check(
    program: ir.Program,
    parameters: JsonObject,
    tools: Mapping[str, Tool],
    *,
    result: JsonObject | None = None,
    place: Callable[[object], Place] = lambda _: (1, 1),
) -> TypeReport:
    r"""Check what flows into each child against the child's L1.

    Args:
        program: A program that keeps the static rules; those are not checked again.
        parameters: The schema of its arguments.
        tools: Its children by their name in the library; one that is missing may take and give
            anything.
        result: The schema of its result; None when it is not declared.
        place: Line and column of a node of the program.

    Example:
        >>> from agentkit import tool
        >>> from agentkit.composites.parser import parse
        >>> @tool
        ... def double(x: float) -> float:
        ...     '''Twice a number.'''
        ...     return 2 * x
        >>> parsed = parse("def f(name):\n    return double(name)\n", {"double": double})
        >>> schema = {"type": "object", "properties": {"name": {"type": "string"}}}
        >>> type_check(parsed.program, schema, {"double": double}).problems[0].message
        '`x` of `double` can not take this: it is text'
    """
    faults, found = type_faults(program, parameters, tools, result=result)
    return TypeReport(problems=placed(faults, place), result=found)


def type_faults(
    program: ir.Program,
    parameters: JsonObject,
    tools: Mapping[str, Tool],
    *,
    result: JsonObject | None = None,
) -> tuple[list[Fault], JsonObject | None]:
    """The same before the faults are given a place, and the schema of the result."""
    properties = parameters.get("properties", {})
    names: dict[str, Known] = {}
    for parameter in program.parameters:
        known = _declared(properties.get(parameter.name, {}), parameters)
        if parameter.default is not None:
            known = _joined([known, _constant(parameter.default.value)])
        names[parameter.name] = known
    flow = _Flow(_Expressions(tools), result)
    flow.block(program.body, names)
    returned = [known for known in flow.returned if not known.type.is_never]
    return flow.expressions.faults, _schema(_joined(returned)) if returned else None


# --- what is known of a value ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a value.

    Attributes:
        type: Its type.
        has_items: Whether its lists are taken to have items, as declared ones are: a program that
            only works on empty lists does not work.
        keys: All keys that it can have, when it is an object; None when there may be others.
        item: What each item is, when it is a list of which that is known.
        elements: What is known of each item, when it is a list of known length.
    """

    type: TypeSet = ANY
    has_items: bool = True
    keys: frozenset[str] | None = None
    item: Known | None = None
    elements: tuple[Known, ...] | None = None

    def lacks(self, key: str) -> bool:
        """Whether it is an object that certainly has no such key."""
        return self.keys is not None and key not in self.keys and self.type.bases == {"object"}


Names: TypeAlias = Mapping[str, Known]
"""What is known of each variable at one point of a program."""

_ANYTHING = Known()
_BOOLEAN, _INTEGER, _NUMBER, _STRING = (
    Known(TypeSet.of(base)) for base in ("boolean", "integer", "number", "string")
)
_ARRAY, _OBJECT = TypeSet.of("array"), TypeSet.of("object")


def _joined(many: Iterable[Known]) -> Known:
    """What is known of a value that is one of several."""
    each = tuple(many)
    if len(each) == 1:
        return each[0]
    keys = [known.keys for known in each]
    items = [known.item for known in each if known.item is not None]
    elements = [known.elements for known in each if known.elements is not None]
    lengths = {len(one) for one in elements}
    is_closed = each and all(one is not None for one in keys)
    return Known(
        join(known.type for known in each),
        all(known.has_items for known in each),
        frozenset().union(*(one or () for one in keys)) if is_closed else None,
        _joined(items) if items and len(items) == len(each) else None,
        tuple(map(_joined, zip(*elements, strict=True)))
        if len(lengths) == 1 and len(elements) == len(each)
        else None,
    )


def _list_of(item: Known, *, has_items: bool, elements: Sequence[Known] | None = None) -> Known:
    """A list of such items."""
    type_ = _ARRAY if item.type.is_never else _shallow(TypeSet.list_of(item.type))
    each = None if elements is None else tuple(_flat(one) for one in elements)
    return Known(type_, has_items, item=_flat(item), elements=each)


def _flat(known: Known, levels: int = 2) -> Known:
    """What is known without what is deep inside, so that values that grow stay small."""
    if known.item is None and known.elements is None:
        return known
    if not levels:
        return replace(known, item=None, elements=None)
    elements, item = known.elements, known.item
    return replace(
        known,
        item=None if item is None else _flat(item, levels - 1),
        elements=None if elements is None else tuple(_flat(e, levels - 1) for e in elements),
    )


def _resolved(schema: Any, root: JsonObject) -> Any:
    """A schema, or what it refers to."""
    for _ in range(_DEEPEST):
        if not isinstance(schema, Mapping) or not isinstance(schema.get("$ref"), str):
            break
        schema = resolve_local(root, schema["$ref"])
    return schema


def _closed_keys(schema: Any) -> frozenset[str] | None:
    """The keys that a schema allows; None when it allows others."""
    if not isinstance(schema, Mapping) or schema.get("additionalProperties") is not False:
        return None
    properties = schema.get("properties", {})
    is_closed = isinstance(properties, Mapping) and "patternProperties" not in schema
    return frozenset(properties) if is_closed else None


def _declared(schema: Any, root: JsonObject) -> Known:
    """What a schema tells of a value."""
    keys = _closed_keys(_resolved(schema, root))
    return Known(declared_type(schema, root=root, is_result=True), keys=keys)


def _constant(value: Any) -> Known:
    if isinstance(value, float) and value.is_integer():  # which JSON does not tell from an integer
        return _NUMBER
    return Known(TypeSet.one_of([value]))


def _exactly(type_: TypeSet, value: object) -> TypeSet:
    """A type that is one value only, unless that is long."""
    text = json_text(value)
    if len(text) > _LONGEST:
        return type_
    domain = frozenset([text])
    return TypeSet.union(replace(one, domain=domain) for one in type_.alternatives)


def _constants(values: Sequence[Known]) -> list[Any] | None:
    """The values, when each is known."""
    constants = [known.type.constant() for known in values]
    known = [constant[0] for constant in constants if constant is not None]
    return known if len(known) == len(constants) else None


def _shallow(type_: TypeSet, levels: int = _DEEPEST) -> TypeSet:
    """A type with no more than some levels, so that values that grow stay cheap to compare."""
    if all(one.items is None and not one.fields for one in type_.alternatives):
        return type_
    cut = (
        replace(
            one,
            items=_shallow(one.items, levels - 1) if one.items is not None and levels else None,
            fields=tuple((name, _shallow(part, levels - 1)) for name, part in one.fields)
            if levels
            else (),
        )
        for one in type_.alternatives
    )
    return TypeSet.union(cut)


def _element(known: Known) -> Known:
    """What a loop over a value meets: items, characters, keys."""
    if known.item is not None:
        return known.item
    if known.type.is_any:
        return _ANYTHING
    found = []
    for one in known.type.alternatives:
        if one.base == "array":
            found.append(one.items or ANY)
        elif one.base in {"string", "object"}:
            found.append(_STRING.type)
    return Known(join(found), known.has_items)


def _is_list(known: Known) -> bool:
    """Whether a loop over a value has a turn: a declared list is taken to have items."""
    return known.has_items and known.type.bases == {"array"}


def _values(known: Known) -> TypeSet:
    """What an object holds under any of its keys."""
    if known.keys is None or not all(one.base == "object" for one in known.type.alternatives):
        return ANY
    fields = [dict(one.fields) for one in known.type.alternatives]
    return join(types.get(key, ANY) for types in fields for key in known.keys)


def _looked_up(known: Known, index: Known) -> Known:
    """What ``value[index]`` gives; anything when Python would refuse it."""
    if known.type.is_any:
        return _ANYTHING
    constant = index.type.constant()
    key = constant[0] if constant is not None else None
    elements = known.elements or ()
    if type(key) is int and -len(elements) <= key < len(elements):
        return elements[key]
    if known.item is not None:
        return known.item
    found: list[TypeSet] = []
    for one in known.type.alternatives:
        if one.base == "string":
            found.append(_STRING.type)
        elif one.base == "array":
            found.append(one.items or ANY)
        elif one.base == "object":
            field = dict(one.fields).get(key, ANY) if isinstance(key, str) else _values(known)
            found.append(field)
    return Known(join(found) if found else ANY, known.has_items)


def _words(type_: TypeSet) -> str:
    """A type in words, such as ``text or None``."""
    return " or ".join(_WORDS[base] for base in sorted(type_.bases)) or "nothing"


# --- whether it fits ------------------------------------------------------------------------------


def mismatch(given: Known, schema: Any, root: JsonObject, *, depth: int = 0) -> str:
    """Why no such value satisfies a schema; empty when one may."""
    schema = _resolved(schema, root)
    if given.type.is_never or not isinstance(schema, Mapping):
        return ""
    constant = given.type.constant()
    if constant is not None:
        value = constant[0]
        # Python lets True stand for 1, and so do functions that declare a number.
        stand_ins = [value, int(value)] if isinstance(value, bool) else [value]
        if all(fits(item, schema, root=root) is False for item in stand_ins):
            return f"{value!r:.80} breaks {_rules(schema):.160}"
        return ""
    wanted = _bare(declared_type(schema, root=root), has_items=True)
    loose = _bare(given.type, has_items=given.has_items)
    if not loose.bases & _with_numbers(wanted.bases):
        return f"it is {_words(given.type)}"
    why = _misfit_inside(given, schema, root, depth) if depth < _DEEPEST else ""
    if not why and (loose & wanted).is_never:
        return f"it is {loose}, and not {wanted}"
    return why


def _misfit_inside(given: Known, schema: JsonObject, root: JsonObject, depth: int) -> str:
    """Why the items of a list, or the keys of an object, do not fit."""
    bases = given.type.bases
    if bases == {"array"} and given.elements is not None:
        prefix = schema.get("prefixItems")
        rules = prefix if isinstance(prefix, list) else []
        for at, element in enumerate(given.elements):
            rule = rules[at] if at < len(rules) else schema.get("items", True)
            why = mismatch(element, rule, root, depth=depth + 1)
            if why:
                return f"of item {at}, {why}"
    if bases != {"object"} or given.keys is None:
        return ""
    missing = [name for name in schema.get("required", ()) if name not in given.keys]
    if missing and declared_type(schema, root=root).bases == {"object"}:
        return f"it has no key {missing[0]!r}"
    allowed = _closed_keys(schema)
    certain = [{name for name, _ in one.fields} for one in given.type.alternatives]
    unknown = set() if allowed is None else set.intersection(*certain) - allowed
    if unknown:
        return f"it has a key {min(unknown)!r}, which is not among {sorted(allowed or ())}"
    return ""


def _with_numbers(bases: frozenset[Base]) -> frozenset[Base]:
    """Types that Python takes where these are declared: any number for a number."""
    return bases | _NUMERIC if bases & {"integer", "number"} else bases


def _rules(schema: JsonObject) -> str:
    """A schema without its words, for a message."""
    return str({key: rule for key, rule in schema.items() if key not in {"default", "description"}})


def _bare(type_: TypeSet, *, has_items: bool) -> TypeSet:
    """A type as far as values certainly differ by it: meanings are no more than hints."""
    made = []
    for one in type_.alternatives:
        items = None if one.items is None or not has_items else _bare(one.items, has_items=True)
        fields = tuple((name, _bare(part, has_items=has_items)) for name, part in one.fields)
        made.append(replace(one, meaning="", items=items, fields=fields))
        if one.base == "boolean":  # which stands for a number
            made.append(Alternative(base="number"))
    return TypeSet.union(made)


def _schema(known: Known) -> dict[str, Any] | None:
    """A schema that all such values satisfy; None when nothing is known of them."""
    bases = known.type.bases - ({"integer"} if "number" in known.type.bases else set())
    if known.type.is_any or not 0 < len(bases) <= _MOST_BRANCHES:
        return None
    branches = []
    for base in _ORDER:
        if base in bases:
            same = [one for one in known.type.alternatives if one.base == base]
            branches.append(_branch(base, same, known.keys))
    return branches[0] if len(branches) == 1 else {"anyOf": branches}


def _branch(base: Base, same: Sequence[Alternative], keys: frozenset[str] | None) -> dict[str, Any]:
    if base == "array":
        return {"items": _schema(Known(join(one.items or ANY for one in same))) or {}, "type": base}
    common = set.intersection(*({name for name, _ in one.fields} for one in same))
    if base != "object" or not common:
        return {"type": base}
    properties = {
        name: _schema(Known(join(dict(one.fields)[name] for one in same))) or {}
        for name in sorted(common)
    }
    required = {"required": sorted(common)} if keys is not None else {}
    return {"properties": properties, "type": base, **required}


# --- expressions ----------------------------------------------------------------------------------


class _Expressions:
    """Reads expressions, and notes what can not go well.

    Attributes:
        faults: Certain misfits, in the order in which they were met.
        is_silent: Whether faults are left for a later look, when more is known.
    """

    def __init__(self, tools: Mapping[str, Tool]) -> None:
        self.faults: list[Fault] = []
        self.is_silent = False
        self._tools = tools
        self._results: dict[str, Known] = {}

    def report(self, fault: Fault) -> None:
        """Note a fault, unless this is a first look."""
        if not self.is_silent:
            self.faults.append(fault)

    def all(self, nodes: Iterable[ir.Expression], names: Names) -> list[Known]:
        """What is known of several expressions."""
        return [self.known(node, names) for node in nodes]

    def known(self, node: ir.Expression, names: Names) -> Known:
        """What is known of an expression."""
        match node:
            case ir.Constant(value=value):
                return _constant(value)
            case ir.Name(name=name):
                return names.get(name, _ANYTHING)
            case ir.Call():
                return self.call(node, names)
            case ir.Builtin(function=function):
                arguments = self.all(node.arguments, names)
                keywords = self.all((keyword.value for keyword in node.keywords), names)
                return _function_result(function, arguments, keywords)
            case ir.Method(method=method, receiver=receiver):
                known = self.known(receiver, names)
                return _method_result(known, method, self.all(node.arguments, names))
            case ir.Unary(operator=operator, operand=operand):
                return _signed(operator, self.known(operand, names))
            case ir.Binary(operator=operator, left=left, right=right):
                return arithmetic(operator, self.known(left, names), self.known(right, names))
            case ir.Compare(operands=operands):
                self.all(operands, names)
                return _BOOLEAN
            case ir.Boolean():
                return self._boolean(node, names)
            case ir.Conditional():
                return self._conditional(node, names)
            case ir.ListLiteral(items=items) | ir.TupleLiteral(items=items):
                return self._list(self.all(items, names))
            case ir.DictLiteral(keys=keys, values=values):
                return self._dict(self.all(keys, names), self.all(values, names))
            case ir.Index():
                return self._index(node, names)
            case ir.Slice(value=value):
                self.all((b for b in (node.start, node.stop, node.step) if b is not None), names)
                known = self.known(value, names)
                if known.type.bases == {"array"}:
                    return _list_of(_element(known), has_items=False)
                return _STRING if known.type.bases == {"string"} else _ANYTHING
            case ir.Format(parts=parts):
                self.all(parts, names)
                return _STRING
            case ir.Comprehension():
                return self._comprehension(node, names)

    def call(self, node: ir.Call, names: Names) -> Known:
        """What a child gives; its arguments are checked against its L1."""
        tool = self._tools.get(node.child)
        for argument in node.arguments:
            given = self.known(argument.value, names)
            if tool is not None:
                self._check_argument(tool, argument, given)
        if tool is None:
            return _ANYTHING
        if tool.name not in self._results:
            schema = tool.definition.signature.result
            self._results[tool.name] = _ANYTHING if schema is None else _declared(schema, schema)
        return self._results[tool.name]

    def _check_argument(self, tool: Tool, argument: ir.Argument, given: Known) -> None:
        signature = tool.definition.signature
        rule = signature.properties.get(argument.name)
        why = mismatch(given, rule, signature.parameters)
        if why and rule is not None:
            message = f"`{argument.name}` of `{tool.name}` can not take this: {why}"
            advice = f"`{argument.name}` is declared as {_rules(rule):.200}."
            self.report(Fault(argument.value, "argument_type", message, advice))

    def _boolean(self, node: ir.Boolean, names: Names) -> Known:
        """Each operand is met only when those before it were true (``and``) or false (``or``)."""
        goes_on = node.operator == "and"
        found: list[Known] = []
        current: Names | None = names
        for operand in node.operands:
            if current is None:
                break
            known = self.known(operand, current)
            if not goes_on and operand is not node.operands[-1]:
                known = replace(known, type=known.type.without_null())
            found.append(known)
            current = narrowed(current, operand, truth=goes_on)
        return _joined(found)

    def _conditional(self, node: ir.Conditional, names: Names) -> Known:
        self.known(node.test, names)
        found = []
        for branch, truth in ((node.then, True), (node.otherwise, False)):
            inside = narrowed(names, node.test, truth=truth)
            if inside is not None:
                found.append(self.known(branch, inside))
        return _joined(found)

    def _list(self, items: Sequence[Known]) -> Known:
        if not items:
            return Known(TypeSet.one_of([[]]), has_items=False)
        has_items = all(item.has_items for item in items)
        known = _list_of(_joined(items), has_items=has_items, elements=items)
        values = _constants(items)
        return known if values is None else replace(known, type=_exactly(known.type, values))

    def _dict(self, keys: Sequence[Known], values: Sequence[Known]) -> Known:
        names = _constants(keys)
        if names is None or not all(isinstance(name, str) for name in names):
            return Known(_OBJECT)  # a key that is worked out may be any of them
        fields = {name: value.type for name, value in zip(names, values, strict=True)}
        type_ = _shallow(TypeSet.object_with({n: t for n, t in fields.items() if not t.is_never}))
        exact = _constants(values)
        return Known(
            type_ if exact is None else _exactly(type_, dict(zip(names, exact, strict=True))),
            all(value.has_items for value in values),
            frozenset(names),
        )

    def _index(self, node: ir.Index, names: Names) -> Known:
        known, index = self.known(node.value, names), self.known(node.index, names)
        constant = index.type.constant()
        key = constant[0] if constant is not None else None
        if isinstance(key, str) and known.lacks(key):
            keys = ", ".join(map(repr, sorted(known.keys or ()))) or "none at all"
            message = f"there is no key {key!r} here"
            self.report(Fault(node.index, "argument_type", message, f"The keys are {keys}."))
            return _ANYTHING
        return _looked_up(known, index)

    def _comprehension(self, node: ir.Comprehension, names: Names) -> Known:
        source = self.known(node.source, names)
        inside: Names | None = {**names, **assigned(node.targets, _element(source))}
        for condition in node.conditions:
            if inside is not None:
                self.known(condition, inside)
                inside = narrowed(inside, condition, truth=True)
        if inside is None:
            return Known(_OBJECT if node.kind == "dict" else _ARRAY)
        element = self.known(node.element, inside)
        if node.key is not None:
            self.known(node.key, inside)
            return Known(_OBJECT)
        has_items = _is_list(source) and element.has_items and not node.conditions
        return _list_of(element, has_items=has_items)


def assigned(targets: Sequence[str], known: Known) -> dict[str, Known]:
    """What the targets of an assignment or a loop are."""
    if len(targets) == 1:
        return {targets[0]: known}
    if known.elements is not None and len(known.elements) == len(targets):
        return dict(zip(targets, known.elements, strict=True))
    return dict.fromkeys(targets, _element(known))


def arithmetic(operator: ir.BinaryOperator, left: Known, right: Known) -> Known:
    """What an operator makes of two operands; anything when Python would refuse them."""
    bases: set[Base] = set()
    for one, two in itertools.product(left.type.bases, right.type.bases):
        bases |= _result_bases(operator, one, two)
    if not bases:
        is_never = left.type.is_never or right.type.is_never
        return Known(NEVER) if is_never else _ANYTHING
    if "array" not in bases:
        return Known(TypeSet.of(*bases))
    sides = [side for side in (left, right) if "array" in side.type.bases]
    items = [_element(side) for side in sides if side.type.constant() != ([],)]
    listed = _list_of(_joined(items), has_items=False)
    others = bases - {"array"}
    return Known(listed.type | TypeSet.of(*others), has_items=False) if others else listed


def _result_bases(operator: ir.BinaryOperator, left: Base, right: Base) -> set[Base]:
    if left in _NUMERIC and right in _NUMERIC:
        return {"number"} if operator in {"/", "**"} or "number" in {left, right} else {"integer"}
    if operator == "+" and left == right and left in _REPEATED:
        return {left}
    if operator == "*":
        pairs = ((left, right), (right, left))
        return {one for one, other in pairs if one in _REPEATED and other in _NUMERIC}
    return set()


def _signed(operator: ir.UnaryOperator, operand: Known) -> Known:
    if operator == "not":
        return _BOOLEAN
    constant = operand.type.constant()
    if constant is not None and type(constant[0]) in {int, float}:
        return _constant(-constant[0] if operator == "-" else constant[0])
    return _number(operand.type)


def _number(type_: TypeSet) -> Known:
    """The numbers among some values, which a sign or ``abs`` keeps."""
    bases = type_.bases & _NUMERIC
    if not bases:
        return _ANYTHING
    return _NUMBER if "number" in bases else _INTEGER


def _function_result(name: str, given: Sequence[Known], keywords: Sequence[Known]) -> Known:
    """What a function of the language gives."""
    first = given[0]
    match name:
        case "max" | "min" if len(given) == 1:
            return _joined([_element(first), *keywords])
        case "max" | "min":
            return _joined(given)
        case "abs":
            return _number(first.type)
        case "round":
            return _INTEGER if len(given) == 1 else _number(first.type)
        case "sum" if len(given) == 1:
            item = _element(first).type
            return _INTEGER if item.is_never else _joined([_INTEGER, _number(item)])
        case "list" | "sorted":
            return _list_of(_element(first), has_items=_is_list(first))
        case "enumerate":
            return _tuples([_INTEGER, _element(first)])
        case "zip":
            return _tuples([_element(known) for known in given])
        case "sum":
            return _ANYTHING
    return _FUNCTIONS[name]


def _method_result(receiver: Known, name: str, given: Sequence[Known]) -> Known:
    """What a method of the language gives."""
    if name in _METHODS:
        return _METHODS[name]
    if "object" not in receiver.type.bases:
        return _ANYTHING
    if name == "get":
        default = given[1] if len(given) > 1 else _constant(None)
        if receiver.type.is_any:
            return _ANYTHING
        return _joined([_looked_up(receiver, given[0]), default])
    values = Known(_values(receiver))
    if name == "items":
        return _tuples([_STRING, values])
    return _list_of(values, has_items=False)


def _tuples(parts: Sequence[Known]) -> Known:
    """What a loop may meet several targets for."""
    item = _list_of(_joined(parts), has_items=True, elements=parts)
    return _list_of(item, has_items=False)


_TEXTS = Known(TypeSet.list_of(_STRING.type), has_items=False)
_FUNCTIONS: Mapping[str, Known] = {
    **dict.fromkeys(("all", "any", "bool", "is_close", "isfinite"), _BOOLEAN),
    "float": _NUMBER,
    "int": _INTEGER,
    "len": _INTEGER,
    "range": Known(TypeSet.list_of(_INTEGER.type), has_items=False),
    "str": _STRING,
}
_METHODS: Mapping[str, Known] = {
    **dict.fromkeys(("capitalize", "join", "lower", "lstrip", "replace", "rstrip"), _STRING),
    **dict.fromkeys(("strip", "title", "upper"), _STRING),
    **dict.fromkeys(("endswith", "isalpha", "isdigit", "startswith"), _BOOLEAN),
    **dict.fromkeys(("count", "find", "index"), _INTEGER),
    **dict.fromkeys(("keys", "split", "splitlines"), _TEXTS),
}


# --- statements -----------------------------------------------------------------------------------


class _Flow:
    """One way through the statements of a program, all branches at once."""

    def __init__(self, expressions: _Expressions, result: JsonObject | None) -> None:
        self.expressions = expressions
        self.returned: list[Known] = []
        self._result = result
        self._loops: list[list[Names]] = []  # variables at each break and continue, by loop

    def block(self, statements: ir.Block, names: Names) -> Names | None:
        """The variables behind a block; None when it always leaves."""
        current: Names | None = names
        for statement in statements:
            if current is None:
                return None
            current = self._statement(statement, current)
        return current

    def _statement(self, node: ir.Statement, names: Names) -> Names | None:
        known = self.expressions.known
        match node:
            case ir.Assign(targets=targets, value=value):
                return {**names, **assigned(targets, known(value, names))}
            case ir.Update(target=target, operator=operator, value=value):
                old = names.get(target, _ANYTHING)
                return {**names, target: arithmetic(operator, old, known(value, names))}
            case ir.Do(call=call):
                known(call, names)
                return names
            case ir.If():
                return self._if(node, names)
            case ir.For():
                return self._for(node, names)
            case ir.Return():
                self._return(node, names)
            case ir.Break() | ir.Continue():
                self._loops[-1].append(names)
        return None

    def _return(self, node: ir.Return, names: Names) -> None:
        known, rule = self.expressions.known(node.value, names), self._result
        self.returned.append(known)
        why = "" if rule is None else mismatch(known, rule, rule)
        if why and rule is not None:
            message = f"this is returned, but it does not fit the declared result: {why}"
            rules = {key: value for key, value in rule.items() if key != "description"}
            advice = f"The result is declared as {rules!s:.200}."
            self.expressions.report(Fault(node.value, "result_type", message, advice))

    def _if(self, node: ir.If, names: Names) -> Names | None:
        self.expressions.known(node.test, names)
        behind = []
        for branch, truth in ((node.then, True), (node.otherwise, False)):
            inside = narrowed(names, node.test, truth=truth)
            left = None if inside is None else self.block(branch, inside)
            if left is not None:
                behind.append(left)
        return _merged(behind) if behind else None

    def _for(self, node: ir.For, names: Names) -> Names:
        source = self.expressions.known(node.source, names)
        if _element(source).type.is_never:
            return names
        was_silent, returned = self.expressions.is_silent, len(self.returned)
        self.expressions.is_silent = True
        item = assigned(node.targets, _element(source))
        entry, left = self._settled(node, names, item)
        self.expressions.is_silent = was_silent
        if not was_silent:  # now that all is known, once more for the faults
            del self.returned[returned:]
            _, left = self._turn(node, entry, item)
        return _merged([entry, *left])

    def _settled(self, node: ir.For, names: Names, item: Names) -> tuple[Names, list[Names]]:
        """The variables at the start of any turn, and at its breaks."""
        entry = names
        for _ in range(_PASSES if len(self._loops) < _PRECISE_LOOPS else 0):
            ends, left = self._turn(node, entry, item)
            grown = _merged([entry, *ends])
            if grown == entry:
                return entry, left
            entry = grown
        changed = (target for target, _ in ir.assigned(node.body))
        entry = {**entry, **dict.fromkeys(changed, _ANYTHING)}
        return entry, self._turn(node, entry, item)[1]

    def _turn(self, node: ir.For, entry: Names, item: Names) -> tuple[list[Names], list[Names]]:
        """The variables at the ends of one turn, and at its breaks."""
        self._loops.append([])
        end = self.block(node.body, {**entry, **item})
        jumps = self._loops.pop()
        return [*jumps, *([] if end is None else [end])], jumps


def _merged(ways: Iterable[Names]) -> Names:
    """What the variables can be when several ways meet."""
    merged: dict[str, Known] = {}
    for names in ways:
        for name, known in names.items():
            merged[name] = _joined([merged[name], known]) if name in merged else known
    return merged


def narrowed(names: Names, test: ir.Expression, *, truth: bool) -> Names | None:
    """The variables behind a test that came out ``truth``; None when it can not come out so.

    ``x is None``, ``x == None``, plain ``x``, ``"key" in x``, and these joined by ``not``,
    ``and`` and ``or`` are understood; any other test tells nothing.
    """
    match test:
        case ir.Unary(operator="not", operand=operand):
            return narrowed(names, operand, truth=not truth)
        case ir.Boolean(operator=operator, operands=operands) if (operator == "and") == truth:
            current: Names | None = names
            for operand in operands:
                current = None if current is None else narrowed(current, operand, truth=truth)
            return current
        case ir.Name(name=name) if truth:
            return _without_null(names, name)
        case ir.Compare(
            operators=("is" | "==" | "is not" | "!=" as operator,),
            operands=(ir.Name(name=name), ir.Constant(value=None)),
        ):
            if (operator in {"is", "=="}) != truth:
                return _without_null(names, name)
            known = names.get(name, _ANYTHING)
            return {**names, name: _constant(None)} if "null" in known.type.bases else None
        case ir.Compare(
            operators=("in" | "not in" as operator,),
            operands=(ir.Constant(value=str(key)), ir.Name(name=name)),
        ):
            has_key = (operator == "in") == truth
            return None if has_key and names.get(name, _ANYTHING).lacks(key) else names
    return names


def _without_null(names: Names, name: str) -> Names | None:
    """The variables when one of them is not None; None when it can be nothing else."""
    known = names.get(name, _ANYTHING)
    if known.type.bases == {"null"}:
        return None
    return {**names, name: replace(known, type=known.type.without_null())}


# --- parameters that nobody declared --------------------------------------------------------------


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
            if schema is not None and isinstance(value, ir.Name) and _stands_alone(schema):
                bare = {key: rule for key, rule in schema.items() if key not in _WORDS_ONLY}
                demands.setdefault(value.name, []).append(bare)
    agreed = {name: _agreed(found) for name, found in demands.items() if name in fixed}
    return {
        name: schema
        for name, schema in agreed.items()
        if schema and _takes_default(fixed[name], schema)
    }


def _certain_calls(block: ir.Block) -> Iterator[ir.Call]:
    """Calls that are made whichever way the program goes, unless an operation fails."""
    for statement in block:
        for part in ir.parts(statement):
            if not isinstance(part, ir.STATEMENTS):
                yield from _certain(part)
        if isinstance(statement, ir.If | ir.For) and any(
            isinstance(node, ir.Return) for node in ir.walk(statement)
        ):
            return


def _certain(node: ir.Node) -> Iterator[ir.Call]:
    match node:
        case ir.Conditional(test=certain) | ir.Comprehension(source=certain):
            yield from _certain(certain)
        case ir.Boolean(operands=(first, *_)):
            yield from _certain(first)
        case ir.Compare(operands=(first, second, *_)):
            yield from itertools.chain(_certain(first), _certain(second))
        case _:
            if isinstance(node, ir.Call):
                yield node
            for part in ir.parts(node):
                yield from _certain(part)


def _stands_alone(schema: Any) -> bool:
    """Whether a schema means the same outside the document that holds it."""
    if isinstance(schema, Mapping):
        is_plain = not any(key.startswith("$") for key in schema)
        return is_plain and all(_means_alone(part) for part in schema.values())
    return False


def _means_alone(part: Any) -> bool:
    if isinstance(part, Mapping):
        return _stands_alone(part)
    return not isinstance(part, list) or all(map(_means_alone, part))


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
