"""TRL's trainer with its override, and the callback that tells the source."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from agentkit_training.engines.trl.batch import columns
from agentkit_training.engines.trl.feed import Feed

if TYPE_CHECKING:
    import torch
    from trl import GRPOConfig


def rollout_trainer(
    feed: Feed,
    config: GRPOConfig,
    *,
    optimizer: torch.optim.Optimizer,
    schedule: torch.optim.lr_scheduler.LambdaLR,
) -> Any:
    """A ``GRPOTrainer`` that trains on what ``feed`` gives it.

    Args:
        feed: Gives the rows of each step.
        config: What TRL is told.
        optimizer: Of the policy's trainable parameters.
        schedule: Of its learning rate.
    """
    from datasets import Dataset
    from transformers import PrinterCallback
    from trl import GRPOTrainer

    class RolloutTrainer(GRPOTrainer):  # type: ignore[misc]  # no stubs
        """Reads as many rows as the source gives, with the advantages that they have there."""

        def _generate_and_score_completions(self, inputs: Any) -> Any:
            """TRL's own, on the rows of the feed, whose advantages bear their weights."""
            batch = feed.ask(self)
            self.beta = 0.0  # or TRL would read a reference of its own
            self._last_loaded_step = self.state.global_step  # the writer has them already
            output = super()._generate_and_score_completions(
                [{"prompt": ""} for _ in range(batch.size)]
            )
            self.beta = feed.complete(output)
            return output

        def create_optimizer(self, *_: Any) -> Any:
            """The one that was given, which can not be an argument where weights are sharded."""
            self.optimizer = optimizer
            return optimizer

        def create_scheduler(self, *_: Any, **__: Any) -> Any:
            """The one that was given."""
            self.lr_scheduler = schedule
            return schedule

    def rollout(*_: Any) -> dict[str, list[Any]]:
        """The rows of the feed; the prompts of the dataset say nothing."""
        return asdict(columns(feed.batch, pad_id=feed.policy.pad_id))

    def reward_of_rollout(reward: list[float], **_: Any) -> list[float]:
        return reward

    rows = config.max_steps * config.generation_batch_size // config.num_generations
    trainer = RolloutTrainer(
        model=feed.learner.module,
        reward_funcs=[reward_of_rollout],
        args=config,
        train_dataset=Dataset.from_dict({"prompt": [""] * rows}),  # says how many steps
        processing_class=feed.policy.tokenizer,
        rollout_func=rollout,
    )
    trainer.add_callback(_telling(feed, trainer))
    trainer.remove_callback(PrinterCallback)  # standard output is the caller's
    return trainer


def _telling(feed: Feed, trainer: Any) -> Any:
    """The callback that looks at each gradient and reports each step."""
    from transformers import TrainerCallback

    class Telling(TrainerCallback):  # type: ignore[misc]  # no stubs
        """Hands on what TRL tells of its steps."""

        def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            feed.began(trainer)

        def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            feed.before_update(state.global_step)

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            feed.after_update(state.global_step)

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            if "loss" in logs:  # the last message, of the whole run, has none
                feed.logged(state.global_step, logs)

    return Telling()
