"""The environment is in the right state afterwards."""

from __future__ import annotations

import asyncio
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

from agentkit.episodes import Episode, Evidence, Verdict
from agentkit.errors import ToolSignal
from agentkit.evaluation.expectations import FinalState, GoldCall
from agentkit.evaluation.task import Environment
from agentkit.evaluation.verifiers.verdicts import described, faulty, judged, shown
from agentkit.messages import ToolFailure, ToolResult
from agentkit.tools.invocation import (
    TOOL_ERRORS,
    called,
    encode_result,
    is_tool_error,
)
from agentkit.tools.tool import Tool

_MOST_DIFFERENCES = 20
_SECONDS = 30.0


def state_differences(
    actual: Any, expected: Any, path: str = "", *, is_partial: bool = False
) -> Iterator[Evidence]:
    """The places where ``actual`` differs from ``expected``, both JSON data.

    Numbers are equal by value (``1`` and ``1.0``), a boolean is no number, NaN is equal to itself.
    The order of keys does not count, that of lists does.

    Args:
        actual: The state that was reached.
        expected: The state that should have been.
        path: Where in the whole state these two stand.
        is_partial: Whether keys that ``expected`` does not name are free, at each level.

    Returns:
        A finding for each place, whose ``parameter`` is the path, such as ``orders[2].status``.

    Example:
        >>> reached = {"orders": [{"id": 1, "status": "open"}], "clock": 9}
        >>> wanted = {"orders": [{"status": "cancelled"}]}
        >>> print(*state_differences(reached, wanted, is_partial=True))
        orders[0].status is 'open', expected 'cancelled'
    """
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        dot = f"{path}." if path else ""
        own = {f"{dot}{key}": value for key, value in actual.items()}
        parts = {f"{dot}{key}": value for key, value in expected.items()}
        free = own.keys() - parts.keys() if is_partial else frozenset()
    elif _is_list(actual) and _is_list(expected):
        own = {f"{path}[{at}]": value for at, value in enumerate(actual)}
        parts = {f"{path}[{at}]": value for at, value in enumerate(expected)}
        free = frozenset()
    else:
        if not _same(actual, expected):
            where = path or "the state"
            message = f"{where} is {shown(actual)}, expected {shown(expected)}"
            yield _differs(path, message, expected=expected, actual=actual)
        return
    for where, value in parts.items():
        if where in own:
            yield from state_differences(own[where], value, where, is_partial=is_partial)
        else:
            yield _differs(where, f"{where} is not there, expected {shown(value)}", expected=value)
    for where, value in own.items():
        if where not in parts and where not in free:
            message = f"{where} is {shown(value)}, expected nothing there"
            yield _differs(where, message, actual=value)


def _differs(path: str, message: str, *, expected: Any = None, actual: Any = None) -> Evidence:
    return Evidence(
        kind="state_differs", message=message, parameter=path, expected=expected, actual=actual
    )


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _same(actual: Any, expected: Any) -> bool:
    if isinstance(actual, bool) or isinstance(expected, bool):
        return actual is expected
    if isinstance(actual, float) and isinstance(expected, float) and math.isnan(expected):
        return math.isnan(actual)
    return bool(actual == expected)


@dataclass(frozen=True, kw_only=True, slots=True)
class GoldRun:
    """The results of gold calls.

    Attributes:
        results: One result a call, up to the one that could not be run.
        problem: Why a call could not be run; empty when all ran.
    """

    results: tuple[ToolResult, ...] = ()
    problem: str = ""


async def run_gold(calls: Sequence[GoldCall], world: Environment) -> GoldRun:
    """Run gold calls on a world, one after the other.

    A call that returns an error as its value ran: BFCL's gold calls do. So did one whose tool
    raises ``ToolFailed`` or ``ModelRetry``, since an agent that makes the call gets the same
    message and the world is as it should be; its result is ``failed``. Any other exception, an
    absent tool and arguments that do not fit mean that the gold is broken.

    Args:
        calls: The calls; references to earlier results are not followed.
        world: Where they run. It is changed.
    """
    tools = {tool.name: tool for tool in world.tools()}
    results: list[ToolResult] = []
    for at, call in enumerate(calls):
        tool = tools.get(call.name)
        if tool is None or tool.function is None:
            problem = f"gold call {at} names {call.name!r}, which the world has no tool for"
            return GoldRun(results=tuple(results), problem=problem)
        try:
            async with asyncio.timeout(_SECONDS):
                results.append(await _result(call, tool, str(at)))
        except TOOL_ERRORS as error:
            if not is_tool_error(error):
                raise
            problem = f"gold call {at} ({call.name}) failed with {described(error)}"
            return GoldRun(results=tuple(results), problem=problem)
    return GoldRun(results=tuple(results))


