"""Our tools in an agent of LangChain, a graph of LangGraph: retrieval, execution and records.

Needs langchain, langgraph and langchain-openai, and a server that speaks chat completions
(OPENAI_API_KEY, and OPENAI_BASE_URL for one that is not OpenAI's).
Run it: python examples/frameworks/langgraph_agent.py
"""

from typing import Literal

from agentkit import tool
from agentkit.interop import Toolset, library_agent


@tool
def in_dollars(amount: float, currency: Literal["EUR", "GBP"]) -> float:
    """What an amount of another currency is in US dollars."""
    return amount * {"EUR": 1.25, "GBP": 1.5}[currency]


toolset = Toolset("sqlite:///shop.db", tools=[in_dollars])


agent = library_agent(toolset, "openai:gpt-4o-mini", system_prompt="You help in a shop.")
state = agent.invoke({"messages": "What are 10 euros in dollars?"})
print(state["messages"][-1].content)

for episode in toolset.store.select() if toolset.store else ():
    print(episode.request, [call.name for call in episode.calls], episode.stop_reason)
