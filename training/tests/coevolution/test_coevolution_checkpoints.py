"""A run on disk: resumed exactly, with adapters, in bfloat16, by either engine; refused where it does not fit."""

import errno
import json
import math
from dataclasses import replace

import pytest
import torch

from agentkit_training.coevolution.checkpoint import checkpoints, coevolve, newest_checkpoint
from agentkit_training.coevolution.settings import CoevolutionSettings
from agentkit_training.engines.base import OptimizerSettings
from agentkit_training.engines.lean import LeanEngine
from agentkit_training.engines.objective import Objective
from agentkit_training.engines.trl.engine import TrlEngine
from agentkit_training.errors import CheckpointError, DivergedError
from agentkit_training.policy.lora import LoraSettings, with_lora
from agentkit_training.policy.reference import reference_policy
from agentkit_training.policy.saving import base_digest
from agentkit_training.weighting import Weighting

ON = CoevolutionSettings(evidence=True, weighting=True, steps=4)


def carry_on(run, folder):
    """Begin or go on."""
    return coevolve(run.policy, run.source, run.engine, folder=folder)


def equal(one, other):
    """Whether two runs came to the same."""
    assert one.weights.equal(other.weights)
    assert one.source.records == other.source.records
    assert one.source.library.digest == other.source.library.digest
    ours, theirs = one.source.memory, other.source.memory
    assert ours.profile.label_distribution() == theirs.profile.label_distribution()


def test_an_interrupt_in_a_step_loses_that_step_only(begin, tmp_path):
    """Ctrl-C during the third step; going on does that step again and ends as if nothing was."""
    settings = CoevolutionSettings(evidence=True, steps=4)
    whole = begin(settings, rate=1e-3).train(4)
    broken = begin(settings, rate=1e-3)
    decide = broken.source.keeper.decide

    def stop(episodes, profile):
        done = decide(episodes, profile)
        if len(broken.source.records) == 2:
            raise KeyboardInterrupt
        return done

    broken.source.keeper.decide = stop
    with pytest.raises(KeyboardInterrupt):
        carry_on(broken, tmp_path)
    assert newest_checkpoint(tmp_path).name == "step-000002"
    again = begin(settings, rate=1e-3)
    carry_on(again, tmp_path)
    equal(whole, again)
    assert [path.name for path in checkpoints(tmp_path)] == ["step-000003", "step-000004"]


def test_the_state_after_the_last_step_is_kept(begin, tmp_path):
    """A run whose length is no multiple of the distance need not take its last steps again."""
    run = begin(CoevolutionSettings(steps=3))
    coevolve(run.policy, run.source, run.engine, folder=tmp_path, every=2)
    assert [path.name for path in checkpoints(tmp_path)] == ["step-000002", "step-000003"]


def test_another_run_is_refused_with_the_difference(begin, tmp_path):
    """Other settings are named with both values; steps may be more."""
    carry_on(begin(CoevolutionSettings(evidence=True, steps=1)), tmp_path)
    settings = CoevolutionSettings(feedback=False, composites=True, seed=3, steps=1)
    other = begin(settings)
    with pytest.raises(CheckpointError) as refused:
        carry_on(other, tmp_path)
    message = str(refused.value)
    for part in (
        "settings.evidence: the checkpoint has True, this run False",
        "settings.seed: the checkpoint has 0, this run 3",
    ):
        assert part in message
    assert "settings.steps" not in message


def test_settings_that_are_gone_do_not_stop_a_run(begin, tmp_path):
    """A checkpoint of an earlier release has more of them, which are passed over."""
    carry_on(begin(CoevolutionSettings(steps=1)), tmp_path)
    (state,) = tmp_path.glob("*/coevolution.json")
    record = json.loads(state.read_text())
    record["run"]["settings"]["every"] = 1
    state.write_text(json.dumps(record))
    carry_on(begin(CoevolutionSettings(steps=1)), tmp_path)


def test_another_library_is_refused(begin, bank, tmp_path):
    """A store that went on elsewhere is not taken for the checkpoint's library."""
    settings = CoevolutionSettings(evidence=True, steps=1)
    carry_on(begin(settings), tmp_path)
    other = begin(settings)
    other.source.keeper.manager.register(bank.definitions)
    with pytest.raises(
        CheckpointError, match=r"holds library version 1 .* checkpoint has version 2"
    ):
        carry_on(other, tmp_path)


def test_a_loss_that_is_no_number_keeps_the_last_good_checkpoint(begin, tmp_path):
    """The run stops at the step that diverged; what was saved before is whole."""
    run = begin(CoevolutionSettings(evidence=True, steps=3))
    rollouts = run.source.rollouts

    def broken(step, share):
        found = rollouts(step, share)
        if step == 1:
            object.__setattr__(found[0], "weight", math.inf)
            object.__setattr__(found[1], "reward", found[0].reward + 1.0)
        return found

    run.source.rollouts = broken
    with pytest.raises(DivergedError, match="at step 1"):
        carry_on(run, tmp_path)
    assert newest_checkpoint(tmp_path).name == "step-000001"
    again = begin(CoevolutionSettings(evidence=True, steps=3))
    assert len(carry_on(again, tmp_path).records) == 3


class FullDisk(LeanEngine):
    """An engine for whose state there is no room from the second checkpoint on."""

    saved = 0

    def save(self, folder):
        self.saved += 1
        if self.saved > 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        super().save(folder)


def test_a_full_disk_keeps_the_last_good_checkpoint(begin, tmp_path):
    """The error says so, no half checkpoint is left, and the one before can be gone on from."""
    settings = CoevolutionSettings(evidence=True, steps=2)
    run = begin(settings)
    run.engine = FullDisk(optimizer=run.engine.optimizer)
    with pytest.raises(CheckpointError, match="No space left"):
        carry_on(run, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["step-000001"]
    assert len(carry_on(begin(settings), tmp_path).records) == 2


def test_a_damaged_checkpoint_is_named(begin, tmp_path):
    """A file that can not be read is an error of its own, with the folder in it."""
    run = begin(CoevolutionSettings(steps=1))
    carry_on(run, tmp_path)
    (tmp_path / "step-000001" / "coevolution.json").write_text("{", encoding="utf-8")
    with pytest.raises(CheckpointError, match="step-000001 is no checkpoint that can be read"):
        carry_on(begin(CoevolutionSettings(steps=1)), tmp_path)


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
        switches = CoevolutionSettings(evidence=True, weighting=True, steps=steps)
        run = begin(switches, policy=policy, weighting=Weighting(normalised=False))
        kind_of_engine = LeanEngine if engine == "lean" else TrlEngine
        return replace(run, engine=kind_of_engine(**settings))

    return made


def learned(run):
    """What has been learned so far, in one tensor."""
    return torch.cat([one.detach().flatten() for one in run.policy.trainable])


def test_a_resumed_run_with_adapters_equals_an_uninterrupted_one(make, tmp_path):
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
