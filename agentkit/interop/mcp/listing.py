"""A server's listings and answers, within bounds: entries as definitions, calls as values."""

from __future__ import annotations

import asyncio
import binascii
import hashlib
import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal

from agentkit.errors import (
    DefinitionError,
    McpConnectionError,
    MissingExtraError,
    ModelRetry,
    ToolFailed,
    UsageError,
)
from agentkit.evolution.validation.report import shown
from agentkit.media import Audio, File, Image, Media
from agentkit.messages import JsonObject
from agentkit.tools.definition import Effects, ToolDefinition
from agentkit.tools.error_messages import problems_of
from agentkit.tools.invocation import run_in_daemon_thread
from agentkit.tools.schema_validator import UncheckableError, fits, schema_errors
from agentkit.tools.sources.dialects import normalise_schema, schema_fault
from agentkit.tools.sources.json_records import (
    EFFECTS_KEY,
    MCP_PREFIX,
    RESULT_FIELD,
    WRAPPED_KEY,
    definition_from_json,
    exact_effects,
    hinted_effects,
    is_wrapped,
    unwrapped_schema,
)

if TYPE_CHECKING:
    from mcp import Client, MCPError

HoldCode = Literal[
    "suspicious_text", "changed", "unapproved", "too_large", "bad_schema", "bad_entry", "duplicate"
]
APPROVABLE: frozenset[HoldCode] = frozenset({"suspicious_text", "changed", "unapproved"})
"""Reasons a person can overrule; tools held for others cannot be called as they are."""

OVERSIZED = -32_099
"""Code of the errors with which we replace answers that are too large, or that nobody can read."""

_SERVER = re.compile(r"[A-Za-z0-9]+(?:[_.-][A-Za-z0-9]+)*")
_READ_BY_MODELS = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
LONGEST_NAME = 200
"""Characters of a tool's name; the protocol asks for 128 at most."""
_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
_DIALECTS = frozenset(
    {f"http://json-schema.org/draft-0{number}/schema#" for number in (4, 6, 7)}
    | {"http://json-schema.org/draft-07/schema", "https://json-schema.org/draft/2019-09/schema"}
    | {"https://json-schema.org/draft/2020-12/schema"}
)


def require_sdk(feature: str) -> None:
    """See to it that the official package is there, in a version that we speak with.

    Args:
        feature: What needs it, as the subject of a sentence.

    Raises:
        MissingExtraError: It is absent, or older than version 2.
    """
    try:
        from mcp import Client
    except ImportError as error:  # version 1 has no Client
        raise MissingExtraError(
            feature, package="mcp>=2", install='pip install "agentkit-evolve[mcp]"'
        ) from error
    assert Client is not None


@dataclass(frozen=True, kw_only=True, slots=True)
class McpLimits:
    """Bounds on one server. What is beyond them is reported, and not offered.

    Attributes:
        max_tools: Tools that are read of a listing; after them reading stops.
        max_listing_chars: Characters of a listing in all; after them reading stops.
        max_text_chars: Characters of one description. Longer texts are not looked through, so a
            tool that has one is held.
        max_definition_chars: Characters of one tool's listing in all, as JSON.
        max_result_chars: Characters of one answer in all; a longer one is a failed call.
        max_result_parts: Texts, pictures and the like in one answer; more are a failed call.
        max_message_bytes: Bytes of one message before it is decoded; a call that is answered with
            more fails.
        connect_seconds: Longest wait for a connection, start of the process included.
        list_seconds: Longest wait for the whole listing.
        call_seconds: Longest wait for one answer.
    """

    max_tools: int = 5_000
    max_listing_chars: int = 10_000_000
    max_text_chars: int = 8_000
    max_definition_chars: int = 30_000
    max_result_chars: int = 1_000_000
    max_result_parts: int = 2_000
    max_message_bytes: int = 10_000_000
    connect_seconds: float = 30.0
    list_seconds: float = 30.0
    call_seconds: float = 60.0

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if not value > 0:
                raise UsageError(f"{one.name} is {value}; use a number above 0")


