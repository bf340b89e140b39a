"""The frame of one run of one composite: a list, because a list is quick to read and to copy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from agentkit.composites.interpreter.trace import TracedCall

Frame: TypeAlias = list[Any]
"""Meter, activation, place in program order, result, then the variables."""

METER, ACTIVATION, ORDER, RESULT, FIRST_SLOT = range(5)

Evaluate: TypeAlias = Callable[[Frame], Any]
"""An expression, lowered."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Activation:
    """What one run of one composite knows about its surroundings.

    Attributes:
        path: Names of the composites from the outermost one to this one.
        dry_run: Whether this is a validation run.
        checking: Whether the arguments and conditions of all children are checked.
        trace: Who wants to hear of each call.
        watched: Whether a call is more than a call: checked, or traced.
    """

    path: tuple[str, ...] = ()
    dry_run: bool = False
    checking: bool = False
    trace: Callable[[TracedCall], None] | None = None
    watched: bool = False


OUTERMOST = Activation()
"""Of an expression that stands in no composite."""
