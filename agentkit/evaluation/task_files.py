"""Benchmarks by name, and tasks of one's own: a file with one task a line (JSON lines).

A row that is not a task never stops the others: it is reported with its line and the reason in
``Benchmark.left_out``, and so counted.

A gold call that the tool's own schema refuses is a contradiction: the runtime refuses such a call,
so an agent that keeps to the schema is counted as wrong. Most often it is a slip in the task, which
is therefore left out, with the reason.
"""

from __future__ import annotations

import difflib
import io
import json
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from agentkit.errors import DatasetError, ReadingLimitError, UsageError
from agentkit.evaluation.environments import (
    EnvironmentFactory,
    as_json_value,
    environment_from,
    tools_of,
    with_tools,
)
from agentkit.evaluation.expectations import (
    STRICT,
    AllowedCalls,
    CustomExpectation,
    ExactCalls,
    Expectation,
    FinalState,
    GoldCall,
    RecordError,
    checked,
    expectations_from_json,
    expectations_to_json,
    refuse_other_fields,
)
from agentkit.evaluation.task import Benchmark, LeftOut, Task, UserTurn
from agentkit.fetch import Progress
from agentkit.messages import (
    AssistantMessage,
    JsonObject,
    Message,
    SystemMessage,
    ToolMessage,
    UserMessage,
    message_to_json,
)
from agentkit.metrics import AllowedCall
from agentkit.metrics.calls import validator_of
from agentkit.reading import (
    MOST_OF_A_FILE,
    check_values,
    most_broken,
    open_plain,
    read_once,
    read_stored,
    unpacked,
)
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool
from agentkit.tools.validation import coerce

CATEGORY = "tasks"
"""The category of a task that names none."""

_LONGEST_REASON = 300

# --- lines ----------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class JsonLine:
    """One line of a file.

    Attributes:
        number: Its number, from 1.
        record: The object that it holds; None when it holds none.
        reason: Why it holds none; empty when it does.
    """

    number: int
    record: JsonObject | None = None
    reason: str = ""

    def read(self) -> JsonObject:
        """The object.

        Raises:
            RecordError: The line holds none.
        """
        if self.record is None:
            raise RecordError(self.reason)
        return self.record


def read_json_lines(path: Path) -> Iterator[JsonLine]:
    """The lines of a file that are not blank, one by one.

    JSON is read more strictly than Python's module does by default: NaN and infinite numbers, a key
    that is written twice, and text that is no Unicode are reasons, since no two programs agree
    about what they mean.

    Args:
        path: JSON lines, in UTF-8; unpacked on the way when its name ends in ``.gz``.

    Raises:
        DatasetError: The file is absent, is a folder, cannot be read or unpacked, or holds too many
            values or broken lines.
    """
    try:
        with open_plain(path) as file:
            stored = read_stored(file, most=MOST_OF_A_FILE)
        content = unpacked(stored, is_packed=path.suffix == ".gz").removeprefix(b"\xef\xbb\xbf")
        check_values(content)
    except FileNotFoundError as error:
        raise DatasetError(
            f"{path} does not exist; give a file with one JSON object a line"
        ) from error
    except (EOFError, OSError, zlib.error, ReadingLimitError) as error:
        raise DatasetError(f"{path} cannot be read: {error}") from error
    broken = 0
    for number, line in enumerate(io.BytesIO(content), start=1):
        if line.strip():
            read = _line(number, line.removesuffix(b"\n"))
            if read.record is None:
                broken += 1
                _give_up(path, broken, read.reason)
            yield read


def _give_up(path: Path, broken: int, reason: str) -> None:
    if broken > most_broken():
        raise DatasetError(
            f"{path} is given up: more than {most_broken():,} lines are unusable ({reason})"
        )


def read_records(path: Path) -> Iterator[JsonObject]:
    """The objects of a file, as ``read_json_lines`` reads them, where every line must hold one.

    Args:
        path: JSON lines, in UTF-8; unpacked on the way when its name ends in ``.gz``.

    Raises:
        DatasetError: The file cannot be read, or a line holds no object.
    """
    for line in read_json_lines(path):
        try:
            yield line.read()
        except RecordError as error:
            raise DatasetError(f"{path}, line {line.number}: {error}") from error


