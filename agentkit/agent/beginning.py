"""Where a run begins: which library, what was said before, and what the model was shown of it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from agentkit.agent.conversation import conversation
from agentkit.agent.offering import Shown
from agentkit.agent.recording import Start
from agentkit.agent.result import RunResult
from agentkit.agent.routing import Router, RouteRequest, happened, labels_of, unrouted, untraced
from agentkit.agent.snapshots import Snapshots
from agentkit.episodes import Episode
from agentkit.errors import UsageError
from agentkit.library.store import EpisodeFilter, EpisodeStore
from agentkit.messages import Message


@dataclass(frozen=True, kw_only=True, slots=True)
class Beginnings:
    """Finds where runs begin.

    Attributes:
        snapshots: The library's versions.
        store: Where conversations are kept; None when callers keep them.
        router: Decides which library each run uses; None leaves it as it is.
    """

    snapshots: Snapshots
    store: EpisodeStore | None
    router: Router | None

    async def of_request(self, start: Start, history: Sequence[Message] | RunResult) -> Start:
        """The start of a run for a new request.

        Args:
            start: What the caller said, with the current library.
            history: The conversation, for callers who keep it.

        Raises:
            UsageError: A session was asked for without a store, or together with a history.
        """
        said = history.messages if isinstance(history, RunResult) else tuple(history)
        start = replace(start, history=said, shown=_shown_in(history))
        if start.session_id is None:
            # Who keeps messages alone can hand on the labels of the last episode as metadata.
            known = history.episode.metadata if isinstance(history, RunResult) else start.metadata
            return await self._routed(start, known if said else {}, is_new=not said)
        if said:
            raise UsageError("give session_id or history, not both: a session has its own")
        episodes = await self._session(start.session_id)
        if episodes:  # a conversation keeps the library version that it began with
            library = await asyncio.to_thread(self.snapshots.at, episodes[0].library_version)
            shown = Shown.in_episodes(episodes)
            start = replace(start, library=library, history=conversation(episodes), shown=shown)
        return await self._routed(start, labels_of(episodes), is_new=not episodes)

    async def of_answers(
        self, start: Start, waiting: RunResult | Episode, history: Sequence[Message]
    ) -> Start:
        """The start of a run that goes on with one whose calls were answered.

        Args:
            start: What the caller said.
            waiting: The run that waited.
            history: The messages before that run when they are in no store.
        """
        episode = waiting.episode if isinstance(waiting, RunResult) else waiting
        start = replace(
            start,
            library=await asyncio.to_thread(self.snapshots.at, episode.library_version),
            history=await self._history_before(waiting, history),
            shown=await self._shown_before(episode),
            session_id=episode.session_id,
            metadata=untraced(unrouted(episode.metadata)),
            resumes=episode.episode_id,
        )
        return await self._routed(start, episode.metadata, is_new=False)

    async def _routed(self, start: Start, known: Mapping[str, str], *, is_new: bool) -> Start:
        """The start with the library and the labels that the router gives it.

        Args:
            start: As it is without a router.
            known: Labels of the conversation so far.
            is_new: Whether the conversation begins here.
        """
        if self.router is None:
            return start
        asked = RouteRequest(
            key=start.session_id or start.resumes or start.episode_id,
            library=start.library,
            at=self.snapshots.at,
            is_new=is_new,
            labels=known,
        )
        route = await self.router.route(asked)
        labels = {**unrouted(start.metadata), **route.labels}
        return replace(start, library=route.library, metadata=labels)

    async def _session(self, session_id: str) -> list[Episode]:
        store = self.store
        if store is None:
            raise UsageError(
                f"session {session_id!r} needs a store to live in; "
                "pass store='sqlite:///agent.db' to Agent, or keep the history yourself"
            )
        matching = EpisodeFilter(session_id=session_id, oldest_first=True)
        return await asyncio.to_thread(lambda: happened(store.select(matching)))

    async def _history_before(
        self, waiting: RunResult | Episode, history: Sequence[Message]
    ) -> tuple[Message, ...]:
        """Everything that was said before the turn that waits."""
        if isinstance(waiting, RunResult):
            return waiting.messages[: -1 - len(waiting.episode.turns[-1].results)]
        own = replace(waiting, turns=waiting.turns[:-1])
        if waiting.session_id is None or self.store is None:
            return (*history, *own.messages())
        episodes = await self._session(waiting.session_id)
        # In the store's order: ids of one moment do not sort.
        earlier = takewhile(lambda e: e.episode_id != waiting.episode_id, episodes)
        return conversation([*earlier, own])  # it repeats the turn of one that it goes on from

    async def _shown_before(self, waiting: Episode) -> Shown:
        """What the conversation up to the waiting run has been shown."""
        if waiting.session_id is None or self.store is None:
            return Shown.in_episodes([waiting])
        return Shown.in_episodes(await self._session(waiting.session_id))


def _shown_in(history: Sequence[Message] | RunResult) -> Shown:
    if isinstance(history, RunResult):
        return Shown.in_episodes([history.episode])
    return Shown.in_messages(history)
