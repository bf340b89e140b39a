"""A program that writes to a store, to be run beside others or killed in the middle.

``python -m agentkit.testing.conformance.writer URL commit NAME COUNT`` commits COUNT changes to
tools of its own, each change giving all of them one new text and adding one event that records
it; ``append_many`` keeps COUNT batches of episodes instead. It prints one line for each that the
store has taken.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

from agentkit.episodes import Episode
from agentkit.errors import StaleVersionError, UsageError
from agentkit.library.changes import now
from agentkit.library.events import Author, EventDraft, LibraryEvent, chained
from agentkit.library.opening import open_store
from agentkit.library.store import BatchAppending, LibraryChange, Store
from agentkit.tools.definition import Description, ToolDefinition

TOOLS_EACH = 25
"""Tools that one writer owns; in every version all of them carry the same text."""

EPISODES_EACH = 25
"""Episodes in one batch."""


_USAGE = "arguments: URL commit|append_many NAME COUNT; the last needs a store that has it"


def batch(writer: str, number: int) -> LibraryChange:
    """The ``number``-th change of a writer."""
    return LibraryChange(
        proposal_id=f"{writer}-{number}",
        upserts=tuple(
            ToolDefinition(
                name=f"{writer}_{place}", description=Description(summary=f"text {number}")
            )
            for place in range(TOOLS_EACH)
        ),
        author=writer,
    )


def main(arguments: list[str]) -> None:
    """Write as the arguments say."""
    if len(arguments) != 4:
        raise UsageError(_USAGE)
    url, action, writer, count = arguments
    with closing(open_store(url)) as store:
        match action:
            case "commit":
                commit_many(store, writer, int(count), said=_print)
            case "append_many" if isinstance(store, BatchAppending):
                for number in range(int(count)):
                    first = number * EPISODES_EACH
                    store.append_many([_episode(writer, first + n) for n in range(EPISODES_EACH)])
                    _print(number)
            case _:
                raise UsageError(_USAGE)


def _episode(writer: str, number: int) -> Episode:
    return Episode(episode_id=f"{writer}-{number}", request="?", session_id=writer)


def commit_many(
    store: Store, writer: str, count: int, *, said: Callable[[int], object] | None = None
) -> None:
    """Commit that many changes of a writer, one after the other, beside other writers.

    Args:
        store: The store to write to.
        writer: The owner of the tools.
        count: How many changes.
        said: Called with the number of each that the store has taken.
    """
    last: LibraryEvent | None = None
    for number in range(count):
        last = _commit(store, batch(writer, number), last)
        if said is not None:
            said(number)


def _print(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


def with_event(change: LibraryChange, last: LibraryEvent | None, *, version: int) -> LibraryChange:
    """A change that makes ``version``, with an event of its time behind ``last`` that says so."""
    draft = EventDraft(
        kind="written",
        author=Author(kind="program", name=change.author),
        proposal_id=change.proposal_id,
        library_version=version,
    )
    return replace(change, events=chained(last, [draft], at=change.created_at or now()))


def _commit(store: Store, change: LibraryChange, last: LibraryEvent | None) -> LibraryEvent | None:
    while True:
        version = store.load().version
        held = store.events(after=last.sequence if last else 0)
        last = held[-1] if held else last
        try:
            store.commit(with_event(change, last, version=version + 1), expected_version=version)
        except StaleVersionError:  # another writer was faster: build on what it made
            continue
        return last


if __name__ == "__main__":
    main(sys.argv[1:])
