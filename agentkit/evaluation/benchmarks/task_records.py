"""One task as one JSON object: the form of the lines that ``load_tasks`` reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from agentkit.evaluation.benchmarks.checked_records import STRICT, RecordError, checked
from agentkit.evaluation.benchmarks.expectation_forms import (
    expectations_from_json,
    expectations_to_json,
)
from agentkit.evaluation.task import Task, UserTurn
from agentkit.messages import (
    AssistantMessage,
    JsonObject,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
    message_to_json,
)

CATEGORY = "tasks"
"""The category of a task that names none."""


def task_from_json(record: JsonObject, *, all_tools: Sequence[str] = ()) -> Task:
    """A task out of its JSON form.

    Args:
        record: Decoded JSON.
        all_tools: What a task offers that names no tools.

    Raises:
        RecordError: It is no task; the message says what is wrong and where.

    Example:
        >>> task = task_from_json({"id": "sum-1", "request": "2 + 2?", "expects": {"number": 4}})
        >>> task.expects
        (NumberAnswer(value='4', tolerance=1e-06),)
    """
    row = checked(_Row, record)
    if not row.id.strip() or not row.request.strip():
        raise RecordError(f"{'request' if row.id.strip() else 'id'}: is empty")
    task = Task(
        task_id=row.id,
        category=row.category or CATEGORY,
        request=row.request,
        offered=tuple(all_tools if row.tools is None else row.tools),
        history=tuple(_messages(row.history)),
        expects=_expectations(row.expects, "expects"),
        follow_ups=tuple(_user_turn(turn, at) for at, turn in enumerate(row.follow_ups)),
        instructions=row.instructions,
        start=row.start,
    )
    if not any(turn.expects for turn in task.turns):
        raise RecordError("expects: is missing; a task that expects nothing can not be judged")
    return task


def defaults_from_json(value: object) -> JsonObject:
    """The fields that later rows of a file have in common, checked as those of a task.

    Raises:
        RecordError: They are no object, or one of them is not what it has to be.
    """
    if not isinstance(value, dict):
        raise RecordError(f"defaults: expected an object, got {value!r:.60}")
    row = checked(_Defaults, value, "defaults")
    for _ in _messages(row.history):
        pass
    _expectations(row.expects, "defaults.expects")
    return value


def task_to_json(task: Task) -> dict[str, Any]:
    """The inverse of ``task_from_json``; empty parts are left out."""
    record: dict[str, Any] = {
        "id": task.task_id,
        "category": task.category,
        "instructions": task.instructions,
        "history": [message_to_json(message) for message in task.history],
        "start": dict(task.start),
        "request": task.request,
        "expects": expectations_to_json(task.expects),
        "follow_ups": [_user_turn_to_json(turn) for turn in task.follow_ups],
    }
    filled = {key: value for key, value in record.items() if value}
    return filled | {"tools": list(task.offered)}  # no tools is not the same as all tools


# --- records --------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _ToolCall:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    call_id: str
    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    malformed: str | None = None


@dataclass(frozen=True, kw_only=True)
class _Said:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    role: Literal["system", "user", "assistant", "tool"]
    text: str = ""
    tool_calls: list[_ToolCall] = field(default_factory=list)
    call_id: str = ""
    name: str = ""


@dataclass(frozen=True, kw_only=True)
class _FollowUp:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    request: str
    expects: Any = None
    tools: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class _Row:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    id: str
    request: str
    category: str = ""
    tools: list[str] | None = None
    expects: Any = None
    history: list[_Said] = field(default_factory=list)
    follow_ups: list[_FollowUp] = field(default_factory=list)
    instructions: str = ""
    start: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class _Defaults:
    __pydantic_config__: ClassVar[dict[str, Any]] = STRICT
    category: str = ""
    tools: list[str] | None = None
    expects: Any = None
    history: list[_Said] = field(default_factory=list)
    instructions: str = ""
    start: dict[str, Any] = field(default_factory=dict)


def _expectations(value: Any, where: str) -> tuple[Any, ...]:
    return () if value is None else expectations_from_json(value, where)


def _user_turn(turn: _FollowUp, at: int) -> UserTurn:
    where = f"follow_ups.{at}"
    if not turn.request.strip():
        raise RecordError(f"{where}.request: is empty")
    return UserTurn(
        request=turn.request,
        expects=_expectations(turn.expects, f"{where}.expects"),
        offers=tuple(turn.tools),
    )


def _user_turn_to_json(turn: UserTurn) -> dict[str, Any]:
    record: dict[str, Any] = {"request": turn.request}
    if turn.expects:
        record["expects"] = expectations_to_json(turn.expects)
    if turn.offers:
        record["tools"] = list(turn.offers)
    return record


def _messages(history: Sequence[_Said]) -> Iterator[Message]:
    waiting: set[str] = set()
    for at, said in enumerate(history):
        where = f"history.{at}"
        if said.tool_calls and said.role != "assistant":
            raise RecordError(f"{where}: only the assistant makes tool_calls")
        if (said.call_id or said.name) and said.role != "tool":
            raise RecordError(f"{where}: only a tool's message has call_id and name")
        if said.role == "tool" and said.call_id not in waiting:
            raise RecordError(f"{where}.call_id: {said.call_id!r:.60} is no call before it")
        waiting |= {call.call_id for call in said.tool_calls}
        yield _message(said)


def _message(said: _Said) -> Message:
    match said.role:
        case "system":
            return SystemMessage(text=said.text)
        case "user":
            return UserMessage(text=said.text)
        case "assistant":
            return AssistantMessage(
                text=said.text,
                tool_calls=tuple(
                    ToolCall(
                        call_id=call.call_id,
                        name=call.name,
                        arguments=call.arguments,
                        malformed=call.malformed,
                    )
                    for call in said.tool_calls
                ),
            )
        case "tool":
            return ToolMessage(call_id=said.call_id, name=said.name, text=said.text)
