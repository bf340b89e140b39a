"""Verifiers of calls: the calls made, compared with gold calls."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agentkit.diagnosis.labels import breaks_learned_rule
from agentkit.episodes import Episode, Evidence, Verdict
from agentkit.evaluation.expectations import AllowedCalls, ExactCalls, GoldCall
from agentkit.evaluation.verifiers.verdicts import clipped, faulty, judged
from agentkit.messages import JsonObject, ToolCall, ToolResult
from agentkit.metrics import (
    AllowedValuesResult,
    GoldCalls,
    Mismatch,
    MismatchKind,
    canonical_calls,
)
from agentkit.metrics.allowed_values import match_rules
from agentkit.models.base import SEARCH_TOOL
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.schema_validator import fits


@dataclass(frozen=True, kw_only=True, slots=True)
class MadeCalls:
    """The calls of all turns of an episode, under ids that are unique.

    Models may use an id twice in one conversation. Here each call goes by its position, so that a
    finding about it can be put where it belongs. Searches for tools (``search_tools``) are left
    out: they are part of how tools are offered, and no gold answer knows of them.

    Attributes:
        calls: The calls in order, their ids replaced by their positions.
        turns: The turn of each.
        ids: The id that the model gave to each.
        results: What came of each; None where there is no result.
        broke_off: How the run ended, when that was not the model's doing; empty otherwise.
    """

    calls: tuple[ToolCall, ...]
    turns: tuple[int, ...]
    ids: tuple[str, ...]
    results: tuple[ToolResult | None, ...] = ()
    broke_off: str = ""

    @classmethod
    def of(cls, episode: Episode) -> MadeCalls:
        """The calls of an episode."""
        made = [
            (turn, call, result)
            for turn, step in enumerate(episode.turns)
            for call, result in step.steps()
            if not (step.searches and call.name == SEARCH_TOOL)
        ]
        return cls(
            calls=tuple(replace(call, call_id=str(at)) for at, (_, call, _) in enumerate(made)),
            turns=tuple(turn for turn, _, _ in made),
            ids=tuple(call.call_id for _, call, _ in made),
            results=tuple(result for _, _, result in made),
            broke_off=_broke_off(episode),
        )

    @property
    def is_answer(self) -> bool:
        """Whether calls that are not there were left out by the model.

        Without this, an agent whose model cannot be reached would be perfect at abstaining.
        """
        return bool(self.calls) or not self.broke_off

    @property
    def refused(self) -> frozenset[int]:
        """Positions of the calls that a learned rule kept from running: they answer nothing."""
        return frozenset(
            at
            for at, result in enumerate(self.results)
            if result is not None
            and result.failure is not None
            and breaks_learned_rule(result.failure)
        )

    def refusals(self, positions: Iterable[int]) -> Iterator[Evidence]:
        """A finding for each of these calls that a learned rule refused, for ``placed``.

        Otherwise a rule that locks a tool would cost nothing where only the calls are compared.
        """
        for at in sorted(self.refused.intersection(positions)):
            call, result = self.calls[at], self.results[at]
            rule = result.failure.rule if result is not None and result.failure else ""
            yield Evidence(
                kind="call_failed",
                message=f"{call.name} did not run, because it breaks a learned rule: {rule}",
                call_id=call.call_id,
                tool=call.name,
            )

    def unanswered(self) -> Iterator[Evidence]:
        """A finding when the run broke off before the model had called anything."""
        if not self.is_answer:
            yield Evidence(kind="missing_answer", message=self.broke_off)

    def only(self, positions: Sequence[int]) -> MadeCalls:
        """Some of the calls; their ids stay those of the whole."""
        return replace(self, calls=tuple(self.calls[at] for at in positions))

    def placed(self, evidence: Iterable[Evidence]) -> Iterator[Evidence]:
        """Findings about ``calls`` with the turn and the model's own id filled in."""
        for finding in evidence:
            if not finding.call_id:
                yield finding
            else:
                at = int(finding.call_id)
                yield replace(finding, turn=self.turns[at], call_id=self.ids[at])


