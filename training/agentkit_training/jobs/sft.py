"""``sft_job``: fine-tuning from a configuration to a folder with a hand-over."""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path

from agentkit._waiting import wait_for
from agentkit.evaluation import EvaluationSettings
from agentkit.library import Library
from agentkit_training.config.jobs import SftConfig
from agentkit_training.distributed.ranks import ALONE, Beat, Ranks, check_weights, led
from agentkit_training.fine_tuning.checkpoint import steps_taken
from agentkit_training.fine_tuning.examples import Examples, Prompting
from agentkit_training.fine_tuning.settings import SftStep
from agentkit_training.fine_tuning.teaching import left_out_notes, taught_examples
from agentkit_training.fine_tuning.training import sft
from agentkit_training.fine_tuning.trl import sft_with_trl
from agentkit_training.jobs.beginning import run_log
from agentkit_training.jobs.ending import ended, library_of
from agentkit_training.jobs.export import measured
from agentkit_training.jobs.joining import check_fine_tuning, started, tell_of_tasks
from agentkit_training.policy.policy import Policy
from agentkit_training.runs.directory import RunDirectory
from agentkit_training.runs.records import Listener, StepRecord, ignore
from agentkit_training.tasks.splits import TaskSplits
from agentkit_training.toolace.iterations import iterate
from agentkit_training.toolace.keeping import KeptRounds, tuning_of
from agentkit_training.toolace.rounds import Progress
from agentkit_training.toolace.settings import ToolAceSettings


def sft_job(
    config: SftConfig,
    folder: Path,
    *,
    command: str = "",
    resumes: bool = False,
    listen: Listener = ignore,
    ranks: Ranks = ALONE,
) -> RunDirectory:
    """Fine-tune, measure before and after, hand over.

    Several processes read each batch together, with TRL's trainer; they keep no checkpoints.

    Args:
        config: What to do.
        folder: Where the run is kept.
        command: What was typed, for the record.
        resumes: Whether a run that is there is gone on with.
        listen: Told of each record of the log, at rank 0.
        ranks: The processes that train together; each calls this with the same arguments.

    Raises:
        UsageError: The configuration can not be used.
        TrainingError: The run can not go on.
    """
    check_fine_tuning(config, processes=ranks.world, resumes=resumes)
    at = started(config, folder, ranks, seed=config.seed, command=command, resumes=resumes)
    run, policy = at.run, at.policy
    with run_log(run, ranks, trackers=config.watch.trackers, listen=listen) as log:
        _Sft(config=config, run=run, parts=at.parts, policy=policy, log=log, ranks=ranks).all()
    check_weights(policy, ranks)
    led(ranks, lambda _: ended(run, policy=policy, base=config.policy.weights, store=None))
    return run