def _line(number: int, line: bytes) -> JsonLine:
    try:
        record = read_once(line.decode("utf-8"))
        as_json_value(record)
    except UnicodeEncodeError:
        return JsonLine(number=number, reason="a text holds half of a surrogate pair")
    except json.JSONDecodeError as error:
        return JsonLine(number=number, reason=f"not JSON: {error.msg} at column {error.colno}")
    except (ValueError, RecursionError) as error:
        return JsonLine(number=number, reason=f"not JSON: {error}"[:_LONGEST_REASON])
    if not isinstance(record, dict):
        kind = "a list" if isinstance(record, list) else f"{record!r:.40}"
        return JsonLine(number=number, reason=f"expected a JSON object, got {kind}")
    return JsonLine(number=number, record=record)


# --- records --------------------------------------------------------------------------------------


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
    history: list[dict[str, Any]] = field(default_factory=list)
    follow_ups: list[_FollowUp] = field(default_factory=list)
    instructions: str = ""
    start: dict[str, Any] = field(default_factory=dict)


def task_from_json(record: JsonObject, *, all_tools: Sequence[str] = ()) -> Task:
    """A task out of its JSON form.

    Args:
        record: Decoded JSON.
        all_tools: What a task offers that names no tools.

    Raises:
        RecordError: It is not a task; the message says what is wrong and where.

    Example:
        >>> task = task_from_json({"id": "sum-1", "request": "2 + 2?", "expects": {"number": 4}})
        >>> task.expects
        (NumberAnswer(value='4', tolerance=1e-06),)
    """
    row = checked(_Row, record)
    for name in ("id", "request"):
        if not getattr(row, name).strip():
            raise RecordError(f"{name}: is empty")
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
        raise RecordError("expects: is missing; a task that expects nothing cannot be judged")
    return task


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


def _expectations(value: Any, where: str) -> tuple[Expectation, ...]:
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


_ROLES: dict[str, type[Message]] = {
    one.role: one for one in (SystemMessage, UserMessage, AssistantMessage, ToolMessage)
}


def _messages(history: Sequence[JsonObject]) -> Iterator[Message]:
    waiting: set[str] = set()
    for at, record in enumerate(history):
        where, role = f"history.{at}", record.get("role")
        kind = _ROLES.get(role) if isinstance(role, str) else None
        if kind is None:
            raise RecordError(f"{where}.role: should be one of {', '.join(_ROLES)}, got {role!r}")
        message = {name: value for name, value in record.items() if name != "role"}
        refuse_other_fields(kind, message, where)
        row = checked(kind, message, where)
        if isinstance(row, ToolMessage) and row.call_id not in waiting:
            raise RecordError(f"{where}.call_id: {row.call_id!r:.60} is not a call before it")
        if isinstance(row, AssistantMessage):
            waiting |= {call.call_id for call in row.tool_calls}
        yield row


# --- files ----------------------------------------------------------------------------------------


def load_tasks(
    path: Path,
    *,
    tools: Iterable[Tool] = (),
    environment: EnvironmentFactory | None = None,
) -> Benchmark:
    """Read tasks; ``docs/evaluation.md`` shows the form of a line.

    Args:
        path: One JSON object a line, in UTF-8; ``.gz`` is unpacked. A line ``{"defaults": {...}}``
            says what the tasks below it have in common.
        tools: What the tasks may offer. Where any of them is bound, calls are run; where none is,
            calls are only judged. A ``Library`` will do.
        environment: Creates the world of a task, with the tools in it, instead of ``tools``. It is
            called once for every task while reading, to know the tools and to find tasks whose
            ``start`` it does not take.

    Returns:
        The tasks in the order of the file. Rows that cannot be asked or judged are left out, with
        line and reason; all rows may be.

    Raises:
        DatasetError: There is no such file, or nothing in it.
        UsageError: Both ``tools`` and ``environment`` are given.
    """
    given = tuple(tools)
    if given and environment is not None:
        raise UsageError("give load_tasks either tools or an environment, which brings its own")
    reader = _TaskReader(given, environment)
    left_out: list[LeftOut] = []
    for line in read_json_lines(path):
        try:
            reader.read(line)
        except RecordError as error:
            where = f"{path.name}, line {line.number}"
            left_out.append(LeftOut(where=where, reason=str(error)))
            _give_up(path, len(left_out), str(error))
    if not reader.tasks and not left_out:
        raise DatasetError(
            f"{path} is empty; write one task a line, such as "
            '{"id": "sum-1", "request": "What is 2 + 2?", "expects": {"number": 4}}'
        )
    if environment is None and any(tool.is_bound for tool in given):
        environment = with_tools(given)
    return Benchmark(
        name=path.name.removesuffix(".gz").removesuffix(".jsonl"),
        tasks=tuple(reader.tasks),
        definitions=tuple(reader.definitions.values()),
        environment=environment,
        left_out=tuple(left_out),
    )


