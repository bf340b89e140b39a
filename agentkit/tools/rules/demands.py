"""The demands of ``call_before`` on a tool, through its chain."""

from __future__ import annotations

from typing import Protocol

from agentkit.tools.definition import ToolDefinition
from agentkit.tools.rules.records import CallBefore
from agentkit.tools.tool import Tool


class ToolsByName(Protocol):
    """A library, or any other mapping of names to tools."""

    def get(self, name: str, /) -> Tool | None:
        """The tool of a name; None when there is none."""
        ...


def demanded(definition: ToolDefinition, tools: ToolsByName) -> dict[str, ToolDefinition | None]:
    """The tools that calls of a tool lead to: what its rules demand first, and its children.

    The demands of demanded tools and of children count too, so a rule has the effects of every
    tool that it makes models call.

    Args:
        definition: The tool.
        tools: The tools that there are.

    Returns:
        By name, in the order found, without the tool itself; None for a tool that is not there.
    """
    found: dict[str, ToolDefinition | None] = {}
    waiting = [definition]
    while waiting:
        one = waiting.pop()
        names = [rule.tool for rule in one.specification.rules if isinstance(rule, CallBefore)]
        for name in (*names, *(child.name for child in one.signature.children)):
            if name in found or name == definition.name:
                continue
            tool = tools.get(name)
            found[name] = None if tool is None else tool.definition
            if tool is not None:
                waiting.append(tool.definition)
    return found
