"""What a run would do: tasks, steps and prompts, without weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit.cli.output import print_text

if TYPE_CHECKING:
    from agentkit_training.coevolve.settings import CoevolutionSettings
    from agentkit_training.config.sections import PolicySection
    from agentkit_training.tasks.loading import TaskSpec


def show_plan(
    policy: PolicySection, tasks: TaskSpec, coevolution: CoevolutionSettings | None = None
) -> None:
    """Load the tasks, and say what would be trained on them.

    Args:
        policy: Which model.
        tasks: What it would learn from.
        coevolution: How many rollouts, where there are any.
    """
    from agentkit_training.tasks.loading import load_tasks_for_training

    parts = load_tasks_for_training(tasks)
    sizes = ", ".join(f"{count} to {name}" for name, count in _named(parts.sizes))
    print_text(f"{parts.train.name}: {sizes}; {len(parts.train.definitions)} tools.")
    for one in parts.train.left_out[:3]:
        print_text(f"left out: {one}")
    trained = "all weights" if policy.lora is None else f"adapters of rank {policy.lora.rank}"
    print_text(f"{policy.weights}, {policy.precision}, {policy.device}: trains {trained}.")
    if coevolution is None:
        return
    from agentkit_training.coevolve.tasks import step_count

    steps = step_count(parts.train.tasks, coevolution)
    rollouts = coevolution.tasks_per_step * coevolution.group_size
    print_text(
        f"{steps} steps of {rollouts} rollouts, of up to {policy.answer_tokens} tokens a turn: at "
        f"most {steps * rollouts * policy.answer_tokens:,} tokens are written for one turn each."
    )
    on = [name for name in _SWITCHES if getattr(coevolution, name)]
    print_text(f"What learns beside the policy: {', '.join(on) or 'nothing (plain GRPO)'}.")


_SWITCHES = ("evolution", "feedback", "evidence", "composites", "interface", "weighting")
_USES = {"train": "train on", "validation": "choose by", "test": "report"}


def _named(sizes: dict[str, int]) -> list[tuple[str, int]]:
    return [(_USES[name], size) for name, size in sizes.items()]
