r"""Numbers in text, read exactly.

``final_number`` finds the number that an answer ends in. Thousands separators (``1,000``), currency
and percent signs, fractions (``3/4``, ``\frac{3}{4}``) and powers of ten (``1.5e3``) are read, and
the signs that are used for minus. Values are fractions of integers: nothing is rounded.

Not read: decimal commas, since ``3,5`` is as often a list; words (``seven``, ``2 million``);
arithmetic (``3 + 4`` ends in 4). A percent sign does not divide by a hundred.
"""

from __future__ import annotations

import math
import re
import unicodedata
from decimal import Decimal
from fractions import Fraction
from typing import Any

from agentkit.episodes import Episode, Evidence, Verdict
from agentkit.evaluation.expectations import NumberAnswer
from agentkit.evaluation.verifiers.verdicts import (
    answer_text,
    answer_turn,
    clipped,
    faulty,
    judged,
    shown,
    without_answer,
)

_LONGEST = 10_000
"""Most digits, and largest power of ten, of a number that is read."""

_SIGNS = {ord(sign): "-" for sign in "\u2010\u2011\u2012\u2013\u2212\ufe63\uff0d"}
_LATEX = re.compile(r"\\(?:[,!; ]|left|right)|(?<=\d)\{,\}(?=\d)")
_LATEX_ESCAPED = re.compile(r"\\([$%])")
_LATEX_FRACTION = re.compile(r"\\[dt]?frac *\{([^{}]*)\} *\{([^{}]*)\}")
_GROUPED = re.compile(r"(?<![\d.])\d{1,3}(?:,\d{3})+(?!\d)")

_PLAIN = r"(?:\d+(?:\.\d+)?|(?<!\.)\.\d+)"
_NUMBER = re.compile(
    rf"""
    (?<![^\W_])(?<![^\W_][.^])                              # in no word
    (?P<sign>(?<![\w)\]}}%])-|(?<==)-\s|(?<==\s)-\s)?
    (?:[$€£¥₹₩]\s?)?
    (?P<over>{_PLAIN})
    (?:\s?/\s?(?P<under>{_PLAIN})|[eE](?P<power>[+-]?\d+))?
    (?P<more>(?:\s?/\s?\d+)*)               # a date or a chain of divisions is no fraction
    """,
    re.VERBOSE,
)
_MARKED = re.compile(r"^[ \t]*####[ \t]*(?P<rest>.*)$", re.MULTILINE)
_UNIT = re.compile(r" ?[\w%$€£]{0,20}(?: [\w%]{1,20})?\.?")
_BOXED = re.compile(r"\\boxed\s*\{")


def final_number(text: str) -> Fraction | None:
    r"""The number that an answer gives, or None when it gives none that can be read.

    It is the number behind the last ``####`` when that is all there is in its line (GSM8K's own
    form), else the last one inside the last ``\boxed{}``, else the last one of the text.

    GSM8K's published evaluation reads only the first ``#### -?[0-9.,]+``, takes commas out and
    compares text. Here the last marker counts, an answer without a marker is read as well, and
    values are compared, so that ``72.0`` and ``$72`` are ``72``.

    Args:
        text: The answer.

    Example:
        >>> final_number("She sold 48 + 24 = 72 clips.")
        Fraction(72, 1)
        >>> final_number(r"So \boxed{\$1,250.50} for 3 days")
        Fraction(2501, 2)
        >>> final_number("I can not tell.") is None
        True
    """
    plain = _plain(text)
    for marked in reversed(list(_MARKED.finditer(plain))):
        rest = marked["rest"].rstrip()
        number = _NUMBER.match(rest)
        if number is not None and _UNIT.fullmatch(rest, number.end()):
            return _value(number)
    boxes = list(_BOXED.finditer(plain))
    inside = _last(_braced(plain, boxes[-1].end())) if boxes else None
    return _last(plain) if inside is None else inside


def read_number(text: str) -> Fraction | None:
    """The number that a text is as a whole, but for a currency or percent sign; else None.

    Args:
        text: Such as ``1,000``, ``-3/4`` or ``$5``.
    """
    number = _NUMBER.fullmatch(_plain(text).strip().removesuffix("%").rstrip())
    return None if number is None else _value(number)


def _last(text: str) -> Fraction | None:
    found = None
    for found in _NUMBER.finditer(text):  # noqa: B007 - the last one is wanted
        pass
    return None if found is None else _value(found)


def _value(number: re.Match[str]) -> Fraction | None:
    power = number["power"] or "0"
    is_long = len(number[0]) > _LONGEST or len(power) > len(str(_LONGEST))
    if number["more"] or is_long or abs(int(power)) > _LONGEST:
        return None
    under = _exact(number["under"] or "1")
    if not under:
        return None
    value = _exact(number["over"]) / under * Fraction(10) ** int(power)
    return -value if number["sign"] else value


def _exact(text: str) -> Fraction:
    return Fraction(Decimal(text))  # int() refuses texts of more than 4,300 digits


def _braced(text: str, start: int) -> str:
    """The text from ``start`` to the brace that closes what was opened before it."""
    depth = 1
    for at in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return text[start:at]
    return text[start:]


def _plain(text: str) -> str:
    """The text with numbers in one notation: ASCII digits and signs, no separators, no LaTeX."""
    text = "".join(_ascii(sign) for sign in text.translate(_SIGNS))
    text = _LATEX.sub("", _LATEX_ESCAPED.sub(r"\1", text))
    text = _LATEX_FRACTION.sub(r"\1/\2", text)
    return _GROUPED.sub(lambda number: number[0].replace(",", ""), text)


def _ascii(sign: str) -> str:
    """A digit of any script as ASCII; anything else as it is."""
    return str(unicodedata.decimal(sign)) if sign.isdecimal() and not sign.isascii() else sign


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
        gold = read_number(self._expected.value)
        if gold is None:
            problem = f"the expected number {shown(self._expected.value)} is no number"
            return faulty(self.name, "gold_error", problem)
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


def _given(output: Any) -> Fraction | None:
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
