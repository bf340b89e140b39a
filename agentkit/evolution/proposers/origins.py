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
from itertools import combinations, permutations
from math import prod
from typing import Any
from urllib.parse import unquote_plus

from agentkit.evolution.proposers.constraints import (
    LONGEST_TEXT,
    Statement,
    is_own_form,
    numbers_of,
    stated_in_error,
)
from agentkit.evolution.proposers.observed import ObservedCall, ToolRecord, values_of
from agentkit.evolution.validation.approvals import TRUSTED, speaks_as
from agentkit.evolution.validation.lexical_checks import readings
from agentkit.evolution.validation.report import OriginKind, TextOrigin
from agentkit.evolution.validation.texts import folded, numbers_in, stands_in
from agentkit.messages import JsonObject
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.rules import Form, OneOf, Rule, rule_sentence
from agentkit.tools.rules.checking import ToolsByName

# --- Where the texts of a rule came from, and which of its values accepted calls have used -------


_FIXED = ("words", "unit", "example", "pattern", "expression")
"""Fields of stated rules that the reading of refusals fills with fixed phrases."""


def origins_of_rule(
    rule: Rule,
    record: ToolRecord,
    definition: ToolDefinition,
    tools: ToolsByName,
    *,
    is_constant: bool,
    by_person: bool = False,
) -> tuple[TextOrigin, ...]:
    """Where the texts of a stated rule came from.

    Ranges, orders and most forms are told in fixed phrases of this package. Allowed values and
    patterns are the tool's own. A rule that a user may have dictated is the user's as a whole, with
    its numbers: its sentence has an origin then.

    Args:
        rule: The rule.
        record: The calls of its tool.
        definition: The tool.
        tools: All tools, by which a composite is as trusted as its parts.
        is_constant: Whether the tool says it whatever it is given.
        by_person: Whether a person said it of calls.
    """
    kind: OriginKind = speaks_as(definition, tools) if is_constant else "user"
    if kind == "model":  # which says what it is asked to
        kind, is_constant = "user", False
    where = f"{definition.name}, refusing a call"
    if by_person:
        kind, where = "person", f"a person, of a call of {definition.name}"
    if not is_constant:
        where = f"what {definition.name} may repeat of a call that it refuses"
    texts: tuple[Any, ...] = ()
    if isinstance(rule, OneOf):
        texts = rule.values
    elif isinstance(rule, Form) and not is_own_form(rule.words, rule.pattern):
        texts = (rule.pattern, rule.words, rule.example)
    used = _used(texts, rule, record, definition)
    said = [
        TextOrigin(text=text, kind=kind, where=where, is_used=text in used)
        for text in texts
        if text and isinstance(text, str)
    ]
    if not is_constant:
        is_used = bool(texts) and used.issuperset(texts)
        sentence = rule_sentence(rule)
        said.append(TextOrigin(text=sentence, kind=kind, where=where, is_used=is_used))
    fixed = () if texts else filter(None, (getattr(rule, name, "") for name in _FIXED))
    own = (TextOrigin(text=text, kind="code", where="words of this package") for text in fixed)
    return (*said, *own)


def is_vouched_for(origin: TextOrigin) -> bool:
    """Whether a text can be expected to pass without anybody's agreement."""
    return origin.kind in TRUSTED or origin.is_used


def _used(
    wanted: Iterable[Any], rule: Rule, record: ToolRecord, definition: ToolDefinition
) -> set[Any]:
    """The values that accepted calls gave before any tool said anything in that conversation.

    A call that follows a refusal proves nothing: whoever words the refusal also says what the next
    call gives, in whatever words, and a hostile tool accepts it. After an answer only values count
    that the user's own request holds and no tool has said.
    """
    parameter: str = getattr(rule, "parameter", "")
    asked, found = set(wanted), set[Any]()
    for call in record.accepted if asked else ():
        if not call.is_from_start:
            continue
        heard = [folded(text) for text in heard_before(call)]
        request = folded(call.request)
        for given in values_of(parameter, call.arguments, definition):
            is_scalar = given is None or isinstance(given, str | int | float)
            if is_scalar and given in asked - found:
                word = folded(str(given))
                is_asked = stands_in(word, request) and not any(word in text for text in heard)
                found |= {given} if is_asked or not heard else set()
    return found


