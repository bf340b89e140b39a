"""Learned rules and the first example."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from agentkit.composites import rule_problems
from agentkit.evolution.validation.report import FailedCheck, ProposedChange
from agentkit.evolution.validation.sameness import is_too_deep, same
from agentkit.evolution.validation.texts import rules_of, sequence
from agentkit.tools.definition import Example, ToolDefinition


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
    if same(rules, had) and same(_contents(change.candidate), _contents(change.base)):
        return
    conditions = replace(change.candidate.specification, rules=tuple(rules))
    held_to = replace(change.base, specification=conditions, examples=_readable(change.candidate))
    for at, rule in enumerate(rules):
        for found in rule_problems(rule, held_to, change.library):
            yield _invalid(at, found.message, found.advice, excerpt=found.code)


def _invalid(at: int, message: str, advice: str, *, excerpt: str = "") -> FailedCheck:
    return FailedCheck(
        code="invalid_rule",
        layer="structural",
        field=f"rules[{at}]",
        message=message,
        advice=advice,
        excerpt=excerpt,
    )


def _readable(definition: ToolDefinition) -> tuple[Example, ...]:
    """The examples that a rule can be tried on; ``malformed`` tells of the others."""
    return tuple(
        example
        for example in sequence(definition.examples)
        if isinstance(example, Example) and _is_call(example.arguments)
    )


def _is_call(arguments: Any) -> bool:
    return isinstance(arguments, Mapping) and not is_too_deep(arguments)


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
    before, after = sequence(change.base.examples), sequence(change.candidate.examples)
    if before and not (after and same(_content(before[0]), _content(after[0]))):
        yield FailedCheck(
            code="first_example_changed",
            layer="structural",
            field="examples[0]",
            message="the first example is gone, changed or no longer first",
            advice="keep it where it is, and add further ones behind it",
        )


def _contents(definition: ToolDefinition) -> list[list[Any]]:
    return [_content(example) for example in sequence(definition.examples)]


def _content(example: Any) -> list[Any]:
    names = ("arguments", "result", "query", "is_whole")
    return [getattr(example, name, example) for name in names]
