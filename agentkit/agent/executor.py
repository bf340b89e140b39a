"""Executing tool calls: validate, ask for approval, run, and turn what happens into a value.

No exception of a tool leaves this module: each call ends as a ``ToolResult`` whose failure, if
there is one, says in words what a model can do about it.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from agentkit import (
    agent as agent_door,
    diagnosis,  # doors: wording loads when a call fails, spans when somebody traces
    tools as tools_door,
    tracing as spans,
)
from agentkit.agent.checks import (
    ContractChecker,
    calls_first,
    failure_of,
    is_transient,
    stands_for_rest,
    wanted_before_children,
)
from agentkit.agent.episode_queue import EpisodeQueue
from agentkit.agent.selection import SelectedTools
from agentkit.agent.types import (
    NO_SPAN,
    WAITS_FOR_PERSON,
    Approval,
    Approver,
    AskedLater,
    Emit,
    Limits,
    ToolCallFinished,
    ToolCallStarted,
    ToolPolicy,
    as_approval,
    ignore,
)
from agentkit.episodes import ProgramCall
from agentkit.errors import DefinitionError, ToolFailed
from agentkit.library.library import Library, broken_links, nearest_names
from agentkit.messages import (
    FailureKind,
    JsonObject,
    Message,
    ToolCall,
    ToolFailure,
    ToolMessage,
    ToolResult,
    clean,
)
from agentkit.tools import rules  # a door: they load when a tool has some
from agentkit.tools.canonical import canonical_json, same_json
from agentkit.tools.invocation import (
    TOOL_ERRORS,
    RunContext,
    RunFacts,
    UnserialisableError,
    called,
    contained,
    encode_result,
    encode_shown,
    entered,
    is_tool_error,
    run_in_daemon_thread,
    with_media,
)
from agentkit.tools.tool import Tool

if TYPE_CHECKING:
    from agentkit.agent.guardrails import Guardrails
    from agentkit.tools.rules.records import EarlierCall
    from agentkit.tools.validation import ArgumentValidator
    from agentkit.tracing.spans import GuardrailName
    from agentkit.tracing.tracing import Tracing


_NOTHING: AbstractContextManager[None] = nullcontext()
_STARTED_AT_ONCE = 32
_MOST_LIKENED = 20
"""Names of no tool, in one run, for which tools of like names are sought."""

_NO_RECORD = "What it does can not be recorded now, because the store takes no episodes."


@dataclass(frozen=True, kw_only=True)
class Execution:
    """What runs the calls of all runs of an agent.

    Attributes:
        policy: How, where a tool does not say otherwise.
        limits: Bounds on one run.
        tracing: Is told of calls and checks; None for nobody.
        queue: Takes the episodes; while it can not, tools that may write are not run.
    """

    policy: ToolPolicy = field(default_factory=ToolPolicy)
    limits: Limits = field(default_factory=Limits)
    tracing: Tracing | None = None
    queue: EpisodeQueue | None = None
    contracts: ContractChecker = field(init=False)
    _validators: WeakKeyDictionary[Library, dict[str, ArgumentValidator]] = field(
        init=False, default_factory=WeakKeyDictionary
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "contracts", ContractChecker(self.policy.contracts))

    def validators(self, library: Library) -> dict[str, ArgumentValidator]:
        """Validators of a library's tools by name, shared between runs."""
        return self._validators.setdefault(library, {})


