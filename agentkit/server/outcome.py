"""``Outcomes``: what comes of runs. Each is kept, counted, and either a result or a problem."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

from agentkit.agent.agent import Agent
from agentkit.agent.result import RunResult
from agentkit.episodes import Episode, StopReason
from agentkit.errors import (
    ModelStatusError,
    ModelTimeoutError,
    RunError,
    StoreError,
    StoreUnavailableError,
)
from agentkit.library.store import Store
from agentkit.server.exchange import Exchange
from agentkit.server.measures import Measures
from agentkit.server.problem import Problem, stopping, store_unavailable
from agentkit.server.runs import Cut, Runs
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

    async def of(
        self, work: Work, run: Coroutine[Any, Any, RunResult], exchange: Exchange
    ) -> RunResult | Problem | None:
        """What came of a run; None when its client left. Its episode is kept in any case."""
        self._measures.runs.add()
        try:
            ended = await self._runs.see_through(
                run, receive=exchange.receive, seconds=self._seconds
            )
        except RunError as error:
            return self._model_failed(work, error)
        except asyncio.CancelledError:
            await self._keep(work, "cancelled", "CancelledError")
            raise
        except StoreError:
            _LOG.exception("request %s: the store failed", exchange.request_id)
            await self._keep(work, "error", "StoreError")
            return store_unavailable(work.episode_id)
        except Exception as error:  # noqa: BLE001 - logged and kept; the server serves on
            _LOG.exception("request %s failed", exchange.request_id)
            await self._keep(work, "error", f"{type(error).__name__}: {error}")
            return _defect(work.episode_id)
        if isinstance(ended, RunResult):
            self._count(ended.episode)
            return _unmatched(ended) or ended
        await self._keep(work, "cancelled", f"cut: {ended}")
        if ended == "disconnected":
            exchange.status = exchange.status or CLIENT_LEFT
        return self._cut_short(ended, work)

    def _count(self, episode: Episode) -> None:
        """Count an episode that the agent has kept."""
        self._measures.kept.add(by=0 if self._agent.store is None else 1)
        self._measures.tell(episode)

    async def _keep(self, work: Work, stop_reason: StopReason, why: str) -> None:
        """See that the store has an episode of work that did not end well.

        The agent has kept it unless the work ended before the model was asked.
        """
        store = self._agent.store
        episode = work.unfinished(self._agent, stop_reason, why)
        if store is not None:
            try:
                known = await asyncio.shield(asyncio.to_thread(_known, store, work.episode_id))
                if known is None:
                    await asyncio.shield(asyncio.to_thread(store.append, episode))
            except Exception as error:  # noqa: BLE001 - whatever it is, it is logged and counted
                _LOG.exception("episode %s is not kept (%s)", work.episode_id, type(error).__name__)
                self._measures.not_kept.add()
            else:
                episode = known or episode
                self._measures.kept.add()
        self._measures.tell(episode)

    def _model_failed(self, work: Work, error: RunError) -> Problem:
        _LOG.warning("episode %s: %s", work.episode_id, error)
        if isinstance(error.episode, Episode):
            self._count(error.episode)
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

    def _cut_short(self, cut: Cut, work: Work) -> Problem | None:
        match cut:
            case "disconnected":
                return None
            case "stopping":
                return stopping(work.episode_id)
            case "late":
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


def _known(store: Store, episode_id: str) -> Episode | None:
    """The episode, as far as that can be known; a store ignores an id that it has already."""
    try:
        return store.get(episode_id)
    except StoreUnavailableError:
        return None


def _defect(episode_id: str) -> Problem:
    return Problem(
        status=500,
        message="something unexpected went wrong; the server's log and the episode tell what",
        code="internal_error",
        episode_id=episode_id,
    )
