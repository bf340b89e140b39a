"""Tests of what a store may do beyond the seam; what it does not do is skipped."""

# mypy: disable-error-code="type-abstract"
# A protocol that isinstance() takes is handed to it; mypy has no type for that.

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import pytest

from agentkit.episodes import Episode, Turn
from agentkit.errors import AgentKitError
from agentkit.library.changes import now
from agentkit.library.events import Author, EventDraft, chained
from agentkit.library.memory import MemoryStore
from agentkit.library.store import (
    BatchAppending,
    Checkable,
    EpisodeFilter,
    LibraryChange,
    Pruning,
    Retention,
    Store,
)
from agentkit.messages import AssistantMessage, ToolCall
from agentkit.testing.conformance.fixtures import StoreFixtures, a_tool, start_writer
from agentkit.testing.conformance.writer import EPISODES_EACH, commit_many
from agentkit.testing.sample_tools import sample_library

Capability = TypeVar("Capability")


def _able(store: object, capability: type[Capability], method: str) -> Capability:
    """The store as one that has a capability; without it the test is skipped."""
    if not isinstance(store, capability):
        pytest.skip(f"this store has no {method}()")
    return store


def _events_only(store: Store, reason: str) -> LibraryChange:
    """A change of one event alone, behind the last one of a store."""
    draft = EventDraft(kind="assessed", author=Author(kind="person", name="Ada"), reason=reason)
    last = next(reversed(store.events()), None)
    events = chained(last, [draft], at=now())
    return LibraryChange(proposal_id=f"tell {reason}", events=events)


def _fill(store: Store) -> None:
    """Every kind of change, with and without events, and episodes; seven versions."""
    commit_many(store, "p", 3)
    changes = (
        LibraryChange(proposal_id="all", upserts=sample_library().definitions, author="Ada"),
        LibraryChange(proposal_id="gone", removals=("p_3", "bill_split"), reason="unused"),
        LibraryChange(
            proposal_id="back",
            upserts=(a_tool("p_3", "back"), a_tool("bill_split")),
            evidence=("e1", "e2"),
            created_at="2020-01-01T00:00:00+00:00",
        ),
        LibraryChange(proposal_id="both", upserts=(a_tool("new"),), removals=("p_0",)),
    )
    for version, change in enumerate(changes, start=3):
        store.commit(change, expected_version=version)
    store.commit(_events_only(store, "more"), expected_version=7)
    for number in range(5):
        store.append(_episode(f"e{number}", "add", session_id="s"))


def _episode(episode_id: str, *tools: str, session_id: str | None = None) -> Episode:
    calls = tuple(ToolCall(call_id=str(i), name=name) for i, name in enumerate(tools))
    turns = (Turn(message=AssistantMessage(tool_calls=calls)),)
    return Episode(episode_id=episode_id, request="?" * 100, turns=turns, session_id=session_id)


def _aged(episode_id: str, age: timedelta) -> Episode:
    return replace(_episode(episode_id), started_at=(datetime.now(UTC) - age).isoformat())


def _ids(store: Store, matching: EpisodeFilter = EpisodeFilter(oldest_first=True)) -> list[str]:  # noqa: B008 - frozen
    return [episode.episode_id for episode in store.select(matching)]


def _all_of(store: Store) -> object:
    """A store's content, for comparison."""
    versions = [store.load(version) for version in (*store.versions(), None)]
    names = {tool.name for library in versions for tool in library}
    return (
        [(library.version, library.definitions) for library in versions],
        {name: tuple(store.history(name)) for name in names},
        tuple(store.events()),
        list(store.select()),
    )


