"""What is wrong with a value, by jsonschema within a bound of steps.

Schemas and values come from strangers: references may double at every level, alternatives may
nest, and an error quotes the value it is about, so a schema of a kilobyte can ask for years and
gigabytes. Each keyword that is evaluated therefore counts, weighted by the size of what it looks
at, and the walk ends with ``UncheckableError`` when the count is used up. Patterns are matched by
``agentkit.tools.patterns``; nothing is ever fetched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from agentkit.messages import JsonObject
from agentkit.tools.fit import Steps, fits, has_duplicates
from agentkit.tools.formats import FORMATS
from agentkit.tools.invocation import described
from agentkit.tools.patterns import pattern_holds, pattern_steps
from agentkit.tools.schema import resolve_local

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator, FormatChecker
    from jsonschema.exceptions import ValidationError

_CHARACTERS_A_STEP = 256
_BASE_STEPS = 5_000
_STEPS_A_CHARACTER = 2
_STEPS_A_CHARACTER_OF_SCHEMA = 20
_MAX_STEPS = 300_000
"""A step takes some ten microseconds."""

_PARTS_A_STEP = 4
_STEPS_A_REFERENCE = 2
_TOO_DEEP = "a value is nested too deeply"

_Keyword: TypeAlias = Callable[[Any, Any, Any, Any], "Iterator[ValidationError] | None"]


class UncheckableError(ValueError):
    """A value can not be held against a schema; the message says why."""


class BoundedValidator:
    """Holds values against one JSON Schema 2020-12, with our formats and patterns.

    Args:
        schema: The schema; it must not be changed afterwards.
    """

    __slots__ = ("_schema", "_sizes", "_validator")

    def __init__(self, schema: JsonObject) -> None:
        self._schema = schema
        self._sizes: dict[int, int] = {}
        self._validator: Any = None

    def errors(self, value: Any, *, limit: int = 20) -> list[ValidationError]:
        """What is wrong with a value, up to ``limit`` errors; empty when nothing is.

        Raises:
            UncheckableError: It takes too many steps to say, or the schema or value is unreadable.
        """
        from jsonschema import Draft202012Validator
        from referencing.jsonschema import EMPTY_REGISTRY

        if self._validator is None:
            _size_of(self._schema, self._sizes)
            self._validator = _counted_class(Draft202012Validator)(
                self._schema, registry=EMPTY_REGISTRY, format_checker=_format_checker()
            )
        sizes = dict(self._sizes)
        steps = _BASE_STEPS + _STEPS_A_CHARACTER * _size_of(value, sizes)
        if fits(value, self._schema, steps=Steps(min(steps, _MAX_STEPS))):
            return []
        return _within_bounds(self._validator, value, sizes, steps, limit)


class SchemaFault(NamedTuple):
    """Why data are no JSON Schema.

    Attributes:
        place: Keys and indexes from the root.
        message: What is wrong there.
    """

    place: tuple[str | int, ...]
    message: str

    def __str__(self) -> str:
        return f"at {'/'.join(map(str, self.place)) or 'its root'}: {self.message}"


def schema_fault(schema: Any) -> SchemaFault | None:
    """Why data are no JSON Schema of the dialect that they name, or else of 2020-12.

    Whether its patterns can be matched is another question (``agentkit.tools.patterns``).
    """
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match
    from jsonschema.validators import validator_for
    from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]

    dialect: Any = Draft202012Validator
    if isinstance(schema, dict) and isinstance(schema.get("$schema"), str):
        dialect = validator_for(schema, default=dialect)
    validator = _counted_class(dialect)(dialect.META_SCHEMA, registry=REGISTRY)
    try:
        sizes: dict[int, int] = {}
        steps = _BASE_STEPS + _STEPS_A_CHARACTER_OF_SCHEMA * _size_of(schema, sizes)
        worst = best_match(_within_bounds(validator, schema, sizes, steps, limit=20))
    except UncheckableError as error:
        return SchemaFault((), str(error))
    return None if worst is None else SchemaFault((*worst.absolute_path,), worst.message[:200])


def _within_bounds(
    validator: Any, value: Any, sizes: Mapping[int, int], steps: int, limit: int
) -> list[ValidationError]:
    from referencing.exceptions import Unresolvable

    token = _WALK.set(_Walk(validator.schema, sizes, min(steps, _MAX_STEPS)))
    try:
        return list(islice(validator.iter_errors(value), limit))
    except UncheckableError:
        raise
    except Unresolvable as error:
        why = f"refers to {error.ref!r}, which is not part of it and is never fetched"
        raise UncheckableError(f"the schema {why}") from error
    except RecursionError as error:
        raise UncheckableError(_TOO_DEEP) from error
    except (ValueError, OverflowError) as error:  # an unusable pattern, thousands of digits
        raise UncheckableError(str(error)[:300]) from error
    except Exception as error:  # what jsonschema does not expect of a schema, in a way of its own
        raise UncheckableError(f"the schema is not usable, {described(error)[:300]}") from error
    finally:
        _WALK.reset(token)


class _Walk:
    """One validation: how large the parts are, and how many steps are left."""

    __slots__ = ("_allowed", "_left", "_sizes", "root")

    def __init__(self, root: JsonObject, sizes: Mapping[int, int], steps: int) -> None:
        self.root = root
        self._sizes = sizes
        self._allowed = self._left = steps

    def count(self, *parts: Any) -> None:
        """Count one keyword that looks at these parts of the schema or the value."""
        steps = 1
        for part in parts:
            if isinstance(part, str):
                steps += len(part) // _CHARACTERS_A_STEP
            elif isinstance(part, list | dict):
                steps += self._sizes.get(id(part), 0) // _CHARACTERS_A_STEP
                steps += len(part) // _PARTS_A_STEP
        self.spend(steps)

    def spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise UncheckableError(f"too expensive to validate: more than {self._allowed:,} steps")

    def matches(self, pattern: str, text: str) -> bool:
        """Whether a pattern is found in a text; what that may cost is counted before."""
        self.spend(pattern_steps(pattern, text))
        return pattern_holds(pattern, text)


_WALK: ContextVar[_Walk] = ContextVar("_WALK")


def _size_of(part: Any, sizes: dict[int, int]) -> int:
    """The characters of JSON data, about; ``sizes`` takes those of its lists and objects by id.

    Raises:
        UncheckableError: The data are nested too deeply.
    """
    try:
        return _measure(part, sizes)
    except RecursionError as error:
        raise UncheckableError(_TOO_DEEP) from error


def _measure(part: Any, sizes: dict[int, int]) -> int:
    if isinstance(part, str):
        return 1 + len(part)
    if not isinstance(part, list | dict):
        return 1 + (part.bit_length() // 3 if isinstance(part, int) else 0)
    known = sizes.get(id(part))
    if known is None:  # parts that are shared, as YAML's anchors are, are walked once
        items = part.values() if isinstance(part, dict) else part
        known = 2 + len(part) + sum(_measure(item, sizes) for item in items)
        if isinstance(part, dict):
            known += sum(len(str(key)) for key in part)
        sizes[id(part)] = known
    return known


@cache  # making a class costs two milliseconds, and every tool has a validator of its own
def _counted_class(dialect: type[Draft202012Validator]) -> Any:
    """Jsonschema's validator with every keyword counted, and ours where its own match patterns."""
    from jsonschema.validators import extend

    keywords: dict[str, _Keyword] = dict(dialect.VALIDATORS)
    ours: dict[str, _Keyword] = {
        "additionalProperties": _without_patterns(keywords["additionalProperties"]),
        "pattern": _check_pattern,
        "patternProperties": _check_pattern_properties,
        "unevaluatedProperties": _check_unevaluated_properties,
        "uniqueItems": _check_unique_items,
    }
    keywords |= {keyword: function for keyword, function in ours.items() if keyword in keywords}
    counted = {keyword: _counting(function) for keyword, function in keywords.items()}
    return extend(dialect, validators=counted)  # type: ignore[no-untyped-call]  # its stubs


