"""Calls against lists of allowed values (BFCL)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from agentkit.episodes import Episode, Verdict
from agentkit.evaluation.evidence import allowed_values_evidence
from agentkit.evaluation.expectations import AllowedCalls
from agentkit.evaluation.verifiers.made_calls import MadeCalls, share
from agentkit.evaluation.verifiers.verdicts import clipped, faulty, judged, shown
from agentkit.metrics import AllowedCall
from agentkit.metrics.allowed_values import GoldCalls
from agentkit.tools.definition import ToolDefinition


class AllowedCallsVerifier:
    """Passes when the episode makes the gold calls with allowed values, and no other call.

    The rules are those of ``agentkit.metrics.allowed_values``. Gold calls that no call could match
    are a ``gold_error``. The calls of all turns are judged together, in whatever order they were
    made; without gold calls, none may be made. A gold call that a learned rule
    refused does not count. The score is the share of gold calls that were made,
    of the larger of the two numbers of calls.

    Args:
        expected: The gold calls.
        definitions: The tools, under the names that the calls use.
    """

    name = "allowed_calls"

    def __init__(self, expected: AllowedCalls, definitions: Iterable[ToolDefinition]) -> None:
        self._expected = expected
        self._definitions = tuple(definitions)

    async def verify(self, episode: Episode) -> Verdict:
        """Compare the calls of all turns with the gold calls."""
        gold = self._expected.calls
        if problem := _records_problem(gold):
            return faulty(self.name, "gold_error", problem)
        prepared = GoldCalls(gold, self._definitions, language=self._expected.language)
        if prepared.problems:
            reasons = "; ".join(map(str, prepared.problems))
            return faulty(self.name, "gold_error", clipped(reasons))
        made = MadeCalls.of(episode)
        result = prepared.match(made.calls)
        refused = made.refused.intersection(at for _, at in result.pairs)
        differences = allowed_values_evidence(result, made.calls, gold)
        found = (*made.placed((*differences, *made.refusals(refused))),)
        names = Counter(call.name for call in made.calls)
        return judged(
            self.name,
            found or made.unanswered(),
            score=share(len(result.pairs) - len(refused), len(gold), made),
            metrics={"right_tools": float(names == Counter(call.name for call in gold))},
        )


def _records_problem(gold: object) -> str:
    """Why the gold calls are no gold calls at all; empty when they are."""
    if not isinstance(gold, list | tuple):
        return f"the gold calls are {shown(gold)}, expected a sequence of AllowedCall"
    for at, call in enumerate(gold):
        if not isinstance(call, AllowedCall) or not isinstance(call.name, str):
            return f"gold call {at} is {shown(call)}, expected an AllowedCall with a name"
    return ""
