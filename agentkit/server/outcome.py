"""``Outcomes``: what comes of runs. Each is kept, counted, and either a result or a problem."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

from agentkit.agent.agent import Agent
from agentkit.agent.episode_queue import Watched
from agentkit.agent.types import RunResult
from agentkit.episodes import StopReason
from agentkit.errors import (
    EpisodeNotKeptError,
    ModelStatusError,
    ModelTimeoutError,
    RunError,
    StoreError,
)
from agentkit.server.exchange import Exchange
from agentkit.server.measures import Measures
from agentkit.server.problem import Problem, not_kept, stopping, store_unavailable
from agentkit.server.runs import Cut, Runs
from agentkit.server.store_health import MinuteLog
from agentkit.server.work import Work

_LOG = logging.getLogger(__name__)
_BUSY_UPSTREAM = frozenset({429, 503, 529})

CLIENT_LEFT = 499
"""nginx' status for a client that did not wait for the answer; nobody reads it."""


class Outcomes:
    """Sees runs through to their end.

    Args:
        agent: Whose runs they are.
        runs: What is under way.
        measures: Where things are counted.
        seconds: The longest that a run may take.
    """

    def __init__(self, agent: Agent, *, runs: Runs, measures: Measures, seconds: float) -> None:
        self._agent = agent
        self._runs = runs
        self._measures = measures
        self._seconds = seconds
        self._log = MinuteLog(_LOG)

    async def of(
        self, work: Work, run: Coroutine[Any, Any, RunResult], exchange: Exchange
    ) -> RunResult | Problem | None:
        """What came of a run; None when its client left. Its episode is recorded in any case."""
        self._measures.runs.add()
        with self._agent.queue.watching(work.episode_id) as episode:
            try:
                ended = await self._runs.see_through(
                    run, receive=exchange.receive, seconds=self._seconds
                )
            except asyncio.CancelledError:
                await self._record(work, episode, "cancelled", "CancelledError")
                raise
            except Exception as error:  # noqa: BLE001 - logged and recorded; the server serves on
                await self._record(work, episode, "error", f"{type(error).__name__}: {error}")
                problem = self._failed(work, error, exchange)
                return replace(problem, episode_kept=episode.is_kept)
            if isinstance(ended, RunResult):
                self._measures.tell(ended.episode)
                return _unmatched(ended) or ended
            await self._record(work, episode, "cancelled", f"cut: {ended}")
            if ended == "disconnected":
                exchange.status = exchange.status or CLIENT_LEFT
                return None
            return replace(self._cut_short(ended, work), episode_kept=episode.is_kept)

    async def _record(
        self, work: Work, watched: Watched, stop_reason: StopReason, why: str
    ) -> None:
        """See that work that did not end well has an episode: the agent's, if it made one."""
        if watched.episode is None:
            await self._agent.queue.put(work.unfinished(self._agent, stop_reason, why))
        assert watched.episode is not None
        self._measures.tell(watched.episode)

    def _failed(self, work: Work, error: Exception, exchange: Exchange) -> Problem:
        match error:
            case RunError():
                return self._model_failed(work, error)
            case EpisodeNotKeptError():  # the queue tells the log
                return not_kept(work.episode_id)
            case StoreError():
                self._log.error("no run begins, the store can not be read", error)
                return store_unavailable(episode_id=work.episode_id)
            case _:
                _LOG.error("request %s failed", exchange.request_id, exc_info=error)
                return _defect(work.episode_id)

    def _model_failed(self, work: Work, error: RunError) -> Problem:
        _LOG.warning("episode %s: %s", work.episode_id, error)
        problem = Problem(
            status=502,
            message="the model behind the agent failed; the episode tells how",
            code="model_failed",
            episode_id=work.episode_id,
        )
        cause = error.__cause__
        if isinstance(cause, ModelTimeoutError):
            return replace(problem, status=504, code="model_timeout")
        if isinstance(cause, ModelStatusError) and cause.status in _BUSY_UPSTREAM:
            wait = max(1, round(cause.retry_after or 1))
            return replace(problem, status=503, code="model_overloaded", retry_after=wait)
        return problem

    def _cut_short(self, cut: Cut, work: Work) -> Problem:
        if cut == "stopping":
            return stopping(work.episode_id)
        return Problem(
            status=504,
            message=f"no answer within {self._seconds:g} s",
            code="request_timeout",
            episode_id=work.episode_id,
        )


def _unmatched(result: RunResult) -> Problem | None:
    """A structured answer that never matched its schema is no answer."""
    if result.stop_reason != "output_invalid":
        return None
    return Problem(
        status=502,
        message="the model's answer did not match the agent's schema; the episode holds it",
        code="output_invalid",
        episode_id=result.episode.episode_id,
    )


def _defect(episode_id: str) -> Problem:
    return Problem(
        status=500,
        message="something unexpected went wrong; the server's log and the episode tell what",
        code="internal_error",
        episode_id=episode_id,
    )