def dump_tasks(tasks: Iterable[Task], path: Path) -> None:
    """Write tasks as lines that ``load_tasks`` reads back as equal ones.

    Raises:
        UsageError: A task holds what JSON cannot, such as NaN; nothing is written.
    """
    lines: list[str] = []
    for task in tasks:
        try:
            record = as_json_value(task_to_json(task))
        except (TypeError, ValueError) as error:
            raise UsageError(f"task {task.task_id!r} cannot be written as JSON: {error}") from error
        lines.append(json.dumps(record, ensure_ascii=False))
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")


class _TaskReader:
    """The tasks of a file so far."""

    def __init__(self, tools: tuple[Tool, ...], environment: EnvironmentFactory | None) -> None:
        self.tasks: list[Task] = []
        self.definitions: dict[str, ToolDefinition] = {}
        self._environment = environment
        self._lines: dict[str, int] = {}
        self._defaults: JsonObject | None = {}
        for tool in tools:
            if self.definitions.setdefault(tool.name, tool.definition) != tool.definition:
                raise UsageError(f"two different tools are named {tool.name!r}; rename one")

    def read(self, line: JsonLine) -> None:
        """Take one line: a task more, or new defaults.

        Raises:
            RecordError: The row is left out.
        """
        record = line.read()
        if record.keys() == {"defaults"}:
            self._set_defaults(record["defaults"])
            return
        if self._defaults is None:
            raise RecordError("the defaults above it are not readable")
        task = self._task({**self._defaults, **record})
        self._lines[task.task_id] = line.number
        self.tasks.append(task)

    def _set_defaults(self, value: object) -> None:
        self._defaults = None
        if not isinstance(value, dict):
            raise RecordError(f"defaults: expected an object, got {value!r:.60}")
        checked(_Row, {"id": "-", "request": "-", **value}, "defaults")
        self._defaults = value

    def _task(self, record: JsonObject) -> Task:
        task = task_from_json(record, all_tools=tuple(self.definitions))
        if task.task_id in self._lines:
            raise RecordError(
                f"the id {task.task_id!r} is that of line {self._lines[task.task_id]} already"
            )
        if self._environment is not None:
            tools = self._tools_of(self._environment, task)
            task = task_from_json(record, all_tools=[tool.name for tool in tools])
        for problem in task_problems(task, self.definitions):
            raise RecordError(problem)
        return task

    def _tools_of(self, environment: EnvironmentFactory, task: Task) -> tuple[Tool, ...]:
        try:
            tools = tools_of(environment, task)
        except UsageError as error:
            raise RecordError(str(error)) from error
        for tool in tools:
            if self.definitions.setdefault(tool.name, tool.definition) != tool.definition:
                raise RecordError(
                    f"the tool {tool.name!r} has another definition here than for an earlier task"
                )
        return tools


# --- whether a task can be asked and judged -------------------------------------------------------

_NAMED = 5  # so many tools, where none is like the one that is asked for


