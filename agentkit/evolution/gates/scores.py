"""Scores that a gate can count, and words for those that it can not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from agentkit.evolution.gates.decision import ArmScore, GateReport, PairedScore

_One = TypeVar("_One", PairedScore, ArmScore)


@dataclass(frozen=True, kw_only=True, slots=True)
class Scores(Generic[_One]):
    """What came in, divided.

    Attributes:
        counted: Those that can be counted, in the order in which they came.
        unusable: How many can not.
        problem: What is wrong with the first of those, in words; empty when there are none.
    """

    counted: tuple[_One, ...]
    unusable: int = 0
    problem: str = ""


def counted_pairs(pairs: Iterable[PairedScore]) -> Scores[PairedScore]:
    """Pairs whose scores are both finite, and of a size that sums can hold."""
    given = tuple(pairs)
    bad = [pair for pair in given if not _countable(pair.control, pair.candidate)]
    good = tuple(pair for pair in given if _countable(pair.control, pair.candidate))
    if not bad:
        return Scores(counted=good)
    first = f"task {bad[0].task!r} scored {bad[0].control} and {bad[0].candidate}"
    return Scores(counted=good, unusable=len(bad), problem=_words(len(bad), len(given), first))


def counted_arms(scores: Iterable[ArmScore]) -> Scores[ArmScore]:
    """The first score of each session, if it lies between 0 and 1."""
    first: dict[str, ArmScore] = {}
    for score in scores:
        first.setdefault(score.session, score)
    bad = [one for one in first.values() if not 0 <= one.score <= 1]
    good = tuple(one for one in first.values() if 0 <= one.score <= 1)
    if not bad:
        return Scores(counted=good)
    words = f"session {bad[0].session!r} scored {bad[0].score}, not from 0 to 1"
    return Scores(counted=good, unusable=len(bad), problem=_words(len(bad), len(first), words))


def first_of_group(pairs: Sequence[PairedScore]) -> tuple[PairedScore, ...]:
    """The first pair of each group, or of each task where no group is named."""
    first: dict[tuple[bool, str], PairedScore] = {}
    for pair in pairs:
        first.setdefault((bool(pair.group), pair.group or pair.task), pair)
    return tuple(first.values())


def held_up(report: GateReport, problem: str) -> GateReport:
    """The same report, but no pass while there are scores that can not be counted."""
    if report.decision != "pass" or not problem:
        return report
    return replace(report, decision="wait", reason=f"{problem}; else: {report.reason}")


LARGEST = 1e15
"""Of a score, a token count or a time: beyond it sums lose what a pair differs by."""


def _countable(*numbers: float) -> bool:
    return all(abs(number) <= LARGEST for number in numbers)  # false for what is not a number


def _words(bad: int, of: int, first: str) -> str:
    return f"{bad} of {of} scores can not be counted ({first}): mend the verifier and ask again"
