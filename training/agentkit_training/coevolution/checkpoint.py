"""A run on disk: weights, optimiser, library with its history, memory, records.

Nothing random is kept: tasks and samples follow from seed and step. So a run that goes on from a
checkpoint does what an unbroken one does.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentkit.errors import ArtifactError, StoreError
from agentkit.evaluation.task_files import task_to_json
from agentkit.interop.export import read_artifact, write_artifact
from agentkit.messages import JsonObject
from agentkit.tools.canonical import digest
from agentkit_training.coevolution.records import CoevolutionStep, Memory
from agentkit_training.coevolution.source import Coevolution
from agentkit_training.engines.base import Engine, Share, Source, StepReport
from agentkit_training.errors import CheckpointError
from agentkit_training.files import Difference, differing, new_folder, room_beside
from agentkit_training.policy.policy import Policy
from agentkit_training.policy.saving import restore_weights, save_weights

_MAY_DIFFER = frozenset({"steps", "epochs"})
"""A run may be made longer; what it did until then would have been the same."""


def identity(policy: Policy, source: Coevolution) -> dict[str, Any]:
    """What must be the same for a run to go on: settings, policy, tasks and processes, as JSON.

    Weights are told by names, shapes and precision; what they hold is the checkpoint's business.
    Rewards, weightings and interfaces are code: a command holds its configuration against that of
    the run, and who calls ``coevolve`` gives the same ones.
    """
    shapes = {
        name: [list(one.shape), str(one.dtype)]
        for name, one in policy.model.named_parameters()
        if one.requires_grad
    }
    settings, benchmark = source.settings.to_json(), source.benchmark
    asked = [task_to_json(one) for one in benchmark.tasks]
    tools = {one.name: one.digest for one in benchmark.definitions}
    return {
        "settings": {name: one for name, one in settings.items() if name not in _MAY_DIFFER},
        "policy": {"name": policy.name, "weights": len(shapes), "shapes": digest(shapes)[:12]},
        "tasks": {  # worlds are functions, told by nobody
            "benchmark": benchmark.name,
            "tasks": len(asked),
            "asked": digest(asked)[:12],
            "tools": digest(tools)[:12],
        },
        "world": source.ranks.world,
    }


def _told(found: Difference) -> str:
    if found.place == "world":
        return (
            f"world: the checkpoint is of {found.kept} process{'es' if found.kept != 1 else ''}, "
            f"and {found.given} were started; shares of rollouts are summed up and rounded "
            "otherwise"
        )
    return f"{found.place}: the checkpoint has {found.kept!r}, this run {found.given!r}"


FORMAT_VERSION = 1
"""Version of the form of a checkpoint."""

LIBRARY = "library.json"
"""The artifact in a checkpoint: the library with its history."""

_STATE, _ENGINE = "coevolution.json", "engine"


def save_checkpoint(folder: Path, *, policy: Policy, source: Coevolution, engine: Engine) -> None:
    """Write everything that a run goes on from into ``folder``, whole or not at all.

    Args:
        folder: Its own; what is there already is replaced.
        policy: Its trainable weights are kept: all of them, or those of an adapter.
        source: The library, the memory and the records.
        engine: Its state.

    Raises:
        CheckpointError: It can not be written, the disk being full or anything else. What was
            there before stays.
    """
    artifact = source.keeper.artifact()
    state = {
        "format": FORMAT_VERSION,
        "step": len(source.records),
        "run": identity(policy, source),
        "library": {"version": artifact.library.version, "digest": artifact.library.digest},
        "memory": source.memory.to_json(),
        "records": [one.to_json() for one in source.records],
    }
    try:
        with new_folder(folder) as draft:
            save_weights(policy, draft)
            (draft / _ENGINE).mkdir()
            engine.save(draft / _ENGINE)
            write_artifact(artifact, draft / LIBRARY)
            (draft / _STATE).write_text(json.dumps(state), encoding="utf-8")
    except RuntimeError as error:  # what torch.save makes of a full disk
        raise CheckpointError(
            f"the checkpoint {folder} can not be written: {error}{room_beside(folder)}. The one "
            "before is kept; make room there and go on from it with --resume"
        ) from error


def load_checkpoint(folder: Path, *, policy: Policy, source: Coevolution, engine: Engine) -> None:
    """Put a run where it was when ``save_checkpoint`` wrote ``folder``.

    Args:
        folder: A checkpoint.
        policy: The same model with the same adapters; its weights are replaced.
        source: Of the same settings and tasks, its store empty or where the run was.
        engine: Of the same settings; it was not used yet.

    Raises:
        CheckpointError: It can not be read, or belongs to another run: everything that differs is
            named.
    """
    state = _state(folder)
    given = identity(policy, source)
    kept = {name: state["run"].get(name) for name in given}
    if isinstance(kept["settings"], dict):  # earlier releases had more
        known = given["settings"].keys()
        kept["settings"] = {key: one for key, one in kept["settings"].items() if key in known}
    if found := list(map(_told, differing(kept, given))):
        raise CheckpointError(
            f"the checkpoint {folder} belongs to another run:\n  " + "\n  ".join(found) + "\n"
            "Go on with what it was begun with, or begin a run in another folder"
        )
    try:
        artifact = read_artifact(folder / LIBRARY)
        memory = Memory.from_json(state["memory"])
        records = [CoevolutionStep.from_json(one) for one in state["records"]]
    except (OSError, ArtifactError, StoreError, KeyError, ValueError) as error:
        raise _unreadable(folder, error) from error
    source.keeper.restore(artifact)
    restore_weights(policy, folder)
    engine.restore(folder / _ENGINE)
    source.go_on(memory, records)


def newest_checkpoint(folder: Path) -> Path | None:
    """The checkpoint of the latest step in a folder of them; None when there is none."""
    found = checkpoints(folder)
    return found[-1] if found else None


def checkpoints(folder: Path) -> Sequence[Path]:
    """The whole checkpoints in a folder, by step."""
    return sorted(path for path in folder.glob("step-*") if (path / _STATE).is_file())


def step_of(checkpoint: Path) -> int:
    """How many steps had been taken when a checkpoint was written, by its name."""
    return int(checkpoint.name.removeprefix("step-"))


def _state(folder: Path) -> JsonObject:
    try:
        state: JsonObject = json.loads((folder / _STATE).read_text(encoding="utf-8"))
        version = state["format"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _unreadable(folder, error) from error
    if version != FORMAT_VERSION:
        raise CheckpointError(
            f"the checkpoint {folder} has format {version}, this agentkit-training reads "
            f"{FORMAT_VERSION}; go on with the release that wrote it"
        )
    return state


def _unreadable(folder: Path, error: Exception) -> CheckpointError:
    return CheckpointError(
        f"{folder} is no checkpoint that can be read ({type(error).__name__}: {error}); take an "
        "earlier one, or begin anew"
    )


def coevolve(
    policy: Policy,
    source: Coevolution,
    engine: Engine,
    *,
    folder: Path | None = None,
    every: int = 1,
    keep: int = 2,
) -> Coevolution:
    """Train a policy while its library learns (CoCoDA's stage 3; ToolDNA, Algorithm 1).

    Where ``folder`` holds checkpoints the run goes on from the newest one. What was under way when
    a run ended is done again: at most the steps since that checkpoint.

    Args:
        policy: What learns.
        source: The library, and what is tried.
        engine: How the policy learns.
        folder: Where checkpoints go; None writes none.
        every: After how many steps one is written.
        keep: How many are kept.

    Returns:
        The source, with records and library.

    Raises:
        CheckpointError: The checkpoint there belongs to another run, or one can not be written.
        DivergedError: The loss is not a number; the last checkpoint is from before.
    """
    if folder is None:
        engine.train(policy, source, steps=source.steps)
        return source
    newest = newest_checkpoint(folder)
    name = source.ranks.broadcast(None if newest is None else newest.name)  # one for all processes
    if name is not None:
        load_checkpoint(folder / name, policy=policy, source=source, engine=engine)
    tell = source.listen

    def keep_some(record: CoevolutionStep) -> None:
        """Write a checkpoint when one is due, in the process that decides about the library."""
        tell(record)
        done = record.step + 1
        if source.ranks.rank or (done % every and done != source.steps):
            return
        place = folder / f"step-{done:06}"
        save_checkpoint(place, policy=policy, source=source, engine=engine)
        for old in checkpoints(folder)[:-keep]:
            shutil.rmtree(old)

    source.listen = keep_some
    try:
        engine.train(policy, source, steps=source.steps)
    finally:
        source.listen = tell
    return source


_FROZEN = "frozen.json"


@dataclass(kw_only=True)
class FrozenEngine:
    """An ``Engine`` that makes rollouts and leaves the weights as they are.

    Attributes:
        share: Which part of a step's tasks this process takes.
    """

    share: Share = field(default_factory=Share)
    _step: int = field(init=False, default=0)

    def train(self, policy: Policy, source: Source, *, steps: int) -> None:
        """Ask for the rollouts of each step, and tell that nothing was learned from them."""
        while self._step < steps:
            started = time.perf_counter()
            rollouts = source.rollouts(self._step, self.share)
            report = StepReport(
                step=self._step,
                rows=sum(len(one.sequences) for one in rollouts),
                rollout_seconds=time.perf_counter() - started,
            )
            self._step += 1
            source.finished(report)

    def save(self, folder: Path) -> None:
        """Write the number of steps into ``folder``."""
        (folder / _FROZEN).write_text(json.dumps({"step": self._step}), encoding="utf-8")

    def restore(self, folder: Path) -> None:
        """Go on from what ``save`` wrote.

        Raises:
            CheckpointError: It can not be read.
        """
        try:
            self._step = int(json.loads((folder / _FROZEN).read_text(encoding="utf-8"))["step"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CheckpointError(
                f"{folder} holds no state of the frozen engine: {error}"
            ) from error
