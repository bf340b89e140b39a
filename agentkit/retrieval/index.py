"""The index of a library: what channels know about its tools, kept up with what changes.

An index is a list of segments, each over some tools. What is new comes as a segment of its own and
is joined with its neighbours when these are not larger, so a tool is moved once for each doubling
of its segment; what is gone loses its bit in a mask. Nothing that another version uses is changed.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from hashlib import blake2b, sha256
from itertools import chain, compress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar
from zipfile import BadZipFile

from agentkit import episodes  # a door: redaction loads when an error is logged
from agentkit.episodes.replacing import plain_here, replaced
from agentkit.errors import UsageError
from agentkit.fetch import cache_directory
from agentkit.library.derived import Snapshot
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Mask: TypeAlias = NDArray[np.bool_]

logger = logging.getLogger(__name__)

D_co = TypeVar("D_co", covariant=True)
T = TypeVar("T")

_SMALL = 64
"""Segments of so few tools are joined into one at each insert."""

_MOST_GONE = 0.5
"""A segment that lost more of its tools than this is rewritten without them."""

_KEPT_FROM = 256
"""Tools that a segment has at least to be kept in a file; rebuilding a smaller one is faster."""

_MOST_FILES = 32
_MOST_BYTES = 2 * 1024**3
"""Kept files, and bytes of them, at most; the index of a million tools is about 300 MB."""

_FORMAT = "agentkit.index/3"


@dataclass(frozen=True, kw_only=True, slots=True)
class Rows:
    """A channel's data about some tools: for each row as many entries as it needs.

    Attributes:
        counts: int32[rows]: how many entries each row has.
        arrays: By name, [entries, ...]: the entries of all rows, one behind the other.
    """

    counts: NDArray[np.int32]
    arrays: Mapping[str, NDArray[Any]]

    @classmethod
    def single(cls, **arrays: NDArray[Any]) -> Rows:
        """One entry a row."""
        import numpy as np

        count = len(next(iter(arrays.values())))
        return cls(counts=np.ones(count, np.int32), arrays=arrays)

    @property
    def owners(self) -> NDArray[np.int64]:
        """int64[entries]: the row of each entry."""
        import numpy as np

        return np.repeat(np.arange(len(self.counts)), self.counts)

    def only(self, mask: Mask) -> Rows:
        """The rows in ``mask``."""
        kept = mask[self.owners]
        return Rows(
            counts=self.counts[mask],
            arrays={name: array[kept] for name, array in self.arrays.items()},
        )

    @classmethod
    def joined(cls, parts: Sequence[Rows]) -> Rows:
        """The rows of several, one behind the other.

        Raises:
            UsageError: Entries differ in shape, as vectors of two lengths do.
        """
        import numpy as np

        shapes = {tuple(array.shape[1:] for array in part.arrays.values()) for part in parts}
        if len(shapes) > 1:
            raise UsageError(
                f"entries of one channel have different shapes, {sorted(shapes)}; an embedding "
                "model must give vectors of one length, and another model needs another "
                "fingerprint (a FunctionEmbedder takes a name)"
            )
        return cls(
            counts=np.concatenate([part.counts for part in parts]),
            arrays={
                name: np.concatenate([part.arrays[name] for part in parts])
                for name in parts[0].arrays
            },
        )


class Channel(Protocol[D_co]):
    """One kind of evidence about tools, such as their words: how it is made and searched.

    A channel is hashable; equal channels share their data, so two retrievers with the same
    settings share one index. What it keeps about a tool must depend on that tool alone; averages
    and document frequencies are for query time. Then an index that grew tool by tool answers
    exactly like one that was built at once.
    """

    @property
    def fingerprint(self) -> str:
        """Names the meaning of the data: the kind, its version, and every setting it depends on.

        Kept data are read back only under the same fingerprint. "" for data that are not to be
        kept.
        """
        ...

    def build(self, definitions: Sequence[ToolDefinition]) -> Rows:
        """The data about ``definitions``, in their order."""
        ...

    def prepared(self, rows: Rows) -> D_co:
        """The rows in searchable form, such as an inverted file."""
        ...

    def __hash__(self) -> int:
        """Equal channels have equal hashes."""
        ...


class Segment:
    """Some tools, and what each channel keeps about them. Never changes.

    Args:
        names: The names of the tools, by row.
        rows: What each channel keeps.
    """

    def __init__(self, names: tuple[str, ...], rows: tuple[Rows, ...]) -> None:
        self.names = names
        self.rows = rows
        self._prepared: dict[int, Any] = {}

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def places(self) -> Mapping[str, int]:
        """The row of each name."""
        return {name: row for row, name in enumerate(self.names)}

    def data(self, place: int, channel: Channel[D_co]) -> D_co:
        """The searcher of the channel at ``place``, prepared at the first query."""
        if place not in self._prepared:
            self._prepared[place] = channel.prepared(self.rows[place])
        found: D_co = self._prepared[place]
        return found

    @classmethod
    def of(cls, definitions: Sequence[ToolDefinition], channels: Sequence[Channel[Any]]) -> Segment:
        """The segment of some definitions; the place in the list is the row."""
        names = tuple(definition.name for definition in definitions)
        return cls(names, tuple(channel.build(definitions) for channel in channels))

    @classmethod
    def joined(cls, parts: Sequence[tuple[Segment, Mask | None]]) -> Segment:
        """Several segments as one, without the rows that are gone."""
        names = (
            part.names if mask is None else compress(part.names, mask.tolist())
            for part, mask in parts
        )
        columns = zip(*(part.rows for part, _ in parts), strict=True)
        masks = [mask for _, mask in parts]
        return cls(
            tuple(chain.from_iterable(names)),
            tuple(
                Rows.joined(
                    [
                        one if mask is None else one.only(mask)
                        for one, mask in zip(column, masks, strict=True)
                    ]
                )
                for column in columns
            ),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """A segment within an index.

    Attributes:
        segment: The segment; other versions may share it.
        offset: The row of the index at which it starts.
        alive: Which of its rows are in this version; None for all.
    """

    segment: Segment
    offset: int
    alive: Mask | None

    @property
    def rows(self) -> slice:
        """Its rows within the index."""
        return slice(self.offset, self.offset + len(self.segment))

    def count(self, rows: NDArray[Any]) -> int:
        """The number of its own ``rows`` in this version."""
        return len(rows) if self.alive is None else int(self.alive[rows].sum())


class ToolIndex:
    """The channels' data about the tools of one library version; immutable.

    Tools are numbered: *row* is the place of a tool in this index, from 0 to ``size``. Rows of
    tools that were removed stay in between until segments are joined, and are not ``alive``. A row
    means nothing in another version's index.

    Made by ``library.derived(IndexConfig(channels=...))``.

    Args:
        segments: The segments with the rows that are in this version (None: all).
        channels: What each of them has data of.
    """

    def __init__(
        self, segments: Sequence[tuple[Segment, Mask | None]], channels: tuple[Channel[Any], ...]
    ) -> None:
        parts: list[Part] = []
        self.size = 0
        for segment, mask in segments:
            parts.append(Part(segment=segment, offset=self.size, alive=mask))
            self.size += len(segment)
        self.parts = tuple(parts)
        self.channels = channels
        self._living = sum(
            len(part.segment) if part.alive is None else int(part.alive.sum()) for part in parts
        )
        self._places = {channel: place for place, channel in enumerate(channels)}
        self._worked_out: dict[object, Any] = {}

    def __len__(self) -> int:
        return self._living

    def __repr__(self) -> str:
        return f"ToolIndex({len(self)} tools, {len(self.parts)} segments)"

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The name of each row, those of removed tools included."""
        return tuple(chain.from_iterable(part.segment.names for part in self.parts))

    @cached_property
    def alive(self) -> Mask:
        """bool[size]: which rows hold a tool of this version. Not to be written to."""
        import numpy as np

        alive = np.ones(self.size, bool)
        for part in self.parts:
            if part.alive is not None:
                alive[part.rows] = part.alive
        alive.flags.writeable = False
        return alive

    def row(self, name: str) -> int | None:
        """The row of a tool; None when this version has no tool of that name."""
        for part in reversed(self.parts):
            row = part.segment.places.get(name)
            if row is not None and (part.alive is None or part.alive[row]):
                return part.offset + row
        return None

    def data(self, channel: Channel[D_co]) -> Iterator[tuple[Part, D_co]]:
        """A channel's data about each segment.

        Raises:
            UsageError: The index was made without that channel.
        """
        place = self._places.get(channel)
        if place is None:
            known = ", ".join(type(one).__name__ for one in self.channels) or "no channels"
            raise UsageError(
                f"this index has {known}, but not the {type(channel).__name__} that is asked for; "
                "a stage names what it reads in its attribute `channels`, and candidates made by "
                "hand take them: Candidates.of(library, stage.channels)"
            )
        return ((part, part.segment.data(place, channel)) for part in self.parts)

    def once(self, key: object, work: Callable[[], T]) -> T:
        """The result of ``work``, computed once for this version."""
        if key not in self._worked_out:
            self._worked_out[key] = work()
        found: T = self._worked_out[key]
        return found

    def top(
        self, scores: NDArray[np.floating[Any]], count: int, mask: Mask | None = None
    ) -> list[tuple[int, float]]:
        """The rows of the ``count`` highest scores above 0, best first; ties go by tool name.

        Args:
            scores: float[size].
            count: Most rows to give.
            mask: bool[size]: the rows in question; None for all that are alive.
        """
        import numpy as np

        rows = np.flatnonzero((scores > 0) & (self.alive if mask is None else mask))
        if len(rows) > count > 0:
            lowest = np.partition(scores[rows], -count)[-count]
            rows = rows[scores[rows] >= lowest]
        found = zip(rows.tolist(), scores[rows].tolist(), strict=True)
        return sorted(found, key=lambda one: (-one[1], self.names[one[0]]))[:count]


