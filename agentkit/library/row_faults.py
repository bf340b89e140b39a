"""What is said of a row that is not what it should be."""

from __future__ import annotations

import json
from collections.abc import Callable

from agentkit.errors import AgentKitError, StoreFormatError


def read_evidence(text: str, *, version: int, place: object) -> tuple[str, ...]:
    """The evidence of a version from the JSON array that a table holds.

    Args:
        text: The array.
        version: Named in the error, as is the ``place``.
        place: The store, without secrets.

    Raises:
        StoreFormatError: It is no array of texts.
    """
    try:
        found = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        found = None
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise StoreFormatError(
            f"{place} holds a version that can not be read ({version}): its evidence is not a JSON "
            f"array of texts: {str(text)[:80]!r}. Restore a backup; 'agentkit check' lists what "
            "else is damaged"
        )
    return tuple(found)


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
