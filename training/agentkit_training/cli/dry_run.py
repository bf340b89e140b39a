"""What a run would do: tasks, steps and prompts, without weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit.cli.output import print_text, say
from agentkit_training.cli.plan import counted, show_layout

if TYPE_CHECKING:
    from agentkit_training.config.jobs import CoevolveConfig, SftConfig
    from agentkit_training.fine_tuning.settings import SftSettings
    from agentkit_training.fine_tuning.solutions import Solutions
    from agentkit_training.tasks.splits import TaskSplits


def show_tasks(config: SftConfig | CoevolveConfig) -> TaskSplits:
    """Load the tasks, and say what would be trained on them.

    Args:
        config: The run.
    """
    from agentkit_training.fine_tuning.teaching import left_out_rows
    from agentkit_training.tasks.loading import load_tasks_for_training
    from agentkit_training.tasks.reach import out_of_reach

    policy = config.policy
    parts = load_tasks_for_training(config.tasks)
    sizes = ", ".join(f"{count} to {name}" for name, count in _named(parts.sizes))
    print_text(f"{parts.train.name}: {sizes}; {counted(len(parts.train.definitions), 'tool')}.")
    if told := left_out_rows(parts, config.tasks):
        print_text(f"{told}.")
    if told := out_of_reach(parts, config.asking.max_steps):
        say(f"Warning: {told}")
    trained = "all weights" if policy.lora is None else f"adapters of rank {policy.lora.rank}"
    print_text(f"{policy.weights}, {policy.precision}, {policy.device}: trains {trained}.")
    return parts


def show_run(config: CoevolveConfig, *, processes: int) -> None:
    """Say what a run of ``grpo`` or ``coevolve`` would do, and what its devices would hold.

    Args:
        config: The run.
        processes: How many were started; 1 for as many as the configuration is laid out for.
    """
    from agentkit_training.coevolution.tasks import step_count, tries_in_all
    from agentkit_training.plan.layout import layout_of

    policy, coevolution = config.policy, config.coevolution
    parts = show_tasks(config)
    if config.cold_start is not None:
        known = _solutions(config, parts)
        print_text(f"Cold start: teaches {_told(known)}, {_steps(known, config.cold_start)}.")
        _show_left_out(known)
    steps = step_count(parts.train.tasks, coevolution)
    most = min(coevolution.tasks_per_step, len(parts.train.tasks)) * coevolution.group_size
    rollouts = tries_in_all(parts.train.tasks, coevolution) * coevolution.group_size
    print_text(
        f"{counted(steps, 'step')} of up to {most} rollouts, {rollouts:,} in all, of up to "
        f"{policy.answer_tokens} tokens a turn: at most {rollouts * policy.answer_tokens:,} tokens "
        "are written for one turn each."
    )
    on = [name for name in _SWITCHES if getattr(coevolution, name)]
    print_text(f"What learns beside the policy: {', '.join(on) or 'nothing (plain GRPO)'}.")
    print_text(f"Engine: {_engine(config)}.")
    count = processes if processes > 1 else config.hardware.processes
    show_layout(layout_of(config, parts, processes=count))


def show_tuning(config: SftConfig, *, processes: int) -> None:
    """Say what a run of ``sft`` would teach, and what its devices would hold.

    Solutions are acted out, so that those that fail are told before weights are there. Which
    examples are too long is known with the tokenizer alone.

    Args:
        config: The run.
        processes: How many were started; 1 for as many as the configuration is laid out for.

    Raises:
        UsageError: There is nothing to teach; it says why.
    """
    from agentkit_training.jobs.joining import check_fine_tuning
    from agentkit_training.plan.layout import layout_of

    count = processes if processes > 1 else config.hardware.processes
    check_fine_tuning(config, processes=count)
    parts = show_tasks(config)
    known = _solutions(config, parts, no_call=config.no_call, rounds=config.toolace is not None)
    told, wanted = _told(known), config.toolace
    if wanted is None:
        print_text(f"Teaches {told}: {_steps(known, config.sft)}.")
    else:
        most = counted(wanted.rounds, "round")
        print_text(
            f"Up to {most} on {told}; {wanted.attempts} samples of each tell which are taught, "
            f"{config.sft.batch_size} in a step."
        )
    _show_left_out(known)
    show_layout(layout_of(config, parts, processes=count))


def _solutions(
    config: SftConfig | CoevolveConfig,
    parts: TaskSplits,
    *,
    no_call: str = "",
    rounds: bool = False,
) -> Solutions:
    """What the training tasks would be taught with; each was acted out where that can be done."""
    from agentkit._waiting import wait_for
    from agentkit_training.coevolution.tasks import with_composites
    from agentkit_training.fine_tuning.rehearsing import rehearsed
    from agentkit_training.fine_tuning.solutions import answers_of, solutions_of
    from agentkit_training.fine_tuning.teaching import nothing_to_teach
    from agentkit_training.jobs.ending import library_of

    asking = config.asked
    prompting = config.policy.prompting()
    known = (
        answers_of(parts.train, no_call=no_call)
        if rounds
        else solutions_of(
            parts.train, config.tasks, no_call=no_call, prompting=prompting, settings=asking
        )
    )
    tasks, library = parts.train, library_of(config.library)
    if library is not None:
        tasks = with_composites(tasks, library)
    known = wait_for(rehearsed(known, tasks, library=library, settings=asking))
    if not (known.answers or known.trajectories):
        raise nothing_to_teach(parts.train, known.left_out)
    return known


def _show_left_out(known: Solutions) -> None:
    from agentkit_training.fine_tuning.teaching import left_out_notes

    for note in left_out_notes(known.left_out):
        print_text(f"{note}.")


def _told(known: Solutions) -> str:
    """How many solutions there are of each kind."""
    answers, longer = len(known.answers), len(known.trajectories)
    told = [counted(answers, "answer")] if answers else []
    told += [counted(longer, "trajectory", "trajectories")] if longer else []
    return " and ".join(told)


def _steps(known: Solutions, settings: SftSettings) -> str:
    count = len(known.answers) + len(known.trajectories)
    steps = -(-count // settings.batch_size) * settings.epochs
    return f"{counted(steps, 'step')} of up to {settings.batch_size}"


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
