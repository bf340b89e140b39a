"""``TrlEngine``: the same steps as the lean engine's, taken by TRL's ``GRPOTrainer``."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from agentkit.errors import UsageError
from agentkit_training.engines.adam import AdamEngine
from agentkit_training.engines.base import Source, rate_factor
from agentkit_training.engines.trl.feed import GROUP, Feed, columns
from agentkit_training.engines.trl.vllm import VllmWriter
from agentkit_training.policy.policy import Policy
from agentkit_training.policy.reference import recomputing_option

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
            """The one that was given."""
            self.optimizer = optimizer
            return optimizer

        def create_scheduler(self, *_: Any, **__: Any) -> Any:
            """The one that was given."""
            self.lr_scheduler = schedule
            return schedule

    def rollout(*_: Any) -> dict[str, list[Any]]:
        """The rows of the feed; the prompts of the dataset say nothing."""
        return columns(feed.batch, pad_id=feed.policy.pad_id)

    def reward_of_rollout(reward: list[float], **_: Any) -> list[float]:
        return reward

    rows = config.max_steps * config.generation_batch_size // config.num_generations
    trainer = RolloutTrainer(
        model=feed.policy.model,
        reward_funcs=[reward_of_rollout],
        args=config,
        train_dataset=Dataset.from_dict({"prompt": [""] * rows}),  # says how many steps
        processing_class=feed.policy.tokenizer,
        rollout_func=rollout,
    )
    trainer.add_callback(_telling(feed))
    trainer.remove_callback(PrinterCallback)  # standard output is the caller's
    return trainer


def _telling(feed: Feed) -> Any:
    """The callback that looks at each gradient and reports each step."""
    from transformers import TrainerCallback

    class Telling(TrainerCallback):  # type: ignore[misc]  # no stubs
        """Hands on what TRL tells of its steps."""

        def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            feed.follow()

        def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            feed.before_update(state.global_step)

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            feed.after_update(state.global_step)

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            if "loss" in logs:  # the last message, of the whole run, has none
                feed.logged(state.global_step, logs)

    return Telling()


_STATE = "trl.pt"


@dataclass(kw_only=True)
class TrlEngine(AdamEngine):
    """Trains with TRL, in one process or, under ``torchrun``, in several.

    What is trained equals the lean engine step by step: a test compares them. TRL pads where the
    lean engine packs, and reads rollouts that have no advantage, so that it is slower; it brings
    data parallelism. Several processes agree with one. ``AdamEngine`` has the other attributes;
    ``max_tokens`` bounds what the reference reads at once.

    Attributes:
        parts: In how many parts a batch is read, one after another, to save memory.
        writer: Writes rollouts in the policy's place, and takes over weights when they change;
            the policy's model must be given the same one. None for the policy itself.
    """

    FILE = "trl.pt"

    parts: int = 1
    writer: VllmWriter | None = None

    def __post_init__(self) -> None:
        if self.parts < 1:
            raise UsageError(f"parts is {self.parts}; a batch is read in at least 1")

    def train(self, policy: Policy, source: Source, *, steps: int) -> None:
        """Take steps until ``steps`` have been taken; see ``Engine.train``.

        Raises:
            CheckpointError: A restored state is damaged, or of another model.
            DivergedError: The gradient is no number, and the weights are as before; or a weight is
                none after the step.
        """
        adam = self._optimiser_of(policy)
        if self.step >= steps:
            return
        feed = Feed(engine=self, policy=policy, source=source)
        with tempfile.TemporaryDirectory() as folder, untouched(policy), _quiet():
            config = self._config(steps=steps - self.step, device=policy.device, folder=folder)
            try:
                schedule = self._schedule(adam, steps)
                trainer = rollout_trainer(feed, config, optimizer=adam, schedule=schedule)
                with self.writer.beside(trainer) if self.writer else nullcontext():
                    trainer.train()
            finally:
                feed.put_back()

    def _config(self, *, steps: int, device: torch.device, folder: str) -> GRPOConfig:
        """The configuration of TRL's trainer for ``steps`` steps, and a passing folder.

        The optimiser and its schedule are handed over as objects, so that they are those of the
        lean engine: transformers' own would spare biases and norms the weight decay. Numbers stay
        in the precision of the weights. The divergence is left out here (``beta``): TRL would load
        a reference of its own by the model's name. It takes the mean over all tokens (``dapo``)
        whatever the objective says: the feed gives each token the share that it has there.
        """
        from trl import GRPOConfig

        return GRPOConfig(
            output_dir=folder,
            use_cpu=device.type == "cpu",
            bf16=False,
            max_steps=steps,
            per_device_train_batch_size=GROUP,
            num_generations=GROUP,
            gradient_accumulation_steps=self.parts,
            steps_per_generation=self.parts,
            learning_rate=self.optimizer.learning_rate,
            max_grad_norm=self.optimizer.max_gradient_norm,
            loss_type="dapo",
            epsilon=self.objective.clip_low,
            epsilon_high=self.objective.clip_high,
            max_completion_length=self.objective.max_completion_tokens,
            beta=0.0,
            use_bias_correction_kl=False,
            temperature=self.objective.temperature,
            **{recomputing_option(): self.gradient_checkpointing},
            **self._correction(),
            shuffle_dataset=False,
            remove_unused_columns=False,
            logging_steps=1,
            logging_nan_inf_filter=False,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
        )

    def _correction(self) -> dict[str, Any]:
        """What tokens are weighed with; where the ratio is that to vLLM already, they are not."""
        from trl import GRPOConfig

        vllm = self.writer.settings if self.writer else None
        if vllm is None or vllm.correction == "none" or self.objective.old_logprobs == "sampled":
            return {"vllm_importance_sampling_correction": False}
        newer = "vllm_importance_sampling_clip_max"
        has_newer = any(one.name == newer for one in fields(GRPOConfig))
        return {
            "vllm_importance_sampling_correction": True,
            "vllm_importance_sampling_mode": vllm.correction,
            newer if has_newer else "vllm_importance_sampling_cap": vllm.cap,
        }

    def _schedule(
        self, adam: torch.optim.Optimizer, steps: int
    ) -> torch.optim.lr_scheduler.LambdaLR:
        import torch

        first = self.step
        for group in adam.param_groups:  # of a restored state: that of its last step
            group["lr"] = self.optimizer.learning_rate
            group.pop("initial_lr", None)
        return torch.optim.lr_scheduler.LambdaLR(
            adam, lambda taken: rate_factor(self.optimizer, step=first + taken, steps=steps)
        )


@contextmanager
def _quiet() -> Iterator[None]:
    """Leave out what TRL and transformers warn of that nobody here can change."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*experimental feature", category=UserWarning)
        warnings.filterwarnings("ignore", category=FutureWarning, module=r"trl\.|transformers\.")
        yield


