"""What every run does: begin in each process, measure, and leave something behind."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from agentkit._waiting import wait_for
from agentkit.errors import MissingExtraError, UsageError
from agentkit.evaluation import Benchmark, EvaluationSettings
from agentkit.evolution.repository import LibraryStore
from agentkit.library import Library
from agentkit.models.base import ChatModel
from agentkit.retrieval import Retriever
from agentkit_training.coevolution.source import told_by_all
from agentkit_training.config.jobs import CoevolveConfig, SftConfig
from agentkit_training.config.reading import written_config
from agentkit_training.distributed.ranks import ALONE, Beat, Ranks, in_turn, led
from agentkit_training.export.handover import export_library, hand_over
from agentkit_training.fine_tuning.teaching import left_out_rows
from agentkit_training.policy.lora import save_adapter
from agentkit_training.policy.policy import Policy
from agentkit_training.policy.saving import save_policy
from agentkit_training.report import run_html
from agentkit_training.rollout.collecting import collect
from agentkit_training.rollout.samples import Rollout
from agentkit_training.runs import Listener, RunDirectory, StepRecord, begun, ignore, run_log
from agentkit_training.tasks.loading import load_tasks_for_training, out_of_reach
from agentkit_training.tasks.splits import TaskSplits

HANDOVER, POLICY, LIBRARY, REPORT = "handover", "policy", "library.json", "report.html"
_TASKS = "tasks"


# Beginning


def own_device(device: str, ranks: Ranks) -> str:
    """The device of this process.

    Args:
        device: As the configuration has it: ``cuda`` is one GPU for each process of a machine.
        ranks: The processes.

    Raises:
        UsageError: One GPU is named for several processes.

    Example:
        >>> own_device("cuda:1", ALONE)
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


def check_engine(config: CoevolveConfig, ranks: Ranks) -> None:
    """Refuse an engine that can not run here, before anything is loaded.

    Raises:
        UsageError: It is for one process and several were started.
        MissingExtraError: It needs a package that is not installed.
    """
    if config.frozen:
        return
    if config.engine.vllm is not None and find_spec("vllm") is None:
        raise MissingExtraError(
            "engine.vllm", package="vllm", install="pip install 'agentkit-training[vllm]'"
        )
    if ranks.world > 1 and config.engine.name == "lean":
        raise UsageError(
            f"engine.name is lean, which trains in one process, and {ranks.world} were started; "
            "set engine.name: trl (--set engine.name=trl), or start it without torchrun"
        )


def check_fine_tuning(config: SftConfig, *, processes: int) -> None:
    """Refuse what fine-tuning in several processes does not do, before anything is loaded.

    Args:
        config: The run.
        processes: How many there are, or would be.

    Raises:
        UsageError: It is asked for.
    """
    if processes > 1 and config.toolace is not None:
        raise UsageError(
            f"the rounds of toolace run in one process, and there are {processes}; start it "
            "without torchrun"
        )


@dataclass(frozen=True, kw_only=True)
class Started:
    """What every run begins with.

    Attributes:
        parts: The tasks.
        run: The folder.
        policy: On a device of this process's own.
        ranks: The processes.
    """

    parts: TaskSplits
    run: RunDirectory
    policy: Policy
    ranks: Ranks

    def log(
        self, config: SftConfig | CoevolveConfig, listen: Listener
    ) -> AbstractContextManager[Listener]:
        """Where records go: at rank 0 to log, trackers and listener, elsewhere nowhere."""
        if self.ranks.rank:
            return nullcontext(ignore)
        return run_log(
            self.run.append, trackers=config.watch.trackers, folder=self.run.path, listen=listen
        )

    def kept(self, stays: Callable[[StepRecord], bool]) -> list[StepRecord]:
        """What stays of the log of a run that goes on, in each process; the rest is dropped."""

        def look(_: Beat) -> list[str]:
            self.run.rewind(stays)
            return [one.to_line() for one in self.run.records()]

        lines = self.ranks.broadcast(led(self.ranks, look))
        return [StepRecord.from_json(json.loads(one)) for one in lines]