def task_problems(task: Task, definitions: Mapping[str, ToolDefinition]) -> Iterator[str]:
    """Why a task cannot be asked or judged, in words; nothing when it can.

    Args:
        task: The task.
        definitions: The tools that there are, by name.
    """
    offered: list[str] = []
    for at, turn in enumerate(task.turns):
        where = f"follow_ups.{at - 1}." if at else ""
        for name in turn.offers:
            if name in offered:
                yield f"{where}tools: {name!r} is there twice"
            elif name not in definitions:
                yield f"{where}tools: {unknown_tool(name, definitions)}"
            offered.append(name)
        for expectation in turn.expects:
            for problem in _gold_problems(expectation, definitions, offered):
                yield f"{where}expects: {problem}"


def unknown_tool(name: str, known: Collection[str]) -> str:
    """That there is no tool of a name, and what was probably meant."""
    message = f"there is no tool {name!r}"
    if not known:
        return f"{message}; no tools were given, see `tools` and `environment`"
    near = difflib.get_close_matches(name, known, n=1)
    if near:
        return f"{message}; did you mean {near[0]!r}?"
    return f"{message}; there are {', '.join(sorted(known)[:_NAMED])}"


def _gold_problems(
    expectation: Expectation, definitions: Mapping[str, ToolDefinition], offered: Collection[str]
) -> Iterator[str]:
    if isinstance(expectation, CustomExpectation):
        for name in expectation.gold_tools:
            if name not in definitions:
                yield f"the gold call {name}: {unknown_tool(name, definitions)}"
        return
    if not isinstance(expectation, AllowedCalls | ExactCalls | FinalState):
        return
    callable_here = definitions if isinstance(expectation, FinalState) else offered
    for call in expectation.calls:
        definition = definitions.get(call.name)
        if definition is None:
            reasons: Iterable[str] = (unknown_tool(call.name, definitions),)
        elif call.name not in callable_here:
            reasons = ("the task does not offer this tool",)
        elif isinstance(call, GoldCall):
            reasons = gold_call_problems(call, definition)
        elif isinstance(expectation, AllowedCalls) and expectation.language is not None:
            continue  # the values are source text of that language
        else:
            reasons = _never(call, definition)
        yield from (f"the gold call {call.name}: {why}" for why in reasons)


def gold_call_problems(
    call: GoldCall, definition: ToolDefinition, *, unknown: Collection[str] = ()
) -> Iterator[str]:
    """The schema's objections to a gold call.

    Args:
        call: The gold call.
        definition: Its tool.
        unknown: Arguments whose values are not known, so that any will do.
    """
    yield from _undeclared(call.arguments, definition)
    arguments = coerce(dict(call.arguments), definition.signature.parameters)
    for problem in validator_of(definition).check(arguments):
        if problem.path.partition(".")[0].partition("[")[0] not in unknown:
            yield problem.rule


def _never(call: AllowedCall, definition: ToolDefinition) -> Iterator[str]:
    """Arguments of a gold call none of whose allowed values the tool's schema takes."""
    yield from _undeclared(call.allowed, definition)
    for name in definition.signature.required:
        if not any(value != "" for value in call.allowed.get(name, ())):
            yield f"the required argument {name!r} has no allowed value"
    for name, values in call.allowed.items():
        if name not in definition.signature.properties or "" in values:
            continue  # it may be left out
        if any(map(_holds_object, values)):
            continue  # inside objects, allowed values are lists again
        reasons = [_first_fault(definition, name, value) for value in values]
        if reasons and all(reasons):
            yield f"{reasons[0]}, and no other allowed value is better"


def _first_fault(definition: ToolDefinition, name: str, value: Any) -> str:
    """The schema's objection to one argument; empty for none."""
    coerced = coerce({name: value}, definition.signature.parameters)
    for problem in validator_of(definition).check(coerced):
        if problem.path and problem.path[0] == name:
            return problem.rule
    return ""


def _undeclared(arguments: JsonObject, definition: ToolDefinition) -> Iterator[str]:
    parameters = definition.signature.parameters
    if parameters.get("additionalProperties") or parameters.get("patternProperties"):
        return
    known = definition.signature.properties
    for name in arguments:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            meant = f"; did you mean {near[0]!r}?" if near else ""
            yield f"{definition.name} has no parameter {name!r}{meant}"


