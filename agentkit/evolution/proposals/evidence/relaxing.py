"""Learned rules that turned out too strict: they refuse what a verifier holds for right."""

from __future__ import annotations

from collections.abc import Iterator

from agentkit.evolution.proposals.evidence.lessons import Lesson, confidence
from agentkit.evolution.proposals.evidence.stated_rules import Seen
from agentkit.evolution.proposals.evidence.vetoes import checker_of, may_be
from agentkit.tools.rules import CallBefore, Requires


def relaxed_lessons(seen: Seen) -> Iterator[Lesson]:
    """Rules to take away, since right values break them in enough episodes.

    Only rules about values can be judged by one value; what depends on other parameters or calls
    is left to the feedback stream.
    """
    for rule in seen.definition.specification.rules:
        if isinstance(rule, CallBefore | Requires):
            continue
        checker = checker_of(rule, seen.definition)
        episodes = [
            episode_id
            for name, values in seen.record.right.items()
            for episode_id, value in values
            if may_be(value, name, seen.definition) and checker.refusal({name: value}) is not None
        ]
        distinct = tuple(dict.fromkeys(episodes))
        if len(distinct) >= max(seen.knobs.least_failures, seen.knobs.least_episodes):
            yield Lesson(
                drop=rule,
                basis="refuses what is right",
                failures=len(distinct),
                episodes=distinct,
                kept=len(seen.record.accepted),
                confidence=confidence(len(distinct)),
            )
