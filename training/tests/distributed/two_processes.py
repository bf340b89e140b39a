"""What each of several processes does in ``test_two_processes.py``; started by ``torchrun``."""

import atexit
import importlib.util
import json
import os
import sys
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch

from agentkit.library import Library
from agentkit.tools.definition import ToolDefinition
from agentkit_training import tiny_policy
from agentkit_training.distributed.ranks import end_together, joined_ranks
from agentkit_training.distributed.synchronising import synchronise
from agentkit_training.engines.base import OptimizerSettings
from agentkit_training.engines.objective import Objective
from agentkit_training.engines.trl.engine import TrlEngine
from agentkit_training.errors import TrainingError


def made(path):
    """The made-up rollouts of the tests of engines."""
    spec = importlib.util.spec_from_file_location("recorded", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Recorded


def priced(words):
    return ToolDefinition.from_schema("get_price", words, {"type": "object", "properties": {}})


def trained(ranks, recorded, loss_type):
    """Train with a library that rank 0 changes when both processes report failures."""
    policy = tiny_policy()

    class Source(recorded):
        library = Library([priced("Get the price.")], version=1)
        versions = ()

        def rollouts(self, step, share):
            assert (share.rank, share.world) == (ranks.rank, ranks.world)
            self.versions += (self.library.version,)
            return super().rollouts(step, share)

        def finished(self, report):
            super().finished(report)
            told = {"failures": 1 + ranks.rank, "suggestion": f"seen by {ranks.rank}"}
            self.library = synchronise(self.library, told, self.decided, ranks=ranks)

        def decided(self, told):
            if sum(one["failures"] for one in told) < 3 or self.library.version == 3:
                return self.library
            words = f"Get the price, {told[-1]['suggestion']}, {self.library.version}."
            changed = self.library.with_tools([priced(words)])
            return changed.at_version(self.library.version + 1)

    source = Source()
    engine = TrlEngine(
        optimizer=OptimizerSettings(learning_rate=3e-3, weight_decay=0.01),
        objective=Objective(loss_type=loss_type, kl_coefficient=0.05),
        reference=tiny_policy(seed=1),
    )
    engine.train(policy, source, steps=3)
    return policy, source


def refused(ranks, before):
    """What each process hears when they can not agree."""

    def broken(told):
        raise RuntimeError("the store is gone")

    heard = []
    own = Library([priced(f"Get the price at {ranks.rank}.")], version=1)
    for library, decide in ((own, lambda _: own), (before, broken)):
        try:
            synchronise(library, {}, decide, ranks=ranks)
        except (TrainingError, RuntimeError) as error:
            heard.append([type(error).__name__, str(error)])
    return heard


def exchanged(ranks, sizes):
    """Whether texts came as they were sent, each of another length in each process."""
    heard = []
    for size in sizes:
        own = [chr(97 + rank) * (size if rank else 1) for rank in range(ranks.world)]
        heard.append(ranks.gather(own[ranks.rank]) == (own if ranks.rank == 0 else ()))
        heard.append(ranks.broadcast("b" * size if ranks.rank == 0 else None) == "b" * size)
    return heard


def main(recorded, folder, sizes):
    torch.set_num_threads(1)
    ranks = joined_ranks()
    told = {}
    for loss_type in ("grpo", "bnpo", "dapo"):
        policy, source = trained(ranks, made(recorded), loss_type)
        weights = torch.cat([one.detach().flatten() for one in policy.model.parameters()])
        torch.save(weights, Path(folder) / f"{loss_type}-{ranks.rank}.pt")
        told[loss_type] = {
            "versions": source.versions,
            "digest": source.library.digest,
            "text": source.library["get_price"].definition.text,
            "losses": [one.loss for one in source.reports],
        }
    told["exchanged"] = exchanged(ranks, json.loads(sizes))
    told["refused"] = refused(ranks, Library([priced("Get the price.")], version=1))
    (Path(folder) / f"{ranks.rank}.json").write_text(json.dumps(told))
    atexit.register(print, "The interpreter is taken down.")  # it aborts on gloo's threads then
    end_together()


if __name__ == "__main__":
    main(*sys.argv[1:])
