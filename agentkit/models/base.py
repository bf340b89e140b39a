"""The seam to language models: ``ChatModel``, one method.

A model turns a ``ModelRequest`` into a ``ModelResponse``. One that can also stream has a second
method and satisfies ``StreamingChatModel``. Everything else (retries, refinement, tool execution)
lies outside the seam. ``resolve_model`` finds the model behind a name.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Set as AbstractSet
from dataclasses import dataclass, field, fields, replace
from importlib import import_module
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from agentkit.errors import MissingExtraError, ModelNotFoundError, UsageError
from agentkit.media import Media
from agentkit.messages import (
    AssistantMessage,
    JsonObject,
    Message,
    TokenIds,
    ToolMessage,
    Usage,
)
from agentkit.tools.definition import ToolDefinition

SEARCH_TOOL, RUN_TOOL, READ_TOOL = "search_tools", "run_program", "read_tool_result"
RUNTIME_TOOLS = (SEARCH_TOOL, RUN_TOOL, READ_TOOL)
"""Tools of the runtime: for further tools, for programs (``agentkit.agent.code_mode``), and for the
rest of a shortened result. Where code of one's own is called ``search_tools``, there is no search;
else a tool of such a name takes nobody's place, and is not offered where the runtime's own is."""

ToolChoice = Literal["auto", "none", "required"]
FinishReason = Literal["stop", "tool_calls", "length", "content_filter", "unknown"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelSettings:
    """Generation settings; None leaves a choice to the provider.

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
        examples: How many worked calls of each tool the model is shown, at most: as
            ``input_examples`` by Anthropic, as lines of the description by all others.
        searched: By the id of a call among the messages that searched for tools, the names of the
            ``tools`` that it added to those that were offered at first. Models of Anthropic get
            them by reference, those of OpenAI's Responses API in the result of the search, so that
            the prompt cache stays.
        searchable: What the tool ``search_tools`` among ``tools`` searches; empty for no search.
            Keep the tuple object, as that of ``tools``.
    """

    messages: tuple[Message, ...]
    tools: tuple[ToolDefinition, ...] = ()
    tool_choice: ToolChoice = "auto"
    output_schema: JsonObject | None = None
    settings: ModelSettings = field(default_factory=ModelSettings)
    examples: int = 0
    searched: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    searchable: tuple[ToolDefinition, ...] = ()


def described_tool(definition: ToolDefinition, examples: int = 0) -> str:
    """The text of a tool as a model reads it, with some of its worked calls.

    Args:
        definition: The tool.
        examples: How many.

    Example:
        >>> from agentkit.tools import Example
        >>> calls = (Example(arguments={"days": 3}),)
        >>> print(described_tool(ToolDefinition(name="forecast", examples=calls), 1))
        Example: {"days": 3}
    """
    shown = definition.shown_examples(examples)
    lines = [f"Example: {json.dumps(one, ensure_ascii=False, default=str)}" for one in shown]
    return "\n".join(filter(None, [definition.text, *lines]))


IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "image-url"})
"""Image types that hosted vision models accept."""

SPEECH = frozenset({"audio/wav", "audio/mpeg"})
"""Audio types that hosted audio models accept."""

DOCUMENTS = frozenset({"application/pdf"})
"""File types that hosted models accept, besides texts."""

ANY_MEDIA = frozenset({"image/*", "audio/*", "file/*"})
"""Everything, for test doubles."""


def accepted_media(model: object) -> AbstractSet[str]:
    """What a model accepts beside text: its attribute ``accepts``, nothing by default.

    Elements are media types such as ``image/png``; ``image-url`` and ``file-url`` for URLs; or
    ``image/*``, ``audio/*`` and ``file/*`` for everything of a kind.
    """
    accepted: AbstractSet[str] = getattr(model, "accepts", frozenset())
    return accepted


def is_accepted(medium: Media, accepted: AbstractSet[str]) -> bool:
    """Whether a medium may be sent; text always may."""
    wanted = f"{medium.kind}-url" if medium.url else medium.media_type
    is_words = medium.is_text or not medium.is_kept
    return is_words or wanted in accepted or f"{medium.kind}/*" in accepted


def for_model(messages: Iterable[Message], model: ChatModel) -> list[Message]:
    """The messages without what the model does not accept of tools' results.

    Raises:
        UsageError: The model does not accept what a user sent.
    """
    accepted = accepted_media(model)
    return [_fitting(one, accepted, model.name) if one.media else one for one in messages]


def _fitting(message: Message, accepted: AbstractSet[str], model: str) -> Message:
    refused = [one for one in message.media if not is_accepted(one, accepted)]
    if not refused:
        return message
    if isinstance(message, ToolMessage):
        kept = tuple(one for one in message.media if one not in refused)
        return replace(message, text=f"{message.text}\n{_NOT_SHOWN}", media=kept)
    first, known = refused[0], ", ".join(sorted(accepted)) or "text only"
    raise UsageError(
        f"the model {model!r} does not accept {first.label}; it accepts {known}. Use another "
        f"model, leave the {first.kind} out, or convert it. For a server of your own, declare it: "
        "OpenAICompatibleModel(..., accepts={'image/*'})"
    )


_NOT_SHOWN = "(The tool returned what stands in brackets; you cannot see it.)"


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


@dataclass(frozen=True, kw_only=True, slots=True)
class ReasoningDelta:
    """A piece of what a model thinks before it answers, where its provider shows that."""

    text: str


Delta: TypeAlias = TextDelta | ReasoningDelta
ModelEvent: TypeAlias = Delta | ModelResponse
"""Events of a stream: pieces of text, and finally the whole response."""


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


class MeteredModel:
    """A model that adds up what its answers cost.

    Args:
        model: The model that answers.

    Attributes:
        usage: What all answers cost so far.
        seconds: How long they took.
    """

    def __init__(self, model: ChatModel) -> None:
        self._model = model
        self.usage = Usage()
        self.seconds = 0.0

    @property
    def name(self) -> str:
        """The model's name."""
        return self._model.name

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """Answer one request.

        Raises:
            ModelError: The model could not answer.
        """
        began = time.perf_counter()
        try:
            response = await self._model.complete(request)
        finally:
            self.seconds += time.perf_counter() - began
        self.usage += response.usage
        return response


ENTRY_POINT_GROUP = __name__.rpartition(".")[0]  # "agentkit.models", as this package
"""Plugins name a callable here that takes the rest of the name and gives a ``ChatModel``."""

_BUILT_IN = {
    "anthropic": "agentkit.models.anthropic:anthropic_model",
    "litellm": "agentkit.models.litellm:litellm_model",
    "openai": "agentkit.models.openai_compatible:openai_model",
    "openai-compatible": "agentkit.models.openai_compatible:own_server_model",
    "openai-responses": "agentkit.models.responses:openai_responses_model",
}

_KNOWN_PLUGINS = {"local": "agentkit-local"}


def resolve_model(model: ChatModel | str) -> ChatModel:
    """The model behind a name; a ``ChatModel`` is passed through.

    Names are ``scheme:rest``:

    * ``openai:gpt-4o-mini``, ``anthropic:claude-sonnet-5-5``: hosted models, without an SDK;
    * ``openai-responses:gpt-5.6``: a model behind OpenAI's Responses API, without an SDK;
    * ``litellm:provider/model``: every provider that litellm knows, an extra of agentkit;
    * ``openai-compatible:MODEL@URL``: any server that speaks chat completions, without an SDK;
    * ``local:smollm2-135m``, ``local:/path/to.gguf``: in this process, through ``agentkit-local``;
    * any other scheme that a plugin names in the entry-point group ``agentkit.models``.

    Raises:
        ModelNotFoundError: The name has no scheme, or an unknown one.
        MissingExtraError: The scheme needs a package that is not installed.
        UsageError: ``model`` is neither a name nor a model.

    Example:
        >>> resolve_model("openai-compatible:qwen3@http://localhost:8080/v1").name
        'qwen3'
    """
    if not isinstance(model, str):
        return _checked(model)
    scheme, _, rest = model.partition(":")
    if not rest or rest.startswith("//"):
        raise ModelNotFoundError(
            f"{model!r} is not a model name; write scheme:name, such as 'openai:gpt-4o-mini', "
            "'openai-compatible:qwen3@http://localhost:8080/v1' or 'local:smollm2-135m'"
        )
    opened: ChatModel = _opener(scheme, model)(rest)
    return opened


def _opener(scheme: str, model: str) -> Callable[[str], ChatModel]:
    target = _BUILT_IN.get(scheme)
    if target is not None:
        module, _, name = target.partition(":")
        built_in: Callable[[str], ChatModel] = getattr(import_module(module), name)
        return built_in
    from importlib.metadata import entry_points

    plugins = {entry.name: entry for entry in entry_points(group=ENTRY_POINT_GROUP)}
    if scheme in plugins:
        opener: Callable[[str], ChatModel] = plugins[scheme].load()
        return opener
    if scheme in _KNOWN_PLUGINS:
        package = _KNOWN_PLUGINS[scheme]
        raise MissingExtraError(repr(model), package=package, install=f"pip install {package}")
    raise ModelNotFoundError(_unknown(scheme, model, sorted({*_BUILT_IN, *plugins})))


def _unknown(scheme: str, model: str, known: list[str]) -> str:
    """No pip line: a name that we make up may be anybody's package."""
    from difflib import get_close_matches

    near = get_close_matches(scheme, [*known, *_KNOWN_PLUGINS], n=1)
    advice = f"Did you mean {near[0]!r}?" if near else "If a plugin provides it, install that"
    return (
        f"no model for {model!r}: the scheme {scheme!r} is not among the installed ones "
        f"({', '.join(known)}). {advice}"
    )


def _checked(model: ChatModel) -> ChatModel:
    if isinstance(model, ChatModel):
        return model
    raise UsageError(
        f"{model!r} is not a model: a model has a name and an async method 'complete' (see "
        "agentkit.models.ChatModel); give one, or a name such as 'openai:gpt-4o-mini'"
    )
