"""Definitions from JSON records of every provider, of files and of our own; and as MCP lists them.

A record names its parts differently in each place. Here every known spelling is read, the
parameters go through ``normalise_parameters``, and what was received is kept in
``Origin.original`` when normalising changed it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, islice
from pathlib import Path
from typing import Any, get_args

from agentkit.errors import DefinitionError, ReadingLimitError
from agentkit.messages import JsonObject
from agentkit.reading import check_values, most_broken, read_json
from agentkit.tools.canonical import is_json
from agentkit.tools.definition import EffectName, Effects, Origin, ToolDefinition, is_instructions
from agentkit.tools.error_messages import problems_of, value_text
from agentkit.tools.schema import with_references
from agentkit.tools.schema_validator import schema_errors
from agentkit.tools.sources.dialects import (
    normalise_parameters,
    normalise_schema,
    reference_fault,
    schema_fault,
)

_NAMES = ("name", "api_name")
_DESCRIPTIONS = ("description", "api_description")
_PARAMETERS = (
    "parameters",
    "input_schema",
    "inputSchema",
    "parametersJsonSchema",
    "parameter_definitions",
    "query_parameters",
)
_RESULTS = (
    "outputSchema",
    "output_schema",
    "output_parameters",
    "returns",
    "response",
    "responses",
)
_WRAPPERS = ("function", "toolSpec")
_LISTS = ("tools", "functions", "functionDeclarations", "function_declarations", "definitions")
_LINE = re.compile(r"[^\n]+")
_JSON_LINES_HINT = "write one JSON object, a list of them, or one object a line"


PYTHON_ORIGINS = frozenset({"function", "pydantic"})
"""Kinds of origins of definitions that were made from Python code."""

MCP_PREFIX = "mcp:"
"""Before a server's name, in the reference of a tool that a person approved."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RejectedEntry:
    """An entry that is not a tool definition.

    Attributes:
        index: Its place among the entries, from 0; in JSON lines, blank lines do not count.
        reason: What is wrong with it, in one sentence.
        entry: The entry as received; its text when it is not JSON.
    """

    index: int
    reason: str
    entry: Any


@dataclass(frozen=True, kw_only=True, slots=True)
class DefinitionBatch:
    """The content of a file of definitions; nothing is lost.

    Attributes:
        definitions: The usable ones, in the order of the file.
        rejected: The others, each with its reason.
    """

    definitions: tuple[ToolDefinition, ...]
    rejected: tuple[RejectedEntry, ...]


def definition_from_json(
    record: object,
    *,
    effects: Effects | None = None,
    reference: str = "",
    licence: str | None = None,
) -> ToolDefinition:
    """A definition from one decoded JSON record.

    Accepted are ``{name, description, parameters}``, OpenAI's ``{type, function}``, Anthropic's
    ``input_schema``, MCP's ``inputSchema`` with ``outputSchema`` and ``annotations``, Bedrock's
    ``toolSpec``, and the JSON form of our own definitions.

    Args:
        record: The record.
        effects: What the tool does, when the caller knows; otherwise MCP annotations are read.
        reference: File or URL that it came from.
        licence: SPDX expression of the source.

    Raises:
        DefinitionError: The record has no name, or is not a definition at all.

    Example:
        >>> definition = definition_from_json(
        ...     {
        ...         "name": "find",
        ...         "description": "Find a city.",
        ...         "inputSchema": {"type": "object", "properties": {"q": {"type": "str"}}},
        ...         "annotations": {"readOnlyHint": True},
        ...     }
        ... )
        >>> definition.signature.parameters["properties"], definition.signature.effects.writes
        ({'q': {'type': 'string'}}, False)
    """
    if not isinstance(record, Mapping):
        raise DefinitionError(
            f"a tool definition is a JSON object, got {type(record).__name__}: {str(record)[:80]}"
        )
    try:
        definition = (
            _ours(record)
            if "signature" in record
            else _theirs(record, effects=effects, reference=reference, licence=licence)
        )
        if is_instructions(definition.name):
            raise DefinitionError(
                "instructions speak for their agent, so they are not imported; write them in code"
            )
        definition = without_claims(definition)
        _check_json(definition)
    except RecursionError as error:
        name = str(record.get("name", ""))[:80]
        raise DefinitionError(
            f"definition {name!r} is nested too deeply to be read", tool_name=name
        ) from error
    return definition


