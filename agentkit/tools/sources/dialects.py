"""Schemas as they are found in the wild, turned into valid JSON Schema 2020-12.

Public tool catalogues write ``dict`` and ``float`` for types, put ``required: true`` on a
property, leave an ``enum`` empty or copy a pattern that does not compile. Each repair keeps what
the author meant where that is clear and drops the keyword where it is not, and each is reported, so
that nothing changes unseen. Normalising twice gives what normalising once gives, and the result is
always a valid schema.

What is *not* repaired is kept as it is: a ``default`` of the wrong type, a required name without
a property, keywords that JSON Schema does not know.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeAlias

from agentkit.errors import DefinitionError
from agentkit.tools.error_messages import value_text
from agentkit.tools.patterns import why_unusable
from agentkit.tools.schema import (
    DATA_KEYWORDS,
    JSON_TYPES,
    MAX_DEPTH,
    SCHEMA_KEYWORDS,
    SCHEMA_LIST_KEYWORDS,
    SCHEMA_MAP_KEYWORDS,
    check_bounds,
    inline_root,
    pointer_keys,
    references,
    resolve_local,
)
from agentkit.tools.schema_validator import StepBudget, fits

PATTERN_DROPPED = "pattern dropped: it "
"""Prefix of the note about a dropped pattern."""

_MAX_DEPTH = 64
_DROPPED: Final = object()
_DESCRIBES_PROPERTIES = frozenset({"properties", "patternProperties", "allOf", "anyOf", "oneOf"})
_HOLD_OBJECTS = (
    SCHEMA_KEYWORDS | SCHEMA_MAP_KEYWORDS | DATA_KEYWORDS - {"enum"} | {"dependentRequired"}
)
"""Keywords whose value may be an object; a parameter may have such a name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SchemaChange:
    """One repair.

    Attributes:
        pointer: Where, as a JSON pointer into the schema as received.
        rule: What was done, such as ``type dict -> object``; equal repairs have equal rules, so
            that they can be counted.
        is_fault: Whether JSON Schema 2020-12 forbids what was there.
    """

    pointer: str
    rule: str
    is_fault: bool = False

    def __str__(self) -> str:
        return f"at {self.pointer[1:] or 'its root'}: {self.rule}"


@dataclass(frozen=True, kw_only=True, slots=True)
class NormalisedSchema:
    """A valid schema, and how it differs from what was received.

    Attributes:
        schema: Valid JSON Schema 2020-12.
        changes: Every repair, in document order; empty when the schema was fine.
    """

    schema: dict[str, Any]
    changes: tuple[SchemaChange, ...]


def schema_fault(schema: Any) -> SchemaChange | None:
    """The first reason why data are no JSON Schema 2020-12; None when they are one.

    Whether its patterns can be matched is another question (``agentkit.tools.patterns``).
    """
    walk = _Repair()
    try:
        check_bounds(schema, max_depth=MAX_DEPTH)
        walk.schema(schema, "", 0)
    except DefinitionError as error:
        return SchemaChange(pointer="", rule=str(error), is_fault=True)
    return next((change for change in walk.changes if change.is_fault), None)


def normalise_schema(raw: object) -> NormalisedSchema:
    """Repair any schema, such as that of a result.

    Args:
        raw: Decoded JSON: an object, a boolean, the name of a type, or something broken.

    Raises:
        DefinitionError: It is too expensive to walk (``check_bounds``), or refers to a
            part of itself that is not a schema.

    Example:
        >>> normalised = normalise_schema({"type": "list", "items": {"type": "float"}})
        >>> normalised.schema
        {'type': 'array', 'items': {'type': 'number'}}
        >>> [change.rule for change in normalised.changes]
        ['type list -> array', 'type float -> number']
    """
    check_bounds(raw)
    walk = _Repair()
    schema = walk.schema(raw, "", 0)
    if isinstance(schema, bool):
        schema = {} if schema else {"not": {}}
        walk.note("", f"boolean schema -> {json.dumps(schema)}")
    return walk.normalised(schema)


