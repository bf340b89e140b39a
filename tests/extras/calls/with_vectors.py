"""The extra ``vectors``: a tool is found that shares no word with what was asked, and called."""

from shared import check

from agentkit import Agent, tool
from agentkit.messages import ToolCall
from agentkit.models import ModelRequest
from agentkit.retrieval import CascadeRetriever, StaticEmbedder
from agentkit.testing import FunctionModel


@tool
def forecast() -> str:
    """Weather in the coming days."""
    return "rain"


@tool
def instalment() -> float:
    """Monthly payment of a loan."""
    return 250.0


def choose(request: ModelRequest) -> str | list[ToolCall]:
    """Call the one tool that was offered."""
    if len(request.messages) > 1:
        return request.messages[-1].text
    offered = [one.name for one in request.tools if one.name in {"forecast", "instalment"}]
    return [ToolCall(call_id="c1", name=name, arguments={}) for name in offered]


StaticEmbedder().embed(["sunshine"])  # says what to install, where words alone would be compared
retriever = CascadeRetriever(shortlist=1, offer=1)
agent = Agent(FunctionModel(choose), tools=[instalment, forecast], retriever=retriever)
check(agent.run_sync("Will there be sunshine tomorrow?"), "rain", "forecast", "wordllama")
