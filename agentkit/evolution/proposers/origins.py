"""Where the texts of a suggestion came from, and whether a tool says something itself.

A refusal may repeat what users gave: in other letters too, decoded, joined, backwards. Only what
stays the same while everything changes that could have brought it is the tool's own.
"""

from __future__ import annotations

import base64
import codecs
import html
import quopri
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any
from urllib.parse import unquote_plus

from agentkit.evolution.proposers.constraints import (
    LONGEST_TEXT,
    StatedRange,
    StatedSet,
    Statement,
    is_own_form,
    stated_in_error,
)
from agentkit.evolution.proposers.observed import ObservedCall, ToolRecord, values_of
from agentkit.evolution.validation.origins import TRUSTED, speaks_as
from agentkit.evolution.validation.pattern_checks import readings
from agentkit.evolution.validation.report import TextOrigin
from agentkit.evolution.validation.texts import folded, numbers_in
from agentkit.messages import JsonObject
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.rules import Form, OneOf, Rule, rule_sentence
from agentkit.tools.rules.checking import ToolsByName

# --- Whether a tool says something itself, or echoes what its users gave it ----------------------
# A refusal may repeat an argument, in other letters too: decoded, joined, backwards. Only what
# stays
# the same while everything changes that could have brought it is the tool's own.


_RUN = 4
"""Letters and digits in a row that a refusal and an argument share by more than chance."""

_LONG_RUN = 12
"""The same for the request, which is a sentence with ordinary words."""

_LEAST_SHARED, _MOST_SHARED = 3, 6
"""Letters in a row that two calls share: as many as a word has can carry it in an unknown code."""

_FEW_COMPARED = 8
_MOST_COMPARED = 64
_LONGEST_GIVEN = 4_000
_MOST_READINGS = 1_000
_HIDDEN = "\ufffd"
_WORD = re.compile(r"[^\W_]+")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_CODED = re.compile(r"[\w+/=-]{2,}")
_ESCAPE = re.compile(r"\\(?:x|u|U|u\{)([0-9a-fA-F]{2,8})\}?")
_LAST_CHARACTER = 0x10FFFF
_LARGEST = 1e300


def is_constant(
    said: Collection[tuple[Statement, ObservedCall]], parameter: str, definition: ToolDefinition
) -> bool:
    """Whether a tool states something of its own, and does not repeat what it was given.

    Two refusals must show it, for each value of a list: neither call gave or asked for what the
    tool says, in any letters that are known here; and nothing that could have brought it in letters
    that are not known is the same in both. Calls of one conversation or user count as one.

    Args:
        said: The statement, as each refusal words it, with the refused call.
        parameter: What it is about; empty for several parameters.
        definition: The tool.
    """
    shortest = sorted(said, key=lambda one: _size(one[1], definition))
    few = _is_constant(shortest[:_FEW_COMPARED], parameter, definition)
    if few or len(shortest) <= _FEW_COMPARED:
        return few
    return _is_constant(shortest[:_MOST_COMPARED], parameter, definition)


def _is_constant(
    said: Iterable[tuple[Statement, ObservedCall]], parameter: str, definition: ToolDefinition
) -> bool:
    framed = [
        (statement, given)
        for statement, call in said
        if (given := _given(call, parameter, definition)) is not None
        and _is_framed(statement, given, definition)
    ]
    first = framed[0][0] if framed else None
    if not isinstance(first, StatedSet):
        word = "".join(map(str, [] if first is None else _numbers(first)))
        return _differ([g for s, g in framed if not any(map(g.says, _numbers(s)))], word=word)
    return all(
        _differ([g for _, g in framed if not g.says(value)], word=str(value))
        for value in first.values
    )


def _size(call: ObservedCall, definition: ToolDefinition) -> int:
    leaves = _leaves(call.arguments, definition)
    texts = (len(leaf) if isinstance(leaf, str) else 1 for leaf in leaves)
    return sum(texts, start=len(call.request))


_LONG_NUMBER = 6


