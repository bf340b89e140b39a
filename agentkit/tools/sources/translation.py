"""Spellings of other dialects that move or split a keyword, as changes to one schema object.

Each translation takes a shallow copy of the object to change, and a ``note`` to report to. None of
them looks at the schemas below.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from agentkit.tools.sources.keywords import Note, as_boolean
from agentkit.tools.sources.type_names import JSON_TYPES, read_type_name

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
