"""Verifiers of the final answer: a text, or a number."""

from __future__ import annotations

import math
import unicodedata
from fractions import Fraction
from typing import Any

from agentkit.episodes import Episode, Evidence, Verdict
from agentkit.evaluation.expectations import NumberAnswer, TextAnswer
from agentkit.evaluation.verifiers.numbers import final_number, read_number
from agentkit.evaluation.verifiers.verdicts import (
    answer_text,
    answer_turn,
    clipped,
    faulty,
    judged,
    shown,
    without_answer,
)

_ROUNDING = 1e-6


def _wrong_answer(episode: Episode, message: str, expected: str, answer: str) -> Evidence:
    return Evidence(
        kind="wrong_answer",
        message=message,
        turn=answer_turn(episode),
        expected=expected,
        actual=clipped(answer),
    )


class TextAnswerVerifier:
    """Passes when the final answer is the expected text, or holds it.

    Case and surrounding space do not count, nor whether an accented letter is written as one
    character or as two (Unicode NFC). Letters of another script that look alike are different.

    Args:
        expected: The text.
    """

    name = "text_answer"

    def __init__(self, expected: TextAnswer) -> None:
        self._expected = expected

    async def verify(self, episode: Episode) -> Verdict:
        """Compare the final answer with the text."""
        answer = answer_text(episode)
        if answer is None:
            return without_answer(self.name, episode)
        text, holds = self._expected.text, self._expected.match == "contains"
        expected, actual = _plain(text), _plain(answer)
        if expected in actual if holds else expected == actual:
            return judged(self.name, ())
        relation = "does not contain" if holds else "is not"
        message = f"the answer {shown(answer)} {relation} {shown(text)}"
        return judged(self.name, [_wrong_answer(episode, message, text, answer)])


def _plain(text: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).strip().casefold())


class NumberAnswerVerifier:
    """Passes when the final answer is the expected number.

    Text is read by ``final_number``; structured output may be a number, or an object with one
    entry. NaN, infinities and booleans are not numbers. Values are compared exactly as fractions.

    The tolerance is relative to the expected value. Up to the default of 1e-6 it is there for
    rounding only, which makes no whole number out of another: two different whole numbers are
    then different, however large they are.

    Args:
        expected: The number and how far off it may be.
    """

    name = "number_answer"

    def __init__(self, expected: NumberAnswer) -> None:
        self._expected = expected

    async def verify(self, episode: Episode) -> Verdict:
        """Compare the number in the final answer with the expected one."""
        expected = self._expected.value
        gold = read_number(expected)
        if gold is None:
            problem = f"the expected number {shown(expected)} is no number"
            return faulty(self.name, "gold_error", problem)
        text = answer_text(episode)
        if text is None:
            return without_answer(self.name, episode)
        actual = _number_in(episode.output)
        if actual is not None and _is_close(actual, gold, self._expected.tolerance):
            return judged(self.name, ())
        found = "no number that can be read" if actual is None else f"the number {_number(actual)}"
        message = f"the answer holds {found}, expected {expected}"
        return judged(self.name, [_wrong_answer(episode, message, expected, text)])


def _number_in(output: Any) -> Fraction | None:
    if isinstance(output, dict) and len(output) == 1:
        output = next(iter(output.values()))
    if isinstance(output, str):
        return final_number(output)
    if isinstance(output, bool) or not isinstance(output, int | float):
        return None
    if isinstance(output, int):
        return Fraction(output)
    # 0.1 is meant as a tenth, not as the binary fraction next to it
    return Fraction(repr(output)) if math.isfinite(output) else None


def _is_close(actual: Fraction, gold: Fraction, tolerance: float) -> bool:
    if tolerance <= _ROUNDING and actual.denominator == gold.denominator == 1:
        return actual == gold
    slack = Fraction(tolerance) * (abs(gold) if gold else 1)
    return abs(actual - gold) <= slack


def _number(value: Fraction) -> str:
    """A value for a sentence; the digits of a very long one cannot be printed."""
    try:
        return shown(value.numerator if value.denominator == 1 else float(value))
    except OverflowError:
        return "that is beyond floats"
