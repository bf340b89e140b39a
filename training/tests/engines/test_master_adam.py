"""Coarse weights are stepped through masters in float32, which refine and never override them."""

import pytest
import torch

from agentkit_training import tiny_policy
from agentkit_training.engines import master_adam
from agentkit_training.engines.base import OptimizerSettings
from agentkit_training.engines.lean import LeanEngine
from agentkit_training.engines.master_adam import MasterAdam
from agentkit_training.errors import CheckpointError
from agentkit_training.policy.lora import LoraSettings, with_lora

SMALL = OptimizerSettings(learning_rate=1e-5)
STEPS = 12


def a_policy(kind=torch.bfloat16, **settings):
    """Weights that bfloat16 holds, in one kind of numbers."""
    policy = tiny_policy(**settings)
    policy.model.to(torch.bfloat16).to(kind)
    return policy


def weights(policy):
    return torch.cat([one.detach().float().flatten() for one in policy.model.parameters()])


def a_weight(kind=torch.bfloat16, value=1.0):
    return torch.nn.Parameter(torch.full((4,), value, dtype=kind))


def stepped(adam, *weights, gradient=1.0):
    """One step down a gradient that is the same everywhere."""
    for one in weights:
        one.grad = torch.full_like(one, gradient)
    adam.step()


def test_small_steps_in_bf16_come_to_what_they_come_to_in_float32(recorded, monkeypatch):
    """Weights end where those of float32 end, rounded once; without masters most never move."""
    ends = {}
    for name, kind in (("exact", torch.float32), ("masters", torch.bfloat16)):
        policy = a_policy(kind)
        LeanEngine(optimizer=SMALL).train(policy, recorded(), steps=STEPS)
        ends[name] = weights(policy)
    monkeypatch.setattr(master_adam, "is_coarse", lambda _: False)
    policy = a_policy()
    LeanEngine(optimizer=SMALL).train(policy, recorded(), steps=STEPS)
    start, exact = weights(a_policy()), ends["exact"]
    least = float((exact.bfloat16().float() - exact).norm())
    assert float((ends["masters"] - exact).norm()) < 1.01 * least
    assert float((weights(policy) - exact).norm()) > 1.4 * least
    moves = (exact - start, ends["masters"] - start, weights(policy) - start)
    wanted, found, rounded = (torch.nn.functional.normalize(one, dim=0) for one in moves)
    assert float(found @ wanted) > 2 * float(rounded @ wanted)


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_steps_that_are_each_rounded_away_add_up(kind):
    """A hundred steps of a ten thousandth move a weight of 1 by a hundredth, in either kind."""
    weight = a_weight(kind)
    adam = MasterAdam([weight], lr=1e-4, weight_decay=0.0)
    for _ in range(100):
        stepped(adam, weight)
    assert weight.tolist() == pytest.approx([0.99] * 4, abs=0.003)


def test_weights_of_several_kinds_are_stepped_together():
    """Beside coarse weights those in float32 go as AdamW alone takes them, to the bit."""
    coarse, fine, alone = a_weight(), a_weight(torch.float32), a_weight(torch.float32)
    adam, plain = MasterAdam([coarse, fine], lr=1e-4), torch.optim.AdamW([alone], lr=1e-4)
    for _ in range(3):
        stepped(adam, coarse, fine)
        stepped(plain, alone)
    assert torch.equal(fine, alone)
    assert torch.equal(coarse, alone.bfloat16())


def test_a_weight_that_was_set_between_steps_is_gone_on_from():
    """What is set by hand counts from the next step on; its neighbours keep their masters."""
    weight, untouched = a_weight(), a_weight()
    adam, other = (MasterAdam([one], lr=1e-4, weight_decay=0.0) for one in (weight, untouched))
    for _ in range(30):
        stepped(adam, weight)
        stepped(other, untouched)
    with torch.no_grad():
        weight[0] = 5.0
    for _ in range(30):
        stepped(adam, weight)
        stepped(other, untouched)
    assert weight[0] == 5.0
    assert torch.equal(weight[1:], untouched[1:])