def normalise_parameters(raw: object) -> NormalisedSchema:
    """Repair the schema of a tool's arguments, which always describes an object.

    Beyond a schema this accepts a map of parameters, a list of parameters with names, and nothing
    at all.

    Raises:
        DefinitionError: It is too expensive to walk (``check_bounds``), or refers to a
            part of itself that is not a schema.

    Example:
        >>> normalise_parameters({"city": {"type": "str", "required": True}}).schema
        {'type': 'object', 'properties': {'city': {'type': 'string'}}, 'required': ['city']}
    """
    check_bounds(raw)
    walk = _Repair()
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
    return walk.normalised(root)


def _as_object(raw: object, walk: _Repair) -> object:
    """Read an object's schema, whichever way it was written."""
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
    if not raw or raw.keys() <= _HOLD_OBJECTS or "properties" in raw:
        return False
    keywords = {"type"} | _keyword_values().keys() | _HOLD_OBJECTS
    return all(
        isinstance(item, Mapping)
        or (isinstance(item, str) and key not in keywords and read_type_name(item) is not None)
        for key, item in raw.items()
    )


@cache
def _keyword_values() -> Mapping[str, Any]:
    """For each keyword that holds no schemas, the schema of its values in 2020-12."""
    text = Path(__file__).with_name("schema_keywords.json").read_text(encoding="utf-8")
    keywords: Mapping[str, Any] = json.loads(text)
    return keywords


def _below(place: str, key: str) -> str:
    """The JSON pointer of a part."""
    return f"{place}/{key.replace('~', '~0').replace('/', '~1')}"


_TEXT = {"type": "string"}
Note: TypeAlias = Callable[[str], None]


