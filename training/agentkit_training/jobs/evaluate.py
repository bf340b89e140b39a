"""Asking what a run left, and any other model; handing over what a run has learned so far."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from agentkit._waiting import wait_for
from agentkit.errors import UsageError
from agentkit.evaluation import (
    Benchmark,
    EvaluationReport,
    EvaluationSettings,
    summarise,
)
from agentkit.evaluation.settings import ToolSource
from agentkit.library import Library
from agentkit.models.base import ChatModel, resolve_model
from agentkit.retrieval import Retriever
from agentkit_training.coevolution.checkpoint import LIBRARY as KEPT_LIBRARY, newest_checkpoint
from agentkit_training.coevolution.tasks import with_composites
from agentkit_training.config.jobs import CoevolveConfig, PolicySection
from agentkit_training.config.reading import parse_config
from agentkit_training.errors import CheckpointError, ExportError
from agentkit_training.export.handover import (
    LIBRARY as HANDED_LIBRARY,
    Handover,
    hand_over,
    load_handover,
    restored_store,
)
from agentkit_training.jobs.running import HANDOVER, LIBRARY, POLICY, began_as_gguf
from agentkit_training.policy.saving import CONFIG as ADAPTER_CONFIG, restore_weights
from agentkit_training.rollout.collecting import collect
from agentkit_training.rollout.policy_model import PolicyModel
from agentkit_training.runs import CONFIG, RunDirectory


def evaluate_job(
    model: ChatModel,
    benchmark: Benchmark,
    settings: EvaluationSettings,
    *,
    library: Library | None = None,
    attempts: int = 1,
    temperature: float = 0.0,
    concurrency: int = 4,
    retriever: Retriever | None = None,
    command: str = "",
) -> EvaluationReport:
    """Ask every task.

    Args:
        model: A policy, or any chat model of the runtime: hosted ones and local weights with an
            adapter are asked in the same way.
        benchmark: The tasks; composites of the library are offered beside what they are made of.
        settings: How to ask.
        library: What the tools are called and described as; None for the tasks' own.
        attempts: Tries at each task, for pass@k and pass^k.
        temperature: Of sampling; 0 is greedy.
        concurrency: Attempts under way at the same time, with a model that is no policy.
        retriever: Finds tools, where ``settings`` want that; None for the default one.
        command: How to repeat it, for the reader.

    Raises:
        RunError: The model failed again and again.
    """
    rollouts = wait_for(
        collect(
            model,
            benchmark if library is None else with_composites(benchmark, library),
            library=library,
            attempts=attempts,
            temperature=temperature,
            seed=0 if isinstance(model, PolicyModel) else None,
            settings=settings,
            retriever=retriever,
            concurrency=None if isinstance(model, PolicyModel) else concurrency,
        )
    )
    planned = Counter(task.category for task in benchmark.tasks for _ in range(attempts))
    episodes = [episode for one in rollouts for episode in one.episodes]
    return summarise(episodes, planned=planned, command=command)


def combinations(
    handed: Handover,
    benchmark: Benchmark,
    settings: EvaluationSettings,
    *,
    tell: Callable[[str], None],
) -> Iterator[tuple[bool, bool, EvaluationReport]]:
    """Ask held-out tasks through the runtime: each model with each library.

    Nothing of training is in the way: the model is llama.cpp with the handed-over adapter or
    weights, the library is the artifact, and decoding is constrained as the runtime does it.

    Args:
        handed: What training handed over.
        benchmark: Tasks that nothing was learned from.
        settings: How to ask.
        tell: Told what is asked next.

    Yields:
        Whether the model is the trained one, whether the library is the evolved one, and what the
        runtime's evaluation found.
    """
    asking = replace(settings, tool_choice="required")
    libraries = {False: None, True: None if handed.artifact is None else handed.artifact.library}
    for is_trained in (False, True):
        model = resolve_model(handed.model if is_trained else handed.base)
        try:
            for is_evolved, library in libraries.items():
                if is_evolved and library is None:
                    continue
                tell(f"{model.name}, {'evolved' if is_evolved else 'original'} library")
                # one model in one process answers one request after the other
                report = evaluate_job(model, benchmark, asking, library=library, concurrency=1)
                yield is_trained, is_evolved, report
        finally:
            close_model(model)


def close_model(model: ChatModel) -> None:
    """Free what a model holds, where it holds anything."""
    close = getattr(model, "close", None)
    closing = None if close is None else close()
    if inspect.iscoroutine(closing):  # a model with connections closes them asynchronously
        wait_for(closing)


@dataclass(frozen=True, kw_only=True)
class Trained:
    """What a run left behind, ready to be asked.

    Attributes:
        model: The trained model; the one that the run began with, where only the library changed.
        library: The evolved library's artifact; None where the library stayed as it was.
        tools: Whether the run's tasks named their tools, or retrieval found them.
    """

    model: ChatModel
    library: Path | None
    tools: ToolSource = "given"


def trained_by(run: RunDirectory, policy: PolicySection) -> Trained:
    """What a finished run has trained.

    A hand-over answers through the runtime's local model, as it will for users; a policy in
    transformers' form answers as it did in training.

    Args:
        run: The run.
        policy: How a policy in transformers' form is loaded and asked; its weights are the run's.

    Raises:
        UsageError: The run has left nothing yet.
        ExportError: Its hand-over lacks something or was changed.
        PolicyError: Its policy can not be loaded.
        ModelNotFoundError: The base weights are not installed.
    """
    tools = run.settings.get("coevolution", {}).get("tools", "given")
    if (run.path / HANDOVER).is_dir():
        handed = handover_of(run)
        library = None if handed.artifact is None else handed.folder / HANDED_LIBRARY
        return Trained(model=resolve_model(handed.model), library=library, tools=tools)
    left, own = run.path / POLICY, run.path / LIBRARY
    if not own.is_file() and not left.is_dir():
        raise UsageError(
            f"{run.path} has left nothing that can be asked: it has neither {HANDOVER}/, {POLICY}/ "
            f"nor {LIBRARY}. They are there when a run has ended; go on with it by adding --resume "
            "to its command"
        )
    section = replace(policy, weights=run.settings["policy"]["weights"], lora=None, adapter="")
    if (left / ADAPTER_CONFIG).is_file():
        section = replace(section, adapter=str(left))
    elif left.is_dir():
        section = replace(section, weights=str(left))
    return Trained(
        model=section.model(section.load()), library=own if own.is_file() else None, tools=tools
    )


def handover_of(run: RunDirectory) -> Handover:
    """The hand-over of a finished run, on the base weights that its configuration names.

    Raises:
        ExportError: Something is missing, was changed, or does not fit.
        ModelNotFoundError: The base weights are not installed.
    """
    weights = run.settings["policy"]["weights"]
    base = None if weights.startswith("local:") else weights
    return load_handover(run.path / HANDOVER, base=base)


def export_job(folder: Path, target: Path) -> Handover:
    """Hand over what a run of ``coevolve`` or ``grpo`` has learned so far.

    Args:
        folder: The run.
        target: Where to.

    Raises:
        UsageError: It is no such run.
        CheckpointError: It has no checkpoint yet.
        ExportError: Its weights did not begin as GGUF, which the local model needs.
    """
    run = RunDirectory(folder)
    try:
        config = parse_config(
            yaml.safe_dump(run.settings), CoevolveConfig, name=str(run.path / CONFIG)
        )
    except UsageError as error:
        raise UsageError(
            f"{folder} is no run of coevolve or grpo; a run of sft has its hand-over when it "
            f"ends: {error}"
        ) from error
    if not began_as_gguf(config.policy.weights):
        raise ExportError(
            f"{folder} trains {config.policy.weights}, which did not begin as GGUF, and the "
            "runtime's local model takes nothing else; when such a run ends, its folder has "
            "'policy', as transformers and PEFT load it, and 'library.json'"
        )
    newest = newest_checkpoint(run.checkpoints)
    if newest is None:
        raise CheckpointError(
            f"{folder} has no checkpoint yet; wait for its first one, after "
            f"{config.watch.checkpoint_every} steps (checkpoint_every of the section watch)"
        )
    policy = config.policy.load(seed=config.coevolution.seed)
    restore_weights(policy, newest)
    is_evolved = config.coevolution.changes_library
    return hand_over(
        target,
        base=config.policy.weights,
        policy=policy if config.has_own_weights else None,
        store=restored_store(newest / KEPT_LIBRARY) if is_evolved else None,
    )
