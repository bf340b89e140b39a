"""Calls against lists of allowed values (BFCL)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agentkit.episodes import Episode, Verdict
from agentkit.evaluation.evidence import allowed_values_evidence
from agentkit.evaluation.expectations import AllowedCalls
from agentkit.evaluation.verifiers.made_calls import MadeCalls, share
from agentkit.evaluation.verifiers.verdicts import faulty, judged, shown
from agentkit.metrics import AllowedCall, match_allowed_values
from agentkit.tools.definition import ToolDefinition


class AllowedCallsVerifier:
    """Passes when the episode makes the gold calls with allowed values, and no other call.

    The rules are those of ``agentkit.metrics.match_allowed_values``. The calls of all turns are
    judged together, in whatever order they were made; without gold calls, none may be made. The
    score is the share of gold calls that were made, of the larger of the two numbers of calls.

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
        problem = _gold_problem(gold, {definition.name for definition in self._definitions})
        if problem:
            return faulty(self.name, "gold_error", problem)
        made = MadeCalls.of(episode)
        result = match_allowed_values(made.calls, gold, self._definitions)
        found = (*made.placed(allowed_values_evidence(result, made.calls, gold)),)
        names = Counter(call.name for call in made.calls)
        return judged(
            self.name,
            found or made.unanswered(),
            score=share(len(result.pairs), len(gold), made),
            metrics={"right_tools": float(names == Counter(call.name for call in gold))},
        )


def _gold_problem(gold: object, known: set[str]) -> str:
    """Why the gold calls can not be what is right; empty when they can."""
    if not isinstance(gold, list | tuple):
        return f"the gold calls are {shown(gold)}, expected a sequence of AllowedCall"
    for at, call in enumerate(gold):
        if not isinstance(call, AllowedCall) or not isinstance(call.name, str):
            return f"gold call {at} is {shown(call)}, expected an AllowedCall with a name"
        if call.name not in known:
            return f"gold call {at} names {call.name!r}, which is not among the definitions"
        if problem := _values_problem(call.allowed):
            return f"gold call {at} ({call.name}): {problem}"
    return ""


def _values_problem(allowed: Any) -> str:
    if not isinstance(allowed, Mapping):
        return f"the allowed values are {shown(allowed)}, expected a list for each argument"
    for argument, values in allowed.items():
        if not isinstance(argument, str):
            return f"the argument {shown(argument)} is not named by a text"
        if isinstance(values, str) or not isinstance(values, Sequence):
            return f"argument {argument!r} allows {shown(values)}, expected a list of values"
        if not values:
            return f"argument {argument!r} allows no value at all"
    return ""
