"""What it costs to list 1,000 tools over MCP, beside the official client and server alone.

    python tests/benchmarks/mcp/listing.py [TOOLS] [ROUNDS]

Everything runs in one process over the official library's own in-memory streams, so that nothing
but work is counted. Times are CPU time of the process, the median of the rounds; wall time on a
machine that others use says little.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections import defaultdict
from typing import Any

from mcp import Client
from mcp.server import Server
from mcp_types import CallToolResult, ListToolsResult, Tool as WireTool

from agentkit import Library
from agentkit.interop.mcp import LibraryServer, McpLimits
from agentkit.interop.mcp.answers import read_listing
from agentkit.interop.mcp.screening import ImportPolicy, Memory, import_listing
from agentkit.tools.tool import Tool

THINGS = ("order", "invoice", "ticket", "customer", "shipment", "contract", "payment", "account")
VERBS = ("list", "find", "count", "export", "check", "update", "close", "reopen")


def record(at: int) -> dict[str, Any]:
    """One tool as a server lists it: four parameters, an output schema, a hint."""
    thing, verb = THINGS[at % 8], VERBS[at // 8 % 8]
    words = f"{verb.capitalize()} the {thing}s of region {at}, newest first, with state and total."
    texts = {
        "owner": f"Whose {thing}s to {verb}.",
        "state": f"Only a {thing} in this state, of those of region {at}.",
        "limit": f"Most {thing}s to give.",
        "since": f"Only a {thing} of this day or later.",
    }
    kinds: dict[str, dict[str, Any]] = {
        "owner": {"type": "string"},
        "state": {"type": "string", "enum": ["open", "paid", "shipped"]},
        "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 20},
        "since": {"type": "string", "format": "date"},
    }
    properties = {name: kinds[name] | {"description": text} for name, text in texts.items()}
    item = {"type": "object", "properties": {"id": {"type": "string"}, "total": {"type": "number"}}}
    found = {f"{thing}s": {"type": "array", "items": item}}
    return {
        "name": f"{thing}_{verb}_{at}",
        "description": words,
        "inputSchema": {"type": "object", "properties": properties, "required": ["owner"]},
        "outputSchema": {"type": "object", "properties": found},
        "annotations": {"readOnlyHint": True},
    }


def bare_server(records: list[dict[str, Any]]) -> Server[Any]:
    """The official server alone."""
    tools = [WireTool.model_validate(one) for one in records]

    async def listed(*_: Any) -> ListToolsResult:
        return ListToolsResult(tools=tools)

    async def called(*_: Any) -> CallToolResult:
        return CallToolResult(content=[])

    return Server("bare", on_list_tools=listed, on_call_tool=called)


async def all_pages(client: Client) -> int:
    """How many tools the official client is given."""
    page = await client.list_tools()
    count = len(page.tools)
    while page.next_cursor is not None:
        page = await client.list_tools(cursor=page.next_cursor)
        count += len(page.tools)
    return count


async def measure(count: int, rounds: int) -> dict[str, list[float]]:
    """CPU milliseconds by what was done."""
    spent: dict[str, list[float]] = defaultdict(list)
    records = [record(at) for at in range(count)]
    policy, limits = ImportPolicy(server="bench"), McpLimits()
    for _ in range(rounds):
        async with Client(bare_server(records), mode="legacy", cache=None) as client:
            begun = time.process_time()
            assert await all_pages(client) == count
            spent["official client, official server"].append(time.process_time() - begun)
            begun = time.process_time()
            raw = await read_listing(client, limits)
            spent["our reading, official server"].append(time.process_time() - begun)
        memory = Memory()
        begun = time.process_time()
        listing = import_listing(raw, policy, memory)
        spent["definitions and screening, first time"].append(time.process_time() - begun)
        assert len(listing.tools) == count
        memory.known.update(listing.fingerprints)
        begun = time.process_time()
        import_listing(raw, policy, memory)
        spent["definitions and screening, listed again"].append(time.process_time() - begun)
        known = Memory(known=listing.fingerprints)
        begun = time.process_time()
        import_listing(raw, policy, known)
        spent["definitions, fingerprints approved before"].append(time.process_time() - begun)
        library = Library(Tool(definition=one.definition, function=dict) for one in listing.tools)
        server = LibraryServer(library)
        async with Client(server.sdk_server(), mode="legacy", cache=None) as client:
            for name in ("official client, our server, first", "official client, our server"):
                begun = time.process_time()
                assert await all_pages(client) == count
                spent[name].append(time.process_time() - begun)
    return spent


def main() -> None:
    """Measure, and print a table."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 7
    print(f"{count:,} tools, median and least of {rounds} rounds, CPU ms")
    for name, times in asyncio.run(measure(count, rounds)).items():
        print(f"{statistics.median(times) * 1e3:8.0f} {min(times) * 1e3:8.0f}  {name}")


if __name__ == "__main__":
    main()
