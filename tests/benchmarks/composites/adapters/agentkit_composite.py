"""Our own: the text is read once into a program, which an interpreter runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import workload

from agentkit.composites.composite import Composite
from agentkit.composites.parser import parse
from agentkit.tools.decorator import tool
from agentkit.tools.definition import Effects

VENV = "agentkit"
DISTRIBUTION = "agentkit-evolve"


class Engine:
    """A ``Composite`` over tools made of the children."""

    def __init__(self) -> None:
        pure = Effects(reads=False, writes=False)
        self._tools = {
            name: tool(function, effects=pure) for name, function in workload.CHILDREN.items()
        }

    def prepare(self, name: str, source: str, arguments: Mapping[str, Any]) -> Callable[[], Any]:
        """A run of the composite, read and bound beforehand."""
        program = parse(source, self._tools).program
        composite = Composite(program, self._tools, name=name)
        return lambda: composite.run(arguments)

    def read(self, source: str) -> None:
        """Text to program, all checks included."""
        parse(source, self._tools)