_PATCHED = ("forward", "model_tags", "_is_accelerate_prepared")
"""Attributes of the model itself: its own forward, labels for model cards."""


@contextmanager
def untouched(policy: Policy) -> Iterator[None]:
    """Leave the model as it was but for its weights, whatever happens inside.

    A model that went through TRL unguarded is saved without a cache for generation
    (``use_cache``), with other end tokens, and with a forward of TRL's.
    """
    model: Any = policy.model
    inner = model.get_base_model() if hasattr(model, "get_base_model") else model
    kept = [_Kept(one, _PATCHED) for one in {id(one): one for one in (model, inner)}.values()]
    settings = {id(one): one for one in _settings(model)}
    kept += [_Kept(one, tuple(vars(one))) for one in settings.values()]
    had_checkpoints = _is_checkpointing(inner)
    try:
        yield
    finally:
        for one in kept:
            one.put_back()
        if _is_checkpointing(inner) and not had_checkpoints:
            inner.gradient_checkpointing_disable()
        model.zero_grad(set_to_none=True)
        model.eval()


class _Kept:
    """Some attributes of an object, as they were; those that were not there are taken off."""

    def __init__(self, owner: Any, names: tuple[str, ...]) -> None:
        self._owner = owner
        self._names = names
        self._values = {name: vars(owner)[name] for name in names if name in vars(owner)}

    def put_back(self) -> None:
        """Write them on the object again."""
        for name in self._names:
            vars(self._owner).pop(name, None)
        vars(self._owner).update(self._values)


def _settings(model: Any) -> Iterator[Any]:
    yield model.config
    yield model.config.get_text_config()
    if getattr(model, "generation_config", None) is not None:
        yield model.generation_config


def _is_checkpointing(model: Any) -> bool:
    return any(getattr(one, "gradient_checkpointing", False) for one in model.modules())
