"""Episodes as JSON lines: one object a line, append-only, readable by anything."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TextIO

from agentkit.episodes.episode import Episode
from agentkit.episodes.replacing import for_owner
from agentkit.errors import EpisodeFormatError, ReadingLimitError
from agentkit.reading import read_json, unpacked_lines

_EXCERPT = 80


@dataclass(frozen=True, kw_only=True, slots=True)
class BrokenLine:
    """A line that holds no episode.

    Attributes:
        path: The file.
        line: Its number, from 1.
        reason: Why it can not be read.
    """

    path: Path
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.path}, line {self.line}: {self.reason}"


def encode_episode(episode: Episode) -> str:
    """One episode as one line of JSON, without the line break.

    The text is plain ASCII: whatever a model wrote, half a surrogate pair included, survives any
    tool that the line passes through.

    Raises:
        EpisodeFormatError: The episode holds a value that JSON can not.
    """
    try:
        return json.dumps(episode.to_json(), separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise EpisodeFormatError(
            f"episode {episode.episode_id!r} can not be written as JSON "
            f"({type(error).__name__}: {error}); arguments, results and output hold JSON data only"
        ) from error


def decode_episode(text: str | bytes) -> Episode:
    """The inverse of ``encode_episode``.

    Raises:
        EpisodeFormatError: The text is not an episode, or its format is newer than ours.
    """
    try:
        record = read_json(text)
    except ValueError as error:
        shown = text[:_EXCERPT]
        raise EpisodeFormatError(f"not JSON ({error}): {shown!r}") from error
    if not isinstance(record, dict):
        raise EpisodeFormatError(f"not an episode but a JSON {type(record).__name__}")
    try:
        return Episode.from_json(record)
    except (TypeError, AttributeError) as error:  # a part of it has another JSON type
        raise EpisodeFormatError(f"not an episode ({error}): {text[:_EXCERPT]!r}") from error


def write_episodes(
    target: str | os.PathLike[str] | TextIO,
    episodes: Iterable[Episode],
) -> int:
    """Append episodes to a file or a text stream, one a line.

    A file whose last line was left half-written gets a line break first, so that the first new
    episode does not vanish into it. Each line reaches the file in one piece.

    Returns:
        How many were written.

    Raises:
        EpisodeFormatError: An episode holds a value that JSON can not; the ones before it are
            written.
        OSError: The file can not be written.

    Example:
        >>> import sys
        >>> from agentkit import Episode
        >>> first = Episode(episode_id="e1", request="What is 2 + 2?", output="4")
        >>> count = write_episodes(sys.stdout, [first])  # doctest: +ELLIPSIS
        {"format":1,"episode_id":"e1",...}
    """
    if isinstance(target, str | os.PathLike):
        with open(target, "ab+", opener=for_owner) as file:
            return _append(file, episodes)
    count = 0
    for episode in episodes:
        target.write(encode_episode(episode) + "\n")
        count += 1
    return count


def read_episodes(
    path: str | os.PathLike[str], *, on_broken: Callable[[BrokenLine], None] | None = None
) -> Iterator[Episode]:
    """The episodes of a file, lazily, in the order of its lines. Empty lines do not count.

    Args:
        path: The file, plain or compressed with gzip, whatever its name.
        on_broken: Told of each line that holds no episode, such as the half line that a crash
            left at the end; reading goes on behind it. None raises at the first one, after the
            episodes before it were given.

    Raises:
        EpisodeFormatError: A line holds no episode and nobody is to be told.
        OSError: The file can not be read.

    Example:
        >>> problems = []
        >>> episodes = read_episodes("episodes.jsonl", on_broken=problems.append)
    """
    with Path(path).open("rb") as source:
        for number, line in _lines(source):
            try:
                episode = _episode_in(line)
            except EpisodeFormatError as error:
                broken = BrokenLine(path=Path(path), line=number, reason=str(error))
                if on_broken is None:
                    raise EpisodeFormatError(
                        f"{broken}; pass on_broken= to skip such lines and read the rest"
                    ) from error
                on_broken(broken)
                continue
            if episode is not None:
                yield episode


def _lines(source: BinaryIO) -> Iterator[tuple[int, bytes | Exception]]:
    """The lines with their numbers; behind them why there are no more, where that is an error."""
    import zlib
    from gzip import BadGzipFile

    number = 0
    try:
        for number, line in enumerate(unpacked_lines(source), start=1):
            yield number, line
    except (EOFError, zlib.error, BadGzipFile, ReadingLimitError) as error:
        yield number + 1, error


def _episode_in(line: bytes | Exception) -> Episode | None:
    """The episode of a line; None for an empty one."""
    if isinstance(line, Exception):
        is_large = isinstance(line, ReadingLimitError)
        why = "is not read from here on" if is_large else "is cut off or damaged here"
        raise EpisodeFormatError(f"the compressed file {why}: {line}")
    return decode_episode(line) if line.strip() else None


def _append(file: BinaryIO, episodes: Iterable[Episode]) -> int:
    if file.seek(0, os.SEEK_END) > 0:
        file.seek(-1, os.SEEK_END)
        if file.read(1) != b"\n":
            file.write(b"\n")
    count = 0
    for episode in episodes:
        file.write(encode_episode(episode).encode() + b"\n")
        file.flush()
        count += 1
    return count