def without_claims(definition: ToolDefinition) -> ToolDefinition:
    """A definition of somebody else's without an origin that something depends on.

    A person who approves a tool of an MCP server has its fingerprint kept in its origin, and the
    origin of a renamed tool says which code of yours it is. A file says neither.
    """
    origin = definition.origin
    if origin.reference.startswith(MCP_PREFIX):
        claimed = origin.reference.removeprefix(MCP_PREFIX).partition("#")[0]
        origin = replace(origin, kind="json_schema", reference=f"claims to be of {claimed[:200]}")
    elif origin.kind in PYTHON_ORIGINS and origin.original_name:
        origin = replace(origin, kind="json_schema")
    return definition if origin is definition.origin else replace(definition, origin=origin)


def _check_json(definition: ToolDefinition) -> None:
    try:
        _ = definition.digest
    except ValueError as error:  # NaN, or half a surrogate pair
        raise DefinitionError(
            f"definition {definition.name!r} cannot be written as JSON: {error}",
            tool_name=definition.name,
        ) from error


def _theirs(
    record: Mapping[str, Any],
    *,
    effects: Effects | None,
    reference: str,
    licence: str | None,
) -> ToolDefinition:
    body = _unwrapped(record)
    name = _text(body, _NAMES, name=None)
    if not name.strip():
        raise DefinitionError(
            f"a tool definition needs a name; the keys are {sorted(map(str, body))[:20]}"
        )
    raw_parameters = _parameters(body)
    parameters = normalise_parameters(raw_parameters)
    result = _first(body, _RESULTS)
    return ToolDefinition.from_schema(
        name,
        _text(body, _DESCRIPTIONS, name=name),
        parameters,
        result=None if result is None else _result(result, is_whole=is_wrapped(body)),
        effects=effects or exact_effects(body) or hinted_effects(body.get("annotations")),
        tags=_tags(body),
        origin=Origin(
            kind="mcp" if "inputSchema" in body else "json_schema",
            reference=reference,
            original=None if parameters == raw_parameters else _original(raw_parameters),
            licence=licence,
        ),
    )


def definitions_from_json(data: object, *, reference: str = "") -> DefinitionBatch:
    r"""Every definition in a document; an entry that is unusable is reported, never dropped.

    A document of ten thousand unusable entries is given up, as one entry that says so.

    Args:
        data: Text (JSON, or JSON lines) or decoded JSON: one record, a list of records, or an
            object that holds such a list, as the answer to MCP's ``tools/list`` does.
        reference: File or URL that it came from.

    Example:
        >>> batch = definitions_from_json('{"name": "add"}\n{"nom": "sub"}\n')
        >>> [definition.name for definition in batch.definitions]
        ['add']
        >>> batch.rejected[0].index, batch.rejected[0].reason
        (1, "a tool definition needs a name; the keys are ['nom']")
    """
    definitions: list[ToolDefinition] = []
    rejected: list[RejectedEntry] = []
    most = most_broken()
    for index, (entry, problem) in enumerate(_entries(data)):
        try:
            if problem:
                raise DefinitionError(problem)  # noqa: TRY301 - one place turns both into a value
            definitions.append(definition_from_json(entry, reference=reference))
        except DefinitionError as error:
            rejected.append(RejectedEntry(index=index, reason=str(error), entry=entry))
            if len(rejected) > most:
                why = f"the file is given up: more than {most:,} entries are unusable ({error})"
                return DefinitionBatch(
                    definitions=(), rejected=(replace(rejected[-1], reason=why),)
                )
    return DefinitionBatch(definitions=tuple(definitions), rejected=tuple(rejected))


