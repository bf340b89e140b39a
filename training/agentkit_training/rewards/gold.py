"""The gold calls that an answer is compared with: which of what is allowed comes nearest to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agentkit.evaluation.expectations import (
    AllowedCalls,
    ExactCalls,
    Expectation,
    GoldCall,
    NoCall,
)
from agentkit.messages import ToolCall
from agentkit.metrics import CallLike, GoldCalls
from agentkit.tools.definition import ToolDefinition
from agentkit_training.gold import first_choice
from agentkit_training.nearest_gold import nearest_gold


def gold_calls(
    expects: Sequence[Expectation],
    calls: Sequence[ToolCall],
    known: Mapping[str, ToolDefinition],
) -> tuple[CallLike, ...] | None:
    """The gold calls of one user turn, for metrics that compare with exact values.

    Where gold lists allowed values (BFCL), each argument has the value that the nearest call gave
    where that is allowed, and the first allowed one where it is not, see ``nearest_gold``.

    Args:
        expects: What a right answer is.
        calls: The calls that were made.
        known: The tools by name.

    Returns:
        The calls; empty where none may be made, None where something else than calls is judged.

    Raises:
        UsageError: A gold call can not be read, or names a tool that is not known.
    """
    if len(expects) != 1:
        return None
    match expects[0]:
        case ExactCalls(calls=gold):
            return gold
        case NoCall():
            return ()
        case AllowedCalls() as allowed:
            return _nearest_allowed(allowed, calls, known)
        case _:
            return None


def _nearest_allowed(
    allowed: AllowedCalls, calls: Sequence[ToolCall], known: Mapping[str, ToolDefinition]
) -> tuple[GoldCall, ...]:
    GoldCalls(allowed.calls, known.values(), language=allowed.language).match(())  # or it raises
    plain = [first_choice(one, known[one.name]) for one in allowed.calls]
    return nearest_gold(allowed, calls, known, plain=plain, corrects_optional=True)
