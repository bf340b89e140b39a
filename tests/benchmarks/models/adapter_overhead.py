"""What an adapter costs beside the SDK that it uses: CPU milliseconds a request.

For ``openai:`` also what it costs beside ``openai-compatible:``, after 20 and after 200 messages.

Both ask the same server for the same answer over the same client, in turns; the server runs in a
thread of its own, and only the time of the asking thread counts. The bare request is written as a
user of the SDK would write it, its tools encoded once. Figures are medians over requests, and of
those the median over rounds. The last column compares the least that a request of each kind took in
all rounds: on a machine that others use as well, it says most about the code.

    python tests/benchmarks/models/adapter_overhead.py [--only ADAPTER] [--rounds N] [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import time
import warnings
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from functools import partial
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import anthropic
import openai

from agentkit.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from agentkit.models import ChatModel, ModelRequest, OpenAICompatibleModel, StreamingChatModel
from agentkit.models.anthropic import anthropic_model
from agentkit.models.anthropic_messages import AnthropicCodec
from agentkit.models.chat_completions import encode_fields
from agentkit.models.litellm import litellm_model
from agentkit.models.openai import ResponsesCodec, openai_model, openai_responses_model
from agentkit.tools import ToolDefinition

sys.path.append(str(Path(__file__).parents[2]))  # for tests/support

from support.model_server import ProviderServer
from support.server_steps import Reply

TOOLS = tuple(
    ToolDefinition.from_schema(
        f"tool.{index}",
        f"Does the thing number {index} with a number and some words, and says how it went.",
        {
            "type": "object",
            "properties": {
                "n": {"type": "integer", "description": "How often."},
                "words": {"type": "array", "items": {"type": "string"}},
                "kind": {"type": "string", "enum": ["quick", "thorough"]},
            },
            "required": ["n"],
        },
    )
    for index in range(20)
)
REQUEST = ModelRequest(messages=(UserMessage(text="What is 4 squared?"),), tools=TOOLS)
CALL = ToolCall(call_id="c1", name="tool_3", arguments={"n": 4, "words": ["a", "b"]})
WHOLE = Reply(text="I will look.", tool_calls=[CALL])
STREAMED = Reply(text="word " * 50, tool_calls=[CALL])

Ask = Callable[[], Awaitable[object]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    """One adapter beside its SDK.

    Attributes:
        name: The adapter, and how it was asked.
        bare: One request through the SDK alone.
        adapter: The same through the adapter.
    """

    name: str
    bare: Ask
    adapter: Ask


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """CPU milliseconds a request.

    Attributes:
        name: The adapter, and how it was asked.
        bare: Through the SDK alone.
        adapter: Through the adapter.
        added: What the adapter adds: median of the rounds.
        added_least: The least of the rounds.
        added_most: The most of the rounds.
        bare_floor: The least of all requests through the SDK alone.
        adapter_floor: The least of all requests through the adapter.
    """

    name: str
    bare: float
    adapter: float
    added: float
    added_least: float
    added_most: float
    bare_floor: float
    adapter_floor: float


async def drained(stream: Any) -> int:
    """Read a stream to its end."""
    count = 0
    async for _ in stream:
        count += 1
    return count


def pairs_of(name: str, model: ChatModel, create: Callable[..., Any], fields: Any) -> list[Pair]:
    """A pair for whole answers and one for streams."""
    assert isinstance(model, StreamingChatModel)
    counted = name in {"openai", "litellm"}  # others count tokens without being asked
    asked = {"stream": True} | ({"stream_options": {"include_usage": True}} if counted else {})

    async def bare_stream() -> int:
        return await drained(await create(**fields, **asked))

    return [
        Pair(
            name=f"{name}, whole",
            bare=lambda: create(**fields),
            adapter=lambda: model.complete(REQUEST),
        ),
        Pair(
            name=f"{name}, stream of 57 events",
            bare=bare_stream,
            adapter=lambda: drained(model.stream(REQUEST)),
        ),
    ]


def conversation(messages: int) -> ModelRequest:
    """A request after that many messages: questions, calls, results and answers."""
    said: list[Any] = []
    for index in range(messages // 4):
        call = ToolCall(call_id=f"c{index}", name="tool.3", arguments={"n": index, "words": ["a"]})
        said += [
            UserMessage(text=f"What is {index} squared, and why do you ask me that so often?"),
            AssistantMessage(tool_calls=(call,)),
            ToolMessage(call_id=call.call_id, name=call.name, text=str(index * index)),
            AssistantMessage(text=f"It is {index * index}."),
        ]
    return ModelRequest(messages=(*said, UserMessage(text="And now?")), tools=TOOLS)


def beside_compatible(client: openai.AsyncOpenAI) -> list[Pair]:
    """``openai:`` by name and over a client, each beside ``openai-compatible:``."""
    compatible = OpenAICompatibleModel("gpt-4o-mini", base_url=str(client.base_url))
    httpx_only = OpenAICompatibleModel(
        "gpt-4o-mini", base_url=str(client.base_url), transport="httpx"
    )
    over_client = openai_model("gpt-4o-mini", client=client)
    by_name = openai_model("gpt-4o-mini")
    asked = {count: conversation(count) for count in (20, 200)}
    return [
        Pair(
            name=f"openai:{how}, {count} messages",
            bare=partial(beside.complete, request),
            adapter=partial(model.complete, request),
        )
        for how, model, beside in (
            (" by name", by_name, compatible),
            (" client", over_client, httpx_only),
        )
        for count, request in asked.items()
    ]


def opened(server: ProviderServer) -> list[Pair]:
    """Every adapter at a server, each beside its SDK."""
    url = server.base_url
    os.environ |= {"OPENAI_API_KEY": "k", "OPENAI_API_BASE": url, "OPENAI_BASE_URL": url}
    oai = openai.AsyncOpenAI(base_url=server.base_url, api_key="k", max_retries=0)
    ant = anthropic.AsyncAnthropic(base_url=server.root_url, api_key="k", max_retries=0)
    chat, _ = encode_fields(REQUEST, "gpt-4o-mini", max_tokens_field="max_tokens")
    responses = {"model": "m", "store": False, **ResponsesCodec(REQUEST).encode()}
    messages = AnthropicCodec(REQUEST).encode("m")
    pairs = [
        *beside_compatible(oai),
        *pairs_of(
            "openai", openai_model("gpt-4o-mini", client=oai), oai.chat.completions.create, chat
        ),
        *pairs_of(
            "openai-responses",
            openai_responses_model("m", client=oai),
            oai.responses.create,
            responses,
        ),
        *pairs_of("anthropic", anthropic_model("m", client=ant), ant.messages.create, messages),
    ]
    if find_spec("litellm") is None:
        return pairs
    model = litellm_model("openai/gpt-4o-mini")
    import litellm

    fields = {**chat, "model": "openai/gpt-4o-mini", "num_retries": 0, "max_retries": 0}
    return [*pairs, *pairs_of("litellm", model, litellm.acompletion, fields)]


async def seconds(ask: Ask) -> float:
    """CPU time of this thread for one request."""
    began = time.thread_time()
    await ask()
    return time.thread_time() - began


async def measure(pair: Pair, *, rounds: int, requests: int) -> Cost:
    """Ask in turns."""
    for _ in range(5):
        await pair.bare()
        await pair.adapter()
    bare, adapter, added, every = [], [], [], []
    for _ in range(rounds):
        ones = [(await seconds(pair.bare), await seconds(pair.adapter)) for _ in range(requests)]
        bare.append(statistics.median(one for one, _ in ones) * 1000)
        adapter.append(statistics.median(one for _, one in ones) * 1000)
        added.append(adapter[-1] - bare[-1])
        every += ones
    return Cost(
        name=pair.name,
        bare=statistics.median(bare),
        adapter=statistics.median(adapter),
        added=statistics.median(added),
        added_least=min(added),
        added_most=max(added),
        bare_floor=min(one for one, _ in every) * 1000,
        adapter_floor=min(one for _, one in every) * 1000,
    )


async def compare(only: str, rounds: int, requests: int) -> list[Cost]:
    """All pairs, one after the other."""

    def answer(request: Any) -> Reply:
        return STREAMED if request.body.get("stream") else WHOLE

    with ProviderServer(answer) as server:
        costs = []
        for pair in (one for one in opened(server) if one.name.startswith(only)):
            costs.append(await measure(pair, rounds=rounds, requests=requests))
            server.requests.clear()
        return costs


def main() -> None:
    """Measure, print a table, and write JSON on request."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--requests", type=int, default=60)
    parser.add_argument("--only", default="", help="adapters whose name begins so")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    os.environ["no_proxy"] = "127.0.0.1"
    costs = asyncio.run(compare(options.only, options.rounds, options.requests))
    known = ("openai", "anthropic", "litellm")
    print(", ".join(f"{one} {metadata.version(one)}" for one in known if find_spec(one)))
    print(
        f"{'CPU ms a request, 20 tools':34} {'bare':>7} {'adapter':>8} {'added (least..most)':>22}"
        f" {'of the least':>22}"
    )
    for cost in costs:
        spread = f"{cost.added:.2f} ({cost.added_least:.2f}..{cost.added_most:.2f})"
        floor = cost.adapter_floor - cost.bare_floor
        floors = f"{cost.bare_floor:.2f} -> {cost.adapter_floor:.2f} ({floor:+.2f})"
        print(f"{cost.name:34} {cost.bare:7.2f} {cost.adapter:8.2f} {spread:>22} {floors:>22}")
    if options.json:
        options.json.write_text(json.dumps([asdict(cost) for cost in costs], indent=1))


if __name__ == "__main__":
    main()
