"""``ShadowRunner``: ask once more, with a candidate, what was answered, and run nothing.

Both sides are kept as episodes with a verdict each, for the shadow gate.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

from agentkit.agent.checks import ContractChecker
from agentkit.agent.executor import CallHistory
from agentkit.agent.output import normalize_response
from agentkit.agent.refine import refine
from agentkit.agent.session import new_episode_id, unrouted
from agentkit.agent.types import FinishedRun
from agentkit.diagnosis.wording import describe_failure
from agentkit.episodes import Episode, Evidence, EvidenceKind, Turn, Verdict, Verifier
from agentkit.episodes.labels import ARM, CANDIDATE, EXPERIMENT, SHADOW_OF, VIEW_OF
from agentkit.errors import (
    CompositeError,
    DefinitionError,
    ModelConnectionError,
    ModelError,
    ModelStatusError,
    ModelTimeoutError,
    UsageError,
)
from agentkit.evolution.observers import Background
from agentkit.evolution.serving import (
    Experiment,
    LedgerWatch,
    Overlays,
    bucket,
    experiment_for,
    running,
)
from agentkit.library.library import Library, nearest_names
from agentkit.library.store import EpisodeStore, EventStore, Store
from agentkit.messages import Message, ToolCall, ToolFailure, ToolResult, Usage
from agentkit.metrics.calls import CanonicalCall, canonical_calls
from agentkit.models.base import ModelRequest
from agentkit.retrieval.tokens import estimate_tokens
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.error_messages import ArgumentProblem
from agentkit.tools.validation import ArgumentValidator

# --- ``TokenBudget``: how many tokens may be spent in any hour -----------------------------------


HOUR = 3600.0


class TokenBudget:
    """Counts what was spent in the hour that ends now.

    What an answer costs is known afterwards, so the budget can be exceeded by what one answer
    costs. It belongs to one process.

    Args:
        per_hour: Most tokens in any hour; None for no bound.
        clock: Seconds of a clock that never goes backwards.
    """

    def __init__(
        self, per_hour: int | None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.per_hour = per_hour
        self._clock = clock
        self._spent: deque[tuple[float, int]] = deque()
        self._sum = 0

    @property
    def spent(self) -> int:
        """Tokens spent in the last hour."""
        since = self._clock() - HOUR
        while self._spent and self._spent[0][0] <= since:
            self._sum -= self._spent.popleft()[1]
        return self._sum

    @property
    def has_room(self) -> bool:
        """Whether something more may be spent."""
        return self.per_hour is None or self.spent < self.per_hour

    def spend(self, tokens: int) -> None:
        """Count tokens as spent now."""
        if self.per_hour is not None:
            self._spent.append((self._clock(), tokens))
            self._sum += tokens


# --- What is asked once more, and what both sides are recorded as --------------------------------


def is_offered(run: FinishedRun, tool_name: str) -> bool:
    """Whether the first request of a run offered a tool; else the candidate changes nothing."""
    return run.request is not None and any(one.name == tool_name for one in run.request.tools)


def with_candidate(request: ModelRequest, before: Library, after: Library) -> ModelRequest:
    """The request with the definitions of another library.

    Libraries that are offered whole give the same tuple each time, as adapters like it.
    """
    if request.tools is before.definitions:
        return replace(request, tools=after.definitions)
    tools = (after[one.name].definition if one.name in before else one for one in request.tools)
    return replace(request, tools=tuple(tools))


def view(
    original: Episode,
    turn: Turn | None,
    experiment: Experiment,
    labels: Mapping[str, str],
    *,
    error: str | None = None,
) -> Episode:
    """One side of a shadow run as an episode: the turn of the repeated request and no more.

    Both sides are recorded alike, so that one verifier judges like with like.

    Args:
        original: The episode that is repeated.
        turn: What this side answered; None where the model failed.
        experiment: What is being tried.
        labels: ``view_of`` for the original's side, which has no arm: as a control it is known by
            the candidate's label ``shadow_of``, which names it.
        error: What the model failed of.
    """
    turns = () if turn is None else (turn,)
    answered = turn is not None and not turn.message.tool_calls
    return Episode(
        episode_id=new_episode_id(),
        request=original.request,
        turns=turns,
        stop_reason="finished" if error is None else "error",
        output=turn.message.text if turn is not None and answered else None,
        model=original.model,
        library_version=original.library_version,
        session_id=original.session_id,
        history_length=original.history_length,
        usage=sum((one.usage for one in turns), Usage()),
        started_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        seconds=sum(one.seconds for one in turns),
        error=error,
        metadata={**unrouted(original.metadata), EXPERIMENT: experiment.proposal_id, **labels},
    )


# --- Calls that are looked at and never run: would the executor have let them through? -----------


NOT_RUN = ToolFailure(
    kind="denied", rule="The call is valid; a shadow run executes nothing.", retryable=False
)


def checked_calls(calls: Sequence[ToolCall], request: ModelRequest) -> tuple[ToolResult, ...]:
    """A result for each call: ``failed`` with the rule that it breaks, else ``denied``, unrun.

    Looked at are, in the order of the executor: whether the tool was offered, whether the arguments
    can be read, the contract's schema, preconditions, and learned rules. No function is called.

    Args:
        calls: What a model proposed.
        request: What it was asked, with the conversation so far.
    """
    offered = {definition.name: definition for definition in request.tools}
    return tuple(_result(call, _failure(call, offered, request.messages)) for call in calls)


def _failure(
    call: ToolCall, offered: dict[str, ToolDefinition], said: Sequence[Message]
) -> ToolFailure | None:
    definition = offered.get(call.name)
    if definition is None:
        nearest = nearest_names(call.name, offered)
        rule = f"Offered are {len(offered)} tools."
        return ToolFailure(kind="unknown_tool", rule=rule, nearest=nearest)
    if call.malformed is not None:
        return ToolFailure(kind="malformed_arguments", rule=f"It was: {call.malformed[:200]!r}.")
    try:
        arguments = ArgumentValidator(definition).runnable(call.arguments)
        if isinstance(arguments, ArgumentProblem):
            return arguments.failure()
        checker = ContractChecker("always")
        return checker.before(definition, arguments, CallHistory(said).known)
    except (DefinitionError, CompositeError) as error:  # a definition that nothing can be held to
        return ToolFailure(kind="tool_error", rule=str(error), retryable=False)


def _result(call: ToolCall, failure: ToolFailure | None) -> ToolResult:
    found = failure or NOT_RUN
    return ToolResult(
        call_id=call.call_id,
        name=call.name,
        status="denied" if failure is None else "failed",
        text=describe_failure(call.name, found),
        failure=found,
        attempts=0,
    )


# --- A verdict on calls that nobody ran, from what really happened to the calls of the run it ----
# A verdict on calls that nobody ran, from what really happened to the calls of the run itself.
#
# Without a verifier there is one kind of evidence: which calls of the answered run worked. A side
# of
# a shadow run agrees with it at a request when it makes calls where the run made some, and each of
# them is valid and the same as one that worked in the run, at that point or later; or when both
# answer without a call.
#
# What such a verdict can show: a candidate that proposes at once what the run found only after
# failures; and one that proposes calls which break the contract or a rule. What it can not show:
# that
# calls which worked were the right ones, nor that another valid call would have worked as well,
# which
# counts against the candidate here. So it is stricter with the candidate than with the control: a
# gain that it shows is one, a loss may be none. Sampling at a high temperature makes it stricter
# still. For anything more, give a verifier.


SHADOW_AGREEMENT = "shadow_agreement"
"""The verifier's name in verdicts."""


