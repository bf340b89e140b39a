"""A number in the final answer (GSM8K)."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from agentkit.episodes import Episode, Evidence, Verdict
from agentkit.evaluation.expectations import NumberAnswer
from agentkit.evaluation.verifiers.answers import answer_text, answer_turn, without_answer
from agentkit.evaluation.verifiers.numbers_in_text import final_number, read_number
from agentkit.evaluation.verifiers.verdicts import clipped, faulty, judged, shown

_ROUNDING = 1e-6


class NumberAnswerVerifier:
    """Passes when the final answer is the expected number.

    Text is read by ``final_number``; structured output may be a number, or an object with one
    entry. NaN, infinities and booleans are no numbers. Values are compared exactly as fractions.

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
        gold = _gold(self._expected)
        if isinstance(gold, str):
            return faulty(self.name, "gold_error", gold)
        text = answer_text(episode)
        if text is None:
            return without_answer(self.name, episode)
        given = _given(episode.output)
        if given is not None and _is_close(given, gold, self._expected.tolerance):
            return judged(self.name, ())
        found = "no number that can be read" if given is None else f"the number {_number(given)}"
        wrong = Evidence(
            kind="wrong_answer",
            message=f"the answer holds {found}, expected {self._expected.value}",
            turn=answer_turn(episode),
            expected=self._expected.value,
            actual=clipped(text),
        )
        return judged(self.name, [wrong])


def _gold(expected: NumberAnswer) -> Fraction | str:
    """The expected value, or why there is none."""
    value, tolerance = _unchecked(expected)
    if not isinstance(value, str):
        return f"the expected number is {shown(value)}, which is no text such as '72'"
    if isinstance(tolerance, bool) or not isinstance(tolerance, int | float):
        return f"the tolerance is {shown(tolerance)}, expected a number"
    if not (math.isfinite(tolerance) and tolerance >= 0):
        return f"the tolerance is {tolerance}, expected a finite number that is not negative"
    number = read_number(value)
    if number is None:
        return f"the expected number {shown(value)} can not be read as a number"
    return number.value


def _unchecked(expected: NumberAnswer) -> tuple[Any, Any]:
    """The parts of a record, whose types nobody has checked: it may come from a file."""
    return expected.value, expected.tolerance


def _given(output: Any) -> Fraction | None:
    if isinstance(output, dict) and len(output) == 1:
        output = next(iter(output.values()))
    if isinstance(output, str):
        number = final_number(output)
        return None if number is None else number.value
    if isinstance(output, bool) or not isinstance(output, int | float):
        return None
    if isinstance(output, int):
        return Fraction(output)
    # 0.1 is meant as a tenth, not as the binary fraction next to it
    return Fraction(repr(output)) if math.isfinite(output) else None


def _is_close(given: Fraction, gold: Fraction, tolerance: float) -> bool:
    if tolerance <= _ROUNDING and given.denominator == gold.denominator == 1:
        return given == gold
    slack = Fraction(tolerance) * (abs(gold) if gold else 1)
    return abs(given - gold) <= slack


def _number(value: Fraction) -> str:
    """A value for a sentence; the digits of a very long one can not be printed."""
    try:
        return shown(value.numerator if value.denominator == 1 else float(value))
    except OverflowError:
        return "that is beyond floats"
