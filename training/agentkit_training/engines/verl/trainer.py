"""``AgentkitTrainer``: verl's synchronous trainer, told of library versions and of weights.

Imports verl, and is imported by it alone: ``VERL_USE_EXTERNAL_MODULES`` in the exported
configuration names this module, and verl then finds the trainer by its name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import transfer_queue  # type: ignore[import-not-found]
from omegaconf import DictConfig, OmegaConf  # type: ignore[import-not-found]
from tensordict import TensorDict  # type: ignore[import-not-found]
from verl.trainer.ppo.v1.trainer_base import register_trainer  # type: ignore[import-not-found]
from verl.trainer.ppo.v1.trainer_sync import PPOTrainerSync  # type: ignore[import-not-found]
from verl.utils.tensordict_utils import (  # type: ignore[import-not-found]
    assign_non_tensor_data,
)

from agentkit_training.engines.verl.batch_weights import batch_weights
from agentkit_training.engines.verl.workspace import AGENT_NAME, TRAINER_NAME, opened_workspace
from agentkit_training.errors import TrainingError


@register_trainer(TRAINER_NAME)
class AgentkitTrainer(PPOTrainerSync):  # type: ignore[misc]  # no stubs
    """Decides once a step which library is asked with, and weighs advantages.

    Args:
        config: verl's configuration.
    """

    def __init__(self, config: DictConfig) -> None:
        config.trainer.v1.trainer_mode = "sync"  # verl compares this name to know what it does
        super().__init__(config)
        self._workspace = opened_workspace(settings_file(config))

    def _next_train_batch(self, num_prompts: int | None = None) -> TensorDict:
        """Verl's own, with the version of the library that its rollouts are asked with."""
        batch = super()._next_train_batch(num_prompts)
        assign_non_tensor_data(batch, "library_version", self._workspace.newest_version)
        return batch

    def _compute_advantage(self, batch: Any, metrics: dict[str, Any]) -> Any:
        """Verl's own, each advantage times the weight of its rollout (SEAL, Eq. 12)."""
        batch = super()._compute_advantage(batch, metrics)
        metrics |= weigh(batch, is_normalised=self._workspace.settings.weights == "normalised")
        return batch


def weigh(batch: Any, *, is_normalised: bool) -> Mapping[str, float]:
    """Multiply the advantages of a batch, in verl's queue, with the weights that loops noted.

    A positive factor on the advantage is one on the loss of each of its tokens, clipped or not.

    Args:
        batch: Keys of rows in the queue, with advantages.
        is_normalised: Whether weights are scaled to a mean of 1 over the batch.

    Returns:
        Figures for verl's metrics.
    """
    import torch

    where = {"keys": batch.keys, "partition_id": batch.partition_id}
    data = transfer_queue.kv_batch_get(**where, select_fields=["advantages", "extra_fields"])
    notes = [getattr(one, "data", one) for one in data.get("extra_fields").tolist()]
    weights = batch_weights(
        [
            None if tag.get("is_padding") else note
            for tag, note in zip(batch.tags, notes, strict=True)
        ],
        is_normalised=is_normalised,
    )
    rows = data["advantages"].unbind()
    weighed = [row * weight for row, weight in zip(rows, weights.factors, strict=True)]
    nested = torch.nested.as_nested_tensor(weighed, layout=torch.jagged)
    fields = TensorDict({"advantages": nested}, batch_size=len(weighed))
    transfer_queue.kv_batch_put(**where, fields=fields)
    return weights.figures


def settings_file(config: DictConfig) -> str:
    """The file of ``VerlSettings`` that our loop is configured with.

    Raises:
        TrainingError: The file of agent loops does not have our loop.
    """
    path = config.actor_rollout_ref.rollout.agent.agent_loop_config_path
    loops: Sequence[Any] = OmegaConf.load(path) if path else ()
    for one in loops:
        if one.name == AGENT_NAME:
            return str(one.settings)
    raise TrainingError(
        f"the file of agent loops ({path}) has none that is called {AGENT_NAME}; set "
        "actor_rollout_ref.rollout.agent.agent_loop_config_path to the one that export_verl wrote"
    )
