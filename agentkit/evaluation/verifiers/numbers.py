r"""Numbers in text, read exactly.

``final_number`` finds the number that an answer ends in. Thousands separators (``1,000``), currency
and percent signs, fractions (``3/4``, ``\frac{3}{4}``) and powers of ten (``1.5e3``) are read, and
the signs that are used for minus. Values are fractions of integers: nothing is rounded.

Not read: decimal commas, since ``3,5`` is as often a list; words (``seven``, ``2 million``);
arithmetic (``3 + 4`` ends in 4). A percent sign does not divide by a hundred.
"""

from __future__ import annotations

import re
import unicodedata
from decimal import Decimal
from fractions import Fraction

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
        >>> final_number("I cannot tell.") is None
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
    # by way of Decimal, for int() refuses texts of more than 4,300 digits
    over, under = (Fraction(Decimal(text)) for text in (number["over"], number["under"] or "1"))
    if not under:
        return None
    value = over / under * Fraction(10) ** int(power)
    return -value if number["sign"] else value


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
    text = "".join(
        str(unicodedata.decimal(sign)) if sign.isdecimal() and not sign.isascii() else sign
        for sign in text.translate(_SIGNS)
    )
    text = _LATEX.sub("", _LATEX_ESCAPED.sub(r"\1", text))
    text = _LATEX_FRACTION.sub(r"\1/\2", text)
    return _GROUPED.sub(lambda number: number[0].replace(",", ""), text)