@cache
def _format_checker() -> FormatChecker:
    from jsonschema import FormatChecker

    checker = FormatChecker(formats=())
    for name, holds in FORMATS.items():
        checker.checks(name)(lambda value, holds=holds: not isinstance(value, str) or holds(value))
    return checker


def _counting(function: _Keyword) -> _Keyword:
    def evaluate(
        validator: Any, rule: Any, value: Any, schema: Any
    ) -> Iterator[ValidationError] | None:
        walk = _WALK.get()
        walk.count(rule, value, schema)
        if isinstance(rule, str) and rule.startswith("#"):
            walk.spend(_STEPS_A_REFERENCE)
            walk.count(resolve_local(walk.root, rule))
        return function(validator, rule, value, schema)

    return evaluate


def _error(message: str) -> ValidationError:
    from jsonschema.exceptions import ValidationError

    return ValidationError(message)


def _check_pattern(
    _validator: Any, pattern: str, value: object, _schema: JsonObject
) -> Iterator[ValidationError]:
    if isinstance(value, str) and not _WALK.get().matches(pattern, value):
        yield _error(f"{value!r} does not match {pattern!r}")


def _check_pattern_properties(
    validator: Any, rule: JsonObject, value: Any, _schema: JsonObject
) -> Iterator[ValidationError]:
    walk = _WALK.get()
    for name, item in value.items() if isinstance(value, dict) else ():
        for pattern, part in rule.items():
            walk.spend(1)
            if walk.matches(pattern, name):
                yield from validator.descend(item, part, path=name, schema_path=pattern)


