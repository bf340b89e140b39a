"""``coevolve_job``: reinforcement learning from a configuration to a folder with a hand-over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from agentkit import open_store
from agentkit._waiting import wait_for
from agentkit.evaluation import Benchmark, EvaluationSettings
from agentkit.library import Library
from agentkit.library.store import Store
from agentkit.models.base import ChatModel, ModelRequest, ModelResponse
from agentkit.models.resolve import resolve_model
from agentkit_training.coevolution.checkpoint import newest_checkpoint, step_of
from agentkit_training.coevolution.keeper import LibraryKeeper
from agentkit_training.coevolution.records import CoevolutionStep
from agentkit_training.coevolution.running import FrozenEngine, coevolve
from agentkit_training.coevolution.source import Coevolution
from agentkit_training.coevolution.tasks import pure_tools, with_composites
from agentkit_training.config.jobs import CoevolveConfig
from agentkit_training.config.sections import reward_named
from agentkit_training.distributed.ranks import ALONE, Beat, Ranks, check_weights, led
from agentkit_training.engines.base import Engine, Share
from agentkit_training.engines.trl.vllm import VllmWriter
from agentkit_training.files import new_folder
from agentkit_training.fine_tuning.settings import SftStep
from agentkit_training.fine_tuning.teaching import left_out_notes, taught_examples
from agentkit_training.fine_tuning.training import sft
from agentkit_training.jobs.beginning import run_log
from agentkit_training.jobs.ending import ended, restored_store
from agentkit_training.jobs.export import measured
from agentkit_training.jobs.joining import check_engine, started, tell_of_tasks
from agentkit_training.jobs.runtime import close_model
from agentkit_training.policy.policy import Policy
from agentkit_training.policy.saving import restore_weights, save_weights
from agentkit_training.rollout.collecting import RolloutModel
from agentkit_training.runs.directory import RunDirectory
from agentkit_training.runs.records import Listener, StepRecord, ignore
from agentkit_training.tasks.splits import TaskSplits


@dataclass(frozen=True, kw_only=True, slots=True)
class OutsideModel:
    """A ``RolloutModel`` that records no tokens: for runs in which only the library learns.

    A small model that writes freely makes hardly a call that can be read, and nothing is learned
    from it. Through the runtime the same weights answer under a grammar, and every call comes to
    the tool that refuses it.

    Attributes:
        model: Answers, one request after another or as it likes.
        max_tokens: Longest answer, unless a request's settings say otherwise.
    """

    model: ChatModel
    max_tokens: int

    @property
    def name(self) -> str:
        """The model's name, for records."""
        return self.model.name

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """Answer one request.

        Raises:
            ModelError: The model could not answer.
        """
        settings = request.settings
        if settings.max_tokens is None:
            settings = replace(settings, max_tokens=self.max_tokens)
        return await self.model.complete(replace(request, settings=settings))

    def expect(self, runs: int) -> None:
        """Nothing to prepare: requests are not answered together."""

    def forget(self) -> None:
        """Nothing is kept of earlier answers."""


_PHASE, _FOLDER = "cold start", "cold-start"


@dataclass(frozen=True, kw_only=True)
class WarmStart:
    """Fine-tunes a policy once, on gold answers (CoCoDA's stage 2).

    A run that goes on takes up the weights that it came to. Training begins there, and the
    reference of a KL divergence is the policy as it was then.

    Attributes:
        config: The run, which has a section ``cold_start``.
        policy: Its policy.
        run: The folder of the run.
        log: Told of each step, at rank 0.
        ranks: Rank 0 fine-tunes, and the others take up what it came to.
    """

    config: CoevolveConfig
    policy: Policy
    run: Path
    log: Listener
    ranks: Ranks

    @property
    def is_done(self) -> bool:
        """Whether its weights are there."""
        return self._folder.is_dir()

    def take(
        self, tasks: Benchmark, library: Callable[[], Library], asking: EvaluationSettings
    ) -> None:
        """Leave the policy fine-tuned; every process calls it.

        Args:
            tasks: Whose gold answers are taught.
            library: Gives what the prompts are rendered from. It is asked for where there is
                something to teach alone: the store of a run that goes on must stay empty until
                its checkpoint is put there.
            asking: How tasks are asked; as in the steps that follow.
        """
        was_done = self.ranks.broadcast(self.is_done)
        if not was_done:
            led(self.ranks, lambda beat: self._tune(tasks, library(), asking, beat))
        if was_done or self.ranks.rank:
            restore_weights(self.policy, self._folder)

    @property
    def _folder(self) -> Path:
        return self.run / _FOLDER

    def _tune(
        self, tasks: Benchmark, library: Library, asking: EvaluationSettings, beat: Beat
    ) -> None:
        settings = self.config.cold_start
        assert settings is not None  # asked for
        examples = wait_for(
            taught_examples(
                self.policy,
                with_composites(tasks, library),
                self.config.tasks,
                prompting=self.config.policy.prompting(),
                library=library,
                settings=asking,
                max_tokens=settings.max_tokens,
            )
        )
        if notes := tuple(left_out_notes(examples.left_out)):
            self.log(StepRecord(step=0, phase=_PHASE, notes=notes))

        def told(one: SftStep) -> None:
            figures = {"loss": one.loss}
            self.log(StepRecord(step=one.step, phase=_PHASE, figures=figures, steps=one.steps))
            beat()

        sft(self.policy, examples.rows, settings, listen=told)
        with new_folder(self._folder) as draft:
            save_weights(self.policy, draft)


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
    run, policy = at.run, at.policy
    writer = config.engine.writer(policy)
    with (
        run_log(run, ranks, trackers=config.watch.trackers, listen=listen) as log,
        _trying(config, policy, writer) as model,
    ):
        job = _Coevolve(
            config=config,
            run=run,
            parts=at.parts,
            policy=policy,
            model=model,
            writer=writer,
            log=log,
            ranks=ranks,
        )
        job.all()
    check_weights(policy, ranks)
    store = job.source.keeper.store if config.coevolution.changes_library else None
    trained = policy if config.has_own_weights else None
    led(ranks, lambda _: ended(run, policy=trained, base=config.policy.weights, store=store))
    return run


