"""``search_tools`` and ``call_tool``: a large library for clients with small windows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from agentkit.interop.mcp.serving.exposure import Exposure
from agentkit.interop.mcp.serving.results import error_record
from agentkit.retrieval.retriever import Retriever

SEARCH = "search_tools"
CALL = "call_tool"
_USUAL = 5
_MOST = 20
_LONGEST_QUERY = 2_000


def search_records(count: int) -> list[dict[str, Any]]:
    """The two tools that stand for all others, as ``tools/list`` has them.

    Args:
        count: How many tools there are to be found.
    """
    find = (
        f"Find tools among {count:,}. Say what a step needs, or a tool's name. The answer lists "
        f"the best tools with their parameters; call one of them with {CALL}."
    )
    query = "What a tool is needed for, in words, or the name of a tool."
    amount = {"type": "integer", "minimum": 1, "maximum": _MOST, "default": _USUAL}
    return [
        {
            "name": SEARCH,
            "description": find,
            "inputSchema": _object(
                {
                    "query": {"type": "string", "description": query},
                    "limit": amount | {"description": "Most tools to list."},
                },
                ["query"],
            ),
            "outputSchema": _object(
                {"tools": {"type": "array", "items": {"type": "object"}}}, ["tools"]
            ),
            "annotations": {"readOnlyHint": True, "openWorldHint": False},
        },
        {
            "name": CALL,
            "description": f"Call a tool that {SEARCH} found.",
            "inputSchema": _object(
                {
                    "name": {"type": "string", "description": "The tool's name, as listed."},
                    "arguments": {
                        "type": "object",
                        "description": "Its arguments, as its inputSchema says.",
                    },
                },
                ["name"],
            ),
        },
    ]


def _object(properties: Mapping[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties), "required": required}


async def answer_search(
    arguments: Mapping[str, Any], exposure: Exposure, retriever: Retriever, *, can_ask: bool
) -> dict[str, Any]:
    """The answer to a call of ``search_tools``.

    Args:
        arguments: What the client sent; anything.
        exposure: What there is.
        retriever: Ranks it.
        can_ask: Whether the client can ask its person for approval.
    """
    query, limit = arguments.get("query"), arguments.get("limit", _USUAL)
    if not isinstance(query, str) or not query.strip():
        return error_record("query must be a text that says what a tool is needed for.")
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= _MOST:
        return error_record(f"limit must be a whole number from 1 to {_MOST}.")
    library = exposure.searchable(can_ask=can_ask)
    found = await retriever.retrieve(query[:_LONGEST_QUERY], library)
    names = [exposure.prefix + hit.definition.name for hit in found.hits[:limit]]
    tools = [exposure.record(name) for name in names]
    text = json.dumps(tools, ensure_ascii=False, separators=(",", ":"))
    return {
        "content": [{"type": "text", "text": text if tools else "No tool matches."}],
        "structuredContent": {"tools": tools},
        "isError": False,
        "resultType": "complete",
    }
