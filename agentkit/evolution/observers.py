"""Observers of finished runs: verdicts for the sessions of a canary, and shadow runs.

Both work after the answer: on a queue that nobody waits for.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Generic, TypeVar

from agentkit import episodes  # a door: redaction loads when an error is logged
from agentkit._waiting import wait_for
from agentkit.agent.checks import normalize_response
from agentkit.agent.executor import Execution, Executor
from agentkit.agent.refine import refine_calls
from agentkit.agent.selection import SelectedTools
from agentkit.agent.session import new_episode_id, unrouted
from agentkit.agent.types import FinishedRun, ToolPolicy
from agentkit.diagnosis.wording import describe_failure
from agentkit.episodes import Episode, Evidence, Turn, Verdict, Verifier
from agentkit.episodes.labels import (
    ARM,
    CANDIDATE,
    EXPERIMENT,
    INSTRUCTIONS,
    SHADOW_OF,
    VIEW_OF,
)
from agentkit.errors import (
    ModelConnectionError,
    ModelError,
    ModelStatusError,
    ModelTimeoutError,
)
from agentkit.evolution.proposal import ProposalRecord
from agentkit.evolution.serving import (
    LedgerWatch,
    Overlays,
    experiment_for,
    fits,
    running,
)
from agentkit.library.library import Library
from agentkit.library.store import EpisodeStore, Store
from agentkit.messages import ToolCall, ToolFailure, ToolResult, Usage
from agentkit.metrics.calls import CanonicalCall, canonical_calls
from agentkit.models.base import ModelRequest
from agentkit.retrieval.cards import estimate_tokens
from agentkit.tools.definition import ToolDefinition, is_instructions
from agentkit.tools.tool import Tool

logger = logging.getLogger(__name__)

T = TypeVar("T")


class Background(ABC, Generic[T]):
    """A bounded queue with one worker, which runs on the event loop of whoever put something in.

    No thread is started: a model's connections often belong to one event loop. When a loop ends
    while work is left, as that of ``run_sync`` does, the work stays on the queue, for the next loop
    or for ``drain_sync``; what is being done then is dropped.

    Args:
        size: Most pieces that wait; one more is dropped.
        name: What the work is called in the log.

    Attributes:
        counts: What came of the work, by outcome: ``done`` counts all that was handled, ``dropped``
            what found the queue full, ``failed`` what raised (see the log).
    """

    def __init__(self, *, size: int, name: str) -> None:
        self._size = size
        self._name = name
        self._waiting: deque[T] = deque()
        self._lock = threading.Lock()
        self._worker: asyncio.Task[None] | None = None
        self.counts: Counter[str] = Counter()

    async def drain(self) -> None:
        """Do all that waits, and wait for what this loop is at."""
        worker = self._at_work()
        if worker is not None and worker.get_loop() is asyncio.get_running_loop():
            await asyncio.wait([worker])
        await self._work()

    def drain_sync(self) -> None:
        """``drain`` for programs without an event loop of their own.

        Raises:
            RuntimeError: An event loop runs in this thread.
        """
        wait_for(self.drain())

    @abstractmethod
    async def _handle(self, work: T) -> None:
        """Do one piece of work; what it raises is logged and counted."""

    def _count(self, what: str) -> None:
        with self._lock:
            self.counts[what] += 1

    def _put(self, work: T, *, start: bool) -> None:
        """Put a piece of work on the queue; ``start``: the running loop may begin with it."""
        with self._lock:
            accepted = len(self._waiting) < self._size
            if accepted:
                self._waiting.append(work)
            else:
                self.counts["dropped"] += 1
        if accepted and start and self._at_work() is None:
            # An empty context: what the work does is no part of the run that it follows.
            self._worker = asyncio.get_running_loop().create_task(
                self._work(), context=contextvars.Context()
            )

    def _at_work(self) -> asyncio.Task[None] | None:
        worker = self._worker
        if worker is None or worker.done() or worker.get_loop().is_closed():
            return None
        return worker

    async def _work(self) -> None:
        while (item := self._next()) is not None:
            try:
                await self._handle(item)
            except asyncio.CancelledError:
                self._count("dropped")
                raise
            except Exception as error:  # noqa: BLE001 - logged
                self._count("failed")
                episodes.log_failure(logger, error, "%s failed", self._name)
            else:
                self._count("done")

    def _next(self) -> T | None:
        with self._lock:
            return self._waiting.popleft() if self._waiting else None


# --- Verdicts for the sessions of a canary, so that its gate has something to count ---------------

_MOST_JUDGED = 1_000  # runs that wait to be judged; further ones are dropped, of either arm alike

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
        return _unknown("calls wait for somebody outside the run", OUTCOME)
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
    return _verdict(evidence, OUTCOME)


def _verdict(evidence: Sequence[Evidence], verifier: str) -> Verdict:
    passed = not evidence
    return Verdict(passed=passed, score=float(passed), evidence=tuple(evidence), verifier=verifier)


def _unknown(reason: str, verifier: str) -> Verdict:
    """A verdict that counts for neither side."""
    evidence = (Evidence(kind="gold_error", message=reason),)
    return Verdict(passed=False, evidence=evidence, verifier=verifier, fault="gold_error")


class CanaryJudge(Background[Episode]):
    """An ``Observer`` that judges the runs of a canary, of both arms, after their answer.

    Where the verdict comes from people or from another system, leave it out and append
    ``judged(episode, verdict)`` instead.

    Args:
        store: Takes the verdicts.
        verifier: Judges; without it ``outcome`` does.
    """

    def __init__(self, store: EpisodeStore, *, verifier: Verifier | None = None) -> None:
        super().__init__(size=_MOST_JUDGED, name="judging a canary")
        self._store = store
        self._verifier = verifier

    def observe(self, run: FinishedRun) -> None:
        """Put a run on the queue, if it belongs to an experiment."""
        episode = run.result.episode
        if {EXPERIMENT, ARM} <= episode.metadata.keys():
            self._put(episode, start=not run.ends_loop)

    async def _handle(self, work: Episode) -> None:
        found = outcome(work)
        if self._verifier is not None:
            found = await self._verifier.verify(work)
        await asyncio.to_thread(self._store.append, judged(work, found))


# --- Shadow: ask once more, with a candidate, what was answered, and run nothing ------------------

_BUSY = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
"""Statuses of a server that may answer the same request later."""

_HOUR = 3600.0


_QUEUE = 100  # runs that wait to be repeated; further ones are dropped
_TIMEOUT_SECONDS = 60.0


class ShadowRunner(Background[FinishedRun]):
    """An ``Observer`` that tries candidates in shadow: users see nothing of it.

    After an answer it asks the same model the same request with the candidate's definition in place
    of the one that there is, and keeps both proposals as episodes with a verdict each. Calls are
    checked against the contract and the rules, and never run, whatever the tool. The answer itself
    costs no further request, and is not waited for.

    Beside those of ``Background`` it counts runs as ``recorded``: both sides are in the store;
    ``skipped``: nothing was tried on it; ``over_budget``; ``unavailable``: the model was busy or
    not there.

    Args:
        store: Holds the ledger, and takes the episodes.
        verifier: Judges both sides from what they propose; without it they are judged by what
            worked in the run, see ``agreement``.
        tokens_per_hour: Most tokens that this process spends on repeats in any hour, exceeded by
            one answer at most; None for no bound. A model that reports no usage is counted by an
            estimate.
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
        tokens_per_hour: int | None = 200_000,
        watch: LedgerWatch | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(size=_QUEUE, name="a shadow run")
        self.watch = watch or LedgerWatch(store)
        self._tokens_per_hour = tokens_per_hour
        self._episodes: EpisodeStore = store
        self._verifier = verifier
        self._overlays = Overlays()
        self._clock = clock
        self._spent: deque[tuple[float, int]] = deque()

    def observe(self, run: FinishedRun) -> None:
        """Put a run on the queue, if it may be repeated."""
        known = self.watch.last
        is_idle = known is not None and self.watch.is_fresh and not running(known, "shadow")
        is_candidate = run.result.episode.metadata.get(ARM) == "candidate"
        if run.request is None or is_candidate or is_idle:
            self._count("skipped")
        else:
            self._put(run, start=not run.ends_loop)

    async def _handle(self, work: FinishedRun) -> None:
        experiment = await self._experiment(work)
        if experiment is None or work.request is None:
            self._count("skipped")
            return
        if not self._has_room():
            self._count("over_budget")
            return
        turn, error = None, ""
        try:
            turn = await self._ask(work, self._with_candidate(work, work.request, experiment))
        except (ModelError, TimeoutError) as caught:
            if _is_passing(caught):
                self._count("unavailable")
                logger.warning("a shadow run got no answer: %s", episodes.error_line(caught))
                return
            error = f"{type(caught).__name__}: {caught}"
        await self._record(work.result.episode, work.request, experiment, turn, error)

    async def _experiment(self, run: FinishedRun) -> ProposalRecord | None:
        """What is tried on a run, if anything is: one experiment.

        A run whose first request did not offer the tool, or that read other instructions, is not
        changed by a candidate.
        """
        ledger = await self.watch.current()
        if not self.watch.is_trusted or run.request is None:
            return None
        episode = run.result.episode
        key = episode.session_id or episode.episode_id
        offered = {tool.name for tool in run.request.tools}
        offered.add(episode.metadata.get(INSTRUCTIONS, ""))
        fitting = [
            one
            for one in running(ledger, "shadow")
            if fits(one, run.library) and one.tool_name in offered
        ]
        return experiment_for(key, fitting)

    def _with_candidate(
        self, run: FinishedRun, request: ModelRequest, experiment: ProposalRecord
    ) -> ModelRequest:
        """The request with the candidate's definition.

        Libraries that are offered whole give the same tuple each time, as adapters like it.
        """
        before, after = run.library, self._overlays.of(run.library, experiment.current.candidate)
        name = experiment.tool_name
        if is_instructions(name):
            told = (before[name].definition.text, after[name].definition.text)
            first, *rest = request.messages  # the text stands first in the system message
            said = replace(first, text=first.text.replace(*told, 1))
            return replace(request, messages=(said, *rest))
        if request.tools is before.definitions:
            return replace(request, tools=after.definitions)
        tools = (after[one.name].definition if one.name in before else one for one in request.tools)
        return replace(request, tools=tuple(tools))

    def _has_room(self) -> bool:
        """Whether something more may be spent in the hour that ends now."""
        since = self._clock() - _HOUR
        while self._spent and self._spent[0][0] <= since:
            self._spent.popleft()
        most = self._tokens_per_hour
        return most is None or sum(tokens for _, tokens in self._spent) < most

    async def _ask(self, run: FinishedRun, request: ModelRequest) -> Turn:
        """What the model proposes, its calls checked and not run."""
        started = time.perf_counter()
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            response = await run.model.complete(request)
            usage, trace = response.usage, None
            if run.refinement.mode != "none" and response.message.tool_calls:
                response, trace = await refine_calls(
                    lambda again, _: run.model.complete(again), request, response, run.refinement
                )
                usage += trace.usage
        self._spent.append((self._clock(), usage.total_tokens or _estimate(request)))
        message = normalize_response(response.message, ())
        seconds = time.perf_counter() - started
        return Turn(
            message=message,
            results=await checked_calls(message.tool_calls, request),
            usage=usage,
            refine=trace,
            seconds=seconds,
            model_seconds=seconds,
        )

    async def _record(
        self,
        original: Episode,
        request: ModelRequest,
        experiment: ProposalRecord,
        turn: Turn | None,
        error: str,
    ) -> None:
        """Keep both sides, recorded and judged alike.

        The original's side has no arm: as a control it is known by the candidate's label
        ``shadow_of``, which names it.
        """
        first = original.turns[0]
        control = Turn(  # without what running its calls gave and took
            message=first.message,
            results=await checked_calls(first.message.tool_calls, request),
            usage=first.usage,
            refine=first.refine,
            seconds=first.model_seconds,
            model_seconds=first.model_seconds,
        )
        mine = _side(original, control, experiment, {VIEW_OF: original.episode_id})
        digest = experiment.current.candidate.digest
        labels = {SHADOW_OF: mine.episode_id, ARM: "candidate", CANDIDATE: digest}
        for side in (mine, _side(original, turn, experiment, labels, error=error)):
            kept = side
            if side.turns and self._verifier is not None:
                kept = replace(side, verdict=await self._verifier.verify(side))
            elif side.turns:
                verdict = agreement(side.turns[0], original, request.tools)
                kept = replace(side, verdict=verdict)
            await asyncio.to_thread(self._episodes.append, kept)
        self._count("recorded")


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


