"""Files of episodes, whatever their form: JSON lines, the same compressed, Parquet."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Literal, cast

from agentkit.episodes.episode import Episode
from agentkit.episodes.jsonl import BrokenLine, decode_episode, encode_episode, read_episodes
from agentkit.episodes.replacing import replaced
from agentkit.errors import EpisodeFormatError, MissingExtraError, UsageError
from agentkit.reading import LIMIT_VARIABLE, expanded_limit, streamed_limit

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


SCHEMA_VERSION = 2
"""Of the columns; stands in the file's metadata as ``agentkit.episodes``."""

_GROUP_ROWS = 5_000
_GROUP_BYTES = 16 * 1024 * 1024
_READ_ROWS = 256
_LARGEST = 2**63


def write_parquet(path: str | os.PathLike[str], episodes: Iterable[Episode]) -> int:
    """Write episodes to a new file, or in the place of an old one once all are written.

    A row group of at most 5,000 rows or 16 MiB is held at a time.

    Returns:
        How many were written.

    Raises:
        MissingExtraError: pyarrow is not installed.
        EpisodeFormatError: An episode holds a value that JSON can not. Nothing is written.
        OSError: The file can not be written.
    """
    arrow, parquet = _pyarrow()
    schema = _schema(arrow)
    count = 0
    with (
        replaced(path) as draft,
        draft.open("wb") as sink,  # given a name, Arrow would look for places in a pipe
        parquet.ParquetWriter(sink, schema, compression="zstd") as writer,
    ):
        for rows in _groups(episodes):
            writer.write_table(arrow.Table.from_pylist(rows, schema=schema))
            count += len(rows)
    return count


def read_parquet(path: str | os.PathLike[str]) -> Iterator[Episode]:
    """The episodes of a file that ``write_parquet`` made, lazily, in order.

    Raises:
        MissingExtraError: pyarrow is not installed.
        EpisodeFormatError: The file is damaged, has no column ``record``, or holds something there
            that is no episode.
        OSError: The file can not be read.
    """
    arrow, parquet = _pyarrow()
    with Path(path).open("rb") as source:
        try:
            names = parquet.read_schema(source).names
            if "record" not in names:
                raise EpisodeFormatError(
                    f"{path} holds no episodes: it has no column 'record', only {', '.join(names)}"
                )
            # A text that stands in many rows is then held once, as in the file.
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
        except arrow.ArrowInvalid as error:
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


_COLUMNS = {
    **dict.fromkeys(("episode_id", "session_id", "started_at", "request"), "string"),
    **dict.fromkeys(("model", "error", "stop_reason", "label"), "string"),
    **dict.fromkeys(("requests", "prompt_tokens", "completion_tokens"), "int64"),
    **dict.fromkeys(("seconds", "cost_usd", "score"), "float64"),
    "passed": "bool_",
    "record": "string",
}


def _schema(arrow: Any) -> Any:
    columns = [(name, getattr(arrow, kind)()) for name, kind in _COLUMNS.items()]
    return arrow.schema(columns, metadata={"agentkit.episodes": str(SCHEMA_VERSION)})


def _groups(episodes: Iterable[Episode]) -> Iterator[Sequence[Mapping[str, Any]]]:
    """Rows as they are written together."""
    rows: list[Mapping[str, Any]] = []
    size = 0
    for episode in episodes:
        row = _row(episode)
        rows.append(row)
        size += len(row["record"])
        if len(rows) == _GROUP_ROWS or size >= _GROUP_BYTES:
            yield rows
            rows, size = [], 0
    if rows:
        yield rows


def _row(episode: Episode) -> dict[str, Any]:
    """The columns, as far as they can hold what the episode says; the record says all of it."""
    parts = (episode.verdict, episode.diagnosis, episode.usage, episode)
    row: dict[str, Any] = {}
    for name, kind in _COLUMNS.items():
        found = (getattr(part, name) for part in parts if hasattr(part, name))
        row[name] = _FITTING[kind](next(found, None))
    return {**row, "record": encode_episode(episode)}


def _text(value: object) -> str | None:
    """Text that a column takes; half a surrogate pair as its escape."""
    if not isinstance(value, str):
        return None
    return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and -_LARGEST <= value < _LARGEST else None


def _number(value: object) -> float | None:
    try:
        return float(value) if isinstance(value, int | float) else None
    except OverflowError:
        return None


_FITTING: Mapping[str, Callable[[object], object]] = {
    "string": _text,
    "int64": _whole,
    "float64": _number,
    "bool_": lambda value: value if isinstance(value, bool) else None,
}
