"""Text that is evidently a call is told from an answer that speaks of one."""

from __future__ import annotations

import pytest

from agentkit import Library
from agentkit.diagnosis.findings import unread_call
from agentkit.messages import AssistantMessage


@pytest.mark.parametrize(
    ("text", "tool"),
    [
        ('[set_lamp(room="hall", state="on")]', "set_lamp"),
        ('set_lamp(room="hall", state="on")', "set_lamp"),
        ('{"name": "set_lamp", "arguments": {"room": "hall"}}', "set_lamp"),
        ('```json\n{"name": "set_lamp", "arguments": {"room": "hall"}}\n```', "set_lamp"),
        ('[set_lamp(room="hall", state=', "set_lamp"),
        ('<tool_call>{"name": "set_lamp", "arguments": {"room": "hall"}}', "set_lamp"),
        ("<tool_call>{set_lamp: hall}</tool_call>", ""),
        ('[TOOL_CALLS] [{"name": "dim", "arguments": {}}]', ""),
        ('<|python_tag|>dim.call(room="hall")', ""),
        ('I will: {"tool_calls": [{"id": 1', ""),
    ],
)
def test_a_call_that_stayed_text_is_found(text, tool, library):
    """Nothing but a call of an offered tool, or the marks of a call, with the tool if it is one."""
    found = unread_call(AssistantMessage(text=text), library)
    assert found is not None
    assert found.tool == tool
    assert text.startswith(found.text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "The lamp is on.",
        'To switch it on you would call set_lamp(room="hall", state="on"), but I may not.',
        "Rooms: [kitchen, hall] (both dark)",
        "[]",
        '{"room": "hall", "on": true}',
        '{"name": "Ada", "age": 36}',
        "def double(x):\n    return multiply(x, 2)",
        "dim(level=3)",
        "set_lamp" * 1000,
        '[set_lamp(room="hall")]' + " really" * 1000,
    ],
)
def test_an_answer_is_not_taken_for_a_call(text, library):
    """Prose that quotes a call, data, code, and calls of what is not offered are answers."""
    assert unread_call(AssistantMessage(text=text), library) is None


def test_text_beside_calls_is_not_looked_at(call, library):
    """Where the parser found calls, it has read the message."""
    message = AssistantMessage(text="<tool_call>", tool_calls=(call("set_lamp"),))
    assert unread_call(message, library) is None


def test_without_tools_no_text_is_a_call():
    """A model that was offered nothing can not have meant to call anything."""
    message = AssistantMessage(text='<tool_call>{"name": "f"}</tool_call>')
    assert unread_call(message, Library()) is None