@dataclass(frozen=True, kw_only=True)
class _Given:
    """What a user could make a tool repeat in one refusal.

    Attributes:
        call: The refused call.
        concerned: The values of the parameter that the statement is about.
        texts: The texts and names in the arguments.
        numbers: The numbers in arguments, and in all readings of the texts.
        readings: The texts, and what they may stand for.
        own_names: Names of the tool's parameters, in all readings.
    """

    call: ObservedCall
    concerned: tuple[Any, ...]
    texts: tuple[str, ...]
    numbers: frozenset[float]
    readings: tuple[str, ...]
    own_names: frozenset[str]

    @property
    def text(self) -> str:
        """All texts, one behind the other."""
        return " ".join(self.texts)

    @cached_property
    def bare(self) -> frozenset[str]:
        """The readings without anything but letters and digits, and without digits; backwards."""
        return _bared(self.readings)

    @cached_property
    def words(self) -> frozenset[str]:
        """The words of all readings, backwards too."""
        found = {word for text in self.readings for word in _WORD.findall(folded(text))}
        return self.bare | found | {word[::-1] for word in found}

    @cached_property
    def runs(self) -> frozenset[str]:
        """What the readings hold in a row."""
        return frozenset(run for text in self.bare for run in _runs(text, _RUN))

    def carries(self, length: int) -> frozenset[str]:
        """What could be a word of so many letters in a code that is not known.

        A long number, such as a customer's, tells that the same person asked.
        Names of parameters, as in ``quarter_1``, are the tool's own.
        """
        names = self.own_names
        runs = (run for text in self.bare for run in _runs(text, length))
        worded = (run for run in runs if any(map(str.isalpha, run)))
        numbers = (run for text in self.bare for run in _runs(text, _LONG_NUMBER))
        found = (*worded, *filter(str.isdigit, numbers))
        return frozenset(run for run in found if not any(run in name for name in names))

    @cached_property
    def asked(self) -> str:
        """The letters and digits of the request."""
        return _bare(self.call.request)

    @cached_property
    def asked_words(self) -> frozenset[str]:
        """The words of the request."""
        return frozenset(_WORD.findall(folded(self.call.request)))

    @cached_property
    def asked_numbers(self) -> frozenset[float]:
        """The numbers of the request."""
        return frozenset(numbers_in(self.call.request))

    def says(self, part: Any) -> bool:
        """Whether a value, or a word of it, stands in the arguments or in the request."""
        text = str(part)
        if _NUMBER.fullmatch(text.strip("+-")):
            return self.has_number(text)
        bare = _bare(text)
        if not bare:
            return text in self.text or text in self.call.request
        is_whole = len(bare) > 2 and any(bare in one for one in self.bare)
        is_asked = len(bare) >= _MOST_SHARED and bare in self.asked
        return is_whole or is_asked or any(map(self._says_word, _WORD.findall(folded(text))))

    def has_number(self, written: str) -> bool:
        """Whether a number stands in the arguments or in the request, whatever its sign."""
        meant = {abs(number) for number in numbers_in(written)}
        return any(abs(number) in meant for number in self.numbers | self.asked_numbers)

    def _says_word(self, word: str) -> bool:
        if word.isdecimal():
            return self.has_number(word)
        return word in self.words or word in self.asked_words or all(_covered(word, self.runs))


def _given(call: ObservedCall, parameter: str, definition: ToolDefinition) -> _Given | None:
    """What a call gave and asked for; None when it is more than can be looked through."""
    if _size(call, definition) > _LONGEST_GIVEN:
        return None
    leaves = list(_leaves(call.arguments, definition))
    texts = tuple(leaf for leaf in leaves if isinstance(leaf, str))
    codes = [leaf for leaf in leaves if isinstance(leaf, int) and 0 < leaf <= _LAST_CHARACTER]
    spelled = "".join(map(chr, codes)) if len(codes) > 1 else ""
    read = dict.fromkeys(texts)
    for text in (*texts, " ".join(texts), "".join(texts), "".join(reversed(texts)), spelled):
        read |= dict.fromkeys(_ways_to_read(text))
        if len(read) >= _MOST_READINGS:
            return None
    bare_numbers = {float(bare) for text in read if (bare := _bare(text)).isdecimal()}
    numbers = {
        float(leaf) for leaf in leaves if not isinstance(leaf, str) and abs(leaf) <= _LARGEST
    }
    concerned = values_of(parameter, call.arguments, definition) if parameter else []
    return _Given(
        call=call,
        concerned=tuple(concerned),
        texts=texts,
        numbers=frozenset(numbers.union(bare_numbers, *map(numbers_in, read))),
        readings=tuple(read),
        own_names=_bared(
            text for name in definition.signature.properties for text in _ways_to_read(name)
        ),
    )


def _leaves(arguments: JsonObject, definition: ToolDefinition) -> Iterator[str | int | float]:
    """Texts and numbers in arguments, and names inside; not the values that the schema lists."""
    waiting: list[Any] = []
    for name, value in arguments.items():
        part = definition.signature.properties.get(name)
        listed = part.get("enum") if isinstance(part, Mapping) else None
        if not (isinstance(listed, list | tuple) and value in listed):
            waiting.append(value)
    waiting.reverse()
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping):
            waiting.extend(reversed([leaf for pair in part.items() for leaf in pair]))
        elif isinstance(part, list | tuple):
            waiting.extend(reversed(part))
        elif isinstance(part, str | int | float) and not isinstance(part, bool):
            yield part


