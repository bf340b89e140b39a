"""One operation as a tool definition and the plan of its requests."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentkit.errors import DefinitionError
from agentkit.interop.openapi.parameters import Arguments, read_parameters
from agentkit.interop.openapi.plan import Parameter, RequestPlan, SecurityScheme
from agentkit.interop.openapi.remote import Located, Operation, Unmappable, below
from agentkit.interop.openapi.report import OpenApiNote
from agentkit.interop.openapi.request_bodies import kind_of, read_body
from agentkit.interop.openapi.schemas import SchemaPool
from agentkit.interop.openapi.security import secret_parameters
from agentkit.tools.definition import Description, Effects, Origin, Signature, ToolDefinition
from agentkit.tools.schema import check_bounds, detach_descriptions, inline_root, resolve_local

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


_CURSORS = (
    "cursor",
    "page_token",
    "next_token",
    "continuation_token",
    "starting_after",
    "after",
    "marker",
    "start_cursor",
)
_NUMBERS = ("page", "page_number", "offset", "skip", "start_index")
_SIZES = ("per_page", "page_size", "limit", "max_results", "page_limit", "count", "size", "top")
_NEXT = (
    "next_cursor",
    "next_page_token",
    "next_token",
    "continuation_token",
    "end_cursor",
    "next_page",
    "next",
)
_HOLDERS = ("meta", "pagination", "paging", "links", "response_metadata", "page_info", "_links")


@dataclass(frozen=True, kw_only=True, slots=True)
class Pagination:
    """How an operation hands out its results in pages.

    Attributes:
        parameter: The argument that chooses the page: a cursor, an offset or a number.
        is_cursor: Whether it takes what an earlier answer gave, not a number to count up.
        size_parameter: The argument that says how much a page holds; None if there is none.
        next_field: The dotted path in the result of what ``parameter`` is next; None if unknown.
    """

    parameter: str
    is_cursor: bool = False
    size_parameter: str | None = None
    next_field: str | None = None

    @property
    def rule(self) -> str:
        """What a model has to know."""
        if self.next_field:
            told = f"pass the `{self.next_field}` of an answer as `{self.parameter}`"
        elif self.is_cursor:
            told = f"pass as `{self.parameter}` what an answer names as the place to go on from"
        else:
            told = f"raise `{self.parameter}`"
        size = (
            f"; `{self.size_parameter}` sets how much a page holds" if self.size_parameter else ""
        )
        return f"Results come in pages: {told} to get the next one{size}."


def read_pagination(
    parameters: Sequence[Parameter], result: Mapping[str, Any] | None
) -> Pagination | None:
    """How an operation pages, as far as its names tell; None when it does not.

    Args:
        parameters: Its parameters; those of the query count.
        result: The schema of its result.
    """
    by_name = {_plain(each.name): each.argument for each in parameters if each.location == "query"}
    cursor = _first(_CURSORS, by_name)
    parameter = cursor or _first(_NUMBERS, by_name)
    if parameter is None:
        return None
    return Pagination(
        parameter=parameter,
        is_cursor=cursor is not None,
        size_parameter=_first(_SIZES, by_name),
        next_field=_next_field(result) if cursor else None,
    )


def _plain(name: str) -> str:
    """``pageToken``, ``page-token`` and ``page[token]`` as ``page_token``."""
    spaced = "".join(f"_{char.lower()}" if char.isupper() else char for char in name)
    spaced = "".join(char if char.isalnum() else "_" for char in spaced)
    return "_".join(part for part in spaced.split("_") if part)


def _first(names: Sequence[str], by_name: Mapping[str, str]) -> str | None:
    return next((by_name[name] for name in names if name in by_name), None)


def _next_field(result: Mapping[str, Any] | None) -> str | None:
    if result is None:
        return None
    fields = _properties(result, result)
    for holder, part in [("", None), *((name, fields[name]) for name in fields)]:
        inside = fields if part is None else _properties(part, result)
        if part is not None and _plain(holder) not in _HOLDERS:
            continue
        by_name = {_plain(name): name for name in inside}
        found = _first(_NEXT, by_name)
        if found:
            return f"{holder}.{found}" if holder else found
    return None


def _properties(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    if isinstance(schema, Mapping) and isinstance(schema.get("$ref"), str):
        schema = resolve_local(root, schema["$ref"])
    found = schema.get("properties") if isinstance(schema, Mapping) else None
    return found if isinstance(found, Mapping) else {}


MAX_RESULT_SCHEMA = 4_000
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
    closure = pool.closed(found.names, budget=MAX_RESULT_SCHEMA, strict=False)
    if closure.cut:
        message = f"far or unusable schemas that allow anything: {closure.told}"
        notes.append(OpenApiNote(pointer=raw.pointer, code="result_cut", message=message))
    if not found.schema:
        return None
    if not closure.definitions:
        return found.schema
    return inline_root({**found.schema, "$defs": closure.definitions})
