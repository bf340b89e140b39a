"""Worked calls (L4) as models read them: input_examples for Anthropic, lines of text elsewhere."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from agentkit import Agent, Library
from agentkit.agent import SelectionPolicy
from agentkit.messages import UserMessage
from agentkit.models import ModelRequest, OpenAICompatibleModel, resolve_model
from agentkit.models.prompt_format import render_tools
from agentkit.retrieval import CascadeRetriever, estimate_tokens, schema_text
from agentkit.testing import FunctionModel
from agentkit.tools import Example, ToolDefinition
from tests.support.model_server import ProviderServer

FORECAST = replace(
    ToolDefinition.from_schema(
        "forecast",
        "The weather.",
        {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}},
    ),
    examples=(
        Example(arguments={"city": "x" * 300}),
        Example(arguments={"city": "Oslo", "days": 3}),
        Example(arguments={"city": "Århus", "days": 1}),
        Example(arguments={"city": "Rome", "days": 2}),
    ),
)
ASKED = ModelRequest(messages=(UserMessage(text="Rain?"),), tools=(FORECAST,))
LINES = 'The weather.\nExample: {"city": "Oslo", "days": 3}\nExample: {"city": "Århus", "days": 1}'


@pytest.fixture
def sent(monkeypatch):
    """The bodies and headers that a model sends for some requests."""

    def send(scheme, *requests):
        with ProviderServer(["Yes."] * len(requests)) as server:
            monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
            monkeypatch.setenv("ANTHROPIC_BASE_URL", server.root_url)
            model = (
                resolve_model("anthropic:claude")
                if scheme == "anthropic"
                else OpenAICompatibleModel("m", base_url=server.base_url)
            )

            async def ask():
                async with model:
                    for request in requests:
                        await model.complete(request)

            asyncio.run(ask())
            return [(one.body, one.headers) for one in server.requests]

    return send


def test_a_server_of_chat_completions_reads_them_in_the_description(sent):
    """As many as are asked for, the short ones in order; another number is serialised anew."""
    bodies = sent("chat", replace(ASKED, examples=2), ASKED, replace(ASKED, examples=2))
    texts = [body["tools"][0]["function"]["description"] for body, _ in bodies]
    assert texts == [LINES, "The weather.", LINES]


def test_anthropic_reads_them_as_input_examples(sent):
    """In a field of their own, which needs a header; requests without them have neither."""
    (body, headers), (plain, bare) = sent("anthropic", replace(ASKED, examples=1), ASKED)
    assert body["tools"][0]["input_examples"] == [{"city": "Oslo", "days": 3}]
    assert body["tools"][0]["description"] == "The weather."
    assert headers["anthropic-beta"] == "advanced-tool-use-2025-11-20"
    assert "input_examples" not in plain["tools"][0]
    assert "anthropic-beta" not in bare


@pytest.mark.parametrize("format", ["json", "python"])
def test_prompts_hold_them(format):  # noqa: A002 - the word of the field
    """Models that know no tools read them in the system prompt."""
    assert "Oslo" in render_tools([FORECAST], format, examples=1)
    assert "Århus" not in render_tools([FORECAST], format, examples=1)
    assert "Oslo" not in render_tools([FORECAST], format)


def test_an_agent_asks_for_as_many_as_its_policy_says():
    """By default none are shown."""
    seen = []
    model = FunctionModel(lambda request: seen.append(request.examples) or "Done.")
    for selection in (SelectionPolicy(examples=3), SelectionPolicy()):
        Agent(model, library=Library([FORECAST]), selection=selection).run_sync("Rain?")
    assert seen == [3, 0]


def test_their_tokens_count_in_the_budget():
    """A tool that fits without its examples is passed over where it does not fit with them."""
    plain, whole = (estimate_tokens(schema_text(FORECAST, examples=n)) for n in (0, 3))
    assert whole > plain
    for examples, offered in ((0, 1), (3, 0)):
        retriever = CascadeRetriever(token_budget=plain, examples=examples)
        found = asyncio.run(retriever.retrieve("weather forecast", Library([FORECAST])))
        assert len(found.offered) == offered
        assert found.tokens <= plain
