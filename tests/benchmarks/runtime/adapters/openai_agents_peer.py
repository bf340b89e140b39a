"""Peer: openai-agents over its chat-completions model, tracing off."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

VENV = "openai_agents"
DISTS = ["openai-agents", "openai"]
IMPORT = IMPORT_FULL = "from agents import Agent, Runner"


def build(base_url: str, tools: list[Any]) -> Any:
    """An agent that offers all of ``tools``."""
    from agents import Agent, OpenAIChatCompletionsModel, function_tool, set_tracing_disabled
    from openai import AsyncOpenAI

    set_tracing_disabled(disabled=True)
    client = AsyncOpenAI(base_url=base_url, api_key="x")
    return Agent(
        name="agent",
        instructions="Be brief.",
        model=OpenAIChatCompletionsModel("gpt-4o-mini", openai_client=client),
        tools=[function_tool(tool) for tool in tools],
    )


async def run(agent: Any, question: str) -> str:
    """One run."""
    from agents import Runner

    return str((await Runner.run(agent, question)).final_output)


async def stream(agent: Any, question: str) -> AsyncIterator[str]:
    """One run as text deltas."""
    from agents import Runner
    from openai.types.responses import ResponseTextDeltaEvent

    async for event in Runner.run_streamed(agent, question).stream_events():
        if event.type == "raw_response_event" and isinstance(event.data, ResponseTextDeltaEvent):
            yield event.data.delta