class StoreCapabilityConformance(StoreFixtures):
    """The optional methods of ``agentkit.library.store``, each where a store has it."""

    def test_changes_make_the_same_library_again(self, store: Store) -> None:
        """Committing a store's changes into an empty one gives every version again, in order."""
        _fill(store)
        other = MemoryStore()
        for applied in store.changes():
            made = other.commit(applied.change, expected_version=applied.version - 1)
            assert (made, applied.change.events) == (applied.version, ())
        assert list(other.versions()) == list(store.versions())
        for version in store.versions():
            ours, theirs = other.load(version), store.load(version)
            assert (ours.definitions, ours.digest) == (theirs.definitions, theirs.digest)
        for name in ("p_0", "p_3", "bill_split", "new"):
            assert tuple(other.history(name)) == tuple(store.history(name))

    def test_changes_begin_behind_a_version(self, store: Store) -> None:
        """Only the changes behind a version are given, ascending; behind the last there is none."""
        assert list(store.changes()) == []
        _fill(store)
        assert [one.version for one in store.changes(after=4)] == [5, 6, 7]
        assert [one.change.proposal_id for one in store.changes(after=5)] == ["back", "both"]
        assert list(store.changes(after=7)) == list(store.changes(after=2**70)) == []

    def test_many_episodes_are_kept_in_their_order(self, store: Store) -> None:
        """A batch is kept in its order behind what was there; known ids are ignored."""
        batching = _able(store, BatchAppending, "append_many")
        store.append(_episode("b", "first"))
        batching.append_many([_episode(name, "add") for name in ("c", "b", "a")])
        batching.append_many([])
        batching.append_many([_episode("c", "other"), _episode("d", "add")])
        assert _ids(store) == ["b", "c", "a", "d"]
        assert _ids(store, EpisodeFilter(tool_name="add")) == ["d", "a", "c"]
        assert _ids(store, EpisodeFilter(tool_name="other")) == []
        assert store.get("b") == _episode("b", "first")

    def test_a_batch_with_one_that_can_not_be_kept_is_kept_whole_or_not(self, store: Store) -> None:
        """When one episode of a batch is refused, none of the batch is kept."""
        batching = _able(store, BatchAppending, "append_many")
        bad = replace(_episode("bad"), output={"x": object()})
        batch = [_episode("a"), bad, _episode("b")]
        try:
            batching.append_many(batch)
        except AgentKitError:
            assert [store.get(name) for name in ("a", "bad", "b")] == [None] * 3
        else:  # a store of this process may keep any value
            assert [store.get(one.episode_id) for one in batch] == batch

    def test_a_killed_writer_leaves_whole_batches(self, store: Store, store_url: str) -> None:
        """A program killed between and inside batches leaves each of them whole, or not at all."""
        _able(store, BatchAppending, "append_many")
        with start_writer(store_url, "append_many", "p", 100_000) as writer:
            assert writer.stdout is not None
            for _ in range(5):
                writer.stdout.readline()
            writer.kill()
        kept = _ids(store, EpisodeFilter(session_id="p", oldest_first=True))
        assert len(kept) >= 5 * EPISODES_EACH
        assert len(kept) % EPISODES_EACH == 0
        assert kept == [f"p-{number}" for number in range(len(kept))]

    def test_retention_by_count_takes_the_oldest(self, store: Store) -> None:
        """Pruning removes the oldest episodes first; definitions and events stay."""
        pruning = _able(store, Pruning, "prune")
        _fill(store)
        before, size = pruning.volume(), pruning.volume().bytes
        assert before.count == 5
        assert size > 0
        gone = pruning.prune(Retention(max_count=2))
        assert (gone.count, pruning.volume().count) == (3, 2)
        assert gone.bytes + pruning.volume().bytes == size
        assert _ids(store) == _ids(store, EpisodeFilter(tool_name="add", oldest_first=True))
        assert _ids(store) == ["e3", "e4"]
        assert (store.get("e0"), store.get("e3")) == (None, _episode("e3", "add", session_id="s"))
        assert list(store.versions()) == [1, 2, 3, 4, 5, 6, 7]
        assert len(store.events()) == 4

    def test_retention_by_age_takes_the_old(self, store: Store) -> None:
        """Episodes that began too long ago go; one that does not say counts from its keeping."""
        pruning = _able(store, Pruning, "prune")
        for place, days in enumerate((40, 31, 29, 0)):
            store.append(_aged(f"e{place}", timedelta(days=days)))
        store.append(_episode("no time"))
        gone = pruning.prune(Retention(max_age=timedelta(days=30)))
        assert (gone.count, _ids(store)) == (2, ["e2", "e3", "no time"])

    def test_a_whole_store_has_no_faults(self, store: Store) -> None:
        """Looking for damage finds none where there is none, and changes nothing."""
        checking = _able(store, Checkable, "check")
        assert list(checking.check()) == []
        _fill(store)
        before = _all_of(store)
        assert list(checking.check()) == []
        assert _all_of(store) == before
