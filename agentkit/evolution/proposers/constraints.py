"""Rules that tools state themselves, in their errors and in their descriptions.

Texts of tools are foreign. They are cut to a length and searched with patterns whose repetitions
are bounded; nothing in them is ever followed or run.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from agentkit.evolution.validation.texts import numbers_in, pattern, words
from agentkit.tools.patterns import FORMAT_EXAMPLES, is_compilable
from agentkit.tools.rules import Between, Condition, Form, NamedFormat, OneOf, Requires, Rule

LONGEST_TEXT = 4_000
"""Characters of a text that are read."""


_SENTENCE_END = re.compile(r"[.!?;]\s|\n")


def _says(section: str) -> re.Pattern[str]:
    """The pattern of a section of ``phrases/statements.txt``."""
    return pattern("statements", section)


def _words(name: str) -> frozenset[str]:
    return words("statements", f"words of {name}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Statement:
    """A rule that a text states.

    Attributes:
        rule: The rule. Its parameter is empty unless the rule is about several; listed values are
            texts, whatever type the parameter has.
        start: Where in the text it begins.
    """

    rule: Rule
    start: int = 0


def stated_in_error(text: str, names: Collection[str] = ()) -> tuple[Statement, ...]:
    """What an error says about arguments.

    Args:
        text: The error.
        names: Names of the tool's parameters, by which statements about two of them are known.

    Example:
        >>> stated_in_error("ValueError: unit must be 'celsius' or 'kelvin', got 'F'")[0].rule
        OneOf(parameter='', values=('celsius', 'kelvin'), kind='one_of')
    """
    text = text[:LONGEST_TEXT]
    always = (*stated_sets(text), *stated_ranges(text), *stated_forms(text))
    return (
        *(one for one in always if not is_for_some_calls(text, one.start)),
        *stated_orders(text, names),
        *stated_needs(text, names),
    )


def is_for_some_calls(text: str, start: int) -> bool:
    """Whether the sentence around a place names a condition: a rule would hold for every call."""
    begin = max((found.end() for found in _SENTENCE_END.finditer(text, 0, start)), default=0)
    end = _SENTENCE_END.search(text, start)
    until = end.start() if end else len(text)
    return _says("for some calls").search(text, begin, until) is not None


def stated_in_description(text: str) -> tuple[Statement, ...]:
    """What the text of a parameter says about its values; lists in brackets count too."""
    return (*stated_in_error(text), *slashed_sets(text[:LONGEST_TEXT]))


def numbers_of(rule: Rule) -> tuple[float, ...]:
    """The bounds and the step of a range, and the numbers in allowed values and in a pattern.

    Example:
        >>> numbers_of(Form(parameter="code", pattern="^[A-Z0-9]{12}$", words="a code"))
        (12.0,)
    """
    match rule:
        case Between():
            return (*rule.lows, *rule.highs, *((rule.multiple_of,) if rule.multiple_of else ()))
        case OneOf():
            return _numbers_in(" ".join(map(str, rule.values)))
        case Form() if not is_own_form(rule.words, rule.pattern):
            return _numbers_in(_ANY_DIGIT.sub("", rule.pattern))
    return ()


def _numbers_in(text: str) -> tuple[float, ...]:
    return tuple(sorted(numbers_in(text)))


# --- Lists of allowed values ---------------------------------------------------------------------
# The phrases are those of validators in the wild (jsonschema, pydantic, zod, serde, argparse,
# Django, our own) and of authors who write their errors by hand. Whatever is not clearly a whole
# list is none: a list that ends in "and 7 more", that follows "such as", or that runs into prose.


_ANY_DIGIT = re.compile(r"[01]-9")
_NUMBER = re.compile(r"[-+]?\d{1,15}(?:\.\d{1,15})?")
_CLOSERS = {"[": "]", "(": ")", "{": "}", "<": ">"}
_BOUNDS = frozenset({"between", "above", "below", "positive"})
_MOST_VALUES = 200
_CUT_BY_RECORD = 500


class _Listing(NamedTuple):
    """What reads like a list.

    Attributes:
        bare: Its values without quotation marks.
        values: All values.
        joined_by: What stands between them.
        end: Where it ends.
        closer: The bracket that must end it; empty for none.
    """

    bare: list[str]
    values: list[str]
    joined_by: list[str]
    end: int
    closer: str


def stated_sets(text: str) -> Iterator[Statement]:
    """The lists of values in a text that are whole.

    Example:
        >>> [one.rule.values for one in stated_sets("periods must be one of 36, 48 or 60, got 31")]
        [('36', '48', '60')]
        >>> list(stated_sets("Valid values: a, b, c and 9 more."))
        []
    """
    position = 0
    while (cue := _says("cue").search(text, position)) is not None:
        listing = _listing(text, cue.end())
        if _is_list(listing, cue, text) and not _is_cut(listing, cue, text):
            yield Statement(
                rule=OneOf(parameter="", values=tuple(listing.values)), start=cue.start()
            )
        position = max(listing.end, cue.end())


def slashed_sets(text: str) -> Iterator[Statement]:
    """Lists in brackets, as descriptions have them: ``Loan term (36/48/60)``.

    Example:
        >>> [one.rule.values for one in slashed_sets("Loan term (36/48/60).")]
        [('36', '48', '60')]
    """
    for found in _says("slashed list").finditer(text):
        values = tuple(part.strip("'\"` ") for part in found["list"].split("/"))
        if len(set(values)) == len(values) and all(values):
            yield Statement(rule=OneOf(parameter="", values=values), start=found.start())


def _listing(text: str, position: int) -> _Listing:
    lead = _says("lead").match(text, position)
    position = lead.end() if lead else position
    closer = _CLOSERS.get((lead["bracket"] or "") if lead else "", "")
    bare: list[str] = []
    values: list[str] = []
    joined_by: list[str] = []
    while len(values) < _MOST_VALUES:
        if mark := _says("quoted value").match(text, position):
            inside = next(part for part in mark.groups() if part is not None)
            value, position = _unescaped(inside), mark.end()
        else:
            value = _bare_value(text, position)
            if not value:
                break
            position += len(value)
            bare.append(value)
        values.append(value)
        joined = _says("joiner").match(text, position)
        if joined is None or joined.end() == position:
            break
        if _ends_here(text, position, closer) and not _says("quoted value").match(
            text, joined.end()
        ):
            break
        joined_by.append(joined[0].strip())
        position = joined.end()
    return _Listing(bare, values, joined_by, position, closer)


def _bare_value(text: str, position: int) -> str:
    """The words without quotation marks that stand at a position; empty for none."""
    bare = _says("bare value").match(text, position)
    return _says("beyond a value").split(bare[0], maxsplit=1)[0].rstrip(".!?") if bare else ""


def _unescaped(text: str) -> str:
    return text.replace("\\'", "'").replace('\\"', '"').replace("\\\\", "\\")


def _ends_here(text: str, position: int, closer: str) -> bool:
    if closer:
        return text[position : position + 1] == closer
    return _says("end").match(text, position) is not None


def _is_list(listing: _Listing, cue: re.Match[str], text: str) -> bool:
    """Whether what was read is a list of values, and not the beginning of a sentence."""
    bare, values, closer = listing.bare, listing.values, listing.closer
    if not values or len(set(values)) < len(values) or not all(values):
        return False
    if not _ends_here(text, listing.end, closer):
        return False
    if bare and set(listing.joined_by) != {"or"} and any(map(str.isalpha, listing.joined_by[:-1])):
        return False  # "Food and Beverages, VIP Seating": the word is part of a value
    numbers = [value for value in bare if _NUMBER.fullmatch(value)]
    if cue["weak"]:
        is_interval = closer and len(values) == 2 and len(numbers) == 2
        if len(numbers) < len(bare) or len(values) < 2 or is_interval:
            return False
    return not _is_prose(bare, numbers, closer)


def _is_prose(bare: list[str], numbers: list[str], closer: str) -> bool:
    """Whether values without quotation marks are the beginning of a sentence."""
    said = {word for value in bare if " " in value for word in value.casefold().split()}
    if (said | set(bare)) & _words("prose"):
        return True
    if bare and bare[0].split()[0].casefold() in _BOUNDS:
        return True
    if len(bare) == 1 and not closer and not numbers:
        return True
    # "36, 48, 60 months": the last one is a number with its unit
    return bool(numbers) and any(one[0].isdigit() for one in bare if one not in numbers)


def _is_cut(listing: _Listing, cue: re.Match[str], text: str) -> bool:
    """Whether there may be more values than those that were read."""
    end = listing.end
    rest = re.split(r"[.;)\]\n]\s", text[end : end + 12])[0]
    return (
        _says("cut short").search(" ".join(listing.bare) + rest) is not None
        or _says("cut short").search(cue.group()) is not None
        or (len(text) >= _CUT_BY_RECORD and end >= len(text) - 1)
        or len(listing.values) >= _MOST_VALUES
        or any("\\" in value for value in listing.values)
    )


# --- Bounds and steps of numbers -----------------------------------------------------------------


def stated_ranges(text: str) -> Iterator[Statement]:
    """The bounds and steps that a text states, each on its own.

    "must be greater than 3" asks for more; "31 is greater than 30" says what is wrong, and asks for
    no more than 30.

    Example:
        >>> [one.rule.unit for one in stated_ranges("between 1 and 30 days")]
        ['days']
        >>> [one.rule.maximum for one in stated_ranges("31 is greater than the maximum of 30")]
        [30.0]
    """
    taken: list[tuple[int, int]] = []
    for section in ("chain", "between", "must be"):
        for match in _says(section).finditer(text):
            if not _overlaps(match, taken) and not _counts(match):
                taken.append(match.span())
                low, high, signs = _number(match["low"]), _number(match["high"]), match.groupdict()
                if low <= high:
                    is_above, is_below = signs.get("left") == "<", signs.get("right") == "<"
                    yield _range(match, low=low, above=is_above, high=high, below=is_below)
    for match in _says("compared").finditer(text):
        if not _overlaps(match, taken) and not _counts(match):
            yield _compared(match)
    for match in _says("or more").finditer(text):
        if not _overlaps(match, taken):
            number = _number(match["number"])
            yield _range(match, low=number) if match["at_least"] else _range(match, high=number)
    yield from _steps_and_signs(text)


def _steps_and_signs(text: str) -> Iterator[Statement]:
    for match in _says("step").finditer(text):
        if (step := _number(match["number"])) > 0:
            yield Statement(rule=Between(parameter="", multiple_of=step), start=match.start())
    for match in _says("sign").finditer(text):
        sign = (match["sign"] or "").casefold()
        is_above = sign.endswith("positive") or sign.startswith("greater")
        yield _range(match, low=0.0, above=is_above)


def _number(text: str) -> float:
    """A number as it is written in a sentence: ``1,000``."""
    return float(text.replace(",", "").replace("\u2212", "-"))


def _overlaps(match: re.Match[str], taken: list[tuple[int, int]]) -> bool:
    return any(start < match.end() and match.start() < end for start, end in taken)


def _unit(match: re.Match[str]) -> str:
    """The unit behind the number, or behind the step as in "a multiple of 60, in minutes"."""
    word = (match.groupdict().get("unit") or "").casefold()
    if word not in _words("units"):
        later = _says("in a unit").match(match.string, match.start("unit") if word else match.end())
        word = later["unit"].casefold() if later else ""
    return word if word in _words("units") else ""


def _counts(match: re.Match[str]) -> bool:
    """Whether the number counts characters or items, and is no bound of the value."""
    return (match.groupdict().get("unit") or "").casefold() in _words("counts")


def _range(
    match: re.Match[str],
    *,
    low: float | None = None,
    high: float | None = None,
    above: bool = False,
    below: bool = False,
) -> Statement:
    """A range; ``above`` and ``below`` say that the bound itself is not allowed."""
    rule = Between(
        parameter="",
        minimum=None if above else low,
        exclusive_minimum=low if above else None,
        maximum=None if below else high,
        exclusive_maximum=high if below else None,
        unit=_unit(match),
    )
    return Statement(rule=rule, start=match.start())


def _compared(match: re.Match[str]) -> Statement:
    is_low = any(match[name] for name in ("at_least", "minimum", "above"))
    bound = match["minimum"] or match["maximum"]
    is_open = bool(match["above"] or match["below"] or (bound and "equal" in bound.casefold()))
    if not bound:
        clause = re.split(r"[.;\n]", match.string[: match.start()])[-1]
        describes_fault = not _says("demands").search(clause) and bool(
            _says("says what is").search(clause)
        )
        if bool(match["negated"]) != describes_fault:
            is_low, is_open = not is_low, not is_open
    number = _number(match["number"])
    if is_low:
        return _range(match, low=number, above=is_open)
    return _range(match, high=number, below=is_open)


# --- Forms of texts: dates, codes, patterns, addresses -------------------------------------------


_TOKENS: dict[str, tuple[str, str]] = {
    "YYYY": (r"\d{4}", "2026"),
    "MM": (r"(0[1-9]|1[0-2])", "05"),
    "DD": (r"(0[1-9]|[12]\d|3[01])", "31"),
    "HH": (r"([01]\d|2[0-3])", "14"),
    "mm": (r"[0-5]\d", "30"),
    "SS": (r"[0-5]\d", "00"),
    "YY": (r"\d{2}", "26"),
}
_TOKENS |= {name.lower(): _TOKENS[name] for name in ("YYYY", "DD", "HH", "SS")}
_OF_STRFTIME = dict(zip("YmdHMSy", ("YYYY", "MM", "DD", "HH", "mm", "SS", "YY"), strict=True))
_WORDS_OF_FORMATS: Mapping[NamedFormat, tuple[str, ...]] = {
    "date": ("date",),
    "time": ("time",),
    "date-time": ("date-time", "datetime", "timestamp", "date and time"),
    "email": ("email", "e-mail", "email address", "e-mail address"),
    "uri": ("uri", "url"),
    "uuid": ("uuid",),
}
_FORMAT_OF = {word: name for name, words in _WORDS_OF_FORMATS.items() for word in words}


def stated_forms(text: str) -> Iterator[Statement]:
    """The forms that a text states.

    A form that has a name in JSON Schema comes as that, any other one as a regular expression.

    Example:
        >>> [one.rule.format for one in stated_forms("the day must be given as YYYY-MM-DD")]
        ['date']
    """
    if pictures := list(_pictures(text)):
        for picture, start in pictures:
            yield Statement(rule=_of_picture(picture), start=start)
        return
    for match in _says("named form").finditer(text):
        word = next(part for part in match.groups() if part is not None)
        name = _FORMAT_OF[" ".join(word.casefold().split())]
        form = Form(parameter="", format=name, example=FORMAT_EXAMPLES[name])
        yield Statement(rule=form, start=match.start())
    for match in _says("matches").finditer(text):
        pattern = next(part for part in match.groups() if part is not None)
        if (found := form_of_pattern(pattern)) is not None:
            yield Statement(rule=found, start=match.start())


def form_of_pattern(pattern: str) -> Form | None:
    """The form that a pattern of JSON Schema states, if it states that of the whole text.

    None for a pattern that may match anywhere, as schemas allow: a rule speaks of whole texts. None
    too for one that is not matched in linear time.
    """
    if not is_compilable(pattern):
        return None
    if not (pattern.startswith("^") and pattern.endswith("$")) or _has_alternatives(pattern):
        return None
    return Form(parameter="", pattern=pattern, words=f"text that matches {pattern}")


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
    made = (_of_picture(picture) for picture, _ in _pictures(words))
    return any((form.words, form.pattern) == (words, pattern) for form in made)


def _has_alternatives(pattern: str) -> bool:
    """Whether a bar stands outside of all groups, so that an anchor binds one side only."""
    bare = re.sub(r"\\.|\[\^?\]?[^\]]*(?:\]|\Z)", "", pattern)
    depth = 0
    for character in bare:
        depth += (character == "(") - (character == ")")
        if character == "|" and not depth:
            return True
    return False


def _pictures(text: str) -> Iterator[tuple[str, int]]:
    for match in _says("picture").finditer(text):
        yield match[0], match.start()
    for match in _says("strftime").finditer(text):
        yield re.sub("%[YmdHMSy]", lambda token: _OF_STRFTIME[token[0][1]], match[0]), match.start()


def _of_picture(picture: str) -> Form:
    if picture in {"YYYY-MM-DD", "yyyy-MM-dd", "yyyy-mm-dd"}:
        return Form(parameter="", format="date", example=FORMAT_EXAMPLES["date"])
    pattern, example, rest, hours = "^", "", picture, False
    while rest:
        letters = next((known for known in _TOKENS if rest.startswith(known)), rest[0])
        meant = "mm" if letters == "MM" and hours else letters  # HH:MM is hours and minutes
        hours = hours or letters in {"HH", "hh"}
        part, shown = _TOKENS.get(meant, (letters.replace(".", r"\."), letters))
        pattern, example = pattern + part, example + shown
        rest = rest[len(letters) :]
    return Form(parameter="", pattern=f"{pattern}$", words=picture, example=example)


# --- What a tool says about two of its parameters together ---------------------------------------


_IDENTIFIER = re.compile(r"[A-Za-z]\w{0,60}", re.ASCII)
_SMALLER = ("before", "earlier", "less", "smaller", "below", "at most", "on or before", "<")
_ITSELF = ("on or", "equal", "at most", "at least", "<=", ">=")


def stated_orders(text: str, names: Collection[str]) -> Iterator[Statement]:
    """Which parameter may not be greater, or later, than which other one.

    Args:
        text: What the tool says.
        names: Names of its parameters.

    Example:
        >>> both = ["low", "high"]
        >>> [one.rule.expression for one in stated_orders("`low` must be before `high`", both)]
        ['low < high']
        >>> [one.rule.expression for one in stated_orders("low must not exceed high", both)]
        ['low <= high']
    """
    for match in _says("order").finditer(text):
        left, right = match["left"], match["right"]
        if left == right or not all(
            one in names and _IDENTIFIER.fullmatch(one) for one in (left, right)
        ):
            continue
        words = " ".join(match["words"].casefold().split())
        is_negated = "not" in words or "can't" in words
        if any(word in words for word in _SMALLER) == is_negated:
            left, right = right, left
        is_open = any(word in words for word in _ITSELF) == is_negated
        rule = Condition(
            expression=f"{left} {'<' if is_open else '<='} {right}",
            words=f"{left} must be {'less than' if is_open else 'at most'} {right}",
        )
        yield Statement(rule=rule, start=match.start())


def stated_needs(text: str, names: Collection[str]) -> Iterator[Statement]:
    """Which parameter must be given with which other one.

    Example:
        >>> text = "`currency` is required when `budget` is given"
        >>> [one.rule.others for one in stated_needs(text, ["currency", "budget"])]
        [('currency',)]
    """
    for match in _says("need").finditer(text):
        given, other = match["right"] or match["given"], match["left"] or match["other"]
        if given != other and given in names and other in names:
            yield Statement(rule=Requires(parameter=given, others=(other,)), start=match.start())
