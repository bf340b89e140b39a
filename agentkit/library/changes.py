"""The rules that every store applies to what it is asked, so that all of them refuse alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from agentkit.episodes import Episode
from agentkit.errors import (
    AgentKitError,
    DefinitionError,
    StaleChainError,
    StaleVersionError,
    StoreError,
    StoreFormatError,
    StoreLookupError,
    ToolNotFoundError,
    UsageError,
)
from agentkit.library.events import ChainHead, LibraryEvent, check_types, moment_of
from agentkit.library.library import Library
from agentkit.library.store import (
    AppliedChange,
    EpisodeFilter,
    LibraryChange,
    ToolRevision,
    ToolStore,
)
from agentkit.messages import JsonObject
from agentkit.reading import read_json
from agentkit.tools.canonical import is_json
from agentkit.tools.definition import ToolDefinition

T = TypeVar("T")


def check_change(change: LibraryChange) -> None:
    """Refuse a change that no library could take, before anything is written.

    Every definition's digest and every event's hash is known afterwards, so a commit need not
    compute it while it holds a lock.

    Raises:
        StoreError: The change has no id, is empty, names one tool twice, says when in other words
            than ISO 8601 with a time zone, holds a definition or an event that JSON cannot
            carry, or its events are not a chain.
    """
    if not change.proposal_id.strip():
        raise StoreError("a change needs a proposal_id, by which a retry is recognised")
    names = Counter([*(tool.name for tool in change.upserts), *change.removals])
    if not names and not change.events:
        raise StoreError(f"change {change.proposal_id!r} is empty: it changes and tells nothing")
    twice = sorted(name for name, count in names.items() if count > 1)
    if twice:
        doubled = ", ".join(map(repr, twice))
        raise StoreError(f"change {change.proposal_id!r} names {doubled} more than once")
    if change.created_at and moment_of(change.created_at) is None:
        words = f"was made at {change.created_at!r}, which is not ISO 8601 with a time zone"
        raise StoreError(f"change {change.proposal_id!r} {words}")
    for definition in change.upserts:
        try:
            definition.digest  # noqa: B018 - it is kept
        except (ValueError, RecursionError) as error:
            raise StoreError(f"tool {definition.name!r} cannot be stored: {error}") from error
    before: LibraryEvent | None = None
    for event in change.events:
        _check_event(event, before, change)
        before = event


def _check_event(event: LibraryEvent, before: LibraryEvent | None, change: LibraryChange) -> None:
    """Refuse an event out of its place, or that could not be read again: it would end the chain."""
    why = ""
    place = event.sequence - 1 if before is None else before.sequence
    if event.sequence != place + 1 or (before and event.previous != before.hash):
        why = f"it does not follow event {place}"
    elif event.sequence < 1 or (event.sequence == 1) != (event.previous == ""):
        why = "it is neither the first nor names the one before"
    else:
        try:
            check_types(event)
            why = "" if is_json(event.facts) and event.hash else "its facts are no JSON data"
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            why = str(error)
    if why:
        raise StoreError(
            f"event {event.sequence} of change {change.proposal_id!r} cannot be stored: {why}; "
            "make events with agentkit.library.events.chained"
        )


def check_follows(events: Sequence[LibraryEvent], last: LibraryEvent | None) -> None:
    """Refuse events that do not follow the last one of the store.

    Raises:
        StaleChainError: The store's chain does not end where the events were chained to.
    """
    head = ChainHead.of(last)
    if events and (events[0].sequence, events[0].previous) != (head.sequence + 1, head.hash):
        raise StaleChainError(expected=events[0].sequence - 1, actual=head.sequence)


def are_held(events: Sequence[LibraryEvent], held: Sequence[LibraryEvent]) -> bool:
    """Whether the store holds the events of a change already, so that this is a retry.

    Args:
        events: The events of the change.
        held: What the store holds from the place of the first one on.
    """
    hashes = [event.hash for event in held[: len(events)]]
    return bool(events) and hashes == [event.hash for event in events]


def missing_tool(name: str, library: Library) -> ToolNotFoundError:
    """The error for a change that removes what the library lacks."""
    return ToolNotFoundError(name, nearest=library.nearest(name), version=library.version)


def check_filter(matching: EpisodeFilter) -> None:
    """Refuse a filter that means nothing.

    Raises:
        UsageError: The limit is negative.
    """
    if matching.limit is not None and matching.limit < 0:
        raise UsageError(f"an episode limit is 0 or more, or None for all; got {matching.limit}")


def matches(episode: Episode, matching: EpisodeFilter) -> bool:
    """Whether an episode is one that the filter asks for; for a store without an index.

    Example:
        >>> matches(Episode(episode_id="e1", request="Hi"), EpisodeFilter(session_id="s"))
        False
    """
    if matching.session_id is not None and episode.session_id != matching.session_id:
        return False
    if matching.stop_reason is not None and episode.stop_reason != matching.stop_reason:
        return False
    if any(episode.metadata.get(key) != value for key, value in matching.labels.items()):
        return False
    called = (call.name for call in episode.calls)
    return matching.tool_name is None or matching.tool_name in called


_ATTEMPTS = 100
"""Attempts at a change while other writers commit first."""


def commit_with_retry(attempt: Callable[[], T]) -> T:
    """Read, decide and commit, again whenever another writer committed first.

    Args:
        attempt: Reads the newest library, decides on it, and commits.

    Raises:
        StaleVersionError: Other writers committed first every time.

    Example:
        >>> commit_with_retry(lambda: 7)
        7
    """
    for _ in range(_ATTEMPTS - 1):
        with suppress(StaleVersionError):
            return attempt()
    return attempt()


def stored_definition(digest: str, origin: str, body: str, *, place: object) -> ToolDefinition:
    """The definition that a store holds, if it has the digest under which it is kept.

    Args:
        digest: The digest that the store names.
        origin: Where the definition came from, as JSON; no digest covers it.
        body: The rest of it, as JSON.
        place: The store, without secrets.

    Raises:
        StoreFormatError: It is not a definition, or was changed where it lies.
    """
    try:
        record = read_json(body)
        record["origin"] = read_json(origin)
        definition = ToolDefinition.from_json(record)
        actual = definition.digest
    except (ValueError, TypeError, AttributeError, RecursionError, DefinitionError) as error:
        words = f"cannot be read ({digest}): {error}. Restore a backup"
        raise StoreFormatError(f"{place} holds a definition that {words}") from error
    if actual != digest:
        why = f"its digest is {actual[:12]}, not {digest[:12]}"
        raise changed_definition(definition, why, place)
    return definition


def actual_digest(definition: ToolDefinition) -> str:
    """The digest of what a definition says, whatever the store keeps as its digest.

    That of what can have none is not a digest, and says so.
    """
    try:
        return replace(definition).digest  # a copy knows no digest yet
    except (ValueError, RecursionError) as error:
        return f"none, for it is not a definition ({error})"


def changed_definition(definition: ToolDefinition, why: str, place: object) -> StoreFormatError:
    """The error for a definition that is not the one that was written there."""
    return StoreFormatError(
        f"{place} holds a definition of {definition.name!r} that was changed where it lies: {why}. "
        "'agentkit check' lists the damage, 'agentkit store copy BACKUP NEW' restores it"
    )


_UNREADABLE = (LookupError, TypeError, ValueError, AttributeError, RecursionError)
"""Exceptions that a record of the wrong shape raises."""


def revisions_of(changes: Iterable[AppliedChange], tool_name: str) -> tuple[ToolRevision, ...]:
    """The state of one tool after its changes."""
    found = []
    for applied in changes:
        change = applied.change
        upserts = [tool for tool in change.upserts if tool.name == tool_name]
        if upserts or tool_name in change.removals:
            revision = ToolRevision(
                version=applied.version,
                definition=upserts[0] if upserts else None,
                proposal_id=change.proposal_id,
                author=change.author,
                reason=change.reason,
                evidence=change.evidence,
                created_at=change.created_at,
            )
            found.append(revision)
    return tuple(found)


def definition_to_json(definition: ToolDefinition) -> dict[str, Any]:
    """A definition with its digest, as files and servers give it."""
    return {"digest": definition.digest, "definition": definition.to_json()}


def definition_from_json(record: JsonObject) -> ToolDefinition:
    """The inverse of ``definition_to_json``; the digest is recomputed.

    Raises:
        StoreFormatError: It is not a definition, or not the one that its digest says.
    """
    try:
        expected = _text(record["digest"])
        definition = ToolDefinition.from_json(record["definition"])
        found = definition.digest
    except (AgentKitError, *_UNREADABLE) as error:
        raise _not_a("definition", record, error) from error
    if found != expected:
        words = f"has digest {found[:12]}, not {expected[:12]}: it was changed after it was written"
        raise StoreFormatError(f"the definition of {definition.name!r} {words}")
    return definition


def change_to_json(change: LibraryChange) -> dict[str, Any]:
    """A change as a JSON object; empty parts are left out."""
    record = {
        "proposal_id": change.proposal_id,
        "author": change.author,
        "reason": change.reason,
        "evidence": list(change.evidence),
        "created_at": change.created_at,
        "removals": list(change.removals),
        "upserts": [definition_to_json(one) for one in change.upserts],
        "events": [event.to_json() for event in change.events],
    }
    return {name: value for name, value in record.items() if value not in ("", [])}


def change_from_json(record: JsonObject) -> LibraryChange:
    """The inverse of ``change_to_json``.

    Raises:
        StoreFormatError: It is not a change, or holds a definition that is not that of its digest.
    """
    words = ("author", "reason", "created_at")
    try:
        return LibraryChange(
            proposal_id=_text(record["proposal_id"]),
            evidence=tuple(map(_text, record.get("evidence", ()))),
            removals=tuple(map(_text, record.get("removals", ()))),
            upserts=tuple(map(definition_from_json, record.get("upserts", ()))),
            events=tuple(map(LibraryEvent.from_json, record.get("events", ()))),
            **{name: _text(record.get(name, "")) for name in words},
        )
    except _UNREADABLE as error:
        raise _not_a("change", record, error) from error


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.50} is not text")
    return value


def _not_a(what: str, record: JsonObject, error: Exception) -> StoreFormatError:
    why = f"({type(error).__name__}: {error}): {str(record)[:200]}"
    return StoreFormatError(f"not a {what} {why}")


def no_such_version(version: int, known: Sequence[int]) -> StoreLookupError:
    """The error for a version that was never made."""
    held = f"versions 1 to {known[-1]}" if known else "no version yet"
    return StoreLookupError(f"there is no library version {version}; the store holds {held}")


def now() -> str:
    """The time of a commit: ISO 8601 in UTC, to the microsecond."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def begun_at(episode: Episode, *, kept: datetime) -> datetime:
    """``Episode.started_at`` as a time; where it says none, the time at which it was kept.

    A time without a zone is UTC, as the field promises. What began after it was kept has a
    clock that is ahead, and counts as kept: else it would outlast all others, for years.

    Example:
        >>> episode = Episode(episode_id="e1", request="Hi", started_at="2026-03-02T10:00:00Z")
        >>> begun_at(episode, kept=datetime.now(UTC)).isoformat()
        '2026-03-02T10:00:00+00:00'
    """
    try:
        moment = datetime.fromisoformat(episode.started_at)
        begun = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        return min(begun, kept)
    except (ValueError, TypeError, OverflowError):  # empty, or no time at all
        return kept


