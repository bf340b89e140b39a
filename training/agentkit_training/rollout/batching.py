"""Answering the requests of many runs together, with the tokens that were read and written."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from agentkit.errors import ModelResponseError, ModelStatusError, UsageError
from agentkit.messages import AssistantMessage, JsonObject, ProviderItem, TokenIds, Usage
from agentkit.models.base import ModelRequest, ModelResponse, ModelSettings
from agentkit_training.generation.decoding import Completion, Prompt
from agentkit_training.rollout.rendering import PROTOCOL, Rendered, Renderer, WrittenAnswer
from agentkit_training.rollout.writing import Writer


@dataclass(frozen=True, kw_only=True, slots=True)
class GenerationCounts:
    """What a model has done since it was made.

    Attributes:
        answers: Answers written.
        prompt_tokens: Tokens of their prompts.
        completion_tokens: Tokens written.
        batches: How often the writer was asked.
        retokenised: Later turns whose earlier answers had to be tokenised again, because the
            template rewrites them; they are trained as samples of their own.
        too_long: Requests refused because their prompt leaves no room for an answer.
    """

    answers: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    batches: int = 0
    retokenised: int = 0
    too_long: int = 0


@dataclass(kw_only=True)
class _Waiting:
    prompt: Prompt
    rendered: Rendered
    future: asyncio.Future[Completion]


@dataclass(kw_only=True)
class _Tally:
    answers: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    batches: int = 0
    retokenised: int = 0
    too_long: int = 0


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
        self._tally = _Tally()
        self._writing: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        """The model's name."""
        return self._speaker.name

    @property
    def counts(self) -> GenerationCounts:
        """What was generated so far."""
        return GenerationCounts(**vars(self._tally))

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
            self._tally.too_long += 1
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
            while self._waiting and self._is_time():
                batch = self._waiting[: self._batch_size]
                del self._waiting[: self._batch_size]
                await self._answer(batch)
        finally:
            self._writing = None
            self._consider()

    def _is_time(self) -> bool:
        return len(self._waiting) >= min(self._expected, self._batch_size)

    async def _answer(self, batch: Sequence[_Waiting]) -> None:
        prompts = [one.prompt for one in batch]
        try:
            completions = await self._written(prompts)
        except Exception as error:  # noqa: BLE001 - each run that waits is told
            for one in batch:
                if not one.future.done():
                    one.future.set_exception(error)
            return
        self._tally.batches += 1
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
        tally = self._tally
        tally.answers += 1
        tally.prompt_tokens += len(prompt)
        tally.completion_tokens += len(completion.ids)
        tally.retokenised += waiting.rendered.is_retokenised
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
