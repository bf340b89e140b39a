"""agentkit over its OpenAI-compatible adapter; every tool is sent, as the peers do.

The contract of an adapter (the same for each file of this folder):

* ``VENV``, ``DISTS``: the environment's name; the distributions whose versions are reported.
* ``IMPORT``, ``IMPORT_FULL``: the statements timed as import of the public names, and of
  everything that a run needs.
* ``build(base_url, tools)``: one reusable agent over plain, typed, documented functions.
* ``run(agent, question)``: one run, from the question to the final text.
* ``stream(agent, question)``: the same as text deltas; optional.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentkit import Agent

VENV = "agentkit"
DISTS = ["agentkit-evolve", "aiohttp", "httpx"]
IMPORT = "from agentkit import Agent, tool"
IMPORT_FULL = (
    "from agentkit import Agent, tool; "
    "from agentkit.models.openai_compatible import OpenAICompatibleModel"
)


def build(base_url: str, tools: list[Callable[..., Any]]) -> Agent:
    """An agent that offers all of ``tools``."""
    from agentkit import Agent
    from agentkit.models.openai_compatible import OpenAICompatibleModel

    model = OpenAICompatibleModel("gpt-4o-mini", base_url=base_url, api_key="x")
    return Agent(model, tools=tools, instructions="Be brief.", retriever=None)


async def run(agent: Agent, question: str) -> str:
    """One run."""
    return str((await agent.run(question)).output)


async def stream(agent: Agent, question: str) -> AsyncIterator[str]:
    """One run as text deltas."""
    from agentkit.models.base import TextDelta

    async for event in agent.stream(question):
        if isinstance(event, TextDelta):
            yield event.text
