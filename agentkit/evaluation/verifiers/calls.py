"""Verifiers of calls: the calls made, compared with gold calls."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agentkit.agent.selection import SEARCH_TOOL
from agentkit.diagnosis.labels import breaks_learned_rule
from agentkit.episodes import Episode, Evidence, EvidenceKind, Turn, Verdict
from agentkit.evaluation.expectations import AllowedCalls, ExactCalls, GoldCall
from agentkit.evaluation.verifiers.verdicts import clipped, faulty, judged, shown
from agentkit.messages import JsonObject, ToolCall, ToolResult
from agentkit.metrics import (
    AllowedCall,
    AllowedValuesResult,
    CanonicalCall,
    GoldCalls,
    Mismatch,
    canonical_calls,
)
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
            for call, result in _answered(step)
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

        Without this, an agent whose model can not be reached would be perfect at abstaining.
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


def _answered(turn: Turn) -> Iterator[tuple[ToolCall, ToolResult | None]]:
    """Each call of a turn with its result; both stand in one order, unless results are missing."""
    calls, results = turn.message.tool_calls, turn.results
    if len(calls) == len(results):
        yield from zip(calls, results, strict=True)
    else:
        by_id = {result.call_id: result for result in results}
        yield from ((call, by_id.get(call.call_id)) for call in calls)


def _broke_off(episode: Episode) -> str:
    if episode.stop_reason not in {"error", "cancelled"}:
        return ""
    why = f": {episode.error}" if episode.error else ""
    return f"the run ended by {episode.stop_reason} before there was an answer{why}"


class CallComparison:
    """Gold calls beside made calls: what is equal is taken away first, the rest is paired.

    Args:
        gold: The gold calls.
        made: The calls that were made.
        definitions: The tools, whose schemas say what is equal.

    Attributes:
        matched: How many gold calls have an equal among the made ones.
        matched_calls: Indexes of the made calls that are equal to a gold one.
    """

    def __init__(
        self,
        gold: Sequence[GoldCall],
        made: Sequence[ToolCall],
        definitions: Sequence[ToolDefinition],
    ) -> None:
        self._schemas = {one.name: one.signature.parameters for one in definitions}
        wanted = [ToolCall(call_id="", name=call.name, arguments=call.arguments) for call in gold]
        self._gold = [canonical_calls([call], definitions)[0] for call in wanted]
        self._made = [canonical_calls([call], definitions)[0] for call in made]
        self._calls = made
        self._gold_left, self._made_left = _left_over(self._gold, self._made)
        self.matched = len(gold) - len(self._gold_left)
        self.matched_calls = frozenset(range(len(made))).difference(self._made_left)

    def evidence(self) -> Iterator[Evidence]:
        """What is wrong, gold call by gold call, and then what was called beside."""
        pairs = dict(self._pairs())
        for at in self._gold_left:
            if at in pairs:
                yield from self._differences(self._gold[at], pairs[at])
            else:
                name = self._gold[at].name
                yield Evidence(kind="missing_call", message=f"{name} was not called", tool=name)
        for at in self._made_left:
            if at not in pairs.values():
                call = self._calls[at]
                yield Evidence(
                    kind="unexpected_call",
                    message=f"{call.name} was called and should not have been",
                    call_id=call.call_id,
                    tool=call.name,
                )

    def _pairs(self) -> Iterator[tuple[int, int]]:
        """Gold and made calls that are left, in pairs; the most similar calls first."""
        candidates = sorted(
            (_distance(self._gold[wanted], self._made[given]), wanted, given)
            for wanted in self._gold_left
            for given in self._made_left
        )
        paired: set[tuple[str, int]] = set()
        for _, wanted, given in candidates:
            ends = {("gold", wanted), ("made", given)}
            if not ends & paired:
                paired |= ends
                yield wanted, given

    def _differences(self, gold: CanonicalCall, at: int) -> Iterator[Evidence]:
        call, made = self._calls[at], self._made[at]
        if made.name != gold.name:
            yield Evidence(
                kind="wrong_tool",
                message=f"{made.name} was called where {gold.name} should have been",
                call_id=call.call_id,
                tool=gold.name,
                expected=gold.name,
                actual=made.name,
            )
        elif made.is_malformed:
            yield Evidence(
                kind="malformed_arguments",
                message=f"{gold.name}: the arguments are not a JSON object: {made.arguments!r}",
                call_id=call.call_id,
                tool=gold.name,
                actual=made.arguments,
            )
        else:
            yield from self._arguments(gold, made, call)

    def _arguments(
        self, gold: CanonicalCall, made: CanonicalCall, call: ToolCall
    ) -> Iterator[Evidence]:
        wanted, given = json.loads(gold.arguments), json.loads(made.arguments)
        for name in dict.fromkeys((*wanted, *given)):
            kind = self._fault(gold.name, name, wanted, given)
            if kind is not None:
                yield Evidence(
                    kind=kind,
                    message=_sentence(gold.name, name, kind, wanted, given),
                    call_id=call.call_id,
                    tool=gold.name,
                    parameter=name,
                    expected=wanted.get(name),
                    actual=given.get(name),
                )

    def _fault(
        self, tool: str, name: str, wanted: JsonObject, given: JsonObject
    ) -> EvidenceKind | None:
        if name not in given:
            return "missing_argument"
        if name not in wanted:
            return "unexpected_argument"
        if _text(wanted[name]) == _text(given[name]):
            return None
        schema = self._schemas.get(tool, {})
        properties = schema.get("properties")
        part = properties.get(name, True) if isinstance(properties, Mapping) else True
        return "wrong_value" if fits(given[name], part, root=schema) else "wrong_type"


def _left_over(
    gold: Sequence[CanonicalCall], made: Sequence[CanonicalCall]
) -> tuple[list[int], list[int]]:
    """Indexes of the gold and of the made calls that have no equal on the other side."""
    free: dict[CanonicalCall, list[int]] = {}
    for at, call in enumerate(made):
        free.setdefault(call, []).append(at)
    gold_left = []
    for at, call in enumerate(gold):
        if free.get(call):
            free[call].pop(0)
        else:
            gold_left.append(at)
    return gold_left, sorted(at for left in free.values() for at in left)


def _distance(gold: CanonicalCall, made: CanonicalCall) -> float:
    """The share of arguments that differ between a call and a gold call; 2 for another tool."""
    if gold.name != made.name:
        return 2.0
    if made.is_malformed:
        return 1.0
    wanted, given = json.loads(gold.arguments), json.loads(made.arguments)
    names = {*wanted, *given}
    same = sum(
        name in wanted and name in given and _text(wanted[name]) == _text(given[name])
        for name in names
    )
    return 1 - same / len(names) if names else 0.0


def _text(value: Any) -> str:
    """A value as text that is equal only for equal JSON; Python takes ``True`` for ``1``."""
    return json.dumps(value, sort_keys=True)


def _sentence(
    tool: str, name: str, kind: EvidenceKind, wanted: JsonObject, given: JsonObject
) -> str:
    got = f", got {shown(given[name])}" if name in given else ""
    right = f", expected {shown(wanted[name])}" if name in wanted else ""
    return f"{tool}: argument {name!r}: {kind.replace('_', ' ')}{got}{right}"


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
        comparison = CallComparison(gold, made.calls, self._definitions)
        refused = made.refused & comparison.matched_calls
        found = (*made.placed((*comparison.evidence(), *made.refusals(refused))),)
        return judged(
            self.name,
            found or made.unanswered(),
            score=share(comparison.matched - len(refused), len(gold), made),
        )


def gold_calls_problem(gold: Iterable[GoldCall], definitions: Iterable[ToolDefinition]) -> str:
    """Why calls can not be what is right: a tool that is not there; empty when they can.

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

    A call whose arguments can not be read counts as a call, since the model tried. BFCL's checker
    takes output that it can not decode for an abstention, and lets it pass.
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
