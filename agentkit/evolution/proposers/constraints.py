"""Constraints that tools state themselves, in their errors and in their descriptions.

Texts of tools are foreign. They are searched with patterns whose repetitions are bounded, and cut
before that; nothing in them is ever followed or run.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from agentkit.tools.formats import FORMAT_EXAMPLES
from agentkit.tools.patterns import is_compilable
from agentkit.tools.rules import JsonScalar, NamedFormat

# --- What a tool says about its arguments, as data -----------------------------------------------


def _word_set(text: str) -> frozenset[str]:
    """The words of a text, where a set of many reads better as lines of words."""
    return frozenset(text.split())


@dataclass(frozen=True, kw_only=True, slots=True)
class StatedSet:
    """A list of the values that are taken.

    Attributes:
        values: The values in the order in which they are told; as texts where they were read from
            one, whatever type they are to be of.
        is_closed: Whether the list is all there is: not cut short, and no mere examples.
        start: Where in the text it begins.
    """

    values: tuple[JsonScalar, ...]
    is_closed: bool = True
    start: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class StatedRange:
    """Bounds of a number.

    Attributes:
        minimum: The lower bound; None for none.
        maximum: The upper bound; None for none.
        above: Whether ``minimum`` itself is too small.
        below: Whether ``maximum`` itself is too large.
        multiple_of: The step; None for none.
        unit: What is counted, in a word; empty when the text does not say.
        start: Where in the text it begins.
    """

    minimum: float | None = None
    maximum: float | None = None
    above: bool = False
    below: bool = False
    multiple_of: float | None = None
    unit: str = ""
    start: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class StatedForm:
    """The form of a text.

    Attributes:
        format: A form that has a name; empty when there is none.
        pattern: A regular expression that the whole text matches; empty when ``format`` says it,
            and when the form can only be told in words.
        words: The form in words.
        example: A text of that form; empty when none is known.
        start: Where in the text it begins.
    """

    format: NamedFormat | Literal[""] = ""
    pattern: str = ""
    words: str = ""
    example: str = ""
    start: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class StatedOrder:
    """One parameter stands in an order to another one.

    Attributes:
        left: Name of a parameter.
        sign: How it compares.
        right: Name of the other parameter.
        start: Where in the text it begins.
    """

    left: str
    sign: Literal["<", "<="]
    right: str
    start: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class StatedNeed:
    """One parameter needs another one.

    Attributes:
        parameter: The parameter that is given.
        other: The one that must be given with it.
        start: Where in the text it begins.
    """

    parameter: str
    other: str
    start: int = 0


Statement: TypeAlias = StatedSet | StatedRange | StatedForm | StatedOrder | StatedNeed


# --- Lists of allowed values in the errors and descriptions of tools -----------------------------
# The phrases are those of validators in the wild (jsonschema, pydantic, zod, serde, argparse,
# Django,
# our own) and of authors who write their errors by hand. Whatever is not clearly a whole list is
# not
# one: a list that ends in "and 7 more", that follows "such as", or that runs into prose.


_CUE = re.compile(
    r"""
    (?P<strong>
        \b(?:not\s+)?(?:any\s+|either\s+)?one[ ]of(?:\s+the\s+following)?(?:\s+(?:values|options))?
      | \bchoose\s+from
      | \b(?:allowed|valid|permitted|supported|accepted|acceptable|possible|available)\s+
        (?:values?|options?|choices?|members?|entries|types?|units?|modes?|formats?|codes?)
        (?:\s+(?:are|is|include))?
      | \b(?:allowed|supported|permitted|valid|accepted)(?=\s*:)
      | \b(?:options?|choices?)\s*(?=:)
      | \boptions\s+are
      | \bnot\s+in(?=\s*[\[({])
    )
  | (?P<weak>
        \b(?:must|should|has\s+to|can\s+only|may\s+only|can)\s+be(?:\s+either|\s+set\s+to|\s+in)?
        (?=\s*['"`\u2018\u201c\d\[({-])
      | \bexpected(?=:?\s*['"`\u2018\u201c])
      | \beither(?=\s+['"`\u2018\u201c])
    )
    """,
    re.VERBOSE | re.IGNORECASE,
)
_QUOTED = re.compile(
    r"""'(?P<single>(?:[^'\\\n]|\\.){0,200})' | "(?P<double>(?:[^"\\\n]|\\.){0,200})"
      | `(?P<tick>[^`\n]{0,200})` | \u2018(?P<curly>[^\u2019\n]{0,200})\u2019
      | \u201c(?P<curly2>[^\u201d\n]{0,200})\u201d""",
    re.VERBOSE,
)
_BARE = re.compile(r"[^\s,;|\[\](){}'\"`:…]{1,60}(?:[ ][^\s,;|\[\](){}'\"`:…]{1,60}){0,3}")
_BEYOND = re.compile(r"\s(?:and|or|but|got)(?:\s|$)|[.!?]\s")
_NUMBER = re.compile(r"[-+]?\d{1,15}(?:\.\d{1,15})?")
_JOINER = re.compile(r"\s*(?:(?:,|;|\||/)\s*(?:(?:and|or)\b\s*)?|\b(?:and|or)\b\s*)", re.IGNORECASE)
_LEAD = re.compile(r"\s*(?:are\b|is\b)?\s*[:=]?\s*(?P<bracket>[\[({<])?\s*", re.IGNORECASE)
_CLOSERS = {"[": "]", "(": ")", "{": "}", "<": ">"}
_END = re.compile(
    r"\s*(?:$|[.!?](?:\s|$|['\")\]])|\n|[,;:(\[\u2014-]*\s*+(?:but\s++)?(?:got|received|found|was|not|"
    r"input|type|you\s+gave|instead|given)\b|\[|\)|;|\u2014)",
    re.IGNORECASE,
)
_CUT_SHORT = re.compile(
    r"…|\.\.\.|\betc\b|\bmore\b|\bothers?\b|\band\s+so\s+on\b|\bsuch\s+as\b|\be\.g\b|\bfor\s+example\b"
    r"|\bfor\s+instance\b|\bincluding\b|\blike\b",
    re.IGNORECASE,
)
_PROSE = _word_set(
    """
    a an any are as at be but by can for from got has have if in is it not of on only please
    than that the their these this those to use was when which with you your
    """
)
_BOUNDS = frozenset({"between", "above", "below", "positive"})
_SLASHED = re.compile(r"\((?P<list>[^\s()/,;]{1,30}(?:\s?/\s?[^\s()/,;]{1,30}){1,30})\)")
_MOST_VALUES = 200
_CUT_BY_RECORD = 500


def stated_sets(text: str) -> Iterator[StatedSet]:
    """The lists of values in a text.

    Example:
        >>> [found.values for found in stated_sets("periods must be one of 36, 48 or 60, got 31")]
        [('36', '48', '60')]
        >>> list(stated_sets("Valid values: a, b, c and 9 more."))
        []
    """
    position = 0
    while (cue := _CUE.search(text, position)) is not None:
        found, position = _listed(text, cue)
        if found is not None:
            yield found
        position = max(position, cue.end())


def slashed_sets(text: str) -> Iterator[StatedSet]:
    """Lists in brackets, as descriptions have them: ``Loan term (36/48/60)``.

    Example:
        >>> [found.values for found in slashed_sets("Loan term (36/48/60).")]
        [('36', '48', '60')]
    """
    for found in _SLASHED.finditer(text):
        values = tuple(part.strip("'\"` ") for part in found["list"].split("/"))
        if len(set(values)) == len(values) and all(values):
            yield StatedSet(values=values, start=found.start())


def _listed(text: str, cue: re.Match[str]) -> tuple[StatedSet | None, int]:
    lead = _LEAD.match(text, cue.end())
    position = cue.end() if lead is None else lead.end()
    closer = _CLOSERS.get((lead["bracket"] or "") if lead else "", "")
    values: list[tuple[str, bool]] = []
    joined_by: list[str] = []
    while len(values) < _MOST_VALUES:
        item, after = _item(text, position)
        if item is None:
            break
        values.append(item)
        position = after
        joined = _JOINER.match(text, position)
        if joined is None or joined.end() == position:
            break
        if _ends_here(text, position, closer) and not _QUOTED.match(text, joined.end()):
            break
        joined_by.append(joined[0].strip())
        position = joined.end()
    is_quoted = all(quoted for _, quoted in values)
    if not is_quoted and set(joined_by) != {"or"} and any(map(str.isalpha, joined_by[:-1])):
        return None, position  # "Food and Beverages, VIP Seating": the word is part of a value
    return _judged(text, cue, values, position, closer), position


def _item(text: str, position: int) -> tuple[tuple[str, bool] | None, int]:
    """The value at a position, whether it is quoted, and where it ends."""
    quoted = _QUOTED.match(text, position)
    if quoted is not None:
        inside = next(part for part in quoted.groups() if part is not None)
        return (_unescaped(inside), True), quoted.end()
    bare = _BARE.match(text, position)
    if bare is None:
        return None, position
    words = _BEYOND.split(bare[0], maxsplit=1)[0].rstrip(".!?")
    return ((words, False), position + len(words)) if words else (None, position)


def _unescaped(text: str) -> str:
    return text.replace("\\'", "'").replace('\\"', '"').replace("\\\\", "\\")


def _ends_here(text: str, position: int, closer: str) -> bool:
    if closer:
        return text[position : position + 1] == closer
    return _END.match(text, position) is not None


def _judged(
    text: str, cue: re.Match[str], values: list[tuple[str, bool]], position: int, closer: str
) -> StatedSet | None:
    """The list, if what was read is one."""
    texts = [value for value, _ in values]
    if not values or len(set(texts)) < len(texts) or not all(texts):
        return None
    bare = [value for value, quoted in values if not quoted]
    numbers = [value for value in bare if _NUMBER.fullmatch(value)]
    if cue["weak"]:
        is_interval = closer and len(values) == 2 and len(numbers) == 2
        if len(numbers) < len(bare) or len(values) < 2 or is_interval:
            return None
    if not _is_listing(bare, numbers, closer):
        return None
    rest = re.split(r"[.;)\]\n]\s", text[position : position + 12])[0]
    if not _ends_here(text, position, closer):
        return None
    is_cut = bool(_CUT_SHORT.search(" ".join(bare) + rest))
    is_cut |= bool(_CUT_SHORT.search(text[cue.start() : cue.end()]))
    is_cut |= len(text) >= _CUT_BY_RECORD and position >= len(text) - 1
    is_cut |= len(values) >= _MOST_VALUES or any("\\" in value for value in texts)
    return StatedSet(values=tuple(texts), is_closed=not is_cut, start=cue.start())


def _is_listing(bare: list[str], numbers: list[str], closer: str) -> bool:
    """Whether values without quotation marks are values, and not the beginning of a sentence."""
    words = {word for value in bare if " " in value for word in value.casefold().split()}
    if (words | set(bare)) & _PROSE or (bare and bare[0].split()[0].casefold() in _BOUNDS):
        return False
    if len(bare) == 1 and not closer and not numbers:
        return False
    # "36, 48, 60 months": the last one is a number with its unit
    return not numbers or not any(value[0].isdigit() for value in bare if value not in numbers)


# --- Bounds and steps of numbers in the errors and descriptions of tools -------------------------


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
_COUNTED = _word_set(
    """
    character characters char chars letter letters digit digits item items element elements
    entry entries word words byte bytes value values time times result results
    """
)
UNITS = _word_set(
    """
    second seconds minute minutes hour hours day days week weeks month months year years
    millisecond milliseconds metre metres meter meters kilometre kilometres kilometer kilometers
    km cm mm mile miles foot feet inch inches kg kilogram kilograms gram grams pound pounds
    percent % euro euros eur dollar dollars usd cents celsius fahrenheit kelvin degrees °c °f
    litre litres liter liters decilitres deciliters millilitres milliliters people persons
    guests passengers nights pages
    """
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


# --- Forms of texts in the errors and descriptions of tools: dates, codes, patterns, addresse ----
# Forms of texts in the errors and descriptions of tools: dates, codes, patterns, addresses.


_TOKENS: Mapping[str, tuple[str, str]] = {
    "YYYY": (r"\d{4}", "2026"),
    "yyyy": (r"\d{4}", "2026"),
    "MM": (r"(0[1-9]|1[0-2])", "05"),
    "DD": (r"(0[1-9]|[12]\d|3[01])", "31"),
    "dd": (r"(0[1-9]|[12]\d|3[01])", "31"),
    "HH": (r"([01]\d|2[0-3])", "14"),
    "hh": (r"([01]\d|2[0-3])", "14"),
    "mm": (r"[0-5]\d", "30"),
    "SS": (r"[0-5]\d", "00"),
    "ss": (r"[0-5]\d", "00"),
    "YY": (r"\d{2}", "26"),
}
_PICTURE = re.compile(
    r"(?<![A-Za-z])(?:YYYY|yyyy|MM|DD|dd|HH|hh|YY)"
    r"(?:[-/.: T]?(?:YYYY|yyyy|YY|MM|DD|dd|HH|hh|mm|SS|ss)){1,6}Z?(?![A-Za-z])"
)
_STRFTIME = re.compile(r"%[YmdHMSy](?:[-/.: T]?%[YmdHMSy]){1,6}Z?")
_OF_STRFTIME = {
    "%Y": "YYYY",
    "%m": "MM",
    "%d": "DD",
    "%H": "HH",
    "%M": "mm",
    "%S": "SS",
    "%y": "YY",
}
_NAMED = re.compile(
    r"""\b(?:ISO[ -]?8601\s+)?(?P<shown>date-time|date|time|email|uri|uuid)\s+such\s+as\b
      | \bis\s+not\s+an?\s+'(?P<quoted>date-time|date|time|email|uri|uuid)'
      | \bISO[ -]?8601\s+(?P<iso>date-?time|timestamp|date\s+and\s+time|date)\b
      | \bvalid\s+(?P<valid>e-?mail(?:\s+address)?|URL|URI|UUID)\b""",
    re.VERBOSE | re.IGNORECASE,
)
_FORMAT_OF: Mapping[str, NamedFormat] = {
    "date": "date",
    "time": "time",
    "date-time": "date-time",
    "datetime": "date-time",
    "timestamp": "date-time",
    "date and time": "date-time",
    "email": "email",
    "e-mail": "email",
    "email address": "email",
    "e-mail address": "email",
    "uri": "uri",
    "url": "uri",
    "uuid": "uuid",
}
_MATCHES = re.compile(
    r"""(?:match(?:es)?\s++(?:the\s++)?(?:pattern|regex(?:p)?|regular\s++expression)?\s*+:?\s*+)
        (?:'(?P<quoted>[^'\n]{1,200})' | "(?P<double>[^"\n]{1,200})" | `(?P<tick>[^`\n]{1,200})`
          | (?P<bare>\^[^\n]{1,200}?\$)(?=,?\s|$|\.))""",
    re.VERBOSE,
)


def stated_forms(text: str) -> Iterator[StatedForm]:
    """The forms that a text states.

    A form that has a name in JSON Schema comes as that, any other one as a regular expression.

    Example:
        >>> [form.format for form in stated_forms("the day must be given as YYYY-MM-DD")]
        ['date']
    """
    pictured = False
    for picture, start in _pictures(text):
        pictured = True
        yield _of_picture(picture, start)
    if pictured:
        return
    yield from _named(text)
    yield from _patterns(text)


def form_of_pattern(pattern: str, *, start: int = 0) -> StatedForm | None:
    """The form that a pattern of JSON Schema states, if it states that of the whole text.

    None for a pattern that may match anywhere, as schemas allow: a rule speaks of whole texts. None
    too for one that is not matched in linear time.
    """
    if not is_compilable(pattern):
        return None
    if not (pattern.startswith("^") and pattern.endswith("$")) or _has_alternatives(pattern):
        return None
    return StatedForm(pattern=pattern, words=f"text that matches {pattern}", start=start)


def is_own_form(words: str, pattern: str) -> bool:
    """Whether a form is told in words of this module, built of its own tokens alone.

    Example:
        >>> is_own_form("", "")
        True
        >>> is_own_form("text that matches ^password$", "^password$")
        False
    """
    if not words and not pattern:
        return True
    made = (_of_picture(picture, at) for picture, at in _pictures(words))
    return any((form.words, form.pattern) == (words, pattern) for form in made)


def _has_alternatives(pattern: str) -> bool:
    """Whether a bar stands outside of all groups, so that an anchor binds one side only."""
    bare = re.sub(r"\\.|\[\^?\]?[^\]]*\]", "", pattern)
    depth = 0
    for character in bare:
        depth += (character == "(") - (character == ")")
        if character == "|" and not depth:
            return True
    return False


def _pictures(text: str) -> Iterator[tuple[str, int]]:
    for match in _PICTURE.finditer(text):
        yield match[0], match.start()
    for match in _STRFTIME.finditer(text):
        yield re.sub("%[YmdHMSy]", lambda token: _OF_STRFTIME[token[0]], match[0]), match.start()


def _of_picture(picture: str, start: int) -> StatedForm:
    if picture in {"YYYY-MM-DD", "yyyy-MM-dd", "yyyy-mm-dd"}:
        return StatedForm(format="date", example=FORMAT_EXAMPLES["date"], start=start)
    pattern, example, rest, hours = "^", "", picture, False
    while rest:
        letters = next((known for known in _TOKENS if rest.startswith(known)), rest[0])
        meant = "mm" if letters == "MM" and hours else letters  # HH:MM is hours and minutes
        hours = hours or letters in {"HH", "hh"}
        part, shown = _TOKENS.get(meant, (letters.replace(".", r"\."), letters))
        pattern, example = pattern + part, example + shown
        rest = rest[len(letters) :]
    return StatedForm(pattern=f"{pattern}$", words=picture, example=example, start=start)


def _named(text: str) -> Iterator[StatedForm]:
    for match in _NAMED.finditer(text):
        word = next(part for part in match.groups() if part is not None)
        name = _FORMAT_OF[" ".join(word.casefold().split())]
        yield StatedForm(format=name, example=FORMAT_EXAMPLES[name], start=match.start())


def _patterns(text: str) -> Iterator[StatedForm]:
    for match in _MATCHES.finditer(text):
        pattern = next(part for part in match.groups() if part is not None)
        found = form_of_pattern(pattern, start=match.start())
        if found is not None:
            yield found


# --- What a tool says about two of its parameters together ---------------------------------------


_Q = r"[`'\"]?"
_NAME = r"(?P<{0}>\w{{1,60}})"
_LEFT, _RIGHT = _Q + _NAME.format("left") + _Q, _Q + _NAME.format("right") + _Q
_ORDER = re.compile(
    rf"""{_LEFT}\s+(?P<words>
            (?:must|should|has\s+to|needs\s+to)\s+(?:be\s+|lie\s+)?(?:
                on\s+or\s+before
              | not\s+(?:be\s+)?(?:after|later\s+than|exceed|greater\s+than|more\s+than)
              | before|earlier\s+than|less\s+than\s+or\s+equal\s+to|at\s+most|less\s+than
              | smaller\s+than|below
              | on\s+or\s+after|not\s+(?:be\s+)?(?:before|earlier\s+than|less\s+than)
              | after|later\s+than|greater\s+than\s+or\s+equal\s+to|at\s+least|greater\s+than
              | more\s+than|above)
          | (?:must\s+not|cannot|can't|may\s+not)\s+(?:be\s+)?(?:
                after|later\s+than|exceed|greater\s+than|more\s+than
              | before|earlier\s+than|less\s+than)
          | <=|<|>=|>
        )\s+(?:the\s+)?{_RIGHT}(?!\w)""",
    re.VERBOSE | re.IGNORECASE,
)
_NEED = re.compile(
    rf"""{_LEFT}\s+(?:is|are|must\s+be)\s+(?:required|given|needed|provided|set)\s+
         (?:when|if|with|together\s+with|along\s+with)\s+(?:using\s+)?{_RIGHT}
       | {_Q}(?P<given>\w{{1,60}}){_Q}\s+(?:requires|needs|must\s+be\s+used\s+with)\s+
         (?:the\s+)?{_Q}(?P<other>\w{{1,60}}){_Q}""",
    re.VERBOSE | re.IGNORECASE,
)
_SMALLER = ("before", "earlier", "less", "smaller", "below", "at most", "on or before", "<")
_ITSELF = ("on or", "equal", "at most", "at least", "<=", ">=")


def stated_orders(text: str, names: Collection[str]) -> Iterator[StatedOrder]:
    """Which parameter may not be greater, or later, than which other one.

    Args:
        text: What the tool says.
        names: Names of its parameters.

    Example:
        >>> list(stated_orders("`start` must be before `end`", ["start", "end"]))
        [StatedOrder(left='start', sign='<', right='end', start=0)]
        >>> list(stated_orders("low must not exceed high", ["low", "high"]))
        [StatedOrder(left='low', sign='<=', right='high', start=0)]
    """
    for match in _ORDER.finditer(text):
        left, right = match["left"], match["right"]
        if left == right or left not in names or right not in names:
            continue
        words = " ".join(match["words"].casefold().split())
        is_negated = "not" in words or "can't" in words
        is_smaller = any(word in words for word in _SMALLER)
        is_itself = any(word in words for word in _ITSELF)
        if is_negated:
            is_smaller, is_itself = not is_smaller, not is_itself
        if not is_smaller:
            left, right = right, left
        yield StatedOrder(
            left=left, sign="<=" if is_itself else "<", right=right, start=match.start()
        )


def stated_needs(text: str, names: Collection[str]) -> Iterator[StatedNeed]:
    """Which parameter must be given with which other one.

    Example:
        >>> [(n.parameter, n.other)
        ...  for n in stated_needs("`currency` is required when `budget` is given",
        ...                        ["currency", "budget"])]
        [('budget', 'currency')]
    """
    for match in _NEED.finditer(text):
        given, other = match["right"] or match["given"], match["left"] or match["other"]
        if given != other and given in names and other in names:
            yield StatedNeed(parameter=given, other=other, start=match.start())


# --- Reading what tools say about their arguments: in their errors, and in their descriptions ----
# Texts of tools are foreign. They are searched with patterns whose repetitions are bounded, and
# cut
# before that; nothing in them is ever followed or run.


LONGEST_TEXT = 4_000
"""Characters of a text that are read."""


def stated_in_error(text: str, names: Collection[str] = ()) -> tuple[Statement, ...]:
    """What an error says about arguments.

    Args:
        text: The error.
        names: Names of the tool's parameters, by which statements about two of them are known.

    Example:
        >>> stated_in_error("ValueError: unit must be 'celsius' or 'kelvin', got 'F'")
        (StatedSet(values=('celsius', 'kelvin'), is_closed=True, start=17),)
    """
    return tuple(_statements(text[:LONGEST_TEXT], names))


def stated_in_description(text: str) -> tuple[Statement, ...]:
    """What the text of a parameter says about its values; lists in brackets count too."""
    shown = text[:LONGEST_TEXT]
    return (*_statements(shown, ()), *slashed_sets(shown))


def stated_values(texts: Iterable[str]) -> frozenset[str]:
    """Every value that texts of a tool state themselves, as texts: list members and bounds.

    Example:
        >>> sorted(stated_values(["must be one of 36, 48, got 31", "at most 90"]))
        ['36', '48', '90']
    """
    found: set[str] = set()
    for text in texts:
        for one in stated_in_error(text):
            if isinstance(one, StatedSet):
                found.update(map(str, one.values))
            elif isinstance(one, StatedRange):
                bounds = (one.minimum, one.maximum, one.multiple_of)
                found.update(f"{bound:g}" for bound in bounds if bound is not None)
    return frozenset(found)


def _statements(text: str, names: Collection[str]) -> Iterator[Statement]:
    sets = tuple(stated_sets(text))
    yield from sets
    yield from stated_ranges(text)
    yield from stated_forms(text)
    yield from stated_orders(text, names)
    yield from stated_needs(text, names)
