"""Answers to ``tools/list`` in which single entries are not what MCP says.

The official client refuses such an answer whole. So each entry that it would stumble over is
replaced by one that it can read and that carries the reason; import then holds that entry alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import TypeAdapter

MALFORMED_KEY = "agentkit.dev/malformed"
"""In ``_meta`` of an entry: why it stands for one that is not what MCP says."""

_ENTRY_KEY = "agentkit.dev/entry"
_LONGEST = 300


def mend_listing(message: Any) -> None:
    """Replace the malformed entries of a listing; other messages stay as they are.

    Args:
        message: What the official transport received.
    """
    from pydantic import ValidationError

    result = getattr(getattr(message, "message", None), "result", None)
    if not isinstance(result, dict) or not isinstance(entries := result.get("tools"), list):
        return
    try:
        _entries_adapter().validate_python(entries)
    except ValidationError as error:
        reasons = {
            problem["loc"][0]: f"{'.'.join(map(str, problem['loc'][1:]))}: {problem['msg']}"
            for problem in reversed(error.errors(include_url=False, include_input=False))
        }
        result["tools"] = [
            _placeholder(entry, reasons[at]) if at in reasons else entry
            for at, entry in enumerate(entries)
        ]


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
def _entries_adapter() -> TypeAdapter[Any]:
    from mcp_types import Tool
    from pydantic import TypeAdapter

    return TypeAdapter(list[Tool])