def heard_before(call: ObservedCall) -> tuple[str, ...]:
    """What tools answered and refused before a call of its run; empty texts too."""
    return (*call.refusals, *(one.text for one in call.earlier or ()))


def gave_name(call: ObservedCall, name: str, definition: ToolDefinition) -> bool:
    """Whether the arguments of a call may have brought a name into its refusal.

    The request is none of the tool's business: only what the call gave can come back.
    """
    given = _given(replace(call, request=""), "", definition)
    return given is None or given.says(name) or given.may_spell(name)


# --- Whether a tool says something itself, or echoes what its users gave it ----------------------


_RUN = 4
"""Letters and digits in a row that a refusal and an argument share by more than chance."""

_LONG_RUN = 12
"""The same for the request, which is a sentence with ordinary words."""

_LEAST_SHARED, _MOST_SHARED = 3, 6
"""Letters in a row that two calls share: as many as a word has can carry it in an unknown code."""

_LONG_NUMBER = 6
_LONG_CAPITALS = 8
_SIGNS_A_LETTER = 1.25
_DIGITS_A_LETTER = 2  # in texts, where numbers are told in words as well
_DIGITS_OF_A_NUMBER = 1.5
_MOST_COMPARED = 24
_LONGEST_GIVEN = 4_000
_MOST_READINGS = 1_000
_MOST_COUNTED = 12
_LONGEST_JOINED = 120
_THINNED = ((2, 0), (2, 1), (3, 0), (3, 1), (3, 2))  # every which letter, from where on
_HIDDEN = "\ufffd"
_WORD = re.compile(r"[^\W_]+")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_HEXADECIMAL = re.compile(r"[0-9a-f]{1,12}")
_CODED = re.compile(r"[\w+/=-]{2,}")
_ESCAPE = re.compile(r"\\(?:x|u|U|u\{)([0-9a-fA-F]{2,8})\}?")
_SYLLABLES = re.compile(r"[\u1100-\u16ff\u2e80-\ud7ff]{2}")
"""Letters of scripts in which two of them are romanised as a whole word."""

_CAPITALIZED = re.compile(r"(?<=[^\W\d_A-Z])(?=[A-Z])")
_RANDOM = re.compile(r"(?<![^\W_])[0-9a-f-]{16,}(?![^\W_])")
"""Ids that nobody chose: the digits in them are no numbers."""

_LAST_CHARACTER = 0x10FFFF
_LARGEST = 1e300


def is_constant(
    said: Collection[tuple[Statement, ObservedCall]], parameter: str, definition: ToolDefinition
) -> bool:
    """Whether a tool states something of its own, and does not repeat what it was given.

    Two refusals must show it, for each value of a list: neither call gave or asked for what the
    tool says, in any letters that are known here; and nothing that could have brought it in letters
    that are not known is the same in both. A number takes a third person, who gave other things.
    Calls of one conversation or user count as one.

    Args:
        said: The statement, as each refusal words it, with the refused call.
        parameter: What it is about; empty for several parameters.
        definition: The tool.
    """
    shortest = sorted(said, key=lambda one: _size(one[1], definition))[:_MOST_COMPARED]
    framed = [
        (statement.rule, given)
        for statement, call in shortest
        if (given := _given(call, parameter, definition)) is not None
        and _is_framed(statement.rule, given, definition)
    ]
    if not framed:
        return False
    rule = framed[0][0]
    if isinstance(rule, OneOf):
        return all(
            _differ(
                [one for _, one in framed if not (one.says(value) or one.may_spell(value))],
                word=str(value),
            )
            for value in rule.values
        )
    silent = [
        given
        for one, given in framed
        if not any(given.says(part) or given.may_spell(part) for part in _parts(one))
    ]
    return _differ(silent, word="".join(map(str, numbers_of(rule))))


def _has_number(written: str, numbers: Iterable[float]) -> bool:
    """Whether a number is among others, whatever its sign."""
    meant = {abs(number) for number in numbers_in(written)}
    return any(abs(number) in meant for number in numbers)


