"""Schemas as they are found in the wild, turned into valid JSON Schema 2020-12.

Public tool catalogues write ``dict`` and ``float`` for types, put ``required: true`` on a
property, leave an ``enum`` empty or copy a pattern that does not compile. Each repair keeps what
the author meant, and each is reported, so that nothing changes unseen. Normalising twice gives
what normalising once gives, and the result is always a valid schema.

What is *not* repaired is kept as it is: a ``default`` of the wrong type, a required name without
a property, keywords that JSON Schema does not know.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agentkit.errors import DefinitionError
from agentkit.tools.bounded import schema_fault
from agentkit.tools.patterns import why_unusable
from agentkit.tools.problem import value_text
from agentkit.tools.references import (
    check_bounds,
    inline_root,
    pointer_keys,
    references,
    resolve_local,
)
from agentkit.tools.sources.keywords import (
    DROPPED,
    OBJECT_KEYWORDS,
    PATTERN_DROPPED,
    READERS,
    SCHEMA_KEYWORDS,
    SCHEMA_LIST_KEYWORDS,
    SCHEMA_MAP_KEYWORDS,
    Note,
    as_boolean,
)
from agentkit.tools.sources.normal_form import normal_copy
from agentkit.tools.sources.translation import translate
from agentkit.tools.sources.type_names import read_type_name

_MAX_DEPTH = 64
_DESCRIBES_PROPERTIES = frozenset({"properties", "patternProperties", "allOf", "anyOf", "oneOf"})


@dataclass(frozen=True, kw_only=True, slots=True)
class SchemaChange:
    """One repair.

    Attributes:
        pointer: Where, as a JSON pointer into the schema as received.
        rule: What was done, such as ``type dict -> object``; equal repairs have equal rules, so
            that they can be counted.
    """

    pointer: str
    rule: str


@dataclass(frozen=True, kw_only=True, slots=True)
class NormalisedSchema:
    """A valid schema, and how it differs from what was received.

    Attributes:
        schema: Valid JSON Schema 2020-12.
        changes: Every repair, in document order; empty when the schema was fine.
    """

    schema: dict[str, Any]
    changes: tuple[SchemaChange, ...]


def normalise_schema(raw: object) -> NormalisedSchema:
    """Repair any schema, such as that of a result.

    Args:
        raw: Decoded JSON: an object, a boolean, the name of a type, or something broken.

    Raises:
        DefinitionError: It asks too much of whoever walks it (``check_bounds``), or refers to a
            part of itself that is no schema.

    Example:
        >>> normalised = normalise_schema({"type": "list", "items": {"type": "float"}})
        >>> normalised.schema
        {'type': 'array', 'items': {'type': 'number'}}
        >>> [change.rule for change in normalised.changes]
        ['type list -> array', 'type float -> number']
    """
    check_bounds(raw)
    normal = normal_copy(raw)
    if normal is not None:
        return _referring(NormalisedSchema(schema=normal, changes=()))
    walk = _Walk()
    schema = walk.schema(raw, "", 0)
    if isinstance(schema, bool):
        schema = {} if schema else {"not": {}}
        walk.note("", f"boolean schema -> {json.dumps(schema)}")
    return _referring(NormalisedSchema(schema=schema, changes=tuple(walk.changes)))


def normalise_parameters(raw: object) -> NormalisedSchema:
    """Repair the schema of a tool's arguments, which always describes an object.

    Beyond a schema this accepts a map of parameters, a list of parameters with names, and nothing
    at all.

    Raises:
        DefinitionError: It asks too much of whoever walks it (``check_bounds``), or refers to a
            part of itself that is no schema.

    Example:
        >>> normalise_parameters({"city": {"type": "str", "required": True}}).schema
        {'type': 'object', 'properties': {'city': {'type': 'string'}}, 'required': ['city']}
    """
    check_bounds(raw)
    normal = normal_copy(raw)
    if normal is not None and _is_root(normal):
        return _referring(NormalisedSchema(schema=normal, changes=()))
    walk = _Walk()
    found = walk.schema(_as_object(raw, walk), "", 0)
    schema = found if isinstance(found, dict) else {}
    root = inline_root(schema)
    if "$ref" in schema and root.get("$ref") != schema["$ref"]:
        walk.note("", "reference at the root -> its target")
    if root.get("type") != "object":
        walk.note("", "type object added")
        root = {"type": "object"} | {key: root[key] for key in root if key != "type"}
    if not root.keys() & _DESCRIBES_PROPERTIES:
        walk.note("", "properties added")
        root["properties"] = {}
    return _referring(NormalisedSchema(schema=root, changes=tuple(walk.changes)))


def _referring(found: NormalisedSchema) -> NormalisedSchema:
    """The same, once it is known that its references lead to schemas, or out of it.

    Raises:
        DefinitionError: One leads to something else, which no validator expects.
    """
    for reference in set(references(found.schema)):
        target = resolve_local(found.schema, reference, nowhere=True)
        if not _is_schema(target, reference):
            raise DefinitionError(
                f"the schema can not be used: its reference {reference[:80]!r} leads to "
                f"{value_text(target)}, which is no schema"
            )
    return found


def _is_schema(target: object, reference: str) -> bool:
    if isinstance(target, bool):
        return True
    if not isinstance(target, dict):
        return False
    keys = pointer_keys(reference)
    for key in keys:
        if key in SCHEMA_LIST_KEYWORDS or key in SCHEMA_MAP_KEYWORDS:
            known = next(keys, None) is not None
        else:
            known = key in SCHEMA_KEYWORDS
        if not known:  # nobody has looked at what stands there
            return normal_copy(target) is not None or schema_fault(target) is None
    return True


def _is_root(schema: Mapping[str, Any]) -> bool:
    """Whether a valid schema describes an object with properties without a detour."""
    return schema.get("type") == "object" and "properties" in schema and "$ref" not in schema


def _as_object(raw: object, walk: _Walk) -> object:
    """What was received as the schema of an object, whichever way it was written."""
    if raw is None or raw in ("", []):
        walk.note("", "no parameters -> an object without properties")
        return {"type": "object", "properties": {}}
    if isinstance(raw, list):
        walk.note("", "list of parameters -> properties")
        return {"type": "object", "properties": _by_name(raw, walk.noting(""))}
    if isinstance(raw, Mapping) and _is_property_map(raw):
        walk.note("", "map of parameters -> properties")
        return {"type": "object", "properties": raw}
    return raw


def _by_name(entries: Iterable[object], note: Note) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for entry in entries:
        name = entry.get("name") if isinstance(entry, Mapping) else entry
        if not isinstance(name, str) or name in properties:
            note("parameter without a name of its own, dropped")
            continue
        known = entry if isinstance(entry, Mapping) else {}
        properties[name] = {key: item for key, item in known.items() if key != "name"}
    return properties


def _is_property_map(raw: Mapping[str, Any]) -> bool:
    """Whether the keys are parameters, rather than keywords that happen to hold objects."""
    if not raw or raw.keys() <= OBJECT_KEYWORDS or "properties" in raw:
        return False
    return all(
        isinstance(item, Mapping)
        or (isinstance(item, str) and not _is_keyword(key) and read_type_name(item) is not None)
        for key, item in raw.items()
    )


def _is_keyword(key: str) -> bool:
    return key == "type" or key in READERS or key in OBJECT_KEYWORDS


@dataclass(kw_only=True, slots=True)
class _Walk:
    """One pass over a schema; collects the changes on the way."""

    changes: list[SchemaChange] = field(default_factory=list)

    def note(self, pointer: str, rule: str) -> None:
        self.changes.append(SchemaChange(pointer=pointer, rule=rule))

    def noting(self, pointer: str) -> Note:
        return lambda rule: self.note(pointer, rule)

    def schema(self, raw: object, pointer: str, depth: int) -> dict[str, Any] | bool:
        """One schema, whatever stands in its place."""
        if isinstance(raw, bool):
            return raw
        if depth > _MAX_DEPTH and raw != {}:
            self.note(pointer, f"nested deeper than {_MAX_DEPTH} levels, cut")
            return {}
        if isinstance(raw, Mapping):
            return self._object(translate(raw, self.noting(pointer)), pointer, depth + 1)
        found = read_type_name(raw) if isinstance(raw, str) else None
        if found is None:
            self.note(pointer, f"{type(raw).__name__} in place of a schema, dropped")
        else:
            self.note(pointer, f"schema {raw} -> {json.dumps(found)}")
        return found or {}

    def _object(self, draft: dict[str, Any], pointer: str, depth: int) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        for key, rule in draft.items():
            found = self._keyword(key, rule, _below(pointer, key), depth)
            if found is not DROPPED:
                kept[key] = found
        needed = self._needed(draft.get("properties"), _below(pointer, "properties"))
        if missing := [name for name in needed if name not in kept.get("required", ())]:
            kept["required"] = [*kept.get("required", ()), *missing]
        if _may_be_array(kept) and not kept.keys() & {"items", "prefixItems"}:
            self.note(pointer, "array without items: any item")
            kept["items"] = {}
        return kept

    def _keyword(self, key: str, rule: Any, pointer: str, depth: int) -> Any:
        if key in READERS:
            return READERS[key](rule, self.noting(pointer))
        if key in SCHEMA_KEYWORDS:
            return self._single(rule, pointer, depth)
        if key in SCHEMA_LIST_KEYWORDS:
            return self._list(rule, pointer, depth)
        if key in SCHEMA_MAP_KEYWORDS:
            return self._map(key, rule, pointer, depth)
        return rule

    def _single(self, rule: object, pointer: str, depth: int) -> Any:
        if rule is None:
            self.note(pointer, "null schema dropped")
            return DROPPED
        return self.schema(rule, pointer, depth)

    def _list(self, rule: object, pointer: str, depth: int) -> Any:
        if isinstance(rule, Mapping):
            self.note(pointer, "one schema -> list of one")
            rule = [rule]
        if not isinstance(rule, list) or not rule:
            self.note(pointer, "keyword dropped, not a list of schemas")
            return DROPPED
        return [self.schema(item, f"{pointer}/{at}", depth) for at, item in enumerate(rule)]

    def _map(self, key: str, rule: object, pointer: str, depth: int) -> Any:
        if key == "properties" and isinstance(rule, list):
            self.note(pointer, "list of properties -> map")
            rule = _by_name(rule, self.noting(pointer))
        if not isinstance(rule, Mapping):
            self.note(pointer, "keyword dropped, not a map of schemas")
            return DROPPED
        found: dict[str, Any] = {}
        for name, part in rule.items():
            if key == "patternProperties" and (why := why_unusable(name)):
                self.note(pointer, f"{PATTERN_DROPPED}{why}")
                continue
            bare = _without_flags(part) if key == "properties" else part
            found[name] = self.schema(bare, _below(pointer, name), depth)
        return found

    def _needed(self, properties: object, pointer: str) -> list[str]:
        """Names of properties that say themselves that they are required."""
        if isinstance(properties, list):
            properties = _by_name(properties, lambda _: None)  # noted where they were read
        needed: list[str] = []
        for name, part in properties.items() if isinstance(properties, Mapping) else ():
            flags = _flags(part)
            for flag, value in flags.items():
                rule = f"{flag} {str(value).lower()} moved to the object"
                self.note(_below(pointer, name), rule)
            if flags.get("required", not flags.get("optional", True)):
                needed.append(name)
        return needed


def _below(pointer: str, key: str) -> str:
    return f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}"


def _flags(part: object) -> dict[str, bool]:
    """``required`` and ``optional`` where they stand on the property itself."""
    if not isinstance(part, Mapping):
        return {}
    read = {key: as_boolean(part.get(key)) for key in ("required", "optional")}
    return {key: value for key, value in read.items() if value is not None}


def _without_flags(part: object) -> object:
    flags = _flags(part)
    if not flags or not isinstance(part, Mapping):
        return part
    return {key: item for key, item in part.items() if key not in flags}


def _may_be_array(schema: Mapping[str, Any]) -> bool:
    kind = schema.get("type")
    return kind == "array" or (isinstance(kind, list) and "array" in kind)