def _side(
    original: Episode,
    turn: Turn | None,
    experiment: ProposalRecord,
    labels: Mapping[str, str],
    *,
    error: str = "",
) -> Episode:
    """One side of a shadow run as an episode: the turn of the repeated request and no more."""
    answered = turn is not None and not turn.message.tool_calls
    return Episode(
        episode_id=new_episode_id(),
        request=original.request,
        turns=() if turn is None else (turn,),
        stop_reason="error" if error else "finished",
        output=turn.message.text if turn is not None and answered else None,
        model=original.model,
        library_version=original.library_version,
        session_id=original.session_id,
        history_length=original.history_length,
        usage=Usage() if turn is None else turn.usage,
        started_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        seconds=0.0 if turn is None else turn.seconds,
        error=error or None,
        metadata={**unrouted(original.metadata), EXPERIMENT: experiment.proposal_id, **labels},
    )


# --- Calls that are looked at and never run: would the executor have let them through? ------------

_NOT_RUN = ToolFailure(
    kind="denied", rule="The call is valid; a shadow run executes nothing.", retryable=False
)


async def checked_calls(calls: Sequence[ToolCall], request: ModelRequest) -> tuple[ToolResult, ...]:
    """A result for each call: ``failed`` with the rule that it breaks, else ``denied``, unrun.

    An executor looks at them over tools without code or program: whether the tool was offered,
    whether the arguments can be read, the contract's schema, preconditions, and learned rules.

    Args:
        calls: What a model proposed.
        request: What it was asked, with the conversation so far.
    """
    bare = (
        replace(one, body=None, signature=replace(one.signature, children=()))
        for one in request.tools
    )
    library = Library(Tool(definition=one) for one in bare)
    execution = Execution(policy=ToolPolicy(contracts="always"))
    tools = SelectedTools.whole(library)
    executor = Executor(shared=execution, tools=tools, said=request.messages)
    return tuple(
        one
        if one.status == "failed"
        else ToolResult(
            call_id=one.call_id,
            name=one.name,
            status="denied",
            text=describe_failure(one.name, _NOT_RUN),
            failure=_NOT_RUN,
            attempts=0,
        )
        for one in await executor.execute(calls)
    )


