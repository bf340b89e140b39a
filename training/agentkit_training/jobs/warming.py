"""``WarmStart``: a policy fine-tuned on gold answers before it learns from rewards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agentkit._waiting import wait_for
from agentkit.evaluation import Benchmark, EvaluationSettings
from agentkit.library import Library
from agentkit_training.atomic import new_folder
from agentkit_training.coevolution.offering import with_composites
from agentkit_training.config.jobs import CoevolveConfig
from agentkit_training.distributed.leading import Beat, led
from agentkit_training.distributed.ranks import Ranks
from agentkit_training.fine_tuning.settings import SftStep
from agentkit_training.fine_tuning.teaching import left_out_notes, taught_examples
from agentkit_training.fine_tuning.training import sft
from agentkit_training.policy.policy import Policy
from agentkit_training.policy.saving import restore_weights, save_weights
from agentkit_training.runs.records import Listener, StepRecord

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
