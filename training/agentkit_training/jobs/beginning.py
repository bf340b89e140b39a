"""The folder of a run: made anew, or gone on with under the same configuration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from agentkit.errors import UsageError
from agentkit_training.config.kinds import kind_of_keys
from agentkit_training.config.reading import written_config
from agentkit_training.distributed.ranks import Ranks
from agentkit_training.errors import CheckpointError
from agentkit_training.files import Difference, differing
from agentkit_training.runs.directory import RunDirectory, provenance, settings_of
from agentkit_training.runs.records import (
    Listener,
    StepRecord,
    Tracker,
    TrackerName,
    ignore,
    open_tracker,
)


def begun(
    folder: Path,
    config: Any,
    *,
    command: str,
    seeds: Mapping[str, int],
    data: Mapping[str, str] | None = None,
    resumes: bool = False,
) -> RunDirectory:
    """The folder of a run.

    Args:
        folder: Where.
        config: The configuration's record.
        command: What was typed.
        seeds: By what they are for.
        data: Digest of each part of the tasks, by its name.
        resumes: Whether a run that is there is gone on with.

    Raises:
        UsageError: Something is there already, or nothing is there to go on with.
        CheckpointError: The run that is there has another configuration, or other tasks; the
            difference is shown. A run may be made longer where its learning rate does not follow
            the number of steps.
    """
    text = written_config(config)
    if not resumes:
        told = provenance(command=command, seeds=seeds, data=data or {})
        return RunDirectory.create(folder, config=text, provenance=told)
    if not folder.exists():
        raise UsageError(f"there is no run {folder} to go on with; leave --resume out")
    run = RunDirectory(folder)
    asked = settings_of(text)
    if kind_of_keys(run.settings) is not kind_of_keys(asked):
        raise CheckpointError(
            f"{folder} holds a run of another kind, begun with '{run.provenance.command}'; go on "
            "with that command, or begin a run in another folder"
        )
    changed = [one for one in differing(run.settings, asked) if not _is_for_plans(one)]
    if refused := [one for one in changed if not _is_longer(one, asked)]:
        lines = [f"{at.place}: {at.kept!r} in the run, {at.given!r} asked for" for at in refused]
        raise CheckpointError(
            f"{folder} was begun with another configuration:\n  " + "\n  ".join(lines) + "\n"
            "Go on with the same, or begin a run in another folder"
        )
    _check_data(run, data or {})
    if changed:
        run.ask_for(text)
    run.rewind()
    return run


def _check_data(run: RunDirectory, data: Mapping[str, str]) -> None:
    """Hold the tasks that are there now against those that the run was begun with."""
    kept = run.provenance.data
    if other := [name for name, digest in data.items() if kept.get(name) != digest]:
        named = ", ".join(
            f"{name} ({kept.get(name, 'none')[:8]} then, {data[name][:8]} now)" for name in other
        )
        raise CheckpointError(
            f"{run.path} was begun with other tasks, by their digests: {named}. Questions, "
            "expected answers or tools have changed since; bring them back as they were, or begin "
            "a run in another folder"
        )


def _is_for_plans(changed: Difference) -> bool:
    """Whether a key says what plans reckon with, and nothing about the run."""
    return changed.place.partition(".")[0] == "hardware"


def _is_longer(changed: Difference, asked: Mapping[str, Any]) -> bool:
    """Whether a run is only to take more steps than it was begun with.

    What it did until then would have been the same, unless the learning rate follows the number of
    steps.
    """
    if changed.place not in {"coevolution.steps", "coevolution.epochs"}:
        return False
    if not (isinstance(changed.kept, int) and isinstance(changed.given, int)):
        return False
    optimizer = asked["engine"]["optimizer"]
    is_steady = optimizer["schedule"] == "constant" and not optimizer["warmup_ratio"]
    return is_steady and changed.given > changed.kept


@dataclass(kw_only=True)
class RunLog(AbstractContextManager["RunLog"]):
    """Where the records of a run go: its log, its trackers, and who listens.

    Attributes:
        run: The run's folder.
        trackers: Names of the trackers.
        listen: Is told as well.
    """

    run: RunDirectory
    trackers: tuple[TrackerName, ...] = ()
    listen: Listener = ignore
    _open: list[Tracker] = field(init=False, default_factory=list)

    def __enter__(self) -> Self:
        for name in self.trackers:
            self._open.append(open_tracker(name, folder=self.run.path, run=self.run.path.name))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for tracker in self._open:
            tracker.close()

    def __call__(self, record: StepRecord) -> None:
        """Keep a record, then tell of it."""
        self.run.append(record)
        for tracker in self._open:
            tracker.log(record)
        self.listen(record)


@contextmanager
def run_log(
    run: RunDirectory, ranks: Ranks, *, trackers: tuple[TrackerName, ...], listen: Listener
) -> Iterator[Listener]:
    """Where records go: at rank 0 a ``RunLog``, elsewhere nowhere."""
    if ranks.rank:
        yield ignore
        return
    with RunLog(run=run, trackers=trackers, listen=listen) as log:
        yield log
