"""Running a program: lowered once to Python closures, metered, over the bound children.

``runner`` is the way in. ``lowering`` and ``statements`` turn nodes into closures over a frame;
``operations``, ``functions``, ``methods`` and ``consumers`` are what the closures compute with,
each guarded by the ``meter``; ``children`` calls one child. For programs that have to wait for
children, ``scheduling`` says what runs side by side, ``awaiting`` and ``slow_items`` wait inside
expressions, and ``waiting`` calls one child.

A lazy door, because ``expressions`` needs the lowering and ``runner`` needs the expressions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
    from agentkit.tools.composite.interpreter.runner import Composite
    from agentkit.tools.composite.interpreter.trace import TracedCall

__all__ = ["Composite", "TracedCall"]

__getattr__ = lazy_door(
    __name__,
    {
        "Composite": "agentkit.tools.composite.interpreter.runner",
        "TracedCall": "agentkit.tools.composite.interpreter.trace",
    },
)
