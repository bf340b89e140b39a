"""``PolicyModel``: the policy as a ``ChatModel``, so that the runtime's own agent drives it.

Requests of many runs are answered together. Every answer carries the tokens that were read and
written, with log-probabilities.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol, TypeAlias, get_args

from agentkit.errors import ModelResponseError, ModelStatusError, UsageError
from agentkit.messages import (
    AssistantMessage,
    JsonObject,
    Message,
    ProviderItem,
    SystemMessage,
    TokenIds,
    ToolCall,
    Usage,
)
from agentkit.models.base import ChatModel, ModelRequest, ModelResponse, ModelSettings
from agentkit.models.prompt_format import PromptFormat, parse_calls
from agentkit.models.prompted import PromptedModel
from agentkit.models.wire import WireNames
from agentkit.tools.definition import ToolDefinition
from agentkit_training.generation.decoding import Completion, Prompt, complete
from agentkit_training.policy.policy import Policy
from agentkit_training.rollout.rendering import PROTOCOL, Rendered, Renderer, WrittenAnswer


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


@dataclass(kw_only=True)
class _Waiting:
    prompt: Prompt
    rendered: Rendered
    future: asyncio.Future[Completion]


class BatchingModel:
    """A chat model that gathers the requests that wait at the same time.

    It writes text and reads no calls in it; see ``PolicyModel``.

    Args:
        renderer: Writes conversations as tokens.
        writer: Writes the answers.
        max_tokens: Longest answer, unless a request's settings say otherwise.
        batch_size: Most answers written at the same time.
    """

    def __init__(
        self, renderer: Renderer, writer: Writer, *, max_tokens: int, batch_size: int
    ) -> None:
        if batch_size < 1:
            raise UsageError(f"batch_size is {batch_size}; give at least 1")
        self._speaker = renderer.speaker
        self._renderer = renderer
        self._writer = writer
        self._max_tokens = max_tokens
        self._batch_size = batch_size
        self._expected = 0
        self._waiting: list[_Waiting] = []
        self._known: dict[str, WrittenAnswer] = {}
        self._made = 0
        self._writing: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        """The model's name."""
        return self._speaker.name

    def expect(self, runs: int) -> None:
        """See ``PolicyModel.expect``."""
        self._expected = runs
        self._consider()

    def forget(self) -> None:
        """See ``PolicyModel.forget``."""
        self._known.clear()

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """Answer one request, together with the others that wait.

        Raises:
            ModelStatusError: The prompt leaves no room for an answer.
        """
        rendered = self._renderer.prompt(request.messages, self._known, tools=request.tools)
        prompt = self._prompt(rendered, request.settings)
        waiting = _Waiting(
            prompt=prompt,
            rendered=rendered,
            future=asyncio.get_running_loop().create_future(),
        )
        self._waiting.append(waiting)
        self._consider()
        completion = await waiting.future
        return self._response(request, waiting, completion)

    def _prompt(self, rendered: Rendered, settings: ModelSettings) -> Prompt:
        wanted = settings.max_tokens or self._max_tokens
        room = self._speaker.context_tokens - len(rendered.ids)
        if room < 1:
            raise ModelStatusError(
                f"the prompt has {len(rendered.ids)} tokens, and {self.name} has room for "
                f"{self._speaker.context_tokens}; offer fewer tools, or leave the task out",
                status=400,
                body="",
                retry_after=None,
            )
        return Prompt(
            ids=rendered.ids,
            max_tokens=min(wanted, room),
            temperature=1.0 if settings.temperature is None else settings.temperature,
            top_p=1.0 if settings.top_p is None else settings.top_p,
            seed=_row_seed(settings.seed or 0, rendered.ids),
        )

    def _consider(self) -> None:
        """Start a batch when everybody who is expected waits."""
        if not self._waiting or self._writing is not None:
            return
        if self._expected and len(self._waiting) < min(self._expected, self._batch_size):
            return
        self._writing = asyncio.ensure_future(self._write())

    async def _write(self) -> None:
        """Answer what waits, batch after batch."""
        try:
            if not self._expected:
                await asyncio.sleep(0)  # runs that are ready to ask do so first
            while self._waiting and len(self._waiting) >= min(self._expected, self._batch_size):
                batch = self._waiting[: self._batch_size]
                del self._waiting[: self._batch_size]
                await self._answer(batch)
        finally:
            self._writing = None
            self._consider()

    async def _answer(self, batch: Sequence[_Waiting]) -> None:
        prompts = [one.prompt for one in batch]
        try:
            completions = await self._written(prompts)
        except Exception as error:  # noqa: BLE001 - each run that waits is told
            for one in batch:
                if not one.future.done():
                    one.future.set_exception(error)
            return
        for one, completion in zip(batch, completions, strict=True):
            if not one.future.done():  # its run was cancelled meanwhile
                one.future.set_result(completion)

    async def _written(self, prompts: Sequence[Prompt]) -> Sequence[Completion]:
        """What the writer gives, if that is an answer to each."""
        completions = await self._writer.write(prompts)
        if len(completions) != len(prompts):
            raise ModelResponseError(
                f"the writer of {self.name} gave {len(completions)} answers to {len(prompts)} "
                "prompts; it must give one to each"
            )
        return completions

    def _response(
        self, request: ModelRequest, waiting: _Waiting, completion: Completion
    ) -> ModelResponse:
        prompt = waiting.prompt.ids
        self._made += 1
        answer = str(self._made)
        self._known[answer] = WrittenAnswer(
            ids=prompt + completion.ids, asked=waiting.rendered.text, is_ended=completion.is_ended
        )
        item: JsonObject = {"answer": answer}
        return ModelResponse(
            message=AssistantMessage(
                text=self._text(completion),
                provider_items=(ProviderItem(protocol=PROTOCOL, data=item),),
            ),
            usage=Usage(
                requests=1, prompt_tokens=len(prompt), completion_tokens=len(completion.ids)
            ),
            finish_reason="stop" if completion.is_ended else "length",
            model=self.name,
            tokens=TokenIds(prompt=prompt, completion=completion.ids, logprobs=completion.logprobs),
        )

    def _text(self, completion: Completion) -> str:
        ids = completion.ids[:-1] if completion.is_ended else completion.ids
        return self._renderer.said(ids)


