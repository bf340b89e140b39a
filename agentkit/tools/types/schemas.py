"""What a JSON Schema declares, as a ``TypeSet``.

A part that can not be read as a type is taken as undeclared, never as forbidden: catalogues hold
schemas that contradict themselves, and a type is a hint for finding tools. Arguments are held
against the schema itself (``agentkit.tools.validation``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentkit.messages import JsonObject
from agentkit.tools.references import resolve_local
from agentkit.tools.types.lattice import ANY, BASES, Base, TypeSet, join

_DEEPEST = 6
_MOST_PARTS = 400
"""Schemas read for one type; references that multiply each other end there."""

_MOST_FIELDS = 40
_MOST_BRANCHES = 32
"""Alternatives are compared in pairs; a longer ``anyOf`` is taken as undeclared."""

_MOST_VALUES = 200

_WORDS_AND_TYPE = frozenset({"type", "description", "title", "default", "examples"})
_SCALARS: tuple[Base, ...] = ("string", "number", "integer", "boolean")

_MEANING_OF_FORMAT: Mapping[str, str] = {
    "date": "date",
    "date-time": "datetime",
    "time": "time",
    "duration": "duration",
    "email": "email",
    "idn-email": "email",
    "uri": "url",
    "url": "url",
    "iri": "url",
    "ipv4": "ip",
    "ipv6": "ip",
    "uuid": "uuid",
    "password": "secret",
}


def declared_type(
    schema: Any, *, root: JsonObject | None = None, is_result: bool = False
) -> TypeSet:
    """The type that a JSON Schema declares.

    A cyclic ``$ref`` ends where it enters itself again: what is below is undeclared.

    Args:
        schema: A JSON Schema 2020-12; anything that is none declares nothing.
        root: The document that ``$ref`` points into; the schema itself by default.
        is_result: Whether values come out of a tool: all properties of an object are then taken to
            be there. Those that go in have the required ones.

    Example:
        >>> print(declared_type({"type": ["string", "null"], "format": "date"}))
        null | string date
        >>> print(declared_type({"enum": ["km", "mile"]}))
        string in {"km", "mile"}
        >>> print(declared_type({"description": "Whatever you like."}))
        any
    """
    document = root if root is not None else schema
    reader = _Reader(root=document if isinstance(document, Mapping) else {}, is_result=is_result)
    return reader.read(schema, _TOP)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Place:
    depth: int = 0
    followed: frozenset[str] = frozenset()

    def below(self) -> _Place:
        return _Place(depth=self.depth + 1, followed=self.followed)


_TOP = _Place()


@dataclass(kw_only=True, slots=True)
class _Reader:
    """One run over a schema."""

    root: JsonObject
    is_result: bool
    parts: int = 0

    def read(self, schema: Any, place: _Place) -> TypeSet:
        self.parts += 1
        if not isinstance(schema, Mapping) or place.depth > _DEEPEST or self.parts > _MOST_PARTS:
            return ANY
        if schema.keys() <= _WORDS_AND_TYPE and schema.get("type") in _SCALARS:
            return TypeSet.of(schema["type"])  # most parameters of most catalogues
        found = self._by_type(schema, place)
        for keyword in ("anyOf", "oneOf"):
            if isinstance(branches := schema.get(keyword), list) and branches:
                found = _both(found, self._any_of(branches, place.below()))
        if isinstance(branches := schema.get("allOf"), list):
            for branch in branches:
                found = _both(found, self.read(branch, place.below()))
        if isinstance(reference := schema.get("$ref"), str):
            found = _both(found, self._referenced(reference, place))
        meaning = _MEANING_OF_FORMAT.get(str(schema.get("format", "")))
        return found.with_meaning(meaning) if meaning and not found.is_any else found

    def _any_of(self, branches: list[Any], place: _Place) -> TypeSet:
        if len(branches) > _MOST_BRANCHES:
            return ANY
        return join(self.read(branch, place) for branch in branches)

    def _referenced(self, reference: str, place: _Place) -> TypeSet:
        if reference in place.followed:
            return ANY
        target = resolve_local(self.root, reference)
        inside = _Place(depth=place.depth + 1, followed=place.followed | {reference})
        return self.read(target, inside)

    def _by_type(self, schema: JsonObject, place: _Place) -> TypeSet:
        found = ANY
        bases = _bases(schema)
        if bases:
            found = join(self._of_base(base, schema, place) for base in bases)
        values = schema.get("enum", [schema["const"]] if "const" in schema else None)
        if isinstance(values, list) and 0 < len(values) <= _MOST_VALUES:
            allowed = TypeSet.one_of(values)
            both = found & allowed
            found = found | allowed if both.is_never else both
        return found

    def _of_base(self, base: Base, schema: JsonObject, place: _Place) -> TypeSet:
        if base == "array" and isinstance(schema.get("items"), Mapping):
            listed = TypeSet.list_of(self.read(schema["items"], place.below()))
            return TypeSet.of("array") if listed.is_never else listed
        if base == "object" and isinstance(properties := schema.get("properties"), Mapping):
            return self._object(schema, properties, place)
        return TypeSet.of(base)

    def _object(self, schema: JsonObject, properties: JsonObject, place: _Place) -> TypeSet:
        required = schema.get("required")
        names = list(properties) if self.is_result else required
        if not isinstance(names, list):
            return TypeSet.of("object")
        fields = {
            name: self.read(properties[name], place.below())
            for name in names[:_MOST_FIELDS]
            if isinstance(name, str) and name in properties
        }
        return TypeSet.object_with({name: one for name, one in fields.items() if not one.is_never})


def _bases(schema: JsonObject) -> list[Base]:
    declared = schema.get("type")
    names = declared if isinstance(declared, list) else [declared]
    bases: list[Base] = [base for base in BASES if base in names]
    if bases and len(bases) == len(set(map(str, names))):
        return bases
    if declared is None and isinstance(schema.get("properties"), Mapping):
        return ["object"]
    if declared is None and isinstance(schema.get("items"), Mapping):
        return ["array"]
    return []  # no type, or one that JSON Schema does not know: undeclared


def _both(left: TypeSet, right: TypeSet) -> TypeSet:
    """What both declare; where they contradict each other, what either does."""
    if left.is_any or right.is_any:
        return right if left.is_any else left
    met = left & right
    return left | right if met.is_never else met
