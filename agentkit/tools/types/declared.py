"""What a JSON Schema declares, as a ``TypeSet``.

A part that can not be read as a type is taken as undeclared, never as forbidden: catalogues hold
schemas that contradict themselves, and a type is a hint for finding tools. Arguments are held
against the schema itself (``agentkit.tools.validation``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agentkit.messages import JsonObject
from agentkit.tools.schema import resolve_local
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
    return reader.read(schema, 0, frozenset())


@dataclass(kw_only=True, slots=True)
class _Reader:
    """One run over a schema."""

    root: JsonObject
    is_result: bool
    parts: int = 0

    def read(self, schema: Any, depth: int, followed: frozenset[str]) -> TypeSet:
        """The type of one part, ``depth`` schemas down, behind the references ``followed``."""
        self.parts += 1
        if not isinstance(schema, Mapping) or depth > _DEEPEST or self.parts > _MOST_PARTS:
            return ANY
        if schema.keys() <= _WORDS_AND_TYPE and schema.get("type") in _SCALARS:
            return TypeSet.of(schema["type"])  # most parameters of most catalogues

        def below(part: Any) -> TypeSet:
            return self.read(part, depth + 1, followed)

        found = self._by_type(schema, below)
        for keyword in ("anyOf", "oneOf"):
            if isinstance(branches := schema.get(keyword), list) and branches:
                is_long = len(branches) > _MOST_BRANCHES
                found = _both(found, ANY if is_long else join(map(below, branches)))
        if isinstance(branches := schema.get("allOf"), list):
            for branch in branches:
                found = _both(found, below(branch))
        reference = schema.get("$ref")
        if isinstance(reference, str) and reference not in followed:
            target = resolve_local(self.root, reference)
            found = _both(found, self.read(target, depth + 1, followed | {reference}))
        meaning = _MEANING_OF_FORMAT.get(str(schema.get("format", "")))
        return found.with_meaning(meaning) if meaning and not found.is_any else found

    def _by_type(self, schema: JsonObject, below: Callable[[Any], TypeSet]) -> TypeSet:
        bases = _bases(schema)
        found = join(self._of_base(base, schema, below) for base in bases) if bases else ANY
        values = schema.get("enum", [schema["const"]] if "const" in schema else None)
        if isinstance(values, list) and 0 < len(values) <= _MOST_VALUES:
            found = _both(found, TypeSet.one_of(values))
        return found

    def _of_base(self, base: Base, schema: JsonObject, below: Callable[[Any], TypeSet]) -> TypeSet:
        if base == "array" and isinstance(schema.get("items"), Mapping):
            listed = TypeSet.list_of(below(schema["items"]))
            return TypeSet.of("array") if listed.is_never else listed
        properties = schema.get("properties")
        if base != "object" or not isinstance(properties, Mapping):
            return TypeSet.of(base)
        names = list(properties) if self.is_result else schema.get("required")
        fields = {
            name: below(properties[name])
            for name in (names[:_MOST_FIELDS] if isinstance(names, list) else ())
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
