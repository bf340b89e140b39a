"""Answers as the official client can read them: bounded, and with entries that are well-formed.

A listing with one malformed entry the official client refuses whole. So each entry that it would
stumble over is replaced by one that it can read and that carries the reason; import then holds that
entry alone. What has too many parts to be validated at all is cut, or replaced by an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from agentkit.interop.mcp.client.limits import McpLimits

if TYPE_CHECKING:
    from pydantic import TypeAdapter

MALFORMED_KEY = "agentkit.dev/malformed"
"""In ``_meta`` of an entry: why it stands for one that is not what MCP says."""

_ENTRY_KEY = "agentkit.dev/entry"
_LONGEST = 300

OVERSIZED = -32_099
"""Code of the errors with which we replace answers that are too large to be read."""


def oversized_error(request_id: Any, why: str) -> Any:
    """A message of the protocol in the place of an answer that is too large."""
    from mcp_types import ErrorData, JSONRPCError

    error = ErrorData(code=OVERSIZED, message=why)
    return JSONRPCError(jsonrpc="2.0", id=request_id, error=error)


class ListingMender:
    """Mends the listings of one connection.

    What an entry may be depends on the version of the protocol: up to 2025-11-25 a schema of a
    result has to be that of an object. A server that answers ``initialize`` names the version
    there; one that is not asked to speaks the newest.
    """

    def __init__(self, limits: McpLimits) -> None:
        self._limits = limits
        self._version = ""

    def mend(self, message: Any) -> None:
        """Replace the malformed entries of a listing, and an answer of too many parts.

        Args:
            message: What the official transport received.
        """
        result = getattr(getattr(message, "message", None), "result", None)
        if not isinstance(result, dict):
            return
        if isinstance(version := result.get("protocolVersion"), str):
            self._version = version
        parts, most = result.get("content"), self._limits.max_result_parts
        if isinstance(parts, list) and len(parts) > most:
            why = (
                f"the answer has {len(parts):,} parts, {most:,} are allowed; ask for less, or "
                f"raise McpLimits(max_result_parts={len(parts)})"
            )
            message.message = oversized_error(message.message.id, why)
        if isinstance(entries := result.get("tools"), list):
            del entries[self._limits.max_tools + 1 :]  # one more tells that there are too many
            reasons = dict(_problems(entries, self._version))
            result["tools"] = [
                _placeholder(entry, reasons[at]) if at in reasons else entry
                for at, entry in enumerate(entries)
            ]


def _problems(entries: list[Any], version: str) -> Iterator[tuple[int, str]]:
    """Places of malformed entries, each with what is wrong; the last one of a place is the first.

    Answers are read twice by the official client: as what the version says, and as its own type.
    """
    from pydantic import ValidationError

    for adapter in (_own_adapter(), _adapter_of(version)):
        try:
            adapter.validate_python(entries, by_name=False)
        except ValidationError as error:
            for problem in reversed(error.errors(include_url=False, include_input=False)):
                at, *path = problem["loc"]
                yield int(at), f"{'.'.join(map(str, path))}: {problem['msg']}"


def malformed_entry(record: Mapping[str, Any]) -> tuple[str, Any] | None:
    """Why an entry stands for a malformed one, and that one; None for every other entry."""
    meta = record.get("_meta")
    if not isinstance(meta, Mapping) or not isinstance(why := meta.get(MALFORMED_KEY), str):
        return None
    return why, meta.get(_ENTRY_KEY)


def _placeholder(entry: Any, reason: str) -> dict[str, Any]:
    name = entry.get("name") if isinstance(entry, dict) else None
    return {
        "name": name if isinstance(name, str) else "",
        "inputSchema": {"type": "object"},
        "_meta": {MALFORMED_KEY: reason.lstrip(": ")[:_LONGEST], _ENTRY_KEY: entry},
    }


@cache
def _own_adapter() -> TypeAdapter[Any]:
    from mcp_types import Tool
    from pydantic import TypeAdapter

    return TypeAdapter(list[Tool])


@cache
def _adapter_of(version: str) -> TypeAdapter[Any]:
    from mcp_types.methods import SERVER_RESULTS
    from mcp_types.version import LATEST_PROTOCOL_VERSION
    from pydantic import TypeAdapter

    answers = SERVER_RESULTS.get(("tools/list", version or LATEST_PROTOCOL_VERSION))
    fields = getattr(answers, "model_fields", {})
    if "tools" not in fields:  # the client will refuse the version itself
        return _own_adapter()
    entries: Any = fields["tools"].annotation
    return TypeAdapter(entries)
