"""The seam to language models: ``ChatModel``, one method.

A model turns a ``ModelRequest`` into a ``ModelResponse``. One that can also stream has a second
method and satisfies ``StreamingChatModel``. Everything else (retries, refinement, tool execution)
lies outside the seam.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field, fields, replace
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from agentkit.messages import AssistantMessage, JsonObject, Message, TokenIds, Usage
from agentkit.tools.definition import ToolDefinition

ToolChoice = Literal["auto", "none", "required"]
FinishReason = Literal["stop", "tool_calls", "length", "content_filter", "unknown"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelSettings:
    """How to generate; None leaves a choice to the provider.

    Attributes:
        temperature: Sampling temperature; 0 asks for greedy decoding.
        top_p: Nucleus sampling mass.
        max_tokens: Longest answer in tokens.
        seed: For providers that can repeat themselves.
        timeout_seconds: Longest wait for one answer.
        extra: Further fields of the request body, passed through as they are.
    """

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    timeout_seconds: float | None = None
    extra: JsonObject = field(default_factory=dict)

    def over(self, others: ModelSettings) -> ModelSettings:
        """These settings, and what they leave open as ``others`` have it.

        Example:
            >>> both = ModelSettings(seed=1).over(ModelSettings(seed=2, temperature=0.5))
            >>> both.seed, both.temperature
            (1, 0.5)
        """
        chosen = {
            one.name: getattr(self, one.name)
            for one in fields(self)
            if getattr(self, one.name) is not None
        }
        return replace(others, **{**chosen, "extra": {**others.extra, **self.extra}})


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelRequest:
    """Everything that a model needs for one answer.

    Attributes:
        messages: The conversation, oldest first.
        tools: Definitions offered, in a stable order. Two requests that offer the same tools
            should carry the same tuple object, so that an adapter can reuse what it serialised.
        tool_choice: Whether the model may, must not or must call a tool.
        output_schema: JSON Schema that the text of the answer must match, or None.
        settings: How to generate.
    """

    messages: tuple[Message, ...]
    tools: tuple[ToolDefinition, ...] = ()
    tool_choice: ToolChoice = "auto"
    output_schema: JsonObject | None = None
    settings: ModelSettings = field(default_factory=ModelSettings)


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelResponse:
    """One answer.

    Attributes:
        message: Text, tool calls, or both.
        usage: What it cost.
        finish_reason: Why the model stopped.
        model: The name that the provider reports.
        tokens: The tokens of the answer, from servers that report them; None from all others.
    """

    message: AssistantMessage
    usage: Usage = field(default_factory=Usage)
    finish_reason: FinishReason = "unknown"
    model: str = ""
    tokens: TokenIds | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class TextDelta:
    """A piece of the answer's text, as it arrives."""

    text: str


ModelEvent: TypeAlias = TextDelta | ModelResponse
"""What a stream yields: pieces of text, and last of all the whole response."""


@runtime_checkable
class ChatModel(Protocol):
    """A language model."""

    @property
    def name(self) -> str:
        """The model's name, for records."""
        ...

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """Answer one request.

        Raises:
            ModelError: The model could not answer; a subclass says why.
        """
        ...


@runtime_checkable
class StreamingChatModel(ChatModel, Protocol):
    """A language model that can show its answer while it writes it."""

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Yield text as it arrives, then the whole response exactly once.

        Raises:
            ModelError: As ``complete``; half a stream is a ``ModelConnectionError``.
        """
        ...