def _parts(rule: Rule) -> Iterator[Any]:
    """The numbers of a rule, and the words of its pattern."""
    yield from numbers_of(rule)
    if isinstance(rule, Form):
        yield from re.findall(r"[^\W\d_]{3,}", rule.pattern)


@dataclass(frozen=True, kw_only=True)
class _Given:
    """What a user could make a tool repeat in one refusal.

    Attributes:
        call: The refused call.
        concerned: The values of the parameter that the statement is about.
        texts: The texts and names in the arguments.
        numbers: The numbers in the request, in arguments, and in all readings of the texts.
        made: The numbers that one step of counting or arithmetic makes of the arguments.
        bare: The letters and digits of the texts in all readings, and the letters; backwards too.
        told: The same of labels, ids and attached files.
        words: The words of all readings, backwards too; also of what else was told.
        runs: What the readings hold in a row; the same.
        asked: The letters and digits of the request.
        asked_words: The words of the request.
        own_names: Names of the tool's parameters, in all readings.
        pieces: The words of what was given and told, of which a tool may join some.
        coded: Letters that the arguments may spell in a code that is not known.
    """

    call: ObservedCall
    concerned: tuple[Any, ...]
    texts: tuple[str, ...]
    numbers: frozenset[float]
    made: frozenset[float]
    bare: frozenset[str]
    told: frozenset[str]
    words: frozenset[str]
    runs: frozenset[str]
    asked: str
    asked_words: frozenset[str]
    own_names: frozenset[str]
    pieces: frozenset[str]
    coded: float

    def carries(self, length: int) -> frozenset[str]:
        """What could be a word of so many letters in a code that is not known.

        A long number, such as a customer's, tells that the same person asked.
        Names of parameters, as in ``quarter_1``, are the tool's own.
        """
        worded = (run for run in _runs(self.bare, length) if any(map(str.isalpha, run)))
        digits = filter(str.isdigit, _runs(self.bare, _LONG_NUMBER))
        found = (*worded, *digits, *filter(_SYLLABLES.match, _runs(self.bare, 2)))
        return frozenset(run for run in found if not any(run in name for name in self.own_names))

    def says(self, part: Any) -> bool:
        """Whether a value, or a word of it, stands in the arguments or in the request."""
        text = str(part)
        if _NUMBER.fullmatch(text.strip("+-")):
            return _has_number(text, self.numbers) or _has_number(text, self.made)
        bare = _bare(text)
        if not bare:
            return text in " ".join(self.texts) or text in self.call.request
        is_whole = len(bare) > 2 and any(bare in one for one in self.bare | self.told)
        is_asked = len(bare) >= _MOST_SHARED and bare in self.asked
        return is_whole or is_asked or any(map(self._says_word, _WORD.findall(folded(text))))

    def may_spell(self, part: Any) -> bool:
        """Whether a text may stand in the arguments letter by letter, in an unknown code.

        The few letters of values such as ``1st`` say nothing to a model, and any number has room
        for them.
        """
        letters = sum(map(str.isalpha, str(part)))
        is_coded = _FEWEST_SPELLED <= letters <= self.coded
        return is_coded or (letters >= _LEAST_SHARED and self._may_join(str(part)))

    def begins(self, word: str) -> frozenset[str]:
        """The texts, two letters long or more, that a tool may have made longer to a word."""
        texts = filter(None, map(_bare, self.texts if len(word) >= _FEWEST_SPELLED else ()))
        bare = _bare(word)
        return frozenset(
            one for one in texts if len(one) > 1 and (bare.startswith(one) or bare.endswith(one))
        )

    def _may_join(self, text: str) -> bool:
        """Whether a word of a text is put together of words that were given, in any order.

        Tags, brackets, columns, keys and other arguments may stand between them. A word that is
        joined to another one as in ``laCreated`` is one that was given itself.
        """
        parts = (part for word in _WORD.findall(text) for part in _CAPITALIZED.split(word))
        if any(len(part) > 1 and part != text and folded(part) in self.pieces for part in parts):
            return True
        return any(
            len(word) >= _LEAST_SHARED and _is_joined(one, self.pieces)
            for word in (*_WORD.findall(folded(text)), _bare(text))
            for one in (word, word[::-1])
        )

    def has_number(self, written: str) -> bool:
        """Whether a number stands in the arguments or in the request, whatever its sign."""
        return _has_number(written, self.numbers)

    def _says_word(self, word: str) -> bool:
        if word.isdecimal():
            return self.has_number(word)
        if word in self.words or word in self.asked_words or all(_covered(word, self.runs)):
            return True
        return any(len(one) >= _RUN and one in word for one in self.words)  # ``orderCreated``