@dataclass(kw_only=True, slots=True)
class _Repair:
    """One pass over a schema; collects the changes on the way."""

    changes: list[SchemaChange] = field(default_factory=list)

    def note(self, place: str, rule: str, *, is_fault: bool = False) -> None:
        self.changes.append(SchemaChange(pointer=place, rule=rule, is_fault=is_fault))

    def noting(self, place: str, *, is_fault: bool = False) -> Note:
        return lambda rule: self.note(place, rule, is_fault=is_fault)

    def normalised(self, schema: dict[str, Any]) -> NormalisedSchema:
        """The result, once it is known that its references lead to schemas, or out of it.

        Raises:
            DefinitionError: One leads to something else, which no validator expects.
        """
        for reference in set(references(schema)):
            target = resolve_local(schema, reference, nowhere=True)
            if not _is_schema(target, reference):
                raise DefinitionError(
                    f"the schema cannot be used: its reference {reference[:80]!r} leads to "
                    f"{value_text(target)}, which is not a schema"
                )
        return NormalisedSchema(schema=schema, changes=tuple(self.changes))

    def schema(self, raw: object, place: str, depth: int) -> dict[str, Any] | bool:
        """One schema, whatever stands in its place."""
        if isinstance(raw, bool):
            return raw
        if depth > _MAX_DEPTH and raw != {}:
            self.note(place, f"nested deeper than {_MAX_DEPTH} levels, cut")
            return {}
        if isinstance(raw, Mapping):
            draft = dict(raw)
            for keyword, change in _TRANSLATIONS:
                change(draft, self.noting(_below(place, keyword), is_fault=True))
            _nullable(draft, self.noting(place))
            return self._object(draft, place, depth + 1)
        found = read_type_name(raw) if isinstance(raw, str) else None
        if found is None:
            self.note(place, f"{type(raw).__name__} in place of a schema, dropped", is_fault=True)
        else:
            self.note(place, f"schema {raw} -> {json.dumps(found)}", is_fault=True)
        return found or {}

    def _object(self, draft: Mapping[str, Any], place: str, depth: int) -> dict[str, Any]:
        found = {
            key: self._keyword(key, rule, _below(place, key), depth) for key, rule in draft.items()
        }
        kept = {key: rule for key, rule in found.items() if rule is not _DROPPED}
        needed = self._needed(draft.get("properties"), _below(place, "properties"))
        if missing := [name for name in needed if name not in kept.get("required", ())]:
            kept["required"] = [*kept.get("required", ()), *missing]
        if "items" not in kept and "prefixItems" not in kept and "array" in _listed(kept):
            self.note(place, "array without items: any item")
            kept["items"] = {}
        return kept

    def _keyword(self, key: str, rule: Any, place: str, depth: int) -> Any:
        """The value of a keyword, repaired, or ``_DROPPED``."""
        if (allowed := _keyword_values().get(key)) is not None:
            is_text = isinstance(rule, str) and allowed == _TEXT  # most of all
            is_fine = is_text or fits(rule, allowed, steps=StepBudget(sys.maxsize)) is True
            is_fine = is_fine and not (key == "pattern" and why_unusable(rule))
            return rule if is_fine else self._repaired(key, rule, place)
        if key in SCHEMA_MAP_KEYWORDS:
            return self._map(key, rule, place, depth)
        if key in SCHEMA_LIST_KEYWORDS:
            return self._list(rule, place, depth)
        return self.schema(rule, place, depth) if key in SCHEMA_KEYWORDS else rule

    def _list(self, rule: object, place: str, depth: int) -> Any:
        if not isinstance(rule, list) or not rule:
            self.note(place, "keyword dropped, not a list of schemas", is_fault=True)
            return _DROPPED
        return [self.schema(part, f"{place}/{at}", depth) for at, part in enumerate(rule)]

    def _repaired(self, key: str, rule: Any, place: str) -> Any:
        """The usable part of a value that the keyword must not have, else ``_DROPPED``."""
        note = self.noting(
            place, is_fault=key not in {"$schema", "dependencies", "enum", "pattern"}
        )
        if key == "required" and isinstance(rule, str | list) and _as_boolean(rule) is None:
            note("names in a list, each once")
            names = [rule] if isinstance(rule, str) else rule
            return list(dict.fromkeys(name for name in names if isinstance(name, str)))
        if key == "pattern" and isinstance(rule, str):
            note(f"{PATTERN_DROPPED}{why_unusable(rule)}")
        elif key == "enum" and not rule:
            note("empty enum dropped")
        else:
            note(f"{key} dropped, it cannot be {value_text(rule)}")
        return _DROPPED

    def _map(self, key: str, rule: object, place: str, depth: int) -> Any:
        if key == "properties" and isinstance(rule, list):
            self.note(place, "list of properties -> map", is_fault=True)
            rule = _by_name(rule, self.noting(place))
        if not isinstance(rule, Mapping):
            self.note(place, "keyword dropped, not a map of schemas", is_fault=True)
            return _DROPPED
        found: dict[str, Any] = {}
        for name, part in rule.items():
            if key == "patternProperties" and (why := why_unusable(name)):
                self.note(place, f"{PATTERN_DROPPED}{why}")
                continue
            if key == "properties" and _flag(part) is not None:
                part = {word: item for word, item in part.items() if word != "required"}  # noqa: PLW2901 - the same without its flag
            found[name] = self.schema(part, _below(place, name), depth)
        return found

    def _needed(self, properties: object, place: str) -> list[str]:
        """Names of properties that say themselves that they are required."""
        if isinstance(properties, list):
            properties = _by_name(properties, lambda _: None)  # noted where they were read
        needed: list[str] = []
        for name, part in properties.items() if isinstance(properties, Mapping) else ():
            flag = _flag(part)
            if flag is not None:
                message = f"required {str(flag).lower()} moved to the object"
                self.note(_below(place, name), message, is_fault=True)
            if flag:
                needed.append(name)
        return needed


def _is_schema(target: object, reference: str) -> bool:
    """Whether the target of a reference is a schema; where the walk has been, it is."""
    if not isinstance(target, dict):
        return isinstance(target, bool)
    keys = pointer_keys(reference)
    for key in keys:
        if key in SCHEMA_LIST_KEYWORDS or key in SCHEMA_MAP_KEYWORDS:
            known = next(keys, None) is not None
        else:
            known = key in SCHEMA_KEYWORDS
        if not known:
            return schema_fault(target) is None
    return True


