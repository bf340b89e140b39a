"""Which new rules of a candidate nothing bears out, so that somebody must agree to them."""

from __future__ import annotations

from agentkit.evolution.proposers.observed import described_rules, rule_key
from agentkit.evolution.validation.origins import TRUSTED
from agentkit.evolution.validation.report import ProposedChange
from agentkit.evolution.validation.texts import rules_of
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.rules import CallBefore, Rule
from agentkit.tools.rules.demands import demanded


def new_rules(change: ProposedChange) -> tuple[Rule, ...]:
    """The rules of the candidate that the base does not have."""
    had = rules_of(change.base)
    return tuple(rule for rule in rules_of(change.candidate) if rule not in had)


def unsupported_rules(change: ProposedChange) -> tuple[Rule, ...]:
    """New rules that neither recorded calls nor the tool's own texts bear out.

    A rule refuses calls, so a wrong one can lock a tool. What persons and code say is taken at
    their word; what the evidence proposer reads off refusals and accepted calls was held against
    both. A rule of anybody else counts when the text of its parameter states just that.
    For orders of calls see ``newly_demanded``.

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> from agentkit.tools.rules import Between
        >>> locked = rewrite("weather_forecast", rules=(Between(parameter="days", maximum=0),))
        >>> [rule.kind for rule in unsupported_rules(locked)]
        ['between']
    """
    if change.written_by in TRUSTED or change.from_evidence:
        return ()
    return tuple(
        rule
        for rule in new_rules(change)
        if not isinstance(rule, CallBefore) and not _is_stated(rule, change.base)
    )


def newly_demanded(change: ProposedChange) -> tuple[ToolDefinition | None, ...]:
    """The tools that new orders of calls make models call; None for one that is not there.

    Orders that persons and code state, or that recorded calls show, are left out.
    """
    orders = (isinstance(rule, CallBefore) for rule in new_rules(change))
    if change.written_by in TRUSTED or change.from_evidence or not any(orders):
        return ()
    before = demanded(change.base, change.library)
    after = demanded(change.candidate, change.library)
    return tuple(tool for name, tool in after.items() if name not in before)


def _is_stated(rule: Rule, base: ToolDefinition) -> bool:
    parameter = getattr(rule, "parameter", "")
    if not isinstance(parameter, str):
        return False
    stated = described_rules(base, parameter.partition(".")[0].removesuffix("[]"))
    try:
        return any(rule_key(one) == rule_key(rule) for one in stated)
    except ValueError:  # a bound that is no number; the checks say so
        return False
