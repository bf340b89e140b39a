"""The runtime's own answers with and without what training made: the four combinations."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from agentkit._waiting import wait_for
from agentkit.errors import UsageError
from agentkit.evaluation import Benchmark, EvaluationReport, EvaluationSettings
from agentkit.evaluation.settings import ToolSource
from agentkit.library import Library
from agentkit.models.base import ChatModel
from agentkit.models.resolve import resolve_model
from agentkit_training.config.reading import parse_config
from agentkit_training.config.sections import EvaluationConfig, PolicySection
from agentkit_training.export.handover import (
    LIBRARY as HANDED_LIBRARY,
    Handover,
    load_handover,
)
from agentkit_training.jobs.ending import (
    HANDOVER,
    LIBRARY,
    POLICY,
)
from agentkit_training.jobs.export import Examination, evaluate_job
from agentkit_training.policy.saving import CONFIG as ADAPTER_CONFIG
from agentkit_training.runs.directory import RunDirectory
from agentkit_training.tasks.loading import TaskSpec, load_tasks_for_training


@dataclass(frozen=True, kw_only=True)
class Combination:
    """A model with a library, and how it did.

    Attributes:
        is_trained: Whether the model is the trained one.
        is_evolved: Whether the library is the evolved one.
        report: What the runtime's evaluation found.
    """

    is_trained: bool
    is_evolved: bool
    report: EvaluationReport

    @property
    def accuracy(self) -> float:
        """Share of the tasks that passed."""
        total = self.report.total
        return total.passed / max(1, total.attempts)


def combinations(
    handed: Handover,
    benchmark: Benchmark,
    settings: EvaluationSettings,
    *,
    tell: Callable[[str], None],
) -> Iterator[Combination]:
    """Ask held-out tasks through the runtime: each model with each library.

    Nothing of training is in the way: the model is llama.cpp with the handed-over adapter or
    weights, the library is the artifact, and decoding is constrained as the runtime does it.

    Args:
        handed: What training handed over.
        benchmark: Tasks that nothing was learned from.
        settings: How to ask.
        tell: Told what is asked next.
    """
    libraries = {False: None, True: None if handed.artifact is None else handed.artifact.library}
    for is_trained in (False, True):
        model = resolve_model(handed.model if is_trained else handed.base)
        try:
            for is_evolved, library in libraries.items():
                if is_evolved and library is None:
                    continue
                tell(f"{model.name}, {'evolved' if is_evolved else 'original'} library")
                report = _asked(model, benchmark, library, settings)
                yield Combination(is_trained=is_trained, is_evolved=is_evolved, report=report)
        finally:
            close_model(model)


def _asked(
    model: ChatModel, benchmark: Benchmark, library: Library | None, settings: EvaluationSettings
) -> EvaluationReport:
    asked = Examination(
        benchmark=benchmark,
        library=library,
        settings=replace(settings, tool_choice="required"),
        concurrency=1,  # one model in one process answers one request after the other
    )
    return evaluate_job(model, asked)


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
    own = run.path / LIBRARY
    library = own if own.is_file() else None
    if library is None and not (run.path / POLICY).is_dir():
        raise UsageError(
            f"{run.path} has left nothing that can be asked: it has neither {HANDOVER}/, {POLICY}/ "
            f"nor {LIBRARY}. They are there when a run has ended; go on with it by adding --resume "
            "to its command"
        )
    section = _as_left(run, policy)
    return Trained(model=section.model(section.load()), library=library, tools=tools)


def handover_of(run: RunDirectory) -> Handover:
    """The hand-over of a finished run, on the base weights that its configuration names.

    Raises:
        ExportError: Something is missing, was changed, or does not fit.
        ModelNotFoundError: The base weights are not installed.
    """
    weights = run.settings["policy"]["weights"]
    base = None if weights.startswith("local:") else weights
    return load_handover(run.path / HANDOVER, base=base)


def learned_from(run: RunDirectory, asked: Benchmark, spec: TaskSpec) -> int:
    """How many of the tasks that are asked are questions that a run has learned from.

    Another seed, other shares or another file than the run's put tasks into other parts.

    Args:
        run: The run.
        asked: The tasks of an evaluation, none of the part to train on.
        spec: Where they come from. The parts of one source share no question, so that the run's
            own is not loaded again.

    Raises:
        DatasetError: The run's tasks can not be loaded any more.
    """
    config = parse_config(run.config, EvaluationConfig, name=str(run.path), ignores_rest=True)
    if config.tasks == spec:
        return 0
    taught = load_tasks_for_training(config.tasks).train.tasks
    known = {turn.request for task in taught for turn in task.turns}
    return sum(any(turn.request in known for turn in task.turns) for task in asked.tasks)


def _as_left(run: RunDirectory, policy: PolicySection) -> PolicySection:
    """How to load the policy of a run: adapters on what it began with, or weights of their own."""
    begun = replace(policy, weights=run.settings["policy"]["weights"], lora=None, adapter="")
    left = run.path / POLICY
    if (left / ADAPTER_CONFIG).is_file():
        return replace(begun, adapter=str(left))
    return replace(begun, weights=str(left)) if left.is_dir() else begun
