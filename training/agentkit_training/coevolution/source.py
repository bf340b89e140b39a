"""``Coevolution``: what an engine trains on while the library learns beside the policy.

ToolDNA's Algorithm 1, with what SEAL and CoCoDA add to it. What a step does, in order:

1. tasks by seed and step; the prompt is rendered from the newest library (line 3);
2. G attempts at each (line 4), rewarded (line 5) and, if wanted, weighted (SEAL, Eq. 12);
3. the engine updates the policy (line 6);
4. the failure profile fades and takes in what happened (SEAL, Algorithm 1);
5. the proposers look at the episodes, perfect ones and others (lines 8 and 15), composites are
   mined, and the Tool Manager decides (lines 10 to 13 and 18 to 21; CoCoDA, Algorithm 1, (d)).

Where we differ from the papers:

* Proposals of a step are taken up one after another, and not rollout by rollout beside the update;
  two that say the same are one.
* The reward decides what the policy learns; whether an episode is perfect is read off its verdict
  (``agentkit.evolution.proposers.streams``), which holds for every reward alike.
* The request for ``<description>`` blocks stands in training prompts alone. The papers do not say
  whether it stands at evaluation.
* CoCoDA updates library and policy after every query, this after every step of several tasks.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import fmean
from typing import Any

from agentkit._waiting import wait_for
from agentkit.episodes import Episode, FailureLabel
from agentkit.errors import UsageError
from agentkit.evaluation import Benchmark, EvaluationSettings, Task
from agentkit.library import Library
from agentkit.messages import JsonObject
from agentkit.models.base import ChatModel
from agentkit_training.coevolution.keeper import LibraryKeeper, library_size
from agentkit_training.coevolution.records import (
    CoevolutionStep,
    Memory,
    ProposalOutcome,
    RolloutSums,
)
from agentkit_training.coevolution.settings import (
    CoevolutionSettings,
    as_learned_from,
    with_stable_ids,
)
from agentkit_training.coevolution.tasks import (
    BLOCK_PROMPT,
    block_count,
    step_count,
    step_seed,
    step_tasks,
    with_composites,
)
from agentkit_training.distributed.ranks import Alone, Ranks
from agentkit_training.distributed.synchronising import synchronise
from agentkit_training.engines.base import COUNTS, Share, StepReport
from agentkit_training.engines.packing import group_advantages
from agentkit_training.interface import LearningInterface, collect_through
from agentkit_training.rewards import (
    Reward,
    RewardSum,
    rewarded,
    saved_calls_reward,
    verdict_reward,
)
from agentkit_training.rollout.samples import Rollout
from agentkit_training.runs import ignore
from agentkit_training.weighting import Weighting, with_weights


@dataclass(frozen=True, kw_only=True, slots=True)
class RolloutNote:
    """What records and weights need of one rollout, beside those of other processes.

    Attributes:
        task_id: The task.
        passed: Whether all that was judged passed.
        fault: Why it says nothing about the policy; empty for any other.
        is_broken: Whether the reference or the verifier is at fault.
        reward: Its reward.
        reward_parts: What the reward is made of.
        reward_notes: What the reward function recorded beside it.
        weight: Of its advantage.
        labels: Of its turns.
        blocks: Answers with a ``<description>`` block.
        calls: Tool calls.
    """

    task_id: str
    passed: bool
    fault: str
    is_broken: bool
    reward: float
    reward_parts: Mapping[str, float]
    reward_notes: Mapping[str, float]
    weight: float
    labels: tuple[FailureLabel, ...]
    blocks: int
    calls: int

    @classmethod
    def of(cls, rollout: Rollout) -> RolloutNote:
        """The note of a rollout."""
        return cls(
            task_id=rollout.task_id,
            passed=rollout.passed,
            fault=rollout.fault,
            is_broken=any(e.verdict and e.verdict.fault is not None for e in rollout.episodes),
            reward=rollout.reward,
            reward_parts=dict(rollout.reward_parts),
            reward_notes=dict(rollout.reward_notes),
            weight=rollout.weight,
            labels=rollout.labels,
            blocks=block_count(rollout),
            calls=sum(len(episode.calls) for episode in rollout.episodes),
        )


def told_by_all(rollouts: Iterable[Rollout], ranks: Ranks) -> list[list[RolloutNote]]:
    """The notes of all processes in order, in each of them; all must call this."""
    own = [asdict(RolloutNote.of(one)) for one in rollouts]
    shares = ranks.broadcast(ranks.gather(own))
    return [[RolloutNote(**one) for one in share] for share in shares]


def summed(notes: Sequence[RolloutNote]) -> RolloutSums:
    """Add up the notes of one step, of all processes in order."""
    sound = [one for one in notes if not one.fault]
    labels = Counter(label for one in sound for label in one.labels)
    return RolloutSums(
        tasks=tuple(dict.fromkeys(one.task_id for one in notes)),
        count=len(notes),
        passed=sum(one.passed for one in sound),
        faults=len(notes) - len(sound),
        fault=next((one.fault for one in notes if one.fault), ""),
        blocks=sum(one.blocks > 0 for one in notes),
        calls=sum(one.calls for one in notes),
        reward=_mean(one.reward for one in sound),
        reward_parts=_means(one.reward_parts for one in sound),
        reward_notes=_means(one.reward_notes for one in sound),
        weight=_mean((one.weight for one in sound), empty=1.0),
        weight_scale=_weight_scale(sound),
        labels=dict(sorted(labels.items())),
    )


def _weight_scale(notes: Sequence[RolloutNote]) -> float:
    groups: defaultdict[str, list[RolloutNote]] = defaultdict(list)
    for one in notes:
        groups[one.task_id].append(one)
    plain = weighted = 0.0
    for group in groups.values():
        for one, size in zip(group, group_advantages([r.reward for r in group]), strict=True):
            plain += abs(size)
            weighted += one.weight * abs(size)
    return weighted / plain if plain else 1.0


def _means(several: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """The mean of each name, over those that have it."""
    found: defaultdict[str, list[float]] = defaultdict(list)
    for values in several:
        for name, value in values.items():
            found[name].append(value)
    return {name: fmean(values) for name, values in sorted(found.items())}


def _mean(values: Iterable[float], *, empty: float = 0.0) -> float:
    found = list(values)
    return fmean(found) if found else empty


@dataclass(frozen=True, kw_only=True, slots=True)
class Tried:
    """The rollouts of one process in the step under way.

    Attributes:
        step: Its number.
        library: What the prompts were rendered from.
        rollouts: With rewards and weights.
    """

    step: int
    library: Library
    rollouts: tuple[Rollout, ...]

    @property
    def episodes(self) -> list[Episode]:
        """What the library may learn from: episodes of rollouts without a fault."""
        sound = (one for one in self.rollouts if not one.fault)
        return [as_learned_from(episode) for one in sound for episode in one.episodes]

    def told(self, report: StepReport) -> dict[str, Any]:
        """What the process that decides must know, as JSON data.

        Args:
            report: What the engine says of this process's part of the update.
        """
        return {
            "notes": [asdict(RolloutNote.of(one)) for one in self.rollouts],
            "episodes": [one.to_json() for one in self.episodes],
            "counts": {name: getattr(report, name) for name in COUNTS},
        }


def weighed(rollouts: Sequence[Rollout], weighting: Weighting, ranks: Ranks) -> tuple[Rollout, ...]:
    """The rollouts of this process with their weights.

    The weighting sees the rollouts of all processes, so that the mean weight is that of one process
    that tried everything. All processes must call this, those without rollouts as well.

    Args:
        rollouts: Those of this process.
        weighting: The same everywhere.
        ranks: The processes.
    """
    shares = told_by_all(rollouts, ranks)
    told = [one for share in shares for one in share]
    first = sum(map(len, shares[: ranks.rank]))
    return with_weights(rollouts, weighting.weights(told)[first : first + len(rollouts)])


@dataclass(kw_only=True)
class Coevolution:
    """A ``Source`` whose library learns.

    The library of a run lives in the keeper's store; ``keeper.artifact()`` is what is exported.

    Attributes:
        model: Tries the tasks: the policy, or with a policy that stays as it is any model.
        keeper: The library, and who may change it.
        settings: What learns, and how much is tried.
        benchmark: The tasks.
        reward: What a rollout is worth.
        asking: How to ask; attempts, temperature, seed and where tools come from are the settings'.
        weighting: Weighs advantages, where the settings ask for it.
        interface: What training prompts may be given more, where the settings ask for it.
        ranks: The processes that train together.
        listen: Told of each step, in every process.
        records: The steps so far.
        memory: Failures so far.

    Raises:
        UsageError: The interface is switched on, and none of its parts is.
    """

    model: ChatModel
    keeper: LibraryKeeper
    settings: CoevolutionSettings
    benchmark: Benchmark
    reward: Reward = verdict_reward
    asking: EvaluationSettings = field(default_factory=EvaluationSettings)
    weighting: Weighting = Weighting()  # noqa: RUF009 - immutable
    interface: LearningInterface = LearningInterface()  # noqa: RUF009 - immutable
    ranks: Ranks = field(default_factory=Alone)
    listen: Callable[[CoevolutionStep], None] = ignore
    records: list[CoevolutionStep] = field(init=False, default_factory=list)
    memory: Memory = field(init=False, default_factory=Memory)
    _followed: Library | None = field(init=False, default=None)
    _tried: Tried | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        if self.settings.interface and not self.interface.can_show:
            raise UsageError("the settings ask for an interface, and the one given shows nothing")

    @property
    def steps(self) -> int:
        """How many steps the run has."""
        return step_count(self.benchmark.tasks, self.settings)

    @property
    def library(self) -> Library:
        """The version that the next step's prompts are rendered from."""
        return self.keeper.library if self._followed is None else self._followed

    def rollouts(self, step: int, share: Share) -> Sequence[Rollout]:
        """The rollouts of one step: this process's share of its tasks; see ``Source.rollouts``."""
        if (share.rank, share.world) != (self.ranks.rank, self.ranks.world):
            raise UsageError(
                f"the engine takes share {share.rank} of {share.world}, and the ranks given are "
                f"{self.ranks.rank} of {self.ranks.world}"
            )
        library = self.library
        tasks = step_tasks(self.benchmark.tasks, self.settings, step=step)
        own = tasks[share.rank :: share.world]
        found: tuple[Rollout, ...] = ()
        if own:
            found = rewarded(self._collected(own, library, step), self._reward(library))
        if self.settings.weighting:
            found = weighed(found, self.weighting, self.ranks)
        self._tried = Tried(step=step, library=library, rollouts=found)
        self.keeper.keep(self._tried.episodes)
        return found

    def finished(self, report: StepReport) -> None:
        """Let the library learn from the step; see ``Source.finished``.

        A call that raises loses nothing: the rollouts are kept, and a second call with the same
        report goes on.

        Raises:
            UsageError: The step has no rollouts.
            TrainingError: Rank 0 failed, or a process could not take up its library.
            StoreError: The store failed.
        """
        tried = self._tried
        if tried is None or tried.step != report.step:
            raise UsageError(f"step {report.step} has no rollouts; ask for them first")
        record, memory, library = self._decided(report, tried)
        if self.ranks.rank:
            self._followed = library
        self.memory = memory
        self.records.append(record)
        self._tried = None
        self.listen(record)

    def follow(self, library: Library) -> None:
        """Take up a library that rank 0 decided about outside of a step."""
        self._followed = library

    def go_on(self, memory: Memory, records: Iterable[CoevolutionStep]) -> None:
        """Take up where a checkpoint ended; its library is the keeper's by now."""
        self.memory = memory
        self.records = list(records)
        self._tried = None

    # Trying

    def _collected(
        self, tasks: tuple[Task, ...], library: Library, step: int
    ) -> tuple[Rollout, ...]:
        found = wait_for(
            collect_through(
                self._interface(),
                self.model,
                with_composites(replace(self.benchmark, tasks=tasks), library),
                library=library,
                attempts=self.settings.group_size,
                temperature=self.settings.temperature,
                seed=step_seed(self.settings, step=step),
                settings=self.training_asking,
                retriever=self.settings.make_retriever(self.model),
            )
        )
        return with_stable_ids(found, run=self.settings.name, step=step)

    @property
    def training_asking(self) -> EvaluationSettings:
        """How tasks are asked in training: as anywhere, and for blocks where these count."""
        asking = replace(self.asking, tools=self.settings.tools)
        if not self.settings.evolution:
            return asking
        said = filter(None, [asking.instructions, BLOCK_PROMPT])
        return replace(asking, instructions="\n\n".join(said))

    def _interface(self) -> LearningInterface:
        """The interface that the profile asks for now (SEAL, Eq. 15); all off without one."""
        if not self.settings.interface:
            return LearningInterface()
        return self.interface.updated(self.memory.shown(closed_loop=self.settings.closed_loop))

    def _reward(self, library: Library) -> Reward:
        """R_res + lambda R_comp (CoCoDA, section 3.3), the composites being those of a library."""
        coefficient = self.settings.composite_coefficient
        if not coefficient:
            return self.reward
        saved = saved_calls_reward(library, weight=coefficient, gated=self.settings.gated)
        return RewardSum([self.reward, saved])

    # Learning

    def _decided(self, report: StepReport, tried: Tried) -> tuple[CoevolutionStep, Memory, Library]:
        """What rank 0 makes of the step, taken up in every process."""
        made: list[tuple[CoevolutionStep, Memory]] = []

        def decide(told: Sequence[JsonObject]) -> Library:
            record, memory, library = self._learned(report, tried.library, told)
            made.append((record, memory))
            return library

        library = synchronise(
            tried.library, tried.told(report), decide, ranks=self.ranks, tools=self.keeper.tools
        )
        if made:
            record, memory = made[0]
            self.ranks.broadcast({"record": record.to_json(), "memory": memory.to_json()})
            return record, memory, library
        told = self.ranks.broadcast(None)
        record = CoevolutionStep.from_json(told["record"])
        return record, Memory.from_json(told["memory"]), library

    def _learned(
        self, report: StepReport, before: Library, told: Sequence[JsonObject]
    ) -> tuple[CoevolutionStep, Memory, Library]:
        """Let the profile and the library learn from what each process tells, in order.

        Nothing but the library's store is changed, so that a call that failed can be made again:
        what was committed by then is known there and not committed twice.
        """
        started = time.perf_counter()
        episodes = [Episode.from_json(one) for each in told for one in each["episodes"]]
        notes = [RolloutNote(**one) for each in told for one in each["notes"]]
        memory = self.memory.after(episodes, decay=self.settings.decay)
        proposals: tuple[ProposalOutcome, ...] = ()
        silent: tuple[str, ...] = ()
        if self.settings.changes_library:
            self.keeper.keep(episodes)
            proposals, silent = self.keeper.decide(episodes, memory.profile)
        library = self.keeper.library
        record = CoevolutionStep(
            step=report.step,
            version=before.version,
            digest=before.digest,
            next_version=library.version,
            next_digest=library.digest,
            rollouts=summed(notes),
            proposals=proposals,
            silent=silent,
            library=library_size(library),
            update=replace(
                report, **{name: sum(int(one["counts"][name]) for one in told) for name in COUNTS}
            ),
            library_seconds=time.perf_counter() - started,
        )
        return record, memory, library
