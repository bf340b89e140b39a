"""The runtimes that ``overhead.py`` compares; each runs in the environment that its ``venv`` names.

Standard library only, but for the runtime. Every tool is sent with every request, as the peers do.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any, ClassVar

Tools = list[Callable[..., Any]]


class Adapter:
    """One runtime.

    Attributes:
        venv: The environment that it needs; None for this one.
        distributions: Whose versions are reported; the first one and what it requires is sized.
        imports: The statement that imports everything that a run needs.
        streams: Whether ``stream`` is there.
        note: Stands behind the version in the table.
    """

    venv: ClassVar[str | None] = None
    distributions: ClassVar[tuple[str, ...]]
    imports: ClassVar[str]
    streams: ClassVar[bool] = True
    note: ClassVar[str] = ""

    def __init__(self, base_url: str, tools: Tools) -> None:
        """One reusable agent over plain, typed, documented functions."""
        raise NotImplementedError

    async def run(self, question: str) -> str:
        """One run, from the question to the final text."""
        raise NotImplementedError

    def stream(self, question: str) -> AsyncIterator[str]:
        """The same as text deltas."""
        raise NotImplementedError


class Agentkit(Adapter):
    """agentkit over its OpenAI-compatible adapter."""

    distributions = ("agentkit-evolve", "aiohttp", "httpx")
    imports = (
        "from agentkit import Agent, tool; "
        "from agentkit.models.openai_compatible import OpenAICompatibleModel"
    )

    def __init__(self, base_url: str, tools: Tools) -> None:
        from agentkit import Agent
        from agentkit.models.openai_compatible import OpenAICompatibleModel

        model = OpenAICompatibleModel("gpt-4o-mini", base_url=base_url, api_key="x")
        self._agent = Agent(model, tools=tools, instructions="Be brief.", retriever=None)

    async def run(self, question: str) -> str:
        return str((await self._agent.run(question)).output)

    async def stream(self, question: str) -> AsyncIterator[str]:
        from agentkit.models.base import TextDelta

        async for event in self._agent.stream(question):
            if isinstance(event, TextDelta):
                yield event.text


class AgentkitBot(Agentkit):
    """The same agent with what a bot adds: deps, two guardrails and a history processor."""

    streams = False
    note = ", as a bot"

    def __init__(self, base_url: str, tools: Tools) -> None:
        from agentkit import Agent, KeepLastTurns, guardrail
        from agentkit.models.openai_compatible import OpenAICompatibleModel

        @guardrail("input")
        def request_is_short(ctx: Any, request: str) -> None:
            assert ctx.deps == {"user": "ada"}
            assert len(request) < 1_000

        @guardrail("output")
        def answer_is_short(_: Any, answer: str) -> None:
            assert len(answer) < 1_000

        self._agent = Agent(
            OpenAICompatibleModel("gpt-4o-mini", base_url=base_url, api_key="x"),
            tools=tools,
            deps_type=dict,
            instructions=["Be brief.", lambda ctx: f"You talk to {ctx.deps['user']}."],
            guardrails=[request_is_short, answer_is_short],
            history_processors=[KeepLastTurns(8)],
            retriever=None,
        )

    async def run(self, question: str) -> str:
        return str((await self._agent.run(question, deps={"user": "ada"})).output)


class PydanticAi(Adapter):
    """pydantic-ai over its OpenAI adapter."""

    venv = "pydantic_ai"
    distributions = ("pydantic-ai-slim", "openai")
    imports = "from pydantic_ai import Agent; from pydantic_ai.models.openai import OpenAIChatModel"

    def __init__(self, base_url: str, tools: Tools) -> None:
        from pydantic_ai import Agent
        from pydantic_ai.models.openai import OpenAIChatModel
        from pydantic_ai.providers.openai import OpenAIProvider

        provider = OpenAIProvider(base_url=base_url, api_key="x")
        model = OpenAIChatModel("gpt-4o-mini", provider=provider)
        self._agent = Agent(model, tools=tools, system_prompt="Be brief.")

    async def run(self, question: str) -> str:
        return str((await self._agent.run(question)).output)

    async def stream(self, question: str) -> AsyncIterator[str]:
        async with self._agent.run_stream(question) as response:
            async for delta in response.stream_text(delta=True, debounce_by=None):
                yield delta


class OpenAiAgents(Adapter):
    """openai-agents over its chat-completions model, tracing off."""

    venv = "openai_agents"
    distributions = ("openai-agents", "openai")
    imports = "from agents import Agent, Runner"

    def __init__(self, base_url: str, tools: Tools) -> None:
        from agents import (
            Agent,
            OpenAIChatCompletionsModel,
            function_tool,
            set_tracing_disabled as without_tracing,
        )
        from openai import AsyncOpenAI

        without_tracing(disabled=True)
        client = AsyncOpenAI(base_url=base_url, api_key="x")
        self._agent: Any = Agent(
            name="agent",
            instructions="Be brief.",
            model=OpenAIChatCompletionsModel("gpt-4o-mini", openai_client=client),
            tools=[function_tool(tool) for tool in tools],
        )

    async def run(self, question: str) -> str:
        from agents import Runner

        return str((await Runner.run(self._agent, question)).final_output)

    async def stream(self, question: str) -> AsyncIterator[str]:
        from agents import Runner

        async for event in Runner.run_streamed(self._agent, question).stream_events():
            data = getattr(event, "data", None)
            if getattr(data, "type", "") == "response.output_text.delta":
                yield data.delta


class Raw(Adapter):
    """A floor: a hand-written loop that sends schemas made once."""

    streams = False

    def __init__(self, base_url: str, tools: Tools) -> None:
        self.url = f"{base_url}/chat/completions"
        self.functions = {tool.__name__: tool for tool in tools}
        self.tools = [self._schema(tool) for tool in tools]

    def _schema(self, function: Callable[..., Any]) -> dict[str, Any]:
        """What is sent for one of the benchmark's tools, whose parameters are all alike."""
        kinds = {"city": "string", "days": "integer", "unit": "string", "detailed": "boolean"}
        properties = {name: {"type": kind, "description": "Text."} for name, kind in kinds.items()}
        parameters = {"type": "object", "properties": properties, "required": ["city", "days"]}
        record = {"description": function.__doc__, "parameters": parameters}
        return {"type": "function", "function": {"name": function.__name__, **record}}

    async def run(self, question: str) -> str:
        messages: list[dict[str, Any]] = [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": question},
        ]
        while True:
            message = (await self.answer(messages))["choices"][0]["message"]
            if not message.get("tool_calls"):
                return str(message["content"])
            messages.append(message)
            for call in message["tool_calls"]:
                asked = call["function"]
                value = self.functions[asked["name"]](**json.loads(asked["arguments"]))
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": value})

    async def answer(self, messages: list[dict[str, Any]]) -> dict[str, Any]:
        """One request."""
        raise NotImplementedError


