"""``ShadowRunner``: asks once more, with a candidate, what was answered, and runs nothing."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Self

from agentkit.agent.output import normalize_response
from agentkit.agent.refine import refine
from agentkit.agent.types import FinishedRun
from agentkit.episodes import Episode, Turn, Verifier
from agentkit.episodes.labels import ARM
from agentkit.errors import (
    ModelConnectionError,
    ModelError,
    ModelStatusError,
    ModelTimeoutError,
    UsageError,
)
from agentkit.evolution.serving.agreement import agreement
from agentkit.evolution.serving.assignment import experiment_for, place
from agentkit.evolution.serving.background import Background
from agentkit.evolution.serving.budget import TokenBudget
from agentkit.evolution.serving.checking import checked_calls
from agentkit.evolution.serving.experiments import Experiment, running
from agentkit.evolution.serving.overlay import Overlays
from agentkit.evolution.serving.repeating import Repeat, repeats, view, with_candidate
from agentkit.evolution.serving.watch import LedgerWatch
from agentkit.library.store import EpisodeStore, EventStore, Store
from agentkit.models.base import ModelRequest
from agentkit.retrieval.tokens import estimate_tokens

logger = logging.getLogger(__name__)

_BUSY = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
"""Statuses of a server that may answer the same request later."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ShadowLimits:
    """Bounds on shadow runs.

    Attributes:
        share: Share of the sessions whose runs are repeated, from 0 to 1.
        most_requests: How many of a run's first requests are looked at; those that offered the tool
            under trial are repeated. More than one finds tools that are called later in a run.
        queue: Most runs that wait to be repeated; further ones are dropped.
        tokens_per_hour: Most tokens that this process spends on repeats in any hour, exceeded by
            one answer at most; None for no bound. A model that reports no usage is counted by an
            estimate.
        timeout_seconds: Longest wait for one answer.

    Raises:
        UsageError: A number is out of range.
    """

    share: float = 1.0
    most_requests: int = 1
    queue: int = 100
    tokens_per_hour: int | None = 200_000
    timeout_seconds: float = 60.0

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise UsageError(f"ShadowLimits.share is a number from 0 to 1, got {self.share}")
        for name, least in (("most_requests", 1), ("queue", 0), ("timeout_seconds", 0)):
            if not getattr(self, name) >= least:
                raise UsageError(
                    f"ShadowLimits.{name} is {least} or more, got {getattr(self, name)}"
                )
        if self.tokens_per_hour is not None and self.tokens_per_hour < 0:
            raise UsageError(
                f"ShadowLimits.tokens_per_hour is 0 or more, got {self.tokens_per_hour}"
            )


