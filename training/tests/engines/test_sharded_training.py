"""Weights in shares on two processes learn what whole ones do, and the policy holds it."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from accelerate import Accelerator

from agentkit.errors import MissingExtraError, UsageError
from agentkit_training import tiny_policy
from agentkit_training.engines.base import OptimizerSettings, Share
from agentkit_training.engines.lean import LeanEngine
from agentkit_training.engines.objective import Objective
from agentkit_training.engines.trl.engine import TrlEngine
from agentkit_training.policy.lora import LoraSettings, with_lora
from agentkit_training.policy.reference import reference_policy

HERE = Path(__file__).parent
FAST = OptimizerSettings(learning_rate=3e-3, schedule="linear", weight_decay=0.01)
STEPS = 4
SCENARIOS = (
    "every_weight",
    "adapters",
    "in_parts",
    "unbroken",
    "resumed",
    "called_again",
    "nothing_learned",
    "diverged",
)
COARSE = ("small_steps", "small_steps_resumed", "adapters_over_bf16")


@pytest.fixture(scope="module", params=["fsdp", "zero3"])
def sharding(request):
    """What shards; what is not there is skipped."""
    if request.param == "fsdp" and not hasattr(Accelerator, "is_fsdp2"):
        pytest.skip("accelerate has no FSDP2 before 1.6")
    if request.param == "zero3" and importlib.util.find_spec("deepspeed") is None:
        pytest.skip("DeepSpeed is not installed; `make test-deepspeed` has an environment with it")
    return request.param


@pytest.fixture(scope="module")
def run(tmp_path_factory, sharding):
    """The folder in which two processes left their weights and what they saw."""
    return ran(tmp_path_factory.mktemp(sharding), sharding, SCENARIOS)


@pytest.fixture(scope="module")
def coarse(tmp_path_factory, sharding):
    """The same, of weights in bfloat16."""
    return ran(tmp_path_factory.mktemp(sharding), sharding, COARSE)


def ran(folder, sharding, scenarios):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node=2", str(HERE / "sharded_processes.py")]
    command += [str(HERE / "conftest.py"), str(folder), sharding, *scenarios]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    if importlib.util.find_spec("deepspeed") is None:  # which tells what it finds and compiles
        assert done.stdout == ""
    return folder


@pytest.fixture
def whole(recorded):
    """A source of the rollouts of both processes, for one."""

    class Whole(recorded):
        def rollouts(self, step, share):
            shares = [Share(rank=rank, world=2) for rank in range(2)]
            return [one for each in shares for one in super(Whole, self).rollouts(step, each)]

    return Whole


def told(run, scenario, rank=0):
    return json.loads((run / f"{rank}.json").read_text())[scenario]


def left(run, scenario):
    """The weights that both processes came to, which are the same to the bit."""
    first, second = (torch.load(run / f"{scenario}-{rank}.pt") for rank in range(2))
    assert torch.equal(first, second)
    return first


def weights(policy):
    return torch.cat([one.detach().float().flatten() for one in policy.model.parameters()])


def distance(found, policy):
    """How far apart two ways from the same weights end, by the length of the way."""
    start = weights(tiny_policy())
    return float((found - weights(policy)).norm() / (weights(policy) - start).norm())


def test_sharded_weights_learn_as_one_process_does(run, whole):
    """Four steps on two processes give the weights and losses of the lean engine alone."""
    policy, source = tiny_policy(), whole()
    LeanEngine(
        optimizer=FAST,
        objective=Objective(loss_type="grpo", kl_coefficient=0.05),
        reference=tiny_policy(seed=1),
    ).train(policy, source, steps=STEPS)
    assert distance(left(run, "every_weight"), policy) <= 1e-4
    found = told(run, "every_weight")
    assert found["losses"] == pytest.approx([one.loss for one in source.reports], abs=1e-4)
    assert found["norms"] == pytest.approx([one.gradient_norm for one in source.reports], rel=1e-4)


def test_rollouts_are_written_with_what_was_learned_before(run):
    """The policy that writes is whole, without gradients, and another one at each step."""
    first, second = (told(run, "every_weight", rank)["seen"] for rank in range(2))
    assert first == second
    assert first[0] == float(weights(tiny_policy()).double().sum())
    assert len(set(first)) == STEPS


def test_adapters_learn_over_sharded_weights(run, whole):
    """With LoRA the adapters come to what they come to in one process; the rest stays."""
    policy = with_lora(tiny_policy(), LoraSettings(rank=4, alpha=8))
    objective = Objective(kl_coefficient=0.05)
    LeanEngine(optimizer=FAST, objective=objective, reference=reference_policy(policy)).train(
        policy, whole(), steps=STEPS
    )
    assert torch.allclose(left(run, "adapters"), weights(policy), atol=1e-5, rtol=0)


def test_parts_and_checkpointed_activations_change_no_step(run):
    """Both save memory, and the weights come out the same."""
    assert torch.allclose(left(run, "in_parts"), left(run, "unbroken"), atol=1e-5, rtol=0)


def test_each_process_keeps_half_of_the_state(run):
    """Trained weights and the optimiser's moments lie in shares; few numbers are there twice."""
    total = len(weights(tiny_policy()))
    kept = [told(run, "unbroken", rank) for rank in range(2)]
    for name in ("weights", "moments"):
        assert sum(one[name] for one in kept) == total
        assert max(one[name] for one in kept) <= 0.55 * total


def test_a_restored_run_equals_one_that_was_not_broken_off(run):
    """Saved after two steps and restored, the processes end where four steps end."""
    assert torch.equal(left(run, "resumed"), left(run, "unbroken"))


