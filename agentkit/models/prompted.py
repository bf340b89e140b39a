"""``PromptedModel``: tool calls for a model that has no place for tools.

The tools move into the system prompt, calls and results into the conversation as text, and the
answer is read back into calls. Where the model can hold its answer to a JSON Schema (grammar
decoding), ``constrained=True`` makes every call well-formed.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Iterator, Sequence, Set as AbstractSet
from dataclasses import replace

from agentkit.errors import UsageError
from agentkit.media import Media, pieces, placed
from agentkit.messages import (
    AssistantMessage,
    JsonObject,
    Message,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from agentkit.models.base import (
    ChatModel,
    ModelEvent,
    ModelRequest,
    ModelResponse,
    StreamingChatModel,
    TextDelta,
    accepted_media,
)
from agentkit.models.grammar import answer_schema, call_schema
from agentkit.models.prompt_format import (
    PromptFormat,
    parse_answer,
    parse_calls,
    render_answer,
    render_calls,
    render_result,
    render_system_prompt,
)

_MARK_DIGITS = 20


def mark_for(text: str) -> str:
    """A mark that does not occur in a text, and that its author could not have put there.

    Args:
        text: The material.
    """
    mark = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:_MARK_DIGITS]
    while mark in text:  # out of reach for an author, and yet it costs nothing to make sure
        mark = hashlib.sha256(mark.encode()).hexdigest()[:_MARK_DIGITS]
    return mark


class PromptedModel:
    """Wraps any chat model, so that it is offered tools in its prompt and answers in text.

    The prompt is the same for the same tools in the same order, so that prompt caches hold, and a
    proposal that is shown again (self-refinement) is shown in the format it was written in.

    Example:
        >>> import asyncio
        >>> from agentkit.testing import FunctionModel
        >>> from agentkit.tools.definition import ToolDefinition
        >>> wait = ToolDefinition.from_schema("wait", "Wait.", {"type": "object"})
        >>> model = PromptedModel(FunctionModel(lambda request: "[wait()]"))
        >>> request = ModelRequest(messages=(UserMessage(text="Wait!"),), tools=(wait,))
        >>> asyncio.run(model.complete(request)).message.tool_calls[0].name
        'wait'
    """

    def __init__(
        self,
        inner: ChatModel,
        *,
        format: PromptFormat = "python",  # noqa: A002 - the word of the field
        constrained: bool = False,
        max_calls: int = 8,
    ) -> None:
        """Wrap ``inner``.

        Args:
            inner: The model; it gets messages of users and its own, and no tools.
            format: How tools and calls are written: ToolACE-R's ``python``, or ``json``.
            constrained: Send a JSON Schema of the answer along, for models that hold to one.
            max_calls: Most calls in one constrained answer.

        Raises:
            UsageError: ``constrained`` goes with another format than ``json``.
        """
        if constrained and format != "json":
            raise UsageError(f"constrained answers are JSON; use format='json', not {format!r}")
        self.inner = inner
        self._format: PromptFormat = format
        self._constrained = constrained
        self._max_calls = max_calls
        self._last: tuple[object, str, JsonObject | None] | None = None

    @property
    def name(self) -> str:
        """The name of the wrapped model."""
        return self.inner.name

    @property
    def reports_cost(self) -> bool:
        """Whether the wrapped model states what answers cost."""
        return getattr(self.inner, "reports_cost", False)

    @property
    def accepts(self) -> AbstractSet[str]:
        """What the wrapped model accepts beside text."""
        return accepted_media(self.inner)

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """Answer one request; errors are those of the wrapped model."""
        if not _offers_tools(request):
            return await self.inner.complete(self._without_tools(request))
        return self._understood(request, await self.inner.complete(self._with_tools(request)))

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Yield text as the wrapped model writes it, then the whole response.

        With tools, an answer could be a call, so its text comes in one piece at the end, as all of
        it does when the wrapped model does not stream. Errors are those of the wrapped model.
        """
        if isinstance(self.inner, StreamingChatModel) and not _offers_tools(request):
            async for event in self.inner.stream(self._without_tools(request)):
                yield event
            return
        response = await self.complete(request)
        if response.message.text:
            yield TextDelta(text=response.message.text)
        yield response

    def _with_tools(self, request: ModelRequest) -> ModelRequest:
        prompt, schema = self._offered(request)
        return replace(
            request,
            messages=tuple(self._spoken(request.messages, prompt)),
            tools=(),
            tool_choice="none",
            output_schema=schema,
        )

    def _without_tools(self, request: ModelRequest) -> ModelRequest:
        schema = request.output_schema
        return replace(
            request,
            messages=tuple(self._spoken(request.messages, "")),
            tools=(),
            tool_choice="none",
            output_schema=answer_schema(schema) if schema and self._constrained else schema,
        )

    def _offered(self, request: ModelRequest) -> tuple[str, JsonObject | None]:
        """The prompt and the schema, which stay the same for the same tools and are made once."""
        key = request.tools, request.tool_choice, request.output_schema, request.examples
        if self._last is not None and self._last[0] == key:
            return self._last[1:]
        is_required = request.tool_choice == "required"
        prompt = render_system_prompt(
            request.tools,
            self._format,
            is_required=is_required,
            is_constrained=self._constrained,
            output_schema=request.output_schema,
            examples=request.examples,
        )
        schema: JsonObject | None = None
        if self._constrained:
            schema = call_schema(
                request.tools,
                max_calls=self._max_calls,
                allow_text=not is_required,
                answer=request.output_schema,
            )
        self._last = key, prompt, schema
        return prompt, schema

    def _spoken(self, messages: Sequence[Message], prompt: str) -> Iterator[Message]:
        """The conversation as text: one system message, then user and assistant in turn."""
        instructions = [m.text for m in messages if isinstance(m, SystemMessage)]
        if prompt or instructions:
            yield SystemMessage(text="\n\n".join(filter(None, [prompt, *instructions])))
        said: list[str | Media] = []
        for message in messages:
            if isinstance(message, UserMessage):
                said += pieces(message.text, message.media) if message.media else (message.text,)
            elif isinstance(message, ToolMessage):
                said += (render_result(message), *message.media)
            elif isinstance(message, AssistantMessage):
                yield from _user_messages(said)
                said = []
                written = self._written(message, is_offering=bool(prompt))
                yield AssistantMessage(text=written, provider_items=message.provider_items)
        yield from _user_messages(said)

    def _written(self, message: AssistantMessage, *, is_offering: bool) -> str:
        """An earlier answer as this model would have written it."""
        calls, text = message.tool_calls, message.text
        if not calls:
            shown = parse_calls(text)  # self-refinement shows a proposal as text
            calls, text = shown.calls, shown.text
        if calls:
            return "\n".join(filter(None, [text, render_calls(calls, self._format)]))
        return render_answer(text) if self._constrained and is_offering else message.text

    def _understood(self, request: ModelRequest, response: ModelResponse) -> ModelResponse:
        made = sum(len(m.tool_calls) for m in request.messages if isinstance(m, AssistantMessage))
        answer = response.message
        parsed = parse_calls(answer.text, request.tools, first_id=made + 1)
        if not parsed.calls:
            return replace(response, message=replace(answer, text=parse_answer(parsed.text)))
        message = replace(answer, text=parsed.text, tool_calls=parsed.calls)
        return replace(response, message=message, finish_reason="tool_calls")


def _offers_tools(request: ModelRequest) -> bool:
    return bool(request.tools) and request.tool_choice != "none"


def _user_messages(said: Sequence[str | Media]) -> Iterator[UserMessage]:
    texts = [one for one in said if isinstance(one, str)]
    if len(texts) < len(said):
        text, media = placed(said)
        yield UserMessage(text=text, media=media)
    elif texts:
        yield UserMessage(text="\n".join(texts))