@dataclass(frozen=True, kw_only=True, slots=True)
class ListedTool:
    """A tool that may be offered.

    Attributes:
        name: What the server calls it.
        definition: What models see, under the name that the library uses.
        fingerprint: Digest over everything that the server said of it and a model could read.
        hints: What the server says of its effects. It is shown to people; whether it counts is
            ``trust_annotations``.
        wrapped: Whether the value is the field ``result`` of the object that the server sends.
    """

    name: str
    definition: ToolDefinition
    fingerprint: str
    hints: Mapping[str, bool] = field(default_factory=dict)
    wrapped: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class HeldTool:
    """A tool that is not offered.

    Attributes:
        name: What the server calls it; as much of it as could be read.
        code: What kind of reason it is.
        reasons: Why, each in a sentence.
        tool: What would be offered, if it can be.
        record: What the server said, whole.
    """

    name: str
    code: HoldCode
    reasons: tuple[str, ...]
    tool: ListedTool | None = None
    record: JsonObject = field(default_factory=dict, repr=False)

    @property
    def is_approvable(self) -> bool:
        """Whether a person can have it offered as it is."""
        return self.tool is not None and self.code in APPROVABLE

    def __str__(self) -> str:
        return f"{shown(self.name)} is held [{self.code}]: {' '.join(self.reasons)}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Listing:
    """A server's tools at one moment.

    Attributes:
        tools: Those that are offered, in the server's order.
        held: Those that wait for a person, or cannot be used.
        notes: Further remarks, such as repairs, new names, and a listing that was cut.
    """

    tools: tuple[ListedTool, ...] = ()
    held: tuple[HeldTool, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def fingerprints(self) -> dict[str, str]:
        """The offered tools' fingerprints by the names that the server uses."""
        return {tool.name: tool.fingerprint for tool in self.tools}

    def holding(self, name: str) -> HeldTool | None:
        """Why the tool of that name is held; None when it is not."""
        return next((held for held in self.held if held.name == name), None)


@dataclass(frozen=True, kw_only=True, slots=True)
class RawListing:
    """A server's answer to ``tools/list``, all pages together.

    Attributes:
        records: The tools as JSON objects.
        cut: Why reading stopped before the end; empty when it did not.
    """

    records: tuple[dict[str, Any], ...] = ()
    cut: str = ""


def checked_server_name(name: str) -> str:
    """The name, if it can stand before those of tools.

    Raises:
        UsageError: It cannot: then two tools of two servers could get one name.
    """
    if not _SERVER.fullmatch(name):
        raise UsageError(
            f"{name!r} cannot be the name of a server; use letters and digits, with single '_', "
            "'-' or '.' between them, because it stands before its tools' names: name__tool"
        )
    return name


def prefixed(server: str, tool: str) -> str:
    """The name of a server's tool among those of other servers.

    Two different pairs never give one name: a server's name has no two underscores in a row and
    ends with none, so the first two that stand together end it.

    Example:
        >>> prefixed("files", "read")
        'files__read'
    """
    return f"{checked_server_name(server)}__{tool}"


def look_of(name: str) -> str:
    """What is left of a name for a reader: case, spaces and what is not seen do not count.

    Example:
        >>> look_of("re" + chr(0x200B) + "ad") == look_of(" READ") == "read"
        True
    """
    if name.isascii() and name.isprintable():
        return name.lower().replace(" ", "")
    plain = _normal(_normal(name).casefold())
    return "".join(sign for sign in plain if sign.isprintable() and not sign.isspace())


def _normal(text: str) -> str:
    """Compatible signs as one, in pieces: very many accents in a row take quadratic time."""
    pieces = range(0, len(text), LONGEST_NAME)
    return "".join(unicodedata.normalize("NFKC", text[at : at + LONGEST_NAME]) for at in pieces)


def record_of(tool: Any) -> dict[str, Any]:
    """An entry that the official client read, as JSON; its schemas are handed on, not copied."""
    optional = {
        "title": tool.title,
        "description": tool.description,
        "outputSchema": tool.output_schema,
        "_meta": tool.meta,
    }
    record: dict[str, Any] = {"name": tool.name, "inputSchema": tool.input_schema}
    record |= {key: value for key, value in optional.items() if value is not None}
    if tool.annotations is not None:
        record["annotations"] = tool.annotations.model_dump(by_alias=True, exclude_none=True)
    return record


def listed_tool(
    record: JsonObject,
    *,
    offered_name: str,
    server: str,
    trust_annotations: bool,
    print_of: str,
) -> ListedTool:
    """The definition that an entry would be offered as.

    Args:
        record: The entry.
        offered_name: What the library is to call it.
        server: Whose it is, for its origin.
        trust_annotations: Whether what the server says of effects counts.
        print_of: Its fingerprint.

    Raises:
        DefinitionError: The entry cannot be used; the message says why.
    """
    name = record.get("name")
    if not isinstance(name, str) or not name.strip():
        raise DefinitionError("it has no name")
    schema, result = _schemas(record)
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
    )
    seen = replace(definition.origin, reference=f"{MCP_PREFIX}{server}#{print_of}")
    definition = replace(definition, origin=seen)
    if result is not None and not is_plain:  # read elsewhere, that is a map of fields
        definition = _with_result(definition, normalise_schema(result) or None)
    _check_repairs(definition, schema, result)
    if name != offered_name:
        definition = replace(definition, origin=replace(definition.origin, original_name=name))
    return ListedTool(
        name=name,
        definition=definition,
        fingerprint=print_of,
        hints=hints_in(record),
        wrapped=is_wrapped(record),
    )