def _without_patterns(function: _Keyword) -> _Keyword:
    """``additionalProperties``, with names that a pattern takes among those that are known."""

    def evaluate(
        validator: Any, rule: Any, value: Any, schema: JsonObject
    ) -> Iterator[ValidationError] | None:
        if schema.get("patternProperties") and isinstance(value, dict):
            schema = {"properties": dict.fromkeys(_named(value, schema), True)}
        return function(validator, rule, value, schema)

    return evaluate


def _named(value: JsonObject, schema: JsonObject) -> set[str]:
    """The names of an object that ``properties`` and ``patternProperties`` speak of."""
    walk = _WALK.get()
    patterns = schema.get("patternProperties", {})
    matched = {name for name in value if any(walk.matches(one, name) for one in patterns)}
    return matched | {name for name in schema.get("properties", {}) if name in value}


def _check_unique_items(
    _validator: Any, rule: Any, value: Any, _schema: JsonObject
) -> Iterator[ValidationError]:
    if rule and isinstance(value, list) and has_duplicates(value):
        yield _error(f"{value!r} has non-unique elements")


def _check_unevaluated_properties(
    validator: Any, rule: Any, value: Any, schema: JsonObject
) -> Iterator[ValidationError]:
    if not isinstance(value, dict):
        return
    known = _evaluated(validator, value, {**schema, "unevaluatedProperties": None})
    unknown = [name for name in value if name not in known]
    if isinstance(rule, dict):
        for name in unknown:
            yield from validator.descend(value[name], rule, path=name)
    elif not rule and unknown:
        names = ", ".join(map(repr, unknown))
        yield _error(f"Unevaluated properties are not allowed ({names} were unexpected)")


def _evaluated(validator: Any, value: JsonObject, schema: Any) -> set[str]:
    """The names of an object that a schema, or what it applies beside itself, speaks of."""
    walk = _WALK.get()
    walk.count(schema, value)
    if not isinstance(schema, dict):
        return set()
    others = ("additionalProperties", "unevaluatedProperties")
    if any(schema.get(keyword) is not None for keyword in others):
        return set(value)
    known = _named(value, schema)
    for part in _applied(validator, value, schema, walk.root):
        known |= _evaluated(validator, value, part)
    return known


def _applied(
    validator: Any, value: JsonObject, schema: JsonObject, root: JsonObject
) -> Iterator[Any]:
    """The schemas that hold for the same value."""

    def holds(part: Any) -> bool:
        return bool(validator.evolve(schema=part).is_valid(value))

    for keyword in ("$ref", "$dynamicRef"):
        if isinstance(reference := schema.get(keyword), str):
            yield resolve_local(root, reference)
    for keyword in ("allOf", "anyOf", "oneOf"):
        yield from filter(holds, schema.get(keyword, ()))
    if "if" in schema:
        decided = holds(schema["if"])
        yield from (schema["if"], schema.get("then")) if decided else (schema.get("else"),)
    yield from (part for name, part in schema.get("dependentSchemas", {}).items() if name in value)
