"""The rules that every store applies to what it is asked, so that all of them refuse alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

from agentkit.errors import StoreError, UsageError
from agentkit.library.store import EpisodeFilter, LibraryChange
from agentkit.tools.definition import ToolDefinition


def check_change(change: LibraryChange) -> None:
    """Refuse a change that no library could take, before anything is written.

    Every definition's digest is known afterwards, so a commit need not compute it while it
    holds a lock.

    Raises:
        StoreError: The change has no id, is empty, names one tool twice, or holds a definition
            that JSON can not carry.
    """
    if not change.proposal_id.strip():
        raise StoreError(
            "a change needs a proposal_id, by which a retry is recognised; got an empty one"
        )
    names = Counter([*(tool.name for tool in change.upserts), *change.removals])
    if not names:
        raise StoreError(
            f"change {change.proposal_id!r} is empty: give definitions to add or names to remove"
        )
    twice = sorted(name for name, count in names.items() if count > 1)
    if twice:
        raise StoreError(
            f"change {change.proposal_id!r} names {', '.join(map(repr, twice))} more than once; "
            "one change holds one step for each tool"
        )
    for definition in change.upserts:
        _digest(definition)


def check_filter(matching: EpisodeFilter) -> None:
    """Refuse a filter that means nothing.

    Raises:
        UsageError: The limit is negative.
    """
    if matching.limit is not None and matching.limit < 0:
        raise UsageError(f"an episode limit is 0 or more, or None for all; got {matching.limit}")


def no_such_version(version: int, known: Sequence[int]) -> StoreError:
    """The error for a version that was never made."""
    held = f"versions 1 to {known[-1]}" if known else "no version yet"
    return StoreError(f"there is no library version {version}; the store holds {held}")


def now() -> str:
    """The time of a commit: ISO 8601 in UTC, to the microsecond."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def _digest(definition: ToolDefinition) -> str:
    try:
        return definition.digest
    except (ValueError, RecursionError) as error:
        raise StoreError(
            f"tool {definition.name!r} can not be stored: {error}. Definitions hold JSON data only"
        ) from error