def _holds_object(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_holds_object, value))
    return isinstance(value, Mapping)


ENTRY_POINT_GROUP = "agentkit.benchmarks"

# --- benchmarks by name ---------------------------------------------------------------------------

PLUGIN = "agentkit-bench"
"""The plugin that has the public benchmarks."""

PUBLIC = ("bfcl", "bfcl-multi-turn", "nestful", "nestful-executed", "gsm8k", "humaneval")
"""Names of the public benchmarks, known also where the plugin is not installed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BenchmarkRequest:
    """The source of a benchmark.

    Attributes:
        data: Where its files are; None when nothing was said.
        environment: Brings tools, where a benchmark has none of its own.
        progress: Called with the number of bytes received while something is fetched.
    """

    data: Path | None = None
    environment: EnvironmentFactory | None = None
    progress: Progress | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class NamedBenchmark:
    """A benchmark that is known by name.

    Attributes:
        summary: What it asks, in a few words.
        make: Loads it, fetching what is absent.
        takes_environment: Whether the tools are left to the user.
    """

    summary: str
    make: Callable[[BenchmarkRequest], Benchmark]
    takes_environment: bool = False


@cache
def named_benchmarks() -> Mapping[str, NamedBenchmark]:
    """The benchmarks of the installed plugins, by name."""
    from importlib.metadata import entry_points

    found: dict[str, NamedBenchmark] = {}
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        found.update(entry.load())
    return found


def is_benchmark_name(name: str) -> bool:
    """Whether a name stands for a benchmark rather than a file, installed or not."""
    return name in PUBLIC or name in named_benchmarks()


def load_benchmark(
    name: str,
    *,
    data: Path | None = None,
    tools: Iterable[Tool] = (),
    environment: EnvironmentFactory | str | None = None,
    progress: Progress | None = None,
) -> Benchmark:
    """A benchmark by its name, or a file of tasks by its path.

    Args:
        name: One of ``named_benchmarks()``, or the path of a file for ``load_tasks``.
        data: Where the files of a named benchmark are. None fetches them from the package index,
            where a package carries them.
        tools: For files and GSM8K, without an environment: what the tasks may offer.
        environment: For files and GSM8K: what makes the world of a task, or where it is found, as
            ``environment_from`` takes it. The code there runs.
        progress: Called with the number of bytes received while something is fetched.

    Raises:
        UsageError: There is no such benchmark, its plugin is not installed, or it does not take
            what was given.
        DatasetError: The data is absent, or not what it has to be, or holds no task.
        FetchError: The data could not be downloaded.
    """
    makes = environment_from(environment) if isinstance(environment, str) else environment
    given = tuple(tools)
    entry = named_benchmarks().get(name)
    if entry is None:
        return _from_file(name, data, given, makes)
    if makes is None and given:
        makes = with_tools(given)
    if makes is not None and not entry.takes_environment:
        raise UsageError(f"the benchmark {name} has its own tools; leave out yours")
    return entry.make(BenchmarkRequest(data=data, environment=makes, progress=progress))


def _from_file(
    name: str,
    data: Path | None,
    tools: tuple[Tool, ...],
    environment: EnvironmentFactory | None,
) -> Benchmark:
    if name in PUBLIC:
        raise UsageError(f"the benchmark {name} needs the plugin {PLUGIN}: pip install {PLUGIN}")
    path = Path(name).expanduser()
    if not path.exists() and path.suffix not in {".jsonl", ".gz", ".json"}:
        names = ", ".join(named_benchmarks() or PUBLIC)
        raise UsageError(f"there is no benchmark {name!r}; name one of {names}, or a file")
    if data is not None:
        raise UsageError(f"{name} is a file of tasks, so there is no other data to give")
    benchmark = load_tasks(path, tools=tools, environment=environment)
    if not benchmark.tasks:
        raise DatasetError(
            f"{path}: none of its {len(benchmark.left_out)} rows can be asked; the first: "
            f"{benchmark.left_out[0]}"
        )
    return benchmark
