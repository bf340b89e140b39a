"""Learned rules: what evolution found out about a tool, as data rather than words alone.

A rule says something that the contract (L1) leaves open and that calls kept breaking: which
values a parameter takes, its range, its form. It belongs to L3 of the definition. Everything that
a reader or a machine sees of it is derived from it: the sentence, the narrowed schema and with
that the grammar of local models, and the executor's refusal. So all of it is gone when the rule is.

A rule can only narrow. The contract itself never changes.

This is a lazy door: a tool without rules, as most are, loads none of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
    from agentkit.tools.rules.codec import rule_from_json, rule_to_json
    from agentkit.tools.rules.earlier import EarlierCall
    from agentkit.tools.rules.inherited import demanded, wanted_before_children
    from agentkit.tools.rules.narrowing import narrowed_schema, why_unstated
    from agentkit.tools.rules.problems import RuleProblem, rule_problems
    from agentkit.tools.rules.records import (
        Between,
        CallBefore,
        Condition,
        Form,
        JsonScalar,
        NamedFormat,
        OneOf,
        Requires,
        Rule,
    )
    from agentkit.tools.rules.refusal import RuleChecker
    from agentkit.tools.rules.sentences import rule_sentence

__all__ = [
    "Between",
    "CallBefore",
    "Condition",
    "EarlierCall",
    "Form",
    "JsonScalar",
    "NamedFormat",
    "OneOf",
    "Requires",
    "Rule",
    "RuleChecker",
    "RuleProblem",
    "demanded",
    "narrowed_schema",
    "rule_from_json",
    "rule_problems",
    "rule_sentence",
    "rule_to_json",
    "wanted_before_children",
    "why_unstated",
]

__getattr__ = lazy_door(
    __name__,
    {
        "EarlierCall": "agentkit.tools.rules.earlier",
        "RuleChecker": "agentkit.tools.rules.refusal",
        "RuleProblem": "agentkit.tools.rules.problems",
        "demanded": "agentkit.tools.rules.inherited",
        "narrowed_schema": "agentkit.tools.rules.narrowing",
        "rule_from_json": "agentkit.tools.rules.codec",
        "rule_problems": "agentkit.tools.rules.problems",
        "rule_sentence": "agentkit.tools.rules.sentences",
        "rule_to_json": "agentkit.tools.rules.codec",
        "wanted_before_children": "agentkit.tools.rules.inherited",
        "why_unstated": "agentkit.tools.rules.narrowing",
        **dict.fromkeys(
            (
                "Between",
                "CallBefore",
                "Condition",
                "Form",
                "JsonScalar",
                "NamedFormat",
                "OneOf",
                "Requires",
                "Rule",
            ),
            "agentkit.tools.rules.records",
        ),
    },
)
