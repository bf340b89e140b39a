"""Numbers that stand in a text."""

from __future__ import annotations

import re

_NUMBER = re.compile(
    r"(?<![\w.])[-\u2212]?\d{1,3}(?:[ ,.'\u2019]\d{3})+(?:[.,]\d+)?(?!\d)"
    r"|(?:(?<!\w)[-\u2212])?\d+(?:[.,]\d+)?"
)
_THOUSANDS = re.compile(r"(?<=\d)[ ,.'\u2019](?=\d{3}(?!\d))")


def numbers_in(text: str) -> set[float]:
    """The numbers in a text, in each way in which they can be read.

    Example:
        >>> sorted(numbers_in("1.500 or 2,5, from 3-7"))
        [1.5, 2.5, 3.0, 7.0, 1500.0]
    """
    found: set[float] = set()
    for match in _NUMBER.finditer(text):
        found.update(readings_of(match.group()))
    return found


def readings_of(written: str) -> set[float]:
    """The numbers that one written number may mean: ``1.500`` is 1500 in German."""
    plain = written.replace("\u2212", "-")
    forms = {_THOUSANDS.sub("", plain).replace(",", "."), plain.replace(",", ".")}
    return {float(form) for form in forms if re.fullmatch(r"-?\d{1,300}(?:\.\d+)?", form)}