@contextmanager
def _trying(
    config: CoevolveConfig, policy: Policy, writer: VllmWriter | None
) -> Iterator[RolloutModel]:
    """What tries the tasks: the policy, or the model in its place."""
    if not config.rollout_model:
        yield config.policy.model(policy, writer=writer)
        return
    model = resolve_model(config.rollout_model)
    try:
        yield OutsideModel(model=model, max_tokens=config.policy.answer_tokens)
    finally:
        close_model(model)


class _Coevolve:
    """One run of reinforcement learning."""

    def __init__(
        self,
        *,
        config: CoevolveConfig,
        run: RunDirectory,
        parts: TaskSplits,
        policy: Policy,
        model: RolloutModel,
        writer: VllmWriter | None,
        log: Listener,
        ranks: Ranks,
    ) -> None:
        self._config = config
        self._run = run
        self._parts = parts
        self._policy = policy
        self._log = log
        self._ranks = ranks
        self._model = model
        self._writer = writer
        self._asking = config.asked
        self._warm = WarmStart(config=config, policy=policy, run=run.path, log=log, ranks=ranks)
        self._phase = "coevolve" if config.coevolution.changes_library else "grpo"
        self.source = self._source()

    def all(self) -> None:
        """Measure, start warm where that is wanted, train, measure; what is done stays done."""
        known = self._known()
        if self._ranks.rank == 0:
            tell_of_tasks(self._parts, self._config, self._run, self._log)
        if "validation" not in known:
            self._measure(0, self._parts.validation, "validation")
        if "test" not in known:
            self._measure(0, self._parts.test, "test")
        if self._config.cold_start is not None:
            self._warm.take(self._parts.train, lambda: self.source.library, self._asking)
            if "cold start" not in known:
                self._measure(0, self._parts.validation, "cold start")
        coevolve(
            self._policy,
            self.source,
            self._engine(),
            folder=self._run.checkpoints,
            every=self._config.watch.checkpoint_every,
        )
        if not self._is_looked_at(self.source.steps - 1):
            self._measure(self.source.steps, self._parts.validation, "validation")
        self._measure(self.source.steps, self._parts.test, "test")

    def _known(self) -> frozenset[str]:
        """What was measured before the first step; of a run that goes on, what stays of its log."""

        def look(_: Beat) -> list[str]:
            self._run.rewind(self._stays)
            return [
                one.phase
                for one in self._run.records()
                if one.step == 0 and "accuracy" in one.figures
            ]

        return frozenset(self._ranks.broadcast(led(self._ranks, look)))

    def _source(self) -> Coevolution:
        wanted, train = self._config, self._parts.train
        feedback = resolve_model(wanted.feedback_model) if wanted.feedback_model else None
        keeper = LibraryKeeper(
            settings=wanted.coevolution,
            benchmark=train,
            model=self._model,
            store=self._store(),
            tools=pure_tools(train) if wanted.coevolution.composites else (),
            feedback_model=feedback,
            teacher=resolve_model(wanted.teacher) if wanted.teacher else None,
            held_out=self._parts.validation,
        )
        return Coevolution(
            model=self._model,
            keeper=keeper,
            settings=wanted.coevolution,
            benchmark=train,
            reward=reward_named(wanted.reward, train),
            asking=self._asking,
            weighting=wanted.weighting.make(),
            interface=wanted.interface,
            ranks=self._ranks,
            listen=self._told,
        )

    def _store(self) -> Store:
        """The library to begin with; empty where a checkpoint will bring its own."""
        goes_on = newest_checkpoint(self._run.checkpoints) is not None
        if goes_on or not self._config.library:
            return open_store("memory:")
        return restored_store(self._config.library)

    def _engine(self) -> Engine:
        if self._config.frozen:
            return FrozenEngine(share=Share(rank=self._ranks.rank, world=self._ranks.world))
        seed = self._config.coevolution.seed
        return self._config.engine.make(self._policy, seed=seed, writer=self._writer)

    def _told(self, record: CoevolutionStep) -> None:
        self._log(record.to_record(phase=self._phase, is_frozen=self._config.frozen))
        if self._is_looked_at(record.step):
            self._measure(record.step + 1, self._parts.validation, "validation")

    def _stays(self, record: StepRecord) -> bool:
        """Whether a record is of what need not be done again."""
        newest = newest_checkpoint(self._run.checkpoints)
        taken = 0 if newest is None else step_of(newest)
        match record.phase:
            case "coevolve" | "grpo":
                return record.step < taken
            case "validation":
                is_last = record.step == self.source.steps
                return record.step <= taken and (not is_last or self._is_looked_at(record.step - 1))
            case "test":
                return record.step == 0
            case "cold start":
                return self._warm.is_done
            case _:
                return True

    def _is_looked_at(self, step: int) -> bool:
        every = self._config.watch.evaluate_every
        return bool(every) and (step + 1) % every == 0

    def _measure(self, step: int, tasks: Benchmark, phase: str) -> None:
        if tasks.tasks:
            library = self.source.library
            self._log(
                measured(
                    self._model,
                    with_composites(tasks, library),
                    step=step,
                    phase=phase,
                    library=library,
                    settings=self._asking,
                    ranks=self._ranks,
                )
            )
