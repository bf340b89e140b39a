"""Learned rules and the first example."""

from __future__ import annotations

from collections.abc import Iterator

from agentkit.evolution.validation.report import FailedCheck, ProposedChange
from agentkit.evolution.validation.texts import rules_of
from agentkit.tools.fit import same_json
from agentkit.tools.rules import rule_problems
from agentkit.tools.rules.codec import rule_to_json


def rules_valid(change: ProposedChange) -> Iterator[FailedCheck]:
    """Rules that say nothing, contradict contract or examples, or name what is not there.

    All rules of a candidate are looked at when it changes any of them or its examples, since they
    must hold together; a rule that was broken before is told too then.

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> from agentkit.tools.rules import Between
        >>> one = Between(parameter="days", maximum=5)
        >>> list(rules_valid(rewrite("weather_forecast", rules=(one,))))
        []
        >>> wide = rewrite("weather_forecast", rules=(Between(parameter="weeks", maximum=5),))
        >>> [found.message for found in rules_valid(wide)]
        ['weather_forecast has no parameter weeks']
    """
    rules, had = rules_of(change.candidate), rules_of(change.base)
    if tuple(rules) == tuple(had) and change.candidate.examples == change.base.examples:
        return
    for at, rule in enumerate(rules):
        for problem in rule_problems(rule, change.candidate, change.library):
            yield FailedCheck(
                code="invalid_rule",
                layer="structural",
                field=f"rules[{at}]",
                message=problem.message,
                advice=problem.advice,
                excerpt=f"{problem.code}: {str(rule_to_json(rule))[:100]}",
            )


def first_example_kept(change: ProposedChange) -> Iterator[FailedCheck]:
    """The first example, which a person wrote or the tool itself gave (ToolDNA, section 3.3).

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> list(first_example_kept(rewrite("weather_now", {"rule": "Cities in English."})))
        []
        >>> without = rewrite("weather_now", {"/examples/0": None})
        >>> [found.code for found in first_example_kept(without)]
        ['first_example_changed']
    """
    if not change.base.examples:
        return
    before = change.base.examples[0]
    after = change.candidate.examples[0] if change.candidate.examples else None
    if before != after or not same_json(
        [before.arguments, before.result], [after.arguments, after.result]
    ):
        yield FailedCheck(
            code="first_example_changed",
            layer="structural",
            field="examples[0]",
            message="the first example is gone, changed or no longer first",
            advice="keep it where it is, and add further ones behind it",
        )
