"""``Router``: decides, before a run, which library it uses and how its episode is labelled.

The agent knows nothing about experiments. It asks its router, if it has one, and does what that
says; ``agentkit.evolution.serving`` holds the router that serves candidates to a share of the
sessions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from agentkit.episodes import Episode
from agentkit.episodes.labels import ROUTE_LABELS, TRACE_LABELS, is_extra_record
from agentkit.library.library import Library


@dataclass(frozen=True, kw_only=True, slots=True)
class RouteRequest:
    """A run that is about to begin.

    Attributes:
        key: The session's id; without a session the id that the run's episode will have. So what
            was decided by it can be worked out again from the stored episode.
        library: What the run uses if nobody says otherwise: the newest version for a conversation
            that begins, its own version for one that goes on.
        at: The agent's library at another version. It may read the store, so call it in a thread.
        is_new: Whether the conversation begins with this run.
        labels: Labels of the conversation's episodes so far, later ones in the place of earlier
            ones of the same name; empty for one that begins.
    """

    key: str
    library: Library
    at: Callable[[int], Library]
    is_new: bool = True
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Route:
    """Where a run goes.

    Attributes:
        library: The snapshot that it is pinned to. Give the same object for the same tools: what
            was worked out for it, and what a provider has cached of a prompt, holds on then.
        labels: For ``Episode.metadata``; they go before the caller's of the same name.
    """

    library: Library
    labels: Mapping[str, str] = field(default_factory=dict)


class Router(Protocol):
    """Decides about runs. One serves any number of agents and runs at once."""

    async def route(self, asked: RouteRequest) -> Route:
        """Where the run goes.

        It stands before the answer, so it should take microseconds. What it raises ends the run
        before a model is asked: a router that could not say what is safe must not be passed by.
        """
        ...


def labels_of(episodes: Iterable[Episode]) -> dict[str, str]:
    """The labels of a conversation, oldest first; a later one goes before an earlier one."""
    labels: dict[str, str] = {}
    for episode in episodes:
        labels |= episode.metadata
    return labels


def unrouted(labels: Mapping[str, str]) -> dict[str, str]:
    """The labels without those that a router gave, for a run that is routed anew."""
    return {name: text for name, text in labels.items() if name not in ROUTE_LABELS}


def untraced(labels: Mapping[str, str]) -> dict[str, str]:
    """The labels without those that say where another run was traced."""
    return {name: text for name, text in labels.items() if name not in TRACE_LABELS}


def happened(episodes: Iterable[Episode]) -> list[Episode]:
    """The episodes of a conversation without shadow runs and other records beside it."""
    return [episode for episode in episodes if not is_extra_record(episode.metadata)]
