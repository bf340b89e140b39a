"""``export_job``: a hand-over of the newest checkpoint of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import reduce
from pathlib import Path

from agentkit import open_store
from agentkit._waiting import wait_for
from agentkit.episodes import Episode
from agentkit.errors import UsageError
from agentkit.evaluation import (
    Benchmark,
    EvaluationReport,
    EvaluationSettings,
    episodes_of_run,
    evaluate,
    summarise,
)
from agentkit.library import Library
from agentkit.models.base import ChatModel, ModelSettings
from agentkit_training.coevolution.checkpoint import LIBRARY, newest_checkpoint
from agentkit_training.coevolution.tasks import with_composites
from agentkit_training.config.jobs import CoevolveConfig
from agentkit_training.config.reading import parse_config
from agentkit_training.distributed.ranks import ALONE, Ranks
from agentkit_training.errors import CheckpointError, ExportError
from agentkit_training.export.handover import Handover, hand_over
from agentkit_training.export.weights import AdapterPrecision
from agentkit_training.jobs.ending import began_as_gguf, restored_store
from agentkit_training.policy.saving import restore_weights
from agentkit_training.rollout.collecting import RolloutModel, collect
from agentkit_training.rollout.policy_model import PolicyModel
from agentkit_training.rollout.samples import Rollout
from agentkit_training.runs.directory import CONFIG, RunDirectory
from agentkit_training.runs.records import StepRecord


def export_job(
    folder: Path, target: Path, *, adapter_precision: AdapterPrecision = "f32"
) -> Handover:
    """Hand over what a run of ``coevolve`` or ``grpo`` has learned so far.

    Args:
        folder: The run.
        target: Where to.
        adapter_precision: Of the adapter's numbers.

    Raises:
        UsageError: It is no such run.
        CheckpointError: It has no checkpoint yet.
        ExportError: Its weights did not begin as GGUF, which the local model needs.
    """
    run = RunDirectory(folder)
    try:
        config = parse_config(run.config, CoevolveConfig, name=str(run.path / CONFIG))
    except UsageError as error:
        raise UsageError(
            f"{folder} is no run of coevolve or grpo; a run of sft has its hand-over when it "
            f"ends: {error}"
        ) from error
    if not began_as_gguf(config.policy.weights):
        raise ExportError(
            f"{folder} trains {config.policy.weights}, which did not begin as GGUF, and the "
            "runtime's local model takes nothing else; when such a run ends, its folder has "
            "'policy', as transformers and PEFT load it, and 'library.json'"
        )
    newest = newest_checkpoint(run.checkpoints)
    if newest is None:
        raise CheckpointError(
            f"{folder} has no checkpoint yet; wait for its first one, after "
            f"{config.watch.checkpoint_every} steps (checkpoint_every of the section watch)"
        )
    policy = config.policy.load(seed=config.coevolution.seed)
    restore_weights(policy, newest)
    store = None
    if config.coevolution.changes_library:
        store = restored_store(newest / LIBRARY)
    return hand_over(
        target,
        base=config.policy.weights,
        policy=policy if config.has_own_weights else None,
        store=store,
        adapter_precision=adapter_precision,
    )


_RUN = "evaluation"


@dataclass(frozen=True, kw_only=True)
class Examination:
    """What is asked, and how.

    Attributes:
        benchmark: The tasks.
        library: What the tools are called and described as; None for the tasks' own.
        settings: How to ask.
        attempts: Tries at each task, for pass@k and pass^k.
        temperature: Of sampling; 0 is greedy.
        concurrency: Attempts under way at the same time, with a model that is no policy.
    """

    benchmark: Benchmark
    library: Library | None
    settings: EvaluationSettings
    attempts: int = 1
    temperature: float = 0.0
    concurrency: int = 4

    @property
    def tasks(self) -> Benchmark:
        """The tasks, offering the library's composites beside what these are made of."""
        return (
            self.benchmark
            if self.library is None
            else with_composites(self.benchmark, self.library)
        )


def evaluate_job(model: ChatModel, asked: Examination, *, command: str = "") -> EvaluationReport:
    """Ask every task.

    Args:
        model: A policy, or any chat model of the runtime: hosted ones and local weights with an
            adapter are asked in the same way.
        asked: What to ask.
        command: How to repeat it, for the reader.

    Raises:
        RunError: The model failed again and again.
    """
    if isinstance(model, PolicyModel):
        episodes = wait_for(_of_policy(model, asked))
    else:
        episodes = wait_for(_of_other(model, asked))
    planned = Counter(
        task.category for task in asked.benchmark.tasks for _ in range(asked.attempts)
    )
    return summarise(episodes, planned=planned, command=command)


