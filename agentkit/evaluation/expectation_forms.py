"""What a task expects, as people write it in JSON: one short key for each way of judging.

``{"number": 72}`` is ``NumberAnswer``, ``{"calls": [...]}`` is ``ExactCalls``, and so on: the
table ``_READERS`` has them all. Where one value says everything it stands alone; the long form, an
object, has every part.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

from agentkit.evaluation.expectations import (
    STRICT,
    AllowedCalls,
    AnyCall,
    CustomExpectation,
    ExactCalls,
    Expectation,
    FinalState,
    GoldCall,
    NoCall,
    NumberAnswer,
    PythonTests,
    Rubric,
    TextAnswer,
)
from agentkit.evaluation.verifiers.numbers import read_number
from agentkit.metrics import AllowedCall

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from pydantic import TypeAdapter

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

    try:
        # as text, for pydantic's strict mode takes a dict for a record only out of JSON
        record: Record = _adapter(kind).validate_json(json.dumps(value))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join([*filter(None, [where]), *map(str, first["loc"])]) or "the row"
        if first["type"] == "unexpected_keyword_argument":
            known = [one.name for one in fields(kind)] if len(first["loc"]) == 1 else []
            there_are = f"; there are {', '.join(known)}" if known else ""
            raise RecordError(f"{place}: there is no such field{there_are}") from error
        if first["type"] == "missing":
            raise RecordError(f"{place}: is missing") from error
        said = first["msg"].removeprefix("Input ")
        raise RecordError(f"{place}: {said}, got {first['input']!r:.60}") from error
    return record


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
        RecordError: It is no such form; the message says what is wrong and where.

    Example:
        >>> expectations_from_json({"number": 72, "no_call": True})
        (NumberAnswer(value='72', tolerance=1e-06), NoCall())
    """
    if isinstance(value, list):
        parts = [_read(part, f"{where}.{at}") for at, part in enumerate(value)]
        return tuple(one for part in parts for one in part)
    return tuple(_read(value, where))


def expectations_to_json(expectations: Iterable[Expectation]) -> dict[str, Any] | list[Any]:
    """The inverse of ``expectations_from_json``: one object, or a list where a key comes twice."""
    written = [_written(one) for one in expectations]
    if len({key for key, _ in written}) == len(written):
        return dict(written)
    return [{key: value} for key, value in written]


