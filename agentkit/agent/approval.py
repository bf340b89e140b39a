"""Asking a person before a tool runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from agentkit.messages import ToolCall
from agentkit.tools.tool import Tool


@dataclass(frozen=True, kw_only=True, slots=True)
class Approval:
    """A person's decision on one call.

    Attributes:
        approved: Whether the call may run.
        reason: Why not, in words that the model reads.
    """

    approved: bool
    reason: str = ""


Decision: TypeAlias = Approval | bool
Approver: TypeAlias = Callable[[ToolCall, Tool], Decision | Awaitable[Decision]]
"""Decides on one call; sync or async. Without an approver such calls end the run as deferred."""


class AskedLater(Exception):  # noqa: N818 - a signal to the executor, which catches it
    """Raised by an approver that can not say yet: the call is deferred, as without an approver."""


def as_approval(decision: Decision) -> Approval:
    """A plain yes or no as an ``Approval``."""
    return decision if isinstance(decision, Approval) else Approval(approved=decision)
