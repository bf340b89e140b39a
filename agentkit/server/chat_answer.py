"""An answer in the form of OpenAI's chat completions, whole or as server-sent events."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentkit.agent.types import RunResult
from agentkit.episodes.labels import ARM, EXPERIMENT
from agentkit.messages import ToolCall, Usage
from agentkit.server.chat_request import Asked
from agentkit.server.middleware import RequestError

_FINISH: Mapping[str, str] = {
    "finished": "stop",
    "deferred": "tool_calls",
    "step_limit": "length",
    "token_limit": "length",
    "cost_limit": "length",
    "blocked": "content_filter",
}
ANSWER_PREFIX = "chatcmpl-"
"""Prefix of an answer's id before its episode's id."""

CONTROL = "control"
"""The route of an answer that no candidate had a part in."""

DONE = b"data: [DONE]\n\n"

_ENCODER = json.JSONEncoder(separators=(",", ":"))


def call_id_on_the_wire(episode_id: str, call_id: str) -> str:
    """The id of a call that is left to the client; it tells which run waits."""
    return f"{episode_id}.{call_id}"


@dataclass(kw_only=True, slots=True)
class Completion:
    """Writes one answer.

    Attributes:
        episode_id: Id of the episode, and with a prefix of the answer.
        model: The model's name as clients know it.
        asked: The request.
        created: Seconds since 1970.
    """

    episode_id: str
    model: str
    asked: Asked
    created: int = field(default_factory=lambda: int(time.time()))

    def whole(self, result: RunResult, text: str, calls: Sequence[ToolCall]) -> bytes:
        """The answer as one JSON object."""
        message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
        if calls:
            message |= {"content": text or None, "tool_calls": self._calls(calls)}
        finish = finish_reason(result)
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
        tail = {
            "usage": _usage(result.usage),
            "agentkit": extension(result, self.asked.not_honoured),
        }
        return _ENCODER.encode(self._head("chat.completion", [choice]) | tail).encode()

    def opening(self) -> bytes:
        """The first event of a stream."""
        return self._event({"role": "assistant", "content": ""})

    def piece(self, text: str) -> bytes:
        """An event with text."""
        return self._event({"content": text})

    def thought(self, text: str) -> bytes:
        """An event with reasoning, in the field of vLLM and DeepSeek."""
        return self._event({"reasoning_content": text})

    def progress(self, tool: str, text: str) -> bytes:
        """An event without text that says how far a tool is."""
        return self._event({}, agentkit={"progress": {"tool": tool, "text": text}})

    def ending(self, result: RunResult, calls: Sequence[ToolCall]) -> bytes:
        """The last events of a stream."""
        events = [
            self._event({"tool_calls": [{"index": at, **call}]})
            for at, call in enumerate(self._calls(calls))
        ]
        further = extension(result, self.asked.not_honoured)
        events.append(self._event({}, finish=finish_reason(result), agentkit=further))
        if self.asked.include_usage:
            head = self._head("chat.completion.chunk", [])
            events.append(_framed({**head, "usage": _usage(result.usage)}))
        return b"".join([*events, DONE])

    def _event(
        self, delta: Mapping[str, Any], *, finish: str | None = None, **further: Any
    ) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        usage = {"usage": None} if self.asked.include_usage else {}
        return _framed(self._head("chat.completion.chunk", [choice]) | usage | further)

    def _head(self, kind: str, choices: list[Any]) -> dict[str, Any]:
        return {
            "id": f"{ANSWER_PREFIX}{self.episode_id}",
            "object": kind,
            "created": self.created,
            "model": self.model,
            "choices": choices,
        }

    def _calls(self, calls: Sequence[ToolCall]) -> list[dict[str, Any]]:
        return [
            {
                "id": call_id_on_the_wire(self.episode_id, call.call_id),
                "type": "function",
                "function": {"name": call.name, "arguments": _ENCODER.encode(dict(call.arguments))},
            }
            for call in calls
        ]

    def failing(self, error: RequestError) -> bytes:
        """The last event of a stream that broke; ``[DONE]`` does not follow."""
        return b"data: " + error.encoded() + b"\n\n"


def extension(result: RunResult, not_honoured: Sequence[str]) -> dict[str, Any]:
    """Fields that OpenAI's formats have no place for."""
    return {
        "episode_id": result.episode.episode_id,
        "episode_kept": result.is_kept,
        "stop_reason": result.stop_reason,
        "library_version": result.episode.library_version,
        "route": route_of(result.episode.metadata),
        "not_honoured": list(not_honoured),
    }


def route_of(labels: Mapping[str, str]) -> str:
    """Whose definitions answered: the id of a proposal in canary, or ``control`` for all others."""
    return labels.get(EXPERIMENT, CONTROL) if labels.get(ARM) == "candidate" else CONTROL


def finish_reason(result: RunResult) -> str:
    """Why the answer ended, in OpenAI's words."""
    turns = result.episode.turns
    if result.stop_reason == "finished" and turns and turns[-1].finish_reason:
        return turns[-1].finish_reason
    return _FINISH.get(result.stop_reason, "stop")


def answer_text(result: RunResult, *, as_json: bool) -> str:
    """The text of an answer: all that the model said in its turns, or the structured value.

    What a guardrail blocked has none.

    Args:
        result: The run.
        as_json: Whether the agent's answers are structured.
    """
    if as_json and result.stop_reason == "finished":
        return json.dumps(result.episode.output, ensure_ascii=False)
    if as_json or result.stop_reason == "blocked":
        return ""
    texts = (turn.message.text for turn in result.episode.turns)
    return "\n\n".join(text for text in texts if text)


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.total_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
    }


def _framed(body: Mapping[str, Any]) -> bytes:
    return b"data: " + _ENCODER.encode(body).encode() + b"\n\n"
