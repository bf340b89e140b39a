"""The environment is in the right state afterwards."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from agentkit.episodes import Episode, Evidence, Verdict
from agentkit.evaluation.expectations import FinalState
from agentkit.evaluation.task import Environment
from agentkit.evaluation.verifiers.exact_calls import gold_calls_problem
from agentkit.evaluation.verifiers.gold_run import GoldRun, run_gold
from agentkit.evaluation.verifiers.state import StateDifference, state_differences
from agentkit.evaluation.verifiers.verdicts import faulty, judged, shown
from agentkit.messages import JsonObject, ToolResult

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
        if problem := _data_problem(state):
            return faulty(self.name, "gold_error", problem)
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


def _data_problem(state: object) -> str:
    if not isinstance(state, Mapping):
        return f"the expected state is {shown(state)}, expected a JSON object"
    try:
        json.dumps(dict(state))
    except (TypeError, ValueError, RecursionError) as error:
        return f"the expected state is not JSON data: {error}"
    return ""
