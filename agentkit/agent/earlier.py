"""Which calls succeeded earlier in a conversation, for rules that want another call first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agentkit.diagnosis.wording import tells_failure
from agentkit.messages import Message, ToolMessage, ToolResult
from agentkit.tools import rules  # a door: they load when a tool has some
from agentkit.tools.encoding import encode_result

if TYPE_CHECKING:
    from agentkit.tools.rules.earlier import EarlierCall

DEFERRED_TEXT = "This call waits for an answer from outside; there is no result yet."
"""Text of a call that somebody outside this process has to answer."""

WAITS_FOR_PERSON = "{name} waits for a person's approval; it has not run."
"""Text of a call that a person has to approve."""


class EarlierCalls:
    """The calls that succeeded so far; put together when a rule first asks.

    Args:
        said: The conversation before the run. Messages hold the text of a result only, so those
            count as successes that do not read like one of our refusals.
    """

    def __init__(self, said: Sequence[Message]) -> None:
        self._said = said
        self._new: list[ToolResult] = []
        self._known: list[EarlierCall] | None = None

    def add(self, result: ToolResult) -> None:
        """A call of this run has ended."""
        if result.status == "ok":
            self._new.append(result)

    def known(self) -> Sequence[EarlierCall]:
        """The calls, oldest first; their results whole, even where the model read them cut."""
        if self._known is None:
            self._known = [
                rules.EarlierCall(name=message.name, text=message.text)
                for message in self._said
                if isinstance(message, ToolMessage) and _is_success(message)
            ]
        for result in self._new:
            text = encode_result(result.value)[1]
            self._known.append(rules.EarlierCall(name=result.name, text=text))
        self._new.clear()
        return self._known


def _is_success(message: ToolMessage) -> bool:
    waiting = {DEFERRED_TEXT, WAITS_FOR_PERSON.format(name=message.name)}
    return message.text not in waiting and not tells_failure(message.name, message.text)
