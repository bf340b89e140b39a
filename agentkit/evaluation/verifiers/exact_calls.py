"""Calls against gold calls, equal under the tools' schemas."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from agentkit.episodes import Episode, Verdict
from agentkit.evaluation.expectations import ExactCalls, GoldCall
from agentkit.evaluation.verifiers.call_comparison import CallComparison
from agentkit.evaluation.verifiers.made_calls import MadeCalls, share
from agentkit.evaluation.verifiers.verdicts import faulty, judged, shown
from agentkit.tools.definition import ToolDefinition


class ExactCallsVerifier:
    """Passes when the episode makes exactly the gold calls, in any order.

    Two calls are equal when their canonical forms are (``agentkit.metrics.calls``): the order of
    keys, ``"3"`` for an integer and a default that is left out make no difference. The calls of
    all turns are judged together; without gold calls, none may be made. A gold call that a learned
    rule refused does not count.

    What is left over is paired so that the fewest arguments differ in all, and each difference
    becomes a finding. The score is the share of gold calls that were made, of the larger of the
    two numbers of calls.

    Args:
        expected: The gold calls.
        definitions: The tools, under the names that the calls use. Without any, arguments are
            compared as they are.
    """

    name = "exact_calls"

    def __init__(self, expected: ExactCalls, definitions: Iterable[ToolDefinition]) -> None:
        self._expected = expected
        self._definitions = tuple(definitions)

    async def verify(self, episode: Episode) -> Verdict:
        """Compare the calls of all turns with the gold calls."""
        gold = self._expected.calls
        problem = gold_calls_problem(gold, self._definitions)
        if problem:
            return faulty(self.name, "gold_error", problem)
        made = MadeCalls.of(episode)
        comparison = CallComparison(gold, made.calls, self._definitions)
        refused = made.refused & comparison.matched_calls
        found = (*made.placed((*comparison.evidence(), *made.refusals(refused))),)
        return judged(
            self.name,
            found or made.unanswered(),
            score=share(comparison.matched - len(refused), len(gold), made),
        )


def gold_calls_problem(gold: object, definitions: Sequence[ToolDefinition]) -> str:
    """Why calls can not be what is right, such as a tool that is not there; empty when they can.

    Args:
        gold: What is held for right.
        definitions: The tools; without any, all names will do.
    """
    if not isinstance(gold, list | tuple):
        return f"the gold calls are {shown(gold)}, expected a sequence of GoldCall"
    known = {definition.name for definition in definitions}
    for at, call in enumerate(gold):
        if not isinstance(call, GoldCall) or not isinstance(call.name, str):
            return f"gold call {at} is {shown(call)}, expected a GoldCall with a name"
        if known and call.name not in known:
            return f"gold call {at} names {call.name!r}, which is not among the definitions"
        if problem := _arguments_problem(call.arguments):
            return f"gold call {at} ({call.name}) {problem}"
    return ""


def _arguments_problem(arguments: object) -> str:
    if not isinstance(arguments, Mapping):
        return f"has the arguments {shown(arguments)}, expected a JSON object"
    try:
        json.dumps(dict(arguments), sort_keys=True)
    except (TypeError, ValueError, RecursionError) as error:
        return f"has arguments that are not JSON: {error}"
    return ""