def _row_seed(seed: int, prompt: Sequence[int]) -> int:
    """A seed of the row's own: equal for equal prompts and attempts, beside whatever rows."""
    text = f"{seed}:{','.join(map(str, prompt))}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big")


ToolsIn: TypeAlias = Literal["prompt", "template"]


class PolicyModel:
    """A chat model that writes with a policy.

    Tools travel in the prompt, exactly as ``LocalModel`` puts them there, so that what is learned
    here holds in the runtime. With ``tools_in="template"`` the chat template of the tokenizer
    writes them, as servers do for models that were trained for tools.

    Args:
        policy: Writes the answers; with a ``writer``, what speaks as its weights do.
        writer: Writes in the place of weights in this process, such as a server; None for those.
        tools_in: Who writes tools, calls and results: ``prompt`` or the tokenizer's ``template``.
        format: How tools and calls are written in a prompt, see ``PromptedModel``.
        constrained: For tools in a prompt, whether it is that of constrained decoding, as
            ``LocalModel`` has it by default. What the policy writes is free all the same.
        max_tokens: Longest answer, unless a request's settings say otherwise.
        batch_size: Most answers written at the same time.

    Raises:
        PolicyError: The tokenizer's template has no place for tools, and is to write them.
        UsageError: There is no writer, and no weights are in this process.

    Example:
        >>> from agentkit import Agent
        >>> from agentkit_training import tiny_policy
        >>> model = PolicyModel(tiny_policy(), max_tokens=4)
        >>> episode = Agent(model).run_sync("Hello!").episode
        >>> len(episode.turns[0].tokens.completion) <= 4
        True
    """

    def __init__(
        self,
        policy: Policy,
        *,
        writer: Writer | None = None,
        tools_in: ToolsIn = "prompt",
        format: PromptFormat = "json",  # noqa: A002 - the word of the field
        constrained: bool = True,
        max_tokens: int = 128,
        batch_size: int = 64,
    ) -> None:
        if tools_in not in get_args(ToolsIn):
            raise UsageError(f"tools_in is {tools_in!r}; use 'prompt' or 'template'")
        if writer is None and not isinstance(policy, Policy):
            raise UsageError(f"the weights of {policy.name} are not in this process; give a writer")
        renderer = Renderer(policy)
        self._engine = BatchingModel(
            renderer,
            writer or PolicyWriter(policy=policy),
            max_tokens=max_tokens,
            batch_size=batch_size,
        )
        if tools_in == "template":
            renderer.require_tools()
        self._outer = told_of_tools(
            self._engine, tools_in=tools_in, format=format, constrained=constrained
        )

    @property
    def name(self) -> str:
        """The policy's name."""
        return self._engine.name

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """Answer one request, together with the others that wait.

        Raises:
            ModelStatusError: The prompt leaves no room for an answer.
        """
        return await self._outer.complete(request)

    def expect(self, runs: int) -> None:
        """Say how many runs are under way, so that the next batch waits for all of them.

        Each run is at any time either waiting for an answer or busy with its tools. A batch is
        written when as many requests wait as there are runs: largest batches, and the same ones in
        each repetition. Without it (0) a batch is written when nothing else can go on.
        """
        self._engine.expect(runs)

    def forget(self) -> None:
        """Drop the tokens of earlier answers; conversations that go on are tokenised again."""
        self._engine.forget()


def told_of_tools(
    inner: ChatModel,
    *,
    tools_in: ToolsIn,
    format: PromptFormat,  # noqa: A002 - the word of the field
    constrained: bool,
) -> ChatModel:
    """A model without tools of its own, with tools in its prompt or in its template."""
    if tools_in == "template":
        return TemplatedModel(inner)
    return PromptedModel(inner, format=format, constrained=constrained and format == "json")
