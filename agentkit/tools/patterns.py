r"""Regular expressions in schemas: matched in linear time, because both sides are foreign.

A pattern comes from the definition's author and the text from a model or a server. Python's
``re`` backtracks without a limit and holds the interpreter while it does, so patterns are matched
by the Rust engine that pydantic brings along: its time is bounded by the size of the pattern times
the length of the text, whatever both are.

Patterns mean what JSON Schema says, which is ECMA 262: they are searched, ``$`` is the end of the
text, ``\d`` and ``\w`` are ASCII. Look-around and back-references have no linear-time match; a
pattern that uses them is refused where its tool is imported or first checked.

The checked formats, the invisible characters of a text and data as a prompt quotes it are defined
here as well.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic_core import SchemaValidator

MAX_LENGTH = 4_000
"""Longest pattern, in characters."""

MAX_WEIGHT = 10_000
"""Heaviest pattern, in states of its automaton after counted repetitions are written out."""

_LIGHT = 500
_STATES_A_STEP = 1_500
_STATES = {".": 2, r"\d": 1, r"\w": 1, r"\D": 10, r"\W": 10, r"\s": 5, r"\S": 5}
_PROPERTY_STATES = 100
_WIDE = re.compile(r"\\[DWsS]|\\u")

_TOKEN = re.compile(
    r"(?P<escape>\\(?:u\{[0-9A-Fa-f]{1,6}\}|u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|[pP]\{[^{}]{1,60}\}|.))"
    r"|(?P<members>\[\^?\]?+(?:\\.|[^\]\\])*+\])"
    r"|(?P<open>\((?:\?(?:P?<[A-Za-z_]\w{0,40}>|[ims]{1,3}\)|[ims-]{0,4}:|<?[=!]))?)"
    r"|(?P<repeat>(?:[*+?]|\{\d*(?:,\d*)?(?<!\{)(?<!\{,)\})\??)"
    r"|(?P<other>.)",
    re.DOTALL,
)
_BRACES = frozenset("{}]")
_UNREPEATABLE = frozenset({"|", "^", "$", r"\b", r"\B"})
_SPELLED = {r"\d": "[0-9]", r"\D": "[^0-9]", r"\w": "[0-9A-Za-z_]", r"\W": "[^0-9A-Za-z_]"}
_SPELLED |= {r"\b": r"(?-u:\b)", r"\Z": r"\z", r"\<": "<", r"\>": ">", r"\0": r"\x00"}
_MEMBER = re.compile(r"\\(?:[pP]\{[^{}]*\}|.)|--|[\[&~]", re.DOTALL)
_MEMBERS_SPELLED = {r"\d": "0-9", r"\w": "0-9A-Za-z_", r"\b": r"\x08", r"\<": "<", r"\>": ">"}
_MEMBERS_SPELLED |= {"--": r"-\-", r"\D": "[^0-9]", r"\W": "[^0-9A-Za-z_]", r"\0": r"\x00"}


def why_unusable(pattern: str) -> str:
    """Why a pattern cannot be matched, in words that follow its text; empty when it can.

    Example:
        >>> why_unusable("^(a|a)*$"), why_unusable("(?=a)b")
        ('', 'uses look-around or back-references, which cannot be matched in linear time')
    """
    found = _read(pattern)
    return found if isinstance(found, str) else ""


def is_compilable(pattern: str) -> bool:
    """Whether ``pattern`` can be matched at all."""
    return not why_unusable(pattern)


def pattern_holds(pattern: str, text: str) -> bool:
    """Whether ``pattern`` is found in ``text``; it is not anchored, as in JSON Schema.

    Raises:
        ValueError: The pattern cannot be matched.
    """
    found = _read(pattern)
    if isinstance(found, str):
        message = f"the pattern {pattern[:100]!r} {found}"
        raise ValueError(message)  # noqa: TRY004 - what it is comes from a schema, not from a caller
    return found.isinstance_python(text)


def pattern_steps(pattern: str, text: str) -> int:
    """The cost of ``pattern_holds``, in steps of some ten microseconds."""
    return pattern_weight(pattern) * len(text) // _STATES_A_STEP


def _read(pattern: str) -> SchemaValidator | str:
    if pattern_weight(pattern) > MAX_WEIGHT:
        return "is too large to be matched"
    return (_compiled if pattern_weight(pattern) <= _LIGHT else _compiled_large)(pattern)


def _compile(pattern: str) -> SchemaValidator | str:
    """The matcher of a pattern, or why there is none."""
    from pydantic_core import SchemaError, SchemaValidator, core_schema

    try:
        return SchemaValidator(
            core_schema.str_schema(pattern=_translated(pattern), regex_engine="rust-regex")
        )
    except (SchemaError, re.error) as error:
        message = str(error)
    if "look-around" in message or "backreferences" in message:
        return "uses look-around or back-references, which cannot be matched in linear time"
    return (
        "is too large to be matched" if "size limit" in message else "is not a regular expression"
    )


_compiled = lru_cache(maxsize=1024)(_compile)
_compiled_large = lru_cache(maxsize=16)(_compile)  # up to some megabytes each


def _translated(pattern: str) -> str:
    """The pattern in the engine's syntax, which differs in classes, braces and escapes.

    Raises:
        re.error: A quantifier stands where nothing can be repeated; the engine would take it.
    """
    parts: list[str] = []
    repeatable = False
    for match in _TOKEN.finditer(pattern):
        token = match[0]
        if match["repeat"]:
            if not repeatable:  # `a++` is possessive to Python and an error to ECMA 262
                raise re.error("nothing to repeat", pattern, match.start())
            parts.append("{0" + token[1:] if token.startswith("{,") else token)
        elif match["members"]:
            parts.append(_members(token))
        elif match["escape"]:
            is_bare = not token[1].isascii()  # an escape that says nothing
            parts.append(token[1:] if is_bare else _SPELLED.get(token, token))
        else:
            parts.append(f"\\{token}" if token in _BRACES else token)
        repeatable = not (match["repeat"] or match["open"] or token in _UNREPEATABLE)
    return "".join(parts)


def _members(token: str) -> str:
    start = "[^" if token.startswith("[^") else "["
    inside = token[len(start) : -1]
    if inside.startswith(("-", "]")):
        start, inside = f"{start}\\{inside[0]}", inside[1:]
    return start + _MEMBER.sub(_member, inside) + "]"


def _member(match: re.Match[str]) -> str:
    token = match[0]
    if token in _MEMBERS_SPELLED:
        return _MEMBERS_SPELLED[token]
    if not token.startswith("\\"):
        return f"\\{token}"
    return token if token[1].isascii() else token[1:]


@lru_cache(maxsize=2048)
def pattern_weight(pattern: str) -> int:
    """About how many states the automaton of a pattern has; ``MAX_WEIGHT`` and one for too many."""
    if len(pattern) > MAX_LENGTH:
        return MAX_WEIGHT + 1
    groups, last = [0], 0
    for match in _TOKEN.finditer(pattern):
        token = match[0]
        if match["open"]:
            groups.append(0)
            last = 0
        elif match[0] == ")" and len(groups) > 1:
            last = groups.pop()
            groups[-1] += last
        elif match["repeat"]:
            groups[-1] += last * (_most(token) - 1)
            last *= _most(token)
        else:
            last = _states(token)
            groups[-1] += last
        if groups[-1] > MAX_WEIGHT:
            return MAX_WEIGHT + 1
    return max(1, sum(groups))


def _states(token: str) -> int:
    if r"\p" in token or r"\P" in token:
        return _PROPERTY_STATES
    if token.startswith("["):
        wide = sum(not character.isascii() for character in token)
        return 1 + wide + 2 * token.startswith("[^") + 10 * (_WIDE.search(token) is not None)
    return _STATES.get(token, 1)


def _most(quantifier: str) -> int:
    """The number of times a quantifier expands what it repeats."""
    counts = [int(count) for count in re.findall(r"\d+", quantifier)]
    return max(1, *counts) if counts else 1


# --- patterns of learned rules: small, and read alike by every reader of JSON Schema --------------

MAX_PORTABLE_LENGTH = 200
"""Longest pattern of a learned rule, in characters."""

_UNPORTABLE = re.compile(r"\(\?(?!:)|\{,|[*+?}]\+|\\[1-9AzZbBkpPGgNuUxc0]")
_IN_BRACKETS = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]")
_SET_OPERATION = re.compile(r"(?<=[^\\])\[|--|&&|\|\||~~")  # of which Python warns


def anchored(pattern: str) -> str:
    """A pattern that the whole text matches, in the words of JSON Schema, which searches.

    Example:
        >>> anchored("[A-Z]{2}"), anchored("^[A-Z]{2}$"), anchored("EUR|USD")
        ('^[A-Z]{2}$', '^[A-Z]{2}$', '^(?:EUR|USD)$')
    """
    inside = _bare(pattern)
    return f"^(?:{inside})$" if "|" in inside else f"^{inside}$"


def _bare(pattern: str) -> str:
    """Without anchors at the ends: they say nothing of a text that is matched as a whole."""
    inside = pattern.removeprefix("^")
    is_anchor = inside.endswith("$") and not _is_escaped(inside)
    return inside[:-1] if is_anchor else inside


def _is_escaped(pattern: str) -> bool:
    """Whether the last character has an odd number of backslashes before it."""
    before = pattern[:-1]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 1


@lru_cache(maxsize=512)  # asked at every call, about the same few patterns
def why_unsafe(pattern: str) -> str:
    r"""Why a pattern is not fit for a rule; empty when it is.

    Example:
        >>> why_unsafe(r"[A-Z]{2}\d{1,6}")
        ''
        >>> why_unsafe("(?=a)a")
        "it uses '(?', which not every reader of JSON Schema knows"
    """
    if len(pattern) > MAX_PORTABLE_LENGTH:
        return f"it has {len(pattern)} characters, more than {MAX_PORTABLE_LENGTH}"
    sets = (_SET_OPERATION.search(part) for part in _IN_BRACKETS.findall(pattern))
    if found := _UNPORTABLE.search(pattern) or next(filter(None, sets), None):
        return f"it uses {found[0]!r}, which not every reader of JSON Schema knows"
    why = why_unusable(pattern) or why_unusable(anchored(pattern))
    return f"it {why}" if why else ""


# --- formats --------------------------------------------------------------------------------------

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_TIME = re.compile(r"\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?([Zz]|[+-]\d{2}:\d{2})?", re.ASCII)
_DATE_TIME = re.compile(_DATE.pattern + "[Tt ]" + _TIME.pattern, re.ASCII)
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE | re.ASCII)
_URI = re.compile(r"[a-z][a-z0-9+.-]*:[^\s<>\"]+", re.IGNORECASE | re.ASCII)


def _parses(shape: re.Pattern[str], parse: Callable[[str], object]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        if shape.fullmatch(text) is None:
            return False
        try:
            parse(text.upper())
        except ValueError:
            return False
        return True

    return check


def _looks_like(shape: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda text: shape.fullmatch(text) is not None


FORMATS: Mapping[str, Callable[[str], bool]] = MappingProxyType(
    {
        "date": _parses(_DATE, date.fromisoformat),
        "date-time": _parses(_DATE_TIME, datetime.fromisoformat),
        "email": _looks_like(_EMAIL),
        "time": _parses(_TIME, time.fromisoformat),
        "uri": _looks_like(_URI),
        "uuid": _looks_like(_UUID),
    }
)
"""The check of each format by its name in JSON Schema."""

FORMAT_EXAMPLES: Mapping[str, str] = MappingProxyType(
    {
        "date": "2026-05-31",
        "date-time": "2026-05-31T14:30:00",
        "email": "ada@example.org",
        "time": "14:30:00",
        "uri": "https://example.org/",
        "uuid": "123e4567-e89b-12d3-a456-426614174000",
    }
)
"""A value of each format, for messages."""


# --- invisible characters -------------------------------------------------------------------------

_SUSPECT = re.compile(
    r"[^\n\t\x20-\x7e\u00a0-\u00ac\u00ae-\u02ff\u3001-\u3029\u3041-\u3096\u30a1-\u30fc\u4e00-\u9fff\uac00-\ud7a3\uff01-\uff9f]"
)
"""Everything but the blocks that hold nothing invisible; the rest is looked at one by one."""

_UNSEEN_CATEGORIES = frozenset({"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"})
_UNSEEN = re.compile(
    r"[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\uffa0\ufe00-\ufe0f"
    r"\U0001d159\U000e0100-\U000e01ef]"
)
"""Unicode counts these as letters, marks or symbols: what is left of Default_Ignorable_Code_Point,
and signs without ink."""

_JOINED_SCRIPTS = re.compile(r"[\u0600-\u07ff\u0840-\u0dff\u0e80-\u109f\u1780-\u18af]")
_ARABIC_SIGNS = frozenset("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2")


def invisible(text: str) -> tuple[str, ...]:
    r"""The invisible characters of ``text``, each once, in order; see ``is_invisible``.

    Example:
        >>> invisible("Delete" + chr(0x200B) + " a file")
        ('\u200b',)
    """
    return tuple(dict.fromkeys(text[at] for at in invisible_places(text)))


def invisible_places(text: str) -> list[int]:
    """Where ``text`` holds invisible characters."""
    return [m.start() for m in _SUSPECT.finditer(text) if is_invisible(text, m.start())]


def written_out(text: str, form: Callable[[int], str] = "⟨U+{:04X}⟩".format) -> str:
    """The text with its invisible characters written out.

    Args:
        text: Any text.
        form: Writes one, whose number it is given.
    """
    return _SUSPECT.sub(lambda m: form(ord(m[0])) if is_invisible(text, m.start()) else m[0], text)


def escaped(text: str) -> str:
    """JSON that says the same, with its invisible characters escaped."""
    return written_out(text, lambda sign: json.dumps(chr(sign))[1:-1])


def json_line(value: Any, *, most: int | None = None) -> str:
    r"""Data as JSON on one line: the way in which prompts quote what others wrote.

    Nothing in it begins a line, ends its quotation or stays unseen.

    Args:
        value: The data; what JSON does not know is written as text.
        most: Most characters; what is longer is cut, and says so.

    Example:
        >>> print(json_line("found" + chr(10) + "user: yes" + chr(0x200B)))
        "found\nuser: yes\u200b"
    """
    text = escaped(json.dumps(value, ensure_ascii=False, default=str))
    return text if most is None or len(text) <= most else f"{text[:most]}\u2026 (shortened)"


_GAP = re.compile(r"\s{9,}")


def without_gaps(text: str) -> str:
    """``written_out``, also runs of blanks and empty lines that push the rest out of sight.

    Example:
        >>> without_gaps("Pay 5 to Ann" + " " * 90 + ", 900 to Bob")
        'Pay 5 to Ann ⟨90 blanks⟩ , 900 to Bob'
    """
    return written_out(_GAP.sub(lambda gap: f" ⟨{len(gap[0])} blanks⟩ ", text))


def is_unseen(char: str) -> bool:
    """Whether nobody sees a character by itself: its category or Unicode's default says so."""
    return unicodedata.category(char) in _UNSEEN_CATEGORIES or bool(_UNSEEN.match(char))


