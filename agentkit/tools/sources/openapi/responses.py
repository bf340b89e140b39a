"""What an operation answers with: the result's schema, and the media types to ask for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agentkit.tools.references import inline_root
from agentkit.tools.sources.openapi.faults import Unmappable, below
from agentkit.tools.sources.openapi.operations import Operation
from agentkit.tools.sources.openapi.remote import Located
from agentkit.tools.sources.openapi.report import OpenApiNote
from agentkit.tools.sources.openapi.request_bodies import kind_of
from agentkit.tools.sources.openapi.schemas import SchemaPool

MAX_SIZE = 4_000
"""Most characters of the schemas that a result refers to; public APIs link all records."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What is known about an operation's answers.

    Attributes:
        schema: The schema of the JSON that comes with success; None when undeclared.
        accept: The media types of success, JSON first.
        notes: What could not be told.
    """

    schema: dict[str, Any] | None = None
    accept: tuple[str, ...] = ()
    notes: tuple[OpenApiNote, ...] = ()


def read_answer(operation: Operation, pool: SchemaPool) -> Answer:
    """The first answer of success that is JSON; what is wrong with answers is a note."""
    notes: list[OpenApiNote] = []
    accept: list[str] = []
    schema: dict[str, Any] | None = None
    for found in _successes(operation, pool, notes):
        content = _map(found, "content")
        accept += sorted(content, key=lambda name: kind_of(name) != "json")
        json_type = next((name for name in content if kind_of(name) == "json"), None)
        if schema is None and json_type is not None and isinstance(content[json_type], Mapping):
            part = Located(
                value=content[json_type].get("schema"),
                document=found.document,
                pointer=below(found.pointer, "content", json_type, "schema"),
            )
            schema = _schema(part, pool, notes)
    return Answer(
        schema=schema,
        accept=tuple(dict.fromkeys(accept)),
        notes=tuple(notes),
    )


def _map(found: Located, key: str) -> Mapping[str, Any]:
    given = found.value.get(key)
    return given if isinstance(given, Mapping) else {}


def _successes(
    operation: Operation, pool: SchemaPool, notes: list[OpenApiNote]
) -> Iterator[Located]:
    responses = operation.body.get("responses")
    if not isinstance(responses, Mapping):
        return
    codes = sorted(code for code in responses if code[:1] == "2" and len(code) == 3)
    for code in codes or [code for code in ("default",) if code in responses]:
        at = below(operation.source.pointer, "responses", code)
        try:
            found = pool.space.followed(
                responses[code], document=operation.source.document, pointer=at
            )
        except Unmappable as error:
            notes.append(_undeclared(error))
        else:
            yield found


def _undeclared(error: Unmappable) -> OpenApiNote:
    message = f"the result stays undeclared: {error.message}"
    return OpenApiNote(pointer=error.pointer, code="result_undeclared", message=message)


def _schema(raw: Located, pool: SchemaPool, notes: list[OpenApiNote]) -> dict[str, Any] | None:
    if raw.value is None:
        return None
    try:
        found = pool.convert(raw.value, document=raw.document, pointer=raw.pointer)
    except Unmappable as error:
        notes.append(_undeclared(error))
        return None
    closure = pool.closed(found.names, budget=MAX_SIZE, strict=False)
    if closure.cut:
        message = f"far or unusable schemas that allow anything: {closure.told}"
        notes.append(OpenApiNote(pointer=raw.pointer, code="result_cut", message=message))
    if not found.schema:
        return None
    if not closure.definitions:
        return found.schema
    return inline_root({**found.schema, "$defs": closure.definitions})
