"""Our own with children that read the world: they are waited for, independent ones side by side.

The same functions, declared as reading; each call of the composite is one ``run_until_complete``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import workload

from agentkit.composites.composite import Composite
from agentkit.composites.parser import parse
from agentkit.tools.decorator import tool
from agentkit.tools.tool import Tool

VENV = "agentkit"
DISTRIBUTION = "agentkit-evolve"


def awaited(function: Callable[..., Any]) -> Tool:
    """A child that answers at once, but has to be awaited."""

    async def call(**arguments: Any) -> Any:
        return function(**arguments)

    plain = tool(function, effects=("reads",))
    return Tool(definition=plain.definition, function=call, is_async=True)


class Engine:
    """A ``Composite`` over async tools, on an event loop of its own."""

    read = None

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._tools = {name: awaited(function) for name, function in workload.CHILDREN.items()}

    def prepare(self, name: str, source: str, arguments: Mapping[str, Any]) -> Callable[[], Any]:
        """A run of the composite on the loop."""
        composite = Composite(parse(source, self._tools).program, self._tools, name=name)
        return lambda: self._loop.run_until_complete(composite.run_async(arguments))

    def close(self) -> None:
        """End the loop."""
        self._loop.close()
