"""Where the numbers of a run come from: versions, seeds, data, commit, machine."""

from __future__ import annotations

import hashlib
import platform
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from agentkit.messages import JsonObject

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
