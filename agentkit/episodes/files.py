"""Episodes in files: JSON lines, plain or compressed; tables in Parquet are read.

One object a line, append-only, readable by anything.
"""

from __future__ import annotations

import json
import logging
import os
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, BinaryIO, TypeAlias, cast

from agentkit.episodes.episode import Episode
from agentkit.episodes.labels import as_imported
from agentkit.episodes.replacing import replaced
from agentkit.errors import (
    EpisodeFormatError,
    MissingExtraError,
    NewerEpisodeError,
    ReadingLimitError,
)
from agentkit.messages import MAX_SENT_DEPTH, MAX_SENT_VALUES, measured
from agentkit.reading import (
    LIMIT_VARIABLE,
    expanded_limit,
    is_readable,
    most_broken,
    open_plain,
    read_json,
    streamed_limit,
    unpacked_lines,
)

logger = logging.getLogger(__name__)

_EXCERPT = 80
_PARQUET = b"PAR1"
_READ_ROWS = 256


@dataclass(frozen=True, kw_only=True, slots=True)
class BrokenLine:
    """A line that holds no episode.

    Attributes:
        path: The file.
        line: Its number, from 1.
        reason: Why it cannot be read.
    """

    path: Path
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.path}, line {self.line}: {self.reason}"


def encode_episode(episode: Episode) -> str:
    """One episode as one line of JSON, without the line break.

    The text is plain ASCII: whatever a model wrote, half a surrogate pair included, survives any
    tool that the line passes through. What ``decode_episode`` would refuse is not written: a mark
    stands in place of values that are nested too deeply or are too many, and says what was there.
    A call whose arguments were left out is ``malformed``, so that nobody makes it again without.

    Raises:
        EpisodeFormatError: The episode holds a value that JSON cannot.
    """
    try:
        record = episode.to_json()
        text = _written(record)
        if text is None:
            text = _written(_bounded(record))
        if text is not None:
            return text
        problem = "it holds too many values"
    except (TypeError, ValueError, RecursionError) as error:
        problem = f"{type(error).__name__}: {error}"
    raise EpisodeFormatError(
        f"episode {episode.episode_id!r} cannot be written as JSON ({problem}); arguments, results "
        "and output hold JSON data only"
    )


def _written(record: dict[str, Any]) -> str | None:
    """The text of a record; None where no reader would take it."""
    try:
        text = json.dumps(record, separators=(",", ":"))
    except (RecursionError, ValueError):  # too deep, a circle, or a number of thousands of digits
        return None
    return text if is_readable(text, record) else None


_FREE = {"arguments", "value", "output", "data", "details", "expected", "actual", "schema_excerpt"}
"""Fields that hold whatever JSON data somebody else made."""
_OBJECTS = {"data", "details", "schema_excerpt"}
_MARK = "left out"
_LONGEST_NUMBER = 4_000


def _bounded(record: dict[str, Any]) -> dict[str, Any]:
    """The record with marks in place of what a reader would refuse, the largest values first."""
    bounded: dict[str, Any] = _shallow(record, MAX_SENT_DEPTH)
    parts = [(measured(holder[name])[1], holder, name) for holder, name in _free_parts(bounded)]
    count = measured(bounded)[1]
    for size, holder, name in sorted(parts, key=lambda part: -part[0]):
        if count <= MAX_SENT_VALUES:
            break
        count -= size
        mark = f"({size:,} values were left out of the record: together they are too many)"
        if name == "arguments":
            holder |= {"arguments": {}, "malformed": holder.get("malformed") or mark}
        else:
            holder[name] = {_MARK: mark} if name in _OBJECTS else mark
    return bounded


def _shallow(value: Any, levels: int) -> Any:
    """A copy that is nested no deeper than this."""
    if isinstance(value, dict | list | tuple):
        if levels == 0:
            depth, count = measured(value)
            return f"({depth:,} levels, {count:,} values were left out of the record: too deep)"
        if isinstance(value, dict):
            return {key: _shallow(held, levels - 1) for key, held in value.items()}
        return [_shallow(held, levels - 1) for held in value]
    if type(value) is int and value.bit_length() > 3 * _LONGEST_NUMBER:
        return f"(a number of {value.bit_length():,} bits was left out of the record: too long)"
    return value