async def _of_policy(model: PolicyModel, asked: Examination) -> tuple[Episode, ...]:
    """All attempts at once, as in training."""
    rollouts = await collect(
        model,
        asked.tasks,
        library=asked.library,
        attempts=asked.attempts,
        temperature=asked.temperature,
        settings=asked.settings,
    )
    return tuple(episode for one in rollouts for episode in one.episodes)


async def _of_other(model: ChatModel, asked: Examination) -> tuple[Episode, ...]:
    store = open_store("memory:")
    settings = replace(
        asked.settings,
        attempts=asked.attempts,
        settings=ModelSettings(temperature=asked.temperature),
    )
    try:
        await evaluate(
            asked.tasks,
            model=model,
            store=store,
            run=_RUN,
            library=asked.library,
            settings=settings,
            concurrency=asked.concurrency,
        )
        return tuple(episodes_of_run(store, _RUN))
    finally:
        store.close()


def measured(
    model: RolloutModel,
    benchmark: Benchmark,
    *,
    step: int,
    phase: str = "evaluate",
    library: Library | None = None,
    settings: EvaluationSettings | None = None,
    ranks: Ranks = ALONE,
) -> StepRecord:
    """How many tasks the policy passes, greedily answered, through the evaluation's own door.

    Several processes share the tasks out, and come to one record. One of them could do all, but
    the others would wait for it as many times longer, and in vain.

    Args:
        model: The policy, or what tries tasks in its place.
        benchmark: The tasks.
        step: Training steps before it.
        phase: Its name in the log.
        library: What the tools are called and described as.
        settings: How to ask.
        ranks: The processes that hold the policy; all of them must call this.
    """
    own = replace(benchmark, tasks=benchmark.tasks[ranks.rank :: ranks.world])
    found: Sequence[Rollout] = ()
    if own.tasks:
        asked = collect(model, own, library=library, attempts=1, temperature=0, settings=settings)
        found = wait_for(asked)
    told = ranks.broadcast(ranks.gather(asdict(_Tally.of(found))))
    tally = reduce(_Tally.plus, (_Tally(**one) for one in told))
    return StepRecord(
        step=step, phase=phase, figures=tally.figures(), labels=tally.labels, notes=tally.notes()
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Tally:
    """What one process counted, or several together.

    Tasks that are broken are not judged. One that the policy could not answer is, as not solved: a
    policy that fills its window would else be measured on what it leaves over.
    """

    tasks: int
    judged: int
    solved: int
    faults: int
    fault: str
    calls: int
    labels: dict[str, int]

    @classmethod
    def of(cls, rollouts: Sequence[Rollout]) -> _Tally:
        """The counts of rollouts."""
        solved = [one for one in rollouts if one.passed and not one.fault]
        return cls(
            tasks=len(rollouts),
            judged=sum(not _is_broken(one) for one in rollouts),
            solved=len(solved),
            faults=sum(bool(one.fault) for one in rollouts),
            fault=next((one.fault for one in rollouts if one.fault), ""),
            calls=sum(
                len(turn.message.tool_calls)
                for one in solved
                for episode in one.episodes
                for turn in episode.turns
            ),
            labels=dict(Counter(label for one in rollouts for label in one.labels)),
        )

    def plus(self, other: _Tally) -> _Tally:
        """The counts of both."""
        return _Tally(
            tasks=self.tasks + other.tasks,
            judged=self.judged + other.judged,
            solved=self.solved + other.solved,
            faults=self.faults + other.faults,
            fault=self.fault or other.fault,
            calls=self.calls + other.calls,
            labels=dict(Counter(self.labels) + Counter(other.labels)),
        )

    def notes(self) -> tuple[str, ...]:
        """What a reader of the share must know: tasks that say nothing of what the policy knows."""
        if not self.faults:
            return ()
        told = f"{self.faults} of {self.tasks} tasks could not be asked, answered or judged"
        return (f"{told}; the first: {self.fault}",)

    def figures(self) -> dict[str, float]:
        """The figures of an evaluation."""
        figures = {
            "accuracy": self.solved / max(1, self.judged),
            "tasks": float(self.tasks),
            "faults": float(self.faults),
        }
        return figures | ({"calls_per_solved": self.calls / self.solved} if self.solved else {})


def _is_broken(rollout: Rollout) -> bool:
    """Whether the reference or the verifier is at fault."""
    verdicts = [one.verdict for one in rollout.episodes if one.verdict is not None]
    return any(verdict.fault is not None for verdict in verdicts)
