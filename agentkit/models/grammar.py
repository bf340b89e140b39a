"""A JSON Schema for one answer, built from the tools on offer, for grammar-constrained decoding.

A small model that gets tools described in words rarely writes a valid call; one whose sampling is
held to this schema always does, and only the values are left to it.

Engines such as llama.cpp turn a JSON Schema into a grammar and sample only what it allows. They
know part of JSON Schema, take ``properties`` in the order written, and have no sense of length. So
a schema is translated first: references are inlined, combinations are worked out, keywords that no
grammar can express are left out, and strings and arrays get a bound, because a small model can
fill a string for ever. The executor validates every call against the whole schema all the same.

The result is hardly ever wider than the schema, except where two schemas hold together and differ
in a property, in ``items`` or a pattern, and for what grammars cannot say: ``not``, ``if``,
``contains``, ``propertyNames``, ``uniqueItems``, numbers of properties and what depends on others
in other ways than ``dependentRequired``. Alternatives of ``oneOf`` may overlap, only anchored
patterns of plain classes stay (``plain_pattern``), of the formats only ``date``, ``time``,
``date-time`` and ``uuid``, and engines differ in ``multipleOf`` and in bounds of numbers that are
not integers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from agentkit.errors import UsageError
from agentkit.messages import JsonObject
from agentkit.tools.canonical import json_key
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.patterns import is_compilable
from agentkit.tools.schema import resolve_local
from agentkit.tools.schema_validator import fits

CALLS = "calls"
"""Key of an answer that calls tools."""

ANSWER = "answer"
"""Key of an answer that does not."""

MAX_CHARACTERS = 200
"""Longest string among arguments; an answer to a person may be ten times as long."""

_MAX_ITEMS = 20
_MAX_DEPTH = 12
_MAX_PARTS = 5_000
_VALUES_A_PART = 20
_MAX_ALTERNATIVES = 64
_MAX_INTEGER = 2**53 - 1
_MAX_NUMBER = 10**300
_COUNTS = frozenset({"minLength", "maxLength", "minItems", "maxItems"})
_LISTS = frozenset({"required", "prefixItems", "enum"})
_OF_ANY_TYPE = frozenset({"type", "enum", "const", "patternProperties"})
_ANYTHING: tuple[Any, ...] = (True, {})
_FORMATS = frozenset({"date", "time", "date-time", "uuid"})
_TYPES = ("string", "integer", "number", "boolean", "null", "array", "object")
_SCALARS = ("string", "number", "boolean", "null")
_KEYWORDS = {
    "minLength": "string",
    "maxLength": "string",
    "pattern": "string",
    "format": "string",
    "minimum": "number",
    "maximum": "number",
    "exclusiveMinimum": "number",
    "exclusiveMaximum": "number",
    "multipleOf": "number",
    "items": "array",
    "prefixItems": "array",
    "minItems": "array",
    "maxItems": "array",
    "properties": "object",
    "required": "object",
    "additionalProperties": "object",
}


def call_schema(
    tools: Sequence[ToolDefinition],
    *,
    max_calls: int = 8,
    allow_text: bool = False,
    answer: JsonObject | None = None,
) -> JsonObject:
    """The schema of one answer: ``{"calls": [{"name": ..., "arguments": {...}}]}``.

    What is generated under it satisfies the tool's own schema, and the rules that were learned
    about the tool, as far as a grammar can say. Keys come in a fixed order, the name before the
    arguments. A tool whose schema nothing satisfies still takes its parameters.

    Args:
        tools: What may be called, in the order offered.
        max_calls: Most calls in one answer.
        allow_text: Also allow ``{"answer": ...}`` in place of calls.
        answer: Schema of that answer; None is text.

    Raises:
        UsageError: No tool is offered, or nothing satisfies ``answer``.

    Example:
        >>> from agentkit.tools.definition import ToolDefinition
        >>> wait = ToolDefinition.from_schema(
        ...     "wait", "Wait.", {"type": "object", "properties": {"s": {"enum": [1, 5]}}}
        ... )
        >>> call_schema([wait], max_calls=1)["properties"]["calls"]["items"]["properties"]["name"]
        {'const': 'wait'}
    """
    if not tools:
        raise UsageError("no tool is offered, so there is no call to describe; offer at least one")
    call = either([_call(tool) for tool in tools])
    calls = closed_object({CALLS: array_of(call, 1, max(1, max_calls))})
    if not allow_text:
        return calls
    return either([calls, closed_object({ANSWER: answer_schema(answer or {"type": "string"})})])


def answer_schema(schema: JsonObject) -> JsonObject:
    """``schema`` for an answer to a person, with roomier bounds than arguments have.

    Raises:
        UsageError: Nothing satisfies ``schema``.
    """
    translated = grammar_schema(schema, max_characters=10 * MAX_CHARACTERS)
    if translated is None:
        raise UsageError(f"nothing satisfies the output schema {str(schema)[:200]}")
    return translated


def _call(tool: ToolDefinition) -> JsonObject:
    parameters = tool.parameters_schema  # with what was learned, where a grammar can say it
    arguments = grammar_schema({"type": "object", **parameters})
    if arguments is None:
        arguments = _despite_contradiction(tool)
    is_free = isinstance(arguments.get("additionalProperties"), Mapping)
    if is_free and "additionalProperties" not in parameters:
        arguments = {"const": {}}  # a tool without parameters takes none, it does not take any
    # The name comes first: it decides which arguments may follow.
    return closed_object({"name": {"const": tool.name}, "arguments": arguments})


def _despite_contradiction(tool: ToolDefinition) -> JsonObject:
    """Arguments for a schema that nothing satisfies, such as an integer with an enum of strings.

    The call will be refused, and the refusal names the rule; without a call nobody would learn
    that the definition is wrong.
    """
    anything = grammar_schema({}) or {"type": "string"}
    parts = tool.signature.properties.items()
    schemas = {name: grammar_schema(part) or anything for name, part in parts}
    required = [name for name in schemas if name in tool.signature.required]
    return closed_object(schemas, required)


def closed_object(
    properties: Mapping[str, JsonObject], required: Sequence[str] | None = None
) -> JsonObject:
    """The schema of an object that has these properties and no others.

    Args:
        properties: Their schemas.
        required: Those that it must have; None for all.
    """
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties if required is None else required),
        "additionalProperties": False,
    }


def grammar_schema(
    schema: JsonObject, *, max_characters: int = MAX_CHARACTERS
) -> JsonObject | None:
    """``schema`` as a grammar can express it; None when nothing finite satisfies it.

    Args:
        schema: A JSON Schema (2020-12) document; references are local.
        max_characters: Longest string; a minimum in the schema wins over it.

    Example:
        >>> grammar_schema({"type": ["integer", "null"], "minimum": 1, "maximum": 9})
        {'anyOf': [{'type': 'integer', 'minimum': 1, 'maximum': 9}, {'type': 'null'}]}
    """
    return _Translator(schema, max_characters).translate(schema, _Place())


def either(schemas: Sequence[JsonObject]) -> JsonObject:
    """A schema that any of ``schemas`` satisfies."""
    unique = [schema for i, schema in enumerate(schemas) if schema not in schemas[:i]]
    return unique[0] if len(unique) == 1 else {"anyOf": unique}


def array_of(items: JsonObject, least: int, most: int) -> JsonObject:
    """An array of ``least`` to ``most`` items."""
    return {"type": "array", "items": items, "minItems": least, "maxItems": most}


class _Place(NamedTuple):
    """The place of a translation in the document.

    Attributes:
        depth: Nesting of the schema that is written.
        entered: References that were followed to get here.
    """

    depth: int = 0
    entered: tuple[str, ...] = ()

    def below(self) -> _Place:
        return self._replace(depth=self.depth + 1)


class _Translator:
    """Translates the parts of one schema document."""

    def __init__(self, root: JsonObject, max_characters: int) -> None:
        self.root = root
        self.max_characters = max_characters
        self._left = _MAX_PARTS

    def translate(self, schema: Any, place: _Place) -> JsonObject | None:
        """``schema`` for a grammar; None when nothing finite satisfies it."""
        found = [
            self._alternative(plain, where) for plain, where in self._alternatives(schema, place)
        ]
        schemas = [schema for schema in found if schema is not None]
        return either(schemas) if schemas else None

    def _alternatives(self, schema: Any, place: _Place) -> list[tuple[dict[str, Any], _Place]]:
        """``schema`` without references and combinations: a value satisfies one of these."""
        if not isinstance(schema, Mapping):
            return [] if schema is False else [({}, place)]
        self._left -= 1 + len(_listed(schema, "enum")) // _VALUES_A_PART
        if place.depth > _MAX_DEPTH or self._left < 0:
            return []
        plain = {k: v for k, v in schema.items() if _is_plain(k, v)}
        combined = [(plain, place)]
        for group in self._groups(schema, place):
            pairs = [(one, other) for one in combined for other in group]
            combined = []
            for (one, _), (other, where) in pairs[:_MAX_ALTERNATIVES]:
                merged = _merged(one, other)
                if merged is not None:
                    combined.append((merged, where))
        return combined

    def _groups(
        self, schema: Mapping[str, Any], place: _Place
    ) -> Iterator[list[tuple[dict[str, Any], _Place]]]:
        """Groups of alternatives: a value has to satisfy one of each group."""
        reference = schema.get("$ref")
        if isinstance(reference, str):
            # A recursive type is unrolled once; deeper, it counts as unsatisfiable.
            is_open = place.entered.count(reference) < 2
            inner = resolve_local(self.root, reference)
            where = place._replace(entered=(*place.entered, reference))
            yield self._alternatives(inner, where) if is_open else []
        for part in _listed(schema, "allOf"):
            yield self._alternatives(part, place)
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                yield [
                    plain
                    for part in _listed(schema, keyword)
                    for plain in self._alternatives(part, place)
                ]
        for alternatives in _dependencies(schema):
            yield [(plain, place) for plain in alternatives]

    def _alternative(self, plain: dict[str, Any], place: _Place) -> JsonObject | None:
        if "enum" in plain or "const" in plain:
            return self._enumeration(plain)
        found = [self._typed(kind, plain, place) for kind in _types(plain)]
        schemas = [schema for schema in found if schema is not None]
        return either(schemas) if schemas else None

    def _enumeration(self, plain: dict[str, Any]) -> JsonObject | None:
        keyword = "const" if "const" in plain else "enum"
        values = [plain["const"]] if keyword == "const" else plain["enum"]
        others = {key: rule for key, rule in plain.items() if key != keyword}
        allowed = [value for value in values if fits(value, others, root=self.root) is not False]
        if not allowed:
            return None
        return {"const": allowed[0]} if len(allowed) == 1 else {"enum": allowed}

    def _typed(self, kind: str, plain: dict[str, Any], place: _Place) -> JsonObject | None:
        match kind:
            case "string":
                return _string(plain, self.max_characters)
            case "integer" | "number":
                return _number(plain, kind)
            case "array":
                return self._array(plain, place.below())
            case "object":
                return self._object(plain, place.below())
            case _:
                return {"type": kind}

    def _array(self, plain: dict[str, Any], place: _Place) -> JsonObject | None:
        least, most = _count(plain, "minItems", 0), _count(plain, "maxItems", _MAX_INTEGER)
        if least > most:
            return None
        most = min(most, max(least, _MAX_ITEMS))
        first = plain.get("prefixItems", plain.get("items"))
        if isinstance(first, Sequence) and first:
            parts = [self.translate(part, place) for part in first[:most]]
            size = len(parts)
            is_possible = least <= size and None not in parts
            fixed = {"type": "array", "prefixItems": parts, "minItems": size, "maxItems": size}
            return fixed if is_possible else None
        items = self._any_item(plain.get("items", True), place)
        if items is None and least > 0:
            return None
        return {"const": []} if items is None or most == 0 else array_of(items, least, most)

    def _any_item(self, schema: Any, place: _Place) -> JsonObject | None:
        """A part of unknown shape is a scalar: free nesting has no end."""
        return self.translate({"type": [*_SCALARS]} if schema in _ANYTHING else schema, place)

    def _object(self, plain: dict[str, Any], place: _Place) -> JsonObject | None:
        declared = plain.get("properties", {})
        additional = plain.get("additionalProperties", True)
        required = [name for name in plain.get("required", ()) if isinstance(name, str)]
        # A name that is required but has no schema of its own has that of additional properties.
        schemas = {**declared, **{name: additional for name in required if name not in declared}}
        if not schemas:
            return self._free_object(plain, place)
        properties = {name: self.translate(part, place) for name, part in schemas.items()}
        if any(properties[name] is None for name in required):
            return None
        possible = {name: part for name, part in properties.items() if part is not None}
        return closed_object(possible, [name for name in possible if name in required])

    def _free_object(self, plain: dict[str, Any], place: _Place) -> JsonObject:
        """An object whose keys the schema does not name."""
        additional = plain.get("additionalProperties", True)
        # Which keys a pattern covers is unknown, so none is written then.
        values = None if "patternProperties" in plain else self._any_item(additional, place)
        if values is None:
            return {"const": {}}
        return {"type": "object", "additionalProperties": values}


def _types(plain: Mapping[str, Any]) -> Sequence[str]:
    """The types that a value may have: as declared, else as the keywords suggest, else any."""
    declared = plain.get("type")
    if isinstance(declared, str):
        return [declared] if declared in _TYPES else []
    if isinstance(declared, Sequence):
        return [kind for kind in declared if kind in _TYPES]
    suggested = list(dict.fromkeys(_KEYWORDS[key] for key in plain if key in _KEYWORDS))
    return suggested or [kind for kind in _TYPES if kind != "integer"]


def _string(plain: Mapping[str, Any], bound: int) -> JsonObject | None:
    least, most = _count(plain, "minLength", 0), _count(plain, "maxLength", _MAX_INTEGER)
    if least > most:
        return None
    schema: dict[str, Any] = {"type": "string"}
    if plain.get("format") in _FORMATS:
        return {**schema, "format": plain["format"]}
    pattern = plain_pattern(plain.get("pattern"))
    if pattern is not None:
        schema["pattern"] = pattern
    if least:
        schema["minLength"] = least
    return {**schema, "maxLength": min(most, max(least, bound))}


def _number(plain: Mapping[str, Any], kind: str) -> JsonObject | None:
    least, most = plain.get("minimum", -math.inf), plain.get("maximum", math.inf)
    above, below = plain.get("exclusiveMinimum", -math.inf), plain.get("exclusiveMaximum", math.inf)
    low, high = max(least, above), min(most, below)
    if low > high or (low == high and low in (above, below)):
        return None
    bounds = {keyword: plain[keyword] for keyword in _BOUNDS if keyword in plain}
    # an engine may read one bound of a side alone: the tighter one stays
    bounds.pop("minimum" if above >= least else "exclusiveMinimum", None)
    bounds.pop("maximum" if below <= most else "exclusiveMaximum", None)
    if kind == "integer":  # without a bound, digits could continue forever
        first = math.ceil(max(low, -_MAX_INTEGER))
        last = math.floor(min(high, _MAX_INTEGER))
        bounds = {"minimum": first + (first == above), "maximum": last - (last == below)}
        if bounds["minimum"] > bounds["maximum"]:
            return None
    step = plain.get("multipleOf", 0)
    return {"type": kind, **bounds} | ({"multipleOf": step} if step > 0 else {})


_BOUNDS = ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum")


def _count(plain: Mapping[str, Any], keyword: str, default: int) -> int:
    return max(0, int(plain.get(keyword, default)))


def _listed(schema: Mapping[str, Any], keyword: str) -> Sequence[Any]:
    parts = schema.get(keyword)
    return parts if isinstance(parts, list | tuple) else ()


def _dependencies(schema: Mapping[str, Any]) -> Iterator[list[dict[str, Any]]]:
    """Two schemas per name that requires others: one with all of them, one without the name.

    A name that is not declared here is never written, so it needs nothing.
    """
    dependent, declared = schema.get("dependentRequired"), schema.get("properties", {})
    for name, others in dependent.items() if isinstance(dependent, Mapping) else ():
        if isinstance(others, list) and all(isinstance(other, str) for other in others):
            together = [{"required": [name, *others]}] if name in declared else []
            yield [*together, {"properties": {name: False}}]


def _is_number(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and abs(value) <= _MAX_NUMBER


def _is_plain(keyword: str, value: Any) -> bool:
    """Whether a keyword constrains on its own, with a value of the kind that it takes."""
    kind = _KEYWORDS.get(keyword)
    if kind == "number" or keyword in _COUNTS:
        return _is_number(value)
    if keyword in _LISTS:
        return isinstance(value, list | tuple)
    if keyword == "properties":
        return isinstance(value, Mapping)
    return kind is not None or keyword in _OF_ANY_TYPE


_CLASSES = {"d": "0-9", "w": "A-Za-z0-9_"}
_SPELLED = re.compile(r"\[(?P<members>(?:\\.|[^\[\]\\])*+)\]|\\(?P<escaped>.)")
_PLAIN = re.compile(
    r"""\^(?: [A-Za-z0-9 _\-:,;@\#%&=~!'<>/]  # characters that stand for themselves
        | \\ [$.\[\](){}|*+?^]
        | \[ (?!\^) [^\]\\"\[]+ \]
        | \( (?!\?) | \) | \|
        | (?: [*+?] | \{\d{1,3}(?:,\d{0,3})?\} ) (?![*+?{])
    )+\$""",
    re.ASCII | re.VERBOSE,
)


def plain_pattern(pattern: Any) -> str | None:
    r"""``pattern`` in the common language of the engines, or None when it is beyond that.

    It has to be anchored at both ends and made of literals, positive classes, groups and
    repetitions. A dot or a negated class is refused: some converters let it match a quotation
    mark, which breaks the JSON around it. ``\d`` and ``\w`` become the classes they stand for
    (the ASCII part of them, so that the result is narrower).

    Example:
        >>> plain_pattern(r"^\d{4}-[A-Z]\w$")
        '^[0-9]{4}-[A-Z][A-Za-z0-9_]$'
        >>> plain_pattern("^a.c$") is None
        True
    """
    if not isinstance(pattern, str):
        return None
    plain = _SPELLED.sub(_spelled, pattern.replace("(?:", "("))
    return plain if _PLAIN.fullmatch(plain) and is_compilable(plain) else None


def _spelled(match: re.Match[str]) -> str:
    r"""A class, with ``\d`` and ``\w`` in it, or one of these alone, as every engine spells it."""
    if match["members"] is None:
        named = _CLASSES.get(match["escaped"])
        return f"[{named}]" if named else match[0]
    members = re.sub(r"\\([dw])", lambda one: _CLASSES[one[1]], match["members"])
    return f"[{members}]"


def _merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any] | None:
    """One schema for two that hold together; None when no type or value is common to both.

    Where both say something else of a part, what ``one`` says of it is kept, which may be wider
    than both.
    """
    merged = {**other, **one}
    if "type" in one and "type" in other:
        merged["type"] = _common_types(one["type"], other["type"])
    values, others = _values(one), _values(other)
    if values is not None and others is not None:
        allowed = set(map(json_key, others))
        merged["enum"] = [value for value in values if json_key(value) in allowed]
        merged.pop("const", None)
    if merged.get("type") == [] or merged.get("enum") == []:
        return None
    if "properties" in merged:
        merged["properties"] = {**other.get("properties", {}), **one.get("properties", {})}
    for keyword in one.keys() & other.keys() & _JOINED.keys():
        merged[keyword] = _JOINED[keyword](one[keyword], other[keyword])
    return merged


def _common_types(one: Any, other: Any) -> list[str]:
    """The types of both; every integer is a number."""
    left, right = ([kinds] if isinstance(kinds, str) else [*kinds] for kinds in (one, other))
    wide = [{*kinds, *(["integer"] if "number" in kinds else [])} for kinds in (left, right)]
    common = wide[0] & wide[1]
    return [kind for kind in dict.fromkeys((*left, *right)) if kind in common]


def _values(schema: Mapping[str, Any]) -> Sequence[Any] | None:
    return [schema["const"]] if "const" in schema else schema.get("enum")


_JOINED: Mapping[str, Callable[[Any, Any], Any]] = {
    **dict.fromkeys(("minLength", "minItems", "minimum", "exclusiveMinimum"), max),
    **dict.fromkeys(("maxLength", "maxItems", "maximum", "exclusiveMaximum"), min),
    "required": lambda one, other: list(dict.fromkeys([*one, *other])),
}
