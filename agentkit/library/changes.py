"""The rules that every store applies to what it is asked, so that all of them refuse alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from agentkit.episodes import Episode
from agentkit.errors import (
    DefinitionError,
    StaleChainError,
    StaleVersionError,
    StoreError,
    StoreFormatError,
    StoreLookupError,
    UsageError,
)
from agentkit.library.events import LibraryEvent, check_types
from agentkit.library.store import EpisodeFilter, LibraryChange
from agentkit.reading import read_json
from agentkit.tools.canonical import is_json
from agentkit.tools.definition import ToolDefinition

T = TypeVar("T")


def check_change(change: LibraryChange) -> None:
    """Refuse a change that no library could take, before anything is written.

    Every definition's digest and every event's hash is known afterwards, so a commit need not
    compute it while it holds a lock.

    Raises:
        StoreError: The change has no id, is empty, names one tool twice, says when in other words
            than ISO 8601 with a time zone, holds a definition or an event that JSON can not
            carry, or its events are no chain.
    """
    if not change.proposal_id.strip():
        raise StoreError(
            "a change needs a proposal_id, by which a retry is recognised; got an empty one"
        )
    names = Counter([*(tool.name for tool in change.upserts), *change.removals])
    if not names and not change.events:
        raise StoreError(
            f"change {change.proposal_id!r} is empty: give definitions to add, names to remove or "
            "events to keep"
        )
    twice = sorted(name for name, count in names.items() if count > 1)
    if twice:
        raise StoreError(
            f"change {change.proposal_id!r} names {', '.join(map(repr, twice))} more than once; "
            "one change holds one step for each tool"
        )
    if change.created_at:
        _check_time(change)
    for definition in change.upserts:
        _digest(definition)
    _check_events(change)


def check_follows(events: Sequence[LibraryEvent], last: LibraryEvent | None) -> None:
    """Refuse events that do not follow the last one of the store.

    Raises:
        StaleChainError: The store's chain does not end where the events were chained to.
    """
    held, end = (0, "") if last is None else (last.sequence, last.hash)
    if events and (events[0].sequence, events[0].previous) != (held + 1, end):
        raise StaleChainError(expected=events[0].sequence - 1, actual=held)


def are_held(events: Sequence[LibraryEvent], held: Sequence[LibraryEvent]) -> bool:
    """Whether the store holds the events of a change already, so that this is a retry.

    Args:
        events: Of the change.
        held: What the store holds from the place of the first one on.
    """
    hashes = [event.hash for event in held[: len(events)]]
    return bool(events) and hashes == [event.hash for event in events]


def check_filter(matching: EpisodeFilter) -> None:
    """Refuse a filter that means nothing.

    Raises:
        UsageError: The limit is negative.
    """
    if matching.limit is not None and matching.limit < 0:
        raise UsageError(f"an episode limit is 0 or more, or None for all; got {matching.limit}")


def matches(episode: Episode, matching: EpisodeFilter) -> bool:
    """Whether an episode is one that the filter asks for; for a store without an index.

    Example:
        >>> matches(Episode(episode_id="e1", request="Hi"), EpisodeFilter(session_id="s"))
        False
    """
    if matching.session_id is not None and episode.session_id != matching.session_id:
        return False
    if matching.stop_reason is not None and episode.stop_reason != matching.stop_reason:
        return False
    if any(episode.metadata.get(key) != value for key, value in matching.labels.items()):
        return False
    called = (call.name for call in episode.calls)
    return matching.tool_name is None or matching.tool_name in called


_ATTEMPTS = 100
"""How often a change is tried while other writers commit first."""


def commit_with_retry(attempt: Callable[[], T]) -> T:
    """Read, decide and commit, again whenever another writer committed first.

    Args:
        attempt: Reads the newest library, decides on it, and commits.

    Raises:
        StaleVersionError: Other writers committed first every time.

    Example:
        >>> commit_with_retry(lambda: 7)
        7
    """
    for _ in range(_ATTEMPTS - 1):
        with suppress(StaleVersionError):
            return attempt()
    return attempt()


def stored_definition(digest: str, origin: str, body: str, *, place: object) -> ToolDefinition:
    """The definition that a store holds, if it has the digest under which it is kept.

    Args:
        digest: The digest that the store names.
        origin: Where the definition came from, as JSON; no digest covers it.
        body: The rest of it, as JSON.
        place: The store, without secrets.

    Raises:
        StoreFormatError: It is no definition, or was changed where it lies.
    """
    try:
        record = read_json(body)
        record["origin"] = read_json(origin)
        definition = ToolDefinition.from_json(record)
        actual = definition.digest
    except (ValueError, TypeError, AttributeError, RecursionError, DefinitionError) as error:
        raise StoreFormatError(
            f"{place} holds a definition that can not be read ({digest}): {error}. Nothing of it "
            "is used; restore a backup"
        ) from error
    if actual != digest:
        raise changed_definition(
            definition, f"its digest is {actual[:12]}, not {digest[:12]}", place
        )
    return definition


def changed_definition(definition: ToolDefinition, why: str, place: object) -> StoreFormatError:
    """The error for a definition that is not the one that was written there."""
    return StoreFormatError(
        f"{place} holds a definition of {definition.name!r} that was changed where it lies: {why}. "
        "Nothing of it is used; 'agentkit check' lists what is damaged, and a copy ('agentkit "
        "store copy BACKUP NEW') restores it"
    )


def no_such_version(version: int, known: Sequence[int]) -> StoreLookupError:
    """The error for a version that was never made."""
    held = f"versions 1 to {known[-1]}" if known else "no version yet"
    return StoreLookupError(f"there is no library version {version}; the store holds {held}")


def now() -> str:
    """The time of a commit: ISO 8601 in UTC, to the microsecond."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def _check_time(change: LibraryChange) -> None:
    try:
        aware = datetime.fromisoformat(change.created_at).tzinfo is not None
    except ValueError:
        aware = False
    if not aware:
        raise StoreError(
            f"change {change.proposal_id!r} says that it was made at {change.created_at!r}; write "
            "ISO 8601 with a time zone, or nothing for the time of the commit"
        )


