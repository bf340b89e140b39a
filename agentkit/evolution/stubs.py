"""Recorded answers in the place of tools that touch the world."""

from __future__ import annotations

from typing import Any

from agentkit.evolution.policy import InsertPolicy
from agentkit.messages import JsonObject, ToolCall
from agentkit.metrics.calls import CanonicalCall, canonical_calls
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool


class MissingStub(Exception):  # noqa: N818 - a signal inside this package, told as a rejection
    """A tool that touches the world was asked something that no worked call answers.

    Attributes:
        tool_name: The tool.
        arguments: What it was asked.
    """

    def __init__(self, tool_name: str, arguments: JsonObject) -> None:
        self.tool_name = tool_name
        self.arguments = dict(arguments)
        super().__init__(f"no recorded answer of {tool_name} for {self.arguments}")


def runs_live(definition: ToolDefinition, policy: InsertPolicy) -> bool:
    """Whether validation may run the tool itself: it is known to touch nothing outside the call.

    A tool that reads the world is answered from its records as well: what it says tomorrow is no
    evidence for what it said.
    """
    effects = definition.signature.effects
    if policy.run_undeclared and not effects.to_json():
        return True
    return effects.is_read_only and not effects.reads and not effects.open_world


def stub(definition: ToolDefinition) -> Tool:
    """A tool that answers from the worked calls of ``definition``, and touches nothing.

    Calls are recognised whatever the order of keys and whether defaults are written out.

    Example:
        >>> from agentkit.tools.definition import Example
        >>> book = ToolDefinition(
        ...     name="book", examples=(Example(arguments={"day": "Monday"}, result="B-1"),)
        ... )
        >>> stub(book)(day="Monday")
        'B-1'
    """
    answers = {
        _key(definition, example.arguments): example.result
        for example in reversed(definition.examples)  # the first of two contradicting ones holds
    }

    def answer(**arguments: Any) -> Any:
        key = _key(definition, arguments)
        if key not in answers:
            raise MissingStub(definition.name, arguments)
        return answers[key]

    return Tool(definition=definition, function=answer)


def same_call(definition: ToolDefinition, one: JsonObject, other: JsonObject) -> bool:
    """Whether two sets of arguments make the same call of a tool."""
    return _key(definition, one) == _key(definition, other)


def _key(definition: ToolDefinition, arguments: JsonObject) -> CanonicalCall:
    call = ToolCall(call_id="", name=definition.name, arguments=arguments)
    (key,) = canonical_calls([call], [definition])
    return key
