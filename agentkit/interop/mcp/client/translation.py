"""From an entry of ``tools/list`` to a definition."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from agentkit.errors import DefinitionError
from agentkit.interop.mcp.client.listing import ListedTool
from agentkit.interop.mcp.wire import (
    EFFECTS_KEY,
    WRAPPED_KEY,
    exact_effects,
    is_wrapped,
    unwrapped_schema,
)
from agentkit.messages import JsonObject
from agentkit.tools.bounded import schema_fault
from agentkit.tools.definition import Effects, ToolDefinition
from agentkit.tools.sources.dialects import normalise_schema
from agentkit.tools.sources.json_records import definition_from_json

_READ_BY_MODELS = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
_DIALECTS = frozenset(
    {
        "http://json-schema.org/draft-04/schema#",
        "http://json-schema.org/draft-06/schema#",
        "http://json-schema.org/draft-07/schema#",
        "http://json-schema.org/draft-07/schema",
        "https://json-schema.org/draft/2019-09/schema",
        "https://json-schema.org/draft/2020-12/schema",
    }
)


def listed_tool(
    record: JsonObject,
    *,
    offered_name: str,
    reference: str,
    trust_annotations: bool,
    print_of: str | None = None,
) -> ListedTool:
    """What would be offered of an entry.

    Args:
        record: The entry.
        offered_name: What the library is to call it.
        reference: Where the definition comes from; the fingerprint is added.
        trust_annotations: Whether what the server says of effects counts.
        print_of: Its fingerprint, when it is known.

    Raises:
        DefinitionError: The entry can not be used; the message says why.
    """
    name = record.get("name")
    if not isinstance(name, str) or not name.strip():
        raise DefinitionError("it has no name")
    schema, result = _schemas(record)
    print_of = print_of or fingerprint(record)
    described = {
        "name": offered_name,
        "description": record.get("description") or record.get("title") or "",
        "inputSchema": _without_dialect(schema),
    }
    is_plain = result is not None and isinstance(result.get("type"), str | list)
    if is_plain:
        described["outputSchema"] = result
    definition = definition_from_json(
        described,
        effects=effects_of(record, trust=trust_annotations),
        reference=f"{reference}#{print_of}",
    )
    if result is not None and not is_plain:  # read elsewhere, that is a map of fields
        definition = _with_result(definition, normalise_schema(result).schema or None)
    _check_repairs(definition, schema, result)
    return ListedTool(
        name=name,
        definition=_of_server(definition, name),
        fingerprint=print_of,
        hints=hints_in(record),
        wrapped=is_wrapped(record),
    )


def _schemas(record: JsonObject) -> tuple[JsonObject, JsonObject | None]:
    """The schemas of the arguments and of the value; of the latter without a wrapper of ours.

    Raises:
        DefinitionError: One is no schema.
    """
    schema, result = record.get("inputSchema"), record.get("outputSchema")
    if not isinstance(schema, Mapping) or schema.get("type") != "object":
        raise DefinitionError(f"its inputSchema is no schema of an object: {str(schema)[:120]}")
    if result is None:
        return schema, None
    if not isinstance(result, Mapping):
        raise DefinitionError(f"its outputSchema is no schema: {str(result)[:120]}")
    return schema, unwrapped_schema(result) if is_wrapped(record) else _without_dialect(result)


def _without_dialect(schema: JsonObject) -> JsonObject:
    """The schema without the name of its dialect, which half of all servers give.

    What a dialect writes differently is known by how it is written, so the name says nothing more
    and its loss is no repair.
    """
    if schema.get("$schema") not in _DIALECTS:
        return schema
    return {key: rule for key, rule in schema.items() if key != "$schema"}


def fingerprint(record: JsonObject) -> str:
    """Digest over what a server says of a tool and a model could read, hints included.

    Raises:
        DefinitionError: It can not be written as JSON.
    """
    said = {key: record[key] for key in _READ_BY_MODELS if record.get(key) is not None}
    meta = record.get("_meta")
    if isinstance(meta, Mapping):
        said["_meta"] = {key: meta[key] for key in (EFFECTS_KEY, WRAPPED_KEY) if key in meta}
    try:
        text = json.dumps(said, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (ValueError, RecursionError, TypeError) as error:
        raise DefinitionError(f"it can not be written as JSON: {error}") from error
    return hashlib.sha256(text.encode()).hexdigest()


def reference_fingerprint(definition: ToolDefinition) -> str | None:
    """The fingerprint that a definition was imported with, also after its words evolved."""
    origin = definition.origin
    place, separator, found = origin.reference.rpartition("#")
    is_ours = origin.kind == "mcp" and place.startswith("mcp:") and bool(separator)
    return found if is_ours else None


def hints_in(record: JsonObject) -> dict[str, bool]:
    """The hints of an entry that are what hints are."""
    said = record.get("annotations")
    given = said if isinstance(said, Mapping) else {}
    return {name: given[name] for name in _HINTS if isinstance(given.get(name), bool)}


def effects_of(record: JsonObject, *, trust: bool) -> Effects:
    """What is assumed of a tool's effects.

    A tool is taken to write and to reach into the world. Hints of a server that is not trusted
    can make that only stricter: ``destructiveHint`` asks for approval, even beside a
    ``readOnlyHint``, and a tool that says it must not be repeated is not. That it reads only, may
    be repeated, or stays at home counts for a server that is trusted, of which nothing is assumed
    beyond what it says; one of ours then says its effects exactly.

    Example:
        >>> safe = {"annotations": {"readOnlyHint": True, "idempotentHint": True}}
        >>> effects_of(safe, trust=False)
        Effects(reads=None, writes=True, destructive=None, idempotent=None, open_world=True)
        >>> effects_of(safe, trust=True).is_read_only
        True
    """
    hints = hints_in(record)
    if not trust:
        return Effects(
            writes=True,
            destructive=True if hints.get("destructiveHint") else None,
            idempotent=False if hints.get("idempotentHint") is False else None,
            open_world=True,
        )
    exact = exact_effects(record)
    if exact is not None:
        return exact
    reads_only = hints.get("readOnlyHint")
    return Effects(
        reads=True if reads_only else None,
        writes=None if reads_only is None else not reads_only,
        destructive=False if reads_only else hints.get("destructiveHint"),
        idempotent=hints.get("idempotentHint"),
        open_world=hints.get("openWorldHint"),
    )


def _with_result(definition: ToolDefinition, result: JsonObject | None) -> ToolDefinition:
    changed = replace(definition, signature=replace(definition.signature, result=result))
    try:
        _ = changed.digest
    except (ValueError, RecursionError) as error:  # half a surrogate pair
        message = f"its outputSchema can not be written as JSON: {error}"
        raise DefinitionError(message) from error
    return changed


def _check_repairs(definition: ToolDefinition, schema: JsonObject, result: object) -> None:
    """Refuse schemas that are none in the dialect that they name, or else in 2020-12.

    Those of benchmarks and other formats are repaired on import; a protocol that says JSON Schema
    and a server that sends something else is a server to look at first. What reading left as it was
    is valid.
    """
    known = definition.signature.result
    if definition.origin.original is not None:
        _check_schema(schema)
    if result is not None and result != known and not (known is None and result == {}):
        _check_schema(result)


def _check_schema(schema: Any) -> None:
    if fault := schema_fault(schema):
        raise DefinitionError(f"its schema is no JSON Schema, {fault}")


def _of_server(definition: ToolDefinition, name: str) -> ToolDefinition:
    if name == definition.name:
        return definition
    return replace(definition, origin=replace(definition.origin, original_name=name))


def record_of(tool: Any) -> dict[str, Any]:
    """An entry that the official client read, as JSON; its schemas are handed on, not copied."""
    record: dict[str, Any] = {"name": tool.name, "inputSchema": tool.input_schema}
    optional = {
        "title": tool.title,
        "description": tool.description,
        "outputSchema": tool.output_schema,
        "_meta": tool.meta,
    }
    record |= {key: value for key, value in optional.items() if value is not None}
    if tool.annotations is not None:
        record["annotations"] = tool.annotations.model_dump(by_alias=True, exclude_none=True)
    return record
