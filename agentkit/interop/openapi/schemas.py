"""Schemas of a document as JSON Schema 2020-12, each converted once however often it is used.

A reference becomes ``#/$defs/Name`` and stays one, so that recursion costs nothing; a tool's
schema then gets the definitions that it reaches, see ``SchemaPool.closed``. Keywords of OpenAPI
3.0 are translated (``keywords``), properties that do not travel in the pool's direction are left
out, and what is still no valid schema is repaired by ``normalise_schema``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from agentkit.errors import DefinitionError
from agentkit.interop.openapi.remote import Located, ReferenceSpace, Unmappable, below
from agentkit.interop.openapi.report import OpenApiNote
from agentkit.tools.schema import SCHEMA_KEYWORDS, SCHEMA_LIST_KEYWORDS, SCHEMA_MAP_KEYWORDS
from agentkit.tools.sources.dialects import normalise_schema

_MAX_DEPTH = 48
_SCALARS = ("string", "integer", "number", "boolean")
_STILL_HERE = frozenset({"allOf", "anyOf", "else", "if", "not", "oneOf", "then"})
"""Keywords whose schemas look at the same value: a circle of these alone never ends."""


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


@dataclass(frozen=True, kw_only=True, slots=True)
class Closure:
    """The definitions that a schema reaches.

    Attributes:
        definitions: By name.
        cut: Names of those that were too far away; in ``definitions`` they allow anything.
    """

    definitions: dict[str, Any]
    cut: tuple[str, ...] = ()

    @property
    def told(self) -> str:
        """The first of those that were cut, and how many more there are."""
        more = len(self.cut) - 3
        return ", ".join(self.cut[:3]) + (f" and {more:,} more" if more > 0 else "")


class SchemaPool:
    """The schemas of one document in one direction.

    Args:
        space: Where references lead.
        direction: Which properties travel.
        is_old: Whether the document is OpenAPI 3.0, where siblings of ``$ref`` mean nothing.
    """

    def __init__(self, space: ReferenceSpace, *, direction: Direction, is_old: bool) -> None:
        self.space = space
        self.hidden = HIDDEN[direction]
        self.is_old = is_old
        self.notes: list[OpenApiNote] = []
        self._converted: dict[tuple[str, str], Converted] = {}
        self._names: dict[tuple[str, str], str] = {}
        self._found: dict[str, Located] = {}
        self._definitions: dict[str, Converted | Unmappable] = {}
        self._circular: dict[str, bool] = {}

    def convert(self, raw: object, *, document: str, pointer: str) -> Converted:
        """One schema; what it refers to is converted when it is asked for.

        Raises:
            Unmappable: A reference in it can not be followed.
        """
        known = self._converted.get((document, pointer))
        if known is not None:  # a parameter that many operations share
            return known
        walk = _Walk(pool=self, document=document)
        found = walk.schema(raw, pointer, 0, here=True)
        try:
            normalised = normalise_schema(found)
        except DefinitionError as error:
            raise Unmappable(str(error), pointer=pointer) from error
        self.notes += [
            OpenApiNote(pointer=f"{pointer}{change.pointer}", code="repaired", message=change.rule)
            for change in normalised.changes
        ]
        made = self._converted[document, pointer] = Converted(
            schema=normalised.schema,
            names=tuple(dict.fromkeys(walk.names)),
            here=tuple(dict.fromkeys(walk.here)),
        )
        return made

    def name_of(self, found: Located) -> str:
        """The name under which a schema stands in ``$defs``."""
        key = found.document, found.pointer
        name = self._names.get(key)
        if name is None:
            # A schema that is a document of its own is named as its file is.
            place = found.pointer or found.document.rpartition("/")[2].rpartition(".")[0]
            last = place.rpartition("/")[2].replace("~1", "/").replace("~0", "~")
            wanted = re.sub(r"[^A-Za-z0-9_.-]+", "_", last).strip("_") or "schema"
            name, number = wanted, 2
            while name in self._found:
                name, number = f"{wanted}__{number}", number + 1
            self._names[key] = name
            self._found[name] = found
        return name

    def definition(self, name: str) -> Converted:
        """The definition of a name.

        Raises:
            Unmappable: It can not be converted, or it is defined by nothing but itself.
        """
        known = self._definitions.get(name)
        if known is None:
            found = self._found[name]
            try:
                known = self.convert(found.value, document=found.document, pointer=found.pointer)
            except Unmappable as error:
                known = error
            self._definitions[name] = known
        if isinstance(known, Unmappable):
            raise known
        return known

    def closed(self, names: Iterable[str], *, budget: int, strict: bool) -> Closure:
        """The definitions that names reach: the nearest first, of equally near ones the smallest.

        Args:
            names: What the schema refers to itself.
            budget: Most characters in all; definitions beyond it allow anything.
            strict: Whether a definition that can not be converted is an error; otherwise it
                allows anything.

        Raises:
            Unmappable: Only when strict.
        """
        definitions: dict[str, Any] = {}
        cut: list[str] = []
        level = list(dict.fromkeys(names))
        while level:
            below: list[str] = []
            for name, found in self._by_size(level, budget, strict=strict):
                if found is None or found.size > budget:
                    cut.append(name)
                    definitions[name] = {"title": name}
                    continue
                budget -= found.size
                definitions[name] = found.schema
                below += found.names
            level = [name for name in dict.fromkeys(below) if name not in definitions]
        return Closure(definitions=definitions, cut=tuple(cut))

    def _by_size(
        self, names: Iterable[str], budget: int, *, strict: bool
    ) -> list[tuple[str, Converted | None]]:
        """Definitions by name, the smallest first; None for those that can not be had."""
        if budget <= 0:
            return [(name, None) for name in names]
        found = [(name, self._usable(name, strict=strict)) for name in names]
        return sorted(found, key=lambda one: 0 if one[1] is None else one[1].size)

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
        known = self._circular.get(name)
        if known is None:
            seen: set[str] = set()
            waiting = list(self.definition(name).here)
            while waiting:
                step = waiting.pop()
                if step not in seen:
                    seen.add(step)
                    waiting += self.definition(step).here
            known = self._circular[name] = name in seen
        if known:
            message = f"the schema {name!r} is defined by nothing but itself"
            raise Unmappable(message, pointer=self._found[name].pointer)


@dataclass(kw_only=True, slots=True)
class _Walk:
    """One pass over one schema."""

    pool: SchemaPool
    document: str
    names: list[str] = field(default_factory=list)
    here: list[str] = field(default_factory=list)

    def schema(self, raw: object, pointer: str, depth: int, *, here: bool) -> Any:
        if not isinstance(raw, dict):
            return raw  # a boolean, or something that the repairs deal with
        if depth > _MAX_DEPTH:
            note = f"nested deeper than {_MAX_DEPTH} levels, cut"
            self.pool.notes.append(OpenApiNote(pointer=pointer, code="cut", message=note))
            return {}
        if isinstance(raw.get("$ref"), str):
            return self._reference(raw, pointer, depth, here=here)
        kept = self._keywords(raw, pointer, depth, here=here)
        return allow_null(kept) if raw.get("nullable") is True else kept

    def _keywords(
        self, raw: Mapping[str, Any], pointer: str, depth: int, *, here: bool
    ) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        for key, rule in raw.items():
            if key in DROPPED or key == "examples" or key.startswith("x-"):
                continue
            at, inside = below(pointer, key), here and key in _STILL_HERE
            if key in SCHEMA_KEYWORDS:
                kept[key] = self.schema(rule, at, depth + 1, here=inside)
            elif key in SCHEMA_LIST_KEYWORDS:
                kept[key] = self._branches(raw, key, at, depth, here=inside)
            elif key == "properties" and isinstance(rule, dict):
                kept[key] = self._properties(rule, at, depth)
            elif key in SCHEMA_MAP_KEYWORDS and isinstance(rule, dict):
                kept[key] = self._map(rule, at, depth)
            else:
                kept[key] = rule
        self._unrequire(kept, raw)
        if examples := examples_of(raw):
            kept["examples"] = examples
        return kept

    def _map(self, rules: Mapping[str, Any], pointer: str, depth: int) -> dict[str, Any]:
        return {
            name: self.schema(part, below(pointer, name), depth + 1, here=False)
            for name, part in rules.items()
        }

    def _branches(
        self, raw: Mapping[str, Any], key: str, pointer: str, depth: int, *, here: bool
    ) -> Any:
        branches = raw[key]
        if not isinstance(branches, list):
            return branches
        name, values = tags_of(raw.get("discriminator"))
        made = []
        for index, branch in enumerate(branches):
            part = self.schema(branch, below(pointer, index), depth + 1, here=here)
            reference = branch.get("$ref") if isinstance(branch, dict) else None
            if isinstance(reference, str) and reference in values and key != "allOf":
                part = tagged(part, name, values[reference])
            made.append(part)
        return made

    def _properties(self, rules: Mapping[str, Any], pointer: str, depth: int) -> dict[str, Any]:
        travelling = {name: part for name, part in rules.items() if not self._is_hidden(part)}
        return self._map(travelling, pointer, depth)

    def _is_hidden(self, part: object) -> bool:
        if not isinstance(part, dict):
            return False
        if part.get(self.pool.hidden) is True:
            return True
        reference = part.get("$ref")
        if not isinstance(reference, str):
            return False
        try:
            found = self.pool.space.find(reference, within=self.document, pointer="")
        except Unmappable:
            return False  # told where the reference itself is read
        return isinstance(found.value, dict) and found.value.get(self.pool.hidden) is True

    def _unrequire(self, kept: dict[str, Any], raw: Mapping[str, Any]) -> None:
        """What does not travel is not required either."""
        given, required = raw.get("properties"), kept.get("required")
        if not isinstance(required, list) or not isinstance(given, dict):
            return
        gone = given.keys() - kept.get("properties", {}).keys()
        kept["required"] = [
            name for name in required if not (isinstance(name, str) and name in gone)
        ]

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
            made = {**made, "description": words} if isinstance(words, str) else made
        elif beside:
            made = {**made, **self._keywords(beside, pointer, depth, here=here)}
        return allow_null(made) if raw.get("nullable") is True else made


def _is_scalar(value: object) -> bool:
    return (
        isinstance(value, dict)
        and value.get("type") in _SCALARS
        and not value.keys() & (_STILL_HERE | {"$ref", "properties", "items"})
    )


Direction = Literal["request", "response"]

HIDDEN: Mapping[Direction, str] = {"request": "readOnly", "response": "writeOnly"}
"""The flag of a property that does not travel in a direction."""

DROPPED = frozenset(
    {
        "$anchor",
        "$comment",
        "$defs",  # every reference is rewritten, so nothing refers to these any more
        "$dynamicAnchor",
        "$dynamicRef",
        "$id",
        "$schema",
        "$vocabulary",
        "definitions",
        "discriminator",  # becomes a const in the branches, see ``tagged``
        "example",  # becomes one of ``examples``
        "externalDocs",
        "nullable",  # becomes a type
        "readOnly",
        "writeOnly",
        "xml",
    }
)
"""Keywords that are left out, or that another takes the place of."""

_LONGEST_EXAMPLE = 200
_WORDS: tuple[str, ...] = ("description", "title")
_APPLICATORS = ("$ref", "allOf", "anyOf", "oneOf")


def examples_of(raw: Mapping[str, Any]) -> list[Any]:
    """The short examples of a schema or a parameter: ``example`` and ``examples`` of all versions.

    ``examples`` is a list in a schema and a map of objects with a ``value`` elsewhere.
    """
    found: list[Any] = []
    if "example" in raw:
        found.append(raw["example"])
    named = raw.get("examples")
    if isinstance(named, list):
        found += named
    elif isinstance(named, Mapping):
        found += [item["value"] for item in named.values() if _has_value(item)]
    return [item for item in found if _is_short(item)][:3]


def _has_value(item: object) -> bool:
    return isinstance(item, Mapping) and "value" in item


def _is_short(value: object) -> bool:
    return len(json.dumps(value, default=str)) <= _LONGEST_EXAMPLE


def allow_null(schema: dict[str, Any]) -> dict[str, Any]:
    """OpenAPI 3.0's ``nullable: true``: the schema, or null.

    Example:
        >>> allow_null({"type": "string", "enum": ["a"]})
        {'type': ['string', 'null'], 'enum': ['a', None]}
        >>> allow_null({"$ref": "#/$defs/Pet", "description": "A pet."})
        {'anyOf': [{'$ref': '#/$defs/Pet'}, {'type': 'null'}], 'description': 'A pet.'}
    """
    changed = dict(schema)
    if any(key in schema for key in _APPLICATORS):
        words = {key: changed.pop(key) for key in _WORDS if key in changed}
        return {"anyOf": [changed, {"type": "null"}]} | words
    kind = schema.get("type")
    if isinstance(kind, str) and kind != "null":
        changed["type"] = [kind, "null"]
    elif isinstance(kind, list) and "null" not in kind:
        changed["type"] = [*kind, "null"]
    members = schema.get("enum")
    if isinstance(members, list) and None not in members:
        changed["enum"] = [*members, None]
    return changed


def tags_of(discriminator: object) -> tuple[str, Mapping[str, list[str]]]:
    """The property of a discriminator, and for each branch's reference the values that mean it.

    Without a ``mapping`` the values are the names of schemas, but real documents often mean
    something else; so only what is written counts.
    """
    by_reference: dict[str, list[str]] = {}
    if not isinstance(discriminator, Mapping):
        return "", by_reference
    name, mapping = discriminator.get("propertyName"), discriminator.get("mapping")
    if not isinstance(name, str) or not isinstance(mapping, Mapping):
        return "", by_reference
    for value, target in mapping.items():
        if isinstance(target, str):
            is_name = "/" not in target and "#" not in target and "." not in target
            reference = f"#/components/schemas/{target}" if is_name else target
            by_reference.setdefault(reference, []).append(value)
    return name, by_reference


def tagged(branch: dict[str, Any], name: str, values: list[str]) -> dict[str, Any]:
    """A branch of ``oneOf`` that says by which values of the discriminator it is meant."""
    rule: dict[str, Any] = {"const": values[0]} if len(values) == 1 else {"enum": values}
    return {**branch, "properties": {name: rule}, "required": [name]}
