"""An object as one flat list of properties, whose parts may stand behind ``$ref`` and ``allOf``.

That is how it becomes the arguments of a tool, when nothing is lost by it. What stands in the way
(names that are not declared, rules between properties, parts that contradict each other) is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agentkit.tools.references import references
from agentkit.tools.sources.openapi.schemas import Converted, SchemaPool

_WORDS = frozenset({"default", "deprecated", "description", "examples", "title"})
_PLAIN = _WORDS | {"$ref", "additionalProperties", "allOf", "properties", "required", "type"}
"""Keywords that an object may have whose properties become arguments."""

_HOPS = 8
_DEFINITIONS = "#/$defs/"


@dataclass(frozen=True, kw_only=True, slots=True)
class FlatObject:
    """The properties of an object, as far as they are known.

    Attributes:
        properties: The schema of each.
        required: Names that the object must have.
        names: Definitions that the schemas refer to.
        fault: Why the object is more than its properties; empty when it is not. An object without
            properties, and what is no object, is told as ``"-"``, since that is no loss.
    """

    properties: Mapping[str, Any]
    required: frozenset[str]
    names: tuple[str, ...]
    fault: str = ""


def flat_object(found: Converted, pool: SchemaPool) -> FlatObject:
    """The properties of a converted schema; its references and ``allOf`` are followed.

    Raises:
        Unmappable: A definition that it refers to can not be converted.
    """
    properties: dict[str, Any] = {}
    required: set[str] = set()
    fault = ""
    for part in _parts(found.schema, pool, set(), 0):
        fault = fault or _fault(part)
        own = part.get("properties")
        for name, schema in own.items() if isinstance(own, Mapping) else ():
            merged = _merged(properties[name], schema) if name in properties else schema
            if merged is None:
                fault = fault or f"its parts describe {name!r} differently"
            else:
                properties[name] = merged
        needed = part.get("required")
        required.update(needed if isinstance(needed, list) else ())
    if not fault and required - properties.keys():
        fault = f"it requires {min(required - properties.keys())!r}, which it does not describe"
    return FlatObject(
        properties=properties,
        required=frozenset(required),
        names=tuple(dict.fromkeys(_names(properties))),
        fault=fault if properties else "-",
    )


def root_object(found: Converted, pool: SchemaPool) -> Converted:
    """What a bare reference leads to."""
    for _ in range(_HOPS):
        reference = found.schema.get("$ref")
        if not isinstance(reference, str) or found.schema.keys() - {"$ref", "description"}:
            break
        found = pool.definition(reference.removeprefix(_DEFINITIONS))
    return found


def _parts(
    schema: Mapping[str, Any], pool: SchemaPool, seen: set[str], depth: int
) -> Iterator[Mapping[str, Any]]:
    """The schemas that an object has to fit all together, the outermost last."""
    if depth > _HOPS:
        yield {"not": {}}  # a rule, so that the object stays in one piece
        return
    reference, branches = schema.get("$ref"), schema.get("allOf")
    if isinstance(reference, str) and reference not in seen:  # twice says no more than once
        seen.add(reference)
        target = pool.definition(reference.removeprefix(_DEFINITIONS))
        yield from _parts(target.schema, pool, seen, depth + 1)
    for branch in branches if isinstance(branches, list) else ():
        if isinstance(branch, Mapping):
            yield from _parts(branch, pool, seen, depth + 1)
    yield schema


def _fault(part: Mapping[str, Any]) -> str:
    kind = part.get("type", "object")
    if kind != "object" and (not isinstance(kind, list) or "object" not in kind):
        return "-"
    if rules := sorted(part.keys() - _PLAIN):
        return f"rules hold between its properties ({', '.join(rules)})"
    return "it takes names that are not declared" if part.get("additionalProperties") else ""


def _merged(one: Any, other: Any) -> Any:
    """A schema that both say; None when they say different things."""
    if not isinstance(one, Mapping) or not isinstance(other, Mapping):
        return one if one == other else None
    rules = [{key: each[key] for key in each.keys() - _WORDS} for each in (one, other)]
    return {**one, **other} if rules[0] == rules[1] or not all(rules) else None


def _names(properties: Mapping[str, Any]) -> Iterator[str]:
    for reference in references({"properties": properties}):
        yield reference.removeprefix(_DEFINITIONS)
