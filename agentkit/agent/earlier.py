"""Which calls succeeded earlier in a conversation, for rules that want another call first."""

from __future__ import annotations

from collections.abc import Iterable
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


def successful_calls(said: Iterable[Message], results: Iterable[ToolResult]) -> list[EarlierCall]:
    """The calls that succeeded, oldest first.

    Args:
        said: The conversation before the run. Messages hold the text of a result only, so those
            count as successes that do not read like one of our refusals.
        results: Successful results of the run itself, whole even where the model read them cut.
    """
    before = [
        rules.EarlierCall(name=message.name, text=message.text)
        for message in said
        if isinstance(message, ToolMessage) and _is_success(message)
    ]
    return [
        *before,
        *(rules.EarlierCall(name=one.name, text=encode_result(one.value)[1]) for one in results),
    ]


def _is_success(message: ToolMessage) -> bool:
    waiting = {DEFERRED_TEXT, WAITS_FOR_PERSON.format(name=message.name)}
    return message.text not in waiting and not tells_failure(message.name, message.text)