def started(
    config: SftConfig | CoevolveConfig,
    folder: Path,
    ranks: Ranks,
    *,
    seed: int,
    command: str,
    resumes: bool,
) -> Started:
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
    selects = isinstance(config, SftConfig) and config.toolace is not None
    if selects and not parts.validation.tasks:
        raise UsageError(
            "toolace chooses by the validation tasks, and there are none; give some "
            "(tasks.validation, tasks.shares)"
        )
    led(
        ranks,
        lambda _: begun(
            folder,
            written_config(config),
            command=command,
            seeds={"run": seed, "tasks": config.tasks.seed},
            data=parts.digests,
            resumes=resumes,
        ),
    )
    try:
        run = RunDirectory(folder)
    except UsageError as error:
        raise UsageError(
            f"process {ranks.rank} does not see {folder}, which process 0 made; give an --output "
            "that all machines share"
        ) from error
    held = replace(config.policy, device=own_device(config.policy.device, ranks))
    return Started(parts=parts, run=run, policy=held.load(seed=seed), ranks=ranks)


def tell_of_tasks(at: Started, config: SftConfig | CoevolveConfig, log: Listener) -> None:
    """Note once, at rank 0, which rows are no tasks, and which tasks nobody can pass."""
    if at.ranks.rank or any(one.phase == _TASKS for one in at.run.records()):
        return
    told = (left_out_rows(at.parts, config.tasks), out_of_reach(at.parts, config.asking.max_steps))
    if notes := tuple(filter(None, told)):
        log(StepRecord(step=0, phase=_TASKS, notes=notes))


# Measuring


def measured(
    model: ChatModel,
    benchmark: Benchmark,
    *,
    step: int,
    phase: str = "evaluate",
    library: Library | None = None,
    settings: EvaluationSettings | None = None,
    retriever: Retriever | None = None,
    ranks: Ranks = ALONE,
) -> StepRecord:
    """How many tasks the policy passes, greedily answered, through the evaluation's own door.

    Several processes share the tasks out, and come to one record. One of them could do all, but
    the others would wait for it as many times longer, and in vain. Tasks that are broken are not
    judged. One that the policy could not answer is, as not solved: a policy that fills its window
    would else be measured on what it leaves over.

    Args:
        model: The policy, or what tries tasks in its place.
        benchmark: The tasks.
        step: Training steps before it.
        phase: Its name in the log.
        library: What the tools are called and described as.
        settings: How to ask.
        retriever: Finds tools, see ``collect``.
        ranks: The processes that hold the policy; all of them must call this.
    """
    own = replace(benchmark, tasks=benchmark.tasks[ranks.rank :: ranks.world])
    found: Sequence[Rollout] = ()
    if own.tasks:
        asked = collect(
            model,
            own,
            library=library,
            attempts=1,
            temperature=0,
            settings=settings,
            retriever=retriever,
        )
        found = wait_for(asked)
    told = [one for share in told_by_all(found, ranks) for one in share]
    solved = [one for one in told if one.passed and not one.fault]
    faults = [one.fault for one in told if one.fault]
    judged = sum(not one.is_broken for one in told)
    figures = {"accuracy": len(solved) / max(1, judged), "tasks": len(told), "faults": len(faults)}
    if solved:
        figures["calls_per_solved"] = sum(one.calls for one in solved) / len(solved)
    note = f"{len(faults)} of {len(told)} tasks could not be asked, answered or judged"
    return StepRecord(
        step=step,
        phase=phase,
        figures=figures,
        labels=Counter(label for one in told for label in one.labels),
        notes=(f"{note}; the first: {faults[0]}",) if faults else (),
    )


# Ending


def ended(
    run: RunDirectory, *, policy: Policy | None, base: str, store: LibraryStore | None
) -> None:
    """Write what the runtime takes, and the report.

    Weights that began as GGUF are handed over as the local model loads them (``handover/``). Of
    others the runtime's local model can not take adapters, so that they are saved as transformers
    load them (``policy/``), beside the library's artifact.

    Args:
        run: The run.
        policy: What was trained; None where it stayed as it was.
        base: The weights that training began with, as the configuration names them.
        store: What the Tool Manager wrote to; None where only weights were trained.
    """
    if began_as_gguf(base):
        if policy is not None or store is not None:
            hand_over(run.path / HANDOVER, base=base, policy=policy, store=store)
    else:
        if policy is not None:
            save = save_adapter if policy.is_adapted else save_policy
            save(policy, run.path / POLICY)
        if store is not None:
            export_library(store, run.path / LIBRARY)
    (run.path / REPORT).write_text(run_html(run), encoding="utf-8")


def began_as_gguf(base: str) -> bool:
    """Whether the runtime's local model loads what is trained on these weights.

    Args:
        base: As the configuration names them.
    """
    return base.startswith("local:") or base.endswith(".gguf")
