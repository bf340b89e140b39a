"""Learned rules that turned out too strict: they refuse what is right, or what the tool takes."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import chain

from agentkit.evolution.proposals.evidence.lessons import Lesson, confidence, subject
from agentkit.evolution.proposals.evidence.stated_rules import Seen
from agentkit.evolution.proposals.evidence.vetoes import Trial, may_be
from agentkit.tools.rules import CallBefore, Requires, Rule


def relaxed_lessons(seen: Seen, stated: Collection[Lesson] = ()) -> Iterator[Lesson]:
    """Rules to take away, since calls that went well break them in enough episodes.

    These are values that a verifier held for right, and calls that the tool took: from before there
    was the rule, or in a run without it, such as the other side of a canary. Only rules about
    values can be judged by one value.

    Args:
        seen: The tool with its calls.
        stated: What the tool states anew. A rule that this replaces is not taken away.
    """
    replaced = {subject(lesson.rule) for lesson in stated if lesson.rule is not None}
    for rule in seen.definition.specification.rules:
        if subject(rule) in replaced:
            continue
        taken = list(_taken(rule, seen))
        distinct = tuple(dict.fromkeys(chain(_right(rule, seen), taken)))
        if len(distinct) >= max(seen.knobs.least_failures, seen.knobs.least_episodes):
            yield Lesson(
                drop=rule,
                basis=f"The rule refuses what {'the tool accepts' if taken else 'is right'}",
                failures=len(distinct),
                episodes=distinct,
                kept=len(seen.record.accepted),
                confidence=confidence(len(distinct)),
            )


def _right(rule: Rule, seen: Seen) -> Iterator[str]:
    """Episodes in which a value was right that the rule refuses."""
    if isinstance(rule, CallBefore | Requires):
        return
    trial = Trial(rule, seen.definition)
    for name, values in seen.record.right.items():
        for episode_id, value in values:
            if may_be(value, name, seen.definition) and trial.stops({name: value}):
                yield episode_id


def _taken(rule: Rule, seen: Seen) -> Iterator[str]:
    """Episodes in which the tool took a call that the rule refuses."""
    trial = Trial(rule, seen.definition)
    for call in seen.record.accepted:
        if trial.stops(call.arguments, call.earlier):
            yield call.episode_id
