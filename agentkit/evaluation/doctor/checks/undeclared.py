"""What a schema leaves open, and what it claims without declaring it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from agentkit.evaluation.doctor.catalogue import Catalogue
from agentkit.evaluation.doctor.finding import Finding, Kind
from agentkit.evaluation.doctor.listing import listed
from agentkit.evaluation.doctor.mends import propose
from agentkit.evaluation.doctor.parts import Part, parts, type_names
from agentkit.evaluation.doctor.schema_mends import (
    enum_type,
    ghosts,
    is_empty_title,
    repeated_values,
)
from agentkit.messages import JsonObject
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.schema import references, resolve_local

_TYPING_TEXT = """
type enum const $ref anyOf oneOf allOf not if properties items prefixItems
additionalProperties
"""
_TYPING = frozenset(_TYPING_TEXT.split())
_SHAPING_TEXT = """
properties patternProperties additionalProperties propertyNames $ref anyOf oneOf allOf
"""
_SHAPING = frozenset(_SHAPING_TEXT.split())

UNTYPED = Kind(
    code="untyped_parameter",
    severity="warning",
    title="parameters without a type",
    why="Anything is valid, so wrong calls are not caught, and types can not help the retriever.",
    advice="Declare the type; null too, where it may be left out that way.",
)
UNTYPED_RESULT = Kind(
    code="untyped_result",
    severity="note",
    title="no declared result",
    why="Tools can not be chosen by what they give, and composites can not be type-checked.",
    advice="Declare the result's schema (MCP: outputSchema).",
)
OPEN_OBJECT = Kind(
    code="open_object",
    severity="warning",
    title="objects without properties",
    why="The model has to invent the keys; strict modes refuse such a schema.",
    advice="List the properties, or say what the values are with additionalProperties.",
)
UNTYPED_ITEMS = Kind(
    code="untyped_items",
    severity="warning",
    title="arrays without the type of their items",
    why="The model has to guess what goes into the list; some providers refuse such a schema.",
    advice="Declare items.",
)
# Gemini's refusal: https://github.com/Kilo-Org/kilocode/pull/11955
GHOST = Kind(
    code="ghost_required",
    severity="error",
    title="required names that are no properties",
    why="The model is told to give what is nowhere described; Gemini refuses the whole request.",
    advice="Add the property, or drop the name.",
)
UNTYPED_ENUM = Kind(
    code="untyped_enum",
    severity="note",
    title="allowed values without a type",
    why="Gemini asks for a type beside them.",
    advice="Add the type that all values have.",
)
REPEATED_VALUES = Kind(
    code="repeated_values",
    severity="warning",
    title="allowed values listed twice",
    why="JSON Schema says that they should be unique, and validators may refuse the schema.",
    advice="Keep each once.",
)
DANGLING = Kind(
    code="dangling_reference",
    severity="error",
    title="references that lead nowhere",
    why="Calls can not be validated, and providers refuse the schema.",
    advice="Add the definition that is missing; inline what stands in another document.",
)
GENERATED = Kind(
    code="generated_titles",
    severity="note",
    title="titles that only repeat the name",
    why="Schema generators write them; they are sent with every request and say nothing.",
    advice="Drop them.",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Search:
    """What to look for in a part of a schema, and what mends it."""

    kind: Kind
    look: Callable[[Part], str | None]
    mends: tuple[str, ...] = ()


def undeclared(catalogue: Catalogue) -> Iterator[Finding]:
    """Types, items, properties and references that are missing or wrong."""
    for definition in catalogue.definitions:
        every = tuple(parts(definition.signature.parameters))
        for search in _SEARCHES:
            yield from _found(catalogue, definition, every, search)
        yield from _references(definition)
        if definition.signature.result is None:
            yield Finding(
                kind=UNTYPED_RESULT,
                tools=(definition.name,),
                what="the result is not declared",
                where=("result",),
            )


def _found(
    catalogue: Catalogue, definition: ToolDefinition, every: Sequence[Part], search: _Search
) -> Iterator[Finding]:
    hits = [(part.path or "the arguments", told) for part in every if (told := search.look(part))]
    if not hits:
        return
    proposal = propose(catalogue, definition, search.mends)
    yield Finding(
        kind=search.kind,
        tools=(definition.name,),
        what=listed([told for _, told in hits]),
        where=tuple(dict.fromkeys(path for path, _ in hits)),
        tokens=0 if proposal is None else max(proposal.saved, 0),
        proposal=proposal,
    )


def _is_value(part: Part) -> bool:
    return part.role in {"property", "items"} and not part.path.endswith(".*")


def _untyped(part: Part) -> str | None:
    is_open = part.role == "property" and not part.schema.keys() & _TYPING
    return part.path if is_open else None


def _open_object(part: Part) -> str | None:
    if not _is_value(part) or "object" not in type_names(part.schema):
        return None
    is_open = not any(part.schema.get(key) for key in _SHAPING)
    return part.path if is_open else None


def _untyped_items(part: Part) -> str | None:
    if "array" not in type_names(part.schema) or part.schema.get("prefixItems"):
        return None
    items = part.schema.get("items")
    is_told = isinstance(items, Mapping) and items.keys() & _TYPING
    return None if is_told else part.path or "the arguments"


def _ghost(part: Part) -> str | None:
    names = ghosts(part.schema)
    if not names:
        return None
    return f"{listed(names)}{f' in {part.path}' if part.path else ''}"


def _untyped_enum(part: Part) -> str | None:
    found = enum_type(part.schema)
    return None if found is None else f"{part.path} ({found})"


def _repeated_values(part: Part) -> str | None:
    values = repeated_values(part.schema)
    return f"{part.path}: {listed(values)}" if values else None


def _generated(part: Part) -> str | None:
    return part.path if part.name and is_empty_title(part.schema, part.name) else None


def _references(definition: ToolDefinition) -> Iterator[Finding]:
    root = definition.signature.parameters
    lost = [one for one in dict.fromkeys(references(root)) if _leads_nowhere(root, one)]
    if lost:
        yield Finding(
            kind=DANGLING,
            tools=(definition.name,),
            what=f"nothing is found at {listed(lost)}",
            where=tuple(lost),
        )


def _leads_nowhere(root: JsonObject, reference: str) -> bool:
    """Whether a reference ends at no schema: at nothing, or at itself by way of others."""
    seen: set[str] = set()
    while reference not in seen:
        seen.add(reference)
        target = resolve_local(root, reference)
        if not isinstance(target, Mapping | bool):
            return True
        if isinstance(target, bool) or target.keys() - {"$ref", "description", "title"}:
            return False
        if not isinstance(target.get("$ref"), str):
            return False
        reference = target["$ref"]
    return True


_SEARCHES = (
    _Search(kind=UNTYPED, look=_untyped),
    _Search(kind=OPEN_OBJECT, look=_open_object),
    _Search(kind=UNTYPED_ITEMS, look=_untyped_items),
    _Search(kind=GHOST, look=_ghost, mends=("drop_ghosts",)),
    _Search(kind=UNTYPED_ENUM, look=_untyped_enum, mends=("type_enums",)),
    _Search(kind=REPEATED_VALUES, look=_repeated_values, mends=("unique_enums",)),
    _Search(kind=GENERATED, look=_generated, mends=("drop_titles",)),
)
