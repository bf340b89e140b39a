"""``Lesson``: one thing that the evidence says a definition should say, and what it rests on.

``EvidenceRules`` says how much must have happened before the evidence proposer says anything.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from agentkit.errors import UsageError
from agentkit.evolution.proposals.evidence.observed import ObservedCall, ToolRecord
from agentkit.evolution.validation.report import TextOrigin
from agentkit.metrics.intervals import wilson_interval
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.rules import CallBefore, Condition, Rule, rule_sentence


@dataclass(frozen=True, kw_only=True, slots=True)
class EvidenceRules:
    """Thresholds of the evidence proposer.

    Attributes:
        least_failures: Calls that a tool must have refused for the same stated reason.
        least_episodes: Different episodes that they must come from. One episode may repeat one
            call, and one text may be hostile or broken.
        least_agreement: Of the refusals that state something of this kind about the parameter, the
            share that must state the same. A list that differs from call to call depends on the
            other arguments, and no rule can hold it.
        least_share: Of the observed calls of the tool, the share that must have failed so.
        least_lookups: Episodes in which a parameter's value must have come from another tool's
            result before that tool is asked to be called first.
        most_lessons: Lessons that one proposal may hold; those with most failures come first.
    """

    least_failures: int = 2
    least_episodes: int = 2
    least_agreement: float = 1.0
    least_share: float = 0.0
    least_lookups: int = 3
    most_lessons: int = 12

    def __post_init__(self) -> None:
        counts = (self.least_failures, self.least_episodes, self.least_lookups, self.most_lessons)
        if min(counts) < 1:
            raise UsageError(f"counts of EvidenceRules must be 1 or more, got {counts}")
        for share in (self.least_agreement, self.least_share):
            if not 0 <= share <= 1:
                raise UsageError(f"shares of EvidenceRules must be from 0 to 1, got {share}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Lesson:
    """One thing to say.

    Attributes:
        rule: A rule to add, in the place of one of its kind about the same parameter; None for a
            lesson in words.
        drop: A rule to take away; None for none.
        parameter: The parameter whose text gets ``text``; empty when ``text`` is a rule on use.
        text: Words to add.
        basis: What it rests on, in words.
        failures: Calls that failed for it.
        episodes: Ids of the episodes of these calls, each once.
        kept: Calls that the tool took, all of which the lesson lets pass.
        confidence: Lower end of the 95% interval (Wilson) of the share of refusals that agree.
        origins: Where its texts came from.
    """

    rule: Rule | None = None
    drop: Rule | None = None
    parameter: str = ""
    text: str = ""
    basis: str
    failures: int
    episodes: tuple[str, ...]
    kept: int = 0
    confidence: float = 0.0
    origins: tuple[TextOrigin, ...] = ()

    @classmethod
    def from_calls(
        cls,
        calls: Collection[ObservedCall],
        record: ToolRecord,
        *,
        basis: str,
        against: int = 0,
        rule: Rule | None = None,
        drop: Rule | None = None,
        parameter: str = "",
        text: str = "",
        origins: tuple[TextOrigin, ...] = (),
    ) -> Lesson:
        """A lesson that calls of a tool teach.

        Args:
            calls: The failed calls behind it.
            record: All that was observed of the tool.
            basis: What it rests on, in words.
            against: Refusals that speak against it.
            rule: As in the lesson, like all that follow.
            drop: As in the lesson.
            parameter: As in the lesson.
            text: As in the lesson.
            origins: As in the lesson.
        """
        return cls(
            rule=rule,
            drop=drop,
            parameter=parameter,
            text=text,
            basis=basis,
            failures=len(calls),
            episodes=tuple(dict.fromkeys(call.episode_id for call in calls)),
            kept=len(record.accepted),
            confidence=confidence(len(calls), against),
            origins=origins,
        )

    @property
    def words(self) -> str:
        """What it says, for people."""
        if self.rule is not None:
            return rule_sentence(self.rule)
        if self.drop is not None:
            return f"No longer: {rule_sentence(self.drop)}"
        return f"{self.parameter}: {self.text}" if self.parameter else self.text

    def __str__(self) -> str:
        failed = _many(self.failures, "failed call" if self.drop is None else "call")
        where = _many(len(self.episodes), "conversation")
        kept = (
            f"; it lets all {_many(self.kept, 'accepted call')} pass"
            if self.kept > 1 and self.rule
            else ""
        )
        return f"{self.words} {self.basis} ({failed} in {where}{kept})."


def _many(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def confidence(agreeing: int, against: int = 0) -> float:
    """How sure a share of all is, at least: the lower end of Wilson's 95% interval.

    Example:
        >>> confidence(2), confidence(20), confidence(20, 5)
        (0.34, 0.84, 0.61)
    """
    return round(wilson_interval(agreeing, agreeing + against).low, 2)


def is_enough(calls: Collection[ObservedCall], record: ToolRecord, knobs: EvidenceRules) -> bool:
    """Whether calls are many enough, from enough episodes, and a share of all that matters."""
    episodes = {call.episode_id for call in calls}
    share = len(calls) / max(1, len(record.calls))
    return (
        len(calls) >= knobs.least_failures
        and len(episodes) >= knobs.least_episodes
        and share >= knobs.least_share
    )


def with_rule(definition: ToolDefinition, rule: Rule) -> ToolDefinition:
    """The definition with a rule, in the place of what it said of the same thing before."""
    specification = definition.specification
    others = tuple(one for one in specification.rules if subject(one) != subject(rule))
    return replace(definition, specification=replace(specification, rules=(*others, rule)))


def applied(definition: ToolDefinition, lessons: Iterable[Lesson]) -> ToolDefinition:
    """The definition with what the lessons say."""
    for lesson in lessons:
        if lesson.rule is not None:
            definition = with_rule(definition, lesson.rule)
        if lesson.drop is not None:
            kept = tuple(rule for rule in definition.specification.rules if rule != lesson.drop)
            specification = replace(definition.specification, rules=kept)
            definition = replace(definition, specification=specification)
        if lesson.text:
            definition = _with_words(definition, lesson)
    return definition


def subject(rule: Rule) -> tuple[object, ...]:
    """What a rule is about: two rules about the same take each other's place."""
    if isinstance(rule, CallBefore | Condition):
        return (rule,)
    return (rule.kind, rule.parameter)


def _with_words(definition: ToolDefinition, lesson: Lesson) -> ToolDefinition:
    words = definition.description
    if lesson.parameter:
        texts = dict(words.parameters)
        before = texts.get(lesson.parameter, "").strip()
        ended = before if not before or before[-1] in ".!?\u3002" else f"{before}."
        texts[lesson.parameter] = f"{ended} {lesson.text}".strip()
        return replace(definition, description=replace(words, parameters=texts))
    if lesson.text in words.usage_rules:
        return definition
    rules = (*words.usage_rules, lesson.text)
    return replace(definition, description=replace(words, usage_rules=rules))
