"""Verdicts for the sessions of a canary, so that its gate has something to count."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace

from agentkit.agent.session import new_episode_id
from agentkit.agent.types import FinishedRun
from agentkit.episodes import Episode, Evidence, Verdict, Verifier
from agentkit.episodes.labels import ARM, EXPERIMENT, VIEW_OF
from agentkit.evolution.serving.background import Background
from agentkit.library.store import EpisodeStore

NAME = "outcome"
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
        return Verdict(passed=False, evidence=(waits,), verifier=NAME, fault="gold_error")
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
    return Verdict(passed=passed, score=float(passed), evidence=tuple(evidence), verifier=NAME)


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