def agreement(turn: Turn, original: Episode, definitions: Iterable[ToolDefinition]) -> Verdict:
    """Whether a side calls what worked in the answered run.

    Args:
        turn: What the side answered to the first request.
        original: The answered run.
        definitions: The tools that were offered.

    Returns:
        The verdict; with a fault where a call of the run was not carried out, since nobody knows.
    """
    known, first = tuple(definitions), original.turns[0]
    if any(one.status in {"denied", "deferred"} for one in first.results):
        reason = f"a call of {original.episode_id} was not carried out"
        unknown = Evidence(kind="gold_error", message=reason)
        return Verdict(
            passed=False, evidence=(unknown,), verifier=SHADOW_AGREEMENT, fault="gold_error"
        )
    evidence = tuple(_disagreements(turn, original.turns, known))
    passed = not evidence
    return Verdict(passed=passed, score=float(passed), evidence=evidence, verifier=SHADOW_AGREEMENT)


def _disagreements(
    turn: Turn, original: Sequence[Turn], definitions: tuple[ToolDefinition, ...]
) -> Iterator[Evidence]:
    calls, made_calls = turn.message.tool_calls, bool(original[0].message.tool_calls)
    if not calls and made_calls:
        message = "answered without a call, where the run made some"
        yield Evidence(kind="missing_call", message=message, turn=0)
    worked = _worked(original, definitions) if made_calls else set()
    failures = {result.call_id: result.failure for result in turn.results}
    for call in calls:
        failure = failures.get(call.call_id)
        if failure is not None and failure.kind != "denied":
            yield _evidence("call_failed", f"{call.name}: {failure.rule}", call)
        elif _canonical(call, definitions) not in worked:
            yield _evidence("unexpected_call", f"{call.name}: no such call worked in the run", call)


