"""Plans: what a run needs grows and shrinks as its parts do."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from agentkit.errors import UsageError
from agentkit_training import tiny_policy
from agentkit_training.plan.memory import GIB, Setup, Workload, fewer_written, plan_memory, smaller
from agentkit_training.plan.shape import SHAPES, shape_of

PUBLISHED = {  # millions of weights, as their model cards say
    "smollm2-135m": 135,
    "smollm2-1.7b": 1710,
    "qwen2.5-0.5b": 494,
    "qwen2.5-1.5b": 1540,
    "qwen2.5-3b": 3090,
    "qwen2.5-7b": 7610,
    "qwen2.5-14b": 14_770,
    "qwen2.5-32b": 32_760,
    "llama-3.1-8b": 8030,
}


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_shapes_have_the_weights_that_are_published(name):
    """The table's shapes count as many weights as the models have, to one part in a hundred."""
    assert SHAPES[name].parameters / 1e6 == pytest.approx(PUBLISHED[name], rel=0.01)


def test_a_shape_is_read_from_a_configuration():
    """The tiny model's weights are counted from its configuration, norms aside."""
    model = tiny_policy().model
    shape = shape_of(model.config, name="tiny")
    assert shape.parameters == pytest.approx(model.num_parameters(), rel=0.01)


def test_a_configuration_of_another_kind_is_refused():
    """What is not of the Llama kind is named, with what it lacks."""
    with pytest.raises(UsageError, match="num_attention_heads"):
        shape_of(object(), name="odd")


@given(
    devices=st.integers(2, 64),
    rank=st.sampled_from([0, 8, 64]),
    name=st.sampled_from(sorted(SHAPES)),
)
def test_sharing_more_never_takes_more(devices, rank, name):
    """ZeRO-3 takes at most as much as ZeRO-2, which takes at most as much as no sharing."""
    peaks = [
        plan_memory(
            SHAPES[name], Workload(), Setup(devices=devices, sharding=sharding, lora_rank=rank)
        ).update
        for sharding in ("zero3", "zero2", "none")
    ]
    assert peaks == sorted(peaks)


@given(
    rows=st.integers(1, 64),
    prompt=st.integers(1, 4096),
    completion=st.integers(1, 4096),
    packed=st.booleans(),
)
def test_smaller_steps_take_less(rows, prompt, completion, packed):
    """Each step towards a smaller workload takes at most as much, and trains the same tokens."""
    workload = Workload(
        rows_at_once=rows, prompt_tokens=prompt, completion_tokens=completion, packed=packed
    )
    shape = SHAPES["qwen2.5-0.5b"]
    less = smaller(workload)
    before, after = plan_memory(shape, workload, Setup()), plan_memory(shape, less, Setup())
    assert after.update <= before.update
    assert less.written_tokens == workload.written_tokens


@given(
    tasks=st.integers(1, 64),
    devices=st.integers(1, 8),
    most=st.integers(1, 256) | st.none(),
    is_read=st.booleans(),
)
def test_fewer_written_rollouts_take_less(tasks, devices, most, is_read):
    """Writing half as many at once takes at most as much, and the step stays the same."""
    workload = Workload(tasks=tasks, most_written=most, is_read=is_read)
    shape, setup = SHAPES["qwen2.5-0.5b"], Setup(devices=devices)
    less = fewer_written(workload, devices=devices)
    before, after = plan_memory(shape, workload, setup), plan_memory(shape, less, setup)
    assert after.update == before.update
    if workload.written_at_once(devices):
        assert after.generation <= before.generation
        assert less.written_at_once(devices) == max(1, workload.written_at_once(devices) // 2)
    assert (less.written_tokens, less.read_tokens) == (
        workload.written_tokens,
        workload.read_tokens,
    )


def test_packing_reads_each_prompt_once():
    """Of G = 16 rollouts with prompts five times their length, packing reads a quarter or so."""
    padded = Workload(group_size=16, prompt_tokens=1280, completion_tokens=256, packed=False)
    share = replace(padded, packed=True).read_tokens / padded.read_tokens
    assert 0.2 < share < 0.25


def test_adapters_need_no_state_for_the_base():
    """LoRA on a 7B model fits where training every weight does not."""
    shape, workload = SHAPES["qwen2.5-7b"], Workload(rows_at_once=1)
    full = plan_memory(shape, workload, Setup(has_master_weights=True))
    lora = plan_memory(shape, workload, Setup(lora_rank=16))
    assert lora.trained < 0.01 * full.trained
    assert lora.optimizer < 0.01 * full.optimizer
    assert lora.peak < 30 * GIB < full.peak


def test_masters_are_stepped_in_the_place_of_coarse_weights():
    """Beside two bytes in bf16, sixteen: a master, its gradient and two numbers of AdamW's."""
    shape, workload = SHAPES["qwen2.5-0.5b"], Workload()
    found = plan_memory(shape, workload, Setup(has_master_weights=True))
    assert found.weights == 2 * shape.parameters
    assert found.gradients + found.optimizer == 16 * shape.parameters


def test_adapters_are_float32_themselves():
    """They are stepped in twelve bytes over weights of any kind, and have no masters."""
    shape, workload = SHAPES["qwen2.5-0.5b"], Workload()
    for masters in (False, True):
        setup = Setup(lora_rank=8, has_master_weights=masters)
        found = plan_memory(shape, workload, setup)
        assert found.gradients + found.optimizer == 12 * found.trained


@pytest.mark.parametrize("name", ["tasks", "group_size", "rows_at_once"])
def test_nothing_is_no_workload(name):
    """A workload without tasks, rollouts or rows is refused."""
    with pytest.raises(UsageError, match=f"{name} is 0"):
        Workload(**{name: 0})
