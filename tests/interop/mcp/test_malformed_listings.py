"""What is no entry of a listing is held alone, also where the official client refuses the whole."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from agentkit.errors import McpConnectionError
from agentkit.interop.mcp import McpLimits, McpServer

RAW = Path(__file__).parent / "servers" / "raw.py"


async def test_a_malformed_entry_takes_no_other_with_it(entry):
    """Each is held with what is wrong with it and as it came; the good one works."""
    broken = [
        {"name": 7, "inputSchema": {"type": "object"}},
        {"name": "no_schema"},
        {"name": "listed", "inputSchema": {"type": "object"}, "description": ["a", "list"]},
        "no object",
        None,
    ]
    listed = json.dumps([broken[0], entry("good"), *broken[1:]])
    raw = McpServer.stdio(
        sys.executable, ["-I", str(RAW), listed], name="raw", protocol="legacy", new_tools="screen"
    )
    async with raw as server:
        assert [tool.name for tool in server.tools] == ["good"]
        assert (await server.library["good"]()).isdigit()
        assert [held.code for held in server.held] == ["bad_entry"] * 5
        assert [held.name for held in server.held] == ["", "no_schema", "listed", "", ""]
        whole = [
            held.record if held.record in broken else held.record["entry"] for held in server.held
        ]
        assert whole == broken
        assert "inputSchema: Field required" in server.held[1].reasons[0]
        assert not any(held.is_approvable for held in server.held)


@pytest.mark.parametrize("protocol", ["legacy", "auto"])
@pytest.mark.parametrize(
    "schema",
    [{"type": "banana"}, {"$ref": "https://example.com/schema.json"}, {"type": ["object"]}],
    ids=["type", "reference", "list"],
)
async def test_a_schema_that_the_protocol_forbids_takes_no_other_tool_with_it(
    entry, protocol, schema
):
    """Arguments are an object in every version of the protocol, and what is not is held alone."""
    listed = json.dumps([entry("odd", inputSchema=schema), entry("good")])
    place = ["-I", str(RAW), listed]
    async with McpServer.stdio(
        sys.executable, place, name="raw", protocol=protocol, new_tools="screen"
    ) as server:
        assert [tool.name for tool in server.tools] == ["good"]
        assert [(held.name, held.code) for held in server.held] == [("odd", "bad_entry")]


@pytest.mark.parametrize(("protocol", "names"), [("legacy", []), ("auto", ["lists"])])
async def test_what_a_result_may_be_depends_on_the_version(entry, protocol, names):
    """A result that is a list is held where the agreed version forbids it, and taken elsewhere."""
    listed = json.dumps([entry("lists", outputSchema={"type": "array"})])
    place = ["-I", str(RAW), listed]
    async with McpServer.stdio(
        sys.executable, place, name="raw", protocol=protocol, new_tools="screen"
    ) as server:
        assert [tool.name for tool in server.tools] == names


def _deep(levels):
    schema: dict[str, object] = {"type": "object"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


@pytest.mark.parametrize("place", ["inputSchema", "outputSchema", "_meta"])
async def test_an_entry_nested_deeply_takes_no_other_tool_with_it(entry, place):
    """Levels that the official client still reads break none of our walks over an entry."""
    listed = json.dumps([entry("deep", **{place: _deep(90)}), entry("good")])
    raw = McpServer.stdio(
        sys.executable, ["-I", str(RAW), listed], protocol="legacy", new_tools="screen"
    )
    async with raw as server:
        assert "good" in {tool.name for tool in server.tools}
        assert [held.name for held in server.held] in ([], ["deep"])


async def test_a_listing_that_nobody_can_read_is_an_error_in_time(entry):
    """A message too deep for the official client is none, and the wait for it has its end."""
    listed = json.dumps([entry("deep", inputSchema=_deep(200))])
    limits = McpLimits(list_seconds=0.5)
    place = ["-I", str(RAW), listed]
    with pytest.raises(McpConnectionError, match="can not be reached"):
        async with McpServer.stdio(sys.executable, place, protocol="legacy", limits=limits):
            pass