def _flag(part: Any) -> bool | None:
    """``required`` where it stands on the property itself."""
    return _as_boolean(part.get("required")) if isinstance(part, Mapping) else None


def _as_boolean(value: object) -> bool | None:
    """The truth value that is meant, also by ``"true"`` or ``"yes"``; None for anything else."""
    if isinstance(value, bool):
        return value
    words = {"true": True, "yes": True, "false": False, "no": False}
    return words.get(value.strip().casefold()) if isinstance(value, str) else None


def _listed(schema: Mapping[str, Any]) -> list[Any]:
    """The types of a schema as a list."""
    kind = schema.get("type")
    return kind if isinstance(kind, list) else [kind]


# --- other vocabularies ---------------------------------------------------------------------------


def _type(draft: dict[str, Any], note: Note) -> None:
    """``dict``, ``list[int]``, ``ArrayList<String>``, ``["str", "None"]``."""
    written = draft.get("type", "null")
    if written in JSON_TYPES:
        return
    found = _read_type(written)
    if found == {"type": written}:
        return
    shown = repr(written) if isinstance(written, str) else json.dumps(written, default=str)[:60]
    if found:
        bare = found.get("type") if found.keys() == {"type"} else None
        spelled = bare if isinstance(bare, str) else json.dumps(bare or found)
        note(f"type {shown.strip(chr(39))} -> {spelled}")
        draft.update({key: item for key, item in found.items() if key not in draft})
        draft["type"] = found.get("type")  # in place: the order of keywords is the author's
    else:
        nothing = found is None and written != ""
        note(f"type {shown} unknown, dropped" if nothing else f"type {shown} dropped")
    if not found or "type" not in found:
        del draft["type"]


def _read_type(written: object) -> dict[str, Any] | None:
    if isinstance(written, str):
        return read_type_name(written)
    if not isinstance(written, list):
        return None
    found = [read_type_name(name) if isinstance(name, str) else None for name in written]
    if {} in found:
        return {}
    names = [name for schema in found if schema and "type" in schema for name in _listed(schema)]
    return {"type": list(dict.fromkeys(names))} if names else None


def _bounds(draft: dict[str, Any], note: Note) -> None:
    """Draft 4 wrote ``minimum: 3, exclusiveMinimum: true``."""
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(strict := draft.get(exclusive), bool):
            note(f"{exclusive} {str(strict).lower()} -> number")
            del draft[exclusive]
            if strict and bound in draft:
                draft[exclusive] = draft.pop(bound)


def _tuple(draft: dict[str, Any], note: Note) -> None:
    """Convert a list in ``items``, which described a tuple's places before 2020-12."""
    if isinstance(places := draft.get("items"), list):
        note("list in items -> prefixItems")
        del draft["items"]
        if places and "prefixItems" not in draft:
            draft["prefixItems"] = places


def _nullable(draft: dict[str, Any], note: Note) -> None:
    """OpenAPI 3.0 said ``nullable: true``."""
    if "nullable" not in draft or (nullable := _as_boolean(draft["nullable"])) is None:
        return
    del draft["nullable"]
    note(f"nullable {str(nullable).lower()} -> type")
    if not nullable:
        return
    whole = {"$ref", "allOf", "oneOf"} & draft.keys()
    if "type" in draft:
        draft["type"] = list(dict.fromkeys([*_listed(draft), "null"]))
    elif "anyOf" not in draft and whole:
        parts = {key: draft.pop(key) for key in [*draft] if key in whole}
        draft["anyOf"] = [parts, {"type": "null"}]
    if isinstance(members := draft.get("enum"), list) and None not in members:
        draft["enum"] = [*members, None]


_TRANSLATIONS: tuple[tuple[str, Callable[[dict[str, Any], Note], None]], ...] = (
    ("type", _type),
    ("exclusiveMinimum", _bounds),
    ("items", _tuple),
)
"""Values of other dialects that 2020-12 forbids, by keyword."""


# --- names of types as people write them in Python, Java, JavaScript and Go -----------------------

