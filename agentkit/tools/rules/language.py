"""What conditions need of the composite language; loaded when a tool has one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
    from agentkit.tools.composite.expressions import Expression
    from agentkit.tools.composite.limits import CONTRACT_LIMITS

__all__ = ["CONTRACT_LIMITS", "Expression"]

__getattr__ = lazy_door(
    __name__,
    {
        "CONTRACT_LIMITS": "agentkit.tools.composite.limits",
        "Expression": "agentkit.tools.composite.expressions",
    },
)
