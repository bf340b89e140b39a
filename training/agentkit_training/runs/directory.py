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

import hashlib
import json
import os
import platform
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from agentkit.errors import UsageError
from agentkit.messages import JsonObject
from agentkit_training.errors import CheckpointError
from agentkit_training.files import room_beside, whole_file
from agentkit_training.runs.records import StepRecord

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
        data: SHA-256 of each part of the tasks, or of each file that they came from, by name.
        seeds: By what they are for.
    """

    command: str = ""
    started_at: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    commit: str = ""
    machine: str = ""
    data: Mapping[str, str] = field(default_factory=dict)
    seeds: Mapping[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The record as a JSON object."""
        return {
            "command": self.command,
            "started_at": self.started_at,
            "versions": dict(self.versions),
            "commit": self.commit,
            "machine": self.machine,
            "data": dict(self.data),
            "seeds": dict(self.seeds),
        }

    @classmethod
    def from_json(cls, record: JsonObject) -> Provenance:
        """The inverse of ``to_json``."""
        return cls(**dict(record))


def provenance(
    *,
    command: str,
    seeds: Mapping[str, int],
    files: Iterable[Path] = (),
    data: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Provenance:
    """What there is to know about a run that begins now.

    Args:
        command: What was typed.
        seeds: By what they are for.
        files: What tasks come from.
        data: Digests that are known already, such as ``TaskSplits.digests``.
        folder: Where to look for a git checkout; None for the working directory.
    """
    return Provenance(
        command=command,
        started_at=datetime.now(UTC).isoformat(timespec="seconds"),
        versions={"python": platform.python_version(), **dict(_versions())},
        commit=_commit(folder or Path.cwd()),
        machine=_machine(),
        data={**(data or {}), **{path.name: file_digest(path) for path in files}},
        seeds=dict(seeds),
    )


def file_digest(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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
    import os

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
        written = json.dumps(provenance.to_json(), indent=2, ensure_ascii=False)
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
        return Provenance.from_json(json.loads((self.path / PROVENANCE).read_text("utf-8")))

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


def settings_of(config: str) -> JsonObject:
    """The sections and keys of a configuration; of what is none, the whole under one name."""
    import yaml

    found = yaml.safe_load(config)
    return found if isinstance(found, dict) else {"configuration": found}


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
