"""What stores that keep rows share: snapshots, definitions, episodes and faults of rows."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from agentkit.episodes import Episode
from agentkit.episodes.jsonl import decode_episode
from agentkit.errors import AgentKitError, DefinitionError, StoreFormatError
from agentkit.fetch import cache_directory
from agentkit.library.changes import no_such_version
from agentkit.library.derived import DerivedCache
from agentkit.library.library import Library
from agentkit.library.sealing import seal, sealing
from agentkit.library.store import EpisodeFilter
from agentkit.reading import read_json
from agentkit.tools.definition import ToolDefinition


def read_evidence(text: str, *, version: int, place: object) -> tuple[str, ...]:
    """The evidence of a version from the JSON array that a table holds.

    Args:
        text: The array.
        version: Named in the error, as is the ``place``.
        place: The store, without secrets.

    Raises:
        StoreFormatError: It is no array of texts.
    """
    try:
        found = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        found = None
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise StoreFormatError(
            f"{place} holds a version that can not be read ({version}): its evidence is not a JSON "
            f"array of texts: {str(text)[:80]!r}. Restore a backup; 'agentkit check' lists what "
            "else is damaged"
        )
    return tuple(found)


def row_fault(read: Callable[[], object], kept_as: object, *, advice: str) -> str:
    """Why a row is not what it should be, in words; empty when it is.

    Args:
        read: Reads what the row holds, and gives that as which it ought to be kept.
        kept_as: That as which it is kept.
        advice: What to do about it.
    """
    try:
        found = read()
    except (
        AgentKitError,
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
        RecursionError,
    ) as error:
        return f"it can not be read ({error}); {advice}"
    if found != kept_as:
        return (
            "it was changed after it was written: it is not the one as which it is kept; " + advice
        )
    return ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Differences:
    """What a later version has otherwise than an earlier one.

    Attributes:
        gone: Names that leave their place: tools that were removed, and those that were removed and
            came again, which stand behind the others.
        tools: Definitions that are new or changed, in the order of the library.
    """

    gone: Sequence[str]
    tools: Sequence[ToolDefinition]


ReadDifferences: TypeAlias = Callable[[Library, int], Differences]
"""From an earlier snapshot, which may be empty, to a later version."""


class NewestLibrary:
    """Keeps the newest snapshot of a store, and reads from there on only what changed.

    Args:
        cache: Where derived values may be kept beyond this process.
    """

    def __init__(self, *, cache: DerivedCache | None = None) -> None:
        self._cache = cache
        self._kept = Library(cache=cache)

    def load(self, version: int | None, *, newest: int, read: ReadDifferences) -> Library:
        """The snapshot at ``version``; see ``ToolStore.load``.

        Args:
            version: The wanted one; None for the newest.
            newest: The newest version that the store has now; 0 for none.
            read: Asks the store what differs.
        """
        wanted = newest if version is None else version
        if not 0 <= wanted <= newest:
            raise no_such_version(wanted, range(1, newest + 1))
        known = self._kept
        if wanted == known.version:
            return known
        base = known if 0 < known.version < wanted else Library(cache=self._cache)
        library = self._after(base, read(base, wanted), wanted)
        if wanted == newest:
            self._kept = library
        return library

    def _after(self, base: Library, found: Differences, version: int) -> Library:
        if not len(base):
            return Library(found.tools, version=version, cache=self._cache)
        rest = base.without(found.gone) if found.gone else base
        return rest.with_tools(found.tools).at_version(version)


ReadPage: TypeAlias = Callable[[int, int], Sequence[tuple[int, str]]]
"""From a place and a number of rows to so many places and texts beyond it, fewer at the end."""


def paged_episodes(
    matching: EpisodeFilter, read: ReadPage, *, newest: int, first_page: int, largest_page: int
) -> Iterator[Episode]:
    """The episodes that match, lazily; nothing is held in the store while the caller looks at them.

    Args:
        matching: What is wanted. The store looks at all of it; labels are compared once more here,
            for a store may not be able to read every text.
        read: Gives a page.
        newest: The last place to look at.
        first_page: Rows of the first page; each further one has twice as many.
        largest_page: Rows of a page at most.
    """
    left, size = matching.limit, first_page
    position = 0 if matching.oldest_first else newest + 1
    while left is None or left > 0:
        size = size if left is None else min(size, left)
        rows = read(position, size)
        for _, body in rows:
            episode = decode_episode(body)
            if matching.labels.items() <= episode.metadata.items():
                left = None if left is None else left - 1
                yield episode
        if len(rows) < size:
            return
        position, size = rows[-1][0], min(size * 2, largest_page)


logger = logging.getLogger(__name__)

_MARK_BYTES = 16
_FEW = 64
"""So many new texts are looked at again sooner than a file is written."""

_MOST = 200_000


class VerifiedDefinitions:
    """Reads definitions and holds them to their digests, each text once for a user and a store.

    Args:
        place: Names the store, without secrets.
    """

    def __init__(self, place: str) -> None:
        self._place = place
        self._begun = sealing("definition")
        self._known: set[bytes] | None = None
        self._new = 0

    def read(self, digest: str, origin: str, body: str) -> ToolDefinition:
        """The definition that a store holds, if it has the digest under which it is kept.

        Args:
            digest: The digest that the store names.
            origin: Where the definition came from, as JSON; no digest covers it.
            body: The rest of it, as JSON.

        Raises:
            StoreFormatError: It is no definition, or was changed where it lies.
        """
        try:
            record = read_json(body)
            record["origin"] = read_json(origin)
            definition = ToolDefinition.from_json(record)
            self._check(definition, digest, body)
        except (ValueError, TypeError, AttributeError, RecursionError, DefinitionError) as error:
            raise StoreFormatError(
                f"{self._place} holds a definition that can not be read ({digest}): {error}. "
                "Nothing of it is used; restore a backup"
            ) from error
        return definition

    def _check(self, definition: ToolDefinition, digest: str, text: str) -> None:
        mark = self._mark(digest, text)
        known = self._known = self._kept() if self._known is None else self._known
        if mark not in known:
            actual = definition.digest
            if actual != digest:
                raise StoreFormatError(
                    f"{self._place} holds a definition of {definition.name!r} that was changed "
                    f"where it lies: it has the digest {actual[:12]}, and is kept under "
                    f"{digest[:12]}. Nothing of it is used; 'agentkit check' lists what is "
                    "damaged, and a copy ('agentkit store copy BACKUP NEW') restores it"
                )
            known.add(mark)
            self._new += 1
        definition.__dict__["digest"] = digest  # where the cached property looks first

    def vouch(self, written: Iterable[tuple[str, str]]) -> None:
        """Take texts that were just written, each behind its definition's digest, as looked at."""
        marks = [self._mark(digest, text) for digest, text in written]
        if len(marks) > 1:  # a single one is looked at as quickly as it is remembered
            self._known = self._kept() if self._known is None else self._known
            self._known.update(marks)
            self._new += len(marks)
            self.keep()

    def keep(self) -> None:
        """Remember what was looked at, where that is much."""
        if self._new < _FEW or not self._known:
            return
        marks = self._known if len(self._known) <= _MOST else ()
        self._new = 0
        path = self._path()
        draft = path.with_name(f"{path.name}.{os.getpid()}.part")
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            draft.write_bytes(b"".join(sorted(marks)))
            draft.replace(path)
        except OSError as error:
            logger.info("%s can not be written (%s); digests are worked out again", path, error)

    def _mark(self, digest: str, text: str) -> bytes:
        begun = self._begun.copy()
        begun.update(f"{digest} {text}".encode("utf-8", "surrogatepass"))
        return begun.digest()[:_MARK_BYTES]

    def _kept(self) -> set[bytes]:
        try:
            content = self._path().read_bytes()
        except OSError:
            return set()
        ends = range(_MARK_BYTES, len(content) + 1, _MARK_BYTES)
        return {content[end - _MARK_BYTES : end] for end in ends}

    def _path(self) -> Path:
        name = seal(self._place.encode("utf-8", "surrogatepass"), "store").hex()[:32]
        return cache_directory() / "verified" / name