def share(matched: int, gold: int, made: MadeCalls) -> float:
    """How many of the calls are right, of those that should be and of those that are."""
    most = max(gold, len(made.calls))
    return matched / most if most else float(made.is_answer)


def _broke_off(episode: Episode) -> str:
    if episode.stop_reason not in {"error", "cancelled"}:
        return ""
    why = f": {episode.error}" if episode.error else ""
    return f"the run ended by {episode.stop_reason} before there was an answer{why}"


def match_exact_calls(
    gold: Sequence[GoldCall], made: Sequence[ToolCall], definitions: Sequence[ToolDefinition]
) -> AllowedValuesResult:
    """Calls beside gold calls that they have to equal under the tools' schemas.

    Args:
        gold: The gold calls.
        made: The calls that were made.
        definitions: The tools, whose schemas say what is equal.
    """
    return match_rules([_ExactRule(call, definitions) for call in gold], made)


class _ExactRule:
    """A gold call that a call has to equal (``agentkit.metrics.canonical_calls``)."""

    def __init__(self, gold: GoldCall, definitions: Sequence[ToolDefinition]) -> None:
        self.name = gold.name
        self._definitions = [one for one in definitions if one.name == gold.name]
        call = ToolCall(call_id="", name=gold.name, arguments=gold.arguments)
        self._gold = canonical_calls([call], self._definitions)[0]

    def mismatches(self, call: ToolCall) -> Iterator[Mismatch]:
        """All that keeps a call from being the gold call, one by one."""
        made = canonical_calls([call], self._definitions)[0]
        if call.name != self.name:
            yield Mismatch(kind="wrong_tool", value=call.name, allowed=(self.name,))
        elif made.is_malformed != self._gold.is_malformed:
            yield Mismatch(kind="malformed_arguments", value=made.arguments)
        elif made != self._gold:
            yield from self._wrong_arguments(json.loads(made.arguments))

    def _wrong_arguments(self, actual: JsonObject) -> Iterator[Mismatch]:
        expected = json.loads(self._gold.arguments)
        for name in dict.fromkeys((*expected, *actual)):
            value = actual.get(name)
            if name not in actual:
                kind: MismatchKind = "missing_argument"
            elif name not in expected:
                yield Mismatch(kind="unexpected_argument", argument=name, value=value)
                continue
            elif _text(expected[name]) == _text(value):
                continue
            else:
                kind = "wrong_value" if self._fits(name, value) else "wrong_type"
            yield Mismatch(kind=kind, argument=name, value=value, allowed=(expected[name],))

    def _fits(self, name: str, value: Any) -> bool:
        """Whether a value is of the type that the tool declares."""
        return all(
            fits(value, one.signature.properties.get(name, True), root=one.signature.parameters)
            for one in self._definitions
        )


def _text(value: Any) -> str:
    """A value as text that is equal only for equal JSON; Python takes ``True`` for ``1``."""
    return json.dumps(value, sort_keys=True)


