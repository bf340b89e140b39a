"""``RunDirectory``: the folder that holds everything about one run.

========================  ==========================================================
``config.yaml``           what was asked for, with every default written out
``run.json``              versions, seeds, data digests, commit, machine
``log.jsonl``             a line for each step
``checkpoints/``          the newest good state
``report.html``           curves and tables
``handover/``             what the runtime takes, of weights that began as GGUF
``policy/``               the policy as transformers and PEFT load it, of other weights,
``library.json``          and the evolved library beside it
========================  ==========================================================
"""

from __future__ import annotations

import json
import math
import os
import platform
import subprocess
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, Literal, TypeAlias

import yaml

from agentkit.errors import MissingExtraError, UsageError
from agentkit.messages import JsonObject
from agentkit_training.errors import CheckpointError
from agentkit_training.files import Difference, differing, room_beside, whole_file

PACKAGES = (
    "agentkit-evolve",
    "agentkit-training",
    "torch",
    "transformers",
    "trl",
    "peft",
    "accelerate",
)
"""Distributions whose versions a run records."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Provenance:
    """What has to be equal for a repetition.

    Attributes:
        command: What was typed.
        started_at: ISO 8601 time in UTC.
        versions: Of Python and of the packages that compute.
        commit: Of the git checkout that the run was started in, ``-dirty`` where files differ from
            it; empty outside of one.
        machine: Processor, cores and accelerator.
        data: SHA-256 of each part of the tasks, by name.
        seeds: By what they are for.
    """

    command: str = ""
    started_at: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    commit: str = ""
    machine: str = ""
    data: Mapping[str, str] = field(default_factory=dict)
    seeds: Mapping[str, int] = field(default_factory=dict)


def provenance(
    *, command: str, seeds: Mapping[str, int], data: Mapping[str, str] | None = None
) -> Provenance:
    """What there is to know about a run that begins now.

    Args:
        command: What was typed.
        seeds: By what they are for.
        data: Digests of the tasks, such as ``TaskSplits.digests``.
    """
    return Provenance(
        command=command,
        started_at=datetime.now(UTC).isoformat(timespec="seconds"),
        versions={"python": platform.python_version(), **dict(_versions())},
        commit=_commit(Path.cwd()),
        machine=_machine(),
        data=dict(data or {}),
        seeds=dict(seeds),
    )


def _versions() -> Iterable[tuple[str, str]]:
    for name in PACKAGES:
        try:
            yield name, metadata.version(name)
        except metadata.PackageNotFoundError:
            continue


def _commit(folder: Path) -> str:
    found = _git(folder, "rev-parse", "HEAD")
    if not found:
        return ""
    return found + ("-dirty" if _git(folder, "status", "--porcelain") else "")


def _git(folder: Path, *arguments: str) -> str:
    """What git says; nothing where there is no git, or no checkout."""
    try:
        done = subprocess.run(  # noqa: S603 - the arguments are ours
            ["git", *arguments],  # noqa: S607 - whichever git the user has
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _machine() -> str:
    import torch

    threads = torch.get_num_threads()
    cores = f"{os.cpu_count()} cores, {threads} thread{'s' if threads != 1 else ''}"
    parts = [platform.system(), platform.machine(), cores]
    if torch.cuda.is_available():
        count = torch.cuda.device_count()
        parts.append(f"{count} x {torch.cuda.get_device_name(0)}")
    return ", ".join(parts)


CONFIG, PROVENANCE, LOG = "config.yaml", "run.json", "log.jsonl"


class RunDirectory:
    """The folder of one run.

    Args:
        path: The folder, as ``create`` made it.

    Raises:
        UsageError: It is not the folder of a run.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if not (self.path / PROVENANCE).is_file():
            raise UsageError(
                f"{self.path} is not the folder of a run: it has no {PROVENANCE}. Give the folder "
                "that a training command wrote with --output"
            )

    @classmethod
    def create(
        cls, path: str | os.PathLike[str], *, config: str, provenance: Provenance
    ) -> RunDirectory:
        """Make the folder of a new run.

        Args:
            path: A folder that is not there, is empty, or holds a run that ended before it did
                anything: weights were missing, or a package.
            config: What was asked for, as YAML.
            provenance: Where its numbers come from.

        Raises:
            UsageError: The folder holds something.
            CheckpointError: It can not be written.
        """
        folder = Path(path)
        if folder.exists() and any(map(_is_of_use, folder.iterdir())):
            raise UsageError(
                f"{folder} is not empty; give another --output, or add --resume to go on with the "
                "run in it"
            )
        written = json.dumps(asdict(provenance), indent=2, ensure_ascii=False)
        with _written(folder):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # it holds requests and answers
            (folder / CONFIG).write_text(config, encoding="utf-8")
            (folder / PROVENANCE).write_text(written + "\n", encoding="utf-8")
        return cls(folder)

    @property
    def config(self) -> str:
        """What was asked for, as YAML."""
        return (self.path / CONFIG).read_text(encoding="utf-8")

    @property
    def settings(self) -> JsonObject:
        """What was asked for, by section and key; every default is there."""
        return settings_of(self.config)

    def ask_for(self, config: str) -> None:
        """Put another configuration in the place of what was asked for, atomically.

        Raises:
            CheckpointError: It can not be written.
        """
        place = self.path / CONFIG
        with _written(place), whole_file(place) as draft:
            draft.write_text(config, encoding="utf-8")

    @property
    def provenance(self) -> Provenance:
        """Where the numbers come from."""
        return Provenance(**json.loads((self.path / PROVENANCE).read_text("utf-8")))

    @property
    def checkpoints(self) -> Path:
        """Where states to go on from are kept."""
        return self.path / "checkpoints"

    def append(self, record: StepRecord) -> None:
        """Add a line to the log; it is on disk when this returns.

        Raises:
            CheckpointError: It can not be written.
        """
        log = self.path / LOG
        with _written(log), log.open("a", encoding="utf-8") as file:
            file.write(record.to_line() + "\n")
            file.flush()
            os.fsync(file.fileno())

    def records(self) -> Iterator[StepRecord]:
        """The log, oldest first. A last line that an interruption cut short is passed by.

        Raises:
            CheckpointError: Another line can not be read.
        """
        log = self.path / LOG
        if not log.is_file():
            return
        lines = log.read_text(encoding="utf-8").split("\n")
        for number, line in enumerate(lines, start=1):
            if not line:
                continue
            try:
                yield StepRecord.from_json(json.loads(line))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                if number == len(lines):  # without a newline: the write was cut short
                    return
                raise CheckpointError(f"{log}, line {number} is no record: {error}") from error

    def rewind(self, keeps: Callable[[StepRecord], bool] = lambda _: True) -> None:
        """Drop the records that a resumed run makes again, and a last line that was cut; atomic.

        Args:
            keeps: Whether a record stays.

        Raises:
            CheckpointError: It can not be written.
        """
        kept = [one.to_line() + "\n" for one in self.records() if keeps(one)]
        log = self.path / LOG
        with _written(log), whole_file(log) as draft:
            draft.write_text("".join(kept), encoding="utf-8")


