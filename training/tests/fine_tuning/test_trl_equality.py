"""Fine-tuning takes the steps that TRL's SFTTrainer takes on the same examples."""

import math
from dataclasses import replace
from functools import partial

import pytest
import torch
from datasets import Dataset
from trl import SFTConfig, SFTTrainer

from agentkit_training import tiny_policy
from agentkit_training.engines.adam import adam_for
from agentkit_training.engines.base import OptimizerSettings
from agentkit_training.fine_tuning.examples import Example
from agentkit_training.fine_tuning.training import SftSettings, sft

EXAMPLES = [
    Example(
        task_id=str(number),
        prompt=tuple(range(10, 20 + 3 * number)),
        completion=tuple(range(100 + number, 103 + 2 * number)),
    )
    for number in range(4)
]
SETTINGS = SftSettings(
    optimizer=OptimizerSettings(learning_rate=1e-3, schedule="cosine", warmup_ratio=0.2),
    batch_size=4,
    epochs=4,
)


def sft_with_trl(policy, examples, settings, folder):
    """What TRL's trainer logs of its steps on the same examples, in one batch each."""
    rows = [
        {
            "input_ids": [*one.prompt, *one.completion],
            "completion_mask": [0] * len(one.prompt) + [1] * len(one.completion),
        }
        for one in examples
    ]
    optimizer = settings.optimizer
    config = SFTConfig(
        output_dir=str(folder),
        use_cpu=True,
        bf16=False,
        per_device_train_batch_size=settings.batch_size,
        num_train_epochs=settings.epochs,
        learning_rate=optimizer.learning_rate,
        lr_scheduler_type=optimizer.schedule,
        warmup_steps=math.ceil(optimizer.warmup_ratio * settings.epochs),
        max_grad_norm=optimizer.max_gradient_norm,
        completion_only_loss=True,
        gradient_checkpointing=False,
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
    )
    trainer = SFTTrainer(
        model=policy.model,
        args=config,
        train_dataset=Dataset.from_list(rows),
        processing_class=policy.tokenizer,
        optimizers=(adam_for(policy, optimizer), None),
    )
    trainer.train()
    return [one for one in trainer.state.log_history if "loss" in one]


def weights(policy):
    return torch.cat([one.detach().flatten() for one in policy.model.parameters()])


def test_both_take_the_same_steps(tmp_path):
    """Losses, gradient norms, rates and the weights of all steps agree, in parts as well."""
    ours, theirs = tiny_policy(), tiny_policy()
    wanted = sft(ours, EXAMPLES, SETTINGS).steps
    found = sft_with_trl(theirs, EXAMPLES, SETTINGS, tmp_path)
    names = {"loss": "loss", "gradient_norm": "grad_norm", "learning_rate": "learning_rate"}
    for name, logged in names.items():
        assert [float(one[logged]) for one in found] == pytest.approx(
            [getattr(one, name) for one in wanted], rel=1e-4, abs=1e-6
        )
    assert torch.allclose(weights(ours), weights(theirs), atol=2e-5)


def coarse():
    """A policy in bfloat16."""
    policy = tiny_policy()
    policy.model.to(torch.bfloat16)
    return policy


def test_small_steps_move_coarse_weights_alike(tmp_path):
    """With a rate at which bfloat16 rounds most steps away, float32 masters take them in both."""
    settings = replace(SETTINGS, optimizer=OptimizerSettings(learning_rate=1e-5), epochs=8)
    begin = weights(coarse())
    trl = partial(sft_with_trl, folder=tmp_path)
    ours, theirs = (trained(train, settings) for train in (sft, trl))
    moved = [float((one != begin).float().mean()) for one in (ours, theirs)]
    assert moved[0] > 0.1
    assert moved[1] == pytest.approx(moved[0], rel=0.1)
    assert (ours == theirs).float().mean() > 0.9


def trained(train, settings):
    """The weights of a coarse policy after its steps."""
    policy = coarse()
    train(policy, EXAMPLES, settings)
    return weights(policy)