_FEWEST_SPELLED = 4
"""Letters of the shortest text that is looked for in codes that are not known."""

_MARKED = re.compile(r"[\\\x00-\x08\x0e-\x1f]|%[0-9a-fA-F]{2}|&#?\w+;|=[0-9A-Fa-f]{2}")
"""Marks of texts in which single letters are written by numbers or names."""

_ODD = re.compile(r"[\u0250-\u02af\u1d00-\u1dbf\ua720-\ua7ff]|[^\w\s\x00-\x7f]")
"""Phonetic letters, and signs that may stand for letters."""

_SIGNS = re.compile(r"(?:[!-/:-@\[-^`{-~]\w?){4,}")
"""Signs in a row, with one letter at most between two."""

_BLANKS = re.compile(r"[^\S ]|\s{2,}")
_MARKS_A_LETTER = 5
"""Repeated blanks, truth values, nulls and lists: as bits, or counted."""


def _coded_in(leaves: Sequence[str | int | float], others: int) -> float:
    """How many letters texts, numbers and so many other parts of arguments may spell."""
    text = " ".join(leaf for leaf in leaves if isinstance(leaf, str))
    numbers = (
        str(min(abs(leaf), int(_LARGEST)))
        for leaf in leaves
        if not isinstance(leaf, str) and not _is_letter(leaf)
    )
    numbered = sum(max(1, sum(map(str.isdigit, one)) / _DIGITS_OF_A_NUMBER) for one in numbers)
    blanks = sum(map(len, _BLANKS.findall(text)))
    signs = sum(not sign.isalnum() for run in _SIGNS.findall(text) for sign in run)
    marks = (blanks + others) / _MARKS_A_LETTER
    spelled = numbered if numbered >= _FEWEST_SPELLED else 0  # a count or a year spells nothing
    return _coded_letters(text) + spelled + signs / _SIGNS_A_LETTER + marks


def _is_letter(number: float) -> bool:
    """Whether a number is the code of a letter, and is read as one."""
    return isinstance(number, int) and number in range(128) and chr(number).isalpha()


def _is_joined(word: str, pieces: Collection[str]) -> bool:
    """Whether a word consists of pieces, or is longer than words and names are."""
    if len(word) > _LONGEST_JOINED:
        return True
    ends = [0]
    for end in range(1, len(word) + 1):
        if any(word[start:end] in pieces for start in ends):
            ends.append(end)
    return ends[-1] == len(word)


def _coded_letters(text: str) -> float:
    """How many letters a text may spell in a code that tools decode and that is not known here.

    Ordinary words are not taken for codes: what they may hide is read as it stands, backwards and
    so on. Numbers, words of letters and digits or of small and capital letters, signs and escapes
    may stand for anything: a letter takes two digits, or one and a quarter of other signs.
    """
    if _MARKED.search(text):
        return float(len(_bare(text)))
    letters, capitals = 0.0, 0
    for word in text.split():
        core = "".join(filter(str.isalnum, word))
        digits = sum(map(str.isdigit, core))
        if not core:
            letters += sum(not sign.isascii() for sign in word) or 1
        elif _ODD.search(word):
            letters += len(core)
        elif digits:
            letters += digits / _DIGITS_A_LETTER + (len(core) - digits) / _SIGNS_A_LETTER
        elif not (core.islower() or core.istitle()):
            capitals += len(core)
    return letters + (capitals / _SIGNS_A_LETTER if capitals >= _LONG_CAPITALS else 0)