def _entries(data: object) -> Iterator[tuple[Any, str]]:
    """Each entry, with what is wrong with its text when that is not JSON."""
    if isinstance(data, bytes):
        try:
            data = data.decode("utf-8")
        except UnicodeDecodeError as error:
            yield data, f"not JSON, which is written in UTF-8: {error}"
            return
    if not isinstance(data, str):
        yield from ((entry, "") for entry in _listed(data))
        return
    text = data.removeprefix("\ufeff")
    whole, problem = _decoded(text)
    if not problem:
        yield from ((entry, "") for entry in _listed(whole))
        return
    try:
        check_values(text)
    except ReadingLimitError:
        yield whole, problem
        return
    lines = (_decoded(line[0]) for line in _LINE.finditer(text) if line[0].strip())
    first = list(islice(lines, most_broken()))
    if len(first) > 1 and any(not why for _, why in first):
        yield from chain(first, lines)
    elif first:  # one document with a mistake in it, not many
        yield whole, problem


def _decoded(text: str) -> tuple[Any, str]:
    try:
        return read_json(text), ""
    except ReadingLimitError as error:
        return text[:2000], f"not JSON within the bounds of reading: {error}"
    except (ValueError, RecursionError) as error:
        return text[:2000], f"not JSON ({error}); {_JSON_LINES_HINT}"


def _listed(data: object) -> Iterator[Any]:
    """The records of a list, of an object that holds a list, or of an object that is one."""
    if isinstance(data, list):
        for entry in data:
            held = _held(entry)
            yield from (entry,) if held is None else _listed(held)
    else:
        held = _held(data)
        yield from (data,) if held is None else _listed(held)


def _held(entry: object) -> object | None:
    if not isinstance(entry, Mapping) or any(isinstance(entry.get(key), str) for key in _NAMES):
        return None
    if isinstance(entry.get("result"), Mapping):  # a JSON-RPC answer
        return _held(entry["result"])
    return next((entry[key] for key in _LISTS if isinstance(entry.get(key), list)), None)


def _unwrapped(record: Mapping[str, Any]) -> Mapping[str, Any]:
    for key in _WRAPPERS:
        if isinstance(body := record.get(key), Mapping):
            return body
    return record


def _first(body: Mapping[str, Any], keys: Iterable[str]) -> Any:
    return next((body[key] for key in keys if body.get(key) is not None), None)


def _text(body: Mapping[str, Any], keys: tuple[str, ...], *, name: str | None) -> str:
    found = _first(body, keys)
    if found is not None and not isinstance(found, str):
        raise DefinitionError(
            f"the {keys[0]} of a tool is text, got {type(found).__name__}: {str(found)[:80]}",
            tool_name=name,
        )
    return found or ""


def _parameters(body: Mapping[str, Any]) -> Any:
    """The parameters as received, with a ``required`` that stands beside them."""
    parameters = _first(body, _PARAMETERS)
    if isinstance(parameters, Mapping) and parameters.keys() == {"json"}:  # Bedrock
        parameters = parameters["json"]
    beside = body.get("required")
    if (
        not isinstance(parameters, Mapping)
        or not isinstance(beside, list)
        or "properties" in parameters
    ):
        return parameters
    return {"type": "object", "properties": parameters, "required": beside}


