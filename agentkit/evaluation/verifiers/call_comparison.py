"""Calls beside gold calls: which are equal, and how the others differ."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentkit.episodes import Evidence, EvidenceKind
from agentkit.evaluation.expectations import GoldCall
from agentkit.evaluation.verifiers.verdicts import shown
from agentkit.messages import JsonObject, ToolCall
from agentkit.metrics import CanonicalCall, canonical_calls
from agentkit.metrics.assignment import optimal_assignment
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.fit import fits


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
        """Gold and made calls that are left, so paired that the fewest arguments differ in all."""
        weights = [
            [-_distance(self._gold[wanted], self._made[given]) for given in self._made_left]
            for wanted in self._gold_left
        ]
        for row, column in optimal_assignment(weights):
            yield self._gold_left[row], self._made_left[column]

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
