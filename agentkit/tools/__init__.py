"""1. What a tool is: a definition in four levels, and a binding that says how it runs.

``definition`` holds the records and ``tool`` the binding; ``decorator`` and ``sources`` make them
from functions, pydantic models and JSON; ``validation`` and ``coercion`` hold calls against them.
Only the records are imported here, so that this package costs little; ``from agentkit import
tool`` brings the decorator.
"""

from agentkit.tools.definition import (
    ChildReference,
    Description,
    EffectName,
    Effects,
    Example,
    Origin,
    Signature,
    Specification,
    ToolDefinition,
)
from agentkit.tools.tool import Tool

__all__ = [
    "ChildReference",
    "Description",
    "EffectName",
    "Effects",
    "Example",
    "Origin",
    "Signature",
    "Specification",
    "Tool",
    "ToolDefinition",
]
