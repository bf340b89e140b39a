"""Reading many rows: the last layer is there once, however many rows there are."""

from __future__ import annotations

import torch

from agentkit_training import tiny_policy
from agentkit_training.fine_tuning.examples import Example
from agentkit_training.fine_tuning.training import block, block_loss
from agentkit_training.generation.reading import read_prompts
from agentkit_training.policy.lora import with_lora


def largest_copy(work) -> int:
    """The most numbers that one copy moved."""
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True
    ) as seen:
        work()
    shapes = [one.input_shapes[0] for one in seen.events() if one.name == "aten::copy_"]
    return max(torch.Size(shape).numel() for shape in shapes)


def coarse_policy():
    """A policy in bfloat16, which is what PyTorch copies weights for."""
    policy = tiny_policy()
    policy.model.to(torch.bfloat16)
    return policy


def last_layer(policy) -> int:
    """How many numbers it has."""
    return policy.model.get_output_embeddings().weight.numel()


def test_prompts_are_read_without_copies_of_the_last_layer():
    """Reading prompts of different lengths copies nothing as large as the last layer."""
    policy = with_lora(coarse_policy())
    prompts = [tuple(range(3, 3 + length)) for length in (5, 6, 7, 8)]
    with torch.inference_mode():
        assert largest_copy(lambda: read_prompts(policy, prompts)) < last_layer(policy)


def test_frozen_weights_are_not_copied_to_learn_adapters():
    """A step of adapters copies nothing as large as the last layer, forward or backward."""
    policy = with_lora(coarse_policy())
    examples = [
        Example(task_id=str(length), prompt=(5,) * length, completion=(7, 2)) for length in (3, 4)
    ]
    one = block(examples, pad=policy.pad_id)
    assert largest_copy(lambda: block_loss(policy, one).backward()) < last_layer(policy)
