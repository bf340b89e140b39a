"""Calls through which data flows as through the gold ones (NESTFUL)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agentkit.episodes import Episode, Evidence, Verdict, Verifier
from agentkit.evaluation.expectations import GoldCall
from agentkit.evaluation.verifiers.calls import (
    MadeCalls,
    gold_calls_problem,
    match_evidence,
    match_exact_calls,
)
from agentkit.evaluation.verifiers.verdicts import faulty, judged
from agentkit.tools.definition import ToolDefinition
from agentkit_bench.data_flow import DataFlowMatch, compare_data_flow

_REFERENCE = re.compile(r"\$var\d+[^$]*\$")


def refers(value: Any) -> bool:
    """Whether a value holds a reference to an earlier result, such as ``$var1.id$``, anywhere."""
    if isinstance(value, str):
        return _REFERENCE.search(value) is not None
    if isinstance(value, Mapping):
        return any(map(refers, value.values()))
    return isinstance(value, list | tuple) and any(map(refers, value))


@dataclass(frozen=True, kw_only=True, slots=True)
class DataFlow:
    """Calls through which data flows as through the gold ones, whatever its values (NESTFUL).

    Attributes:
        calls: The gold calls in order. Where calls are planned and not run, a reference to the
            result of an earlier one is the text ``$var2.rows[0].id$``: the second call's result,
            and where in it.
    """

    calls: tuple[GoldCall, ...]

    @property
    def gold_tools(self) -> tuple[str, ...]:
        """The tools of the gold calls."""
        return tuple(call.name for call in self.calls)

    def verifier(self, definitions: Sequence[ToolDefinition]) -> Verifier:
        """What judges an episode."""
        return DataFlowVerifier(self, definitions)

    def renamed(self, names: Mapping[str, str]) -> DataFlow:
        """The same with other names of tools."""
        calls = (replace(call, name=names.get(call.name, call.name)) for call in self.calls)
        return DataFlow(calls=tuple(calls))

    def to_json(self) -> tuple[str, Any]:
        """How it is written."""
        calls = [{"name": call.name, "arguments": dict(call.arguments)} for call in self.calls]
        return "flow", calls


class DataFlowVerifier:
    """Passes when the calls are the gold ones up to the names of results.

    Of calls that were run, those that failed are left out; of calls that were only planned, those
    that a learned rule refused. The score is the partial sequence match.

    Args:
        expected: The gold calls.
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
        score = match.partial if made.is_answer else 0.0
        return judged(self.name, evidence, score=score, metrics=metrics)

    def _compared(self, episode: Episode) -> tuple[MadeCalls, DataFlowMatch]:
        """The calls that count, and how they compare."""
        made = MadeCalls.of(episode)
        ran = [at for at, one in enumerate(made.results) if one is not None and one.status == "ok"]
        made = made.only(ran or sorted(set(range(len(made.calls))) - made.refused))
        return made, compare_data_flow(made.calls, self._expected.calls, self._definitions)

    def _differences(self, made: MadeCalls, match: DataFlowMatch) -> Iterator[Evidence]:
        for problem in match.problems:
            yield Evidence(kind="wrong_value", message=problem)
        matched_gold = {gold for gold, _ in match.pairs}
        matched_made = {call for _, call in match.pairs}
        gold = [one for at, one in enumerate(self._expected.calls) if at not in matched_gold]
        calls = [one for at, one in enumerate(made.calls) if at not in matched_made]
        left = match_exact_calls(gold, calls, self._definitions)
        found = list(match_evidence(left, calls, [one.name for one in gold], is_exact=True))
        yield from found
        if not match.is_full and not found and not match.problems:
            message = "the calls are the gold ones, but results flow between others of them"
            yield Evidence(kind="wrong_value", message=message)
