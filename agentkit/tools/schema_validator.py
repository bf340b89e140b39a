"""JSON values against JSON Schema 2020-12: does a value fit, and what is wrong where it does not.

``fits`` is the quick question and ``schema_errors`` the whole answer; both are one walk. Schemas
and values come from strangers: references may double at every level, alternatives may nest, and a
schema of a kilobyte can ask for years. Each schema visited therefore counts, weighted by
the size of what it looks at, and the walk ends with ``UncheckableError`` when the count is used up.
Patterns are matched by ``agentkit.tools.patterns``; nothing is ever fetched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from agentkit.messages import JsonObject
from agentkit.tools.canonical import is_multiple, json_key, same_json
from agentkit.tools.patterns import FORMATS, pattern_holds, pattern_steps
from agentkit.tools.schema import resolve_local

_MAX_DEPTH = 200
_QUICK_STEPS = 10_000
_BASE_STEPS = 5_000
_STEPS_A_CHARACTER = 2
_MAX_STEPS = 100_000
_CHARACTERS_A_STEP = 256
_NAMES_A_STEP = 8


class UncheckableError(ValueError):
    """A value cannot be held against a schema; the message says why."""


@dataclass(slots=True)
class StepBudget:
    """The remaining work, in schemas visited; several validations may share it."""

    left: int = _QUICK_STEPS


@dataclass(frozen=True, kw_only=True, slots=True)
class SchemaError:
    """One keyword that a value breaks.

    Attributes:
        keyword: The keyword; empty for the schema ``false``.
        limit: What the keyword says.
        value: The value that breaks it.
        schema: The schema in which the keyword stands.
        path: Keys and indexes down to the value.
        names: The names that are missing, or that are too many.
        branches: For ``anyOf`` and ``oneOf``: what is wrong in each alternative.
    """

    keyword: str
    limit: Any
    value: Any
    schema: Any
    path: tuple[str | int, ...]
    names: tuple[str, ...] = ()
    branches: tuple[Sequence[SchemaError], ...] = ()


def fits(
    value: Any, schema: Any, *, root: JsonObject | None = None, steps: StepBudget | None = None
) -> bool | None:
    """Whether JSON data satisfy a schema (2020-12), as far as that is quick to say.

    Args:
        value: Decoded JSON.
        schema: The schema, or one part of a document.
        root: The document that local references point into; ``schema`` itself when omitted.
        steps: What may still be spent, when several questions share it.

    Returns:
        True or False when certain; None when the schema is broken, is nested too deeply, or asks
        for too many steps.

    Example:
        >>> fits(3, {"type": "integer", "minimum": 1}), fits("3", {"type": "integer"})
        (True, False)
    """
    walk = _Walk(root=_document(schema, root), steps=steps or StepBudget(), is_brief=True)
    try:
        return not _walked(walk, value, schema)
    except UncheckableError:
        return None


def schema_errors(
    value: Any,
    schema: Any,
    *,
    root: JsonObject | None = None,
    steps: StepBudget | None = None,
    limit: int | None = 20,
) -> Sequence[SchemaError]:
    """The errors of a value, up to ``limit``; empty when it is valid.

    Args:
        value: Decoded JSON.
        schema: As for ``fits``.
        root: As for ``fits``.
        steps: As for ``fits``; in proportion to the value when omitted.
        limit: Most errors.

    Raises:
        UncheckableError: It takes too many steps to say, or the schema or value is unreadable.
    """
    if steps is None:
        most = _BASE_STEPS + _STEPS_A_CHARACTER * _size_of(value)
        steps = StepBudget(min(most, _MAX_STEPS))
    allowed = steps.left
    try:
        walk = _Walk(root=_document(schema, root), steps=steps)
        return _walked(walk, value, schema)[:limit]
    except _TooManyStepsError as error:
        raise UncheckableError(f"{error}: more than {allowed:,} steps") from error


def _document(schema: Any, root: JsonObject | None) -> JsonObject:
    if root is not None:
        return root
    return schema if isinstance(schema, dict) else {}


def _walked(walk: _Walk, value: Any, schema: Any) -> Errors:
    try:
        return walk.errors(value, schema)
    except RecursionError as error:
        raise UncheckableError("a value is nested too deeply") from error
    except (TypeError, AttributeError, OverflowError) as error:  # parts of a schema that are none
        raise UncheckableError(f"the schema is not usable, {error!s:.200}") from error


def _size_of(value: Any) -> int:
    """The characters of JSON data, about."""
    size, waiting = 0, [value]
    while waiting and size < _MAX_STEPS:
        part = waiting.pop()
        size += len(part) + 2 if isinstance(part, str | list | dict) else 2
        if isinstance(part, list | dict):
            waiting.extend(part.values() if isinstance(part, dict) else part)
    return size


class _TooManyStepsError(UncheckableError):
    """The count of steps is used up."""


Errors: TypeAlias = Sequence[SchemaError]
_Keyword: TypeAlias = "Callable[[_Walk, Any, Any, _At], Errors]"
_FINE: Errors = ()


class _At(NamedTuple):
    """The position of the walk: schema, value and depth."""

    schema: JsonObject
    path: tuple[str | int, ...] = ()
    depth: int = 0


@dataclass(kw_only=True, slots=True)
class _Walk:
    """One value against one document.

    Attributes:
        root: The document that references point into.
        steps: How much work is left.
        is_brief: Whether the first error is enough.
    """

    root: JsonObject
    steps: StepBudget
    is_brief: bool = False

    def errors(
        self, value: Any, schema: Any, path: tuple[str | int, ...] = (), depth: int = 0
    ) -> Errors:
        """The errors of a value under a schema, ``depth`` schemas down."""
        if not isinstance(schema, dict):
            if schema is True:
                return _FINE
            if schema is False:
                return _error("", False, value, _At({}, path, depth))
            raise UncheckableError(f"the schema is not usable: {schema!r:.80} is not a schema")
        if depth > _MAX_DEPTH:
            raise UncheckableError("a value is nested too deeply")
        self.spend(1 + len(schema) // _NAMES_A_STEP + _steps_of(value))
        found: Errors = _FINE
        at = _At(schema, path, depth + 1)
        for keyword, rule in schema.items():
            check = _KEYWORDS.get(keyword)
            if check is not None and (more := check(self, rule, value, at)):
                if self.is_brief:
                    return more
                found = [*found, *more]
        return found

    def below(self, value: Any, schema: Any, at: _At, *steps: str | int) -> Errors:
        """The errors of a part of a value, or of the value itself."""
        path = (*at.path, *steps) if steps and not self.is_brief else at.path
        return self.errors(value, schema, path, at.depth)

    def holds(self, value: Any, schema: Any, at: _At) -> bool:
        """Whether a value fits a schema beside the one that is looked at."""
        brief = self if self.is_brief else _Walk(root=self.root, steps=self.steps, is_brief=True)
        return not brief.errors(value, schema, at.path, at.depth)

    def spend(self, steps: int) -> None:
        """Count work.

        Raises:
            UncheckableError: There is none left.
        """
        self.steps.left -= steps
        if self.steps.left < 0:
            raise _TooManyStepsError("too expensive to validate")

    def matches(self, pattern: Any, text: str) -> bool:
        """Whether a pattern is found in a text; what that may cost is counted before."""
        if not isinstance(pattern, str):
            raise UncheckableError(f"the pattern {pattern!r:.80} is not text")
        self.spend(pattern_steps(pattern, text))
        try:
            return pattern_holds(pattern, text)
        except ValueError as error:
            raise UncheckableError(str(error)) from error

    def target(self, reference: Any) -> Any:
        """The target of a reference.

        Raises:
            UncheckableError: It points out of the document; nothing is fetched.
        """
        if not isinstance(reference, str):
            raise UncheckableError(f"the schema is not usable: its reference is {reference!r:.80}")
        own = self.root.get("$id")
        local = reference.removeprefix(own) if isinstance(own, str) and own else reference
        found = resolve_local(self.root, local or "#")
        if found is None:
            raise UncheckableError(
                f"the schema refers to {reference!r:.200}, which is not part of it and is never "
                "fetched"
            )
        return found


def _steps_of(value: Any) -> int:
    """The extra cost of a long value."""
    if isinstance(value, str):
        return len(value) // _CHARACTERS_A_STEP
    return len(value) // _NAMES_A_STEP if isinstance(value, list | dict) else 0


def _error(
    keyword: str,
    limit: Any,
    value: Any,
    at: _At,
    *,
    names: Iterable[str] = (),
    branches: Iterable[Errors] = (),
) -> Errors:
    return (
        SchemaError(
            keyword=keyword,
            limit=limit,
            value=value,
            schema=at.schema,
            path=at.path,
            names=tuple(names),
            branches=tuple(branches),
        ),
    )


def _must_be(rule: Any, kind: type | tuple[type, ...], keyword: str) -> None:
    if not isinstance(rule, kind) or (kind in (_NUMBER, int) and isinstance(rule, bool)):
        raise UncheckableError(f"the schema is not usable: its {keyword} is {rule!r:.80}")


# --- one value by itself --------------------------------------------------------------------------

_NUMBER = (int, float)

_TYPE_TESTS: Mapping[str, Callable[[Any], bool]] = {
    "array": lambda value: isinstance(value, list),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: (
        (isinstance(value, int) and not isinstance(value, bool))
        or (isinstance(value, float) and value.is_integer())
    ),
    "null": lambda value: value is None,
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "object": lambda value: isinstance(value, dict),
    "string": lambda value: isinstance(value, str),
}

JSON_TYPES = (*_TYPE_TESTS,)
"""The type names of JSON Schema."""


def is_of_type(value: Any, name: object) -> bool | None:
    """Whether ``value`` has the JSON Schema type ``name``; None for a type that is not one."""
    test = _TYPE_TESTS.get(name) if isinstance(name, str) else None
    return None if test is None else test(value)


def _type(_walk: _Walk, rule: Any, value: Any, at: _At) -> Errors:
    if isinstance(rule, str) and (test := _TYPE_TESTS.get(rule)) is not None:  # nearly always
        return _FINE if test(value) else _error("type", rule, value, at)
    names = rule if isinstance(rule, list) else [rule]
    are = [is_of_type(value, name) for name in names]
    if True in are:
        return _FINE
    if None in are or not are:
        raise UncheckableError(f"the schema is not usable: its type is {rule!r:.80}")
    return _error("type", rule, value, at)


def _format(_walk: _Walk, rule: Any, value: Any, at: _At) -> Errors:
    check = FORMATS.get(rule) if isinstance(rule, str) else None
    if check is None or not isinstance(value, str) or check(value):
        return _FINE
    return _error("format", rule, value, at)


def _bound(keyword: str, kind: str, holds: Callable[[Any, Any], bool]) -> _Keyword:
    """A check of one bound on values of one type; it says nothing about values of other types."""
    test = _TYPE_TESTS[kind]

    def check(_walk: _Walk, rule: Any, value: Any, at: _At) -> Errors:
        _must_be(rule, _NUMBER, keyword)
        return _FINE if not test(value) or holds(value, rule) else _error(keyword, rule, value, at)

    return check


def _at_least(value: Any, limit: Any) -> bool:
    return bool(len(value) >= limit)


def _at_most(value: Any, limit: Any) -> bool:
    return bool(len(value) <= limit)


_SIZES = {"Length": "string", "Items": "array", "Properties": "object"}
_BOUNDS: Mapping[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "minimum": ("number", lambda value, limit: value >= limit),
    "maximum": ("number", lambda value, limit: value <= limit),
    "exclusiveMinimum": ("number", lambda value, limit: value > limit),
    "exclusiveMaximum": ("number", lambda value, limit: value < limit),
    "multipleOf": ("number", is_multiple),
    **{f"min{size}": (kind, _at_least) for size, kind in _SIZES.items()},
    **{f"max{size}": (kind, _at_most) for size, kind in _SIZES.items()},
}


def _enum(walk: _Walk, rule: Any, value: Any, at: _At) -> Errors:
    _must_be(rule, list, "enum")
    _count_parts(walk, value, times=1 + len(rule) // _NAMES_A_STEP)
    is_member = any(same_json(value, item) for item in rule)
    return _FINE if is_member else _error("enum", rule, value, at)


def _const(walk: _Walk, rule: Any, value: Any, at: _At) -> Errors:
    _count_parts(walk, value)
    return _FINE if same_json(value, rule) else _error("const", rule, value, at)


def _count_parts(walk: _Walk, value: Any, *, times: int = 0) -> None:
    """Count the parts of a value that is looked at as a whole."""
    walk.spend(times)
    waiting = [value] if isinstance(value, list | dict) else []
    depth = 0
    while waiting:
        depth += 1
        if depth > _MAX_DEPTH:
            raise UncheckableError("a value is nested too deeply")
        following: list[Any] = []
        for part in waiting:
            walk.spend(1 + times)
            if isinstance(part, list | dict):
                following.extend(part.values() if isinstance(part, dict) else part)
        waiting = following


def _pattern(walk: _Walk, rule: Any, value: Any, at: _At) -> Errors:
    if not isinstance(value, str) or walk.matches(rule, value):
        return _FINE
    return _error("pattern", rule, value, at)


def _unique(walk: _Walk, rule: Any, value: Any, at: _At) -> Errors:
    if rule is not True or not isinstance(value, list):
        return _FINE
    _count_parts(walk, value)
    is_repeated = len(set(map(json_key, value))) < len(value)  # equal as JSON, so True is not 1
    return _error("uniqueItems", rule, value, at) if is_repeated else _FINE


# --- several schemas for one value ----------------------------------------------------------------


def _reference(walk: _Walk, rule: Any, value: Any, at: _At) -> Errors:
    return walk.below(value, walk.target(rule), at)


def _own_base(_walk: _Walk, rule: Any, _value: Any, at: _At) -> Errors:
    if at.schema is not _walk.root:
        raise UncheckableError(f"a part of the schema has an $id of its own, {rule!r:.80}")
    return _FINE


def _all_of(walk: _Walk, rule: Any, value: Any, at: _At) -> Errors:
    _must_be(rule, list, "allOf")
    return _joined(walk, (walk.below(value, branch, at) for branch in rule))


def _any_of(walk: _Walk, rule: Any, value: Any, at: _At) -> Errors:
    _must_be(rule, list, "anyOf")
    branches: list[Errors] = []
    for branch in rule:
        if not (found := walk.below(value, branch, at)):
            return _FINE
        branches.append(found)
    return _error("anyOf", rule, value, at, branches=branches)


def _one_of(walk: _Walk, rule: Any, value: Any, at: _At) -> Errors:
    _must_be(rule, list, "oneOf")
    branches = [walk.below(value, branch, at) for branch in rule]
    fitting = sum(not found for found in branches)
    if fitting == 1:
        return _FINE
    return _error("oneOf", rule, value, at, branches=() if fitting else branches)


def _not(walk: _Walk, rule: Any, value: Any, at: _At) -> Errors:
    return _error("not", rule, value, at) if walk.holds(value, rule, at) else _FINE


def _if(walk: _Walk, rule: Any, value: Any, at: _At) -> Errors:
    then = at.schema.get("then" if walk.holds(value, rule, at) else "else", True)
    return walk.below(value, then, at)


def _joined(walk: _Walk, several: Iterable[Errors]) -> Errors:
    found: list[SchemaError] = []
    for errors in several:
        found.extend(errors)
        if found and walk.is_brief:
            break
    return found


# --- objects --------------------------------------------------------------------------------------


def _properties(walk: _Walk, rule: Any, value: Any, at: _At) -> Errors:
    _must_be(rule, dict, "properties")
    if not isinstance(value, dict):
        return _FINE
    walk.spend(len(rule) // _NAMES_A_STEP)
    found: list[SchemaError] = []
    for name, part in rule.items():
        if name in value and (more := walk.below(value[name], part, at, name)):
            found.extend(more)
            if walk.is_brief:
                break
    return found


def _required(walk: _Walk, rule: Any, value: Any, at: _At) -> Errors:
    _must_be(rule, list, "required")
    if not isinstance(value, dict):
        return _FINE
    walk.spend(len(rule) // _NAMES_A_STEP)
    missing = [name for name in rule if name not in value]
    return _error("required", rule, value, at, names=missing) if missing else _FINE


def _dependent_required(walk: _Walk, rule: Any, value: Any, at: _At) -> Errors:
    _must_be(rule, dict, "dependentRequired")
    needed = [names for name, names in rule.items() if isinstance(value, dict) and name in value]
    missing = [name for names in needed for name in names if name not in value]
    walk.spend(len(missing))
    return _error("dependentRequired", rule, value, at, names=missing) if missing else _FINE


def _dependent_schemas(walk: _Walk, rule: Any, value: Any, at: _At) -> Errors:
    _must_be(rule, dict, "dependentSchemas")
    parts = [part for name, part in rule.items() if isinstance(value, dict) and name in value]
    return _joined(walk, (walk.below(value, part, at) for part in parts))


def _pattern_properties(walk: _Walk, rule: Any, value: Any, at: _At) -> Errors:
    _must_be(rule, dict, "patternProperties")
    named = value if isinstance(value, dict) else {}
    pairs = ((name, one) for name in named for one in rule if walk.matches(one, name))
    return _joined(walk, (walk.below(named[name], rule[one], at, name) for name, one in pairs))


def _property_names(walk: _Walk, rule: Any, value: Any, at: _At) -> Errors:
    names = value if isinstance(value, dict) else ()
    return _joined(walk, (walk.below(name, rule, at) for name in names))


def _additional(walk: _Walk, rule: Any, value: Any, at: _At) -> Errors:
    """Fields that nothing else speaks of: refused, or held against the rule."""
    properties = at.schema.get("properties", {})
    if not isinstance(value, dict) or value.keys() <= properties.keys():
        return _FINE
    patterns = at.schema.get("patternProperties", {})
    _must_be(properties, dict, "properties")
    _must_be(patterns, dict, "patternProperties")
    others = [
        name
        for name in value
        if name not in properties and not any(walk.matches(one, name) for one in patterns)
    ]
    if rule is False:
        return _error("additionalProperties", rule, value, at, names=others) if others else _FINE
    return _joined(walk, (walk.below(value[name], rule, at, name) for name in others))


# --- lists ----------------------------------------------------------------------------------------


def _prefix(walk: _Walk, rule: Any, value: Any, at: _At) -> Errors:
    _must_be(rule, list, "prefixItems")
    pairs = zip(value, rule, strict=False) if isinstance(value, list) else ()
    return _joined(walk, (walk.below(item, part, at, n) for n, (item, part) in enumerate(pairs)))


def _items(walk: _Walk, rule: Any, value: Any, at: _At) -> Errors:
    if isinstance(rule, list):
        raise UncheckableError("the schema is not usable: its items is a list; write prefixItems")
    if not isinstance(value, list) or rule is True:
        return _FINE
    prefix = at.schema.get("prefixItems", [])
    _must_be(prefix, list, "prefixItems")
    rest = range(len(prefix), len(value))
    return _joined(walk, (walk.below(value[n], rule, at, n) for n in rest))


def _contains(walk: _Walk, rule: Any, value: Any, at: _At) -> Errors:
    if not isinstance(value, list):
        return _FINE
    count = sum(walk.holds(item, rule, at) for item in value)
    least, most = at.schema.get("minContains", 1), at.schema.get("maxContains", len(value))
    _must_be(least, _NUMBER, "minContains")
    _must_be(most, _NUMBER, "maxContains")
    return _FINE if least <= count <= most else _error("contains", rule, value, at)


_KEYWORDS: Mapping[str, _Keyword] = {
    "$id": _own_base,
    "$ref": _reference,
    "$dynamicRef": _reference,
    "$recursiveRef": _reference,
    "additionalProperties": _additional,
    "allOf": _all_of,
    "anyOf": _any_of,
    "const": _const,
    "contains": _contains,
    "dependentRequired": _dependent_required,
    "dependentSchemas": _dependent_schemas,
    "enum": _enum,
    "format": _format,
    "if": _if,
    "items": _items,
    "not": _not,
    "oneOf": _one_of,
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "prefixItems": _prefix,
    "properties": _properties,
    "propertyNames": _property_names,
    "required": _required,
    "type": _type,
    "uniqueItems": _unique,
    **{keyword: _bound(keyword, kind, holds) for keyword, (kind, holds) in _BOUNDS.items()},
}
"""The keywords that constrain; others do not, among them ``unevaluatedProperties`` and anchors."""
