"""Guardrails: functions that look at what goes in and out of a run, and may change or stop it.

They fail closed: one that raises, takes too long or answers with something odd ends the run as
``blocked``, and the episode says so.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, TypeAlias, get_args

from agentkit.episodes.episode import GuardrailPlace, GuardrailRecord
from agentkit.errors import UsageError
from agentkit.messages import ToolCall, ToolResult
from agentkit.tools.invocation import (
    DepsT,
    RunContext,
    RunFacts,
    T,
    called,
    described,
    encode_shown,
    is_tool_error,
)


@dataclass(frozen=True, slots=True)
class Block:
    """Stop here.

    A tool call or result is withheld from the model, which reads the reason; an input or output
    ends the run as ``blocked``.
    """

    reason: str


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Go on with this in its place.

    A text for an input, arguments for a tool call, the value of a tool result, the output.
    """

    value: Any
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask a person whether a tool may be called. Elsewhere nobody can be asked, so it blocks."""

    reason: str = ""


GuardrailDecision: TypeAlias = Block | Rewrite | Ask | None
"""What a guardrail says; None lets pass."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Guardrail(Generic[DepsT]):
    """A function at one place of a run; ``guardrail`` makes it.

    Attributes:
        function: Sync or async; takes the ``RunContext`` and what passes.
        on: The place.
        name: For records.
        tools: Whose calls or results it looks at; None for all.
        timeout_seconds: How long it may take.
        beside_model: Whether an input is looked at while the model answers, which is cancelled
            when it is blocked. Nothing the model says is used or shown before.
    """

    function: Callable[[RunContext[DepsT], Any], Any]
    on: GuardrailPlace
    name: str
    tools: frozenset[str] | None = None
    timeout_seconds: float = 10.0
    beside_model: bool = False


def guardrail(
    on: GuardrailPlace,
    *,
    name: str | None = None,
    tools: Iterable[str] | None = None,
    timeout_seconds: float = 10.0,
    beside_model: bool = False,
) -> Callable[[Callable[[RunContext[DepsT], Any], Any]], Guardrail[DepsT]]:
    """Make a guardrail of a function of the run's context and what passes.

    Args:
        on: ``input`` (the request as a text), ``tool_call`` (a ``ToolCall`` whose arguments fit),
            ``tool_result`` (a ``ToolResult``) or ``output`` (the answer).
        name: The function's own by default.
        tools: Names of the tools that it is for; None for all.
        timeout_seconds: Longer than this, the run is blocked.
        beside_model: Look at the input while the model answers already.

    Example:
        >>> @guardrail("output")
        ... def no_promises(ctx, output):
        ...     if "guarantee" in output:
        ...         return Block("promises are for the sales department")
        >>> no_promises.name, no_promises.on
        ('no_promises', 'output')
    """
    if on not in get_args(GuardrailPlace):
        raise UsageError(
            f"a guardrail is on one of {', '.join(get_args(GuardrailPlace))}; not {on!r}"
        )
    if beside_model and on != "input":
        raise UsageError(
            "beside_model is for guardrails on input; others have nothing to run beside"
        )

    return lambda function: Guardrail(
        function=function,
        on=on,
        name=name or str(getattr(function, "__name__", type(function).__name__)),
        tools=None if tools is None else frozenset(tools),
        timeout_seconds=timeout_seconds,
        beside_model=beside_model,
    )


class RunBlocked(Exception):  # noqa: N818 - ends the run, whose episode tells it
    """A guardrail ends the run."""


class Guardrails:
    """The guardrails of one run, and what they decided.

    Args:
        given: In the order in which they look.
        facts: What they may know of the run.

    Attributes:
        records: Their decisions so far.
    """

    def __init__(self, given: Sequence[Guardrail[Any]], facts: RunFacts) -> None:
        self._given = given
        self._facts = facts
        self.records: list[GuardrailRecord] = []

    def has(self, on: GuardrailPlace, *, beside_model: bool = False) -> bool:
        """Whether there is one at a place."""
        return any(one.on == on and one.beside_model is beside_model for one in self._given)

    async def check(
        self, on: GuardrailPlace, value: T, *, beside_model: bool = False
    ) -> tuple[T, GuardrailDecision]:
        """What goes on in the place of ``value``, and why nothing does.

        Raises:
            RunBlocked: A guardrail failed, or blocked an input or output.
        """
        tool = value.name if isinstance(value, ToolCall | ToolResult) else ""
        for one in self._given:
            is_meant = one.on == on and one.beside_model is beside_model
            if not is_meant or (one.tools is not None and tool not in one.tools):
                continue
            decision = await self._decision(one, value)
            if isinstance(decision, Rewrite):
                value = _rewritten(value, decision.value)
            elif decision is not None:
                return value, decision
        return value, None

    async def _decision(self, one: Guardrail[Any], value: Any) -> GuardrailDecision:
        began = time.perf_counter()
        record = GuardrailRecord(
            name=one.name,
            on=one.on,
            outcome="failed",
            reason="it was cancelled",
            call_id=getattr(value, "call_id", ""),
        )
        try:
            decision: GuardrailDecision = await self._asked(one, value)
            outcome = _outcome(decision, one.on)
            record = replace(record, outcome=outcome, reason=getattr(decision, "reason", ""))
        except BaseException as error:  # argparse exits where it could raise
            if not is_tool_error(error):
                raise
            timeout = f"it took longer than {one.timeout_seconds:g} s"
            why = timeout if isinstance(error, TimeoutError) else described(error)
            record = replace(record, reason=why[:500])
            raise RunBlocked(f"the guardrail {one.name} failed: {record.reason}") from error
        finally:
            self.records.append(replace(record, seconds=time.perf_counter() - began))
        ends = isinstance(decision, Block | Ask) and one.on in {"input", "output"}
        if ends or (one.beside_model and decision is not None):
            raise RunBlocked(f"{one.name}: {record.reason}")
        return decision

    async def _asked(self, one: Guardrail[Any], value: Any) -> Any:
        call_id = getattr(value, "call_id", "")
        context: RunContext[Any] = RunContext(run=self._facts, call_id=call_id)
        async with asyncio.timeout(one.timeout_seconds):
            is_async = inspect.iscoroutinefunction(one.function)
            return await called(partial(one.function, context, value), is_async=is_async)


_OUTCOMES: Mapping[type, Any] = {
    type(None): "passed",
    Rewrite: "rewritten",
    Block: "blocked",
    Ask: "asked",
}


_REWRITES: Mapping[GuardrailPlace, tuple[type, str]] = {
    "input": (str, "a text"),
    "tool_call": (Mapping, "a mapping of arguments"),
}


def _outcome(decision: object, on: GuardrailPlace) -> Any:
    outcome = _OUTCOMES.get(type(decision))
    if outcome is None:
        raise UsageError(f"it gave {decision!r:.80}; return None, Block, Rewrite or Ask")
    expected, words = _REWRITES.get(on, (object, ""))
    if isinstance(decision, Rewrite) and not isinstance(decision.value, expected):
        raise UsageError(f"it gave {decision!r:.80}; {on} is rewritten by {words}")
    return outcome


def _rewritten(value: Any, new: Any) -> Any:
    if isinstance(value, ToolCall):
        return replace(value, arguments=new)
    if isinstance(value, ToolResult):
        data, text, media = encode_shown(new)
        return replace(value, value=data, text=text, media=media)
    return new
