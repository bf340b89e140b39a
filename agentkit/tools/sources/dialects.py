"""Schemas as they are found in the wild, turned into valid JSON Schema 2020-12.

Public tool catalogues write ``dict`` and ``float`` for types, put ``required: true`` on a
property, leave an ``enum`` empty or copy a pattern that does not compile. Each repair keeps what
the author meant where that is clear and drops the keyword where it is not; whoever normalises keeps
what was received. Normalising twice gives what normalising once gives, and the result is always a
valid schema.

What is *not* repaired is kept as it is: a ``default`` of the wrong type, a required name without
a property, keywords that JSON Schema does not know.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from agentkit.errors import DefinitionError
from agentkit.messages import JsonObject
from agentkit.tools.error_messages import problems_of, value_text
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
from agentkit.tools.schema_validator import StepBudget, UncheckableError, fits, schema_errors

_MAX_DEPTH = 48
_DROPPED: Final = object()
_DESCRIBES_PROPERTIES = frozenset({"properties", "patternProperties", "allOf", "anyOf", "oneOf"})
_HOLD_OBJECTS = (
    SCHEMA_KEYWORDS | SCHEMA_MAP_KEYWORDS | DATA_KEYWORDS - {"enum"} | {"dependentRequired"}
)
"""Keywords whose value may be an object; a parameter may have such a name."""


def schema_fault(schema: Any) -> str:
    """Why data are no JSON Schema 2020-12, in a sentence; empty when they are one.

    Whether its patterns can be matched is another question (``agentkit.tools.patterns``).
    """
    steps = StepBudget(sys.maxsize)
    try:
        check_bounds(schema, max_depth=MAX_DEPTH)
        if fits(schema, _metaschema(), steps=steps):
            return ""
        errors = schema_errors(schema, _metaschema(), steps=steps)
    except (DefinitionError, UncheckableError) as error:
        return str(error)
    problems = problems_of(errors, owner="a keyword", noun="keyword", whole="schema")
    return problems[0].rule if problems else ""


def reference_fault(schema: JsonObject) -> str:
    """The first reference of a schema that leads to what is no schema; empty for none.

    One that leads out of the document, or nowhere in it, is another matter.
    """
    for reference in dict.fromkeys(references(schema)):
        target = resolve_local(schema, reference, nowhere=True)
        if not _is_schema(target, reference):
            return f"its reference {reference[:80]!r} leads to {value_text(target)}, not a schema"
    return ""


@cache
def _metaschema() -> JsonObject:
    """JSON Schema 2020-12 as a schema, as far as it can be broken."""
    one, name = {"$ref": "#/$defs/schema"}, {"enum": [*JSON_TYPES]}
    types = {"type": "array", "items": name, "minItems": 1, "uniqueItems": True}
    keywords = {
        **{key: rule for key, rule in _keyword_values().items() if rule is not False},
        "$schema": True,
        "enum": {"type": "array"},
        "type": {"anyOf": [name, types]},
        **dict.fromkeys(SCHEMA_KEYWORDS, one),
        **{key: {"type": "array", "minItems": 1, "items": one} for key in SCHEMA_LIST_KEYWORDS},
        **{key: {"type": "object", "additionalProperties": one} for key in SCHEMA_MAP_KEYWORDS},
    }
    return {"$defs": {"schema": {"type": ["object", "boolean"], "properties": keywords}}, **one}


@cache
def _keyword_values() -> Mapping[str, Any]:
    """For each keyword that holds no schemas, the schema of its values in 2020-12."""
    text = Path(__file__).with_name("schema_keywords.json").read_text(encoding="utf-8")
    keywords: Mapping[str, Any] = json.loads(text)
    return keywords


def normalise_schema(raw: object) -> dict[str, Any]:
    """Repair any schema, such as that of a result.

    Args:
        raw: Decoded JSON: an object, a boolean, the name of a type, or something broken.

    Raises:
        DefinitionError: It is too expensive to walk (``check_bounds``), or refers to a
            part of itself that is not a schema.

    Example:
        >>> normalise_schema({"type": "list", "items": {"type": "float"}})
        {'type': 'array', 'items': {'type': 'number'}}
    """
    check_bounds(raw)
    schema = _schema(raw)
    if isinstance(schema, bool):
        schema = {} if schema else {"not": {}}
    return _checked(schema)


def normalise_parameters(raw: object) -> dict[str, Any]:
    """Repair the schema of a tool's arguments, which always describes an object.

    Beyond a schema this accepts a map of parameters, a list of parameters with names, and nothing
    at all.

    Raises:
        DefinitionError: It is too expensive to walk (``check_bounds``), or refers to a
            part of itself that is not a schema.

    Example:
        >>> normalise_parameters({"city": {"type": "str", "required": True}})
        {'type': 'object', 'properties': {'city': {'type': 'string'}}, 'required': ['city']}
    """
    check_bounds(raw)
    if raw is None or raw in ("", []):
        raw = {"type": "object", "properties": {}}
    elif isinstance(raw, list):
        raw = {"type": "object", "properties": _by_name(raw)}
    elif isinstance(raw, Mapping) and _is_property_map(raw):
        raw = {"type": "object", "properties": raw}
    found = _schema(raw)
    root = inline_root(found if isinstance(found, dict) else {})
    if root.get("type") != "object":
        root = {"type": "object"} | {key: root[key] for key in root if key != "type"}
    if not root.keys() & _DESCRIBES_PROPERTIES:
        root["properties"] = {}
    return _checked(root)


def _checked(schema: dict[str, Any]) -> dict[str, Any]:
    if fault := reference_fault(schema):
        raise DefinitionError(f"the schema cannot be used: {fault}")
    return schema


def _by_name(entries: Iterable[object]) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for entry in entries:
        known = entry if isinstance(entry, Mapping) else {"name": entry}
        if isinstance(name := known.get("name"), str):
            part = {key: item for key, item in known.items() if key != "name"}
            properties.setdefault(name, part)
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


# --- one pass over a schema -----------------------------------------------------------------------

_TEXT = {"type": "string"}


def _schema(raw: object, depth: int = 0) -> dict[str, Any] | bool:
    """One schema, whatever stands in its place; nothing is left of what is nested too deeply."""
    if isinstance(raw, bool):
        return raw
    if depth > _MAX_DEPTH:
        return {}
    if not isinstance(raw, Mapping):
        return (read_type_name(raw) if isinstance(raw, str) else None) or {}
    draft = dict(raw)
    for translate in (_type, _bounds, _tuple, _nullable):
        translate(draft)
    found = {key: _keyword(key, rule, depth + 1) for key, rule in draft.items()}
    kept = {key: rule for key, rule in found.items() if rule is not _DROPPED}
    properties = draft.get("properties")
    for name, part in properties.items() if isinstance(properties, Mapping) else ():
        if _flag(part) and name not in kept.get("required", ()):
            kept["required"] = [*kept.get("required", ()), name]
    if "items" not in kept and "prefixItems" not in kept and "array" in _listed(kept):
        kept["items"] = {}
    return kept


def _keyword(key: str, rule: Any, depth: int) -> Any:
    """The value of a keyword, repaired, or ``_DROPPED``."""
    if (allowed := _keyword_values().get(key)) is not None:
        is_text = isinstance(rule, str) and allowed == _TEXT  # most of all
        if is_text or fits(rule, allowed, steps=StepBudget(sys.maxsize)) is True:
            return _DROPPED if key == "pattern" and why_unusable(rule) else rule
        if key == "required" and isinstance(rule, str | list) and _as_boolean(rule) is None:
            names = [rule] if isinstance(rule, str) else rule
            return list(dict.fromkeys(name for name in names if isinstance(name, str)))
        return _DROPPED
    if key in SCHEMA_MAP_KEYWORDS:
        return _map(key, rule, depth)
    if key in SCHEMA_LIST_KEYWORDS:
        is_list = isinstance(rule, list) and rule
        return [_schema(part, depth) for part in rule] if is_list else _DROPPED
    return _schema(rule, depth) if key in SCHEMA_KEYWORDS else rule


def _map(key: str, rule: object, depth: int) -> Any:
    if not isinstance(rule, Mapping):
        return _DROPPED
    found: dict[str, Any] = {}
    for name, part in rule.items():
        if key == "properties" and _flag(part) is not None:
            part = {word: item for word, item in part.items() if word != "required"}  # noqa: PLW2901 - the same without its flag
        if key != "patternProperties" or not why_unusable(name):
            found[name] = _schema(part, depth)
    return found


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
            return not schema_fault(target)
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


def _type(draft: dict[str, Any]) -> None:
    """``dict``, ``list[int]``, ``ArrayList<String>``, ``["str", "None"]``."""
    written = draft.get("type", "null")
    if written in JSON_TYPES:
        return
    found = _read_type(written)
    if not found or "type" not in found:
        del draft["type"]
    for key, item in (found or {}).items():
        if key == "type" or key not in draft:
            draft[key] = item


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


def _bounds(draft: dict[str, Any]) -> None:
    """Draft 4 wrote ``minimum: 3, exclusiveMinimum: true``."""
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(strict := draft.get(exclusive), bool):
            del draft[exclusive]
            if strict and bound in draft:
                draft[exclusive] = draft.pop(bound)


def _tuple(draft: dict[str, Any]) -> None:
    """Convert a list in ``items``, which described a tuple's places before 2020-12."""
    if isinstance(places := draft.get("items"), list):
        del draft["items"]
        if places and "prefixItems" not in draft:
            draft["prefixItems"] = places


def _nullable(draft: dict[str, Any]) -> None:
    """OpenAPI 3.0 said ``nullable: true``."""
    if (nullable := _as_boolean(draft.get("nullable"))) is None:
        return
    del draft["nullable"]
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
