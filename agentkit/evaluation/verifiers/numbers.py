r"""Numbers in text, read exactly.

``final_number`` finds the number that an answer ends in. Digits of all scripts, the signs that
are used for minus, thousands separators (``1,000``, ``1'000``, ``1_000``, and narrow or no-break
spaces), currency, percent, fractions (``3/4``, ``1 1/2``, ``¾``, ``\frac{3}{4}``) and powers of ten
(``1.5e3``, ``1.5 x 10^3``) are read. Values are fractions of integers: nothing is rounded.

Not read: decimal commas, since ``3,5`` is as often a list; words (``seven``, ``2 million``,
``minus 5``); arithmetic (``3 + 4`` ends in 4). A percent sign does not divide by a hundred.
"""

from __future__ import annotations

import math
import re
import unicodedata
from dataclasses import dataclass
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
_NO_ASCII = re.compile(r"[^\x00-\x7f]")
_RAISED = re.compile(r"[⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_LATEX = re.compile(r"\\(?:[,!; ]|left|right)")
_LATEX_WORDS = re.compile(r"\\(?:text|textbf|mathrm|mathbf)\s*\{([^{}]*)\}")
_LATEX_FRACTION = re.compile(r"\\[dt]?frac *\{([^{}]*)\} *\{([^{}]*)\}")
_LATEX_TIMES = re.compile(r"\\(?:times|cdot)\b")
_LATEX_COMMA = re.compile(r"\{,\}")
_LATEX_ESCAPED = re.compile(r"\\([$%])")
_CURRENCY_CODE = re.compile(r"\b(?:USD|EUR|GBP|CAD|AUD|INR|US|Rs\.?)\s?(?=[$-]?\d)")
_GROUPED = re.compile(
    r"(?<![\d.])\d{1,3}(?:([,'\u2019_\u00a0\u2009\u202f])\d{3})(?:\1\d{3})*(?!\d)"
)

_PLAIN = r"(?:\d+(?:\.\d+)?|(?<!\.)\.\d+)"
_NUMBER = re.compile(
    rf"""
    (?<![^\W_])(?<![^\W_][.^])(?<!\^)(?<!\^[{{(-])(?<![^\W_]\*\*)  # in no word and no exponent
    (?P<sign>(?<![\w)\]}}%])-|(?<==)-\s|(?<==\s)-\s)?
    (?:[$€£¥₹₩]\s?)?
    (?P<inner>-)?
    (?:
        (?P<whole>\d+)\s+(?P<part>\d+)\s?/\s?(?P<of>\d+)
      | (?P<over>{_PLAIN})\s?/\s?(?P<under>{_PLAIN})
      | (?P<base>{_PLAIN})
        (?:[eE](?P<e>[+-]?\d+)|\s*[\u00d7x*]\s*10\s?(?:\^|\*\*)\s?[{{(]?\s?(?P<power>[+-]?\d+))?
    )
    (?P<more>(?:\s?/\s?\d+)*)               # a date or a chain of divisions is no fraction
    """,
    re.VERBOSE,
)
_MARKED = re.compile(r"^[ \t]*####[ \t]*(?P<rest>.*)$", re.MULTILINE)
_UNIT = re.compile(r" ?[\w%$€£]{0,20}(?: [\w%]{1,20})?\.?")
_BOXED = re.compile(r"\\boxed\s*\{")


@dataclass(frozen=True, kw_only=True, slots=True)
class NumberInText:
    """A number and how it was written.

    Attributes:
        text: As it stands in the text, signs and spaces unified.
        value: Its exact value.
    """

    text: str
    value: Fraction


def final_number(text: str) -> NumberInText | None:
    r"""The number that an answer gives, or None when it gives none that can be read.

    It is the number behind the last ``####`` when that is all there is in its line (GSM8K's own
    form), else the last one inside the last ``\boxed{}``, else the last one of the text.

    GSM8K's published evaluation reads only the first ``#### -?[0-9.,]+``, takes commas out and
    compares text. Here the last marker counts, an answer without a marker is read as well, and
    values are compared, so that ``72.0`` and ``$72`` are ``72``.

    Args:
        text: The answer.

    Example:
        >>> final_number("She sold 48 + 24 = 72 clips.").value
        Fraction(72, 1)
        >>> final_number(r"So \boxed{\$1{,}250.50} for 3 days").value
        Fraction(2501, 2)
        >>> final_number("I can not tell.") is None
        True
    """
    plain = _plain(text)
    for marked in reversed(list(_MARKED.finditer(plain))):
        rest = marked["rest"].rstrip()
        number = _NUMBER.match(rest)
        if number is not None and _UNIT.fullmatch(rest, number.end()):
            return _read(number)
    boxes = list(_BOXED.finditer(plain))
    if boxes:
        inside = _last(_braced(plain, boxes[-1].end()))
        if inside is not None:
            return inside
    return _last(plain)


def read_number(text: str) -> NumberInText | None:
    """The number that a text is as a whole, but for a currency or percent sign; else None.

    Args:
        text: Such as ``1,000``, ``-3/4`` or ``$5``.
    """
    number = _NUMBER.fullmatch(_plain(text).strip().removesuffix("%").rstrip())
    return None if number is None else _read(number)


def _last(text: str) -> NumberInText | None:
    found = None
    for found in _NUMBER.finditer(text):  # noqa: B007 - the last one is wanted
        pass
    return None if found is None else _read(found)


def _read(number: re.Match[str]) -> NumberInText | None:
    value = None if number["more"] else _value(number)
    if value is None:
        return None
    is_negative = bool(number["sign"]) != bool(number["inner"])
    return NumberInText(text=number[0].strip(), value=-value if is_negative else value)


def _value(number: re.Match[str]) -> Fraction | None:
    if len(number[0]) > _LONGEST:
        return None
    if number["part"] is not None:
        part = _ratio(number["part"], number["of"])
        # "5 3/2" is two numbers: what is more than a whole is no part of a mixed number
        return part if part is None or part >= 1 else _exact(number["whole"]) + part
    if number["over"] is not None:
        return _ratio(number["over"], number["under"])
    power = number["e"] or number["power"] or "0"
    if len(power) > len(str(_LONGEST)) or abs(int(power)) > _LONGEST:
        return None
    return _exact(number["base"]) * Fraction(10) ** int(power)


def _ratio(over: str, under: str) -> Fraction | None:
    divisor = _exact(under)
    return _exact(over) / divisor if divisor else None


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
    """The text with numbers in one notation: ASCII digits, no separators, no LaTeX."""
    text = _RAISED.sub(lambda run: "^" + unicodedata.normalize("NFKC", run[0]), text)
    text = _NO_ASCII.sub(lambda sign: _ascii(sign[0]), text.translate(_SIGNS))
    text = _LATEX_COMMA.sub(",", _LATEX_ESCAPED.sub(r"\1", text))
    text = _LATEX_TIMES.sub("*", _LATEX.sub("", text))
    text = _LATEX_WORDS.sub(r"\1", text)
    text = _LATEX_FRACTION.sub(_fraction, text)
    text = _CURRENCY_CODE.sub("", text)
    return _GROUPED.sub(lambda number: number[0].replace(number[1], ""), text)


def _fraction(latex: re.Match[str]) -> str:
    """A fraction as text, apart from a whole number before it."""
    gap = " " if latex.string[latex.start() - 1 : latex.start()].isdigit() else ""
    return f"{gap}{latex[1]}/{latex[2]}"


def _ascii(sign: str) -> str:
    """A digit of any script as ASCII, a fraction such as ¾ as text; anything else as it is."""
    if sign.isdecimal():
        return str(unicodedata.decimal(sign))
    if unicodedata.decomposition(sign).startswith("<fraction>"):
        return " " + unicodedata.normalize("NFKC", sign).replace("\u2044", "/")
    return "/" if sign == "\u2044" else "$" if sign == "\uff04" else sign


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
