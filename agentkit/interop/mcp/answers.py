"""What a server answers, read within bounds: its listing, and the value of a call."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from agentkit.errors import McpConnectionError, ModelRetry, ToolFailed
from agentkit.interop.mcp.listing import (
    OVERSIZED,
    ListedTool,
    McpLimits,
    RawListing,
    record_of,
)
from agentkit.messages import JsonObject
from agentkit.tools.error_messages import problems_of
from agentkit.tools.invocation import run_in_daemon_thread
from agentkit.tools.mcp_record import RESULT_FIELD
from agentkit.tools.schema_validator import UncheckableError, fits, schema_errors

if TYPE_CHECKING:
    from mcp import Client, MCPError


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
    cut = f"the server's listing has more than {limits.max_pages:,} pages; the others are left"
    async with asyncio.timeout(limits.list_seconds):
        for _ in range(limits.max_pages):
            page = await client.list_tools(cursor=cursor)
            for record in map(record_of, page.tools):
                left -= json_length(record, left)
                if left < 0 or len(records) == limits.max_tools:
                    return RawListing(records=tuple(records), cut=_cut(limits, is_long=left < 0))
                records.append(record)
            cursor = page.next_cursor
            if cursor is None:
                cut = ""
                break
    return RawListing(records=tuple(records), cut=cut)


def _cut(limits: McpLimits, *, is_long: bool) -> str:
    if is_long:
        most = f"{limits.max_listing_chars:,}"
        return f"the server's listing has more than {most} characters; the others are left"
    return f"the server lists more than {limits.max_tools:,} tools; the others are left"


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
        why = f"The server broke its word, its answer can not be held against its schema: {error}"
        raise ToolFailed(why[:500]) from error
    for problem in problems_of(errors, owner="a field", noun="field", whole="answer"):
        raise ToolFailed(
            f"The server broke its word, its answer does not fit: {problem.rule}"[:500]
        )


def _refusal(error: MCPError, tool: str, server: str, limits: McpLimits) -> Exception:
    """What an error of the protocol is to the caller."""
    from mcp_types.jsonrpc import CONNECTION_CLOSED, INVALID_PARAMS, REQUEST_TIMEOUT

    code, said = error.error.code, error.error.message[:500]
    if code == OVERSIZED:
        return ToolFailed(said)
    if code == CONNECTION_CLOSED or said == "Session terminated":
        message = f"the MCP server {server!r} hung up while {tool!r} ran ({said})"
        return McpConnectionError(message, server=server)
    if code == REQUEST_TIMEOUT:
        return TimeoutError(f"{server!r} did not answer within {limits.call_seconds:g} seconds")
    if code == INVALID_PARAMS:
        return ModelRetry(f"The server refuses the call: {said}")
    return ToolFailed(f"The server answered with an error ({code}): {said}")


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
        return text
    if not tool.wrapped:
        return structured
    if not isinstance(structured, dict) or RESULT_FIELD not in structured:
        raise ToolFailed(f"The server broke its word: its answer has no {RESULT_FIELD!r}.")
    return structured[RESULT_FIELD]


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
    return count
