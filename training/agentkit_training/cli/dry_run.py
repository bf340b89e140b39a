"""What a run would do: tasks, steps and prompts, without weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit.cli.output import print_text
from agentkit_training.cli.planning import show_layout

if TYPE_CHECKING:
    from agentkit_training.config.jobs import CoevolveConfig
    from agentkit_training.config.sections import PolicySection
    from agentkit_training.tasks.loading import TaskSpec
    from agentkit_training.tasks.splits import TaskSplits


def show_tasks(policy: PolicySection, tasks: TaskSpec) -> TaskSplits:
    """Load the tasks, and say what would be trained on them.

    Args:
        policy: Which model.
        tasks: What it would learn from.
    """
    from agentkit_training.fine_tuning.teaching import left_out_rows
    from agentkit_training.tasks.loading import load_tasks_for_training

    parts = load_tasks_for_training(tasks)
    sizes = ", ".join(f"{count} to {name}" for name, count in _named(parts.sizes))
    print_text(f"{parts.train.name}: {sizes}; {len(parts.train.definitions)} tools.")
    if told := left_out_rows(parts, tasks):
        print_text(f"{told}.")
    trained = "all weights" if policy.lora is None else f"adapters of rank {policy.lora.rank}"
    print_text(f"{policy.weights}, {policy.precision}, {policy.device}: trains {trained}.")
    return parts


def show_run(config: CoevolveConfig, *, processes: int) -> None:
    """Say what a run of ``grpo`` or ``coevolve`` would do, and what its devices would hold.

    Args:
        config: The run.
        processes: How many were started; 1 for as many as the configuration is laid out for.
    """
    from agentkit_training.coevolution.tasks import step_count
    from agentkit_training.plan.layout import layout_of

    policy, coevolution = config.policy, config.coevolution
    parts = show_tasks(policy, config.tasks)
    steps = step_count(parts.train.tasks, coevolution)
    rollouts = coevolution.tasks_per_step * coevolution.group_size
    print_text(
        f"{steps} steps of {rollouts} rollouts, of up to {policy.answer_tokens} tokens a turn: at "
        f"most {steps * rollouts * policy.answer_tokens:,} tokens are written for one turn each."
    )
    on = [name for name in _SWITCHES if getattr(coevolution, name)]
    print_text(f"What learns beside the policy: {', '.join(on) or 'nothing (plain GRPO)'}.")
    print_text(f"Engine: {_engine(config)}.")
    count = processes if processes > 1 else config.hardware.processes
    show_layout(layout_of(config, parts.train, processes=count))


def _engine(config: CoevolveConfig) -> str:
    engine = config.engine
    if config.frozen:
        return "none, the policy is frozen"
    told: list[str] = [engine.name]
    told += [] if engine.sharding == "none" else [f"what is trained in shares ({engine.sharding})"]
    told += [] if engine.vllm is None else [f"rollouts written by vLLM ({engine.vllm.mode})"]
    return ", ".join(told)


_SWITCHES = ("evolution", "feedback", "evidence", "composites", "interface", "weighting")
_USES = {"train": "train on", "validation": "choose by", "test": "report"}


def _named(sizes: dict[str, int]) -> list[tuple[str, int]]:
    return [(_USES[name], size) for name, size in sizes.items()]