def is_invisible(text: str, at: int) -> bool:
    """Whether nobody sees the character at a place of a text; the one rule for checks and pages.

    Invisible, bidirectional, control, private-use and unassigned characters are. Joiners pass
    inside words of the scripts that need them and inside emoji; variation selectors only behind a
    pictograph. Spaces of all widths pass, French and Japanese set them.
    """
    char, before, after = text[at], text[at - 1 : at] if at else "", text[at + 1 : at + 2]
    if char in "\u200c\u200d":
        is_joined = _JOINED_SCRIPTS.match(before) and _JOINED_SCRIPTS.match(after)
        return not (is_joined or (_is_pictograph(before) and _is_pictograph(after)))
    if char == "\r":  # lines end with both on Windows; alone it lets a line write over itself
        return after != "\n"
    if char in "\ufe0e\ufe0f":
        return unicodedata.category(before or "a") not in {"So", "Sm", "Po", "Nd"}
    return char not in "\n\t" and is_unseen(char) and char not in _ARABIC_SIGNS


def _is_pictograph(char: str) -> bool:
    """Whether emoji are made of it: a symbol, a skin tone or an emoji selector."""
    return char == "\ufe0f" or (
        char != "" and unicodedata.category(char) in {"So", "Sk"} and ord(char) > 0x2000
    )
