"""What a process does in ``test_vllm_writer.py``, where ``vllm`` is the double beside this file."""

import asyncio
import dataclasses
import importlib.util
import json
import os
import sys
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from vllm import LLM

from agentkit_training import PolicyModel, collect, load_policy, save_policy, tiny_policy
from agentkit_training.engines.base import OptimizerSettings
from agentkit_training.engines.objective import Objective
from agentkit_training.engines.scoring import token_logprobs
from agentkit_training.engines.trl.engine import TrlEngine
from agentkit_training.engines.trl.vllm import VllmSettings, VllmWriter
from agentkit_training.policy.lora import LoraSettings, with_lora

FAST = OptimizerSettings(learning_rate=3e-3)
STEPS = 3


class Written:
    """Rollouts that the runtime's agent made; looks whether the weights of now wrote them."""

    def __init__(self, policy, model, shop):
        self.policy, self.model, self.shop = policy, model, shop
        self.reports, self.apart, self.tokens = [], [], 0

    def rollouts(self, step, share):
        seed = 100 * step + 10 * share.rank
        found = asyncio.run(collect(self.model, self.shop, attempts=2, seed=seed))
        rows = [sequence for one in found for sequence in one.sequences]
        for row, now in zip(rows, token_logprobs(self.policy, rows), strict=True):
            drawn = torch.tensor(row.written)
            apart = (now - torch.tensor(row.logprobs)).abs()[drawn]
            self.apart.append(float(apart.max()))
            self.tokens += int(drawn.sum())
        return [dataclasses.replace(one, reward=float(one.attempt)) for one in found]

    def finished(self, report):
        self.reports.append(report)


class Scenarios:
    """Each gives the policy that came of it, and facts as JSON data."""

    def __init__(self, folder, conftest):
        self.folder, doubles = folder, loaded(conftest)
        self.recorded, self.shop = doubles.Recorded, doubles.shop.__wrapped__()

    def policy(self):
        return load_policy(Path(self.folder) / "tiny", precision="fp32")

    def written(self, policy):
        writer = VllmWriter(policy=policy, settings=VllmSettings(at_once=48))
        model = PolicyModel(policy, writer=writer, max_tokens=12)
        source = Written(policy, model, self.shop)
        made = len(LLM.made)
        engine = TrlEngine(optimizer=FAST, writer=writer)
        engine.train(policy, source, steps=STEPS)
        one = LLM.made[-1]
        assert len(LLM.made) - made == 1
        after = asyncio.run(collect(model, self.shop, attempts=1))  # the policy writes itself
        return {
            "apart": max(source.apart),
            "tokens": source.tokens,
            "told": [report.max_log_ratio for report in source.reports],
            "asked": one.asked,
            "at_once": one.max_num_seqs,
            "synced": one.weights.loaded.count("model.layers.0.mlp.up_proj.weight"),
            "names": len(set(one.weights.loaded)),
            "resets": one.resets,
            "after": len(after),
        }

    def every_weight(self):
        policy = self.policy()
        return policy, self.written(policy)

    def adapters(self):
        policy = with_lora(self.policy(), LoraSettings(rank=4, alpha=8))
        before = [one.clone() for one in policy.model.parameters() if not one.requires_grad]
        told = self.written(policy)
        after = [one for one in policy.model.parameters() if not one.requires_grad]
        told["moved"] = max(float((b - a).abs().max()) for b, a in zip(before, after, strict=True))
        return policy, told

    def made_up(self, **choices):
        """Rollouts whose recorded log-probabilities are far from those of the policy."""
        policy = self.policy()
        settings = VllmSettings(**choices.pop("settings", {}))
        writer, source = VllmWriter(policy=policy, settings=settings), self.recorded()
        objective = Objective(loss_type="dapo", **choices)
        TrlEngine(optimizer=FAST, objective=objective, writer=writer).train(
            policy, source, steps=STEPS
        )
        return policy, {"told": [report.max_log_ratio for report in source.reports]}

    def weighed(self):
        return self.made_up(settings={"cap": 1e6})

    def cut(self):
        return self.made_up(settings={"cap": 1.0})

    def unweighed(self):
        return self.made_up(settings={"correction": "none"})

    def bounded(self):
        return self.made_up(old_logprobs="sampled", clip_low=0.9, clip_high=5.0)


def loaded(path):
    spec = importlib.util.spec_from_file_location("doubles", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(folder, conftest, *wanted):
    torch.set_num_threads(1)
    save_policy(tiny_policy(), Path(folder) / "tiny")
    scenarios = Scenarios(folder, conftest)
    told = {}
    for name in wanted:
        policy, told[name] = getattr(scenarios, name)()
        weights = torch.cat([one.detach().flatten() for one in policy.model.parameters()])
        torch.save(weights, Path(folder) / f"{name}.pt")
    (Path(folder) / "told.json").write_text(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
