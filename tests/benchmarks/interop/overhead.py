"""What our toolset costs in a framework, beside the framework's own tools: CPU milliseconds a run.

Both agents have the same functions and ask the same server, in turns: a request that the model
answers by one call, and a request that it answers in words. Ours validates the call by our rules
and records an episode in memory. The time is that of the whole process, with the server in it,
which is the same on both sides. Figures are medians over runs, and of those over rounds.

    python tests/benchmarks/interop/overhead.py [--tools N] [--rounds N] [--runs N]

Run it in the environment of each framework that `make test-interop` makes; it measures what is
installed there.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import time
from collections.abc import Awaitable, Callable
from importlib.util import find_spec
from typing import Any

from agentkit.interop import LibraryRunner, Toolset, library_agent, library_capability
from agentkit.messages import ToolCall
from agentkit.testing import FaultyServer, Reply

Run = Callable[[], Awaitable[object]]
Function = Callable[..., Awaitable[int]]
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


def pydantic_ai(tools: list[Function], url: str) -> tuple[Run, Run]:
    """A run with plain tools, and one with ours."""
    from openai import AsyncOpenAI
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    client = AsyncOpenAI(base_url=url, api_key="none")
    model = OpenAIChatModel("stub", provider=OpenAIProvider(openai_client=client))
    plain = Agent(model, tools=tools)
    ours = Agent(model, capabilities=[library_capability(Toolset("memory:", tools=tools))])
    return lambda: plain.run("4 times 1?"), lambda: ours.run("4 times 1?")


def openai_agents(tools: list[Function], url: str) -> tuple[Run, Run]:
    """The same for openai-agents."""
    from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool
    from agents import set_tracing_disabled as without_tracing
    from openai import AsyncOpenAI

    without_tracing(disabled=True)
    client = AsyncOpenAI(base_url=url, api_key="none")
    model = OpenAIChatCompletionsModel("stub", openai_client=client)
    plain = Agent(name="plain", model=model, tools=[function_tool(one) for one in tools])
    bare, runner = Agent(name="ours", model=model), LibraryRunner(Toolset("memory:", tools=tools))
    return lambda: Runner.run(plain, "4 times 1?"), lambda: runner.run(bare, "4 times 1?")


def langchain(tools: list[Function], url: str) -> tuple[Run, Run]:
    """The same for an agent of LangChain, a graph of LangGraph."""
    from langchain.agents import create_agent
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(model="stub", base_url=url, api_key="none")
    plain = create_agent(model, tools=tools)
    ours = library_agent(Toolset("memory:", tools=tools), model)
    given = {"messages": "4 times 1?"}
    return lambda: plain.ainvoke(given), lambda: ours.ainvoke(given)


FRAMEWORKS = {"pydantic_ai": pydantic_ai, "agents": openai_agents, "langchain": langchain}


async def seconds(run: Run) -> float:
    """CPU time of this process for one run."""
    began = time.process_time()
    await run()
    return time.process_time() - began


async def measure(plain: Run, ours: Run, *, rounds: int, runs: int) -> str:
    """A line of the table."""
    for _ in range(5):
        await plain()
        await ours()
    bare, added = [], []
    for _ in range(rounds):
        pairs = [(await seconds(plain), await seconds(ours)) for _ in range(runs)]
        bare.append(statistics.median(one for one, _ in pairs) * 1000)
        added.append(statistics.median(two - one for one, two in pairs) * 1000)
    middle, more = statistics.median(bare), statistics.median(added)
    spread = f"{min(added):+.2f} to {max(added):+.2f}"
    return f"{middle:.2f} | {middle + more:.2f} | {more:+.2f} | {spread}"


async def compare(count: int, rounds: int, runs: int) -> None:
    """Measure each framework that is installed here."""

    def answer(request: Any) -> Reply | str:
        return "It is 4." if request.body["messages"][-1]["role"] == "tool" else CALL

    with FaultyServer(answer) as server:
        for package in filter(find_spec, FRAMEWORKS):
            plain, ours = FRAMEWORKS[package](functions(count), server.base_url)
            line = await measure(plain, ours, rounds=rounds, runs=runs)
            print(f"| {package} | {count} | {line} |")


def main() -> None:
    """Measure and print lines of a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--runs", type=int, default=30)
    options = parser.parse_args()
    asyncio.run(compare(options.tools, options.rounds, options.runs))
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    print(f"(load of the machine: {load})")


if __name__ == "__main__":
    main()
