"""One turn of Anthropic's: a stream put together, and what was said before and after a pause.

Anthropic pauses a turn (``pause_turn``) in which its own tools, such as the search among deferred
tools, went through many rounds. It goes on when what it said so far is sent back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentkit.errors import ModelResponseError
from agentkit.messages import JsonObject
from agentkit.models.hosted.anthropic_messages import read_counts
from agentkit.models.wire.reading import MISSING, expect, member, parse_object

MOST_PAUSES = 10
"""A turn that pauses more often is given up."""


class Turn:
    """The messages of one turn, of which all but the last were paused.

    Args:
        place: Who answers, for messages of errors.
    """

    def __init__(self, place: str) -> None:
        self._place = place
        self._said: list[JsonObject] = []

    def add(self, message: JsonObject) -> bool:
        """Take a message; returns whether the turn goes on after it.

        A pause beside calls of the caller's tools is none: those are to be run first.

        Raises:
            ModelResponseError: The turn pauses without having said anything, or too often.
        """
        self._said.append(message)
        blocks = member(message, "content", list, "$")
        if message.get("stop_reason") != "pause_turn" or any(map(_is_call, blocks)):
            return False
        if not blocks or len(self._said) > MOST_PAUSES:
            why = "without saying anything" if not blocks else f"{len(self._said)} times"
            raise ModelResponseError(
                f"{self._place} paused its turn {why} (stop_reason 'pause_turn'), so there is no "
                "answer. Its own tools went on for too long: offer fewer of them, or ask for less"
            )
        return True

    def request(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The request that lets a paused turn go on."""
        content = self._content()
        if not content:
            return dict(fields)
        return {
            **fields,
            "messages": [*fields["messages"], {"role": "assistant", "content": content}],
        }

    def message(self) -> JsonObject:
        """All of the turn as one message; what it cost is the sum."""
        last = self._said[-1]
        if len(self._said) == 1:
            return last
        return {**last, "content": self._content(), "usage": _total(self._said)}

    def _content(self) -> list[Any]:
        return [block for message in self._said for block in message["content"]]


def _is_call(block: object) -> bool:
    return isinstance(block, Mapping) and block.get("type") == "tool_use"


def _total(messages: Sequence[JsonObject]) -> dict[str, int]:
    counts = [read_counts(message.get("usage") or {}) for message in messages]
    return {name: sum(one[name] for one in counts) for name in counts[0]}


class MessageAssembler:
    """Puts the events of a stream together into the message object that ``decode`` takes."""

    def __init__(self) -> None:
        self._message: dict[str, Any] = {}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._inputs: dict[int, list[str]] = {}
        self.is_finished = False

    def add(self, event: JsonObject) -> str:
        """Take one event; returns the text that it adds to the answer.

        Raises:
            ModelResponseError: The event is not what the protocol says.
        """
        match event.get("type"):
            case "message_start":
                self._message = dict(member(event, "message", dict, "$"))
            case "content_block_start":
                index = member(event, "index", int, "$")
                self._blocks[index] = dict(member(event, "content_block", dict, "$"))
            case "content_block_delta":
                return self._add_delta(member(event, "index", int, "$"), event)
            case "message_delta":
                self._message |= member(event, "delta", dict, "$")
                self._message["usage"] = {
                    **(self._message.get("usage") or {}),
                    **{k: v for k, v in (event.get("usage") or {}).items() if v is not None},
                }
            case "message_stop":
                self.is_finished = True
        return ""

    def finish(self) -> JsonObject:
        """The whole message object."""
        for index, parts in self._inputs.items():
            block, text = self._blocks[index], "".join(parts)
            if block.get("type") != "tool_use":  # a search of the provider's, which goes back
                block["input"] = parse_object(text or "{}", "the input of a provider's own tool")
            else:
                block["input"] = text
        return {**self._message, "content": [self._blocks[i] for i in sorted(self._blocks)]}

    def _add_delta(self, index: int, event: JsonObject) -> str:
        block = expect(self._blocks.get(index, MISSING), dict, f"$.content[{index}]")
        delta = member(event, "delta", dict, "$")
        if delta.get("type") == "text_delta":
            text: str = member(delta, "text", str, "$.delta")
            block["text"] = block.get("text", "") + text
            return text
        for kind, key in (("thinking_delta", "thinking"), ("signature_delta", "signature")):
            if delta.get("type") == kind:
                block[key] = block.get(key, "") + member(delta, key, str, "$.delta")
        if delta.get("type") == "input_json_delta":
            part = member(delta, "partial_json", str, "$.delta")
            self._inputs.setdefault(index, []).append(part)
        return ""
