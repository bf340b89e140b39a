"""A program that offers proposals which others offer too, and counts what the store answers.

``python racing_writer.py URL OFFSET COUNT`` offers COUNT proposals, starting with the one at OFFSET,
and prints JSON. Not a test module: a test runs several at once.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from contextlib import closing

from agentkit import ToolDefinition, open_store
from agentkit.errors import StaleVersionError
from agentkit.library import LibraryChange, LibraryEvent, Store
from agentkit.library.chain import EventDraft, chained
from agentkit.library.changes import now
from agentkit.library.events import Author
from agentkit.tools.definition import Description


class Racer:
    """Offers proposals and remembers what came of each try.

    Args:
        store: Where they are offered.
    """

    def __init__(self, store: Store) -> None:
        self.answers: Counter[str] = Counter()
        self._author = Author(kind="program", name=f"racer {os.getpid()}")
        self._store = store
        self._last: LibraryEvent | None = None

    def offer(self, number: int) -> None:
        """Offer one proposal until the store has it."""
        while not self._tried(f"proposal-{number}", f"tool-{number % 10}"):
            self.answers["stale"] += 1

    def _tried(self, proposal_id: str, name: str) -> bool:
        version = self._store.load().version
        self._catch_up()
        tool = ToolDefinition(name=name, description=Description(summary=proposal_id))
        draft = EventDraft(
            kind="active",
            author=self._author,
            proposal_id=proposal_id,
            tool_name=name,
            library_version=version + 1,
            digest_after=tool.digest,
        )
        events = chained(self._last, [draft], at=now())
        change = LibraryChange(proposal_id=proposal_id, upserts=(tool,), events=events)
        try:
            self._store.commit(change, expected_version=version)
        except StaleVersionError:
            return False
        return True

    def told(self, offered: int) -> Counter[str]:
        """How many of the proposals are its own work, and how many it found made by others.

        The events say so. A version does not: that of the next one may be another racer's, who
        made the same proposal a moment before.
        """
        made = sum(event.author == self._author for event in self._store.events())
        return self.answers + Counter(made=made, known=offered - made)

    def _catch_up(self) -> None:
        held = self._store.events(after=self._last.sequence if self._last else 0)
        self._last = held[-1] if held else self._last


def main(url: str, offset: str, count: str) -> None:
    """Offer all proposals, from the offset around."""
    with closing(open_store(url)) as store:
        racer = Racer(store)
        for number in range(int(count)):
            racer.offer((int(offset) + number) % int(count))
        told = racer.told(int(count))
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