async def _result(call: GoldCall, tool: Tool, call_id: str) -> ToolResult:
    try:
        value, text = encode_result(await _called(tool, call))
    except ToolSignal as signal:
        failure = ToolFailure(kind="tool_failed", rule=signal.message, retryable=False)
        return ToolResult(call_id=call_id, name=call.name, status="failed", failure=failure)
    return ToolResult(call_id=call_id, name=call.name, status="ok", value=value, text=text)


async def _called(tool: Tool, call: GoldCall) -> Any:
    function = tool.function
    if function is None:
        raise TypeError(f"{tool.name} has no function in this process")
    return await called(partial(function, **tool.convert(call.arguments)), is_async=tool.is_async)


class FinalStateVerifier:
    """Passes when the agent's world ends up as it should.

    The right state is given as data, of which parts may be left open; or gold calls lead to it
    from the same start in a world of their own, and then the two states must be equal. A gold
    call may return an error, as those of BFCL do (``run_gold``).

    It looks at the world as it is when it is asked, so ask right after the run. Gold calls run
    once, at the first judgement, for they change the world that they run in.

    Args:
        expected: The state, or the calls that lead to it.
        environment: The agent's world.
        reference: The world in which gold calls run; those of earlier user turns ran there too.
        earlier: Episodes of the same attempt before this one, whose results count as well.
    """

    name = "final_state"

    def __init__(
        self,
        expected: FinalState,
        environment: Environment | None,
        reference: Environment | None = None,
        *,
        earlier: Iterable[Episode] = (),
    ) -> None:
        self._expected = expected
        self._environment = environment
        self._reference = reference
        self._earlier = tuple(earlier)
        self._gold_run: GoldRun | None = None

    async def verify(self, episode: Episode) -> Verdict:
        """Compare the world with what it should be."""
        if self._environment is None:
            return faulty(self.name, "checker_error", "there is no environment to look at")
        if self._expected.state is not None:
            state = self._environment.state()
            found = state_differences(state, self._expected.state, is_partial=True)
            return judged(self.name, _first(found))
        if self._reference is None:
            return faulty(self.name, "checker_error", "there is no reference to run gold calls on")
        return await self._against_reference(self._environment, self._reference, episode)

    async def _against_reference(
        self, environment: Environment, reference: Environment, episode: Episode
    ) -> Verdict:
        if self._gold_run is None:
            self._gold_run = await run_gold(self._expected.calls, reference)
        gold = self._gold_run
        if gold.problem:
            return faulty(self.name, "gold_error", gold.problem)
        evidence = list(_first(state_differences(environment.state(), reference.state())))
        if self._expected.responses:
            made = [result for one in (*self._earlier, episode) for result in one.results]
            evidence += response_evidence(made, gold.results)
        refused = [result.name for result in gold.results if result.status != "ok"]
        return judged(self.name, evidence, details={"gold_refused": refused} if refused else None)


def _first(differences: Iterable[Evidence]) -> Iterator[Evidence]:
    """The first twenty, and how many more there are."""
    rest = iter(differences)
    yield from islice(rest, _MOST_DIFFERENCES)
    if more := sum(1 for _ in rest):
        yield Evidence(kind="state_differs", message=f"{more} more differences")


def response_evidence(made: Sequence[ToolResult], gold: Sequence[ToolResult]) -> Iterator[Evidence]:
    """Results of gold calls that none of the agent's calls returned.

    Each result of the agent answers for one gold result. Only successful results count, on both
    sides; they are compared as JSON data, whichever tool gave them.

    Args:
        made: All results of the attempt so far.
        gold: The results of the gold calls.
    """
    free = Counter(_canonical(result.value) for result in made if result.status == "ok")
    for result in gold:
        if result.status != "ok":
            continue
        text = _canonical(result.value)
        if free[text]:
            free[text] -= 1
        else:
            yield Evidence(
                kind="response_differs",
                message=f"no call returned {shown(result.value)}, as {result.name} would have",
                tool=result.name,
                expected=result.value,
            )


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
