"""The tests that every ``EventStore`` passes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pytest

from agentkit.errors import StaleChainError, StaleVersionError, StoreError, ToolNotFoundError
from agentkit.library.chain import verify_chain
from agentkit.library.events import Author, EventDraft, LibraryEvent, chained
from agentkit.library.store import EventStore, LibraryChange, Store
from agentkit.messages import JsonObject
from agentkit.testing.conformance.fixtures import OpenAgain, StoreFixtures, start_writer, together
from agentkit.testing.conformance.writer import TOOLS_EACH, batch, with_event
from agentkit.tools.definition import ToolDefinition

_AT = "2026-11-21T10:00:00+00:00"
_ADA = Author(kind="person", name="Ada")

_ODD_FACTS: tuple[JsonObject, ...] = (
    {"numbers": [0, -0.0, 1e-300, 0.1, 2**53, 10**30, -1]},
    {"empty": ["", [], {}, None, False], "nested": [[[[{"a": [{}]}]]]]},
)


def _events(
    *reasons: str, after: LibraryEvent | None = None, facts: JsonObject | None = None
) -> tuple[LibraryEvent, ...]:
    """One event for each reason, chained to ``after``."""
    drafts = [
        EventDraft(kind="assessed", author=_ADA, reason=reason, facts=facts or {})
        for reason in reasons
    ]
    return chained(after, drafts, at=_AT)


def _events_only(proposal_id: str, *events: LibraryEvent) -> LibraryChange:
    """A change of events alone."""
    return LibraryChange(proposal_id=proposal_id, events=events)


def _put(proposal_id: str, name: str, *events: LibraryEvent) -> LibraryChange:
    """A change that adds a tool and tells of it."""
    tools = (ToolDefinition(name=name),)
    return LibraryChange(proposal_id=proposal_id, upserts=tools, events=events)


def _broken_chains() -> dict[str, tuple[LibraryEvent, ...]]:
    """Events that are not a chain, for a store that holds one event."""
    (first,) = _events("first")
    two, three, four = _events("2", "3", "4", after=first)
    return {
        "one is missing": (two, four),
        "turned around": (three, two),
        "twice": (two, two),
        "one was changed": (replace(two, reason="other"), three),
        "a first one in the middle": (two, replace(three, previous="")),
        "two firsts": (first, first),
        "no place": (replace(first, sequence=0),),
        "a first one with one before": (replace(first, previous="0" * 64),),
        "none before": (replace(two, previous=""),),
        "no JSON": (replace(two, facts={"x": float("nan")}),),
        "no JSON either": (replace(two, facts={"x": object()}),),
    }


class EventStoreConformance(StoreFixtures):
    """Subclass it in a test module, name the class ``Test...`` and override one fixture.

    See ``StoreFixtures`` for the choice; docs/write-a-store.md shows a complete example.
    """

    def test_a_fresh_store_has_no_events(self, store: Store) -> None:
        """A fresh store has an empty chain."""
        assert isinstance(store, EventStore)
        assert list(store.events()) == []
        assert list(store.events(after=7)) == []

    def test_events_come_with_their_definitions(self, store: Store) -> None:
        """A change with both makes a version and appends its events, which come back equal."""
        events = _events("why", "how")
        assert store.commit(_put("1", "a", *events), expected_version=0) == 1
        assert tuple(store.events()) == events
        assert [event.hash for event in store.events()] == [event.hash for event in events]
        assert list(store.load().tools) == ["a"]

    def test_every_part_of_an_event_is_kept(self, store: Store) -> None:
        """An event with all its parts comes back as it was, with its signature."""
        draft = EventDraft(
            kind="active",
            author=Author(kind="model", name="judge-1", prompt_hash="ab" * 32),
            reason="it helps",
            proposal_id="p-1",
            tool_name="weather",
            library_version=1,
            evidence=("e1", "e2"),
            digest_before="0" * 64,
            digest_after="1" * 64,
            facts={"p_value": 0.012, "failed": []},
        )
        (event,) = chained(None, [draft], at=_AT)
        signed = replace(event, signature="hmac-sha256:00")
        store.commit(_events_only("1", signed), expected_version=0)
        assert tuple(store.events()) == (signed,)

    def test_events_alone_make_no_version(self, store: Store) -> None:
        """A change of events alone answers with the newest version and leaves the library alone."""
        first, second = _events("1", "2")
        assert store.commit(_events_only("a", first), expected_version=0) == 0
        assert list(store.versions()) == []
        store.commit(_put("b", "tool"), expected_version=0)
        assert store.commit(_events_only("c", second), expected_version=1) == 1
        assert (store.load().version, list(store.versions())) == (1, [1])
        assert tuple(store.events()) == (first, second)

    @pytest.mark.parametrize(
        ("after", "places"),
        [(-(2**70), [1, 2, 3]), (0, [1, 2, 3]), (2, [3]), (3, []), (2**70, [])],
    )
    def test_events_after_a_place(self, store: Store, after: int, places: list[int]) -> None:
        """Only the events behind a place are given, ascending; any number is a place."""
        store.commit(_events_only("a", *_events("1", "2", "3")), expected_version=0)
        assert [event.sequence for event in store.events(after=after)] == places

    def test_a_stale_library_takes_no_events(self, store: Store) -> None:
        """A change on an old library version is refused with its events, with or without tools."""
        store.commit(_put("1", "a"), expected_version=0)
        for change in (_put("2", "b", *_events("2")), _events_only("3", *_events("3"))):
            with pytest.raises(StaleVersionError) as caught:
                store.commit(change, expected_version=0)
            assert (caught.value.expected, caught.value.actual) == (0, 1)
        assert list(store.events()) == []

    def test_a_stale_chain_takes_no_definitions(self, store: Store) -> None:
        """A change on an old end of the chain is refused with its definitions."""
        (first,) = _events("first")
        store.commit(_events_only("1", first), expected_version=0)
        ahead = _events("3", after=_events("2", after=first)[0])
        for events, expected in ((_events("other"), 0), (ahead, 2)):
            with pytest.raises(StaleChainError) as caught:
                store.commit(_put("2", "a", *events), expected_version=0)
            assert (caught.value.expected, caught.value.actual) == (expected, 1)
        assert (list(store.versions()), tuple(store.events())) == ([], (first,))
        assert list(store.history("a")) == []
        assert store.commit(_put("2", "a", *_events("2", after=first)), expected_version=0) == 1

    def test_another_chain_is_refused(self, store: Store) -> None:
        """Events that follow an event of the same place in another chain are refused."""
        (mine,), (other,) = _events("mine"), _events("other")
        store.commit(_events_only("1", mine), expected_version=0)
        with pytest.raises(StaleChainError, match="another one"):
            store.commit(_events_only("2", *_events("2", after=other)), expected_version=0)
        assert tuple(store.events()) == (mine,)

    def test_a_change_that_fails_leaves_no_events(self, store: Store) -> None:
        """When the definitions cannot be written, the events are not either."""
        change = LibraryChange(proposal_id="1", removals=("absent",), events=_events("gone"))
        with pytest.raises(ToolNotFoundError):
            store.commit(change, expected_version=0)
        assert list(store.events()) == []

    def test_a_known_proposal_adds_no_events(self, store: Store) -> None:
        """A proposal id that made a version answers with it and writes nothing, events included."""
        (first,) = _events("first")
        change = _put("same", "a", first)
        for expected_version in (0, 0, 1, 99):
            assert store.commit(change, expected_version=expected_version) == 1
        rebuilt = replace(change, events=_events("again", after=first))
        assert store.commit(rebuilt, expected_version=1) == 1
        assert tuple(store.events()) == (first,)

    def test_events_sent_again_are_kept_once(self, store: Store) -> None:
        """A change of events alone that is sent again answers again, whatever came since."""
        first, second = _events("1", "2")
        change = _events_only("x", first, second)
        store.commit(change, expected_version=0)
        assert store.commit(change, expected_version=0) == 0
        store.commit(_put("y", "a", *_events("3", after=second)), expected_version=0)
        assert store.commit(change, expected_version=0) == 1
        assert [event.reason for event in store.events()] == ["1", "2", "3"]

    def test_half_of_what_is_kept_is_no_retry(self, store: Store) -> None:
        """Events of which only the first are in the chain are refused, not completed."""
        first, second = _events("1", "2")
        store.commit(_events_only("x", first), expected_version=0)
        with pytest.raises(StaleChainError):
            store.commit(_events_only("x", first, second), expected_version=0)
        assert tuple(store.events()) == (first,)

    def test_events_sent_twice_at_once_are_kept_once(self, store: Store) -> None:
        """Retries that race each other all get an answer, and one event is kept."""
        change = _events_only("x", *_events("1"))
        assert together([lambda: store.commit(change, expected_version=0)] * 6) == [0] * 6
        assert tuple(store.events()) == change.events

    def test_one_writer_wins_each_place(self, store: Store) -> None:
        """Exactly one of several writers that chain to the same event at once succeeds."""
        for place in range(5):
            last = next(reversed(store.events()), None)
            changes = [_events_only(f"{place}-{i}", *_events(str(i), after=last)) for i in range(6)]
            outcomes = together([partial(store.commit, one, expected_version=0) for one in changes])
            assert [one for one in outcomes if isinstance(one, int)] == [0]
            assert sum(isinstance(one, StaleChainError) for one in outcomes) == 5
        assert verify_chain(store.events()) == ()
        assert len(store.events()) == 5

    @pytest.mark.parametrize("case", _broken_chains())
    def test_a_broken_chain_is_refused(self, store: Store, case: str) -> None:
        """Events that do not chain among themselves are refused, and nothing is written."""
        (first,) = _events("first")
        store.commit(_events_only("1", first), expected_version=0)
        with pytest.raises(StoreError):
            store.commit(_put("2", "a", *_broken_chains()[case]), expected_version=0)
        assert (list(store.versions()), tuple(store.events())) == ([], (first,))

    @pytest.mark.parametrize("facts", _ODD_FACTS, ids=lambda facts: next(iter(facts))[:10])
    def test_odd_facts_come_back_equal(self, store: Store, facts: JsonObject) -> None:
        """Whatever JSON can hold survives: long texts, any script, big numbers, empty parts."""
        (event,) = _events("odd", facts=facts)
        store.commit(_events_only("1", event), expected_version=0)
        (kept,) = store.events()
        assert (kept, kept.hash) == (event, event.hash)
        store.commit(_events_only("2", *_events("next", after=kept)), expected_version=0)
        assert verify_chain(store.events()) == ()

    def test_events_are_there_after_opening_again(
        self, store: Store, open_store_again: OpenAgain
    ) -> None:
        """Closing loses no event, and another replica sees and continues the chain."""
        first, second = _events("1", "2")
        replica = open_store_again()
        store.commit(_put("a", "tool", first), expected_version=0)
        assert tuple(replica.events()) == (first,)
        replica.commit(_events_only("b", second), expected_version=1)
        assert tuple(store.events(after=1)) == (second,)
        store.close()
        again = open_store_again()
        assert tuple(again.events()) == (first, second)
        assert again.commit(_events_only("b", second), expected_version=0) == 1

    def test_two_processes_make_one_chain(self, store: Store, store_url: str) -> None:
        """Two programs that tell of their changes at the same time make one whole chain."""
        writers = [start_writer(store_url, "commit", name, 15) for name in ("p", "q")]
        for writer in writers:
            with writer:
                writer.communicate()
            assert writer.returncode == 0
        check_agree(store)
        assert len(store.events()) == 30

    def test_a_killed_writer_leaves_a_whole_chain(self, store: Store, store_url: str) -> None:
        """A program killed in the middle leaves as many events as versions, in a whole chain."""
        with start_writer(store_url, "commit", "p", 100_000) as writer:
            assert writer.stdout is not None
            for _ in range(3):
                writer.stdout.readline()
            writer.kill()
        events = store.events()
        check_agree(store)
        change = with_event(batch("q", 0), events[-1], version=len(events) + 1)
        assert store.commit(change, expected_version=len(events)) == len(events) + 1


def check_agree(store: Store) -> None:
    """Each version is whole, and has the one event that tells of it."""
    events: Sequence[LibraryEvent] = store.events()
    assert verify_chain(events) == ()
    assert [event.library_version for event in events] == list(store.versions())
    by_version = {
        revision.version: revision.proposal_id
        for name in store.load().tools
        for revision in store.history(name)
    }
    assert by_version == {event.library_version: event.proposal_id for event in events}
    for version in store.versions():
        texts: dict[str, list[str]] = {}
        for tool in store.load(version):
            writer = tool.name.partition("_")[0]
            texts.setdefault(writer, []).append(tool.definition.description.summary)
        assert all(len(own) == TOOLS_EACH and len({*own}) == 1 for own in texts.values())
