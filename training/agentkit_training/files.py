"""Files and folders that appear whole or not at all."""

from __future__ import annotations

import hashlib
import os
import pickle
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from agentkit_training.errors import CheckpointError


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A draft beside a file, which takes the file's place when the block ends without an error.

    The folder must be there.
    """
    target = Path(path)
    draft = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        yield draft
        draft.replace(target)
    finally:
        with suppress(OSError):  # what hindered the writing may hinder this
            draft.unlink(missing_ok=True)


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """Write into a folder beside ``folder``, which takes its place at the end.

    When writing fails, the disk being full or anything else, what was at ``folder`` stays. A folder
    that was there is moved aside and deleted once the new one has its name; between the two moves
    an end of the process leaves it beside, under a name that begins with a dot.

    Args:
        folder: Where the files are to be in the end.

    Yields:
        The empty folder to write into.

    Raises:
        CheckpointError: The files could not be written.
    """
    folder = folder.absolute()
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    except OSError as error:
        raise _not_written(folder, error) from error
    try:
        new = work / "new"
        new.mkdir()
        yield new
        _exchange(new, folder, aside=work / "old")
    except OSError as error:
        raise _not_written(folder, error) from error
    finally:
        shutil.rmtree(work, ignore_errors=True)


def room_beside(path: Path) -> str:
    """How much room the disk of a path has, in words for an error; empty where nobody knows.

    What torch says of a full disk names neither the disk nor that it is full.
    """
    there = next((one for one in (path.absolute(), *path.absolute().parents) if one.exists()), None)
    try:
        free = "" if there is None else f"{shutil.disk_usage(there).free / 1e6:,.1f} MB"
    except OSError:
        return ""
    return free and f" ({free} free there)"


def _exchange(new: Path, folder: Path, *, aside: Path) -> None:
    had_one = folder.exists()
    if had_one:
        folder.rename(aside)
    try:
        new.rename(folder)
    except OSError:
        if had_one:
            aside.rename(folder)
        raise


def _not_written(folder: Path, error: Exception) -> CheckpointError:
    return CheckpointError(
        f"{folder} could not be written: {error}{room_beside(folder)}. What was there before is as "
        "it was; free space on the disk, or give another folder"
    )


class Difference(NamedTuple):
    """A setting that two records do not share.

    Attributes:
        place: Its name, after those of its sections: ``engine.objective.temperature``.
        kept: What the first record has; None where it has nothing of that name.
        given: What the second one has.
    """

    place: str
    kept: Any
    given: Any


def differing(
    kept: Mapping[str, Any], given: Mapping[str, Any], *, inside: str = ""
) -> Iterator[Difference]:
    """Every setting in which two records differ, in the order of the first one.

    Args:
        kept: A record; sections are mappings.
        given: The other one.
        inside: What the places begin with.

    Example:
        >>> for one in differing({"lora": {"rank": 8}}, {"lora": {"rank": 16}}):
        ...     print(f"{one.place}: {one.kept}, then {one.given}")
        lora.rank: 8, then 16
    """
    for name in dict.fromkeys([*kept, *given]):
        mine, other = kept.get(name), given.get(name)
        if isinstance(mine, Mapping) and isinstance(other, Mapping):
            yield from differing(mine, other, inside=f"{inside}{name}.")
        elif mine != other:
            yield Difference(f"{inside}{name}", mine, other)


def save_tensors(state: Mapping[str, Any], path: Path) -> None:
    """Write a state with tensors in it; what stood there is kept until the new one is whole.

    Raises:
        CheckpointError: It can not be written, as on a full disk.
    """
    import torch

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as draft:
            torch.save(dict(state), draft)
    except (OSError, RuntimeError) as error:  # torch raises either when a disk is full
        raise CheckpointError(
            f"{path} can not be written: {error}{room_beside(path)}. What was there before is as "
            "it was; make room, and go on from it with --resume"
        ) from error


def load_tensors(path: Path) -> dict[str, Any]:
    """What ``save_tensors`` wrote; tensors are read from the file when they are looked at.

    Raises:
        CheckpointError: It can not be read.
    """
    import torch

    try:
        found: dict[str, Any] = torch.load(path, weights_only=True, map_location="cpu", mmap=True)
    except (OSError, RuntimeError, EOFError, pickle.UnpicklingError) as error:
        raise CheckpointError(
            f"{path} can not be read: {error}. Delete it to begin anew"
        ) from error
    return found


def file_digest(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