def _ways_to_read(text: str) -> Iterator[str]:
    """A text as it stands, decoded once and twice, and in the other ways that texts are hidden."""
    found = fresh = {text: None}
    for _ in range(2):
        decoded = (one for coded in fresh for one in _decoded(coded))
        fresh = dict.fromkeys(one for one in decoded if one not in found)
        found = found | fresh
        if len(found) >= _MOST_READINGS:
            break
    for one in found:
        yield one
        yield from readings(one)


def _decoded(text: str) -> Iterator[str]:
    yield unquote_plus(text)
    yield html.unescape(text)
    yield _ESCAPE.sub(lambda found: _character(int(found[1], 16)), text)
    yield codecs.encode(text, "rot13")
    yield quopri.decodestring(text.encode("utf-8", "replace")).decode("utf-8", "replace")
    for word in dict.fromkeys((*_CODED.findall(text), "".join(text.split()))):
        for decode, least in _DECODERS:
            decoded = _text_of(decode, word) if len(word) >= least else ""
            if decoded:
                yield decoded


def _character(code: int) -> str:
    return chr(code) if 0 < code <= _LAST_CHARACTER else ""


def _base64(word: str) -> bytes:
    bare = word.rstrip("=").replace("-", "+").replace("_", "/")
    return base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True)


def _base32(word: str) -> bytes:
    bare = word.rstrip("=")
    return base64.b32decode(bare + "=" * (-len(bare) % 8), casefold=True)


_DECODERS: tuple[tuple[Callable[[str], bytes], int], ...] = (
    (_base64, 2),
    (lambda word: bytes.fromhex(word.removeprefix("0x")), 2),
    (_base32, 8),
    (base64.b85decode, 8),
)
"""Codes, each with the length from which ordinary words are seldom taken for them."""


def _text_of(decode: Callable[[str], bytes], word: str) -> str:
    """What a word says once it is decoded; empty when that is no text."""
    try:
        text = decode(word).decode()
    except ValueError:  # it is not written in that code
        return ""
    return text if text.isprintable() else ""


def _bared(texts: Iterable[str]) -> frozenset[str]:
    plain = {_bare(text) for text in texts}
    plain |= {"".join(filter(str.isalpha, text)) for text in plain}
    return frozenset(plain | {text[::-1] for text in plain}) - {""}


def _bare(text: str) -> str:
    """The letters and digits of a text, folded."""
    return "".join(_WORD.findall(folded(text)))


def _runs(text: str, length: int) -> Iterator[str]:
    return (text[at : at + length] for at in range(len(text) - length + 1))


def _covered(text: str, *known: Collection[str]) -> list[bool]:
    """Which characters of a text stand in runs that are known."""
    covered = [False] * len(text)
    for runs in known:
        length = len(next(iter(runs), ""))
        for at, run in enumerate(_runs(text, length) if length else ()):
            if run in runs:
                covered[at : at + length] = [True] * length
    return covered


def _is_framed(statement: Statement, given: _Given, definition: ToolDefinition) -> bool:
    """Whether a refusal still says it when all that the user could have said is hidden.

    The values and numbers of the statement stay: ``says`` asks for each of them.
    """
    failure = given.call.refusal
    if failure is None:
        return False
    text = failure.rule[:LONGEST_TEXT]
    hidden = _without(text, given, tuple(_spans(statement, text)))
    bare = replace(statement, start=0)
    again = stated_in_error(hidden, definition.signature.properties)
    return any(replace(one, start=0) == bare for one in again)


def _spans(statement: Statement, text: str) -> Iterator[tuple[int, int]]:
    """Where the values and numbers of a statement stand."""
    if isinstance(statement, StatedSet):
        for value in filter(None, map(str, statement.values)):
            yield from (
                found.span() for found in re.finditer(rf"(?<!\w){re.escape(value)}(?!\w)", text)
            )
    numbers = {abs(number) for number in _numbers(statement)}
    for found in _NUMBER.finditer(text):
        if numbers & numbers_in(found[0]):
            yield found.span()


def _numbers(statement: Statement) -> tuple[float, ...]:
    if not isinstance(statement, StatedRange):
        return ()
    bounds = (statement.minimum, statement.maximum, statement.multiple_of)
    return tuple(bound for bound in bounds if bound is not None)


def _without(text: str, given: _Given, kept: Sequence[tuple[int, int]]) -> str:
    """A text in which every word and number is hidden that the user could have said."""
    bare = [(one, at) for at, char in enumerate(text) for one in folded(char) if one.isalnum()]
    letters = "".join(one for one, _ in bare)
    covers = _covered(letters, given.runs, frozenset(_runs(given.asked, _LONG_RUN)))
    is_open = {at for (_, at), is_covered in zip(bare, covers, strict=True) if not is_covered}
    characters = list(text)
    words = [
        found
        for found in _WORD.finditer(text)
        if folded(found[0]) in given.words or is_open.isdisjoint(range(*found.span()))
    ]
    numbers = [found for found in _NUMBER.finditer(text) if given.has_number(found[0])]
    for found in (*words, *numbers):
        if not any(found.start() < end and start < found.end() for start, end in kept):
            characters[slice(*found.span())] = _HIDDEN * len(found[0])
    return "".join(characters)