def test_small_steps_of_bfloat16_weights_count(coarse, whole):
    """Kept in float32, in shares or whole, weights end as a run in float32 does, rounded once."""
    small, beside, exact = OptimizerSettings(learning_rate=2e-5), tiny_policy(), tiny_policy()
    beside.model.to(torch.bfloat16)
    exact.model.to(torch.bfloat16).to(torch.float32)
    for policy in (beside, exact):
        TrlEngine(optimizer=small).train(policy, whole(), steps=STEPS)
    wanted = weights(exact)
    least = float((wanted.to(torch.bfloat16).float() - wanted).norm())
    assert float((left(coarse, "small_steps") - wanted).norm()) < 1.1 * least
    assert float((weights(beside) - wanted).norm()) < 1.1 * least


def test_a_checkpoint_keeps_what_bfloat16_rounds_away(coarse):
    """Restored from bfloat16 weights, a run goes on to the bit as if it was not broken off."""
    assert torch.equal(left(coarse, "small_steps_resumed"), left(coarse, "small_steps"))


def test_whole_weights_on_each_process_keep_small_steps(tmp_path, whole):
    """Without shares (DDP) bfloat16 weights learn as one process's do, broken off or not."""
    found = ran(tmp_path, "none", ("small_steps", "small_steps_resumed"))
    policy = tiny_policy()
    policy.model.to(torch.bfloat16)
    TrlEngine(optimizer=OptimizerSettings(learning_rate=2e-5)).train(policy, whole(), steps=STEPS)
    assert distance(left(found, "small_steps"), policy) <= 0.1
    assert torch.equal(left(found, "small_steps_resumed"), left(found, "small_steps"))


def test_adapters_learn_over_bfloat16_weights(coarse, whole):
    """Adapters in float32 come near to what they come to in one process."""
    policy = tiny_policy()
    policy.model.to(torch.bfloat16)
    policy = with_lora(policy, LoraSettings(rank=4, alpha=8))
    start = weights(policy)
    TrlEngine(optimizer=FAST).train(policy, whole(), steps=STEPS)
    moved = weights(policy) - start
    assert (
        float((left(coarse, "adapters_over_bf16") - weights(policy)).norm() / moved.norm()) <= 0.1
    )


def test_one_process_goes_on_from_what_several_saved(run, whole):
    """A checkpoint knows nothing of shares: whole weights go on from it, in one process."""
    policy = tiny_policy()
    saved, place = torch.load(run / "half" / "weights.pt"), 0
    with torch.no_grad():
        for one in policy.model.parameters():
            one.copy_(saved[place : place + one.numel()].view_as(one))
            place += one.numel()
    engine = TrlEngine(optimizer=FAST)
    engine.restore(run / "half")
    engine.train(policy, whole(), steps=STEPS)
    assert distance(left(run, "unbroken"), policy) <= 1e-4


def test_masters_in_shares_are_those_of_one_process(coarse, whole):
    """A checkpoint of bfloat16 weights in shares is gone on from in one process, small steps too."""
    policy = tiny_policy()
    policy.model.to(torch.bfloat16)
    saved, place = torch.load(coarse / "small" / "weights.pt"), 0
    with torch.no_grad():
        for one in policy.model.parameters():
            one.copy_(saved[place : place + one.numel()].view_as(one))
            place += one.numel()
    engine = TrlEngine(optimizer=OptimizerSettings(learning_rate=2e-5))
    engine.restore(coarse / "small")
    engine.train(policy, whole(), steps=STEPS)
    assert distance(left(coarse, "small_steps"), policy) <= 0.1


def test_training_called_again_goes_on(run, whole):
    """Two calls of two steps take the steps of one process that is called twice."""
    policy, source = tiny_policy(), whole()
    engine = TrlEngine(optimizer=OptimizerSettings(learning_rate=3e-3, weight_decay=0.01))
    engine.train(policy, source, steps=2)
    engine.train(policy, source, steps=STEPS)
    assert distance(left(run, "called_again"), policy) <= 1e-4


def test_equal_rewards_change_nothing(run):
    """Neither momentum nor decay moves a weight on any process when nothing is learned."""
    assert [told(run, "nothing_learned", rank)["moved"] for rank in range(2)] == [0.0, 0.0]


def test_all_processes_stop_when_one_diverges(run):
    """A gradient of one process that is no number stops both, and the policy is as it was."""
    for rank in range(2):
        gradient, weight = told(run, "diverged", rank)["told"]
        assert "at step 0 the norm of the gradient is nan" in gradient
        assert "after step 0 a weight is no finite number" in weight
    assert torch.equal(left(run, "diverged"), weights(tiny_policy()))


def test_deepspeed_that_is_absent_is_named(recorded, monkeypatch):
    """Without DeepSpeed the error says what to install."""
    if importlib.util.find_spec("deepspeed") is not None:
        pytest.skip("DeepSpeed is installed here")
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 2)
    with pytest.raises(MissingExtraError, match="agentkit-training\\[deepspeed\\]"):
        TrlEngine(sharding="zero3").train(tiny_policy(), recorded(), steps=1)


def test_an_unknown_kind_is_refused():
    """The message names those that there are."""
    with pytest.raises(UsageError, match="none, fsdp, zero3"):
        TrlEngine(sharding="zero2")


def test_one_process_has_nobody_to_share_with(recorded):
    """Sharding in one process is misuse, and the message says how several are started."""
    with pytest.raises(UsageError, match="torchrun"):
        TrlEngine(sharding="fsdp").train(tiny_policy(), recorded(), steps=1)
