"""Schemas for the strict modes of OpenAI and Anthropic, in which answers always fit.

Both take closed objects and a part of JSON Schema. OpenAI also wants every property required; an
optional one is asked for as null. What a mode does not take is moved into the description, and
noted; a tool of which that is not possible, such as one with free keys, is sent without strict.

OpenAI: https://platform.openai.com/docs/guides/structured-outputs, Supported schemas. Anthropic:
https://platform.claude.com/docs/en/build-with-claude/structured-outputs, JSON Schema limitations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentkit.evaluation.doctor.provider_rules import STRICT_DEPTH, STRICT_PROPERTIES, STRICT_VALUES
from agentkit.evaluation.doctor.schemas import parts
from agentkit.interop.export.rendering import (
    MOST_SCHEMAS,
    Notes,
    RecursiveReference,
    References,
    takes_null,
)
from agentkit.messages import JsonObject
from agentkit.tools.definition import ToolDefinition

_ALWAYS = frozenset({"type", "enum", "const", "anyOf", "title", "description"})
_STRUCTURE = frozenset({"properties", "required", "additionalProperties", "items", "oneOf", "$ref"})
_SCALARS = (str, int, float, bool, type(None))


@dataclass(frozen=True, kw_only=True, slots=True)
class StrictMode:
    """What one provider's strict mode takes.

    Attributes:
        keywords: Constraints that it knows.
        formats: Formats of strings that it knows.
        requires_all: Whether every property must be required.
        least_items: The values of ``minItems`` that it takes; None for any.
        most_tools: Strict tools that it takes in one request; None for no stated bound.
        most_optional: Optional parameters of these in all; None where there can be none.
        most_unions: Parameters of these with several types, in all; None for no stated bound.
        depth: Levels of objects and arrays; None for no stated bound.
        properties: Properties in all; None for no stated bound.
        values: Allowed values in all; None for no stated bound.
    """

    keywords: frozenset[str]
    formats: frozenset[str]
    requires_all: bool
    least_items: frozenset[int] | None = None
    most_tools: int | None = None
    most_optional: int | None = None
    most_unions: int | None = None
    depth: int | None = None
    properties: int | None = None
    values: int | None = None


_FORMATS_TEXT = "date-time time date duration email hostname ipv4 ipv6 uuid"
_BOUNDS_TEXT = """
pattern format multipleOf minimum maximum exclusiveMinimum exclusiveMaximum minItems maxItems
"""
_FORMATS = frozenset(_FORMATS_TEXT.split())

OPENAI = StrictMode(
    keywords=frozenset(_BOUNDS_TEXT.split()),
    formats=_FORMATS,
    requires_all=True,
    depth=STRICT_DEPTH,
    properties=STRICT_PROPERTIES,
    values=STRICT_VALUES,
)
ANTHROPIC = StrictMode(
    keywords=frozenset({"format", "minItems"}),
    formats=_FORMATS | {"uri"},
    requires_all=False,
    least_items=frozenset({0, 1}),
    most_tools=20,
    most_optional=24,
    most_unions=16,
)


class Unsayable(Exception):  # noqa: N818 - a way out of the walk, never seen by callers
    """A strict mode has no form for this schema."""

    def __init__(self, keyword: str, place: str, why: str) -> None:
        self.keyword = keyword
        self.place = place
        self.why = why
        super().__init__(why)


def strict_schema(
    definition: ToolDefinition, mode: StrictMode, notes: Notes
) -> dict[str, Any] | None:
    """The schema of the arguments for a strict mode; None when it has no form for it.

    Args:
        definition: The tool.
        mode: What the provider takes.
        notes: Takes what could not be said as it was.
    """
    root = definition.parameters_schema
    walk = _Walk(mode, Notes(tool=definition.name), root)
    try:
        schema = walk.schema(root, "", ())
        _check_top(schema)
        _check_size(schema, mode)
    except Unsayable as error:
        notes.note("strict", "", "dropped", f"sent without strict: {error.why} at {error.place}")
        return None
    notes.losses += walk.notes.losses
    return schema


def _check_top(schema: JsonObject) -> None:
    if schema.get("type") != "object" or "anyOf" in schema:
        raise Unsayable("anyOf", "/", "the top must be one object")


def _check_size(schema: JsonObject, mode: StrictMode) -> None:
    every = list(parts(schema))
    for what, number, most in (
        ("levels", max(part.depth for part in every), mode.depth),
        ("properties", sum(part.role == "property" for part in every), mode.properties),
        ("allowed values", sum(len(part.schema.get("enum", ())) for part in every), mode.values),
    ):
        if most is not None and number > most:
            raise Unsayable("size", "/", f"{number:,} {what}, where {most:,} are taken")


class _Walk:
    """One pass over the schema of a tool."""

    def __init__(self, mode: StrictMode, notes: Notes, root: JsonObject) -> None:
        self.mode = mode
        self.notes = notes
        self._references = References(root)

    def schema(self, raw: Any, place: str, path: tuple[str, ...]) -> dict[str, Any]:
        where = place or "/"
        if self._references.count >= MOST_SCHEMAS:
            raise Unsayable("$ref", where, f"more than {MOST_SCHEMAS:,} schemas")
        if not isinstance(raw, Mapping) or not raw:
            raise Unsayable("type", where, "any value, which has no type")
        try:
            given, deeper = self._references.entered(raw, path)
        except RecursiveReference as error:
            raise Unsayable("$ref", where, f"the reference {error}") from error
        if "$ref" in raw:
            self.notes.note("$ref", place, "changed", "the reference is replaced by its target")
        return self._object(self._alternatives(given, place), place, deeper)

    def _alternatives(self, given: dict[str, Any], place: str) -> dict[str, Any]:
        """``oneOf`` as ``anyOf``, and the only part of an ``allOf`` in its place."""
        if "oneOf" in given and "anyOf" not in given:
            self.notes.note("oneOf", place, "changed", "oneOf became anyOf")
            given["anyOf"] = given.pop("oneOf")
        if isinstance(given.get("allOf"), list) and len(given["allOf"]) == 1:
            (only,) = given.pop("allOf")
            if isinstance(only, Mapping):
                self.notes.note("allOf", place, "changed", "its only part stands in its place")
                given = {**only, **given}
        return given

    def _object(self, given: dict[str, Any], place: str, path: tuple[str, ...]) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        moved: dict[str, Any] = {}
        for key, value in given.items():
            if key in _STRUCTURE:
                continue
            if key == "anyOf":
                kept[key] = [
                    self.schema(part, f"{place}/anyOf/{at}", path) for at, part in enumerate(value)
                ]
            elif key in _ALWAYS or self._takes(key, value):
                kept[key] = value
            else:
                moved[key] = value
        kept |= self._structure(given, place, path)
        self._check_typed(kept, place)
        return self.notes.say(kept, moved, place) if moved else kept

    def _takes(self, key: str, value: Any) -> bool:
        if key not in self.mode.keywords:
            return False
        if key == "format":
            return value in self.mode.formats
        if key == "minItems" and self.mode.least_items is not None:
            return value in self.mode.least_items
        return True

    def _check_typed(self, kept: dict[str, Any], place: str) -> None:
        values = [*kept.get("enum", ()), *([kept["const"]] if "const" in kept else ())]
        if not all(isinstance(value, _SCALARS) for value in values):
            raise Unsayable("enum", place or "/", "allowed values that are objects or lists")
        if "type" not in kept and not values and "anyOf" not in kept:
            raise Unsayable("type", place or "/", "any value, which has no type")

    def _structure(
        self, given: Mapping[str, Any], place: str, path: tuple[str, ...]
    ) -> dict[str, Any]:
        found: dict[str, Any] = {}
        kind = given.get("type")
        kinds = [kind] if isinstance(kind, str) else list(kind or ())
        if "array" in kinds:
            found["items"] = self.schema(given.get("items"), f"{place}/items", path)
        if "object" in kinds or "properties" in given:
            found |= self._properties(given, place, path)
        return found

    def _properties(
        self, given: Mapping[str, Any], place: str, path: tuple[str, ...]
    ) -> dict[str, Any]:
        properties = given.get("properties", {})
        more = given.get("additionalProperties")
        if not properties and place and more is not False:
            raise Unsayable("additionalProperties", place, "an object with free keys")
        if more not in (None, False):
            detail = "free keys are not taken: only the listed properties"
            self.notes.note("additionalProperties", place, "dropped", detail)
        required = list(given.get("required", ()))
        unknown = [name for name in required if name not in properties]
        if unknown:
            raise Unsayable("required", place or "/", f"required names without a schema: {unknown}")
        found: dict[str, Any] = {}
        for name, part in properties.items():
            below = f"{place}/properties/{name.replace('~', '~0').replace('/', '~1')}"
            found[name] = self.schema(part, below, path)
            if self.mode.requires_all and name not in required:
                self.notes.note("required", below, "changed", "optional: null stands for left out")
                found[name] = nullable(found[name])
        wanted = list(properties) if self.mode.requires_all else required
        return {"properties": found, "required": wanted, "additionalProperties": False}


def nullable(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema, which also takes null.

    Example:
        >>> nullable({"type": "string", "enum": ["c", "f"]})
        {'type': ['string', 'null'], 'enum': ['c', 'f', None]}
    """
    if takes_null(schema):
        return schema
    if "const" in schema:
        schema = {**schema, "enum": [schema["const"]]}
        del schema["const"]
    if "anyOf" in schema:
        return {**schema, "anyOf": [*schema["anyOf"], {"type": "null"}]}
    kind = schema.get("type")
    wider = dict(schema)
    if kind is not None:
        wider["type"] = [*([kind] if isinstance(kind, str) else kind), "null"]
    if "enum" in schema:
        wider["enum"] = [*schema["enum"], None]
    return wider


@dataclass(kw_only=True, slots=True)
class StrictRequest:
    """Counts what the strict tools of one request come to.

    Attributes:
        mode: What the provider takes.
        tools: How many tools are strict so far.
        optional: How many parameters of these are optional.
        unions: How many of their parameters have several types.
    """

    mode: StrictMode
    tools: int = 0
    optional: int = 0
    unions: int = 0

    def takes(self, schema: JsonObject) -> str:
        """Count one more tool; why it has no place in the request, or empty when it has.

        Args:
            schema: Of its arguments, as ``strict_schema`` made it.
        """
        every = [part.schema for part in parts(schema)]
        tools = self.tools + 1
        optional = self.optional + sum(
            len(one.get("properties", ())) - len(one.get("required", ())) for one in every
        )
        unions = self.unions + sum(
            "anyOf" in one or isinstance(one.get("type"), list) for one in every
        )
        for what, number, most in (
            ("strict tools", tools, self.mode.most_tools),
            ("optional parameters", optional, self.mode.most_optional),
            ("parameters of several types", unions, self.mode.most_unions),
        ):
            if most is not None and number > most:
                return f"it would be {number:,} {what} in one request, where {most:,} are taken"
        self.tools, self.optional, self.unions = tools, optional, unions
        return ""
