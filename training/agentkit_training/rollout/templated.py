"""``TemplatedModel``: tools for a model whose chat template has a place for them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from agentkit.messages import AssistantMessage, Message, SystemMessage, ToolCall
from agentkit.models.base import ChatModel, ModelRequest, ModelResponse
from agentkit.models.prompt_format import parse_calls
from agentkit.models.wire import WireNames
from agentkit.tools.definition import ToolDefinition
from agentkit_training.generation.decoding import Completion, Prompt, complete
from agentkit_training.policy.policy import Policy

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


class Speaker(Protocol):
    """What must be known of a model to write prompts for it and to read its answers.

    A ``Policy`` is one; so is anything that knows the tokenizer of weights that are elsewhere.
    """

    @property
    def name(self) -> str:
        """For records."""
        ...

    @property
    def tokenizer(self) -> PreTrainedTokenizerBase:
        """Its tokenizer, with a chat template."""
        ...

    @property
    def end_ids(self) -> frozenset[int]:
        """The tokens that end an answer."""
        ...

    @property
    def context_tokens(self) -> int:
        """The longest prompt and answer together, in tokens."""
        ...


class Writer(Protocol):
    """Writes answers, token by token."""

    async def write(self, prompts: Sequence[Prompt]) -> Sequence[Completion]:
        """An answer to each prompt, in order."""
        ...


@dataclass(frozen=True, kw_only=True)
class PolicyWriter:
    """Writes with the weights of this process, in one thread of its own.

    One, since the C library keeps memory that was freed for the thread that freed it: with batches
    in whichever thread is idle, each of these would keep the room of the largest batch.

    Attributes:
        policy: The weights.
    """

    policy: Policy
    _thread: ThreadPoolExecutor = field(
        init=False, repr=False, compare=False, default_factory=lambda: ThreadPoolExecutor(1)
    )

    async def write(self, prompts: Sequence[Prompt]) -> Sequence[Completion]:
        """See ``generation.decoding.complete``."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, complete, self.policy, prompts)


class TemplatedModel:
    """Leaves tools, calls and results to the template, and reads the answer back into calls.

    It is to templates what ``PromptedModel`` is to prompts. The model sees what it would see
    behind a server: names that servers accept, and one system message. A template can not demand
    that a tool is called, so ``tool_choice="required"`` asks for no more than ``"auto"`` does.

    Args:
        inner: Gets the tools with each request and answers in text.
    """

    def __init__(self, inner: ChatModel) -> None:
        self.inner = inner

    @property
    def name(self) -> str:
        """The name of the wrapped model."""
        return self.inner.name

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """Answer one request; errors are those of the wrapped model."""
        tools = () if request.tool_choice == "none" else request.tools
        asked = replace(request, messages=tuple(_spoken(request)), tools=tools)
        response = await self.inner.complete(asked)
        return _understood(request, response) if tools else response


def _spoken(request: ModelRequest) -> Iterator[Message]:
    """The conversation with one system message, and with proposals shown again as calls."""
    instructions = [one.text for one in request.messages if isinstance(one, SystemMessage)]
    if request.output_schema is not None:
        schema = json.dumps(request.output_schema, ensure_ascii=False)
        instructions.append(f"An answer without a call is JSON that matches this schema: {schema}")
    if instructions:
        yield SystemMessage(text="\n\n".join(instructions))
    for message in request.messages:
        if isinstance(message, AssistantMessage) and not message.tool_calls:
            shown = parse_calls(message.text)  # self-refinement shows a proposal as text
            yield replace(message, text=shown.text, tool_calls=shown.calls)
        elif not isinstance(message, SystemMessage):
            yield message


def _understood(request: ModelRequest, response: ModelResponse) -> ModelResponse:
    made = sum(len(m.tool_calls) for m in request.messages if isinstance(m, AssistantMessage))
    parsed = parse_calls(response.message.text, request.tools, first_id=made + 1)
    if not parsed.calls:
        return response
    calls = tuple(_named(parsed.calls, request.tools))
    message = replace(response.message, text=parsed.text, tool_calls=calls)
    return replace(response, message=message, finish_reason="tool_calls")


def _named(calls: Sequence[ToolCall], tools: Sequence[ToolDefinition]) -> Iterator[ToolCall]:
    """Calls with the names of the library, where the model saw those that servers accept."""
    names = WireNames(tool.name for tool in tools)
    for call in calls:
        yield replace(call, name=names.decode(call.name))
