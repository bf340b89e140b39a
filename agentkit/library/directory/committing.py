"""What a store answers to a change before it writes anything, and what it then writes."""

from __future__ import annotations

from dataclasses import dataclass

from agentkit.errors import StaleVersionError, ToolNotFoundError
from agentkit.library.changes import are_held, check_follows, now
from agentkit.library.directory.entries import encoded
from agentkit.library.directory.log import Log
from agentkit.library.library import nearest_names
from agentkit.library.sqlite.connection import storable
from agentkit.library.store import LibraryChange


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """The next change of the history.

    Attributes:
        place: Where it is to stand.
        version: The library version afterwards.
        content: Its file.
    """

    place: int
    version: int
    content: bytes


def answer(change: LibraryChange, log: Log, expected_version: int) -> int | None:
    """The version that a known change made; None for one that is to be made.

    The caller holds the log still.

    Raises:
        StaleVersionError: Another writer was faster, or another writer's events came first.
        ToolNotFoundError: A removal names a tool that is not there.
    """
    past, _ = log.refresh()
    made = past.made_by.get(storable(change.proposal_id))
    if made is not None:
        return made
    if not change.makes_version and _holds(log, change):
        return past.version
    if past.version != expected_version:
        raise StaleVersionError(expected=expected_version, actual=past.version)
    check_follows(change.events, past.last_event)
    for name in change.removals:
        if name not in past.definitions:
            nearest = nearest_names(name, past.definitions)
            raise ToolNotFoundError(name, nearest=nearest, version=past.version)
    return None


def encoded_behind(change: LibraryChange, log: Log) -> Claim:
    """A change as the next one of the history; the caller holds the log still."""
    past, _ = log.refresh()
    place, version = past.length + 1, past.version + change.makes_version
    content = encoded(
        change,
        place=place,
        version=version,
        previous=past.head,
        created_at=change.created_at or now(),
    )
    return Claim(place=place, version=version, content=content)


def _holds(log: Log, change: LibraryChange) -> bool:
    first = change.events[0].sequence
    end = log.refresh()[0].last_event
    if end is None or first > end.sequence:
        return False
    return are_held(change.events, log.events(first - 1))
