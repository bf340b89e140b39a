"""How long texts may be, and how much they may grow."""

from __future__ import annotations

from collections.abc import Iterator

from agentkit.evolution.validation.report import FailedCheck, ProposedChange
from agentkit.evolution.validation.texts import (
    LONGEST_SCANNED,
    MOST_SCANNED,
    TextKind,
    sequence,
)

LONGEST: dict[TextKind, int] = {
    "summary": 1_000,
    "parameter": 500,
    "usage_rule": 300,
    "condition": 300,
    "tag": 40,
    "rule": 300,
    "example": 1_000,
}
"""Characters of one text. Providers cut or refuse descriptions beyond about a thousand."""

MOST_USAGE_RULES = 12
MOST_TAGS = 16
MOST_EXAMPLES = 64
_GROWTH_FACTOR = 3
_GROWTH_ROOM = 600
_WORDS: frozenset[TextKind] = frozenset({"summary", "parameter", "usage_rule", "condition", "tag"})


def lengths_kept(change: ProposedChange) -> Iterator[FailedCheck]:
    """One text beyond the cap of its kind, or too many of a kind.

    A text that was longer in the base already may stay as long as it was, up to the length that
    the other checks look at.

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> list(lengths_kept(rewrite("bill_split", {"rule": "Round the tip to whole cents."})))
        []
        >>> [found.field for found in lengths_kept(rewrite("bill_split", {"rule": "Round. " * 50}))]
        ['usage_rules[0]']
    """
    for edit in change.edits:
        allowed = min(max(LONGEST[edit.kind], len(edit.before)), LONGEST_SCANNED)
        if edit.length > allowed:
            yield FailedCheck(
                code="too_long",
                layer="lexical",
                field=edit.field,
                message=f"it has {edit.length} characters, {allowed} are allowed",
                advice="say one thing a sentence, and leave out what the schema says",
                excerpt=edit.after[:60],
            )
    if sum(len(edit.after) for edit in change.edits) >= MOST_SCANNED:
        yield FailedCheck(
            code="too_long",
            layer="lexical",
            message=f"{MOST_SCANNED} characters and more would change at once",
            advice="change a few texts at a time",
        )
    yield from _too_many(change)


def _too_many(change: ProposedChange) -> Iterator[FailedCheck]:
    before, after = change.base, change.candidate
    counted = (
        (
            "usage_rules",
            before.description.usage_rules,
            after.description.usage_rules,
            MOST_USAGE_RULES,
        ),
        ("tags", before.description.tags, after.description.tags, MOST_TAGS),
        ("examples", before.examples, after.examples, MOST_EXAMPLES),
    )
    for name, had, has, most in counted:
        allowed = max(most, len(sequence(had)))
        if len(sequence(has)) > allowed:
            yield FailedCheck(
                code="too_long",
                layer="lexical",
                field=name,
                message=f"there are {len(has)} {name}, {allowed} are allowed",
                advice="keep those that help most calls",
            )


def growth_bounded(change: ProposedChange) -> Iterator[FailedCheck]:
    """All texts together beyond three times what they were, and 600 characters of room.

    Texts are paid for in every prompt. Many small additions are seen here, where each of them is
    short enough.

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> list(growth_bounded(rewrite("bill_split", {"rule": "Round the tip to whole cents."})))
        []
        >>> rules = [f"Note {n}: " + "round to whole cents, half a cent up. " * 5 for n in range(9)]
        >>> many = rewrite("bill_split", {"/description/usage_rules": rules})
        >>> [found.code for found in growth_bounded(many)]
        ['grew_too_much']
    """
    before = sum(len(text.text) for text in change.texts if text.kind in _WORDS)
    after = sum(len(text.text) for text in change.candidate_texts if text.kind in _WORDS)
    allowed = before * _GROWTH_FACTOR + _GROWTH_ROOM
    if after > allowed:
        yield FailedCheck(
            code="grew_too_much",
            layer="lexical",
            message=f"all texts grew from {before} to {after} characters, {allowed} are allowed",
            advice="change what calls fail on, and leave the rest as it is",
        )
