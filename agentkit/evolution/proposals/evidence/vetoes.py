"""What speaks against a rule: calls that were taken, values that are right, the contract.

Successes alone never make a rule, but they can forbid one. That a value was taken shows that it is
allowed; that another one never came up shows nothing (a closed world is not assumed).
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace
from typing import Any

from agentkit.evolution.proposals.evidence.lessons import with_rule
from agentkit.evolution.proposals.evidence.observed import ObservedCall, ToolRecord
from agentkit.messages import JsonObject
from agentkit.tools.coercion import coerce
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.fit import fits
from agentkit.tools.rules import CallBefore, Requires, Rule, rule_problems
from agentkit.tools.rules.earlier import EarlierCall
from agentkit.tools.rules.refusal import RuleChecker


class Trial:
    """One rule of a tool, and no other, held against calls.

    Args:
        rule: The rule.
        definition: The tool, with or without it.
    """

    def __init__(self, rule: Rule, definition: ToolDefinition) -> None:
        specification = replace(definition.specification, rules=(rule,))
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


def may_be(value: Any, name: str, definition: ToolDefinition) -> bool:
    """Whether a value is one that the contract lets a parameter have."""
    part = definition.signature.properties.get(name)
    if part is None or value in ("", None):
        return False
    return fits(value, part, root=definition.signature.parameters) is not False