# --- A verdict on calls that nobody ran, from what happened to the calls of the run itself --------
# What it can show: a candidate that proposes at once what the run found only after failures, and
# one that proposes calls which break the contract or a rule. What it cannot show: that calls which
# worked were the right ones, nor that another valid call would have worked as well, which counts
# against the candidate here. So a gain that it shows is one, a loss may be none.

SHADOW_AGREEMENT = "shadow_agreement"
"""The verifier's name in verdicts."""


def agreement(turn: Turn, original: Episode, definitions: Iterable[ToolDefinition]) -> Verdict:
    """Whether a side calls what worked in the answered run.

    It passes when it makes calls where the run made some, and each of them is valid and the same as
    one that worked in the run, at that point or later; or when both answer without a call.

    Args:
        turn: What the side answered to the first request.
        original: The answered run.
        definitions: The tools that were offered.

    Returns:
        The verdict; with a fault where a call of the run was not carried out, since nobody knows.
    """
    first = original.turns[0]
    if any(one.status in {"denied", "deferred"} for one in first.results):
        reason = f"a call of {original.episode_id} was not carried out"
        return _unknown(reason, SHADOW_AGREEMENT)
    return _verdict([*_disagreements(turn, original, tuple(definitions))], SHADOW_AGREEMENT)


def _disagreements(
    turn: Turn, original: Episode, definitions: tuple[ToolDefinition, ...]
) -> Iterator[Evidence]:
    calls = turn.message.tool_calls
    made_calls = bool(original.turns[0].message.tool_calls)
    if made_calls and not calls:
        message = "answered without a call, where the run made some"
        yield Evidence(kind="missing_call", message=message, turn=0)
    worked: set[CanonicalCall] = set()
    for one in original.turns if made_calls else ():
        ok = {result.call_id for result in one.results if result.status == "ok"}
        did = [call for call in one.message.tool_calls if call.call_id in ok]
        worked.update(canonical_calls(did, definitions))
    failed = {one.call_id: one.failure for one in turn.results if one.status == "failed"}
    for call, made in zip(calls, canonical_calls(calls, definitions), strict=True):
        about = Evidence(
            kind="unexpected_call",
            message=f"{call.name}: no such call worked in the run",
            turn=0,
            call_id=call.call_id,
            tool=call.name,
        )
        failure = failed.get(call.call_id)
        if failure is not None:
            yield replace(about, kind="call_failed", message=f"{call.name}: {failure.rule}")
        elif made not in worked:
            yield about
