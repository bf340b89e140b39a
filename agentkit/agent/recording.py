"""Turning the state of a run into its episode, and keeping it."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from agentkit.agent.episode_queue import EpisodeQueue
from agentkit.agent.loop import Loop, Outcome
from agentkit.agent.selection import Shown
from agentkit.agent.types import Emit, ignore
from agentkit.episodes import Episode, Turn
from agentkit.library.library import Library
from agentkit.messages import Message
from agentkit.models.base import ModelSettings


def new_episode_id() -> str:
    """A unique id that sorts by time: milliseconds since 1970, then 48 random bits, in hex."""
    return f"{time.time_ns() // 1_000_000:012x}{os.urandom(6).hex()}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Start:
    """Where a run begins.

    Attributes:
        request: What the user says; empty when a run is resumed.
        history: The conversation before it.
        library: The pinned snapshot.
        shown: What the conversation has been shown of it.
        session_id: Conversation that the run belongs to, if any.
        metadata: The caller's labels.
        settings: How to generate this time; None as ever.
        resumes: Id of the episode whose waiting calls are answered.
        answered: The waiting turn with its results, for a resumed run.
        emit: Receives events.
        ends_loop: Whether the event loop ends with the run.
        episode_id: Id of the episode that the run will be.
        began_ns: When, in nanoseconds since 1970.
    """

    request: str
    library: Library
    history: tuple[Message, ...] = ()
    shown: Shown = field(default_factory=Shown)
    session_id: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    settings: ModelSettings | None = None
    resumes: str | None = None
    answered: Turn | None = None
    emit: Emit = ignore
    ends_loop: bool = False
    episode_id: str = field(default_factory=new_episode_id)
    began_ns: int = field(default_factory=time.time_ns)


@dataclass(kw_only=True)
class Recorder:
    """Makes the episode of one run.

    Attributes:
        start: Where the run began.
        model: The model's name.
        queue: Takes the episode to its store.
    """

    start: Start
    model: str
    queue: EpisodeQueue
    _began: float = field(init=False, default_factory=time.perf_counter)
    _at: datetime = field(init=False, default_factory=lambda: datetime.now(UTC))

    def episode(
        self, loop: Loop, outcome: Outcome, *, data: Any = None, error: BaseException | None = None
    ) -> Episode:
        """The record of the run as it stands; a turn that was interrupted comes last."""
        start = self.start
        turns = loop.turns if loop.interrupted is None else [*loop.turns, loop.interrupted]
        return Episode(
            episode_id=start.episode_id,
            request=start.request,
            turns=tuple(turns),
            stop_reason=outcome.stop_reason,
            output=data,
            model=self.model,
            library_version=start.library.version,
            session_id=start.session_id,
            history_length=len(start.history),
            resumes=start.resumes,
            usage=loop.usage,
            started_at=self._at.isoformat(timespec="milliseconds"),
            seconds=time.perf_counter() - self._began,
            error=None if error is None else f"{type(error).__name__}: {error}".rstrip(": "),
            metadata=dict(start.metadata),
        )

    async def keep(self, episode: Episode) -> Exception | None:
        """Hand the episode to the store; see ``EpisodeQueue.put``."""
        return await self.queue.put(episode)