@dataclass(kw_only=True)
class Executor:
    """Runs the calls of one run. Holds that run's budget, so make a new one for each run.

    Attributes:
        shared: What all runs of an agent have in common.
        tools: The tools that the model may call, with the pinned snapshot.
        said: The conversation before the run.
        emit: Receives events.
        run: What tools may know of the run.
        guardrails: Look at calls and results; None for none.
        approve: Asks a person; without it, calls that need approval are deferred.
        finished: Results of the current turn so far, in order of completion.
        program_calls: The calls of its programs that have ended so far.
        replayed: What a program that goes on called before, by call id; it is not called again.
    """

    shared: Execution
    tools: SelectedTools
    said: Sequence[Message] = ()
    emit: Emit = ignore
    run: RunFacts = field(default_factory=RunFacts)
    guardrails: Guardrails | None = None
    approve: Approver | None = field(init=False)
    finished: list[ToolResult] = field(init=False, default_factory=list)
    program_calls: list[ProgramCall] = field(init=False, default_factory=list)
    replayed: Mapping[str, ProgramCall] = field(init=False, default_factory=dict)
    _failures: Counter[str] = field(init=False, default_factory=Counter)
    _failed_runs: Counter[str] = field(init=False, default_factory=Counter)
    _final: set[tuple[str, bytes]] = field(init=False, default_factory=set)
    _likened: int = field(init=False, default=0)
    _children_want: dict[str, Mapping[str, str]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.library = self.tools.library
        self.approve = self.shared.policy.approve
        self._validators = self.shared.validators(self.library)
        if self.run.calls_left is None:
            self.run.calls_left = self.shared.limits.max_calls
        self._history = CallHistory(self.said)

    def remember(self, results: Iterable[ToolResult]) -> None:
        """Count calls that were run elsewhere among those that came before."""
        for result in results:
            self._history.add(result)

    async def execute(self, calls: Sequence[ToolCall]) -> tuple[ToolResult, ...]:
        """Run the calls of one turn and return their results in the order of the calls.

        Calls run side by side, except that those whose tools declare ``writes`` keep the model's
        order among themselves, and that a call waits for those that a learned rule wants before it.
        """
        self.finished.clear()
        if self.program_calls:
            self.program_calls = []
        if len(calls) == 1:  # the usual case needs no task
            return (await self._observed(calls[0]),)
        written: asyncio.Task[ToolResult] | None = None
        tasks: list[asyncio.Task[ToolResult]] = []
        by_name: dict[str, list[asyncio.Task[ToolResult]]] = {}
        try:
            for call in calls:
                ordered = self._writes(call)
                first = [
                    task for name in self._wanted_before(call) for task in by_name.get(name, ())
                ]
                if ordered and written is not None:
                    first.append(written)
                task = asyncio.create_task(self._after(first, call))
                written = task if ordered else written
                tasks.append(task)
                by_name.setdefault(call.name, []).append(task)
                if len(tasks) % _STARTED_AT_ONCE == 0:
                    await asyncio.sleep(0)  # others get their turn
            return tuple(await asyncio.gather(*tasks))
        except BaseException:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise

    def _writes(self, call: ToolCall) -> bool:
        tool = self.tools.get(call.name)
        return tool is not None and tool.definition.signature.effects.writes is True

    def _wanted_before(self, call: ToolCall) -> frozenset[str]:
        tool = self.tools.get(call.name)
        if tool is None:
            return frozenset()
        return (
            self.shared.contracts.wanted_before(tool.definition)
            | self._wanted_by_children(tool).keys()
        )

    async def _after(self, first: Sequence[asyncio.Task[ToolResult]], call: ToolCall) -> ToolResult:
        if first:
            await asyncio.wait(first)
        return await self._observed(call)

    async def _observed(self, call: ToolCall, program: str = "") -> ToolResult:
        self.emit(ToolCallStarted(call=call))
        started = time.perf_counter()
        result = await self._run(call)
        result = replace(result, seconds=time.perf_counter() - started)
        if program:
            self.program_calls.append(ProgramCall(program=program, call=call, result=result))
        else:
            self.finished.append(result)
        self._history.add(result)
        self.emit(ToolCallFinished(call=call, result=result))
        return result

    def calls_of(self, program: str = "") -> tuple[ProgramCall, ...]:
        """What a program, or all of this turn, called so far, in the order of its calls."""
        made = (one for one in self.program_calls if program in {"", one.program})
        return tuple(sorted(made, key=lambda one: int(one.call.call_id.rpartition(".")[2])))

    async def execute_inside(self, call: ToolCall, program: str) -> ToolResult:
        """Run a call that a program makes, or give what it gave before the program waited.

        Args:
            call: The call; its id says which one of the program's it is.
            program: Id of the call that runs the program.

        Raises:
            ToolFailed: The program calls something else than it did before it waited.
        """
        known = self.replayed.get(call.call_id)
        if known is None:
            if (spent := self.run.reached()) is not None:
                raise ToolFailed(f"the run has reached its {spent.replace('_', ' ')}")
            return await self._observed(call, program)
        if known.call != call:
            raise ToolFailed(
                f"the program waited and goes on, and now calls {call.name} where it called "
                f"{known.call.name} before with other arguments; write a new one for what is left"
            )
        self.program_calls.append(known)
        return known.result

    async def _run(self, call: ToolCall) -> ToolResult:
        tool = self.tools.take(call.name)
        known = tool or self.library.get(call.name)
        tracing = self.shared.tracing
        begun = tracing and spans.tool_span(tracing, call, known, self.library)
        with begun or NO_SPAN as span:
            span.value = result = await self._through_checks(call, tool)
        return result

    async def _through_checks(self, call: ToolCall, tool: Tool | None) -> ToolResult:
        """What comes of a call: of its checks, and where they let it pass of its attempts."""
        if tool is None or call.malformed is not None:
            return self._no_call(call, tool)
        try:
            checked = await self._checked(tool, call.arguments)
        except DefinitionError as error:  # one broken schema must not end the run
            kind: FailureKind = "tool_error"
            return self._failed(call, tool, kind=kind, rule=str(error), retryable=False)
        if not isinstance(checked, Mapping):
            return self._stopped("validation", call, tool, checked)
        if self.guardrails is not None:
            return await self._guarded(self.guardrails, call, tool, checked)
        refusal = self._barred(call, tool, checked) or await self._refusal(call, tool, checked)
        return refusal if refusal is not None else await self._attempts(call, tool, checked)

    async def _guarded(
        self, guardrails: Guardrails, call: ToolCall, tool: Tool, arguments: JsonObject
    ) -> ToolResult:
        """What comes of a call that guardrails look at, before and after."""
        seen = replace(call, arguments=arguments)
        passed, decision = await guardrails.check("tool_call", seen)
        if isinstance(decision, agent_door.Block):
            return self._failed(call, tool, kind="denied", rule=decision.reason, retryable=False)
        checked = arguments if passed is seen else await self._checked(tool, passed.arguments)
        if not isinstance(checked, Mapping):
            return self._stopped("validation", call, tool, checked)
        asks = isinstance(decision, agent_door.Ask)
        refusal = self._barred(call, tool, checked)
        refusal = refusal or await self._refusal(call, tool, checked, asks=asks)
        if refusal is not None:
            return refusal
        return await self._let_pass(call, await self._attempts(call, tool, checked))

    async def _let_pass(self, call: ToolCall, result: ToolResult) -> ToolResult:
        """The result as guardrails let it pass; of a withheld one, too, it is said that it ran."""
        if self.guardrails is None or result.status != "ok":
            return result
        result, decision = await self.guardrails.check("tool_result", result)
        if isinstance(decision, agent_door.Block | agent_door.Ask):
            rule = decision.reason or "It is withheld."
            withheld = ToolFailure(kind="unserialisable_result", rule=rule, retryable=False)
            failed = _failure_result(call, self._spent(call.name, withheld, 0))
            return replace(failed, attempts=result.attempts, seconds=result.seconds)
        return result

    async def answered(self, call: ToolCall, value: object) -> ToolResult:
        """What comes of a value that was found outside for a call: it passes what results pass."""
        tool = self.library.get(call.name)
        try:
            result, broken = replace(self._succeeded(call, value), attempts=0), None
            if tool is not None:
                after = self.shared.contracts.after
                broken = after(tool.definition, call.arguments, result.value)
        except UnserialisableError as error:
            broken = failure_of(error, call)
        if broken is not None:
            return _failure_result(call, self._spent(call.name, broken, 0))
        return await self._let_pass(call, result)

    async def _checked(self, tool: Tool, arguments: JsonObject) -> JsonObject | ToolFailure:
        """The arguments as they can be run, or the first rule that they break."""
        validator = self._validators.get(tool.name)
        if validator is None:
            validator = self._validators[tool.name] = tools_door.ArgumentValidator(tool.definition)
        if validator.is_plainly_valid(arguments):
            return arguments
        return await run_in_daemon_thread(partial(validator.runnable, arguments))

    def _barred(self, call: ToolCall, tool: Tool, arguments: JsonObject) -> ToolResult | None:
        """A failed result when the budget or the tool's contract rules the call out."""
        if any(one.calls_left == 0 for one in self.run.lineage):
            rule = f"At most {self.shared.limits.max_calls} calls may be started."
            if self.run.calls_left:
                rule = "No call is left of those that the run which it belongs to may start."
            return self._failed(call, tool, kind="limit_exceeded", rule=rule, retryable=False)
        refused = self._given_up(call, tool, arguments)
        if refused is not None:
            return refused
        for one in self.run.lineage:
            one.calls_left = one.calls_left and one.calls_left - 1
        only_reads = tool.definition.signature.effects.is_read_only
        queue = self.shared.queue
        is_refused = not only_reads and queue is not None and queue.refuses_writes
        if is_refused and not self.tools.is_own(tool):
            return self._failed(call, tool, kind="denied", rule=_NO_RECORD, retryable=False)
        broken = self.shared.contracts.before(
            tool.definition, arguments, self._history.known
        ) or self._without_calls_of_children(tool)
        return None if broken is None else self._stopped("contract", call, tool, broken)

    def _stopped(
        self, check: GuardrailName, call: ToolCall, tool: Tool, broken: ToolFailure
    ) -> ToolResult:
        """The failed result of a call that a check stopped; one that passes leaves no span."""
        if self.shared.tracing is not None:
            with spans.guardrail_span(self.shared.tracing, check, tool.name) as span:
                span.value = broken.kind
        return self._counted(call, tool, broken)

    def _given_up(self, call: ToolCall, tool: Tool, arguments: JsonObject) -> ToolResult | None:
        """A failed result for a tool that failed too often in a row, or for the very same call."""
        failed, rule = self._failed_runs[tool.name], ""
        if failed > self._retries(tool):
            rule = f"It failed {failed} times in a row and is not run again."
        elif self._final and (tool.name, canonical_json(arguments)) in self._final:
            rule = "This very call failed for good before and is not run again."
        if not rule:
            return None
        return self._failed(call, tool, kind="limit_exceeded", rule=rule, retryable=False)

    def _without_calls_of_children(self, tool: Tool) -> ToolFailure | None:
        """A composite is no way around a rule of a child that wants another call first."""
        wanted = self._wanted_by_children(tool)
        if not wanted:
            return None
        called = {call.name for call in self._history.known()}
        return next((calls_first(*item) for item in wanted.items() if item[0] not in called), None)

    def _wanted_by_children(self, tool: Tool) -> Mapping[str, str]:
        if not tool.definition.is_composite:
            return {}
        known = self._children_want.get(tool.name)
        if known is None:
            known = wanted_before_children(tool.definition, self.library.tools)
            self._children_want[tool.name] = known
        return known

    async def _refusal(
        self, call: ToolCall, tool: Tool, arguments: JsonObject, *, asks: bool = False
    ) -> ToolResult | None:
        """A denied or deferred result, or None when the call may run here and now.

        A person is shown the arguments that would run, which need not be those that were given.
        """
        if tool.needs_approval or asks:
            approval = await self._approval(replace(call, arguments=arguments), tool)
            if approval is None:
                waits = _deferred(call, WAITS_FOR_PERSON.format(name=tool.name))
                is_same = same_json(arguments, call.arguments)
                return waits if is_same else replace(waits, value=dict(arguments))
            if not approval.approved:
                rule = approval.reason or "A person said no."
                return self._failed(call, tool, kind="denied", rule=rule, retryable=False)
        return None if tool.is_bound else self._unbound(call, tool)

    async def _approval(self, call: ToolCall, tool: Tool) -> Approval | None:
        """What a person says about the call; None when nobody can be asked."""
        tracing = self.shared.tracing
        begun = tracing and spans.guardrail_span(tracing, "approval", tool.name)
        with begun or NO_SPAN as span:
            approval = await self._asked(call, tool)
            allowed = approval is not None and approval.approved
            span.value = "" if allowed else "deferred" if approval is None else "denied"
        return approval

    async def _asked(self, call: ToolCall, tool: Tool) -> Approval | None:
        if self.approve is None:
            return None
        try:
            with contained("approve"):
                decision = self.approve(call, tool)
                return as_approval(await decision if inspect.isawaitable(decision) else decision)
        except AskedLater:
            return None

    def _unbound(self, call: ToolCall, tool: Tool) -> ToolResult:
        """Work for somebody else; but a composite that nobody could run is a failure."""
        broken = broken_links(self.library, tool.name) if tool.definition.is_composite else ()
        if broken:
            rule = " ".join(problem.message for problem in broken)
            return self._failed(call, tool, kind="tool_failed", rule=rule, retryable=False)
        return _deferred(call, DEFERRED_TEXT)

    async def _attempts(self, call: ToolCall, tool: Tool, arguments: JsonObject) -> ToolResult:
        effects = tool.definition.signature.effects
        safe_to_repeat = not effects.destructive and (effects.idempotent or effects.is_read_only)
        repeats = min(self._retries(tool), self.shared.policy.repeats)
        allowed = 1 + (repeats if safe_to_repeat else 0)
        for attempt in range(1, allowed + 1):
            outcome, may_pass = await self._attempt(call, tool, arguments, attempt)
            result = replace(outcome, attempts=attempt)
            failure = outcome.failure
            self._tally(tool, arguments, failure)
            if not may_pass or attempt == allowed:
                return result
            await self.shared.policy.sleep(self.shared.policy.backoff_seconds * 2 ** (attempt - 1))
        return result

    def _tally(self, tool: Tool, arguments: JsonObject, failure: ToolFailure | None) -> None:
        """Remember how an execution ended; a success gives a tool its retries back."""
        if failure is None:
            self._failed_runs.pop(tool.name, None)
        elif failure.kind == "tool_failed":  # an answer on purpose: other calls may succeed
            self._final.add((tool.name, canonical_json(arguments)))
        else:
            self._failed_runs[tool.name] += 1

    def _context(self, call: ToolCall, tool: Tool, attempt: int) -> AbstractContextManager[None]:
        """Gives the run's context to a tool that takes it, or whose children may."""
        if tool.context is None and not tool.definition.is_composite:
            return _NOTHING
        return entered(
            RunContext(run=self.run, attempt=attempt, call_id=call.call_id, tool_name=tool.name)
        )

    async def _attempt(
        self, call: ToolCall, tool: Tool, arguments: JsonObject, number: int
    ) -> tuple[ToolResult, bool]:
        """One attempt, and whether another may pass."""
        policy, seconds = self.shared.policy, tool.timeout_seconds
        seconds = policy.timeout_seconds if seconds is None else seconds
        deadline = asyncio.timeout(seconds)
        try:
            async with deadline:
                with self._context(call, tool, number):
                    value = await _invoked(tool, arguments)
            if self.run.returned and tool.definition.is_composite:
                value = with_media(value, self.run.returned)
            result = self._succeeded(call, value)
            broken = self.shared.contracts.after(tool.definition, arguments, result.value)
        except AskedLater as waits:  # of a program, for one of its calls
            return _deferred(call, str(waits)), False
        except TOOL_ERRORS as error:
            if not is_tool_error(error):
                raise
            late = seconds if deadline.expired() else None
            failure = failure_of(
                error,
                call,
                late_seconds=late,
                expose_errors=policy.expose_errors,
                run_id=self.run.run_id,
            )
            return self._counted(call, tool, failure), is_transient(failure, error)
        if broken is None:
            return result, False
        return self._stopped("postcondition", call, tool, broken), False

    def _succeeded(self, call: ToolCall, value: object) -> ToolResult:
        data, text, media = encode_shown(value)
        limit = self.shared.limits.max_result_chars
        if limit is not None and len(text) > limit:
            text = f"{text[:limit]}… (shortened: {limit} of {len(text)} characters)"
        return ToolResult(
            call_id=call.call_id, name=call.name, status="ok", value=data, text=text, media=media
        )

    def _no_call(self, call: ToolCall, tool: Tool | None) -> ToolResult:
        """The failure of what names no tool, or has no arguments."""
        malformed = call.malformed or ""
        if stands_for_rest(call):
            rest = ToolFailure(kind="limit_exceeded", rule=malformed, retryable=False)
            return _failure_result(call, rest)
        if tool is None:
            return self._unknown(call)
        rule = f"It was: {malformed[:200]!r}."
        return self._failed(call, tool, kind="malformed_arguments", rule=rule)

    def _unknown(self, call: ToolCall) -> ToolResult:
        names = [definition.name for definition in self.tools.definitions]
        self._likened += 1
        is_sought = self._likened <= _MOST_LIKENED
        failure = ToolFailure(
            kind="unknown_tool",
            rule=f"Offered are {len(names)} tools." if names else "None is offered.",
            nearest=nearest_names(call.name, sorted(names)) if is_sought else (),
        )
        return _failure_result(call, self._spent(call.name, failure, self.shared.policy.retries))

    def _failed(
        self,
        call: ToolCall,
        tool: Tool,
        *,
        kind: FailureKind,
        rule: str,
        retryable: bool = True,
    ) -> ToolResult:
        failure = ToolFailure(kind=kind, rule=rule, retryable=retryable)
        return self._counted(call, tool, failure)

    def _counted(self, call: ToolCall, tool: Tool, failure: ToolFailure) -> ToolResult:
        return _failure_result(call, self._spent(tool.name, failure, self._retries(tool)))

    def _retries(self, tool: Tool) -> int:
        return self.shared.policy.retries if tool.max_retries is None else tool.max_retries

    def _spent(self, name: str, failure: ToolFailure, allowed: int) -> ToolFailure:
        """Count the failure; once the tool's retries are used up it becomes final."""
        self._failures[name] += 1
        over = failure.retryable and self._failures[name] > allowed
        return replace(failure, retryable=False) if over else failure


async def _invoked(tool: Tool, arguments: JsonObject) -> Any:
    """What the tool's function returns for validated arguments."""
    function = tool.function
    if function is None:  # unbound tools were deferred before
        raise ToolFailed(f"{tool.name} has no function in this process")
    return await called(partial(function, **tool.convert(arguments)), is_async=tool.is_async)


def _deferred(call: ToolCall, text: str) -> ToolResult:
    return ToolResult(
        call_id=call.call_id, name=call.name, status="deferred", text=text, attempts=0
    )


def _failure_result(call: ToolCall, failure: ToolFailure) -> ToolResult:
    if not failure.rule.isascii():
        failure = replace(failure, rule=clean(failure.rule))
    return ToolResult(
        call_id=call.call_id,
        name=call.name,
        status="denied" if failure.kind == "denied" else "failed",
        text=clean(diagnosis.describe_failure(call.name, failure)),  # paths are of the model
        failure=failure,
    )


DEFERRED_TEXT = "This call waits for an answer from outside; there is no result yet."
"""Text of a call that somebody outside this process has to answer."""


class CallHistory:
    """The calls that succeeded so far; put together when a rule first asks.

    Args:
        said: The conversation before the run. Messages hold the text of a result only, so those
            count as successes that do not read like one of our refusals.
    """

    def __init__(self, said: Sequence[Message]) -> None:
        self._said = said
        self._new: list[ToolResult] = []
        self._known: list[EarlierCall] | None = None

    def add(self, result: ToolResult) -> None:
        """A call of this run has ended."""
        if result.status == "ok":
            self._new.append(result)

    def known(self) -> Sequence[EarlierCall]:
        """The calls, oldest first; their results whole, even where the model read them cut."""
        if self._known is None:
            self._known = [
                rules.EarlierCall(name=message.name, text=message.text)
                for message in self._said
                if isinstance(message, ToolMessage) and _is_success(message)
            ]
        for result in self._new:
            text = encode_result(result.value)[1]
            self._known.append(rules.EarlierCall(name=result.name, text=text))
        self._new.clear()
        return self._known


def _is_success(message: ToolMessage) -> bool:
    waiting = {DEFERRED_TEXT, WAITS_FOR_PERSON.format(name=message.name)}
    return message.text not in waiting and not diagnosis.tells_failure(message.name, message.text)
