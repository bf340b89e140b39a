"""Tasks as the rows that verl's ``RLHFDataset`` reads."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agentkit.evaluation import Benchmark, Task
from agentkit.evaluation.task_files import task_to_json
from agentkit_training.engines.verl.settings import AGENT_NAME
from agentkit_training.errors import TrainingError


@dataclass(frozen=True, kw_only=True, slots=True)
class RowMessage:
    """One message of a prompt, as verl shows it.

    Attributes:
        role: Who speaks.
        content: What is said.
    """

    role: str
    content: str


@dataclass(frozen=True, kw_only=True, slots=True)
class RewardModel:
    """What verl hands to reward functions.

    Attributes:
        ground_truth: What the task expects, as JSON.
        style: Always ``rule``: no model judges.
    """

    ground_truth: str
    style: str = "rule"


@dataclass(frozen=True, kw_only=True, slots=True)
class RowInfo:
    """What a worker finds the task by.

    Attributes:
        index: Place in the part.
        part: ``train``, ``validation`` or ``test``.
        task_id: The task.
        library_version: The library's version when the rows were written, for the record. Rollouts
            are asked with the version of their own step.
    """

    index: int
    part: str
    task_id: str
    library_version: int = 0

    @classmethod
    def read(cls, info: Mapping[str, Any]) -> RowInfo:
        """What ``extra_info`` of a row says.

        Raises:
            TrainingError: The row is none of ours.
        """
        try:
            return cls(
                index=int(info["index"]),
                part=str(info["part"]),
                task_id=str(info["task_id"]),
                library_version=int(info["library_version"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise TrainingError(
                f"a row's extra_info is {dict(info)!r}, which does not name a task ({error}); give "
                "verl the parquet files that export_verl wrote"
            ) from error


@dataclass(frozen=True, kw_only=True, slots=True)
class VerlRow:
    """One task as verl reads it.

    Attributes:
        prompt: The conversation up to the request, without tools. verl shows it and measures its
            length; what the policy reads is rendered by the agent loop, with the library's tools.
        data_source: The benchmark; verl averages its validation figures by it.
        ability: The task's category.
        reward_model: What the task expects.
        extra_info: What a worker finds the task by.
        agent_name: Which agent loop makes the rollout.
    """

    prompt: tuple[RowMessage, ...]
    data_source: str
    ability: str
    reward_model: RewardModel
    extra_info: RowInfo
    agent_name: str = AGENT_NAME

    def to_json(self) -> dict[str, Any]:
        """As JSON data: a row of the parquet file."""
        return asdict(self) | {"prompt": [asdict(one) for one in self.prompt]}


def verl_rows(
    benchmark: Benchmark, *, part: str, instructions: str = "", library_version: int = 0
) -> Iterator[VerlRow]:
    """The rows of one part of the tasks, in its order.

    Args:
        benchmark: The tasks.
        part: The name of the part.
        instructions: The system message before the task's own.
        library_version: Of the library that stands now.
    """
    for index, task in enumerate(benchmark.tasks):
        yield VerlRow(
            prompt=tuple(_messages(task, instructions)),
            data_source=benchmark.name,
            ability=task.category,
            reward_model=RewardModel(ground_truth=_expected(task)),
            extra_info=RowInfo(
                index=index, part=part, task_id=task.task_id, library_version=library_version
            ),
        )


def write_rows(rows: Sequence[VerlRow], path: Path) -> None:
    """Write rows as parquet.

    Raises:
        OSError: The file can not be written.
    """
    from pyarrow import Table, parquet

    parquet.write_table(Table.from_pylist([one.to_json() for one in rows]), path)


def _messages(task: Task, instructions: str) -> Iterator[RowMessage]:
    said = "\n\n".join(filter(None, (instructions, task.instructions)))
    if said:
        yield RowMessage(role="system", content=said)
    for message in task.history:
        yield RowMessage(role=message.role, content=message.text)
    yield RowMessage(role="user", content=task.request)


def _expected(task: Task) -> str:
    record = task_to_json(task)
    expected = {name: record[name] for name in ("expects", "follow_ups") if name in record}
    return json.dumps(expected, ensure_ascii=False)