class ExactCallsVerifier:
    """Passes when the episode makes exactly the gold calls, in any order.

    Two calls are equal when their canonical forms are (``agentkit.metrics.calls``): the order of
    keys, ``"3"`` for an integer and a default that is left out make no difference. The calls of
    all turns are judged together; without gold calls, none may be made. A gold call that a learned
    rule refused does not count.

    What is left over is paired, the most similar calls first, and each difference becomes a
    finding. The score is the share of gold calls that were made, of the larger of the
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
        result = match_exact_calls(gold, made.calls, self._definitions)
        return _compared(self.name, result, made, [call.name for call in gold], is_exact=True)


def gold_calls_problem(gold: Iterable[GoldCall], definitions: Iterable[ToolDefinition]) -> str:
    """Why calls cannot be what is right: a tool that is not there; empty when they can.

    Args:
        gold: What is held for right.
        definitions: The tools; without any, all names will do.
    """
    known = {definition.name for definition in definitions}
    for at, call in enumerate(gold):
        if known and call.name not in known:
            return f"gold call {at} names {call.name!r}, which is not among the definitions"
    return ""


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
        prepared = GoldCalls(gold, self._definitions, language=self._expected.language)
        if prepared.problems:
            reasons = "; ".join(map(str, prepared.problems))
            return faulty(self.name, "gold_error", clipped(reasons))
        made = MadeCalls.of(episode)
        result = prepared.match(made.calls)
        verdict = _compared(self.name, result, made, [call.name for call in gold])
        names = Counter(call.name for call in made.calls)
        is_right = names == Counter(call.name for call in gold)
        return replace(verdict, metrics={"right_tools": float(is_right)})


def _compared(
    verifier: str,
    result: AllowedValuesResult,
    made: MadeCalls,
    gold: Sequence[str],
    *,
    is_exact: bool = False,
) -> Verdict:
    """The verdict of a comparison with gold calls, whose tools are named."""
    refused = made.refused.intersection(at for _, at in result.pairs)
    differences = match_evidence(result, made.calls, gold, is_exact=is_exact)
    found = (*made.placed((*differences, *made.refusals(refused))),)
    score = share(len(result.pairs) - len(refused), len(gold), made)
    return judged(verifier, found or made.unanswered(), score=score)


def match_evidence(
    result: AllowedValuesResult,
    calls: Sequence[ToolCall],
    gold: Sequence[str],
    *,
    is_exact: bool = False,
) -> Iterator[Evidence]:
    """The differences between calls and gold calls, one finding each.

    Args:
        result: The comparison.
        calls: The calls that were compared.
        gold: The tools of the gold calls that they were compared with.
        is_exact: Whether one value alone is right, rather than any of a list.
    """
    for missed in result.unmatched:
        name = gold[missed.expected]
        if missed.nearest is None:
            yield Evidence(kind="missing_call", message=f"{name} was not called", tool=name)
        else:
            call = calls[missed.nearest]
            for mismatch in missed.mismatches:
                yield _from_mismatch(name, call, mismatch, is_exact=is_exact)
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


def _from_mismatch(
    gold_tool: str, call: ToolCall, mismatch: Mismatch, *, is_exact: bool
) -> Evidence:
    right: Any = list(mismatch.allowed) or None
    return Evidence(
        kind=mismatch.kind,
        message=f"{gold_tool}: {mismatch}",
        call_id=call.call_id,
        tool=gold_tool,
        parameter=mismatch.argument,
        expected=right[0] if right and is_exact else right,
        actual=mismatch.value,
    )


class AnyCallVerifier:
    """Passes when the episode makes a call whose arguments can be read (BFCL's relevance).

    A call that a learned rule refused is none.
    """

    name = "any_call"

    async def verify(self, episode: Episode) -> Verdict:
        """Look for a call that is more than unreadable text, and was not refused by a rule."""
        made = MadeCalls.of(episode)
        readable = {at for at, call in enumerate(made.calls) if call.malformed is None}
        if readable - made.refused:
            return judged(self.name, ())
        found = [
            Evidence(
                kind="malformed_arguments",
                message=f"{call.name} was called with arguments that are not a JSON object",
                call_id=call.call_id,
                tool=call.name,
                actual=call.malformed,
            )
            for at, call in enumerate(made.calls)
            if at not in readable
        ]
        found += made.refusals(readable)
        nothing = Evidence(kind="missing_call", message="nothing was called; a call was expected")
        return judged(self.name, [*made.placed(found), *made.unanswered()] or [nothing])


class NoCallVerifier:
    """Passes when the episode answers without a call (BFCL's irrelevance).

    A call whose arguments cannot be read counts as a call, since the model tried. BFCL's checker
    takes output that it cannot decode for an abstention, and lets it pass.
    """

    name = "no_call"

    async def verify(self, episode: Episode) -> Verdict:
        """Look for calls."""
        made = MadeCalls.of(episode)
        found = [
            Evidence(
                kind="unexpected_call",
                message=f"{call.name} was called; no call was expected",
                call_id=call.call_id,
                tool=call.name,
            )
            for call in made.calls
        ]
        return judged(self.name, [*made.placed(found), *made.unanswered()])