_GONE_SECTIONS = ("hardware", "verl")
"""Sections that earlier releases wrote, and that nothing was learned by."""

_GONE_KEYS = (
    ("weighting", "kind", "fixed"),
    ("weighting", "by", "advantages"),
    ("tasks", "held_out_share", 1.0),
    ("tasks", "split_file", ""),
    ("toolace", "first_answer", "sampled"),
    ("coevolution", "every", 1),
    ("coevolution", "acceptance", "validation"),
)
"""Keys that earlier releases wrote, with the one value that there is now."""


def settings_of(config: str) -> JsonObject:
    """The sections and keys of a configuration; of what is none, the whole under one name."""
    found = yaml.safe_load(config)
    if not isinstance(found, dict):
        return {"configuration": found}
    for name in _GONE_SECTIONS:
        found.pop(name, None)
    for section, name, only in _GONE_KEYS:
        inside = found.get(section)
        if isinstance(inside, dict) and inside.get(name) == only:
            del inside[name]
    return found


def _is_of_use(path: Path) -> bool:
    """Whether a file in a folder is more than what a run writes before it does anything."""
    is_begun = path.name in {CONFIG, PROVENANCE} or (path.name == LOG and not path.stat().st_size)
    return not is_begun


@contextmanager
def _written(place: Path) -> Iterator[None]:
    """Say which file could not be written, and how much room there is."""
    try:
        yield
    except OSError as error:
        raise CheckpointError(
            f"{place} can not be written: {error}{room_beside(place)}. Free space on the disk, or "
            "give another folder; what was complete until now is kept"
        ) from error


