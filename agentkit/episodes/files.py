"""Files of episodes, whatever their form: JSON lines, the same compressed, Parquet."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Literal, cast

from agentkit.episodes.episode import Episode
from agentkit.episodes.jsonl import BrokenLine, encode_episode, read_episodes
from agentkit.episodes.parquet import read_parquet, write_parquet
from agentkit.episodes.replacing import replaced
from agentkit.errors import UsageError

FileFormat = Literal["jsonl", "jsonl.gz", "parquet"]

SUFFIXES: Mapping[str, FileFormat] = {
    ".jsonl": "jsonl",
    ".json": "jsonl",
    ".ndjson": "jsonl",
    ".gz": "jsonl.gz",
    ".parquet": "parquet",
}
"""What the name of a file ends in, for each form."""

_PARQUET = b"PAR1"


def format_of(path: str | os.PathLike[str]) -> FileFormat:
    """The form that the name of a file stands for.

    Raises:
        UsageError: The name ends otherwise.

    Example:
        >>> format_of("episodes.jsonl.gz"), format_of("episodes.parquet")
        ('jsonl.gz', 'parquet')
    """
    found = SUFFIXES.get(Path(path).suffix.lower())
    if found is None:
        raise UsageError(
            f"{path}: the name does not say in which form to write; end it in .jsonl, .jsonl.gz "
            "or .parquet, or name the form"
        )
    return found


def export_episodes(
    path: str | os.PathLike[str],
    episodes: Iterable[Episode],
    *,
    form: FileFormat | None = None,
) -> int:
    """Write episodes to a new file, or in the place of an old one once all are written.

    Few are held at a time, so there may be millions.

    Args:
        path: The file.
        episodes: What to write, in this order.
        form: How; None tells it from the name.

    Returns:
        How many were written.

    Raises:
        UsageError: Neither the name nor ``form`` says how.
        MissingExtraError: Parquet without pyarrow.
        EpisodeFormatError: An episode holds a value that JSON can not. The old file stays.
        OSError: The file can not be written. The old file stays.

    Example:
        >>> export_episodes("episodes.jsonl.gz", [Episode(episode_id="e1", request="Hi")])
        1
        >>> [episode.episode_id for episode in import_episodes("episodes.jsonl.gz")]
        ['e1']
    """
    form = form or format_of(path)
    if form == "parquet":
        return write_parquet(path, episodes)
    count = 0
    with replaced(path) as draft, _opened(draft, form) as file:
        for episode in episodes:
            file.write(encode_episode(episode).encode() + b"\n")
            count += 1
    return count


def _opened(draft: Path, form: FileFormat) -> IO[bytes]:
    if form == "jsonl":
        return draft.open("wb")
    import gzip

    return cast("IO[bytes]", gzip.open(draft, "wb", compresslevel=6))


def import_episodes(
    path: str | os.PathLike[str], *, on_broken: Callable[[BrokenLine], None] | None = None
) -> Iterator[Episode]:
    """The episodes of a file in any of the forms, lazily; its content says in which it is.

    Args:
        path: The file.
        on_broken: Told of each line that holds no episode; None raises at the first one.

    Raises:
        MissingExtraError: Parquet without pyarrow.
        EpisodeFormatError: Something there is no episode.
        OSError: The file can not be read.
    """
    with Path(path).open("rb") as file:
        is_parquet = file.read(len(_PARQUET)) == _PARQUET
    return read_parquet(path) if is_parquet else read_episodes(path, on_broken=on_broken)