def _schemas(record: JsonObject) -> tuple[JsonObject, JsonObject | None]:
    """The schemas of the arguments and of the value; of the latter without a wrapper of ours."""
    schema, result = record.get("inputSchema"), record.get("outputSchema")
    if not isinstance(schema, Mapping) or schema.get("type") != "object":
        raise DefinitionError(f"its inputSchema is not a schema of an object: {str(schema)[:120]}")
    if result is not None and not isinstance(result, Mapping):
        raise DefinitionError(f"its outputSchema is not a schema: {str(result)[:120]}")
    if result is None:
        return schema, None
    return schema, unwrapped_schema(result) if is_wrapped(record) else _without_dialect(result)


def _without_dialect(schema: JsonObject) -> JsonObject:
    """The schema without the name of its dialect, which half of all servers give.

    What a dialect writes differently is known by how it is written, so the name says nothing more
    and its loss is not a repair.
    """
    if schema.get("$schema") not in _DIALECTS:
        return schema
    return {key: rule for key, rule in schema.items() if key != "$schema"}


def _with_result(definition: ToolDefinition, result: JsonObject | None) -> ToolDefinition:
    changed = replace(definition, signature=replace(definition.signature, result=result))
    try:
        _ = changed.digest
    except (ValueError, RecursionError) as error:  # half a surrogate pair
        message = f"its outputSchema cannot be written as JSON: {error}"
        raise DefinitionError(message) from error
    return changed


def _check_repairs(definition: ToolDefinition, schema: JsonObject, result: object) -> None:
    """Refuse schemas that are none in the dialect that they name, or else in 2020-12.

    Those of benchmarks and other formats are repaired on import; a protocol that says JSON Schema
    and a server that sends something else is a server to look at first. What reading left as it was
    is valid.
    """
    known = definition.signature.result
    is_read = result is None or result == known or (known is None and result == {})
    for part, is_whole in ((schema, definition.origin.original is None), (result, is_read)):
        if not is_whole and (fault := schema_fault(part)):
            raise DefinitionError(f"its schema is no JSON Schema, {fault}")


