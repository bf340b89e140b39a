"""Rules from outside are read, judged and applied within a bound."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from hypothesis import given
from support.cost import check_cost, fuzzing
from support.hostile import RULES, Foreign, calls

from agentkit.agent.checks import ContractChecker
from agentkit.composites import rule_problems
from agentkit.errors import AgentKitError
from agentkit.tools import ToolDefinition
from agentkit.tools.definition import Specification
from agentkit.tools.rules import rule_from_json


@fuzzing
@given(rule=RULES, call=calls())
def test_rules_are_judged_and_applied_within_a_bound(rule: Foreign, call) -> None:
    """A record is no rule, or a rule with problems, or one that every call is held to."""
    schema, arguments = call

    def work() -> None:
        with suppress(AgentKitError):
            tool = ToolDefinition.from_schema("foreign", "Looks a thing up.", schema.value)
            try:
                learned = rule_from_json(rule.value)
            except TypeError:
                return
            if rule_problems(learned, tool, {"foreign"}):
                return
            ruled = replace(tool, specification=Specification(rules=(learned,)))
            if isinstance(arguments.value, dict):
                ContractChecker("always").before(ruled, arguments.value)

    check_cost(work, rule.size + schema.size + arguments.size)
