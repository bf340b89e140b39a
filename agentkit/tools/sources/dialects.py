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
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from agentkit.errors import DefinitionError
from agentkit.tools.bounded import schema_fault
from agentkit.tools.error_messages import value_text
from agentkit.tools.patterns import is_compilable, why_unusable
from agentkit.tools.schema import (
    SCHEMA_KEYWORDS,
    SCHEMA_LIST_KEYWORDS,
    SCHEMA_MAP_KEYWORDS,
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
    Note,
    as_boolean,
)
from agentkit.tools.sources.type_names import JSON_TYPES, read_type_name

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


_EXCLUSIVE = {"minimum": "exclusiveMinimum", "maximum": "exclusiveMaximum"}


def translate(raw: Mapping[str, Any], note: Note) -> dict[str, Any]:
    """The object in the vocabulary of 2020-12; values may still be unusable."""
    draft = dict(raw)
    for change in _TRANSLATIONS:
        change(draft, note)
    return draft


def _type(draft: dict[str, Any], note: Note) -> None:
    """``dict``, ``list[int]``, ``ArrayList<String>``, ``["str", "None"]``."""
    given = draft.get("type")
    if "type" not in draft or given in JSON_TYPES:
        return
    found = _read_type(given)
    if found == {"type": given}:
        return
    shown = repr(given) if isinstance(given, str) else json.dumps(given, default=str)[:60]
    if found:
        note(f"type {shown.strip(chr(39))} -> {_spelled(found)}")
        draft.update({key: item for key, item in found.items() if key not in draft})
        draft["type"] = found.get("type")  # in place: the order of keywords is the author's
    else:
        nothing = found is None and given != ""
        note(f"type {shown} unknown, dropped" if nothing else f"type {shown} dropped")
    if not found or "type" not in found:
        del draft["type"]


def _read_type(given: object) -> dict[str, Any] | None:
    if isinstance(given, str):
        return read_type_name(given)
    if not isinstance(given, list):
        return None
    found = [read_type_name(name) if isinstance(name, str) else None for name in given]
    if {} in found:
        return {}
    kinds = [schema["type"] for schema in found if schema and "type" in schema]
    names = [name for kind in kinds for name in ([kind] if isinstance(kind, str) else kind)]
    return {"type": list(dict.fromkeys(names))} if names else None


def _spelled(found: Mapping[str, Any]) -> str:
    bare = found.get("type") if found.keys() == {"type"} else None
    return bare if isinstance(bare, str) else json.dumps(bare or found)


def _nullable(draft: dict[str, Any], note: Note) -> None:
    """OpenAPI 3.0 said ``nullable: true``."""
    nullable = as_boolean(draft.get("nullable"))
    if nullable is None:
        return
    del draft["nullable"]
    note(f"nullable {str(nullable).lower()} -> type")
    kind = draft.get("type")
    if nullable and isinstance(kind, str) and kind != "null":
        draft["type"] = [kind, "null"]
    elif nullable and isinstance(kind, list) and "null" not in kind:
        draft["type"] = [*kind, "null"]
    elif nullable and kind is None and "$ref" in draft and "anyOf" not in draft:
        draft["anyOf"] = [{"$ref": draft.pop("$ref")}, {"type": "null"}]


def _bounds(draft: dict[str, Any], note: Note) -> None:
    """Draft 4 wrote ``minimum: 3, exclusiveMinimum: true``."""
    for bound, exclusive in _EXCLUSIVE.items():
        if isinstance(strict := draft.get(exclusive), bool):
            note(f"{exclusive} {str(strict).lower()} -> number")
            del draft[exclusive]
            if strict and bound in draft:
                draft[exclusive] = draft.pop(bound)


def _tuple(draft: dict[str, Any], note: Note) -> None:
    """Until 2020-12 a list in ``items`` described the places of a tuple."""
    if isinstance(places := draft.get("items"), list):
        note("list in items -> prefixItems")
        del draft["items"]
        if places and "prefixItems" not in draft:
            draft["prefixItems"] = places
        if "additionalItems" in draft:
            draft["items"] = draft["additionalItems"]
    if "additionalItems" in draft:
        note("additionalItems -> items")
        del draft["additionalItems"]


