"""``call_before`` of the tools that a composite calls.

A composite must not be a way around a rule of its children. Whether a value comes from an earlier
call can not be seen inside it, since the program makes the arguments; but a call that is wanted
before a child, and that the composite does not make itself, is wanted before the composite.
"""

from __future__ import annotations

from collections.abc import Mapping

from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool


def wanted_before_children(definition: ToolDefinition, tools: Mapping[str, Tool]) -> dict[str, str]:
    """The tools that must be called before a composite, each with the child that wants it.

    Args:
        definition: The composite; for a primitive the answer is empty.
        tools: The library's tools by name.
    """
    inside: dict[str, ToolDefinition] = {}
    waiting = [definition]
    while waiting:
        for child in waiting.pop().signature.children:
            tool = tools.get(child.name)
            if tool is not None and child.name not in inside:
                inside[child.name] = tool.definition
                waiting.append(tool.definition)
    return {
        rule.tool: name
        for name, child_definition in inside.items()
        for rule in child_definition.specification.rules
        if rule.kind == "call_before" and rule.tool not in inside
    }