class ShadowRunner:
    """An ``Observer`` that tries candidates in shadow: users see nothing of it.

    After an answer it asks the same model the same request with the candidate's definition in place
    of the one that there is, and keeps both proposals as episodes with a verdict each. Calls are
    checked against the contract and the rules, and never run, whatever the tool. The answer itself
    costs no further request, and is not waited for.

    Work is done one run at a time on the event loop of the run, once that had its answer. A loop
    that ends with its run, as that of ``run_sync`` does, leaves the work on the queue: call
    ``drain_sync`` where the program has time, from a thread if it serves users all the time.

    Args:
        store: Holds the ledger, and takes the episodes.
        verifier: Judges both sides from what they propose; without it they are judged by what
            worked in the run, see ``agreement``.
        limits: Bounds.
        watch: Follows the ledger; give the one of a ``CanaryRouter`` to read it once.
        clock: Seconds of a clock that never goes backwards.

    Example:
        >>> from agentkit import Agent, open_store
        >>> from agentkit.testing import ScriptedModel
        >>> store = open_store("memory:")
        >>> shadow = ShadowRunner(store)
        >>> agent = Agent(ScriptedModel(["Hello."]), store=store, observers=[shadow])
        >>> agent.run_sync("Hi").text
        'Hello.'
        >>> shadow.drain_sync()
        >>> shadow.counts["skipped"]  # nothing is being tried
        1
    """

    def __init__(
        self,
        store: Store,
        *,
        verifier: Verifier | None = None,
        limits: ShadowLimits = ShadowLimits(),
        watch: LedgerWatch | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        events: EventStore = store
        self.watch = watch or LedgerWatch(events)
        self.limits = limits
        self.budget = TokenBudget(limits.tokens_per_hour, clock=clock)
        self._episodes: EpisodeStore = store
        self._verifier = verifier
        self._overlays = Overlays()
        self._work: Background[FinishedRun]
        self._work = Background(self._repeat, size=limits.queue, name="a shadow run")

    @property
    def counts(self) -> Mapping[str, int]:
        """What came of the runs so far, by outcome; an absent one is 0 where a count is asked for.

        ``dropped``: the queue was full, or it was closed; ``skipped``: nothing was tried on it;
        ``over_budget``; ``unavailable``: the model was busy or not there; ``failed``: see the log;
        ``recorded``: both sides are in the store. ``done`` counts all that were handled.
        """
        return self._work.counts

    def observe(self, run: FinishedRun) -> None:
        """Put a run on the queue, if it may be repeated."""
        if run.request is None or run.result.episode.metadata.get(ARM) == "candidate":
            self._work.count("skipped")
            return
        known = self.watch.last
        if known is not None and self.watch.is_fresh and not running(known, "shadow"):
            self._work.count("skipped")
            return
        self._work.put(run, start=not run.ends_loop)

    async def drain(self) -> None:
        """Repeat all that waits."""
        await self._work.drain()

    def drain_sync(self) -> None:
        """``drain`` for programs without an event loop of their own."""
        self._work.drain_sync()

    async def aclose(self) -> None:
        """Stop, and drop what waits; ``drain`` before it loses nothing."""
        await self._work.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            await self.drain()
        await self.aclose()

    async def _repeat(self, run: FinishedRun) -> None:
        experiment = await self._experiment(run)
        asked = () if experiment is None else self._asked(run, experiment)
        if experiment is None or not asked:
            self._work.count("skipped")
            return
        after = self._overlays.of(run.library, experiment.candidate)
        candidate: list[Turn] = []
        error = None
        for one in asked:
            if not self.budget.has_room:
                self._work.count("over_budget")
                return
            try:
                candidate.append(await self._ask(run, with_candidate(one, run.library, after)))
            except (ModelError, TimeoutError) as caught:
                if _is_passing(caught):
                    self._work.count("unavailable")
                    logger.warning("a shadow run got no answer: %s", caught)
                    return
                error = f"{type(caught).__name__}: {caught}"
                break
        await self._record(run.result.episode, experiment, asked, candidate, error)

    async def _experiment(self, run: FinishedRun) -> Experiment | None:
        """What is tried on a run, if anything is: one experiment, for its share of sessions."""
        ledger = await self.watch.current()
        if not self.watch.is_trusted:
            return None
        episode = run.result.episode
        key = episode.session_id or episode.episode_id
        found = experiment_for(
            key, [one for one in running(ledger, "shadow") if self._asked(run, one)]
        )
        if found is None:
            return None
        share = self.limits.share if found.share is None else found.share
        return found if place("shadow", key, found.proposal_id) < share else None

    def _asked(self, run: FinishedRun, experiment: Experiment) -> tuple[Repeat, ...]:
        if not experiment.fits(run.library):
            return ()
        return repeats(run, experiment.tool_name, most=self.limits.most_requests)

    async def _ask(self, run: FinishedRun, request: ModelRequest) -> Turn:
        """What the model proposes, its calls checked and not run."""
        started = time.perf_counter()
        async with asyncio.timeout(self.limits.timeout_seconds):
            response = await run.model.complete(request)
            usage, trace = response.usage, None
            if run.refinement.mode != "none" and response.message.tool_calls:
                response, trace = await refine(run.model, request, response, run.refinement)
                usage += trace.usage
        self.budget.spend(usage.total_tokens or _estimate(request))
        message = normalize_response(response.message, ())
        seconds = time.perf_counter() - started
        return Turn(
            message=message,
            results=checked_calls(message.tool_calls, request),
            usage=usage,
            refine=trace,
            seconds=seconds,
            model_seconds=seconds,
        )

    async def _record(
        self,
        original: Episode,
        experiment: Experiment,
        asked: Sequence[Repeat],
        candidate: Sequence[Turn],
        error: str | None,
    ) -> None:
        """Keep both sides, each with its verdict; the original's first, as the other names it."""
        repeated = [_unrun(original.turns[one.turn], one) for one in asked]
        mine = view(original, repeated, experiment, view_of=original.episode_id)
        other = view(original, candidate, experiment, shadow_of=mine.episode_id, error=error)
        sides = [await self._judged(mine, original, asked)]
        # A side that the model could not answer has no verdict: gates count it as not answered.
        sides.append(other if error else await self._judged(other, original, asked))
        for side in sides:
            await asyncio.to_thread(self._episodes.append, side)
        self._work.count("recorded")

    async def _judged(self, side: Episode, original: Episode, asked: Sequence[Repeat]) -> Episode:
        if self._verifier is not None:
            return replace(side, verdict=await self._verifier.verify(side))
        places = [one.turn for one in asked]
        tools = asked[-1].request.tools
        return replace(side, verdict=agreement(side.turns, places, original, tools))


def _unrun(turn: Turn, asked: Repeat) -> Turn:
    """A turn of the original as if its calls had been looked at alone, like the candidate's."""
    return Turn(
        message=turn.message,
        results=checked_calls(turn.message.tool_calls, asked.request),
        usage=turn.usage,
        refine=turn.refine,
        seconds=turn.model_seconds,
        model_seconds=turn.model_seconds,
    )


def _is_passing(error: ModelError | TimeoutError) -> bool:
    """Whether the failure says nothing of the definitions: nobody was there to answer."""
    if isinstance(error, ModelStatusError):
        return error.status in _BUSY
    return isinstance(error, ModelConnectionError | ModelTimeoutError | TimeoutError)


def _estimate(request: ModelRequest) -> int:
    """Tokens of a request whose model reports none: of its messages and the tools' words."""
    texts = [message.text for message in request.messages]
    texts += [f"{tool.name} {tool.text} {tool.parameters_schema}" for tool in request.tools]
    return sum(map(estimate_tokens, texts))
