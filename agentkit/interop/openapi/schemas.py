"""Schemas of a document as JSON Schema 2020-12, each converted once however often it is used.

A reference becomes ``#/$defs/Name`` and stays one, so that recursion costs nothing; a tool's
schema then gets the definitions that it reaches, see ``SchemaPool.closed``. Keywords of OpenAPI
3.0 are translated, properties that do not travel in the pool's direction are left out, and what is
still no valid schema is repaired by ``normalise_schema``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from agentkit.errors import DefinitionError
from agentkit.interop.openapi.documents import Node, ReferenceSpace, Unmappable
from agentkit.messages import JsonObject
from agentkit.tools.patterns import pattern_weight
from agentkit.tools.schema import (
    MAX_PATTERN_WEIGHT,
    MAX_SCHEMAS_FOR_A_VALUE,
    SCHEMA_KEYWORDS,
    SCHEMA_LIST_KEYWORDS,
    SCHEMA_MAP_KEYWORDS,
    schemas_in,
)
from agentkit.tools.sources.dialects import normalise_schema

Direction = Literal["request", "response"]

_HIDDEN: Mapping[Direction, str] = {"request": "readOnly", "response": "writeOnly"}
"""The flag of a property that does not travel in a direction."""

_MAX_DEPTH = 48
_LONGEST_EXAMPLE = 200
_SCALARS = ("string", "integer", "number", "boolean")
_MAX_SCALAR = 400
_NO_SCALAR = frozenset(
    {"$ref", "allOf", "anyOf", "else", "if", "items", "not", "oneOf", "properties", "then"}
)
_ONE_FOR_THE_SAME = ("not", "if", "then", "else")
_COMBINING = frozenset({"$ref", "allOf", "anyOf", "dependentSchemas", "oneOf"})
_DROPPED = frozenset(
    {"$anchor", "$comment", "$dynamicAnchor", "$dynamicRef", "$id", "$schema", "$vocabulary"}
    | {"$defs", "definitions"}  # every reference is rewritten, so nothing refers to these any more
    | {"discriminator", "externalDocs", "xml", "readOnly", "writeOnly"}
    | {"example", "nullable"}  # another keyword takes their place
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Converted:
    """A schema in 2020-12.

    Attributes:
        schema: The schema; its references are ``#/$defs/NAME``.
        names: The definitions that it refers to itself.
        size: How many characters of JSON it takes.
        combining: Its parts that hold other schemas against the same value.
        patterns: How large its patterns are.
    """

    schema: dict[str, Any]
    names: tuple[str, ...]
    size: int
    combining: tuple[JsonObject, ...]
    patterns: int


@dataclass(kw_only=True, slots=True)
class Budget:
    """How much may be made of one document, so that a short one does not become a great many tools.

    Attributes:
        left: Characters of schemas that may still be made.
    """

    left: int

    def spend(self, characters: int) -> None:
        """Count what is made.

        Raises:
            Unmappable: Nothing is left.
        """
        self.left -= characters
        if self.left < 0:
            raise Unmappable(
                "the description asks for more than its size allows; choose some of its "
                "operations (operations=, tags=)"
            )


class SchemaPool:
    """The schemas of one document in one direction.

    Args:
        space: Where references lead.
        direction: Which properties travel.
        is_old: Whether the document is OpenAPI 3.0, where siblings of ``$ref`` mean nothing.
        budget: What conversions are counted against.
    """

    def __init__(
        self, space: ReferenceSpace, *, direction: Direction, is_old: bool, budget: Budget
    ) -> None:
        self.space = space
        self.budget = budget
        self.hidden = _HIDDEN[direction]
        self.is_old = is_old
        self._converted: dict[str, Converted | Unmappable] = {}
        self._names: dict[str, str] = {}
        self._found: dict[str, Node] = {}
        self._scalars: dict[str, bool] = {}
        self._counts: dict[int, int] = {}  # of parts that `_converted` keeps alive

    def convert(self, raw: Node) -> Converted:
        """One schema; what it refers to is converted when it is asked for.

        Raises:
            Unmappable: A reference in it can not be followed, or it asks too much.
        """
        found = self._converted.get(raw.pointer)
        if found is None:
            found = self._converted[raw.pointer] = self._convert(raw)
        if isinstance(found, Unmappable):
            raise found
        return found

    def _convert(self, raw: Node) -> Converted | Unmappable:
        try:
            self.budget.spend(0)
            schema = self._schema({} if raw.value is None else raw.value, 0)
            schema = normalise_schema(schema).schema
        except Unmappable as error:
            return error
        except DefinitionError as error:
            return Unmappable(str(error))
        return self.measured(schema)

    def _schema(self, raw: object, depth: int) -> Any:
        """A schema in 2020-12; what it refers to stays a reference."""
        if isinstance(raw, list):  # an old way to write the schemas of a list's first entries
            return [self._schema(part, depth + 1) for part in raw]
        if not isinstance(raw, dict):
            return raw  # a boolean, or something that the repairs deal with
        if depth > _MAX_DEPTH:
            return {}
        read = self._reference if isinstance(raw.get("$ref"), str) else self._keywords
        found = read(raw, depth)
        return allow_null(found) if raw.get("nullable") is True else found

    def _keywords(self, raw: Mapping[str, Any], depth: int) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        for key, rule in raw.items():
            if key in _DROPPED or key.startswith("x-"):
                continue
            if key in SCHEMA_KEYWORDS:
                kept[key] = self._schema(rule, depth + 1)
            elif key in SCHEMA_LIST_KEYWORDS and isinstance(rule, list):
                kept[key] = [self._schema(part, depth + 1) for part in rule]
            elif key in SCHEMA_MAP_KEYWORDS and isinstance(rule, dict):
                kept[key] = {
                    name: self._schema(part, depth + 1)
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
        if "example" in raw and len(json.dumps(raw["example"])) <= _LONGEST_EXAMPLE:
            kept["examples"] = [raw["example"]]
        return kept

    def _is_hidden(self, part: object) -> bool:
        return isinstance(part, dict) and part.get(self.hidden) is True

    def _reference(self, raw: Mapping[str, Any], depth: int) -> dict[str, Any]:
        found = self.space.find(raw["$ref"])
        if self.is_small_scalar(found):  # an enum or a format reads better in its place
            made: dict[str, Any] = self._keywords(found.value, depth + 1)
        else:
            made = {"$ref": f"#/$defs/{self.name_of(found)}"}
        beside = {key: rule for key, rule in raw.items() if key != "$ref"}
        if self.is_old:
            words = beside.get("description")
            return {**made, "description": words} if isinstance(words, str) else made
        return {**made, **self._keywords(beside, depth)} if beside else made

    def measured(self, schema: dict[str, Any]) -> Converted:
        """A schema in 2020-12 with what is known of it; it counts as made."""
        size = len(json.dumps(schema, ensure_ascii=False))
        self.budget.left -= size
        parts = list(schemas_in(schema))
        references = (part["$ref"].removeprefix("#/$defs/") for part in parts if "$ref" in part)
        patterns = (part["pattern"] for part in parts if isinstance(part.get("pattern"), str))
        return Converted(
            schema=schema,
            names=tuple(dict.fromkeys(references)),
            size=size,
            combining=tuple(part for part in parts if not part.keys().isdisjoint(_COMBINING)),
            patterns=sum(map(pattern_weight, patterns)),
        )

    def name_of(self, found: Node) -> str:
        """The name under which a schema stands in ``$defs``."""
        if found.pointer not in self._names:
            last = found.pointer.rpartition("/")[2].replace("~1", "/").replace("~0", "~")[:100]
            wanted = re.sub(r"[^A-Za-z0-9_.-]+", "_", last).strip("_") or "schema"
            name = wanted if wanted not in self._found else f"{wanted}__{len(self._found)}"
            self._names[found.pointer] = name
            self._found[name] = found
        return self._names[found.pointer]

    def is_small_scalar(self, found: Node) -> bool:
        """Whether a schema is that of a text, a number or a flag, and takes few characters."""
        if found.pointer not in self._scalars:
            given = found.mapping
            self._scalars[found.pointer] = (
                given.get("type") in _SCALARS
                and not given.keys() & _NO_SCALAR
                and len(json.dumps(given)) <= _MAX_SCALAR
            )
        return self._scalars[found.pointer]

    def definition(self, name: str) -> Converted:
        """The definition of a name, or of a reference to it.

        Raises:
            Unmappable: It can not be converted.
        """
        found = self._found.get(name.removeprefix("#/$defs/"))
        if found is None:
            raise Unmappable(f"the reference {name!r:.200} stands where no schema belongs")
        return self.convert(found)

    def closed(
        self, roots: Sequence[Converted], *, budget: int, strict: bool
    ) -> tuple[dict[str, Any], list[str]]:
        """The definitions that schemas reach: the nearest first, of equally near ones the smallest.

        Args:
            roots: The schemas.
            budget: Most characters in all; definitions beyond it allow anything.
            strict: Whether a definition that can not be used is an error; otherwise it allows
                anything.

        Returns:
            The definitions by name, and which of them were cut.

        Raises:
            Unmappable: The schemas ask too much of whoever walks them, or one can not be converted.
        """
        definitions: dict[str, Any] = {}
        cut: list[str] = []
        left, patterns, level = budget, 0, list(roots)
        while level:
            patterns += sum(one.patterns for one in level)
            names = [name for one in level for name in one.names if name not in definitions]
            found = [
                (name, self._usable(name, strict=strict) if left > 0 else None)
                for name in dict.fromkeys(names)
            ]
            level = []
            for name, one in sorted(found, key=lambda pair: pair[1].size if pair[1] else 0):
                if one is None or one.size > left:
                    cut.append(name)
                    definitions[name] = {}
                    continue
                left -= one.size
                definitions[name] = one.schema
                level.append(one)
        self.budget.spend(budget - left + sum(one.size for one in roots))
        if patterns > MAX_PATTERN_WEIGHT:
            raise Unmappable("its patterns are too large to be matched")
        for root in roots:
            self._check(root)
        return definitions, cut

    def _usable(self, name: str, *, strict: bool) -> Converted | None:
        try:
            found = self.definition(name)
            self._check(found)
        except Unmappable:
            if strict:
                raise
            return None
        return found

    def _check(self, found: Converted) -> None:
        """Refuse a schema that holds one value against very many, each of them worked out once.

        Raises:
            Unmappable: Its references and combinations multiply each other.
        """
        most = max((self._held(part, 0) for part in found.combining), default=0)
        if most > MAX_SCHEMAS_FOR_A_VALUE:
            raise Unmappable(
                "its references hold one value against more than "
                f"{MAX_SCHEMAS_FOR_A_VALUE:,} schemas"
            )

    def _held(self, part: Any, depth: int) -> int:
        """How many schemas one value is held against, references and combinations followed."""
        if not isinstance(part, dict):
            return 1
        if depth > _MAX_DEPTH:
            return MAX_SCHEMAS_FOR_A_VALUE + 1
        if id(part) not in self._counts:
            self._counts[id(part)] = 1  # where references go in a circle
            below = [part[key] for key in _ONE_FOR_THE_SAME if key in part]
            below += [one for key in ("allOf", "anyOf", "oneOf") for one in part.get(key, ())]
            below += part.get("dependentSchemas", {}).values()
            if "$ref" in part:
                below.append(self.definition(part["$ref"]).schema)
            found = 1 + sum(self._held(one, depth + 1) for one in below)
            self._counts[id(part)] = min(found, MAX_SCHEMAS_FOR_A_VALUE + 1)
        return self._counts[id(part)]


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