def _given(call: ObservedCall, parameter: str, definition: ToolDefinition) -> _Given | None:
    """What a call gave and asked for; None when it is more than can be looked through.

    None as well where somebody outside answered it, who could say anything.
    """
    if call.is_answered or _size(call, definition) > _LONGEST_GIVEN:
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
    heard = dict.fromkeys(reading for text in call.told for reading in _ways_to_read(text))
    if len(heard) >= _MOST_READINGS:
        return None
    written = {float(plain) for text in read if (plain := _bare(text)).isdecimal()}
    written |= {float(n) for n in leaves if not isinstance(n, str) and abs(n) <= _LARGEST}
    bare, told = _bared(read), _bared(heard)
    words = {word for text in (*read, *heard) for word in _WORD.findall(folded(text))}
    words |= {word[at::n] for text in texts for word in text.split() for n, at in _THINNED}
    chosen = [_RANDOM.sub(" ", text) for text in call.told]
    numbered = (*read, *(reading for text in chosen for reading in _ways_to_read(text)))
    joinable = map(folded, (*texts, *chosen))
    names = (text for name in definition.known_signature.properties for text in _ways_to_read(name))
    return _Given(
        call=call,
        concerned=tuple(values_of(parameter, call.arguments, definition) if parameter else ()),
        texts=texts,
        numbers=frozenset(written.union(numbers_in(call.request), *map(numbers_in, numbered))),
        made=frozenset(_made(call.arguments, parameter)) - {0, 1},
        bare=bare,
        told=told,
        words=bare | told | words | {word[::-1] for word in words},
        runs=_runs(bare | told, _RUN),
        asked=_bare(call.request),
        asked_words=frozenset(_WORD.findall(folded(call.request))),
        own_names=_bared(names),
        pieces=frozenset(piece for text in joinable for piece in _WORD.findall(text)),
        coded=_coded_in(leaves, _other_parts(call.arguments)),
    )


def _size(call: ObservedCall, definition: ToolDefinition) -> int:
    leaves = _leaves(call.arguments, definition)
    given = sum(len(leaf) if isinstance(leaf, str) else 1 for leaf in leaves)
    return given + sum(map(len, (call.request, *call.told)))


def _leaves(arguments: JsonObject, definition: ToolDefinition) -> Iterator[str | int | float]:
    """Texts and numbers in arguments, and names inside; not the values that the schema lists."""
    waiting: list[Any] = []
    for name, value in arguments.items():
        part = definition.known_signature.properties.get(name)
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


def _other_parts(arguments: JsonObject) -> int:
    """How many truth values, nulls, lists and objects stand in arguments."""
    count, waiting = -1, [arguments]
    while waiting:
        part: Any = waiting.pop()
        count += part is None or isinstance(part, bool | Mapping | list | tuple)
        waiting.extend(part.values() if isinstance(part, Mapping) else ())
        waiting.extend(part if isinstance(part, list | tuple) else ())
    return count