def _digest(definition: ToolDefinition) -> str:
    try:
        return definition.digest
    except (ValueError, RecursionError) as error:
        raise StoreError(
            f"tool {definition.name!r} can not be stored: {error}. Definitions hold JSON data only"
        ) from error


def _check_events(change: LibraryChange) -> None:
    before: LibraryEvent | None = None
    for event in change.events:
        place = event.sequence if before is None else before.sequence + 1
        end = event.previous if before is None else _hash(before, change)
        if event.sequence != place or event.previous != end:
            raise _no_chain(change, event, f"does not follow event {place - 1}")
        if event.sequence < 1 or (event.sequence == 1) != (event.previous == ""):
            raise _no_chain(change, event, "is neither the first nor names the one before")
        before = event
    if before is not None:
        _hash(before, change)


def _hash(event: LibraryEvent, change: LibraryChange) -> str:
    """The hash of an event that can be read again: one that could not would end the chain."""
    try:
        check_types(event)
        why = "" if is_json(event.facts) and event.hash else "its facts are no JSON data"
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise _no_event(change, event, str(error)) from error
    if why:
        raise _no_event(change, event, why)
    return event.hash


def _no_event(change: LibraryChange, event: LibraryEvent, why: str) -> StoreError:
    return StoreError(
        f"event {event.sequence} of change {change.proposal_id!r} can not be stored: {why}; "
        "make events with agentkit.library.event_chain.chained"
    )


def _no_chain(change: LibraryChange, event: LibraryEvent, what: str) -> StoreError:
    return StoreError(
        f"the events of change {change.proposal_id!r} are no chain: event {event.sequence} {what}; "
        "make them with agentkit.library.event_chain.chained"
    )


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def begun_at(episode: Episode, *, kept: datetime) -> datetime:
    """``Episode.started_at`` as a time; where it says none, the time at which it was kept.

    A time without a zone is UTC, as the field promises. What began after it was kept was told by a
    clock that is ahead, and counts as kept: else it would outlast all others, for years.

    Example:
        >>> episode = Episode(episode_id="e1", request="Hi", started_at="2026-03-02T10:00:00Z")
        >>> begun_at(episode, kept=datetime.now(UTC)).isoformat()
        '2026-03-02T10:00:00+00:00'
    """
    try:
        told = datetime.fromisoformat(episode.started_at)
        begun = told.replace(tzinfo=UTC) if told.tzinfo is None else told.astimezone(UTC)
        return min(begun, kept)
    except (ValueError, TypeError, OverflowError):  # empty, or no time at all
        return kept


def microseconds(time: datetime) -> int:
    """A time as whole microseconds since 1970, for a column that is compared and sorted.

    Example:
        >>> microseconds(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC))
        1000000
    """
    return (time - _EPOCH) // _MICROSECOND
