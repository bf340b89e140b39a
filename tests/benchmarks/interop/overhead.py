"""What our toolset costs in a framework, beside the framework's own tools (docs/interop.md).

Three agents have the same functions and ask the same server, in turns: a request that the model
answers by one call, and a request that it answers in words. One has the functions as the
framework's own tools. One has them so and an extension that does nothing, of the kind that ours
is (a capability, hooks on a clone, a middleware), which tells what the framework takes for being
extended. The third has our toolset, which validates the call by our rules and records an episode in
memory. The time is that of the whole process, with the server in it, which is the same for all.
Figures are medians over runs, and of those over rounds.

    python tests/benchmarks/interop/overhead.py [--tools N] [--rounds N] [--runs N]

Run it in the environment of each framework that `make test-interop` makes; it measures what is
installed there.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from agentkit.interop import LibraryRunner, Toolset, library_agent, library_capability
from agentkit.messages import ToolCall

sys.path.append(str(Path(__file__).resolve().parents[1]))

from harness import arguments, cpu_ms_of, report
from support.model_server import FaultyServer
from support.server_steps import Reply

Run = Callable[[], Awaitable[object]]
Function = Callable[..., Awaitable[int]]
ASKED = "4 times 1?"
CALL = Reply(tool_calls=[ToolCall(call_id="c1", name="times_1", arguments={"x": 4})])


def functions(count: int) -> list[Function]:
    """Asynchronous functions, so that no side pays for a thread."""

    def made(factor: int) -> Function:
        async def times(x: int, note: str = "") -> int:
            """Multiply a number, and say so.

            Args:
                x: The number.
                note: What to write beside it.
            """
            return factor * x

        times.__name__ = f"times_{factor}"
        return times

    return [made(factor) for factor in range(count)]


@dataclass(frozen=True, kw_only=True, slots=True)
class Runs:
    """One run of each of the three agents."""

    plain: Run
    extended: Run
    ours: Run


def pydantic_ai(tools: list[Function], url: str) -> Runs:
    """Tools of the framework, with an empty capability, and our capability."""
    from openai import AsyncOpenAI
    from pydantic_ai import Agent
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.toolsets import FunctionToolset

    own = FunctionToolset(tools)

    class Empty(AbstractCapability):
        def get_toolset(self) -> Any:
            return own

        async def prepare_output_tools(self, ctx: Any, tool_defs: Any) -> Any:
            return tool_defs

        async def wrap_run(self, ctx: Any, *, handler: Any) -> Any:
            return await handler()

    client = AsyncOpenAI(base_url=url, api_key="none")
    model = OpenAIChatModel("stub", provider=OpenAIProvider(openai_client=client))
    plain, extended = Agent(model, tools=tools), Agent(model, capabilities=[Empty()])
    ours = Agent(model, capabilities=[library_capability(Toolset("memory:", tools=tools))])
    return Runs(
        plain=lambda: plain.run(ASKED),
        extended=lambda: extended.run(ASKED),
        ours=lambda: ours.run(ASKED),
    )


def openai_agents(tools: list[Function], url: str) -> Runs:
    """The same for openai-agents, where an extension is a clone of the agent, with hooks."""
    from agents import (
        Agent,
        OpenAIChatCompletionsModel,
        RunHooks,
        Runner,
        function_tool,
        set_tracing_disabled as without_tracing,
    )
    from openai import AsyncOpenAI

    without_tracing(disabled=True)
    client = AsyncOpenAI(base_url=url, api_key="none")
    model = OpenAIChatCompletionsModel("stub", openai_client=client)
    plain = Agent(name="plain", model=model, tools=[function_tool(one) for one in tools])
    bare, runner = Agent(name="ours", model=model), LibraryRunner(Toolset("memory:", tools=tools))
    hooks: Any = RunHooks()
    return Runs(
        plain=lambda: Runner.run(plain, ASKED),
        extended=lambda: Runner.run(plain.clone(tools=[*plain.tools]), ASKED, hooks=hooks),
        ours=lambda: runner.run(bare, ASKED),
    )


def langchain(tools: list[Function], url: str) -> Runs:
    """The same for an agent of LangChain, a graph of LangGraph, with a middleware."""
    from langchain.agents import create_agent
    from langchain.agents.middleware import AgentMiddleware
    from langchain_openai import ChatOpenAI

    class Empty(AgentMiddleware):
        async def abefore_agent(self, state: Any, runtime: Any) -> Any:
            return {}

        async def awrap_model_call(self, request: Any, handler: Any) -> Any:
            return await handler(request)

        async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
            return await handler(request)

        async def aafter_agent(self, state: Any, runtime: Any) -> Any:
            return None

    model = ChatOpenAI(model="stub", base_url=url, api_key="none")
    plain = create_agent(model, tools=tools)
    extended = create_agent(model, tools=tools, middleware=[Empty()])
    ours = library_agent(Toolset("memory:", tools=tools), model)
    given = {"messages": ASKED}
    return Runs(
        plain=lambda: plain.ainvoke(given),
        extended=lambda: extended.ainvoke(given),
        ours=lambda: ours.ainvoke(given),
    )


FRAMEWORKS = {"pydantic_ai": pydantic_ai, "agents": openai_agents, "langchain": langchain}


async def measure(runs: Runs, *, rounds: int, count: int) -> dict[str, object]:
    """CPU milliseconds of a run with the framework's own tools, and what the others add to it."""
    three = (runs.plain, runs.extended, runs.ours)
    for _ in range(5):
        for run in three:
            await run()
    plain, extended, added = [], [], []
    for _ in range(rounds):
        turns = [[await cpu_ms_of(run) for run in three] for _ in range(count)]
        plain.append(statistics.median(bare for bare, _, _ in turns))
        extended.append(statistics.median(empty - bare for bare, empty, _ in turns))
        added.append(statistics.median(ours - bare for bare, _, ours in turns))
    return {
        "its own tools, ms": statistics.median(plain),
        "an empty extension adds": statistics.median(extended),
        "ours adds": statistics.median(added),
        "in the rounds": f"{min(added):+.2f} to {max(added):+.2f}",
    }


async def compare(count: int, rounds: int, runs: int) -> list[dict[str, object]]:
    """Measure each framework that is installed here."""

    def answer(request: Any) -> Reply | str:
        return "It is 4." if request.body["messages"][-1]["role"] == "tool" else CALL

    with FaultyServer(answer) as server:
        return [
            {
                "framework": package,
                **await measure(
                    FRAMEWORKS[package](functions(count), server.base_url),
                    rounds=rounds,
                    count=runs,
                ),
            }
            for package in filter(find_spec, FRAMEWORKS)
        ]


if __name__ == "__main__":
    parser = arguments(__doc__, rounds=7)
    parser.add_argument("--tools", type=int, default=8)
    parser.add_argument("--runs", type=int, default=30)
    options = parser.parse_args()
    report(asyncio.run(compare(options.tools, options.rounds, options.runs)), options)
