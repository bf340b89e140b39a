"""What a check says of a row that is not what it should be."""

from __future__ import annotations

from collections.abc import Callable

from agentkit.errors import AgentKitError


def row_fault(read: Callable[[], object], kept_as: object, *, advice: str) -> str:
    """Why a row is not what it should be, in words; empty when it is.

    Args:
        read: Reads what the row holds, and gives that as which it ought to be kept.
        kept_as: That as which it is kept.
        advice: What to do about it.
    """
    try:
        found = read()
    except (
        AgentKitError,
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
        RecursionError,
    ) as error:
        return f"it can not be read ({error}); {advice}"
    if found != kept_as:
        return (
            "it was changed after it was written: it is not the one as which it is kept; " + advice
        )
    return ""