def rollback_change(
    store: ToolStore, tool_name: str, *, to_version: int, proposal_id: str, author: str = ""
) -> LibraryChange:
    """The change that gives a tool the definition it had at an earlier library version.

    Rolling back goes forward: committing the change makes a new version and a new entry in the
    tool's history, and nothing is ever deleted. A tool that was removed since comes back, as the
    last in the order.

    Args:
        store: Where the tool is kept.
        tool_name: The tool to restore.
        to_version: The library version whose definition of the tool is wanted.
        proposal_id: Identifies the change; see ``LibraryChange``.
        author: Who rolls back.

    Raises:
        ToolNotFoundError: The store never held a tool of that name.
        StoreError: There is no such version; or the tool was not in the library then; or the tool
            already is as it was then, so that there is nothing to do.

    Example:
        >>> from agentkit import ToolDefinition, open_store
        >>> from agentkit.library import LibraryChange
        >>> store = open_store("memory:")
        >>> ping = ToolDefinition(name="ping")
        >>> store.commit(LibraryChange(proposal_id="add", upserts=(ping,)), expected_version=0)
        1
        >>> store.commit(LibraryChange(proposal_id="drop", removals=("ping",)), expected_version=1)
        2
        >>> change = rollback_change(store, "ping", to_version=1, proposal_id="restore")
        >>> store.commit(change, expected_version=2), "ping" in store.load()
        (3, True)
    """
    versions = store.versions()
    if to_version not in (0, *versions):
        raise no_such_version(to_version, versions)
    history = store.history(tool_name)
    if not history:
        raise missing_tool(tool_name, store.load())
    earlier = [revision.definition for revision in history if revision.version <= to_version]
    target, current = (earlier[-1] if earlier else None), history[-1].definition
    if target is None:
        words = f"was not in the library at version {to_version}, and rolling back never removes"
        raise StoreError(f"tool {tool_name!r} {words}")
    if target == current and target.origin == current.origin:
        words = f"already is as it was at version {to_version}; there is nothing to roll back"
        raise StoreError(f"tool {tool_name!r} {words}")
    return LibraryChange(
        proposal_id=proposal_id,
        upserts=(target,),
        author=author,
        reason=f"roll {tool_name} back to library version {to_version}",
    )
