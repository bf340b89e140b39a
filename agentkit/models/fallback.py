"""``FallbackModel``: the next model answers where one fails or refuses."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence, Set as AbstractSet
from dataclasses import replace

from agentkit.errors import ModelError, UsageError
from agentkit.messages import Usage
from agentkit.models.base import (
    ChatModel,
    ModelEvent,
    ModelRequest,
    ModelResponse,
    StreamingChatModel,
    TextDelta,
    accepted_media,
    resolve_model,
)


class FallbackModel:
    """Asks models in order until one answers.

    A model is passed over when it raises one of ``on_errors`` (after its own retries), or refuses,
    which is the finish reason ``content_filter``; the last one's refusal stands. What passed-over
    answers cost is added to the answer's usage. A stream is restarted only as long as it has
    produced nothing.

    Args:
        models: Models or their names, the first one first.
        on_errors: Which errors pass a model over.

    Example:
        >>> import asyncio
        >>> from agentkit.errors import ModelConnectionError
        >>> from agentkit.testing import FunctionModel, ScriptedModel
        >>> def away(request):
        ...     raise ModelConnectionError("no route")
        >>> model = FallbackModel(FunctionModel(away), ScriptedModel(["Hello."]))
        >>> asyncio.run(model.complete(ModelRequest(messages=()))).message.text
        'Hello.'
    """

    def __init__(
        self,
        *models: ChatModel | str,
        on_errors: tuple[type[ModelError], ...] = (ModelError,),
    ) -> None:
        if not models:
            raise UsageError("a FallbackModel needs at least one model")
        self.models: Sequence[ChatModel] = tuple(map(resolve_model, models))
        self._on_errors = on_errors

    @property
    def name(self) -> str:
        """The name of the first model."""
        return self.models[0].name

    @property
    def reports_cost(self) -> bool:
        """Whether each of the models states what answers cost."""
        return all(getattr(model, "reports_cost", False) for model in self.models)

    @property
    def accepts(self) -> AbstractSet[str]:
        """What all of the models accept beside text."""
        first, *others = map(accepted_media, self.models)
        return frozenset(first).intersection(*others)

    async def close(self) -> None:
        """Close the connections of every model."""
        for model in self.models:
            close = getattr(model, "close", None)
            if close is not None:
                await close()

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """The first answer that is neither an error nor a refusal.

        Raises:
            ModelError: What the last model raised.
        """
        *_, answer = [event async for event in self._answered(request, streams=False)]
        assert isinstance(answer, ModelResponse)
        return answer

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """The same, its text as it arrives where the model streams."""
        return self._answered(request, streams=True)

    async def _answered(self, request: ModelRequest, *, streams: bool) -> AsyncIterator[ModelEvent]:
        spent = Usage()
        for left, model in self._in_order():
            may_pass = left > 0
            try:
                async for event in _events(model, request, streams=streams):
                    if isinstance(event, ModelResponse):
                        spent += event.usage
                        if may_pass and _refuses(event):
                            break
                        yield replace(event, usage=spent)
                        return
                    may_pass = False
                    yield event
            except self._on_errors:
                if not may_pass:
                    raise

    def _in_order(self) -> Iterator[tuple[int, ChatModel]]:
        """Each model, and how many are left after it; one may stand there twice."""
        return zip(reversed(range(len(self.models))), self.models, strict=True)


def _refuses(response: ModelResponse) -> bool:
    return response.finish_reason == "content_filter"


async def _events(
    model: ChatModel, request: ModelRequest, *, streams: bool
) -> AsyncIterator[ModelEvent]:
    if streams and isinstance(model, StreamingChatModel):
        async for event in model.stream(request):
            yield event
        return
    response = await model.complete(request)
    if response.finish_reason != "content_filter" and response.message.text:
        yield TextDelta(text=response.message.text)
    yield response
