"""Our tools in a pydantic-ai agent: retrieval, execution and records by agentkit.

Needs pydantic-ai-slim[openai] and a server that speaks chat completions (OPENAI_API_KEY, and
OPENAI_BASE_URL for one that is not OpenAI's).
Run it: python examples/frameworks/pydantic_ai_agent.py
"""

from typing import Literal

from pydantic_ai import Agent

from agentkit import tool
from agentkit.interop import Toolset, library_capability


@tool
def in_dollars(amount: float, currency: Literal["EUR", "GBP"]) -> float:
    """What an amount of another currency is in US dollars."""
    return amount * {"EUR": 1.25, "GBP": 1.5}[currency]


toolset = Toolset("sqlite:///shop.db", tools=[in_dollars])


agent = Agent("openai-chat:gpt-4o-mini", capabilities=[library_capability(toolset)])
print(agent.run_sync("What are 10 euros in dollars?").output)

for episode in toolset.store.select() if toolset.store else ():
    print(episode.request, [call.name for call in episode.calls], episode.stop_reason)
