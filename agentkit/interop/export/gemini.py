"""Function declarations of Gemini, whose schemas are a part of OpenAPI 3.0.

There are one type, spelled in capitals, and ``nullable``; allowed values are texts; references,
``oneOf``, ``additionalProperties`` and exclusive bounds do not exist. See
https://ai.google.dev/api/caching#Schema; the keywords are those that ``agentkit tools doctor``
checks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from agentkit.evaluation.doctor.provider_rules import GEMINI_FORMATS, GEMINI_KEYWORDS
from agentkit.interop.export.rendering import (
    MOST_SCHEMAS,
    Loss,
    Notes,
    RecursiveReference,
    References,
    Rendering,
    Tools,
    definitions_of,
    lost_parts,
    renamed,
    rendering_of,
)
from agentkit.messages import JsonObject
from agentkit.models.wire import LONGEST_NAME, WireNames
from agentkit.tools.definition import ToolDefinition

_BEGINS = re.compile(r"[a-zA-Z_]")
_STRUCTURE = frozenset({"type", "nullable", "properties", "required", "items", "anyOf", "oneOf"})
_TYPE_OF = {str: "string", bool: "boolean", int: "integer", float: "number"}
_ANY = ("STRING", "NUMBER", "BOOLEAN")


def render_gemini(tools: Tools) -> Rendering:
    """The field ``functionDeclarations`` of a tool.

    A tool without parameters has no ``parameters``, as the service asks.

    Args:
        tools: What to render.

    Example:
        >>> from agentkit.testing import sample_library
        >>> rendering = render_gemini([sample_library()["bill_split"]])
        >>> rendering.value[0]["parameters"]["properties"]["people"]["type"]
        'INTEGER'
    """
    definitions = definitions_of(tools)
    wire = {own: name for name, own in gemini_names(one.name for one in definitions).items()}
    value: list[dict[str, Any]] = []
    losses: list[Loss] = []
    for definition in definitions:
        name = wire[definition.name]
        notes = Notes(tool=definition.name)
        value.append(_declaration(definition, name, notes))
        losses += [
            *renamed(definition, name),
            *lost_parts(definition, kept=("result",)),
            *notes.losses,
        ]
    return rendering_of(value, definitions, losses, wire)


def gemini_names(names: Iterable[str]) -> dict[str, str]:
    """The tools' names by names that begin with a letter or ``_``, as Gemini wants them.

    Example:
        >>> gemini_names(["7_day.forecast", "now"])
        {'_7_day_forecast': '7_day.forecast', 'now': 'now'}
    """
    given = list(names)
    accepted = WireNames(given)
    wanted = {name: accepted.encode(name) for name in given}
    taken = {wire for wire in wanted.values() if _BEGINS.match(wire)}
    found: dict[str, str] = {}
    for name, wire in sorted(wanted.items()):
        begun = wire
        while not _BEGINS.match(begun) or (begun != wire and begun in taken):
            begun = f"_{begun}"[:LONGEST_NAME]
        taken.add(begun)
        found[name] = begun
    return {found[name]: name for name in given}


def _declaration(definition: ToolDefinition, name: str, notes: Notes) -> dict[str, Any]:
    record: dict[str, Any] = {"name": name, "description": definition.text}
    root = definition.parameters_schema
    if root.get("properties"):
        record["parameters"] = _Walk(notes, root).schema(root, "", ())
    elif set(root) - {"type", "properties", "required"}:
        record["description"] = notes.say(
            {"description": definition.text},
            {key: value for key, value in root.items() if key not in _STRUCTURE},
            "",
        )["description"]
    result = definition.signature.result
    if result:
        told = Notes(tool=definition.name)
        record["response"] = _Walk(told, result).schema(result, "", ())
        if told.losses:
            detail = "the schema of the result is told as far as it can be"
            notes.losses.append(
                Loss(tool=definition.name, keyword="result", went="changed", detail=detail)
            )
    return record


class _Walk:
    """One pass over a schema."""

    def __init__(self, notes: Notes, root: JsonObject) -> None:
        self._notes = notes
        self._references = References(root)

    def schema(self, raw: Any, place: str, path: tuple[str, ...]) -> dict[str, Any]:
        if not isinstance(raw, Mapping) or self._references.count >= MOST_SCHEMAS:
            return self._anything({}, place)
        try:
            given, deeper = self._references.entered(raw, path)
        except RecursiveReference as error:
            detail = f"the reference {error} can not be resolved: an object of any fields"
            self._notes.note("$ref", place, "dropped", detail)
            words = {"description": raw["description"]} if "description" in raw else {}
            return {"type": "OBJECT", **words}
        if "$ref" in raw:
            self._notes.note("$ref", place, "changed", "the reference is replaced by its target")
        kept, moved = self._kept(given)
        if isinstance(moved.get("additionalProperties"), bool):
            free = "taken" if moved.pop("additionalProperties") else "refused"
            detail = f"that free keys are {free} has no place"
            self._notes.note("additionalProperties", place, "dropped", detail)
        found = self._structure(given, kept, place, deeper)
        return self._notes.say(found, moved, place) if moved else found

    def _kept(self, given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """The keywords that can be said as they are, and those that can not."""
        kept: dict[str, Any] = {}
        moved: dict[str, Any] = {}
        kinds = _kinds(given)
        for key, value in given.items():
            if key in _STRUCTURE:
                continue
            if key == "const" and isinstance(value, str):
                kept["enum"] = [value]
            elif key in GEMINI_KEYWORDS and _is_sayable(key, value, kinds):
                kept[key] = value
            else:
                moved[key] = value
        return kept, moved

    def _structure(
        self,
        given: Mapping[str, Any],
        kept: dict[str, Any],
        place: str,
        path: tuple[str, ...],
    ) -> dict[str, Any]:
        kinds = [kind for kind in _kinds(given) if kind != "null"] or _kinds_of_values(given)
        takes_null = "null" in _kinds(given)
        branches = given.get("anyOf") or given.get("oneOf")
        if "oneOf" in given:
            self._notes.note("oneOf", place, "changed", "oneOf became anyOf")
        if "const" in given and isinstance(given["const"], str):
            self._notes.note("const", place, "changed", "const became the only allowed value")
        if branches:
            return self._union(branches, kept, place, path)
        if not kinds and "properties" in given:
            kinds = ["object"]
        if not kinds:
            return self._anything(kept, place)
        if takes_null:
            self._notes.note("type", place, "changed", "the type null became nullable")
            kept["nullable"] = True
        if len(kinds) > 1:
            self._notes.note("type", place, "changed", "several types became anyOf")
            each = [self._typed(kind, given, {}, place, path) for kind in kinds]
            return {**kept, "anyOf": each}
        return self._typed(kinds[0], given, kept, place, path)

    def _typed(
        self,
        kind: str,
        given: Mapping[str, Any],
        kept: dict[str, Any],
        place: str,
        path: tuple[str, ...],
    ) -> dict[str, Any]:
        found: dict[str, Any] = {"type": kind.upper(), **kept}
        if kind == "array":
            found["items"] = self.schema(given.get("items", {}), f"{place}/items", path)
        if kind == "object" and given.get("properties"):
            found["properties"] = {
                name: self.schema(part, f"{place}/properties/{_escaped(name)}", path)
                for name, part in given["properties"].items()
            }
            needed = [name for name in given.get("required", ()) if name in found["properties"]]
            if needed:
                found["required"] = needed
        return found

    def _union(
        self, branches: Iterable[Any], kept: dict[str, Any], place: str, path: tuple[str, ...]
    ) -> dict[str, Any]:
        given = list(branches)
        parts = [part for part in given if part != {"type": "null"}]
        if len(parts) < len(given):
            self._notes.note("anyOf", place, "changed", "the branch null became nullable")
            kept["nullable"] = True
        each = [self.schema(part, f"{place}/anyOf/{at}", path) for at, part in enumerate(parts)]
        if len(each) == 1 and not kept.keys() & each[0].keys():
            return {**each[0], **kept}
        return {**kept, "anyOf": each}

    def _anything(self, kept: dict[str, Any], place: str) -> dict[str, Any]:
        detail = "any value became text, number or boolean"
        self._notes.note("type", place, "changed", detail)
        return {**kept, "anyOf": [{"type": kind} for kind in _ANY]}


def _kinds(given: Mapping[str, Any]) -> list[str]:
    kind = given.get("type")
    return [kind] if isinstance(kind, str) else list(kind or ())


def _kinds_of_values(given: Mapping[str, Any]) -> list[str]:
    """The type that all allowed values have, where a schema names values and no type."""
    values = [given["const"]] if "const" in given else list(given.get("enum", ()))
    found = {_TYPE_OF.get(type(value), "") for value in values}
    return sorted(found) if len(found) == 1 and "" not in found else []


def _is_sayable(key: str, value: Any, kinds: list[str]) -> bool:
    if key == "enum":
        return all(isinstance(one, str) for one in value) and set(kinds) <= {"string", "null"}
    if key == "format":
        return any(value in GEMINI_FORMATS.get(kind, ()) for kind in kinds)
    return True


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
