"""What the processes of a run do at its beginning, each in its turn."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from agentkit.errors import MissingExtraError, UsageError
from agentkit_training.config.jobs import CoevolveConfig, SftConfig
from agentkit_training.distributed.ranks import Ranks, in_turn, led
from agentkit_training.fine_tuning.settings import share_of
from agentkit_training.fine_tuning.teaching import left_out_rows
from agentkit_training.jobs.beginning import begun
from agentkit_training.policy.policy import Policy
from agentkit_training.runs.directory import RunDirectory
from agentkit_training.runs.records import Listener, StepRecord
from agentkit_training.tasks.loading import load_tasks_for_training
from agentkit_training.tasks.reach import out_of_reach
from agentkit_training.tasks.splits import TaskSplits


def own_device(device: str, ranks: Ranks) -> str:
    """The device of this process.

    Args:
        device: As the configuration has it: ``cuda`` is one GPU for each process of a machine.
        ranks: The processes.

    Raises:
        UsageError: One GPU is named for several processes.

    Example:
        >>> from agentkit_training.distributed.ranks import Alone
        >>> own_device("cuda:1", Alone())
        'cuda:1'
    """
    if ranks.world == 1 or device == "cpu":
        return device
    kind, _, number = device.partition(":")
    if number:
        raise UsageError(
            f"policy.device is {device} and {ranks.world} processes were started, which would all "
            f"take it; set policy.device: {kind}, and each takes one of its own"
        )
    return f"{kind}:{os.environ.get('LOCAL_RANK', '0')}"


_TASKS = "tasks"


def check_engine(config: CoevolveConfig, ranks: Ranks) -> None:
    """Refuse an engine that can not run here, before anything is loaded.

    Raises:
        UsageError: It is for one process and several were started, or the other way round.
        MissingExtraError: It needs a package that is not installed.
    """
    _check_packages(config)
    if ranks.world == 1 and config.engine.sharding != "none":
        raise UsageError(
            f"engine.sharding is {config.engine.sharding}, and one process has nobody to share "
            "with; start several with torchrun, or leave it out"
        )
    if ranks.world > 1 and config.engine.name == "lean" and not config.frozen:
        raise UsageError(
            f"engine.name is lean, which trains in one process, and {ranks.world} were started; "
            "set engine.name: trl (--set engine.name=trl), or start it without torchrun"
        )


def _check_packages(config: CoevolveConfig) -> None:
    if config.frozen:
        return
    if config.engine.vllm is not None and find_spec("vllm") is None:
        raise MissingExtraError(
            "engine.vllm", package="vllm", install="pip install 'agentkit-training[vllm]'"
        )
    if config.engine.sharding == "zero3" and find_spec("deepspeed") is None:
        raise MissingExtraError(
            "engine.sharding zero3",
            package="deepspeed",
            install="pip install 'agentkit-training[deepspeed]'",
        )


def check_fine_tuning(config: SftConfig, *, processes: int, resumes: bool = False) -> None:
    """Refuse what fine-tuning in several processes does not do, before anything is loaded.

    Args:
        config: The run.
        processes: How many there are, or would be.
        resumes: Whether a run that is there is gone on with.

    Raises:
        UsageError: It is asked for.
    """
    if processes == 1:
        return
    if config.toolace is not None:
        raise UsageError(
            f"the rounds of toolace run in one process, and there are {processes}; start it "
            "without torchrun, and leave hardware.devices at 1"
        )
    share_of(config.sft.batch_size, processes)
    if resumes:
        raise UsageError(
            "fine-tuning in several processes keeps no checkpoint to go on from; begin anew in "
            "another --output"
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Beginning:
    """What every run begins with.

    Attributes:
        parts: The tasks.
        run: The folder.
        policy: On a device of this process's own.
    """

    parts: TaskSplits
    run: RunDirectory
    policy: Policy


def started(
    config: SftConfig | CoevolveConfig,
    folder: Path,
    ranks: Ranks,
    *,
    seed: int,
    command: str,
    resumes: bool,
) -> Beginning:
    """Load the tasks, make the folder or take it up, load the policy; every process calls it.

    Args:
        config: The run.
        folder: Where it is kept.
        ranks: The processes.
        seed: Of the run.
        command: What was typed, for the record.
        resumes: Whether a run that is there is gone on with.

    Raises:
        UsageError: The configuration can not be used, or a process does not see the folder.
        TrainingError: The run can not go on.
    """
    parts = in_turn(ranks, lambda: load_tasks_for_training(config.tasks))
    if not parts.validation.tasks and (key := _chooses_by_validation(config)):
        raise UsageError(
            f"{key} chooses by the validation tasks, and there are none; give some "
            "(tasks.validation, tasks.shares)"
        )
    run = _shared_run(
        folder,
        ranks,
        lambda: begun(
            folder,
            config,
            command=command,
            seeds={"run": seed, "tasks": config.tasks.seed},
            data=parts.digests,
            resumes=resumes,
        ),
    )
    held = replace(config.policy, device=own_device(config.policy.device, ranks))
    return Beginning(parts=parts, run=run, policy=held.load(seed=seed))


def tell_of_tasks(
    parts: TaskSplits, config: SftConfig | CoevolveConfig, run: RunDirectory, log: Listener
) -> None:
    """Note once in the log of a run which rows are no tasks, and which tasks nobody can pass.

    Rank 0 alone calls it, since it reads the log.

    Args:
        parts: What was loaded.
        config: What was asked for.
        run: The folder of the run.
        log: Where the note goes.
    """
    if any(one.phase == _TASKS for one in run.records()):
        return
    told = (left_out_rows(parts, config.tasks), out_of_reach(parts, config.asking.max_steps))
    if notes := tuple(filter(None, told)):
        log(StepRecord(step=0, phase=_TASKS, notes=notes))


def _chooses_by_validation(config: SftConfig | CoevolveConfig) -> str:
    """The key that asks for validation tasks; empty for none."""
    if isinstance(config, SftConfig):
        return "toolace" if config.toolace is not None else ""
    wanted = config.coevolution
    is_asked = wanted.changes_library and wanted.acceptance != "validation"
    return f"coevolution.acceptance {wanted.acceptance}" if is_asked else ""


def _shared_run(folder: Path, ranks: Ranks, begin: Callable[[], RunDirectory]) -> RunDirectory:
    """The folder of a run: rank 0 makes it, the others look at it.

    Args:
        folder: Where.
        ranks: The processes.
        begin: Makes the folder.

    Raises:
        UsageError: A process does not see the folder.
        PeerError: Rank 0 could not make it; raised elsewhere.
    """
    run = led(ranks, lambda _: begin())
    if run is not None:
        return run
    try:
        return RunDirectory(folder)
    except UsageError as error:
        raise UsageError(
            f"process {ranks.rank} does not see {folder}, which process 0 made; give an --output "
            "that all machines share"
        ) from error
