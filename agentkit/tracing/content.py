"""Opt-in content of traces: messages, arguments and results.

Messages have the shape of the GenAI semantic conventions, as JSON text. Every text in them passes
``redact`` first and is then cut; numbers and structure stay, so a value to hide has to be a text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, TypeAlias

from agentkit.episodes import Episode
from agentkit.errors import UsageError
from agentkit.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
)
from agentkit.models.base import ModelRequest, ModelResponse

Redact: TypeAlias = Callable[[str], str]
_DEEPEST = 32


def unredacted(text: str) -> str:
    """A text as it is."""
    return text


@dataclass(frozen=True, kw_only=True, slots=True)
class ContentPolicy:
    """Settings for content in traces.

    Attributes:
        max_chars: Longest text; a longer one ends in ``…``. An attribute has at most about 16 times
            as much: the oldest messages are left out of it.
        redact: Changes each text, keys of arguments included, before it is cut. What it raises
            drops all content of that span.

    Example:
        >>> policy = ContentPolicy(max_chars=5, redact=lambda text: text.replace("4711", "****"))
        >>> policy.text("PIN 4711"), policy.value({"pin": "4711", "tries": 3})
        ('PIN *…', {'pin': '****', 'tries': 3})
    """

    max_chars: int = 8_192
    redact: Redact = unredacted

    def __post_init__(self) -> None:
        if self.max_chars < 1:
            raise UsageError(f"max_chars must be at least 1, got {self.max_chars}")

    def text(self, text: str) -> str:
        """One text, redacted and cut."""
        changed = self.redact(text)
        if not changed.isascii():  # half a surrogate pair is not a text that an exporter could send
            changed = changed.encode("utf-8", "replace").decode("utf-8")
        return changed if len(changed) <= self.max_chars else f"{changed[: self.max_chars]}…"

    def value(self, value: Any, depth: int = _DEEPEST) -> Any:
        """JSON data with each text redacted and cut; what is no JSON gives its type."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, float):
            return value if isfinite(value) else str(value)  # JSON knows no NaN
        if value is None or isinstance(value, bool | int):
            return value
        if depth and isinstance(value, Mapping):
            return {self.text(str(k)): self.value(v, depth - 1) for k, v in value.items()}
        if depth and isinstance(value, list | tuple):
            return [self.value(item, depth - 1) for item in value]
        return f"<{type(value).__name__}>"

    def data(self, value: Any) -> Any:
        """The same, or the start of its JSON text where that is too long for an attribute."""
        shown = self.value(value)
        text = json.dumps(shown, ensure_ascii=False)
        return shown if len(text) <= self.longest else f"{text[: self.longest]}…"

    def json(self, value: Any) -> str:
        """JSON data as text."""
        return json.dumps(self.data(value), ensure_ascii=False)

    @property
    def longest(self) -> int:
        """Most characters of one attribute, where parts can be left out."""
        return 16 * self.max_chars

    def newest(self, messages: Sequence[Message]) -> str:
        """Messages as JSON text; the oldest are left out when they would be too long."""
        kept: list[str] = []
        left = self.longest
        for message in reversed(messages):
            text = json.dumps(_message(message, self), ensure_ascii=False)
            left -= len(text)
            if left < 0 and kept:
                break
            kept.append(text)
        return f"[{', '.join(reversed(kept))}]"


def of_run(
    request: str,
    history: Sequence[Message],
    instructions: str,
    value: object,
    policy: ContentPolicy,
) -> dict[str, str]:
    """The request and answer of a run."""
    messages = [*history, *([UserMessage(text=request)] if request else [])]
    found = _recorded_messages(messages, [instructions] if instructions else [], policy)
    if isinstance(value, Episode) and value.turns:
        last = value.turns[-1]
        found |= _answered(last.message, last.finish_reason or "stop", policy)
    return found


def of_chat(request: ModelRequest, value: object, policy: ContentPolicy) -> dict[str, str]:
    """The messages a model read and wrote."""
    system = [one.text for one in request.messages if isinstance(one, SystemMessage)]
    found = _recorded_messages(request.messages, system, policy)
    if isinstance(value, ModelResponse):
        finish = "tool_call" if value.finish_reason == "tool_calls" else value.finish_reason
        found |= _answered(value.message, finish, policy)
    return found


def _recorded_messages(
    messages: Iterable[Message], system: Sequence[str], policy: ContentPolicy
) -> dict[str, str]:
    visible = [one for one in messages if not isinstance(one, SystemMessage)]
    found = {"gen_ai.input.messages": policy.newest(visible)}
    if system:
        told = [_part(text, policy) for text in system]
        found["gen_ai.system_instructions"] = json.dumps(told, ensure_ascii=False)
    return found


def _answered(message: AssistantMessage, finish: str, policy: ContentPolicy) -> dict[str, str]:
    answer = {**_message(message, policy), "finish_reason": finish}
    return {"gen_ai.output.messages": json.dumps([answer], ensure_ascii=False)}


def of_call(call: ToolCall, value: object, policy: ContentPolicy) -> dict[str, str]:
    """The arguments of a call, and the result shown to the model."""
    found = {"gen_ai.tool.call.arguments": policy.json(_arguments(call))}
    if isinstance(value, ToolResult):
        shown = value.value if value.status == "ok" else value.text
        found["gen_ai.tool.call.result"] = policy.json(shown)
    return found


def of_retrieval(query: str, _: object, policy: ContentPolicy) -> dict[str, str]:
    """The query of a search."""
    return {"gen_ai.retrieval.query.text": policy.text(query)}


def _part(text: str, policy: ContentPolicy) -> dict[str, Any]:
    return {"type": "text", "content": policy.text(text)}


def _message(message: Message, policy: ContentPolicy) -> dict[str, Any]:
    match message:
        case AssistantMessage(text=text, tool_calls=calls):
            parts = [_part(text, policy)] if text else []
            parts += (_call(one, policy) for one in calls)
        case ToolMessage(call_id=call_id, text=text):
            response = policy.text(text)
            parts = [{"type": "tool_call_response", "id": call_id, "response": response}]
        case _:
            texts = (message.text, *(one.label for one in message.media))
            parts = [_part(text, policy) for text in texts]
    return {"role": message.role, "parts": parts}


def _call(call: ToolCall, policy: ContentPolicy) -> dict[str, Any]:
    return {
        "type": "tool_call",
        "id": call.call_id,
        "name": policy.text(call.name),
        "arguments": policy.data(_arguments(call)),
    }


def _arguments(call: ToolCall) -> Any:
    return dict(call.arguments) if call.malformed is None else call.malformed