def _made(arguments: JsonObject, parameter: str) -> Iterator[float]:
    """What a tool could count or compute of its arguments and then state as a bound.

    Values that were refused lie beside bounds by their nature (month 13), so that one more or less
    is not made of the parameter's own value.
    """
    own = parameter.split(".", maxsplit=1)[0].removesuffix("[]")
    counts: list[float] = []
    numbers: dict[float, bool] = {}
    for name, value in arguments.items():
        counts += _of_text(value) if isinstance(value, str) else ()
        if isinstance(value, str | list | tuple | Mapping):
            counts += [len(value), len(value.split()) if isinstance(value, str) else len(value)]
        parts = value if isinstance(value, list | tuple) else (value,)
        total = 0.0
        for part in parts:
            written = numbers_in(part) if isinstance(part, str) and _NUMBER.fullmatch(part) else ()
            for one in (part,) if isinstance(part, int | float) else written:
                if abs(one) <= _LARGEST:
                    numbers[float(one)] = numbers.get(float(one), False) or name != own
                    total += one
        counts.append(total)
    yield from counts
    known = list(numbers)[:_MOST_COUNTED]
    for some in (known, [one for one in known if numbers[one]]):
        yield from (sum(some), prod(some))
    yield from (one * one for one in known)
    yield from (one + step for one in known if numbers[one] for step in (-1, 1))
    yield from (one * 2 for one in known if numbers[one])
    for one, other in permutations(known, 2):
        yield from (one + other, one - other, one * other)
        if other:
            yield from (one / other, one // other, round(one / other))


def _of_text(text: str) -> Iterator[float]:
    """The numbers of a text as a whole: its bytes, its digits backwards and as hexadecimal ones."""
    yield len(text.encode("utf-8", "replace"))
    digits = _bare(text)
    if digits.isdecimal():
        yield float(digits[::-1])
    if not digits.isalpha() and _HEXADECIMAL.fullmatch(digits):
        yield int(digits, 16)


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
            if len(word) >= least and (decoded := _text_of(decode, word)):
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


def _runs(texts: Iterable[str], length: int) -> frozenset[str]:
    """Everything of a length that stands in a row in some text."""
    return frozenset(t[at : at + length] for t in texts for at in range(len(t) - length + 1))


def _covered(text: str, *known: Collection[str]) -> list[bool]:
    """Which characters of a text stand in runs that are known."""
    covered = [False] * len(text)
    for runs in known:
        length = len(next(iter(runs), ""))
        for at in range(len(text) - length + 1) if length else ():
            if text[at : at + length] in runs:
                covered[at : at + length] = [True] * length
    return covered


def _is_framed(rule: Rule, given: _Given, definition: ToolDefinition) -> bool:
    """Whether a refusal still says it when all that the user could have said is hidden.

    The values and numbers of the statement stay: ``says`` asks for each of them.
    """
    failure = given.call.refusal
    if failure is None:
        return False
    text = failure.rule[:LONGEST_TEXT]
    hidden = _without(text, given, tuple(_spans(rule, text)))
    again = stated_in_error(hidden, definition.known_signature.properties)
    return any(one.rule == rule for one in again)


def _spans(rule: Rule, text: str) -> Iterator[tuple[int, int]]:
    """Where the values and numbers of a rule stand in the text that states it."""
    values = map(str, rule.values) if isinstance(rule, OneOf) else ()
    for value in filter(None, values):
        for found in re.finditer(rf"(?<!\w){re.escape(value)}(?!\w)", text):
            yield found.span()
    numbers = {abs(number) for number in numbers_of(rule)}
    for found in _NUMBER.finditer(text):
        if numbers & numbers_in(found[0]):
            yield found.span()


def _without(text: str, given: _Given, kept: Sequence[tuple[int, int]]) -> str:
    """A text in which every word and number is hidden that the user could have said."""
    bare = [(one, at) for at, char in enumerate(text) for one in folded(char) if one.isalnum()]
    covers = _covered("".join(one for one, _ in bare), given.runs, _runs([given.asked], _LONG_RUN))
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
        word: The word or number; empty for a sentence. A number takes a third person.
    """
    letters = sum(map(str.isalpha, word))
    length = min(max(letters or _MOST_SHARED, _LEAST_SHARED), _MOST_SHARED)
    is_number = bool(word) and not letters
    carried = [(one, one.carries(length) | one.begins(word)) for one in found]
    return any(
        runs.isdisjoint(others)
        and _are_apart(one, other, is_number=is_number)
        and (not is_number or any(_is_third(third.call, one.call, other.call) for third in found))
        for (one, runs), (other, others) in combinations(carried, 2)
    )


def _is_third(call: ObservedCall, *others: ObservedCall) -> bool:
    """Whether somebody else gave other things: two can choose what a tool computes a number of."""
    return not any(call.party & one.party or call.arguments == one.arguments for one in others)


def _are_apart(one: _Given, other: _Given, *, is_number: bool) -> bool:
    """Whether two calls are of different people who gave and asked for different things."""
    return not (
        one.call.party & other.call.party
        or one.call.arguments == other.call.arguments
        or (one.asked and one.asked == other.asked)
        # any text can stand for a number, whatever blanks and signs are around it
        or (is_number and set(map(_bare, one.texts)) & set(map(_bare, other.texts)))
        or (one.concerned and one.concerned == other.concerned)
    )
