"""Whether calls answer a task, told of calls alone: no episode, no world, no event loop.

Runs are judged by ``agentkit.evaluation.verifiers``. What is here stands beside them for two
reasons: calls that never were in an episode (a notebook, a model's own evaluation) can be compared
in one line, and calls of retrieved tools can also be judged by the names that the benchmark itself
uses, which takes the whole catalogue and so is no business of a verifier.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from agentkit.episodes import Evidence, Verdict
from agentkit.evaluation.expectations import AllowedCalls, AnyCall
from agentkit.evaluation.task import Task
from agentkit.messages import ToolCall
from agentkit.metrics import AllowedCall, AllowedValuesResult, Mismatch
from agentkit.metrics.allowed_values import GoldCalls
from agentkit.tools.definition import ToolDefinition


def allowed_values_evidence(
    result: AllowedValuesResult, calls: Sequence[ToolCall], gold: Sequence[AllowedCall]
) -> Iterator[Evidence]:
    """What keeps calls from being the gold calls, finding by finding.

    Args:
        result: The comparison.
        calls: The calls that were compared.
        gold: The gold calls that they were compared with.
    """
    for missed in result.unmatched:
        name = gold[missed.expected].name
        if missed.nearest is None:
            yield Evidence(kind="missing_call", message=f"{name} was not called", tool=name)
        else:
            call = calls[missed.nearest]
            yield from (_from_mismatch(name, call, mismatch) for mismatch in missed.mismatches)
    explained = {missed.nearest for missed in result.unmatched}
    for at in result.spurious:
        if at not in explained:
            call = calls[at]
            yield Evidence(
                kind="unexpected_call",
                message=f"{call.name} was called and should not have been",
                call_id=call.call_id,
                tool=call.name,
            )


def _from_mismatch(gold_tool: str, call: ToolCall, mismatch: Mismatch) -> Evidence:
    return Evidence(
        kind=mismatch.kind,
        message=f"{gold_tool}: {mismatch}",
        call_id=call.call_id,
        tool=gold_tool,
        parameter=mismatch.argument,
        expected=list(mismatch.allowed) or None,
        actual=mismatch.value,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Score:
    """How good one answer is.

    Attributes:
        exact: Every gold call was made with allowed values, and nothing else was called.
        right_tools: The tools called are the gold ones, each as often, whatever the arguments.
        exact_by_name: As ``exact``, when a tool that has the gold tool's name upstream counts as
            it. Benchmarks hold near copies of one tool, which no model can tell apart.
        right_tools_by_name: As ``right_tools``, on the same terms.
        evidence: What is wrong; empty for an exact answer.
    """

    exact: bool
    right_tools: bool
    exact_by_name: bool
    right_tools_by_name: bool
    evidence: tuple[Evidence, ...] = ()

    def to_verdict(self) -> Verdict:
        """The score as the verdict of an episode."""
        return Verdict(
            passed=self.exact,
            score=float(self.exact),
            evidence=self.evidence,
            verifier="allowed_calls",
            metrics={
                "right_tools": self.right_tools,
                "exact_by_name": self.exact_by_name,
                "right_tools_by_name": self.right_tools_by_name,
            },
        )


def score_calls(
    calls: Sequence[ToolCall], task: Task, definitions: Iterable[ToolDefinition]
) -> Score:
    """Compare calls with what the task expects.

    Args:
        calls: What the model called.
        task: The question with its gold calls.
        definitions: The tools that were offered and the gold ones.

    Raises:
        UsageError: A gold tool is not among the definitions, or a gold call is unreadable.
    """
    if not task.gold:
        return _without_gold(calls, task)
    language = next((one.language for one in task.expects if isinstance(one, AllowedCalls)), None)
    expected = AllowedCalls(calls=task.gold, language=language or "python")
    return score_allowed_calls(calls, expected, definitions)


def score_allowed_calls(
    calls: Sequence[ToolCall], expected: AllowedCalls, definitions: Iterable[ToolDefinition]
) -> Score:
    """Compare calls with gold calls, of which there is at least one.

    Args:
        calls: What the model called.
        expected: The gold calls.
        definitions: The tools that were called and the gold ones.

    Raises:
        UsageError: A gold tool is not among the definitions, or a gold call is unreadable.
    """
    known = {definition.name: definition for definition in definitions}
    gold = GoldCalls(expected.calls, known.values(), language=expected.language)
    strict = gold.match(calls)
    renamed = _as_gold(calls, expected.calls, known)
    by_name = strict if renamed == list(calls) else gold.match(renamed)
    return Score(
        exact=strict.passed,
        right_tools=_same_tools(calls, expected.calls),
        exact_by_name=by_name.passed,
        right_tools_by_name=_same_tools(renamed, expected.calls),
        evidence=tuple(allowed_values_evidence(strict, calls, expected.calls)),
    )


def _without_gold(calls: Sequence[ToolCall], task: Task) -> Score:
    readable = any(call.malformed is None for call in calls)
    right = readable if AnyCall() in task.expects else not calls
    wrong = Evidence(kind="missing_call", message="no call that can be read, and one was expected")
    if calls and AnyCall() not in task.expects:
        wrong = Evidence(
            kind="unexpected_call",
            message=f"{calls[0].name} was called, and no call was expected",
            call_id=calls[0].call_id,
            tool=calls[0].name,
        )
    return Score(
        exact=right,
        right_tools=right,
        exact_by_name=right,
        right_tools_by_name=right,
        evidence=() if right else (wrong,),
    )


def upstream_name(definition: ToolDefinition) -> str:
    """The name that the benchmark itself uses for a tool of the catalogue."""
    return definition.origin.original_name or definition.name


def _as_gold(
    calls: Sequence[ToolCall], gold: Sequence[AllowedCall], known: Mapping[str, ToolDefinition]
) -> list[ToolCall]:
    """The calls, those to a namesake of a gold tool renamed to it."""
    renamed = {upstream_name(known[call.name]): call.name for call in gold}
    exact = {call.name for call in gold}
    return [
        call
        if call.name in exact or call.name not in known
        else replace(call, name=renamed.get(upstream_name(known[call.name]), call.name))
        for call in calls
    ]


def _same_tools(calls: Sequence[ToolCall], gold: Sequence[AllowedCall]) -> bool:
    return Counter(call.name for call in calls) == Counter(call.name for call in gold)
