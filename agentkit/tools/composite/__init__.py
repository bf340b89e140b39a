"""The composite language: programs over tools, as data. Nothing here runs text as Python.

A lazy door: the nodes of programs cost more to import than all the rest of an agent, and most
agents have no composite.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
    from agentkit.tools.composite.binding import composite_tool
    from agentkit.tools.composite.codec import program_from_json
    from agentkit.tools.composite.contracts import Conditions
    from agentkit.tools.composite.interpreter import Composite
    from agentkit.tools.composite.limits import READING_LIMITS
    from agentkit.tools.composite.paths import shortest_path
    from agentkit.tools.composite.problems import RUN_CODES

__all__ = [
    "READING_LIMITS",
    "RUN_CODES",
    "Composite",
    "Conditions",
    "composite_tool",
    "program_from_json",
    "shortest_path",
]

__getattr__ = lazy_door(
    __name__,
    {
        "READING_LIMITS": "agentkit.tools.composite.limits",
        "RUN_CODES": "agentkit.tools.composite.problems",
        "Composite": "agentkit.tools.composite.interpreter",
        "Conditions": "agentkit.tools.composite.contracts",
        "composite_tool": "agentkit.tools.composite.binding",
        "program_from_json": "agentkit.tools.composite.codec",
        "shortest_path": "agentkit.tools.composite.paths",
    },
)