class RawHttpx(Raw):
    """On httpx."""

    distributions = ("httpx",)
    imports = "import httpx"

    def __init__(self, base_url: str, tools: Tools) -> None:
        import httpx

        super().__init__(base_url, tools)
        limits = httpx.Limits(max_connections=1000, max_keepalive_connections=100)
        self._client = httpx.AsyncClient(timeout=60, limits=limits)

    async def answer(self, messages: list[dict[str, Any]]) -> dict[str, Any]:
        body = {"model": "gpt-4o-mini", "messages": messages, "tools": self.tools}
        return dict((await self._client.post(self.url, json=body)).json())


class RawAiohttp(Raw):
    """On aiohttp, with the serialised tools spliced into each request."""

    distributions = ("aiohttp",)
    imports = "import aiohttp"

    def __init__(self, base_url: str, tools: Tools) -> None:
        import aiohttp

        super().__init__(base_url, tools)
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        self._sent = json.dumps(self.tools).encode()

    async def answer(self, messages: list[dict[str, Any]]) -> dict[str, Any]:
        parts = (json.dumps(messages).encode(), self._sent)
        body = b'{"model":"gpt-4o-mini","messages":%s,"tools":%s}' % parts
        headers = {"Content-Type": "application/json"}
        async with self._session.post(self.url, data=body, headers=headers) as response:
            return dict(json.loads(await response.read()))


ADAPTERS: dict[str, type[Adapter]] = {
    "agentkit_runtime": Agentkit,
    "agentkit_bot": AgentkitBot,
    "raw_httpx": RawHttpx,
    "raw_aiohttp": RawAiohttp,
    "pydantic_ai_peer": PydanticAi,
    "openai_agents_peer": OpenAiAgents,
}
