"""The lean engine and TRL take the same steps; so does each release of TRL that we stand on."""

import asyncio
from contextlib import contextmanager
from dataclasses import replace

import pytest
import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from agentkit_training import PolicyModel, collect, tiny_policy
from agentkit_training.engines.base import OptimizerSettings, Share
from agentkit_training.engines.lean import LeanEngine
from agentkit_training.engines.objective import Objective
from agentkit_training.engines.packing import group_advantages
from agentkit_training.engines.scoring import token_logprobs
from agentkit_training.engines.trl.engine import TrlEngine
from agentkit_training.policy.lora import LoraSettings, with_lora
from agentkit_training.policy.reference import reference_policy
from agentkit_training.policy.saving import base_digest
from agentkit_training.rewards import rewarded

FAST = OptimizerSettings(learning_rate=3e-3, schedule="cosine", warmup_ratio=0.3, weight_decay=0.01)
STEPS = 3
LOSSES = ("grpo", "bnpo", "dapo", "dr_grpo")


@contextmanager
def gradients_of(policy):
    """The gradient of each step, just before the weights follow it."""
    seen = []

    def look(*_):
        seen.append(
            torch.cat([one.grad.flatten() for one in policy.trainable if one.grad is not None])
        )

    handle = register_optimizer_step_pre_hook(look)
    try:
        yield seen
    finally:
        handle.remove()


def weights(policy):
    return torch.cat([one.detach().flatten() for one in policy.trainable])


def distance(found, wanted):
    """Relative, in the norm."""
    return float((found - wanted).norm() / wanted.norm())


def trained(engine, policy, source):
    with gradients_of(policy) as gradients:
        engine.train(policy, source, steps=STEPS)
    return gradients, weights(policy)


def check_equal(lean, trl, *, policies, sources):
    """Gradients to 1e-5 at each step, weights to what the optimiser makes of such noise."""
    start = weights(policies[0])
    wanted, lean_weights = trained(lean, policies[0], sources[0])
    found, trl_weights = trained(trl, policies[1], sources[1])
    assert len(found) == len(wanted) == STEPS
    for ours, theirs in zip(wanted, found, strict=True):
        assert distance(theirs, ours) <= 1e-5
    assert distance(trl_weights - start, lean_weights - start) <= 1e-4
    for one, other in zip(*(source.reports for source in sources), strict=True):
        assert one.loss == pytest.approx(other.loss, abs=1e-4)  # old releases round it
        assert one.gradient_norm == pytest.approx(other.gradient_norm, rel=1e-5)
        assert one.learning_rate == pytest.approx(other.learning_rate)
        assert (one.step, one.rows, one.loss_tokens, one.too_long) == (
            other.step,
            other.rows,
            other.loss_tokens,
            other.too_long,
        )


SAMPLED = {"old_logprobs": "sampled"}
CASES = {
    **{
        f"{loss}, {kl:g}": ({"loss_type": loss, "kl_coefficient": kl}, {}, {})
        for loss in LOSSES
        for kl in (0.0, 0.1)
    },
    **{
        f"{loss}, in parts": ({"loss_type": loss, "kl_coefficient": 0.05}, {}, {"parts": 3})
        for loss in LOSSES
    },
    **{
        f"{loss}, clipped": (
            {"loss_type": loss, "clip_low": 0.1, "clip_high": 0.28, **SAMPLED},
            {"scaled": False},
            {},
        )
        for loss in ("grpo", "dapo")
    },
    "temperature": ({"temperature": 0.6, "kl_coefficient": 0.05, **SAMPLED}, {}, {}),
}
"""Of each case the objective, settings of both engines, and those of TRL alone."""


@pytest.mark.parametrize("case", CASES)
def test_each_loss_gives_the_same_steps(recorded, case):
    """Weighted rollouts of several turns train both alike: with KL, in parts, clipped, tempered."""
    objective, both, trl = CASES[case]
    settings = {"optimizer": FAST, "objective": Objective(**objective), **both}
    if objective.get("kl_coefficient"):
        settings["reference"] = tiny_policy(seed=1)
    check_equal(
        LeanEngine(**settings),
        TrlEngine(**settings, **trl),
        policies=(tiny_policy(), tiny_policy()),
        sources=(recorded(), recorded()),
    )


@pytest.mark.parametrize("made", [LeanEngine, TrlEngine])
def test_a_rollout_of_several_sequences_is_one_output(recorded, made):
    """With grpo a rollout whose tokens are told twice weighs as when they are told once."""

    class Twice(recorded):
        def rollouts(self, step, share):
            found = super().rollouts(step, share)
            return [
                replace(one, sequences=one.sequences * (1 + place % 2))
                for place, one in enumerate(found)
            ]

    gradients = []
    for source in (recorded(rewritten=0.0), Twice(rewritten=0.0)):
        engine = made(
            optimizer=OptimizerSettings(learning_rate=0.0),
            objective=Objective(loss_type="grpo", kl_coefficient=0.1),
            reference=tiny_policy(seed=1),
        )
        found, _ = trained(engine, tiny_policy(), source)
        gradients.append(found)
    for once, twice in zip(*gradients, strict=True):
        assert distance(twice, once) <= 1e-5


