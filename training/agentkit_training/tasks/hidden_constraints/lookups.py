"""Tools that demand nothing, whose results others need."""

from __future__ import annotations

import zlib

from agentkit.tools.definition import ToolDefinition
from agentkit_training.tasks.hidden_constraints.hidden_tool import defined

LOOKUPS: dict[str, ToolDefinition] = {
    "find_customer": defined(
        "find_customer", "Find a customer.", {"name": ("string", "Name of the person.")}
    ),
    "find_contract": defined(
        "find_contract", "Find a contract.", {"name": ("string", "Name of the person.")}
    ),
}
"""Tools without demands, whose results others need."""

_LETTERS = {"find_customer": "C", "find_contract": "K"}


def looked_up(tool: str, name: str) -> str:
    """What a lookup tells of a person: the same whenever it is asked.

    Example:
        >>> looked_up("find_customer", "Ann Lee") == looked_up("find_contract", "Ann Lee")
        False
    """
    number = zlib.crc32(f"{tool} {name.casefold()}".encode()) % 9000 + 1000
    return f"{_LETTERS[tool]}-{number}"
