"""Where the history of words comes from: the revisions in a store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from agentkit.errors import ToolNotFoundError
from agentkit.library.library import nearest_names
from agentkit.library.store import EventStore, ToolRevision, ToolStore

Histories = Mapping[str, Sequence[ToolRevision]]
"""The revisions of each tool by name, ascending."""


def histories_of(store: ToolStore, tools: Iterable[str] = ()) -> dict[str, Sequence[ToolRevision]]:
    """The revisions of tools, by name.

    A store has no list of all names that it ever held. Without ``tools`` these are the tools of the
    newest library, and those that the chain of events names, so that removed ones are among them.
    One that was removed before a library kept events has to be asked for by name.

    Args:
        store: Where the library is kept.
        tools: The names of tools; empty for all that are found.

    Raises:
        ToolNotFoundError: The store never held a tool of a given name.
    """
    wanted = sorted(set(tools)) or sorted(_names(store))
    found = {name: store.history(name) for name in wanted}
    known = {name: history for name, history in found.items() if history}
    if tools and len(known) < len(found):
        missing = next(name for name, history in found.items() if not history)
        nearest = nearest_names(missing, _names(store))
        raise ToolNotFoundError(missing, nearest=nearest, version=store.load().version)
    return known


def _names(store: ToolStore) -> set[str]:
    names = {tool.name for tool in store.load()}
    if isinstance(store, EventStore):
        names |= {event.tool_name for event in store.events() if event.tool_name}
    return names
