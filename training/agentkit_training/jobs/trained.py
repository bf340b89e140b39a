"""``trained_by``: who answers with what a run has trained, and with which library."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from agentkit.errors import UsageError
from agentkit.evaluation import Benchmark
from agentkit.evaluation.settings import ToolSource
from agentkit.models.base import ChatModel
from agentkit.models.resolve import resolve_model
from agentkit_training.config.evaluation import EvaluationConfig
from agentkit_training.config.reading import parse_config
from agentkit_training.config.sections import PolicySection
from agentkit_training.export.handover import LIBRARY as HANDED_LIBRARY, Handover, load_handover
from agentkit_training.jobs.ending import HANDOVER, LIBRARY, POLICY
from agentkit_training.policy.adapter_files import CONFIG as ADAPTER_CONFIG
from agentkit_training.runs.directory import RunDirectory
from agentkit_training.tasks.loading import TaskSpec, load_tasks_for_training


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
