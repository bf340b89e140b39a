"""Expected answers: one record for each way of judging, and its JSON form.

A task says with one of these what is expected; ``agentkit.evaluation.verifiers`` turns it into the
verifier that judges an episode. In files each way of judging is one short key: ``{"number": 72}``
is ``NumberAnswer``, ``{"calls": [...]}`` is ``ExactCalls``; ``_READERS`` has them all.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Literal,
    Protocol,
    Self,
    TypeAlias,
    TypeVar,
    runtime_checkable,
)

from agentkit.episodes import Verifier
from agentkit.messages import JsonObject
from agentkit.metrics import AllowedCall, Language
from agentkit.tools.definition import ToolDefinition

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from pydantic import TypeAdapter


STRICT: dict[str, Any] = {"extra": "forbid", "strict": True}
"""Pydantic's settings for reading a record: no extra field, no conversion."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GoldCall:
    """A call that a right answer makes.

    Attributes:
        name: The tool.
        arguments: Its arguments.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT

    name: str
    arguments: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class AllowedCalls:
    """Exactly these calls, each argument one of its allowed values (BFCL).

    Attributes:
        calls: The gold calls.
        language: What gold values are written in, where they are source text of a language; None
            for plain JSON.
    """

    calls: tuple[AllowedCall, ...]
    language: Language | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ExactCalls:
    """Exactly these calls, in any order, equal under the tools' schemas.

    Attributes:
        calls: The gold calls.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    calls: tuple[GoldCall, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class AnyCall:
    """At least one call; there is no gold call to compare with."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NoCall:
    """No call: none of the offered tools fits, so the right answer is words."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NumberAnswer:
    """A number in the final answer (GSM8K).

    Attributes:
        value: The number, as text so that no digit is lost.
        tolerance: How far off it may be, relative to ``value`` (absolute where ``value`` is 0).
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    value: str
    tolerance: float = 1e-6


@dataclass(frozen=True, kw_only=True, slots=True)
class TextAnswer:
    """A text in the final answer.

    Attributes:
        text: The text; case and surrounding space do not count.
        match: ``equal``: it is the answer; ``contains``: the answer holds it.
    """

    text: str
    match: Literal["equal", "contains"] = "equal"


@dataclass(frozen=True, kw_only=True, slots=True)
class FinalState:
    """The environment is in the right state afterwards.

    Attributes:
        state: The state, when it is known as data. Parts that it does not name are free.
        calls: Gold calls; run on a fresh copy of the environment, they give the right state
            (as in tau-bench and the multi-turn part of BFCL). Used when ``state`` is None.
        responses: Whether what the gold calls returned must be among what the agent's calls
            returned (BFCL).
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    state: JsonObject | None = None
    calls: tuple[GoldCall, ...] = ()
    responses: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Rubric:
    """Criteria that a model judges, each met or not.

    Attributes:
        criteria: The criteria by name, each a sentence that is true of a right answer.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    criteria: Mapping[str, str]


@runtime_checkable
class CustomExpectation(Protocol):
    """A plugin's own way of judging: a record that brings its verifier along."""

    @property
    def gold_tools(self) -> tuple[str, ...]:
        """The tools that a right answer calls, in the catalogue's names."""

    def verifier(self, definitions: Sequence[ToolDefinition]) -> Verifier:
        """The verifier of an episode whose calls use the names of these tools."""

    def renamed(self, names: Mapping[str, str]) -> Self:
        """The same with other names of tools; a name that is not there stays."""

    def to_json(self) -> tuple[str, Any]:
        """Its written form: one short key, and JSON data."""


Expectation: TypeAlias = (
    AllowedCalls
    | ExactCalls
    | AnyCall
    | NoCall
    | NumberAnswer
    | TextAnswer
    | FinalState
    | Rubric
    | CustomExpectation
)


# --- records out of JSON --------------------------------------------------------------------------

Record = TypeVar("Record", bound="DataclassInstance")


class RecordError(ValueError):
    """A part of a record is not what it has to be; the message is the reason."""


def checked(kind: type[Record], value: object, where: str = "") -> Record:
    """``value`` as a record.

    Args:
        kind: A dataclass that describes the JSON object.
        value: Decoded JSON.
        where: Dotted path of the value, for the reason.

    Raises:
        RecordError: It does not fit; the message names the first place where.
    """
    from pydantic import ValidationError

    if getattr(kind, "__pydantic_config__", None) is STRICT:
        refuse_other_fields(kind, value, where)
    try:
        # as text, for pydantic's strict mode takes a dict for a record only out of JSON
        record: Record = _adapter(kind).validate_json(json.dumps(value))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = _path(where, *first["loc"]) or "the row"
        if first["type"] == "unexpected_keyword_argument":
            raise RecordError(f"{place}: there is no such field") from error
        if first["type"] == "missing":
            raise RecordError(f"{place}: is missing") from error
        message = first["msg"].removeprefix("Input ")
        raise RecordError(f"{place}: {message}, got {first['input']!r:.60}") from error
    return record


def refuse_other_fields(kind: type[DataclassInstance], value: object, where: str) -> None:
    """Make sure that an object has no field which a record has not.

    Raises:
        RecordError: It has one; the message names it, and those that there are.
    """
    known = [one.name for one in fields(kind)]
    for name in value if isinstance(value, dict) else ():
        if name not in known:
            raise RecordError(
                f"{_path(where, name)}: there is no such field; there are {', '.join(known)}"
            )


def _path(*parts: str | int) -> str:
    return ".".join(str(part) for part in parts if part != "")


@cache
def _adapter(kind: type[Record]) -> TypeAdapter[Record]:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def expectations_from_json(value: object, where: str = "expects") -> tuple[Expectation, ...]:
    """Expectations out of their JSON form.

    Args:
        value: An object whose keys are ways of judging, or a list of such objects; all of them
            have to hold.
        where: Path of the value in its row, for the reason.

    Raises:
        RecordError: It is not such a form; the message says what is wrong and where.

    Example:
        >>> expectations_from_json({"number": 72, "no_call": True})
        (NumberAnswer(value='72', tolerance=1e-06), NoCall())
    """
    if isinstance(value, list):
        parts = [_read(part, f"{where}.{at}") for at, part in enumerate(value)]
        return tuple(one for part in parts for one in part)
    return tuple(_read(value, where))


def _read(value: object, where: str) -> Iterator[Expectation]:
    if not isinstance(value, dict):
        raise RecordError(
            f'{where}: expected an object such as {{"number": 72}}, got {value!r:.60}'
        )
    if not value:
        raise RecordError(f"{where}: nothing is expected; use some of {', '.join(_READERS)}")
    for key, content in value.items():
        if key not in _READERS:
            raise RecordError(
                f"{where}.{key}: there is no such expectation; there are {', '.join(_READERS)}"
            )
        yield from _READERS[key](content, where)


def _require(holds: object, where: str, reason: str) -> None:
    if not holds:
        raise RecordError(f"{where}{reason}")


_NO_CALL = ' is empty; where no call is right, write {"no_call": true}'


@dataclass(frozen=True, kw_only=True)
class _AllowedCall:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    name: str
    arguments: dict[str, list[Any]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class _Allowed:
    allowed: list[_AllowedCall]


@dataclass(frozen=True, kw_only=True)
class _Contains:
    contains: list[str]


def _calls(value: object, where: str) -> Iterator[Expectation]:
    made = checked(ExactCalls, {"calls": value}, where)
    _require(made.calls, f"{where}.calls", _NO_CALL)
    yield made


def _allowed(value: object, where: str) -> Iterator[Expectation]:
    calls = checked(_Allowed, {"allowed": value}, where).allowed
    _require(calls, f"{where}.allowed", _NO_CALL)
    for at, call in enumerate(calls):
        for name, values in call.arguments.items():
            place = f"{where}.allowed.{at}.arguments.{name}"
            _require(values, place, " is empty; list the values that are right")
    yield AllowedCalls(
        calls=tuple(AllowedCall(name=call.name, allowed=call.arguments) for call in calls)
    )


def _actions(value: object, where: str) -> Iterator[Expectation]:
    long = value if isinstance(value, dict) else {"calls": value}
    _require("calls" in long, f"{where}.actions.calls", ": is missing")
    yield checked(FinalState, long, f"{where}.actions")


def _state(value: object, where: str) -> Iterator[Expectation]:
    made = checked(FinalState, {"state": value}, where)
    empty = ' is empty; write {"actions": []} where nothing may change'
    _require(made.state, f"{where}.state", empty)
    yield made


def _number(value: object, where: str) -> Iterator[Expectation]:
    long: Any = value if isinstance(value, dict) else {"value": value}
    if type(long.get("value")) in (int, float):
        long = {**long, "value": str(long["value"])}
    made = checked(NumberAnswer, long, f"{where}.number")
    is_one = read_number(made.value) is not None and 0 <= made.tolerance < 1
    problem = f": expected a number, and a tolerance from 0 to below 1; got {value!r:.60}"
    _require(is_one, f"{where}.number", problem)
    yield NumberAnswer(value=made.value.strip(), tolerance=made.tolerance)


def _texts(key: str, match: Literal["equal", "contains"]) -> _Reader:
    def read(value: object, where: str) -> Iterator[Expectation]:
        listed = value if isinstance(value, list) and match == "contains" else [value]
        texts = checked(_Contains, {"contains": listed}, where).contains
        is_said = texts and all(text.strip() for text in texts)
        _require(is_said, f"{where}.{key}", ": the text is empty, so any answer would hold it")
        yield from (TextAnswer(text=text, match=match) for text in texts)

    return read


def _rubric(value: object, where: str) -> Iterator[Expectation]:
    made = checked(Rubric, {"criteria": value}, where)
    texts = [text.strip() for pair in made.criteria.items() for text in pair]
    problem = ': expected criteria, such as {"polite": "The answer ..."}'
    _require(texts and all(texts), f"{where}.rubric", problem)
    yield made


def _flag(key: str, made: Expectation) -> _Reader:
    def read(value: object, where: str) -> Iterator[Expectation]:
        problem = f": expected true, got {value!r:.60}; or leave it out"
        _require(value is True, f"{where}.{key}", problem)
        yield made

    return read


_Reader: TypeAlias = Callable[[Any, str], Iterator[Expectation]]

_READERS: Mapping[str, _Reader] = {
    "calls": _calls,
    "allowed": _allowed,
    "any_call": _flag("any_call", AnyCall()),
    "no_call": _flag("no_call", NoCall()),
    "number": _number,
    "text": _texts("text", "equal"),
    "contains": _texts("contains", "contains"),
    "state": _state,
    "actions": _actions,
    "rubric": _rubric,
}


def expectations_to_json(expectations: Iterable[Expectation]) -> dict[str, Any] | list[Any]:
    """The inverse of ``expectations_from_json``: one object, or a list where a key comes twice."""
    written = [_written(one) for one in expectations]
    if len({key for key, _ in written}) == len(written):
        return dict(written)
    return [{key: value} for key, value in written]


def _written(one: Expectation) -> tuple[str, Any]:  # noqa: PLR0911 - a case for each kind
    """Key and value of one expectation, the short form where it says all."""
    match one:
        case ExactCalls():
            return "calls", _gold_to_json(one.calls)
        case AllowedCalls():
            calls = [
                {"name": c.name, "arguments": {name: list(v) for name, v in c.allowed.items()}}
                for c in one.calls
            ]
            if one.language is None:
                return "allowed", calls
            return "allowed", {"calls": calls, "language": one.language.name}
        case FinalState():
            return _final_state_to_json(one)
        case NumberAnswer():
            is_usual = one.tolerance == NumberAnswer(value="").tolerance
            long = {"value": one.value, "tolerance": one.tolerance}
            return "number", one.value if is_usual else long
        case TextAnswer():
            return "contains" if one.match == "contains" else "text", one.text
        case Rubric():
            return "rubric", dict(one.criteria)
        case AnyCall():
            return "any_call", True
        case NoCall():
            return "no_call", True
        case _:
            return one.to_json()


def _final_state_to_json(one: FinalState) -> tuple[str, Any]:
    calls = _gold_to_json(one.calls)
    if one.state is not None and not calls and not one.responses:
        return "state", dict(one.state)
    long: dict[str, Any] = {"calls": calls}
    if one.responses:
        long["responses"] = True
    if one.state is not None:
        long["state"] = dict(one.state)
    return "actions", long if len(long) > 1 else calls


def _gold_to_json(calls: Iterable[GoldCall]) -> list[dict[str, Any]]:
    return [{"name": call.name, "arguments": dict(call.arguments)} for call in calls]


# --- numbers of an answer -------------------------------------------------------------------------

_LONGEST = 10_000
"""Most digits, and largest power of ten, of a number that is read."""

_SIGNS = {ord(sign): "-" for sign in "\u2010\u2011\u2012\u2013\u2212\ufe63\uff0d"}
_LATEX = re.compile(r"\\(?:[,!; ]|left|right)|(?<=\d)\{,\}(?=\d)")
_LATEX_ESCAPED = re.compile(r"\\([$%])")
_LATEX_FRACTION = re.compile(r"\\[dt]?frac *\{([^{}]*)\} *\{([^{}]*)\}")
_GROUPED = re.compile(r"(?<![\d.])\d{1,3}(?:,\d{3})+(?!\d)")

_PLAIN = r"(?:\d+(?:\.\d+)?|(?<!\.)\.\d+)"
_NUMBER = re.compile(
    rf"""
    (?<![^\W_])(?<![^\W_][.^])                              # in no word
    (?P<sign>(?<![\w)\]}}%])-|(?<==)-\s|(?<==\s)-\s)?
    (?:[$€£¥₹₩]\s?)?
    (?P<over>{_PLAIN})
    (?:\s?/\s?(?P<under>{_PLAIN})|[eE](?P<power>[+-]?\d+))?
    (?P<more>(?:\s?/\s?\d+)*)               # a date or a chain of divisions is no fraction
    """,
    re.VERBOSE,
)
_MARKED = re.compile(r"^[ \t]*####[ \t]*(?P<rest>.*)$", re.MULTILINE)
_UNIT = re.compile(r" ?[\w%$€£]{0,20}(?: [\w%]{1,20})?\.?")
_BOXED = re.compile(r"\\boxed\s*\{")


def final_number(text: str) -> Fraction | None:
    r"""The number that an answer gives, or None when it gives none that can be read.

    It is the number behind the last ``####`` when that is all there is in its line (GSM8K's own
    form), else the last one inside the last ``\boxed{}``, else the last one of the text.

    GSM8K's published evaluation reads only the first ``#### -?[0-9.,]+``, takes commas out and
    compares text. Here the last marker counts, an answer without a marker is read as well, and
    values are compared, so that ``72.0`` and ``$72`` are ``72``.

    Args:
        text: The answer.

    Example:
        >>> final_number("She sold 48 + 24 = 72 clips.")
        Fraction(72, 1)
        >>> final_number(r"So \boxed{\$1,250.50} for 3 days")
        Fraction(2501, 2)
        >>> final_number("I cannot tell.") is None
        True
    """
    plain = _plain(text)
    for marked in reversed(list(_MARKED.finditer(plain))):
        rest = marked["rest"].rstrip()
        number = _NUMBER.match(rest)
        if number is not None and _UNIT.fullmatch(rest, number.end()):
            return _value(number)
    boxes = list(_BOXED.finditer(plain))
    inside = _last(_braced(plain, boxes[-1].end())) if boxes else None
    return _last(plain) if inside is None else inside


def read_number(text: str) -> Fraction | None:
    """The number that a text is as a whole, but for a currency or percent sign; else None.

    Args:
        text: Such as ``1,000``, ``-3/4`` or ``$5``.
    """
    number = _NUMBER.fullmatch(_plain(text).strip().removesuffix("%").rstrip())
    return None if number is None else _value(number)


def _last(text: str) -> Fraction | None:
    found = None
    for found in _NUMBER.finditer(text):  # noqa: B007 - the last one is wanted
        pass
    return None if found is None else _value(found)


def _value(number: re.Match[str]) -> Fraction | None:
    power = number["power"] or "0"
    is_long = len(number[0]) > _LONGEST or len(power) > len(str(_LONGEST))
    if number["more"] or is_long or abs(int(power)) > _LONGEST:
        return None
    # by way of Decimal, for int() refuses texts of more than 4,300 digits
    over, under = (Fraction(Decimal(text)) for text in (number["over"], number["under"] or "1"))
    if not under:
        return None
    value = over / under * Fraction(10) ** int(power)
    return -value if number["sign"] else value


def _braced(text: str, start: int) -> str:
    """The text from ``start`` to the brace that closes what was opened before it."""
    depth = 1
    for at in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return text[start:at]
    return text[start:]


def _plain(text: str) -> str:
    """The text with numbers in one notation: ASCII digits and signs, no separators, no LaTeX."""
    text = "".join(
        str(unicodedata.decimal(sign)) if sign.isdecimal() and not sign.isascii() else sign
        for sign in text.translate(_SIGNS)
    )
    text = _LATEX.sub("", _LATEX_ESCAPED.sub(r"\1", text))
    text = _LATEX_FRACTION.sub(r"\1/\2", text)
    return _GROUPED.sub(lambda number: number[0].replace(",", ""), text)
