"""Calls through which data flows as through the gold ones (NESTFUL)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from agentkit.episodes import Episode, Evidence, Verdict
from agentkit.evaluation.expectations import DataFlow
from agentkit.evaluation.verifiers.calls import CallComparison, MadeCalls, gold_calls_problem
from agentkit.evaluation.verifiers.numbers import final_number
from agentkit.evaluation.verifiers.state import state_differences
from agentkit.evaluation.verifiers.verdicts import answer_turn, clipped, faulty, judged, shown
from agentkit.metrics.data_flow import (
    DataFlowMatch,
    ExecutedCall,
    compare_data_flow,
    compare_executed_flow,
)
from agentkit.tools.definition import ToolDefinition

_ROUNDING = 1e-6


class DataFlowVerifier:
    """Passes when the calls are the gold ones up to the names of results.

    Calls that were run are compared by the values that flowed (``compare_executed_flow``), those
    that failed left out; calls that were only planned by their references to each other
    (``compare_data_flow``). The score is the partial sequence match.

    An expected answer counts beside the calls: the final answer has to be it, or hold it as its
    number, or the last successful call has to have returned it. Numbers may differ by 1e-6 of
    their size.

    Args:
        expected: The gold calls, and the answer where there is one.
        definitions: The tools, under the names that the calls use.
    """

    name = "data_flow"

    def __init__(self, expected: DataFlow, definitions: Iterable[ToolDefinition]) -> None:
        self._expected = expected
        self._definitions = tuple(definitions)

    async def verify(self, episode: Episode) -> Verdict:
        """Compare the calls of all turns, and the answer if one is expected."""
        if problem := gold_calls_problem(self._expected.calls, self._definitions):
            return faulty(self.name, "gold_error", problem)
        made, match = self._compared(episode)
        if match.gold_problems:
            return faulty(self.name, "gold_error", "; ".join(match.gold_problems))
        evidence = list(made.placed(self._differences(made, match)))
        evidence += made.unanswered()
        metrics = {
            "full_match": float(match.is_full),
            "partial_match": match.partial,
            "function_f1": match.function_f1,
            "parameter_f1": match.parameter_f1,
        }
        if self._expected.answer is not None:
            wrong = list(_answer_evidence(episode, self._expected.answer))
            metrics["answer"] = float(not wrong)
            evidence += wrong
        score = match.partial if made.is_answer else 0.0
        return judged(self.name, evidence, score=score, metrics=metrics)

    def _compared(self, episode: Episode) -> tuple[MadeCalls, DataFlowMatch]:
        """The calls that count, and how they compare."""
        made, gold = MadeCalls.of(episode), self._expected.calls
        run = {
            at: result
            for at, result in enumerate(made.results)
            if result is not None and result.status == "ok"
        }
        if not run:
            made = made.only(tuple(sorted(set(range(len(made.calls))) - made.refused)))
            return made, compare_data_flow(made.calls, gold, self._definitions)
        worked = made.only(tuple(run))
        executed = [
            ExecutedCall(name=call.name, arguments=call.arguments, result=result.value)
            for call, result in zip(worked.calls, run.values(), strict=True)
        ]
        return worked, compare_executed_flow(executed, gold, self._definitions)

    def _differences(self, made: MadeCalls, match: DataFlowMatch) -> Iterator[Evidence]:
        for problem in match.problems:
            yield Evidence(kind="wrong_value", message=problem)
        matched_gold = {gold for gold, _ in match.pairs}
        matched_made = {call for _, call in match.pairs}
        gold = [one for at, one in enumerate(self._expected.calls) if at not in matched_gold]
        calls = [one for at, one in enumerate(made.calls) if at not in matched_made]
        found = list(CallComparison(gold, calls, self._definitions).evidence())
        yield from found
        if not match.is_full and not found and not match.problems:
            message = "the calls are the gold ones, but results flow between others of them"
            yield Evidence(kind="wrong_value", message=message)


def _answer_evidence(episode: Episode, expected: Any) -> Iterator[Evidence]:
    returned = [result.value for result in episode.results if result.status == "ok"]
    given = [one for one in (episode.output, *returned[-1:]) if one is not None]
    if any(_is_answer(one, expected) for one in given):
        return
    turn = answer_turn(episode)
    if not given:
        yield Evidence(kind="missing_answer", message="there is no answer to judge", turn=turn)
        return
    yield Evidence(
        kind="wrong_answer",
        message=f"the answer is {shown(given[0])}, expected {shown(expected)}",
        turn=turn,
        expected=expected,
        actual=clipped(given[0]) if isinstance(given[0], str) else given[0],
    )


def _is_answer(given: Any, expected: Any) -> bool:
    if isinstance(expected, int | float) and not isinstance(expected, bool):
        return _is_number(given, expected)
    if isinstance(given, str) and not isinstance(expected, str):
        given = _read(given)
    if isinstance(given, str) and isinstance(expected, str):
        return given.strip().casefold() == expected.strip().casefold()
    return next(state_differences(given, expected), None) is None


def _is_number(given: Any, expected: float) -> bool:
    if isinstance(given, str):
        number = final_number(given)
        given = None if number is None else number.value
    if given is None or isinstance(given, bool | Sequence):
        return False
    try:
        return bool(abs(given - expected) <= _ROUNDING * (abs(expected) or 1))
    except (TypeError, OverflowError):
        return False


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
