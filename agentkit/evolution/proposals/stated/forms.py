"""Forms of texts in the errors and descriptions of tools: dates, codes, patterns, addresses."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from agentkit.evolution.proposals.stated.statements import StatedForm
from agentkit.tools.formats import FORMAT_EXAMPLES
from agentkit.tools.patterns import is_compilable
from agentkit.tools.rules import NamedFormat

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
_COUNTS = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "eight": 8, "ten": 10}
_LETTERS = re.compile(
    r"\b(?:exactly\s+)?(?P<count>two|three|four|five|six|eight|ten|\d{1,2})[- ]"
    r"(?P<case>upper-?case\s+|capital\s+)?(?P<kind>letters?|digits?)\b(?!\s+or\b)",
    re.IGNORECASE,
)
_ISO_CODES = {"alpha-2": 2, "alpha-3": 3, "4217": 3}
_ISO_CODE = re.compile(r"\bISO[ -]?(?:3166(?:-1)?\s+)?(?P<code>alpha-[23]|4217)\b", re.IGNORECASE)
_WORDED = re.compile(
    r"""\b(?:format(?:ted)?|form)(?:\s++(?:of|as|is|like))?\s*+:?\s*+['"\u2018\u201c]
        (?P<picture>[A-Za-z][^'"\u2018\u2019\u201c\u201d\n]{2,60})['"\u2019\u201d]""",
    re.VERBOSE | re.IGNORECASE,
)


def stated_forms(text: str) -> Iterator[StatedForm]:
    """The forms that a text states.

    A form that has a name in JSON Schema, or that a regular expression says exactly, comes as that;
    any other one (``'City, State'``) in words only.

    Example:
        >>> [form.format for form in stated_forms("the day must be given as YYYY-MM-DD")]
        ['date']
        >>> [form.words for form in stated_forms("use the format 'City, State'")]
        ["text in the form 'City, State'"]
    """
    pictured = False
    for picture, start in _pictures(text):
        pictured = True
        yield _of_picture(picture, start)
    if pictured:
        return
    yield from _named(text)
    yield from _patterns(text)
    yield from _codes(text)
    for match in _WORDED.finditer(text):
        words = f"text in the form '{match['picture']}'"
        yield StatedForm(words=words, start=match.start())


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
        >>> is_own_form("3 capital letters", "^[A-Z]{3}$"), is_own_form("", "")
        (True, True)
        >>> is_own_form("text that matches ^password$", "^password$")
        False
    """
    if not words and not pattern:
        return True
    made = (*(_of_picture(picture, at) for picture, at in _pictures(words)), *_codes(words))
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


def _codes(text: str) -> Iterator[StatedForm]:
    for match in _LETTERS.finditer(text):
        word = match["count"].casefold()
        count = _COUNTS.get(word) or int(word)
        yield _of_code(count, match["kind"], is_upper=bool(match["case"]), start=match.start())
    for match in _ISO_CODE.finditer(text):
        count = _ISO_CODES[match["code"].casefold()]
        yield _of_code(count, "letter", is_upper=False, start=match.start())


def _of_code(count: int, kind: str, *, is_upper: bool, start: int) -> StatedForm:
    is_digit = kind.casefold().startswith("digit")
    letters = r"\d" if is_digit else "[A-Z]" if is_upper else "[A-Za-z]"
    noun = "digits" if is_digit else "capital letters" if is_upper else "letters"
    return StatedForm(pattern=f"^{letters}{{{count}}}$", words=f"{count} {noun}", start=start)
