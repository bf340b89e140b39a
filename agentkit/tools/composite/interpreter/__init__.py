"""Running a program: lowered once to Python closures, metered, over the bound children.

``runner`` is the way in. ``lowering`` and ``statements`` turn nodes into closures over a frame;
``operations``, ``functions``, ``methods`` and ``consumers`` are what the closures compute with,
each guarded by the ``meter``; ``children`` calls one child.
"""

from agentkit.tools.composite.interpreter.runner import Composite
from agentkit.tools.composite.interpreter.trace import TracedCall

__all__ = ["Composite", "TracedCall"]