def _differ(found: Sequence[_Given], *, word: str) -> bool:
    """Whether two refusals have nothing in common that could have brought the same word.

    Args:
        found: What was given in them.
        word: The word or number; empty for a sentence.
    """
    letters = sum(map(str.isalpha, word))
    length = min(max(letters or _MOST_SHARED, _LEAST_SHARED), _MOST_SHARED)
    carried = [(one, one.carries(length)) for one in found]
    return any(
        runs.isdisjoint(others) and _are_apart(one, other, is_number=bool(word) and not letters)
        for (one, runs), (other, others) in combinations(carried, 2)
    )


def _are_apart(one: _Given, other: _Given, *, is_number: bool) -> bool:
    if one.call.party & other.call.party or one.call.arguments == other.call.arguments:
        return False
    if one.asked and one.asked == other.asked:
        return False
    if is_number and not set(one.texts).isdisjoint(other.texts):
        return False  # any text can stand for a number
    return not one.concerned or one.concerned != other.concerned


# --- Where the texts of a lesson came from, and which of its values accepted calls have used -----


OWN_WORDS = "words of this package"

_FIXED = ("words", "unit", "example", "pattern", "expression")
"""Fields of stated rules that the reading of refusals fills with fixed phrases."""


def own(*texts: str) -> tuple[TextOrigin, ...]:
    """Texts that are fixed phrases of this package, filled with names of the tool's parameters."""
    return tuple(TextOrigin(text=text, kind="code", where=OWN_WORDS) for text in texts if text)


def quoted(
    text: str, definition: ToolDefinition, tools: ToolsByName, *, is_constant: bool
) -> TextOrigin:
    """The origin of a text that a tool wrote into its refusals.

    Args:
        text: The text.
        definition: The tool.
        tools: All tools, by which a composite is as trusted as its parts.
        is_constant: Whether the tool says it whatever it is given.
    """
    if not is_constant:
        where = f"what {definition.name} may repeat of a call that it refuses"
        return TextOrigin(text=text, kind="user", where=where)
    kind = speaks_as(definition, tools)
    return TextOrigin(text=text, kind=kind, where=f"{definition.name}, refusing a call")


def origins_of_rule(
    rule: Rule,
    record: ToolRecord,
    definition: ToolDefinition,
    tools: ToolsByName,
    *,
    is_constant: bool,
) -> tuple[TextOrigin, ...]:
    """Where the texts of a stated rule came from.

    Ranges, orders and most forms are told in fixed phrases of this package. Allowed values and
    patterns are the tool's own. A rule that a user may have dictated is the user's as a whole, with
    its numbers: its sentence has an origin then.
    """
    match rule:
        case OneOf(values=values):
            texts: tuple[Any, ...] = values
        case Form() if not is_own_form(rule.words, rule.pattern):
            texts = (rule.pattern, rule.words, rule.example)
        case _:
            texts = ()
    used = _used(texts, rule, record, definition)
    said = [
        replace(quoted(text, definition, tools, is_constant=is_constant), is_used=text in used)
        for text in texts
        if text and isinstance(text, str)
    ]
    fixed = () if texts else own(*(getattr(rule, name, "") for name in _FIXED))
    if not is_constant:
        whole = quoted(rule_sentence(rule), definition, tools, is_constant=False)
        said.append(replace(whole, is_used=bool(texts) and used.issuperset(texts)))
    return (*said, *fixed)


def is_vouched_for(origin: TextOrigin) -> bool:
    """Whether a text can be expected to pass without anybody's agreement."""
    return origin.kind in TRUSTED or origin.is_used


def _used(
    wanted: Iterable[Any], rule: Rule, record: ToolRecord, definition: ToolDefinition
) -> set[Any]:
    """The values that accepted calls gave before any tool had said them in that conversation.

    A call that follows a refusal proves nothing: whoever words the refusal also says what the next
    call gives, and a hostile tool accepts it.
    """
    parameter: str = getattr(rule, "parameter", "")
    asked, found = set(wanted), set[Any]()
    for call in record.accepted if asked else ():
        for given in values_of(parameter, call.arguments, definition):
            is_scalar = given is None or isinstance(given, str | int | float)
            if is_scalar and given in asked - found and _is_unprompted(given, call):
                found.add(given)
    return found


def _is_unprompted(value: Any, call: ObservedCall) -> bool:
    if call.earlier is None:
        return False
    heard = [*call.refusals, *(one.text for one in call.earlier)]
    return not any(folded(str(value)) in folded(text) for text in heard)