class _Sft:
    """One run of fine-tuning."""

    def __init__(
        self,
        *,
        config: SftConfig,
        run: RunDirectory,
        parts: TaskSplits,
        policy: Policy,
        log: Listener,
        ranks: Ranks,
    ) -> None:
        self._config = config
        self._run = run
        self._parts = parts
        self._policy = policy
        self._log = log
        self._ranks = ranks
        self._library: Library | None = library_of(config.library)
        self._asking: EvaluationSettings = config.asked
        self._steps = 0  # that the whole rounds took

    def all(self) -> None:
        """Measure, train, measure; what is done stays done.

        What can not be taught is told before anything is measured.
        """
        is_plain = self._config.toolace is None
        examples = self._taught() if is_plain else Examples()
        known = self._known(is_plain=is_plain)
        if self._ranks.rank == 0:
            tell_of_tasks(self._parts, self._config, self._run, self._log)
        if not known:
            self._told_left_out(examples)
        self._measure(0, without=known)
        if steps := self._tuned(examples) if is_plain else self._iterated():
            self._measure(steps)

    def _known(self, *, is_plain: bool) -> frozenset[str]:
        """What stays of the log of a run that goes on, by phase."""

        def look(_: Beat) -> list[str]:
            taken = self._taken(is_plain=is_plain)
            self._run.rewind(lambda one: _stays(one, taken))
            return sorted({one.phase for one in self._run.records()})

        return frozenset(self._ranks.broadcast(led(self._ranks, look)))

    def _taken(self, *, is_plain: bool) -> int:
        """Steps that a run goes on after; keeps in mind those of its whole rounds."""
        if is_plain:
            return steps_taken(self._run.checkpoints)
        kept = KeptRounds(self._run.checkpoints)
        whole = kept.rounds()
        self._steps = sum(one.steps for one in whole)
        return self._steps + steps_taken(tuning_of(kept.of(len(whole) + 1)))

    def _taught(self) -> Examples:
        """What is learned from."""
        return wait_for(
            taught_examples(
                self._policy,
                self._parts.train,
                self._config.tasks,
                no_call=self._config.no_call,
                prompting=self._prompting,
                library=self._library,
                settings=self._asking,
                max_tokens=self._config.sft.max_tokens,
            )
        )

    def _told_left_out(self, examples: Examples) -> None:
        notes = tuple(left_out_notes(examples.left_out))
        if notes:
            self._log(StepRecord(step=0, phase="sft", notes=notes))

    def _tuned(self, examples: Examples) -> int:
        """One pass after the other over all examples; how many steps that took."""
        if self._ranks.world > 1:
            shared = sft_with_trl(
                self._policy,
                examples.rows,
                self._config.sft,
                listen=lambda step: self._log(_record(step)),
            )
            return len(shared.steps)
        report = sft(
            self._policy,
            examples.rows,
            self._config.sft,
            folder=self._run.checkpoints,
            listen=lambda step: self._log(_record(step)),
        )
        return report.steps[-1].step + 1 if report.steps else report.resumed_at

    def _iterated(self) -> int:
        """ToolACE-R's rounds; how many steps they took."""
        wanted = self._config.toolace
        assert wanted is not None  # asked for
        report = wait_for(
            iterate(
                self._policy,
                self._parts.train,
                self._parts.validation,
                ToolAceSettings(
                    rounds=wanted.rounds,
                    least_gain=wanted.least_gain,
                    attempts=wanted.attempts,
                    temperature=wanted.temperature,
                    selection=wanted.selection,
                    refines=wanted.refines,
                    first_answer=wanted.first_answer,
                    no_call=self._config.no_call,
                    prompting=self._prompting,
                    answer_tokens=self._config.policy.answer_tokens,
                    batch_size=self._config.policy.batch_size,
                    evaluation=self._asking,
                    sft=self._config.sft,
                    seed=self._config.seed,
                ),
                library=self._library,
                folder=self._run.checkpoints,
                listen=self._told,
            )
        )
        self._noted(report.ending(wanted.least_gain))
        return self._steps

    def _told(self, progress: Progress) -> None:
        if progress.step is not None:
            self._log(_record(progress.step, after=self._steps))
        elif progress.record is not None:
            self._steps += progress.record.steps
            self._noted(progress.record.in_words())
        else:
            self._noted(f"round {progress.round}: {progress.phase}")

    def _noted(self, note: str) -> None:
        """Tell what a round does, once: a run that goes on does parts of a round again."""
        if all(note not in one.notes for one in self._run.records()):
            self._log(StepRecord(step=self._steps, phase="toolace", notes=(note,)))

    def _measure(self, step: int, *, without: Container[str] = ()) -> None:
        model = self._config.policy.model(self._policy)
        for phase, part in (("validation", self._parts.validation), ("test", self._parts.test)):
            if part.tasks and phase not in without:
                record = measured(
                    model,
                    part,
                    step=step,
                    phase=phase,
                    library=self._library,
                    settings=self._asking,
                    ranks=self._ranks,
                )
                self._log(record)

    @property
    def _prompting(self) -> Prompting:
        return self._config.policy.prompting()


def _stays(record: StepRecord, taken: int) -> bool:
    """Whether a record is of what need not be told again, after ``taken`` steps of fine-tuning."""
    if record.phase in {"validation", "test"}:
        return record.step == 0
    return "loss" not in record.figures or record.step < taken


def _record(step: SftStep, *, after: int = 0) -> StepRecord:
    """The line of a step that came after so many others."""
    figures = {
        "loss": step.loss,
        "gradient_norm": step.gradient_norm,
        "learning_rate": step.learning_rate,
    }
    if step.read_tokens:  # TRL does not tell
        figures |= {"read_tokens": float(step.read_tokens), "update_seconds": step.seconds}
    return StepRecord(
        step=after + step.step, phase="sft", figures=figures, steps=after + step.steps
    )
