"""Peer: pydantic-ai over its OpenAI adapter."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

VENV = "pydantic_ai"
DISTS = ["pydantic-ai-slim", "openai"]
IMPORT = "from pydantic_ai import Agent"
IMPORT_FULL = f"{IMPORT}; from pydantic_ai.models.openai import OpenAIChatModel"


def build(base_url: str, tools: list[Any]) -> Any:
    """An agent that offers all of ``tools``."""
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    provider = OpenAIProvider(base_url=base_url, api_key="x")
    return Agent(
        OpenAIChatModel("gpt-4o-mini", provider=provider), tools=tools, system_prompt="Be brief."
    )


async def run(agent: Any, question: str) -> str:
    """One run."""
    return str((await agent.run(question)).output)


async def stream(agent: Any, question: str) -> AsyncIterator[str]:
    """One run as text deltas."""
    async with agent.run_stream(question) as response:
        async for delta in response.stream_text(delta=True, debounce_by=None):
            yield delta