def _free_parts(record: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """Where a record holds data of others, as the object and the name in it."""
    waiting: list[Any] = [record]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting += part
        elif isinstance(part, dict):
            for name, held in part.items():
                if name not in _FREE:
                    waiting.append(held)
                elif isinstance(held, dict | list):
                    yield part, name


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


Unreadable: TypeAlias = Callable[[str, str], None]
"""Is told the id of a kept episode that cannot be read, and why."""

_TOLD: OrderedDict[str, None] = OrderedDict()
_MOST_TOLD = 1_000


def _warn(episode_id: str, reason: str) -> None:
    """Warn of an episode, once in a process."""
    if episode_id in _TOLD:
        return
    _TOLD[episode_id] = None
    while len(_TOLD) > _MOST_TOLD:
        _TOLD.popitem(last=False)
    message = "episode %s cannot be read and is left out ('agentkit check' lists such): %s"
    logger.warning(message, episode_id, reason)


_UNREADABLE: ContextVar[Unreadable] = ContextVar("agentkit_unreadable", default=_warn)


@contextmanager
def telling_unreadable(tell: Unreadable) -> Iterator[None]:
    """Inside, ``tell`` hears of kept episodes that cannot be read; otherwise the log does."""
    token = _UNREADABLE.set(tell)
    try:
        yield
    finally:
        _UNREADABLE.reset(token)


def read_episode(episode_id: str, body: str | bytes) -> Episode | None:
    """A kept episode for a listing, which one that cannot be read must not end.

    Returns:
        None, once it was told, for a damaged one.

    Raises:
        NewerEpisodeError: It is not damaged but of a newer agentkit.
    """
    try:
        return decode_episode(body)
    except NewerEpisodeError:
        raise
    except EpisodeFormatError as error:
        _UNREADABLE.get()(episode_id, str(error))
        return None


def read_episodes(
    path: str | os.PathLike[str], *, on_broken: Callable[[BrokenLine], None] | None = None
) -> Iterator[Episode]:
    """The episodes of a file, lazily, in the order of its lines. Empty lines do not count.

    Args:
        path: The file, plain or compressed with gzip, whatever its name.
        on_broken: Called for each line that holds no episode, such as the half line a crash
            left at the end; reading continues after it, up to ten thousand of them. None raises
            at the first one, after the episodes before it were given.

    Raises:
        EpisodeFormatError: A line holds no episode and ``on_broken`` is None.
        OSError: The file cannot be read.

    Example:
        >>> problems = []
        >>> episodes = read_episodes("episodes.jsonl", on_broken=problems.append)
    """
    place, left = Path(path), most_broken()
    with open_plain(path) as source:
        for number, line in _lines(source):
            try:
                episode = _episode_in(line)
            except EpisodeFormatError as error:
                broken = BrokenLine(path=place, line=number, reason=str(error))
                if on_broken is None:
                    raise EpisodeFormatError(
                        f"{broken}; pass on_broken= to skip such lines and read the rest"
                    ) from error
                left -= 1
                if left < 0:
                    why = f"more than {most_broken():,} lines are broken; no more of it is read"
                    on_broken(replace(broken, reason=f"{why} ({error})"))
                    return
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


def export_episodes(path: str | os.PathLike[str], episodes: Iterable[Episode]) -> int:
    """Write episodes to a new file, or in the place of an old one once all are written.

    Few are held at a time, so there may be millions.

    Args:
        path: The file; one that ends in ``.gz`` is compressed.
        episodes: What to write, in this order.

    Returns:
        How many were written.

    Raises:
        EpisodeFormatError: An episode holds a value that JSON cannot. The old file stays.
        OSError: The file cannot be written. The old file stays.

    Example:
        >>> export_episodes("episodes.jsonl.gz", [Episode(episode_id="e1", request="Hi")])
        1
        >>> [episode.episode_id for episode in import_episodes("episodes.jsonl.gz")]
        ['e1']
    """
    count = 0
    with replaced(path) as draft, _opened(draft, Path(path).suffix.lower() == ".gz") as file:
        for episode in episodes:
            file.write(encode_episode(episode).encode() + b"\n")
            count += 1
    return count


def _opened(draft: Path, is_packed: bool) -> IO[bytes]:  # noqa: FBT001 - one flag
    if not is_packed:
        return draft.open("wb")
    import gzip

    return cast("IO[bytes]", gzip.open(draft, "wb", compresslevel=6))


def import_episodes(
    path: str | os.PathLike[str],
    *,
    own: bool = False,
    on_broken: Callable[[BrokenLine], None] | None = None,
) -> Iterator[Episode]:
    """The episodes of a file, lazily; its content says whether it is compressed, or a table.

    Args:
        path: The file.
        own: Leave the episodes as they are. Otherwise they are labelled ``imported`` with the
            name of the file, and nothing is learned from them, since anybody may have written it.
        on_broken: Called for each line that holds no episode; None raises at the first one.

    Raises:
        MissingExtraError: Parquet without pyarrow.
        EpisodeFormatError: Something there is no episode.
        OSError: The file cannot be read.
    """
    with open_plain(path) as file:
        is_parquet = file.read(len(_PARQUET)) == _PARQUET
    found = _read_parquet(path) if is_parquet else read_episodes(path, on_broken=on_broken)
    return found if own else (as_imported(one, Path(path).name) for one in found)


def _read_parquet(path: str | os.PathLike[str]) -> Iterator[Episode]:
    """The episodes of a table that an earlier release exported, lazily, in order.

    Raises:
        MissingExtraError: pyarrow is not installed.
        EpisodeFormatError: The file is damaged, has no column ``record``, or holds something there
            that is not an episode.
        OSError: The file cannot be read.
    """
    arrow, parquet = _pyarrow()
    with open_plain(path) as source:
        try:
            schema = parquet.read_schema(source)
            texts = (arrow.string(), arrow.dictionary(arrow.int32(), arrow.string()))
            if [one.type in texts for one in schema if one.name == "record"] != [True]:
                raise EpisodeFormatError(
                    f"{path} holds no episodes: it has no column 'record' of texts, only "
                    f"{', '.join(schema.names):.400}"
                )
            # A text that occurs in many rows is then held once, as in the file.
            file = parquet.ParquetFile(source, read_dictionary=["record"])
            left = streamed_limit(Path(path).stat().st_size)
            _check_groups(file.metadata, path, left)
            for batch in file.iter_batches(_READ_ROWS, columns=["record"]):
                for record in batch.column(0):
                    text = record.as_py() or ""
                    left -= len(text) + 1
                    if left < 0:
                        raise _grows(path)
                    yield decode_episode(text)
        except (arrow.ArrowException, OSError, UnicodeDecodeError) as error:
            raise EpisodeFormatError(
                f"{path} is no Parquet file, or is damaged: {error}"
            ) from error


def _check_groups(metadata: Any, path: str | os.PathLike[str], most: int) -> None:
    """Refuse pages that unpack to more than memory should hold; a row group is held at a time."""
    for place in range(metadata.num_row_groups):
        group = metadata.row_group(place)
        size = sum(group.column(at).total_uncompressed_size for at in range(group.num_columns))
        if size > min(most, expanded_limit(most)):
            raise _grows(path)


def _grows(path: str | os.PathLike[str]) -> EpisodeFormatError:
    return EpisodeFormatError(
        f"{path} unpacks to far more than its size; a file that you trust is read with "
        f"{LIMIT_VARIABLE}=10 in the environment"
    )


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MissingExtraError(
            "Parquet", package="pyarrow", install='pip install "agentkit-evolve[parquet]"'
        ) from error
    return pa, pq