def fingerprint(record: JsonObject) -> str:
    """Digest over what a server says of a tool and a model could read, hints included.

    Raises:
        DefinitionError: It cannot be written as JSON.
    """
    texts = {key: record[key] for key in _READ_BY_MODELS if record.get(key) is not None}
    meta = record.get("_meta")
    if isinstance(meta, Mapping):
        texts["_meta"] = {key: meta[key] for key in (EFFECTS_KEY, WRAPPED_KEY) if key in meta}
    try:
        text = json.dumps(texts, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (ValueError, RecursionError, TypeError) as error:
        raise DefinitionError(f"it cannot be written as JSON: {error}") from error
    return hashlib.sha256(text.encode()).hexdigest()


def reference_fingerprint(definition: ToolDefinition) -> str | None:
    """The fingerprint that a definition was imported with, also after its words evolved."""
    place, separator, found = definition.origin.reference.rpartition("#")
    is_ours = definition.origin.kind == "mcp" and place.startswith(MCP_PREFIX) and bool(separator)
    return found if is_ours else None


def hints_in(record: JsonObject) -> dict[str, bool]:
    """The hints of an entry that are what hints are."""
    annotations = record.get("annotations")
    hints = annotations if isinstance(annotations, Mapping) else {}
    return {name: hints[name] for name in _HINTS if isinstance(hints.get(name), bool)}


def effects_of(record: JsonObject, *, trust: bool) -> Effects:
    """The effects assumed for a tool.

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
    return exact_effects(record) or hinted_effects(hints)


# --- what a server answers, read within bounds ----------------------------------------------------


async def read_listing(client: Client, limits: McpLimits) -> RawListing:
    """All pages of ``tools/list``, up to what is allowed.

    Raises:
        MCPError: The server answered with an error.
        TimeoutError: It took too long.
    """
    records: list[dict[str, Any]] = []
    cursor: str | None = None
    if client.server_capabilities.tools is None and client.server_info is not None:
        return RawListing(cut="the server says that it has no tools")
    left = limits.max_listing_chars
    async with asyncio.timeout(limits.list_seconds):
        while True:
            page = await client.list_tools(cursor=cursor)
            found, cursor = list(map(record_of, page.tools)), page.next_cursor
            left -= 100 + sum(json_length(record, left) for record in found)  # also an empty page
            records += found
            if left < 0 or len(records) > limits.max_tools:
                cut = (
                    f"the server lists more than {limits.max_tools:,} tools, or "
                    f"{limits.max_listing_chars:,} characters; the others are left"
                )
                return RawListing(records=tuple(records[: limits.max_tools]), cut=cut)
            if cursor is None:
                return RawListing(records=tuple(records))


async def call_tool(
    client: Client, tool: ListedTool, arguments: dict[str, Any], *, server: str, limits: McpLimits
) -> Any:
    """One call, as the value that the server answers.

    Raises:
        ModelRetry: The server says that the call failed.
        ToolFailed: It has no such tool, or its answer is not what it declared.
        McpConnectionError: It hung up.
        TimeoutError: It did not answer in time.
    """
    from mcp import MCPError
    from pydantic import ValidationError

    try:
        answer = await client.call_tool(
            tool.name, arguments, read_timeout_seconds=limits.call_seconds
        )
    except MCPError as error:
        raise _refusal(error, tool.name, server, limits) from error
    except ValidationError as error:
        raise ToolFailed(f"The server's answer is not what MCP says: {error}"[:500]) from error
    value = _value(answer, tool, limits)
    if (result := tool.definition.signature.result) is not None:
        await _hold_to_schema(value, result)
    return value


async def _hold_to_schema(value: Any, schema: JsonObject) -> None:
    """Refuse a value that the server's own schema does not allow, without stopping the loop.

    Raises:
        ToolFailed: It does not fit, or it takes too long to say.
    """
    if fits(value, schema):
        return
    try:
        errors = await run_in_daemon_thread(lambda: schema_errors(value, schema, limit=1))
    except UncheckableError as error:
        why = f"The server broke its word, its answer cannot be held against its schema: {error}"
        raise ToolFailed(why[:500]) from error
    for problem in problems_of(errors, owner="a field", noun="field", whole="answer"):
        raise ToolFailed(
            f"The server broke its word, its answer does not fit: {problem.rule}"[:500]
        )


def _refusal(error: MCPError, tool: str, server: str, limits: McpLimits) -> Exception:
    """Convert an error of the protocol for the caller."""
    from mcp_types.jsonrpc import CONNECTION_CLOSED, INVALID_PARAMS, REQUEST_TIMEOUT

    code, reason = error.error.code, error.error.message[:500]
    if code == OVERSIZED:
        return ToolFailed(reason)
    if code == CONNECTION_CLOSED or reason == "Session terminated":
        message = f"the MCP server {server!r} hung up while {tool!r} ran ({reason})"
        return McpConnectionError(message, server=server)
    if code == REQUEST_TIMEOUT:
        return TimeoutError(f"{server!r} did not answer within {limits.call_seconds:g} seconds")
    if code == INVALID_PARAMS:
        return ModelRetry(f"The server refuses the call: {reason}")
    return ToolFailed(f"The server answered with an error ({code}): {reason}")


def _value(answer: Any, tool: ListedTool, limits: McpLimits) -> Any:
    if len(answer.content) > limits.max_result_parts:  # of a server in this process
        raise ToolFailed(f"The answer has more than {limits.max_result_parts:,} parts.")
    text = "\n".join(map(_as_text, answer.content))
    structured = answer.structured_content
    size = len(text) + (
        0 if structured is None else json_length(structured, limits.max_result_chars)
    )
    if size > limits.max_result_chars:
        allowed = f"{limits.max_result_chars:,}"
        raise ToolFailed(f"The answer is longer than the {allowed} characters that are allowed.")
    if answer.is_error:
        raise ModelRetry(text[:2_000] or "The server says that it failed, and not why.")
    if structured is None:
        if tool.definition.signature.result is not None:
            raise ToolFailed("The server broke its word: it answers without structured content.")
        parts = [_medium(block) or _as_text(block) for block in answer.content]
        return parts if any(isinstance(one, Media) for one in parts) else text
    if not tool.wrapped:
        return structured
    if not isinstance(structured, dict) or RESULT_FIELD not in structured:
        raise ToolFailed(f"The server broke its word: its answer has no {RESULT_FIELD!r}.")
    return structured[RESULT_FIELD]


def _medium(block: Any) -> Media | None:
    """A picture, a sound or a file in an answer; None for others, and for one that is none."""
    inner = block.resource if block.type == "resource" else block
    encoded = getattr(inner, "blob" if block.type == "resource" else "data", None)
    if encoded is None:
        return None
    kind = {"image": Image, "audio": Audio}.get((inner.mime_type or "").partition("/")[0], File)
    try:
        data = binascii.a2b_base64(encoded)  # some servers break lines
        name = str(getattr(inner, "uri", "")).rpartition("/")[2][-LONGEST_NAME:]
        return kind(data=data, media_type=inner.mime_type or "", name=name)
    except (UsageError, ValueError):  # then its type and size are told
        return None


def _as_text(block: Any) -> str:
    """A part of an answer as a model without eyes and ears reads it."""
    match block.type:
        case "text":
            return str(block.text)
        case "image" | "audio":
            return f"[{block.type}: {block.mime_type}, {len(block.data) * 3 // 4:,} bytes]"
        case "resource_link":
            return f"[resource: {block.name}, {block.uri}]"
        case "resource":
            inner = getattr(block.resource, "text", None)
            return f"[resource: {block.resource.uri}]" if inner is None else str(inner)
        case _:
            return f"[{block.type}]"


def json_length(value: Any, enough: int) -> int:
    """Characters in JSON data, counted as far as they matter."""
    waiting, count = [value], 0
    while waiting and count <= enough:
        part = waiting.pop()
        if isinstance(part, dict):
            waiting.extend(part.values())
            count += sum(map(len, part)) + 2
        elif isinstance(part, list):
            waiting.extend(part)
            count += 2
        else:
            count += len(part) if isinstance(part, str) else 4
            count += part.bit_length() // 4 if isinstance(part, int) else 0
    return count
