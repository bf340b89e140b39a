"""What a server answers, as a value or as a failure that a model can act on."""

from __future__ import annotations

import pytest

from agentkit import Agent
from agentkit.interop.mcp import McpLimits, McpServer
from agentkit.messages import ToolCall
from agentkit.testing import ScriptedModel

NUMBER = {"type": "object", "properties": {"total": {"type": "number"}}, "required": ["total"]}


@pytest.fixture
def answered(fake, entry):
    """Calls a tool of a server that gives this answer, and gives the result."""

    async def ask(answer, protocol="auto", limits=None, **parts):
        server = fake(entry("ask", **parts))
        server.answers["ask"] = answer
        options = {"protocol": protocol, "limits": limits}
        async with McpServer.in_process(server.server, new_tools="screen", **options) as connected:
            script = [[ToolCall(call_id="1", name="ask", arguments={})], "done"]
            agent = Agent(ScriptedModel(script), tools=connected.tools)
            return (await agent.run("Go.")).episode.results[0]

    return ask


def text(words):
    """A text in an answer."""
    return {"type": "text", "text": words}


@pytest.mark.parametrize("protocol", ["auto", "legacy"])
async def test_structured_content_is_the_value(answered, protocol):
    """The data that a server declares and sends is what the tool returns, in both eras."""
    answer = {"content": [text("12")], "structuredContent": {"total": 12}}
    result = await answered(answer, protocol, outputSchema=NUMBER)
    assert result.value == {"total": 12}


async def test_text_is_the_value_and_pictures_are_told_of(answered):
    """Texts are joined; what a model can not read as text is named with its size."""
    picture = {"type": "image", "data": "QUJD", "mimeType": "image/png"}
    link = {"type": "resource_link", "name": "log", "uri": "file:///log"}
    inner = {"type": "resource", "resource": {"uri": "file:///a", "text": "inside"}}
    result = await answered({"content": [text("one"), picture, link, inner]})
    assert result.value == (
        "one\n[image: image/png, 3 bytes]\n[resource: log, file:///log]\ninside"
    )


async def test_an_error_of_the_tool_is_told_to_the_model(answered):
    """An answer with isError is a failed call in the server's words, which the model may correct."""
    result = await answered({"content": [text("no such city: Bern")], "isError": True})
    assert result.status == "failed"
    assert result.failure.kind == "retry_requested"
    assert "no such city: Bern" in result.text


@pytest.mark.parametrize(
    "answer",
    [
        {"content": [text("12")], "structuredContent": {"total": "twelve"}},
        {"content": [text("12")], "structuredContent": {}},
        {"content": [text("12")]},
    ],
)
async def test_a_server_that_breaks_its_own_schema_has_failed(answered, answer):
    """A lie about the result is a final failure, and no value of it reaches the model."""
    result = await answered(answer, outputSchema=NUMBER)
    assert result.failure.kind == "tool_failed"
    assert "broke its word" in result.text
    assert result.value is None


async def test_a_flood_in_an_answer_is_a_failure(answered):
    """An answer beyond the limit is refused whole, whether it is text or data."""
    limits = McpLimits(max_result_chars=1_000)
    for answer in (
        {"content": [text("x" * 2_000)]},
        {"content": [], "structuredContent": {"rows": ["y" * 10] * 200}},
    ):
        result = await answered(answer, limits=limits)
        assert "longer than the 1,000 characters" in result.text


async def test_an_error_of_the_protocol_is_a_failure(fake, entry):
    """A handler that raises gives a failed call, not an exception out of the run."""
    server = fake(entry("ask"))
    server.answers["ask"] = lambda _: 1 / 0
    async with McpServer.in_process(server.server, new_tools="screen") as connected:
        script = [[ToolCall(call_id="1", name="ask", arguments={})], "done"]
        agent = Agent(ScriptedModel(script), tools=connected.tools)
        result = (await agent.run("Go.")).episode.results[0]
    assert result.failure.kind == "tool_failed"


def nested(levels, innermost):
    """A value that many levels of lists are around."""
    for _ in range(levels):
        innermost = [innermost]
    return innermost


@pytest.mark.parametrize("many", [nested(400, 1), [[]] * 600_000], ids=["deep", "wide"])
async def test_structure_without_end_is_a_failure(answered, many):
    """Few bytes that stand for many values or levels end the call, and nothing else."""
    result = await answered({"content": [], "structuredContent": {"total": many}})
    assert result.status == "failed"
    assert len(result.text) < 1_000


async def test_structure_as_deep_as_the_protocol_takes_is_a_value(answered):
    """What the official client lets through is deep enough for no walk of ours to break."""
    many = nested(180, 1)
    result = await answered({"content": [], "structuredContent": {"total": many}})
    assert result.value == {"total": many}
