"""Observers of finished runs: work after the answer, and verdicts for the sessions of a canary."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Generic, TypeVar

from agentkit._waiting import wait_for
from agentkit.agent.session import new_episode_id
from agentkit.agent.types import FinishedRun
from agentkit.episodes import Episode, Evidence, Verdict, Verifier
from agentkit.episodes.labels import ARM, EXPERIMENT, VIEW_OF
from agentkit.library.store import EpisodeStore

# --- ``Background``: work that waits until nobody else does, and is dropped rather than waite ----


logger = logging.getLogger(__name__)

T = TypeVar("T")


class Background(Generic[T]):
    """A bounded queue with one worker, which runs on the event loop of whoever put something in.

    No thread is started: a model's connections often belong to one event loop. When a loop ends
    while work is left, the work stays on the queue, for the next loop or for ``drain_sync``; what
    is being done then is dropped.

    Args:
        handle: Does one piece of work. What it raises is logged and counted.
        size: Most pieces that wait; one more is dropped.
        name: What the work is called in the log.

    Attributes:
        counts: How many pieces were ``done``, ``dropped`` or ``failed``; ``handle`` may add its
            own.
    """

    def __init__(self, handle: Callable[[T], Awaitable[None]], *, size: int, name: str) -> None:
        self._handle = handle
        self._size = size
        self._name = name
        self._waiting: deque[T] = deque()
        self._lock = threading.Lock()
        self._worker: asyncio.Task[None] | None = None
        self._closed = False
        self.counts: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._waiting)

    def count(self, what: str) -> None:
        """Count one more; threads may do so at once."""
        with self._lock:
            self.counts[what] += 1

    def put(self, work: T, *, start: bool = True) -> bool:
        """Put a piece of work on the queue; False when it was dropped.

        Args:
            work: What to do.
            start: Whether the running event loop may begin with it.
        """
        with self._lock:
            accepted = not self._closed and len(self._waiting) < self._size
            if accepted:
                self._waiting.append(work)
            else:
                self.counts["dropped"] += 1
        if accepted and start:
            self._start()
        return accepted

    async def drain(self) -> None:
        """Do all that waits, and wait for what this loop is at."""
        worker = self._worker
        if worker is not None and not worker.done() and _is_here(worker):
            await asyncio.wait([worker])
        await self._work()

    def drain_sync(self) -> None:
        """``drain`` for programs without an event loop of their own.

        Raises:
            RuntimeError: An event loop runs in this thread.
        """
        wait_for(self.drain())

    async def aclose(self) -> None:
        """Stop what is at work, drop what waits, and take nothing more."""
        self._closed = True
        worker = self._worker
        if worker is not None and not worker.done() and _is_here(worker):
            worker.cancel()
            await asyncio.wait([worker])
        with self._lock:
            self.counts["dropped"] += len(self._waiting)
            self._waiting.clear()

    def _start(self) -> None:
        worker = self._worker
        if worker is not None and not worker.done() and not worker.get_loop().is_closed():
            return
        # An empty context: what the work does is no part of the run that it follows.
        self._worker = asyncio.get_running_loop().create_task(
            self._work(), context=contextvars.Context()
        )

    async def _work(self) -> None:
        while (item := self._next()) is not None:
            try:
                await self._handle(item)
            except asyncio.CancelledError:
                self.count("dropped")
                raise
            except Exception as error:
                self.count("failed")
                logger.exception("%s failed: %s", self._name, type(error).__name__)
            else:
                self.count("done")

    def _next(self) -> T | None:
        with self._lock:
            return self._waiting.popleft() if self._waiting else None


def _is_here(task: asyncio.Task[None]) -> bool:
    return task.get_loop() is asyncio.get_running_loop()


# --- Verdicts for the sessions of a canary, so that its gate has something to count --------------


OUTCOME = "outcome"
"""The name of the verifier that goes by what happened alone."""


def judged(episode: Episode, verdict: Verdict) -> Episode:
    """A record of a verdict that came after its episode was kept, with the same labels.

    Episodes are append-only, so a judgement is a record of its own: the episode without its turns,
    which stand where they are, and with the label ``view_of``. Append it to the store. Give each
    episode one verdict; of several, gates count the first.

    Args:
        episode: What was judged, for instance by a person.
        verdict: The judgement.

    Example:
        >>> record = judged(Episode(episode_id="e1", request="Hi"), Verdict(passed=True, score=1))
        >>> record.verdict.passed, dict(record.metadata)
        (True, {'view_of': 'e1'})
    """
    labels = {**episode.metadata, VIEW_OF: episode.episode_id}
    return replace(episode, episode_id=new_episode_id(), turns=(), verdict=verdict, metadata=labels)


def outcome(episode: Episode) -> Verdict:
    """A verdict by what happened alone: the run finished, and none of its calls failed.

    It sees calls that are refused or that fail, and runs that never end. It does not see an answer
    that is wrong, nor a call that should have been made.

    Args:
        episode: A run of any arm.

    Returns:
        The verdict; with a ``fault`` when calls wait for somebody, since nobody knows yet.
    """
    if episode.stop_reason == "deferred":
        waits = Evidence(kind="gold_error", message="calls wait for somebody outside the run")
        return Verdict(passed=False, evidence=(waits,), verifier=OUTCOME, fault="gold_error")
    evidence = [
        Evidence(
            kind="call_failed",
            message=result.text,
            turn=index,
            call_id=result.call_id,
            tool=result.name,
        )
        for index, turn in enumerate(episode.turns)
        for result in turn.results
        if result.status == "failed"
    ]
    if episode.stop_reason != "finished":
        message = f"the run ended as {episode.stop_reason}"
        evidence.append(Evidence(kind="missing_answer", message=message))
    passed = not evidence
    return Verdict(passed=passed, score=float(passed), evidence=tuple(evidence), verifier=OUTCOME)


class CanaryJudge:
    """An ``Observer`` that judges the runs of a canary, of both arms, after their answer.

    Where the verdict comes from people or from another system, leave it out and append
    ``judged(episode, verdict)`` instead.

    Args:
        store: Takes the verdicts.
        verifier: Judges; without it ``outcome`` does.
        queue: Most runs that wait to be judged; further ones are dropped, of either arm alike.
    """

    def __init__(
        self, store: EpisodeStore, *, verifier: Verifier | None = None, queue: int = 1000
    ) -> None:
        self._store = store
        self._verifier = verifier
        self._work: Background[Episode]
        self._work = Background(self._judge, size=queue, name="judging a canary")

    @property
    def counts(self) -> Mapping[str, int]:
        """How many runs were ``done``, ``dropped`` or ``failed``."""
        return self._work.counts

    def observe(self, run: FinishedRun) -> None:
        """Put a run on the queue, if it belongs to an experiment."""
        episode = run.result.episode
        if {EXPERIMENT, ARM} <= episode.metadata.keys():
            self._work.put(episode, start=not run.ends_loop)

    async def drain(self) -> None:
        """Judge all that waits."""
        await self._work.drain()

    def drain_sync(self) -> None:
        """``drain`` for programs without an event loop of their own."""
        self._work.drain_sync()

    async def aclose(self) -> None:
        """Stop, and drop what waits; ``drain`` before it loses nothing."""
        await self._work.aclose()

    async def _judge(self, episode: Episode) -> None:
        found = outcome(episode)
        if self._verifier is not None:
            found = await self._verifier.verify(episode)
        await asyncio.to_thread(self._store.append, judged(episode, found))
