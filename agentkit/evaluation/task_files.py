"""Tasks of one's own: a file with one task a line (JSON lines), read and written.

A row that is no task never stops the others: it is reported with its line and the reason in
``Benchmark.left_out``, and so counted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from agentkit.errors import DatasetError, UsageError
from agentkit.evaluation.environments import (
    EnvironmentFactory,
    tools_of,
    with_tools,
)
from agentkit.evaluation.expectation_forms import (
    RecordError,
    checked,
    expectations_from_json,
    expectations_to_json,
)
from agentkit.evaluation.expectations import STRICT
from agentkit.evaluation.json_lines import JsonLine, as_json_value, read_json_lines
from agentkit.evaluation.task import Benchmark, LeftOut, Task, UserTurn
from agentkit.evaluation.task_checks import task_problems
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
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool

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


def load_tasks(
    path: Path,
    *,
    tools: Iterable[Tool] = (),
    environment: EnvironmentFactory | None = None,
    name: str = "",
) -> Benchmark:
    """Read tasks; ``docs/evaluation.md`` shows the form of a line.

    Args:
        path: One JSON object a line, in UTF-8; ``.gz`` is unpacked. A line ``{"defaults": {...}}``
            says what the tasks below it have in common.
        tools: What the tasks may offer. Where any of them is bound, calls are run; where none is,
            calls are only judged. A ``Library`` will do.
        environment: Makes the world of a task, with the tools in it, instead of ``tools``. It is
            called once for every task while reading, to know the tools and to find tasks whose
            ``start`` it does not take.
        name: The benchmark's name; the file's by default.

    Returns:
        The tasks in the order of the file. Rows that can not be asked or judged are left out, with
        line and reason; all rows may be.

    Raises:
        DatasetError: There is no such file, or nothing in it.
        UsageError: Both ``tools`` and ``environment`` are given.
    """
    given = tuple(tools)
    if given and environment is not None:
        raise UsageError("give load_tasks either tools or an environment, which brings its own")
    reading = _Reading(path.name, given, environment)
    for line in read_json_lines(path):
        reading.read(line)
    if not reading.tasks and not reading.left_out:
        raise DatasetError(
            f"{path} is empty; write one task a line, such as "
            '{"id": "sum-1", "request": "What is 2 + 2?", "expects": {"number": 4}}'
        )
    if environment is None and any(tool.is_bound for tool in given):
        environment = with_tools(given)
    return Benchmark(
        name=name or path.name.removesuffix(".gz").removesuffix(".jsonl"),
        tasks=tuple(reading.tasks),
        definitions=tuple(reading.definitions.values()),
        environment=environment,
        left_out=tuple(reading.left_out),
    )


def dump_tasks(tasks: Iterable[Task], path: Path) -> None:
    """Write tasks as lines that ``load_tasks`` reads back as equal ones.

    Raises:
        UsageError: A task holds what JSON can not, such as NaN; nothing is written.
    """
    lines: list[str] = []
    for task in tasks:
        record = task_to_json(task)
        try:
            as_json_value(record)
        except (TypeError, ValueError) as error:
            raise UsageError(
                f"task {task.task_id!r} can not be written as JSON: {error}"
            ) from error
        lines.append(json.dumps(record, ensure_ascii=False))
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")


class _Reading:
    """The tasks of a file so far."""

    def __init__(
        self, file: str, tools: tuple[Tool, ...], environment: EnvironmentFactory | None
    ) -> None:
        self.tasks: list[Task] = []
        self.left_out: list[LeftOut] = []
        self.definitions: dict[str, ToolDefinition] = {}
        self._file = file
        self._environment = environment
        self._lines: dict[str, int] = {}
        self._defaults: JsonObject = {}
        self._broken_defaults = 0
        for tool in tools:
            if self.definitions.setdefault(tool.name, tool.definition) != tool.definition:
                raise UsageError(f"two different tools are named {tool.name!r}; rename one")

    def read(self, line: JsonLine) -> None:
        """Take one line: a task more, or a row more that is left out."""
        try:
            if line.record is not None and line.record.keys() == {"defaults"}:
                self._set_defaults(line.record["defaults"], line.number)
            else:
                self._add(self._task(line), line.number)
        except RecordError as error:
            where = f"{self._file}, line {line.number}"
            self.left_out.append(LeftOut(where=where, reason=str(error)))

    def _set_defaults(self, value: object, number: int) -> None:
        self._broken_defaults = number
        self._defaults = defaults_from_json(value)
        self._broken_defaults = 0

    def _add(self, task: Task, number: int) -> None:
        self._lines[task.task_id] = number
        self.tasks.append(task)

    def _task(self, line: JsonLine) -> Task:
        if line.record is None:
            raise RecordError(line.reason)
        if self._broken_defaults:
            raise RecordError(f"the defaults of line {self._broken_defaults} are not readable")
        record = {**self._defaults, **line.record}
        task = task_from_json(record, all_tools=tuple(self.definitions))
        if task.task_id in self._lines:
            raise RecordError(
                f"the id {task.task_id!r} is that of line {self._lines[task.task_id]} already"
            )
        if self._environment is not None:
            tools = _tools_of(self._environment, task)
            self._add_definitions(tools)
            task = task_from_json(record, all_tools=[tool.name for tool in tools])
        for problem in task_problems(task, self.definitions):
            raise RecordError(problem)
        return task

    def _add_definitions(self, tools: Iterable[Tool]) -> None:
        for tool in tools:
            known = self.definitions.setdefault(tool.name, tool.definition)
            if known != tool.definition:
                raise RecordError(
                    f"the tool {tool.name!r} has another definition here than for an earlier task"
                )


def _tools_of(environment: EnvironmentFactory, task: Task) -> tuple[Tool, ...]:
    try:
        return tools_of(environment, task)
    except UsageError as error:
        raise RecordError(str(error)) from error