@dataclass(frozen=True, kw_only=True, slots=True)
class IndexConfig:
    """Which channels an index has: the kind to ask a library for, see ``Library.derived``.

    Attributes:
        channels: What is worked out about each tool; the order does not matter to results.
    """

    channels: tuple[Channel[Any], ...] = ()

    def build(self, library: Snapshot) -> ToolIndex:
        """The index of a whole library; that of a store's from kept segments, as far as it can."""
        definitions = [tool.definition for tool in library.tools.values()]
        is_kept = library.version and len(definitions) >= _KEPT_FROM
        if not is_kept or not all(one.fingerprint for one in self.channels):
            return self._index([(Segment.of(definitions, self.channels), None)])
        saved = _SavedSegments(folder=cache_directory() / "index", channels=self.channels)
        parts, rest = saved.find(definitions)
        if rest:
            parts = _settled([*parts, (Segment.of(rest, self.channels), None)])
        saved.keep([segment for segment, _ in parts], {one.name: one for one in definitions})
        return self._index(parts)

    def update(
        self, value: ToolIndex, library: Snapshot, added: Sequence[Tool], removed: Collection[str]
    ) -> ToolIndex:
        """The index after a change."""
        import numpy as np

        gone = {*removed, *(tool.name for tool in added)}
        parts = []
        for part in value.parts:
            mask = part.alive
            rows = [part.segment.places[name] for name in gone & part.segment.places.keys()]
            if rows:  # masks of earlier versions stay
                mask = np.ones(len(part.segment), bool) if mask is None else mask.copy()
                mask[rows] = False
            parts.append((part.segment, mask))
        new = Segment.of([tool.definition for tool in added], self.channels)
        return self._index(_settled([*parts, (new, None)]))

    def _index(self, segments: Sequence[tuple[Segment, Mask | None]]) -> ToolIndex:
        return ToolIndex([part for part in segments if len(part[0])], self.channels)