def _worked(turns: Iterable[Turn], definitions: tuple[ToolDefinition, ...]) -> set[CanonicalCall]:
    return {
        _canonical(call, definitions)
        for turn in turns
        for call in turn.message.tool_calls
        if any(one.call_id == call.call_id and one.status == "ok" for one in turn.results)
    }


def _canonical(call: ToolCall, definitions: tuple[ToolDefinition, ...]) -> CanonicalCall:
    return canonical_calls([call], definitions)[0]


def _evidence(kind: EvidenceKind, message: str, call: ToolCall) -> Evidence:
    return Evidence(kind=kind, message=message, turn=0, call_id=call.call_id, tool=call.name)


# --- ``ShadowRunner``: asks once more, with a candidate, what was answered, and runs nothing -----


logger = logging.getLogger(__name__)

_BUSY = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
"""Statuses of a server that may answer the same request later."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ShadowLimits:
    """Bounds on shadow runs.

    Attributes:
        share: Share of the sessions whose runs are repeated, from 0 to 1.
        queue: Most runs that wait to be repeated; further ones are dropped.
        tokens_per_hour: Most tokens that this process spends on repeats in any hour, exceeded by
            one answer at most; None for no bound. A model that reports no usage is counted by an
            estimate.
        timeout_seconds: Longest wait for one answer.

    Raises:
        UsageError: A number is out of range.
    """

    share: float = 1.0
    queue: int = 100
    tokens_per_hour: int | None = 200_000
    timeout_seconds: float = 60.0

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise UsageError(f"ShadowLimits.share is a number from 0 to 1, got {self.share}")
        for name, least in (("queue", 0), ("timeout_seconds", 0)):
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
        if experiment is None or run.request is None:
            self._work.count("skipped")
            return
        if not self.budget.has_room:
            self._work.count("over_budget")
            return
        after = self._overlays.of(run.library, experiment.candidate)
        turn, error = None, None
        try:
            turn = await self._ask(run, with_candidate(run.request, run.library, after))
        except (ModelError, TimeoutError) as caught:
            if _is_passing(caught):
                self._work.count("unavailable")
                logger.warning("a shadow run got no answer: %s", caught)
                return
            error = f"{type(caught).__name__}: {caught}"
        await self._record(run.result.episode, run.request, experiment, turn, error)

    async def _experiment(self, run: FinishedRun) -> Experiment | None:
        """What is tried on a run, if anything is: one experiment, for its share of sessions."""
        ledger = await self.watch.current()
        if not self.watch.is_trusted:
            return None
        episode = run.result.episode
        key = episode.session_id or episode.episode_id
        found = experiment_for(
            key,
            [
                one
                for one in running(ledger, "shadow")
                if one.fits(run.library) and is_offered(run, one.tool_name)
            ],
        )
        if found is None:
            return None
        share = self.limits.share if found.share is None else found.share
        return found if bucket("shadow", key, found.proposal_id) < share else None

    async def _ask(self, run: FinishedRun, request: ModelRequest) -> Turn:
        """What the model proposes, its calls checked and not run."""
        started = time.perf_counter()
        async with asyncio.timeout(self.limits.timeout_seconds):
            response = await run.model.complete(request)
            usage, trace = response.usage, None
            if run.refinement.mode != "none" and response.message.tool_calls:
                response, trace = await refine(
                    lambda again, _: run.model.complete(again), request, response, run.refinement
                )
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
        request: ModelRequest,
        experiment: Experiment,
        turn: Turn | None,
        error: str | None,
    ) -> None:
        """Keep both sides, judged alike."""
        first = original.turns[0]
        control = Turn(  # without what running its calls gave and took
            message=first.message,
            results=checked_calls(first.message.tool_calls, request),
            usage=first.usage,
            refine=first.refine,
            seconds=first.model_seconds,
            model_seconds=first.model_seconds,
        )
        mine = view(original, control, experiment, {VIEW_OF: original.episode_id})
        digest = experiment.candidate.digest
        labels = {SHADOW_OF: mine.episode_id, ARM: "candidate", CANDIDATE: digest}
        other = view(original, turn, experiment, labels, error=error)
        for side in (mine, other):
            judged = side
            if side.turns:
                verdict = agreement(side.turns[0], original, request.tools)
                if self._verifier is not None:
                    verdict = await self._verifier.verify(side)
                judged = replace(side, verdict=verdict)
            await asyncio.to_thread(self._episodes.append, judged)
        self._work.count("recorded")


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
