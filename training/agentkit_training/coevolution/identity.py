"""Which run a checkpoint belongs to, and in what two runs differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentkit.evaluation import Benchmark
from agentkit.evaluation.task_files import task_to_json
from agentkit.tools.canonical import digest
from agentkit_training.coevolution.parts import described
from agentkit_training.coevolution.source import Coevolution
from agentkit_training.differing import Difference, differing
from agentkit_training.policy.policy import Policy

_MAY_DIFFER = frozenset({"steps", "epochs"})
"""A run may be made longer; what it did until then would have been the same."""


def identity(policy: Policy, source: Coevolution) -> dict[str, Any]:
    """What must be the same for a run to go on: settings, policy, tasks and reward, as JSON.

    Weights are told by names, shapes and precision; what they hold is the checkpoint's business.
    Rewards, weightings and interfaces are told by their settings, see ``described``.
    """
    settings = source.settings.to_json()
    shapes = {
        name: [list(one.shape), str(one.dtype)]
        for name, one in policy.model.named_parameters()
        if one.requires_grad
    }
    asking = {**source.asking.to_json(), "instructions": source.asking.instructions}
    model = source.model.name
    return {
        **({} if model == policy.name else {"rollout_model": model}),
        "settings": {name: one for name, one in settings.items() if name not in _MAY_DIFFER},
        "policy": {"name": policy.name, "weights": len(shapes), "shapes": digest(shapes)[:12]},
        "tasks": _tasks(source.benchmark),
        "asking": asking,
        "reward": described(source.reward),
        "weighting": described(source.weighting),
        "interface": described(source.interface),
        "world": source.ranks.world,
    }


def differences(kept: Mapping[str, Any], given: Mapping[str, Any]) -> list[str]:
    """Everything in which two identities differ, a line each.

    Example:
        >>> differences({"settings": {"seed": 1}}, {"settings": {"seed": 2}})
        ['settings.seed: the checkpoint has 1, this run 2']
    """
    return [_told(one) for one in differing(kept, given)]


def _told(found: Difference) -> str:
    if found.place == "world":
        return (
            f"world: the checkpoint is of {found.kept} process{'es' if found.kept != 1 else ''}, "
            f"and {found.given} were started; shares of rollouts are summed up and rounded "
            "otherwise"
        )
    return f"{found.place}: the checkpoint has {found.kept!r}, this run {found.given!r}"


def _tasks(benchmark: Benchmark) -> dict[str, Any]:
    """A benchmark by its questions, answers and tools; worlds are functions, told by nobody."""
    asked = [task_to_json(one) for one in benchmark.tasks]
    tools = {one.name: one.digest for one in benchmark.definitions}
    return {
        "benchmark": benchmark.name,
        "tasks": len(asked),
        "asked": digest(asked)[:12],
        "tools": digest(tools)[:12],
    }
