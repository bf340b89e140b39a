"""``copy_store``: a history from one store into another, version by version and event by event."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

from agentkit.errors import StoreError, UsageError
from agentkit.library.copying.comparing import Comparison, Extent, compare_stores
from agentkit.library.copying.differences import Difference
from agentkit.library.copying.progress import Progress, silent
from agentkit.library.copying.writing import copy_episodes, copy_library
from agentkit.library.events import LibraryEvent
from agentkit.library.store import EpisodeFilter, Store

_LOOKS = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Amount:
    """So much of a history.

    Attributes:
        versions: Library versions.
        events: Events.
        episodes: Episodes.
    """

    versions: int = 0
    events: int = 0
    episodes: int = 0

    def to_json(self) -> dict[str, int]:
        """The amount as a JSON object."""
        return {"versions": self.versions, "events": self.events, "episodes": self.episodes}


@dataclass(frozen=True, kw_only=True, slots=True)
class Copied:
    """What a copy brought.

    Attributes:
        held: What the target held before.
        copied: What was written to it now.
        compared: What was compared afterwards, and is the same in both stores.
        is_behind: Whether the source got more meanwhile; copying again brings it.
    """

    held: Amount
    copied: Amount
    compared: Comparison
    is_behind: bool

    def to_json(self) -> dict[str, Any]:
        """The report as a JSON object."""
        return {
            "held": self.held.to_json(),
            "copied": self.copied.to_json(),
            "compared": self.compared.to_json(),
            "is_behind": self.is_behind,
        }


def copy_store(
    source: Store,
    target: Store,
    *,
    episodes: bool = True,
    progress: Progress = silent,
) -> Copied:
    """Copy all versions, events and episodes, then compare both stores.

    Versions keep their numbers, changes their ids, authors, reasons and times, tools their order
    and origins, events their hashes and signatures, episodes their order. The source is read only.

    The target is empty, or holds a beginning of the same history: then the rest is copied. So a
    copy that was interrupted anywhere is ended by running it again, and one that is run now and
    then keeps the target up to date. Nothing in the target is ever changed.

    What is written to the source meanwhile stays for the next time, see ``Copied.is_behind``.

    Args:
        source: Where to read.
        target: Where to write; nobody else writes to it meanwhile.
        episodes: Whether episodes go along.
        progress: Given the title of each step, returns what hears how much of it is done.

    Raises:
        UsageError: The source begins with a later version than 1.
        StoreError: The target holds something else than a beginning of this history; the first
            difference is named, and nothing was written. Or what was copied is not the same
            afterwards. Or one of the two failed; run it again.
        StoreFormatError: The source is damaged.

    Example:
        >>> from agentkit import ToolDefinition, open_store
        >>> from agentkit.library import LibraryChange
        >>> source, target = open_store("memory:"), open_store("memory:")
        >>> add = LibraryChange(proposal_id="1", upserts=(ToolDefinition(name="ping"),))
        >>> source.commit(add, expected_version=0)
        1
        >>> copy_store(source, target).copied
        Amount(versions=1, events=0, episodes=0)
        >>> copy_store(source, target).copied
        Amount(versions=0, events=0, episodes=0)

    Memory: the newest library of both, the events of both, a hundred episodes.
    """
    extent = _seen(source)
    held = _beginning(source, target, extent, has_episodes=episodes)
    events = source.events()[held.events : extent.events]
    until, after = extent.version or 0, held.versions
    copy_library(source, target, events, after=after, until=until, progress=progress)
    kept = copy_episodes(source, target, after=held.episodes, progress=progress) if episodes else 0
    done = replace(extent, episodes=held.episodes + kept)
    compared = compare_stores(source, target, episodes=episodes, until=done, progress=progress)
    if not compared.is_equal:
        raise StoreError(
            f"what was copied is not the same afterwards: {compared.differences[0]}. Somebody else "
            "writes to the target, or one of the two stores is damaged: 'agentkit check'"
        )
    return Copied(
        held=held,
        copied=Amount(versions=until - after, events=len(events), episodes=kept),
        compared=compared,
        is_behind=_is_behind(source, target, extent, has_episodes=episodes),
    )


def _seen(source: Store) -> Extent:
    """How far the source goes now: a version, and the events up to it.

    Both are asked for one after the other; a writer may come between the two questions.
    """
    before, events, versions = _look(source)
    for _ in range(_LOOKS):
        if len(before) == len(versions):
            break
        before, events, versions = _look(source)
    if before and before[0] != 1:
        raise UsageError(
            f"there is no history to copy: the source begins with library version {before[0]}, "
            "what was before it was left out; 'agentkit import' brings its tools"
        )
    newest = before[-1] if before else 0
    is_still = len(before) == len(versions)
    return Extent(version=newest, events=len(events) if is_still else len(_until(events, newest)))


def _look(source: Store) -> tuple[Sequence[int], Sequence[LibraryEvent], Sequence[int]]:
    return source.versions(), source.events(), source.versions()


def _beginning(source: Store, target: Store, extent: Extent, *, has_episodes: bool) -> Amount:
    """What the target holds, which must be a beginning of the source's history."""
    held = compare_stores(source, target, episodes=has_episodes, until=extent)
    for difference in held.differences:
        if difference.ended != "second":
            raise StoreError(_parted(difference))
    return Amount(versions=held.versions, events=held.events, episodes=held.episodes)


def _parted(difference: Difference) -> str:
    place, what = difference.place, difference.message
    how = (
        f"goes on where the source ends, with {place}"
        if difference.ended
        else f"holds another history than the source from {place} on: {what}, the source's first"
    )
    return (
        f"the target {how}. Nothing was written; a copy goes into an empty store, or into one that "
        "holds a beginning of the same history"
    )


def _until(events: Sequence[LibraryEvent], version: int) -> tuple[LibraryEvent, ...]:
    """The beginning of a chain, up to the first event that tells of a later library version."""
    return tuple(takewhile(lambda event: event.library_version <= version, events))


def _is_behind(source: Store, target: Store, extent: Extent, *, has_episodes: bool) -> bool:
    """Whether the source holds more than was copied."""
    if len(source.versions()) > (extent.version or 0) or source.events(after=extent.events or 0):
        return True
    if not has_episodes:
        return False
    newest = [
        [one.episode_id for one in s.select(EpisodeFilter(limit=1))] for s in (source, target)
    ]
    return newest[0] != newest[1]