# --- reading --------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _AllowedCall:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    name: str
    arguments: dict[str, list[Any]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class _Allowed:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    calls: list[_AllowedCall]


@dataclass(frozen=True, kw_only=True)
class _Texts:
    texts: list[str]


def _read(value: object, where: str) -> Iterator[Expectation]:
    if not isinstance(value, dict):
        raise RecordError(
            f'{where}: expected an object such as {{"number": 72}}, got {value!r:.60}'
        )
    if not value:
        raise RecordError(f"{where}: nothing is expected; use some of {', '.join(_READERS)}")
    for key, content in value.items():
        reader = _READERS.get(key)
        if reader is None:
            raise RecordError(
                f"{where}.{key}: there is no such expectation; there are {', '.join(_READERS)}"
            )
        yield from reader(content, f"{where}.{key}")


def _long(value: object, key: str) -> object:
    """The long form of a value that may stand alone."""
    return value if isinstance(value, dict) else {key: value}


def _above(where: str) -> str:
    return where.rpartition(".")[0]


def _require(holds: object, where: str, advice: str) -> None:
    if not holds:
        raise RecordError(f"{where} is empty; {advice}")


_ADVICE = 'where no call is right, write {"no_call": true}'


def _calls(value: Any, where: str) -> Iterator[Expectation]:
    made = checked(ExactCalls, {"calls": value}, _above(where))
    _require(made.calls, where, _ADVICE)
    yield made


def _allowed(value: Any, where: str) -> Iterator[Expectation]:
    calls = checked(_Allowed, _long(value, "calls"), where).calls
    _require(calls, where, _ADVICE)
    for at, call in enumerate(calls):
        for name, values in call.arguments.items():
            place = f"{where}.calls.{at}.arguments.{name}"
            _require(values, place, "list the values that are right")
    yield AllowedCalls(
        calls=tuple(AllowedCall(name=call.name, allowed=call.arguments) for call in calls)
    )


def _actions(value: Any, where: str) -> Iterator[Expectation]:
    long = _long(value, "calls")
    if isinstance(long, dict) and "calls" not in long:
        raise RecordError(f"{where}.calls: is missing")
    yield checked(FinalState, long, where)


def _state(value: Any, where: str) -> Iterator[Expectation]:
    made = checked(FinalState, {"state": value}, _above(where))
    _require(made.state, where, 'write {"actions": []} where nothing may change')
    yield made


def _number(value: Any, where: str) -> Iterator[Expectation]:
    long = _long(value, "value")
    if isinstance(long, dict) and type(long.get("value")) in (int, float):
        long = {**long, "value": str(long["value"])}
    made = checked(NumberAnswer, long, where)
    if read_number(made.value) is None or not 0 <= made.tolerance < 1:
        raise RecordError(
            f"{where}: expected a number, and a tolerance from 0 to below 1; got {value!r:.60}"
        )
    yield NumberAnswer(value=made.value.strip(), tolerance=made.tolerance)


def _text(value: Any, where: str) -> Iterator[Expectation]:
    yield TextAnswer(text=_texts([value], where)[0])


def _contains(value: Any, where: str) -> Iterator[Expectation]:
    for text in _texts(value if isinstance(value, list) else [value], where):
        yield TextAnswer(text=text, match="contains")


def _texts(value: list[Any], where: str) -> list[str]:
    texts = checked(_Texts, {"texts": value}, where).texts
    if not texts or not all(text.strip() for text in texts):
        raise RecordError(f"{where}: the text is empty, so any answer would hold it")
    return texts


def _tests(value: Any, where: str) -> Iterator[Expectation]:
    made = checked(PythonTests, value, where)
    if not made.entry_point.isidentifier():
        raise RecordError(f"{where}.entry_point: {made.entry_point!r:.60} names no function")
    yield made


def _rubric(value: Any, where: str) -> Iterator[Expectation]:
    made = checked(Rubric, {"criteria": value}, _above(where))
    texts = [text.strip() for pair in made.criteria.items() for text in pair]
    if not texts or not all(texts):
        raise RecordError(f'{where}: expected criteria, such as {{"polite": "The answer ..."}}')
    yield made


def _flag(made: Expectation) -> _Reader:
    def read(value: Any, where: str) -> Iterator[Expectation]:
        if value is not True:
            raise RecordError(f"{where}: expected true, got {value!r:.60}; or leave it out")
        yield made

    return read


_Reader: TypeAlias = Callable[[Any, str], Iterator[Expectation]]

_READERS: Mapping[str, _Reader] = {
    "calls": _calls,
    "allowed": _allowed,
    "any_call": _flag(AnyCall()),
    "no_call": _flag(NoCall()),
    "number": _number,
    "text": _text,
    "contains": _contains,
    "state": _state,
    "actions": _actions,
    "tests": _tests,
    "rubric": _rubric,
}


# --- writing --------------------------------------------------------------------------------------


def _written(one: Expectation) -> tuple[str, Any]:
    """Key and value of one expectation, the short form where it says all."""
    if isinstance(one, CustomExpectation):
        return one.to_json()
    return _WRITERS[type(one)](one)


def _allowed_written(one: AllowedCalls) -> tuple[str, Any]:
    calls = [
        {"name": call.name, "arguments": {name: list(v) for name, v in call.allowed.items()}}
        for call in one.calls
    ]
    if one.language is None:
        return "allowed", calls
    return "allowed", {"calls": calls, "language": one.language.name}


def _number_written(one: NumberAnswer) -> tuple[str, Any]:
    is_usual = one.tolerance == NumberAnswer(value="").tolerance
    return "number", one.value if is_usual else _plain(one)


def _plain(one: NumberAnswer | PythonTests) -> dict[str, Any]:
    """Every part that holds something."""
    parts = {part.name: getattr(one, part.name) for part in fields(one)}
    return {name: value for name, value in parts.items() if value != ""}


def _calls_to_json(calls: Iterable[GoldCall]) -> list[dict[str, Any]]:
    return [{"name": call.name, "arguments": dict(call.arguments)} for call in calls]


def _final_state_written(one: FinalState) -> tuple[str, Any]:
    calls = _calls_to_json(one.calls)
    if one.state is not None and not calls and not one.responses:
        return "state", dict(one.state)
    long: dict[str, Any] = {"calls": calls}
    if one.responses:
        long["responses"] = True
    if one.state is not None:
        long["state"] = dict(one.state)
    return "actions", long if len(long) > 1 else calls


_WRITERS: Mapping[type, Callable[[Any], tuple[str, Any]]] = {
    ExactCalls: lambda one: ("calls", _calls_to_json(one.calls)),
    AllowedCalls: _allowed_written,
    AnyCall: lambda _: ("any_call", True),
    NoCall: lambda _: ("no_call", True),
    FinalState: _final_state_written,
    NumberAnswer: _number_written,
    TextAnswer: lambda one: ("contains" if one.match == "contains" else "text", one.text),
    PythonTests: lambda one: ("tests", _plain(one)),
    Rubric: lambda one: ("rubric", dict(one.criteria)),
}
