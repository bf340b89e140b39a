"""What TRL is told, in its own words."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentkit_training.engines.base import OptimizerSettings
from agentkit_training.engines.objective import Objective
from agentkit_training.engines.trl.batch import GROUP
from agentkit_training.engines.trl.vllm import VllmSettings
from agentkit_training.policy.recomputing import recomputing_option

if TYPE_CHECKING:
    from trl import GRPOConfig


def trainer_config(
    *,
    optimizer: OptimizerSettings,
    objective: Objective,
    steps: int,
    parts: int,
    gradient_checkpointing: bool,
    on_cpu: bool,
    folder: Path,
    vllm: VllmSettings | None = None,
    is_bf16: bool = False,
) -> GRPOConfig:
    """The configuration of TRL's trainer for ``steps`` steps.

    The optimiser and its schedule are handed over as objects, so that they are those of the lean
    engine: transformers' own would spare biases and norms the weight decay. Numbers stay in the
    precision of the weights. The divergence is left out here (``beta``): TRL would load a reference
    of its own by the model's name. It takes the mean over all tokens (``dapo``) whatever the
    objective says: the feed gives each token the share that it has there.

    Args:
        optimizer: How hard the gradient is clipped; the rest is for the log.
        objective: What an update makes larger.
        steps: To take now.
        parts: In how many parts a batch is read.
        gradient_checkpointing: Whether activations are computed again in the backward pass.
        on_cpu: Whether the policy is on a CPU, though there may be a GPU.
        folder: Where TRL may write; nothing that is kept.
        vllm: How it is corrected that vLLM writes; None where the policy does.
        is_bf16: Whether DeepSpeed is to compute in bfloat16.
    """
    from trl import GRPOConfig

    return GRPOConfig(
        output_dir=str(folder),
        use_cpu=on_cpu,
        bf16=is_bf16,
        max_steps=steps,
        per_device_train_batch_size=GROUP,
        num_generations=GROUP,
        gradient_accumulation_steps=parts,
        steps_per_generation=parts,
        learning_rate=optimizer.learning_rate,
        max_grad_norm=optimizer.max_gradient_norm,
        loss_type="dapo",
        epsilon=objective.clip_low,
        epsilon_high=objective.clip_high,
        max_completion_length=objective.max_completion_tokens,
        beta=0.0,
        use_bias_correction_kl=False,
        temperature=objective.temperature,
        **{recomputing_option(): gradient_checkpointing},
        **_correction(vllm, objective),
        shuffle_dataset=False,
        remove_unused_columns=False,
        logging_steps=1,
        logging_nan_inf_filter=False,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
    )


def _correction(vllm: VllmSettings | None, objective: Objective) -> dict[str, Any]:
    """What tokens are weighed with; where the ratio is that to vLLM already, they are not."""
    from trl import GRPOConfig

    if vllm is None or vllm.correction == "none" or objective.old_logprobs == "sampled":
        return {"vllm_importance_sampling_correction": False}
    newer = "vllm_importance_sampling_clip_max"
    has_newer = any(one.name == newer for one in fields(GRPOConfig))
    return {
        "vllm_importance_sampling_correction": True,
        "vllm_importance_sampling_mode": vllm.correction,
        newer if has_newer else "vllm_importance_sampling_cap": vllm.cap,
    }
