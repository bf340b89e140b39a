"""The environment is in the right state afterwards."""

from __future__ import annotations

import asyncio
import inspect
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

from agentkit.episodes import Episode, Evidence, Verdict
from agentkit.errors import ToolSignal
from agentkit.evaluation.expectations import FinalState, GoldCall
from agentkit.evaluation.task import Environment
from agentkit.evaluation.verifiers.calls import gold_calls_problem
from agentkit.evaluation.verifiers.verdicts import described, faulty, judged, shown
from agentkit.messages import JsonObject, ToolFailure, ToolResult
from agentkit.tools.invocation import encode_result, run_in_daemon_thread
from agentkit.tools.tool import Tool

DifferenceKind = Literal["missing", "unexpected", "different"]


@dataclass(frozen=True, kw_only=True, slots=True)
class StateDifference:
    """One place in which a state is not the expected one.

    Attributes:
        path: Where, such as ``orders[2].status``; empty for the state as a whole.
        kind: Whether something is not there, should not be there, or is something else.
        expected: What should have been there; None when nothing should.
        actual: What is there; None when nothing is.
    """

    path: str
    kind: DifferenceKind
    expected: Any = None
    actual: Any = None


def state_differences(
    actual: Any, expected: Any, path: str = "", *, is_partial: bool = False
) -> Iterator[StateDifference]:
    """The places in which ``actual`` is not ``expected``, both JSON data.

    Numbers are equal by value (``1`` and ``1.0``), a boolean is no number, NaN is equal to itself.
    The order of keys does not count, that of lists does.

    Args:
        actual: The state that was reached.
        expected: The state that should have been.
        path: Where in the whole state these two stand.
        is_partial: Whether keys that ``expected`` does not name are free, at each level.

    Example:
        >>> reached = {"orders": [{"id": 1, "status": "open"}], "clock": 9}
        >>> wanted = {"orders": [{"status": "cancelled"}]}
        >>> [one.path for one in state_differences(reached, wanted, is_partial=True)]
        ['orders[0].status']
    """
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        yield from _of_objects(actual, expected, path, is_partial=is_partial)
    elif _is_list(actual) and _is_list(expected):
        yield from _of_lists(actual, expected, path, is_partial=is_partial)
    elif not _same(actual, expected):
        yield StateDifference(path=path, kind="different", expected=expected, actual=actual)


def _of_objects(
    actual: Mapping[str, Any], expected: Mapping[str, Any], path: str, *, is_partial: bool
) -> Iterator[StateDifference]:
    for key, wanted in expected.items():
        where = f"{path}.{key}" if path else str(key)
        if key in actual:
            yield from state_differences(actual[key], wanted, where, is_partial=is_partial)
        else:
            yield StateDifference(path=where, kind="missing", expected=wanted)
    for key, found in () if is_partial else actual.items():
        if key not in expected:
            where = f"{path}.{key}" if path else str(key)
            yield StateDifference(path=where, kind="unexpected", actual=found)


def _of_lists(
    actual: Sequence[Any], expected: Sequence[Any], path: str, *, is_partial: bool
) -> Iterator[StateDifference]:
    for at, wanted in enumerate(expected):
        where = f"{path}[{at}]"
        if at < len(actual):
            yield from state_differences(actual[at], wanted, where, is_partial=is_partial)
        else:
            yield StateDifference(path=where, kind="missing", expected=wanted)
    for at in range(len(expected), len(actual)):
        yield StateDifference(path=f"{path}[{at}]", kind="unexpected", actual=actual[at])


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _same(actual: Any, expected: Any) -> bool:
    if isinstance(actual, bool) or isinstance(expected, bool):
        return actual is expected
    if isinstance(actual, float) and isinstance(expected, float) and math.isnan(expected):
        return math.isnan(actual)
    return bool(actual == expected)


_SECONDS = 30.0


@dataclass(frozen=True, kw_only=True, slots=True)
class GoldRun:
    """What came of gold calls.

    Attributes:
        results: One result a call, up to the one that could not be run.
        problem: Why a call could not be run; empty when all ran.
    """

    results: tuple[ToolResult, ...] = ()
    problem: str = ""


async def run_gold(calls: Sequence[GoldCall], world: Environment) -> GoldRun:
    """Run gold calls on a world, one after the other.

    A call that returns an error as its value ran: BFCL's gold calls do. So did one whose tool
    raises ``ToolFailed`` or ``ModelRetry``, since the agent that makes it is told the same and the
    world is as it should be; its result is ``failed``. Any other exception, an absent tool and
    arguments that do not fit mean that the gold is broken.

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
        except (Exception, SystemExit) as error:  # noqa: BLE001 - reported as the gold's problem
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
    keywords = tool.convert(call.arguments)
    if tool.is_async:
        return await function(**keywords)
    value = await run_in_daemon_thread(lambda: function(**keywords))
    return await value if inspect.isawaitable(value) else value


_MOST_DIFFERENCES = 20


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
            return self._against_data(self._expected.state, self._environment)
        if problem := gold_calls_problem(self._expected.calls, ()):
            return faulty(self.name, "gold_error", problem)
        if self._reference is None:
            return faulty(self.name, "checker_error", "there is no reference to run gold calls on")
        return await self._against_reference(self._environment, self._reference, episode)

    def _against_data(self, state: JsonObject, environment: Environment) -> Verdict:
        found = state_differences(environment.state(), state, is_partial=True)
        return judged(self.name, state_evidence(found))

    async def _against_reference(
        self, environment: Environment, reference: Environment, episode: Episode
    ) -> Verdict:
        if self._gold_run is None:
            self._gold_run = await run_gold(self._expected.calls, reference)
        gold = self._gold_run
        if gold.problem:
            return faulty(self.name, "gold_error", gold.problem)
        evidence = list(state_evidence(state_differences(environment.state(), reference.state())))
        if self._expected.responses:
            made = [result for one in (*self._earlier, episode) for result in one.results]
            evidence += response_evidence(made, gold.results)
        refused = [result.name for result in gold.results if result.status != "ok"]
        return judged(self.name, evidence, details={"gold_refused": refused} if refused else None)


def state_evidence(differences: Iterable[StateDifference]) -> Iterator[Evidence]:
    """Differences between states as evidence; beyond twenty of them, only how many there are.

    Args:
        differences: What ``state_differences`` found.
    """
    rest = iter(differences)
    for one in islice(rest, _MOST_DIFFERENCES):
        where = one.path or "the state"
        if one.kind == "missing":
            message = f"{where} is not there, expected {shown(one.expected)}"
        elif one.kind == "unexpected":
            message = f"{where} is {shown(one.actual)}, expected nothing there"
        else:
            message = f"{where} is {shown(one.actual)}, expected {shown(one.expected)}"
        yield Evidence(
            kind="state_differs",
            message=message,
            parameter=one.path,
            expected=one.expected,
            actual=one.actual,
        )
    if more := sum(1 for _ in rest):
        yield Evidence(kind="state_differs", message=f"{more} more differences")


def response_evidence(made: Sequence[ToolResult], gold: Sequence[ToolResult]) -> Iterator[Evidence]:
    """What gold calls returned that none of the agent's calls did.

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
