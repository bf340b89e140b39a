"""``Workspace``: what the rollouts of one process share: tasks, library, rewards."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from agentkit import open_store
from agentkit.evaluation import Benchmark, Task
from agentkit.library import Library
from agentkit.library.store import Store
from agentkit_training.coevolution.offering import with_composites
from agentkit_training.config.reading import read_config
from agentkit_training.config.sections import reward_named
from agentkit_training.engines.verl.rows import RowInfo
from agentkit_training.engines.verl.settings import VerlSettings
from agentkit_training.errors import TrainingError
from agentkit_training.rewards import Reward, rewarded
from agentkit_training.rollout.collecting import RolloutModel, collect
from agentkit_training.rollout.samples import Rollout
from agentkit_training.tasks.loading import load_tasks_for_training
from agentkit_training.tasks.splits import TaskSplits
from agentkit_training.weighting import FixedWeighting, weighted_rollouts

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
