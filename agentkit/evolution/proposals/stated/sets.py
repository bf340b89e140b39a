"""Lists of allowed values in the errors and descriptions of tools.

The phrases are those of validators in the wild (jsonschema, pydantic, zod, serde, argparse, Django,
our own) and of authors who write their errors by hand. Whatever is not clearly a whole list is not
one: a list that ends in "and 7 more", that follows "such as", or that runs into prose.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentkit.evolution.proposals.stated.statements import StatedSet

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
_PROSE = frozenset(
    {
        "a",
        "an",
        "any",
        "are",
        "as",
        "at",
        "be",
        "but",
        "by",
        "can",
        "for",
        "from",
        "got",
        "has",
        "have",
        "if",
        "in",
        "is",
        "it",
        "not",
        "of",
        "on",
        "only",
        "please",
        "than",
        "that",
        "the",
        "their",
        "these",
        "this",
        "those",
        "to",
        "use",
        "was",
        "when",
        "which",
        "with",
        "you",
        "your",
    }
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
