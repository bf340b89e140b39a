"""``LocalEngine``: a GGUF file as a chat model. Text in, text out; a schema becomes a grammar."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from agentkit.errors import (
    ModelResponseError,
    ModelStatusError,
    ModelTimeoutError,
    UsageError,
)
from agentkit.messages import AssistantMessage, JsonObject, Message, ToolMessage, Usage
from agentkit.models.base import (
    FinishReason,
    ModelEvent,
    ModelRequest,
    ModelResponse,
    TextDelta,
)
from agentkit_local.adapters import open_adapter
from agentkit_local.llama import Chunk, Llama, LoadOptions, check_file
from agentkit_local.threads import checked_threads, default_threads

_FINISH: Mapping[str, FinishReason] = {"stop": "stop", "length": "length"}
_CONTROL = re.compile(
    r"<(?=[|\uff5c][^<>\n]{1,60}[|\uff5c]>|/?(?:s|bos|eos|pad|unk|start_of_turn|end_of_turn)>)"
    r"|\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\])"
)
"""Where a text spells a sign of a chat template: llama.cpp reads them in messages, too."""


class LocalEngine:
    """A language model in this process, computed on the CPU by llama.cpp.

    The file is loaded at the first request, in a thread of the engine's own. Requests wait for
    each other there; the event loop stays free. A cancelled or timed-out request stops after the
    token, or the batch of the prompt, that is being computed.

    The engine knows no tools: wrap it in ``agentkit.models.prompted.PromptedModel``, as
    ``LocalModel`` does. An ``output_schema`` holds the answer to JSON of that shape.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        name: str | None = None,
        adapter: Path | str | None = None,
        adapter_scale: float = 1.0,
        threads: int | None = None,
        context_tokens: int = 4096,
        max_tokens: int = 512,
        verbose: bool = False,
    ) -> None:
        """Prepare to load ``path``.

        Args:
            path: A GGUF file.
            name: The name in records; the file's when omitted. That of an adapter is added.
            adapter: A GGUF file with a LoRA adapter for this model; None for none.
            adapter_scale: How strongly it counts: 1 as it was trained, 0 not at all.
            threads: Threads to compute with; None takes ``default_threads()``.
            context_tokens: Longest prompt and answer together. Each thousand takes about 23 MB
                with SmolLM2-135M.
            max_tokens: Longest answer, unless a request's settings say otherwise.
            verbose: Let llama.cpp report on stderr.

        Raises:
            ModelNotFoundError: There is no such GGUF file, or the adapter is none for it.
            UsageError: ``threads`` is not positive, or ``adapter_scale`` no number.
        """
        self._path = Path(path).expanduser()
        check_file(self._path)
        added = (
            None
            if adapter is None
            else open_adapter(adapter, scale=adapter_scale, model=self._path)
        )
        self._name = (name or self._path.stem) + ("" if added is None else f"+{added.label}")
        self._max_tokens = max_tokens
        self._options = LoadOptions(
            threads=default_threads() if threads is None else checked_threads(threads),
            context_tokens=context_tokens,
            verbose=verbose,
            adapter=added,
        )
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="agentkit-local")
        self._llama: Llama | None = None
        self._is_closed = threading.Event()

    @property
    def name(self) -> str:
        """The model's name, for records."""
        return self._name

    @property
    def threads(self) -> int:
        """Threads that the model computes with."""
        return self._options.threads

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """Answer one request.

        Raises:
            UsageError: The request offers tools, or the engine is closed.
            ModelTimeoutError: ``settings.timeout_seconds`` went by.
            ModelStatusError: llama.cpp refused the request: too long for the context, or a bad
                setting.
            ModelResponseError: The answer is not JSON although a schema was given.
            ModelError: The file could not be loaded.
        """
        self._check(request)
        return self._answer(request, await self._generated(request))

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Yield text as it is computed, then the whole response; errors are those of ``complete``.

        Leaving the iteration early stops the computation.
        """
        self._check(request)
        loop, chunks = asyncio.get_running_loop(), asyncio.Queue[Chunk | None]()

        def show(chunk: Chunk) -> None:
            try:
                loop.call_soon_threadsafe(chunks.put_nowait, chunk)
            except RuntimeError:  # the loop was closed meanwhile, so nobody reads any more
                return

        job = asyncio.create_task(self._generated(request, show))
        job.add_done_callback(lambda _: chunks.put_nowait(None))
        try:
            while (chunk := await chunks.get()) is not None:
                text = _text([chunk])
                if text:
                    yield TextDelta(text=text)
            yield self._answer(request, await job)
        finally:
            job.cancel()

    def _check(self, request: ModelRequest) -> None:
        if request.tools and request.tool_choice != "none":
            raise UsageError(f"{self.name} knows no tools; wrap the engine in PromptedModel")
        if self._is_closed.is_set():
            raise UsageError(f"{self.name} is closed; make a new one")

    def _answer(self, request: ModelRequest, chunks: Sequence[Chunk]) -> ModelResponse:
        response = _response(chunks, self.name)
        if request.output_schema is not None and response.finish_reason == "stop":
            _check_json(response.message.text)
        return response

    async def _generated(
        self, request: ModelRequest, show: Callable[[Chunk], None] | None = None
    ) -> list[Chunk]:
        stop = threading.Event()
        seconds = request.settings.timeout_seconds
        body = _body(request, self._max_tokens)
        job = self._worker.submit(self._generate, body, request.output_schema, stop, show)
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.wrap_future(job)
        except TimeoutError as error:
            raise ModelTimeoutError(
                f"{self.name} did not finish within {seconds} s; allow more time, ask for fewer "
                f"tokens, or offer fewer tools (it computes with {self.threads} threads)"
            ) from error
        finally:
            stop.set()  # without effect when the answer is complete

    def _generate(
        self,
        body: Mapping[str, Any],
        schema: JsonObject | None,
        stop: threading.Event,
        show: Callable[[Chunk], None] | None,
    ) -> list[Chunk]:
        """Runs in the worker thread."""
        if stop.is_set() or self._is_closed.is_set():
            raise UsageError(f"{self.name} was closed, or the request cancelled, before its turn")
        if self._llama is None:
            self._llama = Llama(self._path, self._options)
        if schema is not None:
            body = {**body, "grammar": self._llama.grammar(schema)}
        return self._llama.chat(body, lambda: stop.is_set() or self._is_closed.is_set(), show)

    def close(self) -> None:
        """Stop what is being computed and free the memory. Closing twice is fine."""
        if not self._is_closed.is_set():
            self._is_closed.set()
            self._worker.submit(self._unload).result()
            self._worker.shutdown(cancel_futures=True)

    def _unload(self) -> None:
        if self._llama is not None:
            self._llama.close()
            self._llama = None


def _body(request: ModelRequest, max_tokens: int) -> dict[str, Any]:
    settings = request.settings
    body: dict[str, Any] = {
        "messages": [_message(message) for message in request.messages],
        "max_tokens": settings.max_tokens or max_tokens,
        # A small model follows the question best when it is not sampled.
        "temperature": 0 if settings.temperature is None else settings.temperature,
        "cache_prompt": True,
    }
    choices = {"top_p": settings.top_p, "seed": settings.seed}
    given = {key: value for key, value in choices.items() if value is not None}
    return {**body, **given, **settings.extra}


def _message(message: Message) -> dict[str, str]:
    if isinstance(message, ToolMessage) or (
        isinstance(message, AssistantMessage) and message.tool_calls
    ):
        raise UsageError("a local engine takes text only; wrap it in PromptedModel")
    return {"role": message.role, "content": _CONTROL.sub(r"\g<0> ", message.text)}


def _response(chunks: Sequence[Chunk], model: str) -> ModelResponse:
    for chunk in chunks:
        if "error" in chunk:
            raise _refusal(chunk["error"])
    choices = [choice for chunk in chunks for choice in chunk.get("choices", ())]
    finish = next((c["finish_reason"] for c in choices if c.get("finish_reason")), "unknown")
    usage: Chunk = next((chunk["usage"] for chunk in chunks if chunk.get("usage")), {})
    return ModelResponse(
        message=AssistantMessage(text=_text(chunks)),
        usage=Usage(
            requests=1,
            prompt_tokens=usage.get("prompt_tokens", 0),
            cached_tokens=usage.get("prompt_tokens_details", {}).get("cached_tokens", 0),
            completion_tokens=usage.get("completion_tokens", 0),
        ),
        finish_reason=_FINISH.get(finish, "unknown"),
        model=model,
    )


def _text(chunks: Sequence[Chunk]) -> str:
    choices = (choice for chunk in chunks for choice in chunk.get("choices", ()))
    return "".join(choice["delta"].get("content") or "" for choice in choices)


def _refusal(error: Mapping[str, Any]) -> ModelStatusError:
    message = str(error.get("message", error))
    if error.get("type") == "exceed_context_size_error":
        message = (
            f"the request has {error.get('n_prompt_tokens')} tokens and the model was loaded with "
            f"room for {error.get('n_ctx')}; offer fewer tools, or load it with a larger "
            "context_tokens"
        )
    status = error.get("code")
    return ModelStatusError(
        message,
        status=status if isinstance(status, int) else 500,
        body=json.dumps(error)[:500],
        retry_after=None,
    )


def _check_json(text: str) -> None:
    """llama.cpp goes on without a grammar that it cannot compile; that must not go unseen."""
    try:
        json.loads(text)
    except ValueError as error:
        raise ModelResponseError(
            f"the answer is not JSON although a schema was given, so llama.cpp did not use it: "
            f"{text[:200]!r}. Its reason is on stderr; simplify the schema"
        ) from error
