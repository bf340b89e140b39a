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
_Check: TypeAlias = "Callable[[_Walk, Any, Any, _At], bool | Errors]"
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
            return _FINE if _allows_anything(schema) else _error("", False, value, _At({}, path))
        if depth > _MAX_DEPTH:
            raise UncheckableError("a value is nested too deeply")
        self.spend(1 + len(schema) // _NAMES_A_STEP + _steps_of(value))
        found: Errors = _FINE
        at = _At(schema, path, depth + 1)
        for keyword, rule in schema.items():
            if (known := _KEYWORDS.get(keyword)) is None:
                continue
            check, kind, of_type = known
            if kind is not None and (type(rule) is bool or not isinstance(rule, kind)):
                raise UncheckableError(f"the schema is not usable: its {keyword} is {rule!r:.80}")
            if of_type is not None and not of_type(value):
                continue
            holds = check(self, rule, value, at)
            if holds is True or (holds is not False and not holds):
                continue
            more = holds or _error(keyword, rule, value, at)
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


def _allows_anything(schema: Any) -> bool:
    """Whether the schema ``true`` or ``false`` is the first."""
    if isinstance(schema, bool):
        return schema
    raise UncheckableError(f"the schema is not usable: {schema!r:.80} is not a schema")


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


# --- one value by itself --------------------------------------------------------------------------


def _is_array(value: Any) -> bool:
    return isinstance(value, list)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_string(value: Any) -> bool:
    return isinstance(value, str)


_TYPE_TESTS: Mapping[str, Callable[[Any], bool]] = {
    "array": _is_array,
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: (
        (isinstance(value, int) and not isinstance(value, bool))
        or (isinstance(value, float) and value.is_integer())
    ),
    "null": lambda value: value is None,
    "number": _is_number,
    "object": _is_object,
    "string": _is_string,
}


def _type(_walk: _Walk, rule: Any, value: Any, _at: _At) -> bool:
    if isinstance(rule, str) and (test := _TYPE_TESTS.get(rule)) is not None:  # nearly always
        return test(value)
    names = rule if isinstance(rule, list) else [rule]
    tests = [_TYPE_TESTS.get(name) if isinstance(name, str) else None for name in names]
    if any(test is not None and test(value) for test in tests):
        return True
    if None in tests or not tests:
        raise UncheckableError(f"the schema is not usable: its type is {rule!r:.80}")
    return False


def _format(_walk: _Walk, rule: Any, value: Any, _at: _At) -> bool:
    check = FORMATS.get(rule) if isinstance(rule, str) else None
    return check is None or check(value)


def _enum(walk: _Walk, rule: Any, value: Any, _at: _At) -> bool:
    _count_parts(walk, value, times=1 + len(rule) // _NAMES_A_STEP)
    return any(same_json(value, item) for item in rule)


def _const(walk: _Walk, rule: Any, value: Any, _at: _At) -> bool:
    _count_parts(walk, value)
    return same_json(value, rule)


def _unique(walk: _Walk, rule: Any, value: Any, _at: _At) -> bool:
    if rule is not True:
        return True
    _count_parts(walk, value)
    return len(set(map(json_key, value))) == len(value)  # equal as JSON, so True is not 1


def _count_parts(walk: _Walk, value: Any, *, times: int = 0) -> None:
    """Count the parts of a value that is looked at as a whole."""
    walk.spend(times)
    waiting = [value] if isinstance(value, list | dict) else []
    while waiting:
        walk.spend(1 + times)
        part = waiting.pop()
        if isinstance(part, list | dict):
            waiting.extend(part.values() if isinstance(part, dict) else part)


# --- several schemas for one value ----------------------------------------------------------------


def _reference(walk: _Walk, rule: Any, value: Any, at: _At) -> Errors:
    return walk.below(value, walk.target(rule), at)


def _own_base(walk: _Walk, rule: Any, _value: Any, at: _At) -> bool:
    if at.schema is not walk.root:
        raise UncheckableError(f"a part of the schema has an $id of its own, {rule!r:.80}")
    return True


def _all_of(walk: _Walk, rule: Any, value: Any, at: _At) -> Errors:
    return _joined(walk, (walk.below(value, branch, at) for branch in rule))


def _any_of(walk: _Walk, rule: Any, value: Any, at: _At) -> Errors:
    branches: list[Errors] = []
    for branch in rule:
        if not (found := walk.below(value, branch, at)):
            return _FINE
        branches.append(found)
    return _error("anyOf", rule, value, at, branches=branches)


def _one_of(walk: _Walk, rule: Any, value: Any, at: _At) -> Errors:
    branches = [walk.below(value, branch, at) for branch in rule]
    fitting = sum(not found for found in branches)
    if fitting == 1:
        return _FINE
    return _error("oneOf", rule, value, at, branches=() if fitting else branches)


def _not(walk: _Walk, rule: Any, value: Any, at: _At) -> bool:
    return not walk.holds(value, rule, at)


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
    walk.spend(len(rule) // _NAMES_A_STEP)
    found: list[SchemaError] = []
    for name in value if walk.is_brief else rule:  # in nearly every schema, so without a generator
        known = name in value and name in rule
        if known and (more := walk.below(value[name], rule[name], at, name)):
            found.extend(more)
            if walk.is_brief:
                break
    return found


def _required(walk: _Walk, rule: Any, value: Any, at: _At) -> Errors:
    walk.spend(len(rule) // _NAMES_A_STEP)
    missing = [name for name in rule if name not in value]
    return _error("required", rule, value, at, names=missing) if missing else _FINE


def _dependent_required(walk: _Walk, rule: Any, value: Any, at: _At) -> Errors:
    needed = [names for name, names in rule.items() if name in value]
    missing = [name for names in needed for name in names if name not in value]
    walk.spend(len(missing))
    return _error("dependentRequired", rule, value, at, names=missing) if missing else _FINE


def _dependent_schemas(walk: _Walk, rule: Any, value: Any, at: _At) -> Errors:
    parts = [part for name, part in rule.items() if name in value]
    return _joined(walk, (walk.below(value, part, at) for part in parts))


def _pattern_properties(walk: _Walk, rule: Any, value: Any, at: _At) -> Errors:
    pairs = ((name, one) for name in value for one in rule if walk.matches(one, name))
    return _joined(walk, (walk.below(value[name], rule[one], at, name) for name, one in pairs))


def _property_names(walk: _Walk, rule: Any, value: Any, at: _At) -> Errors:
    return _joined(walk, (walk.below(name, rule, at) for name in value))


def _additional(walk: _Walk, rule: Any, value: Any, at: _At) -> Errors:
    """Fields that nothing else speaks of: refused, or held against the rule."""
    properties, patterns = at.schema.get("properties", {}), at.schema.get("patternProperties", {})
    if value.keys() <= properties.keys():
        return _FINE
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
    pairs = enumerate(zip(value, rule, strict=False))
    return _joined(walk, (walk.below(item, part, at, n) for n, (item, part) in pairs))


def _items(walk: _Walk, rule: Any, value: Any, at: _At) -> Errors:
    if isinstance(rule, list):
        raise UncheckableError("the schema is not usable: its items is a list; write prefixItems")
    rest = range(len(at.schema.get("prefixItems", ())), len(value) if rule is not True else 0)
    return _joined(walk, (walk.below(value[n], rule, at, n) for n in rest))


def _contains(walk: _Walk, rule: Any, value: Any, at: _At) -> bool:
    count = sum(walk.holds(item, rule, at) for item in value)
    least, most = at.schema.get("minContains", 1), at.schema.get("maxContains", len(value))
    return bool(least <= count <= most)


_NUMBER = (int, float)


def _bound(
    of_type: Callable[[Any], bool], holds: Callable[[Any, Any], bool]
) -> tuple[_Check, Any, Callable[[Any], bool]]:
    """A check of one bound on values of one type."""
    return lambda _walk, rule, value, _at: holds(value, rule), _NUMBER, of_type


_SIZES = {"Length": _is_string, "Items": _is_array, "Properties": _is_object}
_KEYWORDS: Mapping[str, tuple[_Check, Any, Callable[[Any], bool] | None]] = {
    "$id": (_own_base, None, None),
    "$ref": (_reference, None, None),
    "$dynamicRef": (_reference, None, None),
    "$recursiveRef": (_reference, None, None),
    "additionalProperties": (_additional, None, _is_object),
    "allOf": (_all_of, list, None),
    "anyOf": (_any_of, list, None),
    "const": (_const, None, None),
    "contains": (_contains, None, _is_array),
    "dependentRequired": (_dependent_required, dict, _is_object),
    "dependentSchemas": (_dependent_schemas, dict, _is_object),
    "enum": (_enum, list, None),
    "exclusiveMaximum": _bound(_is_number, lambda value, limit: value < limit),
    "exclusiveMinimum": _bound(_is_number, lambda value, limit: value > limit),
    "format": (_format, None, _is_string),
    "if": (_if, None, None),
    "items": (_items, None, _is_array),
    "maximum": _bound(_is_number, lambda value, limit: value <= limit),
    "minimum": _bound(_is_number, lambda value, limit: value >= limit),
    "multipleOf": _bound(_is_number, is_multiple),
    "not": (_not, None, None),
    "oneOf": (_one_of, list, None),
    "pattern": (lambda walk, rule, value, _: walk.matches(rule, value), None, _is_string),
    "patternProperties": (_pattern_properties, dict, _is_object),
    "prefixItems": (_prefix, list, _is_array),
    "properties": (_properties, dict, _is_object),
    "propertyNames": (_property_names, None, _is_object),
    "required": (_required, list, _is_object),
    "type": (_type, None, None),
    "uniqueItems": (_unique, None, _is_array),
    **{f"min{size}": _bound(of, lambda v, limit: len(v) >= limit) for size, of in _SIZES.items()},
    **{f"max{size}": _bound(of, lambda v, limit: len(v) <= limit) for size, of in _SIZES.items()},
}
"""The keywords that constrain: their check, the type of what they say if it matters, and the type
of values they speak of. Others do not, among them ``unevaluatedProperties`` and anchors."""
