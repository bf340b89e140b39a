"""Stage 4, agent: a call that breaks its schema, the model's correction, refinement, streaming.

A scripted model stands in for a real one. Run it: python examples/04_run_an_agent.py
"""

from __future__ import annotations

import asyncio

from agentkit import Agent, tool
from agentkit.agent import CallsRefined, RunFinished, ToolCallFinished
from agentkit.messages import ToolCall
from agentkit.testing import ScriptedModel


@tool
def area(base: float, height: float) -> float:
    """Area of a triangle."""
    return base * height / 2


def propose(base: object, height: object) -> list[ToolCall]:
    """One proposed call."""
    return [ToolCall(call_id="1", name="area", arguments={"base": base, "height": height})]


async def main() -> None:
    """Show what happens while it happens."""
    script: list[str | list[ToolCall]] = [
        propose(10, "high"),
        propose(10, 5),
        propose(10, 5),
        "The area is 25.",
    ]
    agent = Agent(ScriptedModel(script), tools=[area], refine="adaptive")
    async for event in agent.stream("Area of a triangle with base 10 and height 5?"):
        match event:
            case CallsRefined(trace=trace):
                print(f"refined in {trace.iterations} rounds, converged: {trace.converged}")
            case ToolCallFinished(call=call, result=result):
                print(f"{call.name}({dict(call.arguments)}) -> {result.text}")
            case RunFinished(result=run):
                print(run.output, f"({run.stop_reason})")


asyncio.run(main())
