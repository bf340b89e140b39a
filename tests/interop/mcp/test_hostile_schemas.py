"""A server whose schemas take for ever to check: the call fails with a reason, and nothing waits."""

from __future__ import annotations

import asyncio
import time

import pytest

from agentkit import Agent
from agentkit.interop.mcp import McpServer
from agentkit.messages import ToolCall
from agentkit.testing import ScriptedModel


def doubling(levels):
    """A schema whose references double at every level."""
    parts = {f"d{at}": {"allOf": [{"$ref": f"#/$defs/d{at + 1}"}] * 2} for at in range(levels)}
    return {**parts, f"d{levels}": {"type": "string"}}


class Heart:
    """Measures the longest time for which the event loop did nothing else."""

    longest = 0.0

    async def __aenter__(self):
        self._task = asyncio.create_task(self._beat())
        return self

    async def __aexit__(self, *error):
        self._task.cancel()

    async def _beat(self):
        last = time.monotonic()
        while True:
            await asyncio.sleep(0.01)
            self.longest, last = max(self.longest, time.monotonic() - last), time.monotonic()


async def called(fakes, arguments, protocol="auto"):
    """The result of one call of ``ask``, and the longest pause of the loop meanwhile."""
    async with (
        McpServer.in_process(fakes.server, protocol=protocol, new_tools="screen") as server,
        Heart() as heart,
    ):
        script = [[ToolCall(call_id="1", name="ask", arguments=arguments)], "done"]
        run = await Agent(ScriptedModel(script), tools=server.tools).run("Go.")
    return run.episode.results[0], heart.longest


@pytest.mark.parametrize("protocol", ["auto", "legacy"])
@pytest.mark.parametrize("pattern", ["^(a|a)*$", r"^(\w+\s?)*$", "^(a|aa)+$"])
async def test_an_answer_against_an_exploding_pattern_fails_at_once(fake, entry, pattern, protocol):
    """The server's own answer is held against its own pattern in linear time, and refused."""
    schema = {"type": "object", "properties": {"x": {"type": "string", "pattern": pattern}}}
    fakes = fake(entry("ask", outputSchema=schema))
    fakes.answers["ask"] = {"content": [], "structuredContent": {"x": "a" * 5_000 + "!"}}
    result, pause = await called(fakes, {}, protocol)
    assert result.failure.kind == "tool_failed"
    assert "broke its word" in result.text
    assert pause < 5


async def test_arguments_against_an_exploding_pattern_are_refused_at_once(fake, entry):
    """What a model writes is held against a server's pattern in linear time."""
    pattern = {"type": "string", "pattern": r"^(\w+\s?)*$"}
    schema = {"type": "object", "properties": {"x": pattern}}
    result, pause = await called(fake(entry("ask", inputSchema=schema)), {"x": "a" * 5_000 + "!"})
    assert "must match the pattern" in result.text
    assert pause < 5


@pytest.mark.parametrize("where", ["inputSchema", "outputSchema"])
async def test_a_tool_whose_references_multiply_is_held(fake, entry, where):
    """It is not offered, and the listing says why; the server's other tools are."""
    schema = {
        "type": "object",
        "properties": {"x": {"$ref": "#/$defs/d0"}},
        "$defs": doubling(26),
    }
    async with McpServer.in_process(
        fake(entry("bad", **{where: schema}), entry("calm")).server, new_tools="screen"
    ) as s:
        assert [tool.name for tool in s.tools] == ["calm"]
        (held,) = s.listing.held
    assert held.code == "bad_schema"
    assert "against more than 10,000 schemas" in held.reasons[0]


async def test_an_answer_that_multiplies_with_its_depth_fails_with_a_reason(fake, entry):
    """A small recursive schema and a nested answer end after a bounded number of steps."""
    part = {"items": {"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]}}
    schema = {"type": "object", "properties": {"x": {"$ref": "#/$defs/a"}}, "$defs": {"a": part}}
    deep = 1
    for _ in range(40):
        deep = [deep]
    fakes = fake(entry("ask", outputSchema=schema))
    fakes.answers["ask"] = {"content": [], "structuredContent": {"x": deep}}
    result, pause = await called(fakes, {})
    assert result.failure.kind == "tool_failed"
    assert "too expensive to validate: more than" in result.text
    assert pause < 5


@pytest.mark.parametrize("where", ["inputSchema", "outputSchema"])
async def test_a_tool_whose_reference_leads_to_no_schema_is_held(fake, entry, where):
    """A reference to a list is no contract: the tool is held, and the listing says why."""
    schema = {"type": "object", "properties": {"x": {"$ref": "#/required"}}, "required": ["x"]}
    async with McpServer.in_process(
        fake(entry("bad", **{where: schema}), entry("calm")).server, new_tools="screen"
    ) as s:
        assert [tool.name for tool in s.tools] == ["calm"]
        (held,) = s.listing.held
    assert held.code == "bad_schema"
    assert """'#/required' leads to the list ["x"], which is no schema""" in held.reasons[0]


async def test_an_answer_against_a_schema_that_breaks_the_validator_fails_with_a_reason(
    fake, entry
):
    """What the library that checks answers does not expect is the failure of one call."""
    schema = {
        "type": "object",
        "properties": {"x": {"$dynamicRef": "#/required"}},
        "required": ["x"],
    }
    fakes = fake(entry("ask", outputSchema=schema))
    fakes.answers["ask"] = {"content": [], "structuredContent": {"x": 1}}
    result, _ = await called(fakes, {})
    assert result.failure.kind == "tool_failed"
    assert "broke its word" in result.text
