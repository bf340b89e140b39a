"""What models think before they answer is streamed apart from the answer."""

from __future__ import annotations

import asyncio

import pytest

from agentkit import Agent
from agentkit.messages import UserMessage
from agentkit.models import (
    ModelRequest,
    OpenAICompatibleModel,
    PromptedModel,
    ReasoningDelta,
    TextDelta,
    resolve_model,
)
from tests.support.model_server import ProviderServer, Reply

ASKED = ModelRequest(messages=(UserMessage(text="3 * 8?"),))
REPLY = Reply(reasoning="Three eights.", text="24")


def said(events):
    """The kinds of the deltas in order, each once, and their texts."""
    texts = {}
    for event in events:
        if isinstance(event, ReasoningDelta | TextDelta):
            kind = type(event).__name__
            texts[kind] = texts.get(kind, "") + event.text
    return texts


async def all_of(events):
    return [event async for event in events]


@pytest.fixture(params=["chat", "anthropic", "prompted"])
def model(request, monkeypatch):
    """A model at a server that thinks aloud."""
    with ProviderServer([REPLY]) as server:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.root_url)
        chat = OpenAICompatibleModel("m", base_url=server.base_url)
        if request.param == "anthropic":
            yield resolve_model("anthropic:claude")
        else:
            yield PromptedModel(chat) if request.param == "prompted" else chat


def test_reasoning_comes_before_the_answer(model):
    """It is no part of the answer's text."""
    found = asyncio.run(all_of(model.stream(ASKED)))
    assert list(said(found).items()) == [("ReasoningDelta", "Three eights."), ("TextDelta", "24")]
    assert found[-1].message.text == "24"


def test_an_agent_hands_it_on(model):
    """Whoever listens to a run hears it; the episode holds the answer."""
    found = asyncio.run(all_of(Agent(model).stream("3 * 8?")))
    assert said(found) == {"ReasoningDelta": "Three eights.", "TextDelta": "24"}
    assert found[-1].result.output == "24"