def _settled(parts: list[tuple[Segment, Mask | None]]) -> list[tuple[Segment, Mask | None]]:
    """The segments after joining what is small, and cleaning what is mostly gone."""
    parts = [part for part in parts if len(part[0])]
    first, total = len(parts) - 1, len(parts[-1][0]) if parts else 0
    while first > 0 and len(parts[first - 1][0]) <= max(_SMALL, total):
        first -= 1
        total += len(parts[first][0])
    if first < len(parts) - 1:
        parts[first:] = [(Segment.joined(parts[first:]), None)]
    return [
        (segment, mask)
        if mask is None or mask.sum() >= _MOST_GONE * len(segment)
        else (Segment.joined([(segment, mask)]), None)
        for segment, mask in parts
    ]


@dataclass(frozen=True, kw_only=True, slots=True)
class _SavedSegments:
    """Segments in files of the user's cache, for indexes of some channels.

    Whatever goes wrong with a file costs the time to work its segment out again. Only files that
    nobody else may write are read: whoever writes one decides which tools models see.

    Attributes:
        folder: Where they are.
        channels: What each segment has.
        known: The file of each segment that was found, by its identity.
    """

    folder: Path
    channels: Sequence[Channel[Any]]
    known: dict[int, Path] = field(default_factory=dict)

    @property
    def _prefix(self) -> str:
        prints = "\n".join(channel.fingerprint for channel in self.channels)
        return sha256(f"{_FORMAT}\n{prints}".encode()).hexdigest()[:16]

    def find(
        self, definitions: Sequence[ToolDefinition]
    ) -> tuple[list[tuple[Segment, Mask | None]], list[ToolDefinition]]:
        """Segments that are made of these definitions, half of each at least; and what is in none.

        A segment whose file is gone or damaged is rebuilt with the rest.
        """
        import numpy as np

        by_digest = {one.digest: one for one in definitions}
        parts: list[tuple[Segment, Mask | None]] = []
        for path in _newest_first(self.folder, f"{self._prefix}-*.npz"):
            try:
                with open(path, "rb", opener=plain_here) as file, np.load(file) as arrays:
                    _check_private(file)
                    rows = [by_digest.get(one) for one in arrays["digests"].astype(str).tolist()]
                    mask = np.fromiter((row is not None for row in rows), bool, len(rows))
                    if not rows or mask.mean() < _MOST_GONE:
                        continue
                    names = tuple("" if row is None else row.name for row in rows)
                    columns = range(len(self.channels))
                    segment = Segment(names, tuple(_column(arrays, place) for place in columns))
            except (OSError, ValueError, LookupError, EOFError, BadZipFile) as error:
                logger.warning(
                    "a kept index cannot be read and is rebuilt: %s: %s",
                    path,
                    episodes.error_line(error),
                )
                continue
            parts.append((segment, None if mask.all() else mask))
            self.known[id(segment)] = path
            for row in rows:  # of a tool in two segments the newer one counts
                if row is not None:
                    by_digest.pop(row.digest, None)
        return parts[::-1], list(by_digest.values())

    def keep(self, segments: Sequence[Segment], definitions: Mapping[str, ToolDefinition]) -> None:
        """Write large segments down, mark those in use, and delete what nobody used for long."""
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            for segment in segments:
                if (path := self.known.get(id(segment))) is not None:
                    path.touch()
                elif len(segment) >= _KEPT_FROM:
                    self._write(segment, [definitions[name].digest for name in segment.names])
            size = 0
            for place, path in enumerate(_newest_first(self.folder, "*.npz")):
                size += path.stat().st_size
                if place >= _MOST_FILES or size > _MOST_BYTES:
                    path.unlink(missing_ok=True)
        except OSError as error:
            logger.info("the index was not kept for the next start: %s", episodes.error_line(error))

    def _write(self, segment: Segment, digests: Sequence[str]) -> None:
        import numpy as np

        arrays: dict[str, Any] = {"digests": np.array(digests, "S64")}
        for place, rows in enumerate(segment.rows):
            arrays[f"{place}"] = rows.counts
            arrays |= {f"{place} {name}": one for name, one in rows.arrays.items()}
        of_rows = sha256("".join(digests).encode()).hexdigest()[:32]
        path = self.folder / f"{self._prefix}-{of_rows}.npz"
        with replaced(path) as draft, draft.open("wb") as file:
            np.savez(file, **arrays)


