"""The children called directly by a Python function: the floor that the others are compared with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import workload

VENV = "agentkit"
DISTRIBUTION = ""


class Engine:
    """Plain calls; there is nothing to read."""

    read = None

    def prepare(self, name: str, _: str, arguments: Mapping[str, Any]) -> Callable[[], Any]:
        """A call of the function with that name."""
        function = getattr(workload, name)
        return lambda: function(**arguments)
