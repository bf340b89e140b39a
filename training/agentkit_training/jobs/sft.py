"""``sft_job``: fine-tuning from a configuration to a folder with a hand-over."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from agentkit._waiting import wait_for
from agentkit.library import Library
from agentkit_training.config.jobs import SftConfig
from agentkit_training.distributed.ranks import ALONE, Ranks, check_weights, led
from agentkit_training.export.handover import library_of
from agentkit_training.fine_tuning.examples import Examples
from agentkit_training.fine_tuning.teaching import left_out_notes, taught_examples
from agentkit_training.fine_tuning.training import SftStep, sft, steps_taken
from agentkit_training.jobs.running import (
    Started,
    check_fine_tuning,
    ended,
    measured,
    started,
    tell_of_tasks,
)
from agentkit_training.runs import Listener, RunDirectory, StepRecord, ignore
from agentkit_training.toolace.records import (
    ToolAceSettings,
    kept_rounds,
    tuning_of,
)
from agentkit_training.toolace.rounds import Progress, iterate


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

    Several processes read each batch together.

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
    check_fine_tuning(config, processes=ranks.world)
    at = started(config, folder, ranks, seed=config.seed, command=command, resumes=resumes)
    with at.log(config, listen) as log:
        _Sft(config=config, at=at, log=log, library=library_of(config.library)).all()
    check_weights(at.policy, ranks)
    led(ranks, lambda _: ended(at.run, policy=at.policy, base=config.policy.weights, store=None))
    return at.run


@dataclass(kw_only=True)
class _Sft:
    """One run of fine-tuning."""

    config: SftConfig
    at: Started
    log: Listener
    library: Library | None
    steps: int = field(init=False, default=0)  # that whole rounds took

    def all(self) -> None:
        """Measure, train, measure; what is done stays done.

        What can not be taught is told before anything is measured.
        """
        examples = self._taught() if self.config.toolace is None else Examples()
        taken = self._taken()
        known = {one.phase for one in self.at.kept(lambda one: _stays(one, taken))}
        tell_of_tasks(self.at, self.config, self.log)
        if not known and (notes := tuple(left_out_notes(examples.left_out))):
            self.log(StepRecord(step=0, phase="sft", notes=notes))
        self._measure(0, without=known)
        if steps := self._tuned(examples) if self.config.toolace is None else self._iterated():
            self._measure(steps)

    def _taken(self) -> int:
        """Steps that a run goes on after; keeps in mind those of its whole rounds."""
        checkpoints = self.at.run.checkpoints
        if self.config.toolace is None:
            return steps_taken(checkpoints)
        whole = kept_rounds(checkpoints)
        self.steps = sum(one.steps for one in whole)
        return self.steps + steps_taken(tuning_of(checkpoints, len(whole) + 1))

    def _taught(self) -> Examples:
        """What is learned from."""
        return wait_for(
            taught_examples(
                self.at.policy,
                self.at.parts.train,
                self.config.tasks,
                no_call=self.config.no_call,
                prompting=self.config.policy.prompting(),
                library=self.library,
                settings=self.config.asked,
                max_tokens=self.config.sft.max_tokens,
            )
        )

    def _tuned(self, examples: Examples) -> int:
        """One pass after the other over all examples; how many steps that took."""
        report = sft(
            self.at.policy,
            examples.rows,
            self.config.sft,
            folder=self.at.run.checkpoints,
            listen=lambda step: self.log(_record(step)),
            ranks=self.at.ranks,
        )
        return report.steps[-1].step + 1 if report.steps else report.resumed_at

    def _iterated(self) -> int:
        """ToolACE-R's rounds; how many steps they took."""
        wanted, config = self.config.toolace, self.config
        assert wanted is not None  # asked for
        settings = ToolAceSettings(
            **vars(wanted),
            no_call=config.no_call,
            prompting=config.policy.prompting(),
            answer_tokens=config.policy.answer_tokens,
            batch_size=config.policy.batch_size,
            evaluation=config.asked,
            sft=config.sft,
            seed=config.seed,
        )
        report = wait_for(
            iterate(
                self.at.policy,
                self.at.parts.train,
                self.at.parts.validation,
                settings,
                library=self.library,
                folder=self.at.run.checkpoints,
                listen=self._told,
            )
        )
        self._noted(report.ending(wanted.least_gain))
        return self.steps

    def _told(self, progress: Progress) -> None:
        if progress.step is not None:
            self.log(_record(progress.step, after=self.steps))
        elif progress.record is not None:
            self.steps += progress.record.steps
            self._noted(progress.record.in_words())
        else:
            self._noted(f"round {progress.round}: {progress.phase}")

    def _noted(self, note: str) -> None:
        """Tell what a round does, once: a run that goes on does parts of a round again."""
        if all(note not in one.notes for one in self.at.run.records()):
            self.log(StepRecord(step=self.steps, phase="toolace", notes=(note,)))

    def _measure(self, step: int, *, without: Collection[str] = ()) -> None:
        model = self.config.policy.model(self.at.policy)
        for phase in ("validation", "test"):
            part = dict(self.at.parts)[phase]
            if part.tasks and phase not in without:
                record = measured(
                    model,
                    part,
                    step=step,
                    phase=phase,
                    library=self.library,
                    settings=self.config.asked,
                    ranks=self.at.ranks,
                )
                self.log(record)


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
        "read_tokens": float(step.read_tokens),
        "update_seconds": step.update_seconds,
    }
    return StepRecord(
        step=after + step.step, phase="sft", figures=figures, steps=after + step.steps
    )
