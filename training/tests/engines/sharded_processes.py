"""What each of two processes does in ``test_sharded_*.py``; started by ``torchrun``."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import os
import sys
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from agentkit_training import tiny_policy
from agentkit_training.cli.processes import joined_ranks
from agentkit_training.engines.base import OptimizerSettings
from agentkit_training.engines.objective import Objective
from agentkit_training.engines.trl.engine import TrlEngine
from agentkit_training.errors import DivergedError
from agentkit_training.policy.lora import LoraSettings, with_lora
from agentkit_training.policy.reference import reference_policy

FAST = OptimizerSettings(learning_rate=3e-3, schedule="linear", weight_decay=0.01)
SMALL = dataclasses.replace(FAST, learning_rate=2e-5, schedule="constant", weight_decay=0.0)
STEPS = 4


class StopError(Exception):
    """Ends a run as a machine that goes down does."""


class Scenarios:
    """Each gives the policy that came of it, and facts as JSON data."""

    def __init__(self, recorded, folder, sharding):
        self.recorded, self.folder, self.sharding = recorded, folder, sharding

    def engine(self, **settings):
        return TrlEngine(**({"optimizer": FAST, "sharding": self.sharding} | settings))

    def every_weight(self):
        """All weights learn, with a divergence; each step's rollouts see those of all before."""
        policy, seen = tiny_policy(), []

        class Looking(self.recorded):
            def rollouts(self, step, share):
                assert not policy.model.training
                assert not any(one.grad is not None for one in policy.model.parameters())
                seen.append(float(weights(policy).double().sum()))
                return super().rollouts(step, share)

        source = Looking()
        engine = self.engine(
            objective=Objective(loss_type="grpo", kl_coefficient=0.05),
            reference=tiny_policy(seed=1),
        )
        engine.train(policy, source, steps=STEPS)
        return policy, {
            "losses": [one.loss for one in source.reports],
            "norms": [one.gradient_norm for one in source.reports],
            "seen": seen,
        }

    def adapters(self):
        """Adapters learn, over weights that do not."""
        policy = with_lora(tiny_policy(), LoraSettings(rank=4, alpha=8))
        objective = Objective(kl_coefficient=0.05)
        engine = self.engine(objective=objective, reference=reference_policy(policy))
        engine.train(policy, self.recorded(), steps=STEPS)
        return policy, {}

    def in_parts(self):
        """A batch is read in two parts, and activations are computed again."""
        policy = tiny_policy()
        engine = self.engine(parts=2, gradient_checkpointing=True)
        engine.train(policy, self.recorded(), steps=STEPS)
        return policy, {}

    def unbroken(self):
        """Four steps in one go; looks at how many numbers this process keeps."""
        policy, kept = tiny_policy(), {}

        def look(adam, *_):
            moments = [one for state in adam.state.values() for one in state.values() if one.dim()]
            trained = [one for group in adam.param_groups for one in group["params"]]
            kept["moments"], kept["weights"] = numbers(moments) // 2, numbers(trained)

        handle = register_optimizer_step_post_hook(look)
        self.engine().train(policy, self.recorded(), steps=STEPS)
        handle.remove()
        return policy, kept

    def resumed(self):
        """Two steps of four, saved by all processes, restored and gone on with."""
        return self.broken_off(tiny_policy(), Path(self.folder) / "half"), {}

    def small_steps(self):
        """Bfloat16 weights, and steps that are smaller than what they can tell apart."""
        policy = in_bf16(tiny_policy())
        self.engine(optimizer=SMALL).train(policy, self.recorded(), steps=STEPS)
        return policy, {}

    def small_steps_resumed(self):
        policy = in_bf16(tiny_policy())
        return self.broken_off(policy, Path(self.folder) / "small", optimizer=SMALL), {}

    def adapters_over_bf16(self):
        """Adapters in float32, over weights in bfloat16."""
        policy = with_lora(in_bf16(tiny_policy()), LoraSettings(rank=4, alpha=8))
        self.engine().train(policy, self.recorded(), steps=STEPS)
        return policy, {}

    def broken_off(self, policy, half, **settings):
        """Two steps of four, saved by all processes, restored and gone on with."""
        source, first = self.recorded(), self.engine(**settings)

        def save_and_stop(report):
            if report.step == 1:
                half.mkdir(exist_ok=True)
                if torch.distributed.get_rank():
                    first.give_state()
                else:
                    first.save(half)
                raise StopError

        source.finished = save_and_stop
        try:
            first.train(policy, source, steps=STEPS)
        except StopError:
            torch.save(weights(policy), half / "weights.pt")
        torch.distributed.barrier()
        second = self.engine(**settings)
        second.restore(half)
        second.train(policy, self.recorded(), steps=STEPS)
        return policy

    def called_again(self):
        """The engine is asked for two steps, then for two more."""
        policy, source = tiny_policy(), self.recorded()
        engine = self.engine(optimizer=dataclasses.replace(FAST, schedule="constant"))
        engine.train(policy, source, steps=2)
        engine.train(policy, source, steps=STEPS)
        return policy, {}

    def nothing_learned(self):
        """After one step all rewards are equal."""
        policy, source = tiny_policy(), self.recorded()
        engine = self.engine()
        engine.train(policy, source, steps=1)
        before = weights(policy)
        source.change = lambda one: dataclasses.replace(one, reward=1.0)
        engine.train(policy, source, steps=3)
        return policy, {"moved": float((weights(policy) - before).abs().max())}

    def diverged(self):
        """The gradient is no number, on one process alone; then a weight is none."""
        policy, told = tiny_policy(), []
        rank = torch.distributed.get_rank()
        wrong = [float("nan"), 1.0][rank]
        broken = self.recorded(change=lambda one: dataclasses.replace(one, weight=wrong))
        endless = dataclasses.replace(FAST, learning_rate=1e37)
        for engine, source in (
            (self.engine(), broken),
            (self.engine(optimizer=endless), self.recorded()),
        ):
            try:
                engine.train(policy, source, steps=2)
            except DivergedError as error:
                told.append(str(error))
        return policy, {"told": told}


def numbers(tensors):
    """Of the tensors' shares that are on this process."""
    return sum((getattr(one, "_local_tensor", one)).numel() for one in tensors)


def in_bf16(policy):
    policy.model.to(torch.bfloat16)
    return policy


def weights(policy):
    return torch.cat([one.detach().float().flatten() for one in policy.model.parameters()])


def made(path):
    """The made-up rollouts of the tests of engines."""
    spec = importlib.util.spec_from_file_location("recorded", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Recorded


def main(recorded, folder, sharding, *wanted):
    torch.set_num_threads(1)
    ranks = joined_ranks()
    scenarios = Scenarios(made(recorded), folder, sharding)
    told = {}
    for name in wanted:
        policy, told[name] = getattr(scenarios, name)()
        torch.save(weights(policy), Path(folder) / f"{name}-{ranks.rank}.pt")
    (Path(folder) / f"{ranks.rank}.json").write_text(json.dumps(told))
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