def _newest_first(folder: Path, pattern: str) -> list[Path]:
    """Files by the time of their last use."""
    found = [(path.stat(follow_symlinks=False).st_mtime_ns, path) for path in folder.glob(pattern)]
    return [path for _, path in sorted(found, reverse=True)]


def _check_private(file: IO[bytes]) -> None:
    state = os.fstat(file.fileno())
    if os.name == "posix" and (state.st_uid != os.geteuid() or state.st_mode & 0o022):
        raise PermissionError("others may write it")


def _column(arrays: Mapping[str, NDArray[Any]], place: int) -> Rows:
    """What a segment's file holds for the channel at a place."""
    mark = f"{place} "
    return Rows(
        counts=arrays[f"{place}"],
        arrays={name.removeprefix(mark): arrays[name] for name in arrays if name.startswith(mark)},
    )


@lru_cache(maxsize=16_384)  # the words of queries come again and again
def key_of(text: str) -> int:
    """A term as 64 bits, the same in every process (BLAKE2b).

    Two terms of one catalogue fall together with a chance of one in ten billion at 50,000 terms.

    Example:
        >>> key_of("weather") == key_of("weather") != key_of("whether")
        True
    """
    encoded = text.encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(encoded, digest_size=8).digest(), "little")


@dataclass(frozen=True, kw_only=True, slots=True)
class Inverted:
    """The entries that have each key.

    Attributes:
        keys: uint64[keys], ascending, each once.
        starts: int64[keys + 1]; the entries of key ``i`` are at ``starts[i]:starts[i + 1]``.
        order: int64[entries]: the place of each entry before it was sorted by key.
    """

    keys: NDArray[np.uint64]
    starts: NDArray[np.int64]
    order: NDArray[np.int64]

    @classmethod
    def of(cls, keys: NDArray[np.uint64]) -> Inverted:
        """Build from the key of each entry; entries of one key stay in order."""
        import numpy as np

        order = np.argsort(keys, kind="stable")
        distinct, starts = np.unique(keys[order], return_index=True)
        return cls(keys=distinct, starts=np.append(starts, len(keys)), order=order)

    def find(self, keys: Sequence[int]) -> list[tuple[int, int]]:
        """Start and end of each key's entries; (0, 0) for one that no entry has."""
        import numpy as np

        if not len(self.keys):
            return [(0, 0)] * len(keys)
        searched = np.array(keys, np.uint64)
        places = np.minimum(np.searchsorted(self.keys, searched), len(self.keys) - 1)
        known = self.keys[places] == searched
        starts, ends = self.starts[places] * known, self.starts[places + 1] * known
        return list(zip(starts.tolist(), ends.tolist(), strict=True))


def rarity(count: int, total: int) -> float:
    """The inverse document frequency of BM25, never negative: what one of ``total`` has tells."""
    return math.log(1 + (total - count + 0.5) / (count + 0.5))
