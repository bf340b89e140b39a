"""Our tools in an agent of openai-agents: retrieval, execution and records by agentkit.

Needs openai-agents and a server that speaks chat completions (OPENAI_API_KEY, and OPENAI_BASE_URL
for one that is not OpenAI's). The framework sends its own traces to OpenAI, unless
OPENAI_AGENTS_DISABLE_TRACING=1. Run it: python examples/frameworks/openai_agents_agent.py
"""

import asyncio
from typing import Literal

from agents import Agent, set_default_openai_api

from agentkit import tool
from agentkit.interop import LibraryRunner, Toolset


@tool
def in_dollars(amount: float, currency: Literal["EUR", "GBP"]) -> float:
    """What an amount of another currency is in US dollars."""
    return amount * {"EUR": 1.25, "GBP": 1.5}[currency]


toolset = Toolset("sqlite:///shop.db", tools=[in_dollars])


set_default_openai_api("chat_completions")
agent = Agent(name="clerk", model="gpt-4o-mini", instructions="You help in a shop.")
result = asyncio.run(LibraryRunner(toolset).run(agent, "What are 10 euros in dollars?"))
print(result.final_output)

for episode in toolset.store.select() if toolset.store else ():
    print(episode.request, [call.name for call in episode.calls], episode.stop_reason)
