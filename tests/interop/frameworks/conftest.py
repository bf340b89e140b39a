"""One way to drive each framework, so that one set of tests holds for all of them.

`make test-interop` runs this folder in an environment of each framework; where none is installed,
what needs one is not collected, and the tests of the shared core run alone.
"""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import pytest
from support.model_server import FaultyServer

from agentkit import Library, tool
from agentkit.interop import Toolset
from agentkit.library import open_store
from agentkit.messages import ToolCall

HOSTS = {
    "pydantic_ai": "pydantic_ai",
    "openai_agents": "agents",
    "langchain": "langchain",
    "langchain_sync": "langchain",
}
INSTALLED = [name for name, package in HOSTS.items() if importlib.util.find_spec(package)]


@dataclass(kw_only=True)
class Ended:
    """What a framework's run came to.

    Attributes:
        output: Its answer.
        error: What it raised.
        waits: Names of the calls that wait for a person.
        decide: Goes on with all of them approved, or refused.
    """

    output: Any = None
    error: BaseException | None = None
    waits: list[str] = field(default_factory=list)
    decide: Callable[..., Awaitable[Ended]] | None = None


class PydanticAIHost:
    """pydantic-ai, driven by its own agent."""

    def __init__(self, toolset: Toolset, server: FaultyServer) -> None:
        from openai import AsyncOpenAI
        from pydantic_ai import Agent, DeferredToolRequests
        from pydantic_ai.models.openai import OpenAIChatModel
        from pydantic_ai.providers.openai import OpenAIProvider

        from agentkit.interop import library_capability

        self.client = AsyncOpenAI(base_url=server.base_url, api_key="none", max_retries=0)
        provider = OpenAIProvider(openai_client=self.client)
        self.agent = Agent(
            OpenAIChatModel("stub", provider=provider),
            output_type=[str, DeferredToolRequests],
            capabilities=[library_capability(toolset)],
        )

    async def close(self) -> None:
        await self.client.close()

    async def run(self, request: str, *, stream: bool = False) -> Ended:
        try:
            if stream:
                async with self.agent.run_stream(request) as streamed:
                    output = [part async for part in streamed.stream_text()][-1]
                return Ended(output=output)
            return self._ended(await self.agent.run(request))
        except Exception as error:  # noqa: BLE001 - handed to the test
            return Ended(error=error)

    def _ended(self, result: Any) -> Ended:
        from pydantic_ai import DeferredToolRequests, DeferredToolResults, ToolDenied

        if not isinstance(result.output, DeferredToolRequests):
            return Ended(output=result.output)
        waits = result.output.approvals

        async def decide(*, approved: bool) -> Ended:
            word = True if approved else ToolDenied("not today")
            decisions = DeferredToolResults(approvals={one.tool_call_id: word for one in waits})
            before = result.all_messages()
            return self._ended(
                await self.agent.run(message_history=before, deferred_tool_results=decisions)
            )

        return Ended(waits=[one.tool_name for one in waits], decide=decide)


class OpenAIAgentsHost:
    """openai-agents, driven by our runner."""

    def __init__(self, toolset: Toolset, server: FaultyServer) -> None:
        from agents import Agent, OpenAIChatCompletionsModel, set_tracing_disabled
        from openai import AsyncOpenAI

        from agentkit.interop import LibraryRunner

        set_tracing_disabled(disabled=True)
        self.client = AsyncOpenAI(base_url=server.base_url, api_key="none", max_retries=0)
        model = OpenAIChatCompletionsModel("stub", openai_client=self.client)
        self.agent = Agent(name="tester", model=model)
        self.runner = LibraryRunner(toolset)

    async def close(self) -> None:
        await self.client.close()

    async def run(self, request: Any, *, stream: bool = False) -> Ended:
        try:
            if stream:
                async with self.runner.stream(self.agent, request) as result:
                    async for _ in result.stream_events():
                        pass
            else:
                result = await self.runner.run(self.agent, request)
        except Exception as error:  # noqa: BLE001 - handed to the test
            return Ended(error=error)
        waits = result.interruptions

        async def decide(*, approved: bool) -> Ended:
            state = result.to_state()
            for one in waits:
                (state.approve if approved else state.reject)(one)
            return await self.run(state)

        return Ended(
            output=result.final_output,
            waits=[one.tool_name for one in waits],
            decide=decide if waits else None,
        )


