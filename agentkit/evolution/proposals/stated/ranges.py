"""Bounds and steps of numbers in the errors and descriptions of tools."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentkit.evolution.proposals.stated.statements import StatedRange

_N = r"[-+\u2212]?\d{1,15}(?:,\d{3}){0,4}(?:\.\d{1,15})?"
_AFTER = r"(?:\s?(?P<unit>%|°[CF]|[A-Za-z]{1,20}))?"

_BETWEEN = re.compile(
    rf"""\b(?:between|from|in\s+the\s+range(?:\s+of)?|range(?:s)?(?:\s+is|\s+from)?|within)\s*+:?\s*+
        [\[(]?\s*+(?P<low>{_N})\s*+%?\s*+(?:(?:\([^)]{{0,30}}\)\s*+)?)
        (?:and|to|through|-|\u2013|\u2014|\.\.|,)\s*+(?P<high>{_N})(?![\d-]){_AFTER}""",
    re.VERBOSE | re.IGNORECASE,
)
_MUST_BE = re.compile(
    rf"\b(?:must|should)\s+be\s+(?P<low>{_N})\s?(?:to|-|\u2013|\.\.)\s?(?P<high>{_N})(?![\d-]){_AFTER}",
    re.IGNORECASE,
)
_CHAIN = re.compile(
    rf"(?P<low>{_N})\s*(?P<left><=|≤|<)\s*[`'\w]{{1,40}}\s*(?P<right><=|≤|<)\s*(?P<high>{_N})"
)
_COMPARED = re.compile(
    rf"""(?P<negated>\b(?:not|cannot|can't|mustn't|never)\s+(?:be\s+|have\s+)?)?
        (?P<words>
            greater\s+than\s+or\s+equal\s+to | more\s+than\s+or\s+equal\s+to | at\s+least | >= | ≥
          | no\s+(?:less|fewer|smaller|lower)\s+than
          | (?:or\s+equal\s+to\s+the\s+|the\s+|a\s+)?
            minimum(?:\s+value)?(?:\s+allowed)?\s*(?:is|of|:|=)?
          | less\s+than\s+or\s+equal\s+to | at\s+most | <= | ≤ | up\s+to
          | no\s+(?:more|greater|larger|higher)\s+than
          | (?:or\s+equal\s+to\s+the\s+|the\s+|a\s+)?
            maximum(?:\s+value)?(?:\s+allowed)?\s*(?:is|of|:|=)?
          | (?:greater|more|larger|higher|bigger)\s+than | above | over | exceeds? | >
          | (?:less|fewer|smaller|lower)\s+than | below | under | <
        )\s*(?P<number>{_N})(?![\d-]){_AFTER}""",
    re.VERBOSE | re.IGNORECASE,
)
_IN_UNIT = re.compile(
    rf"(?:\s*+and\s++an?\s++multiple\s++of\s++{_N})?(?:\s*+,)?\s++in\s++(?P<unit>[A-Za-z]{{1,20}})\b",
    re.IGNORECASE,
)
_OR_MORE = re.compile(
    rf"(?P<number>{_N})\s+or\s+(?P<words>more|greater|above|higher|less|fewer|below|lower|smaller)\b",
    re.IGNORECASE,
)
_STEP = re.compile(
    rf"\b(?:multiples?\s+of|divisible\s+by|(?:steps|increments)\s+of)\s+(?P<number>{_N})",
    re.IGNORECASE,
)
_SIGN = re.compile(
    r"""\b(?:must|should|has\s+to)\s+be\s+(?:an?\s+)?
        (?P<sign>strictly\s+positive|positive|non-?negative|greater\s+than\s+zero|at\s+least\s+zero)\b
      | \b(?P<no>(?:must|can|should|may)\s?not\s+be\s+negative)\b""",
    re.VERBOSE | re.IGNORECASE,
)
_MODAL = re.compile(
    r"\b(?:must|should|shall|has\s+to|have\s+to|needs?\s+to|required|ensure|expected|only|allowed|"
    r"accepts?|can(?:not)?)\b",
    re.IGNORECASE,
)
_IS = re.compile(r"\b(?:is|was|are|were)\s+(?:not\s+)?$", re.IGNORECASE)
_COUNTED = frozenset(
    {
        "character",
        "characters",
        "char",
        "chars",
        "letter",
        "letters",
        "digit",
        "digits",
        "item",
        "items",
        "element",
        "elements",
        "entry",
        "entries",
        "word",
        "words",
        "byte",
        "bytes",
        "value",
        "values",
        "time",
        "times",
        "result",
        "results",
    }
)
UNITS = frozenset(
    {
        "second",
        "seconds",
        "minute",
        "minutes",
        "hour",
        "hours",
        "day",
        "days",
        "week",
        "weeks",
        "month",
        "months",
        "year",
        "years",
        "millisecond",
        "milliseconds",
        "metre",
        "metres",
        "meter",
        "meters",
        "kilometre",
        "kilometres",
        "kilometer",
        "kilometers",
        "km",
        "cm",
        "mm",
        "mile",
        "miles",
        "foot",
        "feet",
        "inch",
        "inches",
        "kg",
        "kilogram",
        "kilograms",
        "gram",
        "grams",
        "pound",
        "pounds",
        "percent",
        "%",
        "euro",
        "euros",
        "eur",
        "dollar",
        "dollars",
        "usd",
        "cents",
        "celsius",
        "fahrenheit",
        "kelvin",
        "degrees",
        "°c",
        "°f",
        "litre",
        "litres",
        "liter",
        "liters",
        "decilitres",
        "deciliters",
        "millilitres",
        "milliliters",
        "people",
        "persons",
        "guests",
        "passengers",
        "nights",
        "pages",
    }
)
"""Words that are taken for units behind a number."""


def stated_ranges(text: str) -> Iterator[StatedRange]:
    """The bounds that a text states, each on its own.

    "must be greater than 3" asks for more; "31 is greater than 30" says what is wrong, and asks for
    no more than 30.

    Example:
        >>> [(r.minimum, r.maximum, r.unit) for r in stated_ranges("between 1 and 30 days")]
        [(1.0, 30.0, 'days')]
        >>> [r.maximum for r in stated_ranges("31 is greater than the maximum of 30")]
        [30.0]
    """
    taken: list[tuple[int, int]] = []
    for pattern in (_CHAIN, _BETWEEN, _MUST_BE):
        for match in pattern.finditer(text):
            if not _overlaps(match, taken) and not _is_count(match):
                taken.append(match.span())
                yield from _both(match)
    for pattern, read in ((_COMPARED, _compared), (_OR_MORE, _or_more)):
        for match in pattern.finditer(text):
            if not _overlaps(match, taken) and not _is_count(match):
                yield read(match, text)
    yield from _steps(text)
    yield from _signs(text)


def _steps(text: str) -> Iterator[StatedRange]:
    for match in _STEP.finditer(text):
        step = number(match["number"])
        if step > 0:
            yield StatedRange(multiple_of=step, start=match.start())


def _signs(text: str) -> Iterator[StatedRange]:
    for match in _SIGN.finditer(text):
        sign = (match["sign"] or "").casefold()
        is_above = sign.endswith("positive") or sign.startswith("greater")
        yield StatedRange(minimum=0.0, above=is_above, start=match.start())


def number(text: str) -> float:
    """A number as it is written in a sentence.

    Example:
        >>> number("1,000"), number("-2.5")
        (1000.0, -2.5)
    """
    return float(text.replace(",", "").replace("\u2212", "-"))


def _overlaps(match: re.Match[str], taken: list[tuple[int, int]]) -> bool:
    return any(start < match.end() and match.start() < end for start, end in taken)


def _unit(match: re.Match[str]) -> str:
    """The unit behind the number, or behind the step as in "a multiple of 60, in minutes"."""
    word = (match.groupdict().get("unit") or "").casefold()
    if word in UNITS:
        return word
    later = _IN_UNIT.match(match.string, match.start("unit") if word else match.end())
    word = later["unit"].casefold() if later else ""
    return word if word in UNITS else ""


def _is_count(match: re.Match[str]) -> bool:
    """Whether the number counts characters or items, and is no bound of the value."""
    return (match.groupdict().get("unit") or "").casefold() in _COUNTED


def _both(match: re.Match[str]) -> Iterator[StatedRange]:
    low, high = number(match["low"]), number(match["high"])
    if low > high:
        return
    signs = match.groupdict()
    yield StatedRange(
        minimum=low,
        maximum=high,
        above=signs.get("left") == "<",
        below=signs.get("right") == "<",
        unit=_unit(match),
        start=match.start(),
    )


def _compared(match: re.Match[str], text: str) -> StatedRange:
    words = " ".join(match["words"].casefold().split())
    is_bound = "imum" in words
    is_low = words.startswith(
        ("greater", "more", "larger", "higher", "bigger", "at least", ">", "≥")
    )
    is_low = is_low or words in {"above", "over", "exceed", "exceeds"} or "minimum" in words
    is_low = is_low or words.startswith(("no less", "no fewer", "no smaller", "no lower"))
    is_itself = "equal" in words or words.startswith(("at ", ">=", "≥", "<=", "≤", "no ", "up to"))
    is_itself = "equal" not in words if is_bound else is_itself
    clause = re.split(r"[.;\n]", text[: match.start()])[-1]
    describes_fault = not is_bound and not _MODAL.search(clause) and bool(_IS.search(clause))
    if bool(match["negated"]) != describes_fault and not is_bound:
        is_low, is_itself = not is_low, not is_itself
    return _one_sided(match, is_low=is_low, is_itself=is_itself)


def _one_sided(match: re.Match[str], *, is_low: bool, is_itself: bool) -> StatedRange:
    value, unit, start = number(match["number"]), _unit(match), match.start()
    if is_low:
        return StatedRange(minimum=value, above=not is_itself, unit=unit, start=start)
    return StatedRange(maximum=value, below=not is_itself, unit=unit, start=start)


def _or_more(match: re.Match[str], _: str) -> StatedRange:
    is_low = match["words"].casefold() in {"more", "greater", "above", "higher"}
    return _one_sided(match, is_low=is_low, is_itself=True)