def _dependencies(draft: dict[str, Any], note: Note) -> None:
    """Until 2019-09 one keyword held two kinds of dependencies."""
    if "dependencies" not in draft:
        return
    note("dependencies -> dependentRequired, dependentSchemas")
    given = draft.pop("dependencies")
    for name, rule in given.items() if isinstance(given, Mapping) else ():
        keyword = "dependentRequired" if isinstance(rule, list) else "dependentSchemas"
        known = draft.get(keyword)
        draft[keyword] = {name: rule, **(known if isinstance(known, Mapping) else {})}


def _optional(draft: dict[str, Any], note: Note) -> None:
    """What is not in ``required`` is optional; there is no keyword for it."""
    given = draft.get("optional")
    if isinstance(given, list) or as_boolean(given) is not None:
        note("optional dropped")
        del draft["optional"]


_TRANSLATIONS: tuple[Callable[[dict[str, Any], Note], None], ...] = (
    _type,
    _nullable,
    _bounds,
    _tuple,
    _dependencies,
    _optional,
)


_DEEPEST = 32
_TYPES = frozenset(JSON_TYPES)


def normal_copy(raw: object, depth: int = 0) -> dict[str, Any] | None:
    """A copy of a schema that is in the form we keep; None for one that may not be.

    Only what tools usually have is known here. Everything else, such as a keyword of another
    dialect or of nobody, is left to the walk that looks for repairs.

    Args:
        raw: Decoded JSON.
        depth: How deep it stands.

    Example:
        >>> normal_copy({"type": "array", "items": {"type": "string"}})
        {'type': 'array', 'items': {'type': 'string'}}
        >>> normal_copy({"type": "list"}) is None
        True
    """
    if type(raw) is not dict or depth > _DEEPEST:
        return None
    kept: dict[str, Any] = {}
    for key, rule in raw.items():
        fits = _PLAIN.get(key)
        if fits is not None:
            if not fits(rule):
                return None
            kept[key] = list(rule) if type(rule) is list else rule
            continue
        found = _children_of(key, rule, depth + 1)
        if found is None:
            return None
        kept[key] = found
    return None if _lacks_items(kept) else kept


def _children_of(key: str, rule: Any, depth: int) -> Any:
    """A copy of what stands under a keyword that holds schemas; None for what may need repair."""
    if key in {"properties", "$defs"}:
        if type(rule) is not dict:
            return None
        named = {name: normal_copy(part, depth) for name, part in rule.items()}
        return None if None in named.values() or not _are_texts(named) else named
    if key == "items":
        return normal_copy(rule, depth)
    if key == "additionalProperties":
        return rule if type(rule) is bool else normal_copy(rule, depth)
    if key == "anyOf" and type(rule) is list and rule:
        parts = [normal_copy(part, depth) for part in rule]
        return None if None in parts else parts
    return None


def _lacks_items(schema: Mapping[str, Any]) -> bool:
    kind = schema.get("type")
    return (kind == "array" or (type(kind) is list and "array" in kind)) and "items" not in schema


def _are_texts(values: Any) -> bool:
    return all(type(value) is str for value in values)


def _is_text(rule: Any) -> bool:
    return type(rule) is str


def _is_type(rule: Any) -> bool:
    if type(rule) is str:
        return rule in _TYPES
    return type(rule) is list and _is_names(rule) and bool(rule) and _TYPES.issuperset(rule)


def _is_names(rule: Any) -> bool:
    return type(rule) is list and _are_texts(rule) and len(set(rule)) == len(rule)


def _is_number(rule: Any) -> bool:
    return type(rule) is int or (type(rule) is float and math.isfinite(rule))


def _is_count(rule: Any) -> bool:
    return type(rule) is int and rule >= 0


def _is_filled_list(rule: Any) -> bool:
    return type(rule) is list and bool(rule)


def _is_pattern(rule: Any) -> bool:
    return type(rule) is str and is_compilable(rule)


def _is_anything(_rule: Any) -> bool:
    return True


_KEYWORDS_OF: dict[Callable[[Any], bool], str] = {
    _is_anything: "const default",
    _is_count: "maxItems maxLength minItems minLength",
    _is_filled_list: "enum",
    _is_names: "required",
    _is_number: "exclusiveMaximum exclusiveMinimum maximum minimum",
    _is_pattern: "pattern",
    _is_text: "$ref description format title",
    _is_type: "type",
}

_PLAIN: Mapping[str, Callable[[Any], bool]] = MappingProxyType(
    {keyword: fits for fits, keywords in _KEYWORDS_OF.items() for keyword in keywords.split()}
)
"""Keywords without schemas below them, and what their value is where nothing is to be mended."""
