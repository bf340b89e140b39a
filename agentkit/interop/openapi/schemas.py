"""Schemas of a document as JSON Schema 2020-12, each converted once however often it is used.

A reference becomes ``#/$defs/Name`` and stays one, so that recursion costs nothing; a tool's
schema then gets the definitions that it reaches, see ``SchemaPool.closed``. Keywords of OpenAPI
3.0 are translated, properties that do not travel in the pool's direction are left out, and what is
still no valid schema is repaired by ``normalise_schema``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from agentkit.errors import DefinitionError
from agentkit.interop.openapi.documents import Located, ReferenceSpace, Unmappable, below
from agentkit.interop.openapi.report import Notes
from agentkit.tools.schema import SCHEMA_KEYWORDS, SCHEMA_LIST_KEYWORDS, SCHEMA_MAP_KEYWORDS
from agentkit.tools.sources.dialects import normalise_schema

Direction = Literal["request", "response"]

_HIDDEN: Mapping[Direction, str] = {"request": "readOnly", "response": "writeOnly"}
"""The flag of a property that does not travel in a direction."""

_MAX_DEPTH = 48
_LONGEST_EXAMPLE = 200
_SCALARS = ("string", "integer", "number", "boolean")
_STILL_HERE = frozenset({"allOf", "anyOf", "else", "if", "not", "oneOf", "then"})
"""Keywords whose schemas look at the same value: a circle of these alone never ends."""

_DROPPED = frozenset(
    {"$anchor", "$comment", "$dynamicAnchor", "$dynamicRef", "$id", "$schema", "$vocabulary"}
    | {"$defs", "definitions"}  # every reference is rewritten, so nothing refers to these any more
    | {"discriminator"}  # becomes a const in the branches, see `_branches`
    | {"example", "examples", "nullable", "readOnly", "writeOnly"}  # read elsewhere
    | {"externalDocs", "xml"}
)
"""Keywords that are left out, or that another takes the place of."""


@dataclass(frozen=True, kw_only=True)
class Converted:
    """A schema in 2020-12.

    Attributes:
        schema: The schema; its references are ``#/$defs/NAME``.
        names: The definitions that it refers to itself.
        here: Those of them that look at the same value.
    """

    schema: dict[str, Any]
    names: tuple[str, ...] = ()
    here: tuple[str, ...] = ()

    @cached_property
    def size(self) -> int:
        """How many characters of JSON the schema takes."""
        return len(json.dumps(self.schema, ensure_ascii=False))


class SchemaPool:
    """The schemas of one document in one direction.

    Args:
        space: Where references lead.
        direction: Which properties travel.
        is_old: Whether the document is OpenAPI 3.0, where siblings of ``$ref`` mean nothing.
    """

    def __init__(self, space: ReferenceSpace, *, direction: Direction, is_old: bool) -> None:
        self.space = space
        self.hidden = _HIDDEN[direction]
        self.is_old = is_old
        self.notes = Notes()
        self._converted: dict[tuple[str, str], Converted] = {}
        self._names: dict[tuple[str, str], str] = {}
        self._found: dict[str, Located] = {}
        self._definitions: dict[str, Converted | Unmappable] = {}
        self._circular: dict[str, bool] = {}

    def convert(self, raw: Located) -> Converted:
        """One schema; what it refers to is converted when it is asked for.

        Raises:
            Unmappable: A reference in it can not be followed.
        """
        key = raw.document, raw.pointer
        if key not in self._converted:  # many operations share a parameter
            walk = _Walk(pool=self, document=raw.document)
            given = {} if raw.value is None else raw.value
            found = walk.schema(given, raw.pointer, 0, here=True)
            try:
                normalised = normalise_schema(found)
            except DefinitionError as error:
                raise Unmappable(str(error), pointer=raw.pointer) from error
            for change in normalised.changes:
                self.notes.add("repaired", change.rule, f"{raw.pointer}{change.pointer}")
            self._converted[key] = Converted(
                schema=normalised.schema,
                names=tuple(dict.fromkeys(walk.names)),
                here=tuple(dict.fromkeys(walk.here)),
            )
        return self._converted[key]

    def name_of(self, found: Located) -> str:
        """The name under which a schema stands in ``$defs``."""
        key = found.document, found.pointer
        if key not in self._names:
            # A schema that is a document of its own is named as its file is.
            place = found.pointer or found.document.rpartition("/")[2].rpartition(".")[0]
            last = place.rpartition("/")[2].replace("~1", "/").replace("~0", "~")
            wanted = re.sub(r"[^A-Za-z0-9_.-]+", "_", last).strip("_") or "schema"
            name, number = wanted, 2
            while name in self._found:
                name, number = f"{wanted}__{number}", number + 1
            self._names[key] = name
            self._found[name] = found
        return self._names[key]

    def definition(self, name: str) -> Converted:
        """The definition of a name, or of a reference to it.

        Raises:
            Unmappable: It can not be converted.
        """
        name = name.removeprefix("#/$defs/")
        if name not in self._definitions:
            try:
                self._definitions[name] = self.convert(self._found[name])
            except Unmappable as error:
                self._definitions[name] = error
        known = self._definitions[name]
        if isinstance(known, Unmappable):
            raise known
        return known

    def closed(
        self, names: Iterable[str], *, budget: int, strict: bool
    ) -> tuple[dict[str, Any], str]:
        """The definitions that names reach: the nearest first, of equally near ones the smallest.

        Args:
            names: What the schema refers to itself.
            budget: Most characters in all; definitions beyond it allow anything.
            strict: Whether a definition that can not be converted is an error; otherwise it
                allows anything.

        Returns:
            The definitions by name, and which of them were cut, in words.

        Raises:
            Unmappable: Only when strict.
        """
        definitions: dict[str, Any] = {}
        cut: list[str] = []
        level = list(dict.fromkeys(names))
        while level:
            found = [
                (name, self._usable(name, strict=strict) if budget > 0 else None) for name in level
            ]
            following: list[str] = []
            for name, one in sorted(found, key=lambda pair: pair[1].size if pair[1] else 0):
                if one is None or one.size > budget:
                    cut.append(name)
                    definitions[name] = {"title": name}
                    continue
                budget -= one.size
                definitions[name] = one.schema
                following += one.names
            level = [name for name in dict.fromkeys(following) if name not in definitions]
        more = f" and {len(cut) - 3:,} more" if len(cut) > 3 else ""
        return definitions, ", ".join(cut[:3]) + more

    def _usable(self, name: str, *, strict: bool) -> Converted | None:
        try:
            self._refuse_circle(name)
            return self.definition(name)
        except Unmappable:
            if strict:
                raise
            return None

    def _refuse_circle(self, name: str) -> None:
        """Refuse a definition that looking at one value comes back to: it never ends."""
        if name not in self._circular:
            seen: set[str] = set()
            waiting = list(self.definition(name).here)
            while waiting:
                step = waiting.pop()
                if step not in seen:
                    seen.add(step)
                    waiting += self.definition(step).here
            self._circular[name] = name in seen
        if self._circular[name]:
            message = f"the schema {name!r} is defined by nothing but itself"
            raise Unmappable(message, pointer=self._found[name].pointer)


@dataclass(kw_only=True, slots=True)
class _Walk:
    """One pass over one schema, which notes the definitions that it refers to."""

    pool: SchemaPool
    document: str
    names: list[str] = field(default_factory=list)
    here: list[str] = field(default_factory=list)

    def schema(self, raw: object, pointer: str, depth: int, *, here: bool) -> Any:
        if not isinstance(raw, dict):
            return raw  # a boolean, or something that the repairs deal with
        if depth > _MAX_DEPTH:
            note = f"nested deeper than {_MAX_DEPTH} levels, cut"
            self.pool.notes.add("cut", note, pointer)
            return {}
        is_reference = isinstance(raw.get("$ref"), str)
        read = self._reference if is_reference else self._keywords
        found = read(raw, pointer, depth, here=here)
        return allow_null(found) if raw.get("nullable") is True else found

    def _keywords(
        self, raw: Mapping[str, Any], pointer: str, depth: int, *, here: bool
    ) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        for key, rule in raw.items():
            if key in _DROPPED or key.startswith("x-"):
                continue
            at, inside = below(pointer, key), here and key in _STILL_HERE
            if key in SCHEMA_KEYWORDS:
                kept[key] = self.schema(rule, at, depth + 1, here=inside)
            elif key in SCHEMA_LIST_KEYWORDS and isinstance(rule, list):
                kept[key] = self._branches(raw, key, at, depth, here=inside)
            elif key in SCHEMA_MAP_KEYWORDS and isinstance(rule, dict):
                kept[key] = {
                    name: self.schema(part, below(at, name), depth + 1, here=False)
                    for name, part in rule.items()
                    if key != "properties" or not self._is_hidden(part)
                }
            else:
                kept[key] = rule
        properties, required = raw.get("properties"), kept.get("required")
        if isinstance(properties, dict) and isinstance(required, list):
            gone = properties.keys() - kept["properties"].keys()  # not required when it is hidden
            kept["required"] = [
                name for name in required if not isinstance(name, str) or name not in gone
            ]
        if examples := examples_of(raw):
            kept["examples"] = examples
        return kept

    def _branches(
        self, raw: Mapping[str, Any], key: str, pointer: str, depth: int, *, here: bool
    ) -> list[Any]:
        """The schemas of a combination; each says by which value of a discriminator it is meant."""
        name, values = _tags_of(raw.get("discriminator"))
        made = []
        for index, branch in enumerate(raw[key]):
            part = self.schema(branch, below(pointer, index), depth + 1, here=here)
            reference = branch.get("$ref") if isinstance(branch, dict) else None
            tags = values.get(reference, []) if isinstance(reference, str) else []
            if tags and key != "allOf":
                rule = {"const": tags[0]} if len(tags) == 1 else {"enum": tags}
                part = {**part, "properties": {name: rule}, "required": [name]}
            made.append(part)
        return made

    def _is_hidden(self, part: object) -> bool:
        if not isinstance(part, dict):
            return False
        reference = part.get("$ref")
        if part.get(self.pool.hidden) is True or not isinstance(reference, str):
            return part.get(self.pool.hidden) is True
        try:
            found = self.pool.space.find(reference, within=self.document, pointer="")
        except Unmappable:
            return False  # told where the reference itself is read
        return isinstance(found.value, dict) and found.value.get(self.pool.hidden) is True

    def _reference(
        self, raw: Mapping[str, Any], pointer: str, depth: int, *, here: bool
    ) -> dict[str, Any]:
        found = self.pool.space.find(raw["$ref"], within=self.document, pointer=pointer)
        if _is_scalar(found.value):  # an enum or a format reads better in its place
            other = _Walk(pool=self.pool, document=found.document)
            made: dict[str, Any] = other.schema(found.value, found.pointer, depth + 1, here=False)
        else:
            name = self.pool.name_of(found)
            self.names.append(name)
            if here:
                self.here.append(name)
            made = {"$ref": f"#/$defs/{name}"}
        beside = {key: rule for key, rule in raw.items() if key != "$ref"}
        if self.pool.is_old:
            words = beside.get("description")
            return {**made, "description": words} if isinstance(words, str) else made
        return {**made, **self._keywords(beside, pointer, depth, here=here)} if beside else made


def _is_scalar(value: object) -> bool:
    return (
        isinstance(value, dict)
        and value.get("type") in _SCALARS
        and not value.keys() & (_STILL_HERE | {"$ref", "properties", "items"})
    )


def examples_of(raw: Mapping[str, Any]) -> list[Any]:
    """The short examples of a schema or a parameter: ``example`` and ``examples`` of all versions.

    ``examples`` is a list in a schema and a map of objects with a ``value`` elsewhere.
    """
    found = [raw["example"]] if "example" in raw else []
    named = raw.get("examples")
    if isinstance(named, list):
        found += named
    elif isinstance(named, Mapping):
        parts = [part for part in named.values() if isinstance(part, Mapping)]
        found += [part["value"] for part in parts if "value" in part]
    return [item for item in found if len(json.dumps(item, default=str)) <= _LONGEST_EXAMPLE][:3]


def allow_null(schema: dict[str, Any]) -> dict[str, Any]:
    """OpenAPI 3.0's ``nullable: true``: the schema, or null.

    Example:
        >>> allow_null({"type": "string", "enum": ["a"]})
        {'type': ['string', 'null'], 'enum': ['a', None]}
        >>> allow_null({"$ref": "#/$defs/Pet", "description": "A pet."})
        {'anyOf': [{'$ref': '#/$defs/Pet'}, {'type': 'null'}], 'description': 'A pet.'}
    """
    changed = dict(schema)
    if any(key in schema for key in ("$ref", "allOf", "anyOf", "oneOf")):
        words = {key: changed.pop(key) for key in ("description", "title") if key in changed}
        return {"anyOf": [changed, {"type": "null"}]} | words
    kind, members = schema.get("type"), schema.get("enum")
    kinds = [kind] if isinstance(kind, str) else kind
    if isinstance(kinds, list) and "null" not in kinds:
        changed["type"] = [*kinds, "null"]
    if isinstance(members, list) and None not in members:
        changed["enum"] = [*members, None]
    return changed


def _tags_of(discriminator: object) -> tuple[str, Mapping[str, list[str]]]:
    """The property of a discriminator, and for each branch's reference the values that mean it.

    Without a ``mapping`` the values are the names of schemas, but real documents often mean
    something else; so only what is written counts.
    """
    by_reference: dict[str, list[str]] = {}
    given = discriminator if isinstance(discriminator, Mapping) else {}
    name, mapping = given.get("propertyName"), given.get("mapping")
    if not isinstance(name, str) or not isinstance(mapping, Mapping):
        return "", by_reference
    for value, target in mapping.items():
        if isinstance(target, str):
            is_name = not any(mark in target for mark in "/#.")
            reference = f"#/components/schemas/{target}" if is_name else target
            by_reference.setdefault(reference, []).append(value)
    return name, by_reference
