"""Words that say nothing by themselves, and how texts say how a value is written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache

from agentkit.evolution.validation.phrases import sections as shipped_sections

_ENDING = re.compile(
    r"(?:ations?|ings?|ions?|ers?|ors?|ies|ied|ed|es|ly|al|en|er|te?n|(?<!s)s|e|y|a|o)$"
)
_LETTERS = re.compile(r"[^\W\d_]+")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_LONGEST_STEM = 7
_DOUBLED = frozenset("bdfgmnprt")


@lru_cache(maxsize=16_384)
def stem(word: str) -> str:
    """A word without its ending, roughly: only whether two words may be forms of one matters.

    Example:
        >>> stem("searching") == stem("searches"), stem("cities") == stem("city")
        (True, True)
    """
    for least in (3, 4, 4, 4):
        cut = _ENDING.sub("", word, count=1)
        if len(cut) < least or cut == word or not word.isascii():
            break
        word = cut[:-1] if cut[-1] == cut[-2] and cut[-1] in _DOUBLED else cut
    return word[:_LONGEST_STEM]


def stems_of(text: str) -> frozenset[str]:
    """The stems of the words of a folded text."""
    return frozenset(map(stem, _LETTERS.findall(text)))


def spaced(text: str) -> str:
    """A text with the words of names in camel case apart."""
    return _HUMP.sub(" ", text)


@cache
def word_stems(name: str) -> frozenset[str]:
    """The stems of a list of words in ``phrases/claims.txt``."""
    return stems_of(" ".join(shipped_sections("claims")[f"words of {name}"]))


def is_plain(word: str) -> bool:
    """Whether a folded word says nothing by itself (``phrases/plain_words.txt``)."""
    return stem(word) in PLAIN or word in PLAIN_ABROAD


def words(lines: Iterable[str]) -> Iterator[str]:
    """Every word of some lines."""
    for line in lines:
        yield from line.split()


@cache
def catalogue_nouns() -> frozenset[str]:
    """Nouns that many unrelated tools use (``tests/benchmarks/catalogue_words.py``)."""
    return frozenset(words(shipped_sections("catalogue_words")[""]))


SECTIONS: Mapping[str, tuple[str, ...]] = shipped_sections("plain_words")
_ENGLISH = ("grammar", "describing", "values", "writing", "subjects")
PLAIN = frozenset(stem(word) for name in _ENGLISH for word in words(SECTIONS[name]))
PLAIN_ABROAD = frozenset(
    word for name in ("de", "fr", "es", "pt", "it") for word in words(SECTIONS[name])
)
"""Of other languages words alone count: French *pays* is no form of the English verb."""

FORMAL = PLAIN - frozenset(map(stem, words(SECTIONS["subjects"])))
GRAMMAR = frozenset(
    stem(word) for name in ("grammar", "describing") for word in words(SECTIONS[name])
)
DESCRIBING = frozenset(map(stem, words(SECTIONS["describing"])))
ALIKE = tuple(frozenset(map(stem, line.split())) for line in SECTIONS["alike"])
BEFORE_OBJECTS = frozenset(
    ("the", "a", "an", "all", "any", "each", "every", "new", "old", "it", "them")
)
CAPITALS = frozenset(map(stem, ("capital", "uppercase")))
SMALL = frozenset(map(stem, ("small", "lowercase")))
WRITING = frozenset(map(stem, words(SECTIONS["writing"])))
PLAIN_UNSPACED = re.compile(
    "|".join(sorted((*words(SECTIONS["zh"]), *words(SECTIONS["ja"])), key=len, reverse=True))
)
UNITS, UNIT_NAMES = (
    {
        word: (dimension, line.partition(": ")[0])[which]
        for dimension, lines in shipped_sections("units").items()
        for line in lines
        for word in line.partition(": ")[2].split()
    }
    for which in (0, 1)
)
"""What each word of a unit measures, and which unit it is."""


COUNTS = {
    word: float(number)
    for number, words in enumerate(
        (
            "two zwei deux dos", "three drei trois tres", "four vier quatre cuatro",
            "five funf cinq cinco", "six sechs seis", "seven sieben sept siete",
            "eight acht huit ocho", "nine neun neuf nueve", "ten zehn dix diez",
            "eleven elf onze once", "twelve zwolf douze doce",
        ),
        start=2,
    )
    for word in words.split()
} | {
    "fifteen": 15.0, "twenty": 20.0, "thirty": 30.0, "forty": 40.0, "fifty": 50.0, "sixty": 60.0,
    "hundred": 100.0, "thousand": 1000.0,
}  # fmt: skip
HOW_LONG = re.compile(
    r"(?<![\w.,])(?<!least )(?<!most )(?<!up to )(?<!than )"
    rf"(\d{{1,3}}|{'|'.join(COUNTS)})(?=[- ](?:[^\W\d]+[- ])?"
    r"(?:digit|letter|character|decimal|ziffer|buchstabe|zeichen|chiffre|lettre|cifra|letra))"
)
"""*three letters*, *six digits*: how many characters a value has, and no limit of that."""

_ONE = (
    r"[`\"'“„«]?(?:[A-Z0-9][\w.+@/:-]{0,30}(?:(?<!\.)\s[A-Z][\w-]{0,20}){0,2}"
    r"|[\w.+*?-]{0,30}[\d@/_*][\w.+@/:*?-]{0,30}|(?!(?:in|of|is|it|as|by|to|no|if|or|on|at|and|the|not|for|per|all|any|one|its|but)\b)[a-z]{2,3})[`\"'”“»]?(?!\w)"
)
_AND = r"(?:,|/|、|\b(?:or|and|oder|und|ou|et|y|o|to)\b){1,2}"
_ONES = rf"{_ONE}(?:\s?{_AND}\s?{_ONE}){{0,5}}"
_AS = (
    r"(?:\b(?:[Ss]uch as|e\.g\.,?|[Ff]or (?:example|instance),?|[Ll]ike|z\. ?B\.|[Zz]um Beispiel"
    r"|[Pp]ar exemple|comme|[Pp]\. ?ej\.|[Pp]or ejemplo|como|beispielsweise|[Ee]xample:)\s"
    r"|(?:例如|比如|例えば|例|如):?)\s?"
)
EXAMPLE = re.compile(rf"{_AS}{_ONES}|\((?:e\.g\.,?\s?|z\. ?B\.\s?|如)?{_ONES}\)")
"""Values as examples: names with a capital, codes, numbers. Small words are words, and are read."""

_MAY_SHOW = re.compile(
    r"\(|such as|e\.g|xample|like|z\.|emple|emplo|instance|com[mo]|beispiel|ej\.|[例比如]",
    re.IGNORECASE,
)


def without_examples(text: str, instead: str = " ") -> str:
    """A text without the values that it names as examples."""
    return EXAMPLE.sub(instead, text) if _MAY_SHOW.search(text) else text


_SAYING = r"(?:[`\"“„«「『]\s?[^`\"”“»」』\n]{1,30}\s?[`\"”“»」』]|'[^'\n]{1,30}')(?!\w)"
QUOTED = re.compile(
    rf"{_AS}[`\"'“„«「『][^`\"'”“»」』\s]{{1,30}}[`\"'”“»」』](?!\w)|\b(?:not|nicht|statt)\s{_SAYING}"
    rf"|(?<!\w){_SAYING}(?=\s*(?:is|are|means?|=|:|stands|ist|heisst|est|es|は|是|表示)(?!\w))"
)
"""What users may say: an example, or what is explained (*"under 15k" is 15000*)."""

WIDE = str.maketrans("\uff08\uff09\uff1a\u2018\u2019", "():''")

_PEOPLE = r"(?:user|customer|caller|client|person|people|utilisateur|usuario|nutzer|kunde)"
WHAT_WAS_SAID = re.compile(
    rf"\b{_PEOPLE}s? (?:also |did not |does not |do not |has |have |n'est |no )*"
    r"(?:ask|name|say|said|mention|give|gave|given|want|mean|meant|specif|state|need|provide|write|wrote|care|know"
    rf"|dice|pide)\w*|\b(?:none|nothing|not|was|is|were|are) mentioned\b"
    rf"|\bask(?:ing)? (?:the )?{_PEOPLE}s?\b|用户(?:只|所)?(?:说|问|提供|指定|给出)"
)
"""What was said decides over arguments; any other word about people is one that is read."""

_N = rf"(?:-?\d|(?:{'|'.join(COUNTS)}|one)\b)"
_MORE = r"(?:more|less|fewer|greater|higher|lower|longer|shorter|larger|smaller)"
_MOST = r"(?:most|least|highest|lowest|largest|smallest)"
BOUND = re.compile(
    r"\bat (?:the )?(?:most|least)\b"
    rf"|\b(?:(?:no|not|never) )?(?:{_MORE} than(?: or equal to)?|above|below|over|under|beyond"
    r"|exceed(?:s|ing)?|up to|limited to|capped at|starting at|hochstens|mindestens|bis zu|au plus"
    r"|au moins|como (?:maximo|minimo)|no maximo|pelo menos|hasta|jusqu'a)"
    rf"(?= ?{_N})|\bnever(?= {_MORE} than ?{_N})"
    rf"|(?<=\d) (?:or|and|being|is the) (?:{_MORE}|above|below|up|{_MOST}\b)"
    rf"|(?<=\d) (?:the )?{_MOST}\b|\b{_MOST}(?= (?:\w+ )?(?:is|are|of|:) ?{_N})"
)
"""Words of a limit, whose number is asked for instead."""

OF_FORM = re.compile(
    r"\bone or more\b|\bbetween (?:the )?two\b|\bin a few words\b|\bover all\b|\bnow or at\b"
    r"|\bhow (?:old|long|far|big|tall|deep|high|wide|fast|often)\b"
    r"|\b(?:comes?|given|returned) back\b|\bnot what is inside\b"
    r"|\bonly (?:those|the ones|these)"
    r"(?= (?:in|of|with|from|that|which|whose|since|after|before)\b)"
    r"|\b(?:into|in|to|of|for) another(?= (?:language|currency|unit|format|country|city|date)\b)"
    r"|\b(?:upper|lower)(?:[- ]?case\w*|(?= (?:or|and) (?:upper|lower)\b))"
    r"|\biso[- ]?\d{3,5}(?:-\d)?\b|\blast(?= name\b)|\bfrom one (?:\w+ ){1,2}(?:in)?to another\b"
    r"|\bfirst(?= (?:day|week|month|year|name|letter|digit|character|word|page|line|row|item)s?\b)"
    r"|(?<=est )first\b|\b(?:last|past)(?= \d+ (?:second|minute|hour|day|week|month|year)s?\b)"
    r"|\brelative(?= to (?:the|its)\b)"
)
"""Words that move a value elsewhere; here they say how it is written, or which part is meant."""

OF_ALL_TALK = re.compile(
    r"\b(?:in|on|for|with|at|to|before|after|during|from) (?:every|each|any|all)(?: of)?"
    r"(?: (?:the|its|your))?(?: \w+)? (?:request|quer|question|answer|message|response|repl|input"
    r"|case|moment|turn|conversation|word|text|result|step)"
    r"|\b(?:every|each) time\b|\bat (?:all times|any time)\b"
    r"|\bkeep (?:on )?(?:call|us|ask|search|fetch|read)ing\b"
)
"""A tool for whatever is talked about: plain words, but none describes a call."""

BY_DEFAULT = re.compile(
    r"\b(?:by default|defaults? (?:to|is|value)|(?:is|as) (?:the )?default|the default"
    r"|standardmassig|par defaut|por defecto|(?:when|if) (?:it is |this is )?(?:left out|omitted"
    r"|absent|missing|empty|not (?:given|set|specified|provided)))\b|默认|既定"
)
"""What is taken when a value is not given: schema or text so far must say the same."""

UNLESS_GIVEN = re.compile(
    r"\bunless (?:another|other|something else|a different)\b(?: \w+)? (?:is |are )?(?:given|set)\b"
)
_MASK_PART = r"(?>y{4}|j{4}|a{4}|yy|jj|mm|dd|tt|hh|ss)"
_MASK = re.compile(rf"(?<![^\W_]){_MASK_PART}(?:[-/.: ]?(?:t(?=hh))?{_MASK_PART})++z?(?![^\W_])")
WRITTEN_SO = re.compile(rf"(?:\b(?:written|given) (?:as|like|in the form(?:at)?) )?{_MASK.pattern}")
_YEARS = re.compile(r"j{4}|a{4}")
_DAYS = re.compile(r"jj|tt")
_DATE_OR_TIME = re.compile(
    r"(?<![\w./-])(?:(\d{4})([-/.])\d\d\2\d\d|\d\d([-/.])\d\d\3\d{4}|\d\d(?::\d\d){1,2})(?![\w/-])"
)
ISO = frozenset({"yyyy-mm-dd", "yyyy-mm", "hh:mm", "hh:mm:ss"})
"""How dates and times are written where a tool shows no other way."""


def masks(text: str) -> Iterator[str]:
    """The forms of dates and times that a folded text has, in letters or in examples."""
    for match in _MASK.finditer(text):
        mask = _DAYS.sub("dd", _YEARS.sub("yyyy", match.group().rstrip("z")))
        yield from re.split(r"t| (?=hh)", mask)
    for match in _DATE_OR_TIME.finditer(text):
        value, (year, one, other) = match.group(), match.groups()
        if year:
            yield f"yyyy{one}mm{one}dd"
        elif other:
            yield from (f"dd{other}mm{other}yyyy", f"mm{other}dd{other}yyyy")
        else:
            yield "hh:mm:ss"[: len(value)]


def shown(text: str) -> Iterator[str]:
    """The examples that a text gives itself: *two letters such as FR* is of a piece."""
    for match in EXAMPLE.finditer(text):
        yield from re.findall(r"[\w.-]+", match.group())


_SECONDS = {
    "second": 1, "minute": 60, "hour": 3_600, "day": 86_400, "week": 604_800,
    "month": 2_629_746, "year": 31_556_952, "decade": 315_569_520,
}  # fmt: skip
_UNIT = rf"({'|'.join(_SECONDS)})s?"
_COUNT = rf"(\d+|an?|one|half an?|{'|'.join(COUNTS)})"
_CONVERTED = re.compile(
    rf"[\"'`]?\b{_COUNT} {_UNIT}[\"'`]? ?(?:=|is|are|means?) (\d+)\b(?: {_UNIT}\b)?", re.IGNORECASE
)
_DIGIT = re.compile(r"\d")
_MONTHS = [
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
]  # fmt: skip
_WRITTEN_OUT = re.compile(
    rf"\b(\d\d?) ({'|'.join(_MONTHS)}) (\d{{4}})(?: is|:| =) (\d{{4}})-(\d\d)-(\d\d)\b",
    re.IGNORECASE,
)


def borne_out(text: str, parameter: str, before: str) -> str:
    """A text without what arithmetic bears out: units converted rightly, and dates written twice.

    Example:
        >>> borne_out("Term: 3 years are 36 months, 4 years are 50 months.", "months", "")
        'Term:  , 4 years are 50 months.'
    """
    if not _DIGIT.search(text):
        return text
    own = next((unit for unit in _SECONDS if unit in f"{parameter} {before}".casefold()), "")

    def converted(found: re.Match[str]) -> str:
        written, unit, result, other = (part and part.casefold() for part in found.groups())
        count = COUNTS.get(written) or (float(written) if written.isdigit() else 1.0)
        count = 0.5 if written.startswith("half") else count
        other = other or own
        is_right = other and round(count * _SECONDS[unit] / _SECONDS[other], 3) == float(result)
        return " " if is_right else found.group()

    def dated(found: re.Match[str]) -> str:
        day, month, year, *iso = found.groups()
        is_same = [int(year), _MONTHS.index(month.casefold()) + 1, int(day)] == [*map(int, iso)]
        return " " if is_same else found.group()

    return _WRITTEN_OUT.sub(dated, _CONVERTED.sub(converted, text))
