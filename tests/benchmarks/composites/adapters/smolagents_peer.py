"""smolagents: ``LocalPythonExecutor`` walks the syntax tree of the text.

The function is defined once; what is timed is a call of the callable that the executor made of it,
so that reading the text again is not part of a call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import workload
from smolagents.local_python_executor import LocalPythonExecutor

VENV = "smolagents"
DISTRIBUTION = "smolagents"


class Engine:
    """One executor with the children as tools."""

    def __init__(self) -> None:
        self._executor = LocalPythonExecutor([], timeout_seconds=None)
        self._executor.send_tools(dict(workload.CHILDREN))

    def prepare(self, name: str, source: str, arguments: Mapping[str, Any]) -> Callable[[], Any]:
        """A call of the function that the executor defined."""
        self._executor(source)
        function = self._executor.custom_tools[name]
        return lambda: function(**arguments)

    def read(self, source: str) -> None:
        """Text to defined function."""
        self._executor(source)
