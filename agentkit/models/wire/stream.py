"""Chunks of a streamed chat completion, put together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from agentkit.messages import JsonObject
from agentkit.models.base import ModelResponse
from agentkit.models.wire.names import WireNames
from agentkit.models.wire.reading import MISSING, clean, expect, member
from agentkit.models.wire.response import (
    build_response,
    decode_call,
    decode_content,
    decode_logprobs,
    decode_tokens,
    with_distinct_ids,
)


@dataclass(kw_only=True, slots=True)
class _PartialCall:
    call_id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


class CompletionAssembler:
    """Collects the chunks of one streamed answer.

    Args:
        names: The names that the request used.
    """

    def __init__(self, names: WireNames) -> None:
        self._names = names
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._calls: list[_PartialCall] = []
        self._call_at: dict[int, _PartialCall] = {}
        self._reason: Any = None
        self._usage: Any = None
        self._model: Any = ""
        self._prompt_ids: Any = None
        self._token_ids: list[Any] = []
        self._logprobs: list[float] = []

    @property
    def is_finished(self) -> bool:
        """Whether the model said why it stopped; usage may still follow."""
        return self._reason is not None

    def add(self, chunk: JsonObject) -> str:
        """Take one chunk; returns the text that it adds to the answer.

        Raises:
            ModelResponseError: The chunk is not what the protocol says.
        """
        self._usage = chunk.get("usage") or self._usage
        self._model = chunk.get("model") or self._model
        self._prompt_ids = chunk.get("prompt_token_ids") or self._prompt_ids
        choices = expect(chunk.get("choices") or [], list, "$.choices")
        if not choices:  # the last chunk carries usage alone
            return ""
        choice = expect(choices[0], dict, "$.choices[0]")
        self._reason = choice.get("finish_reason") or self._reason
        if choice.get("token_ids"):
            self._token_ids += member(choice, "token_ids", list, "$.choices[0]")
            self._logprobs += decode_logprobs(choice)
        delta = expect(choice.get("delta") or {}, dict, "$.choices[0].delta")
        for part in expect(delta.get("tool_calls") or [], list, "$.choices[0].delta.tool_calls"):
            self._add_call(part, "$.choices[0].delta.tool_calls[]")
        refusal = expect(delta.get("refusal") or "", str, "$.choices[0].delta.refusal")
        if refusal:
            self._refusal.append(refusal)
        text = decode_content(delta.get("content"), "$.choices[0].delta.content")
        if text:
            self._text.append(text)
        return clean(text)

    def finish(self) -> ModelResponse:
        """The whole answer.

        Raises:
            ModelResponseError: A call has no name, or the usage is not what the protocol says.
        """
        text = clean("".join(self._text))
        refused = not text and bool(self._refusal)
        calls = []
        for index, call in enumerate(self._calls):
            path = f"$.choices[0].delta.tool_calls[{index}].function.name"
            name = expect(call.name or MISSING, str, path)
            calls.append(decode_call(call.call_id, name, "".join(call.arguments), self._names))
        return build_response(
            text=clean("".join(self._refusal)) if refused else text,
            calls=with_distinct_ids(calls),
            reason="content_filter" if refused else self._reason,
            usage=self._usage,
            model=self._model,
            tokens=decode_tokens(self._prompt_ids, self._token_ids, self._logprobs),
        )

    def _add_call(self, part: Any, path: str) -> None:
        expect(part, dict, path)
        function = expect(part.get("function") or {}, dict, f"{path}.function")
        call = self._call_for(part)
        call.call_id = call.call_id or expect(part.get("id") or "", str, f"{path}.id")
        call.name = call.name or expect(function.get("name") or "", str, f"{path}.function.name")
        if function.get("arguments"):
            call.arguments.append(member(function, "arguments", str, f"{path}.function"))

    def _call_for(self, part: JsonObject) -> _PartialCall:
        """The call that a delta belongs to.

        By its index; but some servers give none, and some give each of several calls index 0 and
        an id of its own, so a new id starts a new call.
        """
        call_id = part.get("id")
        index = part.get("index")
        if not isinstance(index, int):
            index = len(self._calls) - (0 if call_id or not self._calls else 1)
        call = self._call_at.get(index)
        if call is None or (call_id and call.call_id and call_id != call.call_id):
            call = _PartialCall()
            self._calls.append(call)
            self._call_at[index] = call
        return call
