"""What the files of word and programming problems have in common."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TypeAlias

from agentkit.errors import DatasetError
from agentkit.evaluation.expectations import RecordError
from agentkit.evaluation.task import LeftOut, Task
from agentkit.evaluation.task_files import JsonLine, read_json_lines
from agentkit.messages import JsonObject

TaskMaker: TypeAlias = Callable[[JsonObject, JsonLine], Task]
"""Makes a task of a record and its line; raises ``RecordError`` where it can not."""


def file_in(path: Path, names: Sequence[str], advice: str) -> Path:
    """``path`` itself, or the first file of these names in it when it is a folder.

    Raises:
        DatasetError: The folder has none of them.
    """
    if not path.is_dir():
        return path
    for name in names:
        if (path / name).is_file():
            return path / name
    raise DatasetError(f"{path} holds none of {', '.join(names)}; {advice}")


def read_problems(
    file: Path, task: TaskMaker, benchmark: str
) -> tuple[tuple[Task, ...], tuple[LeftOut, ...]]:
    """The tasks that rows are read as, and the rows that are none.

    Args:
        file: JSON lines.
        task: Makes a task of a record.
        benchmark: Its name, for errors.

    Raises:
        DatasetError: There is no such file, or no row in it is a problem.
    """
    tasks: dict[str, Task] = {}
    left_out: list[LeftOut] = []
    for line in read_json_lines(file):
        try:
            made = _made(line, task, tasks)
        except RecordError as error:
            left_out.append(LeftOut(where=f"{file.name}, line {line.number}", reason=str(error)))
        else:
            tasks[made.task_id] = made
    if not tasks:
        first = f"; {left_out[0]}" if left_out else ""
        raise DatasetError(f"{file} holds no problem of {benchmark}{first}")
    return tuple(tasks.values()), tuple(left_out)


def _made(line: JsonLine, task: TaskMaker, earlier: Collection[str]) -> Task:
    made = task(line.read(), line)
    if made.task_id in earlier:
        raise RecordError(f"the id {made.task_id!r} is there twice")
    return made
