"""What speaks against a rule: calls that were taken, values that are right, the contract.

Successes alone never make a rule, but they can forbid one. That a value was taken shows that it is
allowed; that another one never came up shows nothing (a closed world is not assumed).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from math import inf
from typing import Any

from agentkit.composites import rule_problems
from agentkit.composites.rule_checker import RuleChecker
from agentkit.episodes import Episode
from agentkit.evolution.proposals.evidence.lessons import with_rule
from agentkit.evolution.proposals.evidence.observed import ObservedCall, ToolRecord, observed
from agentkit.library.library import Library
from agentkit.messages import JsonObject
from agentkit.tools.canonical import canonical_json
from agentkit.tools.coercion import coerce
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.fit import fits
from agentkit.tools.rules import Between, CallBefore, OneOf, Requires, Rule
from agentkit.tools.rules.earlier import EarlierCall


class Trial:
    """One rule of a tool, or several, and no other, held against calls.

    Args:
        rules: The rule or rules.
        definition: The tool, with or without them.
    """

    def __init__(self, rules: Rule | tuple[Rule, ...], definition: ToolDefinition) -> None:
        rules = rules if isinstance(rules, tuple) else (rules,)
        specification = replace(definition.specification, rules=rules)
        self._ruled = replace(definition, specification=specification)
        self._checker = RuleChecker(self._ruled)

    def refuses(self, call: ObservedCall) -> bool:
        """Whether the rule would have refused a call as it was made, as far as it can be told."""
        return self._checker.refusal(call.arguments, call.earlier) is not None

    def stops(self, arguments: JsonObject, earlier: Sequence[EarlierCall] | None = None) -> bool:
        """Whether the rule would keep a call from running, once its plain slips are mended.

        ``"Burger"`` runs where a rule lists ``"BURGER"``, so that such a call, once taken, does not
        speak against the rule.
        """
        mended: JsonObject = coerce(arguments, self._ruled.parameters_schema, fill="none")
        return self._checker.refusal(mended, earlier) is not None


def is_sound(rule: Rule, definition: ToolDefinition, library: Container[str]) -> bool:
    """Whether a rule fits the contract, the worked examples and the other rules of its tool."""
    return not rule_problems(rule, with_rule(definition, rule), library)


def rejects_known(rule: Rule, definition: ToolDefinition, record: ToolRecord) -> bool:
    """Whether a rule refuses a call that the tool took, or a value that a verifier held for right.

    Verifiers list the values that are right. Values that the parameter does not take at all say
    nothing, such as the empty text for one that may be left out (BFCL).
    """
    trial = Trial(rule, definition)
    if any(trial.stops(call.arguments, call.earlier) for call in record.accepted):
        return True
    if isinstance(rule, CallBefore | Requires):
        return False  # one value says nothing about other calls or parameters
    return any(
        trial.stops({name: value})
        for name, values in record.right.items()
        for _, value in values
        if may_be(value, name, definition)
    )


def refused_by_rules(
    rules: tuple[Rule, ...], definition: ToolDefinition, calls: Iterable[ObservedCall]
) -> Iterator[tuple[Rule, ObservedCall]]:
    """The calls that rules would keep from running, each with the first rule that does.

    Args:
        rules: New rules of a tool.
        definition: The tool, with or without them.
        calls: Calls that are known to be right, or that the tool took.
    """
    together = Trial(rules, definition)
    trials = [(rule, Trial(rule, definition)) for rule in rules]
    for call in calls:
        if together.stops(call.arguments, call.earlier):
            stops = (rule for rule, one in trials if one.stops(call.arguments, call.earlier))
            yield from ((rule, call) for rule in [*stops][:1])


def accepted_calls(
    definition: ToolDefinition, library: Library, episodes: Iterable[Episode]
) -> tuple[ObservedCall, ...]:
    """The worked examples of a tool, and its calls in episodes that it took.

    Args:
        definition: The tool.
        library: By which calls are read.
        episodes: What happened; those without a call of the tool are passed over.
    """
    worked = (
        ObservedCall(episode_id="", arguments=one.arguments, is_accepted=True)
        for one in definition.examples
    )
    name = definition.name
    about = (one for one in episodes if any(call.name == name for call in one.calls))
    record = observed(about, library).get(name, ToolRecord())
    return tuple(chain(worked, record.accepted))


def may_be(value: Any, name: str, definition: ToolDefinition) -> bool:
    """Whether a value is one that the contract lets a parameter have."""
    part = definition.signature.properties.get(name)
    if part is None or value in ("", None):
        return False
    return fits(value, part, root=definition.signature.parameters) is not False


def allows_more(rule: Rule, other: Rule) -> bool:
    """Whether a list or range is a wider one of its kind; False where that can not be told.

    Example:
        >>> allows_more(OneOf(parameter="n", values=(1, 2, 3)), OneOf(parameter="n", values=(3, 1)))
        True
        >>> closed, open_ = Between(parameter="n", minimum=0), Between(parameter="n", minimum=1)
        >>> allows_more(closed, open_), allows_more(open_, closed), allows_more(closed, closed)
        (True, False, False)
    """
    match rule, other:
        case OneOf(), OneOf():
            return _members(other) < _members(rule)
        case Between(), Between():
            mine, yours = (_low(rule), _high(rule)), (_low(other), _high(other))
            is_wider = mine[0] <= yours[0] and mine[1] >= yours[1] and mine != yours
            is_alike = rule.measure == other.measure and rule.multiple_of == other.multiple_of
            return is_wider and is_alike
        case _:
            return False


def _members(rule: OneOf) -> set[bytes]:
    return {canonical_json(value) for value in rule.values}


def _low(rule: Between) -> tuple[float, bool]:
    """The lower bound, and whether it is itself left out."""
    bounds = ((rule.minimum, False), (rule.exclusive_minimum, True))
    return max(((n, is_open) for n, is_open in bounds if n is not None), default=(-inf, False))


def _high(rule: Between) -> tuple[float, bool]:
    """The upper bound, and whether it is itself allowed."""
    bounds = ((rule.maximum, True), (rule.exclusive_maximum, False))
    return min(((n, is_in) for n, is_in in bounds if n is not None), default=(inf, True))