def _original(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {"parameters": value}


def _result(value: Any, *, is_whole: bool) -> dict[str, Any] | None:
    """The result's schema; a map of fields counts as an object, unless we wrote the schema."""
    if is_whole:
        return normalise_schema(unwrapped_schema(value)) or None
    is_schema = not isinstance(value, Mapping) or isinstance(value.get("type"), str | list)
    normalise = normalise_schema if is_schema or not value else normalise_parameters
    return normalise(value) or None


def _tags(body: Mapping[str, Any]) -> tuple[str, ...]:
    tags = body.get("tags")
    return tuple(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, list) else ()


def hinted_effects(annotations: object) -> Effects:
    """MCP's hints; what a server does not say stays undeclared."""
    if not isinstance(annotations, Mapping):
        return Effects()
    hints = {key: item for key, item in annotations.items() if isinstance(item, bool)}
    read_only = hints.get("readOnlyHint")
    return Effects(
        reads=True if read_only else None,
        writes=None if read_only is None else not read_only,
        destructive=False if read_only else hints.get("destructiveHint"),
        idempotent=hints.get("idempotentHint"),
        open_world=hints.get("openWorldHint"),
    )


# --- our own form ---------------------------------------------------------------------------------


def record_faults(record: Any) -> tuple[str, ...]:
    """Why the data are not a definition in our own form; empty when they are one.

    ``ToolDefinition.from_json`` trusts what programs of ours wrote. People forget quotes and
    mistype keys, and a file from elsewhere may hold anything.

    Args:
        record: What a file of a tool holds.

    Example:
        >>> record_faults({"name": "ping", "description": {"sumary": "Ping."}})
        ('`description.sumary` is not a field of `description`; did you mean `summary`?',)
    """
    if not isinstance(record, dict):
        return (f"a definition is an object, got {value_text(record)}",)
    if not is_json(record):
        return ("it holds a value that JSON does not have, such as .nan or half a letter",)
    errors = schema_errors(record, _own_schema())
    problems = problems_of(errors, owner="a key of a definition", noun="key", whole="definition")
    return tuple(problem.rule for problem in problems) or tuple(_schema_faults(record))


@cache
def _own_schema() -> JsonObject:
    """The JSON form of a definition, as a schema."""
    text = Path(__file__).with_name("definition.schema.json").read_text(encoding="utf-8")
    schema: JsonObject = json.loads(text)
    return schema


def _schema_faults(record: Mapping[str, Any]) -> Iterator[str]:
    """Whether the schemas are some."""
    signature = record.get("signature", {})
    for key in ("parameters", "result"):
        schema = signature.get(key, {})
        if fault := schema_fault(schema) or reference_fault(schema):
            yield f"signature.{key}: {fault}"


def _ours(record: Mapping[str, Any]) -> ToolDefinition:
    known = {key: part for key, part in record.items() if key in _own_schema()["properties"]}
    if faults := record_faults(known):
        name = str(record.get("name", ""))[:80]
        raise DefinitionError(f"{name!r} is not a tool definition: {faults[0]}", tool_name=name)
    return ToolDefinition.from_json(record)


# --- as MCP lists it ------------------------------------------------------------------------------

# The protocol says less than a definition does: what a tool writes but does not destroy has no
# hint, and clients of older versions take only objects for results. So what would be lost goes into
# ``_meta`` under names of ours, which other clients leave alone.

EFFECTS_KEY = "agentkit.dev/effects"
"""Key in a tool's ``_meta``: the effects as we declare them."""

WRAPPED_KEY = "agentkit.dev/wrapped"
"""Key in a tool's ``_meta``: its result is the field ``result`` of the object sent."""

RESULT_FIELD = "result"
"""Under which a value that is not an object is sent, as the official server library does it."""

_SHARED: tuple[str, ...] = ("$defs", "definitions")
_INNER = f"#/properties/{RESULT_FIELD}"


def tool_record(definition: ToolDefinition, *, name: str | None = None) -> dict[str, Any]:
    """A definition as an entry of ``tools/list``.

    Args:
        definition: What the library says.
        name: What to list it as; None takes the definition's own.

    Example:
        >>> record = tool_record(
        ...     ToolDefinition.from_schema("now", "The time.", {"type": "object", "properties": {}})
        ... )
        >>> record["name"], record["inputSchema"]
        ('now', {'type': 'object', 'properties': {}})
    """
    signature = definition.signature
    record: dict[str, Any] = {
        "name": name or definition.name,
        "description": definition.text,
        "inputSchema": definition.parameters_schema,
    }
    meta: dict[str, Any] = {}
    if signature.result is not None:
        wrapped = not describes_object(signature.result)
        record["outputSchema"] = wrapped_schema(signature.result) if wrapped else signature.result
        meta |= {WRAPPED_KEY: True} if wrapped else {}
    if hints := hints_of(signature.effects):
        record["annotations"] = hints
    if effects := signature.effects.to_json():
        meta[EFFECTS_KEY] = effects
    return record | ({"_meta": meta} if meta else {})


def hints_of(effects: Effects) -> dict[str, bool]:
    """Declared effects in the words of the protocol; what is not declared is left out."""
    hints = {
        "readOnlyHint": None if effects.writes is None else effects.is_read_only,
        "destructiveHint": effects.destructive,
        "idempotentHint": effects.idempotent,
        "openWorldHint": effects.open_world,
    }
    return {name: hint for name, hint in hints.items() if hint is not None}


def describes_object(schema: JsonObject) -> bool:
    """Whether every value of a schema is an object, as all versions of the protocol take it."""
    return schema.get("type") == "object"


def wrapped_schema(schema: JsonObject) -> dict[str, Any]:
    """The schema of an object that holds a value in the field ``result``.

    Definitions that the schema refers to move to the new root, where references look for them;
    references to the old root, as recursive schemas have them, follow it to its new place.
    """
    inner = with_references(schema, _down)
    shared = {key: inner.pop(key) for key in _SHARED if key in inner}
    return {
        "type": "object",
        "properties": {RESULT_FIELD: inner},
        "required": [RESULT_FIELD],
        **shared,
    }


def unwrapped_schema(schema: JsonObject) -> dict[str, Any]:
    """The inverse of ``wrapped_schema``."""
    inner = schema["properties"][RESULT_FIELD]
    shared = {key: schema[key] for key in _SHARED if key in schema}
    moved: dict[str, Any] = with_references({**inner, **shared}, _up)
    return moved


def _down(reference: str) -> str:
    """A reference to what is about to become the field of an object."""
    if reference != "#" and not reference.startswith("#/"):
        return reference
    is_shared = reference.removeprefix("#/").partition("/")[0] in _SHARED
    return reference if is_shared else f"{_INNER}{reference[1:]}"


def _up(reference: str) -> str:
    """The inverse of ``_down``."""
    is_inner = reference == _INNER or reference.startswith(f"{_INNER}/")
    return f"#{reference.removeprefix(_INNER)}" if is_inner else reference


def is_wrapped(record: Mapping[str, Any]) -> bool:
    """Whether the result of a listed tool is sent inside an object, as ``tool_record`` says."""
    meta, schema = record.get("_meta"), record.get("outputSchema")
    if not isinstance(meta, Mapping) or meta.get(WRAPPED_KEY) is not True:
        return False
    fields = schema.get("properties") if isinstance(schema, Mapping) else None
    return isinstance(fields, Mapping) and isinstance(fields.get(RESULT_FIELD), Mapping)


_EFFECTS = frozenset(get_args(EffectName))


def exact_effects(record: JsonObject) -> Effects | None:
    """The effects that an entry written by us declares; None where it declares none, or wrongly.

    Example:
        >>> exact_effects({"_meta": {EFFECTS_KEY: {"reads": True, "writes": True}}})
        Effects(reads=True, writes=True, destructive=None, idempotent=None, open_world=None)
    """
    meta = record.get("_meta")
    effects = meta.get(EFFECTS_KEY) if isinstance(meta, Mapping) else None
    if not isinstance(effects, Mapping) or not effects.keys() <= _EFFECTS:
        return None
    return (
        Effects(**effects) if all(isinstance(value, bool) for value in effects.values()) else None
    )
