"""Tasks of one's own: a file with one task a line (JSON lines), read and written.

A row that is no task never stops the others: it is reported with its line and the reason in
``Benchmark.left_out``, and so counted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from agentkit.errors import DatasetError, UsageError
from agentkit.evaluation.benchmarks.checked_records import RecordError
from agentkit.evaluation.benchmarks.environments import (
    EnvironmentFactory,
    tools_of,
    with_tools,
)
from agentkit.evaluation.benchmarks.task_checks import task_problems
from agentkit.evaluation.benchmarks.task_records import (
    defaults_from_json,
    task_from_json,
    task_to_json,
)
from agentkit.evaluation.json_lines import JsonLine, as_json_value, read_json_lines
from agentkit.evaluation.task import Benchmark, LeftOut, Task
from agentkit.messages import JsonObject
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool


def load_tasks(
    path: Path,
    *,
    tools: Iterable[Tool] = (),
    environment: EnvironmentFactory | None = None,
    name: str = "",
) -> Benchmark:
    """Read tasks; ``docs/tasks.md`` shows the form of a line.

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
