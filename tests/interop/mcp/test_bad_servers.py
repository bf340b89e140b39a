"""A server that goes wrong in the middle of a run: the run ends well, and its episode is kept."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from agentkit import Agent
from agentkit.interop.mcp import McpLimits, McpServer
from agentkit.library import open_store
from agentkit.messages import ToolCall
from agentkit.testing import ScriptedModel

RAW = Path(__file__).parent / "servers" / "raw.py"
COUNTED = {"type": "object", "properties": {"times": {"type": "integer"}}}
NUMBER = {"type": "object", "properties": {"total": {"type": "number"}}, "required": ["total"]}


async def kept(server, *names, **first):
    """The results of a run that calls these tools, as the store gives its episode back."""
    store = open_store("memory:")
    calls = [
        ToolCall(call_id=str(at), name=name, arguments={} if at else first)
        for at, name in enumerate(names)
    ]
    script = [*([call] for call in calls), "done"]
    result = await Agent(ScriptedModel(script), tools=server.tools, store=store).run("Go.")
    assert result.output == "done"
    return store.get(result.episode.episode_id).results


async def test_a_server_that_dies_fails_one_call(entry):
    """The call under way says that the server hung up; the next one finds it again."""
    listed = json.dumps([entry("die"), entry("process")])
    raw = McpServer.stdio(
        sys.executable, ["-I", str(RAW), listed], protocol="legacy", new_tools="screen"
    )
    async with raw as server:
        died, answered = await kept(server, "die", "process")
    assert died.failure.cause == "McpConnectionError"
    assert answered.status == "ok"


async def test_a_flood_fails_one_call(fake, entry):
    """An answer beyond the limit is not in the episode either."""
    fakes = fake(entry("flood"), entry("calm"))
    fakes.answers["flood"] = {"content": [{"type": "text", "text": "x" * 50_000}]}
    limits = McpLimits(max_result_chars=1_000)
    async with McpServer.in_process(fakes.server, limits=limits, new_tools="screen") as server:
        flooded, calm = await kept(server, "flood", "calm")
    assert flooded.failure.kind == "tool_failed"
    assert len(flooded.text) < 1_000
    assert calm.status == "ok"


async def test_a_flood_of_changes_is_not_followed(fake, entry, eventually):
    """Hundreds of notices that the list changed are answered by a few listings, and calls go on."""
    fakes = fake(entry("announce", inputSchema=COUNTED), entry("calm"))
    async with McpServer.in_process(fakes.server, protocol="legacy", new_tools="screen") as server:
        results = await kept(server, "announce", "calm", times=300)
        await asyncio.to_thread(eventually, lambda: fakes.listings > 1)
        assert [one.status for one in results] == ["ok", "ok"]
        assert fakes.listings < 100


async def test_a_tool_that_is_renamed_in_a_run_fails_one_call(fake, entry):
    """The server knows the old name no longer; the model is told, and the new one is told of."""
    fakes = fake(entry("old"), entry("calm"))

    def renamed(_arguments):
        raise ValueError("unknown tool old")

    fakes.answers["old"] = renamed
    async with McpServer.in_process(fakes.server, new_tools="screen") as server:
        tools = server.tools
        fakes.records[0] = entry("new")
        gone, calm = await kept(server, "old", "calm")
        await server.refresh()
        assert tools[0].name == "old"
        assert "old: the server calls it new now" in server.listing.notes
    assert gone.failure.kind == "tool_failed"
    assert calm.status == "ok"


async def test_a_lie_about_a_schema_fails_one_call(fake, entry):
    """A value that is not what the server declared is in no result."""
    fakes = fake(entry("lie", outputSchema=NUMBER), entry("calm"))
    fakes.answers["lie"] = {"content": [], "structuredContent": {"total": "twelve"}}
    async with McpServer.in_process(fakes.server, new_tools="screen") as server:
        lied, calm = await kept(server, "lie", "calm")
    assert lied.failure.kind == "tool_failed"
    assert "broke its word" in lied.text
    assert lied.value is None
    assert calm.status == "ok"