_SPELLINGS = {
    "array": (
        "arraylist collection frozenset hashset iterable iterator linkedlist list sequence set "
        "slice tuple vector"
    ),
    "boolean": "bool",
    "integer": (
        "bigint biginteger byte int int16 int32 int64 int8 long short uint uint16 uint32 uint64 "
        "uint8 unsigned"
    ),
    "null": "nil none nonetype undefined void",
    "number": "bigdecimal decimal double float float32 float64 numeric real",
    "object": (
        "defaultdict dict dictionary hashmap hashtable json linkedhashmap map mapping ordereddict "
        "record struct treemap typeddict"
    ),
    "string": (
        "char character charsequence date datetime email str text time timestamp uri url uuid"
    ),
}
_ANYTHING = frozenset({"any", "interface{}", "mixed", "unknown", "*", "?"})
_BY_SPELLING: Mapping[str, str] = {
    spelling: name for name, group in _SPELLINGS.items() for spelling in (name, *group.split())
}
_LONGEST_NAME = 200
_COMPOUND = re.compile(r"[A-Za-z_][\w.]*(?:[\[\]<>,|\s]+(?:[A-Za-z_][\w.]*)?)+")
_ARRAY_OF = re.compile(r"([\w.]+)\[\]")


def read_type_name(text: str) -> dict[str, Any] | None:
    """The schema that a type's name stands for, or None when nobody could tell.

    Args:
        text: Such as ``dict``, ``ArrayList<String>``, ``List[float]``, ``int | None``, ``str[]``.

    Returns:
        A schema with at most ``type``, ``items``, ``additionalProperties`` and ``anyOf``; empty
        for "any type".

    Example:
        >>> read_type_name("HashMap"), read_type_name("any"), read_type_name("Date (yyyy)")
        ({'type': 'object'}, {}, None)
        >>> read_type_name("list[int] | None")
        {'anyOf': [{'type': 'array', 'items': {'type': 'integer'}}, {'type': 'null'}]}
    """
    text = text.strip()
    if (found := _simple_type(text)) is not None or len(text) > _LONGEST_NAME:
        return found
    if not text.isascii() or _COMPOUND.fullmatch(text) is None:
        return None
    written = _ARRAY_OF.sub(r"list[\1]", text).replace("<", "[").replace(">", "]")
    try:
        return _read_expression(ast.parse(written, mode="eval").body)
    except (SyntaxError, ValueError, RecursionError):
        return None


def _simple_type(name: str) -> dict[str, Any] | None:
    name = name.casefold().removeprefix("typing.").removeprefix("java.lang.")
    if name in _ANYTHING:
        return {}
    return {"type": _BY_SPELLING[name]} if name in _BY_SPELLING else None


def _read_expression(node: ast.expr) -> dict[str, Any] | None:
    """A type that is written as a Python expression."""
    if isinstance(node, ast.BinOp):
        return _union([_read_expression(node.left), _read_expression(node.right)])
    if not isinstance(node, ast.Subscript):
        return _simple_type(ast.unparse(node))
    outer = ast.unparse(node.value).casefold().removeprefix("typing.")
    inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    parts = list(map(_read_expression, inner))
    if outer in {"optional", "union"}:
        return _union([*parts, {"type": "null"}] if outer == "optional" else parts)
    kind = None if None in parts else _BY_SPELLING.get(outer)
    item = parts[-1] if kind == "object" or parts.count(parts[0]) == len(parts) else {}
    if kind == "object":
        return {"type": kind, "additionalProperties": item} if item else {"type": kind}
    return {"type": kind, "items": item} if kind == "array" else None


def _union(parts: Iterable[dict[str, Any] | None]) -> dict[str, Any] | None:
    branches: list[dict[str, Any]] = []
    for part in parts:
        if not part:
            return part  # unknown, or anything
        alternatives = part.get("anyOf", [part])
        if part.keys() == {"type"}:
            alternatives = [{"type": kind} for kind in _listed(part)]
        branches += [one for one in alternatives if one not in branches]
    if len(branches) == 1:
        return branches[0]
    if all(branch.keys() == {"type"} for branch in branches):
        return {"type": [branch["type"] for branch in branches]}
    return {"anyOf": branches}
