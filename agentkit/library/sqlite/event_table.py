"""The table of a SQLite file that holds the chain of events."""

from __future__ import annotations

import json
from collections.abc import Sequence

from agentkit.errors import StoreFormatError
from agentkit.library.changes import are_held
from agentkit.library.events import LibraryEvent
from agentkit.library.sqlite.connection import SQLiteConnection

_LAST = "SELECT sequence, body FROM library_events ORDER BY sequence DESC LIMIT 1"
_AFTER = "SELECT sequence, body FROM library_events WHERE sequence > ? ORDER BY sequence"
_BETWEEN = """
SELECT sequence, body FROM library_events WHERE sequence BETWEEN ? AND ? ORDER BY sequence
"""

_GREATEST = 2**63 - 1  # the largest number that SQLite compares


class EventTable:
    """The chain over a connection. A commit writes to it inside its own transaction."""

    def __init__(self, connection: SQLiteConnection) -> None:
        self._connection = connection

    def events(self, *, after: int = 0) -> Sequence[LibraryEvent]:
        """See ``EventStore.events``."""
        rows = self._connection.execute(_AFTER, (min(max(after, 0), _GREATEST),))
        return tuple(self._event(*row) for row in rows)

    def last(self) -> LibraryEvent | None:
        """The end of the chain; None when there is none."""
        for row in self._connection.execute(_LAST):
            return self._event(*row)
        return None

    def holds(self, events: Sequence[LibraryEvent]) -> bool:
        """Whether a change of these events was applied before."""
        rows = self._connection.execute(_BETWEEN, (events[0].sequence, events[-1].sequence))
        return are_held(events, [self._event(*row) for row in rows])

    def append(self, rows: Sequence[tuple[int, str]]) -> None:
        """Write events that follow the last one; the caller holds the transaction."""
        if rows:
            self._connection.execute_many("INSERT INTO library_events VALUES (?,?)", rows)

    def _event(self, sequence: int, body: str) -> LibraryEvent:
        try:
            event = LibraryEvent.from_json(json.loads(body))
        except (ValueError, TypeError, AttributeError, StoreFormatError) as error:
            raise StoreFormatError(
                f"{self._connection.path} holds an event that can not be read ({sequence}): {error}"
            ) from error
        if event.sequence != sequence:
            raise StoreFormatError(
                f"{self._connection.path} holds event {event.sequence} in the place of event "
                f"{sequence}; somebody changed the file by hand"
            )
        return event


def encoded(events: Sequence[LibraryEvent]) -> list[tuple[int, str]]:
    """Events as the table holds them."""
    return [
        (event.sequence, json.dumps(event.to_json(), ensure_ascii=False, separators=(",", ":")))
        for event in events
    ]
