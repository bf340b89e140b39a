"""The TRL engine keeps to the seam: it goes on from where it was saved, and leaves no trace."""

import dataclasses
import random

import pytest
import torch

from agentkit_training import tiny_policy
from agentkit_training.engines.base import OptimizerSettings
from agentkit_training.engines.lean import LeanEngine
from agentkit_training.engines.objective import Objective
from agentkit_training.engines.trl.engine import TrlEngine
from agentkit_training.errors import CheckpointError, DivergedError

FAST = OptimizerSettings(
    learning_rate=3e-3, schedule="linear", warmup_ratio=0.25, weight_decay=0.01
)


def weights(policy):
    return torch.cat([one.detach().flatten() for one in policy.model.parameters()])


def described(model):
    """All that is saved beside the weights, and what hangs on the model itself."""
    return model.config.to_dict(), model.generation_config.to_dict(), set(vars(model))


def with_dropout():
    """A policy whose adapters forget at random, so that the state of the dice matters."""
    from peft import LoraConfig, get_peft_model

    policy = tiny_policy()
    torch.manual_seed(0)
    config = LoraConfig(r=4, lora_alpha=8, lora_dropout=0.5, target_modules=["q_proj"])
    return dataclasses.replace(policy, model=get_peft_model(policy.model, config))


def in_bf16():
    policy = tiny_policy()
    policy.model.to(torch.bfloat16)
    return policy


@pytest.mark.parametrize("anew", [True, False])
@pytest.mark.parametrize(
    ("engine", "made"),
    [
        (TrlEngine, tiny_policy),
        (TrlEngine, with_dropout),
        (TrlEngine, in_bf16),
        (LeanEngine, tiny_policy),
    ],
)
def test_a_restored_run_equals_one_that_was_not_broken_off(recorded, tmp_path, engine, made, anew):
    """Two steps of four, restored or just gone on with, end in the weights of four steps."""
    whole = made()
    engine(optimizer=FAST).train(whole, recorded(), steps=4)
    torch.manual_seed(123)  # what else is drawn in the process does not matter
    parted, source = made(), recorded()

    class StopError(Exception):
        pass

    first = engine(optimizer=FAST)

    def save_and_stop(report):
        source.reports.append(report)
        if report.step == 1:
            first.save(tmp_path)
            raise StopError

    source.finished = save_and_stop
    with pytest.raises(StopError):
        first.train(parted, source, steps=4)
    second, rest = engine(optimizer=FAST) if anew else first, recorded()
    if anew:
        second.restore(tmp_path)
    second.train(parted, rest, steps=4)
    assert torch.equal(weights(whole), weights(parted))
    assert [one.step for one in source.reports + rest.reports] == [0, 1, 2, 3]


def test_a_finished_run_takes_no_further_step(recorded, policy):
    """Asked for as many steps as were taken, the engine asks for nothing and changes nothing."""
    engine, source = TrlEngine(optimizer=FAST), recorded()
    engine.train(policy, source, steps=1)
    before = weights(policy)
    engine.train(policy, source, steps=1)
    assert torch.equal(before, weights(policy))
    assert len(source.reports) == 1


def test_equal_rewards_change_nothing(recorded, policy):
    """Without a reason to learn, neither momentum nor weight decay moves the weights."""
    engine = TrlEngine(optimizer=dataclasses.replace(FAST, warmup_ratio=0.0))
    engine.train(policy, recorded(), steps=1)
    before = weights(policy)
    same = recorded(change=lambda one: dataclasses.replace(one, reward=1.0))
    engine.train(policy, same, steps=3)
    assert torch.equal(before, weights(policy))
    assert [one.gradient_norm for one in same.reports] == [0.0, 0.0]


@pytest.mark.parametrize("wrong", ["inf", "nan"])
def test_a_loss_that_is_no_number_stops_before_the_weights_change(recorded, policy, wrong):
    """A diverged step raises, says which, and leaves the weights as they were."""
    before = weights(policy)
    source = recorded(change=lambda one: dataclasses.replace(one, weight=float(wrong)))
    with pytest.raises(DivergedError, match="at step 0"):
        TrlEngine(optimizer=FAST).train(policy, source, steps=1)
    assert torch.equal(before, weights(policy))


