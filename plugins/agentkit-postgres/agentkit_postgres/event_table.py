"""The table that holds the chain of events."""

from __future__ import annotations

import json
from collections.abc import Sequence

from agentkit.errors import StoreFormatError
from agentkit.library.events import LibraryEvent
from agentkit_postgres.connection import Connections

_AFTER = "SELECT sequence, body FROM events WHERE sequence > %s ORDER BY sequence"

_GREATEST = 2**63 - 1  # the largest number that PostgreSQL compares


class EventTable:
    """The chain. A commit appends to it inside its own transaction (``commit_change``)."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def events(self, *, after: int = 0) -> Sequence[LibraryEvent]:
        """See ``EventStore.events``."""
        rows = self._connections.execute(_AFTER, (min(max(after, 0), _GREATEST),))
        return tuple(self._event(*row) for row in rows)

    def _event(self, sequence: int, body: str) -> LibraryEvent:
        shown = self._connections.address.shown
        try:
            event = LibraryEvent.from_json(json.loads(body))
        except (ValueError, TypeError, AttributeError, StoreFormatError) as error:
            raise StoreFormatError(
                f"{shown} holds an event that can not be read ({sequence}): {error}"
            ) from error
        if event.sequence != sequence:
            raise StoreFormatError(
                f"{shown} holds event {event.sequence} in the place of event {sequence}; somebody "
                "changed the table by hand"
            )
        return event
