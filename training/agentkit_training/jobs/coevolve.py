"""``coevolve_job``: reinforcement learning from a configuration to a folder with a hand-over."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from agentkit import open_store
from agentkit._waiting import wait_for
from agentkit.evaluation import Benchmark
from agentkit.interop.export import read_artifact, write_artifact
from agentkit.library.store import Store
from agentkit.models.base import ChatModel, resolve_model
from agentkit_training.coevolution.checkpoint import (
    FrozenEngine,
    coevolve,
    newest_checkpoint,
    step_of,
)
from agentkit_training.coevolution.keeper import LibraryKeeper
from agentkit_training.coevolution.records import CoevolutionStep
from agentkit_training.coevolution.source import Coevolution
from agentkit_training.coevolution.stages import warm_up
from agentkit_training.coevolution.tasks import pure_tools, with_composites
from agentkit_training.config.jobs import CoevolveConfig, reward_named
from agentkit_training.distributed.ranks import ALONE, Beat, Ranks, check_weights, led
from agentkit_training.engines.base import Engine, Share
from agentkit_training.engines.trl.vllm import VllmWriter
from agentkit_training.export.handover import restored_store
from agentkit_training.files import new_folder
from agentkit_training.fine_tuning.solutions import solutions_of
from agentkit_training.fine_tuning.teaching import left_out_notes, taught_examples
from agentkit_training.fine_tuning.training import SftStep, sft
from agentkit_training.jobs.evaluate import close_model
from agentkit_training.jobs.running import (
    Started,
    check_engine,
    ended,
    measured,
    started,
    tell_of_tasks,
)
from agentkit_training.policy.policy import Policy
from agentkit_training.policy.saving import restore_weights, save_weights
from agentkit_training.runs import Listener, RunDirectory, StepRecord, ignore
from agentkit_training.weighting import Weighting

_WARM, _WARM_LIBRARY = "warm-up", "warm-library.json"
_COLD, _COLD_FOLDER = "cold start", "cold-start"


def coevolve_job(
    config: CoevolveConfig,
    folder: Path,
    *,
    command: str = "",
    resumes: bool = False,
    listen: Listener = ignore,
    ranks: Ranks = ALONE,
) -> RunDirectory:
    """Train with rollouts, let the library learn, measure, hand over.

    In several processes each makes its share of the rollouts and of the held-out answers; rank 0
    alone decides about the library and writes. All must see the folder.

    Args:
        config: What to do.
        folder: Where the run is kept.
        command: What was typed, for the record.
        resumes: Whether a run that is there is gone on with, from its newest checkpoint.
        listen: Told of each record of the log, at rank 0.
        ranks: The processes that train together; each calls this with the same arguments.

    Raises:
        UsageError: The configuration can not be used.
        TrainingError: The run can not go on.
    """
    check_engine(config, ranks)
    seed = config.coevolution.seed
    at = started(config, folder, ranks, seed=seed, command=command, resumes=resumes)
    writer = config.engine.writer(at.policy)
    with at.log(config, listen) as log, _trying(config, at.policy, writer) as model:
        job = _Coevolve(config=config, at=at, model=model, writer=writer, log=log)
        job.all()
    check_weights(at.policy, ranks)
    store = job.source.keeper.store if config.coevolution.changes_library else None
    trained = at.policy if config.has_own_weights else None
    led(ranks, lambda _: ended(at.run, policy=trained, base=config.policy.weights, store=store))
    return at.run


@contextmanager
def _trying(
    config: CoevolveConfig, policy: Policy, writer: VllmWriter | None
) -> Iterator[ChatModel]:
    """What tries the tasks: the policy, or the model in its place."""
    if not config.rollout_model:
        yield config.policy.model(policy, writer=writer)
        return
    model = resolve_model(config.rollout_model)
    try:
        yield model
    finally:
        close_model(model)


@dataclass(kw_only=True)
class _Coevolve:
    """One run of reinforcement learning."""

    config: CoevolveConfig
    at: Started
    model: ChatModel
    writer: VllmWriter | None
    log: Listener
    source: Coevolution = field(init=False)

    def __post_init__(self) -> None:
        config, train = self.config, self.at.parts.train
        models = {name: resolve_model(model) for name, model in config.asked_models.items()}
        keeper = LibraryKeeper(
            settings=config.coevolution,
            benchmark=train,
            store=self._store(),
            tools=pure_tools(train) if config.coevolution.composites else (),
            feedback_model=models.get("feedback_model"),
            teacher=models.get("teacher"),
        )
        self.source = Coevolution(
            model=self.model,
            keeper=keeper,
            settings=config.coevolution,
            benchmark=train,
            reward=reward_named(
                config.reward, train, strict_format=config.coevolution.strict_format
            ),
            asking=config.asked,
            weighting=Weighting(
                normalised=config.weighting.normalised, scaled=config.engine.scaled
            ),
            interface=config.interface,
            ranks=self.at.ranks,
            listen=self._told,
        )

    def all(self) -> None:
        """Measure, warm up, start cold, train, measure; what is done stays done."""
        parts, watch = self.at.parts, self.config.watch
        before = (one for one in self.at.kept(self._stays) if one.step == 0)
        known = {one.phase for one in before if "accuracy" in one.figures}
        tell_of_tasks(self.at, self.config, self.log)
        if "validation" not in known:
            self._measure(0, parts.validation, "validation")
        if "test" not in known:
            self._measure(0, parts.test, "test")
        if self.config.coevolution.composites and not self.config.library:
            self._warm_up()
        if self.config.cold_start is not None:
            self._start_cold()
            if _COLD not in known:
                self._measure(0, parts.validation, _COLD)
        folder = self.at.run.checkpoints
        coevolve(
            self.at.policy, self.source, self._engine(), folder=folder, every=watch.checkpoint_every
        )
        if not self._is_looked_at(self.source.steps - 1):
            self._measure(self.source.steps, parts.validation, "validation")
        self._measure(self.source.steps, parts.test, "test")

    def _store(self) -> Store:
        """The library to begin with; empty where a checkpoint will bring its own."""
        run = self.at.run
        warm = run.path / _WARM_LIBRARY
        begins = warm if warm.is_file() else self.config.library
        if newest_checkpoint(run.checkpoints) is not None or not begins:
            return open_store("memory:")
        return restored_store(begins)

    def _engine(self) -> Engine:
        ranks, config = self.at.ranks, self.config
        if config.frozen:
            return FrozenEngine(share=Share(rank=ranks.rank, world=ranks.world))
        return config.engine.make(self.at.policy, seed=config.coevolution.seed, writer=self.writer)

    def _warm_up(self) -> None:
        """Distil the first composites (CoCoDA's stage 1), unless a run that goes on has them."""
        config, train, ranks = self.config, self.at.parts.train, self.at.ranks
        file = self.at.run.path / _WARM_LIBRARY
        if ranks.broadcast(file.is_file()):
            return
        known = solutions_of(train, config.tasks, settings=config.asked).trajectories
        done = warm_up(
            self.model,
            self.source.keeper,
            replace(train, tasks=train.tasks[: config.warm_up]),
            gold=known.values(),
            asking=config.asked,
            ranks=ranks,
        )
        artifact = self.source.keeper.artifact
        led(ranks, lambda _: write_artifact(artifact(), file))
        if ranks.rank:
            self.source.follow(read_artifact(file).library)
        taken = [one.tool for one in done.distilled if one.is_taken]
        figures = {"tried": done.tried, "passed": done.passed, "composites": len(taken)}
        refused = [f"{one.tool}: {one.why}" for one in done.distilled if not one.is_taken]
        self.log(StepRecord(step=0, phase=_WARM, figures=figures, notes=tuple(refused)))

    def _start_cold(self) -> None:
        """Fine-tune the policy once, on gold answers (CoCoDA's stage 2); every process calls it.

        A run that goes on takes up the weights that it came to. Training begins there, and the
        reference of a KL divergence is the policy as it was then.
        """
        ranks, folder = self.at.ranks, self.at.run.path / _COLD_FOLDER
        was_done = ranks.broadcast(folder.is_dir())
        if not was_done:
            led(ranks, lambda beat: self._tune(folder, beat))
        if was_done or ranks.rank:
            restore_weights(self.at.policy, folder)

    def _tune(self, folder: Path, beat: Beat) -> None:
        settings, policy = self.config.cold_start, self.at.policy
        assert settings is not None  # asked for
        library = self.source.library
        examples = wait_for(
            taught_examples(
                policy,
                with_composites(self.at.parts.train, library),
                self.config.tasks,
                prompting=self.config.policy.prompting(),
                library=library,
                settings=self.source.training_asking,
                max_tokens=settings.max_tokens,
            )
        )
        if notes := tuple(left_out_notes(examples.left_out)):
            self.log(StepRecord(step=0, phase=_COLD, notes=notes))

        def told(one: SftStep) -> None:
            figures = {"loss": one.loss}
            self.log(StepRecord(step=one.step, phase=_COLD, figures=figures, steps=one.steps))
            beat()

        sft(policy, examples.rows, settings, listen=told)
        with new_folder(folder) as draft:
            save_weights(policy, draft)

    def _told(self, record: CoevolutionStep) -> None:
        phase = "coevolve" if self.config.coevolution.changes_library else "grpo"
        self.log(record.to_record(phase=phase, is_frozen=self.config.frozen))
        if self._is_looked_at(record.step):
            self._measure(record.step + 1, self.at.parts.validation, "validation")

    def _stays(self, record: StepRecord) -> bool:
        """Whether a record is of what need not be done again."""
        newest = newest_checkpoint(self.at.run.checkpoints)
        taken = 0 if newest is None else step_of(newest)
        match record.phase:
            case "coevolve" | "grpo":
                return record.step < taken
            case "validation":
                is_last = record.step == self.source.steps
                return record.step <= taken and (not is_last or self._is_looked_at(record.step - 1))
            case "test":
                return record.step == 0
            case "warm-up":
                return (self.at.run.path / _WARM_LIBRARY).is_file()
            case "cold start":
                return (self.at.run.path / _COLD_FOLDER).is_dir()
            case _:
                return True

    def _is_looked_at(self, step: int) -> bool:
        every = self.config.watch.evaluate_every
        return bool(every) and (step + 1) % every == 0

    def _measure(self, step: int, tasks: Benchmark, phase: str) -> None:
        if tasks.tasks:
            library = self.source.library
            self.log(
                measured(
                    self.model,
                    with_composites(tasks, library),
                    step=step,
                    phase=phase,
                    library=library,
                    settings=self.config.asked,
                    retriever=self.config.coevolution.make_retriever(self.model),
                    ranks=self.at.ranks,
                )
            )