def chat_model(server: FaultyServer, **options: Any) -> Any:
    """LangChain's chat model over a server, with connections of its own.

    Those that it would open are shared by all models of one URL in the process: once closed they
    stay so, and a later server may get the port of an earlier one.
    """
    import httpx
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(
        model="stub",
        base_url=server.base_url,
        api_key="none",
        max_retries=0,
        http_client=httpx.Client(),
        http_async_client=httpx.AsyncClient(),
        **options,
    )


async def closed(model: Any) -> None:
    """Close a chat model's connections."""
    await model.root_async_client.close()
    model.root_client.close()


@pytest.fixture
async def langchain_model():
    """Makes the framework's chat model over a server, and closes it afterwards."""
    models = []

    def made(server: FaultyServer) -> Any:
        models.append(chat_model(server))
        return models[-1]

    yield made
    for model in models:
        await closed(model)


class LangChainHost:
    """An agent of LangChain, which is a graph of LangGraph."""

    is_sync = False

    def __init__(self, toolset: Toolset, server: FaultyServer) -> None:
        from langgraph.checkpoint.memory import InMemorySaver

        from agentkit.interop import library_agent

        self.model = chat_model(server, stream_usage=True)
        self.agent = library_agent(toolset, self.model, checkpointer=InMemorySaver())
        self.config = {"configurable": {"thread_id": "one"}}

    async def close(self) -> None:
        await closed(self.model)

    async def run(self, request: Any, *, stream: bool = False) -> Ended:
        from langgraph.types import Command

        given = {"messages": request} if isinstance(request, str) else request
        try:
            if stream:
                mode = {"stream_mode": "messages"}
                async with aclosing(self.agent.astream(given, self.config, **mode)) as parts:
                    texts = [part.content async for part, _ in parts if part.type != "tool"]
                return Ended(output="".join(texts))
            if self.is_sync:
                state = await asyncio.to_thread(self.agent.invoke, given, self.config)
            else:
                state = await self.agent.ainvoke(given, self.config)
        except Exception as error:  # noqa: BLE001 - handed to the test
            return Ended(error=error)
        waits = [one.value["name"] for one in state.get("__interrupt__", ())]

        async def decide(*, approved: bool) -> Ended:
            word = {"type": "approve"} if approved else {"type": "reject", "message": "not today"}
            return await self.run(Command(resume=word))

        output = None if waits else state["messages"][-1].content
        return Ended(output=output, waits=waits, decide=decide if waits else None)


class LangChainSyncHost(LangChainHost):
    """The synchronous half of it, which calls tools in threads."""

    is_sync = True


DRIVERS = {
    "pydantic_ai": PydanticAIHost,
    "openai_agents": OpenAIAgentsHost,
    "langchain": LangChainHost,
    "langchain_sync": LangChainSyncHost,
}


class Hosts:
    """Makes agents of one framework, and closes their clients."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._made: list[Any] = []

    def __call__(self, toolset: Toolset, server: FaultyServer) -> Any:
        self._made.append(DRIVERS[self.name](toolset, server))
        return self._made[-1]

    async def close(self) -> None:
        for host in self._made:
            await host.close()


@pytest.fixture(params=INSTALLED)
async def host(request):
    """Makes the framework's agent over a toolset and a server; once for each framework here."""
    hosts = Hosts(request.param)
    yield hosts
    await hosts.close()


@pytest.fixture
def store():
    """A fresh store in memory."""
    opened = open_store("memory:")
    yield opened
    opened.close()


@tool
def double(x: int) -> int:
    """Twice a number."""
    return 2 * x


@tool(effects=["destructive"])
def wipe(path: str) -> str:
    """Delete everything below a path."""
    return f"wiped {path}"


@pytest.fixture
def library():
    """A tool that computes and one that needs approval."""
    return Library([double, wipe])


@pytest.fixture
def call():
    """Writes a call: its id, its tool, its arguments."""

    def written(call_id: str, name: str, /, **arguments: Any) -> ToolCall:
        return ToolCall(call_id=call_id, name=name, arguments=arguments)

    return written
