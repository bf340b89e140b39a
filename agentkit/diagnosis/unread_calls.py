"""Text that is evidently a call which the parser could not read."""

from __future__ import annotations

import re
from dataclasses import dataclass

from agentkit.library.library import Library
from agentkit.messages import AssistantMessage
from agentkit.models.call_parser import parse_calls
from agentkit.tools.definition import ToolDefinition

_LONGEST = 2_000
_SHOWN = 200
_NAME = re.compile(r"[^\W\d][\w.\-]*")
_MARKS = re.compile(
    r"</?(?:tool_calls?|function_calls?|functioncall)>|<\|(?:python_tag|tool_call\w*)\|>"
    r"|\[TOOL_CALLS\]|\"(?:tool_calls|function_call)\"\s*:",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class UnreadCall:
    """A call that stayed text.

    Attributes:
        text: The beginning of it, as written.
        tool: The offered tool that it names; empty when it names none.
    """

    text: str
    tool: str = ""


def unread_call(message: AssistantMessage, library: Library) -> UnreadCall | None:
    """The call that a message without calls evidently tries to make; None when there is none.

    Evident is a text that is nothing but a call of a tool of the library, or that holds the marks
    with which models are taught to begin a call. A call that is quoted in prose is not.
    """
    text = message.text.strip()
    if message.tool_calls or not text or not len(library):
        return None
    is_marked = _MARKS.search(text) is not None
    if not is_marked and (len(text) > _LONGEST or not set(text) & set("({[")):
        return None
    text = text[:_LONGEST]
    named = _named_in(text, library)
    parsed = parse_calls(text, named) if named else None
    called = [call.name for call in parsed.calls if call.name in library] if parsed else []
    if is_marked:
        return UnreadCall(text=text[:_SHOWN], tool=called[0] if called else "")
    if parsed is None or parsed.text or not called:
        return None
    return UnreadCall(text=text[:_SHOWN], tool=called[0])


def _named_in(text: str, library: Library) -> list[ToolDefinition]:
    """The tools whose names stand in a text, so that the parser need not look at all of them."""
    names = dict.fromkeys(_NAME.findall(text))
    return [library[name].definition for name in names if name in library]
