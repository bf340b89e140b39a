"""``Workspace``: what the rollouts of one process share: tasks, library, rewards."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

from agentkit import open_store
from agentkit.evaluation import Benchmark, Task
from agentkit.evaluation.task_files import task_to_json
from agentkit.library import Library
from agentkit.library.store import Store
from agentkit.models.prompt_format import PromptFormat
from agentkit_training.coevolution.tasks import with_composites
from agentkit_training.config.reading import read_config
from agentkit_training.config.sections import AskingSection, RewardName, reward_named
from agentkit_training.errors import TrainingError
from agentkit_training.rewards import Reward, rewarded
from agentkit_training.rollout.collecting import RolloutModel, collect
from agentkit_training.rollout.policy_model import ToolsIn
from agentkit_training.rollout.samples import Rollout
from agentkit_training.tasks.loading import TaskSpec, load_tasks_for_training
from agentkit_training.tasks.splits import TaskSplits
from agentkit_training.weighting import FixedWeighting, weighted_rollouts

AGENT_NAME = "agentkit"
"""What rows and the file of agent loops call our loop."""

TRAINER_NAME = "agentkit_sync"
"""What verl's configuration calls our trainer."""

WeightsName: TypeAlias = Literal["none", "fixed", "normalised"]


def compute_score(
    data_source: str,
    solution_str: str,  # noqa: ARG001 - verl's names
    ground_truth: str,  # noqa: ARG001
    extra_info: Mapping[str, Any],
    **more: Any,  # noqa: ARG001
) -> dict[str, float]:
    """What the agent loop found a rollout to be worth.

    A text alone does not tell what a rollout was worth: what its calls did is gone with its world.
    So the loop judges, where the world still is, and verl asks no reward function. This one is for
    reward managers that ask all the same.

    Args:
        data_source: The benchmark.
        solution_str: What was written, as text.
        ground_truth: What the task expects, as JSON.
        extra_info: Of the row, with what the loop has noted in it.
        more: What reward managers hand over beside it.

    Returns:
        The reward as ``score``, and its parts by name.

    Raises:
        TrainingError: Another loop made the rollout, which noted no reward.

    Example:
        >>> noted = {"reward": 1.0, "reward_parts": {"passed": 1.0}}
        >>> compute_score("shop", "3", "{}", noted)
        {'passed': 1.0, 'score': 1.0}
    """
    if "reward" not in extra_info:
        raise TrainingError(
            f"a rollout of {data_source} has no reward: it was not made by AgentkitLoop. Let rows "
            "have the agent_name of the exported file of agent loops"
        )
    parts = {name: float(part) for name, part in extra_info.get("reward_parts", {}).items()}
    return parts | {"score": float(extra_info["reward"])}


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


@dataclass(frozen=True, kw_only=True)
class VerlSettings:
    """How rollouts are made. Written as YAML beside the rows, and read by every worker.

    Attributes:
        tasks: The tasks; each worker loads the same ones.
        library: URL of the store that holds the library, which every node must reach; empty for
            the tasks' own texts.
        reward: What a rollout is worth.
        asking: How tasks are asked.
        tools_in: Whether tools stand in the prompt or in the tokenizer's own template.
        format: How tools and calls are written in the prompt.
        constrained: Whether the prompt is that of constrained decoding.
        weights: What advantages are multiplied with: ``none``, the ``fixed`` utilities of SEAL, or
            these ``normalised`` to a mean of 1 in each batch.
        keeps_episodes: Whether workers put episodes of training tasks into the store, to be
            learned from.
        answer_tokens: Longest answer of a turn; 0 for what verl leaves for the whole response.
    """

    tasks: TaskSpec
    library: str = ""
    reward: RewardName = "verdict"
    asking: AskingSection = field(default_factory=AskingSection)
    tools_in: ToolsIn = "prompt"
    format: PromptFormat = "json"
    constrained: bool = True
    weights: WeightsName = "none"
    keeps_episodes: bool = False
    answer_tokens: int = 0


