"""Going on from a checkpoint, with adapters, in bfloat16, and with either engine."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from agentkit_training.coevolution.checkpoint import coevolve
from agentkit_training.coevolution.settings import CoevolutionSettings
from agentkit_training.engines.base import OptimizerSettings
from agentkit_training.engines.lean import LeanEngine
from agentkit_training.engines.objective import Objective
from agentkit_training.engines.trl.engine import TrlEngine
from agentkit_training.policy.lora import LoraSettings, with_lora
from agentkit_training.policy.reference import reference_policy
from agentkit_training.policy.saving import base_digest
from agentkit_training.weighting import FixedWeighting

FAST = OptimizerSettings(learning_rate=1e-3, schedule="cosine", warmup_ratio=0.3)
LORA = LoraSettings(rank=4, alpha=8, dropout=0.2)
KINDS = ("lora", "full", "bf16")  # the last is of whole weights, which have float32 copies


@pytest.fixture(params=[f"{engine}-{kind}" for engine in ("lean", "trl") for kind in KINDS])
def make(request, begin, clerk):
    """Begins equal runs of one engine and one kind of policy, held to where they began."""
    engine, kind = request.param.split("-")

    def made(steps):
        policy = with_lora(clerk(), LORA) if kind == "lora" else clerk()
        if kind == "bf16":
            policy.model.to(torch.bfloat16)
        settings = {
            "optimizer": FAST,
            "objective": Objective(kl_coefficient=0.05),
            "reference": reference_policy(policy),
        }
        switches = CoevolutionSettings(evidence=True, weighting=True, every=2, steps=steps)
        run = begin(switches, policy=policy, weighting=FixedWeighting())
        kind_of_engine = LeanEngine if engine == "lean" else TrlEngine
        return replace(run, engine=kind_of_engine(**settings))

    return made


def learned(run):
    """What has been learned so far, in one tensor."""
    return torch.cat([one.detach().flatten() for one in run.policy.trainable])


def test_a_resumed_run_equals_an_uninterrupted_one(make, tmp_path):
    """Weights, records and library are the same to the bit, and no other weight has moved."""
    whole = make(4)
    start = learned(whole)
    whole.train(4)
    torch.manual_seed(7)  # what else is drawn in the process does not matter
    parted = make(4)
    digest = base_digest(parted.policy)
    parted.source.listen = stop_after(2)
    with pytest.raises(KeyboardInterrupt):
        coevolve(parted.policy, parted.source, parted.engine, folder=tmp_path)
    torch.manual_seed(8)
    again = make(4)
    coevolve(again.policy, again.source, again.engine, folder=tmp_path)
    assert learned(whole).equal(learned(again))
    assert not learned(again).equal(start)
    assert whole.source.records == again.source.records
    assert whole.source.library.digest == again.source.library.digest
    if len(list(again.policy.model.parameters())) > len(again.policy.trainable):
        assert base_digest(again.policy) == digest


def stop_after(step):
    """A listener that breaks a run off before its checkpoint of a step is written."""

    def listen(record):
        if record.step == step:
            raise KeyboardInterrupt

    return listen