def begun(
    folder: Path,
    config: str,
    *,
    command: str,
    seeds: Mapping[str, int],
    data: Mapping[str, str] | None = None,
    resumes: bool = False,
) -> RunDirectory:
    """The folder of a run: made anew, or gone on with under the same configuration.

    Args:
        folder: Where.
        config: What is asked for, as YAML with every default written out.
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
    if not resumes:
        told = provenance(command=command, seeds=seeds, data=data)
        return RunDirectory.create(folder, config=config, provenance=told)
    if not folder.exists():
        raise UsageError(f"there is no run {folder} to go on with; leave --resume out")
    run = RunDirectory(folder)
    asked = settings_of(config)
    changed = list(differing(run.settings, asked))
    if refused := [one for one in changed if not _is_longer(one, asked)]:
        lines = [f"{at.place}: {at.kept!r} in the run, {at.given!r} asked for" for at in refused]
        raise CheckpointError(
            f"{folder} was begun with another configuration, by '{run.provenance.command}':\n  "
            + "\n  ".join(lines)
            + "\nGo on with the same, or begin a run in another folder"
        )
    kept = run.provenance.data
    if other := [name for name, digest in (data or {}).items() if kept.get(name) != digest]:
        raise CheckpointError(
            f"{run.path} was begun with other tasks, by the digests of {', '.join(other)}: "
            "questions, expected answers or tools have changed since; bring them back as they "
            "were, or begin a run in another folder"
        )
    if changed:
        run.ask_for(config)
    run.rewind()
    return run


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


@dataclass(frozen=True, kw_only=True, slots=True)
class StepRecord:
    """One step, or one look at held-out tasks.

    Attributes:
        step: Its number, from 0.
        phase: What was done: ``sft``, ``grpo``, ``evaluate`` and the like.
        figures: Numbers by name, such as ``reward``, ``loss``, ``library/tools``.
        labels: How many turns bear each failure label.
        notes: What happened, in words: proposals, tasks left out.
        steps: How many steps the phase has in all; None where nobody knows yet.
    """

    step: int
    phase: str
    figures: Mapping[str, float] = field(default_factory=dict)
    labels: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    steps: int | None = None

    def to_line(self) -> str:
        """The record as one line of JSON; numbers that JSON does not know are null."""
        record = {
            "step": self.step,
            "phase": self.phase,
            "figures": {
                name: value if math.isfinite(value) else None
                for name, value in self.figures.items()
            },
            "labels": dict(self.labels),
            "notes": list(self.notes),
            "steps": self.steps,
        }
        kept = {name: value for name, value in record.items() if value or name == "step"}
        return json.dumps(kept, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, record: JsonObject) -> StepRecord:
        """The inverse of ``to_line``, once the line is read as JSON."""
        figures = {
            name: math.nan if value is None else float(value)
            for name, value in record.get("figures", {}).items()
        }
        return cls(
            step=int(record["step"]),
            phase=str(record.get("phase", "")),
            figures=figures,
            labels={name: int(count) for name, count in record.get("labels", {}).items()},
            notes=tuple(record.get("notes", ())),
            steps=record.get("steps"),
        )


Listener: TypeAlias = Callable[[StepRecord], None]
"""Told of each record of a run."""


def ignore(_: object) -> None:
    """Where records go when nobody looks."""


TrackerName: TypeAlias = Literal["wandb"]


class Wandb:
    """A run of W&B, gone on with where the run is.

    Each phase has steps of its own: W&B drops what comes with a lower step than the last.
    """

    def __init__(self, folder: Path) -> None:
        try:
            import wandb
        except ImportError as error:
            raise MissingExtraError(
                "the Weights & Biases tracker",
                package="wandb",
                install="pip install 'agentkit-training[wandb]'",
            ) from error
        self._run: Any = wandb.init(
            project="agentkit-training",
            name=folder.name,
            dir=str(folder),
            id=_lasting_id(folder / "wandb.id"),
            resume="allow",
        )
        self._phases: set[str] = set()

    def log(self, record: StepRecord) -> None:
        """Hand on figures and label counts, as ``grpo/reward`` and ``grpo/label/pass``."""
        step = f"{record.phase}/step"
        if record.phase not in self._phases:
            self._phases.add(record.phase)
            self._run.define_metric(step, hidden=True)
            self._run.define_metric(f"{record.phase}/*", step_metric=step)
        labels = {f"label/{name}": float(count) for name, count in record.labels.items()}
        told = {f"{record.phase}/{name}": one for name, one in {**record.figures, **labels}.items()}
        self._run.log({**told, step: record.step})

    def close(self) -> None:
        """Tell that the run has ended."""
        self._run.finish()


def _lasting_id(file: Path) -> str:
    """What W&B knows the run by, the same each time the run is gone on with."""
    if not file.exists():
        file.write_text(uuid.uuid4().hex[:12], encoding="ascii")
    return file.read_text(encoding="ascii")


@contextmanager
def run_log(
    append: Listener,
    *,
    trackers: Sequence[TrackerName],
    folder: Path,
    listen: Listener = ignore,
) -> Iterator[Listener]:
    """Where the records of a run go: its log, its trackers, and who listens.

    Args:
        append: Keeps a record in the run's log.
        trackers: Names of the trackers.
        folder: Of the run.
        listen: Is told as well.
    """
    opened: list[Wandb] = []

    def log(record: StepRecord) -> None:
        append(record)
        for tracker in opened:
            tracker.log(record)
        listen(record)

    try:
        opened += [Wandb(folder) for _ in trackers]
        yield log
    finally:
        for tracker in opened:
            tracker.close()