def test_a_saved_master_does_not_override_a_weight_that_was_loaded(recorded, tmp_path):
    """Restored over other weights, the engine goes on from these and not from what it had saved."""
    policy, engine = a_policy(), LeanEngine(optimizer=SMALL)
    engine.train(policy, recorded(), steps=2)
    engine.save(tmp_path)
    other, again = a_policy(seed=1), LeanEngine(optimizer=SMALL)
    before = weights(other)
    again.restore(tmp_path)
    again.train(other, recorded(), steps=3)
    moved = (weights(other) - before).abs()
    assert moved.any()
    assert float(moved.max()) < 1e-3


def test_a_weight_without_a_gradient_stays():
    """It is neither decayed nor rounded anew, though another weight is stepped."""
    weight, other = a_weight(), a_weight()
    adam = MasterAdam([weight, other], lr=0.1)
    stepped(adam, weight, other)
    before = other.detach().clone()
    stepped(adam, weight)
    assert torch.equal(other, before)


def test_gradients_are_let_go_of():
    """After a step, and where one is given up, neither weights nor masters hold a gradient."""
    weight, fine = a_weight(), a_weight(torch.float32)
    adam = MasterAdam([weight, fine], lr=0.1)
    stepped(adam, weight)
    (master, _) = adam.param_groups[0]["params"]
    assert (weight.grad, master.grad) == (None, None)
    weight.grad, fine.grad = torch.ones_like(weight), torch.ones_like(fine)
    adam.zero_grad()
    assert (weight.grad, fine.grad) == (None, None)
    before = weight.detach().clone()
    adam.step()
    assert torch.equal(weight, before)


@pytest.mark.parametrize("made", ["float32", "adapters"])
def test_weights_in_float32_are_saved_as_ever(recorded, tmp_path, made):
    """Without coarse weights that learn, the optimiser is AdamW and its file has no masters."""
    policy = a_policy(torch.float32)
    if made == "adapters":
        policy = with_lora(a_policy(), LoraSettings(rank=4, alpha=8))
    engine = LeanEngine(optimizer=SMALL)
    engine.train(policy, recorded(), steps=1)
    engine.save(tmp_path)
    saved = torch.load(tmp_path / "lean.pt", weights_only=True)
    assert saved.keys() == {"step", "adam"}
    assert saved["adam"].keys() == {"state", "param_groups"}


def test_a_state_without_masters_is_gone_on_from(recorded, tmp_path, monkeypatch):
    """What was saved before there were masters loads: steps and moments go on, from the weights."""
    policy, engine = a_policy(), LeanEngine(optimizer=SMALL)
    with monkeypatch.context() as patched:
        patched.setattr(master_adam, "is_coarse", lambda _: False)
        engine.train(policy, recorded(), steps=2)
    engine.save(tmp_path)
    before, again = weights(policy), LeanEngine(optimizer=SMALL)
    again.restore(tmp_path)
    again.train(policy, recorded(), steps=2)
    assert torch.equal(weights(policy), before)
    source = recorded()
    again.train(policy, source, steps=3)
    assert [one.step for one in source.reports] == [2]
    (_, state), *_ = again._adam.state.items()
    assert (float(state["step"]), state["exp_avg"].dtype) == (3.0, torch.float32)


def test_a_state_of_other_weights_is_refused(recorded, tmp_path):
    """Masters of another model are no more taken than its moments."""
    policy, engine = a_policy(), LeanEngine(optimizer=SMALL)
    engine.train(policy, recorded(), steps=1)
    engine.save(tmp_path)
    for other in (a_policy(layers=1), a_policy(width=32)):
        again = LeanEngine(optimizer=SMALL)
        again.restore(tmp_path)
        with pytest.raises(CheckpointError, match="another"):
            again.train(other, recorded(), steps=2)
