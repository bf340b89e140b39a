"""One operation as a tool definition and the plan of its requests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentkit.errors import DefinitionError
from agentkit.tools.definition import Description, Effects, Origin, Signature, ToolDefinition
from agentkit.tools.references import check_bounds
from agentkit.tools.schema import detach_descriptions
from agentkit.tools.sources.openapi.arguments import Arguments
from agentkit.tools.sources.openapi.faults import Unmappable, below
from agentkit.tools.sources.openapi.operations import Operation
from agentkit.tools.sources.openapi.pagination import read_pagination
from agentkit.tools.sources.openapi.parameters import read_parameters
from agentkit.tools.sources.openapi.plan import RequestPlan, SecurityScheme
from agentkit.tools.sources.openapi.report import OpenApiNote
from agentkit.tools.sources.openapi.request_bodies import read_body
from agentkit.tools.sources.openapi.responses import read_answer
from agentkit.tools.sources.openapi.schemas import SchemaPool
from agentkit.tools.sources.openapi.security import secret_parameters

MAX_SUMMARY = 1000
"""Longest text of a tool; some providers refuse more than 1,024 characters."""

MAX_SIZE = 12_000
"""Most characters of the schemas that the parameters of one tool refer to: some 3,000 tokens. A
model is shown them whenever it is shown the tool; without a bound it would be up to 37,000."""

LARGE = 20_000
"""From how many characters on a tool's schema is worth a note: some 5,000 tokens."""

_EFFECTS: Mapping[str, Effects] = {
    "GET": Effects(reads=True, writes=False, idempotent=True, open_world=True),
    "HEAD": Effects(reads=True, writes=False, idempotent=True, open_world=True),
    "PUT": Effects(writes=True, idempotent=True, open_world=True),
    "DELETE": Effects(writes=True, destructive=True, idempotent=True, open_world=True),
    "POST": Effects(writes=True, idempotent=False, open_world=True),
    "PATCH": Effects(writes=True, idempotent=False, open_world=True),
}
"""What HTTP says of its methods (RFC 9110, section 9.2). DELETE is destructive, so that a person
is asked; PUT repeats safely, but overwrites, which only the API's author can judge."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Pools:
    """The schemas of a document in both directions."""

    request: SchemaPool
    response: SchemaPool


@dataclass(frozen=True, kw_only=True, slots=True)
class MappedOperation:
    """An operation that a model can call.

    Attributes:
        definition: What the model sees.
        plan: How a call becomes a request.
        notes: What was changed or left out.
    """

    definition: ToolDefinition
    plan: RequestPlan
    notes: tuple[OpenApiNote, ...]


def map_operation(
    operation: Operation,
    pools: Pools,
    *,
    name: str,
    server: str,
    is_known: bool,
    security: tuple[tuple[SecurityScheme, ...], ...],
    reference: str,
) -> MappedOperation:
    """Map one operation.

    Raises:
        Unmappable: Its requests can not be made, or its arguments can not be described.
    """
    arguments = Arguments()
    secret = secret_parameters(scheme for schemes in security for scheme in schemes)
    parameters = read_parameters(operation, arguments, pools.request, secret=secret)
    body = read_body(operation, arguments, pools.request)
    bare, texts = _contract(operation, arguments, pools.request)
    answer = read_answer(operation, pools.response)
    try:
        check_bounds(bare)
        check_bounds(answer.schema or {})
    except DefinitionError as error:
        raise Unmappable(str(error), pointer=operation.pointer) from error
    pagination = read_pagination(parameters, answer.schema)
    effects = _EFFECTS[operation.method]
    given = operation.operation_id
    definition = ToolDefinition(
        name=name,
        signature=Signature(parameters=bare, result=answer.schema, effects=effects),
        description=Description(
            summary=_summary(operation, arguments),
            tags=operation.tags,
            parameters=texts,
            usage_rules=(pagination.rule,) if pagination else (),
        ),
        origin=Origin(
            kind="openapi",
            reference=f"{reference}#{operation.pointer}",
            original_name=given if given and given != name else None,
        ),
    )
    plan = RequestPlan(
        tool_name=name,
        method=operation.method,
        server=server,
        path=operation.path.partition("#")[0],
        parameters=parameters,
        body=body,
        accept=answer.accept,
        security=security,
        repeatable=effects.idempotent is True,
        is_known=is_known,
    )
    notes = (*arguments.notes, *answer.notes, *_left_out(operation))
    return MappedOperation(definition=definition, plan=plan, notes=notes)


def _contract(
    operation: Operation, arguments: Arguments, pool: SchemaPool
) -> tuple[dict[str, Any], Mapping[str, str]]:
    """The parameters schema, and the words that were in it."""
    closure = pool.closed(arguments.names, budget=MAX_SIZE, strict=True)
    if closure.cut:
        message = f"far schemas that allow anything: {closure.told}"
        arguments.note("parameters_cut", message, operation.pointer)
    bare, texts = detach_descriptions(arguments.schema(closure.definitions))
    size = len(json.dumps(bare)) + sum(map(len, texts.values()))
    if size >= LARGE:
        message = (
            f"the parameters take {size:,} characters, some {size // 4:,} tokens whenever a model "
            "is shown the tool"
        )
        arguments.note("large_parameters", message, operation.pointer)
    return bare, texts


def _summary(operation: Operation, arguments: Arguments) -> str:
    texts = [_text(operation.body.get(key)) for key in ("summary", "description")]
    first, rest = texts
    text = first if not rest or rest == first else f"{first}\n\n{rest}".strip()
    text = text or f"{operation.method} {operation.path}"
    if len(text) <= MAX_SUMMARY:
        return text
    arguments.note(
        "description_shortened",
        f"the description has {len(text):,} characters, {MAX_SUMMARY:,} are kept",
        operation.pointer,
    )
    return f"{text[: MAX_SUMMARY - 1].rsplit(maxsplit=1)[0]}…"


def _text(given: Any) -> str:
    return given.strip() if isinstance(given, str) else ""


def _left_out(operation: Operation) -> list[OpenApiNote]:
    if not operation.body.get("callbacks"):
        return []
    at = below(operation.pointer, "callbacks")
    message = "callbacks are requests that the API makes; they are not mapped"
    return [OpenApiNote(pointer=at, code="callbacks_not_mapped", message=message)]