def test_the_model_is_left_as_it_was(recorded, policy):
    """What TRL puts on a model is gone afterwards, also when the source raised."""
    source = recorded()

    def fail(report):
        raise RuntimeError("the store is gone")

    source.finished = fail
    before = described(policy.model)
    with pytest.raises(RuntimeError, match="the store is gone"):
        TrlEngine(optimizer=FAST).train(policy, source, steps=1)
    assert described(policy.model) == before
    assert not policy.model.training
    assert all(one.grad is None for one in policy.model.parameters())


def test_the_random_generators_are_left_alone(recorded, policy):
    """TRL seeds the process; what draws beside it does not notice."""
    torch.manual_seed(5)
    random.seed(5)
    wanted = [(random.random(), torch.rand(1)) for _ in range(5)]
    torch.manual_seed(5)
    random.seed(5)
    drawn = []

    class Drawing(recorded):
        def rollouts(self, step, share):
            drawn.append((random.random(), torch.rand(1)))
            return super().rollouts(step, share)

        def finished(self, report):
            drawn.append((random.random(), torch.rand(1)))

    TrlEngine(optimizer=FAST).train(policy, Drawing(), steps=2)
    drawn.append((random.random(), torch.rand(1)))
    assert drawn == wanted


def test_rollouts_are_written_in_evaluation_mode(recorded):
    """Dropout is off while the source writes, on while the weights learn."""
    policy = with_dropout()

    class Looking(recorded):
        def rollouts(self, step, share):
            assert not policy.model.training
            return super().rollouts(step, share)

        def finished(self, report):
            assert not policy.model.training
            super().finished(report)

    TrlEngine(optimizer=FAST).train(policy, Looking(), steps=2)


@pytest.mark.parametrize("spoil", ["cut", "other model"])
def test_a_state_that_can_not_be_gone_on_from_is_refused(recorded, policy, tmp_path, spoil):
    """A damaged file, or one of another model, is named before a step is taken."""
    engine = TrlEngine(optimizer=FAST)
    engine.train(policy, recorded(), steps=1)
    engine.save(tmp_path)
    if spoil == "cut":
        (file,) = tmp_path.iterdir()
        file.write_bytes(file.read_bytes()[:100])
    else:
        policy = tiny_policy(layers=1)
    before, source = weights(policy), recorded()
    again = TrlEngine(optimizer=FAST)
    again.restore(tmp_path)
    with pytest.raises(CheckpointError, match="damaged, or was written for another"):
        again.train(policy, source, steps=2)
    assert torch.equal(before, weights(policy))
    assert source.reports == []


def test_a_weight_that_is_no_number_stops_the_run(recorded, policy):
    """A step too large for the precision is told at once, not trained on."""
    endless = dataclasses.replace(FAST, learning_rate=1e37, warmup_ratio=0.0)
    with pytest.raises(DivergedError, match="after step 0"):
        TrlEngine(optimizer=endless).train(policy, recorded(), steps=2)


def test_checkpointed_activations_change_no_step(recorded):
    """Computing activations again in the backward pass saves memory, not accuracy."""
    plain, saving = tiny_policy(), tiny_policy()
    objective = Objective(loss_type="grpo")
    TrlEngine(optimizer=FAST, objective=objective).train(plain, recorded(), steps=2)
    engine = TrlEngine(optimizer=FAST, objective=objective, gradient_checkpointing=True)
    engine.train(saving, recorded(), steps=2)
    assert torch.allclose(weights(plain), weights(saving), atol=1e-6)
    assert not any(getattr(one, "gradient_checkpointing", False) for one in saving.model.modules())


def test_figures_of_health_are_those_of_the_lean_engine(recorded):
    """Entropy and divergence are told in each step, as means over the same tokens."""
    objective = Objective(loss_type="dapo", kl_coefficient=0.05)
    sources = []
    for made in (LeanEngine, TrlEngine):
        sources.append(recorded(rewritten=0.0))
        engine = made(optimizer=FAST, objective=objective, reference=tiny_policy(seed=1))
        engine.train(tiny_policy(), sources[-1], steps=2)
    for lean, trl in zip(*(one.reports for one in sources), strict=True):
        assert trl.entropy == pytest.approx(lean.entropy, rel=1e-3)
        assert trl.divergence == pytest.approx(lean.divergence, rel=1e-3)
