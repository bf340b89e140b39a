"""Marks for providers' prompt caches: what stays the same in a conversation is read once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from support.model_server import ProviderServer

from agentkit.messages import SystemMessage, UserMessage
from agentkit.models import ModelRequest
from agentkit.models.anthropic_messages import AnthropicCodec, CodecOptions
from agentkit.tools import ToolDefinition

TOOLS = tuple(
    ToolDefinition.from_schema(name, "Does it.", {"type": "object", "properties": {}})
    for name in ("first", "second")
)
REQUEST = ModelRequest(
    messages=(SystemMessage(text="Be brief."), UserMessage(text="hi")), tools=TOOLS
)
FIVE = CodecOptions(prompt_cache="5m")
MARK = {"type": "ephemeral"}


def marks(fields: Mapping[str, object]) -> list[object]:
    """Name of each marked tool, and whether the instructions are marked."""
    named = [tool["name"] for tool in fields.get("tools", []) if "cache_control" in tool]
    system = fields["system"]
    return [*named, isinstance(system, list) and system[0].get("cache_control") == MARK]


def test_last_tool_and_instructions_are_marked() -> None:
    """The prefix ends after the tools, and again after the instructions."""
    fields = AnthropicCodec(REQUEST, FIVE).encode("m")
    assert marks(fields) == ["second", True]
    assert fields["tools"][1]["cache_control"] == MARK
    assert fields["system"][0]["text"] == "Be brief."


def test_request_without_tools_is_not_marked() -> None:
    """What is asked once and without tools is hardly read again: writing it would cost more."""
    fields = AnthropicCodec(replace(REQUEST, tools=()), FIVE).encode("m")
    assert fields["system"] == "Be brief."


def test_answer_tool_is_part_of_the_prefix() -> None:
    """The tool for a structured answer is the same in each request, and the last."""
    request = replace(REQUEST, output_schema={"type": "object", "properties": {}})
    assert marks(AnthropicCodec(request, FIVE).encode("m")) == ["answer", True]


def test_deferred_tools_are_never_marked() -> None:
    """Anthropic refuses a mark on a tool that is no part of the prompt."""
    request = replace(REQUEST, tools=TOOLS[:1], deferred=TOOLS[1:])
    options = CodecOptions(prompt_cache="5m", tool_search="bm25")
    assert marks(AnthropicCodec(request, options).encode("m")) == ["tool_search_tool_bm25", True]


def test_nothing_is_marked_on_request() -> None:
    """Without a time there are no marks at all."""
    assert "cache_control" not in str(AnthropicCodec(REQUEST).encode("m"))


@pytest.mark.parametrize(
    ("options", "mark"),
    [({}, MARK), ({"prompt_cache": "1h"}, {**MARK, "ttl": "1h"}), ({"prompt_cache": None}, None)],
)
async def test_marks_reach_the_server(options, mark) -> None:
    """The model marks by default; the time is a choice, and so is none."""
    anthropic = pytest.importorskip("anthropic", reason="the extra 'anthropic' is not installed")
    hosted = pytest.importorskip("agentkit.models.anthropic")
    with ProviderServer(["well"]) as server:
        async with anthropic.AsyncAnthropic(base_url=server.root_url, api_key="k") as client:
            await hosted.anthropic_model("claude", client=client, **options).complete(REQUEST)
    assert server.requests[0].body["tools"][1].get("cache_control") == mark


@pytest.mark.parametrize("api", ["openai", "openai_responses"])
async def test_cache_key_reaches_openai(api) -> None:
    """OpenAI caches by itself; a key keeps requests that share a beginning on one machine."""
    openai = pytest.importorskip("openai", reason="the extra 'openai' is not installed")
    hosted = pytest.importorskip("agentkit.models.openai")
    make = getattr(hosted, f"{api}_model")
    with ProviderServer(["well"] * 2) as server:
        async with openai.AsyncOpenAI(base_url=server.base_url, api_key="k") as client:
            await make("m", client=client, prompt_cache_key="support-agent").complete(REQUEST)
            await make("m", client=client).complete(REQUEST)
    assert server.requests[0].body["prompt_cache_key"] == "support-agent"
    assert "prompt_cache_key" not in server.requests[1].body