def test_both_leave_out_what_the_model_can_not_read(recorded):
    """Sequences over the model's window are counted, and the rest is trained on alike."""
    policies = (tiny_policy(), tiny_policy())
    for policy in policies:
        policy.model.config.max_position_embeddings = 25
    sources = (recorded(), recorded())
    check_equal(
        LeanEngine(optimizer=FAST), TrlEngine(optimizer=FAST), policies=policies, sources=sources
    )
    for source in sources:
        assert all(one.too_long for one in source.reports)


def test_adapters_learn_alike(recorded):
    """With LoRA both engines change the adapters alone; the reference is the model without them."""
    settings = LoraSettings(rank=4, alpha=8)
    policies = [with_lora(tiny_policy(), settings) for _ in range(2)]
    lean, trl = (
        made(
            optimizer=FAST,
            objective=Objective(kl_coefficient=0.1),
            reference=reference_policy(policy),
        )
        for made, policy in zip((LeanEngine, TrlEngine), policies, strict=True)
    )
    base = base_digest(policies[1])
    check_equal(lean, trl, policies=policies, sources=(recorded(), recorded()))
    assert base_digest(policies[1]) == base


@pytest.mark.parametrize("parts", [1, 3])
def test_whole_weights_in_bf16_learn_alike(recorded, parts):
    """Both keep them in float32 beside, so that small steps differ by what bf16 computes alone."""
    small = OptimizerSettings(learning_rate=1e-5)
    policies = [tiny_policy() for _ in range(2)]
    for policy in policies:
        policy.model.to(torch.bfloat16)
    start = weights(policies[0]).float()
    lean, trl = LeanEngine(optimizer=small), TrlEngine(optimizer=small, parts=parts)
    gradients, wanted = trained(lean, policies[0], recorded())
    theirs, found = trained(trl, policies[1], recorded())
    for one, other in zip(gradients, theirs, strict=True):
        assert distance(other.float(), one.float()) <= 0.03
    assert distance(found.float() - start, wanted.float() - start) <= 0.2


def test_both_learn_from_what_they_write_themselves(shop):
    """Rollouts of each engine's own weights, over the runtime's agent, stay the same tokens."""

    class Shop:
        def __init__(self, policy):
            self.model, self.seen, self.reports = PolicyModel(policy, max_tokens=8), [], []

        def rollouts(self, step, share):
            asked = collect(self.model, shop, attempts=4, seed=1000 * step)
            judged = rewarded(
                asyncio.run(asked), lambda one: {"even": float(one.sequences[0].completion[0] % 2)}
            )
            self.seen += [
                (part.prompt, part.completion, part.written)
                for one in judged
                for part in one.sequences
            ]
            return judged

        def finished(self, report):
            self.reports.append(report)

    policies = (tiny_policy(), tiny_policy())
    sources = tuple(map(Shop, policies))
    check_equal(
        LeanEngine(optimizer=FAST), TrlEngine(optimizer=FAST), policies=policies, sources=sources
    )
    assert sources[0].seen == sources[1].seen


def test_log_probabilities_agree(recorded, policy, monkeypatch):
    """TRL, which pads, reads each token as the lean engine does: to 1e-5."""
    from trl import GRPOTrainer

    plain, seen = GRPOTrainer._get_per_token_logps_and_entropies, []

    def reading(self, model, input_ids, attention_mask, logits_to_keep, *args, **kwargs):
        read = plain(self, model, input_ids, attention_mask, logits_to_keep, *args, **kwargs)
        for ids, mask, found in zip(input_ids, attention_mask, read[0], strict=True):
            seen.append((tuple(ids[mask.bool()].tolist()), found.detach()))
        return read

    monkeypatch.setattr(GRPOTrainer, "_get_per_token_logps_and_entropies", reading)
    still = OptimizerSettings(learning_rate=0.0)
    source = recorded()
    TrlEngine(optimizer=still).train(policy, source, steps=1)
    wanted = {}
    sequences = [
        one
        for rollout in source.rollouts(0, Share())
        if not rollout.fault
        for one in rollout.sequences
    ]
    for one, read in zip(sequences, token_logprobs(policy, sequences), strict=True):
        wanted[(*one.prompt, *one.completion)] = read
    compared = [(found[: len(wanted[ids])], wanted[ids]) for ids, found in seen if ids in wanted]
    assert len(compared) == len(sequences)
    for found, ours in compared:
        assert torch.allclose(found, ours, atol=1e-5)


def test_our_advantages_are_those_of_trl(recorded, policy, monkeypatch):
    """For groups that TRL takes, what it works out, times the weights, is what is trained on."""
    from trl import GRPOTrainer

    plain, seen = GRPOTrainer._generate_and_score_completions, []

    def scoring(self, inputs):
        output = plain(self, inputs)
        seen.append(output["advantages"].clone())
        return output

    monkeypatch.setattr(GRPOTrainer, "_generate_and_score_completions", scoring)

    class Pairs(recorded):
        def rollouts(self, step, share):
            self.found = [one for one in super().rollouts(step, share) if one.attempt < 2]
            return self.found

    source = Pairs(faults=0.0, rewritten=0.0)
    TrlEngine(optimizer=FAST).train(policy, source, steps=1)
    pairs = zip(source.found[::2], source.found[1::2], strict=True)
    wanted = [one for pair in pairs for one in group_advantages([each.reward for each in pair])]
    assert seen[0].tolist() == pytest.approx(wanted, abs=1e-5)
    assert any(wanted)
