"""What a task expects, as people write it in JSON: one short key for each way of judging.

``{"number": 72}`` is ``NumberAnswer``, ``{"calls": [...]}`` is ``ExactCalls``, and so on: the
table ``_READERS`` has them all. Where one value says everything it stands alone; the long form, an
object, has every part.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, TypeVar, assert_never

from agentkit.evaluation.expectations import (
    AllowedCalls,
    AnyCall,
    DataFlow,
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


STRICT: dict[str, Any] = {"extra": "forbid", "strict": True}
"""Configuration of a dataclass that stands for a JSON object: no other field, no conversion."""

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


_REFERENCE = re.compile(r"\$var\d+[^$]*\$")


def refers(value: Any) -> bool:
    """Whether a value holds a reference to an earlier result, such as ``$var1.id$``, anywhere."""
    if isinstance(value, str):
        return _REFERENCE.search(value) is not None
    if isinstance(value, Mapping):
        return any(map(refers, value.values()))
    return isinstance(value, list | tuple) and any(map(refers, value))


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
class _Call:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    name: str
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class _AllowedCall:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    name: str
    arguments: dict[str, list[Any]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class _Flow:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    calls: list[_Call]
    answer: Any = None


@dataclass(frozen=True, kw_only=True)
class _Allowed:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    calls: list[_AllowedCall]
    language: Literal["python", "java", "javascript"] = "python"


@dataclass(frozen=True, kw_only=True)
class _Actions:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    calls: list[_Call]
    responses: bool = False
    state: dict[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class _Number:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    value: str | int | float
    tolerance: float = 1e-6


@dataclass(frozen=True, kw_only=True)
class _Tests:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    tests: str
    entry_point: str
    prompt: str = ""


@dataclass(frozen=True, kw_only=True)
class _Texts:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    texts: list[str]


@dataclass(frozen=True, kw_only=True)
class _State:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    state: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class _Rubric:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    criteria: dict[str, str]


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


def _some(items: list[Any], where: str, advice: str) -> list[Any]:
    if not items:
        raise RecordError(f"{where} is empty; {advice}")
    return items


_ADVICE = 'where no call is right, write {"no_call": true}'


def _calls(value: Any, where: str) -> Iterator[Expectation]:
    found = checked(_Flow, {"calls": value}, where.rpartition(".")[0]).calls
    calls = _gold(_some(found, where, _ADVICE))
    if any(refers(call.arguments) for call in calls):
        raise RecordError(f"{where}: refers to the result of another call; write it as flow")
    yield ExactCalls(calls=calls)


def _flow(value: Any, where: str) -> Iterator[Expectation]:
    record = checked(_Flow, _long(value, "calls"), where)
    calls = _gold(_some(record.calls, where, _ADVICE))
    yield DataFlow(calls=calls, answer=record.answer)


def _allowed(value: Any, where: str) -> Iterator[Expectation]:
    record = checked(_Allowed, _long(value, "calls"), where)
    calls = _some(record.calls, where, _ADVICE)
    for at, call in enumerate(calls):
        for name, values in call.arguments.items():
            _some(values, f"{where}.calls.{at}.arguments.{name}", "list the values that are right")
    made = tuple(AllowedCall(name=call.name, allowed=call.arguments) for call in calls)
    yield AllowedCalls(calls=made, language=record.language)


def _actions(value: Any, where: str) -> Iterator[Expectation]:
    record = checked(_Actions, _long(value, "calls"), where)
    if any(refers(call.arguments) for call in record.calls):
        raise RecordError(f"{where}: gold actions run as they are written, so write the value out")
    yield FinalState(state=record.state, calls=_gold(record.calls), responses=record.responses)


def _state(value: Any, where: str) -> Iterator[Expectation]:
    state = checked(_State, {"state": value}, where.rpartition(".")[0]).state
    if not state:
        raise RecordError(f'{where} is empty; write {{"actions": []}} where nothing may change')
    yield FinalState(state=state)


def _number(value: Any, where: str) -> Iterator[Expectation]:
    record = checked(_Number, _long(value, "value"), where)
    text = str(record.value).strip()
    if read_number(text) is None or not 0 <= record.tolerance < 1:
        raise RecordError(
            f"{where}: expected a number, and a tolerance from 0 to below 1; got {value!r:.60}"
        )
    yield NumberAnswer(value=text, tolerance=record.tolerance)


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
    record = checked(_Tests, value, where)
    if not record.entry_point.isidentifier():
        raise RecordError(f"{where}.entry_point: {record.entry_point!r:.60} names no function")
    yield PythonTests(prompt=record.prompt, tests=record.tests, entry_point=record.entry_point)


def _rubric(value: Any, where: str) -> Iterator[Expectation]:
    criteria = checked(_Rubric, {"criteria": value}, where.rpartition(".")[0]).criteria
    if not criteria or not all(text.strip() for pair in criteria.items() for text in pair):
        raise RecordError(f'{where}: expected criteria, such as {{"polite": "The answer ..."}}')
    yield Rubric(criteria=criteria)


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
    "flow": _flow,
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


def _gold(calls: Iterable[_Call]) -> tuple[GoldCall, ...]:
    return tuple(GoldCall(name=call.name, arguments=call.arguments) for call in calls)


# --- writing --------------------------------------------------------------------------------------


def _written(one: Expectation) -> tuple[str, Any]:
    """Key and value of one expectation, the short form where it says all."""
    match one:
        case ExactCalls() | DataFlow() | AllowedCalls() | AnyCall() | NoCall():
            return _calls_written(one)
        case FinalState():
            return _final_state_written(one)
        case NumberAnswer() | TextAnswer() | PythonTests() | Rubric():
            return _answer_written(one)
        case _:
            assert_never(one)


def _calls_written(
    one: ExactCalls | DataFlow | AllowedCalls | AnyCall | NoCall,
) -> tuple[str, Any]:
    match one:
        case ExactCalls():
            return "calls", _calls_to_json(one.calls)
        case DataFlow():
            calls = _calls_to_json(one.calls)
            return "flow", calls if one.answer is None else {"calls": calls, "answer": one.answer}
        case AllowedCalls():
            return "allowed", _allowed_to_json(one)
        case AnyCall():
            return "any_call", True
        case NoCall():
            return "no_call", True


def _answer_written(one: NumberAnswer | TextAnswer | PythonTests | Rubric) -> tuple[str, Any]:
    match one:
        case NumberAnswer():
            is_usual = one.tolerance == NumberAnswer(value="").tolerance
            long = {"value": one.value, "tolerance": one.tolerance}
            return "number", one.value if is_usual else long
        case TextAnswer():
            return ("contains" if one.match == "contains" else "text"), one.text
        case PythonTests():
            record = {"tests": one.tests, "entry_point": one.entry_point}
            return "tests", record | ({"prompt": one.prompt} if one.prompt else {})
        case Rubric():
            return "rubric", dict(one.criteria)


def _calls_to_json(calls: Iterable[GoldCall]) -> list[dict[str, Any]]:
    return [{"name": call.name, "arguments": dict(call.arguments)} for call in calls]


def _allowed_to_json(one: AllowedCalls) -> Any:
    calls = [
        {"name": call.name, "arguments": {name: list(v) for name, v in call.allowed.items()}}
        for call in one.calls
    ]
    return calls if one.language == "python" else {"calls": calls, "language": one.language}


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