_MOST_VERSIONS = 4


@cache
def opened_workspace(path: str) -> Workspace:
    """The workspace of this process. verl makes a loop for every rollout; they share this.

    Args:
        path: The file of ``VerlSettings`` that ``export_verl`` wrote.

    Raises:
        UsageError: It can not be read, or does not describe tasks.
    """
    return Workspace(settings=read_config(Path(path), VerlSettings))


@dataclass(kw_only=True)
class Workspace:
    """Makes rollouts of the tasks of some settings.

    Attributes:
        settings: How rollouts are made.
    """

    settings: VerlSettings
    parts: TaskSplits = field(init=False)
    _store: Store | None = field(init=False)
    _tasks: Mapping[tuple[str, str], Task] = field(init=False)
    _rewards: Mapping[str, Reward] = field(init=False)
    _libraries: dict[int, Library] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.parts = load_tasks_for_training(self.settings.tasks)
        self._store = open_store(self.settings.library) if self.settings.library else None
        self._tasks = {
            (name, task.task_id): task for name, part in self.parts for task in part.tasks
        }
        self._rewards = {
            name: reward_named(self.settings.reward, part) for name, part in self.parts
        }

    @property
    def newest_version(self) -> int:
        """The newest version of the library in the store; 0 without one."""
        versions = () if self._store is None else self._store.versions()
        return versions[-1] if versions else 0

    def library(self, version: int) -> Library | None:
        """A version of the library. It never changes, so that each is read once.

        Args:
            version: Which; 0 for the tasks' own texts, which is no library.

        Raises:
            StoreError: The store does not have it.
        """
        if self._store is None or version == 0:
            return None
        if version not in self._libraries:
            while len(self._libraries) >= _MOST_VERSIONS:
                del self._libraries[min(self._libraries)]
            self._libraries[version] = self._store.load(version)
        return self._libraries[version]

    async def rollout(
        self, model: RolloutModel, row: RowInfo, *, version: int, temperature: float
    ) -> Rollout:
        """Let a model try the task of a row once.

        With ``keeps_episodes`` its episodes go into the store, to be learned from, if the task is
        one to train on and the rollout has no fault. What is held out can not measure a library
        that has learned from it.

        Args:
            model: Answers.
            row: Which task.
            version: Of the library whose texts its tools have.
            temperature: Of sampling, for the record of the episodes.

        Returns:
            The rollout, rewarded and weighted. One with a fault is neither.

        Raises:
            TrainingError: The settings' tasks do not have the row's.
        """
        library = self.library(version)
        benchmark = self._alone(row)
        if library is not None:
            benchmark = with_composites(benchmark, library)
        tried = await collect(
            model,
            benchmark,
            library=library,
            attempts=1,
            temperature=temperature,
            settings=self.settings.asking.settings(),
        )
        (judged,) = rewarded(tried, self._rewards[row.part])
        if self.settings.keeps_episodes and row.part == "train" and not judged.fault:
            await self._keep(judged)
        return judged if self.settings.weights == "none" else _weighed(judged)

    async def _keep(self, rollout: Rollout) -> None:
        """Put the episodes into the store, if there is one."""
        if self._store is None:
            return
        for episode in rollout.episodes:
            await asyncio.to_thread(self._store.append, episode)

    def _alone(self, row: RowInfo) -> Benchmark:
        """The benchmark with the one task."""
        task = self._tasks.get((row.part, row.task_id))
        if task is None:
            raise TrainingError(
                f"there is no task {row.task_id!r} among the {row.part} tasks of these settings "
                f"({', '.join(f'{name} {size}' for name, size in self.parts.sizes.items())}); rows "
                "and settings are of two exports, or the data has changed: export again"
            )
        part = dict(self.parts)[row.part]
        return replace(part, tasks=(task,))


def _weighed(rollout: Rollout) -> Rollout:
    """With its own weight; what a batch has to say about it is the trainer's business."""
    (weighed,) = weighted_rollouts((rollout,), FixedWeighting())
    return weighed
